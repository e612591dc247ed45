/* find_lr.h - a range test: which learning rate is right for a network (Smith, "Cyclical learning rates for training
 * neural networks", 2017).
 *
 *     FindLr test;
 *     find_lr_open(&test, steps);
 *     find_lr_run(&test, &trainer);        // trains trainer.net, which is good for nothing afterwards
 *     if (find_lr_suggest(&test, &err) == 0) printf("--lr=%g\n", test.suggested);
 *     find_lr_write(&test, title, directory, &err);
 *
 * A fresh network is trained for some steps. The rate rises geometrically from FIND_LR_FIRST to FIND_LR_LAST, and the
 * loss of each batch is written down. While the rate is too low the loss stays where it is; then it falls; where the
 * rate is too high it rises, and the test ends. It is made FIND_LR_PASSES times, with other weights and batches: of a
 * single pass the result varies up to tenfold (LeNet-5, nine seeds: 0.005 to 0.04; of five passes: 0.02 or 0.03).
 *
 * The losses of batches are noisy. Their smoothed curve is an exponential average of what was before,
 *
 *     m[i] = beta m[i-1] + (1 - beta) loss[i],    smooth[i] = m[i] / (1 - beta^(i+1)),
 *
 * where the divisor corrects that m starts at zero. The average lags behind the losses by beta / (1 - beta) steps, in
 * which the rate has risen, four- to fivefold with the usual number of steps. So the rate that belongs to a point of
 * the curve is that of so many steps before. Of the lowest point this rate is suggested: the losses were still falling
 * there. It is the highest rate of a run, for a schedule that ends lower.
 */
#ifndef COMMON_NN_FIND_LR_H
#define COMMON_NN_FIND_LR_H

#include "common/nn/trainer.h"
#include "common/plot.h"

#define FIND_LR_FIRST 1e-6
#define FIND_LR_LAST 10.0
enum { FIND_LR_PASSES = 5 };

typedef struct FindLr {
  int steps, count;           /* asked for; taken until the loss was too high or the user interrupted */
  double beta;                /* of the average */
  double *lr, *loss, *smooth; /* (steps); loss: the mean of the passes */
  double lowest, suggested;   /* the rate when the average was lowest; the one to train with */
} FindLr;

static inline void find_lr_open(FindLr *test, int steps) {
  memset(test, 0, sizeof *test);
  test->steps = steps;
  test->beta = 1 - 10.0 / steps; /* the average reaches back over a tenth of the test */
  if (test->beta > 0.98) test->beta = 0.98;
  test->lr = (double *)xcalloc((size_t)steps, sizeof(double));
  test->loss = (double *)xcalloc((size_t)steps, sizeof(double));
  test->smooth = (double *)xcalloc((size_t)steps, sizeof(double));
  for (int i = 0; i < steps; i++) test->lr[i] = FIND_LR_FIRST * pow(FIND_LR_LAST / FIND_LR_FIRST, i / (steps - 1.0));
}

static inline void find_lr_close(FindLr *test) {
  free(test->lr);
  free(test->loss);
  free(test->smooth);
  memset(test, 0, sizeof *test);
}

/* One loss more. 0 where it is time to stop: the loss is not a number, or the average is FIND_LR_TOO_HIGH times its
 * lowest value. Such a loss is not part of the curve. */
#define FIND_LR_TOO_HIGH 4.0
static inline int find_lr_add(FindLr *test, double loss) {
  const int i = test->count;
  if (!isfinite(loss)) return 0;
  const double weight = 1 - pow(test->beta, i + 1), before = i ? test->smooth[i - 1] * (1 - pow(test->beta, i)) : 0;
  const double smooth = (test->beta * before + (1 - test->beta) * loss) / weight;
  for (int k = 0; k < i; k++)
    if (smooth > FIND_LR_TOO_HIGH * test->smooth[k]) return 0;
  test->loss[i] = loss;
  test->smooth[i] = smooth;
  test->count++;
  return test->count < test->steps;
}

/* The rate of the losses that the smoothed curve shows at point i. */
static inline double find_lr_rate(const FindLr *test, int i) {
  const int lag = (int)lround(test->beta / (1 - test->beta));
  return test->lr[i > lag ? i - lag : 0];
}

/* Trains t->net with rising rates, on batches of t->train in the order of its epochs, until it diverges, the steps are
 * over, or the user interrupts. A fresh network by this seed; loss_scale: of its first step in fp16, else 0. */
