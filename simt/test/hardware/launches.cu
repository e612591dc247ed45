// Launches whose counters are compared with a GPU's: the families of access that a course meets, each kernel once.
//
// What makes the comparison fair: __restrict__ where the compiler may then keep a value in a register, as both do;
// `#pragma unroll 1` where unrolling would let ptxas fuse neighbouring shared loads into wider ones; no divisions by
// variables (their instructions differ, their accesses do not, but the branches would). The order of the launches is
// the
// key by which compare.py finds the pairs.
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#include <stdio.h>
#include <stdlib.h>

#define ALL 0xffffffffu

static void try_cuda(cudaError_t error, const char *what) {
  if (error == cudaSuccess) return;
  fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(error));
  exit(1);
}

#define RUN(grid, block, kernel, ...)           \
  do {                                          \
    kernel<<<grid, block>>>(__VA_ARGS__);       \
    try_cuda(cudaGetLastError(), #kernel);      \
    try_cuda(cudaDeviceSynchronize(), #kernel); \
  } while (0)

// ---- transposes of n x n floats ----

__global__ void matrix_copy(const float *__restrict__ in, float *__restrict__ out, int n) {
  int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32 + threadIdx.y;
  out[y * n + x] = in[y * n + x];
}
__global__ void transpose_strided_writes(const float *__restrict__ in, float *__restrict__ out, int n) {
  int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32 + threadIdx.y;
  out[x * n + y] = in[y * n + x];
}
__global__ void transpose_strided_reads(const float *__restrict__ in, float *__restrict__ out, int n) {
  int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32 + threadIdx.y;
  out[y * n + x] = in[x * n + y];
}
__global__ void transpose_tiled(const float *__restrict__ in, float *__restrict__ out, int n) {
  __shared__ float s[32][32];
  int x = threadIdx.x, y = threadIdx.y;
  s[y][x] = in[(blockIdx.y * 32 + y) * n + blockIdx.x * 32 + x];
  __syncthreads();
  out[(blockIdx.x * 32 + y) * n + blockIdx.y * 32 + x] = s[x][y];
}
__global__ void transpose_padded(const float *__restrict__ in, float *__restrict__ out, int n) {
  __shared__ float s[32][33];
  int x = threadIdx.x, y = threadIdx.y;
  s[y][x] = in[(blockIdx.y * 32 + y) * n + blockIdx.x * 32 + x];
  __syncthreads();
  out[(blockIdx.x * 32 + y) * n + blockIdx.y * 32 + x] = s[x][y];
}
__global__ void transpose_swizzled(const float *__restrict__ in, float *__restrict__ out, int n) {
  __shared__ float s[32][32];
  int x = threadIdx.x, y = threadIdx.y;
  s[y][x ^ y] = in[(blockIdx.y * 32 + y) * n + blockIdx.x * 32 + x];
  __syncthreads();
  out[(blockIdx.x * 32 + y) * n + blockIdx.y * 32 + x] = s[x][y ^ x];
}
__global__ void transpose_eight_rows(const float *__restrict__ in, float *__restrict__ out, int n) {
  __shared__ float s[32][33];
  int x = threadIdx.x, y = threadIdx.y;
#pragma unroll 1
  for (int row = 0; row < 32; row += 8) s[y + row][x] = in[(blockIdx.y * 32 + y + row) * n + blockIdx.x * 32 + x];
  __syncthreads();
#pragma unroll 1
  for (int row = 0; row < 32; row += 8) out[(blockIdx.x * 32 + y + row) * n + blockIdx.y * 32 + x] = s[x][y + row];
}
__global__ void transpose_ragged(const float *__restrict__ in, float *__restrict__ out, int rows, int columns) {
  __shared__ float s[16][17];
  int x = blockIdx.x * 16 + threadIdx.x, y = blockIdx.y * 16 + threadIdx.y;
  if (x < columns && y < rows) s[threadIdx.y][threadIdx.x] = in[y * columns + x];
  __syncthreads();
  x = blockIdx.y * 16 + threadIdx.x;
  y = blockIdx.x * 16 + threadIdx.y;
  if (x < rows && y < columns) out[y * rows + x] = s[threadIdx.x][threadIdx.y];
}

// ---- matrix products of n x n floats ----

__global__ void matmul_naive(const float *__restrict__ a, const float *__restrict__ b, float *__restrict__ c, int n) {
  int column = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y * blockDim.y + threadIdx.y;
  float sum = 0;
#pragma unroll 1
  for (int k = 0; k < n; k++) sum += a[row * n + k] * b[k * n + column];
  c[row * n + column] = sum;
}
__global__ void matmul_unrolled(const float *__restrict__ a, const float *__restrict__ b, float *__restrict__ c,
                                int n) {
  int column = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y * blockDim.y + threadIdx.y;
  float sum = 0;
#pragma unroll 8
  for (int k = 0; k < n; k++) sum += a[row * n + k] * b[k * n + column];
  c[row * n + column] = sum;
}
__global__ void matmul_row_from_x(const float *__restrict__ a, const float *__restrict__ b, float *__restrict__ c,
                                  int n) {
  int row = blockIdx.x * blockDim.x + threadIdx.x, column = blockIdx.y * blockDim.y + threadIdx.y;
  float sum = 0;
#pragma unroll 1
  for (int k = 0; k < n; k++) sum += a[row * n + k] * b[k * n + column];
  c[row * n + column] = sum;
}
__global__ void matmul_global_sum(const float *__restrict__ a, const float *__restrict__ b, volatile float *c, int n) {
  int column = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y * blockDim.y + threadIdx.y;
  c[row * n + column] = 0;
#pragma unroll 1
  for (int k = 0; k < n; k++) c[row * n + column] = c[row * n + column] + a[row * n + k] * b[k * n + column];
}
__global__ void matmul_transposed_b(const float *__restrict__ a, const float *__restrict__ b, float *__restrict__ c,
                                    int n) {
  int column = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y * blockDim.y + threadIdx.y;
  float sum = 0;
#pragma unroll 1
  for (int k = 0; k < n; k++) sum += a[row * n + k] * b[column * n + k];
  c[row * n + column] = sum;
}
__global__ void matmul_tiled_16(const float *__restrict__ a, const float *__restrict__ b, float *__restrict__ c,
                                int n) {
  __shared__ float s_a[16][16], s_b[16][16];
  int x = threadIdx.x, y = threadIdx.y, row = blockIdx.y * 16 + y, column = blockIdx.x * 16 + x;
  float sum = 0;
#pragma unroll 1
  for (int tile = 0; tile < n; tile += 16) {
    s_a[y][x] = a[row * n + tile + x];
    s_b[y][x] = b[(tile + y) * n + column];
    __syncthreads();
#pragma unroll 1
    for (int k = 0; k < 16; k++) sum += s_a[y][k] * s_b[k][x];
    __syncthreads();
  }
  c[row * n + column] = sum;
}
__global__ void matmul_tiled_32(const float *__restrict__ a, const float *__restrict__ b, float *__restrict__ c,
                                int n) {
  __shared__ float s_a[32][32], s_b[32][32];
  int x = threadIdx.x, y = threadIdx.y, row = blockIdx.y * 32 + y, column = blockIdx.x * 32 + x;
  float sum = 0;
#pragma unroll 1
  for (int tile = 0; tile < n; tile += 32) {
    s_a[y][x] = a[row * n + tile + x];
    s_b[y][x] = b[(tile + y) * n + column];
    __syncthreads();
#pragma unroll 1
    for (int k = 0; k < 32; k++) sum += s_a[y][k] * s_b[k][x];
    __syncthreads();
  }
  c[row * n + column] = sum;
}
__global__ void matmul_tiled_16_unrolled(const float *__restrict__ a, const float *__restrict__ b,
                                         float *__restrict__ c, int n) {
  __shared__ float s_a[16][16], s_b[16][16];
  int x = threadIdx.x, y = threadIdx.y, row = blockIdx.y * 16 + y, column = blockIdx.x * 16 + x;
  float sum = 0;
#pragma unroll 1
  for (int tile = 0; tile < n; tile += 16) {
    s_a[y][x] = a[row * n + tile + x];
    s_b[y][x] = b[(tile + y) * n + column];
    __syncthreads();
#pragma unroll
    for (int k = 0; k < 16; k++) sum += s_a[y][k] * s_b[k][x];
    __syncthreads();
  }
  c[row * n + column] = sum;
}
__global__ void matmul_tiled_ragged(const float *__restrict__ a, const float *__restrict__ b, float *__restrict__ c,
                                    int n) {
  __shared__ float s_a[16][16], s_b[16][16];
  int x = threadIdx.x, y = threadIdx.y, row = blockIdx.y * 16 + y, column = blockIdx.x * 16 + x;
  float sum = 0;
#pragma unroll 1
  for (int tile = 0; tile < n; tile += 16) {
    s_a[y][x] = row < n && tile + x < n ? a[row * n + tile + x] : 0;
    s_b[y][x] = tile + y < n && column < n ? b[(tile + y) * n + column] : 0;
    __syncthreads();
#pragma unroll 1
    for (int k = 0; k < 16; k++) sum += s_a[y][k] * s_b[k][x];
    __syncthreads();
  }
  if (row < n && column < n) c[row * n + column] = sum;
}
__global__ void matmul_four_rows(const float *__restrict__ a, const float *__restrict__ b, float *__restrict__ c,
                                 int n) {
  int column = blockIdx.x * 32 + threadIdx.x, row = (blockIdx.y * 4 + threadIdx.y) * 4;
  float s0 = 0, s1 = 0, s2 = 0, s3 = 0;
#pragma unroll 1
  for (int k = 0; k < n; k++) {
    float right = b[k * n + column];
    s0 += a[row * n + k] * right;
    s1 += a[(row + 1) * n + k] * right;
    s2 += a[(row + 2) * n + k] * right;
    s3 += a[(row + 3) * n + k] * right;
  }
  c[row * n + column] = s0;
  c[(row + 1) * n + column] = s1;
  c[(row + 2) * n + column] = s2;
  c[(row + 3) * n + column] = s3;
}
__global__ void matvec_thread_a_row(const float *__restrict__ a, const float *__restrict__ x, float *__restrict__ y,
                                    int n) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  float sum = 0;
#pragma unroll 1
  for (int k = 0; k < n; k++) sum += a[row * n + k] * x[k];
  y[row] = sum;
}
__global__ void matvec_warp_a_row(const float *__restrict__ a, const float *__restrict__ x, float *__restrict__ y,
                                  int n) {
  int row = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
  float sum = 0;
#pragma unroll 1
  for (int k = lane; k < n; k += 32) sum += a[row * n + k] * x[k];
  for (int step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(ALL, sum, step);
  if (lane == 0) y[row] = sum;
}
__global__ void column_sums(const float *__restrict__ a, float *__restrict__ y, int n) {
  int column = blockIdx.x * blockDim.x + threadIdx.x;
  float sum = 0;
#pragma unroll 1
  for (int row = 0; row < n; row++) sum += a[row * n + column];
  y[column] = sum;
}

// ---- strides and offsets ----

#define COPY_STRIDED(STRIDE)                                                                    \
  __global__ void copy_stride_##STRIDE(const float *__restrict__ in, float *__restrict__ out) { \
    int i = blockIdx.x * blockDim.x + threadIdx.x;                                              \
    out[i * STRIDE] = in[i * STRIDE];                                                           \
  }
COPY_STRIDED(1)
COPY_STRIDED(2)
COPY_STRIDED(3)
COPY_STRIDED(4)
COPY_STRIDED(5)
COPY_STRIDED(8)
COPY_STRIDED(16)
COPY_STRIDED(32)

#define COPY_OFFSET(OFFSET)                                                                     \
  __global__ void copy_offset_##OFFSET(const float *__restrict__ in, float *__restrict__ out) { \
    int i = blockIdx.x * blockDim.x + threadIdx.x;                                              \
    out[i] = in[i + OFFSET];                                                                    \
  }
