// Shared memory cut, shared and reused in every legal way.
#include "check.h"

// Three arrays in one piece of dynamic shared memory.
__global__ void three_in_one(const float *x, float *y, int n) {
  extern __shared__ __align__(16) unsigned char s_bytes[];
  float *s_value = (float *)s_bytes;
  int *s_index = (int *)(s_value + n);
  unsigned char *s_flag = (unsigned char *)(s_index + n);
  int t = threadIdx.x;
  s_value[t] = x[t];
  s_index[t] = n - 1 - t;
  s_flag[t] = t % 2;
  __syncthreads();
  y[t] = s_flag[s_index[t]] ? s_value[s_index[t]] : -s_value[s_index[t]];
}

// The last element of a row, the first of the next: a two-dimensional array used to its edges, with a halo.
__global__ void with_halo(const float *x, float *y, int n) {
  __shared__ float s[34];
  int t = threadIdx.x, i = blockIdx.x * 32 + t;
  s[t + 1] = i < n ? x[i] : 0;
  if (t == 0) s[0] = i > 0 ? x[i - 1] : 0;
  if (t == 31) s[33] = i + 1 < n ? x[i + 1] : 0;
  __syncthreads();
  if (i < n) y[i] = s[t] + s[t + 1] + s[t + 2];
}

// A tile at the matrix's edge is filled with zeros, so that the sum may run over all of it.
__global__ void matmul_ragged(const float *a, const float *b, float *c, int n) {
  __shared__ float s_a[16][16], s_b[16][16];
  int x = threadIdx.x, y = threadIdx.y, row = blockIdx.y * 16 + y, column = blockIdx.x * 16 + x;
  float sum = 0;
  for (int tile = 0; tile < n; tile += 16) {
    s_a[y][x] = row < n && tile + x < n ? a[row * n + tile + x] : 0;
    s_b[y][x] = tile + y < n && column < n ? b[(tile + y) * n + column] : 0;
    __syncthreads();
    for (int k = 0; k < 16; k++) sum += s_a[y][k] * s_b[k][x];
    __syncthreads();
  }
  if (row < n && column < n) c[row * n + column] = sum;
}

// Only the part of the array that was filled is ever read.
__global__ void partly_filled(const int *x, int n, int *y) {
  __shared__ int s[128];
  if (threadIdx.x < n) s[threadIdx.x] = x[threadIdx.x];
  __syncthreads();
  int sum = 0;
  for (int i = 0; i < n; i++) sum += s[i];
  y[threadIdx.x] = sum;
}

// Structs, bools, 64-bit and vector elements.
struct Best {
  float value;
  int index;
};

__global__ void argmax(const float *x, int n, Best *best) {
  __shared__ Best s[64];
  int t = threadIdx.x;
  Best own = {-1e30f, -1};
  for (int i = t; i < n; i += 64)
    if (x[i] > own.value) own = {x[i], i};
  s[t] = own;
  __syncthreads();
  for (int half = 32; half > 0; half /= 2) {
    if (t < half && (s[t + half].value > s[t].value)) s[t] = s[t + half];
    __syncthreads();
  }
  if (t == 0) *best = s[0];
}

__global__ void vectors_in_shared(const float4 *x, float4 *y) {
  __shared__ float4 s[64];
  __shared__ double2 d[64];
  int t = threadIdx.x;
  s[t] = x[t];
  d[t] = make_double2(t, 2 * t);
  __syncthreads();
  float4 v = s[63 - t];
  v.w = d[(t + 1) % 64].y;
  y[t] = v;
}

// One array of a template for each type, one of a function for each function.
template <class T>
__device__ T reverse(T value) {
  __shared__ T s[32];
  __syncthreads();
  s[threadIdx.x] = value;
  __syncthreads();
  return s[31 - threadIdx.x];
}

__global__ void arrays_of_templates(int *x, double *y) {
  x[threadIdx.x] = reverse(x[threadIdx.x]) + reverse((int)threadIdx.x);
  y[threadIdx.x] = reverse(y[threadIdx.x]);
}

// Bins of shared bytes: neighbours in one word belong to different threads.
__global__ void neighbouring_bytes(unsigned char *x) {
  __shared__ unsigned char s[64];
  int t = threadIdx.x;
  s[t] = x[t];
  s[t] += 1;  // own byte, no barrier needed
  __syncthreads();
  x[t] = s[t ^ 3];
}

// Thread 0 writes, all read, then it writes again: a barrier on both sides of the reads.
__global__ void broadcast_each_turn(const int *x, int *y) {
  __shared__ int s_pivot;
  int rank = 0;
  for (int k = 0; k < 32; k++) {
    if (threadIdx.x == k) s_pivot = x[k];
    __syncthreads();
    rank += s_pivot < x[threadIdx.x];
    __syncthreads();
  }
  y[threadIdx.x] = rank;
}

// Bitonic sort: partners swap within a round, a barrier between rounds.
__global__ void bitonic_sort(int *x) {
  __shared__ int s[256];
  int t = threadIdx.x;
  s[t] = x[t];
  __syncthreads();
  for (int size = 2; size <= 256; size *= 2)
    for (int step = size / 2; step > 0; step /= 2) {
      int partner = t ^ step;
      if (partner > t) {
        int low = s[t], high = s[partner];
        if ((low > high) == ((t & size) == 0)) {
          s[t] = high;
          s[partner] = low;
        }
      }
      __syncthreads();
    }
  x[t] = s[t];
}

