/* schedule.h - how the learning rate changes over a run: a table of functions, with parameters that the user types.
 *
 *     LrSchedule schedule;
 *     if (lr_schedule_parse("cosine:warmup=0.1,cycles=3", &schedule, &err) != 0) ...
 *     float lr = (float)(highest * lr_schedule_factor(&schedule, done));      // done: share of the run's steps, 0 to 1
 *
 * A schedule gives a factor of the highest learning rate. It knows only how much of the run is done, so a resumed run
 * goes on where it stopped, and --epochs stretches it. plateau alone also looks at a loss after each epoch: how often
 * it has lowered the rate is state of the run (SchedulePlateau), which a checkpoint keeps.
 *
 * linear and cosine begin with a warm-up: the gradients of fresh weights are large. They end at zero: there the noise
 * of small batches settles. phase4_training/04_lr_schedules draws and compares all of them.
 */
#ifndef COMMON_NN_SCHEDULE_H
#define COMMON_NN_SCHEDULE_H

#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "common/error.h"
#include "common/nearest.h"

enum { SCHEDULE_MAX_PARAMS = 6, SCHEDULE_TEXT = 192 };

typedef struct ScheduleParam {
  const char *name, *help;
  double standard, least, most;
  int whole; /* a whole number */
} ScheduleParam;

typedef struct Schedule {
  const char *name, *help;
  double (*factor)(const double *value, double done); /* done is at least 0, and 1 or more at the end */
  int watches;                                        /* the loss: schedule_plateau_watch() */
  ScheduleParam param[SCHEDULE_MAX_PARAMS];           /* name NULL behind the last one */
} Schedule;

/* One of them with its parameters. kind NULL: none, the rate is constant. */
typedef struct LrSchedule {
  const Schedule *kind;
  double value[SCHEDULE_MAX_PARAMS]; /* in the order of kind->param */
} LrSchedule;

/* ------------------------------------------------------------------------------------------------------- functions */

#define SCHEDULE_PI 3.14159265358979323846

/* From 1 at the start to 0 at the end of a phase of which the share t is over: half a period of the cosine. */
static inline double schedule_half_cosine(double t) { return 0.5 * (1 + cos(SCHEDULE_PI * t)); }

/* What is over of the run behind the warm-up, at most 1. */
static inline double schedule_rest(double warmup, double done) { return fmin(1, (done - warmup) / (1 - warmup)); }

static inline double schedule_constant_factor(const double *value, double done) {
  const double warmup = value[0];
  return done < warmup ? done / warmup : 1;
}

/* Up over the warm-up, then straight down. */
static inline double schedule_linear_factor(const double *value, double done) {
  const double warmup = value[0], end = value[1];
  return done < warmup ? done / warmup : end + (1 - end) * (fmax(0, 1 - done) / (1 - warmup));
}

/* Times `factor` whenever the share `every` of the run is over, counted from the end of the warm-up. The end of the run
 * is no such place. Divided and not multiplied, because 1 / 100 is the double nearest to 0.01, and 0.1 * 0.1 is not. */
static inline double schedule_step_factor(const double *value, double done) {
  const double factor = value[0], every = value[1], warmup = value[2];
  if (done < warmup) return done / warmup;
  return 1 / pow(1 / factor, fmin(floor((done - warmup) / every), ceil((1 - warmup) / every) - 1));
}

/* Times the same number in each step. */
static inline double schedule_exponential_factor(const double *value, double done) {
  const double end = value[0], warmup = value[1];
  return done < warmup ? done / warmup : pow(end, schedule_rest(warmup, done));
}

/* Up over the warm-up, then `cycles` times half a period of the cosine, each cycle `growth` times as long as the one
 * before (Loshchilov and Hutter, "SGDR: stochastic gradient descent with warm restarts", 2017). */
