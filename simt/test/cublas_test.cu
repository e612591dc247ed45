/* cublas_test.cu - cuBLAS against sums written out in double. On a GPU (nvcc -lcublas) it tests NVIDIA's library, which
 * shows that the expectations are right; on the emulator (simtcc -lcublas) it tests simt/blas.
 *
 * Every output has padding between its columns and guards round it, filled with NaN, which must stay as they are. */
#include "blas.cuh"

static cublasHandle_t handle;

static Complex op(const Array &a, cublasOperation_t trans, int i, int j) {
  if (trans == CUBLAS_OP_N) return a.at(i, j);
  return trans == CUBLAS_OP_T ? a.at(j, i) : std::conj(a.at(j, i));
}

/* ---- gemm ---- */

struct Product {
  cudaDataType ab, c, scalar;
  cublasComputeType_t compute;
  double sum_roundoff; /* of the numbers in which it may sum up */
};
static const Product products[] = {
    {CUDA_R_32F, CUDA_R_32F, CUDA_R_32F, CUBLAS_COMPUTE_32F, 0x1p-24},
    {CUDA_R_64F, CUDA_R_64F, CUDA_R_64F, CUBLAS_COMPUTE_64F, 0x1p-53},
    {CUDA_C_32F, CUDA_C_32F, CUDA_C_32F, CUBLAS_COMPUTE_32F, 0x1p-23},
    {CUDA_C_64F, CUDA_C_64F, CUDA_C_64F, CUBLAS_COMPUTE_64F, 0x1p-52},
    {CUDA_R_16F, CUDA_R_16F, CUDA_R_16F, CUBLAS_COMPUTE_16F, 0x1p-11},
    {CUDA_R_16F, CUDA_R_16F, CUDA_R_32F, CUBLAS_COMPUTE_32F, 0x1p-22},
    {CUDA_R_16F, CUDA_R_32F, CUDA_R_32F, CUBLAS_COMPUTE_32F, 0x1p-22},
    {CUDA_R_16BF, CUDA_R_16BF, CUDA_R_32F, CUBLAS_COMPUTE_32F, 0x1p-22},
    {CUDA_R_16BF, CUDA_R_32F, CUDA_R_32F, CUBLAS_COMPUTE_32F, 0x1p-22},
    {CUDA_R_32F, CUDA_R_32F, CUDA_R_32F, CUBLAS_COMPUTE_32F_FAST_TF32, 0x1p-10},
    {CUDA_R_32F, CUDA_R_32F, CUDA_R_32F, CUBLAS_COMPUTE_32F_PEDANTIC, 0x1p-24},
};

/* Compares C with alpha op(A) op(B) + beta C0. A sum of k products, however ordered, is off by at most
 * k * roundoff * (the sum of their magnitudes). */
static void check_product(const char *what, const Product &p, const Array &c, const Array &c0, const Array &a,
                          const Array &b, cublasOperation_t ta, cublasOperation_t tb, int k, Complex alpha,
                          Complex beta) {
  for (int j = 0; j < c.columns; j++) {
    for (int i = 0; i < c.rows; i++) {
      Complex sum = 0;
      double magnitude = 0;
      for (int l = 0; l < k; l++) {
        Complex term = op(a, ta, i, l) * op(b, tb, l, j);
        sum += term;
        magnitude += std::abs(term);
      }
      Complex expected = alpha * sum;
      magnitude *= std::abs(alpha);
      if (beta != 0.0) {
        expected += beta * c0.at(i, j);
        magnitude += std::abs(beta * c0.at(i, j));
      }
      double tolerance = (k + 3) * p.sum_roundoff * magnitude + 2 * roundoff(p.c) * std::abs(expected) +
                         (p.c == CUDA_R_16F ? 0x1p-24 : 0);
      check(what, i, j, c.at(i, j), expected, tolerance);
    }
  }
}

typedef enum Form { TYPED, EX } Form;

static cublasStatus_t call_gemm(Form form, const Product &p, cublasOperation_t ta, cublasOperation_t tb, int m, int n,
                                int k, const Value &alpha, const Array &a, const Array &b, const Value &beta,
                                const Array &c) {
  if (form == EX || p.compute == CUBLAS_COMPUTE_32F_FAST_TF32 || p.compute == CUBLAS_COMPUTE_32F_PEDANTIC ||
      (p.ab == CUDA_R_16F && p.compute != CUBLAS_COMPUTE_16F) || p.ab == CUDA_R_16BF) {
    return cublasGemmEx(handle, ta, tb, m, n, k, alpha, a.device(), p.ab, a.ld, b.device(), p.ab, b.ld, beta,
                        c.device(), p.c, c.ld, p.compute, CUBLAS_GEMM_DEFAULT);
  }
  switch (p.ab) {
    case CUDA_R_32F:
      return cublasSgemm(handle, ta, tb, m, n, k, alpha, (float *)a.device(), a.ld, (float *)b.device(), b.ld, beta,
                         (float *)c.device(), c.ld);
    case CUDA_R_64F:
      return cublasDgemm(handle, ta, tb, m, n, k, alpha, (double *)a.device(), a.ld, (double *)b.device(), b.ld, beta,
                         (double *)c.device(), c.ld);
    case CUDA_C_32F:
      return cublasCgemm(handle, ta, tb, m, n, k, alpha, (cuComplex *)a.device(), a.ld, (cuComplex *)b.device(), b.ld,
                         beta, (cuComplex *)c.device(), c.ld);
    case CUDA_C_64F:
      return cublasZgemm(handle, ta, tb, m, n, k, alpha, (cuDoubleComplex *)a.device(), a.ld,
                         (cuDoubleComplex *)b.device(), b.ld, beta, (cuDoubleComplex *)c.device(), c.ld);
    default:
      return cublasHgemm(handle, ta, tb, m, n, k, alpha, (__half *)a.device(), a.ld, (__half *)b.device(), b.ld, beta,
                         (__half *)c.device(), c.ld);
  }
}

static void one_product(Form form, const Product &p, cublasOperation_t ta, cublasOperation_t tb, int m, int n, int k,
                        Complex alpha, Complex beta, int padding) {
  char what[128];
  snprintf(what, sizeof what,
           "gemm of types %d -> %d, compute %d, ops %d %d, m %d n %d k %d, alpha %g beta %g, padding %d", (int)p.ab,
           (int)p.c, (int)p.compute, (int)ta, (int)tb, m, n, k, alpha.real(), beta.real(), padding);
  Array a = random_matrix(p.ab, ta == CUBLAS_OP_N ? m : k, ta == CUBLAS_OP_N ? k : m, padding);
  Array b = random_matrix(p.ab, tb == CUBLAS_OP_N ? k : n, tb == CUBLAS_OP_N ? n : k, 2 * padding);
  Array c0 = array_new(p.c, m, n, m + 3 * padding, beta == 0.0 ? POISON : RANDOM); /* beta 0: C may hold NaN */
  BLAS(call_gemm(form, p, ta, tb, m, n, k, Value(p.scalar, alpha), a, b, Value(p.scalar, beta), c0));
  Array c = fetch(&c0, what);
  check_product(what, p, c, c0, a, b, ta, tb, k, alpha, beta);
  array_free(&a);
  array_free(&b);
}

static void gemm_in_every_type_and_transposition(void **state) {
  (void)state;
  const cublasOperation_t ops[] = {CUBLAS_OP_N, CUBLAS_OP_T, CUBLAS_OP_C};
  for (const Product &p : products) {
    for (cublasOperation_t ta : ops) {
      for (cublasOperation_t tb : ops) {
        one_product(TYPED, p, ta, tb, 33, 17, 40, 1, 0, 0);
        one_product(EX, p, ta, tb, 5, 8, 31, is_complex(p.ab) ? Complex(0.5, -1) : 0.5,
                    is_complex(p.ab) ? Complex(-2, 0.25) : -2, 4);
      }
    }
  }
}

static void gemm_of_ragged_sizes(void **state) {
  (void)state;
  const int sizes[][3] = {{1, 1, 1},    {1, 7, 3},    {31, 1, 64},  {3, 127, 1},   {31, 33, 29},
                          {64, 64, 64}, {127, 65, 9}, {65, 128, 1}, {130, 70, 131}};
  for (const int *s : sizes) {
    for (int i = 0; i < 2; i++) {
      one_product(TYPED, products[i], CUBLAS_OP_N, CUBLAS_OP_T, s[0], s[1], s[2], -1, 0, 0);
      one_product(TYPED, products[i], CUBLAS_OP_T, CUBLAS_OP_N, s[0], s[1], s[2], 2, 1, 3);
    }
    one_product(EX, products[5], CUBLAS_OP_N, CUBLAS_OP_N, s[0], s[1], s[2], 1, 0.5, 1);
  }
}

