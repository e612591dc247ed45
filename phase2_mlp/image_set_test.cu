/* An image set on its device: a new order every epoch, batches out of it, evaluation in batches as one by one. */
#include "phase2_mlp/image_set.cuh"

#include "common/test.h"
#include "phase2_mlp/03_mlp/mlp.cuh"

enum { COUNT = 13, SIDE = 3, PIXELS = SIDE * SIDE, CLASSES = 4 };

static const float mean = 0.25f, stddev = 0.5f;

typedef struct Fixture {
  unsigned char images[COUNT * PIXELS], labels[COUNT];
  float weights[CLASSES * PIXELS];
  Model net;
  ImageSet set;
} Fixture;

static void fixture_create(Fixture *f, Device device, int max_batch) {
  for (int i = 0; i < COUNT * PIXELS; i++) f->images[i] = (unsigned char)philox4x32(3, 0, i).word[0];
  for (int i = 0; i < COUNT; i++) f->labels[i] = (unsigned char)(i * i % CLASSES + i % 3 / 2);
  MnistSet host = {COUNT, SIDE, SIDE, f->images, f->labels};
  image_set_create(&f->set, device, &host, COUNT, mean, stddev);
  sgd_model_open(&f->net, softmax_regression_graph(PIXELS, CLASSES), device, max_batch);
  model_init(&f->net, 1);
  test_random_fill(f->weights, CLASSES * PIXELS, 4);
  device_upload(device, f->net.parameters, f->weights, sizeof f->weights);
}

static void fixture_destroy(Fixture *f) {
  image_set_destroy(&f->set);
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
    image_set_shuffle(&f.set, seeds[i], epochs[i]);
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
  image_set_shuffle(&f.set, 1, 3);
  read_order(&f, order);
  for (int start = 0; start < COUNT; start += 5) {
    int batch = COUNT - start < 5 ? COUNT - start : 5, poison[5] = {-1, -1, -1, -1, -1}, labels[5];
    float x[5 * PIXELS], untouched[5 * PIXELS];
    for (int i = 0; i < 5 * PIXELS; i++) untouched[i] = 77;
    device_upload(device, model_input(&f.net, 0), untouched, sizeof untouched);
    device_upload(device, model_labels(&f.net), poison, sizeof poison);
    image_set_gather(&f.set, &f.net, start, batch);
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
      Totals totals = image_set_evaluate(&f.set, &f.net, probabilities);
      assert_matrix_close(probabilities, expected, COUNT, CLASSES, 1e-5, 1e-6);
      assert_true(fabs(totals.loss - loss) < 1e-4);
      assert_true(totals.correct == correct && correct > 0 && correct < COUNT);
    }
    fixture_destroy(&f);
  }
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
}

static void gather_too_many(void) {
  Fixture f;
  fixture_create(&f, DEVICE_CPU, 5);
  image_set_gather(&f.set, &f.net, 0, 6);
}

static void a_batch_too_large_is_refused(void **state) {
  (void)state;
  char output[512];
  assert_int_equal(test_fork(gather_too_many, output, sizeof output), 1);
  assert_non_null(strstr(output, "a batch of 6 in a network made for 5"));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_batch_too_large_is_refused), cmocka_unit_test(the_order_is_new_every_epoch_cpu),
      cmocka_unit_test(batches_follow_the_order_cpu), cmocka_unit_test(evaluation_in_batches_is_one_by_one_cpu),
      cmocka_unit_test(the_gpu_does_the_same),
  };
  return TEST_MAIN("image_set", tests);
}
