/* inspect_test.cu - the inspector's figures and findings, fixed. The counts of accesses are those that Nsight Compute
 * reads on an H200 for the same kernels; a change of compiler flags, of the headers or of the inspector that moves
 * one fails here.
 *
 * Built with the inspector (simtcc --inspect); otherwise it only says so. */
#ifndef SIMT_INSPECT
#include <stdio.h>
int main(void) { puts("skipped: only the inspector's build counts anything"); }
#else
// clang-format off
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
extern "C" {
#include <cmocka.h>
}
// clang-format on
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cuda_pipeline.h>
#include <cub/block/block_reduce.cuh>

#include "simt/inspector.h"

#define CHECK(call) assert_int_equal(call, cudaSuccess)

/* ---- what to look for ---- */

static const SimtKernelReport *kernel_of(const SimtInspectReport *report, const char *name) {
  for (int i = 0; i < report->kernel_count; i++)
    if (strcmp(report->kernels[i].name, name) == 0) return &report->kernels[i];
  fail_msg("no kernel %s in the report", name);
  return NULL;
}

/* The counts of the kernel of that name: SIMT_GLOBAL_LOAD_SECTORS, ... */
static const uint64_t *counts(const char *name) { return kernel_of(simt_inspect_report(), name)->count; }

static void expect_traffic(const char *name, SimtCounter requests, uint64_t wanted_requests, uint64_t wanted_cost) {
  const uint64_t *count = counts(name);
  if (count[requests] == wanted_requests && count[requests + 1] == wanted_cost) return;
  fail_msg("%s: %s %llu, %llu; expected %llu, %llu", name, simt_counter_names[requests].name,
           (unsigned long long)count[requests], (unsigned long long)count[requests + 1],
           (unsigned long long)wanted_requests, (unsigned long long)wanted_cost);
}
#define LOADS(name, requests, sectors) expect_traffic(name, SIMT_GLOBAL_LOAD_REQUESTS, requests, sectors)
#define STORES(name, requests, sectors) expect_traffic(name, SIMT_GLOBAL_STORE_REQUESTS, requests, sectors)
#define SHARED_LOADS(name, requests, wavefronts) expect_traffic(name, SIMT_SHARED_LOAD_REQUESTS, requests, wavefronts)
#define SHARED_STORES(name, requests, wavefronts) expect_traffic(name, SIMT_SHARED_STORE_REQUESTS, requests, wavefronts)

static int findings_in(const char *kernel) {
  const SimtInspectReport *report = simt_inspect_report();
  int count = 0;
  for (int i = 0; i < report->finding_count; i++) {
    const SimtFinding *f = &report->findings[i];
    count += f->kernel >= 0 && strcmp(report->kernels[f->kernel].name, kernel) == 0;
  }
  return count;
}

/* The number of the line of this file that ends in "// line: name". */
static int line_of(const char *name) {
  char line[512], mark[64];
  FILE *file = fopen(__FILE__, "r");
  if (!file) fail_msg("%s is not here: run the test where its source lies", __FILE__);
  snprintf(mark, sizeof mark, "// line: %s\n", name);
  int number = 1;
  for (; fgets(line, sizeof line, file); number++) {
    const char *end = strstr(line, "// line: ");
    if (end && strcmp(end, mark) == 0) break;
  }
  if (feof(file)) fail_msg("no line is marked %s", name);
  fclose(file);
  return number;
}

/* The finding of that kind in the kernel, with both lines (the second 0: of one party only), in any order. */
static const SimtFinding *expect_finding(const char *kernel, SimtFindingKind kind, int line, int other) {
  const SimtInspectReport *report = simt_inspect_report();
  for (int i = 0; i < report->finding_count; i++) {
    const SimtFinding *f = &report->findings[i];
    if (f->kind != kind || f->kernel < 0 || strcmp(report->kernels[f->kernel].name, kernel) != 0) continue;
    int a = f->party[0].place.line, b = f->parties > 1 ? f->party[1].place.line : 0;
    if ((a == line && b == other) || (a == other && b == line)) return f;
    print_message("%s: a %s at lines %d, %d\n", kernel, simt_finding_name(kind), a, b);
  }
  fail_msg("%s: no %s with lines %d, %d", kernel, simt_finding_name(kind), line, other);
  return NULL;
}

/* ---- memory, filled once ---- */

enum { N = 256, WORDS = N * N };
static float *a, *b, *c;

static int set_up(void **state) {
  (void)state;
  CHECK(cudaMalloc((void **)&a, WORDS * sizeof(float)));
  CHECK(cudaMalloc((void **)&b, WORDS * sizeof(float)));
  CHECK(cudaMalloc((void **)&c, WORDS * sizeof(float)));
  CHECK(cudaMemset(a, 0, WORDS * sizeof(float)));
  CHECK(cudaMemset(b, 0, WORDS * sizeof(float)));
  CHECK(cudaMemset(c, 0, WORDS * sizeof(float)));
  return 0;
}

static int tear_down(void **state) {
  (void)state;
  cudaFree(a);
  cudaFree(b);
  cudaFree(c);
  return 0;
}

/* ---- coalescing ---- */

__global__ void transpose_naive(const float *in, float *out, int n) {
  int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32 + threadIdx.y;
  out[x * n + y] = in[y * n + x];
}
__global__ void transpose_tiled(const float *in, float *out, int n) {
  __shared__ float tile[32][32];
  tile[threadIdx.y][threadIdx.x] = in[(blockIdx.y * 32 + threadIdx.y) * n + blockIdx.x * 32 + threadIdx.x];
  __syncthreads();
  out[(blockIdx.x * 32 + threadIdx.y) * n + blockIdx.y * 32 + threadIdx.x] = tile[threadIdx.x][threadIdx.y];
}
__global__ void transpose_padded(const float *in, float *out, int n) {
  __shared__ float tile[32][33];
  tile[threadIdx.y][threadIdx.x] = in[(blockIdx.y * 32 + threadIdx.y) * n + blockIdx.x * 32 + threadIdx.x];
  __syncthreads();
  out[(blockIdx.x * 32 + threadIdx.y) * n + blockIdx.y * 32 + threadIdx.x] = tile[threadIdx.x][threadIdx.y];
}

static void test_transposes(void **state) {
  (void)state;
  dim3 grid(N / 32, N / 32), block(32, 32);
  transpose_naive<<<grid, block>>>(a, c, N);
  transpose_tiled<<<grid, block>>>(a, c, N);
  transpose_padded<<<grid, block>>>(a, c, N);
  LOADS("transpose_naive", 2048, 2048 * 4);
  STORES("transpose_naive", 2048, 2048 * 32);
  LOADS("transpose_tiled", 2048, 2048 * 4);
  STORES("transpose_tiled", 2048, 2048 * 4);
  SHARED_LOADS("transpose_tiled", 2048, 2048 * 32);
  SHARED_STORES("transpose_tiled", 2048, 2048);
  assert_int_equal(counts("transpose_tiled")[SIMT_SHARED_LOAD_CONFLICTS], 63488);
  SHARED_LOADS("transpose_padded", 2048, 2048);
  assert_int_equal(counts("transpose_padded")[SIMT_SHARED_LOAD_CONFLICTS], 0);
  assert_int_equal(findings_in("transpose_tiled"), 0);
  assert_int_equal(findings_in("transpose_padded"), 0);
}

