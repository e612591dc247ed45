#include "common.cuh"
#include "reduce.cuh"
#include "vector_ops.h"
#include "stats.hpp"
#include <cmath>

static __device__ int calls;   // not the other file's
static __global__ void count() { atomicAdd(&calls, 10); }

double Stats::norm(const dvec_t &v) const
{
    count<<<1, 3>>>();
    return std::sqrt(detail::self_dot<64>(v.data, v.n));
}

int Stats::counted() const
{
    int c = 0;
    cudaMemcpyFromSymbol(&c, calls, sizeof c, 0, cudaMemcpyDeviceToHost);
    return c;
}
