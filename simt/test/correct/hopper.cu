// What compute capability 9.0 brings: mbarriers, bulk and tensor copies, wgmma, clusters.
#include <cooperative_groups.h>
#include <cuda.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>
#include <stdint.h>

#include <initializer_list>

#include "check.h"
#include "simt/hopper.h"

static int small(int i) { return (i * 7 + i / 5 * 3) % 9 - 4; }  // sums of products of such are exact

static CUtensorMap make_map(CUtensorMapDataType type, int rank, void *x, const cuuint64_t *size,
                            const cuuint64_t *pitch, const cuuint32_t *box, CUtensorMapSwizzle swizzle) {
  CUtensorMap map;
  cuuint32_t step[] = {1, 1, 1, 1, 1};
  void *found;
  cudaDriverEntryPointQueryResult status;
  TRY(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &found, 12000, cudaEnableDefault, &status));
  check("a tensor map", ((decltype(&cuTensorMapEncodeTiled))found)(
                            &map, type, rank, x, size, pitch, box, step, CU_TENSOR_MAP_INTERLEAVE_NONE, swizzle,
                            CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) == CUDA_SUCCESS);
  return map;
}

// ---- copies ----

enum { BOX_BYTES = 8 * 128 };

// One box to shared memory, and from there as it lies to `out`.
__global__ void box_kernel(unsigned char *out, const __grid_constant__ CUtensorMap map, int rank, int x, int y, int z,
                           int bytes) {
  __shared__ __align__(1024) unsigned char box[BOX_BYTES];
  __shared__ uint64_t full;
  uint32_t barrier = simt::shared_address(&full), to = simt::shared_address(box);
  if (threadIdx.x == 0) {
    simt::mbarrier_init(barrier, 1);
    simt::mbarrier_init_fence();
    simt::mbarrier_arrive_expect(barrier, bytes);
    if (rank == 2)
      simt::tma_load(to, &map, x, y, barrier);
    else
      simt::tma_load_3d(to, &map, x, y, z, barrier);
  }
  __syncthreads();
  simt::mbarrier_wait(barrier, 0);
  for (int i = threadIdx.x; i < bytes; i += blockDim.x) out[i] = box[i];
}

// Rows of `columns` floats, of which a box has 8 rows; the corner is partly outside.
static void boxes(CUtensorMapSwizzle swizzle, int columns) {
  enum { ROWS = 13, COLS = 40 };
  float x[ROWS * COLS], box[BOX_BYTES / 4];
  unsigned char *out = raw_on_device<unsigned char>(BOX_BYTES);
  for (int i = 0; i < ROWS * COLS; i++) x[i] = (float)(i + 1);
  float *dx = to_device(x, ROWS * COLS);
  cuuint64_t size[] = {COLS - 3, ROWS}, pitch[] = {COLS * 4};
  cuuint32_t shape[] = {(cuuint32_t)columns, 8};
  CUtensorMap map = make_map(CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 2, dx, size, pitch, shape, swizzle);
  const int corners[][2] = {{0, 0}, {4, 3}, {-3, -2}, {33, 9}, {100, 0}};
  for (const int *corner : corners) {
    int bytes = columns * 8 * 4, right = 1;
    box_kernel<<<1, 64>>>(out, map, 2, corner[0], corner[1], 0, bytes);
    fetch((unsigned char *)box, out, bytes);
    for (int row = 0; row < 8; row++)
      for (int col = 0; col < columns; col++) {
        int from_row = corner[1] + row, from_col = corner[0] + col, place = (row * columns + col) * 4;
        bool inside = from_row >= 0 && from_row < ROWS && from_col >= 0 && from_col < COLS - 3;
        int width = swizzle == CU_TENSOR_MAP_SWIZZLE_NONE ? 16 : 16 << swizzle;
        place ^= place / 128 % 8 * 16 & (width - 16);
        right &= box[place / 4] == (inside ? x[from_row * COLS + from_col] : 0);
      }
    check("a box of a matrix", right);
  }
  TRY(cudaFree(dx));
  TRY(cudaFree(out));
}