/* What is drawn of a kernel's worst access of a kind. */
static void expect_drawing(const char *kernel, SimtTraffic traffic, const char *wanted) {
  char text[2048] = "";
  FILE *out = fmemopen(text, sizeof text, "w");
  simt_inspect_draw(out, kernel_of(simt_inspect_report(), kernel), traffic);
  fclose(out);
  if (*wanted ? !strstr(text, wanted) : *text) fail_msg("%s: expected\n%s\ngot\n%s", kernel, wanted, text);
  for (const char *line = text; *line; line += strcspn(line, "\n") + 1) assert_true(strcspn(line, "\n") <= 100);
}

static void test_drawings(void **state) {
  (void)state;
  expect_drawing("transpose_naive", SIMT_GLOBAL_LOADS, "");
  expect_drawing("transpose_naive", SIMT_GLOBAL_STORES,
                 "100 % of all sectors of global stores, 8.00 times the ideal: ");
  expect_drawing("transpose_naive", SIMT_GLOBAL_STORES,
                 "        out[x * n + y] = in[y * n + x];\n"
                 "    lane    0       4       8       12      16      20      24      28\n"
                 "    sector  0 1 2 3 4 5 6 7 8 9 a b c d e f g h i j k l m n o p q r s t u v\n"
                 "    ideal   0 0 0 0 0 0 0 0 1 1 1 1 1 1 1 1 2 2 2 2 2 2 2 2 3 3 3 3 3 3 3 3\n");
  expect_drawing("transpose_tiled", SIMT_SHARED_LOADS, "100 % of all wavefronts of shared loads, 32.00 times");
  expect_drawing("transpose_tiled", SIMT_SHARED_LOADS,
                 "    bank    v v v v v v v v v v v v v v v v v v v v v v v v v v v v v v v v\n"
                 "    ideal   0 1 2 3 4 5 6 7 8 9 a b c d e f g h i j k l m n o p q r s t u v\n");
  expect_drawing("transpose_padded", SIMT_SHARED_LOADS, "");
}

__global__ void matmul_naive(const float *x, const float *y, float *out, int n) {
  int column = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y * blockDim.y + threadIdx.y;
  float sum = 0;
#pragma unroll 1
  for (int k = 0; k < n; k++) sum += x[row * n + k] * y[k * n + column];
  out[row * n + column] = sum;
}
__global__ void matmul_wide_block(const float *x, const float *y, float *out, int n) {
  int column = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y * blockDim.y + threadIdx.y;
  float sum = 0;
#pragma unroll 1
  for (int k = 0; k < n; k++) sum += x[row * n + k] * y[k * n + column];
  out[row * n + column] = sum;
}
__global__ void matmul_row_from_x(const float *x, const float *y, float *out, int n) {
  int row = blockIdx.x * blockDim.x + threadIdx.x, column = blockIdx.y * blockDim.y + threadIdx.y;
  float sum = 0;
#pragma unroll 1
  for (int k = 0; k < n; k++) sum += x[row * n + k] * y[k * n + column];
  out[row * n + column] = sum;
}
template <int TILE>
__global__ void matmul_tiled(const float *x, const float *y, float *out, int n) {
  __shared__ float tile_x[TILE][TILE], tile_y[TILE][TILE];
  int column = blockIdx.x * TILE + threadIdx.x, row = blockIdx.y * TILE + threadIdx.y;
  float sum = 0;
  for (int t = 0; t < n; t += TILE) {
    tile_x[threadIdx.y][threadIdx.x] = x[row * n + t + threadIdx.x];
    tile_y[threadIdx.y][threadIdx.x] = y[(t + threadIdx.y) * n + column];
    __syncthreads();
#pragma unroll 1
    for (int k = 0; k < TILE; k++) sum += tile_x[threadIdx.y][k] * tile_y[k][threadIdx.x];
    __syncthreads();
  }
  out[row * n + column] = sum;
}

static void test_matmuls(void **state) {
  (void)state;
  enum { M = 64, REQUESTS = 2 * M * M * M / 32 };
  matmul_naive<<<dim3(M / 16, M / 16), dim3(16, 16)>>>(a, b, c, M);
  matmul_wide_block<<<dim3(M / 32, M / 8), dim3(32, 8)>>>(a, b, c, M);
  matmul_row_from_x<<<dim3(M / 32, M / 8), dim3(32, 8)>>>(a, b, c, M);
  matmul_tiled<16><<<dim3(M / 16, M / 16), dim3(16, 16)>>>(a, b, c, M);
  matmul_tiled<32><<<dim3(M / 32, M / 32), dim3(32, 32)>>>(a, b, c, M);
  LOADS("matmul_naive", REQUESTS, REQUESTS * 2);           /* 2 rows: 2 sectors; 16 columns: 2 */
  LOADS("matmul_wide_block", REQUESTS, REQUESTS * 5 / 2);  /* 1 and 4 */
  LOADS("matmul_row_from_x", REQUESTS, REQUESTS * 33 / 2); /* 32 rows: 32; one column: 1 */
  LOADS("matmul_tiled<16>", REQUESTS / 16, REQUESTS / 16 * 4);
  LOADS("matmul_tiled<32>", REQUESTS / 32, REQUESTS / 32 * 4);
  SHARED_LOADS("matmul_tiled<16>", REQUESTS, REQUESTS);
  SHARED_LOADS("matmul_tiled<32>", REQUESTS, REQUESTS);
  assert_int_equal(counts("matmul_tiled<16>")[SIMT_SHARED_STORE_CONFLICTS], 0);
  assert_int_equal(findings_in("matmul_tiled<16>"), 0);
}

template <int STRIDE>
__global__ void copy_strided(const float *in, float *out) {
  int i = (blockIdx.x * blockDim.x + threadIdx.x) * STRIDE;
  out[i] = in[i];
}
template <int OFFSET>
__global__ void copy_offset(const float *in, float *out) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  out[i] = in[i + OFFSET];
}
template <class T>
__global__ void copy_type(const T *in, T *out) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  out[i] = in[i];
}

static void test_copies(void **state) {
  (void)state;
  copy_strided<2><<<2, 128>>>(a, c);
  copy_strided<8><<<2, 128>>>(a, c);
  copy_strided<32><<<2, 128>>>(a, c);
  copy_offset<1><<<2, 128>>>(a, c);
  copy_offset<8><<<2, 128>>>(a, c);
  copy_type<<<2, 128>>>((const float4 *)a, (float4 *)c);
  LOADS("copy_strided<2>", 8, 8 * 8);
  LOADS("copy_strided<8>", 8, 8 * 32);
  LOADS("copy_strided<32>", 8, 8 * 32);
  LOADS("copy_offset<1>", 8, 8 * 5);
  LOADS("copy_offset<8>", 8, 8 * 4);
  LOADS("copy_type", 8, 8 * 16);
  STORES("copy_type", 8, 8 * 16);
  assert_int_equal(counts("copy_strided<8>")[SIMT_GLOBAL_LOAD_IDEAL_SECTORS], 8 * 4);
  assert_int_equal(counts("copy_type")[SIMT_GLOBAL_LOAD_BYTES], 256 * 16);
}

