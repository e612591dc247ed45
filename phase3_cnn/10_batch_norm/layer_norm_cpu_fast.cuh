/* layer_norm_cpu_fast.cuh - layer_norm.cuh for training on a CPU. One thread takes a row and adds up its elements in
 * sixteen sums side by side, which are four vectors of four. For the gradients of weight and bias one thread takes a
 * block of columns. So the results do not depend on the number of threads. */
#ifndef PHASE3_CNN_LAYER_NORM_CPU_FAST_CUH
#define PHASE3_CNN_LAYER_NORM_CPU_FAST_CUH

#include "phase3_cnn/10_batch_norm/layer_norm_cpu.cuh"

typedef float NormLanes __attribute__((vector_size(16), aligned(4), may_alias));

enum { NORM_VECTORS = 4, NORM_STEP = 4 * NORM_VECTORS };

static inline float norm_lanes_total(const NormLanes lanes[NORM_VECTORS]) {
  const NormLanes all = (lanes[0] + lanes[1]) + (lanes[2] + lanes[3]);
  return (all[0] + all[1]) + (all[2] + all[3]);
}

static inline void norm_statistics_fast(float *mean, float *inv_std, const float *x, int cols) {
  NormLanes lanes[NORM_VECTORS] = {{0}}, squares[NORM_VECTORS] = {{0}};
  const int whole = cols / NORM_STEP * NORM_STEP;
  float rest = 0, m;
  for (int j = 0; j < whole; j += NORM_STEP)
    for (int v = 0; v < NORM_VECTORS; v++) lanes[v] += *(const NormLanes *)(x + j + 4 * v);
  for (int j = whole; j < cols; j++) rest += x[j];
  m = (norm_lanes_total(lanes) + rest) / (float)cols;
  rest = 0;
  for (int j = 0; j < whole; j += NORM_STEP)
    for (int v = 0; v < NORM_VECTORS; v++) {
      const NormLanes d = *(const NormLanes *)(x + j + 4 * v) - m;
      squares[v] += d * d;
    }
  for (int j = whole; j < cols; j++) rest += (x[j] - m) * (x[j] - m);
  *mean = m;
  *inv_std = 1 / sqrtf((norm_lanes_total(squares) + rest) / (float)cols + LAYER_NORM_EPSILON);
}

static inline void layer_norm_forward_cpu_fast(float *y, float *saved, const float *x, const float *weight,
                                               const float *bias, int rows, int cols) {
#pragma omp parallel for schedule(static) if ((size_t)rows * cols > 32768)
  for (int r = 0; r < rows; r++) {
    const float *row = x + (size_t)r * cols;
    float *out = y + (size_t)r * cols, mean, inv_std;
    norm_statistics_fast(&mean, &inv_std, row, cols);
    saved[r] = mean;
    saved[rows + r] = inv_std;
    if (weight && bias)
      for (int j = 0; j < cols; j++) out[j] = (row[j] - mean) * inv_std * weight[j] + bias[j];
    else
      for (int j = 0; j < cols; j++)
        out[j] = (row[j] - mean) * inv_std * (weight ? weight[j] : 1.0f) + (bias ? bias[j] : 0.0f);
  }
}

/* sums[0]: of g t, sums[1]: of g, with g = dy * weight; weight NULL: 1. */
static inline void norm_gradient_sums_fast(float sums[2], const float *dy, const float *x, const float *weight,
                                           float mean, float inv_std, int cols) {
  NormLanes product[NORM_VECTORS] = {{0}}, sum[NORM_VECTORS] = {{0}};
  const int whole = cols / NORM_STEP * NORM_STEP;
  sums[0] = sums[1] = 0;
  for (int j = 0; j < whole; j += NORM_STEP)
    for (int v = 0; v < NORM_VECTORS; v++) {
      NormLanes g = *(const NormLanes *)(dy + j + 4 * v);
      if (weight) g *= *(const NormLanes *)(weight + j + 4 * v);
      product[v] += g * ((*(const NormLanes *)(x + j + 4 * v) - mean) * inv_std);
      sum[v] += g;
    }
  for (int j = whole; j < cols; j++) {
    const float g = weight ? dy[j] * weight[j] : dy[j];
    sums[0] += g * ((x[j] - mean) * inv_std);
    sums[1] += g;
  }
  sums[0] += norm_lanes_total(product);
  sums[1] += norm_lanes_total(sum);
}

/* A thread takes blocks of NORM_COLUMNS columns and walks through all rows, so the sums have one order. */
static inline void layer_norm_weight_gradient_fast(float *dweight, float *dbias, const float *dy, const float *x,
                                                   const float *saved, int rows, int cols) {
  enum { NORM_COLUMNS = 64 };
#pragma omp parallel for schedule(static) if ((size_t)rows * cols > 32768)
  for (int first = 0; first < cols; first += NORM_COLUMNS) {
    double product[NORM_COLUMNS] = {0}, sum[NORM_COLUMNS] = {0};
    const int count = cols - first < NORM_COLUMNS ? cols - first : NORM_COLUMNS;
    for (int r = 0; r < rows; r++) {
      const float *row = x + (size_t)r * cols + first, *slope = dy + (size_t)r * cols + first;
      const float mean = saved[r], inv_std = saved[rows + r];
      // >>> hidden layer_norm_weight_gradient
      for (int j = 0; j < count; j++) {
        product[j] += slope[j] * ((row[j] - mean) * inv_std);
        sum[j] += slope[j];
      }
      // <<< hidden
    }
    for (int j = 0; j < count; j++) {
      if (dweight) dweight[first + j] = (float)product[j];
      if (dbias) dbias[first + j] = (float)sum[j];
    }
  }
}

static inline void layer_norm_backward_cpu_fast(float *dx, float *dweight, float *dbias, const float *dy,
                                                const float *x, const float *weight, const float *saved, int rows,
                                                int cols) {
#pragma omp parallel for schedule(static) if ((size_t)rows * cols > 32768)
  for (int r = 0; r < (dx ? rows : 0); r++) {
    const float *row = x + (size_t)r * cols, *slope = dy + (size_t)r * cols;
    const float mean = saved[r], inv_std = saved[rows + r];
    float *out = dx + (size_t)r * cols, sums[2];
    norm_gradient_sums_fast(sums, slope, row, weight, mean, inv_std, cols);
    const float product = sums[0] / (float)cols, sum = sums[1] / (float)cols;
    for (int j = 0; j < cols; j++) {
      const float g = weight ? slope[j] * weight[j] : slope[j];
      out[j] = inv_std * (g - sum - (row[j] - mean) * inv_std * product);
    }
  }
  if (dweight || dbias) layer_norm_weight_gradient_fast(dweight, dbias, dy, x, saved, rows, cols);
}

#endif /* PHASE3_CNN_LAYER_NORM_CPU_FAST_CUH */
