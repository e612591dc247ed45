/* A data set on its device: a new order every epoch, batches out of it, evaluation in batches as one by one. */
#include "common/nn/device_set.h"

#include "common/nn/test_net.h"
#include "common/test.h"

enum { COUNT = 13, SIDE = 3, PIXELS = SIDE * SIDE, CLASSES = 4 };

static const float mean = 0.25f, stddev = 0.5f;

typedef struct Fixture {
  uint8_t images[COUNT * PIXELS];
  int labels[COUNT];
  float weights[CLASSES * PIXELS];
  Model net;
  DeviceSet set;
} Fixture;

static void fixture_create(Fixture *f, Device device, int max_batch) {
  for (int i = 0; i < COUNT * PIXELS; i++) f->images[i] = (unsigned char)philox4x32(3, 0, i).word[0];
  for (int i = 0; i < COUNT; i++) f->labels[i] = i * i % CLASSES + i % 3 / 2;
  const DataSet host = {shape3(1, SIDE, SIDE), COUNT, CLASSES, f->images, f->labels};
  const DataNorm norm = {1, {mean}, {stddev}};
  device_set_create(&f->set, device, &test_batches, &host, COUNT, &norm);
  test_net_open(&f->net, shape1(PIXELS), CLASSES, device, max_batch);
  model_init(&f->net, 1);
  test_random_fill(f->weights, CLASSES * PIXELS, 4);
  device_upload(device, f->net.parameters, f->weights, sizeof f->weights);
}

static void fixture_destroy(Fixture *f) {
  device_set_destroy(&f->set);
  model_close(&f->net);
}

static float normalized(const Fixture *f, int image, int i) {
  return ((float)f->images[image * PIXELS + i] / 255.0f - mean) / stddev;
}

/* The order on the device, which must be a permutation. */
static void read_order(const Fixture *f, uint32_t *order) {
  int seen[COUNT] = {0};
  device_download(f->set.device, order, f->set.order, COUNT * sizeof *order);
  for (int i = 0; i < COUNT; i++) {
    assert_true(order[i] < COUNT);
    assert_int_equal(seen[order[i]]++, 0);
  }
}

static void check_order(Device device) {
  Fixture f;
  uint32_t order[4][COUNT];
  const uint64_t seeds[] = {1, 1, 2, 1};
  const int epochs[] = {0, 1, 0, 0};
  fixture_create(&f, device, 5);
  read_order(&f, order[0]);
  for (uint32_t i = 0; i < COUNT; i++) assert_int_equal(order[0][i], i); /* before the first shuffle: the file's */
  for (int i = 0; i < 4; i++) {
    device_set_shuffle(&f.set, seeds[i], epochs[i]);
    read_order(&f, order[i]);
  }
  assert_memory_not_equal(order[1], order[0], sizeof order[0]);
  assert_memory_not_equal(order[2], order[0], sizeof order[0]);
  assert_memory_equal(order[3], order[0], sizeof order[0]); /* whatever came between */
  fixture_destroy(&f);
}

/* Batches of 5 over 13 images, the last of 3: together every image once, in the order, and nothing beyond. */
static void check_batches(Device device) {
  Fixture f;
  uint32_t order[COUNT];
  fixture_create(&f, device, 5);
  device_set_shuffle(&f.set, 1, 3);
  read_order(&f, order);
  for (int start = 0; start < COUNT; start += 5) {
    int batch = COUNT - start < 5 ? COUNT - start : 5, poison[5] = {-1, -1, -1, -1, -1}, labels[5];
    float x[5 * PIXELS], untouched[5 * PIXELS];
    for (int i = 0; i < 5 * PIXELS; i++) untouched[i] = 77;
    device_upload(device, model_input(&f.net, 0), untouched, sizeof untouched);
    device_upload(device, model_labels(&f.net), poison, sizeof poison);
    device_set_gather(&f.set, &f.net, start, batch);
    device_download(device, x, model_input(&f.net, 0), sizeof x);
    device_download(device, labels, model_labels(&f.net), sizeof labels);
    for (int b = 0; b < 5; b++) {
      int image = b < batch ? (int)order[start + b] : -1;
      assert_int_equal(labels[b], image < 0 ? -1 : f.labels[image]);
      for (int i = 0; i < PIXELS; i++) assert_true(x[b * PIXELS + i] == (image < 0 ? 77 : normalized(&f, image, i)));
    }
  }
  fixture_destroy(&f);
}

