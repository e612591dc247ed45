/* layer_norm_cpu.cuh - layer_norm.cuh on a CPU in plain loops, with sums in double: the definition. */
#ifndef PHASE3_CNN_LAYER_NORM_CPU_CUH
#define PHASE3_CNN_LAYER_NORM_CPU_CUH

#include <math.h>
#include <stddef.h>

#define LAYER_NORM_EPSILON 1e-5f

/* Mean and 1 / standard deviation of a row. */
template <typename T>
static inline void layer_norm_statistics_cpu(double *mean, double *inv_std, const T *x, int cols) {
  double sum = 0, squares = 0;
  // >>> hidden layer_norm_statistics
  for (int j = 0; j < cols; j++) sum += x[j];
  *mean = sum / cols;
  for (int j = 0; j < cols; j++) squares += (x[j] - *mean) * (x[j] - *mean);
  *inv_std = 1 / sqrt(squares / cols + (double)LAYER_NORM_EPSILON);
  // <<< hidden
}

template <typename T>
static inline void layer_norm_forward_cpu(T *y, T *saved, const T *x, const T *weight, const T *bias, int rows,
                                          int cols) {
  for (int r = 0; r < rows; r++, x += cols, y += cols) {
    double mean, inv_std;
    layer_norm_statistics_cpu(&mean, &inv_std, x, cols);
    saved[r] = (T)mean;
    saved[rows + r] = (T)inv_std;
    for (int j = 0; j < cols; j++) {
      const double t = (x[j] - mean) * inv_std;
      y[j] = (T)((weight ? weight[j] : 1) * t + (bias ? bias[j] : 0));
    }
  }
}

/* Any of dx, dweight and dbias may be NULL. */
template <typename T>
static inline void layer_norm_backward_cpu(T *dx, T *dweight, T *dbias, const T *dy, const T *x, const T *weight,
                                           const T *saved, int rows, int cols) {
  for (int r = 0; dx && r < rows; r++) {
    const T *row = x + (size_t)r * cols, *slope = dy + (size_t)r * cols;
    const double mean = saved[r], inv_std = saved[rows + r];
    double sum = 0, product = 0;
    for (int j = 0; j < cols; j++) {
      const double g = (double)slope[j] * (weight ? weight[j] : 1);
      sum += g;
      product += g * (row[j] - mean) * inv_std;
    }
    for (int j = 0; j < cols; j++) {
      const double g = (double)slope[j] * (weight ? weight[j] : 1), t = (row[j] - mean) * inv_std;
      dx[(size_t)r * cols + j] = (T)(inv_std * (g - sum / cols - t * product / cols));
    }
  }
  for (int j = 0; (dweight || dbias) && j < cols; j++) {
    double sum = 0, product = 0;
    for (int r = 0; r < rows; r++) {
      // >>> hidden layer_norm_weight_gradient
      sum += dy[(size_t)r * cols + j];
      product += (double)dy[(size_t)r * cols + j] * (x[(size_t)r * cols + j] - saved[r]) * saved[rows + r];
      // <<< hidden
    }
    if (dweight) dweight[j] = (T)product;
    if (dbias) dbias[j] = (T)sum;
  }
}

#endif /* PHASE3_CNN_LAYER_NORM_CPU_CUH */
