/* idx_files.cu - what is in the files of a data set, byte by byte.
 *
 *     bazel run //phase2_mlp:idx_files                         the training set; --split=test: the test set
 *     bazel run //phase2_mlp:idx_files -- --label=7 --digits=6
 *     bazel run //phase2_mlp:idx_files -- some-idx3-ubyte.gz    any IDX file
 *
 * Look into a data set before you train on it. The header holds the sizes, in numbers whose byte order is not the
 * processor's. Then come the pixels, one byte each, 0 for paper and 255 for ink; most of them are 0. A network learns
 * faster when its inputs have a mean of zero and a deviation of one (LeCun et al., "Efficient BackProp", 1998). Both
 * are computed here over the training set, and later kept with the model. Last come the digits themselves: a mistake
 * in any of these steps is visible in the picture at once. */
#include "common/options.h"
#include "common/runfiles.h"
#include "common/terminal.h"
#include "common/train_log.h"
#include "phase2_mlp/04_idx_files/idx_files.cuh"
#include "phase2_mlp/05_batches/batches.cuh"

#include "common/mnist.h"

enum {
  GAP = 2,
  CAPTION = 16 /* characters below which no image is wide */,
  LARGEST_SIDE = 128 /* of images that are drawn */,
  MOST_TILES = 10000
};

typedef struct Options {
  CommonOptions common;
  char file[PATH_MAX]; /* "": the split's pair of files */
  int test, first, digits, label, tiles;
  int art; /* a TerminalArt; -1: what the terminal can show */
} Options;

enum { OPTION_SPLIT = 1, OPTION_FIRST, OPTION_DIGITS, OPTION_LABEL, OPTION_ART, OPTION_SHEET };

static error_t parse(int key, char *arg, struct argp_state *state) {
  Options *options = (Options *)state->input;
  switch (key) {
    case OPTION_SPLIT:
      options->test = strcmp(arg, "test") == 0;
      if (!options->test && strcmp(arg, "train") != 0) argp_error(state, "--split=%s: train or test is expected", arg);
      return 0;
    case OPTION_FIRST:
      options->first = (int)option_int(state, arg, "--first", 0, INT_MAX);
      return 0;
    case OPTION_DIGITS:
      options->digits = (int)option_int(state, arg, "--digits", 0, 1000);
      return 0;
    case OPTION_LABEL:
      options->label = (int)option_int(state, arg, "--label", 0, MNIST_CLASSES - 1);
      return 0;
    case OPTION_SHEET:
      options->tiles = (int)option_int(state, arg, "--sheet", 0, MOST_TILES);
      return 0;
    case OPTION_ART: {
      static const char *const names[] = {"ascii", "blocks", "colour"};
      for (options->art = 2; options->art >= 0 && strcmp(arg, names[options->art]) != 0;) options->art--;
      if (options->art < 0 && strcmp(arg, "auto") != 0)
        argp_error(state, "--art=%s: auto, ascii, blocks or colour is expected", arg);
      return 0;
    }
    case ARGP_KEY_ARG:
      if (options->file[0] != '\0') argp_error(state, "\"%s\": one file at a time", arg);
      option_path(state, arg, "FILE", options->file);
      return 0;
    case ARGP_KEY_END:
      if (options->label >= 0 && options->file[0] != '\0')
        argp_error(state, "--label: a file alone has no labels beside it; leave out the file, or --label");
      return 0;
    default:
      return ARGP_ERR_UNKNOWN;
  }
}

/* ---- the header ---- */

static void print_line(size_t offset, const uint8_t *bytes, int count, const char *meaning) {
  printf("%8zu  ", offset);
  for (int i = 0; i < 4; i++) printf(i < count ? "%02x " : "   ", i < count ? bytes[i] : 0);
  printf(" %-28s", meaning);
}

