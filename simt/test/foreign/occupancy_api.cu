// Occupancy calculator API: manual and automatic configuration, variable shared memory, function attributes, >48 KB, carveout.
#include <iostream>
#include <vector>
#include <cuda_runtime.h>
#include <cuda_occupancy_like.h>

const int manualBlockSize = 32;

__global__ void square(int *array, int arrayCount)
{
    extern __shared__ int dynamicSmem[];
    int idx = threadIdx.x + blockIdx.x * blockDim.x;
    if (idx < arrayCount) {
        dynamicSmem[threadIdx.x] = array[idx];
        array[idx] = dynamicSmem[threadIdx.x] * array[idx];
    }
}

__global__ void __launch_bounds__(128, 2) bounded(int *array, int n)
{
    __shared__ double table[512];
    for (int i = threadIdx.x; i < 512; i += blockDim.x) table[i] = i * 0.5;
    __syncthreads();
    int idx = threadIdx.x + blockIdx.x * blockDim.x;
    if (idx < n) array[idx] = (int)(2 * table[idx % 512]);
}

template <int KB>
__global__ void big_tile(int *out)
{
    extern __shared__ __align__(128) char tile[];
    int *t = reinterpret_cast<int *>(tile);
    const int n = KB * 1024 / sizeof(int);
    for (int i = threadIdx.x; i < n; i += blockDim.x) t[i] = i;
    __syncthreads();
    int s = 0;
    for (int i = threadIdx.x; i < n; i += blockDim.x) s += t[n - 1 - i] & 15;
    atomicAdd(out, s);
}

static double reportPotentialOccupancy(void *kernel, int blockSize, size_t dynamicSMem)
{
    int device, numBlocks;
    cudaDeviceProp prop;
    checkError(cudaGetDevice(&device));
    checkError(cudaGetDeviceProperties(&prop, device));
    checkError(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&numBlocks, kernel, blockSize, dynamicSMem));
    int activeWarps = numBlocks * blockSize / prop.warpSize;
    int maxWarps = prop.maxThreadsPerMultiProcessor / prop.warpSize;
    return (double)activeWarps / maxWarps;
}

static int launchConfig(int *array, int arrayCount, bool automatic)
{
    int blockSize, minGridSize, gridSize;
    size_t dynamicSMemUsage = 1024 * sizeof(int);
    if (automatic) {
        checkError(cudaOccupancyMaxPotentialBlockSize(&minGridSize, &blockSize, (void *)square, dynamicSMemUsage, arrayCount));
        std::cout << "Suggested block size: " << blockSize << std::endl
                  << "Minimum grid size for maximum occupancy: " << minGridSize << std::endl;
    } else {
        blockSize = manualBlockSize;
    }
    gridSize = (arrayCount + blockSize - 1) / blockSize;
    cudaEvent_t start, end;
    float elapsedTime;
    checkError(cudaEventCreate(&start));
    checkError(cudaEventCreate(&end));
    checkError(cudaEventRecord(start));
    square<<<gridSize, blockSize, dynamicSMemUsage>>>(array, arrayCount);
    checkError(cudaEventRecord(end));
    checkError(cudaDeviceSynchronize());
    checkError(cudaEventElapsedTime(&elapsedTime, start, end));
    std::cout << "Potential occupancy: " << reportPotentialOccupancy((void *)square, blockSize, dynamicSMemUsage) * 100 << "%, elapsed time: " << elapsedTime << "ms" << std::endl;
    return blockSize % 32 == 0 && blockSize > 0 && blockSize <= 1024;
}

int main()
{
    const int count = 60000;
    std::vector<int> h(count);
    int *d, *d_out, ok = 1;
    checkError(cudaMalloc(&d, count * sizeof(int)));
    checkError(cudaMalloc(&d_out, sizeof(int)));
    for (int automatic = 0; automatic < 2; automatic++) {
        for (int i = 0; i < count; i++) h[i] = i % 30000;
        checkError(cudaMemcpy(d, h.data(), count * sizeof(int), cudaMemcpyHostToDevice));
        ok &= launchConfig(d, count, automatic);
        checkError(cudaMemcpy(h.data(), d, count * sizeof(int), cudaMemcpyDeviceToHost));
        for (int i = 0; i < count; i++) ok &= h[i] == (i % 30000) * (i % 30000);
    }

    int minGrid, block;
    checkError(cudaOccupancyMaxPotentialBlockSizeVariableSMem(&minGrid, &block, square, [](int b) { return b * sizeof(int); }, 0));
    std::cout << "with shared memory by block size: " << minGrid << " blocks of " << block << std::endl;
    ok &= block > 0;

    cudaFuncAttributes attr;
    checkError(cudaFuncGetAttributes(&attr, bounded));
    std::cout << "bounded: static shared " << attr.sharedSizeBytes << ", max threads " << attr.maxThreadsPerBlock << ", registers " << attr.numRegs
              << ", constant " << attr.constSizeBytes << ", local " << attr.localSizeBytes << std::endl;
    bounded<<<(count + 127) / 128, 128>>>(d, count);
    checkError(cudaGetLastError());
    checkError(cudaMemcpy(h.data(), d, count * sizeof(int), cudaMemcpyDeviceToHost));
    for (int i = 0; i < count; i++) ok &= h[i] == i % 512;

    int most, zero = 0, got;
    checkError(cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin, 0));
    std::cout << "shared memory on request: " << most << " bytes" << std::endl;
    auto tile = big_tile<96>;
    checkError(cudaFuncSetAttribute(tile, cudaFuncAttributeMaxDynamicSharedMemorySize, 96 * 1024));
    checkError(cudaFuncSetAttribute(big_tile<96>, cudaFuncAttributePreferredSharedMemoryCarveout, 100));
    checkError(cudaFuncSetCacheConfig(big_tile<96>, cudaFuncCachePreferShared));
    checkError(cudaMemcpy(d_out, &zero, sizeof(int), cudaMemcpyHostToDevice));
    tile<<<3, 256, 96 * 1024>>>(d_out);
    checkError(cudaGetLastError());
    checkError(cudaMemcpy(&got, d_out, sizeof(int), cudaMemcpyDeviceToHost));
    int want = 0;
    for (int i = 0; i < 96 * 256; i++) want += 3 * (i & 15);
    std::cout << "96 KB tiles: " << got << ", expected " << want << std::endl;
    ok &= got == want;
    checkError(cudaFree(d));
    checkError(cudaFree(d_out));
    std::cout << (ok ? "\nTest PASSED" : "\nTest FAILED") << std::endl;
    return ok ? 0 : 1;
}
