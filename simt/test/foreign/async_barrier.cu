// cuda::barrier in a producer/consumer reduction, arrive/wait split, cuda::pipeline with memcpy_async, cg::memcpy_async.
#include <cooperative_groups.h>
#include <cooperative_groups/memcpy_async.h>
#include <cooperative_groups/reduce.h>
#include <cuda/barrier>
#include <cuda/pipeline>
#include <cstdio>
#include <cstdlib>
#include <cmath>
#include <vector>

namespace cg = cooperative_groups;
using block_barrier = cuda::barrier<cuda::thread_scope_block>;

#define OK(e) do { cudaError_t s = (e); if (s != cudaSuccess) { printf("%s: %s\n", #e, cudaGetErrorString(s)); exit(1); } } while (0)

// every thread arrives, does something else, then waits; the last warp-sums are added by thread 0
__global__ void normVecByDotProduct(float *vecA, float *vecB, double *partial, int size) {
  cg::thread_block cta = cg::this_thread_block();
  cg::grid_group grid = cg::this_grid();
  const auto tile32 = cg::tiled_partition<32>(cta);
  __shared__ block_barrier barrier;
  extern __shared__ double tmp[];
  if (threadIdx.x == 0) init(&barrier, blockDim.x);
  cg::sync(cta);

  double threadSum = 0.0;
  for (int i = grid.thread_rank(); i < size; i += grid.size()) threadSum += (double)(vecA[i] * vecB[i]);
  threadSum = cg::reduce(tile32, threadSum, cg::plus<double>());
  if (tile32.thread_rank() == 0) tmp[tile32.meta_group_rank()] = threadSum;
  block_barrier::arrival_token token = barrier.arrive();
  double scratch = threadIdx.x * 0.5;   // independent work between arrival and wait
  barrier.wait(std::move(token));
  if (tile32.meta_group_rank() == 0) {
    double beta = tile32.thread_rank() < tile32.meta_group_size() ? tmp[tile32.thread_rank()] : 0.0;
    beta = cg::reduce(tile32, beta, cg::plus<double>());
    if (cta.thread_rank() == 0) partial[blockIdx.x] = beta;
  }
  barrier.arrive_and_wait();
  if (scratch < 0) vecA[0] = 0;
}

// double buffering with two barriers per stage: the first half of the block produces, the second consumes
__global__ void produceConsume(const int *in, int *out, int chunks, int chunk) {
  extern __shared__ int buffer[];   // 2 x chunk
  #pragma nv_diag_suppress static_var_with_dynamic_init
  __shared__ block_barrier bar[4];  // ready[2], filled[2]
  auto block = cg::this_thread_block();
  if (block.thread_rank() < 4) init(bar + block.thread_rank(), block.size());
  block.sync();
  block_barrier *ready = bar, *filled = bar + 2;
  const int half = blockDim.x / 2;
  if (threadIdx.x < half) {
    for (int c = 0; c < chunks; c++) {
      ready[c % 2].arrive_and_wait();     // wait until the buffer may be filled
      for (int i = threadIdx.x; i < chunk; i += half) buffer[c % 2 * chunk + i] = in[(blockIdx.x * chunks + c) * chunk + i];
      (void)filled[c % 2].arrive();
    }
  } else {
    (void)ready[0].arrive();              // both buffers are empty
    (void)ready[1].arrive();
    for (int c = 0; c < chunks; c++) {
      filled[c % 2].arrive_and_wait();
      for (int i = threadIdx.x - half; i < chunk; i += half) out[(blockIdx.x * chunks + c) * chunk + i] = 3 * buffer[c % 2 * chunk + i] + 1;
      (void)ready[c % 2].arrive();
    }
  }
}

// staged pipeline of whole-block copies
template <int STAGES>
__global__ void pipelined_sum(const float *in, float *out, int n, int tile) {
  extern __shared__ float smem[];
  auto block = cg::this_thread_block();
  __shared__ cuda::pipeline_shared_state<cuda::thread_scope::thread_scope_block, STAGES> state;
  auto pipe = cuda::make_pipeline(block, &state);
  const int tiles = n / tile;
  float acc = 0;
  for (int compute = 0, fetch = 0; compute < tiles; ++compute) {
    for (; fetch < tiles && fetch < compute + STAGES; ++fetch) {
      pipe.producer_acquire();
      cuda::memcpy_async(block, smem + fetch % STAGES * tile, in + ((size_t)blockIdx.x * tiles + fetch) * tile, sizeof(float) * tile, pipe);
      pipe.producer_commit();
    }
    pipe.consumer_wait();
    for (int i = block.thread_rank(); i < tile; i += block.size()) acc += smem[compute % STAGES * tile + i];
    pipe.consumer_release();
  }
  auto warp = cg::tiled_partition<32>(block);
  acc = cg::reduce(warp, acc, cg::plus<float>{});
  if (warp.thread_rank() == 0) atomicAdd(&out[blockIdx.x], acc);
}

