/* Every version against the loops, bit for bit, on whole tiles and on ragged shapes. */
#include "phase1_building_blocks/02_transpose/transpose.cuh"

#include "common/test_arrays.h"

typedef void Transpose(float *out, const float *in, int rows, int cols);

static const struct {
  const char *name;
  Transpose *transpose;
} versions[] = {
    {"transpose_naive_rows", transpose_naive_rows}, {"transpose_naive_columns", transpose_naive_columns},
    {"transpose_tiled", transpose_tiled},           {"transpose_padded", transpose_padded},
    {"transpose_vectorised", transpose_vectorised},
};

/* The arrays begin `offset` floats past an aligned address. */
static void check_shape(Transpose *transpose, const char *name, int rows, int cols, size_t offset) {
  size_t n = (size_t)rows * cols;
  float *in = arrays_random(n + offset, 1);
  float *expected = arrays_poison(n), *actual = arrays_poison(n + offset);
  transpose_cpu(expected, in + offset, rows, cols);
  float *device_in = arrays_upload(DEVICE_GPU, in, n + offset);
  float *device_out = arrays_upload(DEVICE_GPU, actual, n + offset);
  transpose(device_out + offset, device_in + offset, rows, cols);
  arrays_download(DEVICE_GPU, actual, device_out, n + offset, "out");
  arrays_download(DEVICE_GPU, NULL, device_in, n + offset, "in");
  Comparison c = compare_arrays(actual + offset, expected, cols, rows, tolerance_make(0, 0));
  if (!c.ok) fail_msg("%s, (%d,%d), offset %zu: %s", name, rows, cols, offset, c.message);
  for (size_t i = 0; i < offset; i++)
    if (!compare_is_poison(&actual[i])) fail_msg("%s, (%d,%d): wrote before out", name, rows, cols);
  free(in);
  free(expected);
  free(actual);
}

static void every_version_matches_the_loops(void **state) {
  (void)state;
  test_requires_gpu();
  const int shapes[][2] = {{1, 1},   {1, 33},   {31, 1},   {3, 31},    {33, 127}, {127, 33},  {32, 32},
                           {64, 64}, {64, 256}, {60, 132}, {129, 131}, {257, 68}, {128, 192}, {36, 1000}};
  for (size_t v = 0; v < sizeof versions / sizeof *versions; v++)
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
      for (size_t offset = 0; offset < 2; offset++)
        check_shape(versions[v].transpose, versions[v].name, shapes[i][0], shapes[i][1], offset);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(every_version_matches_the_loops)};
  return TEST_MAIN("transpose", tests);
}
