/* optimizer_paths.cu - the paths of the optimizers down two surfaces.
 *
 *     bazel run //phase4_training:optimizer_paths
 *
 * Two parameters, no data, no noise: what is left is how an optimizer deals with the shape of the loss. The valley is
 * thirty times as steep across as it is along; Rosenbrock's function has a valley that bends, whose floor is nearly
 * flat. Each optimizer has a learning rate that is about the best of a few for it. It draws both maps, still and
 * animated, and the loss over the steps, and prints where each optimizer ends. */
#include "common/nn/optimizer.h"
#include "common/options.h"
#include "common/plot.h"
#include "common/train_log.h"
#include "phase4_training/03_rmsprop/optimizer_paths.h"

/* ---- surfaces ---- */

static double valley(double x, double y) { return 0.5 * (0.1 * x * x + 3 * y * y); }
static void valley_gradient(double x, double y, float gradient[2]) {
  gradient[0] = (float)(0.1 * x);
  gradient[1] = (float)(3 * y);
}

static double rosenbrock(double x, double y) { return (1 - x) * (1 - x) + 100 * (y - x * x) * (y - x * x); }
static void rosenbrock_gradient(double x, double y, float gradient[2]) {
  gradient[0] = (float)(-2 * (1 - x) - 400 * x * (y - x * x));
  gradient[1] = (float)(200 * (y - x * x));
}

enum { RUNS = 5, SURFACES = 2 };

typedef struct Surface {
  const char *name, *title;
  double (*height)(double x, double y);
  void (*gradient)(double x, double y, float gradient[2]);
  double start[2], x[2], y[2], best[2], levels[10];
  int level_count, steps;
  double lr[RUNS];
} Surface;

static const Surface surfaces[SURFACES] = {
    {"valley",
     "0.05 x² + 1.5 y²: thirty times as steep across as along",
     valley,
     valley_gradient,
     {-4.5, 1.6},
     {-5, 1.5},
     {-2, 2},
     {0, 0},
     {0.01, 0.05, 0.2, 0.5, 1, 2, 3.5, 5},
     8,
     100,
     {0.6, 0.15, 0.15, 0.15, 0.15}},
    {"rosenbrock",
     "Rosenbrock's function, (1 - x)² + 100 (y - x²)²",
     rosenbrock,
     rosenbrock_gradient,
     {-0.4, 2},
     {-1.8, 1.6},
     {-0.6, 2.2},
     {1, 1},
     {0.3, 1, 3, 10, 30, 90, 200, 400},
     8,
     600,
     {0.001, 0.0004, 0.0004, 0.02, 0.05}},
};

/* ---- optimizers ---- */

static const struct {
  const char *title, *name;
  int nesterov;
  double momentum;
} runs[RUNS] = {{"SGD", "sgd", 0, 0},
                {"momentum", "sgd", 0, 0.9},
                {"Nesterov", "sgd", 1, 0.9},
                {"RMSprop", "rmsprop", 0, 0},
                {"Adam", "adam", 0, 0}};

/* As a network's parameters step, on the CPU. */
static void descend(const Surface *surface, int run, Path *path, double *loss) {
  OptimizerSettings settings = optimizer_named(runs[run].name)->usual;
  settings.lr = surface->lr[run];
  settings.momentum = runs[run].momentum;
  settings.nesterov = runs[run].nesterov;
  const Optimizer *optimizer = optimizer_named(runs[run].name)->choose(&settings);
  const Hyper hyper = optimizer_hyper(&settings);
  float w[2] = {(float)surface->start[0], (float)surface->start[1]}, gradient[2], slots[OPTIMIZER_MAX_SLOTS][2] = {{0}};
  float *slot[OPTIMIZER_MAX_SLOTS];
  for (int s = 0; s < OPTIMIZER_MAX_SLOTS; s++) slot[s] = slots[s];
  Context context;
  memset(&context, 0, sizeof context);
  path->name = runs[run].title;
  path->points = surface->steps + 1;
  for (int step = 0; step <= surface->steps; step++) {
    path->x[step] = w[0];
    path->y[step] = w[1];
    loss[step] = surface->height(w[0], w[1]);
    context.step = step;
    surface->gradient(w[0], w[1], gradient);
    optimizer->step(&context, w, slot, gradient, 2, 0, &hyper);
  }
}

