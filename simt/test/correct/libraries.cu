// CUB's block and warp primitives, and matrix fragments: collectives whose scratch memory is reused.
#include <cuda_fp16.h>
#include <mma.h>

#include <cub/cub.cuh>

#include "check.h"

using namespace nvcuda;

// The same scratch memory for a sum and then a scan, a barrier between.
__global__ void sum_then_scan(const int *x, int *scan, int *sum) {
  typedef cub::BlockReduce<int, 128> Reduce;
  typedef cub::BlockScan<int, 128> Scan;
  __shared__ union {
    Reduce::TempStorage reduce;
    Scan::TempStorage scan;
  } s;
  int value = x[threadIdx.x];
  int total = Reduce(s.reduce).Sum(value);
  if (threadIdx.x == 0) *sum = total;
  __syncthreads();
  Scan(s.scan).InclusiveSum(value, value);
  scan[threadIdx.x] = value;
}

// Each warp has its own scratch memory.
__global__ void max_of_warps(const int *x, int *max) {
  typedef cub::WarpReduce<int> Reduce;
  __shared__ Reduce::TempStorage s[4];
  int warp = threadIdx.x / 32;
  int value = Reduce(s[warp]).Reduce(x[threadIdx.x], [](int a, int b) { return a > b ? a : b; });
  if (threadIdx.x % 32 == 0) max[warp] = value;
}

// A 16 x 16 product of half-precision matrices by one warp, through shared memory.
__global__ void matmul_by_fragments(const half *a, const half *b, float *c) {
  __shared__ __align__(32) half s_a[256], s_b[256];
  for (int i = threadIdx.x; i < 256; i += 32) {
    s_a[i] = a[i];
    s_b[i] = b[i];
  }
  __syncwarp();
  wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> fa;
  wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::row_major> fb;
  wmma::fragment<wmma::accumulator, 16, 16, 16, float> fc;
  wmma::fill_fragment(fc, 0.0f);
  wmma::load_matrix_sync(fa, s_a, 16);
  wmma::load_matrix_sync(fb, s_b, 16);
  wmma::mma_sync(fc, fa, fb, fc);
  for (int i = 0; i < fc.num_elements; i++) fc.x[i] *= 2;
  wmma::store_matrix_sync(c, fc, 16, wmma::mem_row_major);
}

int main(void) {
  int x[128], y[128], ok, want = 0, max[4] = {0};
  for (int i = 0; i < 128; i++) {
    want += x[i] = (i * 37 + 11) % 101;
    max[i / 32] = x[i] > max[i / 32] ? x[i] : max[i / 32];
  }
  int *dx = to_device(x, 128), *dy = raw_on_device<int>(128), *dz = raw_on_device<int>(4);

  sum_then_scan<<<1, 128>>>(dx, dy, dz);
  fetch(y, dz, 1);
  check("BlockReduce", y[0] == want);
  fetch(y, dy, 128);
  ok = 1;
  for (int i = 0, sum = 0; i < 128; i++) ok &= y[i] == (sum += x[i]);
  check("BlockScan in the same scratch memory", ok);

  max_of_warps<<<1, 128>>>(dx, dz);
  fetch(y, dz, 4);
  check("WarpReduce", memcmp(y, max, sizeof max) == 0);

  half a[256], b[256];
  float c[256];
  for (int i = 0; i < 256; i++) a[i] = __float2half(i % 5), b[i] = __float2half(i % 3);
  half *da = to_device(a, 256), *db = to_device(b, 256);
  float *dc = raw_on_device<float>(256);
  matmul_by_fragments<<<1, 32>>>(da, db, dc);
  fetch(c, dc, 256);
  ok = 1;
  for (int i = 0; i < 256; i++) {
    int sum = 0;
    for (int k = 0; k < 16; k++) sum += (i / 16 * 16 + k) % 5 * ((k * 16 + i % 16) % 3);
    ok &= c[i] == 2 * sum;
  }
  check("matrix fragments", ok);

  void *all[] = {dx, dy, dz, da, db, dc};
  for (void *one : all) TRY(cudaFree(one));
  return finish();
}
