/* copied.cuh - a kernel of two files, as that of a header is: each has a copy. */
#ifndef SIMT_TEST_COPIED_CUH
#define SIMT_TEST_COPIED_CUH

#include <cuda_runtime.h>

enum { COPIED_INTS = 8000 }; /* 32,000 bytes: of 48 KiB, two copies would be too much */

static __global__ void copied(int *x) {
  __shared__ int values[COPIED_INTS];
  for (int i = threadIdx.x; i < COPIED_INTS; i += blockDim.x) values[i] = i;
  __syncthreads();
  if (threadIdx.x == 0) *x = values[COPIED_INTS - 1];
}

/* In the other file. */
void launch_the_other_copy(int *x);

#endif /* SIMT_TEST_COPIED_CUH */
