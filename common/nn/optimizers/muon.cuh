/* muon.cuh - Muon (Jordan et al., 2024): weight matrices step along their orthogonalised momentum.
 *
 *   momentum = mu * momentum + (1 - mu) * grad
 *   u        = mu * momentum + (1 - mu) * grad                          Nesterov's look ahead
 *   x        = u / max(norm of u, epsilon)
 *   5 times:   a = x x^T,  x = 3.4445 x + (-4.7750 a + 2.0315 a a) x    Newton-Schulz
 *   w        = w - lr * weight_decay * w - lr * scale * x,  scale = 0.2 sqrt(max(rows, cols))
 *
 * A matrix u = U S V^T has directions of very different size, the diagonal of S. The iteration is an odd polynomial in
 * each of them: it leaves U and V as they are and moves every singular value towards 1, without computing one. The
 * coefficients do not converge; they are chosen for a steep slope at 0, and end between 0.7 and 1.2, which is good
 * enough. A convolution (K,C,R,S) is the matrix (K, C R S). With its `scale` a step is as large as AdamW's (Liu et al.,
 * "Muon is scalable for LLM training", 2025), so that one learning rate serves both: all other parameters, those of one
 * row or column among them, use AdamW.
 *
 * The products of all matrices are one launch, as an update of all tensors is: a block finds its tile in a table of
 * matrices, which is an argument of the kernel. Of a matrix that is higher than wide the transpose is used, by its
 * strides, so that x x^T is the smaller of the two products.
 *
 *   muon_orthogonalize_cpu   the definition, in any precision
 *   muon_update_cpu          a step of one matrix
 *   muon_matrices_gpu        a step of all matrices: 3 + 15 launches
 *
 * Slots are AdamW's; a matrix has its momentum in the first, and does not use the second.
 */
#ifndef COMMON_NN_OPTIMIZERS_MUON_CUH
#define COMMON_NN_OPTIMIZERS_MUON_CUH

#include "common/nn/model.h"
#include "common/nn/optimizers/adam.cuh"

enum { MUON_STEPS = 5, MUON_TILE = 32, MUON_BLOCK = 256, MUON_CHUNK = 4096 };

#ifdef SIMT_REWRITTEN
enum { MUON_MATRICES = 64 }; /* an emulated thread has a copy of its kernel's arguments: it takes long to copy */
#else
enum { MUON_MATRICES = 160 };
#endif

#define MUON_EPSILON 1e-7f
#define MUON_A 3.4445f
#define MUON_B -4.7750f
#define MUON_C 2.0315f

static inline double muon_scale(int rows, int cols) { return 0.2 * sqrt(rows > cols ? rows : cols); }

/* ---------------------------------------------------------------------------------------------------------------- */
/* CPU */

/* c (m,n) += factor * a (m,k) b (k,n) */
template <typename T>
static inline void muon_product_cpu(T *c, const T *a, const T *b, int m, int n, int k, T factor) {
#pragma omp parallel for schedule(static) if ((double)m * n * k > 1e5)
  for (int i = 0; i < m; i++)
    for (int p = 0; p < k; p++) {
      const T value = factor * a[(size_t)i * k + p];
      for (int j = 0; j < n; j++) c[(size_t)i * n + j] += value * b[(size_t)p * n + j];
    }
}

