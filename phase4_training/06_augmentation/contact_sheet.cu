/* contact_sheet.cu - what a network sees of one image: a row for each change, a column for each epoch.
 *
 *     bazel run //phase4_training:contact_sheet
 *     bazel run //phase4_training:contact_sheet -- --data=fashion_mnist --sample=7 --augment=crop,cutout:8
 *     bazel run //phase4_training:contact_sheet -- --image=photo.jpg
 *
 * The sheet is contact_sheet.png in the output folder. The table printed beside it says by how many grey levels the
 * pixels of an epoch differ from the image, on average. */
#include "common/image.h"
#include "common/nn/train_options.h"
#include "common/threads_begin.h"
#include "common/train_log.h"

enum {
  ROWS = 16,
  MOST_EPOCHS = 16,
  MOST_SIDE = 512,
  MARGIN = 8,
  TILE = 84,
  TEXT_SCALE = 2,
  OPTION_IMAGE = 1,
  OPTION_SAMPLE
};

typedef struct SheetOptions {
  TrainOptions train;
  char image[PATH_MAX]; /* "": a sample of the data set */
  int sample;
} SheetOptions;

/* The image (C,H,W), and how it is normalised. */
typedef struct Sheet {
  char title[PATH_MAX + 64];
  Shape shape;
  uint8_t *pixels;
  DataNorm norm;
  Augment row[ROWS];
  int rows, epochs;
  uint8_t *tiles; /* (rows, epochs, C,H,W) */
} Sheet;

static error_t parse(int key, char *arg, struct argp_state *state) {
  SheetOptions *options = (SheetOptions *)state->input;
  switch (key) {
    case OPTION_IMAGE:
      option_path(state, arg, "--image", options->image);
      return 0;
    case OPTION_SAMPLE:
      options->sample = (int)option_int(state, arg, "--sample", 0, INT_MAX);
      return 0;
    default:
      return ARGP_ERR_UNKNOWN;
  }
}

/* ---- the image ---- */

static void read_image(const SheetOptions *options, Sheet *sheet) {
  Image image;
  Error err;
  if (image_read_rgb(options->image, &image, &err) != 0) die("--image: %s", err.message);
  const int area = image.width * image.height;
  if (image.width > MOST_SIDE || image.height > MOST_SIDE)
    die("--image: %s is %d x %d pixels; up to %d x %d are shown, scale the image down", options->image, image.width,
        image.height, MOST_SIDE, MOST_SIDE);
  sheet->shape = shape3(3, image.height, image.width);
  sheet->pixels = (uint8_t *)xmalloc(3 * (size_t)area);
  for (int i = 0; i < 3 * area; i++) sheet->pixels[i % 3 * area + i / 3] = image.pixels[i];
  const DataNorm norm = {3, {0.485f, 0.456f, 0.406f}, {0.229f, 0.224f, 0.225f}}; /* ImageNet's, as photographs are */
  sheet->norm = norm;
  snprintf(sheet->title, sizeof sheet->title, "%s", options->image);
  image_free(&image);
}

static void read_sample(const SheetOptions *options, Sheet *sheet) {
  DataSet set;
  Error err;
  const DataSource *data = options->train.data;
  if (data_load(data, options->train.common.data_dir, DATA_TRAIN, &set, &err) != 0 ||
      data_statistics(&set, &sheet->norm, &err) != 0)
    die("%s", err.message);
  if (options->sample >= set.count)
    die("--sample=%d: %s has %d training images; a number from 0 to %d is expected", options->sample, data->title,
        set.count, set.count - 1);
  const size_t size = shape_count(set.shape);
  sheet->shape = set.shape;
  sheet->pixels = (uint8_t *)xmalloc(size);
  memcpy(sheet->pixels, set.samples + options->sample * size, size);
  snprintf(sheet->title, sizeof sheet->title, "%s, training image %d", data->title, options->sample);
  data_free(&set);
}

/* ---- the rows ---- */

static void add_row(Sheet *sheet, const char *text) {
  Error err;
  Augment *augment = &sheet->row[sheet->rows++];
  if (augment_parse(text, augment, &err) != 0 || augment_check(augment, sheet->shape, &err) != 0)
    die("%s", err.message);
}

/* How far things move follows from the size of the image. */
static void add_scaled_row(Sheet *sheet, const char *name, int number, const char *more) {
  char text[AUGMENT_TEXT];
  snprintf(text, sizeof text, "%s:%d%s", name, number > 1 ? number : 1, more);
  add_row(sheet, text);
}

