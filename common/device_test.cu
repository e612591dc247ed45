#include "common/device.h"

#include <pthread.h>

#include "common/test.h"

static void check_memory(Device device) {
  const size_t sizes[] = {0, 1, 3, 31, 33, 127, 4099};
  for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
    size_t n = sizes[s], bytes = n * sizeof(float);
    float *x = (float *)xmalloc(bytes), *y = (float *)xmalloc(bytes), *zeros = (float *)xcalloc(n, sizeof(float));
    float *first = (float *)device_alloc(device, bytes), *second = (float *)device_alloc(device, bytes);
    assert_non_null(first);
    assert_int_equal((uintptr_t)first % 64, 0);
    test_random_fill(x, n, s);
    test_random_fill(y, n, s + 1);
    device_download(device, y, first, bytes);
    assert_memory_equal(y, zeros, bytes);

    device_upload(device, first, x, bytes);
    device_copy(device, second, first, bytes);
    device_zero(device, first, bytes);
    device_synchronize(device);
    device_download(device, y, second, bytes);
    assert_memory_equal(y, x, bytes);
    device_download(device, y, first, bytes);
    assert_memory_equal(y, zeros, bytes);
    device_free(device, first);
    device_free(device, second);
    free(x);
    free(y);
    free(zeros);
  }
}

/* Sizes are rounded up to 64 bytes; what is given back in another order counts by its own size. */
static void check_count(Device device) {
  const DeviceBytes before = device_allocated(device);
  void *first = device_alloc(device, 1), *second = device_alloc(device, 1000), *third = device_alloc(device, 0);
  assert_int_equal(device_allocated(device).now - before.now, 64 + 1024 + 64);
  device_free(device, second);
  assert_int_equal(device_allocated(device).now - before.now, 128);
  device_free(device, NULL);
  device_free(device, first);
  device_free(device, third);
  assert_int_equal(device_allocated(device).now, before.now);
  assert_true(device_allocated(device).most >= before.now + 1152);
}

static void *allocate_and_free(void *unused) {
  for (size_t i = 0; i < 500; i++) device_free(DEVICE_CPU, device_alloc(DEVICE_CPU, i));
  return unused;
}

static void what_is_allocated_is_counted(void **state) {
  (void)state;
  enum { THREADS = 4 };
  check_count(DEVICE_CPU);
  const size_t before = device_allocated(DEVICE_CPU).now;
  pthread_t thread[THREADS];
  for (int t = 0; t < THREADS; t++) assert_int_equal(pthread_create(&thread[t], NULL, allocate_and_free, NULL), 0);
  for (int t = 0; t < THREADS; t++) assert_int_equal(pthread_join(thread[t], NULL), 0);
  assert_int_equal(device_allocated(DEVICE_CPU).now, before);
}

static void what_is_allocated_is_counted_gpu(void **state) {
  (void)state;
  test_requires_gpu();
  check_count(DEVICE_GPU);
}

static void memory_cpu(void **state) {
  (void)state;
  check_memory(DEVICE_CPU);
}

static void memory_gpu(void **state) {
  (void)state;
  test_requires_gpu();
  check_memory(DEVICE_GPU);
}

static void operations_follow_the_device(void **state) {
  (void)state;
  int ran = 0;
  ON_DEVICE(DEVICE_CPU, ran = 2, ran = 1);
  assert_int_equal(ran, 1);
  ON_DEVICE(DEVICE_GPU, ran = 2, ran = 1);
  assert_int_equal(ran, 2);
  assert_string_equal(device_name(DEVICE_CPU), "cpu");
  assert_string_equal(device_name(DEVICE_GPU), "gpu");
}

/* With a GPU it is named; without one, the sentence says what to do instead. */
static void open_describes_or_advises(void **state) {
  (void)state;
  char description[128] = "";
  Error err = {};
  assert_int_equal(device_open(DEVICE_CPU, description, sizeof description, &err), 0);
  assert_non_null(strstr(description, "CPU"));
  if (device_open(DEVICE_GPU, description, sizeof description, &err) == 0) {
    assert_non_null(strstr(description, "compute capability"));
  } else {
    assert_non_null(strstr(err.message, "--device=gpu: "));
    assert_non_null(strstr(err.message, "use --device=cpu"));
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(memory_cpu),
      cmocka_unit_test(memory_gpu),
      cmocka_unit_test(what_is_allocated_is_counted),
      cmocka_unit_test(what_is_allocated_is_counted_gpu),
      cmocka_unit_test(operations_follow_the_device),
      cmocka_unit_test(open_describes_or_advises),
  };
  return TEST_MAIN("device", tests);
}
