#include "phase2_mlp/05_batches/batches.cuh"

#include <omp.h>

#include "common/test_arrays.h"

/* ---- steps ---- */

/* Whole batches, then what is left; a batch larger than the set is the set. */
static void the_last_batch_is_what_is_left(void **state) {
  (void)state;
  const int cases[][4] = {{60000, 64, 938, 32}, {64, 64, 1, 64}, {65, 64, 2, 1},
                          {3, 64, 1, 3},        {7, 1, 7, 1},    {INT_MAX, 65536, 32768, 65535}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    const int *c = cases[i];
    assert_int_equal(batches_steps(c[0], c[1]), c[2]);
    long seen = 0;
    int size = 0;
    for (int step = 0; step < c[2]; step++) {
      if (step > 0) assert_int_equal(size, c[1]);
      seen += size = batches_size_at(c[0], c[1], step * c[1]);
    }
    assert_int_equal(size, c[3]);
    assert_int_equal(seen, c[0]);
  }
}

/* ---- gather ---- */

static void reference_is_right_by_hand(void **state) {
  (void)state;
  const uint8_t pixels[3 * 2] = {0, 255, 51, 102, 153, 204}, all_labels[3] = {7, 9, 4};
  const uint32_t picked[2] = {2, 0};
  const float expected[2 * 2] = {0.2f, 0.6f, -1, 1}; /* (153/255 - 0.5) / 0.5, ... */
  float x[4];
  int labels[2];
  batch_gather_cpu(x, labels, pixels, all_labels, picked, 2, 2, 0.5f, 0.5f);
  assert_matrix_close(x, expected, 2, 2, 1e-6, 0);
  assert_int_equal(labels[0], 4);
  assert_int_equal(labels[1], 7);
}

typedef void Gather(float *x, int *labels, const uint8_t *pixels, const uint8_t *all_labels, const uint32_t *order,
                    int batch, int pixels_per_image, float mean, float stddev);

/* The bits of every pixel value and of every label agree with the reference. pixels begin `offset` bytes past a
 * multiple of 16. */
static void check_shape(Device device, Gather *gather, int images, int batch, int pixels_per_image, int offset) {
  const float mean = 0.1307f, stddev = 0.3081f;
  size_t pixel_count = (size_t)images * pixels_per_image, n = (size_t)batch * pixels_per_image;
  uint8_t *pixels = (uint8_t *)xmalloc(pixel_count), *all_labels = (uint8_t *)xmalloc(images);
  uint32_t *picked = (uint32_t *)xmalloc(batch * sizeof *picked);
  int *labels = (int *)xmalloc(batch * sizeof *labels), *labels_expected = (int *)xmalloc(batch * sizeof *labels);
  float *x = arrays_poison(n), *x_expected = arrays_poison(n), *labels_poison = arrays_poison(batch);
  for (size_t i = 0; i < pixel_count; i++) pixels[i] = (uint8_t)philox4x32(1, 0, i).word[0];
  for (size_t i = 0; i < pixel_count && i < 256; i++) pixels[i] = (uint8_t)i;
  for (int i = 0; i < images; i++) all_labels[i] = (uint8_t)(i % 251);
  for (int b = 0; b < batch; b++) picked[b] = (uint32_t)((b * 7919L) % images); /* the first image comes first */
  batch_gather_cpu(x_expected, labels_expected, pixels, all_labels, picked, batch, pixels_per_image, mean, stddev);

  uint8_t *device_bytes = (uint8_t *)device_alloc(device, pixel_count + offset), *device_pixels = device_bytes + offset;
  device_upload(device, device_pixels, pixels, pixel_count);
  uint8_t *device_all_labels = (uint8_t *)arrays_upload_bytes(device, all_labels, images);
  uint32_t *device_picked = (uint32_t *)arrays_upload_bytes(device, picked, batch * sizeof *picked);
  float *device_x = arrays_upload(device, x, n), *device_labels = arrays_upload(device, labels_poison, batch);
  gather(device_x, (int *)device_labels, device_pixels, device_all_labels, device_picked, batch, pixels_per_image, mean,
         stddev);
  arrays_download(device, x, device_x, n, "x");
  arrays_download(device, (float *)labels, device_labels, batch, "labels"); /* an int is as wide as a float */
  device_free(device, device_bytes);
  device_free(device, device_all_labels);
  device_free(device, device_picked);

  assert_comparison(compare_arrays(x, x_expected, batch, pixels_per_image, tolerance_make(0, 0)));
  assert_memory_equal(labels, labels_expected, batch * sizeof *labels);
  free(pixels);
  free(all_labels);
  free(picked);
  free(labels);
  free(labels_expected);
  free(labels_poison);
  free(x);
  free(x_expected);
}

static void check_all_shapes(Device device, Gather *gather) {
  const int shapes[][3] = {{1, 1, 1},      {3, 3, 31},     {31, 33, 3},    {127, 1, 33}, {10, 127, 255},
                           {1, 3, 256},    {100, 64, 784}, {50, 37, 1000}, {5, 9, 4},    {2, 64, 8},
                           {33, 127, 132}, {1, 1, 784},    {7, 300, 12}};
  for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
    for (int offset = 0; offset < 5; offset += 1 + (i > 0)) /* one that no word of 4 bytes begins at, among them */
      check_shape(device, gather, shapes[i][0], shapes[i][1], shapes[i][2], offset);
}

static void fast_has_the_bits_of_the_reference(void **state) {
  (void)state;
  int threads_before = omp_get_max_threads();
  for (int threads = 1; threads <= 3; threads++) {
    omp_set_num_threads(threads);
    check_all_shapes(DEVICE_CPU, batch_gather_cpu_fast);
  }
  omp_set_num_threads(threads_before);
}

static void every_kernel_has_the_bits_of_the_reference(void **state) {
  (void)state;
  test_requires_gpu();
  Gather *const versions[] = {batch_gather_rows, batch_gather_elements, batch_gather_blocks, batch_gather_warps,
                              batch_gather_gpu};
  for (size_t i = 0; i < sizeof versions / sizeof *versions; i++) check_all_shapes(DEVICE_GPU, versions[i]);
}

/* More quads than the grid has threads: the grid-stride loop runs more than once. */
static void the_grid_stride_loop_covers_all(void **state) {
  (void)state;
  test_requires_gpu();
  check_shape(DEVICE_GPU, batch_gather_gpu, 10, 2 * BATCH_GATHER_MOST_BLOCKS, 4 * BATCH_GATHER_BLOCK, 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_last_batch_is_what_is_left),
      cmocka_unit_test(reference_is_right_by_hand),
      cmocka_unit_test(fast_has_the_bits_of_the_reference),
      cmocka_unit_test(every_kernel_has_the_bits_of_the_reference),
      cmocka_unit_test(the_grid_stride_loop_covers_all),
  };
  return TEST_MAIN("batches", tests);
}