/* x (rows,cols) becomes the matrix with the same singular vectors whose singular values are about 1. */
template <typename T>
static inline void muon_orthogonalize_cpu(T *x, int rows, int cols) {
  const int n = rows < cols ? rows : cols, k = rows < cols ? cols : rows;
  const size_t count = (size_t)rows * cols, gram = (size_t)n * n;
  T *wide = (T *)xmalloc(count * sizeof(T)), *next = (T *)xmalloc(count * sizeof(T)),
    *turned = (T *)xmalloc(count * sizeof(T)), *a = (T *)xmalloc(gram * sizeof(T)), *b = (T *)xmalloc(gram * sizeof(T));
  double squares = 0;
  for (size_t i = 0; i < count; i++) squares += (double)x[i] * x[i];
  const T factor = (T)(1 / fmax(sqrt(squares), (double)MUON_EPSILON));
  for (int i = 0; i < n; i++)
    for (int j = 0; j < k; j++)
      wide[(size_t)i * k + j] = factor * (rows <= cols ? x[(size_t)i * k + j] : x[(size_t)j * n + i]);
  for (int step = 0; step < MUON_STEPS; step++) {
    for (int i = 0; i < n; i++)
      for (int j = 0; j < k; j++) turned[(size_t)j * n + i] = wide[(size_t)i * k + j];
    memset(a, 0, gram * sizeof(T));
    muon_product_cpu(a, wide, turned, n, n, k, (T)1);
    for (size_t i = 0; i < gram; i++) b[i] = (T)MUON_B * a[i];
    muon_product_cpu(b, a, a, n, n, n, (T)MUON_C);
    for (size_t i = 0; i < count; i++) next[i] = (T)MUON_A * wide[i];
    muon_product_cpu(next, b, wide, n, k, n, (T)1);
    memcpy(wide, next, count * sizeof(T));
  }
  for (int i = 0; i < n; i++)
    for (int j = 0; j < k; j++) (rows <= cols ? x[(size_t)i * k + j] : x[(size_t)j * n + i]) = wide[(size_t)i * k + j];
  free(wide);
  free(next);
  free(turned);
  free(a);
  free(b);
}