static void gemm_with_alpha_or_beta_zero(void **state) {
  (void)state;
  for (int i = 0; i < 4; i++) {
    one_product(TYPED, products[i], CUBLAS_OP_N, CUBLAS_OP_N, 9, 10, 11, 0, 3, 1);
    one_product(TYPED, products[i], CUBLAS_OP_N, CUBLAS_OP_N, 9, 10, 11, 0, 0, 1);
    one_product(TYPED, products[i], CUBLAS_OP_N, CUBLAS_OP_N, 9, 10, 11, 1, 1, 1);
  }
}

/* m, n or k of 0 */
static void gemm_of_nothing(void **state) {
  (void)state;
  const Product &p = products[0];
  float one = 1, half = 0.5f;
  Array a = random_matrix(p.ab, 8, 8), b = random_matrix(p.ab, 8, 8), c0 = random_matrix(p.c, 8, 8);
  BLAS(cublasSgemm(handle, CUBLAS_OP_N, CUBLAS_OP_N, 0, 8, 8, &one, (float *)a.device(), 8, (float *)b.device(), 8,
                   &half, (float *)c0.device(), 8));
  BLAS(cublasSgemm(handle, CUBLAS_OP_N, CUBLAS_OP_N, 8, 0, 8, &one, (float *)a.device(), 8, (float *)b.device(), 8,
                   &half, (float *)c0.device(), 8));
  Array c = fetch(&c0, "m or n is 0", [](int, int) { return false; });
  c0 = random_matrix(p.c, 8, 8);
  BLAS(cublasSgemm(handle, CUBLAS_OP_N, CUBLAS_OP_N, 8, 8, 0, &one, (float *)a.device(), 8, (float *)b.device(), 8,
                   &half, (float *)c0.device(), 8));
  c = fetch(&c0, "k is 0");
  check_product("k is 0: C = beta C", p, c, c0, a, b, CUBLAS_OP_N, CUBLAS_OP_N, 0, 1, 0.5);
  array_free(&a);
  array_free(&b);
}

static void int8_products_are_exact(void **state) {
  (void)state;
  int m = 12, n = 16, k = 20, alpha = 1, beta = 3;
  for (int transposed = 0; transposed < 2; transposed++) {
    cublasOperation_t ta = transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
    Array a = transposed ? random_matrix(CUDA_R_8I, k, m) : random_matrix(CUDA_R_8I, m, k);
    Array b = random_matrix(CUDA_R_8I, k, n, 4), c0 = random_matrix(CUDA_R_32I, m, n, 4);
    BLAS(cublasGemmEx(handle, ta, CUBLAS_OP_N, m, n, k, &alpha, a.device(), CUDA_R_8I, a.ld, b.device(), CUDA_R_8I,
                      b.ld, &beta, c0.device(), CUDA_R_32I, c0.ld, CUBLAS_COMPUTE_32I, CUBLAS_GEMM_DEFAULT));
    Array c = fetch(&c0, "int8");
    Product exact = {CUDA_R_8I, CUDA_R_32I, CUDA_R_32I, CUBLAS_COMPUTE_32I, 0};
    check_product("int8", exact, c, c0, a, b, ta, CUBLAS_OP_N, k, alpha, beta);
    array_free(&a);
    array_free(&b);
  }
}

/* 4096 ones: a sum in half stops at 2048, where adding 1 no longer changes it. */
static void half_products_can_sum_in_float(void **state) {
  (void)state;
  int k = 4096;
  float one = 1, zero = 0;
  std::vector<__half> ones(k, __float2half(1.0f));
  __half *a = upload(ones), *b = upload(ones);
  float *c = device_array<float>(1);
  BLAS(cublasGemmEx(handle, CUBLAS_OP_T, CUBLAS_OP_N, 1, 1, k, &one, a, CUDA_R_16F, k, b, CUDA_R_16F, k, &zero, c,
                    CUDA_R_32F, 1, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT));
  assert_true(download(c, 1)[0] == 4096.0f);
  CHECK(cudaFree(a));
  CHECK(cudaFree(b));
}

/* alpha * 1 * 1, stored as half and as bfloat16: the nearest number, ties to even, and the ends of the range. */
static void narrow_results_are_rounded_to_nearest(void **state) {
  (void)state;
  // clang-format off
  const float alphas[] = {1, 1 + 0x1p-11f, 1 + 3 * 0x1p-11f, 1 + 0x1.01p-11f, 1 + 0x1.fffffep-11f, 1 + 0x1p-8f,
                          1 + 3 * 0x1p-8f, -0.3f, 1e-3f, 65504, 65519, 65520, 0x1.ffep+15f, 1e30f, INFINITY, -INFINITY,
                          0x1p-14f, 0x1.ffep-15f, 0x1.ffffp-15f, 0x1.8p-24f, 0x1p-25f, 0x1.01p-25f, -0x1.4p-23f};
  // clang-format on
  const cudaDataType types[] = {CUDA_R_16F, CUDA_R_16BF};
  for (cudaDataType type : types) {
    uint16_t one[1];
    float zero = 0;
    put(type, one, 0, 1);
    uint16_t *a = upload(std::vector<uint16_t>(1, one[0]));
    for (float alpha : alphas) {
      uint16_t *c = device_array<uint16_t>(1), expected;
      BLAS(cublasGemmEx(handle, CUBLAS_OP_N, CUBLAS_OP_N, 1, 1, 1, &alpha, a, type, 1, a, type, 1, &zero, c, type, 1,
                        CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT));
      put(type, &expected, 0, alpha);
      uint16_t got = download(c, 1)[0];
      if (got != expected) fail_msg("type %d: %a became 0x%04x, expected 0x%04x", (int)type, alpha, got, expected);
    }
    CHECK(cudaFree(a));
  }
}

/* ---- batches ---- */