COPY_OFFSET(1)
COPY_OFFSET(2)
COPY_OFFSET(4)
COPY_OFFSET(7)
COPY_OFFSET(8)
COPY_OFFSET(16)
COPY_OFFSET(31)

// ---- copies of other types ----

#define COPY_TYPE(NAME, TYPE)                                                        \
  __global__ void copy_##NAME(const TYPE *__restrict__ in, TYPE *__restrict__ out) { \
    int i = blockIdx.x * blockDim.x + threadIdx.x;                                   \
    out[i] = in[i];                                                                  \
  }
COPY_TYPE(byte, unsigned char)
COPY_TYPE(short, short)
COPY_TYPE(half, __half)
COPY_TYPE(half2, __half2)
COPY_TYPE(uchar4, uchar4)
COPY_TYPE(float2, float2)
COPY_TYPE(float4, float4)
COPY_TYPE(double, double)
COPY_TYPE(double2, double2)

struct Triple {
  float x, y, z;
};
__global__ void copy_structs_of_three(const Triple *__restrict__ in, Triple *__restrict__ out) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  Triple t = in[i];
  t.x += 1;
  t.y += 2;
  t.z += 3;
  out[i] = t;
}
__global__ void copy_reversed(const float *__restrict__ in, float *__restrict__ out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  out[i] = in[n - 1 - i];
}
__global__ void copy_grid_stride(const float *__restrict__ in, float *__restrict__ out, int n) {
#pragma unroll 1
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) out[i] = in[i];
}
__global__ void copy_chunk_a_thread(const float *__restrict__ in, float *__restrict__ out) {
  int first = (blockIdx.x * blockDim.x + threadIdx.x) * 8;
#pragma unroll 1
  for (int k = 0; k < 8; k++) out[first + k] = in[first + k];
}
__global__ void copy_cache_hints(const float *__restrict__ in, float *__restrict__ out) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  __stcs(&out[i], __ldcs(&in[i]) + __ldg(&in[i ^ 1]));
}
__global__ void saxpy_ragged(float a, const float *__restrict__ x, float *__restrict__ y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = a * x[i] + y[i];
}

