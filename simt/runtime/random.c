/* random.c - a random number generator's state, any number of steps ahead.
 *
 * A step of XORWOW's five words is linear over single bits, a step of MRG32k3a's two triples is linear modulo m1 and
 * m2. So 2^k steps are one matrix, the square of the matrix for 2^(k-1), and n steps are the product of those for the
 * bits that are set in n. The powers are computed once, when the first program needs them: about 5 ms for XORWOW.
 */
#include <pthread.h>
#include <string.h>

#include "simt/random.h"

/* ---- XORWOW: 160 x 160 bits; row i is what a state with only bit i set becomes ---- */

#define XORWOW_POWERS (SIMT_XORWOW_LOG2_SUBSEQUENCE + 64)
typedef union Row {
  uint32_t word[6]; /* the last is 0 */
  uint64_t pair[3];
} Row;
typedef Row XorwowMatrix[160];

static XorwowMatrix xorwow_powers[XORWOW_POWERS]; /* step^(2^k); 500 kB */
static pthread_once_t xorwow_once = PTHREAD_ONCE_INIT;

static void xorwow_multiply(const XorwowMatrix matrix, const uint32_t from[5], uint32_t to[5]) {
  Row sum = {{0}};
  for (int w = 0; w < 5; w++) {
    for (uint32_t bits = from[w]; bits; bits &= bits - 1) {
      const Row *row = &matrix[32 * w + __builtin_ctz(bits)];
      for (int j = 0; j < 3; j++) sum.pair[j] ^= row->pair[j];
    }
  }
  memcpy(to, sum.word, 5 * sizeof *to);
}

static void xorwow_prepare(void) {
  for (int i = 0; i < 160; i++) {
    uint32_t unused = 0, *v = xorwow_powers[0][i].word;
    v[i / 32] = 1u << i % 32;
    simt_xorwow(v, &unused);
  }
  for (int k = 1; k < XORWOW_POWERS; k++) {
    for (int i = 0; i < 160; i++) {
      xorwow_multiply(xorwow_powers[k - 1], xorwow_powers[k - 1][i].word, xorwow_powers[k][i].word);
    }
  }
}

/* Neighbouring threads ask for neighbouring subsequences of one seed: the last answer of this OS thread is one matrix
 * away from the next. */
static __thread struct {
  uint32_t from[5], to[5];
  uint64_t count;
  int log2_distance;
} xorwow_last;

void simt_xorwow_skip(uint32_t v[5], uint64_t count, int log2_distance) {
  uint32_t from[5];
  uint64_t left = count;
  if (!count) return;
  pthread_once(&xorwow_once, xorwow_prepare);
  memcpy(from, v, sizeof from);
  if (xorwow_last.count && xorwow_last.count <= count && xorwow_last.log2_distance == log2_distance &&
      memcmp(xorwow_last.from, from, sizeof from) == 0 &&
      __builtin_popcountll(count - xorwow_last.count) < __builtin_popcountll(count)) {
    left = count - xorwow_last.count;
    memcpy(v, xorwow_last.to, sizeof xorwow_last.to);
  }
  for (int k = log2_distance; left; k++, left >>= 1) {
    if (left & 1) xorwow_multiply(xorwow_powers[k], v, v);
  }
  memcpy(xorwow_last.from, from, sizeof from);
  memcpy(xorwow_last.to, v, sizeof xorwow_last.to);
  xorwow_last.count = count;
  xorwow_last.log2_distance = log2_distance;
}

/* ---- MRG32k3a: two 3 x 3 matrices ---- */

#define MRG_POWERS (SIMT_MRG_LOG2_SEQUENCE + 64)
typedef uint32_t MrgMatrix[3][3];

static MrgMatrix mrg_powers[2][MRG_POWERS]; /* of the first and of the second triple */
static const uint32_t mrg_modulus[2] = {SIMT_MRG_M1, SIMT_MRG_M2};
static pthread_once_t mrg_once = PTHREAD_ONCE_INIT;

static uint32_t mrg_dot(const uint32_t a[3], uint32_t b0, uint32_t b1, uint32_t b2, uint64_t m) {
  return (uint32_t)(((uint64_t)a[0] * b0 % m + (uint64_t)a[1] * b1 % m + (uint64_t)a[2] * b2 % m) % m);
}

static void mrg_prepare(void) {
  const MrgMatrix step[2] = {{{0, 1, 0}, {0, 0, 1}, {SIMT_MRG_M1 - SIMT_MRG_A13, SIMT_MRG_A12, 0}},
                             {{0, 1, 0}, {0, 0, 1}, {SIMT_MRG_M2 - SIMT_MRG_A23, 0, SIMT_MRG_A21}}};
  for (int part = 0; part < 2; part++) {
    memcpy(mrg_powers[part][0], step[part], sizeof step[part]);
    for (int k = 1; k < MRG_POWERS; k++) {
      MrgMatrix *half = &mrg_powers[part][k - 1];
      for (int i = 0; i < 3; i++) {
        for (int j = 0; j < 3; j++) {
          mrg_powers[part][k][i][j] =
              mrg_dot((*half)[i], (*half)[0][j], (*half)[1][j], (*half)[2][j], mrg_modulus[part]);
        }
      }
    }
  }
}

void simt_mrg32k3a_skip(uint32_t s1[3], uint32_t s2[3], uint64_t count, int log2_distance) {
  if (!count) return;
  pthread_once(&mrg_once, mrg_prepare);
  uint32_t *triples[2] = {s1, s2};
  for (int k = log2_distance; count; k++, count >>= 1) {
    if (!(count & 1)) continue;
    for (int part = 0; part < 2; part++) {
      uint32_t *s = triples[part], next[3];
      for (int i = 0; i < 3; i++) next[i] = mrg_dot(mrg_powers[part][k][i], s[0], s[1], s[2], mrg_modulus[part]);
      memcpy(s, next, sizeof next);
    }
  }
}
