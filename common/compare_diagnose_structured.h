/* compare_diagnose_structured.h - outputs whose numbers have a structure: an order of 0 to n - 1, words made of bytes,
 * a mask of zeros. Each recogniser compare_see_*() returns 1, and appends a sentence, when it explains all marked
 * elements. */
#ifndef COMMON_COMPARE_DIAGNOSE_STRUCTURED_H
#define COMMON_COMPARE_DIAGNOSE_STRUCTURED_H

#include "common/compare_diagnose.h"

/* Are the expected values the numbers 0 to n - 1, each once, as in an order or a permutation? Sets all of `place` (n)
 * to n, which stands for "not seen yet". */
static inline int compare_is_order(const CompareView *v, size_t *place) {
  size_t n = v->rows * v->cols, once = 0;
  for (size_t i = 0; i < n; i++) place[i] = n;
  for (size_t i = 0; i < n; i++) {
    float x = v->expected[i];
    if (!(x >= 0 && x < (float)n) || x != floorf(x) || place[(size_t)x] != n) return 0;
    place[(size_t)x] = i;
    once++;
  }
  for (size_t i = 0; i < n; i++) place[i] = n;
  return once >= 3;
}

static inline int compare_see_repeated(CompareView *v, Comparison *c) {
  size_t n = v->rows * v->cols, *place = (size_t *)xmalloc(n * sizeof *place);
  int said = 0;
  for (size_t i = 0; n < 1 << 24 && (i > 0 || compare_is_order(v, place)) && i < n && !said; i++) {
    float x = v->actual[i];
    int inside = x >= 0 && x < (float)n && x == floorf(x);
    said = !inside || place[(size_t)x] != n;
    if (!inside)
      compare_say(c, " Element %zu is %g: each number from 0 to %zu must stand there once.", i, (double)x, n - 1);
    else if (said)
      compare_say(
          c, " The number %g stands there twice, in elements %zu and %zu: each from 0 to %zu must stand there once.",
          (double)x, place[(size_t)x], i, n - 1);
    else
      place[(size_t)x] = i;
  }
  free(place);
  if (said) c->values = DIAGNOSIS_REPEATED;
  return said;
}

static inline int compare_see_reordered(CompareView *v, Comparison *c) {
  size_t n = v->rows * v->cols, *place = (size_t *)xmalloc(n * sizeof *place);
  int order = n < 1 << 24 && compare_is_order(v, place); /* and none is repeated: compare_see_repeated() was asked */
  free(place);
  if (!order) return 0;
  compare_say(c, " Each number from 0 to %zu stands there once, as it must, but they are in another order.", n - 1);
  c->values = DIAGNOSIS_REORDERED;
  return 1;
}

/* Joins two halves of 16 bits to a number of 32 bits. Returns 0 when they are no such halves. */
static inline int compare_halves(const float *half, uint32_t *number) {
  for (int i = 0; i < 2; i++)
    if (!(half[i] >= 0 && half[i] <= 65535) || half[i] != floorf(half[i])) return 0;
  *number = (uint32_t)half[0] << 16 | (uint32_t)half[1];
  return 1;
}

/* The bytes of `number`, joined in another order, `bits` bits apart, with the last byte (is_signed = 1) or all bytes
 * (2) taken for signed ones. Byte 0 is the most significant. */
static inline uint32_t compare_bytes(uint32_t number, const int order[4], int bits, int is_signed) {
  uint32_t joined = 0;
  for (int i = 0; i < 4; i++) {
    uint32_t byte = number >> 8 * (3 - order[i]) & 255;
    if (byte >= 128 && (is_signed > 1 || (is_signed && i == 3))) byte |= 0xFFFFFF00u;
    joined |= byte << bits * (3 - i);
  }
  return joined;
}