/* The first bytes of the file, unpacked if it is gzipped; idx_read() has checked them before. */
static void print_header(const char *path, const IdxArray *array) {
  static const char *const meanings[][IDX_MAX_RANK] = {{"labels"},
                                                       {"rows", "columns"},
                                                       {"images", "rows of an image", "columns of an image"},
                                                       {"images", "channels", "rows", "columns"}};
  uint8_t bytes[4 + 4 * IDX_MAX_RANK];
  char packed[PATH_MAX + 4];
  const int size = 4 + 4 * array->rank;
  snprintf(packed, sizeof packed, "%s%s", path, access(path, F_OK) == 0 ? "" : ".gz");
  gzFile in = gzopen(packed, "rb");
  if (in == NULL || gzread(in, bytes, (unsigned)size) != size) die("cannot read %s again", packed);
  printf("%s%s\n\n", packed, gzdirect(in) ? "" : ", unpacked");
  gzclose(in);
  printf("%8s  %-13s%-28s %12s %22s\n", "byte", "", "", "big-endian", "little-endian would be");
  print_line(0, bytes, 2, "always zero");
  putchar('\n');
  print_line(2, bytes + 2, 1, "elements: unsigned bytes");
  putchar('\n');
  print_line(3, bytes + 3, 1, "dimensions");
  printf(" %12d\n", bytes[3]);
  for (int i = 0; i < array->rank; i++) {
    const uint8_t *number = bytes + 4 + 4 * i;
    print_line(4 + 4 * (size_t)i, number, 4, meanings[array->rank - 1][i]);
    printf(" %12u %22u\n", idx_big_endian(number), idx_little_endian(number));
  }
  printf("%8d  ...          ", size);
  for (int i = 0; i < array->rank; i++) printf("%s%zu", i > 0 ? " x " : "", array->shape[i]);
  printf(" = %zu bytes, the last index runs fastest\n\n", array->count);
  printf("%d bytes of header and %zu of data are %zu bytes: the size of the file.\n", size, array->count,
         size + array->count);
}

/* The value that a program gets if it copies four bytes of the file into an integer. */
static void print_byte_order(const IdxArray *array) {
  const uint32_t count = (uint32_t)array->shape[0];
  const uint8_t bytes[4] = {(uint8_t)(count >> 24), (uint8_t)(count >> 16), (uint8_t)(count >> 8), (uint8_t)count};
  uint32_t copied;
  memcpy(&copied, bytes, sizeof copied);
  printf("This machine is %s-endian: copied into an integer as they are, bytes 4 to 7 would be %u.\n",
         copied == count ? "big" : "little", copied);
}

/* An image as numbers: two hexadecimal digits per pixel. Zeros are left out, so that the ink shows. */
static void print_bytes(const IdxArray *images, size_t image) {
  const size_t height = images->shape[1], width = images->shape[2], begin = image * height * width;
  const size_t header = 4 + 4 * (size_t)images->rank;
  printf("\nImage %zu is the bytes %zu to %zu; its rows, with \" .\" for 00:\n\n", image, header + begin,
         header + begin + height * width - 1);
  for (size_t y = 0; y < height; y++) {
    const unsigned char *row = images->data + begin + y * width;
    size_t end = width;
    while (end > 0 && row[end - 1] == 0) end--;
    if (end == 0) continue;
    printf("%8zu  ", header + begin + y * width);
    for (size_t x = 0; x < end; x++) printf(row[x] == 0 ? " ." : "%02x", row[x]);
    putchar('\n');
  }
}

/* ---- pixels and labels in numbers ---- */

typedef struct Statistics {
  double zeros;       /* share of pixels that are 0 */
  float mean, stddev; /* of pixel / 255 */
} Statistics;