static inline double schedule_cosine_factor(const double *value, double done) {
  const double warmup = value[0], growth = value[2], end = value[3];
  const int cycles = (int)value[1];
  if (done < warmup) return done / warmup;
  double length = 1, sum = 0; /* in lengths of the first cycle */
  for (int i = 0; i < cycles; i++, length *= growth) sum += length;
  double t = schedule_rest(warmup, done) * sum;
  length = 1;
  for (int i = 0; i + 1 < cycles && t >= length; i++, length *= growth) t -= length;
  return end + (1 - end) * schedule_half_cosine(fmin(1, t / length));
}

/* From `start` up to 1 and from there down to `end`, both as a cosine (Smith and Topin, "Super-convergence: very fast
 * training of neural networks using large learning rates", 2019). They also lower the momentum while the rate is high;
 * here it stays as it is. */
static inline double schedule_onecycle_factor(const double *value, double done) {
  const double up = value[0], start = value[1], end = value[2];
  if (done < up) return 1 + (start - 1) * schedule_half_cosine(done / up);
  return end + (1 - end) * schedule_half_cosine(schedule_rest(up, done));
}

/* Of plateau without what it has seen. */
static inline double schedule_warm_factor(const double *value, double done) {
  const double warmup = value[5];
  return done < warmup ? done / warmup : 1;
}

#define SCHEDULE_WARM_UP(standard) \
  { "warmup", "share of the run in which the rate rises from zero", standard, 0, 0.9, 0 }

static const Schedule schedule_constant = {
    "constant", "the same all the time", schedule_constant_factor, 0, {SCHEDULE_WARM_UP(0)}};
static const Schedule schedule_linear = {
    "linear",
    "up over 5 % of the run, then straight down to zero",
    schedule_linear_factor,
    0,
    {SCHEDULE_WARM_UP(0.05), {"end", "what is left at the end, of the highest rate", 0, 0, 1, 0}}};
static const Schedule schedule_step = {"step",
                                       "a tenth after each third of the run",
                                       schedule_step_factor,
                                       0,
                                       {{"factor", "what the rate is multiplied by", 0.1, 1e-6, 1, 0},
                                        {"every", "share of the run between two steps", 1 / 3.0, 1e-4, 1, 0},
                                        SCHEDULE_WARM_UP(0)}};
static const Schedule schedule_exponential = {
    "exponential",
    "down to a hundredth, by the same factor in each step",
    schedule_exponential_factor,
    0,
    {{"end", "what is left at the end, of the highest rate", 0.01, 1e-9, 1, 0}, SCHEDULE_WARM_UP(0)}};
static const Schedule schedule_cosine = {
    "cosine",
    "up over 5 % of the run, then down to zero as a cosine",
    schedule_cosine_factor,
    0,
    {SCHEDULE_WARM_UP(0.05),
     {"cycles", "how often it goes down: more than 1 are warm restarts", 1, 1, 100, 1},
     {"growth", "length of a cycle, of the one before", 1, 1, 10, 0},
     {"end", "what is left at the end of a cycle", 0, 0, 1, 0}}};
static const Schedule schedule_onecycle = {"onecycle",
                                           "up over 30 % of the run and down to nearly zero, both as a cosine",
                                           schedule_onecycle_factor,
                                           0,
                                           {{"up", "share of the run in which the rate rises", 0.3, 0.01, 0.99, 0},
                                            {"start", "the first rate, of the highest", 0.04, 0, 1, 0},
                                            {"end", "the last rate, of the highest", 4e-6, 0, 1, 0}}};
static const Schedule schedule_plateau = {
    "plateau",
    "a tenth when the loss has not fallen in 3 epochs",
    schedule_warm_factor,
    1,
    {{"factor", "what the rate is multiplied by", 0.1, 1e-6, 0.9999, 0},
     {"patience", "how many epochs may pass without a lower loss", 2, 0, 100000, 1},
     {"threshold", "by which share a loss must be lower to count", 1e-4, 0, 0.9999, 0},
     {"cooldown", "epochs after a change that do not count", 0, 0, 100000, 1},
     {"least", "below this share of the highest rate it does not fall", 0, 0, 1, 0},
     SCHEDULE_WARM_UP(0)}};

enum { SCHEDULES = 7 };

