/* Augmentation: what a move does to one image, that it depends on (seed, epoch, sample) alone, and that every device
 * gives the same bits. */
#include "common/nn/augment.h"

#include "common/nn/test_net.h"
#include "common/test.h"

enum { MOST_BATCH = 33, MOST = MOST_BATCH * 4 * 31 * 7 };

static float input[MOST], output[MOST], other[MOST];
static const AugmentOutside outside = {{-1, -2, -3, -4}};

/* x (batch, shape) with a value of its own for each element, augmented on the device. */
static void run(const Augment *augment, Device device, float *y, int batch, Shape shape, AugmentKey key,
                const uint32_t *index) {
  const size_t n = (size_t)batch * shape_count(shape);
  for (size_t i = 0; i < n; i++) {
    input[i] = (float)i;
    y[i] = NAN;
  }
  float *x = (float *)device_alloc(device, n * sizeof *x), *to = (float *)device_alloc(device, n * sizeof *to);
  uint32_t *order = (uint32_t *)device_alloc(device, batch * sizeof *order);
  device_upload(device, x, input, n * sizeof *x);
  device_upload(device, to, y, n * sizeof *to);
  device_upload(device, order, index, batch * sizeof *order);
  augment->apply(augment, device, to, x, batch, shape, &outside, key, order);
  device_download(device, y, to, n * sizeof *to);
  device_free(device, x);
  device_free(device, to);
  device_free(device, order);
}

/* By hand: each image of the batch is its move of the input, for one of the moves that are possible. */
static void check_moves(const Augment *augment, Device device, int batch, Shape shape) {
  uint32_t index[MOST_BATCH];
  const AugmentKey key = {11, 3};
  for (int b = 0; b < batch; b++) index[b] = (uint32_t)(1000 - 7 * b);
  run(augment, device, output, batch, shape, key, index);
  const int height = shape.dim[1], width = shape.dim[2];
  for (int b = 0; b < batch; b++) {
    int found = 0;
    for (int flip = 0; flip <= augment->flip; flip++)
      for (int down = -augment->shift; down <= augment->shift; down++)
        for (int right = -augment->shift; right <= augment->shift; right++) {
          int same = 1;
          for (int c = 0; same && c < shape.dim[0]; c++)
            for (int y = 0; same && y < height; y++)
              for (int x = 0; same && x < width; x++) {
                const size_t plane = ((size_t)b * shape.dim[0] + c) * height * width;
                const int from_y = y - down, from_x = flip ? width - 1 - (x - right) : x - right;
                const int inside = from_y >= 0 && from_y < height && x - right >= 0 && x - right < width;
                const float expected = inside ? input[plane + (size_t)from_y * width + from_x] : outside.value[c];
                same = output[plane + (size_t)y * width + x] == expected;
              }
          found += same;
        }
    if (found == 0) fail_msg("%s %s: image %d is no move of its input", augment->name, shape_text(shape).text, b);
  }
}

static const Shape shapes[] = {{3, {1, 31, 7, 0}}, {3, {3, 7, 31, 0}}, {3, {4, 3, 3, 0}}, {3, {1, 1, 1, 0}}};

static void check_device(Device device) {
  for (int i = 1; augment_at(i); i++)
    for (int s = 0; s < 4; s++) {
      check_moves(augment_at(i), device, 1, shapes[s]);
      check_moves(augment_at(i), device, MOST_BATCH, shapes[s]);
    }
}

static void every_image_is_moved_cpu(void **unused) {
  (void)unused;
  check_device(DEVICE_CPU);
}

static void the_gpu_gives_the_same_bits(void **unused) {
  (void)unused;
  test_requires_gpu();
  check_device(DEVICE_GPU);
  uint32_t index[MOST_BATCH];
  const AugmentKey key = {5, 9};
  for (int b = 0; b < MOST_BATCH; b++) index[b] = (uint32_t)b;
  for (int s = 0; s < 4; s++) {
    run(&augment_crop, DEVICE_CPU, output, MOST_BATCH, shapes[s], key, index);
    run(&augment_crop, DEVICE_GPU, other, MOST_BATCH, shapes[s], key, index);
    assert_memory_equal(output, other, MOST_BATCH * shape_count(shapes[s]) * sizeof *output);
  }
}