static void box_of_three_dimensions() {
  enum { X = 16, Y = 5, Z = 3 };
  uint16_t x[X * Y * Z], box[8 * 2 * 2];
  unsigned char *out = raw_on_device<unsigned char>(sizeof box);
  for (int i = 0; i < X * Y * Z; i++) x[i] = (uint16_t)(i + 1);
  uint16_t *dx = to_device(x, X * Y * Z);
  cuuint64_t size[] = {X, Y, Z}, pitch[] = {X * 2, X * Y * 2};
  cuuint32_t shape[] = {8, 2, 2};
  CUtensorMap map = make_map(CU_TENSOR_MAP_DATA_TYPE_UINT16, 3, dx, size, pitch, shape, CU_TENSOR_MAP_SWIZZLE_NONE);
  box_kernel<<<1, 32>>>(out, map, 3, 4, 4, 1, sizeof box);
  fetch((unsigned char *)box, out, sizeof box);
  int right = 1;
  for (int i = 0; i < 32; i++) {
    int row = 4 + i / 8 % 2;
    right &= box[i] == (row < Y ? x[((1 + i / 16) * Y + row) * X + 4 + i % 8] : 0);
  }
  check("a box of three dimensions", right);
  TRY(cudaFree(dx));
  TRY(cudaFree(out));
}

// Two stages: one thread copies, a warp adds up, each waits for the other.
__global__ void ring_kernel(int *sum, const int *x, int rounds) {
  __shared__ __align__(16) int stage[2][64];
  __shared__ uint64_t barrier[4];  // of both stages: the copies have come; a warp has read them
  const uint32_t first_full = simt::shared_address(barrier), first_empty = first_full + 16;
  if (threadIdx.x < 4) simt::mbarrier_init(first_full + 8 * threadIdx.x, threadIdx.x < 2 ? 1 : 32);
  if (threadIdx.x < 4) simt::mbarrier_init_fence();
  __syncthreads();
  if (threadIdx.x == 32) {
    for (int i = 0; i < rounds; i++) {
      uint32_t to = simt::shared_address(stage[i % 2]);
      simt::mbarrier_wait(first_empty + 8 * (i % 2), i / 2 % 2 ^ 1);
      simt::mbarrier_arrive_expect(first_full + 8 * (i % 2), 256);
      simt::bulk_load(to, x + 64 * i, 128, first_full + 8 * (i % 2));
      simt::bulk_load(to + 128, x + 64 * i + 32, 128, first_full + 8 * (i % 2));
    }
  } else if (threadIdx.x < 32) {
    int total = 0;
    for (int i = 0; i < rounds; i++) {
      while (!simt::mbarrier_try_wait(first_full + 8 * (i % 2), i / 2 % 2)) {
      }
      total += stage[i % 2][threadIdx.x] + 3 * stage[i % 2][threadIdx.x + 32];
      simt::mbarrier_arrive(first_empty + 8 * (i % 2));
    }
    sum[threadIdx.x] = total;
  }
}

static void ring() {
  enum { ROUNDS = 7 };
  int x[64 * ROUNDS], sum[32], right = 1;
  for (int i = 0; i < 64 * ROUNDS; i++) x[i] = small(i);
  int *dx = to_device(x, 64 * ROUNDS), *dsum = raw_on_device<int>(32);
  ring_kernel<<<2, 64>>>(dsum, dx, ROUNDS);
  fetch(sum, dsum, 32);
  for (int lane = 0; lane < 32; lane++) {
    for (int i = 0; i < ROUNDS; i++) sum[lane] -= x[64 * i + lane] + 3 * x[64 * i + lane + 32];
    right &= sum[lane] == 0;
  }
  check("a ring of two stages", right);
  TRY(cudaFree(dx));
  TRY(cudaFree(dsum));
}

// What threads tell each other by an mbarrier, without a copy.
__global__ void tell_kernel(int *y) {
  __shared__ uint64_t told;
  __shared__ int s[64];
  uint32_t barrier = simt::shared_address(&told);
  if (threadIdx.x == 0) simt::mbarrier_init(barrier, 64);
  __syncthreads();
  for (int turn = 0; turn < 3; turn++) {
    s[threadIdx.x] = 10 * turn + threadIdx.x;
    simt::mbarrier_arrive(barrier);
    simt::mbarrier_wait(barrier, turn % 2);
    y[64 * turn + threadIdx.x] = s[63 - threadIdx.x];
    __syncthreads();
  }
}

