/* sgemm_bench.cu - the rungs of the matmul ladder beside cublasSgemm, in one run.
 *
 *     bazel run --config=cuda //tools/peers:sgemm_bench -- 4096 8192          # sizes: N, or MxNxK
 *     bazel run --config=cuda //tools/peers:sgemm_bench -- --only=tuned 1024 1536 2048
 *     bazel run --config=cuda //tools/peers:sgemm_bench -- --sweep 4096       # each configuration of matmul_tuned
 *
 * Inputs are N(0,1): numbers with few bits set draw less power, and the clock is higher. Float32 throughout
 * (CUBLAS_PEDANTIC_MATH). In each of the blocks every version runs once, in an order that differs from block to block,
 * so that clock and temperature are the same for all; each time in other buffers, so that nothing is left in the L2
 * cache. A version's time is the median of its blocks; its speed against cuBLAS is the median of the blocks' ratios.
 * The error is the largest of 4096 elements against sums in float64, as a fraction of their root mean square. */
#include <stdio.h>
#include <stdlib.h>

#include "common/philox.h"
#include "common/timer.h"
#include "phase1_building_blocks/matmul_cublas.cuh"
#include "phase1_building_blocks/matmul_naive.cuh"
#include "phase1_building_blocks/matmul_register_tiled.cuh"
#include "phase1_building_blocks/matmul_tiled.cuh"
#include "phase1_building_blocks/matmul_tuned.cuh"

enum { BLOCKS = 21, MAX_BLOCKS = 64, MAX_VERSIONS = 64, MAX_SETS = 32, SAMPLES = 4096 };

static const size_t COLD_BYTES = (size_t)256 << 20; /* of buffers: several times the L2 cache */

typedef struct Version {
  const char *name;
  MatmulLauncher *launch;
} Version;

/* The first is the peer. */
static Version versions[MAX_VERSIONS] = {
    {"cublasSgemm", matmul_cublas},
    {"naive_columns", matmul_naive_columns},
    {"naive", matmul_naive},
    {"tiled_16", matmul_tiled_16},
    {"tiled", matmul_tiled},
    {"register_1d", matmul_register_1d},
    {"register_2d", matmul_register_2d},
    {"vectorised", matmul_vectorised},
    {"conflict_free", matmul_conflict_free},
    {"warp_tiled", matmul_warp_tiled},
    {"double_buffered", matmul_double_buffered},
    {"tuned", matmul_tuned},
};
static int version_count = 12;
static double log_sum[MAX_VERSIONS]; /* over the sizes, of the speed against cuBLAS */

static __global__ void normal_fill_kernel(float *x, size_t n, uint64_t stream) {
  size_t i = 2 * ((size_t)blockIdx.x * blockDim.x + threadIdx.x);
  if (i >= n) return;
  float first, second;
  philox_normal(philox4x32(1, stream, i), &first, &second);
  x[i] = first;
  if (i + 1 < n) x[i + 1] = second;
}

static float *normal_matrix(size_t n, uint64_t stream) {
  float *x;
  CUDA_CHECK(cudaMalloc((void **)&x, n * sizeof *x));
  normal_fill_kernel<<<(unsigned)((n / 2 + 256) / 256), 256>>>(x, n, stream);
  CUDA_CHECK_LAUNCH();
  return x;
}

/* Sample i is an element of C anywhere; expected[i] is its value in float64. */
static __host__ __device__ size_t sample_place(int i, size_t n) {
  PhiloxBlock block = philox4x32(2, 0, i);
  return (((uint64_t)block.word[0] << 32) | block.word[1]) % n;
}

static __global__ void sample_kernel(double *expected, float *actual, const float *c, const float *a, const float *b,
                                     int m, int n, int k) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  size_t place = sample_place(i, (size_t)m * n), row = place / n, col = place % n;
  actual[i] = c[place];
  if (expected == NULL) return;
  double sum = 0;
  for (int j = 0; j < k; j++) sum += (double)a[row * k + j] * b[(size_t)j * n + col];
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

