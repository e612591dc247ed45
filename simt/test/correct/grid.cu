// Blocks that work together within one launch: fences, atomics, locks, tickets, grid barriers.
#include <cooperative_groups.h>
#include <cuda/atomic>

#include "check.h"

namespace cg = cooperative_groups;

__device__ unsigned ticket;

// The last block to finish adds the blocks' sums: each sum is fenced before its block's tick.
__global__ void last_block_done(const float *x, float *partial, float *total) {
  __shared__ bool s_last;
  __shared__ float s[64];
  int t = threadIdx.x;
  s[t] = x[blockIdx.x * 64 + t];
  __syncthreads();
  for (int half = 32; half > 0; half /= 2) {
    if (t < half) s[t] += s[t + half];
    __syncthreads();
  }
  if (t == 0) {
    partial[blockIdx.x] = s[0];
    __threadfence();
    s_last = atomicInc(&ticket, gridDim.x - 1) == gridDim.x - 1;  // wraps to 0: ready for the next launch
  }
  __syncthreads();
  if (s_last && t == 0) {
    float sum = 0;
    for (int b = 0; b < gridDim.x; b++) sum += ((volatile float *)partial)[b];
    *total = sum;
  }
}

// The same, all threads of the last block read what all threads of the others wrote: each fences its own writes.
__global__ void last_block_reads_all(const int *x, int *squares, int *total) {
  __shared__ bool s_last;
  int i = blockIdx.x * 64 + threadIdx.x;
  squares[i] = x[i] * x[i];
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) s_last = atomicAdd(&ticket, 1) == gridDim.x - 1;
  __syncthreads();
  if (!s_last) return;
  __threadfence();
  int sum = 0;
  for (int k = threadIdx.x; k < 64 * gridDim.x; k += 64) sum += squares[k];
  atomicAdd(total, sum);
  if (threadIdx.x == 0) ticket = 0;
}

// Lane 0 of each warp fences and counts for the others, which it has met; the last warp of all reads what all wrote.
__global__ void last_warp_done(const int *x, int *squares, int *total) {
  int i = blockIdx.x * 64 + threadIdx.x, lane = threadIdx.x % 32;
  unsigned before = 0;
  squares[i] = x[i] * x[i];
  __syncwarp();
  if (lane == 0) {
    __threadfence();
    before = atomicAdd(&ticket, 1);
    __threadfence();
  }
  __syncwarp();
  if (__shfl_sync(~0u, before, 0) != 2 * gridDim.x - 1) return;
  int sum = 0;
  for (int k = lane; k < 64 * gridDim.x; k += 32) sum += squares[k];
  atomicAdd(total, sum);
  if (lane == 0) ticket = 0;
}

// All lanes fence, then meet: lane 0 counts for its warp.
__global__ void last_warp_of_fenced_lanes(const int *x, int *squares, int *total) {
  int i = blockIdx.x * 64 + threadIdx.x, lane = threadIdx.x % 32;
  unsigned before = 0;
  squares[i] = x[i] * x[i];
  __threadfence();
  __syncwarp();
  if (lane == 0) before = atomicAdd(&ticket, 1);
  before = __shfl_sync(~0u, before, 0);
  __syncwarp();
  if (before != 2 * gridDim.x - 1) return;
  __threadfence();
  int sum = 0;
  for (int k = lane; k < 64 * gridDim.x; k += 32) sum += squares[k];
  atomicAdd(total, sum);
  if (lane == 0) ticket = 0;
}

