// Barriers where they are allowed, and data that only barriers keep apart.
#include "check.h"

// All threads of a block take the same branch.
__global__ void barrier_in_uniform_branch(int *x) {
  __shared__ int s[64];
  int t = threadIdx.x, i = blockIdx.x * 64 + t;
  if (blockIdx.x % 2) {
    s[t] = x[i];
    __syncthreads();
    x[i] = s[63 - t];
  } else {
    x[i] = -x[i];
  }
}

// The number of turns is the same for the whole block, and another one for each block.
__global__ void barrier_in_uniform_loop(int *x) {
  __shared__ int s[64];
  int t = threadIdx.x, i = blockIdx.x * 64 + t, value = x[i];
  for (int turn = 0; turn <= blockIdx.x; turn++) {
    s[t] = value;
    __syncthreads();
    value = s[(t + 1) % 64];
    __syncthreads();
  }
  x[i] = value;
}

// Whole blocks leave before the barrier that the others pass.
__global__ void some_blocks_leave_early(int *x, int blocks) {
  __shared__ int s[64];
  if (blockIdx.x >= blocks) return;
  int t = threadIdx.x, i = blockIdx.x * 64 + t;
  s[t] = x[i];
  __syncthreads();
  x[i] = s[t ^ 1];
}

// A loop that ends by a shared flag: read, barrier, only then written again.
__global__ void until_sorted(int *x) {
  __shared__ int s[32], s_swapped;
  int t = threadIdx.x;
  s[t] = x[t];
  do {
    __syncthreads();
    if (t == 0) s_swapped = 0;
    __syncthreads();
    for (int odd = 0; odd < 2; odd++) {
      int left = 2 * t + odd;
      if (left + 1 < 32 && s[left] > s[left + 1]) {
        int swap = s[left];
        s[left] = s[left + 1];
        s[left + 1] = swap;
        s_swapped = 1;  // by many threads, all the same value
      }
      __syncthreads();
    }
  } while (s_swapped);
  x[t] = s[t];
}

// The same with __syncthreads_or(): barrier and flag in one.
__global__ void until_all_are_one(int *x, int *turns) {
  int value = x[threadIdx.x], count = 0;
  while (__syncthreads_or(value > 1)) {
    if (value > 1) value = value % 2 ? 3 * value + 1 : value / 2;
    count++;
  }
  x[threadIdx.x] = value;
  if (threadIdx.x == 0) *turns = count;
}

// Two tiles in turn: one barrier a round is enough.
__global__ void double_buffer(const int *in, int *out, int tiles) {
  __shared__ int s[2][64];
  int t = threadIdx.x, sum = 0;
  s[0][t] = in[t];
  for (int tile = 0; tile < tiles; tile++) {
    __syncthreads();
    if (tile + 1 < tiles) s[(tile + 1) % 2][t] = in[(tile + 1) * 64 + t];
    sum += s[tile % 2][63 - t];
  }
  out[t] = sum;
}

// A scan between two arrays, one barrier a round.
__global__ void scan_ping_pong(const int *in, int *out) {
  __shared__ int s[2][128];
  int t = threadIdx.x, from = 0;
  s[0][t] = in[t];
  for (int reach = 1; reach < 128; reach *= 2) {
    __syncthreads();
    s[from ^ 1][t] = s[from][t] + (t >= reach ? s[from][t - reach] : 0);
    from ^= 1;
  }
  out[t] = s[from][t];
}

// Blelloch's exclusive scan: in place, up and down a tree.
__global__ void scan_in_place(const int *in, int *out) {
  __shared__ int s[128];
  int t = threadIdx.x;
  s[t] = in[t];
  s[t + 64] = in[t + 64];
  for (int step = 1; step < 128; step *= 2) {
    __syncthreads();
    int right = (t + 1) * 2 * step - 1;
    if (right < 128) s[right] += s[right - step];
  }
  __syncthreads();
  if (t == 0) s[127] = 0;
  for (int step = 64; step > 0; step /= 2) {
    __syncthreads();
    int right = (t + 1) * 2 * step - 1;
    if (right < 128) {
      int left = s[right - step];
      s[right - step] = s[right];
      s[right] += left;
    }
  }
  __syncthreads();
  out[t] = s[t];
  out[t + 64] = s[t + 64];
}

// Every thread reads another's element, then writes its own: a barrier between.
__global__ void rotate_in_place(int *x) {
  int next = x[(threadIdx.x + 1) % 64];
  __syncthreads();
  x[threadIdx.x] = next;
}