static void batches_by_stride_and_by_pointers(void **state) {
  (void)state;
  enum { BATCH = 5, M = 7, N = 6, K = 9 };
  for (const Product &p : products) {
    size_t bytes = type_bytes(p.ab), bytes_c = type_bytes(p.c);
    Value alpha(p.scalar, 2), beta(p.scalar, 0.5);
    for (int form = 0; form < 4; form++) {
      bool shared_b = form == 1; /* a stride of 0: the same B for all */
      std::vector<Array> a, b, c0;
      for (int i = 0; i < BATCH; i++) {
        a.push_back(random_matrix(p.ab, M, K, 1));
        b.push_back(shared_b && i ? b[0] : random_matrix(p.ab, K, N));
        c0.push_back(random_matrix(p.c, M, N, 2));
      }
      /* one block of memory each, with gaps between the members */
      long stride_a = (M + 1) * K + 3, stride_b = shared_b ? 0 : K * N + 5, stride_c = (M + 2) * N + 1;
      std::vector<char> all_a(bytes * stride_a * BATCH), all_b(bytes * (stride_b * (BATCH - 1) + K * N + 5));
      std::vector<char> all_c(bytes_c * stride_c * BATCH, (char)0x55);
      for (int i = 0; i < BATCH; i++) {
        memcpy(&all_a[bytes * stride_a * i], &a[i].host[a[i].guard * bytes], bytes * (M + 1) * K);
        memcpy(&all_b[bytes * stride_b * i], &b[i].host[b[i].guard * bytes], bytes * K * N);
        memcpy(&all_c[bytes_c * stride_c * i], &c0[i].host[c0[i].guard * bytes_c], bytes_c * (M + 2) * N);
      }
      char *da = upload(all_a), *db = upload(all_b), *dc = upload(all_c);
      std::vector<char *> pa, pb, pc;
      for (int i = 0; i < BATCH; i++) {
        pa.push_back(da + bytes * stride_a * i);
        pb.push_back(db + bytes * stride_b * i);
        pc.push_back(dc + bytes_c * stride_c * i);
      }
      char **dpa = upload(pa), **dpb = upload(pb), **dpc = upload(pc);
      const cublasOperation_t n = CUBLAS_OP_N;
      if (form < 2) {
        BLAS(cublasGemmStridedBatchedEx(handle, n, n, M, N, K, alpha, da, p.ab, M + 1, stride_a, db, p.ab, K, stride_b,
                                        beta, dc, p.c, M + 2, stride_c, BATCH, p.compute, CUBLAS_GEMM_DEFAULT));
      } else if (form == 2 || p.ab != p.c || p.compute == CUBLAS_COMPUTE_32F_FAST_TF32 || p.ab == CUDA_R_16BF ||
                 (p.ab == CUDA_R_16F && p.compute == CUBLAS_COMPUTE_32F)) {
        BLAS(cublasGemmBatchedEx(handle, n, n, M, N, K, alpha, (const void **)dpa, p.ab, M + 1, (const void **)dpb,
                                 p.ab, K, beta, (void **)dpc, p.c, M + 2, BATCH, p.compute, CUBLAS_GEMM_DEFAULT));
      } else if (p.ab == CUDA_R_32F) {
        BLAS(cublasSgemmBatched(handle, n, n, M, N, K, alpha, (float **)dpa, M + 1, (float **)dpb, K, beta,
                                (float **)dpc, M + 2, BATCH));
      } else if (p.ab == CUDA_R_64F) {
        BLAS(cublasDgemmStridedBatched(handle, n, n, M, N, K, alpha, (double *)da, M + 1, stride_a, (double *)db, K,
                                       stride_b, beta, (double *)dc, M + 2, stride_c, BATCH));
      } else if (p.ab == CUDA_C_32F) {
        BLAS(cublasCgemmBatched(handle, n, n, M, N, K, alpha, (cuComplex **)dpa, M + 1, (cuComplex **)dpb, K, beta,
                                (cuComplex **)dpc, M + 2, BATCH));
      } else if (p.ab == CUDA_C_64F) {
        BLAS(cublasZgemmStridedBatched(handle, n, n, M, N, K, alpha, (cuDoubleComplex *)da, M + 1, stride_a,
                                       (cuDoubleComplex *)db, K, stride_b, beta, (cuDoubleComplex *)dc, M + 2, stride_c,
                                       BATCH));
      } else {
        BLAS(cublasHgemmStridedBatched(handle, n, n, M, N, K, alpha, (__half *)da, M + 1, stride_a, (__half *)db, K,
                                       stride_b, beta, (__half *)dc, M + 2, stride_c, BATCH));
      }
      std::vector<char> got = download(dc, all_c.size());
      for (int i = 0; i < BATCH; i++) {
        char what[64];
        snprintf(what, sizeof what, "member %d of a batch of types %d -> %d, form %d", i, (int)p.ab, (int)p.c, form);
        Array c = c0[i];
        memcpy(&c.host[c.guard * bytes_c], &got[bytes_c * stride_c * i], bytes_c * (M + 2) * N);
        check_product(what, p, c, c0[i], a[i], b[i], n, n, K, 2, 0.5);
        for (long e = 0; e < stride_c; e++) { /* padding and the gap */
          bool own = e < (M + 2) * N && e % (M + 2) < M;
          size_t at = bytes_c * (stride_c * i + e);
          if (!own && memcmp(&got[at], &all_c[at], bytes_c) != 0) fail_msg("%s: padding %ld was written", what, e);
        }
        array_free(&a[i]);
        if (!(shared_b && i)) array_free(&b[i]);
        array_free(&c0[i]);
      }
      CHECK(cudaFree(da));
      CHECK(cudaFree(db));
      CHECK(cudaFree(dpa));
      CHECK(cudaFree(dpb));
      CHECK(cudaFree(dpc));
    }
  }
}

/* ---- vectors ---- */

/* Element i of a vector that is walked with an increment, from its end when that is negative. */
static int at(int i, int n, int increment) { return increment > 0 ? i * increment : (i - n + 1) * increment; }

static void level_1_real(cudaDataType type, int n, int incx, int incy) {
  double u = roundoff(type);
  bool is_float = type == CUDA_R_32F;
  char what[64];
  snprintf(what, sizeof what, "type %d, n %d, incx %d, incy %d", (int)type, n, incx, incy);
  Array x = random_vector(type, n, incx), y = random_vector(type, n, incy), y0 = y;
  Value alpha(type, 1.5);
#define BY_TYPE(S, D) (is_float ? S : D)
#define SX ((float *)x.device())
#define DX ((double *)x.device())
#define SY ((float *)y.device())
#define DY ((double *)y.device())
  /* axpy */
  BLAS(BY_TYPE(cublasSaxpy(handle, n, alpha, SX, incx, SY, incy), cublasDaxpy(handle, n, alpha, DX, incx, DY, incy)));
  auto own = [&](int i, int) { return i % abs(incy) == 0; };
  Array got = fetch(&y, what, own);
  for (int i = 0; i < n; i++) {
    Complex expected = 1.5 * x.at(at(i, n, incx)) + y0.at(at(i, n, incy));
    check(what, i, 0, got.at(at(i, n, incy)), expected, 4 * u * std::abs(expected) + u);
  }
  /* copy */
  y = random_vector(type, n, incy);
  BLAS(BY_TYPE(cublasScopy(handle, n, SX, incx, SY, incy), cublasDcopy(handle, n, DX, incx, DY, incy)));
  got = fetch(&y, what, own);
  for (int i = 0; i < n; i++) check(what, i, 0, got.at(at(i, n, incy)), x.at(at(i, n, incx)), 0);
  /* dot */
  y = random_vector(type, n, incy);
  double result[1] = {-1};
  float result_float = -1;
  BLAS(BY_TYPE(cublasSdot(handle, n, SX, incx, SY, incy, &result_float),
               cublasDdot(handle, n, DX, incx, DY, incy, result)));
  Complex sum = 0;
  double magnitude = 0;
  for (int i = 0; i < n; i++) {
    Complex term = x.at(at(i, n, incx)) * y.at(at(i, n, incy));
    sum += term;
    magnitude += std::abs(term);
  }
  check("dot", n, 0, is_float ? result_float : result[0], sum, (n + 1) * u * magnitude);
  /* rot, swap */
  Value cosine(type, 0.6), sine(type, 0.8);
  Array x0 = x, y1 = y;
  BLAS(BY_TYPE(cublasSrot(handle, n, SX, incx, SY, incy, cosine, sine),
               cublasDrot(handle, n, DX, incx, DY, incy, cosine, sine)));
  BLAS(BY_TYPE(cublasSswap(handle, n, SX, incx, SY, incy), cublasDswap(handle, n, DX, incx, DY, incy)));
  Array gx = fetch(&x, what, [&](int i, int) { return i % abs(incx) == 0; }), gy = fetch(&y, what, own);
  for (int i = 0; i < n; i++) {
    Complex p = x0.at(at(i, n, incx)), q = y1.at(at(i, n, incy));
    check("rot, swap", i, 0, gy.at(at(i, n, incy)), 0.6 * p + 0.8 * q, 8 * u);
    check("rot, swap", i, 0, gx.at(at(i, n, incx)), 0.6 * q - 0.8 * p, 8 * u);
  }
  if (incx < 0) return;
  /* scal, nrm2, asum */
  x = random_vector(type, n, incx);
  double squares = 0, absolute = 0;
  for (int i = 0; i < n; i++) {
    squares += std::norm(x.at(i * incx));
    absolute += std::abs(x.at(i * incx));
  }
  BLAS(BY_TYPE(cublasSnrm2(handle, n, SX, incx, &result_float), cublasDnrm2(handle, n, DX, incx, result)));
  check("nrm2", n, 0, is_float ? result_float : result[0], sqrt(squares), (n + 4) * u * sqrt(squares));
  BLAS(BY_TYPE(cublasSasum(handle, n, SX, incx, &result_float), cublasDasum(handle, n, DX, incx, result)));
  check("asum", n, 0, is_float ? result_float : result[0], absolute, (n + 1) * u * absolute);
  x0 = x;
  BLAS(BY_TYPE(cublasSscal(handle, n, alpha, SX, incx), cublasDscal(handle, n, alpha, DX, incx)));
  gx = fetch(&x, what, [&](int i, int) { return i % incx == 0; });
  for (int i = 0; i < n; i++) check("scal", i, 0, gx.at(i * incx), 1.5 * x0.at(i * incx), 2 * u);
#undef SX
#undef DX
#undef SY
#undef DY
}

static void vectors_of_any_length_and_increment(void **state) {
  (void)state;
  const cudaDataType types[] = {CUDA_R_32F, CUDA_R_64F};
  const int increments[][2] = {{1, 1}, {2, 3}, {-1, 1}, {2, -3}, {-2, -2}};
  for (cudaDataType type : types) {
    for (int n : {1, 2, 31, 1000, 4097}) {
      for (const int *inc : increments) level_1_real(type, n, inc[0], inc[1]);
    }
  }
}