// ---- shared memory: strides and widths ----

#define SHARED_STRIDE(STRIDE)                                       \
  __global__ void shared_stride_##STRIDE(float *__restrict__ out) { \
    __shared__ volatile float s[32 * 33 + 1];                       \
    int t = threadIdx.x;                                            \
    s[t * STRIDE] = t;                                              \
    __syncthreads();                                                \
    out[blockIdx.x * 32 + t] = s[t * STRIDE];                       \
  }
SHARED_STRIDE(1)
SHARED_STRIDE(2)
SHARED_STRIDE(3)
SHARED_STRIDE(4)
SHARED_STRIDE(6)
SHARED_STRIDE(8)
SHARED_STRIDE(16)
SHARED_STRIDE(17)
SHARED_STRIDE(32)
SHARED_STRIDE(33)

__global__ void shared_broadcast(float *__restrict__ out) {
  __shared__ volatile float s[32];
  int t = threadIdx.x;
  s[t] = t;
  __syncthreads();
  out[blockIdx.x * 32 + t] = s[blockIdx.x % 32];
}
__global__ void shared_two_words(float *__restrict__ out) { /* half of the lanes want another word of the same bank */
  __shared__ volatile float s[64];
  int t = threadIdx.x;
  s[t] = t;
  s[t + 32] = t;
  __syncthreads();
  out[blockIdx.x * 32 + t] = s[(t % 2) * 32];
}

#define SHARED_TYPE(NAME, TYPE, MAKE, STRIDE)                               \
  __global__ void shared_##NAME##_stride_##STRIDE(TYPE *__restrict__ out) { \
    __shared__ TYPE s[32 * STRIDE];                                         \
    int t = threadIdx.x;                                                    \
    s[t * STRIDE] = MAKE;                                                   \
    __syncthreads();                                                        \
    out[blockIdx.x * 32 + t] = s[(t ^ 1) * STRIDE];                         \
  }
SHARED_TYPE(byte, unsigned char, (unsigned char)t, 1)
SHARED_TYPE(half, __half, __float2half(t), 1)
SHARED_TYPE(half, __half, __float2half(t), 3)
SHARED_TYPE(float2, float2, make_float2(t, 1), 1)
SHARED_TYPE(float2, float2, make_float2(t, 1), 2)
SHARED_TYPE(double, double, t, 1)
SHARED_TYPE(double, double, t, 3)
SHARED_TYPE(float4, float4, make_float4(t, 1, 2, 3), 1)
SHARED_TYPE(float4, float4, make_float4(t, 1, 2, 3), 2)
SHARED_TYPE(float4, float4, make_float4(t, 1, 2, 3), 5)

// ---- reductions ----

__global__ void reduce_modulo(const float *__restrict__ x, float *__restrict__ sums) {
  __shared__ float s[256];
  int t = threadIdx.x;
  s[t] = x[blockIdx.x * 256 + t];
  __syncthreads();
#pragma unroll 1
  for (int step = 1; step < 256; step *= 2) {
    if (t % (2 * step) == 0) s[t] += s[t + step];
    __syncthreads();
  }
  if (t == 0) sums[blockIdx.x] = s[0];
}
__global__ void reduce_strided(const float *__restrict__ x, float *__restrict__ sums) {
  __shared__ float s[256];
  int t = threadIdx.x;
  s[t] = x[blockIdx.x * 256 + t];
  __syncthreads();
#pragma unroll 1
  for (int step = 1; step < 256; step *= 2) {
    int i = 2 * step * t;
    if (i < 256) s[i] += s[i + step];
    __syncthreads();
  }
  if (t == 0) sums[blockIdx.x] = s[0];
}
__global__ void reduce_sequential(const float *__restrict__ x, float *__restrict__ sums) {
  __shared__ float s[256];
  int t = threadIdx.x;
  s[t] = x[blockIdx.x * 256 + t];
  __syncthreads();
#pragma unroll 1
  for (int half = 128; half > 0; half /= 2) {
    if (t < half) s[t] += s[t + half];
    __syncthreads();
  }
  if (t == 0) sums[blockIdx.x] = s[0];
}
__global__ void reduce_two_loads(const float *__restrict__ x, float *__restrict__ sums) {
  __shared__ float s[256];
  int t = threadIdx.x;
  s[t] = x[blockIdx.x * 512 + t] + x[blockIdx.x * 512 + 256 + t];
  __syncthreads();
#pragma unroll 1
  for (int half = 128; half > 0; half /= 2) {
    if (t < half) s[t] += s[t + half];
    __syncthreads();
  }
  if (t == 0) sums[blockIdx.x] = s[0];
}
__global__ void reduce_shuffles(const float *__restrict__ x, float *__restrict__ sums, int n) {
  __shared__ float s[8];
  int t = threadIdx.x, lane = t % 32;
  float sum = 0;
#pragma unroll 1
  for (int i = blockIdx.x * 256 + t; i < n; i += gridDim.x * 256) sum += x[i];
  for (int step = 16; step > 0; step /= 2) sum += __shfl_down_sync(ALL, sum, step);
  if (lane == 0) s[t / 32] = sum;
  __syncthreads();
  if (t < 32) {
    sum = lane < 8 ? s[lane] : 0;
    for (int step = 4; step > 0; step /= 2) sum += __shfl_down_sync(ALL, sum, step);
    if (t == 0) sums[blockIdx.x] = sum;
  }
}
__global__ void reduce_warps_and_atomics(const float *__restrict__ x, float *__restrict__ sum, int n) {
  int i = blockIdx.x * 256 + threadIdx.x;
  float value = i < n ? x[i] : 0;
  for (int step = 16; step > 0; step /= 2) value += __shfl_down_sync(ALL, value, step);
  if (threadIdx.x % 32 == 0) atomicAdd(sum, value);
}
__global__ void reduce_atomics_only(const float *__restrict__ x, float *__restrict__ sum) {
  atomicAdd(&sum[threadIdx.x % 4], x[blockIdx.x * 256 + threadIdx.x]);
}
__global__ void argmax_of_blocks(const float *__restrict__ x, float *__restrict__ value, int *__restrict__ index) {
  __shared__ float s_value[128];
  __shared__ int s_index[128];
  int t = threadIdx.x;
  s_value[t] = x[blockIdx.x * 128 + t];
  s_index[t] = t;
  __syncthreads();
#pragma unroll 1
  for (int half = 64; half > 0; half /= 2) {
    if (t < half) {
      float other = s_value[t + half];
      if (other > s_value[t]) {
        s_value[t] = other;
        s_index[t] = s_index[t + half];
      }
    }
    __syncthreads();
  }
  if (t == 0) {
    value[blockIdx.x] = s_value[0];
    index[blockIdx.x] = s_index[0];
  }
}

