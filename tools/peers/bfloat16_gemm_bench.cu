/* bfloat16_gemm_bench.cu - the rungs of lesson 15 beside cublasLtMatmul, in one run.
 *
 *     bazel run --config=cuda //tools/peers:bfloat16_gemm_bench -- 4096 8192     # N, or MxNxK
 *     bazel run --config=cuda //tools/peers:bfloat16_gemm_bench -- --only=wgmma --sweep 8192
 *
 * bfloat16 factors, float32 sums and C, for all. The peer is the fastest of the 20 algorithms that cublasLt's heuristic
 * proposes, each timed on this very shape, with 64 MiB of workspace. Inputs are N(0,1): numbers with few bits set draw
 * less power, and the clock is higher. In each of the blocks every version runs once, in an order that differs from
 * block to block, so that clock and temperature are the same for all; each time in other buffers, so that nothing is
 * left in the L2 cache. A version's time is the median of its blocks; its speed against the peer is the median of the
 * blocks' ratios. The error is the largest of 4096 elements against sums in float64, as a fraction of their root mean
 * square; more than 1e-4 is wrong (tensor cores cut off what a float32 sum cannot hold). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/philox.h"
#include "common/timer.h"
#include "phase1_building_blocks/matmul_cublas_bfloat16.cuh"
#include "phase1_building_blocks/matmul_wgmma.cuh"

#ifdef SIMT_REWRITTEN

int main(void) { die("bfloat16_gemm_bench: cublasLt is not emulated, and emulated times mean nothing: needs a GPU"); }

#else
#include <cublasLt.h>

enum { BLOCKS = 21, MAX_BLOCKS = 64, MAX_VERSIONS = 32, MAX_SETS = 16, SAMPLES = 4096, ALGORITHMS = 20 };

static const size_t COLD_BYTES = (size_t)256 << 20; /* of buffers: several times the L2 cache */
static const size_t WORKSPACE = (size_t)64 << 20;

typedef void Launcher(float *c, const __nv_bfloat16 *a, const __nv_bfloat16 *b, int m, int n, int k);
typedef const char *Refusal(void);

typedef struct Version {
  const char *name;
  Launcher *launch;
  Refusal *refusal; /* NULL: runs everywhere */
} Version;

/* ---------------------------------------------------------------------------------------------------------------- */
/* The peer */

static struct {
  cublasLtHandle_t handle;
  cublasLtMatmulDesc_t operation;
  cublasLtMatrixLayout_t a, b, c;
  cublasLtMatmulAlgo_t algorithm;
  void *workspace;
} lt;

static void lt_run(float *c, const __nv_bfloat16 *a, const __nv_bfloat16 *b, int m, int n, int k) {
  const float one = 1, zero = 0;
  (void)m, (void)n, (void)k; /* as lt_open() was told */
  CUBLAS_CHECK(cublasLtMatmul(lt.handle, lt.operation, &one, b, lt.b, a, lt.a, &zero, c, lt.c, c, lt.c, &lt.algorithm,
                              lt.workspace, WORKSPACE, 0));
}

