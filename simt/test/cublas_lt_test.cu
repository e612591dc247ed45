/* cublas_lt_test.cu - cublasLt against sums written out in double. On a GPU (nvcc -lcublasLt -lcublas) it tests
 * NVIDIA's library; on the emulator (simtcc -lcublasLt) it tests simt/blas.
 *
 * Every output has padding between its columns and guards round it, filled with NaN, which must stay as they are. */
#include <cublasLt.h>

#include "blas.cuh"

#ifdef SIMT_REWRITTEN
enum { ON_GPU = 0 };
#else
enum { ON_GPU = 1 };
#endif

static cublasLtHandle_t lt;

struct Product {
  cudaDataType ab, c, scale;
  cublasComputeType_t compute;
  double sum_roundoff;
};
static const Product products[] = {
    {CUDA_R_32F, CUDA_R_32F, CUDA_R_32F, CUBLAS_COMPUTE_32F, 0x1p-24},
    {CUDA_R_64F, CUDA_R_64F, CUDA_R_64F, CUBLAS_COMPUTE_64F, 0x1p-53},
    {CUDA_R_16F, CUDA_R_16F, CUDA_R_32F, CUBLAS_COMPUTE_32F, 0x1p-22},
    {CUDA_R_16BF, CUDA_R_16BF, CUDA_R_32F, CUBLAS_COMPUTE_32F, 0x1p-22},
    {CUDA_R_16F, CUDA_R_32F, CUDA_R_32F, CUBLAS_COMPUTE_32F, 0x1p-22},
    {CUDA_R_16BF, CUDA_R_32F, CUDA_R_32F, CUBLAS_COMPUTE_32F, 0x1p-22},
    {CUDA_R_32F, CUDA_R_32F, CUDA_R_32F, CUBLAS_COMPUTE_32F_FAST_TF32, 0x1p-10},
    {CUDA_R_16F, CUDA_R_16F, CUDA_R_16F, CUBLAS_COMPUTE_16F, 0x1p-11},
};

/* ---- matrices by columns or by rows ---- */

/* (rows, columns). In memory, and so in `array`, a matrix by rows is its transpose by columns. */
struct Matrix {
  Array array;
  bool by_rows;
  int rows, columns;

  Complex at(int i, int j) const { return by_rows ? array.at(j, i) : array.at(i, j); }
};

static Matrix matrix(cudaDataType type, int rows, int columns, bool by_rows, int padding, Fill fill = RANDOM) {
  int length = by_rows ? columns : rows;
  return {array_new(type, length, by_rows ? rows : columns, length + padding, fill), by_rows, rows, columns};
}

static cublasLtMatrixLayout_t layout(const Matrix &m) {
  cublasLtMatrixLayout_t l;
  int32_t order = m.by_rows ? CUBLASLT_ORDER_ROW : CUBLASLT_ORDER_COL;
  BLAS(cublasLtMatrixLayoutCreate(&l, m.array.type, m.rows, m.columns, m.array.ld));
  BLAS(cublasLtMatrixLayoutSetAttribute(l, CUBLASLT_MATRIX_LAYOUT_ORDER, &order, sizeof order));
  return l;
}

/* ---- one operation ---- */

struct Operation {
  cublasLtMatmulDesc_t d;
  Operation(cublasComputeType_t compute, cudaDataType scale) { BLAS(cublasLtMatmulDescCreate(&d, compute, scale)); }
  ~Operation() { cublasLtMatmulDescDestroy(d); }
  template <class T>
  void set(cublasLtMatmulDescAttributes_t attribute, T value) {
    BLAS(cublasLtMatmulDescSetAttribute(d, attribute, &value, sizeof value));
  }
};

/* The layouts of A, B, C, D. */
struct Layouts {
  cublasLtMatrixLayout_t l[4];
  Layouts(const Matrix &a, const Matrix &b, const Matrix &c, const Matrix &d)
      : l{layout(a), layout(b), layout(c), layout(d)} {}
  ~Layouts() {
    for (cublasLtMatrixLayout_t x : l) cublasLtMatrixLayoutDestroy(x);
  }
  template <class T>
  void set(int which, cublasLtMatrixLayoutAttribute_t attribute, T value) {
    BLAS(cublasLtMatrixLayoutSetAttribute(l[which], attribute, &value, sizeof value));
  }
};

/* NVIDIA's own: which it has for which types, orders and epilogues is not all documented. */
static cublasStatus_t find(const Operation &op, const Layouts &x, cublasLtMatmulHeuristicResult_t *found) {
  cublasLtMatmulPreference_t preference;
  uint32_t alignment = 16;
  int count = 0;
  BLAS(cublasLtMatmulPreferenceCreate(&preference));
  for (int i = CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES; i <= CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES; i++) {
    BLAS(cublasLtMatmulPreferenceSetAttribute(preference, (cublasLtMatmulPreferenceAttributes_t)i, &alignment,
                                              sizeof alignment));
  }
  cublasStatus_t status =
      cublasLtMatmulAlgoGetHeuristic(lt, op.d, x.l[0], x.l[1], x.l[2], x.l[3], preference, 1, found, &count);
  BLAS(cublasLtMatmulPreferenceDestroy(preference));
  if (status != CUBLAS_STATUS_SUCCESS) return status;
  return count ? found->state : CUBLAS_STATUS_NOT_SUPPORTED;
}

/* As NVIDIA's library: the approximation with tanh. */
static double gelu(double x) { return x / 2 * (1 + tanh(sqrt(2 / M_PI) * (x + 0.044715 * x * x * x))); }

struct Case {
  const Product *p;
  cublasOperation_t ta, tb;
  int m, n, k;
  double alpha, beta;
  bool rows_a, rows_b, rows_c, rows_d;
  bool in_place; /* D is C */
  cublasLtEpilogue_t epilogue;
  bool rare;    /* NVIDIA's library may not have it */
  bool aligned; /* columns (or rows) begin at multiples of 8 elements, if the sizes are such */
};

