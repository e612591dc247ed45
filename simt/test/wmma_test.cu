/* wmma_test.cu - a warp's matrix products: every shape, type and layout, against loops in double. The same program
 * passes on a GPU (compute capability 8.0 and up).
 *
 * Elements are small integers, whose products and sums every format here holds exactly: results must be equal. */
#include "collective.h"

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <mma.h>

#include <type_traits>

namespace wmma = nvcuda::wmma;

template <class T>
struct Stored {
  typedef T type;
};
template <>
struct Stored<wmma::precision::tf32> {
  typedef float type;
};

template <class T>
static T from_int(int value) {
  return (T)(float)value;
}
template <class T>
static double to_double(T value) {
  return (double)(float)value;
}
template <>
double to_double<double>(double value) {
  return value;
}
template <>
double to_double<int>(int value) {
  return value;
}

/* A (M,K), B (K,N), C and D (M,N), each with its own leading dimension; `row_c` tells the layout of C and D. */
template <int M, int N, int K, class T, class TC, class TD, class LA, class LB>
__global__ void product_kernel(const typename Stored<T>::type *a, int lda, const typename Stored<T>::type *b, int ldb,
                               const TC *c, int ldc, TD *d, int ldd, bool row_c, bool row_d) {
  wmma::fragment<wmma::matrix_a, M, N, K, T, LA> fa;
  wmma::fragment<wmma::matrix_b, M, N, K, T, LB> fb;
  wmma::fragment<wmma::accumulator, M, N, K, TC> fc;
  wmma::fragment<wmma::accumulator, M, N, K, TD> fd;
  wmma::load_matrix_sync(fa, a, (unsigned)lda);
  wmma::load_matrix_sync(fb, b, (unsigned)ldb);
  wmma::load_matrix_sync(fc, c, (unsigned)ldc, row_c ? wmma::mem_row_major : wmma::mem_col_major);
  wmma::mma_sync(fd, fa, fb, fc);
  wmma::store_matrix_sync(d, fd, (unsigned)ldd, row_d ? wmma::mem_row_major : wmma::mem_col_major);
}

template <int M, int N, int K, class T, class TC, class TD, class LA, class LB>
static void check_product(const char *name, bool row_c, bool row_d, int pad) {
  typedef typename Stored<T>::type S;
  const bool row_a = std::is_same<LA, wmma::row_major>::value, row_b = std::is_same<LB, wmma::row_major>::value;
  /* Rows (or columns) begin at multiples of 16 elements. */
  const int lda = (row_a ? K : M) / 16 * 16 + 16 + pad, ldb = (row_b ? N : K) / 16 * 16 + 16 + pad,
            ldc = (row_c ? N : M) / 16 * 16 + 16 + pad, ldd = (row_d ? N : M) / 16 * 16 + 16 + pad;
  S *a = new_array<S>(32 * 96), *b = new_array<S>(32 * 96);
  TC *c = new_array<TC>(32 * 96);
  TD *d = new_array<TD>(32 * 96);
  int ia[32][32], ib[32][32], ic[32][32];
  const bool is_unsigned = std::is_same<T, unsigned char>::value;
  for (int i = 0; i < M; i++)
    for (int k = 0; k < K; k++) {
      ia[i][k] = (int)((next_random() >> 10) % 15) - (is_unsigned ? 0 : 7);
      a[row_a ? i * lda + k : i + k * lda] = from_int<S>(ia[i][k]);
    }
  for (int k = 0; k < K; k++)
    for (int j = 0; j < N; j++) {
      ib[k][j] = (int)((next_random() >> 10) % 13) - (is_unsigned ? 0 : 6);
      b[row_b ? k * ldb + j : k + j * ldb] = from_int<S>(ib[k][j]);
    }
  for (int i = 0; i < M; i++)
    for (int j = 0; j < N; j++) {
      ic[i][j] = (int)((next_random() >> 10) % 101) - 50;
      c[row_c ? i * ldc + j : i + j * ldc] = from_int<TC>(ic[i][j]);
    }
  for (int i = 0; i < 32 * 96; i++) d[i] = from_int<TD>(77);
  product_kernel<M, N, K, T, TC, TD, LA, LB><<<1, 32>>>(a, lda, b, ldb, c, ldc, d, ldd, row_c, row_d);
  finish();
  for (int row = 0; row < (row_d ? M : N); row++)
    for (int column = 0; column < ldd; column++) {
      int i = row_d ? row : column, j = row_d ? column : row;
      double expected = 77; /* beyond the matrix, nothing is written */
      if (column < (row_d ? N : M)) {
        int sum = ic[i][j];
        for (int k = 0; k < K; k++) sum += ia[i][k] * ib[k][j];
        expected = sum;
      }
      if (to_double(d[row * ldd + column]) != expected)
        fail_msg("%s %dx%dx%d, A %s, B %s, C %s, D %s: element (%d,%d) is %g, not %g", name, M, N, K,
                 row_a ? "by rows" : "by columns", row_b ? "by rows" : "by columns", row_c ? "by rows" : "by columns",
                 row_d ? "by rows" : "by columns", i, j, to_double(d[row * ldd + column]), expected);
    }
  CHECK(cudaFree(a));
  CHECK(cudaFree(b));
  CHECK(cudaFree(c));
  CHECK(cudaFree(d));
}

