/* nncuda_stream.cu - the launchers' kernels go to the caller's stream.
 *
 * The launchers of this course name no stream: kernel<<<grid, block, shared>>>(...). The runtime then takes the default
 * stream of the thread or, compiled otherwise, the legacy one that all threads share. A library can use neither:
 *
 *     the legacy stream   waits for all other streams of the device and they for it: no overlap, no CUDA graph
 *     the thread's own    is not ordered with PyTorch's side streams: the kernel may run before its input is written
 *
 * Events could order two streams, at four more calls for each operation. It is simpler to change what "no stream"
 * means. nvcc translates a launch to two calls: __cudaPushCallConfiguration(grid, block, shared, stream), with stream 0
 * where none is named, and the kernel's stub, which fetches these four again. Linked with --wrap=FUNCTION, each call of
 * FUNCTION goes to __wrap_FUNCTION, and the original has the name __real_FUNCTION. So the functions below see every
 * launch of the library, and no other: the program and its other libraries keep theirs. Only a launch without a stream
 * is changed. The other ways to the device that launchers take, cudaMemsetAsync() for example, are the same.
 *
 * The caller's NULL is the legacy stream, by CUDA's convention and PyTorch's. For the runtime it is cudaStreamLegacy
 * then: 0 would be the thread's own stream in files that were compiled for that. */
#include "phase5_production/05_pytorch/nncuda_call.cuh"

static inline cudaStream_t stream_of_launch(cudaStream_t named) {
  return named != NULL ? named : nncuda_thread.stream; /* a launcher that names one has its reasons */
}

#ifdef SIMT_REWRITTEN

extern "C" {
cudaError_t __real_simt_launch(const SimtKernel *kernel);
cudaError_t __wrap_simt_launch(const SimtKernel *kernel);
cudaError_t __wrap_cudaMemsetAsync(void *memory, int value, size_t bytes, cudaStream_t stream);
}

/* The emulator's only way from <<<>>> to a kernel. It refuses host pointers, as a GPU would; here they are meant. */
cudaError_t __wrap_simt_launch(const SimtKernel *kernel) {
  SimtKernel copy = *kernel;
  copy.stream = stream_of_launch(copy.stream);
  if (nncuda_thread.function != NULL) copy.argument_count = 0;
  return __real_simt_launch(&copy);
}

static __global__ void nncuda_fill_kernel(unsigned char *memory, int value, size_t bytes) {
  const size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
  if (i < bytes) memory[i] = (unsigned char)value;
}

/* The emulator's own refuses host memory. */
cudaError_t __wrap_cudaMemsetAsync(void *memory, int value, size_t bytes, cudaStream_t stream) {
  if (bytes == 0) return cudaSuccess;
  nncuda_fill_kernel<<<(unsigned)((bytes + 255) / 256), 256, 0, stream>>>((unsigned char *)memory, value, bytes);
  return cudaGetLastError();
}

#else

#include <cuda_runtime.h>

extern "C" {
unsigned __real___cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared, struct CUstream_st *stream);
unsigned __wrap___cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared, struct CUstream_st *stream);
cudaError_t __real_cudaMemsetAsync(void *memory, int value, size_t bytes, cudaStream_t stream);
cudaError_t __wrap_cudaMemsetAsync(void *memory, int value, size_t bytes, cudaStream_t stream);
cudaError_t __real_cudaLaunchKernelExC(const cudaLaunchConfig_t *config, const void *kernel, void **arguments);
cudaError_t __wrap_cudaLaunchKernelExC(const cudaLaunchConfig_t *config, const void *kernel, void **arguments);
cudaError_t __real_cudaLaunchCooperativeKernel(const void *kernel, dim3 grid, dim3 block, void **arguments,
                                               size_t shared, cudaStream_t stream);
cudaError_t __wrap_cudaLaunchCooperativeKernel(const void *kernel, dim3 grid, dim3 block, void **arguments,
                                               size_t shared, cudaStream_t stream);
}

unsigned __wrap___cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared, struct CUstream_st *stream) {
  return __real___cudaPushCallConfiguration(grid, block, shared, stream_of_launch(stream));
}

cudaError_t __wrap_cudaMemsetAsync(void *memory, int value, size_t bytes, cudaStream_t stream) {
  return __real_cudaMemsetAsync(memory, value, bytes, stream_of_launch(stream));
}

cudaError_t __wrap_cudaLaunchKernelExC(const cudaLaunchConfig_t *config, const void *kernel, void **arguments) {
  cudaLaunchConfig_t copy = *config;
  copy.stream = stream_of_launch(copy.stream);
  return __real_cudaLaunchKernelExC(&copy, kernel, arguments);
}

cudaError_t __wrap_cudaLaunchCooperativeKernel(const void *kernel, dim3 grid, dim3 block, void **arguments,
                                               size_t shared, cudaStream_t stream) {
  return __real_cudaLaunchCooperativeKernel(kernel, grid, block, arguments, shared, stream_of_launch(stream));
}

#endif