/* cp.async is one instruction of the warp, whichever of its lanes fill with zeros. */
template <class T>
__global__ void copy_filled(const T *in, T *out, int there) {
  __shared__ T tile[32];
  const int i = threadIdx.x;
  __pipeline_memcpy_async(&tile[i], &in[i < there ? i : 0], sizeof(T), i < there ? 0 : sizeof(T));
  __pipeline_commit();
  __pipeline_wait_prior(0);
  __syncthreads();
  out[i] = tile[31 - i];
}

/* Two lanes copy to each place of rows 1 to 7, most of them zeros: the first of row 1 copies a value. */
__global__ void copy_to_one_place(const float4 *in) {
  __shared__ float4 tile[64];
  for (int i = threadIdx.x; i < 64; i += 32) {
    const int row = i / 8, chunk = i % 8;
    __pipeline_memcpy_async(&tile[row * 8 + (chunk | row)], &in[chunk == 0 ? row : 0], 16, chunk == 0 ? 0 : 16);
  }
  __pipeline_commit();
  __pipeline_wait_prior(0);
}

__global__ void copy_partly_filled(float4 *out) {
  __shared__ float4 tile;
  *out = make_float4(1, 2, 3, 4);
  __pipeline_memcpy_async(&tile, out, 16, 4);
  __pipeline_commit();
  __pipeline_wait_prior(0);
  *out = tile;
}

static void test_asynchronous_copies(void **state) {
  float out[32 * 4];
  (void)state;
  CHECK(cudaMemset(a, 1, sizeof out));
  copy_filled<float><<<1, 32>>>(a, c, 20);
  CHECK(cudaMemcpy(out, c, 32 * sizeof *out, cudaMemcpyDefault));
  for (int i = 0; i < 32; i++) assert_int_equal(out[i] != 0, 31 - i < 20);
  copy_filled<float4><<<1, 32>>>((const float4 *)a, (float4 *)c, 20);
  CHECK(cudaMemcpy(out, c, sizeof out, cudaMemcpyDefault));
  for (int i = 0; i < 32 * 4; i++) assert_int_equal(out[i] != 0, 31 - i / 4 < 20);
  LOADS("copy_filled<float>", 1, 3);
  SHARED_STORES("copy_filled<float>", 1, 1);
  LOADS("copy_filled<float4>", 1, 10);
  SHARED_STORES("copy_filled<float4>", 1, 4);
  copy_to_one_place<<<1, 32>>>((const float4 *)a);
  CHECK(cudaDeviceSynchronize());
  assert_int_equal(findings_in("copy_filled<float>") + findings_in("copy_filled<float4>"), 0);
  assert_int_equal(findings_in("copy_to_one_place"), 1);
  copy_partly_filled<<<1, 1>>>((float4 *)c);
  CHECK(cudaMemcpy(out, c, 4 * sizeof *out, cudaMemcpyDefault));
  for (int i = 0; i < 4; i++) assert_int_equal((int)out[i], i < 3 ? 1 + i : 0);
  CHECK(cudaMemset(a, 0, sizeof out));
}

__global__ void copy_pair(const double *in, double *out) { out[threadIdx.x] = in[threadIdx.x]; }
__global__ void copy_bytes(const unsigned char *in, unsigned char *out) { out[threadIdx.x] = in[threadIdx.x]; }
__global__ void read_only(const float *__restrict__ in, float *out) { out[threadIdx.x] = __ldg(&in[threadIdx.x]); }

/* Structures into and out of functions that are not inlined: loads and stores are the caller's. */
static __device__ __noinline__ float4 twice(float4 x) { return make_float4(2 * x.x, 2 * x.y, 2 * x.z, 2 * x.w); }
static __device__ __noinline__ float first_of(float4 x) { return x.x; }
static __device__ __noinline__ float4 operator+(float4 x, float4 y) {
  return make_float4(x.x + y.x, x.y + y.y, x.z + y.z, x.w + y.w);
}
struct Pair {
  float x, y;
  __device__ __noinline__ Pair times(Pair by) const { return {x * by.x, y * by.y}; }
};
struct Eight {
  float4 low, high; /* too large for registers: returned through memory */
};
template <typename T>
static __device__ __noinline__ T same(T x) {
  return x;
}

__global__ void call_between(const float4 *in, float4 *out) { out[threadIdx.x] = twice(in[threadIdx.x]); }
__global__ void call_argument(const float4 *in, float *out) { out[threadIdx.x] = first_of(in[threadIdx.x]); }
__global__ void call_result(const float *in, float4 *out) { out[threadIdx.x] = same(make_float4(in[0], 0, 0, 0)); }
__global__ void call_operator(const float4 *in, float4 *out) {
  out[threadIdx.x] = in[threadIdx.x] + in[threadIdx.x + 32];
}
__global__ void call_method(const Pair *in, Pair *out) {
  out[threadIdx.x] = in[threadIdx.x].times(in[threadIdx.x + 32]);
}
__global__ void call_nested(const Eight *in, Eight *out) { out[threadIdx.x].high = twice(same(in[threadIdx.x].high)); }
__global__ void call_large(const Eight *in, Eight *out) { out[threadIdx.x] = same(in[threadIdx.x]); }
__global__ void call_shared(const float4 *in, float4 *out) {
  __shared__ float4 tile[32];
  tile[threadIdx.x] = twice(in[threadIdx.x]);
  __syncthreads();
  out[threadIdx.x] = twice(tile[31 - threadIdx.x]);
}

static void test_structures_into_functions(void **state) {
  (void)state;
  const float4 *in = (const float4 *)a;
  call_between<<<1, 32>>>(in, (float4 *)c);
  call_argument<<<1, 32>>>(in, c);
  call_result<<<1, 32>>>(a, (float4 *)c);
  call_operator<<<1, 32>>>(in, (float4 *)c);
  call_method<<<1, 32>>>((const Pair *)a, (Pair *)c);
  call_nested<<<1, 32>>>((const Eight *)a, (Eight *)c);
  call_large<<<1, 32>>>((const Eight *)a, (Eight *)c);
  call_shared<<<1, 32>>>(in, (float4 *)c);
  LOADS("call_between", 1, 16);
  STORES("call_between", 1, 16);
  LOADS("call_argument", 1, 16);
  STORES("call_argument", 1, 4);
  LOADS("call_result", 1, 1);
  STORES("call_result", 1, 16);
  LOADS("call_operator", 2, 32);
  STORES("call_operator", 1, 16);
  assert_int_equal(counts("call_method")[SIMT_GLOBAL_LOAD_SECTORS], 2 * 2 * 8); /* x and y each on its own */
  assert_int_equal(counts("call_method")[SIMT_GLOBAL_STORE_SECTORS], 2 * 8);
  LOADS("call_nested", 1, 32);
  STORES("call_nested", 1, 32);
  assert_int_equal(counts("call_large")[SIMT_GLOBAL_LOAD_BYTES], 32 * sizeof(Eight));
  assert_int_equal(counts("call_large")[SIMT_GLOBAL_STORE_BYTES], 32 * sizeof(Eight));
  SHARED_STORES("call_shared", 1, 4);
  SHARED_LOADS("call_shared", 1, 4);
}