/* One product, and every element of D (and of the auxiliary matrix) checked. False: the library does not have it. */
static bool one_product(const Case &x) {
  const Product &p = *x.p;
  bool has_bias = x.epilogue & CUBLASLT_EPILOGUE_BIAS, has_aux = x.epilogue & 128;
  char what[200];
  snprintf(what, sizeof what,
           "types %d -> %d, compute %d, ops %d %d, m %d n %d k %d, beta %g, by rows %d%d%d%d, in place %d, epilogue %d",
           (int)p.ab, (int)p.c, (int)p.compute, (int)x.ta, (int)x.tb, x.m, x.n, x.k, x.beta, x.rows_a, x.rows_b,
           x.rows_c, x.rows_d, x.in_place, (int)x.epilogue);
  int padding = x.aligned ? 8 : 1;
  Matrix a = matrix(p.ab, x.ta ? x.k : x.m, x.ta ? x.m : x.k, x.rows_a, 3 * padding);
  Matrix b = matrix(p.ab, x.tb ? x.n : x.k, x.tb ? x.k : x.n, x.rows_b, 2 * padding);
  Matrix c = matrix(p.c, x.m, x.n, x.rows_c, padding, x.beta == 0 ? POISON : RANDOM); /* beta 0: C may hold NaN */
  Matrix d = x.in_place ? c : matrix(p.c, x.m, x.n, x.rows_d, 4 * padding, POISON);
  Array bias = random_vector(p.c, x.m);
  int aux_ld = (x.m + 7) / 8 * 8 + 8;
  Array aux = array_new(p.c, x.m, x.n, aux_ld, POISON);
  Operation op(p.compute, p.scale);
  Layouts layouts(a, b, c, d);
  op.set(CUBLASLT_MATMUL_DESC_TRANSA, (int32_t)x.ta);
  op.set(CUBLASLT_MATMUL_DESC_TRANSB, (int32_t)x.tb);
  op.set(CUBLASLT_MATMUL_DESC_EPILOGUE, (uint32_t)x.epilogue);
  if (has_bias) op.set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, (const void *)bias.device());
  if (has_aux) {
    op.set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, aux.device());
    op.set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, (int64_t)aux_ld);
  }
  cublasLtMatmulHeuristicResult_t found;
  cublasStatus_t status = find(op, layouts, &found);
  bool have = status == CUBLAS_STATUS_SUCCESS;
  if (!have && !(ON_GPU && x.rare)) fail_msg("%s: no algorithm: %s", what, cublasGetStatusName(status));
  if (have) {
    Value alpha(p.scale, x.alpha), beta(p.scale, x.beta);
    BLAS(cublasLtMatmul(lt, op.d, alpha, a.array.device(), layouts.l[0], b.array.device(), layouts.l[1], beta,
                        c.array.device(), layouts.l[2], d.array.device(), layouts.l[3], &found.algo, NULL, 0, 0));
  }
  Matrix got = d;
  got.array = fetch(&d.array, what, [&](int, int) { return have; });
  Array got_aux = fetch(&aux, what, [&](int, int) { return have && has_aux; });
  for (int j = 0; have && j < x.n; j++) {
    for (int i = 0; i < x.m; i++) {
      double sum = 0, magnitude = 0;
      for (int l = 0; l < x.k; l++) {
        double term = (x.ta ? a.at(l, i) : a.at(i, l)).real() * (x.tb ? b.at(j, l) : b.at(l, j)).real();
        sum += term;
        magnitude += fabs(term);
      }
      double expected = x.alpha * sum;
      magnitude *= fabs(x.alpha);
      if (x.beta != 0) {
        expected += x.beta * c.at(i, j).real();
        magnitude += fabs(x.beta * c.at(i, j).real());
      }
      if (has_bias) {
        expected += bias.at(i).real();
        magnitude += fabs(bias.at(i).real());
      }
      double tolerance = (x.k + 4) * p.sum_roundoff * magnitude, tiny = p.c == CUDA_R_16F ? 0x1p-24 : 0;
      if (ON_GPU && has_bias) tolerance += roundoff(p.c) * magnitude; /* some algorithms round before the bias */
      if (has_aux) check(what, i, j, got_aux.at(i, j), expected, tolerance + 2 * roundoff(p.c) * fabs(expected) + tiny);
      if (x.epilogue & CUBLASLT_EPILOGUE_RELU) expected = expected > 0 ? expected : 0;
      if (x.epilogue & CUBLASLT_EPILOGUE_GELU) {
        tolerance = 1.2 * tolerance + (ON_GPU ? 0x1p-10 : 4 * p.sum_roundoff) * fabs(expected); /* the GPU's tanh */
        expected = gelu(expected);
      }
      check(what, i, j, got.at(i, j), expected, tolerance + 2 * roundoff(p.c) * fabs(expected) + tiny);
    }
  }
  array_free(&a.array);
  array_free(&b.array);
  if (!x.in_place) array_free(&c.array);
  CHECK(cudaFree(bias.device_base));
  return have;
}

static void every_type_and_transposition(void **state) {
  (void)state;
  const cublasOperation_t ops[] = {CUBLAS_OP_N, CUBLAS_OP_T};
  for (const Product &p : products) {
    for (cublasOperation_t ta : ops) {
      for (cublasOperation_t tb : ops) {
        for (int in_place = 0; in_place < 2; in_place++) {
          one_product({&p, ta, tb, 33, 17, 40, 1, 0, 0, 0, 0, 0, !!in_place, CUBLASLT_EPILOGUE_DEFAULT, false, false});
          one_product({&p, ta, tb, 5, 8, 31, -2, 0.5, 0, 0, 0, 0, !!in_place, CUBLASLT_EPILOGUE_DEFAULT, false, false});
        }
      }
    }
  }
}

static void every_order(void **state) {
  (void)state;
  int rows = 0;
  for (const Product &p : products) {
    for (int orders = 1; orders < 16; orders++) {
      for (int op = 0; op < 3; op++) { /* N N, T N, N T */
        bool all = orders == 15 && p.ab == CUDA_R_32F && p.compute == CUBLAS_COMPUTE_32F;
        rows += one_product({&p, op == 1 ? CUBLAS_OP_T : CUBLAS_OP_N, op == 2 ? CUBLAS_OP_T : CUBLAS_OP_N, 19, 13, 21,
                             1.5, op == 0 ? 0.0 : -1.0, !!(orders & 1), !!(orders & 2), !!(orders & 4), !!(orders & 8),
                             false, CUBLASLT_EPILOGUE_DEFAULT, !all, false});
      }
    }
  }
  if (ON_GPU) print_message("%d products of 360 with matrices by rows\n", rows);
}

static void ragged_sizes(void **state) {
  (void)state;
  const int sizes[][3] = {{1, 1, 1},    {1, 7, 3},    {31, 1, 64},  {3, 127, 1},   {31, 33, 29},
                          {64, 64, 64}, {127, 65, 9}, {65, 128, 1}, {130, 70, 131}};
  for (const int *s : sizes) {
    for (int i = 0; i < 4; i++) {
      one_product({&products[i], CUBLAS_OP_N, CUBLAS_OP_T, s[0], s[1], s[2], 1, i % 2 ? 0.25 : 0.0, 0, 0, 0, 0, false,
                   CUBLASLT_EPILOGUE_DEFAULT, false, false});
    }
    one_product({&products[0], CUBLAS_OP_T, CUBLAS_OP_N, s[0], s[1], s[2], 1, 0, 0, 0, 0, 0, false,
                 CUBLASLT_EPILOGUE_GELU_BIAS, false, false});
  }
}

static const cublasLtEpilogue_t epilogues[] = {
    CUBLASLT_EPILOGUE_BIAS,      CUBLASLT_EPILOGUE_RELU,     CUBLASLT_EPILOGUE_RELU_BIAS,    CUBLASLT_EPILOGUE_GELU,
    CUBLASLT_EPILOGUE_GELU_BIAS, CUBLASLT_EPILOGUE_GELU_AUX, CUBLASLT_EPILOGUE_GELU_AUX_BIAS};