static void tell() {
  int y[192], right = 1, *dy = raw_on_device<int>(192);
  tell_kernel<<<1, 64>>>(dy);
  fetch(y, dy, 192);
  for (int i = 0; i < 192; i++) right &= y[i] == 10 * (i / 64) + 63 - i % 64;
  check("an mbarrier in place of __syncthreads()", right);
  TRY(cudaFree(dy));
}

// Threads write a tile, partly transposed; one thread copies it to a tensor of 60 columns.
__global__ void store_kernel(const __grid_constant__ CUtensorMap map) {
  __shared__ __align__(128) uint16_t tile[8][64];
  int lane = threadIdx.x % 32, group = lane / 4, member = lane % 4;
  uint32_t row = simt::shared_address(&tile[lane % 8][lane / 8 * 8 + (threadIdx.x < 32 ? 0 : 32)]), x[4];
  for (int i = 0; i < 4; i++) x[i] = 100 * i + 10 * group + 2 * member | 100 * i + 10 * group + 2 * member + 1 << 16;
  if (threadIdx.x < 32)
    simt::store_matrices_transposed(row, x[0], x[1], x[2], x[3]);
  else
    simt::store_two_matrices_transposed(row, x[2], x[3]);
  for (int i = threadIdx.x; i < 8 * 16; i += 64) tile[i / 16][48 + i % 16] = 7;
  simt::fence_async_proxy();
  simt::named_barrier_sync(1, 64);
  if (threadIdx.x == 0) {
    simt::tma_store_4d(&map, 0, 1, 0, 0, simt::shared_address(tile));
    simt::tma_store_commit();
    simt::tma_store_wait_read();
    for (int i = 0; i < 8; i++) tile[i][0] = 9;
    simt::tma_store_wait();
  }
}

static void store() {
  uint16_t y[9 * 64];
  uint16_t *dy = zeros_on_device<uint16_t>(9 * 64);
  cuuint64_t size[] = {60, 9, 1, 1}, pitch[] = {128, 128 * 9, 128 * 9};
  cuuint32_t box[] = {64, 8, 1, 1};
  CUtensorMap map = make_map(CU_TENSOR_MAP_DATA_TYPE_UINT16, 4, dy, size, pitch, box, CU_TENSOR_MAP_SWIZZLE_NONE);
  store_kernel<<<1, 64>>>(map);
  fetch(y, dy, 9 * 64);
  int right = 1;
  for (int i = 0; i < 9 * 64; i++) {
    int row = i / 64 - 1, col = i % 64, matrix = col / 8 < 4 ? col / 8 : col / 8 - 2;
    int expected = row < 0 || col >= 60 ? 0 : col >= 48 ? 7 : 100 * matrix + 10 * (col % 8) + row;
    right &= y[i] == expected;
  }
  check("a tensor copy from shared memory", right);
  TRY(cudaFree(dy));
}

// ---- wgmma ----

// Where the threads put element `along`, of `bytes`, in the direction in which elements follow each other, of row
// `across`: chunks of 16 bytes; the parts lie one behind the other as the descriptor says.
static __device__ int chunk_place(int bytes, int swizzle, bool along_k, int along, int across, int leading,
                                  int stride) {
  int row = swizzle ? swizzle : 16, chunk = along * bytes / 16, place = across % 8 * row + along * bytes % 16;
  if (swizzle)
    place += across / 8 * stride + chunk / (row / 16) * leading + chunk % (row / 16) * 16;
  else
    place += along_k ? across / 8 * stride + chunk * leading : across / 8 * leading + chunk * stride;
  return swizzle ? place ^ (place / 128 % 8 * 16 & (row - 16)) : place;
}

static __device__ uint64_t descriptor(uint32_t address, int swizzle, int leading, int stride) {
  const uint64_t mode = swizzle == 128 ? 1 : swizzle == 64 ? 2 : swizzle == 32 ? 3 : 0;
  return (uint64_t)(address >> 4) | (uint64_t)(leading >> 4) << 16 | (uint64_t)(stride >> 4) << 32 | mode << 62;
}

