/* Every version against the loop, bit for bit: one addition rounds the same everywhere. */
#include "phase1_building_blocks/01_vector_add/vector_add.cuh"

#include "common/test_arrays.h"

typedef void VectorAdd(float *c, const float *a, const float *b, size_t n);

static const struct {
  const char *name;
  VectorAdd *add;
} versions[] = {
    {"vector_add", vector_add},
    {"vector_add_stride", vector_add_stride},
    {"vector_add_float4", vector_add_float4},
};

/* The arrays begin `offset` floats past an aligned address. */
static void check_size(VectorAdd *add, const char *name, size_t n, size_t offset) {
  float *a = arrays_random(n + offset, 1), *b = arrays_random(n + offset, 2);
  float *expected = arrays_poison(n + offset), *actual = arrays_poison(n + offset);
  vector_add_cpu(expected + offset, a + offset, b + offset, n);
  float *device_a = arrays_upload(DEVICE_GPU, a, n + offset), *device_b = arrays_upload(DEVICE_GPU, b, n + offset);
  float *device_c = arrays_upload(DEVICE_GPU, actual, n + offset);
  add(device_c + offset, device_a + offset, device_b + offset, n);
  arrays_download(DEVICE_GPU, actual, device_c, n + offset, "c");
  arrays_download(DEVICE_GPU, NULL, device_a, n + offset, "a");
  arrays_download(DEVICE_GPU, NULL, device_b, n + offset, "b");
  Comparison c = compare_arrays(actual + offset, expected + offset, 1, n, tolerance_make(0, 0));
  if (!c.ok) fail_msg("%s, n %zu, offset %zu: %s", name, n, offset, c.message);
  for (size_t i = 0; i < offset; i++)
    if (!compare_is_poison(&actual[i])) fail_msg("%s, n %zu, offset %zu: wrote before c", name, n, offset);
  free(a);
  free(b);
  free(expected);
  free(actual);
}

static void every_version_matches_the_loop(void **state) {
  (void)state;
  test_requires_gpu();
  /* 300007: more than the emulator's GPU holds threads (32768), so that the strided loops take several steps. */
  const size_t sizes[] = {1, 3, 31, 33, 127, 256, 257, 1021, 40000, 300007};
  for (size_t v = 0; v < sizeof versions / sizeof *versions; v++)
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
      for (size_t offset = 0; offset < 4; offset++) check_size(versions[v].add, versions[v].name, sizes[i], offset);
}

static void every_version_matches_beyond_what_a_gpu_holds(void **state) {
  (void)state;
  test_requires_gpu();
  for (size_t v = 0; v < sizeof versions / sizeof *versions; v++)
    check_size(versions[v].add, versions[v].name, 3000017, 0); /* an H200 holds 270336 threads */
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_version_matches_the_loop),
      cmocka_unit_test(every_version_matches_beyond_what_a_gpu_holds),
  };
  return TEST_MAIN("vector_add", tests);
}
