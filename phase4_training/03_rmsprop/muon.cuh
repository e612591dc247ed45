/* muon.cuh - Muon on weight matrices: momentum, Newton-Schulz, step.
 *
 *   momentum = mu * momentum + (1 - mu) * grad;   u = mu * momentum + (1 - mu) * grad
 *   x        = u / norm of u
 *   5 times:   a = x x^T,  p = -4.7750 a + 2.0315 a a,  x = 3.4445 x + p x
 *   w        = w - lr * weight_decay * w - lr * scale * x
 *
 * The products are nearly all of the work: 5 (4 n n k + 2 n n n) FLOPs for a matrix of n x k, n <= k; a pass over the
 * parameters has a few per element. So, unlike the other optimizers, Muon is limited by its arithmetic, and by its
 * launches: a network has many small matrices.
 *
 *   muon_each   one matrix after the other, one thread per element of a product: 18 launches each
 *   muon_all    all matrices in the same 18 launches, tiles in shared memory: common/nn/optimizers/muon.cuh
 *
 * The CPU twin is muon_update_cpu() there.
 */
#ifndef PHASE4_TRAINING_MUON_CUH
#define PHASE4_TRAINING_MUON_CUH

#include "common/nn/optimizers/muon.cuh"

typedef struct MuonSettings {
  float lr, mu, weight_decay;
} MuonSettings;

/* w, momentum, grad (matrices,rows,cols); the workspace has muon_each_floats() or muon_all_floats() */
typedef void MuonLauncher(float *w, float *momentum, const float *grad, float *workspace, int matrices, int rows,
                          int cols, MuonSettings settings);

/* ---------------------------------------------------------------------------------------------------------------- */
/* One matrix after the other. x is kept as (n,k), n <= k: transposed where the matrix is higher than wide. */

static __global__ void muon_each_momentum_kernel(float *x, float *momentum, const float *grad, int rows, int cols,
                                                 float mu) {
  const int e = (int)(blockIdx.x * blockDim.x + threadIdx.x);
  if (e >= rows * cols) return;
  float u = 0;
  // >>> exercise muon_momentum: momentum[e] becomes a running mean of the gradient, and u looks ahead from it
  // hint: the mean has mu of the old momentum and 1 - mu of the gradient
  // hint: u has mu of the new momentum and 1 - mu of the gradient: where the mean would be after one more such gradient
  // hint: const float g = grad[e], next = momentum[e] + (1 - mu) * (g - momentum[e]); u = g + mu * (next - g);
  const float g = grad[e], next = momentum[e] + (1 - mu) * (g - momentum[e]);
  momentum[e] = next;
  u = g + mu * (next - g);
  // <<< exercise
  x[rows <= cols ? e : e % cols * rows + e / cols] = u;
}

/* One block: x (count) over its norm. */
static __global__ void muon_each_normalize_kernel(float *x, int count) {
  float squares = 0;
  for (int e = (int)threadIdx.x; e < count; e += MUON_BLOCK) squares += x[e] * x[e];
  const float factor = 1 / fmaxf(sqrtf(muon_block_sum(squares)), MUON_EPSILON);
  for (int e = (int)threadIdx.x; e < count; e += MUON_BLOCK) x[e] *= factor;
}

/* a (n,n) = x x^T, x (n,k) */
static __global__ void muon_each_gram_kernel(float *a, const float *x, int n, int k) {
  const int e = (int)(blockIdx.x * blockDim.x + threadIdx.x);
  if (e >= n * n) return;
  const float *left = x + (size_t)(e / n) * k, *right = x + (size_t)(e % n) * k;
  float sum = 0;
  for (int j = 0; j < k; j++) sum += left[j] * right[j];
  a[e] = sum;
}

/* p (n,n) = linear a + quadratic a a; -4.7750 and 2.0315 */
static __global__ void muon_each_polynomial_kernel(float *p, const float *a, int n, float linear, float quadratic) {
  const int e = (int)(blockIdx.x * blockDim.x + threadIdx.x);
  if (e >= n * n) return;
  const int row = e / n, col = e % n;
  float value = 0;
  // >>> exercise muon_polynomial: value becomes element (row,col) of linear a + quadratic a a; a (n,n) is row-major
  // hint: element (row,col) of a a is the sum over j of a(row,j) a(j,col)
  // hint: the element itself, a[e], comes in `linear` times, and the sum `quadratic` times
  // hint: for (int j = 0; j < n; j++) sum += a[row * n + j] * a[j * n + col]; value = linear * a[e] + quadratic * sum;
  float sum = 0;
  for (int j = 0; j < n; j++) sum += a[row * n + j] * a[j * n + col];
  value = linear * a[e] + quadratic * sum;
  // <<< exercise
  p[e] = value;
}