static void add_rows(Sheet *sheet) {
  const int height = sheet->shape.dim[1], width = sheet->shape.dim[2], side = height < width ? height : width;
  add_row(sheet, "none");
  add_scaled_row(sheet, "shift", side / 7, "");
  add_row(sheet, "flip");
  add_row(sheet, "affine:rotate=30");
  add_row(sheet, "affine:scale=0.3");
  add_row(sheet, "affine:shear=30");
  add_scaled_row(sheet, "cutout", side / 3, "");
  add_row(sheet, "colour:brightness=0.5");
  add_row(sheet, "colour:contrast=0.8");
  if (sheet->shape.dim[0] == 3) add_row(sheet, "colour:saturation=1");
  add_scaled_row(sheet, "crop", side / 7, ",affine:rotate=10,scale=0.1");
}

/* ---- what becomes of it ---- */

static void *uploaded(Device device, const void *from, size_t bytes) {
  void *to = device_alloc(device, bytes);
  device_upload(device, to, from, bytes);
  return to;
}

/* All epochs of a row, on the device; back to bytes on the host. */
static void augment_row(const SheetOptions *options, Sheet *sheet, int row) {
  const Device device = options->train.common.device;
  const size_t size = shape_count(sheet->shape), plane = size / sheet->norm.channels;
  const uint32_t zero = 0, sample = (uint32_t)options->sample;
  float *y = (float *)xmalloc(size * sizeof *y);
  AugmentSource source;
  memset(&source, 0, sizeof source);
  source.images = (const uint8_t *)uploaded(device, sheet->pixels, size);
  source.row = (const uint32_t *)uploaded(device, &zero, sizeof zero);
  source.sample = (const uint32_t *)uploaded(device, &sample, sizeof sample);
  source.norm = augment_norm(sheet->norm.mean, sheet->norm.stddev, sheet->norm.channels);
  AugmentKey *key = (AugmentKey *)device_alloc(device, sizeof *key);
  float *to = (float *)device_alloc(device, size * sizeof *to);
  source.key = key;
  source.middle = augment_middle(sheet->norm.mean, sheet->norm.channels);
  source.channels = sheet->shape.dim[0];
  source.height = sheet->shape.dim[1];
  source.width = sheet->shape.dim[2];
  for (int epoch = 0; epoch < sheet->epochs; epoch++) {
    const AugmentKey here = augment_key(options->train.common.seed, (uint32_t)epoch);
    uint8_t *tile = sheet->tiles + ((size_t)row * sheet->epochs + epoch) * size;
    device_upload(device, key, &here, sizeof here);
    augment_apply(&sheet->row[row], device, to, &source, 1);
    device_download(device, y, to, size * sizeof *y);
    for (size_t i = 0; i < size; i++) {
      const size_t c = i / plane;
      tile[i] = (uint8_t)lrintf(255 * fminf(fmaxf(y[i] * sheet->norm.stddev[c] + sheet->norm.mean[c], 0), 1));
    }
  }
  const void *arrays[] = {source.images, source.row, source.sample, key, to};
  for (int i = 0; i < 5; i++) device_free(device, (void *)arrays[i]);
  free(y);
}

/* Mean difference of two images in grey levels. */
static double difference(const uint8_t *a, const uint8_t *b, size_t n) {
  double sum = 0;
  for (size_t i = 0; i < n; i++) sum += abs(a[i] - b[i]);
  return sum / (double)n;
}

/* ---- the sheet ---- */

static void put_tile(Image *image, int x, int y, int scale, const uint8_t *tile, Shape shape) {
  const int channels = shape.dim[0], height = shape.dim[1], width = shape.dim[2], area = height * width;
  for (int i = 0; i < area; i++) {
    unsigned char rgb[3];
    for (int c = 0; c < 3; c++) rgb[c] = tile[(channels == 3 ? c : 0) * area + i];
    image_put_block(image, x + i % width * scale, y + i / width * scale, scale, rgb);
  }
}

