/* Augmentation: names as text; what a draw does to a pixel, by hand; that it depends on (seed, epoch, sample) alone;
 * and that the fast paths of CPU and GPU have the bits of the definition. */
#include "common/nn/augment.h"

#include <omp.h>

#include "common/nn/augment_fast.cuh"
#include "common/nn/augment_text.h"
#include "common/nn/test_net.h"
#include "common/test.h"

enum { MOST_BATCH = 9, MOST_VALUES = MOST_BATCH * 4 * 40 * 40 };

static Augment parsed(const char *text) {
  Augment augment;
  Error err;
  if (augment_parse(text, &augment, &err) != 0) fail_msg("%s: %s", text, err.message);
  return augment;
}

/* ---- text ---- */

static void names_become_numbers(void **unused) {
  (void)unused;
  const Augment all = parsed(
      "affine:rotate=90,scale=0.25,shear=45,shift=1.5,flip,shift:3,cutout:7,"
      "colour:brightness=0.5,contrast=1,saturation=0.125");
  const AugmentMost expected = {3, 1, 1u << 30, 1u << 29, 16384, 98304, 7, 32768, 65536, 8192};
  assert_memory_equal(&all.most, &expected, sizeof expected);
  const char *const same[][2] = {
      {"crop", "crop:4"},   {"crop", "shift:4,flip"}, {"crop,flip", "flip,crop"},
      {"shift", "shift:2"}, {"cutout", "cutout:8"},   {"affine:rotate=15,scale=.1", "affine:scale=0.1,rotate=15.0"}};
  for (size_t i = 0; i < sizeof same / sizeof *same; i++) {
    const Augment a = parsed(same[i][0]), b = parsed(same[i][1]);
    assert_memory_equal(&a.most, &b.most, sizeof a.most);
    assert_string_equal(a.name, same[i][0]);
  }
  const Augment *const constants[] = {&augment_none, &augment_shift, &augment_flip, &augment_crop};
  for (int i = 0; i < 4; i++) {
    const Augment again = parsed(constants[i]->name);
    assert_memory_equal(&again.most, &constants[i]->most, sizeof again.most);
  }
}

static void what_is_mistyped_is_refused(void **unused) {
  (void)unused;
  const char *const wrong[][2] = {
      {"zoom", "unknown change \"zoom\"; expected none, shift, flip, crop, affine, cutout or colour"},
      {"crop,color", "unknown change \"color\"; the nearest known one is \"colour\""},
      {"", "unknown change \"\""},
      {"flip,", "unknown change \"\""},
      {"affine:rotation=15",
       "unknown key \"rotation\" of affine; the nearest known one is \"rotate\"; expected rotate, "
       "scale, shear or shift"},
      {"affine", "affine takes rotate, scale, shear or shift, one of them at least, as in affine:rotate=18"},
      {"affine:15", "affine takes rotate, scale, shear or shift, one of them at least"},
      {"rotate=15", "follows no name that has keys; write for example affine:rotate=15"},
      {"flip,scale=0.1", "follows no name that has keys"},
      {"affine:rotate=15,rotate=3", "rotate of affine is given twice"},
      {"flip,flip", "flip is given twice"},
      {"flip:2", "flip takes no number; leave \":2\" out"},
      {"cutout:0", "cutout:0: a whole number from 1 to 4096 is expected"},
      {"cutout:2.5", "a whole number"},
      {"shift:", "shift:: a whole number from 1 to 1000 is expected"},
      {"shift:-1", "a whole number"},
      {"affine:rotate=181", "affine:rotate=181: a number from 0 to 180 is expected"},
      {"affine:rotate=nan", "a number from 0 to 180"},
      {"affine:scale=1e-1", "a number from 0 to 0.5"},
      {"affine:scale=0.1.", "a number from 0 to 0.5"},
      {"none,flip", "none leaves the images as they are"},
      {"shift,crop", "name one of the two"},
  };
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    Augment augment;
    Error err;
    if (augment_parse(wrong[i][0], &augment, &err) == 0) fail_msg("\"%s\" was accepted", wrong[i][0]);
    if (!strstr(err.message, wrong[i][1])) fail_msg("\"%s\": %s", wrong[i][0], err.message);
  }
  char text[400];
  Augment augment;
  Error err;
  memset(text, 'f', sizeof text);
  text[399] = '\0';
  assert_int_equal(augment_parse(text, &augment, &err), -1);
  assert_non_null(strstr(err.message, "399 characters; at most 159"));
}

