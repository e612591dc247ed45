#include "fold.cuh"

static __device__ int launches;
static __global__ void count() { atomicAdd(&launches, 1); }

struct Sum {
  static __host__ __device__ long long neutral() { return 0; }
  static __device__ long long both(long long a, long long b) {
#include "both.h"
  }
  static __device__ void join(long long *to, long long value) {
    atomicAdd((unsigned long long *)to, (unsigned long long)value);
  }
};

int series_sum(const Series *s, long long *sum) {
  count<<<1, 10>>>();
  return fold::of<Sum>(s, sum);
}
int launches_of_sums(void) {
  int host = -1;
  return cudaMemcpyFromSymbol(&host, launches, sizeof host) ? -1 : host;
}