/* g++ would read such a number in one, nvcc does not. */
__global__ void numbers_of_bytes(const unsigned char *in, unsigned *out) {
  const unsigned char *b = in + 4 * threadIdx.x;
  out[threadIdx.x] = (unsigned)b[0] << 24 | b[1] << 16 | b[2] << 8 | b[3];
}

static void test_other_widths(void **state) {
  (void)state;
  copy_pair<<<1, 64>>>((const double *)a, (double *)c);
  copy_bytes<<<1, 64>>>((const unsigned char *)a, (unsigned char *)c);
  read_only<<<1, 40>>>(a, c); /* the last warp has 8 lanes */
  LOADS("copy_pair", 2, 16);
  LOADS("copy_bytes", 2, 2);
  LOADS("read_only", 2, 5);
  numbers_of_bytes<<<1, 32>>>((const unsigned char *)a, (unsigned *)c);
  LOADS("numbers_of_bytes", 4, 16);
}

/* ---- divergence: requests as the hardware issues them ---- */

__global__ void parity_in_loop(const float *in, float *out) {
  int lane = threadIdx.x;
  float sum = 0;
#pragma unroll 1
  for (int k = 0; k < 4; k++)
    if ((k ^ lane) & 1) sum += in[k * 32 + lane];
  out[lane] = sum;
}
__global__ void both_sides(const float *in, float *out) {
  int lane = threadIdx.x;
  if (lane & 1)
    out[lane] = in[lane];
  else
    out[lane + 64] = in[lane + 32] * 2;
  out[lane + 32] = in[lane + 64]; /* together again */
}
__global__ void loop_by_lane(const float *in, float *out) {
  int lane = threadIdx.x;
  float sum = 0;
#pragma unroll 1
  for (int k = 0; k <= lane; k++) sum += in[k];
  out[lane] = sum;
}
__global__ void early_return(const float *in, float *out) {
  int lane = threadIdx.x;
  if (in[lane] == 0 && lane >= 8) return;
  out[lane] = in[lane + 32];
}
__device__ __noinline__ float half_of_it(const float *in, int lane) {
  if (lane & 1) return in[lane];
  return in[lane + 32] * 2;
}
__global__ void calls_a_function(const float *in, float *out) {
  int lane = threadIdx.x;
  out[lane] = half_of_it(in, lane) + in[lane + 64]; /* the lanes meet again when it returns */
}
__global__ void breaks_and_continues(const float *in, float *out) {
  int lane = threadIdx.x;
  float sum = 0;
#pragma unroll 1
  for (int k = 0; k < 32; k++) {
    if (k == lane) continue;
    if (k > lane + 8) break;
    sum += in[k * 32 + lane];
  }
  out[lane] = sum;
}

static void test_divergence(void **state) {
  (void)state;
  parity_in_loop<<<1, 32>>>(a, c);
  LOADS("parity_in_loop", 4, 16); /* per turn the half of the lanes, spread over 4 sectors */
  assert_int_equal(counts("parity_in_loop")[SIMT_GLOBAL_LOAD_BYTES], 4 * 16 * 4);
  both_sides<<<1, 32>>>(a, c);
  LOADS("both_sides", 3, 12);
  STORES("both_sides", 3, 12);
  assert_int_equal(counts("both_sides")[SIMT_BRANCHES], 1);
  assert_int_equal(counts("both_sides")[SIMT_UNIFORM_BRANCHES], 0);
  loop_by_lane<<<1, 32>>>(a, c);
  LOADS("loop_by_lane", 32, 32);
  STORES("loop_by_lane", 1, 4);
  early_return<<<1, 32>>>(a, c);
  LOADS("early_return", 2, 5);
  STORES("early_return", 1, 1);
  calls_a_function<<<1, 32>>>(a, c);
  LOADS("calls_a_function", 3, 12);
  STORES("calls_a_function", 1, 4);
  breaks_and_continues<<<1, 32>>>(a, c);
  STORES("breaks_and_continues", 1, 4);
  /* Turn k: the lanes from k - 8 on, without lane k, one request. */
  uint64_t requests = 0, lanes = 0;
  for (int k = 0; k < 32; k++) {
    int active = 0;
    for (int lane = 0; lane < 32; lane++) active += k <= lane + 8 && k != lane;
    requests += active > 0;
    lanes += active;
  }
  assert_int_equal(counts("breaks_and_continues")[SIMT_GLOBAL_LOAD_REQUESTS], requests);
  assert_int_equal(counts("breaks_and_continues")[SIMT_GLOBAL_LOAD_BYTES], lanes * 4);
}

__global__ void active_lanes(unsigned *out) {
  int lane = threadIdx.x;
  if (lane % 3 == 0)
    out[lane] = __activemask();
  else
    out[lane] = __popc(__activemask());
  out[lane + 32] = __activemask();
}

static void test_active_mask(void **state) {
  (void)state;
  unsigned out[64];
  active_lanes<<<1, 32>>>((unsigned *)c);
  CHECK(cudaMemcpy(out, c, sizeof out, cudaMemcpyDeviceToHost));
  assert_int_equal(out[0], 0x49249249);
  assert_int_equal(out[1], 21);
  for (int i = 32; i < 64; i++) assert_int_equal(out[i], 0xffffffffu);
}

/* Lanes of one warp take turns at a lock: they must not starve the one that holds it. */
__global__ void spin_lock(int *lock, int *sum) {
  bool done = false;
  while (!done) {
    if (atomicCAS(lock, 0, 1) == 0) {
      *(volatile int *)sum += 1;
      __threadfence();
      atomicExch(lock, 0);
      done = true;
    }
  }
}
__global__ void spin_lock_outside(int *lock, int *sum) {
  while (atomicCAS(lock, 0, 1) != 0) {
  }
  *(volatile int *)sum += 1;
  __threadfence();
  atomicExch(lock, 0);
}

static void test_locks(void **state) {
  (void)state;
  int sum[2];
  CHECK(cudaMemset(c, 0, 16));
  spin_lock<<<2, 64>>>((int *)c, (int *)c + 1);
  spin_lock_outside<<<2, 64>>>((int *)c, (int *)c + 1);
  CHECK(cudaMemcpy(sum, c, sizeof sum, cudaMemcpyDeviceToHost));
  assert_int_equal(sum[1], 256);
  assert_int_equal(findings_in("spin_lock"), 0);
  assert_int_equal(findings_in("spin_lock_outside"), 0);
}

