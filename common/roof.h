/* roof.h - how fast this machine copies, and how fast it multiplies and adds: the two limits of a roofline.
 *
 *     Roof roof = roof_measure(device);
 *     double least = roof_seconds(&roof, bytes, flops);   // no kernel can take less
 *
 * Both are measured in the same run as what is compared with them: a GPU's clock follows its temperature, and the cores
 * of a CPU are shared with other programs. An emulated GPU has no speed: roof_measure() gives zeros there.
 *
 *   roof_copy_kernel    16 bytes per thread and turn, from one array to another
 *   roof_fma_kernel     fused multiply-adds in registers, ROOF_CHAINS independent sums per thread
 *   roof_copy_cpu, roof_fma_cpu    the same on all threads of OpenMP
 */
#ifndef COMMON_ROOF_H
#define COMMON_ROOF_H

#include "common/device.h"
#include "common/simd.h"
#include "common/timer.h"

typedef struct Roof {
  double bytes_per_second; /* read and written */
  double flops_per_second; /* a multiply-add counts two */
} Roof;

enum {
  ROOF_CHAINS = 16, /* independent sums of a GPU's thread: more than the latency of an FMA */
  ROOF_STEPS = 4096,
  ROOF_ROUNDS = 7,
  ROOF_CPU_STEPS = 1 << 17,
};
#define ROOF_BYTES ((size_t)256 << 20) /* that are copied on a GPU: more than its L2 cache holds */
#define ROOF_CPU_BYTES ((size_t)64 << 20)

