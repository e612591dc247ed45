/* xor.cu - what one neuron cannot learn, and why two layers can.
 *
 *     bazel run //phase2_mlp:xor
 *
 * Four clouds, one in each quadrant; class 1 where exactly one coordinate is positive. No straight line has the two
 * classes on different sides. The program first shows one neuron: with weights of zero its gradient is zero, and its
 * loss cannot become smaller. Then it puts a hidden layer in between. Each hidden neuron has a line of its own, the
 * last neuron combines their outputs, and the gradient passes back through the hidden layer: hidden_layer.cuh.
 *
 * --sweep trains networks of several widths from several seeds each: how wide is wide enough? */
#include "common/nn/train_options.h"
#include "phase2_mlp/point_classifier/point_classifier.cuh"

enum { SWEEP_SEEDS = 20 };

typedef struct XorOptions {
  TrainOptions train;
  Activation activation;
  int points, frames, hidden, sweep;
} XorOptions;

static error_t parse(int key, char *arg, struct argp_state *state) {
  XorOptions *options = (XorOptions *)state->input;
  switch (key) {
    case 'w':
      options->hidden = (int)option_int(state, arg, "--hidden", 1, 1024);
      return 0;
    case 'a':
      if (!activation_named(arg, &options->activation))
        argp_error(state, "--activation=%s: relu, leaky_relu, sigmoid or tanh is expected", arg);
      return 0;
    case 'p':
      options->points = (int)option_int(state, arg, "--points", 4, 65536);
      if (options->points % 4 != 0) argp_error(state, "--points=%s: a multiple of 4 is expected, for four clouds", arg);
      return 0;
    case 'f':
      options->frames = (int)option_int(state, arg, "--frames", 1, SURFACE_FRAMES - 1);
      return 0;
    case 's':
      options->sweep = 1;
      return 0;
    default:
      return ARGP_ERR_UNKNOWN;
  }
}

static int most_at_once(const XorOptions *options) {
  return options->points > SURFACE_PLACES ? options->points : SURFACE_PLACES;
}

/* With all weights zero a neuron says 0.5 of every point. What is the gradient of its loss there? */
static void show_why(const XorOptions *options, const Points *points) {
  PointNet net = point_net_create(options->train.common.device, 0, options->activation, points->count);
  size_t bytes = (size_t)points->count * sizeof(float);
  float *x = (float *)device_alloc(net.device, 2 * bytes), *t = (float *)device_alloc(net.device, bytes);
  float gradient[3], loss;
  device_upload(net.device, x, points->x, 2 * bytes);
  device_upload(net.device, t, points->t, bytes);
  point_net_forward(&net, x, points->count); /* point_net_create() zeroes the weights */
  point_net_backward(&net, x, t, points->count);
  device_download(net.device, gradient, net.gradients, sizeof gradient);
  device_download(net.device, &loss, net.total, sizeof loss);
  printf("One neuron with weights 0 and bias 0: loss %.6f (ln 2 = %.6f), gradient %.1e, %.1e, %.1e.\n", (double)loss,
         log(2.0), (double)gradient[0], (double)gradient[1], (double)gradient[2]);
  puts(
      "A point (x,y) and its mirror image (-x,-y) have the same class, so their gradients of a weight cancel.\n"
      "The loss of one neuron is convex in its weights: where the gradient is zero, the loss is at its minimum.\n");
  device_free(net.device, x);
  device_free(net.device, t);
  point_net_destroy(&net);
}

static PointScore train(const XorOptions *options, const Points *points, int hidden, uint64_t seed, const PointRun *run,
                        Surface *surface) {
  PointNet net = point_net_create(options->train.common.device, hidden, options->activation,
                                  run->frames > 0 ? most_at_once(options) : points->count);
  PointScore score;
  Error err;
  point_net_init(&net, seed);
  if (point_net_train(&net, points, run, surface, &score, &err) != 0) die("%s", err.message);
  point_net_destroy(&net);
  return score;
}