__global__ void write_past_a_row(float *out) {
  __shared__ float tile[4][8];
  int t = threadIdx.x;
  for (int i = 0; i < 4; i++) tile[i][t] = t;  // line: past_a_row
  __syncthreads();
  out[t] = tile[0][t % 8];
}
__global__ void read_past_a_row(float *out) {
  __shared__ float tile[4][8];
  int t = threadIdx.x;
  for (int i = 0; i < 4; i++) tile[i][t % 8] = t;
  __syncthreads();
  out[t] = tile[0][t];  // line: read_past
}

static void test_what_an_index_is_used_for(void **state) {
  (void)state;
  char text[80];
  write_past_a_row<<<1, 9>>>(c);
  const SimtFinding *f = expect_finding("write_past_a_row", SIMT_OUT_OF_BOUNDS, line_of("past_a_row"), 0);
  assert_string_equal(simt_access_text(f->party[0].access, f->party[0].bytes, text, sizeof text), "writes 4 bytes");
  read_past_a_row<<<1, 9>>>(c);
  f = expect_finding("read_past_a_row", SIMT_OUT_OF_BOUNDS, line_of("read_past"), 0);
  assert_string_equal(simt_access_text(f->party[0].access, f->party[0].bytes, text, sizeof text), "reads 4 bytes");
}

/* CUB applies the program's operator to the values of other threads. */
__global__ void argument_of_the_maximum(const float *in, cub::KeyValuePair<int, float> *out) {
  typedef cub::BlockReduce<cub::KeyValuePair<int, float>, 256> Reduce;
  __shared__ typename Reduce::TempStorage storage;
  cub::KeyValuePair<int, float> mine((int)threadIdx.x, in[threadIdx.x]);
  cub::KeyValuePair<int, float> largest = Reduce(storage).Reduce(mine, cub::ArgMax());
  if (threadIdx.x == 0) *out = largest;
}

static void test_an_operator_of_the_program(void **state) {
  (void)state;
  float ramp[256];
  cub::KeyValuePair<int, float> largest;
  for (int i = 0; i < 256; i++) ramp[i] = i * 37 % 256;
  CHECK(cudaMemcpy(a, ramp, sizeof ramp, cudaMemcpyHostToDevice));
  argument_of_the_maximum<<<1, 256>>>(a, (cub::KeyValuePair<int, float> *)c);
  CHECK(cudaMemcpy(&largest, c, sizeof largest, cudaMemcpyDeviceToHost));
  assert_int_equal(largest.key, 83);
  assert_int_equal(findings_in("argument_of_the_maximum"), 0);
}

/* ---- races ---- */

__global__ void reduce(const float *in, float *out, int last_barrier) {
  __shared__ float part[256];
  int t = threadIdx.x;
  part[t] = in[t];
  __syncthreads();
  for (int s = 128; s > 0; s /= 2) {
    if (t < s) part[t] += part[t + s];  // line: reduce
    if (s >= last_barrier) __syncthreads();
  }
  if (t == 0) out[0] = part[0];
}
__global__ void reduce_correctly(const float *in, float *out) {
  __shared__ float part[256];
  int t = threadIdx.x;
  part[t] = in[t];
  __syncthreads();
  for (int s = 128; s > 0; s /= 2) {
    if (t < s) part[t] += part[t + s];
    __syncthreads();
  }
  if (t == 0) out[0] = part[0];
}
__global__ void neighbour_in_warp(const float *in, float *out, int sync) {
  __shared__ float row[32];
  row[threadIdx.x] = in[threadIdx.x];  // line: neighbour_write
  if (sync) __syncwarp();
  out[threadIdx.x] = row[31 - threadIdx.x];  // line: neighbour_read
}
__global__ void neighbour_in_warp_synced(const float *in, float *out) {
  __shared__ float row[32];
  row[threadIdx.x] = in[threadIdx.x];
  __syncwarp();
  out[threadIdx.x] = row[31 - threadIdx.x];
  __syncwarp(0xffff0000u | 0xffffu);
  row[threadIdx.x] = out[threadIdx.x];
}
__global__ void shuffle_is_no_barrier(const float *in, float *out) {
  __shared__ float row[32];
  row[threadIdx.x] = in[threadIdx.x];  // line: shuffle_write
  float x = __shfl_xor_sync(0xffffffff, in[threadIdx.x], 1);
  out[threadIdx.x] = row[31 - threadIdx.x] + x;  // line: shuffle_read
}
__global__ void histogram(const unsigned *in, unsigned *bins) {
  bins[in[blockIdx.x * blockDim.x + threadIdx.x] % 8]++;  // line: histogram
}
__global__ void histogram_atomic(const unsigned *in, unsigned *bins) {
  atomicAdd(&bins[in[blockIdx.x * blockDim.x + threadIdx.x] % 8], 1u);
}
__global__ void same_value_from_all(int *flag) { *flag = 1; }
__global__ void different_values(int *flag) {
  *flag = threadIdx.x;  // line: different_values
}

static void test_races(void **state) {
  (void)state;
  float ramp[N];
  for (int i = 0; i < N; i++) ramp[i] = i + 1;
  CHECK(cudaMemcpy(a, ramp, sizeof ramp, cudaMemcpyHostToDevice));
  reduce<<<1, 256>>>(a, c, 64);
  const SimtFinding *f = expect_finding("reduce", SIMT_DATA_RACE, line_of("reduce"), line_of("reduce"));
  assert_non_null(strstr(f->memory, "part (static shared, 1024 bytes)"));
  assert_true(f->party[0].thread_index.x != f->party[1].thread_index.x);
  char text[2048];
  FILE *out = fmemopen(text, sizeof text, "w");
  const SimtInspectReport *all = simt_inspect_report();
  for (int i = 0; i < all->finding_count; i++)
    if (all->findings[i].kernel >= 0 && strcmp(all->kernels[all->findings[i].kernel].name, "reduce") == 0)
      simt_inspect_print_finding(out, all, &all->findings[i]);
  fclose(out);
  assert_non_null(strstr(text, "        if (t < s) part[t] += part[t + s];"));
  assert_non_null(strstr(text, "    lane    0       4       8"));
  assert_non_null(strstr(text, " x x x "));
  reduce_correctly<<<1, 256>>>(a, c);
  assert_int_equal(findings_in("reduce_correctly"), 0);

  neighbour_in_warp<<<1, 32>>>(a, c, 0);
  f = expect_finding("neighbour_in_warp", SIMT_DATA_RACE, line_of("neighbour_write"), line_of("neighbour_read"));
  assert_string_equal(f->scope, "between lanes of a warp");
  neighbour_in_warp_synced<<<1, 32>>>(a, c);
  assert_int_equal(findings_in("neighbour_in_warp_synced"), 0);
  shuffle_is_no_barrier<<<1, 32>>>(a, c);
  expect_finding("shuffle_is_no_barrier", SIMT_DATA_RACE, line_of("shuffle_write"), line_of("shuffle_read"));

  CHECK(cudaMemset(c, 0, 64));
  histogram<<<4, 64>>>((const unsigned *)a, (unsigned *)c);
  int between_blocks = 0;
  const SimtInspectReport *report = simt_inspect_report();
  for (int i = 0; i < report->finding_count; i++) {
    f = &report->findings[i];
    if (f->kernel < 0 || strcmp(report->kernels[f->kernel].name, "histogram") != 0) continue;
    assert_int_equal(f->kind, SIMT_DATA_RACE);
    assert_int_equal(f->party[0].place.line, line_of("histogram"));
    between_blocks += strcmp(f->scope, "between blocks") == 0;
  }
  assert_true(findings_in("histogram") >= 1);
  histogram_atomic<<<4, 64>>>((const unsigned *)a, (unsigned *)c);
  assert_int_equal(findings_in("histogram_atomic"), 0);
  assert_int_equal(counts("histogram_atomic")[SIMT_GLOBAL_ATOMIC_REQUESTS], 8);
  assert_int_equal(counts("histogram_atomic")[SIMT_GLOBAL_ATOMIC_LANES], 256);

  same_value_from_all<<<4, 64>>>((int *)c);
  assert_int_equal(findings_in("same_value_from_all"), 0);
  different_values<<<1, 64>>>((int *)c);
  expect_finding("different_values", SIMT_DATA_RACE, line_of("different_values"), line_of("different_values"));
}

