/* nncuda_linear.cu - matrix products and linear layers, with the kernels of phase1_building_blocks/03_matmul_naive and
 * phase2_mlp/03_mlp. */
#include "phase5_production/05_pytorch/nncuda_call.cuh"

#include "phase1_building_blocks/07_activations/activations.cuh"
#include "phase2_mlp/03_mlp/linear_relu.cuh"

#define OPERAND_MOST ((double)INT_MAX) /* elements of an operand: the kernels count them with an int */

/* matmul_cpu_fast() tells OpenBLAS at its first call to use one thread, since it has its own. In a program that loads
 * this library OpenBLAS may be PyTorch's, too: it gets its threads back, by the one host thread that makes the call. */
static inline bool product_cpu_begin(void) {
  const int threads = openblas_get_num_threads();
  float c, one = 1;
  matmul_cpu_fast(&c, &one, &one, 1, 1, 1, false, false, false);
  openblas_set_num_threads(threads);
  return true;
}

static inline void product_cpu(float *c, const float *a, const float *b, int m, int n, int k, bool transpose_a,
                               bool transpose_b, bool accumulate) {
  static int enough; /* memory; looked at here, as a jump out of an initializer would leave it unfinished for ever */
  const int threads = threads_most() < MATMUL_CPU_SLICES ? threads_most() : MATMUL_CPU_SLICES;
  if (!__atomic_load_n(&enough, __ATOMIC_RELAXED))
    threads_expect_memory((size_t)threads * 128, "matrix products on the CPU (OpenBLAS)");
  __atomic_store_n(&enough, 1, __ATOMIC_RELAXED);
  static const bool begun = product_cpu_begin(); /* once; other threads wait */
  (void)begun;
  matmul_cpu_fast(c, a, b, m, n, k, transpose_a, transpose_b, accumulate);
}

static inline void call_products(Call *call, const char *m_name, int64_t m, const char *n_name, int64_t n,
                                 const char *k_name, int64_t k) {
  call_size(call, m_name, m, 1, INT_MAX);
  call_size(call, n_name, n, 1, INT_MAX);
  call_size(call, k_name, k, 1, INT_MAX);
  char name[32];
  snprintf(name, sizeof name, "%s * %s", m_name, n_name);
  call_count(call, name, (double)m * n, OPERAND_MOST);
  snprintf(name, sizeof name, "%s * %s", m_name, k_name);
  call_count(call, name, (double)m * k, OPERAND_MOST);
  snprintf(name, sizeof name, "%s * %s", n_name, k_name);
  call_count(call, name, (double)n * k, OPERAND_MOST);
}

