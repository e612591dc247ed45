#pragma once
#include <stdio.h>

#ifndef SCALE
#error "compile with -DSCALE=..."
#endif

enum { THREADS = 128 };
#define BLOCKS(n) (((n) + THREADS - 1) / THREADS)
#define GRID_STRIDE(i, n) \
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < (n); i += blockDim.x * gridDim.x)
#define SAFE(x)                                                                    \
    do {                                                                           \
        cudaError_t e = (x);                                                       \
        if (e != cudaSuccess) {                                                    \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, cudaGetErrorString(e)); \
            return (int)e;                                                         \
        }                                                                          \
    } while (0)
