/* split_gemm_bench.cu - products of floats by tensor cores (lesson 15) beside cublasSgemm, in one run (gemm_bench.cuh).
 *
 *     bazel run --config=cuda //tools/peers:split_gemm_bench -- 4096 8192     # N, or MxNxK
 *
 * The peer is cublasSgemm with CUBLAS_PEDANTIC_MATH: float32 throughout. Our times include the kernels that split A and
 * B. The second table has the errors for entries with random signs and sizes from 1e-4 to 1e4, all decades alike. */
#include "phase1_building_blocks/03_matmul_naive/matmul_cublas.cuh"
#include "phase1_building_blocks/15_matmul_tensor_core/matmul_split_wgmma.cuh"
#include "phase1_building_blocks/15_matmul_tensor_core/matmul_split_wmma.cuh"
#include "tools/peers/gemm_bench.cuh"

#ifdef SIMT_REWRITTEN

int main(void) { die("split_gemm_bench: emulated times mean nothing: needs a GPU"); }

#else

/* ---------------------------------------------------------------------------------------------------------------- */
/* The versions. The first is the peer. */

static void *workspace; /* for the sizes being measured */

template <void (*LAUNCH)(float *, const float *, const float *, int, int, int, void *)>
static void with_workspace(float *c, const float *a, const float *b, int m, int n, int k) {
  LAUNCH(c, a, b, m, n, k, workspace);
}

static Version<float> versions[MAX_VERSIONS] = {
    {"cublasSgemm", matmul_cublas, NULL},
    {"wmma_tf32", with_workspace<matmul_split_wmma>, mma_refusal},
    {"wgmma_tf32", with_workspace<matmul_split_tf32>, matmul_wgmma_refusal},
    {"wgmma_half", with_workspace<matmul_split_half>, matmul_wgmma_refusal},
};
static const int version_count = 4;

/* ---------------------------------------------------------------------------------------------------------------- */
/* Entries of very different size */

static __global__ void decades_fill_kernel(float *x, size_t n, uint64_t stream) {
  size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  PhiloxBlock random = philox4x32(3, stream, i);
  double size = pow(10.0, -4 + 8 * (random.word[0] / 4294967296.0));
  x[i] = (float)(random.word[1] % 2 ? -size : size);
}

static void decades_fill(float *x, size_t n, uint64_t stream) {
  decades_fill_kernel<<<(unsigned)((n + 255) / 256), 256>>>(x, n, stream);
  CUDA_CHECK_LAUNCH();
}

/* In the first set of buffers, which gets other entries. */
static void decades_errors(const Buffers<float> *buffers, const int *chosen, int count) {
  const int m = buffers->m, n = buffers->n, k = buffers->k;
  double peer = 0;
  decades_fill(buffers->a[0], (size_t)m * k, 0);
  decades_fill(buffers->b[0], (size_t)k * n, 1);
  printf("entries from 1e-4 to 1e4              error   x the peer's\n");
  for (int i = 0; i < count; i++) {
    CUDA_CHECK(cudaMemset(buffers->c[0], 0xFF, (size_t)m * n * sizeof(float)));
    version_run(&versions[chosen[i]], buffers, 0);
    double error = largest_error(buffers);
    if (i == 0) peer = error;
    printf("%-32s %10.2e %14.2f\n", versions[chosen[i]].name, error, error / peer);
  }
}

static int bench(int m, int n, int k, const char *only, int blocks) {
  Buffers<float> buffers = buffers_open<float>(m, n, k);
  CUDA_CHECK(cudaMalloc(&workspace, matmul_split_workspace(MATMUL_SPLIT_TF32, m, n, k))); /* the larger one */
  int chosen[MAX_VERSIONS], count = 0;
  for (int v = 0; v < version_count; v++)
    if (versions[v].refusal != NULL && versions[v].refusal() != NULL)
      printf("%s: left out: %s\n", versions[v].name, versions[v].refusal());
    else if (v == 0 || only == NULL || strstr(versions[v].name, only) != NULL)
      chosen[count++] = v;
  int wrong = buffers_bench(&buffers, versions, chosen, count, blocks, 1e-4);
  decades_errors(&buffers, chosen, count);
  CUDA_CHECK(cudaFree(workspace));
  buffers_close(&buffers);
  return wrong;
}

int main(int argc, char **argv) {
  return gemm_bench_main("split_gemm_bench", argc, argv, bench, versions, version_count);
}
#endif
