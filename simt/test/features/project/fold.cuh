// A kernel template in a header: launched from two files, with the functions of each.
#pragma once
#include "series.h"

#ifndef THREADS
#error "THREADS comes from the command line: -DTHREADS=64"
#endif
#define BLOCKS(n) (((n) + THREADS - 1) / THREADS)

__device__ long long weighted(int value);  // in weight.cu

namespace fold {

// Each block folds its values into one and hands that to `join`.
template <class Fold, class Result>
__global__ void values(const int *x, int n, Result *result) {
  __shared__ Result part[THREADS];
  int i = blockIdx.x * THREADS + threadIdx.x;
  part[threadIdx.x] = i < n ? Result(weighted(x[i])) : Fold::neutral();
  __syncthreads();
  for (int lanes = THREADS / 2; lanes > 0; lanes /= 2) {
    if (threadIdx.x < lanes) part[threadIdx.x] = Fold::both(part[threadIdx.x], part[threadIdx.x + lanes]);
    __syncthreads();
  }
  if (threadIdx.x == 0) Fold::join(result, part[0]);
}

template <class Fold, class Result>
int of(const Series *s, Result *host) {
  Result *result;
  *host = Fold::neutral();
  if (cudaMallocManaged(&result, sizeof *result)) return 1;
  *result = *host;
  values<Fold><<<BLOCKS(s->length), THREADS>>>(s->values, s->length, result);
  if (cudaDeviceSynchronize()) return 2;
  *host = *result;
  return cudaFree(result);
}

}  // namespace fold
