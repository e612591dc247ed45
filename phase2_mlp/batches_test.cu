#include "phase2_mlp/batches.cuh"

#include <omp.h>

#include "phase1_building_blocks/test_arrays.h"

/* ---- order ---- */

enum { COUNT = 60000 };

static uint32_t order[COUNT], other[COUNT];

static void every_image_comes_once(void **state) {
  (void)state;
  static unsigned char seen[COUNT];
  batches_shuffle(order, COUNT, 1, 0);
  for (int i = 0; i < COUNT; i++) {
    assert_true(order[i] < COUNT);
    assert_false(seen[order[i]]);
    seen[order[i]] = 1;
  }
  batches_shuffle(order, 1, 1, 0);
  assert_int_equal(order[0], 0);
  batches_shuffle(order, 0, 1, 0); /* nothing to do, nothing touched */
  assert_int_equal(order[0], 0);
}

static int same_places(uint64_t seed, uint32_t epoch) {
  int same = 0;
  batches_shuffle(other, COUNT, seed, epoch);
  for (int i = 0; i < COUNT; i++) same += order[i] == other[i];
  return same;
}

/* Two independent orders agree in one place on average; 20 would come once in 10^18. */
static void order_depends_on_seed_and_epoch_alone(void **state) {
  (void)state;
  batches_shuffle(order, COUNT, 1, 7);
  assert_int_equal(same_places(1, 7), COUNT);
  assert_in_range(same_places(1, 8), 0, 20);
  assert_in_range(same_places(2, 7), 0, 20);
}

/* Streams from 0x80000000 on, one an epoch, so that no shuffle draws the numbers of an initialisation, whose streams
 * are the layers' numbers. */
static void every_epoch_has_a_stream_of_its_own(void **state) {
  (void)state;
  enum { FEW = 50 };
  for (uint32_t epoch = 0; epoch < 100; epoch++) {
    batches_shuffle(order, FEW, 1, epoch);
    for (uint32_t stream = 0; stream < 100; stream++) {
      for (uint32_t i = 0; i < FEW; i++) other[i] = i;
      philox_shuffle(other, FEW, 1, stream);
      assert_memory_not_equal(order, other, FEW * sizeof *order);
    }
    for (uint32_t i = 0; i < FEW; i++) other[i] = i;
    philox_shuffle(other, FEW, 1, 0x80000000u + epoch);
    assert_memory_equal(order, other, FEW * sizeof *order);
  }
}

/* Over 6000 epochs each of three images should come first 2000 times, give or take 5 * sqrt(6000 * 1/3 * 2/3). */
static void every_order_is_equally_likely(void **state) {
  (void)state;
  int first[3] = {0, 0, 0};
  for (int epoch = 0; epoch < 6000; epoch++) {
    batches_shuffle(order, 3, 1, epoch);
    first[order[0]]++;
  }
  for (int i = 0; i < 3; i++) assert_in_range(first[i], 2000 - 183, 2000 + 183);
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

/* The bits of every pixel value and of every label agree with the reference. */
static void check_shape(Device device, int images, int batch, int pixels_per_image) {
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

  uint8_t *device_pixels = (uint8_t *)arrays_upload_bytes(device, pixels, pixel_count);
  uint8_t *device_all_labels = (uint8_t *)arrays_upload_bytes(device, all_labels, images);
  uint32_t *device_picked = (uint32_t *)arrays_upload_bytes(device, picked, batch * sizeof *picked);
  float *device_x = arrays_upload(device, x, n), *device_labels = arrays_upload(device, labels_poison, batch);
  ON_DEVICE(device,
            batch_gather_gpu(device_x, (int *)device_labels, device_pixels, device_all_labels, device_picked, batch,
                             pixels_per_image, mean, stddev),
            batch_gather_cpu_fast(device_x, (int *)device_labels, device_pixels, device_all_labels, device_picked,
                                  batch, pixels_per_image, mean, stddev));
  arrays_download(device, x, device_x, n, "x");
  arrays_download(device, (float *)labels, device_labels, batch, "labels"); /* an int is as wide as a float */
  device_free(device, device_pixels);
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

static void check_all_shapes(Device device) {
  const int shapes[][3] = {{1, 1, 1},      {3, 3, 31},  {31, 33, 3},    {127, 1, 33},
                           {10, 127, 255}, {1, 3, 256}, {100, 64, 784}, {50, 37, 1000}};
  for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
    check_shape(device, shapes[i][0], shapes[i][1], shapes[i][2]);
}

static void fast_has_the_bits_of_the_reference(void **state) {
  (void)state;
  int threads_before = omp_get_max_threads();
  for (int threads = 1; threads <= 3; threads++) {
    omp_set_num_threads(threads);
    check_all_shapes(DEVICE_CPU);
  }
  omp_set_num_threads(threads_before);
}

static void gpu_has_the_bits_of_the_reference(void **state) {
  (void)state;
  test_requires_gpu();
  check_all_shapes(DEVICE_GPU);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_image_comes_once),
      cmocka_unit_test(order_depends_on_seed_and_epoch_alone),
      cmocka_unit_test(every_epoch_has_a_stream_of_its_own),
      cmocka_unit_test(every_order_is_equally_likely),
      cmocka_unit_test(reference_is_right_by_hand),
      cmocka_unit_test(fast_has_the_bits_of_the_reference),
      cmocka_unit_test(gpu_has_the_bits_of_the_reference),
  };
  return TEST_MAIN("batches", tests);
}