/* By columns: C^T (n,m) = B^T (n,k) A^T (k,m). Chooses the fastest algorithm. */
static void lt_open(float **c, __nv_bfloat16 **a, __nv_bfloat16 **b, int sets, int m, int n, int k, GpuTimer *timer) {
  if (lt.handle == NULL) {
    CUBLAS_CHECK(cublasLtCreate(&lt.handle));
    CUBLAS_CHECK(cublasLtMatmulDescCreate(&lt.operation, CUBLAS_COMPUTE_32F, CUDA_R_32F));
    CUDA_CHECK(cudaMalloc(&lt.workspace, WORKSPACE));
  }
  CUBLAS_CHECK(cublasLtMatrixLayoutCreate(&lt.b, CUDA_R_16BF, n, k, n));
  CUBLAS_CHECK(cublasLtMatrixLayoutCreate(&lt.a, CUDA_R_16BF, k, m, k));
  CUBLAS_CHECK(cublasLtMatrixLayoutCreate(&lt.c, CUDA_R_32F, n, m, n));
  cublasLtMatmulPreference_t preference;
  CUBLAS_CHECK(cublasLtMatmulPreferenceCreate(&preference));
  CUBLAS_CHECK(cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &WORKSPACE,
                                                    sizeof WORKSPACE));
  cublasLtMatmulHeuristicResult_t found[ALGORITHMS];
  int count, best = -1, set = 0;
  CUBLAS_CHECK(cublasLtMatmulAlgoGetHeuristic(lt.handle, lt.operation, lt.b, lt.a, lt.c, lt.c, preference, ALGORITHMS,
                                              found, &count));
  CUBLAS_CHECK(cublasLtMatmulPreferenceDestroy(preference));
  double fastest = 0, first = 0;
  int repeats = (int)fmin(1e11 / (2.0 * m * n * k), 199) + 1;
  for (int i = 0; i < count; i++) {
    if (found[i].state != CUBLAS_STATUS_SUCCESS) continue;
    lt.algorithm = found[i].algo;
    double sample[3];
    for (int s = -1; s < 3; s++) {
      gpu_timer_start(timer);
      for (int r = 0; r < repeats; r++, set = (set + 1) % sets) lt_run(c[set], a[set], b[set], m, n, k);
      double seconds = gpu_timer_stop(timer) / repeats;
      if (s >= 0) sample[s] = seconds;
    }
    double seconds = timer_stats(sample, 3).median;
    if (i == 0) first = seconds;
    if (best < 0 || seconds < fastest) best = i, fastest = seconds;
  }
  if (best < 0) die("cublasLt proposes nothing for %d x %d x %d", m, n, k);
  lt.algorithm = found[best].algo;
  printf("\ncublasLt: number %d of %d algorithms is the fastest, %.1f us; its first choice %.1f us\n", best + 1, count,
         1e6 * fastest, 1e6 * first);
}

static void lt_close(void) {
  CUBLAS_CHECK(cublasLtMatrixLayoutDestroy(lt.a));
  CUBLAS_CHECK(cublasLtMatrixLayoutDestroy(lt.b));
  CUBLAS_CHECK(cublasLtMatrixLayoutDestroy(lt.c));
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* The versions. The first is the peer. */

static Version versions[MAX_VERSIONS] = {
    {"cublasLt", lt_run, NULL},
    {"cublasGemmEx", matmul_cublas_bfloat16, NULL},
    {"wmma_naive", matmul_wmma_naive, NULL},
    {"wmma_tiled", matmul_wmma_tiled, NULL},
    {"wmma_fragments", matmul_wmma_fragments, NULL},
    {"mma", matmul_mma, mma_refusal},
    {"wgmma_one_stage", matmul_wgmma_one_stage, matmul_wgmma_refusal},
    {"wgmma_ring", matmul_wgmma_ring, matmul_wgmma_refusal},
    {"wgmma_persistent", matmul_wgmma_persistent, matmul_wgmma_refusal},
    {"wgmma", matmul_wgmma, matmul_wgmma_refusal},
};
static int version_count = 10;
static double log_sum[MAX_VERSIONS]; /* over the sizes, of the speed against the peer */

static const Version sweep[] = {
    {"mma 128x128x64 ring of 3", matmul_mma_launch<128, 128, 64, 64, 32, 3>, mma_refusal},
    {"mma 128x256x64 ring of 4", matmul_mma_launch<128, 256, 64, 64, 64, 4>, mma_refusal},
    {"mma 256x128x64 ring of 3", matmul_mma_launch<256, 128, 64, 64, 64, 3>, mma_refusal},
    {"wgmma cluster 1 ring of 2", matmul_wgmma_launch<1, 2, true>, matmul_wgmma_refusal},
    {"wgmma cluster 1 ring of 3", matmul_wgmma_launch<1, 3, true>, matmul_wgmma_refusal},
    {"wgmma cluster 2 ring of 3", matmul_wgmma_launch<2, 3, true>, matmul_wgmma_refusal},
    {"wgmma cluster 2, not persistent", matmul_wgmma_launch<2, 4, false>, matmul_wgmma_refusal},
    {"wgmma cluster 4 ring of 4", matmul_wgmma_launch<4, 4, true>, matmul_wgmma_refusal},
};

/* ---------------------------------------------------------------------------------------------------------------- */

static __global__ void normal_fill_kernel(__nv_bfloat16 *x, size_t n, uint64_t stream) {
  size_t i = 2 * ((size_t)blockIdx.x * blockDim.x + threadIdx.x);
  if (i >= n) return;
  float first, second;
  philox_normal(philox4x32(1, stream, i), &first, &second);
  x[i] = __float2bfloat16(first);
  if (i + 1 < n) x[i + 1] = __float2bfloat16(second);
}

static __nv_bfloat16 *normal_matrix(size_t n, uint64_t stream) {
  __nv_bfloat16 *x;
  CUDA_CHECK(cudaMalloc((void **)&x, n * sizeof *x));
  normal_fill_kernel<<<(unsigned)((n / 2 + 256) / 256), 256>>>(x, n, stream);
  CUDA_CHECK_LAUNCH();
  return x;
}

/* Sample i is an element of C anywhere; expected[i] is its value in float64. */
static __global__ void sample_kernel(double *expected, float *actual, const float *c, const __nv_bfloat16 *a,
                                     const __nv_bfloat16 *b, int m, int n, int k) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  PhiloxBlock block = philox4x32(2, 0, i);
  size_t place = (((uint64_t)block.word[0] << 32) | block.word[1]) % ((size_t)m * n), row = place / n, col = place % n;
  actual[i] = c[place];
  if (expected == NULL) return;
  double sum = 0;
  for (int j = 0; j < k; j++)
    sum += (double)__bfloat162float(a[row * k + j]) * __bfloat162float(b[(size_t)j * n + col]);
  expected[i] = sum;
}

