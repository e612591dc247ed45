/* perceptron.cu - one neuron learns to separate two clouds of points.
 *
 *     bazel run //phase2_mlp:perceptron
 *
 * A neuron multiplies each input by a weight and adds a bias: z = w0 x + w1 y + b. Where z is positive it says "class
 * 1"; the points with z = 0 are a straight line. The line begins at random, and after each batch every weight moves a
 * small way against the gradient of the loss. perceptron.cuh has three kernels for that, forward, gradient and update,
 * and point_classifier.cuh the loop around them. After some of the epochs the program draws what the neuron says of
 * each place of the plane. */
#include "common/nn/train_options.h"
#include "phase2_mlp/point_classifier/point_classifier.cuh"

typedef struct PerceptronOptions {
  TrainOptions train;
  int points, frames;
} PerceptronOptions;

static error_t parse(int key, char *arg, struct argp_state *state) {
  PerceptronOptions *options = (PerceptronOptions *)state->input;
  switch (key) {
    case 'p':
      options->points = (int)option_int(state, arg, "--points", 1, 65536);
      return 0;
    case 'f':
      options->frames = (int)option_int(state, arg, "--frames", 1, SURFACE_FRAMES);
      return 0;
    default:
      return ARGP_ERR_UNKNOWN;
  }
}

int main(int argc, char **argv) {
  static const struct argp_option rows[] = {
      {"points", 'p', "N", 0, "Points to learn from (default: 200)", 0},
      {"frames", 'f', "N", 0, "How often the plane is drawn, last epoch included, first too from 2 on (default: 6)", 0},
      OPTION_END};
  static const struct argp own = {
      rows, parse, NULL, "Trains one neuron on points in the plane that a line can separate.", NULL, NULL, NULL};
  static PerceptronOptions options;
  CommonOptions *common = &options.train.common;
  train_options_default(&options.train, OPTIONS_TRAINER & ~OPTIONS_DATA_DIR, TRAIN_LR);
  options.train.lr_most = 1e38; /* to see what happens */
  common->epochs = 20;
  common->batch_size = 20;
  options.train.lr = 0.2;
  options.points = 200;
  options.frames = 6;
  train_options_parse(&options.train, &own, &options, own.doc, argc, argv);
  point_program_open(common);

  Points points = points_separable(options.points, 0.15f, common->seed);
  Surface surface = surface_make("One neuron", &points);
  int most = points.count > SURFACE_PLACES ? points.count : SURFACE_PLACES;
  PointNet net = point_net_create(common->device, 0, ACTIVATION_TANH, most);
  point_net_init(&net, common->seed);

  double *losses = (double *)xmalloc(((size_t)common->epochs + 1) * sizeof *losses);
  PointRun run = {"", common->epochs, common->batch_size, options.train.lr, options.frames, stdout, 0, losses};
  PointScore score;
  Error err;
  double start = seconds_now();
  puts("x, o: points of class 1 and 0; X, O: those on the wrong side; dots: where the neuron says 1");
  if (point_net_train(&net, &points, &run, &surface, &score, &err) != 0) die("%s", err.message);
  double seconds = seconds_now() - start;

  float w[3]; /* two weights and the bias */
  device_download(net.device, w, net.parameters, sizeof w);
  printf("\nThe neuron: z = %.4g x %+.4g y %+.4g; loss %.4f, %.1f %% of %d points right\n", (double)w[0], (double)w[1],
         (double)w[2], score.loss, 100 * score.accuracy, points.count);
  point_program_draw(common, &surface, "boundary.png");
  point_program_plot(common, "One neuron", "loss of all points", losses, NULL, NULL, common->epochs);
  json_t *result = point_program_json(common, &points, options.train.lr);
  json_object_update_new(
      result, json_pack("{s:f, s:f, s:f, s:[fff]}", "train_loss", score.loss, "train_accuracy", score.accuracy,
                        "seconds", seconds, "parameters", (double)w[0], (double)w[1], (double)w[2]));
  int status = point_program_close(common, result);
  free(losses);
  surface_free(&surface);
  points_free(&points);
  point_net_destroy(&net);
  return status;
}