template <class T>
struct SumOf {
  typedef float type;
};
template <>
struct SumOf<int8_t> {
  typedef int type;
};

// The forms of wgmma by the type of the factors; a in registers, or along M or not.
enum AFrom { A_ALONG_K, A_ALONG_M, A_REGISTERS };
#define WGMMA_OF(T, name)                                                                                    \
  template <int SUMS>                                                                                        \
  static __device__ void start(T, float(&sum)[SUMS], AFrom from, uint64_t a, const uint32_t(&registers)[4],  \
                               uint64_t b, bool b_along_n, bool add) {                                       \
    if (from == A_REGISTERS && b_along_n) simt::name##_registers<simt::OTHER_MAJOR>(sum, registers, b, add); \
    if (from == A_REGISTERS && !b_along_n) simt::name##_registers<simt::K_MAJOR>(sum, registers, b, add);    \
    if (from == A_ALONG_K && b_along_n) simt::name<simt::OTHER_MAJOR>(sum, a, b, add);                       \
    if (from == A_ALONG_K && !b_along_n) simt::name<simt::K_MAJOR>(sum, a, b, add);                          \
    if (from == A_ALONG_M && b_along_n) simt::name<simt::OTHER_MAJOR, simt::OTHER_MAJOR>(sum, a, b, add);    \
    if (from == A_ALONG_M && !b_along_n) simt::name<simt::K_MAJOR, simt::OTHER_MAJOR>(sum, a, b, add);       \
  }
#define WGMMA_K_MAJOR_OF(T, name)                                                              \
  template <int SUMS>                                                                          \
  static __device__ void start(T, typename SumOf<T>::type(&sum)[SUMS], AFrom from, uint64_t a, \
                               const uint32_t(&registers)[4], uint64_t b, bool, bool add) {    \
    if (from == A_REGISTERS)                                                                   \
      simt::name##_registers(sum, registers, b, add);                                          \
    else                                                                                       \
      simt::name(sum, a, b, add);                                                              \
  }
WGMMA_OF(__nv_bfloat16, wgmma_bfloat16)
WGMMA_OF(__half, wgmma_half)
WGMMA_K_MAJOR_OF(float, wgmma_tf32)
WGMMA_K_MAJOR_OF(__nv_fp8_e4m3, wgmma_fp8)
WGMMA_K_MAJOR_OF(int8_t, wgmma_int8)

// d (64,2 SUMS) = a (64,2 K) b (2 K,2 SUMS) in two products, written by the threads.
template <int SUMS, class T>
__global__ void wgmma_kernel(float *d, const T *a, const T *b, int swizzle, AFrom from, bool b_along_n) {
  enum { COLS = 2 * SUMS, BYTES = sizeof(T), K = 32 / BYTES };
  extern __shared__ __align__(1024) unsigned char tiles[];
  unsigned char *a_tile = tiles, *b_tile = tiles + 64 * 16 * 2 * 2 * 2;
  const int part = swizzle ? 8 * swizzle : 128, a_parts = 64 / (swizzle ? swizzle / 2 : 8);
  const bool a_along_m = from == A_ALONG_M;
  // Along K there are 32 bytes in a row; a part is 8 rows. Along M or N the parts of 8 rows come first.
  int a_leading = a_along_m ? (swizzle ? 2 * part : part * a_parts) : 64 / 8 * part, a_stride = part;
  int b_leading = b_along_n ? (swizzle ? 2 * part : part * (COLS / 8)) : COLS / 8 * part, b_stride = part;
  int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  typename SumOf<T>::type sum[SUMS] = {};
  for (int step = 0; step < 2; step++) {
    uint32_t registers[4] = {};
    for (int i = threadIdx.x; i < 64 * K; i += 128) {
      int row = i / K, k = i % K;
      int place = a_along_m ? chunk_place(BYTES, swizzle, false, row, k, a_leading, a_stride)
                            : chunk_place(BYTES, swizzle, true, k, row, a_leading, a_stride);
      *(T *)(a_tile + place) = a[row * 2 * K + step * K + k];
    }
    for (int i = 0; from == A_REGISTERS && i < 4; i++) {
      int row = 16 * warp + lane / 4 + i % 2 * 8, k = (lane % 4 * 4 + i / 2 * 16) / BYTES;
      memcpy(&registers[i], &a[row * 2 * K + step * K + k], 4);
    }
    for (int i = threadIdx.x; i < COLS * K; i += 128) {
      int col = i / K, k = i % K;
      int place = b_along_n ? chunk_place(BYTES, swizzle, false, col, k, b_leading, b_stride)
                            : chunk_place(BYTES, swizzle, true, k, col, b_leading, b_stride);
      *(T *)(b_tile + place) = b[(step * K + k) * COLS + col];
    }
    simt::tma_proxy_fence();
    __syncthreads();
    simt::wgmma_fence();
    start(T(), sum, from, descriptor(simt::shared_address(a_tile), swizzle, a_leading, a_stride), registers,
          descriptor(simt::shared_address(b_tile), swizzle, b_leading, b_stride), b_along_n, step > 0);
    simt::wgmma_commit();
    simt::wgmma_wait<0>();
    __syncthreads();
  }
  for (int i = 0; i < SUMS; i++)
    d[(16 * warp + lane / 4 + i / 2 % 2 * 8) * COLS + i / 4 * 8 + lane % 4 * 2 + i % 2] = (float)sum[i];
}