/* The definition, over the histogram: a pixel has 256 values. */
static Statistics print_statistics(const IdxArray *array) {
  Statistics s;
  size_t histogram[256] = {0};
  MnistSet set = {1, 1, (int)0, array->data, NULL};
  for (size_t i = 0; i < array->count; i++) histogram[array->data[i]]++;
  set.count = array->count; /* as so many images of one pixel */
  set.width = 1;
  mnist_statistics(&set, &s.mean, &s.stddev);
  s.zeros = (double)histogram[0] / (double)array->count;
  printf("\n%zu pixels: %.1f %% are 0, %.1f %% are 255\n", array->count, 100 * s.zeros,
         100 * (double)histogram[255] / (double)array->count);
  printf("mean      %8.4f of 255 = %.4f of 1\ndeviation %8.4f of 255 = %.4f of 1\n", 255.0 * s.mean, s.mean,
         255.0 * s.stddev, s.stddev);
  if (!(s.stddev >= 1e-6f)) {
    printf("all pixels are equal: there is nothing to normalise or to learn\n");
    return s;
  }
  double sum = 0, squares = 0;
  for (int value = 0; value < 256; value++) {
    double x = batch_normalize((uint8_t)value, s.mean, s.stddev);
    sum += x * (double)histogram[value];
    squares += x * x * (double)histogram[value];
  }
  double mean = sum / (double)array->count, deviation = sqrt(squares / (double)array->count - mean * mean);
  printf("normalised, (pixel / 255 - %.4f) / %.4f: 0 becomes %.4f, 255 becomes %.4f; mean %.4f, deviation %.4f\n",
         s.mean, s.stddev, batch_normalize(0, s.mean, s.stddev), batch_normalize(255, s.mean, s.stddev),
         fabs(mean) < 5e-5 ? 0 : mean, deviation);
  return s;
}

static void print_labels(const unsigned char *labels, size_t count, size_t *of_class) {
  size_t others = 0, most = 1;
  memset(of_class, 0, MNIST_CLASSES * sizeof *of_class);
  for (size_t i = 0; i < count; i++)
    if (labels[i] < MNIST_CLASSES)
      of_class[labels[i]]++;
    else
      others++;
  for (int c = 0; c < MNIST_CLASSES; c++)
    if (of_class[c] > most) most = of_class[c];
  printf("\n%zu labels\n", count);
  for (int c = 0; c < MNIST_CLASSES; c++) {
    printf("  %d %8zu ", c, of_class[c]);
    for (size_t i = 0; i < 40 * of_class[c] / most; i++) putchar('#');
    putchar('\n');
  }
  if (others > 0) printf("  %zu are above %d\n", others, MNIST_CLASSES - 1);
}

/* ---- pictures ---- */

/* Up to `wanted` images from `first` on, of one label or of any (-1). Returns how many there are. */
static int pick(const Options *options, size_t count, const unsigned char *labels, int label, int wanted,
                size_t *picked) {
  int found = 0;
  for (size_t i = (size_t)options->first; i < count && found < wanted; i++)
    if (label < 0 || labels[i] == label) picked[found++] = i;
  return found;
}

static void draw_digits(const Options *options, const IdxArray *images, const unsigned char *labels, size_t count) {
  static size_t picked[1000];
  const int height = (int)images->shape[1], width = (int)images->shape[2];
  const TerminalArt art = options->art < 0 ? terminal_art(1) : (TerminalArt)options->art;
  int found = pick(options, count, labels, options->label, options->digits, picked);
  const int column = width < CAPTION ? CAPTION : width, gap = column - width + GAP;
  int across = (terminal_width(1) + GAP) / (column + GAP);
  if (across < 1) across = 1;
  for (int begin = 0; begin < found; begin += across) {
    const unsigned char *row[200];
    int here = found - begin < across ? found - begin : across;
    putchar('\n');
    for (int i = 0; i < here; i++) {
      char caption[64];
      int length = snprintf(caption, sizeof caption, "image %zu", picked[begin + i]);
      if (labels != NULL) snprintf(caption + length, sizeof caption - length, ": %d", labels[picked[begin + i]]);
      printf("%-*s", i + 1 < here ? column + GAP : 0, caption);
      row[i] = images->data + picked[begin + i] * (size_t)height * (size_t)width;
    }
    putchar('\n');
    terminal_draw_gray(stdout, row, here, height, width, gap, art);
  }
}

