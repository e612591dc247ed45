/* mlp.cu - a network of any number of layers, and a check that its gradients are right.
 *
 *     bazel run //phase2_mlp:mlp
 *     bazel run //phase2_mlp:mlp -- --layers=784,64,32,10 --activation=tanh --momentum=0 --lr=0.1
 *     bazel run //phase2_mlp:mlp -- --fault=bend           what a mistake in the backward pass looks like
 *
 * A network with a wrong gradient still trains, only worse: the loss curve does not show the mistake. But a derivative
 * has a definition that can be computed: move one parameter up and down by h, and measure how much the loss changes.
 * The first table shows this beside the result of the backward pass, from the last layer to the first.
 *
 * Then the network trains at a constant learning rate. The loop in train() is complete: a new order each epoch, a
 * batch, forward, loss, backward, update. The loss is logged every ten steps, and drawn. */
#include "common/nn/train_options.h"
#include "common/plot.h"
#include "common/progress.h"
#include "common/threads_begin.h"
#include "common/timer.h"
#include "common/train_log.h"
#include "phase2_mlp/03_mlp/mlp_options.cuh"
#include "phase2_mlp/05_batches/batches_op.cuh"

enum { CHECK_BATCH = 8, CHECK_ENTRIES = 40, CHECK_SHOWN = 3, LOG_EVERY = 10, EVALUATION_BATCH = 500 };

/* Multiplications that the check may take: about 5 s on one core, which only wide networks reach. */
#define CHECK_WORK 5e9

typedef enum Fault { FAULT_NONE, FAULT_BEND, FAULT_BIAS, FAULT_MEAN, FAULTS } Fault;

static const char *const fault_names[FAULTS] = {"none", "bend", "bias", "mean"};

typedef struct Options {
  TrainOptions train;
  Fault fault;
} Options;

/* ---------------------------------------------------------------------------------------------------------------- */
/* The gradient check */

/* Common mistakes, for --fault: the backward pass of an activation does nothing, the gradients of the biases are
 * forgotten, the loss is summed and not averaged. */
static void skip_backward(const Context *context, const Node *node, const OpArrays *a) {
  (void)context, (void)node, (void)a; /* in place: dx is dy */
}

static void make_fault(Model *net, Fault fault) {
  static Op skipping = activation_ops[ACTIVATION_RELU];
  skipping.forward = activation_op_forward;
  skipping.backward = skip_backward;
  for (int i = 0; i < net->graph->count; i++)
    if (fault == FAULT_BEND && net->plan.node[i].in_place) net->graph->nodes[i].op = &skipping;
}

static void spoil_gradients(const Model *net, float *gradients, Fault fault) {
  int node = 0, index = 0;
  const Param *p;
  while (fault == FAULT_BIAS && (p = model_next_param(net, &node, &index)) != NULL)
    if (p->rank == 1) memset(gradients + p->offset, 0, p->count * sizeof(float));
  for (size_t i = 0; fault == FAULT_MEAN && i < net->parameter_count; i++) gradients[i] *= CHECK_BATCH;
}

typedef struct Check {
  const MlpShape *shape;
  double *parameters, *x; /* (parameters), (CHECK_BATCH, inputs) */
  int labels[CHECK_BATCH];
  float *gradients; /* analytic */
  uint64_t seed;
  size_t entries; /* of each tensor, at most */
  double worst;   /* difference, in units of its tensor's largest gradient */
} Check;

/* Each entry costs two losses, and a loss costs one multiplication per parameter and image. */
static size_t check_entries(const MlpShape *shape) {
  double entry = 2.0 * CHECK_BATCH * mlp_parameters(shape), tensors = 2 * (shape->count - 1);
  return (size_t)fmax(1, fmin(CHECK_ENTRIES, CHECK_WORK / (entry * tensors)));
}

