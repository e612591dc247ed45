/* compare_diagnose_moved.h - right values in the wrong elements: transposed, shifted, permuted, moved, or added up in
 * one place. Each recogniser compare_see_*() returns 1, and appends a sentence, when it explains all marked
 * elements. */
#ifndef COMMON_COMPARE_DIAGNOSE_MOVED_H
#define COMMON_COMPARE_DIAGNOSE_MOVED_H

#include "common/compare_diagnose.h"

static inline int compare_is_transposed(const CompareView *v) {
  size_t n = v->rows * v->cols;
  if (v->rows == 1 || v->cols == 1) return 0;
  for (size_t i = 0; i < n; i++) {
    float there = v->expected[i % v->rows * v->cols + i / v->rows];
    if (v->marked[i] && !compare_element(&v->actual[i], there, v->tolerance)) return 0;
  }
  return compare_explained(v, v->count);
}

/* Is each tile transposed within itself? Where a tile reaches beyond the array, nothing is known. */
static inline int compare_is_turned(const CompareView *v, size_t tile) {
  size_t held = 0, apart = 0;
  for (size_t r = 0; r < v->rows; r++)
    for (size_t c = 0; c < v->cols; c++) {
      size_t row = r / tile * tile + c % tile, col = c / tile * tile + r % tile;
      const float *here = &v->actual[r * v->cols + c];
      if (!v->marked[r * v->cols + c] || row >= v->rows || col >= v->cols) continue;
      if (!compare_element(here, v->expected[row * v->cols + col], v->tolerance)) return 0;
      held++;
      apart += !compare_element(here, v->expected[r * v->cols + c], v->tolerance);
    }
  return compare_explained(v, held) && held >= 6 && apart == held;
}

static inline int compare_see_transposed(CompareView *v, Comparison *c) {
  for (size_t tile = 2; tile <= 32 && v->rows > 1; tile *= 2) {
    if (!compare_is_turned(v, tile) || (tile >= v->rows && tile >= v->cols)) continue;
    compare_say(c, " Rows and columns are exchanged within each tile of %zu x %zu.", tile, tile);
    c->values = DIAGNOSIS_TRANSPOSED;
    return 1;
  }
  if (!compare_is_transposed(v)) return 0;
  compare_say(c, " The output is the transpose: rows and columns are exchanged in an index.");
  c->values = DIAGNOSIS_TRANSPOSED;
  return 1;
}

/* Does every marked element hold the value that is expected `down` rows and `right` columns from it? Where that lies
 * outside of the array, nothing is known. */
static inline int compare_is_shifted(const CompareView *v, int down, int right) {
  size_t held = 0;
  for (size_t r = 0; r < v->rows; r++)
    for (size_t c = 0; c < v->cols; c++) {
      size_t row = r + (size_t)down, col = c + (size_t)right; /* -1 wraps round to a huge number */
      if (!v->marked[r * v->cols + c] || row >= v->rows || col >= v->cols) continue;
      if (!compare_element(&v->actual[r * v->cols + c], v->expected[row * v->cols + col], v->tolerance)) return 0;
      held++;
    }
  return compare_explained(v, held);
}

static inline int compare_see_shifted(CompareView *v, Comparison *c) {
  for (int by = -1; by <= 1; by += 2) {
    int right = compare_is_shifted(v, 0, by);
    if (!right && !compare_is_shifted(v, by, 0)) continue;
    compare_say(c, " The output is shifted by one %s: elements hold the value of their %s.",
                v->rows == 1 ? "element"
                : right      ? "column"
                             : "row",
                by < 0 ? "predecessor" : "successor");
    c->values = DIAGNOSIS_SHIFTED;
    return 1;
  }
  return 0;
}

/* Does every line with a marked element hold the values of some other line? For rows `count` = rows, `step` = cols and
 * `item_step` = 1; for columns likewise. */
static inline int compare_is_permuted(const CompareView *v, size_t count, size_t length, size_t step, size_t item_step,
                                      size_t *line, size_t *source) {
  if (length < 3 || count > 4096) return 0; /* the search is quadratic */
  size_t found = 0;
  for (size_t l = 0; l < count; l++) {
    size_t first = 0;
    while (first < length && !v->marked[l * step + first * item_step]) first++;
    if (first == length) continue;
    size_t s = 0, i = 0;
    for (; s < count; s++) {
      for (i = 0; i < length; i++)
        if (!compare_element(&v->actual[l * step + i * item_step], v->expected[s * step + i * item_step], v->tolerance))
          break;
      if (i == length) break;
    }
    if (s == count) return 0;
    if (found++ == 0) {
      *line = l;
      *source = s;
    }
  }
  return found >= 2;
}