// ---- scans ----

__global__ void scan_ping_pong(const int *__restrict__ x, int *__restrict__ y) {
  __shared__ int s[2][256];
  int t = threadIdx.x, from = 0;
  s[0][t] = x[blockIdx.x * 256 + t];
  __syncthreads();
#pragma unroll 1
  for (int reach = 1; reach < 256; reach *= 2) {
    int value = s[from][t];
    if (t >= reach) value += s[from][t - reach];
    s[from ^ 1][t] = value;
    from ^= 1;
    __syncthreads();
  }
  y[blockIdx.x * 256 + t] = s[from][t];
}
__global__ void scan_tree(const int *__restrict__ x, int *__restrict__ y) {
  __shared__ int s[256];
  int t = threadIdx.x;
  s[t] = x[blockIdx.x * 256 + t];
  s[t + 128] = x[blockIdx.x * 256 + t + 128];
#pragma unroll 1
  for (int step = 1; step < 256; step *= 2) {
    __syncthreads();
    int right = (t + 1) * 2 * step - 1;
    if (right < 256) s[right] += s[right - step];
  }
#pragma unroll 1
  for (int step = 64; step > 0; step /= 2) {
    __syncthreads();
    int right = (t + 1) * 2 * step - 1;
    if (right + step < 256) s[right + step] += s[right];
  }
  __syncthreads();
  y[blockIdx.x * 256 + t] = s[t];
  y[blockIdx.x * 256 + t + 128] = s[t + 128];
}
__device__ int padded(int i) { return i + i / 32; }
__global__ void scan_tree_padded(const int *__restrict__ x, int *__restrict__ y) {
  __shared__ int s[264];
  int t = threadIdx.x;
  s[padded(t)] = x[blockIdx.x * 256 + t];
  s[padded(t + 128)] = x[blockIdx.x * 256 + t + 128];
#pragma unroll 1
  for (int step = 1; step < 256; step *= 2) {
    __syncthreads();
    int right = (t + 1) * 2 * step - 1;
    if (right < 256) s[padded(right)] += s[padded(right - step)];
  }
  __syncthreads();
  y[blockIdx.x * 256 + t] = s[padded(t)];
}
__global__ void scan_shuffles(const int *__restrict__ x, int *__restrict__ y) {
  __shared__ int s[8];
  int t = threadIdx.x, lane = t % 32, warp = t / 32, value = x[blockIdx.x * 256 + t];
  for (int reach = 1; reach < 32; reach *= 2) {
    int left = __shfl_up_sync(ALL, value, reach);
    if (lane >= reach) value += left;
  }
  if (lane == 31) s[warp] = value;
  __syncthreads();
#pragma unroll 1
  for (int w = 0; w < warp; w++) value += s[w];
  y[blockIdx.x * 256 + t] = value;
}
__global__ void sort_bitonic(int *__restrict__ x) {
  __shared__ int s[256];
  int t = threadIdx.x;
  s[t] = x[blockIdx.x * 256 + t];
  __syncthreads();
#pragma unroll 1
  for (int size = 2; size <= 256; size *= 2)
#pragma unroll 1
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
  x[blockIdx.x * 256 + t] = s[t];
}

// ---- histograms ----

__global__ void histogram_global(const unsigned char *__restrict__ x, int *__restrict__ bins) {
  atomicAdd(&bins[x[blockIdx.x * blockDim.x + threadIdx.x]], 1);
}
__global__ void histogram_shared(const unsigned char *__restrict__ x, int *__restrict__ bins, int n) {
  __shared__ int s[256];
  s[threadIdx.x] = 0;
  __syncthreads();
#pragma unroll 1
  for (int i = blockIdx.x * 256 + threadIdx.x; i < n; i += gridDim.x * 256) atomicAdd(&s[x[i]], 1);
  __syncthreads();
  atomicAdd(&bins[threadIdx.x], s[threadIdx.x]);
}
__global__ void histogram_few_bins(const unsigned char *__restrict__ x, int *__restrict__ bins) {
  __shared__ int s[4];
  if (threadIdx.x < 4) s[threadIdx.x] = 0;
  __syncthreads();
  atomicAdd(&s[x[blockIdx.x * 256 + threadIdx.x] & 3], 1);
  __syncthreads();
  if (threadIdx.x < 4) atomicAdd(&bins[threadIdx.x], s[threadIdx.x]);
}
__global__ void tickets(int *__restrict__ counter, int *__restrict__ out) { /* the old value is wanted */
  out[blockIdx.x * 256 + threadIdx.x] = atomicAdd(&counter[threadIdx.x % 8], 1) >= 0;
}

// ---- one value for many ----

__constant__ float c_table[256];