static inline const Schedule *schedule_at(int i) {
  static const Schedule *const table[SCHEDULES] = {&schedule_constant,    &schedule_linear, &schedule_step,
                                                   &schedule_exponential, &schedule_cosine, &schedule_onecycle,
                                                   &schedule_plateau};
  return i >= 0 && i < SCHEDULES ? table[i] : NULL;
}

/* NULL when there is none of this name. */
static inline const Schedule *schedule_named(const char *name) {
  const Schedule *schedule;
  for (int i = 0; (schedule = schedule_at(i)) != NULL; i++)
    if (strcmp(schedule->name, name) == 0) return schedule;
  return NULL;
}

static inline int schedule_params(const Schedule *kind) {
  int count = 0;
  while (count < SCHEDULE_MAX_PARAMS && kind->param[count].name != NULL) count++;
  return count;
}

/* With its usual parameters. kind may be NULL. */
static inline LrSchedule lr_schedule(const Schedule *kind) {
  LrSchedule schedule;
  memset(&schedule, 0, sizeof schedule);
  schedule.kind = kind;
  for (int i = 0; kind != NULL && i < schedule_params(kind); i++) schedule.value[i] = kind->param[i].standard;
  return schedule;
}

/* Of the highest learning rate. `done` is the share of the run's steps that are over. */
static inline double lr_schedule_factor(const LrSchedule *schedule, double done) {
  return schedule->kind == NULL ? 1 : schedule->kind->factor(schedule->value, done);
}

/* ------------------------------------------------------------------------------------------------------------ text */

/* "warmup, cycles, growth and end" */
static inline void schedule_param_names(const Schedule *kind, char *text, size_t size) {
  const int count = schedule_params(kind);
  size_t used = 0;
  text[0] = '\0';
  for (int i = 0; i < count && used < size; i++)
    used += (size_t)snprintf(text + used, size - used, "%s%s",
                             i == 0          ? ""
                             : i + 1 < count ? ", "
                                             : " and ",
                             kind->param[i].name);
}

static inline int schedule_refuse_name(const char *name, Error *err) {
  const char *names[SCHEDULES];
  char list[160] = "";
  size_t used = 0;
  for (int i = 0; i < SCHEDULES; i++) {
    names[i] = schedule_at(i)->name;
    used += (size_t)snprintf(list + used, sizeof list - used, "%s%s",
                             i == 0              ? ""
                             : i + 1 < SCHEDULES ? ", "
                                                 : " or ",
                             names[i]);
  }
  const char *nearest = nearest_name(name, names, SCHEDULES);
  if (nearest == NULL) return error_set(err, "%s is expected", list);
  return error_set(err, "%s is expected; did you mean %s?", list, nearest);
}

static inline int schedule_refuse_param(const Schedule *kind, const char *name, Error *err) {
  const char *names[SCHEDULE_MAX_PARAMS];
  char list[160];
  const int count = schedule_params(kind);
  for (int i = 0; i < count; i++) names[i] = kind->param[i].name;
  schedule_param_names(kind, list, sizeof list);
  const char *nearest = nearest_name(name, names, (size_t)count);
  if (nearest == NULL) return error_set(err, "%s has no parameter \"%s\"; it has %s", kind->name, name, list);
  return error_set(err, "%s has no parameter \"%s\"; did you mean %s? It has %s", kind->name, name, nearest, list);
}

/* "warmup=0.1", which is cut into its parts. */
static inline int schedule_parse_param(char *word, LrSchedule *schedule, unsigned *given, Error *err) {
  char *equals = strchr(word, '='), *end;
  if (equals != NULL) *equals = '\0';
  const Schedule *kind = schedule->kind;
  const int count = schedule_params(kind);
  int i = 0;
  while (i < count && strcmp(kind->param[i].name, word) != 0) i++;
  if (i == count) return schedule_refuse_param(kind, word, err);
  const ScheduleParam *param = &kind->param[i];
  const char *number = equals ? equals + 1 : "";
  const double value = strtod(number, &end);
  const int numeric = end != number && *end == '\0' && (unsigned char)number[0] > ' ';
  if (!numeric || !(value >= param->least && value <= param->most) || (param->whole && value != floor(value)))
    return error_set(err, "%s=%s: a %snumber from %g to %g is expected", word, number, param->whole ? "whole " : "",
                     param->least, param->most);
  if (*given & 1u << i) return error_set(err, "%s is given twice", word);
  *given |= 1u << i;
  schedule->value[i] = value;
  return 0;
}

