/* This sample queries the properties of the CUDA devices present in the system via CUDA Runtime API. */
#include <cuda_runtime.h>
#include <iostream>
#include <memory>
#include <string>
#include <string.h>
#include "helper_check.h"

int *pArgc = NULL;
char **pArgv = NULL;

// A missing runtime function is no error, only a smaller report
template <class T>
inline void getCudaAttribute(T *attribute, cudaDeviceAttr device_attribute, int device)
{
    cudaError_t error = cudaDeviceGetAttribute(attribute, device_attribute, device);
    if (cudaSuccess != error) {
        fprintf(stderr, "attribute %d: %s\n", (int)device_attribute, cudaGetErrorString(error));
        exit(EXIT_FAILURE);
    }
}

int main(int argc, char **argv)
{
    pArgc = &argc;
    pArgv = argv;
    printf("%s Starting...\n\n", argv[0]);
    printf(" CUDA Device Query (Runtime API) version (CUDART static linking)\n\n");

    int deviceCount = 0;
    cudaError_t error_id = cudaGetDeviceCount(&deviceCount);
    if (error_id != cudaSuccess) {
        printf("cudaGetDeviceCount returned %d\n-> %s\n", static_cast<int>(error_id), cudaGetErrorString(error_id));
        printf("Result = FAIL\n");
        exit(EXIT_FAILURE);
    }
    if (deviceCount == 0) printf("There are no available device(s) that support CUDA\n");
    else printf("Detected %d CUDA Capable device(s)\n", deviceCount);

    int dev, driverVersion = 0, runtimeVersion = 0, faults = 0;
    for (dev = 0; dev < deviceCount; ++dev) {
        cudaSetDevice(dev);
        cudaDeviceProp deviceProp;
        cudaGetDeviceProperties(&deviceProp, dev);
        printf("\nDevice %d: \"%s\"\n", dev, deviceProp.name);

        cudaDriverGetVersion(&driverVersion);
        cudaRuntimeGetVersion(&runtimeVersion);
        printf("  CUDA Driver Version / Runtime Version          %d.%d / %d.%d\n", driverVersion / 1000, (driverVersion % 100) / 10,
               runtimeVersion / 1000, (runtimeVersion % 100) / 10);
        printf("  CUDA Capability Major/Minor version number:    %d.%d\n", deviceProp.major, deviceProp.minor);

        char msg[256];
        snprintf(msg, sizeof(msg), "  Total amount of global memory:                 %.0f MBytes (%llu bytes)\n",
                 static_cast<float>(deviceProp.totalGlobalMem / 1048576.0f), (unsigned long long)deviceProp.totalGlobalMem);
        printf("%s", msg);
        printf("  (%03d) Multiprocessors, (%03d) CUDA Cores/MP:    %d CUDA Cores\n", deviceProp.multiProcessorCount,
               _ConvertSMVer2Cores(deviceProp.major, deviceProp.minor),
               _ConvertSMVer2Cores(deviceProp.major, deviceProp.minor) * deviceProp.multiProcessorCount);
#if CUDART_VERSION < 13000
        printf("  GPU Max Clock rate:                            %.0f MHz (%0.2f GHz)\n", deviceProp.clockRate * 1e-3f, deviceProp.clockRate * 1e-6f);
        printf("  Memory Clock rate:                             %.0f Mhz\n", deviceProp.memoryClockRate * 1e-3f);
        printf("  Concurrent copy and kernel execution:          %s\n", deviceProp.deviceOverlap ? "Yes" : "No");
        printf("  Run time limit on kernels:                     %s\n", deviceProp.kernelExecTimeoutEnabled ? "Yes" : "No");
        printf("  Compute mode:                                  %d\n", deviceProp.computeMode);
#else
        int clockRate, memoryClock, timeout, computeMode;
        getCudaAttribute<int>(&clockRate, cudaDevAttrClockRate, dev);
        getCudaAttribute<int>(&memoryClock, cudaDevAttrMemoryClockRate, dev);
        getCudaAttribute<int>(&timeout, cudaDevAttrKernelExecTimeout, dev);
        getCudaAttribute<int>(&computeMode, cudaDevAttrComputeMode, dev);
        printf("  GPU Max Clock rate:                            %.0f MHz (%0.2f GHz)\n", clockRate * 1e-3f, clockRate * 1e-6f);
        printf("  Memory Clock rate:                             %.0f Mhz\n", memoryClock * 1e-3f);
        printf("  Run time limit on kernels:                     %s\n", timeout ? "Yes" : "No");
        printf("  Compute mode:                                  %d\n", computeMode);
#endif
        printf("  Memory Bus Width:                              %d-bit\n", deviceProp.memoryBusWidth);
        if (deviceProp.l2CacheSize) printf("  L2 Cache Size:                                 %d bytes\n", deviceProp.l2CacheSize);
        printf("  Maximum Texture Dimension Size (x,y,z)         1D=(%d), 2D=(%d, %d), 3D=(%d, %d, %d)\n", deviceProp.maxTexture1D,
               deviceProp.maxTexture2D[0], deviceProp.maxTexture2D[1], deviceProp.maxTexture3D[0], deviceProp.maxTexture3D[1], deviceProp.maxTexture3D[2]);
        printf("  Total amount of constant memory:               %zu bytes\n", deviceProp.totalConstMem);
        printf("  Total amount of shared memory per block:       %zu bytes\n", deviceProp.sharedMemPerBlock);
        printf("  Total shared memory per multiprocessor:        %zu bytes\n", deviceProp.sharedMemPerMultiprocessor);
        printf("  Shared memory per block, opted in:             %zu bytes, reserved %zu\n", deviceProp.sharedMemPerBlockOptin, deviceProp.reservedSharedMemPerBlock);
        printf("  Total number of registers available per block: %d, per multiprocessor %d\n", deviceProp.regsPerBlock, deviceProp.regsPerMultiprocessor);
        printf("  Warp size:                                     %d\n", deviceProp.warpSize);
        printf("  Maximum number of threads per multiprocessor:  %d, blocks %d\n", deviceProp.maxThreadsPerMultiProcessor, deviceProp.maxBlocksPerMultiProcessor);
        printf("  Maximum number of threads per block:           %d\n", deviceProp.maxThreadsPerBlock);
        printf("  Max dimension size of a thread block (x,y,z): (%d, %d, %d)\n", deviceProp.maxThreadsDim[0], deviceProp.maxThreadsDim[1], deviceProp.maxThreadsDim[2]);
        printf("  Max dimension size of a grid size    (x,y,z): (%d, %d, %d)\n", deviceProp.maxGridSize[0], deviceProp.maxGridSize[1], deviceProp.maxGridSize[2]);
        printf("  Maximum memory pitch:                          %zu bytes\n", deviceProp.memPitch);
        printf("  Texture alignment:                             %zu bytes\n", deviceProp.textureAlignment);
        printf("  Concurrent kernels / %d copy engine(s):         %s\n", deviceProp.asyncEngineCount, deviceProp.concurrentKernels ? "Yes" : "No");
        printf("  Integrated GPU sharing Host Memory:            %s\n", deviceProp.integrated ? "Yes" : "No");
        printf("  Support host page-locked memory mapping:       %s\n", deviceProp.canMapHostMemory ? "Yes" : "No");
        printf("  Alignment requirement for Surfaces:            %zu\n", deviceProp.surfaceAlignment);
        printf("  Device has ECC support:                        %s\n", deviceProp.ECCEnabled ? "Enabled" : "Disabled");
        printf("  Device supports Unified Addressing (UVA):      %s\n", deviceProp.unifiedAddressing ? "Yes" : "No");
        printf("  Device supports Managed Memory:                %s\n", deviceProp.managedMemory ? "Yes" : "No");
        printf("  Concurrent / pageable managed access:          %d / %d\n", deviceProp.concurrentManagedAccess, deviceProp.pageableMemoryAccess);
        printf("  Device supports Compute Preemption:            %s\n", deviceProp.computePreemptionSupported ? "Yes" : "No");
        printf("  Supports Cooperative Kernel Launch:            %s\n", deviceProp.cooperativeLaunch ? "Yes" : "No");
        printf("  Stream priorities, global L1, local L1:        %d %d %d\n", deviceProp.streamPrioritiesSupported, deviceProp.globalL1CacheSupported, deviceProp.localL1CacheSupported);
        printf("  Device PCI Domain ID / Bus ID / location ID:   %d / %d / %d\n", deviceProp.pciDomainID, deviceProp.pciBusID, deviceProp.pciDeviceID);

        // an attribute and the field that stands for it must agree
        struct { const char *name; cudaDeviceAttr attr; long long field; } same[] = {
            {"MaxThreadsPerBlock", cudaDevAttrMaxThreadsPerBlock, deviceProp.maxThreadsPerBlock},
            {"MaxBlockDimX", cudaDevAttrMaxBlockDimX, deviceProp.maxThreadsDim[0]},
            {"MaxBlockDimZ", cudaDevAttrMaxBlockDimZ, deviceProp.maxThreadsDim[2]},
            {"MaxGridDimX", cudaDevAttrMaxGridDimX, deviceProp.maxGridSize[0]},
            {"MaxGridDimY", cudaDevAttrMaxGridDimY, deviceProp.maxGridSize[1]},
            {"MaxSharedMemoryPerBlock", cudaDevAttrMaxSharedMemoryPerBlock, (long long)deviceProp.sharedMemPerBlock},
            {"MaxSharedMemoryPerBlockOptin", cudaDevAttrMaxSharedMemoryPerBlockOptin, (long long)deviceProp.sharedMemPerBlockOptin},
            {"WarpSize", cudaDevAttrWarpSize, deviceProp.warpSize},
            {"MultiProcessorCount", cudaDevAttrMultiProcessorCount, deviceProp.multiProcessorCount},
            {"MaxThreadsPerMultiProcessor", cudaDevAttrMaxThreadsPerMultiProcessor, deviceProp.maxThreadsPerMultiProcessor},
            {"L2CacheSize", cudaDevAttrL2CacheSize, deviceProp.l2CacheSize},
            {"ComputeCapabilityMajor", cudaDevAttrComputeCapabilityMajor, deviceProp.major},
            {"ComputeCapabilityMinor", cudaDevAttrComputeCapabilityMinor, deviceProp.minor},
            {"CooperativeLaunch", cudaDevAttrCooperativeLaunch, deviceProp.cooperativeLaunch},
            {"GlobalMemoryBusWidth", cudaDevAttrGlobalMemoryBusWidth, deviceProp.memoryBusWidth},
            {"MaxRegistersPerBlock", cudaDevAttrMaxRegistersPerBlock, deviceProp.regsPerBlock},
            {"TotalConstantMemory", cudaDevAttrTotalConstantMemory, (long long)deviceProp.totalConstMem},
        };
        for (auto &s : same) {
            int v;
            getCudaAttribute<int>(&v, s.attr, dev);
            if (v != s.field) { printf("cudaDevAttr%s is %d, the field %lld\n", s.name, v, s.field); faults++; }
        }
        size_t freeMem = 0, totalMem = 0;
        checkCudaErrors(cudaMemGetInfo(&freeMem, &totalMem));
        printf("  Free memory: %.1f of %.1f MiB\n", freeMem / 1048576., totalMem / 1048576.);
        faults += freeMem > totalMem || totalMem < deviceProp.totalGlobalMem / 2 || deviceProp.warpSize != 32 || deviceProp.maxThreadsPerBlock != 1024;
        int lo, hi;
        checkCudaErrors(cudaDeviceGetStreamPriorityRange(&lo, &hi));
        printf("  Stream priorities %d to %d\n", lo, hi);
        char pci[32];
        checkCudaErrors(cudaDeviceGetPCIBusId(pci, sizeof pci, dev));
        size_t heap, stack, fifo;
        checkCudaErrors(cudaDeviceGetLimit(&heap, cudaLimitMallocHeapSize));
        checkCudaErrors(cudaDeviceGetLimit(&stack, cudaLimitStackSize));
        checkCudaErrors(cudaDeviceGetLimit(&fifo, cudaLimitPrintfFifoSize));
        printf("  %s, heap %zu, stack %zu, printf buffer %zu bytes\n", pci, heap, stack, fifo);
        int peer = -1;
        if (deviceCount > 1 && dev == 0) checkCudaErrors(cudaDeviceCanAccessPeer(&peer, 0, 1));
    }
    cudaDeviceProp p0;
    faults += cudaGetDeviceProperties(&p0, deviceCount) == cudaSuccess;
    cudaGetLastError();
    std::string sProfileString = "deviceQuery, CUDA Driver = CUDART, NumDevs = " + std::to_string(deviceCount);
    printf("\n%s\nResult = %s\n", sProfileString.c_str(), faults ? "FAIL" : "PASS");
    exit(faults ? EXIT_FAILURE : EXIT_SUCCESS);
}