static void bench(int m, int n, int k, const char *only, int first, int blocks) {
  size_t bytes = ((size_t)m * k + (size_t)k * n + (size_t)m * n) * sizeof(float);
  int sets = (int)(COLD_BYTES / bytes) + 1;
  if (sets < 2) sets = 2;
  if (sets > MAX_SETS) sets = MAX_SETS;
  float *a[MAX_SETS], *b[MAX_SETS], *c[MAX_SETS];
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

  int chosen[MAX_VERSIONS], count = 0;
  for (int v = 0; v < version_count; v++)
    if (v == 0 || (v >= first && (only == NULL || strstr(versions[v].name, only) != NULL))) chosen[count++] = v;

  double error[MAX_VERSIONS];
  for (int i = 0; i < count; i++) { /* also warms up */
    CUDA_CHECK(cudaMemset(c[0], 0xFF, (size_t)m * n * sizeof(float)));
    versions[chosen[i]].launch(c[0], a[0], b[0], m, n, k);
    sample_kernel<<<SAMPLES / 256, 256>>>(i == 0 ? device_expected : NULL, device_actual, c[0], a[0], b[0], m, n, k);
    CUDA_CHECK_LAUNCH();
    CUDA_CHECK(cudaMemcpy(actual, device_actual, SAMPLES * sizeof *actual, cudaMemcpyDeviceToHost));
    if (i == 0) CUDA_CHECK(cudaMemcpy(expected, device_expected, SAMPLES * sizeof *expected, cudaMemcpyDeviceToHost));
    error[i] = largest_error(expected, actual);
  }

  double work = 2.0 * m * n * k;
  int repeats = (int)fmin(4e10 / work, 199) + 1; /* a millisecond: an event is exact to half a microsecond */
  GpuTimer timer = gpu_timer_open();
  for (int block = 0, set = 0; block < blocks; block++)
    for (int i = 0; i < count; i++) {
      int v = (i * (block % 2 ? count - 1 : 1) + block) % count;   /* forwards, then backwards, from another start */
      versions[chosen[v]].launch(c[set], a[set], b[set], m, n, k); /* not timed: the clock settles */
      gpu_timer_start(&timer);
      for (int r = 0; r < repeats; r++) {
        set = (set + 1) % sets;
        versions[chosen[v]].launch(c[set], a[set], b[set], m, n, k);
      }
      seconds[v][block] = gpu_timer_stop(&timer) / repeats;
    }
  gpu_timer_close(&timer);

  printf("\n%d x %d x %d, %d blocks of %d, %d sets of buffers\n", m, n, k, blocks, repeats, sets);
  printf("%-28s %10s %9s %9s %10s\n", "version", "us", "TFLOP/s", "cuBLAS x", "error");
  for (int i = count - 1; i >= 0; i--) { /* the peer last: timer_stats() sorts its times */
    double ratio[MAX_BLOCKS];
    for (int block = 0; block < blocks; block++) ratio[block] = seconds[0][block] / seconds[i][block];
    double faster = timer_stats(ratio, blocks).median, median = timer_stats(seconds[i], blocks).median;
    printf("%-28s %10.1f %9.2f %9.3f %10.2e\n", versions[chosen[i]].name, 1e6 * median, 1e-12 * work / median, faster,
           error[i]);
    log_sum[chosen[i]] += log(faster);
  }
  fflush(stdout);
  for (int i = 0; i < sets; i++) {
    CUDA_CHECK(cudaFree(a[i]));
    CUDA_CHECK(cudaFree(b[i]));
    CUDA_CHECK(cudaFree(c[i]));
  }
  CUDA_CHECK(cudaFree(device_expected));
  CUDA_CHECK(cudaFree(device_actual));
  free(expected);
  free(actual);
}

int main(int argc, char **argv) {
  const char *only = NULL;
  int blocks = BLOCKS, sizes = 0, first = 1;
  for (int i = 1; i < argc; i++) {
    int m, n, k;
    char rest;
    if (strncmp(argv[i], "--only=", 7) == 0) {
      only = argv[i] + 7;
    } else if (strcmp(argv[i], "--sweep") == 0) {
      first = version_count;
      for (size_t j = 0; j < sizeof matmul_tuned_configurations / sizeof *matmul_tuned_configurations; j++) {
        versions[version_count].name = matmul_tuned_configurations[j].name;
        versions[version_count++].launch = matmul_tuned_configurations[j].launch;
      }
    } else if (sscanf(argv[i], "--blocks=%d%c", &blocks, &rest) == 1 && blocks > 0 && blocks <= MAX_BLOCKS) {
      continue;
    } else if (sscanf(argv[i], "%dx%dx%d%c", &m, &n, &k, &rest) == 3 && m > 0 && n > 0 && k > 0) {
      bench(m, n, k, only, first, blocks);
      sizes++;
    } else if (sscanf(argv[i], "%d%c", &n, &rest) == 1 && n > 0) {
      bench(n, n, n, only, first, blocks);
      sizes++;
    } else {
      fprintf(stderr,
              "sgemm_bench: %s: expected a size, N or MxNxK, --only=PART_OF_A_NAME, --sweep or --blocks=1..%d\n",
              argv[i], MAX_BLOCKS);
      return 2;
    }
  }
  if (sizes == 0) {
    fprintf(stderr, "usage: sgemm_bench [--only=PART_OF_A_NAME] [--sweep] [--blocks=N] SIZE...\n");
    return 2;
  }
  if (sizes == 1) return 0;
  printf("\n%-28s cuBLAS x, geometric mean of %d sizes\n", "version", sizes);
  for (int v = 0; v < version_count; v++)
    if (log_sum[v] != 0) printf("%-28s %8.3f\n", versions[v].name, exp(log_sum[v] / sizes));
  return 0;
}
