/* regularization.cu - what each regularizer does to a network that has too few images: the same network, trained with
 * each method and several seeds.
 *
 *     bazel run //phase4_training:regularization
 *     bazel run //phase4_training:regularization -- --method=mixup:0.2 --method=mixup:1
 *     bazel run //phase4_training:regularization -- --schedule=linear --train-images=2000
 *
 * A perceptron of 784, 128, 128 and 10 units learns a few hundred images of MNIST by heart. The methods should narrow
 * the gap between training and test. After each epoch both sets are evaluated in the same way: plain labels, no mixing,
 * nothing dropped, and the average of the weights where there is one. The program prints means and standard deviations
 * over the seeds, and writes the curves (curves.csv, curves.png). */
#include "common/nn/optimizer.h"
#include "common/nn/train_options.h"
#include "common/nn/trainer.h"
#include "common/plot.h"
#include "common/threads_begin.h"
#include "phase1_building_blocks/12_dropout/dropout_op.cuh"
#include "phase2_mlp/03_mlp/mlp.cuh"
#include "phase2_mlp/05_batches/batches_op.cuh"

enum { MOST_METHODS = 16, MOST_SEEDS = 20 };

/* What a run is trained with, beside the command line; 0: without. */
typedef struct Regularizers {
  double weight_decay, dropout, label_smoothing, mixup, ema;
} Regularizers;

/* A method sets one of them, by its strength, or all together. */
typedef struct Method {
  const char *name, *optimizer;
  size_t member;        /* of Regularizers */
  double usual;         /* its strength; 0: there is nothing to set */
  double least, most;   /* of the strength */
  Regularizers besides; /* what it always has */
} Method;

#define MEMBER(name) offsetof(Regularizers, name)
static const Method methods[] = {
    {"none", "sgd", 0, 0, 0, 0, {0, 0, 0, 0, 0}},
    {"l2", "sgd", MEMBER(weight_decay), 0.005, 0, 1, {0, 0, 0, 0, 0}},
    {"dropout", "sgd", MEMBER(dropout), 0.5, 0, 0.95, {0, 0, 0, 0, 0}},
    {"label_smoothing", "sgd", MEMBER(label_smoothing), 0.1, 0, 0.99, {0, 0, 0, 0, 0}},
    {"mixup", "sgd", MEMBER(mixup), 0.4, 0, 100, {0, 0, 0, 0, 0}},
    {"ema", "sgd", MEMBER(ema), 0.98, 0, AVERAGE_MOST, {0, 0, 0, 0, 0}},
    {"together", "sgd", 0, 0, 0, 0, {0.005, 0.5, 0, 0.4, 0.98}},
    {"adam", "adam", 0, 0, 0, 0, {0, 0, 0, 0, 0}},
    {"adam_l2", "adam", MEMBER(weight_decay), 0.01, 0, 1, {0, 0, 0, 0, 0}},
    {"adamw", "adamw", MEMBER(weight_decay), 0.3, 0, 1, {0, 0, 0, 0, 0}},
};
enum { METHODS = sizeof methods / sizeof *methods };

/* Of one epoch, or of all seeds' sums: training loss and accuracy, test loss and accuracy. */
typedef enum Figure { TRAIN_LOSS, TRAIN_ACCURACY, TEST_LOSS, TEST_ACCURACY, FIGURES } Figure;

typedef struct MethodRun {
  const Method *method;
  double strength;
  char name[48];
  double *figure;              /* (seeds, epochs, FIGURES) */
  double *curve[FIGURES];      /* (epochs): means over the seeds */
  double mean[FIGURES + 1];    /* at the end; [FIGURES]: of test loss - training loss */
  double spread[FIGURES + 1];  /* standard deviations over the seeds */
  double lowest, lowest_epoch; /* of the mean curve of the test loss */
  int diverged;
} MethodRun;

typedef struct Program {
  TrainOptions train;
  MethodRun run[MOST_METHODS];
  int runs, seeds;
  double *epoch; /* 1, 2, ... */
} Program;

