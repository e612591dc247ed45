/* fp8_gemm_bench.cu - e4m3 with a scale per tile (lesson 15) beside cublasLt's product of e4m3, in one run.
 *
 *     bazel run --config=cuda //tools/peers:fp8_gemm_bench -- 8192     # N, or MxNxK, multiples of 128
 *
 * Both compute C (M,N) = A (M,K) W^T from the same codes, C bfloat16. Ours has a scale for 1 x 128 of A and 128 x 128
 * of W. cublasLt has one for each matrix, which is less work; its fast accumulation is off, as in torch._scaled_mm()
 * with use_fast_accum=False. It gets 64 MiB of workspace, and the fastest of the 20 algorithms that its heuristic
 * proposes is taken. A and W are N(0,1), quantised before anything is timed; the times of that are shown, too. An error
 * is the root mean square over 4096 elements against sums in float64 of the same codes, as a fraction of their own; C's
 * rounding to bfloat16 is a part of it. torch_fp8.py measures torch's products. */
#include "phase1_building_blocks/15_matmul_tensor_core/matmul_fp8.cuh"
#include "tools/peers/gemm_bench.cuh"

#ifdef SIMT_REWRITTEN

int main(void) { die("fp8_gemm_bench: emulated times mean nothing: needs a GPU"); }

#else
#include <cublasLt.h>

#include "common/check_cublas.h"

enum { ALGORITHMS = 20, REPEATS = 2 };

static const size_t WORKSPACE = (size_t)64 << 20;

typedef struct Operands {
  int m, n, k;
  uint8_t *a, *w;
  float *a_scale, *w_scale;
  __nv_bfloat16 *c;
} Operands;

/* ---------------------------------------------------------------------------------------------------------------- */
/* The peer */

static struct {
  cublasLtHandle_t handle;
  cublasLtMatmulDesc_t operation;
  cublasLtMatrixLayout_t a, w, c;
  cublasLtMatmulAlgo_t algorithm;
  void *workspace;
} lt;

static void lt_run(const Operands *x) {
  const float one = 1, zero = 0;
  CUBLAS_CHECK(cublasLtMatmul(lt.handle, lt.operation, &one, x->w, lt.w, x->a, lt.a, &zero, x->c, lt.c, x->c, lt.c,
                              &lt.algorithm, lt.workspace, WORKSPACE, 0));
}

static double seconds_of(void (*run)(const Operands *), const Operands *x) {
  GpuTimer timer = gpu_timer_open();
  run(x); /* not timed: the clock settles */
  gpu_timer_start(&timer);
  for (int i = 0; i < REPEATS; i++) run(x);
  double seconds = gpu_timer_stop(&timer) / REPEATS;
  gpu_timer_close(&timer);
  return seconds;
}

