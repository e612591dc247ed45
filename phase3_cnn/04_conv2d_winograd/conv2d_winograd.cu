/* conv2d_winograd.cu - 3 x 3 convolution with fewer multiplications.
 *
 *     bazel run //phase3_cnn:conv2d_winograd
 *
 * An output of a 3 x 3 convolution takes 9 products per channel. Winograd's algorithm computes a tile of outputs from
 * sums of inputs and sums of weights: 4 products per output for tiles of 2 x 2, 2.25 for tiles of 4 x 4. Its costs are
 * the transforms, which move data, and larger rounding errors.
 *
 * First the program prints the errors: the same convolutions, computed directly and by Winograd's algorithm in float32,
 * beside sums in float64. The tables then have the versions with tiles of 2 x 2, and with larger ones. */
#include "common/device.h"
#include "common/lesson/main.h"
#include "common/philox.h"
#include "phase3_cnn/03_conv2d_implicit_gemm/conv2d_implicit_gemm.cuh"
#include "phase3_cnn/04_conv2d_winograd/conv2d_winograd_cublas.cuh"
#include "phase3_cnn/04_conv2d_winograd/conv2d_winograd_fused.cuh"
#include "phase3_cnn/04_conv2d_winograd/conv2d_winograd_lesson.cuh"

static const Conv2dMethod winograd2_cublas_forward = {
    "winograd2_cublas", winograd_fits, conv2d_winograd2_floats, conv2d_forward_winograd2_cublas, NULL, NULL};
static const Conv2dMethod winograd4_cublas_forward = {
    "winograd4_cublas", winograd_fits, conv2d_winograd4_floats, conv2d_forward_winograd4_cublas, NULL, NULL};

static double *normal_doubles(size_t n, uint64_t stream) {
  double *x = (double *)xmalloc(n * sizeof *x);
  for (size_t i = 0; i < n; i++) {
    float first, second;
    philox_normal(philox4x32(1, stream, i), &first, &second);
    x[i] = first;
  }
  return x;
}

static float *upload_as_floats(const double *from, size_t n) {
  float *x = (float *)xmalloc(n * sizeof *x), *to = (float *)device_alloc(DEVICE_GPU, n * sizeof *to);
  for (size_t i = 0; i < n; i++) x[i] = (float)from[i];
  device_upload(DEVICE_GPU, to, x, n * sizeof *x);
  free(x);
  return to;
}

/* The largest error of a version, in units of the outputs' root mean square. */
static double error_of(const Conv2dMethod *method, Conv2dShape s, const float *x, const float *w,
                       const double *reference) {
  const size_t n = conv2d_y_count(s);
  const size_t floats = method->workspace_floats != NULL ? method->workspace_floats(s) : 0;
  float *y = (float *)xmalloc(n * sizeof *y), *device_y = (float *)device_alloc(DEVICE_GPU, n * sizeof *y);
  float *workspace = (float *)device_alloc(DEVICE_GPU, (floats + 1) * sizeof *workspace);
  method->forward(device_y, x, w, NULL, s, workspace);
  device_download(DEVICE_GPU, y, device_y, n * sizeof *y);
  double largest = 0, squares = 0;
  for (size_t i = 0; i < n; i++) {
    const double error = fabs(y[i] - reference[i]);
    if (!(error <= largest)) largest = error; /* NaN, too */
    squares += reference[i] * reference[i];
  }
  device_free(DEVICE_GPU, device_y);
  device_free(DEVICE_GPU, workspace);
  free(y);
  return largest / sqrt(squares / (double)n);
}

static void show_errors(void) {
  const Conv2dMethod *const methods[] = {&conv2d_implicit_gemm_method, &winograd2_fused_forward, &winograd2x4_forward,
                                         &winograd4_forward};
  const int channels[] = {4, 16, 64};
  fprintf(stderr, "\nLargest error beside sums in float64, in units of the outputs' root mean square; 16 filters:\n\n");
  fprintf(stderr, "channels     direct   F(2x2)   F(2x4)   F(4x4)\n");
  for (size_t i = 0; i < sizeof channels / sizeof *channels; i++) {
    const Conv2dShape s = conv2d_shape(1, channels[i], 16, 16, 16, 3, 3, 1, 1);
    double *x = normal_doubles(conv2d_x_count(s), 1), *w = normal_doubles(conv2d_w_count(s), 2);
    double *reference = (double *)xmalloc(conv2d_y_count(s) * sizeof *reference);
    conv2d_forward_cpu<double>(reference, x, w, NULL, s);
    float *device_x = upload_as_floats(x, conv2d_x_count(s)), *device_w = upload_as_floats(w, conv2d_w_count(s));
    fprintf(stderr, "%8d  ", s.c);
    for (size_t m = 0; m < sizeof methods / sizeof *methods; m++)
      fprintf(stderr, "%9.1e", error_of(methods[m], s, device_x, device_w, reference));
    fprintf(stderr, "\n");
    device_free(DEVICE_GPU, device_x);
    device_free(DEVICE_GPU, device_w);
    free(x);
    free(w);
    free(reference);
  }
}

int main(int argc, char **argv) {
  Lesson small = conv2d_winograd2_lesson(), large = conv2d_winograd4_lesson();
  small.before = show_errors;
  const LessonVersion small_versions[] = {
      conv2d_forward_version_of("direct", &conv2d_implicit_gemm_method,
                                "Lesson 3's implicit GEMM: 9 products per output and channel."),
      conv2d_forward_version_of("winograd2", &winograd2_forward,
                                "4 products. But u, v and m, 4 times as large as x and y, go through memory."),
      lesson_library_version(conv2d_forward_version_of("winograd2 with cuBLAS", &winograd2_cublas_forward,
                                                       "Our transforms, the vendor's batched product.")),
      conv2d_forward_version_of("winograd2_fused", &winograd2_fused_forward,
                                "Only x, u and y are in memory; products take most of the time."),
  };
  const LessonVersion large_versions[] = {
      conv2d_forward_version_of("winograd2x4", &winograd2x4_forward,
                                "One kernel, 3 products. The sums of its 24 points fill the registers."),
      conv2d_forward_version_of("winograd4", &winograd4_forward,
                                "2.25 products, but v and m go through memory: about half of the time."),
      conv2d_forward_version_of("winograd4_chunks", &winograd4_chunks_forward,
                                "v and m of a few images stay in the L2 cache, but each launch has little work."),
      lesson_library_version(conv2d_forward_version_of("winograd4 with cuBLAS", &winograd4_cublas_forward,
                                                       "Our transforms, the vendor's batched product.")),
  };
  const LessonTable tables[] = {
      {"Tiles of 2 x 2", small_versions, sizeof small_versions / sizeof *small_versions},
      {"Larger tiles", large_versions, sizeof large_versions / sizeof *large_versions, &large},
  };
  return lesson_main(argc, argv, &small, tables, sizeof tables / sizeof *tables);
}