static inline void find_lr_pass(FindLr *test, Trainer *t, uint64_t seed, float loss_scale, Progress *progress,
                                int done) {
  const Totals none = {0, 0};
  const int batch = t->state.batch_size < t->train->count ? t->state.batch_size : t->train->count;
  model_init(t->net, seed);
  t->net->context.seed = seed;
  t->net->context.step = 0;
  if (loss_scale > 0) model_set_loss_scale(t->net, loss_scale);
  for (int position = t->train->count, epoch = 0, more = 1; more && !interrupt_requested(); position += batch) {
    if (position + batch > t->train->count) {
      device_set_shuffle(t->train, seed, epoch++);
      position = 0;
    }
    t->lr = test->lr[test->count];
    model_reset_totals(t->net, 0, none);
    trainer_one_step(t, position, batch);
    more = find_lr_add(test, model_read_totals(t->net, 0).loss / batch);
    if (test->count > 0)
      progress_update(progress, done + test->count, "rate %.2g, loss %.4f", t->lr, test->smooth[test->count - 1]);
  }
}

/* FIND_LR_PASSES of them, from other weights and in other orders. The curve is that of the mean losses, as far as all
 * passes have come. */
static inline void find_lr_run(FindLr *test, Trainer *t) {
  const uint64_t seed = t->state.seed;
  const float loss_scale = model_get_loss_scale(t->net);
  int count = test->steps;
  Progress progress;
  double *sum = (double *)xcalloc((size_t)test->steps, sizeof *sum);
  progress_begin(&progress, "find-lr", "step", 0, (long)FIND_LR_PASSES * test->steps);
  for (int pass = 0; pass < FIND_LR_PASSES && !interrupt_requested(); pass++) {
    FindLr one;
    find_lr_open(&one, test->steps);
    find_lr_pass(&one, t, seed + (uint64_t)pass, loss_scale, &progress, pass * test->steps);
    if (one.count < count) count = one.count;
    for (int i = 0; i < count; i++) sum[i] += one.loss[i];
    find_lr_close(&one);
  }
  progress_end(&progress);
  for (int i = 0, more = 1; i < count && more; i++) more = find_lr_add(test, sum[i] / FIND_LR_PASSES);
  free(sum);
}

/* One digit: more would say more than the test knows. */
static inline double find_lr_round(double lr) {
  const double unit = pow(10, floor(log10(lr)));
  return floor(lr / unit + 1e-9) * unit;
}

/* The rates of interest. -1 where the loss has not fallen by a tenth: then no rate is better than another. */
static inline int find_lr_suggest(FindLr *test, Error *err) {
  int low = 0;
  for (int i = 1; i < test->count; i++)
    if (test->smooth[i] < test->smooth[low]) low = i;
  if (test->count < 2 || test->smooth[low] > 0.9 * test->smooth[0])
    return error_set(err,
                     "the loss did not fall at any learning rate from %g to %g: it began with %.4f, and its average "
                     "never was below %.4f; try more steps, another --batch-size, or look for a mistake in the network",
                     test->lr[0], test->lr[test->count > 0 ? test->count - 1 : 0], test->count ? test->loss[0] : NAN,
                     test->count ? test->smooth[low] : NAN);
  test->lowest = test->lr[low];
  test->suggested = find_lr_round(find_lr_rate(test, low));
  return 0;
}

static inline int find_lr_write_csv(const FindLr *test, const char *path, Error *err) {
  AtomicFile file;
  if (atomic_file_open(&file, path, err) != 0) return -1;
  fprintf(file.stream, "step,lr,loss,smooth\n");
  for (int i = 0; i < test->count; i++)
    fprintf(file.stream, "%d,%.9g,%.9g,%.9g\n", i, test->lr[i], test->loss[i], test->smooth[i]);
  return atomic_file_commit(&file, err);
}

/* find_lr.csv, .svg and .png in the folder, which is made. -1 where the table cannot be written; a note on stderr for a
 * chart that cannot be drawn. */
static inline int find_lr_write(const FindLr *test, const char *title, const char *directory, Error *err) {
  static const char *const pictures[] = {"find_lr.svg", "find_lr.png"};
  char path[PATH_MAX + 32], name[64];
  if (make_directories(directory, err) != 0) return -1;
  snprintf(path, sizeof path, "%s/find_lr.csv", directory);
  if (find_lr_write_csv(test, path, err) != 0) return -1;
  double least = INFINITY, most = 0, *rate = (double *)xmalloc((size_t)test->count * sizeof *rate);
  for (int i = 0; i < test->count; i++) {
    rate[i] = find_lr_rate(test, i);
    least = fmin(least, test->smooth[i]);
    most = fmax(most, test->smooth[i]);
  }
  const double mark[] = {test->suggested, test->suggested}, height[] = {least, most};
  snprintf(name, sizeof name, "suggested: %g", test->suggested);
  const PlotSeries series[] = {{"loss of batches", test->lr, test->loss, (size_t)test->count, 0},
                               {"average", rate, test->smooth, (size_t)test->count, 0},
                               {name, mark, height, 2, 0}};
  const Plot plot = {title, "learning rate", "loss", NULL, 1, 0, series, test->suggested > 0 ? 3u : 2u};
  for (int i = 0; i < 2; i++) {
    snprintf(path, sizeof path, "%s/%s", directory, pictures[i]);
    plot_or_note(&plot, path);
  }
  free(rate);
  return 0;
}

#endif /* COMMON_NN_FIND_LR_H */