/* "cosine", "cosine:warmup=0.1,cycles=3". -1 and the reason where there is no such schedule or parameter; *schedule is
 * then as it was. */
static inline int lr_schedule_parse(const char *text, LrSchedule *schedule, Error *err) {
  char copy[SCHEDULE_TEXT];
  unsigned given = 0;
  if ((size_t)snprintf(copy, sizeof copy, "%s", text) >= sizeof copy)
    return error_set(err, "at most %d characters are expected", SCHEDULE_TEXT - 1);
  char *rest = strchr(copy, ':');
  if (rest != NULL) *rest++ = '\0';
  LrSchedule read = lr_schedule(schedule_named(copy));
  if (read.kind == NULL) return schedule_refuse_name(copy, err);
  while (rest != NULL) {
    char *word = rest;
    rest = strchr(word, ',');
    if (rest != NULL) *rest++ = '\0';
    if (schedule_parse_param(word, &read, &given, err) != 0) return -1;
  }
  *schedule = read;
  return 0;
}

typedef struct LrScheduleText {
  char text[SCHEDULE_TEXT];
} LrScheduleText;

/* The shortest text from which the same schedule is read: with the parameters that are not the usual ones. */
static inline LrScheduleText lr_schedule_text(const LrSchedule *schedule) {
  LrScheduleText result = {""};
  if (schedule->kind == NULL) return result;
  int used = snprintf(result.text, sizeof result.text, "%s", schedule->kind->name);
  const char *separator = ":";
  for (int i = 0; i < schedule_params(schedule->kind); i++) {
    const double value = schedule->value[i];
    char number[32];
    if (value == schedule->kind->param[i].standard) continue;
    for (int digits = 6; digits <= 17; digits++) { /* as few as give the same bits */
      snprintf(number, sizeof number, "%.*g", digits, value);
      if (strtod(number, NULL) == value) break;
    }
    used += snprintf(result.text + used, sizeof result.text - (size_t)used, "%s%s=%s", separator,
                     schedule->kind->param[i].name, number);
    separator = ",";
  }
  return result;
}

/* --------------------------------------------------------------------------------------------------------- plateau */

/* What plateau has seen, as PyTorch's ReduceLROnPlateau in its modes "min" and "rel". All zero at the start. */
typedef struct SchedulePlateau {
  double best; /* the lowest loss so far; while `seen` is 0: none */
  int seen;    /* losses */
  int bad;     /* since the best one or the last change */
  int cooling; /* epochs that do not count any more */
  int lowered; /* how often the rate was lowered */
} SchedulePlateau;

/* The factor of the highest rate that is left. */
static inline double schedule_plateau_factor(const LrSchedule *schedule, const SchedulePlateau *plateau) {
  if (schedule->kind == NULL || !schedule->kind->watches) return 1;
  const double factor = schedule->value[0], least = schedule->value[4];
  return fmax(least, 1 / pow(1 / factor, plateau->lowered));
}

/* After an epoch that ended with this loss. */
static inline void schedule_plateau_watch(const LrSchedule *schedule, SchedulePlateau *plateau, double loss) {
  if (schedule->kind == NULL || !schedule->kind->watches) return;
  const int patience = (int)schedule->value[1], cooldown = (int)schedule->value[3];
  const double threshold = schedule->value[2];
  if (plateau->seen == 0 || loss < plateau->best * (1 - threshold)) {
    plateau->best = loss;
    plateau->bad = 0;
  } else {
    plateau->bad++;
  }
  plateau->seen++;
  if (plateau->cooling > 0) {
    plateau->cooling--;
    plateau->bad = 0;
  }
  if (plateau->bad <= patience) return;
  plateau->lowered++;
  plateau->cooling = cooldown;
  plateau->bad = 0;
}

#endif /* COMMON_NN_SCHEDULE_H */