__global__ void broadcast_one(const float *__restrict__ x, float *__restrict__ y) {
  y[blockIdx.x * 256 + threadIdx.x] = x[blockIdx.x];
}
__global__ void broadcast_to_warp(const float *__restrict__ x, float *__restrict__ y) {
  y[blockIdx.x * 256 + threadIdx.x] = x[(blockIdx.x * 256 + threadIdx.x) / 32];
}
__global__ void broadcast_to_eight(const float *__restrict__ x, float *__restrict__ y) {
  y[blockIdx.x * 256 + threadIdx.x] = x[(blockIdx.x * 256 + threadIdx.x) / 8];
}
__global__ void constant_by_block(float *__restrict__ y) { y[blockIdx.x * 256 + threadIdx.x] = c_table[blockIdx.x]; }
__global__ void constant_by_lane(float *__restrict__ y) { y[blockIdx.x * 256 + threadIdx.x] = c_table[threadIdx.x]; }

// ---- divergence ----

__global__ void branch_on_parity(const float *__restrict__ x, float *__restrict__ y) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (threadIdx.x % 2)
    y[i] = sqrtf(x[i]) + x[i + 1];
  else
    y[i] = 2 * x[i + 3];
}
__global__ void branch_on_warp(const float *__restrict__ x, float *__restrict__ y) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (threadIdx.x / 32 % 2)
    y[i] = sqrtf(x[i]) + x[i + 1];
  else
    y[i] = 2 * x[i + 3];
}
__global__ void branch_on_data(const float *__restrict__ x, float *__restrict__ y, float *__restrict__ z) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (x[i] > 0.5f)
    y[i] = 1;
  else
    z[i] = x[(i * 5) & 16383];
}
__global__ void loop_by_data(const int *__restrict__ turns, const float *__restrict__ x, float *__restrict__ y) {
  int i = blockIdx.x * blockDim.x + threadIdx.x, n = turns[i] & 15;
  float sum = 0;
#pragma unroll 1
  for (int k = 0; k < n; k++) sum += x[i + 32 * k];
  y[i] = sum;
}
__global__ void loop_by_lane(const float *__restrict__ x, float *__restrict__ y) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float sum = 0;
#pragma unroll 1
  for (int k = 0; k <= threadIdx.x % 32; k++) sum += x[k];
  y[i] = sum;
}
__global__ void branch_in_loop(const float *__restrict__ x, volatile float *y) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
#pragma unroll 1
  for (int k = 0; k < 8; k++)
    if ((k ^ threadIdx.x) & 1) y[i] = x[i + k];
}
__global__ void both_branches_in_loop(const float *__restrict__ x, volatile float *y, volatile float *z) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
#pragma unroll 1
  for (int k = 0; k < 8; k++) {
    if ((k ^ threadIdx.x) & 1)
      y[i] = x[i + k];
    else
      z[i] = x[i + 2 * k];
  }
}
__global__ void nested_branches(const float *__restrict__ x, volatile float *y) {
  int i = blockIdx.x * blockDim.x + threadIdx.x, t = threadIdx.x;
  if (t & 1) {
    y[i] = x[i];
    if (t & 2)
      y[i] = x[i + 1];
    else
      y[i + 1024] = x[i + 64];
    y[i + 2048] = x[i + 2];
  } else {
    y[i] = x[i + 7];
    if (t & 4) y[i + 3072] = x[i + 8];
  }
  y[i + 4096] = x[i + 9];
}
__global__ void early_exit(const int *__restrict__ turns, const float *__restrict__ x, float *__restrict__ y) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (turns[i] % 3 == 0) return;
  float value = x[i];
  if (turns[i] % 5 == 0) return;
  y[i] = value + x[i + 1];
}
__global__ void switch_of_four(const int *__restrict__ kind, const float *__restrict__ x, volatile float *y) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  switch (kind[i] & 3) {
    case 0:
      y[i] = x[i];
      break;
    case 1:
      y[i + 1024] = x[i] + x[i + 1];
      break;
    case 2:
      y[i + 2048] = x[i] * x[i + 2] * x[i + 3];
      break;
    default:
      y[i + 3072] = 0;
  }
}
__global__ void break_out(const int *__restrict__ x, int *__restrict__ y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x, k = 0;
#pragma unroll 1
  for (; k < n; k++)
    if (x[(i + k * 33) & 16383] % 11 == 0) break;
  y[i] = k;
}
__global__ void continue_over(const int *__restrict__ x, volatile int *y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
#pragma unroll 1
  for (int k = 0; k < n; k++) {
    if (x[(i + k * 33) & 16383] & 1) continue;
    y[i + 1024 * k] = k;
  }
}
__global__ void loop_in_loop(const int *__restrict__ turns, const float *__restrict__ x, float *__restrict__ y) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float sum = 0;
#pragma unroll 1
  for (int k = 0; k < 4; k++) {
    int n = turns[i + k] & 3;
#pragma unroll 1
    for (int j = 0; j < n; j++) sum += x[i + 32 * j + k];
  }
  y[i] = sum;
}
__global__ void collatz(const int *__restrict__ x, int *__restrict__ y) {
  int i = blockIdx.x * blockDim.x + threadIdx.x, value = x[i] % 100 + 1, turns = 0;
#pragma unroll 1
  while (value > 1) {
    value = value % 2 ? 3 * value + 1 : value / 2;
    turns++;
  }
  y[i] = turns;
}
__global__ void guarded_chain(const int *__restrict__ next, const float *__restrict__ x, float *__restrict__ y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n && next[i] > 40 && x[next[i]] > 0.5f) y[i] = 1;
}
__global__ void shared_in_branches(const int *__restrict__ x, int *__restrict__ y) {
  __shared__ int s[64];
  int t = threadIdx.x;
  s[t] = x[blockIdx.x * 64 + t];
  __syncthreads();
  int value = 0;
#pragma unroll 1
  for (int k = 0; k < (t & 7); k++) value += s[(t + k * 3) & 63];
  y[blockIdx.x * 64 + t] = value;
}

// ---- gathers and scatters ----

__global__ void gather(const int *__restrict__ index, const float *__restrict__ x, float *__restrict__ y) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  y[i] = x[index[i]];
}
__global__ void scatter(const int *__restrict__ index, const float *__restrict__ x, float *__restrict__ y) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  y[index[i]] = x[i];
}
__global__ void gather_near(const int *__restrict__ index, const float *__restrict__ x, float *__restrict__ y) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  y[i] = x[(i & ~63) + (index[i] & 63)];
}
__global__ void gather_float4(const int *__restrict__ index, const float4 *__restrict__ x, float4 *__restrict__ y) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  y[i] = x[index[i] & 4095];
}
__global__ void embedding(const int *__restrict__ token, const float *__restrict__ table, float *__restrict__ y) {
  int row = token[blockIdx.x] & 127; /* rows of 96 */
  y[blockIdx.x * 96 + threadIdx.x] = table[row * 96 + threadIdx.x];
}
__global__ void sparse_rows(const int *__restrict__ first, const int *__restrict__ column, const float *__restrict__ x,
                            float *__restrict__ y) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  float sum = 0;