static void largest_and_smallest_element(void **state) {
  (void)state;
  const std::vector<float> x = {3, -7, 2, 7, -1, 1, 4};
  float *d = upload(x);
  int index = -1;
  BLAS(cublasIsamax(handle, 7, d, 1, &index));
  assert_int_equal(index, 2); /* counted from 1; the first of two */
  BLAS(cublasIsamin(handle, 7, d, 1, &index));
  assert_int_equal(index, 5);
  BLAS(cublasIsamax(handle, 4, d, 2, &index)); /* 3 2 -1 4 */
  assert_int_equal(index, 4);
  BLAS(cublasIsamin(handle, 4, d, 2, &index));
  assert_int_equal(index, 3);
  BLAS(cublasIsamax(handle, 0, d, 1, &index));
  assert_int_equal(index, 0);
  CHECK(cudaFree(d));
  /* complex: |re| + |im|, not the modulus */
  std::vector<cuDoubleComplex> z = {{3, 4}, {-3.6, -3.6}, {0.5, 0}, {0, -0.25}};
  cuDoubleComplex *dz = upload(z);
  BLAS(cublasIzamax(handle, 4, dz, 1, &index));
  assert_int_equal(index, 2);
  BLAS(cublasIzamin(handle, 4, dz, 1, &index));
  assert_int_equal(index, 4);
  double sum = 0, norm = 0;
  BLAS(cublasDzasum(handle, 4, dz, 1, &sum));
  BLAS(cublasDznrm2(handle, 4, dz, 1, &norm));
  assert_true(fabs(sum - 14.95) < 1e-13 && fabs(norm - sqrt(25 + 2 * 3.6 * 3.6 + 0.3125)) < 1e-13);
  CHECK(cudaFree(dz));
}

static void sums_of_nothing_are_zero(void **state) {
  (void)state;
  float *d = upload(std::vector<float>(4, 5.0f));
  float result = -1;
  BLAS(cublasSdot(handle, 0, d, 1, d, 1, &result));
  assert_true(result == 0);
  result = -1;
  BLAS(cublasSnrm2(handle, 0, d, 1, &result));
  assert_true(result == 0);
  result = -1;
  BLAS(cublasSasum(handle, 0, d, 1, &result));
  assert_true(result == 0);
  CHECK(cudaFree(d));
}

static void norms_do_not_overflow(void **state) {
  (void)state;
  float *d = upload(std::vector<float>(4, 1e30f)), result = 0;
  BLAS(cublasSnrm2(handle, 4, d, 1, &result));
  assert_true(fabsf(result / 2e30f - 1) < 1e-6f);
  CHECK(cudaFree(d));
}

static void complex_vectors(void **state) {
  (void)state;
  int n = 37;
  Array x = random_vector(CUDA_C_64F, n), y = random_vector(CUDA_C_64F, n), y0 = y;
  cuDoubleComplex *dx = (cuDoubleComplex *)x.device(), *dy = (cuDoubleComplex *)y.device();
  cuDoubleComplex alpha = make_cuDoubleComplex(0.5, -2), dotu, dotc;
  double two = 2;
  BLAS(cublasZdotu(handle, n, dx, 1, dy, 1, &dotu));
  BLAS(cublasZdotc(handle, n, dx, 1, dy, 1, &dotc));
  BLAS(cublasZaxpy(handle, n, &alpha, dx, 1, dy, 1));
  BLAS(cublasZscal(handle, n, &alpha, dy, 1));
  BLAS(cublasZdscal(handle, n, &two, dy, 1));
  Array got = fetch(&y, "complex");
  Complex u = 0, c = 0, a(0.5, -2);
  for (int i = 0; i < n; i++) {
    u += x.at(i) * y0.at(i);
    c += std::conj(x.at(i)) * y0.at(i);
    check("axpy, scal", i, 0, got.at(i), 2.0 * a * (a * x.at(i) + y0.at(i)), 1e-14);
  }
  check("dotu", 0, 0, Complex(dotu.x, dotu.y), u, 1e-13);
  check("dotc", 0, 0, Complex(dotc.x, dotc.y), c, 1e-13);
  array_free(&x);
}

static void rotation_that_makes_zero(void **state) {
  (void)state;
  double a = 3, b = -4, c = 0, s = 0;
  BLAS(cublasDrotg(handle, &a, &b, &c, &s));
  assert_true(fabs(c * 3 + s * -4 - a) < 1e-14 && fabs(-s * 3 + c * -4) < 1e-14 && fabs(c * c + s * s - 1) < 1e-14);
}

/* ---- a matrix and a vector ---- */

static void gemv_every_way(void **state) {
  (void)state;
  const cublasOperation_t ops[] = {CUBLAS_OP_N, CUBLAS_OP_T, CUBLAS_OP_C};
  const int shapes[][4] = {{1, 1, 1, 1}, {33, 17, 1, 1}, {17, 33, 2, 3}, {64, 5, -1, 2}, {3, 130, 1, -2}};
  for (const int *s : shapes) {
    for (cublasOperation_t trans : ops) {
      for (int i = 0; i < 4; i++) {
        for (double beta : {0.0, -0.5}) {
          const Product &p = products[i];
          int m = s[0], n = s[1], in = trans == CUBLAS_OP_N ? n : m, out = trans == CUBLAS_OP_N ? m : n;
          Complex alpha = is_complex(p.ab) ? Complex(1, 2) : 1.25;
          Array a = random_matrix(p.ab, m, n, 2), x = random_vector(p.ab, in, s[2]),
                y0 = random_vector(p.ab, out, s[3]);
          if (beta == 0) {
            array_free(&y0);
            y0 = array_new(p.ab, y0.rows, 1, y0.ld, POISON);
          }
          Value va(p.ab, alpha), vb(p.ab, beta);
          switch (p.ab) {
            case CUDA_R_32F:
              BLAS(cublasSgemv(handle, trans, m, n, va, (float *)a.device(), a.ld, (float *)x.device(), s[2], vb,
                               (float *)y0.device(), s[3]));
              break;
            case CUDA_R_64F:
              BLAS(cublasDgemv(handle, trans, m, n, va, (double *)a.device(), a.ld, (double *)x.device(), s[2], vb,
                               (double *)y0.device(), s[3]));
              break;
            case CUDA_C_32F:
              BLAS(cublasCgemv(handle, trans, m, n, va, (cuComplex *)a.device(), a.ld, (cuComplex *)x.device(), s[2],
                               vb, (cuComplex *)y0.device(), s[3]));
              break;
            default:
              BLAS(cublasZgemv(handle, trans, m, n, va, (cuDoubleComplex *)a.device(), a.ld,
                               (cuDoubleComplex *)x.device(), s[2], vb, (cuDoubleComplex *)y0.device(), s[3]));
              break;
          }
          Array y = fetch(&y0, "gemv", [&](int k, int) { return k % abs(s[3]) == 0; });
          for (int r = 0; r < out; r++) {
            Complex sum = 0;
            double magnitude = 0;
            for (int k = 0; k < in; k++) {
              Complex term = op(a, trans, r, k) * x.at(at(k, in, s[2]));
              sum += term;
              magnitude += std::abs(term);
            }
            Complex expected = alpha * sum + (beta == 0 ? 0 : beta * y0.at(at(r, out, s[3])));
            check("gemv", r, (int)trans, y.at(at(r, out, s[3])), expected,
                  (in + 3) * p.sum_roundoff * (magnitude * std::abs(alpha) + 1));
          }
          array_free(&a);
          array_free(&x);
        }
      }
    }
  }
}

static void gemv_of_a_batch(void **state) {
  (void)state;
  enum { BATCH = 3, M = 4, N = 6 };
  Array a = random_matrix(CUDA_R_32F, M, N * BATCH), x = random_vector(CUDA_R_32F, N * BATCH);
  float alpha = 1, beta = 0;
  float *da = (float *)a.device(), *dx = (float *)x.device();
  for (int form = 0; form < 2; form++) {
    Array y0 = array_new(CUDA_R_32F, M * BATCH, 1, M * BATCH, POISON);
    float *dy = (float *)y0.device();
    if (form == 0) {
      BLAS(
          cublasSgemvStridedBatched(handle, CUBLAS_OP_N, M, N, &alpha, da, M, M * N, dx, 1, N, &beta, dy, 1, M, BATCH));
    } else {
      float **pa = upload(std::vector<float *>{da, da + M * N, da + 2 * M * N});
      float **px = upload(std::vector<float *>{dx, dx + N, dx + 2 * N});
      float **py = upload(std::vector<float *>{dy, dy + M, dy + 2 * M});
      BLAS(cublasSgemvBatched(handle, CUBLAS_OP_N, M, N, &alpha, pa, M, px, 1, &beta, py, 1, BATCH));
      CHECK(cudaDeviceSynchronize());
      CHECK(cudaFree(pa));
      CHECK(cudaFree(px));
      CHECK(cudaFree(py));
    }
    Array y = fetch(&y0, "gemv of a batch");
    for (int r = 0; r < M * BATCH; r++) {
      Complex sum = 0;
      for (int k = 0; k < N; k++) sum += a.at(r % M, r / M * N + k) * x.at(r / M * N + k);
      check("gemv of a batch", r, form, y.at(r), sum, N * 0x1p-22);
    }
  }
  array_free(&a);
  array_free(&x);
}

