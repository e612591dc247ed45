/* device.h - one network, two devices: where an array lives and who computes on it.
 *
 * `Device` travels with every model. Memory comes from device_alloc(), and ON_DEVICE() picks the twin of an operation:
 *
 *     ON_DEVICE(device, relu_forward_gpu(x, y, n), relu_forward_cpu_fast(x, y, n));
 *
 * Compiled without a CUDA compiler the GPU half of ON_DEVICE() vanishes, and device_open() refuses DEVICE_GPU.
 */
#ifndef COMMON_DEVICE_H
#define COMMON_DEVICE_H

#include "common/error.h" /* first: it asks the C library for all it has */

#include <unistd.h>

#include "common/device_count.h"

#ifdef __CUDACC__
#include "common/check.h"
#define ON_DEVICE(device, gpu_call, cpu_call) \
  do {                                        \
    if ((device) == DEVICE_GPU) {             \
      gpu_call;                               \
    } else {                                  \
      cpu_call;                               \
    }                                         \
  } while (0)
#else
#define ON_DEVICE(device, gpu_call, cpu_call) \
  do {                                        \
    (void)(device);                           \
    cpu_call;                                 \
  } while (0)
#endif

typedef enum Device { DEVICE_CPU, DEVICE_GPU } Device;

static inline const char *device_name(Device device) { return device == DEVICE_GPU ? "gpu" : "cpu"; }

/* Makes the device ready and writes one line about it into `description` ("GPU NVIDIA H200, compute capability 9.0").
 * -1 with a sentence that says how to get a GPU when there is none. */
static inline int device_open(Device device, char *description, size_t size, Error *err) {
  if (device == DEVICE_CPU) {
    snprintf(description, size, "CPU");
    return 0;
  }
#ifdef __CUDACC__
  int count = 0;
  cudaError_t status = cudaGetDeviceCount(&count);
  if (status != cudaSuccess || count == 0)
    return error_set(err, "--device=gpu: no usable NVIDIA GPU (%s); check nvidia-smi, or use --device=cpu",
                     status == cudaSuccess ? "none found" : cudaGetErrorString(status));
  cudaDeviceProp properties;
  if ((status = cudaSetDevice(0)) != cudaSuccess || (status = cudaGetDeviceProperties(&properties, 0)) != cudaSuccess)
    return error_set(err, "--device=gpu: the GPU cannot be used (%s); look at nvidia-smi, or use --device=cpu",
                     cudaGetErrorString(status));
  snprintf(description, size, "GPU %.64s, compute capability %d.%d", properties.name, properties.major,
           properties.minor);
  return 0;
#else
  return error_set(err, "--device=gpu: this program has no CUDA kernels; use --device=cpu");
#endif
}

/* Bytes that can be had at the most: what is free on the GPU; all that the machine has, whoever else uses it. */
static inline double device_memory(Device device) {
  size_t available = 0, total = 0;
  ON_DEVICE(device, CUDA_CHECK(cudaMemGetInfo(&available, &total)), {
    available = (size_t)sysconf(_SC_PHYS_PAGES) * (size_t)sysconf(_SC_PAGESIZE);
    total = available;
  });
  (void)total;
  return (double)available;
}

/* Ends the program with a sentence where `what` ("the network") can never fit. Linux promises memory that it does not
 * have, and kills a program that comes to use it. */
static inline void device_expect_memory(Device device, double bytes, const char *what, const char *advice) {
  const double gib = 1073741824.0, memory = device_memory(device);
  if (bytes > memory)
    die("%s would take %.1f GiB of memory, and the %s has %.1f GiB; %s", what, bytes / gib,
        device == DEVICE_GPU ? "GPU" : "machine", memory / gib, advice);
}

/* What device_alloc() takes for so many bytes. */
static inline size_t device_alloc_bytes(size_t bytes) { return bytes ? (bytes + 63) / 64 * 64 : 64; }

/* `bytes` zeroed bytes on the device, aligned to at least 64; device_allocated() (device_count.h) counts them. Ends the
 * program with a sentence when memory is full. */
static inline void *device_alloc(Device device, size_t bytes) {
  void *memory = NULL;
  bytes = device_alloc_bytes(bytes);
  ON_DEVICE(
      device,
      {
        CUDA_CHECK(cudaMalloc(&memory, bytes));
        CUDA_CHECK(cudaMemset(memory, 0, bytes));
      },
      {
        if (posix_memalign(&memory, 64, bytes) != 0) die("out of memory: %zu bytes were asked for", bytes);
        memset(memory, 0, bytes);
      });
  device_count_take(device, memory, bytes);
  return memory;
}

static inline void device_free(Device device, void *memory) {
  device_count_give(device, memory);
  ON_DEVICE(device, CUDA_CHECK(cudaFree(memory)), free(memory));
}

/* Host to device, device to host, within the device, and zeroing. Copies to and from the host are synchronous. */
static inline void device_upload(Device device, void *to, const void *from, size_t bytes) {
  ON_DEVICE(device, CUDA_CHECK(cudaMemcpy(to, from, bytes, cudaMemcpyHostToDevice)), memcpy(to, from, bytes));
}

static inline void device_download(Device device, void *to, const void *from, size_t bytes) {
  ON_DEVICE(device, CUDA_CHECK(cudaMemcpy(to, from, bytes, cudaMemcpyDeviceToHost)), memcpy(to, from, bytes));
}

static inline void device_copy(Device device, void *to, const void *from, size_t bytes) {
  ON_DEVICE(device, CUDA_CHECK(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice)), memcpy(to, from, bytes));
}

static inline void device_zero(Device device, void *memory, size_t bytes) {
  ON_DEVICE(device, CUDA_CHECK(cudaMemsetAsync(memory, 0, bytes)), memset(memory, 0, bytes));
}

static inline void device_synchronize(Device device) {
  ON_DEVICE(device, CUDA_CHECK(cudaDeviceSynchronize()), (void)0);
}

#endif /* COMMON_DEVICE_H */