static void images_that_do_not_suit_are_refused(void **unused) {
  (void)unused;
  const struct {
    const char *text;
    Shape shape;
    const char *expected; /* NULL: they suit */
  } cases[] = {
      {"colour:saturation=0.1", shape3(1, 28, 28), "saturation needs 3 channels, and these images have 1"},
      {"colour:saturation=0.1", shape3(3, 28, 28), NULL},
      {"shift:7", shape3(1, 9, 7), "moves by up to 7 pixels, and the images are 7 x 9"},
      {"shift:6", shape3(1, 9, 7), NULL},
      {"affine:shift=7.5", shape3(1, 7, 9), "moves by up to 7 pixels"},
      {"affine:rotate=1", shape3(1, 2049, 7), "affine changes images of up to 2048 pixels a side; these are 7 x 2049"},
      {"crop", shape3(5, 8, 8), "1 to 4 channels"},
      {"none", shape1(7), NULL},
      {"flip", shape1(7), "1 to 4 channels"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    Error err;
    const Augment augment = parsed(cases[i].text);
    const int status = augment_check(&augment, cases[i].shape, &err);
    assert_int_equal(status, cases[i].expected ? -1 : 0);
    if (status != 0 && !strstr(err.message, cases[i].expected)) fail_msg("%s: %s", cases[i].text, err.message);
  }
}

/* ---- pixels, by hand ---- */

static uint8_t images[MOST_VALUES];
static float defined[MOST_VALUES], computed[MOST_VALUES];
static uint32_t rows[MOST_BATCH], samples[MOST_BATCH];
static int all_labels[MOST_BATCH], labels[MOST_BATCH];
static AugmentKey key;

/* Random pixels; every channel is normalised in another way; rows of the batch are the images from behind. */
static AugmentSource make_source(Shape shape, int batch) {
  const size_t n = batch * shape_count(shape);
  for (size_t i = 0; i < n; i++) images[i] = (uint8_t)philox4x32(7, 0, i).word[0];
  for (int b = 0; b < batch; b++) {
    rows[b] = (uint32_t)(batch - 1 - b);
    samples[b] = (uint32_t)(1000 - 7 * b);
    all_labels[b] = 300 + b;
  }
  key = augment_key(11, 3);
  const AugmentNorm norm = {{0.37f, 0.41f, 0.29f, 0.53f}, {-11, 83.7f, 188.4f, -0.1f}};
  const AugmentSource source = {images,       rows,         samples,      &key, norm,       120 * AUGMENT_ONE,
                                shape.dim[0], shape.dim[1], shape.dim[2], NULL, all_labels, labels};
  return source;
}

static AugmentDraw drawn_map(uint32_t rotation, int scale, uint32_t shear, int right, int down, int height, int width) {
  AugmentDraw draw;
  memset(&draw, 0, sizeof draw);
  draw.own = AUGMENT_ONE;
  augment_draw_map(&draw, rotation, scale, shear, right, down, height, width);
  return draw;
}

static void sines_are_sines(void **unused) {
  (void)unused;
  for (uint32_t i = 0; i < 4; i++) {
    const int expected[] = {0, AUGMENT_ONE, 0, -AUGMENT_ONE};
    assert_int_equal(augment_sine(i << 30), expected[i]);
    assert_int_equal(augment_cosine(i << 30), expected[(i + 1) % 4]);
  }
  for (uint32_t i = 0; i < 4096; i++) {
    const uint32_t angle = i * 1048573u; /* about 2^20 */
    const double expected = sin(angle / 4294967296.0 * 6.283185307179586) * AUGMENT_ONE;
    assert_true(fabs(augment_sine(angle) - expected) <= 0.51); /* half a unit, and 6e-8 of 65536 */
  }
}

/* Of whole pixels: nothing; a quarter turn, a half, three quarters; twice as large; with and without a mirror. */
static void whole_turns_move_pixels(void **unused) {
  (void)unused;
  const int sides[][2] = {{5, 5}, {6, 6}, {1, 1}, {7, 3}};
  for (int s = 0; s < 4; s++)
    for (int turn = 0; turn < 4; turn++)
      for (int flip = 0; flip < 2; flip++) {
        const int h = sides[s][0], w = sides[s][1];
        if (h != w && turn % 2 == 1) continue; /* their middle lies between pixels */
        const AugmentSource source = make_source(shape3(1, h, w), 1);
        AugmentDraw draw = drawn_map((uint32_t)turn << 30, AUGMENT_ONE, 0, 0, 0, h, w);
        draw.flip = flip;
        for (int row = 0; row < h; row++)
          for (int column = 0; column < w; column++) {
            /* clockwise by a quarter: the left column becomes the top row, read from below */
            int from_row = row, from = column, value[AUGMENT_CHANNELS];
            if (turn == 1) from_row = h - 1 - column, from = row;
            if (turn == 2) from_row = h - 1 - row, from = w - 1 - column;
            if (turn == 3) from_row = column, from = w - 1 - row;
            if (flip) from = w - 1 - from;
            augment_pixel(value, &source, &draw, 0, row, column);
            assert_int_equal(value[0], images[from_row * w + from]);
          }
      }
}

/* Half a pixel to the right: the mean of two neighbours, halves up; beyond the border is black. */
static void half_a_pixel_is_a_mean(void **unused) {
  (void)unused;
  enum { H = 3, W = 5 };
  const AugmentSource source = make_source(shape3(1, H, W), 1);
  const AugmentDraw right = drawn_map(0, AUGMENT_ONE, 0, AUGMENT_ONE / 2, 0, H, W);
  const AugmentDraw down = drawn_map(0, AUGMENT_ONE, 0, 0, -AUGMENT_ONE / 4, H, W);
  for (int row = 0; row < H; row++)
    for (int column = 0; column < W; column++) {
      const int here = images[row * W + column], left = column > 0 ? images[row * W + column - 1] : 0;
      const int below = row + 1 < H ? images[(row + 1) * W + column] : 0;
      int value[AUGMENT_CHANNELS] = {0};
      augment_pixel(value, &source, &right, 0, row, column);
      assert_int_equal(value[0], (left + here + 1) / 2);
      augment_pixel(value, &source, &down, 0, row, column); /* a quarter of a pixel up */
      assert_int_equal(value[0], (3 * here + below + 2) / 4);
    }
}

/* In the middle of a large ramp a pixel has the value of the place that the map names; beside sine, cosine and tangent
 * of the C library. */
static void maps_are_as_their_formula(void **unused) {
  (void)unused;
  enum { SIDE = 40 };
  const double turn = 6.283185307179586;
  for (int axis = 0; axis < 2; axis++) {
    const AugmentSource source = make_source(shape3(1, SIDE, SIDE), 1);
    for (int i = 0; i < SIDE * SIDE; i++) images[i] = (uint8_t)(6 * (axis == 0 ? i % SIDE : i / SIDE));
    for (uint32_t i = 0; i < 20; i++) {
      const PhiloxBlock random = philox4x32(3, 9, i);
      const uint32_t rotation = random.word[0], shear = random.word[1] >> 3; /* up to 45 degrees */
      const int scale = AUGMENT_ONE + (int)augment_between(random.word[2], 20000), right = 3 * AUGMENT_ONE / 4;
      const AugmentDraw draw = drawn_map(rotation, scale, shear, right, 0, SIDE, SIDE);
      const double a = rotation / 4294967296.0 * turn, k = tan(shear / 4294967296.0 * turn);
      for (int row = 14; row < 26; row++)
        for (int column = 14; column < 26; column++) {
          const double qx = column - 19.5 - 0.75, qy = row - 19.5, z = scale / 65536.0;
          const double u = (cos(a) * qx + sin(a) * qy) / z, v = (cos(a) * qy - sin(a) * qx) / z;
          const double x = u - k * v + 19.5, y = v + 19.5;
          if (!(fmin(x, y) > 1 && fmax(x, y) < 38)) continue;
          int value[AUGMENT_CHANNELS];
          augment_pixel(value, &source, &draw, 0, row, column);
          /* half a grey level, and 6 levels a pixel times half of 2^-8 and of some 2^-16 */
          assert_true(fabs(value[0] - 6 * (axis == 0 ? x : y)) <= 0.5 + 6 * (0.5 / 256 + 60.0 / 65536));
        }
    }
  }
}

/* Brightness, then contrast, then saturation, in doubles. */
static void colours_are_as_their_formulas(void **unused) {
  (void)unused;
  enum { H = 5, W = 7, BATCH = 9 };
  const Augment augment = parsed("colour:brightness=0.6,contrast=0.7,saturation=0.8");
  const AugmentSource source = make_source(shape3(3, H, W), BATCH);
  int clamped = 0;
  for (int b = 0; b < BATCH; b++) {
    const AugmentDraw draw = augment_draw(&augment.most, &source, b);
    const PhiloxBlock random = augment_block(key, samples[b], 3);
    double factor[3];
    const int most[] = {augment.most.brightness, augment.most.contrast, augment.most.saturation};
    for (int i = 0; i < 3; i++) factor[i] = 1 + (double)augment_between(random.word[i], most[i]) / 65536;
    for (int i = 0; i < H * W; i++) {
      int value[AUGMENT_CHANNELS];
      double p[3], luma = 0;
      augment_pixel(value, &source, &draw, b, i / W, i % W);
      for (int c = 0; c < 3; c++) {
        p[c] = factor[0] * images[((size_t)rows[b] * 3 + c) * H * W + i];
        p[c] = factor[1] * p[c] + (1 - factor[1]) * 120;
        luma += (c == 0 ? 0.299 : c == 1 ? 0.587 : 0.114) * p[c];
      }
      for (int c = 0; c < 3; c++) {
        const double expected = factor[2] * p[c] + (1 - factor[2]) * luma;
        clamped += expected < 0 || expected > 255;
        /* half a level, and half a level of the grey times its factor, at most 0.8 * 1.6 * 1.7 */
        assert_true(fabs(value[c] - fmin(fmax(expected, 0), 255)) <= 0.51 + 0.51 * 2.18);
      }
    }
  }
  assert_true(clamped > 20);
  const Augment grey = parsed("colour:saturation=0.9");
  const AugmentSource one = make_source(shape3(1, H, W), 1);
  const AugmentDraw draw = augment_draw(&grey.most, &one, 0);
  assert_true(draw.own == AUGMENT_ONE && draw.grey == 0 && draw.add == 0); /* nothing to saturate */
}

/* The square around a random pixel, cut at the border; all pixels are equally often its middle. */
static void squares_are_cut_out(void **unused) {
  (void)unused;
  enum { H = 6, W = 9, DRAWS = 5400 };
  int middle[H * W] = {0};
  const Augment augment = parsed("cutout:5");
  AugmentSource source = make_source(shape3(2, H, W), 1);
  for (uint32_t i = 0; i < DRAWS; i++) {
    samples[0] = i;
    const AugmentDraw draw = augment_draw(&augment.most, &source, 0);
    assert_true(draw.cut_bottom == draw.cut_top + 5 && draw.cut_right == draw.cut_left + 5);
    const int row = draw.cut_top + 2, column = draw.cut_left + 2;
    assert_true(row >= 0 && row < H && column >= 0 && column < W);
    middle[row * W + column]++;
    if (i >= 20) continue;
    augment_cpu(defined, &source, &augment.most, 1);
    for (int k = 0; k < 2 * H * W; k++) {
      const int inside = abs(k / W % H - row) <= 2 && abs(k % W - column) <= 2;
      assert_true(defined[k] == (inside ? 0 : augment_normalized(&source.norm, k / (H * W), images[k])));
    }
  }
  for (int i = 0; i < H * W; i++) assert_true(abs(middle[i] - DRAWS / (H * W)) < 50); /* five deviations of 10 */
}

/* What shift, flip and crop have always drawn: words 0 to 2 of a block keyed by (seed, epoch, sample). */
static void moves_are_those_of_older_checkpoints(void **unused) {
  (void)unused;
  enum { BATCH = 9 };
  const Augment *const moves[] = {&augment_shift, &augment_flip, &augment_crop};
  const Shape shape = shape3(3, 7, 11);
  const int h = 7, w = 11;
  for (int m = 0; m < 3; m++) {
    const AugmentSource source = make_source(shape, BATCH);
    augment_cpu(defined, &source, &moves[m]->most, BATCH);
    for (int b = 0; b < BATCH; b++) {
      const PhiloxBlock random = philox4x32(11, 0x41554721, (uint64_t)3 << 32 | samples[b]);
      const int shift = moves[m]->most.shift, ways = 2 * shift + 1;
      const int down = (int)((uint64_t)random.word[0] * ways >> 32) - shift;
      const int right = (int)((uint64_t)random.word[1] * ways >> 32) - shift;
      const int flip = moves[m]->most.flip && random.word[2] % 2;
      for (int c = 0; c < 3; c++)
        for (int i = 0; i < h * w; i++) {
          const int row = i / w - down, column = i % w - right,
                    inside = row >= 0 && row < h && column >= 0 && column < w;
          const int at = row * w + (flip ? w - 1 - column : column);
          const int value = inside ? images[((size_t)rows[b] * 3 + c) * h * w + at] : 0;
          assert_true(defined[((size_t)b * 3 + c) * h * w + i] == augment_normalized(&source.norm, c, value));
        }
      assert_int_equal(labels[b], all_labels[rows[b]]);
    }
  }
}

/* Another seed, epoch or sample draws other numbers; flips and moves are drawn equally often. */
static void draws_are_random_and_keyed(void **unused) {
  (void)unused;
  enum { DRAWS = 20000 };
  int down[5] = {0}, right[5] = {0}, flips = 0, changed[3] = {0};
  const Augment augment = parsed("shift:2,flip,affine:rotate=10,cutout:3,colour:contrast=0.5");
  AugmentSource source = make_source(shape3(1, 9, 9), 1);
  const AugmentMost moves = parsed("shift:2,flip").most;
  for (uint32_t i = 0; i < DRAWS; i++) {
    const AugmentKey keys[] = {augment_key(7, 2), augment_key(7 + ((uint64_t)1 << 40), 2), augment_key(7, 3)};
    samples[0] = i;
    source.key = &keys[0];
    const AugmentDraw move = augment_draw(&moves, &source, 0), draw = augment_draw(&augment.most, &source, 0);
    down[2 - move.y0 / AUGMENT_ONE]++;
    right[2 - move.x0 / AUGMENT_ONE]++;
    flips += move.flip;
    if (i >= 1000) continue;
    for (int k = 0; k < 3; k++) {
      source.key = &keys[k < 2 ? k + 1 : 0];
      if (k == 2) samples[0]++;
      const AugmentDraw other = augment_draw(&augment.most, &source, 0);
      changed[k] += other.xx != draw.xx && other.add != draw.add && other.x0 != draw.x0;
    }
  }
  for (int i = 0; i < 5; i++) {
    assert_true(abs(down[i] - DRAWS / 5) < 300); /* five deviations */
    assert_true(abs(right[i] - DRAWS / 5) < 300);
  }
  assert_true(abs(flips - DRAWS / 2) < 360);
  for (int k = 0; k < 3; k++) assert_true(changed[k] > 990);
}

/* ---- the fast paths ---- */

static const char *const texts[] = {"crop:2", "affine:rotate=180,scale=0.5,shear=45,shift=1.25,flip",
                                    "colour:brightness=0.5,contrast=0.5,saturation=1,shift:1,cutout:3",
                                    "crop:1,affine:rotate=20,scale=0.2,cutout:5,colour:contrast=0.7"};
enum { TEXTS = sizeof texts / sizeof *texts };

/* Widths that are a multiple of 4, and none; runs of a row and patches that are not full; 1 to 4 channels. */
static const Shape shapes[] = {{3, {1, 28, 28, 0}}, {3, {3, 7, 36, 0}}, {3, {3, 9, 5, 0}}, {3, {2, 4, 8, 0}},
                               {3, {4, 3, 3, 0}},   {3, {1, 5, 4, 0}},  {3, {1, 3, 67, 0}}};
enum { SHAPES = sizeof shapes / sizeof *shapes };

/* On the device: arrays of its own, y full of NaN before; `offset` floats past an aligned address. */
static void run(Device device, const Augment *augment, const AugmentSource *host, int batch, int offset) {
  const size_t size = (size_t)host->channels * host->height * host->width, n = batch * size;
  AugmentSource source = *host;
  float *y = (float *)device_alloc(device, (n + offset) * sizeof *y);
  void *from[] = {images, rows, samples, &key, all_labels, labels}, *to[6];
  const size_t bytes[] = {n,          batch * sizeof *rows,       batch * sizeof *samples,
                          sizeof key, batch * sizeof *all_labels, batch * sizeof *labels};
  for (int i = 0; i < 6; i++) {
    to[i] = device_alloc(device, bytes[i]);
    device_upload(device, to[i], from[i], bytes[i]);
  }
  source.images = (const uint8_t *)to[0];
  source.row = (const uint32_t *)to[1];
  source.sample = (const uint32_t *)to[2];
  source.key = (const AugmentKey *)to[3];
  source.int_labels = (const int *)to[4];
  source.labels = (int *)to[5];
  for (size_t i = 0; i < n; i++) computed[i] = NAN;
  device_upload(device, y + offset, computed, n * sizeof *y);
  augment_apply(augment, device, y + offset, &source, batch);
  device_download(device, computed, y + offset, n * sizeof *y);
  device_download(device, labels, to[5], batch * sizeof *labels);
  for (int i = 0; i < 6; i++) device_free(device, to[i]);
  device_free(device, y);
}

static void check_device(Device device, int batch) {
  for (int t = 0; t < TEXTS; t++)
    for (int s = 0; s < SHAPES; s++) {
      const Augment augment = parsed(texts[t]);
      const AugmentSource source = make_source(shapes[s], batch);
      const size_t n = batch * shape_count(shapes[s]);
      augment_cpu(defined, &source, &augment.most, batch);
      for (int offset = 0; offset < 2; offset++) {
        memset(labels, 0, sizeof labels);
        run(device, &augment, &source, batch, offset);
        for (size_t i = 0; i < n; i++)
          if (memcmp(&computed[i], &defined[i], sizeof *defined) != 0)
            fail_msg("%s, %s, value %zu: %g; expected %g", texts[t], shape_text(shapes[s]).text, i, computed[i],
                     defined[i]);
        for (int b = 0; b < batch; b++) assert_int_equal(labels[b], all_labels[batch - 1 - b]);
      }
    }
}

static void the_cpu_has_the_bits_of_the_definition(void **unused) {
  (void)unused;
  const int before = omp_get_max_threads();
  for (int threads = 1; threads <= 3; threads += 2) {
    omp_set_num_threads(threads);
    check_device(DEVICE_CPU, 9);
  }
  omp_set_num_threads(before);
  const Augment augment = parsed(texts[3]);
  const AugmentSource source = make_source(shape3(3, 40, 40), 9); /* enough for several threads */
  augment_cpu(defined, &source, &augment.most, 9);
  augment_cpu_fast(computed, &source, &augment.most, 9);
  assert_memory_equal(computed, defined, 9 * 4800 * sizeof *defined);
}

static void the_gpu_too(void **unused) {
  (void)unused;
  test_requires_gpu();
  check_device(DEVICE_GPU, 3);
}

/* A map that leaves the image by far, at the largest image that may be mixed. */
static void far_places_are_black(void **unused) {
  (void)unused;
  enum { W = AUGMENT_SIDE };
  const Augment augment = parsed("affine:rotate=180,scale=0.5,shear=45,shift=1000");
  const AugmentSource source = make_source(shape3(1, 3, W), 3);
  int black = 0;
  augment_cpu(defined, &source, &augment.most, 3);
  run(DEVICE_CPU, &augment, &source, 3, 0);
  assert_memory_equal(computed, defined, 3 * 3 * W * sizeof *defined);
  for (int i = 0; i < 3 * 3 * W; i++) black += defined[i] == source.norm.shift[0];
  assert_true(black > 3 * 3 * W / 2 && black < 3 * 3 * W);
}

/* The size of the batch does not matter, nor where in it a sample stands; a set without augmentation is as before. */
static void check_set(Device device) {
  enum { COUNT = 13, SIDE = 5, PIXELS = SIDE * SIDE };
  uint8_t pixels[COUNT * PIXELS];
  int set_labels[COUNT] = {0};
  static float whole[COUNT * PIXELS], parts[COUNT * PIXELS], plain[COUNT * PIXELS];
  for (int i = 0; i < COUNT * PIXELS; i++) pixels[i] = (uint8_t)(philox4x32(3, 0, (uint64_t)i).word[0] | 1);
  const DataSet host = {shape3(1, SIDE, SIDE), COUNT, 2, pixels, set_labels};
  const DataNorm norm = {1, {0.5f}, {0.25f}};
  DeviceSet set;
  Model net;
  device_set_create(&set, device, &test_batches, &host, COUNT, &norm);
  test_net_open(&net, host.shape, 2, device, COUNT);
  device_set_shuffle(&set, 1, 4);
  device_set_gather(&set, &net, 0, COUNT);
  device_download(device, plain, model_input(&net, 0), sizeof plain);
  device_set_augment(&set, &augment_shift);
  device_set_gather(&set, &net, 0, COUNT);
  device_download(device, whole, model_input(&net, 0), sizeof whole);
  for (int start = 0; start < COUNT; start += 4) {
    const int batch = COUNT - start < 4 ? COUNT - start : 4;
    device_set_gather(&set, &net, start, batch);
    device_download(device, parts + start * PIXELS, model_input(&net, 0), (size_t)batch * PIXELS * sizeof *parts);
  }
  assert_memory_equal(whole, parts, sizeof whole);
  assert_memory_not_equal(whole, plain, sizeof whole);
  int black = 0;
  for (int i = 0; i < COUNT * PIXELS; i++) black += whole[i] == (0.0f - 0.5f) / 0.25f;
  assert_true(black > COUNT); /* what came in from beyond the border */
  device_set_shuffle(&set, 1, 5);
  device_set_gather(&set, &net, 0, COUNT);
  device_download(device, parts, model_input(&net, 0), sizeof parts);
  assert_memory_not_equal(whole, parts, sizeof whole);
  device_set_shuffle(&set, 1, 4);
  device_set_gather(&set, &net, 0, COUNT);
  device_download(device, parts, model_input(&net, 0), sizeof parts);
  assert_memory_equal(whole, parts, sizeof whole);
  device_set_augment(&set, &augment_none);
  device_set_gather(&set, &net, 0, COUNT);
  device_download(device, parts, model_input(&net, 0), sizeof parts);
  assert_memory_equal(plain, parts, sizeof plain);
  device_set_destroy(&set);
  model_close(&net);
}

static void a_set_is_augmented_sample_by_sample(void **unused) {
  (void)unused;
  check_set(DEVICE_CPU);
}

static void a_set_on_the_gpu_too(void **unused) {
  (void)unused;
  test_requires_gpu();
  check_set(DEVICE_GPU);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(names_become_numbers),
      cmocka_unit_test(what_is_mistyped_is_refused),
      cmocka_unit_test(images_that_do_not_suit_are_refused),
      cmocka_unit_test(sines_are_sines),
      cmocka_unit_test(whole_turns_move_pixels),
      cmocka_unit_test(half_a_pixel_is_a_mean),
      cmocka_unit_test(maps_are_as_their_formula),
      cmocka_unit_test(colours_are_as_their_formulas),
      cmocka_unit_test(squares_are_cut_out),
      cmocka_unit_test(moves_are_those_of_older_checkpoints),
      cmocka_unit_test(draws_are_random_and_keyed),
      cmocka_unit_test(the_cpu_has_the_bits_of_the_definition),
      cmocka_unit_test(the_gpu_too),
      cmocka_unit_test(far_places_are_black),
      cmocka_unit_test(a_set_is_augmented_sample_by_sample),
      cmocka_unit_test(a_set_on_the_gpu_too),
  };
  return TEST_MAIN("augment", tests);
}
