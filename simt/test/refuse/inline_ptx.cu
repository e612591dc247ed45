// Inline assembly of the GPU, plain and in a macro; what has no instruction in it is let through.
#include <cuda_runtime.h>
#include <stdint.h>

#define LOAD_NOT_CACHED(result, address) asm volatile("ld.global.nc.f32 %0, [%1];" : "=f"(result) : "l"(address))

__device__ __forceinline__ unsigned lane_id() {
  unsigned lane;
  asm volatile("mov.u32 %0, %%laneid;" : "=r"(lane));  // REFUSED: threadIdx.x % warpSize
  return lane;
}

__device__ void copy_async(void *shared, const void *global) {
  unsigned address = (unsigned)__cvta_generic_to_shared(shared);
  asm volatile(  // REFUSED: __pipeline_memcpy_async()
      "cp.async.ca.shared.global [%0], [%1], 16;\n" ::"r"(address), "l"(global));
  asm volatile("cp.async.wait_all;");  // REFUSED: inline PTX "cp.async.wait_all;"
}

__global__ void multiply(float *d, const float *a) {
  float x, y;
  LOAD_NOT_CACHED(x, a + threadIdx.x);  // REFUSED: inline PTX "ld.global.nc.f32
  asm volatile("" ::: "memory");
  asm(  // REFUSED: fmaf()
      "fma.rn.f32 %0, %1, %1, %1;"
      : "=f"(y)
      : "f"(x));
  d[threadIdx.x] = y + lane_id();
}

int main() { return 0; }