/* One neuron, then the network, and the pictures of both. */
static void compare(const XorOptions *options, const Points *points, json_t *result) {
  const CommonOptions *common = &options->train.common;
  size_t losses = (size_t)common->epochs + 1;
  double *one_loss = (double *)xmalloc(losses * sizeof *one_loss), *loss = (double *)xmalloc(losses * sizeof *loss);
  char title[128], label[64];
  snprintf(title, sizeof title, "XOR: one neuron, then %d hidden %s", options->hidden,
           activation_name(options->activation));
  snprintf(label, sizeof label, "%d hidden %s", options->hidden, activation_name(options->activation));
  Surface surface = surface_make(title, points);
  double start = seconds_now();
  show_why(options, points);
  puts("x, o: points of class 1 and 0; X, O: those on the wrong side; dots: where the network says 1");
  PointRun run = {"one neuron", common->epochs, common->batch_size, options->train.lr, 1, stdout, 0, one_loss};
  PointScore one = train(options, points, 0, common->seed, &run, &surface);
  run.label = label;
  run.frames = options->frames;
  run.loss = loss;
  PointScore score = train(options, points, options->hidden, common->seed, &run, &surface);
  printf("\nAfter %d epochs one neuron has a loss of %.4f and %.1f %% right, with %s %.4f and %.1f %%.\n",
         common->epochs, one.loss, 100 * one.accuracy, label, score.loss, 100 * score.accuracy);
  if (score.accuracy < 1)
    puts("Not solved: more neurons (--hidden), more --epochs, another --seed or --activation may do it.");
  point_program_draw(common, &surface, "surface.png");
  point_program_plot(common, title, "one neuron", one_loss, label, loss, common->epochs);
  json_object_update_new(result, json_pack("{s:i, s:s, s:f, s:f, s:f, s:f, s:f}", "hidden", options->hidden,
                                           "activation", activation_name(options->activation), "one_neuron_loss",
                                           one.loss, "one_neuron_accuracy", one.accuracy, "train_loss", score.loss,
                                           "train_accuracy", score.accuracy, "seconds", seconds_now() - start));
  surface_free(&surface);
  free(one_loss);
  free(loss);
}

/* How many of SWEEP_SEEDS networks of each width have every point right within the epochs. */
static void sweep(const XorOptions *options, const Points *points, json_t *result) {
  static const int widths[] = {1, 2, 3, 4, 8, 127};
  PointRun run = {"",  options->train.common.epochs, options->train.common.batch_size, options->train.lr, 0, NULL, 1,
                  NULL};
  json_t *table = json_array();
  printf(
      "%s, learning rate %g, at most %d epochs, %d seeds per width\n\nhidden  solved  epochs, median  loss of the "
      "others\n",
      activation_name(options->activation), options->train.lr, run.epochs, SWEEP_SEEDS);
  for (size_t w = 0; w < sizeof widths / sizeof *widths; w++) {
    double epochs[SWEEP_SEEDS], others = 0;
    int solved = 0;
    for (int s = 0; s < SWEEP_SEEDS; s++) {
      PointScore score = train(options, points, widths[w], options->train.common.seed + (uint64_t)s, &run, NULL);
      if (score.accuracy == 1)
        epochs[solved++] = score.epochs;
      else
        others += score.loss;
    }
    printf("%6d  %3d/%d  ", widths[w], solved, SWEEP_SEEDS);
    json_t *row = json_pack("{s:i, s:i, s:i}", "hidden", widths[w], "solved", solved, "seeds", SWEEP_SEEDS);
    if (solved > 0) {
      qsort(epochs, (size_t)solved, sizeof *epochs, timer_compare);
      printf("%14.0f  ", epochs[solved / 2]);
      json_object_set_new(row, "median_epochs", json_real(epochs[solved / 2]));
    } else {
      printf("%14s  ", "-");
    }
    if (solved < SWEEP_SEEDS) {
      printf("%.4f\n", others / (SWEEP_SEEDS - solved));
      json_object_set_new(row, "loss_of_others", json_real(others / (SWEEP_SEEDS - solved)));
    } else {
      printf("-\n");
    }
    fflush(stdout);
    json_array_append_new(table, row);
  }
  json_object_set_new(result, "activation", json_string(activation_name(options->activation)));
  json_object_set_new(result, "sweep", table);
}

int main(int argc, char **argv) {
  static const struct argp_option rows[] = {
      {"hidden", 'w', "N", 0, "Neurons of the hidden layer (default: 3)", 0},
      {"activation", 'a', "NAME", 0, "relu, leaky_relu, sigmoid or tanh (default: tanh)", 0},
      {"points", 'p', "N", 0, "Points to learn from, a multiple of 4 (default: 200)", 0},
      {"frames", 'f', "N", 0, "How often the plane is drawn, last epoch included, first too from 2 on (default: 5)", 0},
      {"sweep", 's', NULL, 0, "Train widths from 1 to 127 instead, from 20 seeds each, and count which succeed", 0},
      OPTION_END};
  static const struct argp own = {rows, parse, NULL, "Trains one neuron, and a network with a hidden layer, on XOR.",
                                  NULL, NULL,  NULL};
  static XorOptions options;
  CommonOptions *common = &options.train.common;
  train_options_default(&options.train, OPTIONS_TRAINER & ~OPTIONS_DATA_DIR, TRAIN_LR);
  options.train.lr_most = 1e38; /* to see what happens */
  common->epochs = 500;
  common->batch_size = 200;
  options.activation = ACTIVATION_TANH;
  options.train.lr = 1;
  options.points = 200;
  options.frames = 5;
  options.hidden = 3;
  train_options_parse(&options.train, &own, &options, own.doc, argc, argv);
  point_program_open(common);
  Points points = points_xor(options.points, 0.4f, common->seed);
  json_t *result = point_program_json(common, &points, options.train.lr);
  if (options.sweep)
    sweep(&options, &points, result);
  else
    compare(&options, &points, result);
  points_free(&points);
  return point_program_close(common, result);
}