static void every_epilogue(void **state) {
  (void)state;
  const cublasOperation_t n = CUBLAS_OP_N;
  int done = 0;
  for (const Product &p : products) {
    for (cublasLtEpilogue_t epilogue : epilogues) {
      bool rare = epilogue & 128 || p.ab == CUDA_R_64F || p.compute == CUBLAS_COMPUTE_16F;
      bool ragged = rare || p.ab != CUDA_R_32F;
      done += one_product({&p, n, n, 64, 24, 32, 1, 1, 0, 0, 0, 0, false, epilogue, rare, true});
      done += one_product({&p, CUBLAS_OP_T, n, 33, 18, 24, 1, 0, 0, 0, 0, 0, false, epilogue, ragged, false});
      done += one_product({&p, n, n, 40, 7, 9, 0.5, 2, 0, 0, 0, 0, true, epilogue, ragged, false});
    }
  }
  if (ON_GPU) print_message("%d products of 168 with epilogues\n", done);
}

/* ReLU: a number that is not positive becomes 0, the others stay; GELU far from 0 is 0 or the number. */
static void activations_at_their_ends(void **state) {
  (void)state;
  const std::vector<float> x = {-1000, -20, -1, -0.f, 0, 1, 20, 1000};
  for (cublasLtEpilogue_t epilogue : {CUBLASLT_EPILOGUE_RELU, CUBLASLT_EPILOGUE_GELU}) {
    float *a = upload(x), *one = upload(std::vector<float>(1, 1.0f)), *d = device_array<float>(8), alpha = 1, beta = 0;
    cublasLtMatrixLayout_t column, single;
    Operation op(CUBLAS_COMPUTE_32F, CUDA_R_32F);
    op.set(CUBLASLT_MATMUL_DESC_EPILOGUE, (uint32_t)epilogue);
    BLAS(cublasLtMatrixLayoutCreate(&column, CUDA_R_32F, 8, 1, 8));
    BLAS(cublasLtMatrixLayoutCreate(&single, CUDA_R_32F, 1, 1, 1));
    BLAS(cublasLtMatmul(lt, op.d, &alpha, a, column, one, single, &beta, d, column, d, column, NULL, NULL, 0, 0));
    std::vector<float> got = download(d, 8);
    for (int i = 0; i < 8; i++) {
      double expected = epilogue == CUBLASLT_EPILOGUE_RELU ? fmax(x[i], 0) : gelu(x[i]);
      check("activation", i, 0, got[i], expected, epilogue == CUBLASLT_EPILOGUE_RELU ? 0 : ON_GPU ? 1e-3 : 1e-6);
    }
    BLAS(cublasLtMatrixLayoutDestroy(column));
    BLAS(cublasLtMatrixLayoutDestroy(single));
    CHECK(cudaFree(a));
    CHECK(cudaFree(one));
  }
}

/* ---- batches ---- */

/* One B for all members, a bias for each, gaps between them. */
static void strided_batches(void **state) {
  (void)state;
  enum { BATCH = 4, M = 9, N = 6, K = 7, A = M * K + 5, C = M * N + 2, BIAS = M + 3 };
  for (int by_rows = 0; by_rows < (ON_GPU ? 1 : 2); by_rows++) { /* beside a D by columns, as far as NVIDIA has it */
    Matrix a = matrix(CUDA_R_32F, A, BATCH, false, 0), b = matrix(CUDA_R_32F, K, N, by_rows, 0),
           c = matrix(CUDA_R_32F, C, BATCH, false, 0), d = matrix(CUDA_R_32F, M * N, BATCH, false, 10, POISON),
           bias = matrix(CUDA_R_32F, M, BATCH, false, BIAS - M);
    Matrix one_a = a, one_c = c, one_d = d; /* the same memory as a first member; the others lie behind it */
    one_a.rows = M;
    one_a.columns = K;
    one_a.by_rows = by_rows;
    one_a.array.ld = by_rows ? K : M;
    one_c.rows = one_d.rows = M;
    one_c.columns = one_d.columns = N;
    one_c.array.ld = one_d.array.ld = M;
    Layouts layouts(one_a, b, one_c, one_d);
    Operation op(CUBLAS_COMPUTE_32F, CUDA_R_32F);
    op.set(CUBLASLT_MATMUL_DESC_EPILOGUE, (uint32_t)CUBLASLT_EPILOGUE_RELU_BIAS);
    op.set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, (const void *)bias.array.device());
    op.set(CUBLASLT_MATMUL_DESC_BIAS_BATCH_STRIDE, (int64_t)BIAS);
    const int64_t strides[] = {A, 0, C, M * N + 10};
    for (int i = 0; i < 4; i++) {
      layouts.set(i, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, (int32_t)BATCH);
      layouts.set(i, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, strides[i]);
    }
    float alpha = 2, beta = -1;
    BLAS(cublasLtMatmul(lt, op.d, &alpha, a.array.device(), layouts.l[0], b.array.device(), layouts.l[1], &beta,
                        c.array.device(), layouts.l[2], d.array.device(), layouts.l[3], NULL, NULL, 0, 0));
    Array got = fetch(&d.array, "batch");
    for (int i = 0; i < BATCH; i++) {
      for (int column = 0; column < N; column++) {
        for (int row = 0; row < M; row++) {
          double sum = bias.at(row, i).real() - c.at(row + M * column, i).real();
          for (int k = 0; k < K; k++)
            sum += 2 * a.at(by_rows ? k + K * row : row + M * k, i).real() * b.at(k, column).real();
          check("member of a batch", row, column, got.at(row + M * column, i), sum > 0 ? sum : 0, 1e-5);
        }
      }
    }
    for (Matrix *x : {&a, &b, &c, &bias}) array_free(&x->array);
  }
}

/* ---- scalars, streams, capture ---- */

static void scalars_on_the_device(void **state) {
  (void)state;
  Matrix a = matrix(CUDA_R_32F, 6, 6, false, 0), c = matrix(CUDA_R_32F, 6, 6, false, 0);
  float *scalars = upload(std::vector<float>{3, 0.5f});
  Operation op(CUBLAS_COMPUTE_32F, CUDA_R_32F);
  op.set(CUBLASLT_MATMUL_DESC_POINTER_MODE, (int32_t)CUBLASLT_POINTER_MODE_DEVICE);
  Layouts layouts(a, a, c, c);
  BLAS(cublasLtMatmul(lt, op.d, scalars, a.array.device(), layouts.l[0], a.array.device(), layouts.l[1], scalars + 1,
                      c.array.device(), layouts.l[2], c.array.device(), layouts.l[3], NULL, NULL, 0, 0));
  Array got = fetch(&c.array, "scalars");
  for (int i = 0; i < 36; i++) {
    double sum = 0.5 * c.at(i % 6, i / 6).real();
    for (int k = 0; k < 6; k++) sum += 3 * a.at(i % 6, k).real() * a.at(k, i / 6).real();
    check("scalars", i % 6, i / 6, got.at(i % 6, i / 6), sum, 1e-5);
  }
  CHECK(cudaFree(scalars));
  array_free(&a.array);
}