template <int M, int N, int K, class T, class TC, class TD>
static void check_layouts(const char *name) {
  typedef wmma::row_major R;
  typedef wmma::col_major C;
  check_product<M, N, K, T, TC, TD, R, R>(name, true, true, 0);
  check_product<M, N, K, T, TC, TD, R, C>(name, true, false, 16);
  check_product<M, N, K, T, TC, TD, C, R>(name, false, true, 32);
  check_product<M, N, K, T, TC, TD, C, C>(name, false, false, 0);
}

template <class T, class TC, class TD>
static void check_shapes(const char *name) {
  check_layouts<16, 16, 16, T, TC, TD>(name);
  check_layouts<32, 8, 16, T, TC, TD>(name);
  check_layouts<8, 32, 16, T, TC, TD>(name);
}

static void test_half(void **state) {
  (void)state;
  check_shapes<__half, float, float>("half to float");
  check_shapes<__half, __half, __half>("half to half");
  check_shapes<__half, float, __half>("half to half, C float");
  check_shapes<__half, __half, float>("half to float, C half");
}

static void test_bfloat16(void **state) {
  (void)state;
  check_shapes<__nv_bfloat16, float, float>("bfloat16");
}

static void test_chars(void **state) {
  (void)state;
  check_shapes<signed char, int, int>("signed char");
  check_shapes<unsigned char, int, int>("unsigned char");
}

static void test_tf32(void **state) {
  (void)state;
  check_layouts<16, 16, 8, wmma::precision::tf32, float, float>("tf32");
}

static void test_double(void **state) {
  (void)state;
  check_layouts<8, 8, 4, double, double, double>("double");
}

/* ---- tf32 has 10 bits of fraction ---- */

__global__ void round_kernel(const float *in, float *out) { out[threadIdx.x] = wmma::__float_to_tf32(in[threadIdx.x]); }

static void test_rounding_to_tf32(void **state) {
  (void)state;
  float *in = new_array<float>(32), *out = new_array<float>(32);
  const float ulp = 1.0f / 1024; /* between 1 and 2 */
  in[0] = 1 + ulp * 0.49f;
  in[1] = 1 + ulp * 0.5f;
  in[2] = 1 + ulp * 1.5f;
  in[3] = -(1 + ulp * 0.5f);
  in[4] = 3.0f;
  in[5] = 0;
  in[6] = 1e-30f;
  round_kernel<<<1, 32>>>(in, out);
  finish();
  assert_true(out[0] == 1);
  assert_true(out[1] == 1 + ulp); /* halves away from zero */
  assert_true(out[2] == 1 + 2 * ulp);
  assert_true(out[3] == -(1 + ulp));
  assert_true(out[4] == 3);
  assert_true(out[5] == 0);
  assert_true(out[6] > 0.999e-30f && out[6] < 1.001e-30f);
  CHECK(cudaFree(in));
  CHECK(cudaFree(out));
}

/* ---- elements by themselves ---- */