/* Of all that race the scope that reaches furthest names the remedy. */
__global__ void shift_in_place(float *x, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i + 1 < n) x[i] = x[i + 1];  // line: shift
}
__global__ void count_plainly(int *counter) {
  *counter = *counter + 1;  // line: count_plainly
}
__global__ void count_and_read(int *counter, int *out) {
  atomicAdd(counter, 1);                                  // line: count_atomically
  out[blockIdx.x * blockDim.x + threadIdx.x] = *counter;  // line: read_plainly
}
__global__ void count_volatile(volatile int *counter) {
  *counter = *counter + 1;  // line: count_volatile
}

static void test_the_scope_of_races(void **state) {
  (void)state;
  float ramp[1024];
  for (int i = 0; i < 1024; i++) ramp[i] = i + 1;
  CHECK(cudaMemcpy(a, ramp, sizeof ramp, cudaMemcpyHostToDevice));
  shift_in_place<<<16, 64>>>(a, 1024);
  const SimtFinding *f = expect_finding("shift_in_place", SIMT_DATA_RACE, line_of("shift"), line_of("shift"));
  assert_string_equal(f->scope, "between blocks");
  assert_non_null(strstr(f->advice, "split the kernel"));
  assert_ptr_equal(strstr(f->memory, "x (262144 bytes of cudaMalloc at"), f->memory);
  assert_int_equal(findings_in("shift_in_place"), 1);

  CHECK(cudaMemset(c, 0, 8192));
  count_plainly<<<16, 64>>>((int *)c);
  f = expect_finding("count_plainly", SIMT_DATA_RACE, line_of("count_plainly"), line_of("count_plainly"));
  assert_string_equal(f->scope, "between blocks");
  assert_non_null(strstr(f->advice, "use atomicAdd()"));
  assert_int_equal(findings_in("count_plainly"), 1);

  count_and_read<<<16, 64>>>((int *)c, (int *)c + 8);
  f = expect_finding("count_and_read", SIMT_DATA_RACE, line_of("count_atomically"), line_of("read_plainly"));
  assert_string_equal(f->scope, "between blocks");
  assert_non_null(strstr(f->advice, "make the other an atomic operation, too"));

  count_volatile<<<16, 64>>>((int *)c);
  f = expect_finding("count_volatile", SIMT_DATA_RACE, line_of("count_volatile"), line_of("count_volatile"));
  char text[80];
  for (int i = 0; i < 2; i++) {
    simt_access_text(f->party[i].access, f->party[i].bytes, text, sizeof text);
    assert_non_null(strstr(text, "4 bytes (volatile)"));
    assert_null(strstr(text, "atomic"));
  }
}

/* The last block adds up what the others wrote: a fence and an atomic operation publish it. */
__device__ unsigned tickets;
__global__ void last_block(const float *in, float *part, float *out) {
  __shared__ bool last;
  int t = threadIdx.x;
  if (t == 0) {
    part[blockIdx.x] = in[blockIdx.x];
    __threadfence();
    last = atomicInc(&tickets, gridDim.x - 1) == gridDim.x - 1;
    __threadfence();
  }
  __syncthreads();
  if (last && t < gridDim.x) out[t] = part[t];
}
/* As in the CUDA guide: a volatile read needs no fence behind the ticket, any other does. */
template <class Part>
__global__ void last_block_reads_at_once(const float *in, Part *part, float *out) {
  __shared__ bool last;
  int t = threadIdx.x;
  if (t == 0) {
    part[blockIdx.x] = in[blockIdx.x];  // line: fenced_write
    __threadfence();
    last = atomicInc(&tickets, gridDim.x - 1) == gridDim.x - 1;
  }
  __syncthreads();
  if (last && t < gridDim.x) out[t] = part[t];  // line: read_at_once
}
/* A fence before the barrier is not behind what the other threads wrote meanwhile. */
__global__ void last_block_fenced_too_early(const float *in, float *part, float *out) {
  __shared__ bool last;
  int t = threadIdx.x, i = blockIdx.x * blockDim.x + t;
  part[i] = in[i];  // line: early_write
  if (t == 0) __threadfence();
  __syncthreads();
  if (t == 0) last = atomicInc(&tickets, gridDim.x - 1) == gridDim.x - 1;
  __threadfence();
  __syncthreads();
  if (last)
    for (int k = 0; k < gridDim.x; k++) out[k * blockDim.x + t] = part[k * blockDim.x + t];  // line: early_read
}
__global__ void last_block_unfenced(const float *in, float *part, float *out) {
  __shared__ bool last;
  int t = threadIdx.x;
  if (t == 0) {
    part[blockIdx.x] = in[blockIdx.x];  // line: unfenced_write
    last = atomicInc(&tickets, gridDim.x - 1) == gridDim.x - 1;
  }
  __syncthreads();
  if (last && t < gridDim.x) out[t] = part[t];  // line: unfenced_read
}
/* A fence for the own block publishes nothing to others; the ticket is named although another object came later. */
__device__ unsigned steps[2];
__global__ void last_block_fenced_for_itself(const float *in, float *part, float *out) {
  __shared__ bool last;
  int t = threadIdx.x;
  if (t == 0) {
    part[blockIdx.x] = in[blockIdx.x];  // line: narrow_write
    __threadfence_block();
    last = atomicInc(&tickets, gridDim.x - 1) == gridDim.x - 1;
    __threadfence();
    atomicAdd(&steps[blockIdx.x % 2], 1u);
  }
  __syncthreads();
  if (last && t < gridDim.x) out[t] = part[t];  // line: narrow_read
}
__global__ void flag_in_a_block(float *out) {
  __shared__ float value;
  __shared__ int flag;
  if (threadIdx.x == 0) flag = 0;
  __syncthreads();
  if (threadIdx.x == 32) {
    value = 7;
    __threadfence_block();
    atomicExch(&flag, 1);
  }
  if (threadIdx.x == 0) {
    while (atomicAdd(&flag, 0) == 0) {
    }
    __threadfence_block();
    out[0] = value;
  }
}
/* Every thread writes; a barrier collects them before the one that publishes. */
__global__ void last_block_of_threads(const float *in, float *part, float *out) {
  __shared__ bool last;
  int t = threadIdx.x, i = blockIdx.x * blockDim.x + t;
  part[i] = in[i];
  __threadfence();
  __syncthreads();
  if (t == 0) last = atomicInc(&tickets, gridDim.x - 1) == gridDim.x - 1;
  __syncthreads();
  __threadfence();
  if (last)
    for (int k = 0; k < gridDim.x; k++) out[k * blockDim.x + t] = part[k * blockDim.x + t];
}
__global__ void neighbour_block(const float *in, float *out) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  out[i] = in[i];  // line: block_write
  __syncthreads();
  if (i >= 64) out[i + 1024] = out[i - 64];  // line: block_read
}