/* In a stream between two copies; captured, it is done when the graph is launched, and again. */
static void work_is_done_in_the_stream_and_captured(void **state) {
  (void)state;
  enum { N = 48 };
  size_t bytes = N * N * sizeof(float);
  cudaStream_t stream;
  CHECK(cudaStreamCreate(&stream));
  float *in, *out;
  CHECK(cudaMallocHost((void **)&in, bytes));
  CHECK(cudaMallocHost((void **)&out, bytes));
  for (int i = 0; i < N * N; i++) in[i] = (float)(i % 7);
  float *a = device_array<float>(N * N), *c = device_array<float>(N * N);
  cublasLtMatrixLayout_t square;
  BLAS(cublasLtMatrixLayoutCreate(&square, CUDA_R_32F, N, N, N));
  Operation op(CUBLAS_COMPUTE_32F, CUDA_R_32F);
  for (int captured = 0; captured < 2; captured++) {
    float one = 1, zero = 0;
    cudaGraph_t graph;
    cudaGraphExec_t executable;
    if (captured) CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    CHECK(cudaMemcpyAsync(a, in, bytes, cudaMemcpyHostToDevice, stream));
    BLAS(cublasLtMatmul(lt, op.d, &one, a, square, a, square, &zero, c, square, c, square, NULL, NULL, 0, stream));
    one = NAN; /* host scalars were taken at the call */
    CHECK(cudaMemcpyAsync(out, c, bytes, cudaMemcpyDeviceToHost, stream));
    if (captured) {
      CHECK(cudaStreamEndCapture(stream, &graph));
      CHECK(cudaGraphInstantiate(&executable, graph, 0));
    }
    for (int turn = 0; turn < 1 + captured; turn++) {
      if (captured) {
        for (int i = 0; i < N * N; i++) in[i] = (float)((i + turn + 1) % 5);
        out[0] = -1;
        CHECK(cudaGraphLaunch(executable, stream));
      }
      CHECK(cudaStreamSynchronize(stream));
      double expected = 0;
      for (int k = 0; k < N; k++) expected += (double)in[5 + k * N] * in[k + 9 * N];
      assert_true(out[5 + 9 * N] == expected); /* small integers: exact */
      assert_true(out[0] >= 0);
    }
    if (captured) {
      CHECK(cudaGraphExecDestroy(executable));
      CHECK(cudaGraphDestroy(graph));
    }
  }
  BLAS(cublasLtMatrixLayoutDestroy(square));
  CHECK(cudaStreamDestroy(stream));
  CHECK(cudaFree(a));
  CHECK(cudaFree(c));
  CHECK(cudaFreeHost(in));
  CHECK(cudaFreeHost(out));
}

/* ---- handles, descriptors, algorithms ---- */

static void handles(void **state) {
  (void)state;
  cublasLtHandle_t other = NULL;
  int major = 0;
  BLAS(cublasLtCreate(&other));
  assert_non_null(other);
  BLAS(cublasLtDestroy(other));
  BLAS_GIVES(CUBLAS_STATUS_INVALID_VALUE, cublasLtCreate(NULL));
  BLAS_GIVES(CUBLAS_STATUS_INVALID_VALUE, cublasLtDestroy(NULL));
  assert_true(cublasLtGetVersion() >= 110000 && cublasLtGetCudartVersion() >= 11000);
  BLAS(cublasLtGetProperty(MAJOR_VERSION, &major));
  assert_int_equal(major, (int)(cublasLtGetVersion() / 10000));
  assert_string_equal(cublasLtGetStatusName(CUBLAS_STATUS_NOT_SUPPORTED), "CUBLAS_STATUS_NOT_SUPPORTED");
  assert_string_equal(cublasLtGetStatusString(CUBLAS_STATUS_NOT_SUPPORTED),
                      "the requested functionality is not supported");
}