/* d = alpha * (a x b) + beta * c, as a GEMM ends: fragments of equal shape agree about who holds what. */
template <class T>
__global__ void epilogue_kernel(const __half *a, const __half *b, const T *c, T *d, T *filled) {
  wmma::fragment<wmma::matrix_a, 16, 16, 16, __half, wmma::row_major> fa;
  wmma::fragment<wmma::matrix_b, 16, 16, 16, __half, wmma::col_major> fb;
  wmma::fragment<wmma::accumulator, 16, 16, 16, T> sum, fc, constant;
  wmma::fill_fragment(sum, (T)0.0f);
  wmma::load_matrix_sync(fa, a, 16);
  wmma::load_matrix_sync(fb, b, 16);
  wmma::mma_sync(sum, fa, fb, sum);
  wmma::load_matrix_sync(fc, c, 16, wmma::mem_row_major);
  for (int i = 0; i < sum.num_elements; i++) sum.x[i] = (T)((float)sum.x[i] * 2.0f + (float)fc.x[i] * 3.0f);
  wmma::store_matrix_sync(d, sum, 16, wmma::mem_row_major);
  wmma::fill_fragment(constant, (T)1.5f);
  wmma::store_matrix_sync(filled, constant, 16, wmma::mem_col_major);
}

template <class T>
static void check_epilogue(void) {
  __half *a = new_array<__half>(256), *b = new_array<__half>(256);
  T *c = new_array<T>(256), *d = new_array<T>(256), *filled = new_array<T>(256);
  for (int i = 0; i < 256; i++) {
    a[i] = (__half)(float)(i * 7 % 5 - 2);
    b[i] = (__half)(float)(i * 11 % 7 - 3);
    c[i] = (T)(float)(i % 23);
  }
  epilogue_kernel<<<1, 32>>>(a, b, c, d, filled);
  finish();
  for (int i = 0; i < 16; i++)
    for (int j = 0; j < 16; j++) {
      float sum = 0;
      for (int k = 0; k < 16; k++) sum += (float)a[16 * i + k] * (float)b[16 * j + k];
      assert_true((float)d[16 * i + j] == 2 * sum + 3 * (float)c[16 * i + j]);
      assert_true((float)filled[16 * i + j] == 1.5f);
    }
  CHECK(cudaFree(a));
  CHECK(cudaFree(b));
  CHECK(cudaFree(c));
  CHECK(cudaFree(d));
  CHECK(cudaFree(filled));
}

static void test_elements_by_themselves(void **state) {
  (void)state;
  check_epilogue<float>();
  check_epilogue<__half>();
}

/* In its own place: every lane has read before any lane writes. */
__global__ void transpose_kernel(float *x) {
  wmma::fragment<wmma::accumulator, 16, 16, 16, float> f;
  wmma::load_matrix_sync(f, x, 16, wmma::mem_row_major);
  __syncwarp();
  wmma::store_matrix_sync(x, f, 16, wmma::mem_col_major);
}

static void test_a_transpose_in_place(void **state) {
  (void)state;
  float *x = new_array<float>(256);
  for (int i = 0; i < 256; i++) x[i] = (float)i;
  transpose_kernel<<<1, 32>>>(x);
  finish();
  for (int i = 0; i < 256; i++) assert_true(x[i] == (float)(i % 16 * 16 + i / 16));
  CHECK(cudaFree(x));
}

/* ---- a whole product: several warps, tiles in shared memory ---- */

enum { TILE = 16, SIDE = 32 }; /* a block of 4 warps makes SIDE x SIDE */

__global__ void gemm_kernel(const __half *a, const __half *b, float *c, int m, int n, int k) {
  __shared__ __half sa[SIDE][TILE + 8], sb[TILE][SIDE + 8];
  int warp = threadIdx.x / 32, row = blockIdx.y * SIDE, column = blockIdx.x * SIDE;
  wmma::fragment<wmma::accumulator, TILE, TILE, TILE, float> sum[1];
  wmma::fill_fragment(sum[0], 0.0f);
  for (int start = 0; start < k; start += TILE) {
    for (int i = threadIdx.x; i < SIDE * TILE; i += blockDim.x) {
      sa[i / TILE][i % TILE] = a[(row + i / TILE) * k + start + i % TILE];
      sb[i / SIDE][i % SIDE] = b[(start + i / SIDE) * n + column + i % SIDE];
    }
    __syncthreads();
    wmma::fragment<wmma::matrix_a, TILE, TILE, TILE, __half, wmma::row_major> fa;
    wmma::fragment<wmma::matrix_b, TILE, TILE, TILE, __half, wmma::row_major> fb;
    wmma::load_matrix_sync(fa, &sa[warp / 2 * TILE][0], TILE + 8);
    wmma::load_matrix_sync(fb, &sb[0][warp % 2 * TILE], SIDE + 8);
    wmma::mma_sync(sum[0], fa, fb, sum[0]);
    __syncthreads();
  }
  wmma::store_matrix_sync(c + (row + warp / 2 * TILE) * n + column + warp % 2 * TILE, sum[0], n, wmma::mem_row_major);
}