// Warps that fence again and again, in turn: a thread's last fence counts, whoever fenced in between.
__global__ void last_block_of_many_fences(const int *x, int *squares, int *total) {
  __shared__ bool s_last;
  int i = blockIdx.x * 64 + threadIdx.x;
  for (int turns = threadIdx.x < 32 ? 12000 : 4000; turns > 0; turns--) {
    squares[i] = x[i] * x[i] + turns - 1;
    __threadfence();
  }
  __syncthreads();
  if (threadIdx.x == 0) s_last = atomicAdd(&ticket, 1) == gridDim.x - 1;
  __syncthreads();
  if (!s_last) return;
  __threadfence();
  int sum = 0;
  for (int k = threadIdx.x; k < 64 * gridDim.x; k += 64) sum += squares[k];
  atomicAdd(total, sum);
  if (threadIdx.x == 0) ticket = 0;
}

// Block 0 writes, the others wait for it: the order is in the operations.
__global__ void first_block_releases(const int *x, int *squares, int *y, unsigned *ready) {
  cuda::atomic_ref<unsigned, cuda::thread_scope_device> flag(*ready);
  int t = threadIdx.x;
  if (blockIdx.x == 0) {
    squares[t] = x[t] * x[t];
    __syncthreads();
    if (t == 0) flag.store(1, cuda::memory_order_release);
  } else {
    if (t == 0)
      while (flag.load(cuda::memory_order_acquire) == 0) continue;
    __syncthreads();
    y[(blockIdx.x - 1) * 64 + t] = squares[63 - t];
  }
}

// A grid barrier by hand: thread 0 fences for its block on both sides, for all have met.
__device__ void meet(unsigned *arrived, unsigned all) {
  __syncthreads();
  if (threadIdx.x == 0) {
    __threadfence();
    atomicAdd(arrived, 1);
    while (*(volatile unsigned *)arrived < all) continue;
    __threadfence();
  }
  __syncthreads();
}
__global__ void smooth_by_hand(float *x, float *y, int n, unsigned *arrived) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  for (int step = 1; step <= 3; step++) {
    y[i] = i > 0 && i < n - 1 ? (x[i - 1] + x[i] + x[i + 1]) / 4 : x[i];
    meet(arrived, step * gridDim.x);
    float *swap = x;
    x = y;
    y = swap;
  }
}

// A pipeline of three steps, each of which reads what other blocks wrote in the one before.
__global__ void smooth_three_times(float *x, float *y, int n) {
  cg::grid_group grid = cg::this_grid();
  for (int step = 0; step < 3; step++) {
    for (int i = grid.thread_rank(); i < n; i += grid.size())
      y[i] = i > 0 && i < n - 1 ? (x[i - 1] + x[i] + x[i + 1]) / 4 : x[i];
    grid.sync();
    float *swap = x;
    x = y;
    y = swap;
  }
}

// Grid barriers, nothing else, between what a block writes and what another writes there.
__global__ void one_block_at_a_time(int *y) {
  cg::grid_group grid = cg::this_grid();
  for (int turn = 0; turn < gridDim.x; turn++) {
    if (blockIdx.x == turn) y[threadIdx.x] = turn;
    grid.sync();
  }
}

// Fences and tickets before and after a grid barrier.
__global__ void last_block_of_each_turn(const int *x, int *squares, int *total) {
  __shared__ bool s_last;
  int i = blockIdx.x * 64 + threadIdx.x;
  for (int turn = 0; turn < 3; turn++) {
    squares[i] = x[i] * x[i] + turn;
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) s_last = atomicInc(&ticket, gridDim.x - 1) == gridDim.x - 1;
    __syncthreads();
    if (s_last) {
      __threadfence();
      int sum = 0;
      for (int k = threadIdx.x; k < 64 * gridDim.x; k += 64) sum += squares[k] - turn;
      if (turn == 2) atomicAdd(total, sum);
    }
    cg::this_grid().sync();
  }
}

// A lock for the grid: one thread of each block takes it, fences on both sides.
__global__ void lock_with_fences(int *lock, int *value) {
  if (threadIdx.x == 0) {
    while (atomicCAS(lock, 0, 1) != 0) continue;
    __threadfence();
    *value = *value * 3 % 1009 + 1;
    __threadfence();
    atomicExch(lock, 0);
  }
}