static bool in_triangle(cublasFillMode_t uplo, int i, int j) {
  return uplo == CUBLAS_FILL_MODE_LOWER ? i >= j : i <= j;
}

static void rank_one_and_symmetric(void **state) {
  (void)state;
  int m = 19, n = 23;
  double alpha = 0.75, beta = 0;
  Array x = random_vector(CUDA_R_64F, m, 2), y = random_vector(CUDA_R_64F, n, -1),
        a0 = random_matrix(CUDA_R_64F, m, n, 3);
  BLAS(cublasDger(handle, m, n, &alpha, (double *)x.device(), 2, (double *)y.device(), -1, (double *)a0.device(),
                  a0.ld));
  Array a = fetch(&a0, "ger");
  for (int j = 0; j < n; j++) {
    for (int i = 0; i < m; i++) {
      check("ger", i, j, a.at(i, j), a0.at(i, j) + alpha * x.at(2 * i) * y.at(n - 1 - j), 1e-15);
    }
  }
  for (cublasFillMode_t uplo : {CUBLAS_FILL_MODE_LOWER, CUBLAS_FILL_MODE_UPPER}) {
    auto own = [uplo](int i, int j) { return in_triangle(uplo, i, j); };
    a0 = random_matrix(CUDA_R_64F, m, m, 1);
    BLAS(cublasDsyr(handle, uplo, m, &alpha, (double *)x.device(), 2, (double *)a0.device(), a0.ld));
    a = fetch(&a0, "syr: the other triangle", own);
    for (int j = 0; j < m; j++) {
      for (int i = 0; i < m; i++) {
        if (own(i, j)) check("syr", i, j, a.at(i, j), a0.at(i, j) + alpha * x.at(2 * i) * x.at(2 * j), 1e-15);
      }
    }
    a0 = random_matrix(CUDA_R_64F, m, m, 1);
    Array z0 = array_new(CUDA_R_64F, m, 1, m, POISON);
    BLAS(cublasDsymv(handle, uplo, m, &alpha, (double *)a0.device(), a0.ld, (double *)x.device(), 2, &beta,
                     (double *)z0.device(), 1));
    Array z = fetch(&z0, "symv");
    for (int i = 0; i < m; i++) {
      Complex sum = 0;
      for (int j = 0; j < m; j++) sum += (own(i, j) ? a0.at(i, j) : a0.at(j, i)) * x.at(2 * j);
      check("symv", i, 0, z.at(i), alpha * sum, 1e-14);
    }
    array_free(&a0);
  }
  array_free(&x);
  array_free(&y);
}

/* ---- triangular ---- */

/* A triangular matrix whose inverse is harmless; the other triangle, and the diagonal where it counts as 1, are NaN. */
static Array random_triangle(cudaDataType type, int n, cublasFillMode_t uplo, cublasDiagType_t diag) {
  Array a = random_matrix(type, n, n, 2);
  for (int j = 0; j < n; j++) {
    for (int i = 0; i < n; i++) {
      Complex value = a.at(i, j) / (double)n;
      if (i == j) value = diag == CUBLAS_DIAG_UNIT ? Complex(NAN, NAN) : a.at(i, i) + 2.0;
      if (!in_triangle(uplo, i, j)) value = Complex(NAN, NAN);
      put(type, a.host.data(), a.index(i, j), value);
    }
  }
  CHECK(cudaMemcpy(a.device_base, a.host.data(), a.host.size(), cudaMemcpyHostToDevice));
  return a;
}

static Complex triangle_at(const Array &a, cublasFillMode_t uplo, cublasDiagType_t diag, cublasOperation_t trans, int i,
                           int j) {
  if (i == j && diag == CUBLAS_DIAG_UNIT) return 1;
  int row = trans == CUBLAS_OP_N ? i : j, column = trans == CUBLAS_OP_N ? j : i;
  return in_triangle(uplo, row, column) ? op(a, trans, i, j) : 0;
}

static void triangular_products_and_solutions(void **state) {
  (void)state;
  for (int turn = 0; turn < 32; turn++) {
    cublasFillMode_t uplo = turn & 1 ? CUBLAS_FILL_MODE_UPPER : CUBLAS_FILL_MODE_LOWER;
    cublasDiagType_t diag = turn & 2 ? CUBLAS_DIAG_UNIT : CUBLAS_DIAG_NON_UNIT;
    cublasOperation_t trans = turn & 4 ? CUBLAS_OP_T : CUBLAS_OP_N;
    cublasSideMode_t side = turn & 8 ? CUBLAS_SIDE_RIGHT : CUBLAS_SIDE_LEFT;
    bool wide = turn & 16;
    cudaDataType type = wide ? CUDA_C_64F : CUDA_R_32F;
    double u = roundoff(type);
    if (wide && trans == CUBLAS_OP_T) trans = CUBLAS_OP_C;
    int m = 21, n = 34, order = side == CUBLAS_SIDE_LEFT ? m : n;
    Array a = random_triangle(type, order, uplo, diag), b = random_matrix(type, m, n, 1);
    Array c0 = array_new(type, m, n, m + 4, POISON), x0 = b;
    Value alpha(type, 2);
#define Z(array) ((cuDoubleComplex *)(array).device())
#define S(array) ((float *)(array).device())
    BLAS(wide ? cublasZtrmm(handle, side, uplo, trans, diag, m, n, alpha, Z(a), a.ld, Z(b), b.ld, Z(c0), c0.ld)
              : cublasStrmm(handle, side, uplo, trans, diag, m, n, alpha, S(a), a.ld, S(b), b.ld, S(c0), c0.ld));
    Array c = fetch(&c0, "trmm");
    BLAS(wide ? cublasZtrsm(handle, side, uplo, trans, diag, m, n, alpha, Z(a), a.ld, Z(b), b.ld)
              : cublasStrsm(handle, side, uplo, trans, diag, m, n, alpha, S(a), a.ld, S(b), b.ld));
    Array x = fetch(&x0, "trsm");
    for (int j = 0; j < n; j++) {
      for (int i = 0; i < m; i++) {
        Complex product = 0, back = 0;
        for (int k = 0; k < order; k++) {
          if (side == CUBLAS_SIDE_LEFT) {
            product += triangle_at(a, uplo, diag, trans, i, k) * b.at(k, j);
            back += triangle_at(a, uplo, diag, trans, i, k) * x.at(k, j);
          } else {
            product += b.at(i, k) * triangle_at(a, uplo, diag, trans, k, j);
            back += x.at(i, k) * triangle_at(a, uplo, diag, trans, k, j);
          }
        }
        check("trmm", i, j, c.at(i, j), 2.0 * product, 60 * u);
        check("trsm: op(A) X", i, j, back, 2.0 * b.at(i, j), 400 * u);
      }
    }
    /* the same with a vector */
    if (side == CUBLAS_SIDE_LEFT) {
      Array v = random_vector(type, order), v0 = v, w = random_vector(type, order), w0 = w;
      BLAS(wide ? cublasZtrmv(handle, uplo, trans, diag, order, Z(a), a.ld, Z(v), 1)
                : cublasStrmv(handle, uplo, trans, diag, order, S(a), a.ld, S(v), 1));
      BLAS(wide ? cublasZtrsv(handle, uplo, trans, diag, order, Z(a), a.ld, Z(w), 1)
                : cublasStrsv(handle, uplo, trans, diag, order, S(a), a.ld, S(w), 1));
      Array gv = fetch(&v, "trmv"), gw = fetch(&w, "trsv");
      for (int i = 0; i < order; i++) {
        Complex product = 0, back = 0;
        for (int k = 0; k < order; k++) {
          product += triangle_at(a, uplo, diag, trans, i, k) * v0.at(k);
          back += triangle_at(a, uplo, diag, trans, i, k) * gw.at(k);
        }
        check("trmv", i, 0, gv.at(i), product, 60 * u);
        check("trsv", i, 0, back, w0.at(i), 400 * u);
      }
    }
    array_free(&a);
  }
}