/* ---- options ---- */

static const char *method_names(void) {
  static char text[256];
  size_t used = 0;
  for (int i = 0; i < METHODS && used < sizeof text; i++)
    used += (size_t)snprintf(text + used, sizeof text - used, "%s%s", i ? ", " : "", methods[i].name);
  return text;
}

static void add_method(Program *p, const Method *method, double strength) {
  MethodRun *run = &p->run[p->runs++];
  run->method = method;
  run->strength = strength;
  if (method->usual > 0)
    snprintf(run->name, sizeof run->name, "%s:%g", method->name, strength);
  else
    snprintf(run->name, sizeof run->name, "%s", method->name);
}

/* "mixup" or "mixup:0.2" */
static void parse_method(Program *p, const char *arg, const struct argp_state *state) {
  const size_t length = strcspn(arg, ":");
  const Method *method = NULL;
  char option[64];
  for (int i = 0; i < METHODS; i++)
    if (strlen(methods[i].name) == length && strncmp(methods[i].name, arg, length) == 0) method = &methods[i];
  if (method == NULL) {
    argp_error(state, "--method=%.40s: one of %s is expected", arg, method_names());
    return;
  }
  if (p->runs == MOST_METHODS) argp_error(state, "--method: at most %d are compared", MOST_METHODS);
  if (arg[length] == ':' && method->usual == 0)
    argp_error(state, "--method=%.40s: %s has no strength; say --method=%s", arg, method->name, method->name);
  snprintf(option, sizeof option, "--method=%s", method->name);
  add_method(
      p, method,
      arg[length] == ':' ? option_float(state, arg + length + 1, option, method->least, method->most) : method->usual);
}

static error_t parse(int key, char *arg, struct argp_state *state) {
  Program *p = (Program *)state->input;
  switch (key) {
    case 'M':
      parse_method(p, arg, state);
      return 0;
    case 'N':
      p->seeds = (int)option_int(state, arg, "--seeds", 1, MOST_SEEDS);
      return 0;
    default:
      return ARGP_ERR_UNKNOWN;
  }
}

/* ---- training ---- */

static Graph *network(double drop) {
  Graph *g = graph_create();
  g->weight_init = &he_normal;
  int x = graph_input(g, "x", shape1(784));
  for (int i = 0; i < 2; i++) x = dropout(g, activation(g, linear(g, x, 128), ACTIVATION_RELU), (float)drop);
  x = linear(g, x, 10);
  graph_loss(g, &cross_entropy_loss, x, 1);
  return g;
}

/* SGD by the options' rate and momentum, the others by what is usual for them; the decay is the method's. */
static OptimizerSettings method_settings(const Program *p, const MethodRun *run, double weight_decay) {
  const OptimizerChoice *choice = optimizer_named(run->method->optimizer);
  OptimizerSettings settings = choice->usual;
  if (choice == optimizer_named("sgd")) {
    settings.lr = p->train.lr;
    settings.momentum = p->train.momentum;
  }
  settings.weight_decay = weight_decay;
  return settings;
}

static void open_network(const Program *p, const MethodRun *run, uint64_t seed, Model *net, TrainState *state) {
  const CommonOptions *common = &p->train.common;
  Error err;
  Context context;
  Regularizers with = run->method->besides;
  if (run->method->usual > 0) *(double *)((char *)&with + run->method->member) = run->strength;
  memset(&context, 0, sizeof context);
  context.device = common->device;
  context.seed = seed;
  context.label_smoothing = (float)with.label_smoothing;
  context.mixup = (float)with.mixup;
  const OptimizerSettings settings = method_settings(p, run, with.weight_decay);
  const Optimizer *optimizer = optimizer_named(run->method->optimizer)->choose(&settings);
  if (model_open(net, network(with.dropout), context, optimizer, common->batch_size, MODEL_TRAIN, &err) != 0)
    die("%s", err.message);
  net->hyper = optimizer_hyper(&settings);
  net->hyper.ema = with.ema;
  if (with.ema > 0) model_average_open(net);
  model_init(net, seed);
  state->seed = seed;
  state->lr = settings.lr;
  state->momentum = settings.momentum;
}