#pragma unroll 1
  for (int k = first[row]; k < first[row + 1]; k++) sum += x[column[k]];
  y[row] = sum;
}

// ---- stencils and convolutions ----

__global__ void stencil_global(const float *__restrict__ x, float *__restrict__ y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i > 0 && i < n - 1) y[i] = x[i - 1] + 2 * x[i] + x[i + 1];
}
__global__ void stencil_shared(const float *__restrict__ x, float *__restrict__ y, int n) {
  __shared__ float s[258];
  int t = threadIdx.x, i = blockIdx.x * 256 + t;
  s[t + 1] = x[i];
  if (t == 0) s[0] = i > 0 ? x[i - 1] : 0;
  if (t == 255) s[257] = i + 1 < n ? x[i + 1] : 0;
  __syncthreads();
  y[i] = s[t] + 2 * s[t + 1] + s[t + 2];
}
__global__ void stencil_five_points(const float *__restrict__ x, float *__restrict__ y, int n) {
  int column = blockIdx.x * 32 + threadIdx.x, row = blockIdx.y * 8 + threadIdx.y;
  if (column > 0 && column < n - 1 && row > 0 && row < n - 1)
    y[row * n + column] = x[row * n + column - 1] + x[row * n + column + 1] + x[(row - 1) * n + column] +
                          x[(row + 1) * n + column] - 4 * x[row * n + column];
}
__global__ void convolve_direct(const float *__restrict__ x, float *__restrict__ y, int n) {
  int column = blockIdx.x * 16 + threadIdx.x, row = blockIdx.y * 16 + threadIdx.y;
  float sum = 0;
#pragma unroll 1
  for (int r = 0; r < 5; r++)
#pragma unroll 1
    for (int c = 0; c < 5; c++) sum += c_table[r * 5 + c] * x[(row + r) * (n + 4) + column + c];
  y[row * n + column] = sum;
}
__global__ void convolve_tile(const float *__restrict__ x, float *__restrict__ y, int n) {
  __shared__ float s[20][20];
  int t = threadIdx.y * 16 + threadIdx.x;
#pragma unroll 1
  for (int i = t; i < 400; i += 256)
    s[i / 20][i % 20] = x[(blockIdx.y * 16 + i / 20) * (n + 4) + blockIdx.x * 16 + i % 20];
  __syncthreads();
  float sum = 0;
#pragma unroll 1
  for (int r = 0; r < 5; r++)
#pragma unroll 1
    for (int c = 0; c < 5; c++) sum += c_table[r * 5 + c] * s[threadIdx.y + r][threadIdx.x + c];
  y[(blockIdx.y * 16 + threadIdx.y) * n + blockIdx.x * 16 + threadIdx.x] = sum;
}
__global__ void max_pool(const float *__restrict__ x, float *__restrict__ y, int n) {
  int column = blockIdx.x * 16 + threadIdx.x, row = blockIdx.y * 16 + threadIdx.y;
  const float *corner = x + 2 * row * n + 2 * column;
  y[row * (n / 2) + column] = fmaxf(fmaxf(corner[0], corner[1]), fmaxf(corner[n], corner[n + 1]));
}
__global__ void image_to_columns(const float *__restrict__ x, float *__restrict__ y, int n) {
  int column = threadIdx.x, row = blockIdx.x;
#pragma unroll 1
  for (int k = 0; k < 9; k++) y[k * n * n + row * n + column] = x[(row + k / 3) * (n + 2) + column + k % 3];
}

// ---- rows ----

__device__ float warp_sum(float value) {
  for (int step = 16; step > 0; step /= 2) value += __shfl_xor_sync(ALL, value, step);
  return value;
}
__device__ float warp_max(float value) {
  for (int step = 16; step > 0; step /= 2) value = fmaxf(value, __shfl_xor_sync(ALL, value, step));
  return value;
}
__global__ void softmax_thread_a_row(const float *__restrict__ x, float *__restrict__ y, int columns) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  float max = -1e30f, sum = 0;
#pragma unroll 1
  for (int i = 0; i < columns; i++) max = fmaxf(max, x[row * columns + i]);
#pragma unroll 1
  for (int i = 0; i < columns; i++) sum += __expf(x[row * columns + i] - max);
#pragma unroll 1
  for (int i = 0; i < columns; i++) y[row * columns + i] = __expf(x[row * columns + i] - max) * __frcp_rn(sum);
}
__global__ void softmax_warp_a_row(const float *__restrict__ x, float *__restrict__ y, int columns) {
  int row = blockIdx.x * 4 + threadIdx.y, lane = threadIdx.x;
  float max = -1e30f, sum = 0;
#pragma unroll 1
  for (int i = lane; i < columns; i += 32) max = fmaxf(max, x[row * columns + i]);
  max = warp_max(max);
#pragma unroll 1
  for (int i = lane; i < columns; i += 32) sum += __expf(x[row * columns + i] - max);
  sum = warp_sum(sum);
#pragma unroll 1
  for (int i = lane; i < columns; i += 32) y[row * columns + i] = __expf(x[row * columns + i] - max) * __frcp_rn(sum);
}
__global__ void softmax_block_a_row(const float *__restrict__ x, float *__restrict__ y, int columns) {
  __shared__ float s[8];
  int t = threadIdx.x, lane = t % 32, row = blockIdx.x;
  float max = -1e30f, sum = 0;
#pragma unroll 1
  for (int i = t; i < columns; i += 256) max = fmaxf(max, x[row * columns + i]);
  max = warp_max(max);
  if (lane == 0) s[t / 32] = max;
  __syncthreads();
  max = warp_max(s[lane & 7]);
  __syncthreads();
#pragma unroll 1
  for (int i = t; i < columns; i += 256) sum += __expf(x[row * columns + i] - max);
  sum = warp_sum(sum);
  if (lane == 0) s[t / 32] = sum;
  __syncthreads();
  sum = warp_sum(s[lane & 7]) / 4;
#pragma unroll 1
  for (int i = t; i < columns; i += 256) y[row * columns + i] = __expf(x[row * columns + i] - max) * __frcp_rn(sum);
}
__global__ void layer_norm_warp_a_row(const float *__restrict__ x, float *__restrict__ y, int columns) {
  int row = blockIdx.x * 4 + threadIdx.y, lane = threadIdx.x;
  float sum = 0, squares = 0;
#pragma unroll 1
  for (int i = lane; i < columns; i += 32) {
    float value = x[row * columns + i];
    sum += value;
    squares += value * value;
  }
  sum = warp_sum(sum);
  squares = warp_sum(squares);
#pragma unroll 1
  for (int i = lane; i < columns; i += 32) y[row * columns + i] = (x[row * columns + i] - sum) * rsqrtf(squares + 1);
}