/* The first step after which the loss stays below a hundredth of the first; -1: it does not. */
static int steps_to_a_hundredth(const double *loss, int steps) {
  int first = -1;
  for (int i = 0; i <= steps; i++)
    if (!(loss[i] < loss[0] / 100))
      first = -1;
    else if (first < 0)
      first = i;
  return first;
}

/* ---- pictures ---- */

static void write_picture(const PathPicture *picture, const char *directory, const char *name, int animated) {
  Error err;
  char path[PATH_MAX + 64];
  snprintf(path, sizeof path, "%s/%s%s.svg", directory, name, animated ? "_animated" : "");
  if (path_picture_write(picture, animated, path, &err) != 0) die("%s", err.message);
}

static void draw(const Surface *surface, const Path *paths, double loss[RUNS][PATH_STEPS + 1], const char *directory) {
  static double step[PATH_STEPS + 1];
  char path[PATH_MAX + 64];
  PathPicture picture = {surface->title,
                         surface->height,
                         {surface->x[0], surface->x[1]},
                         {surface->y[0], surface->y[1]},
                         {surface->best[0], surface->best[1]},
                         surface->levels,
                         surface->level_count,
                         paths,
                         RUNS};
  write_picture(&picture, directory, surface->name, 0);
  write_picture(&picture, directory, surface->name, 1);
  PlotSeries series[RUNS];
  memset(series, 0, sizeof series);
  for (int i = 0; i <= surface->steps; i++) step[i] = i;
  for (int run = 0; run < RUNS; run++) {
    series[run].name = runs[run].title;
    series[run].x = step;
    series[run].y = loss[run];
    series[run].count = (size_t)surface->steps + 1;
  }
  const Plot plot = {surface->title, "step", "loss", NULL, 0, 1, series, RUNS};
  snprintf(path, sizeof path, "%s/%s_loss.png", directory, surface->name);
  plot_or_note(&plot, path);
}

int main(int argc, char **argv) {
  static const struct argp own = {NULL, NULL, NULL, "Draws the paths of optimizers down two surfaces.",
                                  NULL, NULL, NULL};
  static Path paths[RUNS];
  static double loss[RUNS][PATH_STEPS + 1];
  Error err;
  CommonOptions common = options_default(OPTIONS_OUTPUT_DIR);
  options_parse(&common, &own, NULL, argc, argv);
  if (make_directories(common.output_dir, &err) != 0) die("--output-dir: %s", err.message);
  for (int s = 0; s < SURFACES; s++) {
    const Surface *surface = &surfaces[s];
    printf("%s, %d steps from (%g, %g)\n", surface->title, surface->steps, surface->start[0], surface->start[1]);
    printf("optimizer   learning rate   to a hundredth of the loss   loss at the end\n");
    for (int run = 0; run < RUNS; run++) {
      descend(surface, run, &paths[run], loss[run]);
      char steps[32] = "-", end[32];
      const int first = steps_to_a_hundredth(loss[run], surface->steps);
      if (first >= 0) snprintf(steps, sizeof steps, "%d steps", first);
      const double last = loss[run][surface->steps];
      snprintf(end, sizeof end, last < 1e-9 ? "below 1e-09" : "%.1e", last);
      printf("%-11s %13g %28s %17s\n", runs[run].title, surface->lr[run], steps, end);
    }
    draw(surface, paths, loss, common.output_dir);
    putchar('\n');
  }
  printf("Drawn: valley.svg, rosenbrock.svg, the same animated, and the losses\n");
  stdout_finish();
  return 0;
}
