/* search_grid.h - which settings a search tries.
 *
 *     lr:1e-4..1e-1,log          from the first to the last, each the same factor from the one before: one per decade
 *     lr:1e-4..1e-1,log,7        seven of them
 *     momentum:0..0.9,4          0, 0.3, 0.6, 0.9: the same distance
 *     batch-size:32..256,log,4   32, 64, 128, 256: rounded, as the option takes whole numbers
 *     optimizer:sgd|adam         a list
 *
 *     SearchGrid grid;
 *     memset(&grid, 0, sizeof grid);
 *     if (search_name("lr:1e-4..1e-1,log", name, &err) != 0) die("%s", err.message);       // lr
 *     if (search_add(&grid, "lr:1e-4..1e-1,log", 0, &err) != 0) die("%s", err.message);    // 0: not of whole numbers
 *     search_value(&grid, trial, axis)       // the text of the option, in trial 0 to grid.trials - 1
 */
#ifndef PHASE4_TRAINING_SEARCH_GRID_H
#define PHASE4_TRAINING_SEARCH_GRID_H

#include "common/error.h"

#include <math.h>

enum { SEARCH_AXES = 4, SEARCH_POINTS = 64, SEARCH_TEXT = 48, SEARCH_TRIALS = 4096, SEARCH_LINEAR_POINTS = 5 };

/* The values of one option. */
typedef struct SearchAxis {
  char name[SEARCH_TEXT], value[SEARCH_POINTS][SEARCH_TEXT];
  double number[SEARCH_POINTS]; /* of each value; NAN: it is none */
  int count;
} SearchAxis;

typedef struct SearchGrid {
  SearchAxis axis[SEARCH_AXES];
  int axes, trials;
} SearchGrid;

/* A number alone; NAN: it is something else. */
static inline double search_number(const char *text) {
  char *end;
  const double number = strtod(text, &end);
  return end != text && *end == '\0' && (unsigned char)text[0] > ' ' && isfinite(number) ? number : NAN;
}

/* -1 where the axis has it already. */
static inline int search_add_value(SearchAxis *axis, const char *text, Error *err) {
  if (text[0] == '\0' || strlen(text) >= SEARCH_TEXT)
    return error_set(err, "--search=%s: \"%.20s\" is no value; 1 to %d characters are expected", axis->name, text,
                     SEARCH_TEXT - 1);
  for (int i = 0; i < axis->count; i++)
    if (strcmp(axis->value[i], text) == 0 || axis->number[i] == search_number(text))
      return error_set(err, "--search=%s: the value %s is there twice; ask for fewer points", axis->name, text);
  if (axis->count == SEARCH_POINTS)
    return error_set(err, "--search=%s: it has more than %d values", axis->name, SEARCH_POINTS);
  snprintf(axis->value[axis->count], SEARCH_TEXT, "%s", text);
  axis->number[axis->count++] = search_number(text);
  return 0;
}

/* Point i of n from a to b. Six digits: they are typed again to repeat a trial, and are the same number then. */
static inline void search_point(char text[SEARCH_TEXT], double a, double b, int i, int n, int log_spaced, int whole) {
  const double t = (double)i / (n - 1), x = log_spaced ? a * pow(b / a, t) : a + t * (b - a);
  if (whole)
    snprintf(text, SEARCH_TEXT, "%.0f", x);
  else
    snprintf(text, SEARCH_TEXT, "%.6g", x);
}

/* "1e-4..1e-1,log,7"; `dots` is at the two dots. `whole`: the points are whole numbers. */
static inline int search_parse_range(SearchAxis *axis, const char *text, const char *dots, int whole, Error *err) {
  char first[SEARCH_TEXT], last[SEARCH_TEXT], point[SEARCH_TEXT];
  const size_t before = (size_t)(dots - text), behind = strcspn(dots + 2, ",");
  const char *more = dots + 2 + behind;
  if (dots[2] == '.') /* 1...2 could be 1. to 2 or 1 to .2 */
    return error_set(err,
                     "--search=%s:%.60s: two dots are expected between the bounds, as in lr:1e-4..1e-1, and digits on "
                     "both sides of a point, as in 0.5",
                     axis->name, text);
  if (before >= sizeof first || behind >= sizeof last)
    return error_set(err, "--search=%s:%.60s: the bounds are too long", axis->name, text);
  snprintf(first, sizeof first, "%.*s", (int)before, text);
  snprintf(last, sizeof last, "%.*s", (int)behind, dots + 2);
  const double a = search_number(first), b = search_number(last);
  if (isnan(a) || isnan(b))
    return error_set(err, "--search=%s:%.60s: two numbers are expected, as in lr:1e-4..1e-1,log", axis->name, text);
  if (whole && (a != floor(a) || b != floor(b)))
    return error_set(err, "--search=%s:%.60s: --%s takes whole numbers; give whole bounds", axis->name, text,
                     axis->name);
  if (!(a < b))
    return error_set(err, "--search=%s:%.60s: the first bound must be lower than the last", axis->name, text);
  const int log_spaced = strncmp(more, ",log", 4) == 0 && (more[4] == ',' || more[4] == '\0');
  if (log_spaced) more += 4;
  if (log_spaced && !(a > 0))
    return error_set(err, "--search=%s:%.60s: with log both bounds must be above 0; leave it out", axis->name, text);
  int n = log_spaced ? (int)ceil(log10(b / a) - 1e-9) + 1 : SEARCH_LINEAR_POINTS, end = 0;
  if (log_spaced && n < 3) n = 3;
  if (*more && (sscanf(more, ",%d%n", &n, &end) != 1 || more[end] != '\0'))
    return error_set(err,
                     "--search=%s:%.60s: behind the bounds \"log\", a number of points or both are expected, as in "
                     "lr:1e-4..1e-1,log,7",
                     axis->name, text);
  if (n < 2 || n > SEARCH_POINTS)
    return error_set(err, "--search=%s:%.60s: %d point%s; 2 to %d are expected", axis->name, text, n, n == 1 ? "" : "s",
                     SEARCH_POINTS);
  for (int i = 0; i < n; i++) {
    search_point(point, a, b, i, n, log_spaced, whole);
    if (search_add_value(axis, point, err) != 0) return -1;
  }
  return 0;
}