/* By columns: C^T (n,m) = W (n,k) A^T (k,m), W stored (k,n). Chooses the fastest algorithm. */
static void lt_open(const Operands *x) {
  const int8_t fast = 0;
  const cublasOperation_t transposed = CUBLAS_OP_T;
  CUBLAS_CHECK(cublasLtCreate(&lt.handle));
  CUBLAS_CHECK(cublasLtMatmulDescCreate(&lt.operation, CUBLAS_COMPUTE_32F, CUDA_R_32F));
  CUBLAS_CHECK(
      cublasLtMatmulDescSetAttribute(lt.operation, CUBLASLT_MATMUL_DESC_TRANSA, &transposed, sizeof transposed));
  CUBLAS_CHECK(cublasLtMatmulDescSetAttribute(lt.operation, CUBLASLT_MATMUL_DESC_FAST_ACCUM, &fast, sizeof fast));
  CUBLAS_CHECK(cublasLtMatrixLayoutCreate(&lt.w, CUDA_R_8F_E4M3, x->k, x->n, x->k));
  CUBLAS_CHECK(cublasLtMatrixLayoutCreate(&lt.a, CUDA_R_8F_E4M3, x->k, x->m, x->k));
  CUBLAS_CHECK(cublasLtMatrixLayoutCreate(&lt.c, CUDA_R_16BF, x->n, x->m, x->n));
  CUDA_CHECK(cudaMalloc(&lt.workspace, WORKSPACE));
  cublasLtMatmulPreference_t preference;
  CUBLAS_CHECK(cublasLtMatmulPreferenceCreate(&preference));
  CUBLAS_CHECK(cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &WORKSPACE,
                                                    sizeof WORKSPACE));
  cublasLtMatmulHeuristicResult_t found[ALGORITHMS];
  int count, best = -1;
  CUBLAS_CHECK(cublasLtMatmulAlgoGetHeuristic(lt.handle, lt.operation, lt.w, lt.a, lt.c, lt.c, preference, ALGORITHMS,
                                              found, &count));
  CUBLAS_CHECK(cublasLtMatmulPreferenceDestroy(preference));
  double fastest = 0;
  for (int i = 0; i < count; i++) {
    if (found[i].state != CUBLAS_STATUS_SUCCESS) continue;
    lt.algorithm = found[i].algo;
    double sample[3];
    for (int s = 0; s < 3; s++) sample[s] = seconds_of(lt_run, x);
    double seconds = timer_stats(sample, 3).median;
    if (best < 0 || seconds < fastest) best = i, fastest = seconds;
  }
  if (best < 0) die("cublasLt proposes nothing for %d x %d x %d", x->m, x->n, x->k);
  lt.algorithm = found[best].algo;
  printf("cublasLt: number %d of %d algorithms is the fastest\n", best + 1, count);
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* Ours */

static void wgmma_run(const Operands *x) {
  matmul_fp8_wgmma(x->c, x->a, x->a_scale, x->w, x->w_scale, x->m, x->n, x->k);
}

/* Quantises N(0,1), and shows how long that takes. */
static Operands operands_open(int m, int n, int k) {
  Operands x = {m, n, k, NULL, NULL, NULL, NULL, NULL};
  size_t steps = (size_t)fp8_tile_count(k);
  CUDA_CHECK(cudaMalloc((void **)&x.a, m * fp8_pitch(k)));
  CUDA_CHECK(cudaMalloc((void **)&x.w, n * fp8_pitch(k)));
  CUDA_CHECK(cudaMalloc((void **)&x.a_scale, m * steps * sizeof(float)));
  CUDA_CHECK(cudaMalloc((void **)&x.w_scale, fp8_tile_count(n) * steps * sizeof(float)));
  CUDA_CHECK(cudaMalloc((void **)&x.c, (size_t)m * n * sizeof *x.c));
  float *a = normal_matrix<float>((size_t)m * k, 0), *w = normal_matrix<float>((size_t)n * k, 1);
  GpuTimer timer = gpu_timer_open();
  double seconds[2];
  for (int i = 0; i < 2; i++) { /* the second time counts */
    gpu_timer_start(&timer);
    fp8_rows(x.a, x.a_scale, a, m, k);
    seconds[0] = gpu_timer_stop(&timer);
    gpu_timer_start(&timer);
    fp8_tiles(x.w, x.w_scale, w, n, k);
    seconds[1] = gpu_timer_stop(&timer);
  }
  gpu_timer_close(&timer);
  printf("%d x %d x %d; quantised in %.1f us (A) and %.1f us (W)\n", m, n, k, 1e6 * seconds[0], 1e6 * seconds[1]);
  CUDA_CHECK(cudaFree(a));
  CUDA_CHECK(cudaFree(w));
  return x;
}

/* ---------------------------------------------------------------------------------------------------------------- */

