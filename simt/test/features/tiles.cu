// A cooperative reduction: each tile of a warp, then each block, then the grid; and groups made by data.
// reports: a cooperative launch of 1048576 blocks
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <string.h>

#include "expect.h"

namespace cg = cooperative_groups;

// Every tile adds to its block's sum, every block to the grid's; each element then becomes its share of 1000.
template <int TILE>
__global__ void shares(int *x, int n, int *total) {
  __shared__ int block_sum;
  cg::grid_group grid = cg::this_grid();
  cg::thread_block block = cg::this_thread_block();
  cg::thread_block_tile<TILE> tile = cg::tiled_partition<TILE>(block);
  if (block.thread_rank() == 0) block_sum = 0;
  block.sync();
  int own = 0;
  for (int i = grid.thread_rank(); i < n; i += grid.size()) own += x[i];
  int sum = cg::reduce(tile, own, cg::plus<int>());
  if (tile.thread_rank() == 0) atomicAdd(&block_sum, sum);
  block.sync();
  if (block.thread_rank() == 0) atomicAdd(total, block_sum);
  grid.sync();
  for (int i = grid.thread_rank(); i < n; i += grid.size()) x[i] = 1000 * x[i] / *total;
}

// One atomic operation for all lanes with the same remainder.
__global__ void count_remainders(const int *x, int n, int *count) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  cg::coalesced_group here = cg::coalesced_threads();
  cg::coalesced_group same = cg::labeled_partition(here, x[i] % 3);
  if (same.thread_rank() == 0) atomicAdd(&count[x[i] % 3], (int)same.size());
  cg::coalesced_group odd_or_even = cg::binary_partition(here, x[i] % 2);
  int most = cg::reduce(odd_or_even, x[i], cg::greater<int>());
  if (odd_or_even.thread_rank() == 0) atomicMax(&count[3 + x[i] % 2], most);
}

static void launch_shares(const void *kernel, int *x, int n, int *total) {
  void *arguments[] = {&x, &n, &total};
  *total = 0;
  WORKS(cudaLaunchCooperativeKernel(kernel, dim3(4), dim3(96), arguments, 0, 0));
  WORKS(cudaDeviceSynchronize());
}

int main() {
  enum { N = 1000 };
  int *x, *result, host[N], sum = 0, count[5] = {0};
  WORKS(cudaMallocManaged(&x, sizeof host));
  WORKS(cudaMallocManaged(&result, 5 * sizeof *result));
  for (int i = 0; i < N; i++) {
    host[i] = i * i % 101;
    sum += host[i];
    count[host[i] % 3]++;
    if (count[3 + host[i] % 2] < host[i]) count[3 + host[i] % 2] = host[i];
  }
  const void *kernels[] = {(void *)shares<32>, (void *)shares<8>, (void *)shares<1>};
  for (const void *kernel : kernels) {
    memcpy(x, host, sizeof host);
    launch_shares(kernel, x, N, result);
    EXPECT(*result == sum);
    int wrong = 0;
    for (int i = 0; i < N; i++) wrong += x[i] != 1000 * host[i] / sum;
    EXPECT(wrong == 0);
  }
  memcpy(x, host, sizeof host);
  memset(result, 0, sizeof count);
  count_remainders<<<N / 128 + 1, 128>>>(x, N, result);
  WORKS(cudaDeviceSynchronize());
  EXPECT(memcmp(result, count, sizeof count) == 0);

  int n = N;  // all blocks must be on the GPU at once
  void *arguments[] = {&x, &n, &result};
  cudaError_t error = cudaLaunchCooperativeKernel(kernels[0], dim3(1 << 20), dim3(96), arguments, 0, 0);
  EXPECT(error == cudaErrorCooperativeLaunchTooLarge);
  printf("a grid too large: %s\n", cudaGetErrorName(error));
  WORKS(cudaFree(x));
  WORKS(cudaFree(result));
  return mistakes;
}
