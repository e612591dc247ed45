/* batch_norm2d_cpu_fast.cuh - batch_norm2d.cuh for training on a CPU.
 *
 * One thread takes a channel. A channel of 64 images of 28 x 28 has 200 KB, so the second pass finds it in the core's
 * own cache. The statistics take one pass: of each plane the sums of x - x[0] and of its square, in vectors of floats,
 * and the planes' means and squares are merged in double, in their order. So the results do not depend on the number of
 * threads. */
#ifndef PHASE3_CNN_BATCH_NORM2D_CPU_FAST_CUH
#define PHASE3_CNN_BATCH_NORM2D_CPU_FAST_CUH

#include "common/simd.h"
#include "phase3_cnn/10_batch_norm/batch_norm2d_arrays.cuh"

/* Vectors of a plane that are added up before a float would lose digits. */
enum { BATCH_NORM_CPU_PIECE = 4096 };

/* The sums of x - shift and of its square. */
CPU_CLONES static inline void batch_norm2d_cpu_moments(const float *x, int n, float shift, float *sum, float *squares) {
  float a = 0, b = 0;
#pragma omp simd reduction(+ : a, b)
  for (int i = 0; i < n; i++) {
    const float d = x[i] - shift;
    a += d;
    b += d * d;
  }
  *sum = a;
  *squares = b;
}

/* y = relu?(scale (x - mean) + beta) of a plane */
CPU_CLONES static inline void batch_norm2d_cpu_scale(float *y, const float *x, int n, float mean, float scale,
                                                     float beta, int relu) {
  const float floor = relu ? 0 : -INFINITY; /* NaN is not below it, and stays */
#pragma omp simd
  for (int i = 0; i < n; i++) {
    const float v = (x[i] - mean) * scale + beta;
    y[i] = v < floor ? floor : v;
  }
}

CPU_CLONES static inline void batch_norm2d_cpu_scale_add(float *y, const float *x, const float *z, int n, float mean,
                                                         float scale, float beta) {
#pragma omp simd
  for (int i = 0; i < n; i++) {
    const float v = (x[i] - mean) * scale + beta + z[i];
    y[i] = v < 0 ? 0 : v;
  }
}

/* Bits of n values from bit `first` on; the word that the first belongs to keeps its lower bits. */
CPU_CLONES static inline void batch_norm2d_cpu_pack(uint32_t *words, size_t first, const float *y, int n) {
  for (int i = 0, size; i < n; i += size) {
    const int bit = (int)((first + (size_t)i) % 32);
    uint32_t *to = words + (first + (size_t)i) / 32, word = 0;
    size = 32 - bit < n - i ? 32 - bit : n - i;
    if (size == 32) { /* a loop of known length becomes vectors */
#pragma omp simd reduction(| : word)
      for (int k = 0; k < 32; k++) word |= (uint32_t) !(y[i + k] <= 0) << k;
    } else {
      word = bit ? *to : 0;
      for (int k = 0; k < size; k++) word |= (uint32_t) !(y[i + k] <= 0) << (bit + k);
    }
    *to = word;
  }
}

static inline void batch_norm2d_cpu_apply(const BatchNorm2d *b, int c, float mean, float inv_std, int keep_bits) {
  const BatchNorm2dShape s = b->shape;
  const float scale = b->gamma[c] * inv_std, beta = b->beta[c];
  for (int n = 0; n < s.n; n++) {
    const size_t at = ((size_t)n * s.c + c) * s.pixels;
    if (b->after != BATCH_NORM_ADD_RELU) {
      batch_norm2d_cpu_scale(b->y + at, b->x + at, s.pixels, mean, scale, beta, b->after == BATCH_NORM_RELU);
      continue;
    }
    batch_norm2d_cpu_scale_add(b->y + at, b->x + at, b->z + at, s.pixels, mean, scale, beta);
    if (keep_bits)
      batch_norm2d_cpu_pack(b->passed + c * batch_norm2d_words(s), (size_t)n * s.pixels, b->y + at, s.pixels);
  }
}

static inline void batch_norm2d_forward_cpu_fast(const BatchNorm2d *b) {
  const BatchNorm2dShape s = b->shape;
  const double m = (double)batch_norm2d_count(s);
#pragma omp parallel for schedule(static)
  for (int c = 0; c < s.c; c++) {
    double count = 0, mean = 0, squares = 0;
    for (int n = 0; n < s.n; n++)
      for (int p = 0; p < s.pixels; p += BATCH_NORM_CPU_PIECE) {
        const float *x = b->x + ((size_t)n * s.c + c) * s.pixels + p, shift = x[0];
        const int size = s.pixels - p < BATCH_NORM_CPU_PIECE ? s.pixels - p : BATCH_NORM_CPU_PIECE;
        float sum, square;
        batch_norm2d_cpu_moments(x, size, shift, &sum, &square);
        /* merged with what there is: Chan, Golub, LeVeque, 1979 */
        const double own = shift + (double)sum / size, delta = own - mean, all = count + size;
        squares += square - (double)sum * sum / size + delta * delta * count * size / all;
        mean += delta * size / all;
        count = all;
      }
    b->mean[c] = (float)mean;
    b->inv_std[c] = (float)(1 / sqrt(squares / m + (double)BATCH_NORM_EPSILON));
    if (b->new_mean) b->new_mean[c] = batch_norm2d_track(b->old_mean[c], (float)mean);
    // >>> hidden batch_norm_running_variance
    if (b->new_var) b->new_var[c] = batch_norm2d_track(b->old_var[c], (float)(squares / (m - 1)));
    // <<< hidden
    batch_norm2d_cpu_apply(b, c, b->mean[c], b->inv_std[c], 1);
  }
}