template <int SUMS, class T>
static void products(const char *name, std::initializer_list<int> swizzles) {
  enum { COLS = 2 * SUMS, K = 64 / sizeof(T) };
  static T a[64 * K], b[K * COLS];
  static float d[64 * COLS], expected[64 * COLS];
  const bool half_factors = sizeof(T) == 2, ignored_bits = sizeof(T) == 4; /* of tf32: the last 13 */
  for (int i = 0; i < 64 * K; i++) a[i] = (T)((float)small(i) + (ignored_bits ? 0x1p-20f : 0) * (small(i) > 0));
  for (int i = 0; i < K * COLS; i++) b[i] = (T)(float)small(i + 5);
  for (int i = 0; i < 64 * COLS; i++) {
    expected[i] = 0;
    for (int k = 0; k < K; k++) expected[i] += (float)small(i / COLS * K + k) * (float)b[k * COLS + i % COLS];
  }
  T *da = to_device(a, 64 * K), *db = to_device(b, K * COLS);
  float *dd = raw_on_device<float>(64 * COLS);
  for (int swizzle : swizzles)
    for (int along = 0; along < (half_factors ? 6 : 3); along++) {
      if (along / 3 && COLS % (swizzle ? swizzle / 2 : 8)) continue;  // columns of whole rows
      if (along % 3 == A_ALONG_M && !half_factors) continue;          // 16 bits only
      wgmma_kernel<SUMS, T><<<1, 128, 48 << 10>>>(dd, da, db, swizzle, (AFrom)(along % 3), along / 3);
      fetch(d, dd, 64 * COLS);
      check(name, memcmp(d, expected, sizeof d) == 0);
    }
  TRY(cudaFree(da));
  TRY(cudaFree(db));
  TRY(cudaFree(dd));
}

// Several products with a in registers at the same time, each of an array of its own.
__global__ void in_flight_kernel(float *d) {
  __shared__ __align__(1024) __nv_fp8_e4m3 b_tile[64 * 128];  // (N,K): 4 products of 32
  for (int i = threadIdx.x; i < 64 * 128; i += 128)
    b_tile[chunk_place(1, 128, true, i % 128, i / 128, 0, 1024)] = __nv_fp8_e4m3((float)(1 + i / 128 % 4));
  float sum[32];
  uint32_t a[4][4];
  const uint32_t numbers[] = {0x38383838, 0x40404040, 0x44444444, 0x01010101};  // 1, 2, 3, 2^-9
  for (int step = 0; step < 4; step++)
    for (int i = 0; i < 4; i++) a[step][i] = numbers[step] | (i % 2) << 7;  // rows 8 .. 15: one of four is negative
  simt::tma_proxy_fence();
  if (threadIdx.x % 64 < 32) {  // warps 0 and 2 arrive; the others wait
    simt::named_barrier_arrive(1 + threadIdx.x / 64, 64);
  } else {
    simt::named_barrier_sync(1 + threadIdx.x / 64, 64);
  }
  __syncthreads();
  simt::wgmma_fence();
  for (int step = 0; step < 4; step++) {
    simt::wgmma_fp8_registers(sum, a[step], descriptor(simt::shared_address(b_tile) + 32 * step, 128, 0, 1024),
                              step > 0);
    simt::wgmma_commit();
  }
  simt::wgmma_wait<1>();
  for (int i = 0; i < 4; i++) a[1][i] = 0;  // done
  simt::wgmma_wait<0>();
  for (int i = 0; i < 32; i++) d[32 * threadIdx.x + i] = sum[i];
}

