/* batch_orders.cu - how the order of the images changes what a network learns from them.
 *
 *     bazel run //phase2_mlp:batch_orders
 *
 * The same layer learns the same images from the same weights five times; only the order differs. Sorted by their
 * labels, a batch holds one digit: the layer learns to say "one", then "two", and forgets the zeros meanwhile. In the
 * order of the file, which its authors mixed, and in shuffled orders, batches are mixed, and it learns. Between these
 * orders the differences are noise here. A new order for each epoch is what the theory of stochastic gradient descent
 * assumes; it costs next to nothing, and it does not depend on the order in the file. */
#include "common/nn/train_options.h"
#include "common/plot.h"
#include "common/threads_begin.h"
#include "common/timer.h"
#include "common/train_log.h"
#include "phase2_mlp/03_mlp/mlp.cuh"
#include "phase2_mlp/05_batches/batches_op.cuh"

enum { LOOKS = 8 /* at the test set, an epoch */, TEST_IMAGES = 2000, MOST_EPOCHS = 100, ORDERS = 5 };

/* ---- orders ---- */

/* All zeros, all ones, ... */
static void order_by_label(uint32_t *order, const DataSet *set, int count) {
  int at = 0;
  for (int label = 0; label < MNIST_CLASSES; label++)
    for (int i = 0; i < count; i++)
      if (set->labels[i] == label) order[at++] = (uint32_t)i;
}

static void order_of(int kind, uint32_t *order, const DataSet *set, int count, uint64_t seed, int epoch) {
  if (kind == 0) order_by_label(order, set, count);
  for (int i = 0; i < count && kind == 1; i++) order[i] = (uint32_t)i;
  if (kind == 2) batches_shuffle(order, (uint32_t)count, seed, 0);
  if (kind == 3) batches_shuffle(order, (uint32_t)count, seed, (uint32_t)epoch);
  if (kind == 4) batches_cipher_cpu(order, (uint32_t)count, seed, (uint32_t)epoch);
}

static const char *const order_names[ORDERS] = {"by label", "as in the file", "one shuffle", "Fisher-Yates, each epoch",
                                                "cipher, each epoch"};

/* The mean over all batches of how many in a hundred are of the batch's most frequent class. */
static double largest_class(const uint32_t *order, const DataSet *set, int count, int batch) {
  double sum = 0;
  for (int start = 0; start < count; start += batch) {
    int of_class[MNIST_CLASSES] = {0}, size = batches_size_at(count, batch, start), most = 0;
    for (int b = 0; b < size; b++) {
      int n = ++of_class[set->labels[order[start + b]]];
      if (n > most) most = n;
    }
    sum += (double)most / size;
  }
  return sum / batches_steps(count, batch);
}

/* ---- training ---- */

typedef struct Curve {
  double largest_class;                                              /* of the first epoch, 0 to 1 */
  double epochs[MOST_EPOCHS * LOOKS], accuracy[MOST_EPOCHS * LOOKS]; /* of each look; accuracy in per cent */
  int looks;
} Curve;

static void train(const TrainOptions *options, const DataSet *host, DeviceSet *train_set, const DeviceSet *test_set,
                  Model *net, int kind, Curve *curve) {
  const int batch = options->common.batch_size, steps = batches_steps(train_set->count, batch);
  model_init(net, options->common.seed);
  curve->looks = 0;
  for (int epoch = 0; epoch < options->common.epochs; epoch++) {
    order_of(kind, train_set->host_order, host, train_set->count, options->common.seed, epoch);
    if (epoch == 0) curve->largest_class = largest_class(train_set->host_order, host, train_set->count, batch);
    device_upload(train_set->device, train_set->order, train_set->host_order, train_set->count * sizeof(uint32_t));
    for (int step = 0; step < steps; step++) {
      int size = batches_size_at(train_set->count, batch, step * batch);
      device_set_gather(train_set, net, step * batch, size);
      sgd_train_step(net, size, (float)options->lr, 0);
      if ((step + 1) * LOOKS / steps == step * LOOKS / steps) continue;
      Totals totals = device_set_evaluate(test_set, net, NULL);
      if (!isfinite(totals.loss))
        die("the loss is not finite at step %d of epoch %d: the learning rate %g is too high; try --lr=%g", step + 1,
            epoch + 1, options->lr, options->lr / 10);
      curve->epochs[curve->looks] = epoch + (step + 1.0) / steps;
      curve->accuracy[curve->looks++] = 100 * totals.correct / test_set->count;
    }
  }
}

/* After epoch 1, 2, ... */
static double accuracy_after(const Curve *curve, int epoch, int epochs) {
  return curve->accuracy[curve->looks * epoch / epochs - 1];
}

static void print_curve(const Curve *curve, int kind, int epochs) {
  printf("%-26s %10.1f %% ", order_names[kind], 100 * curve->largest_class);
  for (int epoch = 1; epoch <= epochs && epoch <= 8; epoch++)
    printf(" %8.2f %%", accuracy_after(curve, epochs <= 8 ? epoch : epoch * epochs / 8, epochs));
  putchar('\n');
  fflush(stdout);
}

static void draw(const TrainOptions *options, const Curve *curves) {
  PlotSeries series[ORDERS];
  char path[PATH_MAX + 16];
  for (int kind = 0; kind < ORDERS; kind++) {
    const PlotSeries one = {order_names[kind], curves[kind].epochs, curves[kind].accuracy, (size_t)curves[kind].looks,
                            0};
    series[kind] = one;
  }
  const Plot plot = {
      "One layer on MNIST, by the order of its images", "epoch", "test accuracy, %", NULL, 0, 0, series, ORDERS};
  const char *const pictures[] = {"orders.svg", "orders.png"};
  for (int i = 0; i < 2; i++) {
    snprintf(path, sizeof path, "%s/%s", options->common.output_dir, pictures[i]);
    if (plot_or_note(&plot, path) != 0) return;
  }
  printf("\nDrawn: %s\n", path);
}

