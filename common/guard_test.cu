#include "common/guard.h"

#include "common/test.h"

/* Writes x[at] with at < 0 or at >= n, as a wrong kernel does. */
__global__ void write_kernel(float *x, long at) { x[at] = 1; }

static void write_gpu(float *x, long at) {
  write_kernel<<<1, 1>>>(x, at);
  CUDA_CHECK_LAUNCH();
}

static void write_at(Device device, float *x, long at) { ON_DEVICE(device, write_gpu(x, at), x[at] = 1); }

static void check_guards(Device device) {
  const long sizes[] = {0, 1, 3, 31, 33, 127, 1021};
  for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
    long n = sizes[s];
    const long outside[] = {-1, -2, -GUARD_BAND, n, n + 1, n + GUARD_BAND - 1};
    Error err;
    float *x = guard_alloc(device, n);
    assert_int_equal((uintptr_t)x % 64, 0);
    assert_int_equal(guard_check(device, x, n, "x", &err), 0);
    float *host = (float *)xmalloc(n * sizeof *host);
    device_download(device, host, x, n * sizeof *host);
    for (long i = 0; i < n; i++) assert_true(compare_is_poison(&host[i]));
    free(host);

    for (long i = 0; i < n; i += n < 5 ? 1 : n - 1) write_at(device, x, i); /* the first and the last are inside */
    assert_int_equal(guard_check(device, x, n, "x", &err), 0);
    guard_free(device, x);

    for (size_t o = 0; o < sizeof outside / sizeof *outside; o++) {
      x = guard_alloc(device, n);
      write_at(device, x, outside[o]);
      assert_int_equal(guard_check(device, x, n, "x", &err), -1);
      char where[80];
      long distance = outside[o] < 0 ? -outside[o] : outside[o] - n + 1;
      snprintf(where, sizeof where, "1 written %s, %ld to %ld", outside[o] < 0 ? "before its start" : "past its end",
               distance, distance);
      if (strstr(err.message, where) == NULL) fail_msg("'%s' lacks '%s'", err.message, where);
      guard_free(device, x);
    }
  }
}

static void writes_outside_are_found_cpu(void **state) {
  (void)state;
  check_guards(DEVICE_CPU);
}

static void writes_outside_are_found_gpu(void **state) {
  (void)state;
  test_requires_gpu();
  check_guards(DEVICE_GPU);
}

static void a_read_outside_shows_as_nan(void **state) {
  (void)state;
  float *x = guard_alloc(DEVICE_CPU, 3);
  for (int i = 0; i < 3; i++) x[i] = 1;
  for (int i = -1; i <= 3; i += 4) {
    float sum = x[0] + x[1] + x[2] + x[i];
    assert_true(isnan(sum));
    assert_false(compare_is_poison(&x[i]));
  }
  guard_free(DEVICE_CPU, x);
  guard_free(DEVICE_CPU, NULL);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(writes_outside_are_found_cpu),
      cmocka_unit_test(writes_outside_are_found_gpu),
      cmocka_unit_test(a_read_outside_shows_as_nan),
  };
  return TEST_MAIN("guard", tests);
}