static void in_flight() {
  float d[128 * 32], *dd = raw_on_device<float>(128 * 32);
  int right = 1;
  in_flight_kernel<<<1, 128>>>(dd);
  fetch(d, dd, 128 * 32);
  for (int i = 0; i < 128 * 32; i++) {
    int col = i % 32 / 4 * 8 + i / 32 % 4 * 2 + i % 2, ones = i / 2 % 2 ? 16 : 32;  // 8 of 32 are negative; none is
    right &= d[i] == (float)(ones * (1 + col % 4)) * (1 + 2 + 3 + 0x1p-9f);
  }
  check("four products with a in registers", right);
  TRY(cudaFree(dd));
}

// ---- clusters ----

// Each block shifts its numbers to the next one of its cluster, by plain stores there and an mbarrier there.
__global__ void shift_kernel(int *y) {
  __shared__ int s[32];
  __shared__ uint64_t arrived;
  uint32_t barrier = simt::shared_address(&arrived);
  unsigned rank = simt::cluster_rank(), next = (rank + 1) % simt_cluster_blocks();
  if (threadIdx.x == 0) {
    simt::mbarrier_init(barrier, 32);
    simt::mbarrier_init_fence();
  }
  simt::cluster_sync();
  int *there = (int *)simt_cluster_pointer(s, next, __FILE__, __LINE__);
  there[threadIdx.x] = 100 * rank + threadIdx.x;
  simt::mbarrier_arrive_cluster(barrier, next);
  simt::mbarrier_wait(barrier, 0);
  y[blockIdx.x * 32 + threadIdx.x] = s[threadIdx.x];
  simt::cluster_sync();
}

// Block 0 copies to all; each thread reads its block's copy.
__global__ void multicast_kernel(int *y, const __grid_constant__ CUtensorMap map) {
  __shared__ __align__(128) int s[32];
  __shared__ uint64_t full;
  uint32_t barrier = simt::shared_address(&full);
  if (threadIdx.x == 0) {
    simt::mbarrier_init(barrier, 1);
    simt::mbarrier_init_fence();
    simt::mbarrier_arrive_expect(barrier, 128);
  }
  simt::cluster_sync();
  if (threadIdx.x == 0 && simt::cluster_rank() == 0)
    simt::tma_load_multicast(simt::shared_address(s), &map, 4, 0, barrier, 3);
  simt::mbarrier_wait(barrier, 0);
  y[blockIdx.x * 32 + threadIdx.x] = s[threadIdx.x];
  simt::cluster_sync();
}

// Each block reads what the one opposite of it in its cluster of 2 x 2 blocks has in shared memory.
__global__ void __cluster_dims__(2, 2) opposite_kernel(int *y) {
  __shared__ int s[32];
  cooperative_groups::cluster_group cluster = cooperative_groups::this_cluster();
  s[threadIdx.x] = 1000 * blockIdx.y + 100 * blockIdx.x + threadIdx.x;
  cluster.sync();
  const int *there = cluster.map_shared_rank(s, 3 - cluster.block_rank());
  int value = there[31 - threadIdx.x];
  bool right = cluster.query_shared_rank(there) == 3 - cluster.block_rank() && cluster.num_blocks() == 4 &&
               cluster.thread_rank() == 32 * cluster.block_rank() + threadIdx.x &&
               cluster.block_index().y == blockIdx.y % 2;
  y[(blockIdx.y * gridDim.x + blockIdx.x) * 32 + threadIdx.x] = right ? value : -1;
  cooperative_groups::thread_group(cluster).sync();  // so long the others' shared memory must stay
}