/* Both sets in the same way; 0 where the network has diverged. */
static int evaluate(const Trainer *t, double figure[FIGURES]) {
  const DeviceSet *sets[] = {t->train, t->test};
  model_swap_average(t->net);
  for (int i = 0; i < 2; i++) {
    const Totals totals = device_set_evaluate(sets[i], t->net, NULL);
    figure[2 * i] = totals.loss / sets[i]->count;
    figure[2 * i + 1] = totals.correct / sets[i]->count;
  }
  model_swap_average(t->net);
  return isfinite(figure[TRAIN_LOSS]) && isfinite(figure[TEST_LOSS]);
}

static void train_epoch(Trainer *t) {
  TrainState *state = &t->state;
  device_set_shuffle(t->train, state->seed, state->epoch);
  for (int start = 0; start < t->train->count; start += state->batch_size) {
    const int left = t->train->count - start;
    t->lr = trainer_learning_rate(&t->schedule, state);
    trainer_one_step(t, start, left < state->batch_size ? left : state->batch_size);
  }
  state->epoch++;
}

/* figure (epochs, FIGURES) */
static void train_network(const Program *p, MethodRun *run, DeviceSet *train, DeviceSet *test, uint64_t seed,
                          double *figure) {
  const CommonOptions *common = &p->train.common;
  Model net;
  Trainer t;
  memset(&t, 0, sizeof t);
  open_network(p, run, seed, &net, &t.state);
  t.net = &net;
  t.train = train;
  t.test = test;
  t.schedule = p->train.schedule;
  t.state.epochs = common->epochs;
  t.state.batch_size = common->batch_size;
  t.state.train_images = train->count;
  for (int epoch = 0; epoch < common->epochs && !run->diverged; epoch++, figure += FIGURES) {
    train_epoch(&t);
    run->diverged = !evaluate(&t, figure);
  }
  model_close(&net);
}

/* ---- results ---- */

static void mean_and_spread(const double *value, int count, double *mean, double *spread) {
  double sum = 0, squares = 0;
  for (int i = 0; i < count; i++) sum += value[i];
  *mean = sum / count;
  for (int i = 0; i < count; i++) squares += (value[i] - *mean) * (value[i] - *mean);
  *spread = count > 1 ? sqrt(squares / (count - 1)) : 0;
}

static void summarize(const Program *p, MethodRun *run) {
  const int epochs = p->train.common.epochs;
  double value[MOST_SEEDS];
  for (int f = 0; f <= FIGURES; f++) {
    for (int s = 0; s < p->seeds; s++) {
      const double *last = run->figure + ((size_t)s * epochs + epochs - 1) * FIGURES;
      value[s] = f < FIGURES ? last[f] : last[TEST_LOSS] - last[TRAIN_LOSS];
    }
    mean_and_spread(value, p->seeds, &run->mean[f], &run->spread[f]);
  }
  run->lowest = INFINITY;
  for (int e = 0; e < epochs; e++) {
    for (int f = 0; f < FIGURES; f++)
      for (int s = 0; s < p->seeds; s++)
        run->curve[f][e] += run->figure[((size_t)s * epochs + e) * FIGURES + f] / p->seeds;
    if (run->curve[TEST_LOSS][e] >= run->lowest) continue;
    run->lowest = run->curve[TEST_LOSS][e];
    run->lowest_epoch = e + 1;
  }
}

static void print_head(const Program *p, const char *device, int train, int test) {
  const CommonOptions *common = &p->train.common;
  const int many = p->seeds > 1;
  printf("regularization on %s\n%d images of MNIST in batches of %d, %d epochs, %d for the test", device, train,
         common->batch_size, common->epochs, test);
  if (many) printf("; mean of %d seeds ± standard deviation", p->seeds);
  printf("\n\n%-21s %7s %9s   %-*s   %-*s  %7s   %s\n", "method", "train", "accuracy", many ? 15 : 9, "test loss",
         many ? 14 : 8, "accuracy", "gap", "lowest test loss");
}