static void trsm_of_a_batch(void **state) {
  (void)state;
  enum { BATCH = 3, N = 8 };
  std::vector<Array> a, b;
  std::vector<double *> pa, pb;
  for (int i = 0; i < BATCH; i++) {
    a.push_back(random_triangle(CUDA_R_64F, N, CUBLAS_FILL_MODE_LOWER, CUBLAS_DIAG_NON_UNIT));
    b.push_back(random_matrix(CUDA_R_64F, N, 2));
    pa.push_back((double *)a[i].device());
    pb.push_back((double *)b[i].device());
  }
  double **da = upload(pa), **db = upload(pb), alpha = 1;
  BLAS(cublasDtrsmBatched(handle, CUBLAS_SIDE_LEFT, CUBLAS_FILL_MODE_LOWER, CUBLAS_OP_N, CUBLAS_DIAG_NON_UNIT, N, 2,
                          &alpha, da, a[0].ld, db, b[0].ld, BATCH));
  for (int i = 0; i < BATCH; i++) {
    Array x = fetch(&b[i], "trsmBatched");
    for (int r = 0; r < N; r++) {
      Complex sum = 0;
      for (int k = 0; k <= r; k++) sum += a[i].at(r, k) * x.at(k, 1);
      check("trsmBatched", r, i, sum, b[i].at(r, 1), 1e-14);
    }
    array_free(&a[i]);
  }
  CHECK(cudaFree(da));
  CHECK(cudaFree(db));
}

static void symmetric_products(void **state) {
  (void)state;
  int n = 21, k = 13;
  double alpha = 0.5, beta = -1;
  for (int turn = 0; turn < 4; turn++) {
    cublasFillMode_t uplo = turn & 1 ? CUBLAS_FILL_MODE_UPPER : CUBLAS_FILL_MODE_LOWER;
    cublasOperation_t trans = turn & 2 ? CUBLAS_OP_T : CUBLAS_OP_N;
    cublasSideMode_t side = turn & 2 ? CUBLAS_SIDE_RIGHT : CUBLAS_SIDE_LEFT;
    auto own = [uplo](int i, int j) { return in_triangle(uplo, i, j); };
    Array a = random_matrix(CUDA_R_64F, trans == CUBLAS_OP_N ? n : k, trans == CUBLAS_OP_N ? k : n, 1);
    Array b = random_matrix(CUDA_R_64F, a.rows, a.columns, 2), c0 = random_matrix(CUDA_R_64F, n, n, 3), c1 = c0;
    double *da = (double *)a.device(), *db = (double *)b.device(), *dc = (double *)c0.device();
    BLAS(cublasDsyrk(handle, uplo, trans, n, k, &alpha, da, a.ld, &beta, dc, c0.ld));
    Array c = fetch(&c0, "syrk: the other triangle", own);
    c1 = random_matrix(CUDA_R_64F, n, n, 3);
    BLAS(cublasDsyr2k(handle, uplo, trans, n, k, &alpha, da, a.ld, db, b.ld, &beta, (double *)c1.device(), c1.ld));
    Array c2 = fetch(&c1, "syr2k: the other triangle", own);
    for (int j = 0; j < n; j++) {
      for (int i = 0; i < n; i++) {
        if (!own(i, j)) continue;
        Complex aa = 0, ab = 0;
        for (int l = 0; l < k; l++) {
          aa += op(a, trans, i, l) * op(a, trans, j, l);
          ab += op(a, trans, i, l) * op(b, trans, j, l) + op(b, trans, i, l) * op(a, trans, j, l);
        }
        check("syrk", i, j, c.at(i, j), alpha * aa + beta * c0.at(i, j), 1e-14);
        check("syr2k", i, j, c2.at(i, j), alpha * ab + beta * c1.at(i, j), 1e-14);
      }
    }
    /* symm: A (n,n) from the left of (n,k), or from the right of (k,n) */
    int rows = side == CUBLAS_SIDE_LEFT ? n : k, columns = side == CUBLAS_SIDE_LEFT ? k : n;
    Array s = random_matrix(CUDA_R_64F, n, n, 1), d = random_matrix(CUDA_R_64F, rows, columns),
          e0 = random_matrix(CUDA_R_64F, rows, columns, 2);
    BLAS(cublasDsymm(handle, side, uplo, rows, columns, &alpha, (double *)s.device(), s.ld, (double *)d.device(), d.ld,
                     &beta, (double *)e0.device(), e0.ld));
    Array e = fetch(&e0, "symm");
    for (int j = 0; j < columns; j++) {
      for (int i = 0; i < rows; i++) {
        Complex sum = 0;
        for (int l = 0; l < n; l++) {
          int p = side == CUBLAS_SIDE_LEFT ? i : l, q = side == CUBLAS_SIDE_LEFT ? l : j;
          sum += (own(p, q) ? s.at(p, q) : s.at(q, p)) * (side == CUBLAS_SIDE_LEFT ? d.at(l, j) : d.at(i, l));
        }
        check("symm", i, j, e.at(i, j), alpha * sum + beta * e0.at(i, j), 1e-14);
      }
    }
    array_free(&a);
    array_free(&b);
    array_free(&s);
    array_free(&d);
  }
}

/* ---- element by element ---- */

static void geam_adds_and_transposes(void **state) {
  (void)state;
  const cublasOperation_t ops[] = {CUBLAS_OP_N, CUBLAS_OP_T, CUBLAS_OP_C};
  int m = 35, n = 18;
  for (cublasOperation_t ta : ops) {
    for (cublasOperation_t tb : ops) {
      Array a = random_matrix(CUDA_R_32F, ta == CUBLAS_OP_N ? m : n, ta == CUBLAS_OP_N ? n : m, 1);
      Array b = random_matrix(CUDA_R_32F, tb == CUBLAS_OP_N ? m : n, tb == CUBLAS_OP_N ? n : m, 2);
      Array c0 = array_new(CUDA_R_32F, m, n, m + 3, POISON);
      float alpha = 2, beta = -0.5f;
      BLAS(cublasSgeam(handle, ta, tb, m, n, &alpha, (float *)a.device(), a.ld, &beta, (float *)b.device(), b.ld,
                       (float *)c0.device(), c0.ld));
      Array c = fetch(&c0, "geam");
      for (int j = 0; j < n; j++) {
        for (int i = 0; i < m; i++) {
          check("geam", i, j, c.at(i, j), 2.0 * op(a, ta, i, j) - 0.5 * op(b, tb, i, j), 0x1p-22);
        }
      }
      array_free(&a);
      array_free(&b);
    }
  }
  /* a transposition, as programs write it: beta 0; B is not read */
  Array a = random_matrix(CUDA_C_32F, n, m), poison = array_new(CUDA_C_32F, m, n, m, POISON),
        c0 = array_new(CUDA_C_32F, m, n, m, POISON);
  cuComplex one = make_cuComplex(1, 0), zero = make_cuComplex(0, 0);
  BLAS(cublasCgeam(handle, CUBLAS_OP_C, CUBLAS_OP_N, m, n, &one, (cuComplex *)a.device(), n, &zero,
                   (cuComplex *)poison.device(), m, (cuComplex *)c0.device(), m));
  Array c = fetch(&c0, "geam");
  for (int j = 0; j < n; j++) {
    for (int i = 0; i < m; i++) check("conjugate transpose", i, j, c.at(i, j), std::conj(a.at(j, i)), 0);
  }
  array_free(&a);
  array_free(&poison);
  /* in place */
  Array x0 = random_matrix(CUDA_R_32F, m, n, 1), y = random_matrix(CUDA_R_32F, m, n);
  float alpha = 1, beta = 3;
  BLAS(cublasSgeam(handle, CUBLAS_OP_N, CUBLAS_OP_N, m, n, &alpha, (float *)x0.device(), x0.ld, &beta,
                   (float *)y.device(), y.ld, (float *)x0.device(), x0.ld));
  Array x = fetch(&x0, "geam in place");
  for (int i = 0; i < m; i++) check("in place", i, 2, x.at(i, 2), x0.at(i, 2) + 3.0 * y.at(i, 2), 0x1p-21);
  array_free(&y);
}

static void dgmm_scales_rows_or_columns(void **state) {
  (void)state;
  int m = 13, n = 29;
  for (cublasSideMode_t side : {CUBLAS_SIDE_LEFT, CUBLAS_SIDE_RIGHT}) {
    Array a = random_matrix(CUDA_R_64F, m, n, 1), x = random_vector(CUDA_R_64F, 29, 2),
          c0 = array_new(CUDA_R_64F, m, n, m + 2, POISON);
    BLAS(cublasDdgmm(handle, side, m, n, (double *)a.device(), a.ld, (double *)x.device(), 2, (double *)c0.device(),
                     c0.ld));
    Array c = fetch(&c0, "dgmm");
    for (int j = 0; j < n; j++) {
      for (int i = 0; i < m; i++) {
        check("dgmm", i, j, c.at(i, j), a.at(i, j) * x.at(2 * (side == CUBLAS_SIDE_LEFT ? i : j)), 1e-15);
      }
    }
    array_free(&a);
    array_free(&x);
  }
}