static void test_races_between_blocks(void **state) {
  (void)state;
  last_block<<<8, 32>>>(a, b, c);
  assert_int_equal(findings_in("last_block"), 0);
  last_block_of_threads<<<8, 32>>>(a, b, c);
  assert_int_equal(findings_in("last_block_of_threads"), 0);
  last_block_fenced_for_itself<<<8, 32>>>(a, b, c);
  const SimtFinding *narrow =
      expect_finding("last_block_fenced_for_itself", SIMT_DATA_RACE, line_of("narrow_write"), line_of("narrow_read"));
  assert_non_null(strstr(narrow->advice, "instead of __threadfence_block()"));
  assert_non_null(strstr(narrow->advice, "tickets"));
  flag_in_a_block<<<1, 64>>>(c);
  assert_int_equal(findings_in("flag_in_a_block"), 0);
  last_block_unfenced<<<8, 32>>>(a, b, c);
  const SimtFinding *f =
      expect_finding("last_block_unfenced", SIMT_DATA_RACE, line_of("unfenced_write"), line_of("unfenced_read"));
  assert_string_equal(f->scope, "between blocks");
  assert_int_equal(f->party[0].block_index.x, 7);
  assert_non_null(strstr(f->advice, "atomic operations on tickets"));
  assert_non_null(strstr(f->advice, "__threadfence() between what"));
  last_block_reads_at_once<volatile float><<<8, 32>>>(a, b, c);
  assert_int_equal(findings_in("last_block_reads_at_once<volatile float>"), 0);
  last_block_reads_at_once<float><<<8, 32>>>(a, b, c);
  f = expect_finding("last_block_reads_at_once<float>", SIMT_DATA_RACE, line_of("fenced_write"),
                     line_of("read_at_once"));
  assert_non_null(strstr(f->advice, "atomic operations on tickets"));
  assert_non_null(strstr(f->advice, "__threadfence() also after"));
  last_block_fenced_too_early<<<8, 32>>>(a, b, c);
  f = expect_finding("last_block_fenced_too_early", SIMT_DATA_RACE, line_of("early_write"), line_of("early_read"));
  assert_non_null(strstr(f->advice, "__threadfence() between what"));
  neighbour_block<<<4, 64>>>(a, c);
  expect_finding("neighbour_block", SIMT_DATA_RACE, line_of("block_write"), line_of("block_read"));
}

/* ---- bounds, initialisation, pointers ---- */

__global__ void one_too_many(float *x, int n) {
  for (int k = threadIdx.x; k <= n; k += blockDim.x) x[k] = k;  // line: one_too_many
}
__global__ void beyond_shared(float *out, int i) {
  __shared__ float row[60];
  row[threadIdx.x] = 1;  // line: beyond_shared
  __syncthreads();
  out[threadIdx.x] = row[i];
}
__global__ void beyond_dynamic_shared(float *out) {
  extern __shared__ float words[];
  words[threadIdx.x] = 1;  // line: beyond_dynamic
  __syncthreads();
  out[threadIdx.x] = words[0];
}
__global__ void never_written(const float *x, float *out) {
  out[threadIdx.x] = x[threadIdx.x];  // line: never_written
}
__global__ void partly_written_shared(float *out) {
  __shared__ float row[64];
  if (threadIdx.x < 63) row[threadIdx.x] = 1;
  __syncthreads();
  out[threadIdx.x] = row[threadIdx.x];  // line: partly_written
}
__global__ void follows_host_pointer(float *const *table, float *out) {
  out[threadIdx.x] = table[0][threadIdx.x];  // line: host_pointer
}
__global__ void misaligned(const float *x, float *out) {
  float4 v = *(const float4 *)(x + 1);  // line: misaligned
  out[threadIdx.x] = v.x + v.y + v.z + v.w;
}

/* Memory that a structure leads to is called by the structure's name: also where the kernel was queued. */
typedef struct Halves {
  char letter;
  float *left, *right;
} Halves;
__global__ void past_the_right(int n, Halves pair) {
  pair.right[n + threadIdx.x] = pair.left[threadIdx.x];  // line: past_the_right
}
__global__ void past_the_left(Halves pair, float *right, int n) {
  pair.left[n + threadIdx.x] = right[threadIdx.x];  // line: past_the_left
}

static void test_names(void **state) {
  (void)state;
  cudaStream_t stream;
  cudaGraph_t graph;
  cudaGraphExec_t exec;
  Halves pair = {'p', NULL, NULL};
  CHECK(cudaMalloc((void **)&pair.left, 400));
  CHECK(cudaMalloc((void **)&pair.right, 800));
  CHECK(cudaMemset(pair.left, 0, 400));
  CHECK(cudaMemset(pair.right, 0, 800));
  CHECK(cudaStreamCreate(&stream));
  CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  past_the_right<<<1, 4, 0, stream>>>(200, pair);
  CHECK(cudaStreamEndCapture(stream, &graph));
  CHECK(cudaGraphInstantiate(&exec, graph, 0));
  CHECK(cudaGraphLaunch(exec, stream));
  CHECK(cudaStreamSynchronize(stream));
  const SimtFinding *f = expect_finding("past_the_right", SIMT_OUT_OF_BOUNDS, line_of("past_the_right"), 0);
  assert_ptr_equal(strstr(f->memory, "pair (800 bytes of cudaMalloc at"), f->memory);
  simt_inspect_name(pair.left, "the left one");
  past_the_left<<<1, 4>>>(pair, pair.right, 100);
  CHECK(cudaDeviceSynchronize());
  f = expect_finding("past_the_left", SIMT_OUT_OF_BOUNDS, line_of("past_the_left"), 0);
  assert_ptr_equal(strstr(f->memory, "the left one (400 bytes)"), f->memory);
  CHECK(cudaGraphExecDestroy(exec));
  CHECK(cudaGraphDestroy(graph));
  CHECK(cudaStreamDestroy(stream));
  CHECK(cudaFree(pair.left));
  CHECK(cudaFree(pair.right));
}