/* For numbers of 32 bits, stored as two halves of 16 with the upper one first: were their bytes joined wrongly? */
static inline int compare_see_bytes(CompareView *v, Comparison *c) {
  static const int orders[][4] = {{3, 2, 1, 0}, {0, 2, 1, 3}, {1, 0, 3, 2}, {2, 3, 0, 1}, {0, 1, 2, 3}, {1, 0, 2, 3},
                                  {0, 1, 3, 2}, {3, 1, 2, 0}, {1, 2, 3, 0}, {3, 0, 1, 2}, {0, 3, 2, 1}, {2, 1, 0, 3}};
  const size_t n = v->rows * v->cols;
  for (size_t o = 0; o < sizeof orders / sizeof *orders && n % 2 == 0; o++)
    for (int bits = 8; bits >= 4; bits--)
      for (int is_signed = 0; is_signed <= 2; is_signed++) {
        const int *order = orders[o];
        size_t apart = 0;
        int fits = 1;
        for (size_t i = 0; i < n && fits; i += 2) {
          uint32_t expected, actual;
          fits = compare_halves(&v->expected[i], &expected) && compare_halves(&v->actual[i], &actual) &&
                 compare_bytes(expected, order, bits, is_signed) == actual;
          apart += v->marked[i] || v->marked[i + 1];
        }
        if (!fits || apart < 3) continue;
        if (o == 0)
          compare_say(c, " The four bytes of each number are in the reverse order.");
        else if (order[0] != 0 || order[1] != 1 || order[2] != 2)
          compare_say(c, " The four bytes of each number are in the order %d, %d, %d, %d.", order[0], order[1],
                      order[2], order[3]);
        if (bits != 8) compare_say(c, " The bytes of each number are %d bits apart; a byte has 8.", bits);
        if (is_signed)
          compare_say(c, " Bytes of 128 and more are taken for negative numbers, which fill all bits before them.");
        c->values = DIAGNOSIS_BYTES;
        return 1;
      }
  return 0;
}

/* Zeros where there should be none, and none where there should be. All other elements are right, or, when no element
 * is zero that should not be, they have a common factor: a mask that was never applied. */
static inline int compare_see_mask(CompareView *v, Comparison *c) {
  size_t n = v->rows * v->cols, missing = 0, wrongly = 0, others = 0, anchor = n;
  for (size_t i = 0; i < n; i++) {
    if (!v->marked[i]) continue;
    missing += v->expected[i] == 0;
    wrongly += v->expected[i] != 0 && v->actual[i] == 0;
    if (v->expected[i] == 0 || v->actual[i] == 0) continue;
    others++;
    if (anchor == n || fabsf(v->expected[i]) > fabsf(v->expected[anchor])) anchor = i;
  }
  if (missing == 0 || missing + wrongly + others < 5 || (others > 0 && wrongly > 0)) return 0;
  if (others == 0 && missing + wrongly == n && wrongly > 0) {
    compare_say(c, " It is zero exactly where it should not be, and not where it should: is a condition inverted?");
  } else if (others == 0 && wrongly > 0) {
    compare_say(
        c,
        " Where neither is zero the values are right, but %zu are zero that should not be, and %zu are not zero "
        "that should be: the choice of the zeros is wrong.",
        wrongly, missing);
  } else if (others == 0) {
    compare_say(c, " All wrong elements should be zero; all others are right.");
  } else {
    double factor = (double)v->actual[anchor] / v->expected[anchor];
    for (size_t i = 0; i < n; i++) {
      double there = factor * v->expected[i];
      if (v->marked[i] && v->expected[i] != 0 && !(fabs(v->actual[i] - there) <= 1e-4 * fabs(there))) return 0;
    }
    compare_say(c, " %zu elements should be zero, and the others are %.4g times what they should be.", missing, factor);
  }
  c->values = DIAGNOSIS_WRONG_ZEROS;
  return 1;
}

#endif /* COMMON_COMPARE_DIAGNOSE_STRUCTURED_H */