template <class... Parameters, class... Arguments>
static void in_clusters(int blocks, int size, void (*kernel)(Parameters...), Arguments... arguments) {
  cudaLaunchAttribute attribute;
  attribute.id = cudaLaunchAttributeClusterDimension;
  attribute.val.clusterDim.x = size;
  attribute.val.clusterDim.y = attribute.val.clusterDim.z = 1;
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3(blocks);
  config.blockDim = dim3(32);
  config.attrs = &attribute;
  config.numAttrs = 1;
  TRY(cudaLaunchKernelEx(&config, kernel, arguments...));
}

static void clusters() {
  int x[64], y[256], right = 1, *dy = raw_on_device<int>(256);
  for (int i = 0; i < 64; i++) x[i] = small(i);
  in_clusters(8, 4, shift_kernel, dy);
  fetch(y, dy, 256);
  for (int i = 0; i < 256; i++) right &= y[i] == 100 * ((i / 32 + 3) % 4) + i % 32;
  check("what blocks of a cluster store in each other's shared memory", right);
  opposite_kernel<<<dim3(4, 2), 32>>>(dy);
  fetch(y, dy, 256);
  right = 1;
  for (int i = 0; i < 256; i++) right &= y[i] == 1000 * (1 - i / 128) + 100 * (i / 32 % 4 ^ 1) + 31 - i % 32;
  check("what they load from there", right);
  int *dx = to_device(x, 64);
  cuuint64_t size[] = {64, 1}, pitch[] = {256};
  cuuint32_t box[] = {32, 1};
  CUtensorMap map = make_map(CU_TENSOR_MAP_DATA_TYPE_INT32, 2, dx, size, pitch, box, CU_TENSOR_MAP_SWIZZLE_NONE);
  in_clusters(4, 2, multicast_kernel, dy, map);
  fetch(y, dy, 128);
  right = 1;
  for (int i = 0; i < 128; i++) right &= y[i] == x[4 + i % 32];
  check("a copy to all blocks of a cluster", right);
  TRY(cudaFree(dx));
  TRY(cudaFree(dy));
}

static void device() {
  cudaDeviceProp p;
  cudaLaunchConfig_t config = {};
  cudaLaunchAttribute attribute;
  int clusters = 0;
  TRY(cudaGetDeviceProperties(&p, 0));
  check("capability 9.0", p.major == 9 && p.minor == 0 && p.clusterLaunch && p.sharedMemPerBlockOptin == 227 << 10);
  TRY(cudaFuncSetAttribute(wgmma_kernel<4, __half>, cudaFuncAttributeMaxDynamicSharedMemorySize, 100 << 10));
  attribute.id = cudaLaunchAttributeClusterDimension;
  attribute.val.clusterDim.x = 4;
  attribute.val.clusterDim.y = attribute.val.clusterDim.z = 1;
  config.gridDim = dim3(4);
  config.blockDim = dim3(128);
  config.dynamicSmemBytes = 100 << 10;
  config.attrs = &attribute;
  config.numAttrs = 1;
  TRY(cudaOccupancyMaxActiveClusters(&clusters, wgmma_kernel<4, __half>, &config));
  check("two blocks on each of 16 multiprocessors", clusters == 8);
}

int main() {
  device();
  boxes(CU_TENSOR_MAP_SWIZZLE_NONE, 12);
  boxes(CU_TENSOR_MAP_SWIZZLE_32B, 8);
  boxes(CU_TENSOR_MAP_SWIZZLE_64B, 16);
  boxes(CU_TENSOR_MAP_SWIZZLE_128B, 32);
  box_of_three_dimensions();
  ring();
  tell();
  store();
  products<32, __nv_bfloat16>("wgmma of 64 columns, bfloat16", {0, 32, 64, 128});
  products<4, __half>("wgmma of 8 columns, half", {0, 32, 64, 128});
  products<32, float>("wgmma of 64 columns, tf32", {0, 128});
  products<8, __nv_fp8_e4m3>("wgmma of 16 columns, e4m3", {0, 128});
  products<8, int8_t>("wgmma of 16 columns, int8", {0, 64, 128});
  products<112, int8_t>("wgmma of 224 columns, int8", {128});
  in_flight();
  clusters();
  return finish();
}