/* What the host needs for MNIST's 60000; the kernels' times are in the tables of //phase2_mlp:batches. */
static void time_orders(uint64_t seed) {
  enum { COUNT = 60000, ROUNDS = 5 };
  static uint32_t order[COUNT];
  static const struct {
    const char *name;
    void (*make)(uint32_t *, uint32_t, uint64_t, uint32_t);
  } ways[] = {{"Fisher-Yates", batches_shuffle}, {"sorted keys", batches_sort_cpu}, {"cipher", batches_cipher_cpu}};
  printf("\nAn order of %d images, made on the host:", COUNT);
  for (int w = 0; w < 3; w++) {
    double samples[ROUNDS];
    for (int i = 0; i < ROUNDS; i++) {
      double start = seconds_now();
      ways[w].make(order, COUNT, seed, (uint32_t)i);
      samples[i] = seconds_now() - start;
    }
    printf("%s %s %.1f ms", w > 0 ? "," : "", ways[w].name, 1e3 * timer_stats(samples, ROUNDS).median);
  }
  putchar('\n');
}

static void print_json(const TrainOptions *options, const Curve *curves) {
  Error err;
  json_t *orders = json_array();
  for (int kind = 0; kind < ORDERS; kind++) {
    json_t *accuracies = json_array();
    for (int epoch = 1; epoch <= options->common.epochs; epoch++)
      json_array_append_new(accuracies, json_real(accuracy_after(&curves[kind], epoch, options->common.epochs) / 100));
    json_array_append_new(orders, json_pack("{s:s, s:f, s:o}", "order", order_names[kind], "largest_class",
                                            curves[kind].largest_class, "test_accuracy", accuracies));
  }
  if (json_result(json_pack("{s:s, s:s, s:I, s:i, s:i, s:o}", "program", program_invocation_short_name, "device",
                            device_name(options->common.device), "seed", (json_int_t)options->common.seed, "epochs",
                            options->common.epochs, "batch_size", options->common.batch_size, "orders", orders),
                  &err) != 0)
    die("%s", err.message);
}

int main(int argc, char **argv) {
  static TrainOptions options;
  static Curve curves[ORDERS];
  Error err;
  char device[512];
  threads_begin();
  train_options_default(&options, OPTIONS_TRAINER, TRAIN_LR | TRAIN_IMAGES | TRAIN_THREADS);
  options.common.epochs = 3;
  options.train_images = 10000;
  options.train_images_least = MNIST_CLASSES;
  options.lr = 0.05;
  train_options_parse(&options, NULL, NULL,
                      "Trains one layer on MNIST five times, each time with the images in another order.", argc, argv);
  if (options.common.epochs > MOST_EPOCHS) die("--epochs=%d: at most %d", options.common.epochs, MOST_EPOCHS);

  DataSet train_host, test_host;
  DataNorm norm;
  const char *directory = options.common.data_dir;
  if (data_load(&data_mnist, directory, DATA_TRAIN, &train_host, &err) != 0 ||
      data_load(&data_mnist, directory, DATA_TEST, &test_host, &err) != 0 ||
      data_statistics(&train_host, &norm, &err) != 0)
    die("%s", err.message);
  if (make_directories(options.common.output_dir, &err) != 0) die("--output-dir: %s", err.message);
  if (device_open(options.common.device, device, sizeof device, &err) != 0) die("%s", err.message);

  int count = train_host.count < options.train_images ? train_host.count : options.train_images;
  int tests = test_host.count < TEST_IMAGES ? test_host.count : TEST_IMAGES;
  int batch = options.common.batch_size, steps = batches_steps(count, batch);
  int pixels = (int)shape_count(train_host.shape), last = batches_size_at(count, batch, (steps - 1) * batch);
  printf("batch_orders on %s\n", device);
  const int whole = last < batch ? steps - 1 : steps;
  printf("One layer, %d to %d; %d images, and %d others for the test; an epoch is ", pixels, MNIST_CLASSES, count,
         tests);
  if (whole > 0) printf("%d batch%s of %d", whole, whole == 1 ? "" : "es", batch);
  if (last < batch) printf("%sone of %d", whole > 0 ? " and " : "", last);
  printf("\n\n%-26s %12s   test accuracy after epoch %s\n", "order", "most of one",
         options.common.epochs == 1 ? "1" : "1, 2, ...");
  fflush(stdout);

  DeviceSet train_set, test_set;
  device_set_create(&train_set, options.common.device, &batch_kernels, &train_host, count, &norm);
  device_set_create(&test_set, options.common.device, &batch_kernels, &test_host, tests, &norm);
  Model net;
  sgd_model_open(&net, softmax_regression_graph(pixels, MNIST_CLASSES), options.common.device,
                 batch < count || batch < tests ? batch : count);
  for (int kind = 0; kind < ORDERS; kind++) {
    train(&options, &train_host, &train_set, &test_set, &net, kind, &curves[kind]);
    print_curve(&curves[kind], kind, options.common.epochs);
  }
  time_orders(options.common.seed);
  draw(&options, curves);
  if (options.common.json) print_json(&options, curves);

  model_close(&net);
  device_set_destroy(&train_set);
  device_set_destroy(&test_set);
  data_free(&train_host);
  data_free(&test_host);
  stdout_finish();
  return 0;
}
