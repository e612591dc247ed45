/* calibrate.h - which range of an array int8 shall cover: three answers, from pictures that the network will see.
 *
 *   min-max      the largest |x| that was seen. Nothing is cut off; one outlier makes all steps large
 *   percentile   all but the largest 0.01 % of |x| (or another share)
 *   entropy      the range whose 128 steps (of uint8: 256) lose least information: the histogram of |x|, cut off
 *                there, and what the steps leave of it differ least in the sense of Kullback and Leibler
 *                (Migacz, 8-bit inference with TensorRT, 2017)
 *
 *     CalibrateRange range = {};
 *     for (each batch) calibrate_largest(&range, x, count);        // first all batches once
 *     for (each batch) calibrate_count(&range, x, count);          // then again: the histogram has that range
 *     float scale = calibrate_most(&range, CALIBRATE_ENTROPY, 0, 128) / 127;
 */
#ifndef PHASE5_PRODUCTION_CALIBRATE_H
#define PHASE5_PRODUCTION_CALIBRATE_H

#include <math.h>
#include <stdint.h>
#include <string.h>

enum { CALIBRATE_BINS = 2048, CALIBRATE_STRIDE = 8 /* bins from one end to the next tried */ };

typedef enum CalibrateMethod { CALIBRATE_MIN_MAX, CALIBRATE_PERCENTILE, CALIBRATE_ENTROPY } CalibrateMethod;

enum { CALIBRATE_METHODS = 3 };
#define CALIBRATE_USUAL_SHARE 0.9999 /* of CALIBRATE_PERCENTILE */

static inline const char *calibrate_name(CalibrateMethod method) {
  static const char *const names[] = {"minmax", "percentile", "entropy"};
  return names[method];
}

/* -1: there is none of this name. */
static inline int calibrate_find(const char *name) {
  for (int i = 0; i < CALIBRATE_METHODS; i++)
    if (strcmp(calibrate_name((CalibrateMethod)i), name) == 0) return i;
  return -1;
}

typedef struct CalibrateRange {
  float most;                   /* the largest |x| */
  uint64_t bin[CALIBRATE_BINS]; /* how many |x| lie in each part of 0 to `most` */
  uint64_t zeros;               /* of those in bin 0: exactly 0, which every scale has */
} CalibrateRange;

/* What is not finite has no range, and is left out. */
static inline void calibrate_largest(CalibrateRange *range, const float *x, size_t count) {
  for (size_t i = 0; i < count; i++) {
    const float size = fabsf(x[i]);
    if (size > range->most && isfinite(size)) range->most = size;
  }
}

static inline void calibrate_count(CalibrateRange *range, const float *x, size_t count) {
  const float bins = range->most > 0 ? CALIBRATE_BINS / range->most : 0;
  for (size_t i = 0; i < count; i++) {
    const float size = fabsf(x[i]);
    if (!isfinite(size)) continue;
    const float at = size * bins;
    range->bin[at < CALIBRATE_BINS ? (int)at : CALIBRATE_BINS - 1]++;
    range->zeros += size == 0;
  }
}

/* The end of the bins that hold `share` of all numbers. */
static inline float calibrate_percentile(const CalibrateRange *range, double share) {
  uint64_t all = 0, below = 0;
  int end = 0;
  for (int i = 0; i < CALIBRATE_BINS; i++) all += range->bin[i];
  while (end < CALIBRATE_BINS && (double)below < share * (double)all) below += range->bin[end++];
  return range->most * (float)end / CALIBRATE_BINS;
}

/* How much information about the numbers is lost when int8 ends after `end` bins: sum of p log(p / q). p: the
 * histogram, with what lies beyond in the last bin. q: the same without that, as `steps` steps tell it: a step knows
 * how many numbers it holds, spread evenly over those of its bins that hold any. */
static inline double calibrate_divergence(const double *bin, int end, double beyond, int steps) {
  double all_p = beyond, all_q = 0, sum = 0;
  for (int i = 0; i < end; i++) all_p += bin[i], all_q += bin[i];
  if (all_q <= 0) return INFINITY;
  for (int step = 0; step < steps; step++) {
    const int first = (int)((long)step * end / steps), last = (int)((long)(step + 1) * end / steps);
    double held = 0;
    int filled = 0;
    for (int i = first; i < last; i++) held += bin[i], filled += bin[i] > 0;
    for (int i = first; i < last; i++) {
      const double p = (bin[i] + (i == end - 1 ? beyond : 0)) / all_p;
      const double q = bin[i] > 0 ? held / filled / all_q : 0;
      if (p > 0) sum += p * log(p / (q > 1e-9 ? q : 1e-9));
    }
  }
  return sum;
}

/* Zeros are left out: every range has them, and behind a ReLU they would be half of all. */
static inline float calibrate_entropy(const CalibrateRange *range, int steps) {
  double bin[CALIBRATE_BINS], beyond = 0, least = INFINITY;
  int best = CALIBRATE_BINS;
  for (int i = 0; i < CALIBRATE_BINS; i++) bin[i] = (double)range->bin[i];
  bin[0] -= (double)range->zeros;
  for (int end = CALIBRATE_BINS; end >= steps; end -= CALIBRATE_STRIDE) {
    const double divergence = calibrate_divergence(bin, end, beyond, steps);
    if (divergence < least) {
      least = divergence;
      best = end;
    }
    for (int i = 1; i <= CALIBRATE_STRIDE; i++) beyond += bin[end - i];
  }
  return range->most * ((float)best + (best < CALIBRATE_BINS ? 0.5f : 0)) / CALIBRATE_BINS;
}

/* share: of CALIBRATE_PERCENTILE; 0: the usual one. steps: sizes that the numbers will have, 128 or 256. */
static inline float calibrate_most(const CalibrateRange *range, CalibrateMethod method, double share, int steps) {
  if (method == CALIBRATE_PERCENTILE) return calibrate_percentile(range, share > 0 ? share : CALIBRATE_USUAL_SHARE);
  return method == CALIBRATE_ENTROPY ? calibrate_entropy(range, steps) : range->most;
}

#endif /* PHASE5_PRODUCTION_CALIBRATE_H */
