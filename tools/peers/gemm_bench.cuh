/* gemm_bench.cuh - versions of C (M,N) = A (M,K) B (K,N) beside a peer, in one run: for sgemm_bench (T float) and
 * bfloat16_gemm_bench (T __nv_bfloat16); C is float. Also of many such products at a time: C (BATCH,M,N), and so on.
 *
 * Inputs are N(0,1): numbers with few bits set draw less power, and the clock is higher. In each of the blocks every
 * version runs once, in an order that differs from block to block, so that clock and temperature are the same for all;
 * each time in other buffers, so that nothing is left in the L2 cache. The launches of a short version are recorded in
 * a graph: otherwise their time would be that of launching them. A version's time is the median of its blocks;
 * its speed against the peer is the median of the ratios. The error is the largest of 4096 elements against sums
 * in float64, as a fraction of their root mean square. */
#ifndef TOOLS_PEERS_GEMM_BENCH_CUH
#define TOOLS_PEERS_GEMM_BENCH_CUH

#include <cuda_bf16.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/check.h"
#include "common/error.h"
#include "common/philox.h"
#include "common/timer.h"

enum { BLOCKS = 21, MAX_BLOCKS = 64, MAX_VERSIONS = 64, MAX_SETS = 32, SAMPLES = 4096 };

#ifdef CUDA_API_PER_THREAD_DEFAULT_STREAM
#define DEFAULT_STREAM cudaStreamPerThread
#else
#define DEFAULT_STREAM cudaStreamLegacy
#endif

static const size_t COLD_BYTES = (size_t)256 << 20; /* of buffers: several times the L2 cache */

template <typename T>
struct Version {
  const char *name;
  void (*launch)(float *c, const T *a, const T *b, int m, int n, int k);
  const char *(*refusal)(void); /* NULL: runs everywhere */
  void (*launch_batch)(float *c, const T *a, const T *b, int m, int n, int k, int batch) = NULL; /* NULL: one product */
};

/* ---------------------------------------------------------------------------------------------------------------- */
/* Buffers: `sets` of them, used in turn */

template <typename T>
struct Buffers {
  int m, n, k, sets;
  int batch; /* 0: a product, for launch; else so many products, for launch_batch */
  T *a[MAX_SETS], *b[MAX_SETS];
  float *c[MAX_SETS];
  const float *bias; /* (n): C = max(0, A B + bias); NULL: C = A B */
};

static inline __device__ void element_set(float *x, float value) { *x = value; }
static inline __device__ void element_set(__nv_bfloat16 *x, float value) { *x = __float2bfloat16(value); }
static inline __device__ double element_get(float x) { return x; }
static inline __device__ double element_get(__nv_bfloat16 x) { return __bfloat162float(x); }

template <typename T>
static __global__ void normal_fill_kernel(T *x, size_t n, uint64_t stream) {
  size_t i = 2 * ((size_t)blockIdx.x * blockDim.x + threadIdx.x);
  if (i >= n) return;
  float first, second;
  philox_normal(philox4x32(1, stream, i), &first, &second);
  element_set(&x[i], first);
  if (i + 1 < n) element_set(&x[i + 1], second);
}

template <typename T>
static T *normal_matrix(size_t n, uint64_t stream) {
  T *x;
  CUDA_CHECK(cudaMalloc((void **)&x, n * sizeof *x));
  normal_fill_kernel<<<(unsigned)((n / 2 + 256) / 256), 256>>>(x, n, stream);
  CUDA_CHECK_LAUNCH();
  return x;
}

template <typename T>
static Buffers<T> buffers_open(int m, int n, int k, int batch = 0) {
  Buffers<T> buffers = {};
  size_t products = batch > 0 ? batch : 1;
  size_t bytes = products * (((size_t)m * k + (size_t)k * n) * sizeof(T) + (size_t)m * n * sizeof(float));
  int sets = (int)(COLD_BYTES / bytes) + 1;
  if (sets < 2) sets = 2;
  if (sets > MAX_SETS) sets = MAX_SETS;
  buffers.m = m, buffers.n = n, buffers.k = k, buffers.sets = sets, buffers.batch = batch;
  for (int i = 0; i < sets; i++) {
    buffers.a[i] = normal_matrix<T>(products * m * k, 2 * i);
    buffers.b[i] = normal_matrix<T>(products * k * n, 2 * i + 1);
    CUDA_CHECK(cudaMalloc((void **)&buffers.c[i], products * m * n * sizeof(float)));
  }
  return buffers;
}

template <typename T>
static void buffers_close(Buffers<T> *buffers) {
  for (int i = 0; i < buffers->sets; i++) {
    CUDA_CHECK(cudaFree(buffers->a[i]));
    CUDA_CHECK(cudaFree(buffers->b[i]));
    CUDA_CHECK(cudaFree(buffers->c[i]));
  }
}

/* On buffer set `set`. */
template <typename T>
static void version_run(const Version<T> *version, const Buffers<T> *buffers, int set) {
  const int m = buffers->m, n = buffers->n, k = buffers->k;
  if (buffers->batch > 0)
    version->launch_batch(buffers->c[set], buffers->a[set], buffers->b[set], m, n, k, buffers->batch);
  else
    version->launch(buffers->c[set], buffers->a[set], buffers->b[set], m, n, k);
}