/* The rows of one tensor: a few entries, and the largest difference of all that were checked. 1 where it is right. */
static int check_tensor(Check *check, const char *layer, const char *tensor, size_t begin, size_t count, int columns,
                        uint32_t stream) {
  char name[48], entry[48];
  double largest = 0, difference = 0;
  size_t checked = count < check->entries ? count : check->entries, compared = 0, shown = 0;
  Progress progress;
  int finite = 1; /* all of them, not only those that are compared; fmax() would let a NaN pass */
  for (size_t i = 0; i < count; i++) {
    largest = fmax(largest, fabs((double)check->gradients[begin + i]));
    finite = finite && isfinite(check->gradients[begin + i]);
  }
  snprintf(name, sizeof name, "%s.%s", layer, tensor);
  progress_begin(&progress, name, "entries", 0, (long)checked);
  for (size_t k = 0; k < checked; k++) {
    progress_update(&progress, (long)k, "%s", "");
    size_t i = checked == count ? k : philox_below((uint32_t)count, check->seed, stream, k);
    double analytic = check->gradients[begin + i];
    double numeric =
        mlp_check_gradient(check->shape, check->parameters, begin + i, check->x, check->labels, CHECK_BATCH);
    if (isnan(numeric)) continue; /* a corner of ReLU */
    compared++;
    difference = fmax(difference, fabs(analytic - numeric));
    if (shown >= CHECK_SHOWN || fabs(numeric) < 1e-9) continue; /* units that are off have nothing to show */
    progress_end(&progress);
    if (columns)
      snprintf(entry, sizeof entry, "[%zu][%zu]", i / columns, i % columns);
    else
      snprintf(entry, sizeof entry, "[%zu]", i);
    printf("  %-12s %-11s %14.9f %14.9f %12.1e\n", shown++ ? "" : name, entry, analytic, numeric,
           fabs(analytic - numeric));
  }
  progress_end(&progress);
  /* float rounds at 6e-8; sums over the layers before and after let that grow a hundredfold, not a thousandfold */
  double relative = !finite ? NAN : largest > 0 ? difference / largest : difference;
  int right = relative <= 2e-5;
  printf("  %-12s %zu of %zu entries: %.1e of the largest gradient, %.2e: %s\n", shown ? "" : name, compared, count,
         relative, largest, right ? "right" : "WRONG");
  fflush(stdout);
  check->worst = fmax(check->worst, relative);
  return right;
}

