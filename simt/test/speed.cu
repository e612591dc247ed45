/* speed.cu - what emulation costs: nanoseconds per thread for the things that kernels are made of, each the best of
 * several runs.
 *
 *     simt/simtcc simt/test/speed.cu -o speed && ./speed
 *     simt/simtcc --inspect simt/test/speed.cu -o speed && ./speed --short      and with SIMT_INSPECT_SAMPLE=16
 *
 * "per" is one operation of one thread. The matmul is compared with the same three loops in C, on as many OS threads.
 */
#include <cuda_runtime.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define CUDA_CHECK(call)                                                                         \
  do {                                                                                           \
    const cudaError_t status = (call);                                                           \
    if (status != cudaSuccess) {                                                                 \
      fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #call, cudaGetErrorString(status)); \
      exit(1);                                                                                   \
    }                                                                                            \
  } while (0)

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

__global__ void saxpy_kernel(float *y, const float *x, float a, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = a * x[i] + y[i];
}

__global__ void barrier_kernel(float *y, int rounds) {
  __shared__ float s[1024];
  int i = threadIdx.x;
  float v = (float)i;
  for (int r = 0; r < rounds; r++) {
    s[i] = v;
    __syncthreads();
    v += s[(i + 1) & (blockDim.x - 1)];
    __syncthreads();
  }
  y[blockIdx.x * blockDim.x + i] = v;
}

__global__ void shuffle_kernel(float *y, int rounds) {
  float v = (float)threadIdx.x;
  for (int r = 0; r < rounds; r++) v += __shfl_xor_sync(0xffffffff, v, 1 + r % 31);
  y[blockIdx.x * blockDim.x + threadIdx.x] = v;
}

__global__ void matmul_kernel(float *c, const float *a, const float *b, int n) {
  int col = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y * blockDim.y + threadIdx.y;
  if (row >= n || col >= n) return;
  float sum = 0;
  for (int k = 0; k < n; k++) sum += a[row * n + k] * b[k * n + col];
  c[row * n + col] = sum;
}

typedef struct Rows {
  float *c;
  const float *a, *b;
  int n, first, last;
} Rows;

static void *matmul_rows(void *argument) {
  Rows *r = (Rows *)argument;
  for (int row = r->first; row < r->last; row++)
    for (int col = 0; col < r->n; col++) {
      float sum = 0;
      for (int k = 0; k < r->n; k++) sum += r->a[row * r->n + k] * r->b[k * r->n + col];
      r->c[row * r->n + col] = sum;
    }
  return NULL;
}

static double matmul_c(float *c, const float *a, const float *b, int n, int threads) {
  pthread_t thread[64];
  Rows rows[64];
  double start = now();
  for (int t = 0; t < threads; t++) {
    rows[t] = {c, a, b, n, n * t / threads, n * (t + 1) / threads};
    pthread_create(&thread[t], NULL, matmul_rows, &rows[t]);
  }
  for (int t = 0; t < threads; t++) pthread_join(thread[t], NULL);
  return now() - start;
}

/* The best of `runs` times of one launch, in seconds; the expression stands for the launch. */
#define BEST(result, runs, launch)                          \
  do {                                                      \
    result = 1e30;                                          \
    for (int run_ = 0; run_ <= (runs); run_++) {            \
      double start_ = now();                                \
      launch;                                               \
      CUDA_CHECK(cudaDeviceSynchronize());                  \
      double seconds_ = now() - start_;                     \
      if (run_ > 0 && seconds_ < result) result = seconds_; \
    }                                                       \
  } while (0)

static void launch_saxpy(float *y, const float *x, int n) { saxpy_kernel<<<(n + 255) / 256, 256>>>(y, x, 1.5f, n); }
static void launch_barrier(float *y, int blocks, int threads, int rounds) {
  barrier_kernel<<<blocks, threads>>>(y, rounds);
}
static void launch_shuffle(float *y, int blocks, int rounds) { shuffle_kernel<<<blocks, 256>>>(y, rounds); }
static void launch_matmul(float *c, const float *a, const float *b, int n) {
  matmul_kernel<<<dim3((n + 15) / 16, (n + 15) / 16), dim3(16, 16)>>>(c, a, b, n);
}

int main(int argc, char **argv) {
  int shorter = argc > 1 && strcmp(argv[1], "--short") == 0, runs = shorter ? 2 : 7;
  int n = shorter ? 1 << 18 : 1 << 22, side = shorter ? 64 : 512, threads = 2;
  if (getenv("SIMT_THREADS") != NULL) threads = atoi(getenv("SIMT_THREADS"));
  if (threads < 1 || threads > 64) threads = 2;
  float *x, *y;
  double best;
  CUDA_CHECK(cudaMalloc((void **)&x, n * sizeof *x));
  CUDA_CHECK(cudaMalloc((void **)&y, n * sizeof *y));
  CUDA_CHECK(cudaMemset(x, 0, n * sizeof *x));
  CUDA_CHECK(cudaMemset(y, 0, n * sizeof *y));

  BEST(best, runs, launch_saxpy(y, x, n));
  printf("%-34s %8.2f ns per thread\n", "saxpy", 1e9 * best / n);
  for (int block = 32; block <= 1024; block *= 2) {
    int blocks = (shorter ? 4096 : 65536) / block, rounds = 32;
    char name[64];
    BEST(best, runs, launch_barrier(y, blocks, block, rounds));
    snprintf(name, sizeof name, "barrier, blocks of %d", block);
    printf("%-34s %8.2f ns per barrier\n", name, 1e9 * best / ((double)blocks * block * rounds * 2));
  }
  int blocks = shorter ? 16 : 256, rounds = 64;
  BEST(best, runs, launch_shuffle(y, blocks, rounds));
  printf("%-34s %8.2f ns per shuffle\n", "shuffle", 1e9 * best / ((double)blocks * 256 * rounds));

  float *a = (float *)calloc(3 * (size_t)side * side, sizeof *a), *b = a + side * side, *c = b + side * side;
  for (int i = 0; i < side * side; i++) a[i] = 1.0f + i % 7, b[i] = 2.0f - i % 5;
  CUDA_CHECK(cudaMemcpy(x, a, side * side * sizeof *a, cudaMemcpyHostToDevice));
  float *device_b = x + side * side;
  CUDA_CHECK(cudaMemcpy(device_b, b, side * side * sizeof *b, cudaMemcpyHostToDevice));
  double loops = 1e30, emulated = 1e30; /* in turns: the machine's speed drifts */
  for (int run = 0; run < runs; run++) {
    double seconds = matmul_c(c, a, b, side, threads);
    if (seconds < loops) loops = seconds;
    BEST(seconds, 1, launch_matmul(y, x, device_b, side));
    if (seconds < emulated) emulated = seconds;
  }
  printf("matmul %d, %d OS threads           %8.3f ms; the same loops in C %.3f ms: %.2fx their speed\n", side, threads,
         1e3 * emulated, 1e3 * loops, loops / emulated);
  float *check = (float *)malloc(side * side * sizeof *check);
  CUDA_CHECK(cudaMemcpy(check, y, side * side * sizeof *check, cudaMemcpyDeviceToHost));
  if (memcmp(check, c, side * side * sizeof *c) != 0) {
    fprintf(stderr, "speed: the product differs from the C loops'\n");
    return 1;
  }
  free(check);
  free(a);
  CUDA_CHECK(cudaFree(x));
  CUDA_CHECK(cudaFree(y));
  return 0;
}