static void test_a_matrix_product(void **state) {
  (void)state;
  enum { M = 64, N = 96, K = 80 };
  __half *a = new_array<__half>(M * K), *b = new_array<__half>(K * N);
  float *c = new_array<float>(M * N);
  for (int i = 0; i < M * K; i++) a[i] = (__half)((float)((int)(next_random() >> 9) % 2000 - 1000) / 1000);
  for (int i = 0; i < K * N; i++) b[i] = (__half)((float)((int)(next_random() >> 9) % 2000 - 1000) / 1000);
  gemm_kernel<<<dim3(N / SIDE, M / SIDE), 128>>>(a, b, c, M, N, K);
  finish();
  for (int i = 0; i < M; i++)
    for (int j = 0; j < N; j++) {
      double sum = 0, scale = 0;
      for (int k = 0; k < K; k++) {
        double product = (double)(float)a[i * K + k] * (double)(float)b[k * N + j];
        sum += product;
        scale += product < 0 ? -product : product;
      }
      double error = c[i * N + j] - sum, tolerance = scale * K * 1.2e-7; /* a rounding of a float for each addition */
      if (!(error <= tolerance && error >= -tolerance))
        fail_msg("element (%d,%d) is %.9g, not %.9g: off by %g, tolerance %g", i, j, c[i * N + j], sum, error,
                 tolerance);
    }
  CHECK(cudaFree(a));
  CHECK(cudaFree(b));
  CHECK(cudaFree(c));
}

/* ---- saturation ---- */

__global__ void saturate_kernel(const signed char *a, const int *c, int *wrapped, int *kept) {
  wmma::fragment<wmma::matrix_a, 16, 16, 16, signed char, wmma::row_major> fa;
  wmma::fragment<wmma::matrix_b, 16, 16, 16, signed char, wmma::col_major> fb;
  wmma::fragment<wmma::accumulator, 16, 16, 16, int> fc, fd;
  wmma::load_matrix_sync(fa, a, 16);
  wmma::load_matrix_sync(fb, a, 16);
  wmma::load_matrix_sync(fc, c, 16, wmma::mem_row_major);
  wmma::mma_sync(fd, fa, fb, fc, false);
  wmma::store_matrix_sync(wrapped, fd, 16, wmma::mem_row_major);
  wmma::mma_sync(fd, fa, fb, fc, true);
  wmma::store_matrix_sync(kept, fd, 16, wmma::mem_row_major);
}

static void test_saturation(void **state) {
  (void)state;
  signed char *a = new_array<signed char>(256);
  int *c = new_array<int>(256), *wrapped = new_array<int>(256), *kept = new_array<int>(256);
  for (int i = 0; i < 256; i++) {
    a[i] = 100; /* each product 16 * 10000 */
    c[i] = i % 2 ? INT32_MAX - 5 : 7;
  }
  saturate_kernel<<<1, 32>>>(a, c, wrapped, kept);
  finish();
  for (int i = 0; i < 256; i++) {
    assert_int_equal(wrapped[i], (int)((unsigned)c[i] + 160000u));
    assert_int_equal(kept[i], i % 2 ? INT32_MAX : 160007);
  }
  CHECK(cudaFree(a));
  CHECK(cudaFree(c));
  CHECK(cudaFree(wrapped));
  CHECK(cudaFree(kept));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_half),
      cmocka_unit_test(test_bfloat16),
      cmocka_unit_test(test_chars),
      cmocka_unit_test(test_tf32),
      cmocka_unit_test(test_double),
      cmocka_unit_test(test_rounding_to_tf32),
      cmocka_unit_test(test_elements_by_themselves),
      cmocka_unit_test(test_a_transpose_in_place),
      cmocka_unit_test(test_a_matrix_product),
      cmocka_unit_test(test_saturation),
  };
  return cmocka_run_group_tests_name("wmma", tests, NULL, NULL);
}