// A tree with interleaved addresses: a thread reads what one other wrote in the round before.
__global__ void tree_interleaved(const int *x, int *sum) {
  __shared__ int s[128];
  int t = threadIdx.x;
  s[t] = x[blockIdx.x * 128 + t];
  for (int step = 1; step < 128; step *= 2) {
    __syncthreads();
    if (t % (2 * step) == 0) s[t] += s[t + step];
  }
  if (t == 0) sum[blockIdx.x] = s[0];  // its own element: no barrier needed
}

// Blocks by barriers down to one warp, from there with __syncwarp().
__global__ void tree_with_warp_tail(const int *x, int *sum) {
  __shared__ int s[256];
  int t = threadIdx.x;
  s[t] = x[blockIdx.x * 256 + t];
  __syncthreads();
  for (int half = 128; half >= 32; half /= 2) {
    if (t < half) s[t] += s[t + half];
    __syncthreads();
  }
  if (t < 32) {
    int value = s[t];
    for (int half = 16; half > 0; half /= 2) {
      if (t + half < 32) value += s[t + half];
      __syncwarp();
      s[t] = value;
      __syncwarp();
    }
  }
  if (t == 0) sum[blockIdx.x] = s[0];
}

// A padded tile, transposed; rows and columns that the matrix does not have are skipped on both sides of the barrier.
__global__ void transpose_padded(const float *in, float *out, int rows, int columns) {
  __shared__ float s[16][17];
  int x = blockIdx.x * 16 + threadIdx.x, y = blockIdx.y * 16 + threadIdx.y;
  if (x < columns && y < rows) s[threadIdx.y][threadIdx.x] = in[y * columns + x];
  __syncthreads();
  x = blockIdx.y * 16 + threadIdx.x;
  y = blockIdx.x * 16 + threadIdx.y;
  if (x < rows && y < columns) out[y * rows + x] = s[threadIdx.x][threadIdx.y];
}

// One piece of shared memory for two purposes, a barrier between them.
__global__ void shared_memory_reused(const float *x, float *y) {
  __shared__ union {
    float value[64];
    int order[64];
  } s;
  int t = threadIdx.x, rank = 0;
  s.value[t] = x[t];
  __syncthreads();
  for (int i = 0; i < 64; i++) rank += s.value[i] < x[t];
  __syncthreads();
  s.order[rank] = t;
  __syncthreads();
  y[t] = x[s.order[t]];
}

// A barrier inside a function that is called from two places; all threads come by the same way.
__device__ int sum_of_block(int value, int *s) {
  int t = threadIdx.x;
  __syncthreads();  // s may still be read for the last sum
  s[t] = value;
  __syncthreads();
  int sum = 0;
  for (int i = 0; i < 64; i++) sum += s[i];
  return sum;
}

__global__ void barrier_in_function(int *x) {
  __shared__ int s[64];
  int sum = sum_of_block(x[threadIdx.x], s);
  x[threadIdx.x] = sum_of_block(sum % (threadIdx.x + 1), s);
}

// Count of a predicate over a ragged block of 50 threads: the second warp has 18 lanes.
__global__ void count_in_partial_warp(const int *x, int *count) {
  int n = __syncthreads_count(x[threadIdx.x] % 3 == 0);
  if (threadIdx.x == 49) *count = n;
}

// Atomics fill the bins, a barrier, then plain reads.
__global__ void atomics_then_reads(const int *x, int *bins) {
  __shared__ int s[16];
  int t = threadIdx.x;
  if (t < 16) s[t] = 0;
  __syncthreads();
  atomicAdd(&s[x[t] & 15], 1);
  __syncthreads();
  if (t < 16) bins[t] = s[t] + (t > 0 ? s[t - 1] : 0);
}