static inline void batch_norm2d_evaluate_cpu_fast(const BatchNorm2d *b) {
#pragma omp parallel for schedule(static)
  for (int c = 0; c < b->shape.c; c++)
    batch_norm2d_cpu_apply(b, c, b->old_mean[c], 1 / sqrtf(b->old_var[c] + BATCH_NORM_EPSILON), 0);
}

/* One channel's numbers for backward. */
typedef struct BatchNorm2dCpuLine {
  float mean, inv_std, scale, beta, share, slope;
  int relu;
} BatchNorm2dCpuLine;

/* g of a plane is dy, or dy where the ReLU's argument is above 0 or NaN. */
CPU_CLONES static inline void batch_norm2d_cpu_sums(const float *dy, const float *x, int n, BatchNorm2dCpuLine l,
                                                    float *sum, float *product) {
  float a = 0, b = 0;
  const float floor = l.relu ? 0 : -INFINITY;
#pragma omp simd reduction(+ : a, b)
  for (int i = 0; i < n; i++) {
    const float d = x[i] - l.mean, own = dy[i], g = d * l.scale + l.beta <= floor ? 0 : own;
    a += g;
    b += g * (d * l.inv_std);
  }
  *sum = a;
  *product = b;
}

CPU_CLONES static inline void batch_norm2d_cpu_dx(float *dx, const float *dy, const float *x, int n,
                                                  BatchNorm2dCpuLine l) {
  const float floor = l.relu ? 0 : -INFINITY;
#pragma omp simd
  for (int i = 0; i < n; i++) {
    const float d = x[i] - l.mean, own = dy[i], g = d * l.scale + l.beta <= floor ? 0 : own;
    dx[i] = l.scale * (g - l.share - d * l.inv_std * l.slope);
  }
}

/* dy where the bits are set; `first` is the bit of the first value. */
CPU_CLONES static inline void batch_norm2d_cpu_mask(float *g, const float *dy, const uint32_t *words, size_t first,
                                                    int n) {
  for (int i = 0, size; i < n; i += size) {
    const int bit = (int)((first + (size_t)i) % 32);
    const uint32_t word = words[(first + (size_t)i) / 32] >> bit;
    size = 32 - bit < n - i ? 32 - bit : n - i;
    if (size == 32) {
#pragma omp simd
      for (int k = 0; k < 32; k++) {
        const float own = dy[i + k];
        g[i + k] = word >> k & 1 ? own : 0;
      }
    } else {
      for (int k = 0; k < size; k++) g[i + k] = word >> k & 1 ? dy[i + k] : 0;
    }
  }
}

/* What a plane's loops read as dy: dz, which is written first, or the piece. */
static inline const float *batch_norm2d_cpu_g(const BatchNorm2d *b, int c, int n, int p, int size, float *piece) {
  const size_t at = ((size_t)n * b->shape.c + c) * b->shape.pixels + p;
  if (b->after != BATCH_NORM_ADD_RELU) return b->dy + at;
  float *g = b->dz ? b->dz + at : piece;
  batch_norm2d_cpu_mask(g, b->dy + at, b->passed + c * batch_norm2d_words(b->shape),
                        (size_t)n * b->shape.pixels + (size_t)p, size);
  return g;
}

static inline void batch_norm2d_backward_cpu_fast(const BatchNorm2d *b) {
  const BatchNorm2dShape s = b->shape;
  const double m = (double)batch_norm2d_count(s);
#pragma omp parallel for schedule(static)
  for (int c = 0; c < s.c; c++) {
    float piece[BATCH_NORM_CPU_PIECE];
    double sum = 0, product = 0;
    BatchNorm2dCpuLine l = {
        b->mean[c], b->inv_std[c], b->gamma[c] * b->inv_std[c], b->beta[c], 0, 0, b->after == BATCH_NORM_RELU};
    for (int turn = 0; turn < (b->dx ? 2 : 1); turn++) {
      for (int n = 0; n < s.n; n++)
        for (int p = 0; p < s.pixels; p += BATCH_NORM_CPU_PIECE) {
          const size_t at = ((size_t)n * s.c + c) * s.pixels + p;
          const int size = s.pixels - p < BATCH_NORM_CPU_PIECE ? s.pixels - p : BATCH_NORM_CPU_PIECE;
          const float *g = turn && b->after == BATCH_NORM_ADD_RELU && b->dz
                               ? b->dz + at
                               : batch_norm2d_cpu_g(b, c, n, p, size, piece);
          float own_sum, own_product;
          if (turn) {
            batch_norm2d_cpu_dx(b->dx + at, g, b->x + at, size, l);
            continue;
          }
          batch_norm2d_cpu_sums(g, b->x + at, size, l, &own_sum, &own_product);
          sum += own_sum;
          product += own_product;
        }
      l.share = (float)(sum / m);
      l.slope = (float)(product / m);
    }
    if (b->dgamma == NULL) continue;
    b->dbeta[c] = (float)sum;
    b->dgamma[c] = (float)product;
  }
}

#endif /* PHASE3_CNN_BATCH_NORM2D_CPU_FAST_CUH */