/* One row per class; with --label or without labels, in the order of the file. Below each image is its number. */
static int draw_sheet(const Options *options, const IdxArray *images, const unsigned char *labels, size_t count,
                      char *path, Error *err) {
  static size_t picked[MOST_TILES];
  static char captions[MOST_TILES][24];
  static const char *caption[MOST_TILES];
  const size_t size = images->shape[1] * images->shape[2];
  const int by_class = labels != NULL && options->label < 0;
  int columns = by_class              ? (options->tiles + MNIST_CLASSES - 1) / MNIST_CLASSES
                : options->tiles < 10 ? options->tiles
                                      : 10;
  int wanted = by_class ? MNIST_CLASSES * columns : options->tiles, found = 0;
  if (wanted > MOST_TILES) wanted = MOST_TILES;
  unsigned char *tiles = (unsigned char *)xcalloc((size_t)wanted, size);
  int scale = 3;
  while (scale > 1 && (double)wanted * (double)size * scale * scale > IMAGE_MAX_PIXELS / 2) scale--;
  if ((double)wanted * (double)size * scale * scale > IMAGE_MAX_PIXELS / 2) {
    free(tiles);
    return error_set(err, "--sheet=%d: a sheet of so many images of %zu x %zu pixels is too large; ask for fewer",
                     options->tiles, images->shape[1], images->shape[2]);
  }
  for (int c = 0; c < (by_class ? MNIST_CLASSES : 1); c++) {
    int here = pick(options, count, labels, by_class ? c : options->label, by_class ? columns : wanted, picked);
    for (int i = 0; i < (by_class ? columns : here); i++) {
      captions[found][0] = '\0';
      caption[found] = captions[found];
      if (i < here) {
        memcpy(tiles + (size_t)found * size, images->data + picked[i] * size, size);
        snprintf(captions[found], sizeof captions[found], "%zu", picked[i]);
      }
      found++;
    }
  }
  Image sheet =
      image_sheet_gray(tiles, found, (int)images->shape[1], (int)images->shape[2], columns, scale, 6, caption);
  free(tiles);
  snprintf(path, PATH_MAX + 32, "%s/%s%s.png", options->common.output_dir,
           options->file[0] != '\0' ? "file"
           : options->test          ? "test"
                                    : "train",
           by_class ? "_classes" : "");
  int status = image_write_png(path, &sheet, err);
  image_free(&sheet);
  return status;
}

/* ---- the program ---- */

static void usage_error(const char *format, size_t a, const char *b) {
  fflush(stdout);
  fprintf(stderr, "%s: ", program_invocation_short_name);
  fprintf(stderr, format, a, b);
  fputc('\n', stderr);
  exit(2);
}

static void print_json(const Options *options, const char *path, const IdxArray *array, const Statistics *statistics,
                       const size_t *of_class, const char *sheet) {
  Error err;
  json_t *shape = json_array(), *labels = json_array();
  for (int i = 0; i < array->rank; i++) json_array_append_new(shape, json_integer((json_int_t)array->shape[i]));
  for (int c = 0; of_class != NULL && c < MNIST_CLASSES; c++)
    json_array_append_new(labels, json_integer((json_int_t)of_class[c]));
  json_t *object =
      json_pack("{s:s, s:o, s:o}", "program", program_invocation_short_name, "file", json_text(path), "shape", shape);
  if (options->file[0] == '\0') json_object_set_new(object, "split", json_string(options->test ? "test" : "train"));
  if (statistics != NULL) {
    json_object_set_new(object, "mean", json_real(statistics->mean));
    json_object_set_new(object, "stddev", json_real(statistics->stddev));
    json_object_set_new(object, "zeros", json_real(statistics->zeros));
  }
  if (of_class != NULL) json_object_set(object, "labels", labels);
  json_decref(labels);
  if (sheet[0] != '\0') json_object_set_new(object, "sheet", json_text(sheet));
  if (json_result(object, &err) != 0) die("%s", err.message);
}