/* Our header, or NVIDIA's, has these numbers. */
// clang-format off
#define CONSTANTS(X) \
  X(ALGO_CAP_CTA_SWIZZLING_SUPPORT, 2) X(ALGO_CAP_CUSTOM_MEMORY_ORDER, 10) X(ALGO_CAP_CUSTOM_OPTION_MAX, 7) \
  X(ALGO_CAP_EPILOGUE_MASK, 12) X(ALGO_CAP_LD_NEGATIVE, 14) X(ALGO_CAP_MIN_ALIGNMENT_A_BYTES, 16) \
  X(ALGO_CAP_MIN_ALIGNMENT_B_BYTES, 17) X(ALGO_CAP_MIN_ALIGNMENT_C_BYTES, 18) X(ALGO_CAP_MIN_ALIGNMENT_D_BYTES, 19) \
  X(ALGO_CAP_OUT_OF_PLACE_RESULT_SUPPORT, 4) X(ALGO_CAP_POINTER_MODE_MASK, 11) X(ALGO_CAP_REDUCTION_SCHEME_MASK, 1) \
  X(ALGO_CAP_SPLITK_SUPPORT, 0) X(ALGO_CAP_STRIDED_BATCH_SUPPORT, 3) X(ALGO_CAP_UPLO_SUPPORT, 5) \
  X(ALGO_CONFIG_CTA_SWIZZLING, 4) X(ALGO_CONFIG_CUSTOM_OPTION, 5) X(ALGO_CONFIG_ID, 0) \
  X(ALGO_CONFIG_REDUCTION_SCHEME, 3) X(ALGO_CONFIG_SPLITK_NUM, 2) X(EPILOGUE_BGRADA, 256) X(EPILOGUE_BGRADB, 512) \
  X(EPILOGUE_BIAS, 4) X(EPILOGUE_DEFAULT, 1) X(EPILOGUE_DGELU, 192) X(EPILOGUE_DGELU_BGRAD, 208) \
  X(EPILOGUE_DRELU, 136) X(EPILOGUE_DRELU_BGRAD, 152) X(EPILOGUE_GELU, 32) X(EPILOGUE_GELU_AUX, 160) \
  X(EPILOGUE_GELU_AUX_BIAS, 164) X(EPILOGUE_GELU_BIAS, 36) X(EPILOGUE_RELU, 2) X(EPILOGUE_RELU_AUX, 130) \
  X(EPILOGUE_RELU_AUX_BIAS, 134) X(EPILOGUE_RELU_BIAS, 6) X(MATMUL_DESC_ALPHA_VECTOR_BATCH_STRIDE, 14) \
  X(MATMUL_DESC_AMAX_D_POINTER, 21) X(MATMUL_DESC_A_SCALE_POINTER, 17) X(MATMUL_DESC_BIAS_BATCH_STRIDE, 10) \
  X(MATMUL_DESC_BIAS_DATA_TYPE, 26) X(MATMUL_DESC_BIAS_POINTER, 8) X(MATMUL_DESC_B_SCALE_POINTER, 18) \
  X(MATMUL_DESC_COMPUTE_TYPE, 0) X(MATMUL_DESC_C_SCALE_POINTER, 19) X(MATMUL_DESC_D_SCALE_POINTER, 20) \
  X(MATMUL_DESC_EPILOGUE, 7) X(MATMUL_DESC_EPILOGUE_AUX_AMAX_POINTER, 24) \
  X(MATMUL_DESC_EPILOGUE_AUX_BATCH_STRIDE, 13) X(MATMUL_DESC_EPILOGUE_AUX_DATA_TYPE, 22) \
  X(MATMUL_DESC_EPILOGUE_AUX_LD, 12) X(MATMUL_DESC_EPILOGUE_AUX_POINTER, 11) \
  X(MATMUL_DESC_EPILOGUE_AUX_SCALE_POINTER, 23) X(MATMUL_DESC_FAST_ACCUM, 25) X(MATMUL_DESC_FILL_MODE, 6) \
  X(MATMUL_DESC_POINTER_MODE, 2) X(MATMUL_DESC_SCALE_TYPE, 1) X(MATMUL_DESC_SM_COUNT_TARGET, 15) \
  X(MATMUL_DESC_TRANSA, 3) X(MATMUL_DESC_TRANSB, 4) X(MATMUL_DESC_TRANSC, 5) X(MATMUL_PREF_IMPL_MASK, 12) \
  X(MATMUL_PREF_MAX_WAVES_COUNT, 9) X(MATMUL_PREF_MAX_WORKSPACE_BYTES, 1) X(MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, 5) \
  X(MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, 6) X(MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, 7) \
  X(MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, 8) X(MATMUL_PREF_REDUCTION_SCHEME_MASK, 3) X(MATMUL_PREF_SEARCH_MODE, 0) \
  X(MATRIX_LAYOUT_BATCH_COUNT, 5) X(MATRIX_LAYOUT_COLS, 3) X(MATRIX_LAYOUT_LD, 4) X(MATRIX_LAYOUT_ORDER, 1) \
  X(MATRIX_LAYOUT_PLANE_OFFSET, 7) X(MATRIX_LAYOUT_ROWS, 2) X(MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, 6) \
  X(MATRIX_LAYOUT_TYPE, 0) X(MATRIX_TRANSFORM_DESC_POINTER_MODE, 1) X(MATRIX_TRANSFORM_DESC_SCALE_TYPE, 0) \
  X(MATRIX_TRANSFORM_DESC_TRANSA, 2) X(MATRIX_TRANSFORM_DESC_TRANSB, 3) X(ORDER_COL, 0) X(ORDER_COL32, 2) \
  X(ORDER_COL32_2R_4R4, 4) X(ORDER_COL4_4R2_8C, 3) X(ORDER_ROW, 1) X(POINTER_MODE_ALPHA_DEVICE_VECTOR_BETA_HOST, 4) \
  X(POINTER_MODE_ALPHA_DEVICE_VECTOR_BETA_ZERO, 3) X(POINTER_MODE_DEVICE, 1) X(POINTER_MODE_DEVICE_VECTOR, 2) \
  X(POINTER_MODE_HOST, 0) X(POINTER_MODE_MASK_ALPHA_DEVICE_VECTOR_BETA_HOST, 16) \
  X(POINTER_MODE_MASK_ALPHA_DEVICE_VECTOR_BETA_ZERO, 8) X(POINTER_MODE_MASK_DEVICE, 2) \
  X(POINTER_MODE_MASK_DEVICE_VECTOR, 4) X(POINTER_MODE_MASK_HOST, 1) X(REDUCTION_SCHEME_COMPUTE_TYPE, 2) \
  X(REDUCTION_SCHEME_INPLACE, 1) X(REDUCTION_SCHEME_MASK, 7) X(REDUCTION_SCHEME_NONE, 0) \
  X(REDUCTION_SCHEME_OUTPUT_TYPE, 4) X(SEARCH_BEST_FIT, 0) X(SEARCH_LIMITED_BY_ALGO_ID, 1)
// clang-format on