/* `launches` of them, in one set of buffers after the other, as a graph. Versions launch to the default stream; where
 * that is the legacy one (CUDA_API_PER_THREAD_DEFAULT_STREAM), nothing can be recorded: NULL. */
template <typename T>
static cudaGraphExec_t version_graph(const Version<T> *version, const Buffers<T> *buffers, int launches) {
  cudaGraphExec_t exec = NULL;
#ifdef CUDA_API_PER_THREAD_DEFAULT_STREAM
  cudaGraph_t graph;
  CUDA_CHECK(cudaStreamBeginCapture(cudaStreamPerThread, cudaStreamCaptureModeThreadLocal));
  for (int i = 0; i < launches; i++) version_run(version, buffers, i % buffers->sets);
  CUDA_CHECK(cudaStreamEndCapture(cudaStreamPerThread, &graph));
  CUDA_CHECK(cudaGraphInstantiate(&exec, graph, 0));
  CUDA_CHECK(cudaGraphDestroy(graph));
#else
  (void)version, (void)buffers, (void)launches;
#endif
  return exec;
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* Errors */

/* Sample i is an element of C anywhere; expected[i] is its value in float64. */
template <typename T>
static __global__ void sample_kernel(double *expected, float *actual, const float *c, const T *a, const T *b,
                                     const float *bias, size_t products, int m, int n, int k) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  PhiloxBlock block = philox4x32(2, 0, i);
  size_t place = (((uint64_t)block.word[0] << 32) | block.word[1]) % (products * m * n);
  size_t row = place / n, col = place % n; /* row of all products' A, one below the other */
  actual[i] = c[place];
  b += row / m * k * n;
  double sum = 0;
  for (int j = 0; j < k; j++) sum += element_get(a[row * k + j]) * element_get(b[(size_t)j * n + col]);
  expected[i] = bias == NULL ? sum : fmax(sum + bias[col], 0.0);
}