static void print_row(const Program *p, const MethodRun *run) {
  const double *m = run->mean, *s = run->spread;
  if (run->diverged) {
    printf("%-21s diverged\n", run->name);
  } else {
    printf("%-21s %7.4f %7.2f %%   ", run->name, m[TRAIN_LOSS], 100 * m[TRAIN_ACCURACY]);
    if (p->seeds > 1)
      printf("%6.4f ± %6.4f   %5.2f ± %4.2f %%", m[TEST_LOSS], s[TEST_LOSS], 100 * m[TEST_ACCURACY],
             100 * s[TEST_ACCURACY]);
    else
      printf("%9.4f   %6.2f %%", m[TEST_LOSS], 100 * m[TEST_ACCURACY]);
    printf("  %7.4f   %6.4f in epoch %g\n", m[FIGURES], run->lowest, run->lowest_epoch);
  }
  fflush(stdout);
}

/* A row for each method and epoch: what figure.svg of this lesson is drawn from. */
static int write_curves(const Program *p, const char *path, Error *err) {
  AtomicFile file;
  if (atomic_file_open(&file, path, err) != 0) return -1;
  fprintf(file.stream, "method,epoch,train_loss,train_accuracy,test_loss,test_accuracy\n");
  for (int r = 0; r < p->runs; r++)
    for (int e = 0; e < p->train.common.epochs && !p->run[r].diverged; e++) {
      fprintf(file.stream, "%s,%d", p->run[r].name, e + 1);
      for (int f = 0; f < FIGURES; f++) fprintf(file.stream, ",%.4g", p->run[r].curve[f][e]);
      fprintf(file.stream, "\n");
    }
  return atomic_file_commit(&file, err);
}

static void draw(const Program *p) {
  PlotSeries series[MOST_METHODS];
  char path[PATH_MAX + 32];
  size_t count = 0;
  for (int r = 0; r < p->runs; r++) {
    const MethodRun *run = &p->run[r];
    const PlotSeries one = {run->name, p->epoch, run->curve[TEST_LOSS], (size_t)p->train.common.epochs, 0};
    if (!run->diverged) series[count++] = one;
  }
  const Plot plot = {"The loss of the test set", "epoch", "loss", NULL, 0, 0, series, count};
  snprintf(path, sizeof path, "%s/curves.png", p->train.common.output_dir);
  if (count > 0 && plot_or_note(&plot, path) == 0) printf("Drawn: %s\n", path);
}

static void print_json(const Program *p) {
  static const char *const names[] = {"train_loss", "train_accuracy", "test_loss", "test_accuracy", "gap"};
  char key[48];
  Error err;
  json_t *runs = json_array();
  for (int r = 0; r < p->runs; r++) {
    const MethodRun *run = &p->run[r];
    json_t *row = json_pack("{s:s}", "method", run->name);
    for (int f = 0; f <= FIGURES && !run->diverged; f++) {
      snprintf(key, sizeof key, "%s_spread", names[f]);
      json_object_set_new(row, names[f], json_real(run->mean[f]));
      if (p->seeds > 1) json_object_set_new(row, key, json_real(run->spread[f]));
    }
    json_array_append_new(runs, row);
  }
  if (json_result(json_pack("{s:s, s:s, s:I, s:i, s:i, s:o}", "program", "regularization", "device",
                            device_name(p->train.common.device), "seed", (json_int_t)p->train.common.seed, "seeds",
                            p->seeds, "epochs", p->train.common.epochs, "runs", runs),
                  &err) != 0)
    die("%s", err.message);
}

/* ---- the program ---- */

static void load_sets(const Program *p, DataSet *train, DataSet *test, DataNorm *norm) {
  Error err;
  if (data_load_both(&data_mnist, p->train.common.data_dir, p->train.train_images, p->train.test_images, train, test,
                     norm, &err) != 0)
    die("%s", err.message);
}

