// The driver API beside a runtime kernel: cuInit, devices, attributes, the primary context, memory by CUdeviceptr.
#include <cuda.h>
#include <cstdio>
#include <cstdlib>
#include <vector>

#define checkCuErrors(err) __checkCuErrors(err, __FILE__, __LINE__)
inline void __checkCuErrors(CUresult err, const char *file, const int line)
{
    if (CUDA_SUCCESS != err) {
        const char *name = NULL, *text = NULL;
        cuGetErrorName(err, &name);
        cuGetErrorString(err, &text);
        fprintf(stderr, "checkCuErrors() Driver API error = %04d (%s: %s) from file <%s>, line %i.\n", err, name, text, file, line);
        exit(EXIT_FAILURE);
    }
}

__global__ void scale(float *p, float f, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) p[i] *= f;
}

int main()
{
    CUdevice device;
    CUcontext context;
    CUdeviceptr d_data;
    int count = 0, version = 0, major = 0, minor = 0, multiprocessors = 0, n = 3000;
    char name[128];
    size_t mem = 0;
    checkCuErrors(cuInit(0));
    checkCuErrors(cuDriverGetVersion(&version));
    checkCuErrors(cuDeviceGetCount(&count));
    if (count < 1) { printf("no device\n"); return 2; }
    checkCuErrors(cuDeviceGet(&device, 0));
    checkCuErrors(cuDeviceGetName(name, sizeof name, device));
    checkCuErrors(cuDeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device));
    checkCuErrors(cuDeviceGetAttribute(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device));
    checkCuErrors(cuDeviceGetAttribute(&multiprocessors, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, device));
    checkCuErrors(cuDeviceTotalMem(&mem, device));
    printf("> %s, SM %d.%d, %d multiprocessors, %zu MiB, driver %d, header %d\n", name, major, minor, multiprocessors, mem >> 20, version, CUDA_VERSION);

    checkCuErrors(cuDevicePrimaryCtxRetain(&context, device));
    checkCuErrors(cuCtxSetCurrent(context));
    std::vector<float> h(n);
    for (int i = 0; i < n; i++) h[i] = i;
    checkCuErrors(cuMemAlloc(&d_data, n * sizeof(float)));
    checkCuErrors(cuMemcpyHtoD(d_data, h.data(), n * sizeof(float)));
    scale<<<(n + 127) / 128, 128>>>((float *)d_data, 0.5f, n);
    checkCuErrors(cuCtxSynchronize());
    checkCuErrors(cuMemcpyDtoH(h.data(), d_data, n * sizeof(float)));
    checkCuErrors(cuMemFree(d_data));
    checkCuErrors(cuDevicePrimaryCtxRelease(device));
    int bad = cuDeviceGet(&device, 99) != CUDA_ERROR_INVALID_DEVICE;
    for (int i = 0; i < n; i++) bad += h[i] != i * 0.5f;
    printf(bad ? "FAILED\n" : "driver and runtime agree\n");
    return bad != 0;
}