/* Softmax of the linear layer in double, image by image, is what an evaluation in batches must come to. */
static void check_evaluation(Device device) {
  const int max_batches[] = {1, 5, COUNT, 20};
  for (int k = 0; k < 4; k++) {
    Fixture f;
    fixture_create(&f, device, max_batches[k]);
    float probabilities[COUNT * CLASSES], expected[COUNT * CLASSES];
    double loss = 0;
    int correct = 0;
    for (int n = 0; n < COUNT; n++) {
      double e[CLASSES], sum = 0;
      int best = 0;
      for (int c = 0; c < CLASSES; c++) {
        double logit = 0;
        for (int i = 0; i < PIXELS; i++) logit += (double)f.weights[c * PIXELS + i] * normalized(&f, n, i);
        sum += e[c] = exp(logit);
        if (e[c] > e[best]) best = c;
      }
      for (int c = 0; c < CLASSES; c++) expected[n * CLASSES + c] = (float)(e[c] / sum);
      loss -= log(e[f.labels[n]] / sum);
      correct += best == f.labels[n];
    }
    for (int run = 0; run < 2; run++) { /* the second does not add to the first */
      for (int i = 0; i < COUNT * CLASSES; i++) probabilities[i] = NAN;
      Totals totals = device_set_evaluate(&f.set, &f.net, probabilities);
      assert_matrix_close(probabilities, expected, COUNT, CLASSES, 1e-5, 1e-6);
      assert_true(fabs(totals.loss - loss) < 1e-4);
      assert_true(totals.correct == correct && correct > 0 && correct < COUNT);
    }
    fixture_destroy(&f);
  }
}

/* Any number of channels and classes: every pixel by its channel's mean and deviation, labels beyond a byte. */
static void check_any_shape(Device device, int channels, int height, int width, int classes) {
  enum { MOST = 4 * 33 * 7 };
  const size_t size = (size_t)channels * height * width;
  static uint8_t images[COUNT * MOST];
  static float x[COUNT * MOST];
  int labels[COUNT], got[COUNT];
  uint32_t order[COUNT];
  for (size_t i = 0; i < COUNT * size; i++) images[i] = (uint8_t)philox4x32(9, 0, i).word[0];
  for (int i = 0; i < COUNT; i++) labels[i] = classes - 1 - i;
  const DataSet host = {shape3(channels, height, width), COUNT, classes, images, labels};
  DataNorm norm;
  Error err;
  DeviceSet set;
  Model net;
  if (data_statistics(&host, &norm, &err) != 0) fail_msg("%s", err.message);
  device_set_create(&set, device, &test_batches, &host, COUNT, &norm);
  test_net_open(&net, host.shape, 2, device, COUNT);
  device_set_shuffle(&set, 5, 1);
  device_download(device, order, set.order, sizeof order);
  device_set_gather(&set, &net, 0, COUNT);
  device_download(device, x, model_input(&net, 0), COUNT * size * sizeof *x);
  device_download(device, got, model_labels(&net), sizeof got);
  for (int n = 0; n < COUNT; n++) {
    assert_int_equal(got[n], labels[order[n]]);
    for (size_t i = 0; i < size; i++) {
      const int c = (int)(i / ((size_t)height * width));
      const float pixel = (float)images[order[n] * size + i] / 255.0f;
      assert_true(x[n * size + i] == (pixel - norm.mean[c]) / norm.stddev[c]);
    }
  }
  device_set_destroy(&set);
  model_close(&net);
}

static void check_shapes(Device device) {
  check_any_shape(device, 3, 5, 7, 10);
  check_any_shape(device, 4, 33, 7, 1000);
  check_any_shape(device, 1, 1, 3, 300);
  check_any_shape(device, 1, 31, 3, 256); /* the batches' own kernel */
}

/* ---- a set that stays in the host's memory ---- */

/* Every kind of change. */
static const Augment everything = {"everything", {1, 1, 1u << 27, 1u << 26, 6554, 32768, 2, 13107, 13107, 13107}};

/* Asks two sets for the same batch, and compares every bit. */
static void expect_same_batch(const DeviceSet *resident, const DeviceSet *streamed, Model *net, int start, int batch) {
  enum { MOST = COUNT * 3 * 5 * 7 };
  static float x[2][MOST];
  int labels[2][COUNT];
  const size_t bytes = (size_t)batch * resident->pixels * sizeof(float);
  for (int i = 0; i < 2; i++) {
    device_set_gather(i == 0 ? resident : streamed, net, start, batch);
    device_download(net->context.device, x[i], model_input(net, 0), bytes);
    device_download(net->context.device, labels[i], model_labels(net), batch * sizeof(int));
  }
  assert_memory_equal(x[1], x[0], bytes);
  assert_memory_equal(labels[1], labels[0], batch * sizeof(int));
}

