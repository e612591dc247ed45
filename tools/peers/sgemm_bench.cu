/* sgemm_bench.cu - the rungs of the matmul ladder beside cublasSgemm, in one run (gemm_bench.cuh).
 *
 *     bazel run --config=cuda //tools/peers:sgemm_bench -- 4096 8192          # sizes: N, or MxNxK
 *     bazel run --config=cuda //tools/peers:sgemm_bench -- --only=tuned 1024 1536 2048
 *     bazel run --config=cuda //tools/peers:sgemm_bench -- --sweep 4096       # each configuration of matmul_tuned
 *     bazel run --config=cuda //tools/peers:sgemm_bench -- --only=s 1x4096x4096 8x4096x4096 64x4096x4096
 *     bazel run --config=cuda //tools/peers:sgemm_bench -- 256x64x64x64       # BATCHxMxNxK: 256 products
 *
 * Float32 throughout (CUBLAS_PEDANTIC_MATH). The peer of a batch is cublasSgemmStridedBatched. */
#include "phase1_building_blocks/03_matmul_naive/matmul_cublas.cuh"
#include "phase1_building_blocks/03_matmul_naive/matmul_naive.cuh"
#include "phase1_building_blocks/04_matmul_tiled/matmul_tiled.cuh"
#include "phase1_building_blocks/05_matmul_register_tiled/matmul_register_tiled.cuh"
#include "phase1_building_blocks/06_matmul_tuned/matmul_small_lesson.cuh"
#include "tools/peers/gemm_bench.cuh"

/* The first is the peer. */
static Version<float> versions[MAX_VERSIONS] = {
    {"cublasSgemm", matmul_cublas, NULL, matmul_cublas_batched},
    {"naive_columns", matmul_naive_columns, NULL, NULL},
    {"naive", matmul_naive, NULL, NULL},
    {"tiled_16", matmul_tiled_16, NULL, NULL},
    {"tiled", matmul_tiled, NULL, NULL},
    {"register_1d", matmul_register_1d, NULL, NULL},
    {"register_2d", matmul_register_2d, NULL, NULL},
    {"vectorised", matmul_vectorised, NULL, NULL},
    {"conflict_free", matmul_conflict_free, NULL, NULL},
    {"warp_tiled", matmul_warp_tiled, NULL, NULL},
    {"double_buffered", matmul_double_buffered, NULL, NULL},
    {"tuned_tiled", matmul_tuned_tiled, NULL, matmul_each_of<matmul_tuned_tiled>},
    {"sliced", matmul_sliced, NULL, NULL},
    {"skinny", matmul_skinny, NULL, NULL},
    {"tuned", matmul_tuned, NULL, NULL},
    {"batched", NULL, NULL, matmul_batched},
};
static int version_count = 16;
static int first = 1; /* of those beside the peer */

static int batch_bench(int batch, int m, int n, int k, const char *only, int blocks) {
  Buffers<float> buffers = buffers_open<float>(m, n, k, batch);
  int chosen[MAX_VERSIONS], count = 0;
  for (int v = 0; v < version_count; v++) {
    bool can = batch > 0 ? versions[v].launch_batch != NULL : versions[v].launch != NULL;
    if (v == 0 || (can && v >= first && (only == NULL || strstr(versions[v].name, only) != NULL))) chosen[count++] = v;
  }
  int wrong = buffers_bench(&buffers, versions, chosen, count, blocks, INFINITY); /* the tests know what is too much */
  buffers_close(&buffers);
  return wrong;
}

static int bench(int m, int n, int k, const char *only, int blocks) { return batch_bench(0, m, n, k, only, blocks); }

int main(int argc, char **argv) {
  if (gemm_bench_option(argc, argv, "--sweep")) {
    first = version_count;
    for (size_t j = 0; j < sizeof matmul_tuned_configurations / sizeof *matmul_tuned_configurations; j++) {
      versions[version_count].name = matmul_tuned_configurations[j].name;
      versions[version_count++].launch = matmul_tuned_configurations[j].launch;
    }
  }
  return gemm_bench_main("sgemm_bench", argc, argv, bench, versions, version_count, batch_bench);
}