/* error[i]: of sample i, an element of C anywhere; size[i]: its value in float64. SCALED: with our scales. */
template <bool SCALED>
static __global__ void error_kernel(double *error, double *size, Operands x) {
  int i = blockIdx.x * blockDim.x + threadIdx.x, steps = x.k / FP8_TILE;
  PhiloxBlock block = philox4x32(2, 0, i);
  size_t place = (((uint64_t)block.word[0] << 32) | block.word[1]) % ((size_t)x.m * x.n);
  size_t row = place / x.n, col = place % x.n;
  double sum = 0;
  for (int j = 0; j < x.k; j++) {
    double product = (double)fp8_decode(x.a[row * x.k + j]) * fp8_decode(x.w[col * x.k + j]);
    if (SCALED) product *= (double)x.a_scale[row * steps + j / 128] * x.w_scale[col / 128 * steps + j / 128];
    sum += product;
  }
  error[i] = __bfloat162float(x.c[place]) - sum;
  size[i] = sum;
}

template <bool SCALED>
static double error_of(void (*run)(const Operands *), const Operands *x) {
  static double host[2][SAMPLES], *device;
  if (device == NULL) CUDA_CHECK(cudaMalloc((void **)&device, sizeof host));
  CUDA_CHECK(cudaMemset(x->c, 0xFF, (size_t)x->m * x->n * sizeof *x->c));
  run(x);
  error_kernel<SCALED><<<SAMPLES / 256, 256>>>(device, device + SAMPLES, *x);
  CUDA_CHECK_LAUNCH();
  CUDA_CHECK(cudaMemcpy(host, device, sizeof host, cudaMemcpyDeviceToHost));
  double errors = 0, sizes = 0;
  for (int i = 0; i < SAMPLES; i++) errors += host[0][i] * host[0][i], sizes += host[1][i] * host[1][i];
  return sqrt(errors / sizes);
}

static int bench(int m, int n, int k) {
  Operands x = operands_open(m, n, k);
  lt_open(&x);
  double error[2] = {error_of<true>(wgmma_run, &x), error_of<false>(lt_run, &x)};
  double seconds[2][BLOCKS], ratio[BLOCKS];
  for (int block = 0; block < BLOCKS; block++) {
    seconds[block % 2][block] = seconds_of(block % 2 ? lt_run : wgmma_run, &x); /* who is first alternates */
    seconds[1 - block % 2][block] = seconds_of(block % 2 ? wgmma_run : lt_run, &x);
    ratio[block] = seconds[1][block] / seconds[0][block];
  }
  const char *name[2] = {"wgmma, a scale per tile", "cublasLt, a scale per matrix"};
  double faster[2] = {timer_stats(ratio, BLOCKS).median, 1};
  printf("%-32s %10s %9s %14s %10s\n", "version", "us", "TFLOP/s", "x the peer", "error");
  for (int i = 0; i < 2; i++) {
    double median = timer_stats(seconds[i], BLOCKS).median;
    printf("%-32s %10.1f %9.1f %14.3f %10.2e\n", name[i], 1e6 * median, 2e-12 * m * n * k / median, faster[i],
           error[i]);
  }
  return !(error[0] <= 1.5 * error[1]); /* NaN too */
}

int main(int argc, char **argv) {
  int m, n, k;
  char rest;
  if (argc == 2 && sscanf(argv[1], "%d%c", &n, &rest) == 1)
    m = k = n;
  else if (argc != 2 || sscanf(argv[1], "%dx%dx%d%c", &m, &n, &k, &rest) != 3)
    m = n = k = 0;
  if (m <= 0 || n <= 0 || k <= 0 || m % FP8_TILE != 0 || n % FP8_TILE != 0 || k % FP8_TILE != 0) {
    fprintf(stderr, "usage: fp8_gemm_bench SIZE: N, or MxNxK, multiples of %d\n", FP8_TILE);
    return 2;
  }
  if (matmul_wgmma_refusal() != NULL) die("fp8_gemm_bench: %s", matmul_wgmma_refusal());
  return bench(m, n, k);
}
#endif