static void check_streamed(Device device, int channels, int classes, const Augment *augment) {
  static uint8_t images[COUNT * 3 * 5 * 7];
  const Shape shape = shape3(channels, 5, 7);
  const size_t bytes = COUNT * shape_count(shape);
  int labels[COUNT];
  for (size_t i = 0; i < bytes; i++) images[i] = (uint8_t)philox4x32(11, 0, i).word[0];
  for (int i = 0; i < COUNT; i++) labels[i] = classes - 1 - i;
  const DataSet host = {shape, COUNT, classes, images, labels};
  DataNorm norm;
  Error err;
  DeviceSet resident, streamed;
  Model net;
  if (data_statistics(&host, &norm, &err) != 0) fail_msg("%s", err.message);
  test_net_open(&net, shape, 2, device, 5);
  device_set_create(&resident, device, &test_batches, &host, COUNT, &norm);
  device_set_create_streamed(&streamed, device, &test_batches, &host, COUNT, &norm, 5);
  device_set_augment(&resident, augment);
  device_set_augment(&streamed, augment);
  for (int epoch = -1; epoch < 3; epoch++) {
    for (int i = 0; i < 2 && epoch >= 0; i++) device_set_shuffle(i == 0 ? &resident : &streamed, 7, epoch);
    for (int start = 0; start < COUNT; start += 5)
      expect_same_batch(&resident, &streamed, &net, start, COUNT - start < 5 ? COUNT - start : 5);
  }
  /* what was not expected: again, back, forth, another size, the last image alone */
  const int starts[] = {10, 10, 0, 5, 5, 1, 12, 0, 12}, batches[] = {3, 3, 5, 5, 2, 1, 1, 5, 1};
  for (size_t i = 0; i < sizeof starts / sizeof starts[0]; i++)
    expect_same_batch(&resident, &streamed, &net, starts[i], batches[i]);
  device_set_destroy(&resident);
  device_set_destroy(&streamed);
  model_close(&net);
}

static void check_streamed_sets(Device device) {
  check_streamed(device, 1, 20, &augment_none);
  check_streamed(device, 1, 20, &augment_shift);
  check_streamed(device, 3, 300, &everything);
}

/* The steps of an epoch are submitted without a look at one, so that copies and kernels overlap as they may. */
static void steps_follow_each_other_without_waiting(void **state) {
  (void)state;
  test_requires_gpu();
  enum { BATCH = 2, STEPS = COUNT / BATCH };
  Fixture f;
  DeviceSet streamed;
  float x[2][STEPS][BATCH * PIXELS];
  fixture_create(&f, DEVICE_GPU, BATCH);
  const DataSet host = {shape3(1, SIDE, SIDE), COUNT, CLASSES, f.images, f.labels};
  const DataNorm norm = {1, {mean}, {stddev}};
  device_set_create_streamed(&streamed, DEVICE_GPU, &test_batches, &host, COUNT, &norm, BATCH);
  float *kept = (float *)device_alloc(DEVICE_GPU, sizeof x[0]);
  for (int i = 0; i < 2; i++) {
    DeviceSet *set = i == 0 ? &f.set : &streamed;
    device_set_shuffle(set, 1, 1);
    for (int step = 0; step < STEPS; step++) {
      device_set_gather(set, &f.net, step * BATCH, BATCH);
      device_copy(DEVICE_GPU, kept + step * BATCH * PIXELS, model_input(&f.net, 0), sizeof x[0][0]);
    }
    device_download(DEVICE_GPU, x[i], kept, sizeof x[i]);
  }
  assert_memory_equal(x[1], x[0], sizeof x[0]);
  device_free(DEVICE_GPU, kept);
  device_set_destroy(&streamed);
  fixture_destroy(&f);
}

static void a_streamed_set_gives_the_same_bits_cpu(void **state) {
  (void)state;
  check_streamed_sets(DEVICE_CPU);
}

static void a_streamed_set_gives_the_same_bits_gpu(void **state) {
  (void)state;
  test_requires_gpu();
  check_streamed_sets(DEVICE_GPU);
}

static void any_shape_and_any_number_of_classes_cpu(void **state) {
  (void)state;
  check_shapes(DEVICE_CPU);
}

static void the_order_is_new_every_epoch_cpu(void **state) {
  (void)state;
  check_order(DEVICE_CPU);
}

static void batches_follow_the_order_cpu(void **state) {
  (void)state;
  check_batches(DEVICE_CPU);
}

static void evaluation_in_batches_is_one_by_one_cpu(void **state) {
  (void)state;
  check_evaluation(DEVICE_CPU);
}