static double largest_error(const double *expected, const float *actual) {
  double worst = 0, squares = 0;
  for (int i = 0; i < SAMPLES; i++) {
    double error = fabs(actual[i] - expected[i]);
    if (!(error <= worst)) worst = error; /* NaN too */
    squares += expected[i] * expected[i];
  }
  return worst / sqrt(squares / SAMPLES);
}

/* 0, or how many versions are wrong. */
static int bench(int m, int n, int k, const char *only, int blocks) {
  size_t bytes = ((size_t)m * k + (size_t)k * n) * sizeof(__nv_bfloat16) + (size_t)m * n * sizeof(float);
  int sets = (int)(COLD_BYTES / bytes) + 1, wrong = 0;
  if (sets < 2) sets = 2;
  if (sets > MAX_SETS) sets = MAX_SETS;
  __nv_bfloat16 *a[MAX_SETS], *b[MAX_SETS];
  float *c[MAX_SETS];
  for (int i = 0; i < sets; i++) {
    a[i] = normal_matrix((size_t)m * k, 2 * i);
    b[i] = normal_matrix((size_t)k * n, 2 * i + 1);
    CUDA_CHECK(cudaMalloc((void **)&c[i], (size_t)m * n * sizeof(float)));
  }
  double *expected, *device_expected, seconds[MAX_VERSIONS][MAX_BLOCKS];
  float *actual, *device_actual;
  expected = (double *)xmalloc(SAMPLES * sizeof *expected);
  actual = (float *)xmalloc(SAMPLES * sizeof *actual);
  CUDA_CHECK(cudaMalloc((void **)&device_expected, SAMPLES * sizeof *expected));
  CUDA_CHECK(cudaMalloc((void **)&device_actual, SAMPLES * sizeof *actual));
  GpuTimer timer = gpu_timer_open();
  lt_open(c, a, b, sets, m, n, k, &timer);

  int chosen[MAX_VERSIONS], count = 0;
  for (int v = 0; v < version_count; v++)
    if (v == 0 || only == NULL || strstr(versions[v].name, only) != NULL) chosen[count++] = v;

  double error[MAX_VERSIONS], once[MAX_VERSIONS];
  for (int i = 0; i < count; i++) { /* also warms up */
    CUDA_CHECK(cudaMemset(c[0], 0xFF, (size_t)m * n * sizeof(float)));
    versions[chosen[i]].launch(c[0], a[0], b[0], m, n, k);
    sample_kernel<<<SAMPLES / 256, 256>>>(i == 0 ? device_expected : NULL, device_actual, c[0], a[0], b[0], m, n, k);
    CUDA_CHECK_LAUNCH();
    CUDA_CHECK(cudaMemcpy(actual, device_actual, SAMPLES * sizeof *actual, cudaMemcpyDeviceToHost));
    if (i == 0) CUDA_CHECK(cudaMemcpy(expected, device_expected, SAMPLES * sizeof *expected, cudaMemcpyDeviceToHost));
    error[i] = largest_error(expected, actual);
    wrong += !(error[i] <= 1e-4);
    gpu_timer_start(&timer);
    versions[chosen[i]].launch(c[1], a[1], b[1], m, n, k);
    once[i] = gpu_timer_stop(&timer);
  }

  double work = 2.0 * m * n * k;
  for (int block = 0, set = 0; block < blocks; block++)
    for (int i = 0; i < count; i++) {
      int v = (i * (block % 2 ? count - 1 : 1) + block) % count; /* forwards, then backwards, from another start */
      int repeats = once[v] > 2e-3 ? 1 : (int)fmin(2e-3 / once[v], 199) + 1; /* 2 ms: an event is exact to half a us */
      versions[chosen[v]].launch(c[set], a[set], b[set], m, n, k);           /* not timed: the clock settles */
      gpu_timer_start(&timer);
      for (int r = 0; r < repeats; r++) {
        set = (set + 1) % sets;
        versions[chosen[v]].launch(c[set], a[set], b[set], m, n, k);
      }
      seconds[v][block] = gpu_timer_stop(&timer) / repeats;
    }
  gpu_timer_close(&timer);

  printf("%d x %d x %d, %d blocks, %d sets of buffers\n", m, n, k, blocks, sets);
  printf("%-32s %10s %9s %11s %10s\n", "version", "us", "TFLOP/s", "cublasLt x", "error");
  for (int i = count - 1; i >= 0; i--) { /* the peer last: timer_stats() sorts its times */
    double ratio[MAX_BLOCKS];
    for (int block = 0; block < blocks; block++) ratio[block] = seconds[0][block] / seconds[i][block];
    double faster = timer_stats(ratio, blocks).median, median = timer_stats(seconds[i], blocks).median;
    printf("%-32s %10.1f %9.1f %11.3f %10.2e%s\n", versions[chosen[i]].name, 1e6 * median, 1e-12 * work / median,
           faster, error[i], error[i] <= 1e-4 ? "" : "  WRONG");
    log_sum[chosen[i]] += log(faster);
  }
  fflush(stdout);
  lt_close();
  for (int i = 0; i < sets; i++) {
    CUDA_CHECK(cudaFree(a[i]));
    CUDA_CHECK(cudaFree(b[i]));
    CUDA_CHECK(cudaFree(c[i]));
  }
  CUDA_CHECK(cudaFree(device_expected));
  CUDA_CHECK(cudaFree(device_actual));
  free(expected);
  free(actual);
  return wrong;
}