/* Of C in the first set of buffers. */
template <typename T>
static double largest_error(const Buffers<T> *buffers) {
  static double *expected, *device_expected;
  static float *actual, *device_actual;
  if (expected == NULL) {
    expected = (double *)xmalloc(SAMPLES * sizeof *expected);
    actual = (float *)xmalloc(SAMPLES * sizeof *actual);
    CUDA_CHECK(cudaMalloc((void **)&device_expected, SAMPLES * sizeof *expected));
    CUDA_CHECK(cudaMalloc((void **)&device_actual, SAMPLES * sizeof *actual));
  }
  sample_kernel<<<SAMPLES / 256, 256>>>(device_expected, device_actual, buffers->c[0], buffers->a[0], buffers->b[0],
                                        buffers->bias, buffers->batch > 0 ? buffers->batch : 1, buffers->m, buffers->n,
                                        buffers->k);
  CUDA_CHECK_LAUNCH();
  CUDA_CHECK(cudaMemcpy(actual, device_actual, SAMPLES * sizeof *actual, cudaMemcpyDeviceToHost));
  CUDA_CHECK(cudaMemcpy(expected, device_expected, SAMPLES * sizeof *expected, cudaMemcpyDeviceToHost));
  double worst = 0, squares = 0;
  for (int i = 0; i < SAMPLES; i++) {
    double error = fabs(actual[i] - expected[i]);
    if (!(error <= worst)) worst = error; /* NaN too */
    squares += expected[i] * expected[i];
  }
  return worst / sqrt(squares / SAMPLES);
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* The comparison */

static double log_sum[MAX_VERSIONS]; /* over the sizes, of the speed against the peer */

/* The `count` versions chosen[], the first of them the peer. More than `tolerated` is wrong: returns how many are. */
template <typename T>
static int buffers_bench(const Buffers<T> *buffers, const Version<T> *versions, const int *chosen, int count,
                         int blocks, double tolerated) {
  double error[MAX_VERSIONS];
  static double seconds[MAX_VERSIONS][MAX_BLOCKS];
  const int m = buffers->m, n = buffers->n, k = buffers->k, batch = buffers->batch > 0 ? buffers->batch : 1;
  int wrong = 0, repeats[MAX_VERSIONS];
  cudaGraphExec_t graph[MAX_VERSIONS];
  GpuTimer timer = gpu_timer_open();
  for (int i = 0; i < count; i++) { /* also warms up */
    CUDA_CHECK(cudaMemset(buffers->c[0], 0xFF, (size_t)batch * m * n * sizeof(float)));
    version_run(&versions[chosen[i]], buffers, 0);
    error[i] = largest_error(buffers);
    wrong += !(error[i] <= tolerated);
    gpu_timer_start(&timer);
    version_run(&versions[chosen[i]], buffers, 1);
    double once = gpu_timer_stop(&timer);
    repeats[i] = once > 2e-3 ? 1 : (int)fmin(2e-3 / once, 199) + 1; /* 2 ms: an event is exact to half a us */
  }
  for (int i = 0; i < count; i++) /* now each version has allocated what it keeps */
    graph[i] = repeats[i] > 1 ? version_graph(&versions[chosen[i]], buffers, repeats[i]) : NULL;
  for (int block = 0, set = 0; block < blocks; block++)
    for (int i = 0; i < count; i++) {
      int v = (i * (block % 2 ? count - 1 : 1) + block) % count; /* forwards, then backwards, from another start */
      version_run(&versions[chosen[v]], buffers, set);           /* not timed: the clock settles */
      gpu_timer_start(&timer);
      if (graph[v] != NULL) CUDA_CHECK(cudaGraphLaunch(graph[v], DEFAULT_STREAM));
      for (int r = 0; r < repeats[v] && graph[v] == NULL; r++) {
        set = (set + 1) % buffers->sets;
        version_run(&versions[chosen[v]], buffers, set);
      }
      seconds[v][block] = gpu_timer_stop(&timer) / repeats[v];
    }
  gpu_timer_close(&timer);
  for (int i = 0; i < count; i++)
    if (graph[i] != NULL) CUDA_CHECK(cudaGraphExecDestroy(graph[i]));

  if (buffers->batch > 0) printf("%d times ", batch);
  printf("%d x %d x %d, %d blocks, %d sets of buffers\n", m, n, k, blocks, buffers->sets);
  printf("%-32s %10s %9s %14s %10s\n", "version", "us", "TFLOP/s", "x the peer", "error");
  for (int i = count - 1; i >= 0; i--) { /* the peer last: timer_stats() sorts its times */
    double ratio[MAX_BLOCKS];
    for (int block = 0; block < blocks; block++) ratio[block] = seconds[0][block] / seconds[i][block];
    double faster = timer_stats(ratio, blocks).median, median = timer_stats(seconds[i], blocks).median;
    printf("%-32s %10.1f %9.2f %14.3f %10.2e%s\n", versions[chosen[i]].name, 1e6 * median,
           2e-12 * batch * m * n * k / median, faster, error[i], error[i] <= tolerated ? "" : "  WRONG");
    log_sum[chosen[i]] += log(faster);
  }
  fflush(stdout);
  return wrong;
}

/* A program of it: the sizes of the command line one after the other. bench() does one, and returns how many versions
 * are wrong. --sweep and --bias-relu are the caller's: gemm_bench_option(). */
typedef int Bench(int m, int n, int k, const char *only, int blocks);
typedef int BatchBench(int batch, int m, int n, int k, const char *only, int blocks);

template <typename T>
static int gemm_bench_main(const char *program, int argc, char **argv, Bench *bench, const Version<T> *versions,
                           int version_count, BatchBench *batch_bench = NULL) {
  const char *only = NULL;
  int blocks = BLOCKS, sizes = 0, wrong = 0;
  for (int i = 1; i < argc; i++) {
    int m, n, k, batch;
    char rest;
    if (strncmp(argv[i], "--only=", 7) == 0) {
      only = argv[i] + 7;
    } else if (strcmp(argv[i], "--sweep") == 0 || strcmp(argv[i], "--bias-relu") == 0) {
      continue;
    } else if (sscanf(argv[i], "--blocks=%d%c", &blocks, &rest) == 1 && blocks > 0 && blocks <= MAX_BLOCKS) {
      continue;
    } else if (sscanf(argv[i], "%dx%dx%dx%d%c", &batch, &m, &n, &k, &rest) == 4 && batch > 0 && m > 0 && n > 0 &&
               k > 0 && batch_bench != NULL) {
      wrong += batch_bench(batch, m, n, k, only, blocks);
      sizes++;
    } else if (sscanf(argv[i], "%dx%dx%d%c", &m, &n, &k, &rest) == 3 && m > 0 && n > 0 && k > 0) {
      wrong += bench(m, n, k, only, blocks);
      sizes++;
    } else if (sscanf(argv[i], "%d%c", &n, &rest) == 1 && n > 0) {
      wrong += bench(n, n, n, only, blocks);
      sizes++;
    } else {
      fprintf(stderr, "%s: %s: expected a size, N or MxNxK%s, --only=PART_OF_A_NAME, --sweep or --blocks=1..%d\n",
              program, argv[i], batch_bench != NULL ? " or BATCHxMxNxK" : "", MAX_BLOCKS);
      return 2;
    }
  }
  if (sizes == 0) {
    fprintf(stderr, "usage: %s [--only=PART_OF_A_NAME] [--sweep] [--blocks=N] SIZE...\n", program);
    return 2;
  }
  if (sizes == 1) return wrong > 0;
  printf("\n%-32s x the peer, geometric mean of %d sizes\n", "version", sizes);
  for (int v = 0; v < version_count; v++)
    if (log_sum[v] != 0) printf("%-32s %8.3f\n", versions[v].name, exp(log_sum[v] / sizes));
  return wrong > 0;
}

/* Is the option anywhere on the command line? */
static inline bool gemm_bench_option(int argc, char **argv, const char *option) {
  for (int i = 1; i < argc; i++)
    if (strcmp(argv[i], option) == 0) return true;
  return false;
}

#endif /* TOOLS_PEERS_GEMM_BENCH_CUH */