static void default_options(Program *p) {
  train_options_default(&p->train, OPTIONS_TRAINER,
                        TRAIN_LR | TRAIN_MOMENTUM | TRAIN_SCHEDULE | TRAIN_IMAGES | TRAIN_TEST_IMAGES | TRAIN_THREADS);
  p->train.common.epochs = 40;
  p->train.common.batch_size = 50;
  p->train.train_images = 500;
  p->train.test_images = 5000;
  p->train.lr = 0.02;
  p->train.momentum = 0.9;
  p->train.schedule = lr_schedule(&schedule_constant);
  p->seeds = 3;
}

static void run_method(const Program *p, MethodRun *run, DeviceSet *train, DeviceSet *test) {
  const int epochs = p->train.common.epochs;
  run->figure = (double *)xcalloc((size_t)p->seeds * epochs * FIGURES, sizeof(double));
  for (int f = 0; f < FIGURES; f++) run->curve[f] = (double *)xcalloc((size_t)epochs, sizeof(double));
  for (int s = 0; s < p->seeds && !run->diverged; s++)
    train_network(p, run, train, test, p->train.common.seed + (uint64_t)s, run->figure + (size_t)s * epochs * FIGURES);
  summarize(p, run);
  print_row(p, run);
}

static void write_results(Program *p) {
  Error err;
  char path[PATH_MAX + 32];
  const int epochs = p->train.common.epochs;
  p->epoch = (double *)xcalloc((size_t)epochs, sizeof(double));
  for (int e = 0; e < epochs; e++) p->epoch[e] = e + 1;
  snprintf(path, sizeof path, "%s/curves.csv", p->train.common.output_dir);
  if (write_curves(p, path, &err) != 0) die("%s", err.message);
  printf("\nWritten: %s\n", path);
  draw(p);
  if (p->train.common.json) print_json(p);
  free(p->epoch);
}

int main(int argc, char **argv) {
  static char help[512];
  static Program p;
  char device[512];
  Error err;
  snprintf(
      help, sizeof help,
      "Train with this method, and with others that are named so; by default with all: %s. The strength is that of "
      "the option of this name of all programs",
      method_names());
  const struct argp_option rows[] = {
      {"method", 'M', "NAME[:STRENGTH]", 0, help, 0},
      {"seeds", 'N', "N", 0, "Train with each method N times, with the seeds --seed and after it (default: 3)", 0},
      OPTION_END};
  const struct argp own = {rows, parse, NULL, "Trains a network on few images with each method against overfitting.",
                           NULL, NULL,  NULL};
  threads_begin();
  default_options(&p);
  train_options_parse(&p.train, &own, &p, own.doc, argc, argv);
  const int all = p.runs == 0;
  for (int i = 0; i < METHODS && all; i++) add_method(&p, &methods[i], methods[i].usual);
  const CommonOptions *common = &p.train.common;
  DataSet train_host, test_host;
  DataNorm norm;
  load_sets(&p, &train_host, &test_host, &norm);
  if (make_directories(common->output_dir, &err) != 0) die("--output-dir: %s", err.message);
  if (device_open(common->device, device, sizeof device, &err) != 0) die("%s", err.message);
  print_head(&p, device, train_host.count, test_host.count);
  DeviceSet train, test;
  device_set_create(&train, common->device, &batch_kernels, &train_host, train_host.count, &norm);
  device_set_create(&test, common->device, &batch_kernels, &test_host, test_host.count, &norm);
  for (int i = 0; i < p.runs; i++) run_method(&p, &p.run[i], &train, &test);
  write_results(&p);
  for (int i = 0; i < p.runs; i++) {
    free(p.run[i].figure);
    for (int f = 0; f < FIGURES; f++) free(p.run[i].curve[f]);
  }
  device_set_destroy(&train);
  device_set_destroy(&test);
  data_free(&train_host);
  data_free(&test_host);
  stdout_finish();
  return 0;
}