// cg::memcpy_async with wait and wait_prior; cp.async primitives of one thread
__global__ void cg_copy(const int4 *in, int4 *out, int n) {
  extern __shared__ int4 s[];
  auto block = cg::this_thread_block();
  const int4 *from = in + (size_t)blockIdx.x * 2 * n;
  cg::memcpy_async(block, s, from, sizeof(int4) * n);
  cg::memcpy_async(block, s + n, cuda::aligned_size_t<16>(sizeof(int4) * n) ? from + n : from, cuda::aligned_size_t<16>(sizeof(int4) * n));
  cg::wait_prior<1>(block);
  int4 a = s[threadIdx.x];
  cg::wait(block);
  int4 b = s[n + threadIdx.x];
  out[blockIdx.x * n + threadIdx.x] = make_int4(a.x + b.x, a.y - b.y, a.z * b.z, a.w ^ b.w);
}

__global__ void primitives(const float4 *in, float4 *out) {
  __shared__ float4 s[128];
  __pipeline_memcpy_async(&s[threadIdx.x], &in[blockIdx.x * 128 + threadIdx.x], sizeof(float4));
  __pipeline_commit();
  __pipeline_wait_prior(0);
  __syncthreads();
  out[blockIdx.x * 128 + threadIdx.x] = s[127 - threadIdx.x];
}

int main() {
  const int n = 1 << 15, blocks = 8;
  std::vector<float> a(n), b(n);
  double want = 0, got = 0;
  for (int i = 0; i < n; i++) { a[i] = drand48(); b[i] = drand48(); want += (double)(a[i] * b[i]); }
  float *da, *db, *dsum;
  double *dp, partial[blocks];
  OK(cudaMalloc(&da, n * 4)); OK(cudaMalloc(&db, n * 4)); OK(cudaMalloc(&dp, sizeof partial)); OK(cudaMalloc(&dsum, blocks * 4));
  OK(cudaMemcpy(da, a.data(), n * 4, cudaMemcpyHostToDevice));
  OK(cudaMemcpy(db, b.data(), n * 4, cudaMemcpyHostToDevice));
  normVecByDotProduct<<<blocks, 256, 8 * sizeof(double)>>>(da, db, dp, n);
  OK(cudaGetLastError());
  OK(cudaMemcpy(partial, dp, sizeof partial, cudaMemcpyDeviceToHost));
  for (double p : partial) got += p;
  int bad = !(std::fabs(got - want) < 1e-6 * want);
  printf("barrier, dot product: %f (%f)\n", got, want);

  std::vector<int> h(n), r(n);
  for (int i = 0; i < n; i++) h[i] = i;
  int *di, *dout;
  OK(cudaMalloc(&di, n * 4)); OK(cudaMalloc(&dout, n * 4));
  OK(cudaMemcpy(di, h.data(), n * 4, cudaMemcpyHostToDevice));
  produceConsume<<<4, 128, 2 * 512 * sizeof(int)>>>(di, dout, n / 4 / 512, 512);
  OK(cudaGetLastError());
  OK(cudaMemcpy(r.data(), dout, n * 4, cudaMemcpyDeviceToHost));
  int wrong = 0;
  for (int i = 0; i < n; i++) wrong += r[i] != 3 * i + 1;
  printf("producers and consumers: %d wrong\n", wrong);
  bad += wrong;

  OK(cudaMemset(dsum, 0, blocks * 4));
  pipelined_sum<2><<<blocks, 128, 2 * 256 * 4>>>(da, dsum, n / blocks, 256);
  OK(cudaGetLastError());
  float sums[blocks];
  OK(cudaMemcpy(sums, dsum, sizeof sums, cudaMemcpyDeviceToHost));
  for (int k = 0; k < blocks; k++) {
    double s = 0;
    for (int i = 0; i < n / blocks; i++) s += a[k * (n / blocks) + i];
    if (!(std::fabs(s - sums[k]) < 1e-3 * s)) { printf("pipeline, block %d: %f (%f)\n", k, sums[k], s); bad++; }
  }
  printf("pipeline: %f ...\n", sums[0]);

  cg_copy<<<n / 4 / 256, 128, 2 * 128 * sizeof(int4)>>>((int4 *)di, (int4 *)dout, 128);
  OK(cudaGetLastError());
  OK(cudaMemcpy(r.data(), dout, n * 2, cudaMemcpyDeviceToHost));
  wrong = 0;
  for (int k = 0; k < n / 1024; k++)
    for (int t = 0; t < 128; t++) {
      const int *x = &h[(k * 256 + t) * 4], *y = &h[(k * 256 + 128 + t) * 4], *z = &r[(k * 128 + t) * 4];
      wrong += z[0] != x[0] + y[0] || z[1] != x[1] - y[1] || z[2] != x[2] * y[2] || z[3] != (x[3] ^ y[3]);
    }
  printf("memcpy_async: %d wrong\n", wrong);
  bad += wrong;
  primitives<<<n / 512, 128>>>((const float4 *)da, (float4 *)db);
  OK(cudaMemcpy(b.data(), db, n * 4, cudaMemcpyDeviceToHost));
  wrong = 0;
  for (int i = 0; i < n; i++) { int q = i / 4, t = q % 128; wrong += b[i] != a[(q - t + 127 - t) * 4 + i % 4]; }
  printf("pipeline primitives: %d wrong\n", wrong);
  bad += wrong;
  cudaFree(da); cudaFree(db); cudaFree(dp); cudaFree(dsum); cudaFree(di); cudaFree(dout);
  puts(bad ? "async FAILED" : "async PASSED");
  return bad != 0;
}
