/* nearest.h - which known name somebody may have meant who typed an unknown one.
 *
 *     const char *nearest = nearest_name("warm_up", names, count);      // "warmup"; NULL where none is near
 */
#ifndef COMMON_NEAREST_H
#define COMMON_NEAREST_H

#include <stddef.h>
#include <string.h>

enum { NEAREST_MAX_NAME = 63 };

static inline size_t nearest_least(size_t a, size_t b) { return a < b ? a : b; }

/* How many letters must be inserted, removed, replaced or exchanged with their neighbour to turn `a` into `b` (the
 * restricted edit distance: no piece is changed twice). Only the first NEAREST_MAX_NAME letters of each count. */
static inline size_t nearest_distance(const char *a, const char *b) {
  const size_t rows = nearest_least(strlen(a), NEAREST_MAX_NAME), columns = nearest_least(strlen(b), NEAREST_MAX_NAME);
  size_t cost[3][NEAREST_MAX_NAME + 1]; /* of the first i letters of `a` and the first j of `b`; row i in cost[i % 3] */
  for (size_t j = 0; j <= columns; j++) cost[0][j] = j;
  for (size_t i = 1; i <= rows; i++) {
    size_t *here = cost[i % 3];
    const size_t *above = cost[(i - 1) % 3], *two_above = cost[(i + 1) % 3];
    here[0] = i;
    for (size_t j = 1; j <= columns; j++) {
      here[j] = nearest_least(nearest_least(above[j], here[j - 1]) + 1, above[j - 1] + (a[i - 1] != b[j - 1]));
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        here[j] = nearest_least(here[j], two_above[j - 2] + 1);
    }
  }
  return cost[rows % 3][columns];
}

/* The name with the smallest distance, the first of equals. NULL where even that has hardly a letter in common with
 * what was typed: more than half of the longer of the two would have to change. */
static inline const char *nearest_name(const char *typed, const char *const *names, size_t count) {
  const char *best = NULL;
  size_t least = 0;
  for (size_t i = 0; i < count; i++) {
    const size_t distance = nearest_distance(typed, names[i]), a = strlen(typed), b = strlen(names[i]);
    if (2 * distance > (a > b ? a : b) || (best != NULL && distance >= least)) continue;
    best = names[i];
    least = distance;
  }
  return best;
}

#endif /* COMMON_NEAREST_H */