// A lock that every thread of a block wants: taken and given back within one turn of the loop.
__global__ void lock_of_all_threads(int *lock, volatile int *value) {
  for (bool done = false; !done;) {
    if (atomicCAS(lock, 0, 1) == 0) {
      __threadfence();
      *value = *value + 1;
      __threadfence();
      atomicExch(lock, 0);
      done = true;
    }
  }
}

// Blocks draw their work from a counter: no two get the same piece.
__global__ void work_queue(int *x, int pieces, unsigned *next) {
  __shared__ unsigned s_piece;
  for (;;) {
    __syncthreads();
    if (threadIdx.x == 0) s_piece = atomicAdd(next, 1);
    __syncthreads();
    if (s_piece >= pieces) return;
    x[s_piece * 32 + threadIdx.x] += s_piece;
  }
}

// A chain: each block waits for the sum of the one before. Numbers are drawn as blocks start, so the one before runs.
__global__ void chained_scan(const int *x, int *out, volatile int *sum, volatile int *ready, unsigned *next) {
  __shared__ int s_block, s_before, s[32];
  int t = threadIdx.x;
  if (t == 0) s_block = atomicAdd(next, 1);
  __syncthreads();
  int block = s_block;
  s[t] = x[block * 32 + t];
  __syncthreads();
  if (t == 0) {
    int before = 0, own = 0;
    for (int i = 0; i < 32; i++) own += s[i];
    if (block > 0) {
      while (ready[block - 1] == 0) continue;
      __threadfence();
      before = sum[block - 1];
    }
    s_before = before;
    sum[block] = before + own;
    __threadfence();
    ready[block] = 1;
  }
  __syncthreads();
  int value = s_before;
  for (int i = 0; i <= t; i++) value += s[i];
  out[block * 32 + t] = value;
}

// Each block writes its own byte of the same words.
__global__ void bytes_of_one_word(unsigned char *bytes) {
  bytes[threadIdx.x * 4 + blockIdx.x] = 10 * blockIdx.x + threadIdx.x % 10;
}

// Many blocks set one flag, all to the same value.
__global__ void set_flag(const int *x, int wanted, int *found) {
  if (x[blockIdx.x * blockDim.x + threadIdx.x] == wanted) *found = 1;
}

// Atomics of all kinds on the same word by all blocks.
__global__ void atomics_of_all_blocks(const int *x, int *result) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  atomicAdd(&result[0], x[i]);
  atomicMax(&result[1], x[i]);
  atomicMin(&result[2], x[i]);
  atomicXor(&result[3], x[i]);
  atomicOr(&result[4], x[i]);
  for (int old = result[5], seen; (seen = atomicCAS(&result[5], old, old + 1)) != old;) old = seen;
}

// A float maximum by compare and swap, its first guess a plain read.
__global__ void float_max(const float *x, float *max) {
  float value = x[blockIdx.x * blockDim.x + threadIdx.x];
  int old = __float_as_int(*max);
  while (value > __int_as_float(old)) {
    int seen = atomicCAS((int *)max, old, __float_as_int(value));
    if (seen == old) break;
    old = seen;
  }
}

// A value with its flag in one 64-bit word: nothing can become visible too late, so no fence. The blocks
// draw their turn, as the next one waits for the one before it.
__global__ void value_with_flag(const int *x, volatile unsigned long long *status, int *turn, int *y) {
  __shared__ int s_turn;
  if (threadIdx.x == 0) s_turn = atomicAdd(turn, 1);
  __syncthreads();
  if (threadIdx.x != 0) return;
  unsigned long long before = 0;
  while (s_turn > 0 && !((before = status[s_turn - 1]) >> 32)) __nanosleep(20);
  unsigned sum = (unsigned)before + (unsigned)x[s_turn];
  status[s_turn] = 1ull << 32 | sum;
  y[s_turn] = (int)sum;
}