/* All moves are drawn, about equally often; another seed, epoch or sample draws another. */
static void moves_are_random_and_keyed(void **unused) {
  (void)unused;
  enum { DRAWS = 20000 };
  int down[5] = {0}, right[5] = {0}, flips = 0, changed[3] = {0};
  for (uint32_t i = 0; i < DRAWS; i++) {
    const AugmentKey key = {7, 2}, seed = {8, 2}, epoch = {7, 3};
    const AugmentMove move = augment_move(key, i, 2, 1), again = augment_move(key, i, 2, 1);
    const AugmentMove others[] = {augment_move(seed, i, 2, 1), augment_move(epoch, i, 2, 1),
                                  augment_move(key, i + 1, 2, 1)};
    assert_memory_equal(&move, &again, sizeof move);
    down[move.down + 2]++;
    right[move.right + 2]++;
    flips += move.flip;
    for (int k = 0; k < 3; k++) changed[k] += memcmp(&move, &others[k], sizeof move) != 0;
  }
  for (int i = 0; i < 5; i++) {
    assert_true(abs(down[i] - DRAWS / 5) < 300); /* five deviations */
    assert_true(abs(right[i] - DRAWS / 5) < 300);
  }
  assert_true(abs(flips - DRAWS / 2) < 360);
  for (int k = 0; k < 3; k++) assert_true(changed[k] > DRAWS * 95 / 100); /* one of 50 moves is the same */
}

/* The size of the batch does not matter, nor where in it a sample stands; a set without augmentation is as before. */
static void check_set(Device device) {
  enum { COUNT = 13, SIDE = 5, PIXELS = SIDE * SIDE };
  uint8_t images[COUNT * PIXELS];
  int labels[COUNT] = {0};
  static float whole[COUNT * PIXELS], parts[COUNT * PIXELS], plain[COUNT * PIXELS];
  for (int i = 0; i < COUNT * PIXELS; i++) images[i] = (uint8_t)(philox4x32(3, 0, (uint64_t)i).word[0] | 1);
  const DataSet host = {shape3(1, SIDE, SIDE), COUNT, 2, images, labels};
  const DataNorm norm = {1, {0.5f}, {0.25f}};
  DeviceSet set;
  Model net;
  device_set_create(&set, device, &test_batches, &host, COUNT, &norm);
  test_net_open(&net, host.shape, 2, device, COUNT);
  device_set_shuffle(&set, 1, 4);
  device_set_gather(&set, &net, 0, COUNT);
  device_download(device, plain, model_input(&net, 0), sizeof plain);
  device_set_augment(&set, &augment_shift, COUNT);
  device_set_gather(&set, &net, 0, COUNT);
  device_download(device, whole, model_input(&net, 0), sizeof whole);
  for (int start = 0; start < COUNT; start += 4) {
    const int batch = COUNT - start < 4 ? COUNT - start : 4;
    device_set_gather(&set, &net, start, batch);
    device_download(device, parts + start * PIXELS, model_input(&net, 0), (size_t)batch * PIXELS * sizeof *parts);
  }
  assert_memory_equal(whole, parts, sizeof whole);
  assert_memory_not_equal(whole, plain, sizeof whole);
  int black = 0;
  for (int i = 0; i < COUNT * PIXELS; i++) black += whole[i] == (0.0f - 0.5f) / 0.25f;
  assert_true(black > COUNT); /* what came in from beyond the border */
  device_set_shuffle(&set, 1, 5);
  device_set_shuffle(&set, 1, 4);
  device_set_gather(&set, &net, 0, COUNT);
  device_download(device, parts, model_input(&net, 0), sizeof parts);
  assert_memory_equal(whole, parts, sizeof whole);
  device_set_augment(&set, &augment_none, COUNT);
  device_set_gather(&set, &net, 0, COUNT);
  device_download(device, parts, model_input(&net, 0), sizeof parts);
  assert_memory_equal(plain, parts, sizeof plain);
  device_set_destroy(&set);
  model_close(&net);
}

static void a_set_is_augmented_sample_by_sample(void **unused) {
  (void)unused;
  check_set(DEVICE_CPU);
}

static void a_set_on_the_gpu_too(void **unused) {
  (void)unused;
  test_requires_gpu();
  check_set(DEVICE_GPU);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_image_is_moved_cpu),   cmocka_unit_test(the_gpu_gives_the_same_bits),
      cmocka_unit_test(moves_are_random_and_keyed), cmocka_unit_test(a_set_is_augmented_sample_by_sample),
      cmocka_unit_test(a_set_on_the_gpu_too),
  };
  return TEST_MAIN("augment", tests);
}