int main(void) {
  int x[512], y[512];
  for (int i = 0; i < 512; i++) x[i] = (i * 37 + 11) % 101;
  int ok, *dx, *dy;

  dx = to_device(x, 256);
  barrier_in_uniform_branch<<<4, 64>>>(dx);
  fetch(y, dx, 256);
  ok = 1;
  for (int i = 0; i < 256; i++) ok &= y[i] == (i / 64 % 2 ? x[i / 64 * 64 + 63 - i % 64] : -x[i]);
  check("barrier in a branch that the whole block takes", ok);

  TRY(cudaMemcpy(dx, x, 256 * sizeof(int), cudaMemcpyHostToDevice));
  barrier_in_uniform_loop<<<4, 64>>>(dx);
  fetch(y, dx, 256);
  ok = 1;
  for (int i = 0; i < 256; i++) ok &= y[i] == x[i / 64 * 64 + (i + i / 64 + 1) % 64];
  check("barrier in a loop with the same turns for the whole block", ok);

  TRY(cudaMemcpy(dx, x, 256 * sizeof(int), cudaMemcpyHostToDevice));
  some_blocks_leave_early<<<6, 64>>>(dx, 4);
  fetch(y, dx, 256);
  ok = 1;
  for (int i = 0; i < 256; i++) ok &= y[i] == x[i ^ 1];
  check("blocks that leave early", ok);

  TRY(cudaMemcpy(dx, x, 256 * sizeof(int), cudaMemcpyHostToDevice));
  until_sorted<<<1, 32>>>(dx);
  fetch(y, dx, 32);
  ok = 1;
  for (int i = 1; i < 32; i++) ok &= y[i - 1] <= y[i];
  check("loop that ends by a shared flag", ok);

  dy = raw_on_device<int>(256);
  until_all_are_one<<<1, 64>>>(dx, dy);
  fetch(y, dy, 1);
  check("loop that ends by __syncthreads_or", y[0] > 0);

  TRY(cudaMemcpy(dx, x, 256 * sizeof(int), cudaMemcpyHostToDevice));
  double_buffer<<<1, 64>>>(dx, dy, 4);
  fetch(y, dy, 64);
  ok = 1;
  for (int i = 0; i < 64; i++) ok &= y[i] == x[63 - i] + x[127 - i] + x[191 - i] + x[255 - i];
  check("double buffer", ok);

  scan_ping_pong<<<1, 128>>>(dx, dy);
  fetch(y, dy, 128);
  ok = 1;
  for (int i = 0, sum = 0; i < 128; i++) ok &= y[i] == (sum += x[i]);
  check("scan between two arrays", ok);

  scan_in_place<<<1, 64>>>(dx, dy);
  fetch(y, dy, 128);
  ok = 1;
  for (int i = 0, sum = 0; i < 128; sum += x[i++]) ok &= y[i] == sum;
  check("scan in place", ok);

  rotate_in_place<<<1, 64>>>(dx);
  fetch(y, dx, 64);
  ok = 1;
  for (int i = 0; i < 64; i++) ok &= y[i] == x[(i + 1) % 64];
  check("rotation in place", ok);

  TRY(cudaMemcpy(dx, x, 256 * sizeof(int), cudaMemcpyHostToDevice));
  int half[2] = {0, 0};
  for (int i = 0; i < 256; i++) half[i / 128] += x[i];
  tree_interleaved<<<2, 128>>>(dx, dy);
  fetch(y, dy, 2);
  check("tree with interleaved addresses", y[0] == half[0] && y[1] == half[1]);

  tree_with_warp_tail<<<1, 256>>>(dx, dy);
  fetch(y, dy, 1);
  check("tree that ends with __syncwarp", y[0] == half[0] + half[1]);

  float a[21 * 35], b[21 * 35];
  for (int i = 0; i < 21 * 35; i++) a[i] = i;
  float *da = to_device(a, 21 * 35), *db = raw_on_device<float>(21 * 35);
  transpose_padded<<<dim3(3, 2), dim3(16, 16)>>>(da, db, 21, 35);
  fetch(b, db, 21 * 35);
  ok = 1;
  for (int i = 0; i < 21 * 35; i++) ok &= b[i % 35 * 21 + i / 35] == a[i];
  check("padded transpose of a ragged matrix", ok);

  for (int i = 0; i < 64; i++) a[i] = (i * 29) % 64;
  TRY(cudaMemcpy(da, a, 64 * sizeof(float), cudaMemcpyHostToDevice));
  shared_memory_reused<<<1, 64>>>(da, db);
  fetch(b, db, 64);
  ok = 1;
  for (int i = 0; i < 64; i++) ok &= b[i] == i;
  check("shared memory used for two purposes", ok);

  barrier_in_function<<<1, 64>>>(dx);
  fetch(y, dx, 64);
  int sum = 0, want = 0;
  for (int i = 0; i < 64; i++) sum += x[i];
  for (int i = 0; i < 64; i++) want += sum % (i + 1);
  check("barrier in a function called twice", y[0] == want && y[63] == want);

  TRY(cudaMemcpy(dx, x, 256 * sizeof(int), cudaMemcpyHostToDevice));
  count_in_partial_warp<<<1, 50>>>(dx, dy);
  fetch(y, dy, 1);
  want = 0;
  for (int i = 0; i < 50; i++) want += x[i] % 3 == 0;
  check("count over a partial warp", y[0] == want);

  atomics_then_reads<<<1, 256>>>(dx, dy);
  fetch(y, dy, 16);
  int bins[16] = {0};
  for (int i = 0; i < 256; i++) bins[x[i] & 15]++;
  ok = 1;
  for (int i = 0; i < 16; i++) ok &= y[i] == bins[i] + (i ? bins[i - 1] : 0);
  check("atomics, a barrier, plain reads", ok);

  TRY(cudaFree(dx));
  TRY(cudaFree(dy));
  TRY(cudaFree(da));
  TRY(cudaFree(db));
  return finish();
}