// ---- the launches ----

#define N (1 << 16)

int main(void) {
  float *host = (float *)malloc(N * sizeof(float)), *a, *b, *c;
  int *numbers = (int *)malloc(N * sizeof(int)), *permutation = (int *)malloc(N * sizeof(int)), *first, *ints, *mixed,
      *out;
  unsigned char *bytes;
  unsigned seed = 12345;
  for (int i = 0; i < N; i++) {
    seed = seed * 1664525u + 1013904223u;
    numbers[i] = seed >> 8 & 0xffff;
    host[i] = (seed >> 8) / (float)(1 << 24);
    permutation[i] = i;
  }
  for (int i = 16383; i > 0; i--) { /* of the first 16,384 numbers */
    int j = numbers[i] % (i + 1), swap = permutation[i];
    permutation[i] = permutation[j];
    permutation[j] = swap;
  }
  const size_t size = N * sizeof(float);
  int *starts = (int *)malloc(1025 * sizeof(int));
  starts[0] = 0;
  for (int i = 0; i < 1024; i++) starts[i + 1] = starts[i] + numbers[i] % 13;
  try_cuda(cudaMalloc((void **)&a, size), "cudaMalloc");
  try_cuda(cudaMalloc((void **)&b, size), "cudaMalloc");
  try_cuda(cudaMalloc((void **)&c, 4 * size), "cudaMalloc");
  try_cuda(cudaMalloc((void **)&ints, size), "cudaMalloc");
  try_cuda(cudaMalloc((void **)&mixed, size), "cudaMalloc");
  try_cuda(cudaMalloc((void **)&out, size), "cudaMalloc");
  try_cuda(cudaMalloc((void **)&bytes, N), "cudaMalloc");
  try_cuda(cudaMalloc((void **)&first, 1025 * sizeof(int)), "cudaMalloc");
  try_cuda(cudaMemcpy(a, host, size, cudaMemcpyHostToDevice), "cudaMemcpy");
  try_cuda(cudaMemcpy(b, host, size, cudaMemcpyHostToDevice), "cudaMemcpy");
  try_cuda(cudaMemcpy(ints, numbers, size, cudaMemcpyHostToDevice), "cudaMemcpy");
  try_cuda(cudaMemcpy(mixed, permutation, size, cudaMemcpyHostToDevice), "cudaMemcpy");
  try_cuda(cudaMemcpy(bytes, numbers, N, cudaMemcpyHostToDevice), "cudaMemcpy");
  try_cuda(cudaMemcpy(first, starts, 1025 * sizeof(int), cudaMemcpyHostToDevice), "cudaMemcpy");
  try_cuda(cudaMemcpyToSymbol(c_table, host, 256 * sizeof(float)), "cudaMemcpyToSymbol");
  try_cuda(cudaMemset(c, 0, 4 * size), "cudaMemset");
  try_cuda(cudaMemset(out, 0, size), "cudaMemset");

  const dim3 tile(32, 32), tiles(4, 4); /* of 128 x 128 */
  RUN(tiles, tile, matrix_copy, a, c, 128);
  RUN(tiles, tile, transpose_strided_writes, a, c, 128);
  RUN(tiles, tile, transpose_strided_reads, a, c, 128);
  RUN(tiles, tile, transpose_tiled, a, c, 128);
  RUN(tiles, tile, transpose_padded, a, c, 128);
  RUN(tiles, tile, transpose_swizzled, a, c, 128);
  RUN(tiles, dim3(32, 8), transpose_eight_rows, a, c, 128);
  RUN(dim3(5, 7), dim3(16, 16), transpose_ragged, a, c, 100, 70);

  RUN(dim3(6, 6), dim3(16, 16), matmul_naive, a, b, c, 96);
  RUN(dim3(3, 12), dim3(32, 8), matmul_naive, a, b, c, 96);
  RUN(dim3(12, 12), dim3(8, 8), matmul_naive, a, b, c, 96);
  RUN(dim3(3, 3), dim3(32, 32), matmul_naive, a, b, c, 96);
  RUN(dim3(6, 6), dim3(16, 16), matmul_unrolled, a, b, c, 96);
  RUN(dim3(6, 6), dim3(16, 16), matmul_row_from_x, a, b, c, 96);
  RUN(dim3(2, 2), dim3(16, 16), matmul_global_sum, a, b, c, 32);
  RUN(dim3(6, 6), dim3(16, 16), matmul_transposed_b, a, b, c, 96);
  RUN(dim3(6, 6), dim3(16, 16), matmul_tiled_16, a, b, c, 96);
  RUN(dim3(3, 3), dim3(32, 32), matmul_tiled_32, a, b, c, 96);
  RUN(dim3(6, 6), dim3(16, 16), matmul_tiled_16_unrolled, a, b, c, 96);
  RUN(dim3(5, 5), dim3(16, 16), matmul_tiled_ragged, a, b, c, 70);
  RUN(dim3(3, 6), dim3(32, 4), matmul_four_rows, a, b, c, 96);
  RUN(2, 64, matvec_thread_a_row, a, b, c, 128);
  RUN(32, 128, matvec_warp_a_row, a, b, c, 128);
  RUN(2, 64, column_sums, a, c, 128);

  RUN(8, 256, copy_stride_1, a, c);
  RUN(8, 256, copy_stride_2, a, c);
  RUN(8, 256, copy_stride_3, a, c);
  RUN(8, 256, copy_stride_4, a, c);
  RUN(8, 256, copy_stride_5, a, c);
  RUN(8, 256, copy_stride_8, a, c);
  RUN(8, 256, copy_stride_16, a, c);
  RUN(8, 256, copy_stride_32, a, c);
  RUN(8, 256, copy_offset_1, a, c);
  RUN(8, 256, copy_offset_2, a, c);
  RUN(8, 256, copy_offset_4, a, c);
  RUN(8, 256, copy_offset_7, a, c);
  RUN(8, 256, copy_offset_8, a, c);
  RUN(8, 256, copy_offset_16, a, c);
  RUN(8, 256, copy_offset_31, a, c);

  RUN(8, 256, copy_byte, (unsigned char *)a, (unsigned char *)c);
  RUN(8, 256, copy_short, (short *)a, (short *)c);
  RUN(8, 256, copy_half, (__half *)a, (__half *)c);
  RUN(8, 256, copy_half2, (__half2 *)a, (__half2 *)c);
  RUN(8, 256, copy_uchar4, (uchar4 *)a, (uchar4 *)c);
  RUN(8, 256, copy_float2, (float2 *)a, (float2 *)c);
  RUN(8, 256, copy_float4, (float4 *)a, (float4 *)c);
  RUN(8, 256, copy_double, (double *)a, (double *)c);
  RUN(8, 256, copy_double2, (double2 *)a, (double2 *)c);
  RUN(8, 256, copy_structs_of_three, (Triple *)a, (Triple *)c);
  RUN(8, 256, copy_reversed, a, c, 2048);
  RUN(4, 256, copy_grid_stride, a, c, 5000);
  RUN(4, 128, copy_chunk_a_thread, a, c);
  RUN(8, 256, copy_cache_hints, a, c);
  RUN(8, 256, saxpy_ragged, 2.0f, a, c, 2001);

  RUN(4, 32, shared_stride_1, c);
  RUN(4, 32, shared_stride_2, c);
  RUN(4, 32, shared_stride_3, c);
  RUN(4, 32, shared_stride_4, c);
  RUN(4, 32, shared_stride_6, c);
  RUN(4, 32, shared_stride_8, c);
  RUN(4, 32, shared_stride_16, c);
  RUN(4, 32, shared_stride_17, c);
  RUN(4, 32, shared_stride_32, c);
  RUN(4, 32, shared_stride_33, c);
  RUN(4, 32, shared_broadcast, c);
  RUN(4, 32, shared_two_words, c);
  RUN(4, 32, shared_byte_stride_1, (unsigned char *)c);
  RUN(4, 32, shared_half_stride_1, (__half *)c);
  RUN(4, 32, shared_half_stride_3, (__half *)c);
  RUN(4, 32, shared_float2_stride_1, (float2 *)c);
  RUN(4, 32, shared_float2_stride_2, (float2 *)c);
  RUN(4, 32, shared_double_stride_1, (double *)c);
  RUN(4, 32, shared_double_stride_3, (double *)c);
  RUN(4, 32, shared_float4_stride_1, (float4 *)c);
  RUN(4, 32, shared_float4_stride_2, (float4 *)c);
  RUN(4, 32, shared_float4_stride_5, (float4 *)c);

  RUN(8, 256, reduce_modulo, a, c);
  RUN(8, 256, reduce_strided, a, c);
  RUN(8, 256, reduce_sequential, a, c);
  RUN(8, 256, reduce_two_loads, a, c);
  RUN(8, 256, reduce_shuffles, a, c, 10000);
  RUN(8, 256, reduce_warps_and_atomics, a, c, 2000);
  RUN(4, 256, reduce_atomics_only, a, c);
  RUN(8, 128, argmax_of_blocks, a, c, out);

  RUN(4, 256, scan_ping_pong, ints, out);
  RUN(4, 128, scan_tree, ints, out);
  RUN(4, 128, scan_tree_padded, ints, out);
  RUN(4, 256, scan_shuffles, ints, out);
  try_cuda(cudaMemcpy(out, ints, size, cudaMemcpyDeviceToDevice), "cudaMemcpy");
  RUN(4, 256, sort_bitonic, out);

  RUN(8, 256, histogram_global, bytes, out);
  RUN(4, 256, histogram_shared, bytes, out, 5000);
  RUN(4, 256, histogram_few_bins, bytes, out);
  RUN(4, 256, tickets, out, (int *)c);

  RUN(8, 256, broadcast_one, a, c);
  RUN(8, 256, broadcast_to_warp, a, c);
  RUN(8, 256, broadcast_to_eight, a, c);
  RUN(8, 256, constant_by_block, c);
  RUN(8, 256, constant_by_lane, c);

  RUN(4, 256, branch_on_parity, a, c);
  RUN(4, 256, branch_on_warp, a, c);
  RUN(4, 256, branch_on_data, a, c, c + N);
  RUN(4, 256, loop_by_data, ints, a, c);
  RUN(4, 256, loop_by_lane, a, c);
  RUN(4, 256, branch_in_loop, a, c);
  RUN(4, 256, both_branches_in_loop, a, c, c + N);
  RUN(4, 256, nested_branches, a, c);
  RUN(4, 256, early_exit, ints, a, c);
  RUN(4, 256, switch_of_four, ints, a, c);
  RUN(4, 256, break_out, ints, out, 40);
  RUN(4, 256, continue_over, ints, out, 8);
  RUN(4, 256, loop_in_loop, ints, a, c);
  RUN(4, 256, collatz, ints, out);
  RUN(4, 256, guarded_chain, mixed, a, c, 1000);
  RUN(8, 64, shared_in_branches, ints, out);

  RUN(16, 256, gather, ints, a, c);
  RUN(16, 256, gather, mixed, a, c);
  RUN(16, 256, scatter, mixed, a, c);
  RUN(16, 256, gather_near, ints, a, c);
  RUN(4, 256, gather_float4, ints, (float4 *)a, (float4 *)c);
  RUN(32, 96, embedding, ints, a, c);
  RUN(4, 256, sparse_rows, first, mixed, a, c);

  RUN(8, 256, stencil_global, a, c, 2000);
  RUN(8, 256, stencil_shared, a, c, 2048);
  RUN(dim3(4, 16), dim3(32, 8), stencil_five_points, a, c, 128);
  RUN(dim3(4, 4), dim3(16, 16), convolve_direct, a, c, 64);
  RUN(dim3(4, 4), dim3(16, 16), convolve_tile, a, c, 64);
  RUN(dim3(4, 4), dim3(16, 16), max_pool, a, c, 128);
  RUN(64, 64, image_to_columns, a, c, 64);

  RUN(2, 64, softmax_thread_a_row, a, c, 40);
  RUN(8, dim3(32, 4), softmax_warp_a_row, a, c, 100);
  RUN(8, 256, softmax_block_a_row, a, c, 600);
  RUN(8, dim3(32, 4), layer_norm_warp_a_row, a, c, 100);

  void *all[] = {a, b, c, ints, mixed, out, bytes, first};
  for (void *one : all) cudaFree(one);
  free(host);
  free(numbers);
  free(permutation);
  free(starts);
  return 0;
}
