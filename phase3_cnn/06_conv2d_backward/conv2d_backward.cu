/* conv2d_backward.cu - the program of the lesson.
 *
 *     bazel run //phase3_cnn:conv2d_backward
 *     bazel run //phase3_cnn:conv2d_backward -- --shape=64x512x7x7x512x3x3:padding=1
 */
#include "common/device.h"
#include "common/lesson/main.h"
#include "common/philox.h"
#include "phase3_cnn/06_conv2d_backward/conv2d_backward_lesson.cuh"

#define COUNT(list) (int)(sizeof(list) / sizeof *(list))

#ifdef SIMT_REWRITTEN
static const bool on_a_gpu = false;
#else
static const bool on_a_gpu = true;
#endif

static float *random_array(size_t n, uint64_t seed) {
  float *host = (float *)xmalloc(n * sizeof *host), *array = (float *)device_alloc(DEVICE_GPU, n * sizeof *host);
  for (size_t i = 0; i < n; i++) host[i] = 2 * philox_uniform(philox4x32(seed, 1, i).word[0]) - 1;
  device_upload(DEVICE_GPU, array, host, n * sizeof *host);
  free(host);
  return array;
}

/* How many of dw's n weights differ, in ten runs on the same inputs, from the first run, at most. */
static void show_spread(const char *name, Conv2dBackwardWeight *launch, Conv2dShape s, size_t floats, const float *dy,
                        const float *x) {
  const size_t n = conv2d_w_count(s);
  float *first = (float *)xmalloc(2 * n * sizeof *first), *again = first + n;
  float *dw = (float *)device_alloc(DEVICE_GPU, n * sizeof *dw);
  float *workspace = (float *)device_alloc(DEVICE_GPU, floats * sizeof *workspace);
  size_t most = 0;
  double apart = 0, square = 0;
  for (int run = 0; run < 10; run++) {
    launch(dw, NULL, dy, x, s, workspace);
    device_download(DEVICE_GPU, run == 0 ? first : again, dw, n * sizeof *dw);
    size_t differ = 0;
    for (size_t i = 0; run > 0 && i < n; i++) {
      differ += memcmp(&first[i], &again[i], sizeof *first) != 0;
      apart = fmax(apart, fabs((double)first[i] - again[i]));
    }
    if (differ > most) most = differ;
  }
  for (size_t i = 0; i < n; i++) square += (double)first[i] * first[i];
  printf("  %-20s %6zu of %zu weights", name, most, n);
  if (most > 0) printf(", by up to %.1e of their root mean square", apart / sqrt(square / (double)n));
  printf("; workspace %.2f MiB\n", (double)floats * sizeof *dw / 1048576);
  free(first);
  device_free(DEVICE_GPU, dw);
  device_free(DEVICE_GPU, workspace);
}

/* What atomics cost beside time: the order of the additions, and with it the rounding. */
static void show_spreads(void) {
  const Conv2dShape real = conv2d_shape(64, 64, 56, 56, 64, 3, 3, 1, 1),
                    small = conv2d_shape(8, 4, 12, 12, 8, 3, 3, 1, 1);
  const Conv2dShape s = on_a_gpu ? real : small;
  float *dy = random_array(conv2d_y_count(s), 1), *x = random_array(conv2d_x_count(s), 2);
  printf("\nBits that differ from the first of ten runs, %s:\n", conv2d_shape_text(s).text);
  show_spread("weight_atomic", conv2d_backward_weight_atomic, s, 1, dy, x);
  show_spread("weight_split", conv2d_backward_weight_split, s, conv2d_weight_split_floats(s), dy, x);
  show_spread("weight_gemm_atomic", conv2d_backward_weight_gemm_atomic, s, 1, dy, x);
  show_spread("weight_gemm", conv2d_backward_weight_gemm, s, conv2d_backward_gemm_weight_floats(s), dy, x);
  if (!on_a_gpu) printf("  (The blocks of an emulated GPU run in one order. On a GPU the atomics differ.)\n");
  fflush(stdout);
  device_free(DEVICE_GPU, dy);
  device_free(DEVICE_GPU, x);
}

int main(int argc, char **argv) {
  Lesson input = conv2d_backward_input_lesson("conv2d_backward");
  Lesson weight = conv2d_backward_weight_lesson("conv2d_backward");
  input.before = show_spreads;
  const LessonVersion inputs[] = {
      conv2d_backward_input_version_of("input_naive", &conv2d_naive_method,
                                       "Each product loads a weight and an output. Share the loads in a block."),
      conv2d_backward_input_version_of("input_tiled", &conv2d_tiled_method,
                                       "An output is loaded once for 8 channels. Multiply tiles of 64 x 64."),
      conv2d_backward_input_version("input_gather", conv2d_backward_input_gather,
                                    "Two divisions per element of a tile, to find the output. Phases need none."),
      conv2d_backward_input_version_of("input_gemm", &conv2d_backward_gemm_input_method,
                                       "One test per tap and pixel; copies run beside the products."),
  };
  const LessonVersion weights[] = {
      conv2d_backward_weight_version_of("weight_naive", &conv2d_naive_method,
                                        "One thread per weight adds up all pixels: far too few threads."),
      conv2d_backward_weight_version_of("weight_tiled", &conv2d_tiled_method,
                                        "Slices of the batch fill the GPU. Multiply tiles of 64 x 64."),
      conv2d_backward_weight_version_of("weight_blocks", &conv2d_backward_blocks_method,
                                        "One block per tile of 64 x 64: few blocks, and each adds up all pixels."),
      lesson_any_order_version(conv2d_backward_weight_version_of(
          "weight_atomic", &conv2d_backward_atomic_method,
          "Pixels are split among blocks; atomicAdd rounds in another order in every run.")),
      conv2d_backward_weight_version_of("weight_split", &conv2d_backward_split_method,
                                        "The splits go to the workspace; a second kernel adds them up in order."),
      lesson_any_order_version(conv2d_backward_weight_version_of(
          "weight_gemm_atomic", &conv2d_backward_gemm_atomic_method,
          "A tile per warp, asynchronous copies, equal shares; parts of tiles are added by atomicAdd.")),
      conv2d_backward_weight_version_of("weight_gemm", &conv2d_backward_gemm_weight_method,
                                        "The same with parts in the workspace, added up in order."),
  };
  const LessonTable tables[] = {{"The gradient of the input", inputs, COUNT(inputs), &input},
                                {"The gradients of filters and bias", weights, COUNT(weights), &weight}};
  return lesson_main(argc, argv, &input, tables, COUNT(tables));
}