static void half_vectors(void **state) {
  (void)state;
  int n = 100;
  float alpha = 1.5f, result = 0;
  Array x = random_vector(CUDA_R_16F, n), y = random_vector(CUDA_R_16F, n), y0 = y;
  __half dot;
  BLAS(cublasDotEx(handle, n, x.device(), CUDA_R_16F, 1, y.device(), CUDA_R_16F, 1, &dot, CUDA_R_16F, CUDA_R_32F));
  BLAS(cublasAxpyEx(handle, n, &alpha, CUDA_R_32F, x.device(), CUDA_R_16F, 1, y.device(), CUDA_R_16F, 1, CUDA_R_32F));
  Array got = fetch(&y, "AxpyEx");
  Complex sum = 0, squares = 0;
  for (int i = 0; i < n; i++) {
    sum += x.at(i) * y0.at(i);
    Complex expected = 1.5 * x.at(i) + y0.at(i);
    check("AxpyEx", i, 0, got.at(i), expected, 0x1p-10 * std::abs(expected) + 0x1p-20);
  }
  check("DotEx", 0, 0, (double)__half2float(dot), sum, 0x1p-10 * std::abs(sum) + 0x1p-16);
  Array x0 = x;
  BLAS(cublasScalEx(handle, n, &alpha, CUDA_R_32F, x.device(), CUDA_R_16F, 1, CUDA_R_32F));
  got = fetch(&x, "ScalEx");
  for (int i = 0; i < n; i++) {
    check("ScalEx", i, 0, got.at(i), 1.5 * x0.at(i), 0x1p-11 * 1.5);
    squares += std::norm(x0.at(i));
  }
  x = x0;
  CHECK(cudaMalloc(&x.device_base, x.host.size()));
  CHECK(cudaMemcpy(x.device_base, x.host.data(), x.host.size(), cudaMemcpyHostToDevice));
  __half norm;
  BLAS(cublasNrm2Ex(handle, n, x.device(), CUDA_R_16F, 1, &norm, CUDA_R_16F, CUDA_R_32F));
  result = __half2float(norm);
  check("Nrm2Ex", 0, 0, result, sqrt(squares), 0x1p-10 * sqrt(squares.real()));
  array_free(&x);
}

/* ---- the handle, the modes, the stream ---- */

static void scalars_and_results_on_the_device(void **state) {
  (void)state;
  std::vector<float> ones(10, 1.0f);
  float *x = upload(ones), *y = upload(ones), *alpha = upload(std::vector<float>(1, 3.0f));
  float *result = device_array<float>(1);
  cublasPointerMode_t mode = CUBLAS_POINTER_MODE_DEVICE;
  BLAS(cublasGetPointerMode(handle, &mode));
  assert_int_equal(mode, CUBLAS_POINTER_MODE_HOST);
  BLAS(cublasSetPointerMode(handle, CUBLAS_POINTER_MODE_DEVICE));
  BLAS(cublasSaxpy(handle, 10, alpha, x, 1, y, 1));
  BLAS(cublasSdot(handle, 10, x, 1, y, 1, result));  /* 10 * (1 + 3) */
  BLAS(cublasSaxpy(handle, 10, result, x, 1, y, 1)); /* goes on with a number that the host never saw */
  BLAS(cublasSetPointerMode(handle, CUBLAS_POINTER_MODE_HOST));
  assert_true(download(result, 1)[0] == 40);
  assert_true(download(y, 10)[9] == 44);
  CHECK(cudaFree(x));
  CHECK(cudaFree(alpha));
}

static void work_is_done_in_the_handles_stream(void **state) {
  (void)state;
  enum { N = 64 };
  cudaStream_t stream, seen;
  CHECK(cudaStreamCreate(&stream));
  BLAS(cublasSetStream(handle, stream));
  BLAS(cublasGetStream(handle, &seen));
  assert_ptr_equal(seen, stream);
  float *host_a, *host_c;
  CHECK(cudaMallocHost((void **)&host_a, N * N * sizeof(float)));
  CHECK(cudaMallocHost((void **)&host_c, N * N * sizeof(float)));
  for (int i = 0; i < N * N; i++) host_a[i] = (float)(i % 7);
  float *a = device_array<float>(N * N), *c = device_array<float>(N * N), one = 1, zero = 0;
  CHECK(cudaMemcpyAsync(a, host_a, N * N * sizeof(float), cudaMemcpyHostToDevice, stream));
  BLAS(cublasSgemm(handle, CUBLAS_OP_N, CUBLAS_OP_N, N, N, N, &one, a, N, a, N, &zero, c, N));
  one = NAN; /* host scalars were taken at the call */
  CHECK(cudaMemcpyAsync(host_c, c, N * N * sizeof(float), cudaMemcpyDeviceToHost, stream));
  CHECK(cudaStreamSynchronize(stream));
  double expected = 0;
  for (int k = 0; k < N; k++) expected += (double)host_a[5 + k * N] * host_a[k + 9 * N];
  assert_true(host_c[5 + 9 * N] == expected); /* small integers: exact */
  BLAS(cublasSetStream(handle, NULL));
  CHECK(cudaStreamDestroy(stream));
  CHECK(cudaFree(a));
  CHECK(cudaFree(c));
  CHECK(cudaFreeHost(host_a));
  CHECK(cudaFreeHost(host_c));
}

static void matrices_and_vectors_are_copied(void **state) {
  (void)state;
  float matrix[5 * 4], back[6 * 4], vector[12], vector_back[12];
  for (int i = 0; i < 20; i++) matrix[i] = (float)i;
  for (int i = 0; i < 12; i++) vector[i] = (float)(100 + i);
  float *d = device_array<float>(64);
  BLAS(cublasSetMatrix(3, 4, sizeof(float), matrix, 5, d, 7));
  for (float &x : back) x = -1;
  BLAS(cublasGetMatrix(3, 4, sizeof(float), d, 7, back, 6));
  for (int j = 0; j < 4; j++) {
    for (int i = 0; i < 6; i++) assert_true(back[i + 6 * j] == (i < 3 ? matrix[i + 5 * j] : -1));
  }
  BLAS(cublasSetVector(4, sizeof(float), vector, 3, d, 2));
  for (float &x : vector_back) x = -1;
  BLAS(cublasGetVector(4, sizeof(float), d, 2, vector_back, 1));
  for (int i = 0; i < 12; i++) assert_true(vector_back[i] == (i < 4 ? vector[3 * i] : -1));
  BLAS_GIVES(CUBLAS_STATUS_INVALID_VALUE, cublasSetMatrix(3, 4, 0, matrix, 5, d, 7));
  BLAS_GIVES(CUBLAS_STATUS_INVALID_VALUE, cublasSetVector(4, sizeof(float), vector, 0, d, 2));
  CHECK(cudaFree(d));
}

static void settings_are_kept(void **state) {
  (void)state;
  cublasMath_t math;
  int version = 0;
  BLAS(cublasSetMathMode(handle, CUBLAS_TF32_TENSOR_OP_MATH));
  BLAS(cublasGetMathMode(handle, &math));
  assert_int_equal(math, CUBLAS_TF32_TENSOR_OP_MATH);
  one_product(TYPED, products[9], CUBLAS_OP_N, CUBLAS_OP_N, 40, 41, 42, 1, 0, 0);
  BLAS(cublasSetMathMode(handle, CUBLAS_DEFAULT_MATH));
  BLAS(cublasSetAtomicsMode(handle, CUBLAS_ATOMICS_ALLOWED));
  BLAS(cublasSetAtomicsMode(handle, CUBLAS_ATOMICS_NOT_ALLOWED));
  BLAS(cublasGetVersion(handle, &version));
  assert_true(version >= 110000);
  assert_string_equal(cublasGetStatusName(CUBLAS_STATUS_INVALID_VALUE), "CUBLAS_STATUS_INVALID_VALUE");
  assert_string_equal(cublasGetStatusString(CUBLAS_STATUS_NOT_SUPPORTED),
                      "the requested functionality is not supported");
}