int main(int argc, char **argv) {
  static const struct argp_option rows[] = {
      {"split", OPTION_SPLIT, "train|test", 0, "Which of MNIST's two sets (default: train)", 0},
      {"first", OPTION_FIRST, "N", 0, "Begin with image N of the file (default: 0)", 0},
      {"label", OPTION_LABEL, "D", 0, "Show images of the digit D only", 0},
      {"digits", OPTION_DIGITS, "N", 0, "Draw N images as text (default: 4)", 0},
      {"art", OPTION_ART, "KIND", 0, "auto, ascii, blocks or colour (default: colour on a terminal, else ascii)", 0},
      {"sheet", OPTION_SHEET, "N", 0, "Images on the contact sheet, 0: no sheet (default: 100)", 0},
      OPTION_END};
  static const struct argp own = {
      rows, parse, "[FILE]", "Shows what is in MNIST's files, byte by byte, or in any other IDX file.",
      NULL, NULL,  NULL};
  static Options options;
  static char directory[PATH_MAX], path[PATH_MAX + 64], labels_path[PATH_MAX + 64], sheet[PATH_MAX + 32];
  IdxArray array, labels;
  MnistSet set;
  Statistics statistics;
  size_t of_class[MNIST_CLASSES];
  Error err;
  memset(&labels, 0, sizeof labels);
  options.common = options_default(OPTIONS_DATA_DIR | OPTIONS_OUTPUT_DIR | OPTIONS_JSON);
  options.label = options.art = -1;
  options.digits = 4;
  options.tiles = 100;
  options_parse(&options.common, &own, &options, argc, argv);

  if (options.file[0] != '\0') {
    if (user_path(options.file, path, PATH_MAX, &err) != 0) die("%s", err.message);
  } else {
    const char *split = options.test ? "t10k" : "train";
    if (options.common.data_dir[0] != '\0')
      snprintf(directory, sizeof directory, "%s", options.common.data_dir);
    else if (runfiles_find("third_party/data/mnist", directory, sizeof directory, &err) != 0)
      die("%s", err.message);
    if (mnist_load(directory, split, &set, &err) != 0)
      die("%s", err.message); /* the two belong together, all is right */
    mnist_free(&set);
    snprintf(path, sizeof path, "%s/%s-images-idx3-ubyte", directory, split);
    snprintf(labels_path, sizeof labels_path, "%s/%s-labels-idx1-ubyte", directory, split);
    if (idx_read(labels_path, &labels, &err) != 0) die("%s", err.message);
  }
  if (idx_read(path, &array, &err) != 0) die("%s", err.message);
  if (array.count == 0) die("%s holds no data: one of its sizes is 0", path);

  size_t one[1];
  const int images = array.rank == 3;
  const size_t count = array.shape[0];
  if ((size_t)options.first >= count) usage_error("--first: the file holds %zu%s", count, images ? " images" : "");
  if (options.label >= 0 && pick(&options, count, labels.data, options.label, 1, one) == 0)
    usage_error("--label: from image %zu on there is none of this label%s", (size_t)options.first, "");
  print_header(path, &array);
  print_byte_order(&array);
  if (labels.data != NULL) {
    printf("\n");
    print_header(labels_path, &labels);
  }
  const int drawn = images && array.shape[1] <= LARGEST_SIDE && array.shape[2] <= LARGEST_SIDE;
  if (drawn) print_bytes(&array, (size_t)options.first);
  if (array.rank == 1) print_labels(array.data, count, of_class);
  if (array.rank > 1) statistics = print_statistics(&array);
  if (labels.data != NULL) print_labels(labels.data, labels.count, of_class);
  if (drawn) {
    draw_digits(&options, &array, labels.data, count);
    if (options.tiles > 0) {
      if (make_directories(options.common.output_dir, &err) != 0) die("--output-dir: %s", err.message);
      if (draw_sheet(&options, &array, labels.data, count, sheet, &err) != 0) die("%s", err.message);
      printf("\nDrawn: %s\n", sheet);
    }
  } else if (images) {
    printf("\nImages of more than %d x %d pixels are not drawn.\n", LARGEST_SIDE, LARGEST_SIDE);
  }
  if (options.common.json)
    print_json(&options, path, &array, array.rank > 1 ? &statistics : NULL,
               array.rank == 1 || labels.data != NULL ? of_class : NULL, sheet);
  idx_free(&array);
  idx_free(&labels);
  stdout_finish();
  return 0;
}