static void numbers_are_nvidias(void **state) {
  (void)state;
#define CHECK_NUMBER(name, number) \
  if ((long long)CUBLASLT_##name != number) fail_msg("CUBLASLT_" #name " is %lld", (long long)CUBLASLT_##name);
  CONSTANTS(CHECK_NUMBER)
  assert_int_equal(sizeof(cublasLtMatmulHeuristicResult_t), 96);
  assert_int_equal(sizeof(cublasLtMatmulDescOpaque_t), 256);
}

/* Set, read again, its size asked for, given a wrong one. */
#define KEEPS(Kind, object, attribute, T, new_value)                                                           \
  do {                                                                                                         \
    T value = (T)(new_value);                                                                                  \
    T back = 0;                                                                                                \
    size_t written = 0;                                                                                        \
    BLAS(cublasLt##Kind##SetAttribute(object, attribute, &value, sizeof value));                               \
    BLAS(cublasLt##Kind##GetAttribute(object, attribute, &back, sizeof back, &written));                       \
    assert_true(back == value && written == sizeof back);                                                      \
    written = 0;                                                                                               \
    BLAS(cublasLt##Kind##GetAttribute(object, attribute, NULL, 0, &written));                                  \
    assert_int_equal(written, sizeof(T));                                                                      \
    BLAS_GIVES(CUBLAS_STATUS_INVALID_VALUE, cublasLt##Kind##SetAttribute(object, attribute, &value, 3));       \
    BLAS_GIVES(CUBLAS_STATUS_INVALID_VALUE, cublasLt##Kind##SetAttribute(object, attribute, NULL, sizeof(T))); \
    BLAS_GIVES(CUBLAS_STATUS_INVALID_VALUE, cublasLt##Kind##GetAttribute(object, attribute, NULL, 0, NULL));   \
  } while (0)

#define IS(Kind, object, attribute, T, expected)                                                    \
  do {                                                                                              \
    T value;                                                                                        \
    BLAS(cublasLt##Kind##GetAttribute(object, attribute, &value, sizeof value, NULL));              \
    if (value != (T)(expected)) fail_msg("line %d: %s is not %s", __LINE__, #attribute, #expected); \
  } while (0)

static void attributes_are_kept(void **state) {
  (void)state;
  cublasLtMatrixLayoutOpaque_t l;
  cublasLtMatmulDescOpaque_t o;
  cublasLtMatmulPreferenceOpaque_t p;
  BLAS(cublasLtMatrixLayoutInit(&l, CUDA_R_16F, 12, 34, 56));
  IS(MatrixLayout, &l, CUBLASLT_MATRIX_LAYOUT_TYPE, uint32_t, CUDA_R_16F);
  IS(MatrixLayout, &l, CUBLASLT_MATRIX_LAYOUT_ORDER, int32_t, CUBLASLT_ORDER_COL);
  IS(MatrixLayout, &l, CUBLASLT_MATRIX_LAYOUT_ROWS, uint64_t, 12);
  IS(MatrixLayout, &l, CUBLASLT_MATRIX_LAYOUT_COLS, uint64_t, 34);
  IS(MatrixLayout, &l, CUBLASLT_MATRIX_LAYOUT_LD, int64_t, 56);
  IS(MatrixLayout, &l, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, int32_t, 1);
  KEEPS(MatrixLayout, &l, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, int64_t, 1ll << 40);
  KEEPS(MatrixLayout, &l, CUBLASLT_MATRIX_LAYOUT_ORDER, int32_t, CUBLASLT_ORDER_ROW);
  KEEPS(MatrixLayout, &l, CUBLASLT_MATRIX_LAYOUT_ROWS, uint64_t, 99);
  IS(MatrixLayout, &l, CUBLASLT_MATRIX_LAYOUT_COLS, uint64_t, 34);

  BLAS(cublasLtMatmulDescInit(&o, CUBLAS_COMPUTE_32F_FAST_TF32, CUDA_R_32F));
  IS(MatmulDesc, &o, CUBLASLT_MATMUL_DESC_COMPUTE_TYPE, int32_t, CUBLAS_COMPUTE_32F_FAST_TF32);
  IS(MatmulDesc, &o, CUBLASLT_MATMUL_DESC_SCALE_TYPE, int32_t, CUDA_R_32F);
  IS(MatmulDesc, &o, CUBLASLT_MATMUL_DESC_POINTER_MODE, int32_t, CUBLASLT_POINTER_MODE_HOST);
  IS(MatmulDesc, &o, CUBLASLT_MATMUL_DESC_TRANSB, int32_t, CUBLAS_OP_N);
  IS(MatmulDesc, &o, CUBLASLT_MATMUL_DESC_EPILOGUE, uint32_t, CUBLASLT_EPILOGUE_DEFAULT);
  IS(MatmulDesc, &o, CUBLASLT_MATMUL_DESC_BIAS_POINTER, const void *, NULL);
  KEEPS(MatmulDesc, &o, CUBLASLT_MATMUL_DESC_TRANSA, int32_t, CUBLAS_OP_T);
  KEEPS(MatmulDesc, &o, CUBLASLT_MATMUL_DESC_EPILOGUE, uint32_t, CUBLASLT_EPILOGUE_GELU_AUX_BIAS);
  KEEPS(MatmulDesc, &o, CUBLASLT_MATMUL_DESC_BIAS_POINTER, const void *, &o);
  KEEPS(MatmulDesc, &o, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, int32_t, CUDA_R_16F);
  KEEPS(MatmulDesc, &o, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, int64_t, 128);
  KEEPS(MatmulDesc, &o, CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, const void *, &o);
  IS(MatmulDesc, &o, CUBLASLT_MATMUL_DESC_TRANSB, int32_t, CUBLAS_OP_N);

  BLAS(cublasLtMatmulPreferenceInit(&p));
  IS(MatmulPreference, &p, CUBLASLT_MATMUL_PREF_SEARCH_MODE, uint32_t, CUBLASLT_SEARCH_BEST_FIT);
  IS(MatmulPreference, &p, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, uint32_t, 256);
  KEEPS(MatmulPreference, &p, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, uint64_t, 32 << 20);
  KEEPS(MatmulPreference, &p, CUBLASLT_MATMUL_PREF_MAX_WAVES_COUNT, float, 1.5f);
  uint32_t value = 0;
  BLAS_GIVES(CUBLAS_STATUS_INVALID_VALUE,
             cublasLtMatmulDescSetAttribute(NULL, CUBLASLT_MATMUL_DESC_EPILOGUE, &value, 4));
  BLAS_GIVES(CUBLAS_STATUS_INVALID_VALUE,
             cublasLtMatmulDescSetAttribute(&o, (cublasLtMatmulDescAttributes_t)999, &value, 4));
  BLAS_GIVES(CUBLAS_STATUS_ALLOC_FAILED, cublasLtMatmulPreferenceInit_internal(&p, 8));
}

static void algorithms(void **state) {
  (void)state;
  Matrix a = matrix(CUDA_R_32F, 8, 8, false, 0);
  Layouts x(a, a, a, a);
  Operation op(CUBLAS_COMPUTE_32F, CUDA_R_32F);
  const cudaDataType f32 = CUDA_R_32F;
  int ids[8], count = 0;
  float one = 1, zero = 0;
  cublasLtMatmulAlgo_t algo;
  cublasLtMatmulHeuristicResult_t result, checked;
  BLAS(cublasLtMatmulAlgoGetIds(lt, CUBLAS_COMPUTE_32F, f32, f32, f32, f32, f32, 8, ids, &count));
  assert_in_range(count, 1, 8);
  BLAS(cublasLtMatmulAlgoInit(lt, CUBLAS_COMPUTE_32F, f32, f32, f32, f32, f32, ids[0], &algo));
  int32_t id = -1, batches = -1;
  size_t written = 0;
  BLAS(cublasLtMatmulAlgoConfigGetAttribute(&algo, CUBLASLT_ALGO_CONFIG_ID, &id, sizeof id, &written));
  assert_int_equal(id, ids[0]);
  BLAS(cublasLtMatmulAlgoCapGetAttribute(&algo, CUBLASLT_ALGO_CAP_STRIDED_BATCH_SUPPORT, &batches, 4, &written));
  assert_in_range(batches, 0, 1);
  BLAS(cublasLtMatmulAlgoCapGetAttribute(&algo, CUBLASLT_ALGO_CAP_TILE_IDS, NULL, 0, &written));
  if (!ON_GPU) assert_int_equal(written, 0);
  BLAS(find(op, x, &result));
  BLAS(cublasLtMatmulAlgoCheck(lt, op.d, x.l[0], x.l[1], x.l[2], x.l[3], &result.algo, &checked));
  BLAS(checked.state);
  if (!ON_GPU) assert_true(result.workspaceSize == 0 && checked.workspaceSize == 0);
  uint32_t tile = CUBLASLT_MATMUL_TILE_64x64;
  BLAS(cublasLtMatmulAlgoConfigSetAttribute(&algo, CUBLASLT_ALGO_CONFIG_TILE_ID, &tile, sizeof tile));
#ifdef SIMT_REWRITTEN
  BLAS(cublasLtMatmul(lt, op.d, &one, a.array.device(), x.l[0], a.array.device(), x.l[1], &zero, a.array.device(),
                      x.l[2], a.array.device(), x.l[3], &algo, NULL, 0, 0));
  memset(&algo, 0, sizeof algo);
  BLAS_GIVES(CUBLAS_STATUS_INVALID_VALUE,
             cublasLtMatmul(lt, op.d, &one, a.array.device(), x.l[0], a.array.device(), x.l[1], &zero, a.array.device(),
                            x.l[2], a.array.device(), x.l[3], &algo, NULL, 0, 0));
  BLAS_GIVES(CUBLAS_STATUS_INVALID_VALUE,
             cublasLtMatmulAlgoInit(lt, CUBLAS_COMPUTE_32F, f32, f32, f32, f32, f32, 7, &algo));
  BLAS_GIVES(CUBLAS_STATUS_NOT_SUPPORTED, cublasLtMatmulAlgoGetIds(lt, CUBLAS_COMPUTE_32F, f32, CUDA_R_8F_E4M3,
                                                                   CUDA_R_8F_E4M3, f32, f32, 8, ids, &count));
#endif
  (void)one;
  (void)zero;
  array_free(&a.array);
}

/* ---- refusals ---- */

/* D (4,3) = A (4,2) B (2,3), one thing of which each test makes wrong. */
struct Small {
  Matrix a = matrix(CUDA_R_32F, 4, 2, false, 0), b = matrix(CUDA_R_32F, 2, 3, false, 0),
         d = matrix(CUDA_R_32F, 4, 3, false, 0);
  Layouts l{a, b, d, d};
  Operation op{CUBLAS_COMPUTE_32F, CUDA_R_32F};
  ~Small() {
    for (Matrix *x : {&a, &b, &d}) cudaFree(x->array.device_base);
  }
  cublasStatus_t run(void) {
    float one = 1, zero = 0;
    return cublasLtMatmul(lt, op.d, &one, a.array.device(), l.l[0], b.array.device(), l.l[1], &zero, d.array.device(),
                          l.l[2], d.array.device(), l.l[3], NULL, NULL, 0, 0);
  }
};

/* The product and the heuristic give the same status. */
static void gives(int line, cublasStatus_t expected, Small *s) {
  cublasLtMatmulHeuristicResult_t result;
  cublasStatus_t run = s->run(), found = find(s->op, s->l, &result);
  if (run != expected) fail_msg("line %d: %s from cublasLtMatmul", line, cublasGetStatusName(run));
  if (!ON_GPU && found != expected) fail_msg("line %d: %s from the heuristic", line, cublasGetStatusName(found));
}
#define LAYOUT_GIVES(expected, which, attribute, value)        \
  do {                                                         \
    Small s;                                                   \
    s.l.set(which, CUBLASLT_MATRIX_LAYOUT_##attribute, value); \
    gives(__LINE__, expected, &s);                             \
  } while (0)
#define OPERATION_GIVES(expected, attribute, value)    \
  do {                                                 \
    Small s;                                           \
    s.op.set(CUBLASLT_MATMUL_DESC_##attribute, value); \
    gives(__LINE__, expected, &s);                     \
  } while (0)

static void wrong_arguments_are_refused(void **state) {
  (void)state;
  const cublasStatus_t invalid = CUBLAS_STATUS_INVALID_VALUE;
  {
    Small s;
    gives(__LINE__, CUBLAS_STATUS_SUCCESS, &s);
  }
  LAYOUT_GIVES(invalid, 0, LD, (int64_t)3);
  LAYOUT_GIVES(invalid, 1, LD, (int64_t)1);
  LAYOUT_GIVES(invalid, 3, LD, (int64_t)3);
  LAYOUT_GIVES(invalid, 0, COLS, (uint64_t)3);            /* k is 3 and 2 */
  LAYOUT_GIVES(invalid, 1, COLS, (uint64_t)2);            /* n is 2 and 3 */
  OPERATION_GIVES(invalid, TRANSA, (int32_t)CUBLAS_OP_T); /* op(A) is (2,4) */
#ifdef SIMT_REWRITTEN /* that these are refused is clear; with which status, untried on a GPU */
  LAYOUT_GIVES(invalid, 2, LD, (int64_t)3);
  LAYOUT_GIVES(invalid, 2, ROWS, (uint64_t)3);
  LAYOUT_GIVES(invalid, 0, LD, (int64_t)-4);
  LAYOUT_GIVES(invalid, 0, ROWS, (uint64_t)0);
  LAYOUT_GIVES(invalid, 0, BATCH_COUNT, (int32_t)2);
  LAYOUT_GIVES(invalid, 3, BATCH_COUNT, (int32_t)0);
  OPERATION_GIVES(invalid, TRANSB, (int32_t)9);
  OPERATION_GIVES(invalid, EPILOGUE, (uint32_t)3);
  {
    Small s;
    float one = 1, zero = 0;
    void *a = s.a.array.device(), *b = s.b.array.device(), *d = s.d.array.device();
    cublasLtMatrixLayout_t *l = s.l.l;
    cublasLtMatmulDesc_t op = s.op.d;
    cublasLtMatmulHeuristicResult_t result;
    int count;
    BLAS_GIVES(CUBLAS_STATUS_NOT_INITIALIZED,
               cublasLtMatmul(NULL, op, &one, a, l[0], b, l[1], &zero, d, l[2], d, l[3], NULL, NULL, 0, 0));
    BLAS_GIVES(invalid, cublasLtMatmul(lt, NULL, &one, a, l[0], b, l[1], &zero, d, l[2], d, l[3], NULL, NULL, 0, 0));
    BLAS_GIVES(invalid, cublasLtMatmul(lt, op, &one, a, NULL, b, l[1], &zero, d, l[2], d, l[3], NULL, NULL, 0, 0));
    BLAS_GIVES(invalid, cublasLtMatmul(lt, op, NULL, a, l[0], b, l[1], &zero, d, l[2], d, l[3], NULL, NULL, 0, 0));
    BLAS_GIVES(invalid, cublasLtMatmulAlgoGetHeuristic(lt, op, l[0], l[1], l[2], l[3], NULL, 1, &result, &count));
    cublasLtMatmulPreferenceOpaque_t p;
    BLAS(cublasLtMatmulPreferenceInit(&p));
    BLAS_GIVES(invalid, cublasLtMatmulAlgoGetHeuristic(lt, op, l[0], l[1], l[2], l[3], &p, 0, &result, &count));
    BLAS_GIVES(CUBLAS_STATUS_NOT_INITIALIZED,
               cublasLtMatmulAlgoGetHeuristic(NULL, op, l[0], l[1], l[2], l[3], &p, 1, &result, &count));
    s.l.set(2, CUBLASLT_MATRIX_LAYOUT_LD, (int64_t)5); /* C is D, another ld */
    BLAS_GIVES(invalid, cublasLtMatmul(lt, op, &one, a, l[0], b, l[1], &one, d, l[2], d, l[3], NULL, NULL, 0, 0));
    s.l.set(2, CUBLASLT_MATRIX_LAYOUT_LD, (int64_t)4);
    s.op.set(CUBLASLT_MATMUL_DESC_EPILOGUE, (uint32_t)CUBLASLT_EPILOGUE_BIAS); /* and no bias */
    BLAS_GIVES(invalid, s.run());
    s.op.set(CUBLASLT_MATMUL_DESC_EPILOGUE, (uint32_t)CUBLASLT_EPILOGUE_GELU_AUX); /* and no leading dimension */
    BLAS_GIVES(invalid, s.run());
  }
#endif
  CHECK(cudaDeviceSynchronize());
}

/* A GPU has these, or some of them. */
static void what_is_not_offered_is_refused(void **state) {
  (void)state;
#ifndef SIMT_REWRITTEN
  skip();
#else
  const cublasStatus_t refused = CUBLAS_STATUS_NOT_SUPPORTED;
  void *somewhere = &state;
  LAYOUT_GIVES(refused, 0, TYPE, (uint32_t)CUDA_R_8F_E4M3);
  LAYOUT_GIVES(refused, 0, TYPE, (uint32_t)CUDA_R_16F);
  LAYOUT_GIVES(refused, 2, TYPE, (uint32_t)CUDA_R_64F);
  LAYOUT_GIVES(refused, 3, ORDER, (int32_t)CUBLASLT_ORDER_COL32);
  LAYOUT_GIVES(refused, 1, BATCH_MODE, (uint32_t)CUBLASLT_BATCH_MODE_POINTER_ARRAY);
  LAYOUT_GIVES(refused, 1, PLANE_OFFSET, (int64_t)64);
  LAYOUT_GIVES(refused, 0, ROWS, (uint64_t)1 << 32);
  OPERATION_GIVES(refused, COMPUTE_TYPE, (int32_t)CUBLAS_COMPUTE_32I);
  OPERATION_GIVES(refused, COMPUTE_TYPE, (int32_t)CUDA_R_32F); /* a type, not a compute type */
  OPERATION_GIVES(refused, SCALE_TYPE, (int32_t)CUDA_R_64F);
  OPERATION_GIVES(refused, POINTER_MODE, (int32_t)CUBLASLT_POINTER_MODE_DEVICE_VECTOR);
  OPERATION_GIVES(refused, TRANSC, (int32_t)CUBLAS_OP_T);
  OPERATION_GIVES(refused, FILL_MODE, (int32_t)CUBLAS_FILL_MODE_LOWER);
  OPERATION_GIVES(refused, A_SCALE_POINTER, somewhere);
  OPERATION_GIVES(refused, D_SCALE_POINTER, somewhere);
  OPERATION_GIVES(refused, AMAX_D_POINTER, somewhere);
  OPERATION_GIVES(refused, B_SCALE_MODE, (int32_t)CUBLASLT_MATMUL_MATRIX_SCALE_VEC32_UE8M0);
  for (int epilogue : {CUBLASLT_EPILOGUE_RELU_AUX, CUBLASLT_EPILOGUE_RELU_AUX_BIAS, CUBLASLT_EPILOGUE_DRELU,
                       CUBLASLT_EPILOGUE_DRELU_BGRAD, CUBLASLT_EPILOGUE_DGELU, CUBLASLT_EPILOGUE_DGELU_BGRAD,
                       CUBLASLT_EPILOGUE_BGRADA, CUBLASLT_EPILOGUE_BGRADB}) {
    OPERATION_GIVES(refused, EPILOGUE, (uint32_t)epilogue);
  }
  { /* as documented, an epilogue needs a D by columns */
    Small s;
    s.l.set(3, CUBLASLT_MATRIX_LAYOUT_ORDER, (int32_t)CUBLASLT_ORDER_ROW);
    gives(__LINE__, CUBLAS_STATUS_SUCCESS, &s);
    s.op.set(CUBLASLT_MATMUL_DESC_EPILOGUE, (uint32_t)CUBLASLT_EPILOGUE_RELU);
    gives(__LINE__, refused, &s);
  }
  { /* a bias of another type than D */
    Small s;
    s.op.set(CUBLASLT_MATMUL_DESC_EPILOGUE, (uint32_t)CUBLASLT_EPILOGUE_BIAS);
    s.op.set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, s.d.array.device());
    gives(__LINE__, CUBLAS_STATUS_SUCCESS, &s);
    s.op.set(CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, (int32_t)CUDA_R_16F);
    gives(__LINE__, refused, &s);
  }
  CHECK(cudaDeviceSynchronize());
#endif
}

/* What only the emulator can say. It is the last test: on a GPU these calls end the process's use of it. */
static void pointers_are_checked(void **state) {
  (void)state;
  if (ON_GPU) skip();
  for (int turn = 0; turn < 8; turn++) {
    float host[64] = {0}, one = 1, zero = 0, *d = device_array<float>(16), *freed = device_array<float>(16);
    CHECK(cudaFree(freed));
    cublasLtMatrixLayout_t l, wide;
    BLAS(cublasLtMatrixLayoutCreate(&l, CUDA_R_32F, 4, 4, 4));
    BLAS(cublasLtMatrixLayoutCreate(&wide, CUDA_R_32F, 4, 4, 5)); /* 19 > 16 elements */
    Operation op(CUBLAS_COMPUTE_32F, CUDA_R_32F);
    const float *alpha = &one, *a = d, *b = d, *c = d;
    if (turn == 0) a = host;
    if (turn == 1) b = freed;
    if (turn == 2) c = NULL;
    if (turn == 4) alpha = d;
    if (turn == 5) op.set(CUBLASLT_MATMUL_DESC_POINTER_MODE, (int32_t)CUBLASLT_POINTER_MODE_DEVICE);
    if (turn == 6) { /* a bias of 4 elements, 3 of which are there */
      op.set(CUBLASLT_MATMUL_DESC_EPILOGUE, (uint32_t)CUBLASLT_EPILOGUE_BIAS);
      op.set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, (const void *)(d + 13));
    }
    if (turn == 7) { /* (4,4), leading dimension 8 */
      op.set(CUBLASLT_MATMUL_DESC_EPILOGUE, (uint32_t)CUBLASLT_EPILOGUE_GELU_AUX);
      op.set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, (void *)d);
      op.set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, (int64_t)8);
    }
    BLAS_GIVES(CUBLAS_STATUS_EXECUTION_FAILED, cublasLtMatmul(lt, op.d, alpha, a, l, b, turn == 3 ? wide : l,
                                                              turn == 2 ? &one : &zero, c, l, d, l, NULL, NULL, 0, 0));
    assert_int_equal(cudaDeviceSynchronize(), cudaErrorIllegalAddress);
    BLAS(cublasLtMatrixLayoutDestroy(l));
    BLAS(cublasLtMatrixLayoutDestroy(wide));
    BLAS(cublasLtDestroy(lt));
    CHECK(cudaDeviceReset());
    BLAS(cublasLtCreate(&lt));
  }
}

static int create(void **state) {
  (void)state;
  return cublasLtCreate(&lt) != CUBLAS_STATUS_SUCCESS;
}

static int destroy(void **state) {
  (void)state;
  return cublasLtDestroy(lt) != CUBLAS_STATUS_SUCCESS;
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_type_and_transposition),
      cmocka_unit_test(every_order),
      cmocka_unit_test(ragged_sizes),
      cmocka_unit_test(every_epilogue),
      cmocka_unit_test(activations_at_their_ends),
      cmocka_unit_test(strided_batches),
      cmocka_unit_test(scalars_on_the_device),
      cmocka_unit_test(work_is_done_in_the_stream_and_captured),
      cmocka_unit_test(handles),
      cmocka_unit_test(numbers_are_nvidias),
      cmocka_unit_test(attributes_are_kept),
      cmocka_unit_test(algorithms),
      cmocka_unit_test(wrong_arguments_are_refused),
      cmocka_unit_test(what_is_not_offered_is_refused),
      cmocka_unit_test(pointers_are_checked),
  };
  return cmocka_run_group_tests(tests, create, destroy);
}
