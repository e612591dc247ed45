/* compare_diagnose_places.h - where the wrong elements are: the last tile, all but the first, every k-th. */
#ifndef COMMON_COMPARE_DIAGNOSE_PLACES_H
#define COMMON_COMPARE_DIAGNOSE_PLACES_H

#include "common/compare_diagnose.h"

/* Are the elements with this mark every k-th one, without a gap, and at least three? */
static inline int compare_every_kth(const CompareView *v, int mark, size_t *k, size_t *first) {
  size_t n = v->rows * v->cols, found = 0;
  *k = *first = 0;
  for (size_t i = 0; i < n; i++) {
    if (v->marked[i] != mark) continue;
    if (found == 0) *first = i;
    if (found == 1) *k = i - *first;
    if (i != *first + found * *k) return 0;
    found++;
  }
  return found >= 3 && *k >= 2 && *first < *k && *first + found * *k >= n;
}

/* Are the marked elements those beyond some row *r0 or column *c0, which the first column and row show? */
static inline int compare_is_beyond(const CompareView *v, size_t *r0, size_t *c0) {
  for (*r0 = 0; *r0 < v->rows && !v->marked[*r0 * v->cols];) ++*r0;
  for (*c0 = 0; *c0 < v->cols && !v->marked[*c0];) ++*c0;
  if (*r0 == 0 || *c0 == 0) return 0;
  size_t beyond = v->rows * v->cols - *r0 * *c0;
  for (size_t r = 0; r < *r0; r++)
    for (size_t c = 0; c < *c0; c++)
      if (v->marked[r * v->cols + c]) return 0;
  return beyond > 0 && (double)v->count >= 0.9 * (double)beyond; /* a few may be right by chance */
}

/* Is `start` the end of the last whole tile? */
static inline int compare_tile_fits(size_t tile, size_t start, size_t size) {
  return start == size || (start % tile == 0 && size - start < tile);
}

static inline Diagnosis compare_places(const CompareView *view, Comparison *c) {
  size_t k, first, r0, c0;
  const int unwritten = c->values == DIAGNOSIS_NEVER_WRITTEN;
  if (view->count == view->rows * view->cols) {
    compare_say(c, " That is every element.");
    return DIAGNOSIS_EVERYWHERE;
  }
  if (compare_every_kth(view, 0, &k, &first) && k > 2) {
    compare_say(c, " Only one in %zu elements (%zu, %zu, ...) is spared.", k, first, first + k);
    return DIAGNOSIS_ALL_BUT_EVERY_NTH;
  }
  int kth = compare_every_kth(view, 1, &k, &first);
  if (!kth || k == view->cols) { /* one whole column may be a partial tile */
    CompareView flat = *view;
    flat.rows = 1;
    flat.cols = view->rows * view->cols;
    const CompareView *v = compare_is_beyond(view, &r0, &c0) ? view : &flat;
    if (v == view || compare_is_beyond(v, &r0, &c0)) {
      for (size_t tile = 256; tile >= 4; tile /= 2)
        if (compare_tile_fits(tile, r0, v->rows) && compare_tile_fits(tile, c0, v->cols)) {
          if ((r0 == v->rows || r0 == tile) && (c0 == v->cols || c0 == tile)) /* there is one whole tile */
            compare_say(c,
                        " They lie beyond the first tile of %zu: is blockIdx in the index, is the grid rounded up, and "
                        "what does "
                        "the bounds test compare with?",
                        tile);
          else
            compare_say(
                c,
                " They fill the last partial tile of %zu: round the grid up and treat the edge, and compare the "
                "bounds test with the size.",
                tile);
          return DIAGNOSIS_LAST_TILE;
        }
      if (!unwritten && r0 * c0 < 4) return DIAGNOSIS_SCATTERED; /* those may be right by chance */
      if (v->rows == 1)
        compare_say(c, " Only the first %zu elements are %s", c0, unwritten ? "written" : "right");
      else
        compare_say(c, " Only the first %zu rows x %zu columns are %s", r0, c0, unwritten ? "written" : "right");
      /* Blocks have multiples of 32 threads, tiles powers of two; a bounds test may end anywhere. */
      if (!unwritten)
        compare_say(c, ": do the others read their own elements of each array?");
      else if ((r0 == v->rows || r0 == 1 || r0 % 8 == 0) && (c0 == v->cols || c0 == 1 || c0 % 8 == 0))
        compare_say(c, ": does the grid cover the array, is blockIdx in the index?");
      else
        compare_say(c, ": that is not a whole number of blocks, so look at the bounds test.");
      return DIAGNOSIS_AFTER_FIRST;
    }
  }
  if (kth) {
    compare_say(c, " They are one in %zu elements (%zu, %zu, ...).", k, first, first + k);
    return DIAGNOSIS_EVERY_NTH;
  }
  return DIAGNOSIS_SCATTERED;
}

#endif /* COMMON_COMPARE_DIAGNOSE_PLACES_H */
