// 1D convolution, four ways: naive, mask in constant memory, tiled with halo in shared memory, tiled with cached halo.
#include <algorithm>
#include <cassert>
#include <cstdlib>
#include <iostream>
#include <vector>

// Length of our convolution mask
#define MASK_LENGTH 7
#define TILE 256

// Allocate space for the mask in constant memory
__constant__ int mask[MASK_LENGTH];

__global__ void convolution_naive(int *array, int *m, int *result, int n, int mlen) {
  int tid = blockIdx.x * blockDim.x + threadIdx.x;
  if (tid >= n) return;
  int r = mlen / 2;
  int start = tid - r;
  int temp = 0;
  for (int j = 0; j < mlen; j++) {
    if (((start + j) >= 0) && (start + j < n)) temp += array[start + j] * m[j];
  }
  result[tid] = temp;
}

__global__ void convolution_constant(int *array, int *result, int n) {
  int tid = blockIdx.x * blockDim.x + threadIdx.x;
  if (tid >= n) return;
  int r = MASK_LENGTH / 2;
  int start = tid - r;
  int temp = 0;
  for (int j = 0; j < MASK_LENGTH; j++) {
    if ((start + j >= 0) && (start + j < n)) temp += array[start + j] * mask[j];
  }
  result[tid] = temp;
}

__global__ void convolution_tiled(int *padded, int *result) {
  int tid = blockIdx.x * blockDim.x + threadIdx.x;
  extern __shared__ int s_array[];
  int r = MASK_LENGTH / 2;
  int d = 2 * r;
  int n_padded = blockDim.x + d;
  // offset for the second set of loads in shared memory
  int offset = threadIdx.x + blockDim.x;
  int g_offset = blockDim.x * blockIdx.x + offset;
  s_array[threadIdx.x] = padded[tid];
  if (offset < n_padded) s_array[offset] = padded[g_offset];
  __syncthreads();
  int temp = 0;
#pragma unroll
  for (int j = 0; j < MASK_LENGTH; j++) temp += s_array[threadIdx.x + j] * mask[j];
  result[tid] = temp;
}

__global__ void convolution_cache(const int *padded, int *result) {
  int tid = blockIdx.x * blockDim.x + threadIdx.x;
  __shared__ int s_array[TILE];
  s_array[threadIdx.x] = padded[tid];
  __syncthreads();
  int temp = 0;
  for (int j = 0; j < MASK_LENGTH; j++) {
    // the halo comes through the cache
    temp += (threadIdx.x + j >= blockDim.x ? padded[tid + j] : s_array[threadIdx.x + j]) * mask[j];
  }
  result[tid] = temp;
}

void verify_result(const char *name, std::vector<int> const &array, const int *h_mask, int const *result, int n) {
  int radius = MASK_LENGTH / 2, temp, start;
  for (int i = 0; i < n; i++) {
    start = i - radius;
    temp = 0;
    for (int j = 0; j < MASK_LENGTH; j++)
      if ((start + j >= 0) && (start + j < n)) temp += array[start + j] * h_mask[j];
    if (temp != result[i]) {
      std::cerr << name << ": element " << i << " is " << result[i] << ", not " << temp << "\n";
      exit(1);
    }
  }
  std::cout << name << " COMPLETED SUCCESSFULLY\n";
}

int main() {
  int n = 1 << 18;
  std::vector<int> h_array(n), h_result(n);
  int h_mask[MASK_LENGTH];
  std::generate(begin(h_array), end(h_array), []() { return rand() % 100; });
  for (int i = 0; i < MASK_LENGTH; i++) h_mask[i] = rand() % 10 - 5;

  int r = MASK_LENGTH / 2, n_p = n + r * 2;
  int *d_padded, *d_result, *d_mask;
  cudaMalloc(&d_padded, n_p * sizeof(int));
  cudaMalloc(&d_result, n * sizeof(int));
  cudaMalloc(&d_mask, MASK_LENGTH * sizeof(int));
  cudaMemset(d_padded, 0, n_p * sizeof(int));
  int *d_array = d_padded + r;   // the array proper sits between the two pads
  cudaMemcpy(d_array, h_array.data(), n * sizeof(int), cudaMemcpyHostToDevice);
  cudaMemcpy(d_mask, h_mask, MASK_LENGTH * sizeof(int), cudaMemcpyHostToDevice);
  cudaMemcpyToSymbol(mask, h_mask, sizeof h_mask);

  size_t SHMEM = (TILE + r * 2) * sizeof(int);
  const char *names[] = {"naive", "constant memory", "tiled", "tiled, halo cached"};
  for (int v = 0; v < 4; v++) {
    cudaMemset(d_result, 0, n * sizeof(int));
    switch (v) {
      case 0: convolution_naive<<<n / TILE, TILE>>>(d_array, d_mask, d_result, n, MASK_LENGTH); break;
      case 1: convolution_constant<<<n / TILE, TILE>>>(d_array, d_result, n); break;
      case 2: convolution_tiled<<<n / TILE, TILE, SHMEM>>>(d_padded, d_result); break;
      case 3: convolution_cache<<<n / TILE, TILE>>>(d_padded, d_result); break;
    }
    if (cudaGetLastError() != cudaSuccess) return 1;
    cudaMemcpy(h_result.data(), d_result, n * sizeof(int), cudaMemcpyDeviceToHost);
    verify_result(names[v], h_array, h_mask, h_result.data(), n);
  }
  int back[MASK_LENGTH];
  cudaMemcpyFromSymbol(back, mask, sizeof(int) * 2, sizeof(int) * 3, cudaMemcpyDeviceToHost);
  assert(back[0] == h_mask[3] && back[1] == h_mask[4]);
  cudaFree(d_padded);
  cudaFree(d_result);
  cudaFree(d_mask);
  return 0;
}
