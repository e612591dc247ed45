#include "common/simd.h"

#include "common/test.h"

/* y = 2 x + y, in whichever clone this processor gets; the rest of n is done one by one. */
CPU_CLONES static void twice_plus(const float *x, float *y, size_t n) {
  size_t i = 0;
  for (; i + SIMD_WIDTH <= n; i += SIMD_WIDTH) *(vfloat *)(y + i) += 2.0f * *(const vfloat *)(x + i);
  for (; i < n; i++) y[i] += 2.0f * x[i];
}

static void clones_compute_at_any_alignment(void **state) {
  (void)state;
  enum { N = 127 };
  float x[N + SIMD_WIDTH], y[N + SIMD_WIDTH], expected[N + SIMD_WIDTH];
  for (size_t offset = 0; offset < SIMD_WIDTH; offset++) {
    test_random_fill(x, N + SIMD_WIDTH, offset);
    test_random_fill(y, N + SIMD_WIDTH, 99);
    memcpy(expected, y, sizeof y);
    for (size_t i = 0; i < N; i++) expected[offset + i] += 2.0f * x[i];
    twice_plus(x, y + offset, N);
    assert_close(y, expected, N + SIMD_WIDTH, 1e-6, 1e-6);
  }
}

static void sum_takes_every_lane_once(void **state) {
  (void)state;
  float lanes[SIMD_WIDTH];
  for (int i = 0; i < SIMD_WIDTH; i++) lanes[i] = (float)(1 << i);
  assert_true(vfloat_sum(*(vfloat *)lanes) == (float)((1 << SIMD_WIDTH) - 1));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(clones_compute_at_any_alignment),
      cmocka_unit_test(sum_takes_every_lane_once),
  };
  return TEST_MAIN("simd", tests);
}