/* Three steps on the host, in `a`: is it what the GPU made? */
static int smoothed(float *a, const float *b, int n) {
  float next[512];
  int ok = 1;
  for (int step = 0; step < 3; step++) {
    for (int i = 0; i < n; i++) next[i] = i > 0 && i < n - 1 ? (a[i - 1] + a[i] + a[i + 1]) / 4 : a[i];
    memcpy(a, next, n * sizeof *a);
  }
  for (int i = 0; i < n; i++) ok &= fabsf(a[i] - b[i]) < 1e-4f;
  return ok;
}

int main(void) {
  int x[512], y[512], ok, want;
  float a[512], b[512];
  for (int i = 0; i < 512; i++) a[i] = x[i] = (i * 37 + 11) % 101;
  int *dx = to_device(x, 512), *dy = zeros_on_device<int>(512), *dz = zeros_on_device<int>(64);
  float *da = to_device(a, 512), *db = raw_on_device<float>(512);

  want = 0;
  for (int i = 0; i < 512; i++) want += x[i];
  for (int turn = 0; turn < 2; turn++) {
    last_block_done<<<8, 64>>>(da, db, db + 8);
    fetch(b, db + 8, 1);
    check("the last block adds the sums", b[0] == want);
  }

  last_block_reads_all<<<8, 64>>>(dx, dy, dz);
  fetch(y, dz, 1);
  want = 0;
  for (int i = 0; i < 512; i++) want += x[i] * x[i];
  check("the last block reads what all wrote", y[0] == want);

  TRY(cudaMemset(dz, 0, sizeof(int)));
  last_warp_done<<<8, 64>>>(dx, dy, dz);
  fetch(y, dz, 1);
  check("the last warp reads what all wrote", y[0] == want);

  TRY(cudaMemset(dz, 0, sizeof(int)));
  last_warp_of_fenced_lanes<<<8, 64>>>(dx, dy, dz);
  fetch(y, dz, 1);
  check("the last warp of fenced lanes reads what all wrote", y[0] == want);

  TRY(cudaMemset(dz, 0, sizeof(int)));
  last_block_of_many_fences<<<8, 64>>>(dx, dy, dz);
  fetch(y, dz, 1);
  check("the last block after many fences reads what all wrote", y[0] == want);

  TRY(cudaMemset(dz, 0, sizeof(int)));
  first_block_releases<<<4, 64>>>(dx, dy, dy + 64, (unsigned *)dz);
  fetch(y, dy + 64, 192);
  ok = 1;
  for (int i = 0; i < 192; i++) ok &= y[i] == x[63 - i % 64] * x[63 - i % 64];
  check("blocks that wait for the first", ok);

  void *of_turns[] = {&dy};
  TRY(cudaLaunchCooperativeKernel((void *)one_block_at_a_time, dim3(4), dim3(64), of_turns, 0, 0));
  fetch(y, dy, 64);
  ok = 1;
  for (int i = 0; i < 64; i++) ok &= y[i] == 3;
  check("one block at a time", ok);

  void *of_tickets[] = {&dx, &dy, &dz};
  TRY(cudaMemset(dz, 0, sizeof(int)));
  TRY(cudaLaunchCooperativeKernel((void *)last_block_of_each_turn, dim3(8), dim3(64), of_tickets, 0, 0));
  fetch(y, dz, 1);
  check("the last block of each turn", y[0] == want);

  int n = 500;
  void *arguments[] = {&da, &db, &n};
  TRY(cudaLaunchCooperativeKernel((void *)smooth_three_times, dim3(4), dim3(64), arguments, 0, 0));
  fetch(b, db, n);
  check("three steps with grid barriers", smoothed(a, b, n));

  n = 512;
  unsigned *arrived = zeros_on_device<unsigned>(1);
  void *by_hand[] = {&da, &db, &n, &arrived};
  TRY(cudaMemcpy(da, a, sizeof a, cudaMemcpyHostToDevice));
  TRY(cudaLaunchCooperativeKernel((void *)smooth_by_hand, dim3(8), dim3(64), by_hand, 0, 0));
  fetch(b, db, n);
  check("three steps with barriers by hand", smoothed(a, b, n));
  TRY(cudaFree(arrived));

  TRY(cudaMemset(dz, 0, 64 * sizeof(int)));
  lock_with_fences<<<20, 32>>>(dz, dz + 1);
  fetch(y, dz + 1, 1);
  want = 0;
  for (int i = 0; i < 20; i++) want = want * 3 % 1009 + 1;
  check("a lock between blocks", y[0] == want);

  TRY(cudaMemset(dz, 0, 64 * sizeof(int)));
  lock_of_all_threads<<<4, 64>>>(dz, dz + 1);
  fetch(y, dz + 1, 1);
  check("a lock that all threads want", y[0] == 256);

  TRY(cudaMemset(dz, 0, 64 * sizeof(int)));
  TRY(cudaMemcpy(dy, x, sizeof x, cudaMemcpyHostToDevice));
  work_queue<<<3, 32>>>(dy, 16, (unsigned *)dz);
  fetch(y, dy, 512);
  ok = 1;
  for (int i = 0; i < 512; i++) ok &= y[i] == x[i] + i / 32;
  check("blocks that draw their work", ok);

  TRY(cudaMemset(dz, 0, 64 * sizeof(int)));
  chained_scan<<<16, 32>>>(dx, dy, dz, dz + 16, (unsigned *)dz + 32);
  fetch(y, dy, 512);
  ok = 1;
  for (int i = 0, sum = 0; i < 512; i++) ok &= y[i] == (sum += x[i]);
  check("a chain of blocks", ok);

  TRY(cudaMemset(dz, 0, 64 * sizeof(int)));
  value_with_flag<<<16, 32>>>(dx, (unsigned long long *)dz, dz + 32, dy);
  fetch(y, dy, 16);
  ok = 1;
  for (int i = 0, sum = 0; i < 16; i++) ok &= y[i] == (sum += x[i]);
  check("values that carry their flags", ok);

  unsigned char byte[128];
  bytes_of_one_word<<<4, 32>>>((unsigned char *)dy);
  fetch(byte, (unsigned char *)dy, 128);
  ok = 1;
  for (int i = 0; i < 128; i++) ok &= byte[i] == 10 * (i % 4) + i / 4 % 10;
  check("blocks that write bytes of one word", ok);

  TRY(cudaMemset(dz, 0, 64 * sizeof(int)));
  set_flag<<<8, 64>>>(dx, 50, dz);
  fetch(y, dz, 1);
  check("a flag that many set to the same value", y[0] == 1);

  int start[6] = {0, -1, 1000, 0, 0, 0};
  TRY(cudaMemcpy(dz, start, sizeof start, cudaMemcpyHostToDevice));
  atomics_of_all_blocks<<<8, 64>>>(dx, dz);
  fetch(y, dz, 6);
  for (int i = 0; i < 512; i++) {
    start[0] += x[i];
    start[1] = x[i] > start[1] ? x[i] : start[1];
    start[2] = x[i] < start[2] ? x[i] : start[2];
    start[3] ^= x[i];
    start[4] |= x[i];
    start[5]++;
  }
  check("atomics by all blocks", memcmp(y, start, sizeof start) == 0);

  TRY(cudaMemset(db, 0, sizeof(float)));
  for (int i = 0; i < 512; i++) a[i] = x[i];
  TRY(cudaMemcpy(da, a, sizeof a, cudaMemcpyHostToDevice));
  float_max<<<8, 64>>>(da, db);
  fetch(b, db, 1);
  check("a float maximum by compare and swap", b[0] == 100);

  TRY(cudaFree(dx));
  TRY(cudaFree(dy));
  TRY(cudaFree(dz));
  TRY(cudaFree(da));
  TRY(cudaFree(db));
  return finish();
}
