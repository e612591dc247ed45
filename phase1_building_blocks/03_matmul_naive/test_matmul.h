/* test_matmul.h - checks one version of C (M,N) = A (M,K) B (K,N) against matmul_cpu(): between guard bands, into
 * poison, and twice, because the same input must give the same bits.
 *
 *     test_matmul("matmul_naive", matmul_naive);               // the shapes below
 *     test_matmul_shape("matmul_naive", matmul_naive, 1, 2, 3);
 */
#ifndef PHASE1_BUILDING_BLOCKS_TEST_MATMUL_H
#define PHASE1_BUILDING_BLOCKS_TEST_MATMUL_H

#include <math.h>

#include "phase1_building_blocks/03_matmul_naive/matmul.cuh"
#include "phase1_building_blocks/03_matmul_naive/matmul_chunk.cuh"

#include "common/test_arrays.h"

typedef void TestMatmul(float *c, const float *a, const float *b, int m, int n, int k);

/* Into c (M,N), on the device and back. The matrices begin `offset` floats past an aligned address. */
static inline void test_matmul_run(TestMatmul *matmul, float *c, const float *a, const float *b, int m, int n, int k,
                                   int offset) {
  float *device_a = arrays_upload(DEVICE_GPU, a, (size_t)m * k + offset);
  float *device_b = arrays_upload(DEVICE_GPU, b, (size_t)k * n + offset);
  float *device_c = arrays_upload(DEVICE_GPU, c, (size_t)m * n + offset);
  matmul(device_c + offset, device_a + offset, device_b + offset, m, n, k);
  arrays_download(DEVICE_GPU, c, device_c, (size_t)m * n + offset, "c");
  arrays_download(DEVICE_GPU, NULL, device_a, (size_t)m * k + offset, "a");
  arrays_download(DEVICE_GPU, NULL, device_b, (size_t)k * n + offset, "b");
}

static inline void test_matmul_offset(const char *name, TestMatmul *matmul, int m, int n, int k, int offset) {
  size_t count = (size_t)m * n;
  float *a = arrays_random((size_t)m * k + offset, 1), *b = arrays_random((size_t)k * n + offset, 2);
  float *expected = arrays_poison(count);
  float *first = arrays_poison(count + offset), *second = arrays_poison(count + offset);
  matmul_cpu(expected, a + offset, b + offset, m, n, k, false, false, false);
  test_matmul_run(matmul, first, a, b, m, n, k, offset);
  test_matmul_run(matmul, second, a, b, m, n, k, offset);
  Comparison c = compare_arrays(first + offset, expected, m, n, tolerance_dot(k, 1));
  if (!c.ok) fail_msg("%s (%d,%d) K %d, offset %d: %s", name, m, n, k, offset, c.message);
  c = compare_runs(first + offset, second + offset, count);
  if (!c.ok) fail_msg("%s (%d,%d) K %d, offset %d: %s", name, m, n, k, offset, c.message);
  for (int i = 0; i < offset; i++)
    if (!compare_is_poison(&first[i])) fail_msg("%s (%d,%d) K %d: wrote before c", name, m, n, k);
  free(a);
  free(b);
  free(expected);
  free(first);
  free(second);
}

static inline void test_matmul_shape(const char *name, TestMatmul *matmul, int m, int n, int k) {
  test_matmul_offset(name, matmul, m, n, k, 0);
}

/* Sums of chunks have about sqrt(K / MATMUL_CHUNK) = 4 times less error than one long sum. */
static inline void test_matmul_chunks(const char *name, TestMatmul *matmul) {
  const int m = 8, n = 12, k = 16 * MATMUL_CHUNK;
  float *a = arrays_random((size_t)m * k, 3), *b = arrays_random((size_t)k * n, 4), *c = arrays_poison((size_t)m * n);
  test_matmul_run(matmul, c, a, b, m, n, k, 0);
  double square = 0, plain_square = 0; /* of the errors */
  for (int row = 0; row < m; row++)
    for (int col = 0; col < n; col++) {
      double exact = 0;
      float plain = 0;
      for (int i = 0; i < k; i++) {
        exact += (double)a[row * k + i] * b[i * n + col];
        plain = fmaf(a[row * k + i], b[i * n + col], plain);
      }
      square += (c[row * n + col] - exact) * (c[row * n + col] - exact);
      plain_square += (plain - exact) * (plain - exact);
    }
  if (!(2 * sqrt(square) <= sqrt(plain_square)))
    fail_msg("%s: K %d, root mean square error %.2e, of one long sum %.2e: is it a sum of chunks?", name, k,
             sqrt(square / (m * n)), sqrt(plain_square / (m * n)));
  free(a);
  free(b);
  free(c);
}

/* An edge at every place in a tile; rows and columns that are no multiple of a float4; a single row, column or product;
 * arrays that are not aligned. */
static inline void test_matmul(const char *name, TestMatmul *matmul) {
  const int shapes[][3] = {{1, 1, 1},     {3, 31, 1},    {31, 3, 33},    {1, 129, 31},  {127, 1, 65},
                           {33, 127, 3},  {32, 32, 32},  {64, 64, 64},   {65, 67, 61},  {129, 131, 33},
                           {128, 64, 72}, {100, 60, 36}, {130, 132, 40}, {36, 260, 20}, {1, 1, 300}};
  for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
    test_matmul_shape(name, matmul, shapes[i][0], shapes[i][1], shapes[i][2]);
  test_matmul_offset(name, matmul, 64, 36, 40, 1);
  test_matmul_shape(name, matmul, 5, 9, 2 * MATMUL_CHUNK + 76);
  test_matmul_shape(name, matmul, 4, 8, MATMUL_CHUNK);
  test_matmul_chunks(name, matmul);
}

#endif /* PHASE1_BUILDING_BLOCKS_TEST_MATMUL_H */
