// Arithmetic in pairs of 16-bit numbers, against the same in double.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <math.h>

#include "expect.h"

// a x + y by pairs; the sum of each warp's pairs by shuffles of pairs; the sum of both formats.
__global__ void axpy_pairs(half a, const half2 *x, half2 *y, float *sums) {
  int i = threadIdx.x;
  y[i] = __hfma2(__half2half2(a), x[i], y[i]);
  half2 sum = x[i];
  for (int lanes = 16; lanes > 0; lanes /= 2) sum = __hadd2(sum, __shfl_xor_sync(0xffffffff, sum, lanes));
  if (i % 32 == 0) atomicAdd(sums, __low2float(sum) + __high2float(sum));
}

template <class PAIR, class NUMBER>
__global__ void clamp(PAIR *x, NUMBER low, NUMBER high) {
  PAIR v = x[threadIdx.x];
  v.x = v.x < low ? low : v.x;
  v.y = v.y > high ? high : v.y;
  x[threadIdx.x] = v + v * PAIR(low, high) - PAIR(low, low);
}

int main() {
  const int n = 64;
  half2 *x, *y;
  __nv_bfloat162 *z;
  float *sums, pairs_sum = 0;
  WORKS(cudaMallocManaged(&x, n * sizeof *x));
  WORKS(cudaMallocManaged(&y, n * sizeof *y));
  WORKS(cudaMallocManaged(&z, n * sizeof *z));
  WORKS(cudaMallocManaged(&sums, sizeof *sums));
  *sums = 0;
  for (int i = 0; i < n; i++) {  // exact in all the formats
    x[i] = __floats2half2_rn(i - 20, 0.25f * i);
    y[i] = make_half2(__float2half(i), __int2half_rn(-i));
    z[i] = __floats2bfloat162_rn(i - 20, 0.25f * i);
    pairs_sum += i - 20 + 0.25f * i;
  }
  axpy_pairs<<<1, n>>>(__float2half_rn(0.5f), x, y, sums);
  clamp<<<1, n>>>(x, __float2half(-4), __float2half(8));
  clamp<<<1, n>>>(z, __float2bfloat16(-4), __float2bfloat16_rn(8));
  WORKS(cudaDeviceSynchronize());
  EXPECT(*sums == pairs_sum);
  for (int i = 0; i < n; i++) {
    EXPECT(__low2float(y[i]) == 0.5 * (i - 20) + i && __high2float(y[i]) == 0.5 * 0.25 * i - i);
    double low = fmax(i - 20, -4), high = fmin(0.25 * i, 8), want_low = low - 4 * low + 4, want_high = 9 * high + 4;
    float2 got = __half22float2(x[i]), rough = __bfloat1622float2(z[i]);
    EXPECT(got.x == want_low && got.y == want_high);
    EXPECT(fabs(rough.x - want_low) <= fabs(want_low) / 128 && fabs(rough.y - want_high) <= fabs(want_high) / 128);
  }
  WORKS(cudaFree(x));
  WORKS(cudaFree(y));
  WORKS(cudaFree(z));
  WORKS(cudaFree(sums));
  return mistakes;
}
