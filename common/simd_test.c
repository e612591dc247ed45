#include "common/simd.h"

#include "common/test.h"

typedef float V4 __attribute__((vector_size(16), aligned(4), may_alias));

SIMD_INLINE V4 twice(const float *x) { return 2.0f * *(const V4 *)x; }

/* y = 2 x + y, in whichever clone this processor gets; the rest of n is done one by one. */
CPU_CLONES static void twice_plus(const float *x, float *y, size_t n) {
  size_t i = 0;
  for (; i + 4 <= n; i += 4) *(V4 *)(y + i) += twice(x + i);
  for (; i < n; i++) y[i] += 2.0f * x[i];
}

static void clones_compute_at_any_alignment(void **state) {
  (void)state;
  enum { N = 127, MORE = 16 };
  float x[N + MORE], y[N + MORE], expected[N + MORE];
  for (size_t offset = 0; offset < MORE; offset++) {
    test_random_fill(x, N + MORE, offset);
    test_random_fill(y, N + MORE, 99);
    memcpy(expected, y, sizeof y);
    for (size_t i = 0; i < N; i++) expected[offset + i] += 2.0f * x[i];
    twice_plus(x, y + offset, N);
    assert_close(y, expected, N + MORE, 1e-6, 1e-6);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(clones_compute_at_any_alignment)};
  return TEST_MAIN("simd", tests);
}