// A queue in shared memory: atomics give the places, a barrier comes before the plain reads.
__global__ void queue_of_block(const int *x, int *y, int *count) {
  __shared__ int s_queue[128], s_length;
  int t = threadIdx.x;
  if (t == 0) s_length = 0;
  __syncthreads();
  if (x[t] % 4 == 0) s_queue[atomicAdd(&s_length, 1)] = x[t];
  __syncthreads();
  for (int i = t; i < s_length; i += 128) y[i] = s_queue[i];
  if (t == 0) *count = s_length;
}

// 64 KB of dynamic shared memory, asked for as CUDA wants it.
__global__ void large_dynamic(int *y) {
  extern __shared__ int s_large[];
  for (int i = threadIdx.x; i < 16384; i += blockDim.x) s_large[i] = i;
  __syncthreads();
  y[threadIdx.x] = s_large[16383 - threadIdx.x];
}

int main(void) {
  int x[256], y[256], ok, want;
  float a[256], b[256];
  for (int i = 0; i < 256; i++) a[i] = x[i] = (i * 37 + 11) % 101;
  int *dx = to_device(x, 256), *dy = raw_on_device<int>(256);
  float *da = to_device(a, 256), *db = raw_on_device<float>(256);

  three_in_one<<<1, 64, 64 * (sizeof(float) + sizeof(int) + 1)>>>(da, db, 64);
  fetch(b, db, 64);
  ok = 1;
  for (int i = 0; i < 64; i++) ok &= b[i] == ((63 - i) % 2 ? a[63 - i] : -a[63 - i]);
  check("three arrays in dynamic shared memory", ok);

  with_halo<<<4, 32>>>(da, db, 100);
  fetch(b, db, 100);
  check("a halo at both ends", b[0] == a[0] + a[1] && b[99] == a[98] + a[99] && b[32] == a[31] + a[32] + a[33]);

  float m[20 * 20], c[20 * 20], *dm, *dc = raw_on_device<float>(400);
  for (int i = 0; i < 400; i++) m[i] = i % 7;
  dm = to_device(m, 400);
  matmul_ragged<<<dim3(2, 2), dim3(16, 16)>>>(dm, dm, dc, 20);
  fetch(c, dc, 400);
  ok = 1;
  for (int i = 0; i < 400; i++) {
    float sum = 0;
    for (int k = 0; k < 20; k++) sum += m[i / 20 * 20 + k] * m[k * 20 + i % 20];
    ok &= c[i] == sum;
  }
  check("ragged tiles filled with zeros", ok);

  partly_filled<<<1, 128>>>(dx, 50, dy);
  fetch(y, dy, 128);
  want = 0;
  for (int i = 0; i < 50; i++) want += x[i];
  check("a partly filled array", y[127] == want);

  Best best, *dbest = raw_on_device<Best>(1);
  argmax<<<1, 64>>>(da, 100, dbest);
  fetch(&best, dbest, 1);
  check("structs in shared memory", best.value == 100 && a[best.index] == 100);

  vectors_in_shared<<<1, 64>>>((float4 *)da, (float4 *)db);
  fetch(b, db, 256);
  check("vectors in shared memory", b[0] == a[252] && b[3] == 2 && b[255] == 0);

  double d[32];
  for (int i = 0; i < 32; i++) d[i] = i;
  double *dd = to_device(d, 32);
  arrays_of_templates<<<1, 32>>>(dx, dd);
  fetch(y, dx, 32);
  fetch(d, dd, 32);
  check("arrays of templates", y[0] == x[31] + 31 && y[31] == x[0] && d[3] == 28);

  unsigned char bytes[64];
  for (int i = 0; i < 64; i++) bytes[i] = i;
  unsigned char *dbytes = to_device(bytes, 64);
  neighbouring_bytes<<<1, 64>>>(dbytes);
  fetch(bytes, dbytes, 64);
  check("neighbouring bytes", bytes[0] == 4 && bytes[63] == 61);

  TRY(cudaMemcpy(dx, x, sizeof x, cudaMemcpyHostToDevice));
  broadcast_each_turn<<<1, 32>>>(dx, dy);
  fetch(y, dy, 32);
  ok = 1;
  for (int i = 0; i < 32; i++) {
    want = 0;
    for (int k = 0; k < 32; k++) want += x[k] < x[i];
    ok &= y[i] == want;
  }
  check("a broadcast each turn", ok);

  bitonic_sort<<<1, 256>>>(dx);
  fetch(y, dx, 256);
  ok = 1;
  for (int i = 1; i < 256; i++) ok &= y[i - 1] <= y[i];
  check("bitonic sort", ok);

  TRY(cudaMemcpy(dx, x, sizeof x, cudaMemcpyHostToDevice));
  queue_of_block<<<1, 128>>>(dx, dy, dy + 200);
  fetch(y, dy + 200, 1);
  want = 0;
  for (int i = 0; i < 128; i++) want += x[i] % 4 == 0;
  check("a queue in shared memory", y[0] == want);

  TRY(cudaFuncSetAttribute(large_dynamic, cudaFuncAttributeMaxDynamicSharedMemorySize, 65536));
  large_dynamic<<<1, 128, 65536>>>(dy);
  fetch(y, dy, 128);
  check("64 KB of dynamic shared memory", y[0] == 16383 && y[127] == 16256);

  void *all[] = {dx, dy, da, db, dm, dc, dbest, dd, dbytes};
  for (void *one : all) TRY(cudaFree(one));
  return finish();
}
