// The device as cudaDeviceProp, cudaDeviceGetAttribute() and the driver API describe it: the same. Memory of either.
// flags: -lcuda
#include <cuda.h>
#include <cuda_runtime.h>
#include <string.h>

#include "expect.h"

__global__ void scale(float *x, float factor) { x[threadIdx.x] *= factor; }

static int attribute(cudaDeviceAttr which) {
  int value = -1;
  WORKS(cudaDeviceGetAttribute(&value, which, 0));
  return value;
}

static int of_driver(CUdevice_attribute which, CUdevice device) {
  int value = -1;
  EXPECT(cuDeviceGetAttribute(&value, which, device) == CUDA_SUCCESS);
  return value;
}

int main() {
  cudaDeviceProp p;
  int runtime_version = 0, version = 0, driver_version = 0, count = 0;
  WORKS(cudaGetDeviceProperties(&p, 0));
  WORKS(cudaGetDeviceCount(&count));
  WORKS(cudaRuntimeGetVersion(&runtime_version));
  WORKS(cudaDriverGetVersion(&version));
  EXPECT(count > 0 && version >= runtime_version && runtime_version >= 12000);

  CUdevice device;
  CUcontext context;
  char name[256] = "";
  size_t bytes = 0, free_bytes = 0, total = 0;
  EXPECT(cuInit(0) == CUDA_SUCCESS && cuDeviceGet(&device, 0) == CUDA_SUCCESS);
  EXPECT(cuDriverGetVersion(&driver_version) == CUDA_SUCCESS && driver_version == version && CUDA_VERSION >= 12000);
  EXPECT(cuDeviceGetName(name, sizeof name, device) == CUDA_SUCCESS && strcmp(name, p.name) == 0);
  EXPECT(cuDeviceTotalMem(&bytes, device) == CUDA_SUCCESS && bytes == p.totalGlobalMem);
  WORKS(cudaMemGetInfo(&free_bytes, &total));
  EXPECT(total == bytes && free_bytes <= total);
  const struct {
    cudaDeviceAttr runtime;
    CUdevice_attribute driver;
    int property;
  } same[] = {
      {cudaDevAttrComputeCapabilityMajor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, p.major},
      {cudaDevAttrComputeCapabilityMinor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, p.minor},
      {cudaDevAttrMultiProcessorCount, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, p.multiProcessorCount},
  };
  for (auto &s : same) EXPECT(attribute(s.runtime) == s.property && of_driver(s.driver, device) == s.property);
  const struct {
    cudaDeviceAttr which;
    long long property;
  } more[] = {
      {cudaDevAttrWarpSize, p.warpSize},
      {cudaDevAttrMaxThreadsPerMultiProcessor, p.maxThreadsPerMultiProcessor},
      {cudaDevAttrMaxBlockDimX, p.maxThreadsDim[0]},
      {cudaDevAttrMaxBlockDimZ, p.maxThreadsDim[2]},
      {cudaDevAttrMaxGridDimX, p.maxGridSize[0]},
      {cudaDevAttrMaxGridDimY, p.maxGridSize[1]},
      {cudaDevAttrMaxSharedMemoryPerBlock, (long long)p.sharedMemPerBlock},
      {cudaDevAttrMaxSharedMemoryPerBlockOptin, (long long)p.sharedMemPerBlockOptin},
      {cudaDevAttrMaxRegistersPerBlock, p.regsPerBlock},
      {cudaDevAttrTotalConstantMemory, (long long)p.totalConstMem},
      {cudaDevAttrGlobalMemoryBusWidth, p.memoryBusWidth},
      {cudaDevAttrL2CacheSize, p.l2CacheSize},
      {cudaDevAttrIntegrated, p.integrated},
      {cudaDevAttrEccEnabled, p.ECCEnabled},
      {cudaDevAttrCooperativeLaunch, p.cooperativeLaunch},
      {cudaDevAttrConcurrentKernels, p.concurrentKernels},
      {cudaDevAttrConcurrentManagedAccess, p.concurrentManagedAccess},
      {cudaDevAttrManagedMemory, p.managedMemory},
      {cudaDevAttrUnifiedAddressing, p.unifiedAddressing},
      {cudaDevAttrCanMapHostMemory, p.canMapHostMemory},
      {cudaDevAttrAsyncEngineCount, p.asyncEngineCount},
      {cudaDevAttrMaxPitch, (long long)p.memPitch},
      {cudaDevAttrTextureAlignment, (long long)p.textureAlignment},
      {cudaDevAttrPciBusId, p.pciBusID},
      {cudaDevAttrPciDeviceId, p.pciDeviceID},
      {cudaDevAttrPciDomainId, p.pciDomainID},
      {cudaDevAttrPageableMemoryAccess, p.pageableMemoryAccess},
      {cudaDevAttrStreamPrioritiesSupported, p.streamPrioritiesSupported},
      {cudaDevAttrComputePreemptionSupported, p.computePreemptionSupported},
  };
  for (auto &m : more)
    if (attribute(m.which) != m.property)
      printf("attribute %d: %d, but %lld\n", (int)m.which, attribute(m.which), m.property), mistakes++;
  char place[32] = "", expected[32];
  WORKS(cudaDeviceGetPCIBusId(place, sizeof place, 0));
  snprintf(expected, sizeof expected, "%04x:%02x:%02x", p.pciDomainID, p.pciBusID, p.pciDeviceID);
  EXPECT(strncasecmp(place, expected, strlen(expected)) == 0);
  EXPECT(p.regsPerMultiprocessor >= p.regsPerBlock && (int)p.sharedMemPerMultiprocessor >= (int)p.sharedMemPerBlock);

  CUdeviceptr memory;
  float host[32], *also = NULL;
  for (int i = 0; i < 32; i++) host[i] = i;
  EXPECT(cuDevicePrimaryCtxRetain(&context, device) == CUDA_SUCCESS && cuCtxSetCurrent(context) == CUDA_SUCCESS);
  EXPECT(cuMemAlloc(&memory, sizeof host) == CUDA_SUCCESS);
  EXPECT(cuMemcpyHtoD(memory, host, sizeof host) == CUDA_SUCCESS);
  scale<<<1, 32>>>((float *)memory, 0.5f);
  EXPECT(cuCtxSynchronize() == CUDA_SUCCESS);
  WORKS(cudaMalloc(&also, sizeof host));
  WORKS(cudaMemcpy(also, (void *)memory, sizeof host, cudaMemcpyDeviceToDevice));
  EXPECT(cuMemcpyDtoH(host, (CUdeviceptr)also, sizeof host) == CUDA_SUCCESS);
  for (int i = 0; i < 32; i++) EXPECT(host[i] == 0.5f * i);
  WORKS(cudaFree(also));
  EXPECT(cuMemFree(memory) == CUDA_SUCCESS && cuDevicePrimaryCtxRelease(device) == CUDA_SUCCESS);

  const char *error_name = NULL, *error_text = NULL;
  CUresult error = cuDeviceGet(&device, 99);
  EXPECT(error == CUDA_ERROR_INVALID_DEVICE && cuGetErrorName(error, &error_name) == CUDA_SUCCESS);
  EXPECT(cuGetErrorString(error, &error_text) == CUDA_SUCCESS && error_text[0]);
  EXPECT(strcmp(error_name, "CUDA_ERROR_INVALID_DEVICE") == 0);
  EXPECT(cuGetErrorName(CUDA_SUCCESS, &error_name) == CUDA_SUCCESS && strcmp(error_name, "CUDA_SUCCESS") == 0);
  EXPECT(cuGetErrorName(CUDA_ERROR_LAUNCH_FAILED, &error_name) == CUDA_SUCCESS);
  EXPECT(strcmp(error_name, "CUDA_ERROR_LAUNCH_FAILED") == 0);
  EXPECT(cuGetErrorName((CUresult)98, &error_name) == CUDA_ERROR_INVALID_VALUE && !error_name);  // the runtime's alone
  EXPECT(cuGetErrorString((CUresult)98, &error_text) == CUDA_ERROR_INVALID_VALUE && !error_text);
  return mistakes;
}
