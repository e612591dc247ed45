// Barriers as objects, asynchronous copies, named parts of a block.
#include <cooperative_groups.h>
#include <cooperative_groups/memcpy_async.h>
#include <cuda_pipeline.h>
#include <cuda/atomic>
#include <cuda/barrier>
#include <cuda/pipeline>

#include "check.h"

namespace cg = cooperative_groups;
typedef cuda::barrier<cuda::thread_scope_block> Barrier;

// A barrier in place of __syncthreads().
__global__ void reverse_with_barrier(int *x) {
  __shared__ int s[64];
#pragma nv_diag_suppress static_var_with_dynamic_init
  __shared__ Barrier barrier;
  int t = threadIdx.x;
  if (t == 0) init(&barrier, blockDim.x);
  __syncthreads();
  for (int turn = 0; turn < 3; turn++) {
    s[t] = x[t];
    barrier.arrive_and_wait();
    x[t] = s[63 - t] + turn;
    barrier.arrive_and_wait();
  }
}

// One warp produces, the other consumes; each waits only for what it needs.
__global__ void producer_and_consumer(const int *x, int *y, int rounds) {
  __shared__ int s[2][32];
  __shared__ Barrier full[2], empty[2];
  int lane = threadIdx.x % 32;
  bool producer = threadIdx.x < 32;
  if (threadIdx.x < 2) {
    init(&full[threadIdx.x], 64);
    init(&empty[threadIdx.x], 64);
  }
  __syncthreads();
  if (producer) {
    for (int round = 0; round < rounds; round++) {
      empty[round % 2].arrive_and_wait();
      s[round % 2][lane] = x[round * 32 + lane] * 2;
      (void)full[round % 2].arrive();
    }
  } else {
    (void)empty[0].arrive();
    (void)empty[1].arrive();
    for (int round = 0; round < rounds; round++) {
      full[round % 2].arrive_and_wait();
      y[round * 32 + lane] = s[round % 2][31 - lane];
      (void)empty[round % 2].arrive();
    }
  }
}

// Work between arriving and waiting.
__global__ void split_barrier(int *x, int *y) {
  __shared__ int s[64];
  __shared__ Barrier barrier;
  int t = threadIdx.x;
  if (t == 0) init(&barrier, blockDim.x);
  __syncthreads();
  s[t] = x[t];
  Barrier::arrival_token token = barrier.arrive();
  int square = x[t] * x[t];  // its own affair
  barrier.wait(std::move(token));
  y[t] = square + s[t ^ 7];
}

// A tile is copied asynchronously, waited for, and then read by other threads after a barrier.
__global__ void copy_with_primitives(const float *x, float *y) {
  __shared__ __align__(16) float s[256];
  int t = threadIdx.x;
  __pipeline_memcpy_async(&s[4 * t], &x[4 * t], 16);
  __pipeline_commit();
  __pipeline_wait_prior(0);
  __syncthreads();
  y[t] = s[255 - t];
}

// Two tiles on their way at a time.
__global__ void copy_in_two_stages(const float *x, float *y, int tiles) {
  __shared__ __align__(16) float s[2][64];
  int t = threadIdx.x;
  __pipeline_memcpy_async(&s[0][t], &x[t], 4);
  __pipeline_commit();
  float sum = 0;
  for (int tile = 0; tile < tiles; tile++) {
    if (tile + 1 < tiles) __pipeline_memcpy_async(&s[(tile + 1) % 2][t], &x[(tile + 1) * 64 + t], 4);
    __pipeline_commit();
    __pipeline_wait_prior(1);
    __syncthreads();
    sum += s[tile % 2][63 - t];
    __syncthreads();
  }
  y[t] = sum;
}

// The whole block copies together.
__global__ void copy_by_group(const float *x, float *y) {
  __shared__ float s[256];
  cg::thread_block block = cg::this_thread_block();
  cg::memcpy_async(block, s, x, sizeof s);
  cg::wait(block);
  for (int i = block.thread_rank(); i < 256; i += block.size()) y[i] = 2 * s[255 - i];
}

// A flag with release and acquire between blocks; who starts first sends, so nobody waits for a block that may not run.
__global__ void message(int *data, int *flag, int *received, int *started) {
  cuda::atomic_ref<int, cuda::thread_scope_device> ready(*flag);
  if (atomicAdd(started, 1) == 0) {
    *data = 42;
    ready.store(1, cuda::memory_order_release);
  } else {
    while (ready.load(cuda::memory_order_acquire) == 0) continue;
    *received = *data;
  }
}

// Tiles wait for themselves only.
__global__ void tiles_wait_alone(int *x) {
  __shared__ int s[64];
  cg::thread_block_tile<8> tile = cg::tiled_partition<8>(cg::this_thread_block());
  int t = threadIdx.x;
  for (int turn = 0; turn < tile.meta_group_rank(); turn++) {
    s[t] = x[t];
    tile.sync();
    x[t] = s[t ^ 7] + 1;
    tile.sync();
  }
}

int main(void) {
  int x[256], y[256], ok;
  float a[256], b[256];
  for (int i = 0; i < 256; i++) a[i] = x[i] = (i * 37 + 11) % 101;
  int *dx = to_device(x, 256), *dy = zeros_on_device<int>(256);
  float *da = to_device(a, 256), *db = raw_on_device<float>(256);

  reverse_with_barrier<<<1, 64>>>(dx);
  fetch(y, dx, 64);
  check("a barrier object", y[0] == x[63] + 3 && y[63] == x[0] + 3);

  TRY(cudaMemcpy(dx, x, sizeof x, cudaMemcpyHostToDevice));
  producer_and_consumer<<<1, 64>>>(dx, dy, 8);
  fetch(y, dy, 256);
  ok = 1;
  for (int i = 0; i < 256; i++) ok &= y[i] == 2 * x[i / 32 * 32 + 31 - i % 32];
  check("producer and consumer", ok);

  split_barrier<<<1, 64>>>(dx, dy);
  fetch(y, dy, 64);
  ok = 1;
  for (int i = 0; i < 64; i++) ok &= y[i] == x[i] * x[i] + x[i ^ 7];
  check("work between arriving and waiting", ok);

  copy_with_primitives<<<1, 64>>>(da, db);
  fetch(b, db, 64);
  check("asynchronous copies", b[0] == a[255] && b[63] == a[192]);

  copy_in_two_stages<<<1, 64>>>(da, db, 4);
  fetch(b, db, 64);
  check("asynchronous copies in two stages", b[5] == a[58] + a[122] + a[186] + a[250]);

  copy_by_group<<<1, 64>>>(da, db);
  fetch(b, db, 256);
  check("an asynchronous copy by the whole block", b[0] == 2 * a[255] && b[255] == 2 * a[0]);

  TRY(cudaMemset(dy, 0, 4 * sizeof(int)));
  message<<<2, 1>>>(dy, dy + 1, dy + 2, dy + 3);
  fetch(y, dy, 3);
  check("a flag with release and acquire", y[2] == 42);

  tiles_wait_alone<<<1, 64>>>(dx);
  fetch(y, dx, 64);
  ok = 1;
  for (int i = 0; i < 64; i++) ok &= y[i] == x[i / 8 % 2 ? i ^ 7 : i] + i / 8;
  check("tiles that wait for themselves", ok);

  void *all[] = {dx, dy, da, db};
  for (void *one : all) TRY(cudaFree(one));
  return finish();
}