int nncuda_matmul(int device, void *stream, int dtype, void *c, const void *a, const void *b, int64_t m, int64_t n,
                  int64_t k, int transpose_a, int transpose_b, int accumulate) {
  Call call = call_begin(__func__, device, stream);
  CALL_DTYPE(call, dtype);
  call_products(&call, "m", m, "n", n, "k", k);
  CALL_FLAG(call, transpose_a);
  CALL_FLAG(call, transpose_b);
  CALL_FLAG(call, accumulate);
  CALL_ARRAY(call, c);
  CALL_ARRAY(call, a);
  CALL_ARRAY(call, b);
  CALL_RUN(call,
           matmul_gpu((float *)c, (const float *)a, (const float *)b, (int)m, (int)n, (int)k, transpose_a, transpose_b,
                      accumulate),
           product_cpu((float *)c, (const float *)a, (const float *)b, (int)m, (int)n, (int)k, transpose_a, transpose_b,
                       accumulate));
  return call.status;
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* Linear layers */

/* Of one call. */
typedef struct Linear {
  float *y;
  const float *x, *w, *bias;
  float *dx, *dw, *dbias;
  const float *dy, *forward_y;
  int batch, in, out, relu;
  float *workspace;
} Linear;

static inline int linear_parts(const Linear *l) {
  return linear_relu_fits(l->batch, l->in, l->out) || l->bias == NULL ? 1 : linear_relu_splits(l->batch, l->in, l->out);
}

static inline void linear_forward_run_gpu(const Linear *l) {
  if (linear_relu_fits(l->batch, l->in, l->out)) {
    linear_relu_forward_gpu(l->y, l->x, l->w, l->bias, l->batch, l->in, l->out, l->relu);
  } else if (linear_parts(l) > 1) {
    linear_relu_forward_split_gpu(l->y, l->x, l->w, l->bias, l->batch, l->in, l->out, l->relu, l->workspace);
  } else {
    linear_forward_gpu(l->y, l->x, l->w, l->bias, l->batch, l->in, l->out);
    if (l->relu) relu_forward_gpu(l->y, l->y, (size_t)l->batch * l->out);
  }
}

static inline void linear_forward_run_cpu(const Linear *l) {
  const size_t row = (size_t)l->out * sizeof *l->y;
  for (int b = 0; b < l->batch && l->bias != NULL; b++) memcpy(l->y + (size_t)b * l->out, l->bias, row);
  product_cpu(l->y, l->x, l->w, l->batch, l->out, l->in, false, true, l->bias != NULL);
  if (l->relu) relu_forward_cpu_fast(l->y, l->y, (size_t)l->batch * l->out);
}

size_t nncuda_linear_workspace(int device, int64_t batch, int64_t in, int64_t out) {
  if (device == NNCUDA_CPU || batch < 1 || in < 1 || out < 1 || batch > INT_MAX || in > INT_MAX || out > INT_MAX)
    return 0;
  if (linear_relu_fits((int)batch, (int)in, (int)out)) return 0;
  return linear_relu_split_floats((int)batch, (int)in, (int)out) * sizeof(float);
}

int nncuda_linear_forward(int device, void *stream, int dtype, void *y, const void *x, const void *w, const void *bias,
                          int64_t batch, int64_t in, int64_t out, int relu, void *workspace, size_t workspace_bytes) {
  Call call = call_begin(__func__, device, stream);
  CALL_DTYPE(call, dtype);
  call_products(&call, "batch", batch, "out", out, "in", in);
  CALL_FLAG(call, relu);
  CALL_ARRAY(call, y);
  CALL_ARRAY(call, x);
  CALL_ARRAY(call, w);
  CALL_OPTIONAL(call, bias);
  call_workspace(&call, workspace, workspace_bytes, bias != NULL ? nncuda_linear_workspace(device, batch, in, out) : 0);
  Linear l = {};
  l.y = (float *)y, l.x = (const float *)x, l.w = (const float *)w, l.bias = (const float *)bias;
  l.batch = (int)batch, l.in = (int)in, l.out = (int)out, l.relu = relu, l.workspace = (float *)workspace;
  CALL_RUN(call, linear_forward_run_gpu(&l), linear_forward_run_cpu(&l));
  return call.status;
}

/* With dy where y > 0 in the workspace, where ReLU is not part of the kernel. */
static inline const float *linear_dy(const Linear *l, int device) {
  const size_t n = (size_t)l->batch * l->out;
  if (!l->relu) return l->dy;
  if (device == NNCUDA_CPU)
    relu_backward_cpu_fast(l->workspace, l->dy, l->forward_y, n);
  else
    relu_backward_gpu(l->workspace, l->dy, l->forward_y, n);
  return l->workspace;
}

static inline void linear_backward_run_gpu(const Linear *l) {
  if (l->dw != NULL && linear_relu_backward_fits(l->batch, l->in, l->out)) {
    linear_relu_backward_gpu(l->dx, l->dw, l->dbias, l->dy, l->forward_y, l->x, l->w, l->batch, l->in, l->out, l->relu);
    return;
  }
  const float *dy = linear_dy(l, 0);
  if (l->dw != NULL) matmul_gpu(l->dw, dy, l->x, l->out, l->in, l->batch, true, false, false);
  if (l->dbias != NULL) linear_backward_bias_gpu(l->dbias, dy, l->batch, l->out);
  if (l->dx != NULL) linear_backward_input_gpu(l->dx, dy, l->w, l->batch, l->in, l->out);
}

static inline void linear_backward_run_cpu(const Linear *l) {
  const float *dy = linear_dy(l, NNCUDA_CPU);
  if (l->dw != NULL) product_cpu(l->dw, dy, l->x, l->out, l->in, l->batch, true, false, false);
  if (l->dx != NULL) product_cpu(l->dx, dy, l->w, l->batch, l->in, l->out, false, false, false);
  for (int o = 0; o < l->out && l->dbias != NULL; o++) {
    double sum = 0;
    for (int b = 0; b < l->batch; b++) sum += dy[(size_t)b * l->out + o];
    l->dbias[o] = (float)sum;
  }
}

size_t nncuda_linear_backward_workspace(int device, int64_t batch, int64_t in, int64_t out, int relu) {
  (void)device, (void)in;
  return relu && batch > 0 && out > 0 ? (size_t)batch * (size_t)out * sizeof(float) : 0;
}

int nncuda_linear_backward(int device, void *stream, int dtype, void *dx, void *dw, void *dbias, const void *dy,
                           const void *y, const void *x, const void *w, int64_t batch, int64_t in, int64_t out,
                           int relu, void *workspace, size_t workspace_bytes) {
  Call call = call_begin(__func__, device, stream);
  CALL_DTYPE(call, dtype);
  call_products(&call, "batch", batch, "out", out, "in", in);
  CALL_FLAG(call, relu);
  CALL_OPTIONAL(call, dx);
  CALL_OPTIONAL(call, dw);
  CALL_OPTIONAL(call, dbias);
  CALL_ARRAY(call, dy);
  if (relu) CALL_ARRAY(call, y);
  if (dw != NULL) CALL_ARRAY(call, x);
  if (dx != NULL) CALL_ARRAY(call, w);
  call_workspace(&call, workspace, workspace_bytes, nncuda_linear_backward_workspace(device, batch, in, out, relu));
  Linear l = {};
  l.dx = (float *)dx, l.dw = (float *)dw, l.dbias = (float *)dbias;
  l.dy = (const float *)dy, l.forward_y = (const float *)y, l.x = (const float *)x, l.w = (const float *)w;
  l.batch = (int)batch, l.in = (int)in, l.out = (int)out, l.relu = relu, l.workspace = (float *)workspace;
  CALL_RUN(call, linear_backward_run_gpu(&l), linear_backward_run_cpu(&l));
  return call.status;
}