/* Each row has its text above it; the epochs stand above the first row. */
static Image draw(const Sheet *sheet) {
  const int height = sheet->shape.dim[1], width = sheet->shape.dim[2], scale = width < TILE ? TILE / width : 1;
  const int step_x = width * scale + MARGIN, text = 10 * TEXT_SCALE, step_y = height * scale + text + MARGIN;
  const size_t size = shape_count(sheet->shape);
  Image image = image_new(sheet->epochs * step_x + MARGIN, sheet->rows * step_y + text + 2 * MARGIN, 3);
  for (int epoch = 0; epoch < sheet->epochs; epoch++) {
    char name[32];
    snprintf(name, sizeof name, step_x >= 8 * 6 * TEXT_SCALE - MARGIN ? "epoch %d" : "%d", epoch);
    image_put_text(&image, MARGIN + epoch * step_x, MARGIN, TEXT_SCALE, name);
  }
  for (int row = 0; row < sheet->rows; row++) {
    const int y = 2 * MARGIN + text + row * step_y;
    image_put_text(&image, MARGIN, y, TEXT_SCALE, sheet->row[row].name);
    for (int epoch = 0; epoch < sheet->epochs; epoch++)
      put_tile(&image, MARGIN + epoch * step_x, y + text - MARGIN / 4, scale,
               sheet->tiles + ((size_t)row * sheet->epochs + epoch) * size, sheet->shape);
  }
  return image;
}

int main(int argc, char **argv) {
  static const struct argp_option rows[] = {
      {"image", OPTION_IMAGE, "FILE", 0, "A PNG or JPEG image in colour, instead of a sample of the data set", 0},
      {"sample", OPTION_SAMPLE, "N", 0, "Which training image of the data set (default: 0)", 0},
      OPTION_END};
  static const struct argp own = {rows, parse, NULL, NULL, NULL, NULL, NULL};
  static SheetOptions options;
  static Sheet sheet;
  Error err;
  char device[512], path[PATH_MAX + 64];
  threads_begin();
  train_options_default(&options.train, OPTIONS_TRAINER & ~(unsigned)OPTIONS_BATCH_SIZE,
                        TRAIN_DATA | TRAIN_AUGMENT | TRAIN_THREADS);
  options.train.common.epochs = 8;
  train_options_parse(
      &options.train, &own, &options,
      "Draws what augmentation makes of one image: a row for each change, or for --augment alone, and a "
      "column for each epoch.",
      argc, argv);
  sheet.epochs = options.train.common.epochs;
  if (sheet.epochs > MOST_EPOCHS) die("--epochs=%d: at most %d are shown", sheet.epochs, MOST_EPOCHS);
  if (options.image[0])
    read_image(&options, &sheet);
  else
    read_sample(&options, &sheet);
  if (options.train.given & TRAIN_AUGMENT)
    add_row(&sheet, options.train.augment->name);
  else
    add_rows(&sheet);
  const char *directory = options.train.common.output_dir;
  if (make_directories(directory, &err) != 0) die("--output-dir: %s", err.message);
  if (device_open(options.train.common.device, device, sizeof device, &err) != 0) die("%s", err.message);

  const size_t size = shape_count(sheet.shape);
  sheet.tiles = (uint8_t *)xmalloc((size_t)sheet.rows * sheet.epochs * size);
  printf("contact_sheet on %s\n%s: %d x %d pixels, %d channel%s; seed %llu\n\n", device, sheet.title,
         sheet.shape.dim[2], sheet.shape.dim[1], sheet.shape.dim[0], sheet.shape.dim[0] == 1 ? "" : "s",
         (unsigned long long)options.train.common.seed);
  printf("%-40s mean difference in grey levels, epoch 0, 1, ...\n", "");
  for (int row = 0; row < sheet.rows; row++) {
    augment_row(&options, &sheet, row);
    printf("%-40s", sheet.row[row].name);
    for (int epoch = 0; epoch < sheet.epochs; epoch++)
      printf(" %5.1f", difference(sheet.tiles + ((size_t)row * sheet.epochs + epoch) * size, sheet.pixels, size));
    printf("\n");
  }
  Image image = draw(&sheet);
  snprintf(path, sizeof path, "%s/contact_sheet.png", directory);
  if (image_write_png(path, &image, &err) != 0) die("%s", err.message);
  fprintf(stderr, "the sheet is %s\n", path);
  if (options.train.common.json) {
    json_t *object = json_pack("{s:s, s:s, s:i, s:i, s:o}", "program", "contact_sheet", "device",
                               device_name(options.train.common.device), "rows", sheet.rows, "epochs", sheet.epochs,
                               "sheet", json_text(path));
    if (json_result(object, &err) != 0) die("%s", err.message);
  }
  image_free(&image);
  free(sheet.tiles);
  free(sheet.pixels);
  stdout_finish();
  return 0;
}