static void wrong_arguments_are_refused(void **state) {
  (void)state;
  float *d = device_array<float>(64), one = 1;
  const cublasOperation_t n = CUBLAS_OP_N, t = CUBLAS_OP_T;
#define SGEMM(h, ta, tb, m, n, k, alpha, lda, ldb, ldc) \
  cublasSgemm(h, ta, tb, m, n, k, alpha, d, lda, d, ldb, &one, d, ldc)
  BLAS_GIVES(CUBLAS_STATUS_NOT_INITIALIZED, SGEMM(NULL, n, n, 2, 2, 2, &one, 2, 2, 2));
  BLAS_GIVES(CUBLAS_STATUS_INVALID_VALUE, SGEMM(handle, n, n, -1, 2, 2, &one, 2, 2, 2));
  BLAS_GIVES(CUBLAS_STATUS_INVALID_VALUE, SGEMM(handle, n, n, 2, -1, 2, &one, 2, 2, 2));
  BLAS_GIVES(CUBLAS_STATUS_INVALID_VALUE, SGEMM(handle, n, n, 2, 2, -1, &one, 2, 2, 2));
  BLAS_GIVES(CUBLAS_STATUS_INVALID_VALUE, SGEMM(handle, n, n, 4, 3, 2, &one, 3, 2, 4)); /* lda < m */
  BLAS_GIVES(CUBLAS_STATUS_INVALID_VALUE, SGEMM(handle, t, n, 4, 3, 2, &one, 1, 2, 4)); /* lda < k */
  BLAS_GIVES(CUBLAS_STATUS_INVALID_VALUE, SGEMM(handle, n, n, 4, 3, 2, &one, 4, 1, 4)); /* ldb < k */
  BLAS_GIVES(CUBLAS_STATUS_INVALID_VALUE, SGEMM(handle, n, t, 4, 3, 2, &one, 4, 2, 4)); /* ldb < n */
  BLAS_GIVES(CUBLAS_STATUS_INVALID_VALUE, SGEMM(handle, n, n, 4, 3, 2, &one, 4, 2, 3)); /* ldc < m */
  BLAS_GIVES(CUBLAS_STATUS_INVALID_VALUE, SGEMM(handle, (cublasOperation_t)9, n, 2, 2, 2, &one, 2, 2, 2));
  BLAS_GIVES(CUBLAS_STATUS_INVALID_VALUE, SGEMM(handle, n, n, 2, 2, 2, NULL, 2, 2, 2));
  BLAS_GIVES(CUBLAS_STATUS_INVALID_VALUE, cublasSgemv(handle, n, 4, 3, &one, d, 3, d, 1, &one, d, 1)); /* lda < m */
#ifdef SIMT_REWRITTEN /* the manual says so; cuBLAS 13 on an H200 lets it pass */
  BLAS_GIVES(CUBLAS_STATUS_INVALID_VALUE, cublasSgemv(handle, n, 4, 3, &one, d, 4, d, 0, &one, d, 1)); /* incx 0 */
#endif
  BLAS_GIVES(CUBLAS_STATUS_INVALID_VALUE, cublasSger(handle, 4, 3, &one, d, 1, d, 1, d, 3));
  BLAS_GIVES(CUBLAS_STATUS_INVALID_VALUE, cublasSgeam(handle, n, n, 4, 3, &one, d, 3, &one, d, 4, d, 4));
  BLAS_GIVES(CUBLAS_STATUS_INVALID_VALUE,
             cublasSgeam(handle, t, n, 3, 3, &one, d, 3, &one, d + 32, 3, d, 3)); /* C = A' */
  BLAS_GIVES(CUBLAS_STATUS_INVALID_VALUE, cublasStrsm(handle, CUBLAS_SIDE_LEFT, CUBLAS_FILL_MODE_LOWER, n,
                                                      CUBLAS_DIAG_UNIT, 4, 3, &one, d, 3, d, 4));
  BLAS_GIVES(CUBLAS_STATUS_INVALID_VALUE,
             cublasSgemmStridedBatched(handle, n, n, 2, 2, 2, &one, d, 2, 4, d, 2, 4, &one, d, 2, 4, -1));
  BLAS_GIVES(CUBLAS_STATUS_NOT_SUPPORTED,
             cublasGemmEx(handle, n, n, 2, 2, 2, &one, d, CUDA_R_64F, 2, d, CUDA_R_32F, 2, &one, d, CUDA_R_32F, 2,
                          CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT));
  BLAS_GIVES(CUBLAS_STATUS_NOT_INITIALIZED, cublasDestroy(NULL));
  BLAS_GIVES(CUBLAS_STATUS_INVALID_VALUE, cublasCreate(NULL));
  CHECK(cudaDeviceSynchronize());
  CHECK(cudaFree(d));
}

/* What only the emulator can say. It is the last test: on a GPU these calls end the process's use of it. */
static void pointers_are_checked(void **state) {
  (void)state;
#ifndef SIMT_REWRITTEN
  skip();
#else
  float host[16] = {0}, one = 1, zero = 0, result;
  for (int turn = 0; turn < 7; turn++) {
    float *d = device_array<float>(16), *freed = device_array<float>(16);
    CHECK(cudaFree(freed));
    cublasStatus_t status = CUBLAS_STATUS_SUCCESS;
    const cublasOperation_t n = CUBLAS_OP_N;
    if (turn == 0) status = cublasSgemm(handle, n, n, 4, 4, 4, &one, host, 4, d, 4, &zero, d, 4);
    if (turn == 1) status = cublasSgemm(handle, n, n, 4, 4, 4, &one, d, 4, d, 4, &zero, NULL, 4);
    if (turn == 2) status = cublasSgemm(handle, n, n, 4, 4, 4, &one, d, 4, d, 4, &zero, d, 5); /* 19 > 16 elements */
    if (turn == 3) status = cublasSgemm(handle, n, n, 4, 4, 4, d, d, 4, d, 4, &zero, d, 4);    /* alpha on the device */
    if (turn == 4) status = cublasSaxpy(handle, 17, &one, d, 1, d, 1);
    if (turn == 5) status = cublasSdot(handle, 4, d, 1, freed, 1, &result);
    if (turn == 6) status = cublasSdot(handle, 4, d, 1, d, 1, d);
    BLAS_GIVES(CUBLAS_STATUS_EXECUTION_FAILED, status);
    assert_int_equal(cudaDeviceSynchronize(), cudaErrorIllegalAddress);
    BLAS(cublasDestroy(handle));
    CHECK(cudaDeviceReset());
    BLAS(cublasCreate(&handle));
  }
  float *d = device_array<float>(16);
  BLAS(cublasSgemm(handle, CUBLAS_OP_N, CUBLAS_OP_N, 4, 4, 4, &zero, NULL, 4, NULL, 4, &zero, d,
                   4)); /* A, B: not read */
  assert_true(download(d, 16)[15] == 0);
#endif
}

static int create(void **state) {
  (void)state;
  return cublasCreate(&handle) != CUBLAS_STATUS_SUCCESS;
}

static int destroy(void **state) {
  (void)state;
  return cublasDestroy(handle) != CUBLAS_STATUS_SUCCESS;
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(gemm_in_every_type_and_transposition),
      cmocka_unit_test(gemm_of_ragged_sizes),
      cmocka_unit_test(gemm_with_alpha_or_beta_zero),
      cmocka_unit_test(gemm_of_nothing),
      cmocka_unit_test(int8_products_are_exact),
      cmocka_unit_test(half_products_can_sum_in_float),
      cmocka_unit_test(narrow_results_are_rounded_to_nearest),
      cmocka_unit_test(batches_by_stride_and_by_pointers),
      cmocka_unit_test(vectors_of_any_length_and_increment),
      cmocka_unit_test(largest_and_smallest_element),
      cmocka_unit_test(sums_of_nothing_are_zero),
      cmocka_unit_test(norms_do_not_overflow),
      cmocka_unit_test(complex_vectors),
      cmocka_unit_test(rotation_that_makes_zero),
      cmocka_unit_test(gemv_every_way),
      cmocka_unit_test(gemv_of_a_batch),
      cmocka_unit_test(rank_one_and_symmetric),
      cmocka_unit_test(triangular_products_and_solutions),
      cmocka_unit_test(trsm_of_a_batch),
      cmocka_unit_test(symmetric_products),
      cmocka_unit_test(geam_adds_and_transposes),
      cmocka_unit_test(dgmm_scales_rows_or_columns),
      cmocka_unit_test(half_vectors),
      cmocka_unit_test(scalars_and_results_on_the_device),
      cmocka_unit_test(work_is_done_in_the_handles_stream),
      cmocka_unit_test(matrices_and_vectors_are_copied),
      cmocka_unit_test(settings_are_kept),
      cmocka_unit_test(wrong_arguments_are_refused),
      cmocka_unit_test(pointers_are_checked),
  };
  return cmocka_run_group_tests(tests, create, destroy);
}