/* "sgd|adam" */
static inline int search_parse_list(SearchAxis *axis, const char *text, Error *err) {
  char value[SEARCH_TEXT];
  for (const char *at = text;; at++) {
    const size_t length = strcspn(at, "|");
    if (length >= sizeof value) return error_set(err, "--search=%s: %.60s is too long", axis->name, at);
    snprintf(value, sizeof value, "%.*s", (int)length, at);
    if (search_add_value(axis, value, err) != 0) return -1;
    at += length;
    if (*at == '\0') break;
  }
  if (axis->count > 1) return 0;
  return error_set(err, "--search=%s:%s is one trial; say --%s=%s instead, or give several values, as in %s:%s|...",
                   axis->name, text, axis->name, text, axis->name, text);
}

/* The option's name in --search=TEXT, with - between its words. Whether the program has it is for others to say. */
static inline int search_name(const char *text, char name[SEARCH_TEXT], Error *err) {
  const size_t length = strcspn(text, ":=");
  if (length == 0 || length >= SEARCH_TEXT || text[length] == '\0')
    return error_set(err,
                     "--search=%.60s: an option and its values are expected, as in lr:1e-4..1e-1,log or "
                     "optimizer:sgd|adam",
                     text);
  snprintf(name, SEARCH_TEXT, "%.*s", (int)length, text);
  for (char *c = name; *c; c++)
    if (*c == '_') *c = '-';
  return 0;
}

/* What --search=TEXT adds: an option that no axis has yet. `whole`: it takes whole numbers. */
static inline int search_add(SearchGrid *grid, const char *text, int whole, Error *err) {
  SearchAxis axis;
  memset(&axis, 0, sizeof axis);
  if (search_name(text, axis.name, err) != 0) return -1;
  const char *values = text + strcspn(text, ":=") + 1, *dots = strstr(values, "..");
  if ((dots && !strchr(values, '|') ? search_parse_range(&axis, values, dots, whole, err)
                                    : search_parse_list(&axis, values, err)) != 0)
    return -1;
  if (grid->axes == SEARCH_AXES) return error_set(err, "--search: up to %d options are searched at once", SEARCH_AXES);
  const int trials = (grid->trials ? grid->trials : 1) * axis.count;
  if (trials > SEARCH_TRIALS)
    return error_set(err, "--search: the grid has %d trials; up to %d are possible", trials, SEARCH_TRIALS);
  grid->axis[grid->axes++] = axis;
  grid->trials = trials;
  return 0;
}

/* Which value of an axis a trial has: the digits of its number, the last axis in the last digit. */
static inline int search_index(const SearchGrid *grid, int trial, int axis) {
  for (int a = grid->axes - 1; a > axis; a--) trial /= grid->axis[a].count;
  return trial % grid->axis[axis].count;
}

static inline const char *search_value(const SearchGrid *grid, int trial, int axis) {
  return grid->axis[axis].value[search_index(grid, trial, axis)];
}

/* "lr=0.01, optimizer=adam" */
static inline const char *search_trial_text(const SearchGrid *grid, int trial, char *text, size_t size) {
  size_t used = 0;
  for (int a = 0; a < grid->axes && used < size; a++)
    used += (size_t)snprintf(text + used, size - used, "%s%s=%s", a ? ", " : "", grid->axis[a].name,
                             search_value(grid, trial, a));
  return text;
}

#endif /* PHASE4_TRAINING_SEARCH_GRID_H */