/* One step of a matrix (rows,cols). */
template <typename T>
static inline void muon_update_cpu(T *w, T *momentum, const T *grad, int rows, int cols, T lr, T mu, T weight_decay) {
  const size_t count = (size_t)rows * cols;
  const T scale = (T)muon_scale(rows, cols);
  T *x = (T *)xmalloc(count * sizeof(T));
  for (size_t i = 0; i < count; i++) {
    // >>> hidden muon_momentum
    momentum[i] += (1 - mu) * (grad[i] - momentum[i]);
    x[i] = grad[i] + mu * (momentum[i] - grad[i]);
    // <<< hidden
  }
  muon_orthogonalize_cpu(x, rows, cols);
  for (size_t i = 0; i < count; i++) w[i] -= lr * weight_decay * w[i] + lr * scale * x[i];
  free(x);
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* The table of matrices */

/* What blocks are counted by: pieces of MUON_CHUNK elements, tiles of x x^T, tiles of x. */
typedef enum MuonBlocks { MUON_CHUNKS, MUON_GRAM_TILES, MUON_TILES, MUON_BLOCKS } MuonBlocks;

typedef struct MuonMatrix {
  size_t parameter, place, gram; /* offsets: in w, momentum and grad; of x in the workspace; of x x^T there */
  int rows, cols, decayed;
} MuonMatrix;

typedef struct MuonTable {
  int count;
  MuonMatrix matrix[MUON_MATRICES];
  int first[MUON_BLOCKS][MUON_MATRICES + 1]; /* the first block of each matrix; at [count] how many there are */
} MuonTable;

/* Of the workspace, in this order: x, the next x, x x^T, the polynomial of it, partial sums of squares. */
typedef struct MuonSizes {
  size_t x, gram;
} MuonSizes;

static inline MuonSizes muon_sizes(const MuonTable *t) {
  MuonSizes sizes = {0, 0};
  for (int i = 0; i < t->count; i++) {
    const size_t rows = (size_t)t->matrix[i].rows, cols = (size_t)t->matrix[i].cols, n = rows < cols ? rows : cols;
    sizes.x += rows * cols;
    sizes.gram += n * n;
  }
  return sizes;
}

static inline size_t muon_table_floats(const MuonTable *t) {
  const MuonSizes sizes = muon_sizes(t);
  return 2 * (sizes.x + sizes.gram) + (size_t)t->first[MUON_CHUNKS][t->count];
}

static inline void muon_table_add(MuonTable *t, size_t parameter, int rows, int cols, int decayed) {
  if (t->count == MUON_MATRICES) die("a network of more than %d weight matrices; raise MUON_MATRICES", MUON_MATRICES);
  const MuonSizes sizes = muon_sizes(t);
  const MuonMatrix matrix = {parameter, sizes.x, sizes.gram, rows, cols, decayed};
  const int n = rows < cols ? rows : cols, k = rows < cols ? cols : rows, c = t->count++;
  const int high = (n + MUON_TILE - 1) / MUON_TILE, wide = (k + MUON_TILE - 1) / MUON_TILE;
  t->matrix[c] = matrix;
  t->first[MUON_CHUNKS][c + 1] = t->first[MUON_CHUNKS][c] + (int)(((size_t)rows * cols + MUON_CHUNK - 1) / MUON_CHUNK);
  t->first[MUON_GRAM_TILES][c + 1] = t->first[MUON_GRAM_TILES][c] + high * high;
  t->first[MUON_TILES][c + 1] = t->first[MUON_TILES][c] + high * wide;
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* Kernels */

/* The matrix of a block: the last one that begins no later. */
static __device__ __forceinline__ int muon_find(const int *first, int count, int block) {
  int low = 0, high = count;
  // >>> hidden tensor_of_block
  while (high - low > 1) {
    const int middle = (low + high) / 2;
    if (first[middle] <= block)
      low = middle;
    else
      high = middle;
  }
  // <<< hidden
  return low;
}

/* The sum of a value over the block, in a fixed order, for all its threads. */
static __device__ __forceinline__ float muon_block_sum(float value) {
  __shared__ float sums[MUON_BLOCK];
  sums[threadIdx.x] = value;
  __syncthreads();
  for (int half = MUON_BLOCK / 2; half > 0; half /= 2) {
    if ((int)threadIdx.x < half) sums[threadIdx.x] += sums[threadIdx.x + half];
    __syncthreads();
  }
  return sums[0];
}

/* Momentum; u -> x; its sum of squares over each chunk -> partial (chunks). */
static __global__ void muon_momentum_kernel(const __grid_constant__ MuonTable t, float *x, float *partial,
                                            float *momentum, const float *grad, float mu) {
  const int i = muon_find(t.first[MUON_CHUNKS], t.count, (int)blockIdx.x);
  const MuonMatrix m = t.matrix[i];
  const size_t count = (size_t)m.rows * m.cols;
  const size_t begin = (size_t)((int)blockIdx.x - t.first[MUON_CHUNKS][i]) * MUON_CHUNK;
  const size_t end = begin + MUON_CHUNK < count ? begin + MUON_CHUNK : count;
  float squares = 0;
  momentum += m.parameter;
  grad += m.parameter;
  x += m.place;
  for (size_t e = begin + threadIdx.x; e < end; e += MUON_BLOCK) {
    // >>> hidden muon_momentum
    const float g = grad[e], next = momentum[e] + (1 - mu) * (g - momentum[e]), u = g + mu * (next - g);
    momentum[e] = next;
    // <<< hidden
    x[e] = u;
    squares += u * u;
  }
  squares = muon_block_sum(squares);
  if (threadIdx.x == 0) partial[blockIdx.x] = squares;
}

/* x over its norm. Each block adds up its matrix's partial sums, in the same order. */
static __global__ void muon_normalize_kernel(const __grid_constant__ MuonTable t, float *x, const float *partial) {
  const int i = muon_find(t.first[MUON_CHUNKS], t.count, (int)blockIdx.x), first = t.first[MUON_CHUNKS][i];
  const size_t count = (size_t)t.matrix[i].rows * t.matrix[i].cols;
  const size_t begin = (size_t)((int)blockIdx.x - first) * MUON_CHUNK;
  const size_t end = begin + MUON_CHUNK < count ? begin + MUON_CHUNK : count;
  float squares = 0;
  for (int c = first + (int)threadIdx.x; c < t.first[MUON_CHUNKS][i + 1]; c += MUON_BLOCK) squares += partial[c];
  const float factor = 1 / fmaxf(sqrtf(muon_block_sum(squares)), MUON_EPSILON);
  x += t.matrix[i].place;
  for (size_t e = begin + threadIdx.x; e < end; e += MUON_BLOCK) x[e] *= factor;
}

/* A matrix by its strides: element (i,j) is at i down + j right. */
typedef struct MuonView {
  const float *at;
  int rows, cols;
  size_t down, right;
} MuonView;

/* Tile (32,32) at (row,col), zeros beyond the matrix. Neighbouring threads load neighbouring addresses. */
static __device__ __forceinline__ void muon_load_tile(float (*tile)[MUON_TILE + 1], MuonView v, int row, int col) {
  const int inner = (int)threadIdx.x % MUON_TILE;
  for (int outer = (int)threadIdx.x / MUON_TILE; outer < MUON_TILE; outer += MUON_BLOCK / MUON_TILE) {
    const int i = v.right == 1 ? outer : inner, j = v.right == 1 ? inner : outer;
    const int inside = row + i < v.rows && col + j < v.cols;
    tile[i][j] = inside ? v.at[(size_t)(row + i) * v.down + (size_t)(col + j) * v.right] : 0;
  }
}

/* out = old_factor * old + factor * left right, one tile of 32 x 32 per block, 2 x 2 elements per thread; old may be
 * NULL, and has the place of out. */
static __device__ __forceinline__ void muon_tile_product(float *out, const float *old, float old_factor, float factor,
                                                         MuonView left, MuonView right, size_t down, size_t along,
                                                         int row, int col) {
  __shared__ float a[MUON_TILE][MUON_TILE + 1], b[MUON_TILE][MUON_TILE + 1];
  enum { SIDE = MUON_TILE / 2 };
  const int x = (int)threadIdx.x % SIDE, y = (int)threadIdx.x / SIDE;
  float sum[2][2] = {{0, 0}, {0, 0}};
  for (int k = 0; k < left.cols; k += MUON_TILE) {
    muon_load_tile(a, left, row, k);
    muon_load_tile(b, right, k, col);
    __syncthreads();
    for (int p = 0; p < MUON_TILE; p++)
      for (int i = 0; i < 2; i++)
        for (int j = 0; j < 2; j++) sum[i][j] += a[y + i * SIDE][p] * b[p][x + j * SIDE];
    __syncthreads(); /* before the next tiles come */
  }
  for (int i = 0; i < 2; i++)
    for (int j = 0; j < 2; j++) {
      const int r = row + y + i * SIDE, c = col + x + j * SIDE;
      const size_t at = (size_t)r * down + (size_t)c * along;
      if (r < left.rows && c < right.cols) out[at] = factor * sum[i][j] + (old != NULL ? old_factor * old[at] : 0);
    }
}

/* MUON_GRAM: out = x x^T. MUON_POLYNOMIAL: out = -4.7750 gram + 2.0315 gram gram. MUON_NEXT: out = 3.4445 x + gram x.
 * */
typedef enum MuonProduct { MUON_GRAM, MUON_POLYNOMIAL, MUON_NEXT } MuonProduct;

template <MuonProduct KIND>
static __global__ void muon_product_kernel(const __grid_constant__ MuonTable t, float *out, const float *x,
                                           const float *gram) {
  const int *first = t.first[KIND == MUON_NEXT ? MUON_TILES : MUON_GRAM_TILES];
  const int i = muon_find(first, t.count, (int)blockIdx.x), tile = (int)blockIdx.x - first[i];
  const MuonMatrix m = t.matrix[i];
  const int n = m.rows < m.cols ? m.rows : m.cols, k = m.rows < m.cols ? m.cols : m.rows;
  const size_t down = m.rows <= m.cols ? (size_t)m.cols : 1, along = m.rows <= m.cols ? 1 : (size_t)m.cols;
  const int tiles = ((KIND == MUON_NEXT ? k : n) + MUON_TILE - 1) / MUON_TILE; /* in a row */
  const int row = tile / tiles * MUON_TILE, col = tile % tiles * MUON_TILE;
  const MuonView wide = {x + m.place, n, k, down, along}, turned = {x + m.place, k, n, along, down};
  const MuonView square = {gram + m.gram, n, n, (size_t)n, 1};
  if (KIND == MUON_GRAM)
    muon_tile_product(out + m.gram, NULL, 0, 1, wide, turned, (size_t)n, 1, row, col);
  else if (KIND == MUON_POLYNOMIAL)
    muon_tile_product(out + m.gram, gram + m.gram, MUON_B, MUON_C, square, square, (size_t)n, 1, row, col);
  else
    muon_tile_product(out + m.place, x + m.place, MUON_A, 1, square, wide, down, along, row, col);
}

/* w from x. `values` as in elementwise.cuh. */
static __global__ void muon_apply_kernel(const __grid_constant__ MuonTable t, float *w, const float *x, float lr,
                                         const StepValues *values, float weight_decay) {
  const int i = muon_find(t.first[MUON_CHUNKS], t.count, (int)blockIdx.x);
  const MuonMatrix m = t.matrix[i];
  const size_t count = (size_t)m.rows * m.cols;
  const size_t begin = (size_t)((int)blockIdx.x - t.first[MUON_CHUNKS][i]) * MUON_CHUNK;
  const size_t end = begin + MUON_CHUNK < count ? begin + MUON_CHUNK : count;
  const float scale = 0.2f * sqrtf((float)(m.rows > m.cols ? m.rows : m.cols));
  if (values != NULL) lr = values->lr;
  w += m.parameter;
  x += m.place;
  for (size_t e = begin + threadIdx.x; e < end; e += MUON_BLOCK)
    w[e] -= lr * (m.decayed ? weight_decay : 0) * w[e] + lr * scale * x[e];
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* Launchers */

/* x (of all matrices) -> orthogonal, in place; `next` has the same size, gram and polynomial that of all x x^T. Returns
 * where the result is: x or next. */
static inline float *muon_iterate_gpu(const MuonTable *t, float *x, float *next, float *gram, float *polynomial) {
  const unsigned squares = (unsigned)t->first[MUON_GRAM_TILES][t->count];
  const unsigned tiles = (unsigned)t->first[MUON_TILES][t->count];
  for (int step = 0; step < MUON_STEPS; step++) {
    muon_product_kernel<MUON_GRAM><<<squares, MUON_BLOCK>>>(*t, gram, x, NULL);
    CUDA_CHECK_LAUNCH();
    muon_product_kernel<MUON_POLYNOMIAL><<<squares, MUON_BLOCK>>>(*t, polynomial, NULL, gram);
    CUDA_CHECK_LAUNCH();
    muon_product_kernel<MUON_NEXT><<<tiles, MUON_BLOCK>>>(*t, next, x, polynomial);
    CUDA_CHECK_LAUNCH();
    float *swapped = x;
    x = next;
    next = swapped;
  }
  return x;
}

/* A step of all matrices of the table; workspace (muon_table_floats()). */
static inline void muon_matrices_gpu(const MuonTable *t, float *w, float *momentum, const float *grad, float *workspace,
                                     float lr, const StepValues *values, float mu, float weight_decay) {
  if (t->count == 0) return;
  const MuonSizes sizes = muon_sizes(t);
  const unsigned chunks = (unsigned)t->first[MUON_CHUNKS][t->count];
  float *x = workspace, *next = x + sizes.x, *gram = next + sizes.x, *polynomial = gram + sizes.gram,
        *partial = polynomial + sizes.gram;
  muon_momentum_kernel<<<chunks, MUON_BLOCK>>>(*t, x, partial, momentum, grad, mu);
  CUDA_CHECK_LAUNCH();
  muon_normalize_kernel<<<chunks, MUON_BLOCK>>>(*t, x, partial);
  CUDA_CHECK_LAUNCH();
  const float *result = muon_iterate_gpu(t, x, next, gram, polynomial);
  muon_apply_kernel<<<chunks, MUON_BLOCK>>>(*t, w, result, lr, values, weight_decay);
  CUDA_CHECK_LAUNCH();
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* The optimizer of a network */

static inline int muon_is_matrix(const Param *p) {
  return p->trained && p->rank >= 2 && p->dim[0] > 1 && p->count > p->dim[0];
}

static inline void muon_model_table(MuonTable *t, const Model *m) {
  int node = 0, index = 0;
  const Param *p;
  memset(t, 0, sizeof *t);
  while ((p = model_next_param(m, &node, &index)) != NULL)
    if (muon_is_matrix(p))
      muon_table_add(t, p->offset, (int)p->dim[0], (int)(p->count / p->dim[0]), p->offset < m->decayed_count);
}

static inline size_t muon_workspace_floats(const Model *m) {
  MuonTable t;
  muon_model_table(&t, m);
  return m->context.device == DEVICE_GPU ? muon_table_floats(&t) : 0;
}

/* AdamW on parameters begin to end, which are not matrices. */
static inline void muon_other(const Model *m, size_t begin, size_t end) {
  float *slot[OPTIMIZER_MAX_SLOTS] = {m->slot[0] + begin, m->slot[1] + begin, NULL};
  const size_t decayed = m->decayed_count > end ? end : m->decayed_count < begin ? begin : m->decayed_count;
  if (begin < end)
    adamw_update(&m->context, m->parameters + begin, slot, m->gradients + begin, end - begin, decayed - begin,
                 &m->hyper);
}

/* The matrix with the lowest offset of at least `begin`; NULL: there is none. */
static inline const MuonMatrix *muon_next_matrix(const MuonTable *t, size_t begin) {
  const MuonMatrix *next = NULL;
  for (int i = 0; i < t->count; i++)
    if (t->matrix[i].parameter >= begin && (next == NULL || t->matrix[i].parameter < next->parameter))
      next = &t->matrix[i];
  return next;
}

/* Matrices by Muon, and what lies between them by AdamW. */
static inline void muon_step_model(Model *m) {
  MuonTable t;
  const Hyper *h = &m->hyper;
  muon_model_table(&t, m);
  const MuonMatrix *matrix;
  size_t begin = 0;
  for (; (matrix = muon_next_matrix(&t, begin)) != NULL;
       begin = matrix->parameter + (size_t)matrix->rows * matrix->cols) {
    muon_other(m, begin, matrix->parameter);
    if (m->context.device == DEVICE_CPU)
      muon_update_cpu(m->parameters + matrix->parameter, m->slot[0] + matrix->parameter,
                      m->gradients + matrix->parameter, matrix->rows, matrix->cols, h->lr, h->momentum,
                      matrix->decayed ? h->weight_decay : 0.0f);
  }
  muon_other(m, begin, m->parameter_count);
  ON_DEVICE(m->context.device,
            muon_matrices_gpu(&t, m->parameters, m->slot[0], m->gradients, m->workspace, h->lr, m->context.values,
                              h->momentum, h->weight_decay),
            (void)0);
}

static const Optimizer optimizer_muon = {
    "muon", 2, {"exp_avg", "exp_avg_sq"}, NULL, OPTIMIZER_READS_VALUES, muon_step_model, muon_workspace_floats};

#endif /* COMMON_NN_OPTIMIZERS_MUON_CUH */
