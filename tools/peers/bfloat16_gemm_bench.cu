/* bfloat16_gemm_bench.cu - the rungs of lesson 15 beside cublasLtMatmul, in one run (gemm_bench.cuh).
 *
 *     bazel run --config=cuda //tools/peers:bfloat16_gemm_bench -- 4096 8192     # N, or MxNxK
 *     bazel run --config=cuda //tools/peers:bfloat16_gemm_bench -- --only=wgmma --sweep 8192
 *     bazel run --config=cuda //tools/peers:bfloat16_gemm_bench -- --bias-relu 4096 8192   # max(0, A B + bias)
 *
 * bfloat16 factors, float32 sums and C, for all. The peer is the fastest of the 20 algorithms that cublasLt's heuristic
 * proposes, each timed on this very shape, with 64 MiB of workspace. An error of more than 1e-4 is wrong (tensor cores
 * cut off what a float32 sum cannot hold). */
#include "phase1_building_blocks/15_matmul_tensor_core/matmul_cublas_bfloat16.cuh"
#include "phase1_building_blocks/15_matmul_tensor_core/matmul_wgmma_store.cuh"
#include "tools/peers/gemm_bench.cuh"

#ifdef SIMT_REWRITTEN

int main(void) { die("bfloat16_gemm_bench: emulated times mean nothing: needs a GPU"); }

#else
#include <cublasLt.h>

enum { ALGORITHMS = 20 };

static const size_t WORKSPACE = (size_t)64 << 20;

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

static void lt_create(void) {
  if (lt.handle != NULL) return;
  CUBLAS_CHECK(cublasLtCreate(&lt.handle));
  CUBLAS_CHECK(cublasLtMatmulDescCreate(&lt.operation, CUBLAS_COMPUTE_32F, CUDA_R_32F));
  CUDA_CHECK(cudaMalloc(&lt.workspace, WORKSPACE));
}

/* By columns: C^T (n,m) = B^T (n,k) A^T (k,m). Chooses the fastest algorithm. */
static void lt_open(const Buffers<__nv_bfloat16> *buffers) {
  const int m = buffers->m, n = buffers->n, k = buffers->k;
  lt_create();
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
  GpuTimer timer = gpu_timer_open();
  int repeats = (int)fmin(1e11 / (2.0 * m * n * k), 199) + 1;
  for (int i = 0; i < count; i++) {
    if (found[i].state != CUBLAS_STATUS_SUCCESS) continue;
    lt.algorithm = found[i].algo;
    double sample[3];
    for (int s = -1; s < 3; s++) {
      gpu_timer_start(&timer);
      for (int r = 0; r < repeats; r++, set = (set + 1) % buffers->sets)
        lt_run(buffers->c[set], buffers->a[set], buffers->b[set], m, n, k);
      double seconds = gpu_timer_stop(&timer) / repeats;
      if (s >= 0) sample[s] = seconds;
    }
    double seconds = timer_stats(sample, 3).median;
    if (i == 0) first = seconds;
    if (best < 0 || seconds < fastest) best = i, fastest = seconds;
  }
  gpu_timer_close(&timer);
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

static Version<__nv_bfloat16> versions[MAX_VERSIONS] = {
    {"cublasLt", lt_run, NULL},
    {"cublasGemmEx", matmul_cublas_bfloat16, NULL},
    {"wmma_naive", matmul_wmma_naive, mma_refusal},
    {"wmma_tiled", matmul_wmma_tiled, mma_refusal},
    {"wmma_fragments", matmul_wmma_fragments, mma_refusal},
    {"mma", matmul_mma, mma_refusal},
    {"wgmma_one_stage", matmul_wgmma_one_stage, matmul_wgmma_refusal},
    {"wgmma_ring", matmul_wgmma_ring, matmul_wgmma_refusal},
    {"wgmma_persistent", matmul_wgmma_persistent, matmul_wgmma_refusal},
    {"wgmma_cluster", matmul_wgmma_cluster, matmul_wgmma_refusal},
    {"wgmma", matmul_wgmma, matmul_wgmma_refusal},
};
static int version_count = 11;

/* --bias-relu: max(0, A B + bias). The peer does it in its epilogue. */
static float *bias;

static void wgmma_bias_relu(float *c, const __nv_bfloat16 *a, const __nv_bfloat16 *b, int m, int n, int k) {
  matmul_wgmma_bias_relu(c, a, b, bias, m, n, k);
}

static void wgmma_then_bias_relu(float *c, const __nv_bfloat16 *a, const __nv_bfloat16 *b, int m, int n, int k) {
  size_t count = (size_t)m * n;
  matmul_wgmma(c, a, b, m, n, k);
  matmul_bias_relu_kernel<<<(unsigned)((count + 255) / 256), 256>>>(c, bias, count, n);
  CUDA_CHECK_LAUNCH();
}

static const Version<__nv_bfloat16> fused[] = {
    {"cublasLt, epilogue RELU_BIAS", lt_run, NULL},
    {"wgmma, then bias + ReLU", wgmma_then_bias_relu, matmul_wgmma_refusal},
    {"wgmma_bias_relu", wgmma_bias_relu, matmul_wgmma_refusal},
};

static const Version<__nv_bfloat16> sweep[] = {
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

static bool bias_relu;

static int bench(int m, int n, int k, const char *only, int blocks) {
  Buffers<__nv_bfloat16> buffers = buffers_open<__nv_bfloat16>(m, n, k);
  if (bias_relu) {
    buffers.bias = bias = normal_matrix<float>((size_t)n, 1000);
    cublasLtEpilogue_t epilogue = CUBLASLT_EPILOGUE_RELU_BIAS;
    lt_create();
    CUBLAS_CHECK(
        cublasLtMatmulDescSetAttribute(lt.operation, CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue, sizeof epilogue));
    CUBLAS_CHECK(cublasLtMatmulDescSetAttribute(lt.operation, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &bias, sizeof bias));
  }
  lt_open(&buffers);
  int chosen[MAX_VERSIONS], count = 0;
  for (int v = 0; v < version_count; v++)
    if (v == 0 || only == NULL || strstr(versions[v].name, only) != NULL) chosen[count++] = v;
  int wrong = buffers_bench(&buffers, versions, chosen, count, blocks, 1e-4);
  lt_close();
  buffers_close(&buffers);
  if (bias_relu) CUDA_CHECK(cudaFree(bias));
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
  bias_relu = gemm_bench_option(argc, argv, "--bias-relu");
  for (size_t j = 0; j < sizeof fused / sizeof *fused && bias_relu; j++) versions[j] = fused[j];
  if (bias_relu) version_count = (int)(sizeof fused / sizeof *fused);
  for (size_t j = 0; j < sizeof sweep / sizeof *sweep && gemm_bench_option(argc, argv, "--sweep"); j++)
    versions[version_count++] = sweep[j];
  refuse();
  return gemm_bench_main("bfloat16_gemm_bench", argc, argv, bench, versions, version_count);
}
#endif
