/* augmentation_bench.cu - augment_cpu_fast() on CPU threads: how long a batch takes, and what becomes of it, for
 * tools/peers/augment_torch.py, which does the same with torchvision.
 *
 *     augmentation_bench --threads=2
 *     augmentation_bench --augment=flip,cutout:8 --dump=DIR
 *
 * --dump writes images.u8 (batch, C,H,W), draws.i32 (batch, 14), norm.f32 (2,4: scale, shift) and y.f32 (batch, C,H,W) to DIR. */
#include "common/nn/augment_fast.cuh"
#include "common/nn/train_options.h"
#include "common/threads_begin.h"
#include "common/timer.h"
#include "common/train_log.h"

enum { BATCH = 512, CHANNELS = 3, SIDE = 64, ROUNDS = 9, OPTION_DUMP = 1 };

static error_t parse(int key, char *arg, struct argp_state *state) {
  if (key != OPTION_DUMP) return ARGP_ERR_UNKNOWN;
  option_path(state, arg, "--dump", (char *)state->input);
  return 0;
}

static void dump(const char *directory, const char *name, const void *from, size_t bytes) {
  char path[PATH_MAX + 32];
  snprintf(path, sizeof path, "%s/%s", directory, name);
  FILE *out = fopen(path, "wb");
  if (out == NULL || fwrite(from, 1, bytes, out) != bytes || fclose(out) != 0)
    die("cannot write %s: %s", path, strerror(errno));
}

/* The fastest of some rounds, in milliseconds. */
static double milliseconds(float *y, const AugmentSource *source, const Augment *augment) {
  double best = 1e9;
  for (int i = 0; i < ROUNDS; i++) {
    const double start = seconds_now();
    augment_apply(augment, DEVICE_CPU, y, source, BATCH);
    best = fmin(best, seconds_now() - start);
  }
  return 1e3 * best;
}

int main(int argc, char **argv) {
  static const struct argp_option rows[] = {
      {"dump", OPTION_DUMP, "DIR", 0, "Write what was computed into DIR, which must be there", 0}, OPTION_END};
  static const struct argp own = {rows, parse, NULL, NULL, NULL, NULL, NULL};
  static char directory[PATH_MAX];
  static TrainOptions options;
  const size_t plane = SIDE * SIDE, n = (size_t)BATCH * CHANNELS * plane;
  threads_begin();
  train_options_default(&options, OPTIONS_SEED, TRAIN_AUGMENT | TRAIN_THREADS);
  train_options_parse(&options, &own, directory, "Times augmentation of 512 images of 3 x 64 x 64 on CPU threads.",
                      argc, argv);
  uint8_t *images = (uint8_t *)xmalloc(n);
  uint32_t order[BATCH];
  const float mean[] = {0.45f, 0.45f, 0.45f}, stddev[] = {0.22f, 0.22f, 0.22f};
  float *y = (float *)xmalloc(n * sizeof *y);
  AugmentDraw draws[BATCH];
  const AugmentKey key = augment_key(options.common.seed, 0);
  for (size_t i = 0; i < n; i++) images[i] = (uint8_t)(philox4x32(1, 0, i / 64).word[0] + 3 * i); /* some smooth */
  for (int b = 0; b < BATCH; b++) order[b] = (uint32_t)b;
  const AugmentNorm norm = augment_norm(mean, stddev, CHANNELS);
  const AugmentSource source = {images,   order, order, &key, norm, 112 * AUGMENT_ONE,
                                CHANNELS, SIDE,  SIDE,  NULL, NULL, NULL};
  const char *const texts[] = {"none", "crop", "crop,cutout:16", "affine:rotate=15,scale=0.1,shear=5,shift=2",
                               "affine:rotate=15,scale=0.1,shear=5,shift=2,flip,cutout:16,"
                               "colour:brightness=0.2,contrast=0.2,saturation=0.2"};
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
    Augment augment;
    Error err;
    const int typed = options.given & TRAIN_AUGMENT;
    if (augment_parse(typed ? options.augment->name : texts[i], &augment, &err) != 0) die("%s", err.message);
    const double ms = milliseconds(y, &source, &augment);
    printf("%8.3f ms %8.2f GB/s  %s\n", ms, 5e-6 * (double)n / ms, augment.name);
    if (!typed) continue;
    for (int b = 0; b < BATCH; b++) draws[b] = augment_draw(&augment.most, &source, b);
    if (directory[0] == '\0') break;
    dump(directory, "images.u8", images, n);
    dump(directory, "draws.i32", draws, sizeof draws);
    dump(directory, "norm.f32", &norm, sizeof norm);
    dump(directory, "y.f32", y, n * sizeof *y);
    break;
  }
  free(images);
  free(y);
  stdout_finish();
  return 0;
}
