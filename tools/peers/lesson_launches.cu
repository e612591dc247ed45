/* lesson_launches.cu - every rung of the first lessons once, for a comparison of the inspector with a GPU's counters.
 *
 *     simt/test/hardware/measure.sh OUT lessons lesson_launches      on a GPU: OUT/lessons.csv
 *
 * Each on a shape that its tiles divide and on one that they do not. With as many multiprocessors as the GPU has
 * (SIMT_MULTIPROCESSORS=132 for an H200) the emulator makes the same launches. */
#include "common/device.h"
#include "phase1_building_blocks/01_vector_add/vector_add.cuh"
#include "phase1_building_blocks/02_transpose/transpose.cuh"
#include "phase1_building_blocks/03_matmul_naive/matmul_naive.cuh"
#include "phase1_building_blocks/04_matmul_tiled/matmul_tiled.cuh"
#include "phase1_building_blocks/05_matmul_register_tiled/matmul_register_tiled.cuh"
#include "phase1_building_blocks/06_matmul_tuned/matmul_tuned.cuh"
#include "phase1_building_blocks/11_random_init/random_init.cuh"

enum { FLOATS = 1 << 20 };

typedef void Matmul(float *c, const float *a, const float *b, int m, int n, int k);

int main(void) {
  float *x[3];
  for (int i = 0; i < 3; i++) {
    x[i] = (float *)device_alloc(DEVICE_GPU, FLOATS * sizeof *x[i]);
    random_uniform_fill_gpu(x[i], FLOATS, -1, 1, 1, i);
  }

  const size_t lengths[] = {1 << 18, 100003};
  for (size_t n : lengths) {
    vector_add(x[0], x[1], x[2], n);
    vector_add_stride(x[0], x[1], x[2], n);
    vector_add_float4(x[0], x[1], x[2], n);
  }

  const int sides[][2] = {{256, 128}, {131, 201}};
  for (const int *s : sides) {
    transpose_naive_rows(x[0], x[1], s[0], s[1]);
    transpose_naive_columns(x[0], x[1], s[0], s[1]);
    transpose_tiled(x[0], x[1], s[0], s[1]);
    transpose_padded(x[0], x[1], s[0], s[1]);
    transpose_vectorised(x[0], x[1], s[0], s[1]);
  }

  Matmul *const rungs[] = {matmul_naive_columns, matmul_naive,          matmul_tiled_16,   matmul_tiled,
                           matmul_register_1d,   matmul_register_2d,    matmul_vectorised, matmul_conflict_free,
                           matmul_warp_tiled,    matmul_double_buffered};
  const int shapes[][3] = {{256, 256, 64}, {131, 201, 71}};
  for (const int *s : shapes) {
    for (Matmul *matmul : rungs) matmul(x[0], x[1], x[2], s[0], s[1], s[2]);
    for (const auto &configuration : matmul_tuned_configurations)
      configuration.launch(x[0], x[1], x[2], s[0], s[1], s[2]);
  }
  for (int i = 0; i < 3; i++) device_free(DEVICE_GPU, x[i]);
  return 0;
}