static void test_memory(void **state) {
  (void)state;
  float *x, *raw, **table, host[32] = {0};
  CHECK(cudaMalloc((void **)&x, 4000));
  CHECK(cudaMalloc((void **)&raw, 4000));
  CHECK(cudaMalloc((void **)&table, sizeof *table));
  one_too_many<<<1, 128>>>(x, 1000);
  const SimtFinding *f = expect_finding("one_too_many", SIMT_OUT_OF_BOUNDS, line_of("one_too_many"), 0);
  assert_non_null(strstr(f->memory, "4000 bytes of cudaMalloc"));
  assert_non_null(strstr(f->memory, "0 bytes past its end"));
  assert_int_equal(f->party[0].thread_index.x, 1000 % 128);
  assert_int_equal(f->party[0].bytes, 4);
  assert_true(f->party[0].access & SIMT_ACCESS_WRITE);
  beyond_shared<<<1, 64>>>(c, 59);
  expect_finding("beyond_shared", SIMT_OUT_OF_BOUNDS, line_of("beyond_shared"), 0);
  beyond_dynamic_shared<<<1, 64, 60 * sizeof(float)>>>(c);
  f = expect_finding("beyond_dynamic_shared", SIMT_OUT_OF_BOUNDS, line_of("beyond_dynamic"), 0);
  assert_int_equal(f->occurrences, 4);
  never_written<<<1, 32>>>(raw, c);
  f = expect_finding("never_written", SIMT_UNINITIALISED_READ, line_of("never_written"), 0);
  assert_non_null(strstr(f->advice, "or a wait for the blocks that write it is missing"));
  partly_written_shared<<<1, 64>>>(c);
  f = expect_finding("partly_written_shared", SIMT_UNINITIALISED_READ, line_of("partly_written"), 0);
  assert_non_null(strstr(f->advice, "is a __syncthreads() missing before this line"));
  assert_int_equal(f->occurrences, 1);
  float *address = host;
  CHECK(cudaMemcpy(table, &address, sizeof address, cudaMemcpyHostToDevice));
  follows_host_pointer<<<1, 32>>>(table, c);
  expect_finding("follows_host_pointer", SIMT_HOST_POINTER, line_of("host_pointer"), 0);
  misaligned<<<1, 1>>>(a, c);
  expect_finding("misaligned", SIMT_MISALIGNED, line_of("misaligned"), 0);

  int before = simt_inspect_report()->finding_count;
  float read = ((volatile float *)x)[3];
  (void)read;
  assert_int_equal(simt_inspect_report()->finding_count, before + 1);
  const SimtFinding *last = &simt_inspect_report()->findings[before];
  assert_int_equal(last->kind, SIMT_DEVICE_POINTER);
  assert_int_equal(last->kernel, -1);
  cudaFree(x);
  cudaFree(raw);
  cudaFree(table);
}

/* ---- where things are counted ---- */

__constant__ float weights[32];
__device__ float bias[32];
__global__ void many_kinds(const float *in, float *out) {
  float own[4];
  int t = threadIdx.x;
  for (int k = 0; k < 4; k++) own[(k + t) % 4] = in[t];  // line: many_kinds_load
  out[t] = own[t % 4] + weights[3] + bias[t];            // line: many_kinds_store
}

static void test_kinds_of_memory(void **state) {
  (void)state;
  many_kinds<<<1, 32>>>(a, c);
  const uint64_t *count = counts("many_kinds");
  assert_int_equal(count[SIMT_CONSTANT_LOAD_REQUESTS], 1);
  assert_int_equal(count[SIMT_CONSTANT_LOAD_WORDS], 1);
  assert_int_equal(count[SIMT_GLOBAL_STORE_REQUESTS], 1);
  assert_int_equal(count[SIMT_SHARED_LOAD_REQUESTS], 0);
  const SimtKernelReport *k = kernel_of(simt_inspect_report(), "many_kinds");
  int store_line = 0;
  for (int i = 0; i < k->line_count; i++)
    if (k->lines[i].count[SIMT_GLOBAL_STORE_REQUESTS]) store_line = k->lines[i].place.line;
  assert_int_equal(store_line, line_of("many_kinds_store"));
  assert_int_equal(findings_in("many_kinds"), 0);
}

/* ---- simt/inspector.h: the counts since the program last asked ---- */

__global__ void race_in_a_warp(float *out) { out[0] = (float)threadIdx.x; }

static void test_asked_in_between(void **state) {
  (void)state;
  uint64_t count[SIMT_COUNTERS], again[SIMT_COUNTERS];
  simt_inspect_forget();
  assert_int_equal(simt_inspect_counts(NULL, count), 0);
  dim3 grid(N / 32, N / 32), block(32, 32);
  transpose_naive<<<grid, block>>>(a, c, N);
  transpose_padded<<<grid, block>>>(a, c, N);
  transpose_padded<<<grid, block>>>(a, c, N);
  CHECK(cudaDeviceSynchronize());
  assert_int_equal(simt_inspect_counts("padded", count), 2);
  assert_int_equal(count[SIMT_GLOBAL_STORE_SECTORS], 2 * 2048 * 4);
  assert_int_equal(count[SIMT_SHARED_LOAD_REQUESTS], 2 * 2048);
  assert_int_equal(simt_inspect_counts(NULL, count), 3);
  assert_int_equal(count[SIMT_GLOBAL_STORE_SECTORS], 2048 * 32 + 2 * 2048 * 4);
  assert_int_equal(simt_inspect_counts("no such kernel", count), 0);
  assert_int_equal(count[SIMT_GLOBAL_STORE_SECTORS], 0);
  assert_int_equal(simt_inspect_findings(), 0);

  for (int run = 0; run < 2; run++) { /* forgotten, it is found again */
    simt_inspect_forget();
    race_in_a_warp<<<1, 32>>>(c);
    CHECK(cudaDeviceSynchronize());
    assert_int_equal(simt_inspect_findings(), 1);
    assert_int_equal(findings_in("race_in_a_warp"), 1);
  }
  simt_inspect_counts(NULL, count); /* the report, asked for in between, counts the same */
  memcpy(again, counts("race_in_a_warp"), sizeof again);
  assert_memory_equal(count, again, sizeof count);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_transposes),
      cmocka_unit_test(test_drawings),
      cmocka_unit_test(test_matmuls),
      cmocka_unit_test(test_copies),
      cmocka_unit_test(test_asynchronous_copies),
      cmocka_unit_test(test_structures_into_functions),
      cmocka_unit_test(test_other_widths),
      cmocka_unit_test(test_divergence),
      cmocka_unit_test(test_active_mask),
      cmocka_unit_test(test_locks),
      cmocka_unit_test(test_races),
      cmocka_unit_test(test_the_scope_of_races),
      cmocka_unit_test(test_races_between_blocks),
      cmocka_unit_test(test_what_an_index_is_used_for),
      cmocka_unit_test(test_an_operator_of_the_program),
      cmocka_unit_test(test_memory),
      cmocka_unit_test(test_names),
      cmocka_unit_test(test_kinds_of_memory),
      cmocka_unit_test(test_asked_in_between), /* the last: it forgets */
  };
  setenv("SIMT_REPORT", "none", 0);
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
#endif