/* What a kernel that moves `bytes` and computes `flops` takes at least; 0 where nothing was measured. */
static inline double roof_seconds(const Roof *roof, double bytes, double flops) {
  const double memory = roof->bytes_per_second > 0 ? bytes / roof->bytes_per_second : 0;
  const double arithmetic = roof->flops_per_second > 0 ? flops / roof->flops_per_second : 0;
  return memory > arithmetic ? memory : arithmetic;
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* CPU */

static inline void roof_copy_cpu(char *to, const char *from, size_t bytes) {
  const size_t part = (size_t)1 << 20;
#pragma omp parallel for schedule(static)
  for (size_t i = 0; i < bytes; i += part) memcpy(to + i, from + i, bytes - i < part ? bytes - i : part);
}

/* Sums that vectors of every width divide: 12 vectors of AVX2, or 6 of AVX-512; 20 and 10. */
#define ROOF_CPU_CHAINS(name, count)                                         \
  CPU_CLONES static inline float name(int steps, float factor, float term) { \
    float sum[count], total = 0;                                             \
    for (int i = 0; i < (count); i++) sum[i] = (float)i;                     \
    for (int step = 0; step < steps; step++)                                 \
      for (int i = 0; i < (count); i++) sum[i] = sum[i] * factor + term;     \
    for (int i = 0; i < (count); i++) total += sum[i];                       \
    return total;                                                            \
  }
ROOF_CPU_CHAINS(roof_fma_96, 96)
ROOF_CPU_CHAINS(roof_fma_160, 160)

/* FLOPs per second of all threads; `wide`: with more sums each, which is faster with wide vectors. */
static inline double roof_fma_cpu(int wide) {
  double flops = 0, total = 0;
  const double start = seconds_now();
#pragma omp parallel reduction(+ : flops, total)
  {
    const float factor = 0.999f, term = 0.001f;
    total += wide ? roof_fma_160(ROOF_CPU_STEPS, factor, term) : roof_fma_96(ROOF_CPU_STEPS, factor, term);
    flops += 2.0 * ROOF_CPU_STEPS * (wide ? 160 : 96);
  }
  const double seconds = seconds_now() - start;
  return total != 0 ? flops / seconds : 0; /* a sum that nobody needed would not be computed */
}

static inline Roof roof_measure_cpu(void) {
  Roof roof = {0, 0};
  char *from = (char *)xmalloc(ROOF_CPU_BYTES), *to = (char *)xmalloc(ROOF_CPU_BYTES);
  memset(from, 1, ROOF_CPU_BYTES);
  for (int round = 0; round < ROOF_ROUNDS; round++) {
    const double start = seconds_now();
    roof_copy_cpu(to, from, ROOF_CPU_BYTES);
    const double rate = 2.0 * (double)ROOF_CPU_BYTES / (seconds_now() - start);
    if (rate > roof.bytes_per_second) roof.bytes_per_second = rate;
    for (int wide = 0; wide < 2; wide++) {
      const double flops = roof_fma_cpu(wide);
      if (flops > roof.flops_per_second) roof.flops_per_second = flops;
    }
  }
  free(from);
  free(to);
  return roof;
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* GPU */

#ifdef __CUDACC__
static __global__ void roof_copy_kernel(float4 *to, const float4 *from, size_t n) {
  size_t stride = (size_t)gridDim.x * blockDim.x;
  for (size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += stride) to[i] = from[i];
}

/* `cycles`: what the longest block took. All begin at the same time, four a multiprocessor, but it serves the oldest
 * first: the youngest takes as long as the kernel. */
static __global__ void roof_fma_kernel(float *out, unsigned long long *cycles, float factor, float term) {
  long long begin = clock64();
  float sum[ROOF_CHAINS], total = 0;
  for (int i = 0; i < ROOF_CHAINS; i++) sum[i] = (float)(threadIdx.x + i);
#pragma unroll 4
  for (int step = 0; step < ROOF_STEPS; step++)
    for (int i = 0; i < ROOF_CHAINS; i++) sum[i] = fmaf(sum[i], factor, term);
  for (int i = 0; i < ROOF_CHAINS; i++) total += sum[i];
  out[(size_t)blockIdx.x * blockDim.x + threadIdx.x] = total; /* a sum that nobody needed would not be computed */
  if (threadIdx.x % 32 == 0) atomicMax(cycles, (unsigned long long)(clock64() - begin));
}

/* The faster of our kernel and the driver's copy. */
static inline Roof roof_measure_gpu(void) {
  Roof roof = {0, 0};
#ifdef SIMT_REWRITTEN
  return roof;
#endif
  int device, multiprocessors;
  CUDA_CHECK(cudaGetDevice(&device));
  CUDA_CHECK(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device));
  float *from = (float *)device_alloc(DEVICE_GPU, ROOF_BYTES), *to = (float *)device_alloc(DEVICE_GPU, ROOF_BYTES);
  unsigned long long *cycles = (unsigned long long *)device_alloc(DEVICE_GPU, sizeof *cycles);
  GpuTimer timer = gpu_timer_open();
  for (int round = 0; round < ROOF_ROUNDS; round++) { /* the first loads the kernels */
    double seconds[3];
    gpu_timer_start(&timer);
    roof_copy_kernel<<<multiprocessors * 8, 256>>>((float4 *)to, (const float4 *)from, ROOF_BYTES / sizeof(float4));
    CUDA_CHECK_LAUNCH();
    seconds[0] = gpu_timer_stop(&timer);
    gpu_timer_start(&timer);
    CUDA_CHECK(cudaMemcpyAsync(to, from, ROOF_BYTES, cudaMemcpyDeviceToDevice, 0));
    seconds[1] = gpu_timer_stop(&timer);
    gpu_timer_start(&timer);
    roof_fma_kernel<<<multiprocessors * 4, 256>>>(to, cycles, 0.999f, 0.001f);
    CUDA_CHECK_LAUNCH();
    seconds[2] = gpu_timer_stop(&timer);
    const double copy = 2.0 * (double)ROOF_BYTES / (seconds[0] < seconds[1] ? seconds[0] : seconds[1]);
    const double flops = 2.0 * ROOF_CHAINS * ROOF_STEPS * 256 * (multiprocessors * 4) / seconds[2];
    if (copy > roof.bytes_per_second) roof.bytes_per_second = copy;
    if (flops > roof.flops_per_second) roof.flops_per_second = flops;
  }
  gpu_timer_close(&timer);
  device_free(DEVICE_GPU, from);
  device_free(DEVICE_GPU, to);
  device_free(DEVICE_GPU, cycles);
  return roof;
}
#endif

static inline Roof roof_measure(Device device) {
  Roof roof = {0, 0};
  ON_DEVICE(device, roof = roof_measure_gpu(), roof = roof_measure_cpu());
  return roof;
}

#endif /* COMMON_ROOF_H */
