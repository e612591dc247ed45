/* conv2d_fft.cu - convolution by Fourier transforms, and from which filter size it pays.
 *
 *     bazel run //phase3_cnn:conv2d_fft
 *     bazel run //phase3_cnn:conv2d_fft -- --shape=32x64x56x56x64x15x15:padding=7
 *
 * The first table counts multiply-adds, from the geometry alone: directly each output takes R S per channel; by
 * transforms it takes four for each frequency that it shares with its tile, whatever the filter's size.
 *
 * The versions: cuFFT with a whole image per transform, first with a simple product per frequency and then with a tiled
 * one; cuFFT with overlapping tiles; and transforms of tiles as kernels of our own, which need no plans and write their
 * spectra as the products read them. */
#include "common/lesson/main.h"
#include "phase3_cnn/03_conv2d_implicit_gemm/conv2d_implicit_gemm.cuh"
#include "phase3_cnn/05_conv2d_fft/conv2d_fft_cufft.cuh"
#include "phase3_cnn/05_conv2d_fft/conv2d_fft_lesson.cuh"

/* Multiply-adds per output and channel: products, and the transforms of x and y (those of the filters serve the whole
 * batch). A butterfly of fft_registers() has at most four; a tile has T transforms of T/2 log2(T) butterflies. */
static double multiply_adds(Conv2dShape s, Conv2dFft t) {
  double tiles = (double)t.tiles_h * t.tiles_w, outputs = (double)conv2d_out_h(s) * conv2d_out_w(s);
  double transform = 2.0 * t.tile * t.tile * log2(t.tile);
  return tiles * (4.0 * t.frequencies + transform * (s.c + s.k) / ((double)s.c * s.k)) / outputs;
}

static void show_multiply_adds(void) {
  fprintf(stderr, "\nMultiply-adds per output and channel, images (64,56,56), 64 filters:\n\n");
  fprintf(stderr, " filter   directly   T = 16   T = 32   T = 64   takes   directly / taken\n");
  for (int r = 3; r <= 31; r += r < 11 ? 2 : 4) {
    Conv2dShape s = conv2d_shape(32, 64, 56, 56, 64, r, r, 1, r / 2);
    int taken = conv2d_fft_forward_tiling(s).tile;
    double best = 0;
    fprintf(stderr, "%2d x %2d %10d", r, r, r * r);
    for (int tile = 16; tile <= 64; tile *= 2) {
      if (tile < r) {
        fprintf(stderr, "%9s", "-");
        continue;
      }
      double count = multiply_adds(s, conv2d_fft_tiling(s, conv2d_out_h(s), conv2d_out_w(s), tile));
      if (tile == taken) best = count;
      fprintf(stderr, "%9.1f", count);
    }
    fprintf(stderr, "%8d %18.1f\n", taken, r * r / best);
  }
}

int main(int argc, char **argv) {
  Lesson forward = conv2d_fft_forward_lesson("conv2d_fft"), input = conv2d_fft_backward_input_lesson("dx"),
         weight = conv2d_fft_backward_weight_lesson("dw");
  forward.before = show_multiply_adds;
  const LessonVersion versions[] = {
      conv2d_forward_version_of("implicit_gemm", &conv2d_implicit_gemm_method,
                                "Lesson 3: all C R S products of an output."),
      conv2d_forward_version_of("whole", &conv2d_fft_whole_method,
                                "cuFFT. The product loads 16 bytes for four multiply-adds: compute it in tiles."),
      conv2d_forward_version_of("whole_tiled", &conv2d_fft_whole_tiled_method,
                                "Each filter is as large as the image: cut the images into overlapping tiles."),
      conv2d_forward_version_of(
          "overlap", &conv2d_fft_overlap_method,
          "Small spectra of filters. Padding, cuFFT and cropping are passes over memory: join them."),
      conv2d_forward_version_of(
          "tiled", &conv2d_fft_method,
          "No plans, one kernel for each transform. Spectra are written and read: memory is the limit."),
  };
  const LessonVersion input_versions[] = {
      conv2d_backward_input_version_of("dx tiled", &conv2d_fft_method,
                                       "The same kernels with dy for x, and the product without the conjugate."),
  };
  const LessonVersion weight_versions[] = {
      conv2d_backward_weight_version_of("dw tiled", &conv2d_fft_method,
                                        "The product sums over tiles; only R x S of each T x T result are kept."),
  };
  const LessonTable tables[] = {
      {"Convolution by transforms", versions, sizeof versions / sizeof *versions},
      {"Gradient of the input", input_versions, sizeof input_versions / sizeof *input_versions, &input},
      {"Gradient of the filters", weight_versions, sizeof weight_versions / sizeof *weight_versions, &weight},
  };
  return lesson_main(argc, argv, &forward, tables, 3);
}