/* 0 where all are right. */
static int check_gradients(const Options *options, Model *net, const DeviceSet *set, double *worst) {
  const MlpShape *shape = &mlp_choice.shape;
  size_t n = net->parameter_count, inputs = (size_t)CHECK_BATCH * model_input_width(net, 0);
  double network = net->context.device == DEVICE_CPU ? 3.0 * n * sizeof(float) : 0; /* lies there, too */
  device_expect_memory(DEVICE_CPU, network + (double)n * (2 * sizeof(float) + sizeof(double)), "the gradient check",
                       "take a smaller network");
  Check check = Check();
  float *host = (float *)xmalloc((n + inputs) * sizeof(float)), *x = host + n;
  check.shape = shape;
  check.seed = options->train.common.seed;
  check.entries = check_entries(shape);
  check.parameters = (double *)xmalloc(n * sizeof(double));
  check.x = (double *)xmalloc(inputs * sizeof(double));
  check.gradients = (float *)xmalloc(n * sizeof(float));

  /* One step, without its update. */
  device_set_gather(set, net, 0, CHECK_BATCH);
  model_forward(net, CHECK_BATCH);
  model_score(net, CHECK_BATCH);
  model_backward(net, CHECK_BATCH);
  device_download(net->context.device, check.gradients, net->gradients, n * sizeof(float));
  spoil_gradients(net, check.gradients, options->fault);

  device_download(net->context.device, host, net->parameters, n * sizeof(float));
  device_download(net->context.device, x, model_input(net, 0), inputs * sizeof(float));
  device_download(net->context.device, check.labels, model_labels(net), sizeof check.labels);
  for (size_t i = 0; i < n; i++) check.parameters[i] = host[i];
  for (size_t i = 0; i < inputs; i++) check.x[i] = x[i];

  printf("\ngradients of a batch of %d: by the backward pass, and by moving a parameter up and down by 1e-5\n",
         CHECK_BATCH);
  if (check.entries < CHECK_ENTRIES)
    printf("(at most %zu random entries per tensor instead of %d: in a network this wide each entry takes long)\n",
           check.entries, CHECK_ENTRIES);
  printf("  %-12s %-11s %14s %14s %12s\n", "", "entry", "analytic", "numeric", "difference");
  int wrong = 0;
  for (int i = net->graph->count - 1; i >= 0; i--) {
    const Node *node = &net->graph->nodes[i];
    if (node->params == 0) continue;
    const Param *weight = &node->param[0], *bias = &node->param[1];
    const int stream = 2 * (int)node->order;
    wrong |= !check_tensor(&check, node->name, "bias", bias->offset, bias->count, 0, stream + 1);
    wrong |= !check_tensor(&check, node->name, "weight", weight->offset, weight->count, (int)weight->dim[1], stream);
  }
  *worst = check.worst;
  free(host);
  free(check.parameters);
  free(check.x);
  free(check.gradients);
  return wrong;
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* Training */

typedef struct Curve {
  double *step, *loss;
  size_t count;
} Curve;

static Curve curve_create(long most) {
  Curve curve = {(double *)xcalloc(most, sizeof(double)), (double *)xcalloc(most, sizeof(double)), 0};
  return curve;
}

static void curve_free(Curve *curve) {
  free(curve->step);
  free(curve->loss);
}

static void curve_add(Curve *curve, double step, double loss) {
  curve->step[curve->count] = step;
  curve->loss[curve->count++] = loss;
}

typedef struct Results {
  double train_loss, test_loss, test_accuracy, images_per_second, seconds;
} Results;

static void check_loss(const Options *options, double loss, long step) {
  if (!isfinite(loss))
    die("the loss is not finite at step %ld: the learning rate %g is too high for this network; try --lr=%g", step,
        options->train.lr, options->train.lr / 10);
}

static void train(const Options *options, Model *net, DeviceSet *set, const DeviceSet *test, Results *results) {
  const CommonOptions *common = &options->train.common;
  int batch_size = common->batch_size < set->count ? common->batch_size : set->count; /* there are no more images */
  long steps = (long)common->epochs * ((set->count + batch_size - 1) / batch_size), step = 0;
  const Totals none = {0, 0};
  Curve train = curve_create(steps), tested = curve_create(steps);
  printf("\nepoch   train loss   test loss   test accuracy    images/s\n");
  for (int epoch = 0; epoch < common->epochs; epoch++) {
    double start = seconds_now(), epoch_loss = 0, logged = 0;
    Progress progress;
    progress_begin(&progress, "training", "img", 0, set->count);
    model_reset_totals(net, 0, none);
    device_set_shuffle(set, common->seed, epoch);
    for (int position = 0; position < set->count; position += batch_size) {
      int left = set->count - position, batch = left < batch_size ? left : batch_size;
      device_set_gather(set, net, position, batch); /* the batch: x and labels */
      model_forward(net, batch);                    /* x -> logits */
      model_score(net, batch);                      /* -> probabilities, loss */
      model_backward(net, batch);                   /* -> gradients */
      sgd_update(net, (float)options->train.lr, (float)options->train.momentum);
      logged += batch;
      progress_update(&progress, position + batch, "%s", "");
      if (++step % LOG_EVERY && position + batch < set->count) continue;
      Totals totals = model_read_totals(net, 0); /* waits for the device */
      model_reset_totals(net, 0, none);
      check_loss(options, totals.loss, step);
      curve_add(&train, step, totals.loss / logged);
      epoch_loss += totals.loss;
      logged = 0;
    }
    progress_end(&progress);
    double seconds = seconds_now() - start;
    Totals totals = device_set_evaluate(test, net, NULL);
    check_loss(options, totals.loss, step); /* no training loss has shown yet what the last step did */
    results->seconds += seconds;
    results->images_per_second = set->count / seconds;
    results->train_loss = epoch_loss / set->count;
    results->test_loss = totals.loss / test->count;
    results->test_accuracy = totals.correct / test->count;
    curve_add(&tested, step, results->test_loss);
    printf("%5d %12.4f %11.4f %13.2f %% %11.0f\n", epoch + 1, results->train_loss, results->test_loss,
           100 * results->test_accuracy, results->images_per_second);
    fflush(stdout);
  }
  char path[PATH_MAX + 16], title[MLP_TEXT + 64], text[MLP_TEXT];
  mlp_text(&mlp_choice.shape, text);
  snprintf(title, sizeof title, "%s, learning rate %g, momentum %g", text, options->train.lr, options->train.momentum);
  snprintf(path, sizeof path, "%s/loss.svg", common->output_dir);
  const PlotSeries series[] = {{"training loss", train.step, train.loss, train.count, 0},
                               {"test loss", tested.step, tested.loss, tested.count, 0}};
  const Plot plot = {title, "step", "loss (cross-entropy)", NULL, 0, 1, series, 2};
  if (plot_or_note(&plot, path) == 0) {
    printf("\nthe curve is in %s\n", path);
    snprintf(path, sizeof path, "%s/loss.png", common->output_dir);
    plot_or_note(&plot, path);
  }
  curve_free(&train);
  curve_free(&tested);
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* The program */

enum { OPTION_FAULT = 1 };

static error_t parse(int key, char *arg, struct argp_state *state) {
  Options *options = (Options *)state->input;
  switch (key) {
    case OPTION_FAULT:
      for (int fault = 0; fault < FAULTS; fault++) {
        options->fault = (Fault)fault;
        if (strcmp(arg, fault_names[fault]) == 0) return 0;
      }
      argp_error(state, "--fault=%s: none, bend, bias or mean is expected", arg);
      return 0;
    default:
      return ARGP_ERR_UNKNOWN;
  }
}

static void load(const char *directory, DataSplit split, int count, int least, DataSet *set) {
  Error err;
  if (data_load(&data_mnist, directory, split, set, &err) != 0) die("%s", err.message);
  data_keep_first(set, count);
  if (set->count < least) die("%s: %d images are too few for the gradient check", directory, set->count);
}

int main(int argc, char **argv) {
  static const struct argp_option rows[] = {
      {"fault", OPTION_FAULT, "NAME", 0,
       "A mistake in the backward pass: bend (the derivative of the activations is left out), bias (the gradients of "
       "the "
       "biases are left out), mean (the loss is summed over the batch, not averaged)",
       0},
      OPTION_END};
  const struct argp_child children[] = {{mlp_options("784,128,10", ACTIVATION_RELU), 0, NULL, 0}, {NULL, 0, NULL, 0}};
  const struct argp own = {
      rows,     parse, NULL, "Checks the gradients of a multi-layer perceptron entry by entry, and trains it on MNIST.",
      children, NULL,  NULL};
  static Options options;
  threads_begin();
  train_options_default(&options.train, OPTIONS_TRAINER,
                        TRAIN_LR | TRAIN_MOMENTUM | TRAIN_IMAGES | TRAIN_TEST_IMAGES | TRAIN_THREADS);
  options.train.common.epochs = 3;
  options.train.lr = 0.05;
  options.train.momentum = 0.9;
  options.train.train_images = 10000;
  options.train.test_images = 2000;
  options.train.train_images_least = CHECK_BATCH;
  train_options_parse(&options.train, &own, &options, own.doc, argc, argv);

  Error err;
  char description[512], text[MLP_TEXT];
  const CommonOptions *common = &options.train.common;
  const MlpShape *shape = &mlp_choice.shape;
  int inputs = MNIST_SIDE * MNIST_SIDE, classes = shape->width[shape->count - 1];
  if (shape->width[0] != inputs || classes < MNIST_CLASSES)
    die("--layers: %d inputs and %d classes; the images have %d pixels, and %d classes", shape->width[0], classes,
        inputs, MNIST_CLASSES);
  if (device_open(common->device, description, sizeof description, &err) != 0) die("%s", err.message);
  if (make_directories(common->output_dir, &err) != 0) die("--output-dir: %s", err.message);

  DataSet host_train, host_test;
  DataNorm norm;
  DeviceSet train_set, test_set;
  load(common->data_dir, DATA_TRAIN, options.train.train_images, CHECK_BATCH, &host_train);
  load(common->data_dir, DATA_TEST, options.train.test_images, 1, &host_test);
  if (data_statistics(&host_train, &norm, &err) != 0) die("%s", err.message);
  device_set_create(&train_set, common->device, &batch_kernels, &host_train, host_train.count, &norm);
  device_set_create(&test_set, common->device, &batch_kernels, &host_test, host_test.count, &norm);

  mlp_text(shape, text);
  printf("network %s: %zu parameters, on %s\n", text, mlp_parameters(shape), description);
  printf("%d training images, %d test images; batch %d, learning rate %g, momentum %g, seed %llu\n", train_set.count,
         test_set.count, common->batch_size, options.train.lr, options.train.momentum,
         (unsigned long long)common->seed);
  fflush(stdout);

  static Model mlp;
  int largest = common->batch_size < train_set.count ? common->batch_size : train_set.count;
  mlp_create(&mlp, shape, common->device, largest > EVALUATION_BATCH ? largest : EVALUATION_BATCH);
  model_init(&mlp, common->seed);
  make_fault(&mlp, options.fault);

  double worst;
  Results results = Results();
  if (check_gradients(&options, &mlp, &train_set, &worst) != 0) {
    fflush(stdout);
    die("the gradients are wrong: training stops before it begins%s", options.fault ? ", as --fault asked for" : "");
  }
  train(&options, &mlp, &train_set, &test_set, &results);
  if (common->json &&
      json_result(json_pack("{s:s, s:s, s:I, s:i, s:f, s:f, s:f, s:f, s:f, s:f}", "program",
                            program_invocation_short_name, "device", device_name(common->device), "seed",
                            (json_int_t)common->seed, "epochs", common->epochs, "test_accuracy", results.test_accuracy,
                            "test_loss", results.test_loss, "train_loss", results.train_loss, "images_per_second",
                            results.images_per_second, "seconds", results.seconds, "gradient_error", worst),
                  &err) != 0)
    die("%s", err.message);
  device_set_destroy(&train_set);
  device_set_destroy(&test_set);
  data_free(&host_train);
  data_free(&host_test);
  model_close(&mlp);
  stdout_finish();
  return 0;
}