/* Those that this GPU can run. */
static void refuse(void) {
  int kept = 0;
  for (int v = 0; v < version_count; v++) {
    const char *refusal = versions[v].refusal != NULL ? versions[v].refusal() : NULL;
    if (refusal != NULL)
      printf("%s: left out: %s\n", versions[v].name, refusal);
    else
      versions[kept++] = versions[v];
  }
  version_count = kept;
}

int main(int argc, char **argv) {
  const char *only = NULL;
  int blocks = BLOCKS, sizes = 0, wrong = 0;
  for (int i = 1; i < argc; i++)
    if (strcmp(argv[i], "--sweep") == 0)
      for (size_t j = 0; j < sizeof sweep / sizeof *sweep; j++) versions[version_count++] = sweep[j];
  refuse();
  for (int i = 1; i < argc; i++) {
    int m, n, k;
    char rest;
    if (strncmp(argv[i], "--only=", 7) == 0) {
      only = argv[i] + 7;
    } else if (strcmp(argv[i], "--sweep") == 0) {
      continue;
    } else if (sscanf(argv[i], "--blocks=%d%c", &blocks, &rest) == 1 && blocks > 0 && blocks <= MAX_BLOCKS) {
      continue;
    } else if (sscanf(argv[i], "%dx%dx%d%c", &m, &n, &k, &rest) == 3 && m > 0 && n > 0 && k > 0) {
      wrong += bench(m, n, k, only, blocks);
      sizes++;
    } else if (sscanf(argv[i], "%d%c", &n, &rest) == 1 && n > 0) {
      wrong += bench(n, n, n, only, blocks);
      sizes++;
    } else {
      fprintf(stderr,
              "bfloat16_gemm_bench: %s: expected a size, N or MxNxK, --only=PART_OF_A_NAME, --sweep or "
              "--blocks=1..%d\n",
              argv[i], MAX_BLOCKS);
      return 2;
    }
  }
  if (sizes == 0) {
    fprintf(stderr, "usage: bfloat16_gemm_bench [--only=PART_OF_A_NAME] [--sweep] [--blocks=N] SIZE...\n");
    return 2;
  }
  if (sizes == 1) return wrong > 0;
  printf("\n%-32s cublasLt x, geometric mean of %d sizes\n", "version", sizes);
  for (int v = 0; v < version_count; v++)
    if (log_sum[v] != 0) printf("%-32s %8.3f\n", versions[v].name, exp(log_sum[v] / sizes));
  return wrong > 0;
}
#endif
