// Persistent-style kernels of a plain launch whose blocks wait for each other, all of them being resident on any GPU:
// a hand-made grid barrier (volatile generation), one by atomics alone, and a ring between two blocks.
#include <cstdio>
#include <cstdlib>

#define CK(x) do { cudaError_t e = (x); if (e != cudaSuccess) { printf("%s line %d\n", cudaGetErrorString(e), __LINE__); exit(1); } } while (0)

struct GridBarrier { unsigned arrived; volatile unsigned generation; };
__device__ GridBarrier g_bar;

__device__ void gridBarrier(GridBarrier *b) {
  __syncthreads();
  if (threadIdx.x == 0) {
    unsigned gen = b->generation;
    __threadfence();
    if (atomicAdd(&b->arrived, 1) == gridDim.x - 1) {
      b->arrived = 0;
      __threadfence();
      b->generation = gen + 1;
    } else {
      while (b->generation == gen) { }
    }
    __threadfence();
  }
  __syncthreads();
}

// explicit heat equation on a ring of cells, all steps in one launch
__global__ void heatPersistent(volatile int *a, volatile int *b, int n, int steps) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  for (int s = 0; s < steps; s++) {
    b[i] = (a[(i + n - 1) % n] + 2 * a[i] + a[(i + 1) % n]) / 4;
    gridBarrier(&g_bar);
    volatile int *t = a; a = b; b = t;
  }
}

__device__ unsigned g_count;

__global__ void reverseTwoPhase(int *a, int *out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  a[i] = 3 * i + 1;
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) {
    atomicAdd(&g_count, 1u);
    while (atomicAdd(&g_count, 0u) < gridDim.x) { }
    __threadfence();
  }
  __syncthreads();
  out[i] = *(volatile int *)&a[n - 1 - i];
}

#define CAP 8
struct Ring { int data[CAP]; volatile unsigned head, tail; };
__device__ Ring g_ring;

__global__ void ring(int items, long long *sum) {
  if (threadIdx.x != 0) return;
  Ring *r = &g_ring;
  if (blockIdx.x == 1) { // producer
    for (int k = 0; k < items; k++) {
      while (r->head - r->tail >= CAP) { }
      ((volatile int *)r->data)[r->head % CAP] = k * k;
      __threadfence();
      r->head = r->head + 1;
    }
  } else { // consumer
    long long s = 0;
    for (int k = 0; k < items; k++) {
      while (r->head == r->tail) { }
      __threadfence();
      s += ((volatile int *)r->data)[r->tail % CAP];
      __threadfence();
      r->tail = r->tail + 1;
    }
    *sum = s;
  }
}

int main() {
  const int n = 8 * 64, steps = 5, items = 100;
  int *a, *b, ref[2][n], wrong = 0;
  CK(cudaMallocManaged(&a, n * sizeof(int)));
  CK(cudaMallocManaged(&b, n * sizeof(int)));
  for (int i = 0; i < n; i++) ref[0][i] = a[i] = (i * 7919) % 1000;
  for (int s = 0; s < steps; s++)
    for (int i = 0; i < n; i++)
      ref[(s + 1) % 2][i] = (ref[s % 2][(i + n - 1) % n] + 2 * ref[s % 2][i] + ref[s % 2][(i + 1) % n]) / 4;
  heatPersistent<<<8, 64>>>(a, b, n, steps);
  CK(cudaDeviceSynchronize());
  for (int i = 0; i < n; i++) wrong += b[i] != ref[steps % 2][i];
  printf("heat: %d wrong\n", wrong);

  reverseTwoPhase<<<8, 64>>>(a, b, n);
  CK(cudaDeviceSynchronize());
  for (int i = 0; i < n; i++) wrong += b[i] != 3 * (n - 1 - i) + 1;

  long long *sum, want = 0;
  CK(cudaMallocManaged(&sum, sizeof *sum));
  ring<<<2, 32>>>(items, sum);
  CK(cudaDeviceSynchronize());
  for (int k = 0; k < items; k++) want += k * k;
  wrong += *sum != want;
  printf("%s\n", wrong ? "FAILED" : "blocks met, all right");
  cudaFree(a); cudaFree(b); cudaFree(sum);
  return wrong != 0;
}