static inline int compare_see_permuted(CompareView *v, Comparison *c) {
  size_t line = 0, source = 0;
  int rows = compare_is_permuted(v, v->rows, v->cols, v->cols, 1, &line, &source);
  if (!rows && !compare_is_permuted(v, v->cols, v->rows, 1, v->cols, &line, &source)) return 0;
  compare_say(c, " %s are permuted: %s %zu holds the values of %s %zu.", rows ? "Rows" : "Columns",
              rows ? "row" : "column", line, rows ? "row" : "column", source);
  c->values = DIAGNOSIS_PERMUTED;
  return 1;
}

/* Does group i of `group` elements hold the values of group i / divided * times? Where that lies outside of the array,
 * nothing is known. */
static inline int compare_is_moved(const CompareView *v, size_t group, size_t times, size_t divided) {
  size_t n = v->rows * v->cols, held = 0, apart = 0;
  for (size_t i = 0; i < n; i++) {
    size_t from = i / group / divided * times * group + i % group;
    if (!v->marked[i] || from >= n) continue;
    if (!compare_element(&v->actual[i], v->expected[from], v->tolerance)) return 0;
    held++;
    apart += !compare_element(&v->expected[i], v->expected[from], v->tolerance);
  }
  return held >= 4 && apart >= 4;
}

/* Are elements 2 i and 2 i + 1 exchanged? */
static inline int compare_is_exchanged(const CompareView *v) {
  size_t n = v->rows * v->cols, held = 0;
  for (size_t i = 0; i < n; i++) {
    size_t from = i ^ 1;
    if (!v->marked[i] || from >= n) continue;
    if (!compare_element(&v->actual[i], v->expected[from], v->tolerance)) return 0;
    held++;
  }
  return held >= 4;
}

static inline int compare_see_moved(CompareView *v, Comparison *c) {
  if (compare_is_exchanged(v)) {
    compare_say(c, " Neighbours are exchanged: elements 0 and 1, 2 and 3, ...");
    c->values = DIAGNOSIS_MOVED;
    return 1;
  }
  for (size_t group = 1; group <= 4; group += 3) {
    const char *what = group == 1 ? "element i" : "group of four, number i,";
    for (size_t k = 2; k <= 32; k++) {
      int times = compare_is_moved(v, group, k, 1), divided = !times && compare_is_moved(v, group, 1, k);
      int first = !times && !divided && compare_is_moved(v, group, k, k);
      if (times) compare_say(c, " Each %s holds what belongs into %zu i: the index is multiplied by %zu.", what, k, k);
      if (divided) compare_say(c, " Each %s holds what belongs into i / %zu: the index is divided by %zu.", what, k, k);
      if (first) compare_say(c, " Each %zu neighbours hold what belongs into the first of them.", k);
      if (!times && !divided && !first) continue;
      c->values = DIAGNOSIS_MOVED;
      return 1;
    }
  }
  return 0;
}

/* Of each k lines, is the first the sum of all, and the others 0? */
static inline int compare_is_gathered(const CompareView *v, size_t k, size_t count, size_t length, size_t step,
                                      size_t item_step) {
  size_t apart = 0;
  for (size_t l = 0; l < count; l++)
    for (size_t i = 0; i < length; i++) {
      const size_t at = l * step + i * item_step;
      double sum = 0, size = 0;
      for (size_t other = l; other < l + k && other < count && l % k == 0; other++) {
        sum += v->expected[other * step + i * item_step];
        size += fabs((double)v->expected[other * step + i * item_step]);
      }
      double noise = (double)k * v->tolerance.absolute + (v->tolerance.relative + 1e-5) * size;
      if (!(fabs(v->actual[at] - sum) <= noise)) return 0;
      apart += v->marked[at];
    }
  return compare_explained(v, apart);
}

static inline int compare_see_gathered(CompareView *v, Comparison *c) {
  for (size_t k = 2; k <= 32; k *= 2)
    for (int rows = 1; rows >= 0; rows--) {
      size_t count = rows ? v->rows : v->cols, length = rows ? v->cols : v->rows;
      if (count <= k || !compare_is_gathered(v, k, count, length, rows ? v->cols : 1, rows ? 1 : v->cols)) continue;
      compare_say(c, " Of each %zu %s the first holds the sum of all, and the others are 0: do all add to one place?",
                  k,
                  rows           ? "rows"
                  : v->rows == 1 ? "elements"
                                 : "columns");
      c->values = DIAGNOSIS_GATHERED;
      return 1;
    }
  return 0;
}

#endif /* COMMON_COMPARE_DIAGNOSE_MOVED_H */