/* next (n,k) = 3.4445 x + p x */
static __global__ void muon_each_next_kernel(float *next, const float *p, const float *x, int n, int k) {
  const int e = (int)(blockIdx.x * blockDim.x + threadIdx.x);
  if (e >= n * k) return;
  const int row = e / k, col = e % k;
  float sum = 0;
  for (int j = 0; j < n; j++) sum += p[row * n + j] * x[(size_t)j * k + col];
  next[e] = MUON_A * x[e] + sum;
}

static __global__ void muon_each_apply_kernel(float *w, const float *x, int rows, int cols, float scale,
                                              MuonSettings settings) {
  const int e = (int)(blockIdx.x * blockDim.x + threadIdx.x);
  if (e >= rows * cols) return;
  const float update = x[rows <= cols ? e : e % cols * rows + e / cols];
  w[e] -= settings.lr * settings.weight_decay * w[e] + settings.lr * scale * update;
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* Launchers */

static inline size_t muon_each_floats(int rows, int cols) {
  const size_t n = rows < cols ? (size_t)rows : (size_t)cols;
  return 2 * ((size_t)rows * cols + n * n);
}

static inline unsigned muon_each_blocks(int count) { return (unsigned)((count + MUON_BLOCK - 1) / MUON_BLOCK); }

/* x (rows,cols), or where rows is larger (cols,rows), becomes u; momentum the new one */
static inline void muon_each_momentum(float *x, float *momentum, const float *grad, int rows, int cols, float mu) {
  muon_each_momentum_kernel<<<muon_each_blocks(rows * cols), MUON_BLOCK>>>(x, momentum, grad, rows, cols, mu);
  CUDA_CHECK_LAUNCH();
}

static inline void muon_each_polynomial(float *p, const float *a, int n, float linear, float quadratic) {
  muon_each_polynomial_kernel<<<muon_each_blocks(n * n), MUON_BLOCK>>>(p, a, n, linear, quadratic);
  CUDA_CHECK_LAUNCH();
}

static inline void muon_each_one(float *w, float *momentum, const float *grad, float *workspace, int rows, int cols,
                                 MuonSettings settings) {
  const int n = rows < cols ? rows : cols, k = rows < cols ? cols : rows, count = rows * cols;
  float *x = workspace, *next = x + count, *a = next + count, *p = a + n * n;
  muon_each_momentum(x, momentum, grad, rows, cols, settings.mu);
  muon_each_normalize_kernel<<<1, MUON_BLOCK>>>(x, count);
  CUDA_CHECK_LAUNCH();
  for (int step = 0; step < MUON_STEPS; step++) {
    muon_each_gram_kernel<<<muon_each_blocks(n * n), MUON_BLOCK>>>(a, x, n, k);
    CUDA_CHECK_LAUNCH();
    muon_each_polynomial(p, a, n, MUON_B, MUON_C);
    muon_each_next_kernel<<<muon_each_blocks(count), MUON_BLOCK>>>(next, p, x, n, k);
    CUDA_CHECK_LAUNCH();
    float *swapped = x;
    x = next;
    next = swapped;
  }
  muon_each_apply_kernel<<<muon_each_blocks(count), MUON_BLOCK>>>(w, x, rows, cols, (float)muon_scale(rows, cols),
                                                                  settings);
  CUDA_CHECK_LAUNCH();
}

static inline void muon_each(float *w, float *momentum, const float *grad, float *workspace, int matrices, int rows,
                             int cols, MuonSettings settings) {
  const size_t count = (size_t)rows * cols;
  for (int m = 0; m < matrices; m++)
    muon_each_one(w + m * count, momentum + m * count, grad + m * count, workspace, rows, cols, settings);
}

static inline void muon_all_table(MuonTable *t, int matrices, int rows, int cols) {
  memset(t, 0, sizeof *t);
  for (int m = 0; m < matrices; m++) muon_table_add(t, (size_t)m * rows * cols, rows, cols, 1);
}

static inline size_t muon_all_floats(int matrices, int rows, int cols) {
  MuonTable t;
  muon_all_table(&t, matrices, rows, cols);
  return muon_table_floats(&t);
}

static inline void muon_all(float *w, float *momentum, const float *grad, float *workspace, int matrices, int rows,
                            int cols, MuonSettings settings) {
  MuonTable t;
  muon_all_table(&t, matrices, rows, cols);
  muon_matrices_gpu(&t, w, momentum, grad, workspace, settings.lr, NULL, settings.mu, settings.weight_decay);
}

#endif /* PHASE4_TRAINING_MUON_CUH */
