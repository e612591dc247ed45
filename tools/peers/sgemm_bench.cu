/* sgemm_bench.cu - the rungs of the matmul ladder beside cublasSgemm, in one run (gemm_bench.cuh).
 *
 *     bazel run --config=cuda //tools/peers:sgemm_bench -- 4096 8192          # sizes: N, or MxNxK
 *     bazel run --config=cuda //tools/peers:sgemm_bench -- --only=tuned 1024 1536 2048
 *     bazel run --config=cuda //tools/peers:sgemm_bench -- --sweep 4096       # each configuration of matmul_tuned
 *
 * Float32 throughout (CUBLAS_PEDANTIC_MATH). */
#include "phase1_building_blocks/03_matmul_naive/matmul_cublas.cuh"
#include "phase1_building_blocks/03_matmul_naive/matmul_naive.cuh"
#include "phase1_building_blocks/04_matmul_tiled/matmul_tiled.cuh"
#include "phase1_building_blocks/05_matmul_register_tiled/matmul_register_tiled.cuh"
#include "phase1_building_blocks/06_matmul_tuned/matmul_tuned.cuh"
#include "tools/peers/gemm_bench.cuh"

/* The first is the peer. */
static Version<float> versions[MAX_VERSIONS] = {
    {"cublasSgemm", matmul_cublas, NULL},
    {"naive_columns", matmul_naive_columns, NULL},
    {"naive", matmul_naive, NULL},
    {"tiled_16", matmul_tiled_16, NULL},
    {"tiled", matmul_tiled, NULL},
    {"register_1d", matmul_register_1d, NULL},
    {"register_2d", matmul_register_2d, NULL},
    {"vectorised", matmul_vectorised, NULL},
    {"conflict_free", matmul_conflict_free, NULL},
    {"warp_tiled", matmul_warp_tiled, NULL},
    {"double_buffered", matmul_double_buffered, NULL},
    {"tuned", matmul_tuned, NULL},
};
static int version_count = 12;
static int first = 1; /* of those beside the peer */

static int bench(int m, int n, int k, const char *only, int blocks) {
  Buffers<float> buffers = buffers_open<float>(m, n, k);
  int chosen[MAX_VERSIONS], count = 0;
  for (int v = 0; v < version_count; v++)
    if (v == 0 || (v >= first && (only == NULL || strstr(versions[v].name, only) != NULL))) chosen[count++] = v;
  int wrong = buffers_bench(&buffers, versions, chosen, count, blocks, INFINITY); /* the tests know what is too much */
  buffers_close(&buffers);
  return wrong;
}

int main(int argc, char **argv) {
  if (gemm_bench_option(argc, argv, "--sweep")) {
    first = version_count;
    for (size_t j = 0; j < sizeof matmul_tuned_configurations / sizeof *matmul_tuned_configurations; j++) {
      versions[version_count].name = matmul_tuned_configurations[j].name;
      versions[version_count++].launch = matmul_tuned_configurations[j].launch;
    }
  }
  return gemm_bench_main("sgemm_bench", argc, argv, bench, versions, version_count);
}
