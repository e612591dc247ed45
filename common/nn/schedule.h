/* schedule.h - how the learning rate changes over a run: a table of functions.
 *
 *     const Schedule *schedule = schedule_named("cosine");
 *     float lr = (float)(highest * schedule->factor(done));      // done: share of the run's steps, 0 to 1
 *
 * A schedule knows only how much of the run is done, so a resumed run goes on where it stopped, and --epochs stretches
 * it. linear and cosine begin with a warm-up: the gradients of fresh weights are large. They end at zero: there the
 * noise of small batches settles. Phase 4 compares schedules.
 */
#ifndef COMMON_NN_SCHEDULE_H
#define COMMON_NN_SCHEDULE_H

#include <math.h>
#include <stddef.h>
#include <string.h>

#define SCHEDULE_WARM_UP 0.05 /* share of the run in which the rate rises from zero */

typedef struct Schedule {
  const char *name, *help;
  double (*factor)(double done); /* of the highest learning rate; done is at least 0, and 1 or more at the end */
} Schedule;

static inline double schedule_constant_factor(double done) {
  (void)done;
  return 1;
}

/* Up over the warm-up, then straight down. */
static inline double schedule_linear_factor(double done) {
  return done < SCHEDULE_WARM_UP ? done / SCHEDULE_WARM_UP : fmax(0, 1 - done) / (1 - SCHEDULE_WARM_UP);
}

/* A tenth of it after each third of the run. */
static inline double schedule_step_factor(double done) { return done < 1 / 3.0 ? 1 : done < 2 / 3.0 ? 0.1 : 0.01; }

/* Up over the warm-up, then half a period of the cosine (Loshchilov and Hutter, "SGDR", 2017). */
static inline double schedule_cosine_factor(double done) {
  if (done < SCHEDULE_WARM_UP) return done / SCHEDULE_WARM_UP;
  const double rest = fmin(1, (done - SCHEDULE_WARM_UP) / (1 - SCHEDULE_WARM_UP));
  return 0.5 * (1 + cos(3.14159265358979323846 * rest));
}

static const Schedule schedule_constant = {"constant", "the same all the time", schedule_constant_factor};
static const Schedule schedule_linear = {"linear", "up over 5 % of the run, then straight down to zero",
                                         schedule_linear_factor};
static const Schedule schedule_step = {"step", "a tenth after each third of the run", schedule_step_factor};
static const Schedule schedule_cosine = {"cosine", "up over 5 % of the run, then down to zero as a cosine",
                                         schedule_cosine_factor};

enum { SCHEDULES = 4 };

static inline const Schedule *schedule_at(int i) {
  static const Schedule *const table[SCHEDULES] = {&schedule_constant, &schedule_linear, &schedule_step,
                                                   &schedule_cosine};
  return i >= 0 && i < SCHEDULES ? table[i] : NULL;
}

/* NULL when there is none of this name. */
static inline const Schedule *schedule_named(const char *name) {
  const Schedule *schedule;
  for (int i = 0; (schedule = schedule_at(i)) != NULL; i++)
    if (strcmp(schedule->name, name) == 0) return schedule;
  return NULL;
}

#endif /* COMMON_NN_SCHEDULE_H */