static void the_gpu_does_the_same(void **state) {
  (void)state;
  test_requires_gpu();
  check_order(DEVICE_GPU);
  check_batches(DEVICE_GPU);
  check_evaluation(DEVICE_GPU);
  check_shapes(DEVICE_GPU);
}

static void gather_too_many(void) {
  Fixture f;
  fixture_create(&f, DEVICE_CPU, 5);
  device_set_gather(&f.set, &f.net, 0, 6);
}

static void a_batch_too_large_is_refused(void **state) {
  (void)state;
  char output[512];
  assert_int_equal(test_fork(gather_too_many, output, sizeof output), 1);
  assert_non_null(strstr(output, "a batch of 6 in a network made for 5"));
}

/* ---- a validation set ---- */

enum { SPLIT_COUNT = 1000 };

/* Images whose pixels and label say which one they are. */
static DataSet split_set(void) {
  DataSet set = {shape3(1, 1, 2), SPLIT_COUNT, SPLIT_COUNT, NULL, NULL};
  set.samples = (uint8_t *)xmalloc(2 * SPLIT_COUNT);
  set.labels = (int *)xmalloc(SPLIT_COUNT * sizeof *set.labels);
  for (int i = 0; i < SPLIT_COUNT; i++) {
    set.samples[2 * i] = (uint8_t)(i % 251);
    set.samples[2 * i + 1] = (uint8_t)(i / 251);
    set.labels[i] = i;
  }
  return set;
}

/* The part is in order, whole images of the set; marks them in `seen`. */
static void check_part(const DataSet *part, int seen[SPLIT_COUNT]) {
  for (int i = 0; i < part->count; i++) {
    const int image = part->samples[2 * i] + 251 * part->samples[2 * i + 1];
    assert_int_equal(part->labels[i], image);
    assert_int_equal(seen[image]++, 0);
    assert_true(i == 0 || image > part->labels[i - 1]);
  }
}

static void a_split_parts_the_images(void **state) {
  (void)state;
  Error err;
  const double shares[] = {0.001, 0.1, 0.25, 0.999};
  const int expected[] = {1, 100, 250, 999};
  int firsts[3] = {0, 0, 0};
  for (int k = 0; k < 4; k++)
    for (int seed = 0; seed < 3; seed++) {
      DataSet train = split_set(), part;
      int seen[SPLIT_COUNT] = {0};
      if (data_split(&train, &part, shares[k], (uint64_t)seed % 2, &err) != 0) fail_msg("%s", err.message);
      assert_int_equal(part.count, expected[k]);
      assert_int_equal(train.count, SPLIT_COUNT - expected[k]);
      check_part(&train, seen);
      check_part(&part, seen);
      if (k == 1) {
        for (int i = 0; i < part.count; i++) firsts[seed] += part.labels[i] < SPLIT_COUNT / 2;
        firsts[seed] = firsts[seed] * SPLIT_COUNT + part.labels[0];
      }
      data_free(&train);
      data_free(&part);
    }
  assert_true(firsts[0] == firsts[2] && firsts[0] != firsts[1]); /* by the seed */
  for (int seed = 0; seed < 2; seed++) /* of 100, about 50 in each half: 5 deviations of 4.7 */
    assert_true(firsts[seed] / SPLIT_COUNT > 26 && firsts[seed] / SPLIT_COUNT < 74);
}

static void a_split_that_leaves_nothing_is_refused(void **state) {
  (void)state;
  Error err;
  const double shares[] = {0, 0.0004, 0.9996, 1};
  for (int k = 0; k < 4; k++) {
    DataSet train = split_set(), part;
    assert_int_equal(data_split(&train, &part, shares[k], 1, &err), -1);
    assert_non_null(strstr(err.message, "of 1000 images is "));
    assert_non_null(strstr(err.message, "; at least 1, and not all of them, is expected"));
    assert_int_equal(train.count, SPLIT_COUNT);
    data_free(&train);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_batch_too_large_is_refused),
      cmocka_unit_test(the_order_is_new_every_epoch_cpu),
      cmocka_unit_test(batches_follow_the_order_cpu),
      cmocka_unit_test(evaluation_in_batches_is_one_by_one_cpu),
      cmocka_unit_test(any_shape_and_any_number_of_classes_cpu),
      cmocka_unit_test(a_streamed_set_gives_the_same_bits_cpu),
      cmocka_unit_test(a_streamed_set_gives_the_same_bits_gpu),
      cmocka_unit_test(steps_follow_each_other_without_waiting),
      cmocka_unit_test(the_gpu_does_the_same),
      cmocka_unit_test(a_split_parts_the_images),
      cmocka_unit_test(a_split_that_leaves_nothing_is_refused),
  };
  return TEST_MAIN("device_set", tests);
}
