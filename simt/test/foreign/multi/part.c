/* Plain C, compiled as C: uses the library and the runtime's C interface. */
#include <cuda_runtime_api.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include "vector_ops.h"

int c_part(const float *x, const float *y, int n)
{
    dvec_t a, b;
    float *back = malloc(n * sizeof *back);
    struct cudaDeviceProp prop;
    size_t free_bytes, total;
    int i, bad = 0;
    if (cudaGetDeviceProperties(&prop, 0) != cudaSuccess || cudaMemGetInfo(&free_bytes, &total) != cudaSuccess) return 1;
    printf("C sees a device with %d multiprocessors, warps of %d\n", prop.multiProcessorCount, prop.warpSize);
    if (dvec_create(&a, x, n) || dvec_create(&b, y, n) || dvec_axpy(&a, -1.f, &b) || dvec_get(&a, back)) return 1;
    for (i = 0; i < n; i++) bad += fabsf(back[i] - (x[i] - SCALE * y[i])) > 1e-5f;
    dvec_destroy(&a);
    dvec_destroy(&b);
    free(back);
    return bad;
}
