// Seventh-point and 25-point (radius 4) finite differences in 3D: the tile slides along z, the column lives in registers.
#include <cstdio>
#include <cstdlib>
#include <cmath>
#include <cuda_runtime.h>

#define RADIUS 4
#define BX 16
#define BY 8

__constant__ float stencil[RADIUS + 1];

__global__ void FiniteDifferences3D(float *output, const float *input, const int dimx, const int dimy, const int dimz)
{
    bool validw = true;
    const int gtidx = blockIdx.x * blockDim.x + threadIdx.x;
    const int gtidy = blockIdx.y * blockDim.y + threadIdx.y;
    const int ltidx = threadIdx.x, ltidy = threadIdx.y;
    const int workx = blockDim.x, worky = blockDim.y;
    __shared__ float tile[BY + 2 * RADIUS][BX + 2 * RADIUS];

    const int stride_y = dimx + 2 * RADIUS;
    const int stride_z = stride_y * (dimy + 2 * RADIUS);
    int inputIndex = RADIUS * stride_y + RADIUS + gtidy * stride_y + gtidx;
    int outputIndex = 0;

    float infront[RADIUS], behind[RADIUS], current;
    const int tx = ltidx + RADIUS, ty = ltidy + RADIUS;
    if ((gtidx >= dimx + RADIUS) || (gtidy >= dimy + RADIUS)) { validw = false; }
    const bool validr = gtidx < dimx + RADIUS && gtidy < dimy + RADIUS;
    if ((gtidx >= dimx) || (gtidy >= dimy)) validw = false;

    // Preload the "infront" and "behind" data
    for (int i = RADIUS - 2; i >= 0; i--)
    {
        if (validr) behind[i] = input[inputIndex];
        inputIndex += stride_z;
    }
    if (validr) current = input[inputIndex];
    outputIndex = inputIndex;
    inputIndex += stride_z;
    for (int i = 0; i < RADIUS; i++)
    {
        if (validr) infront[i] = input[inputIndex];
        inputIndex += stride_z;
    }

#pragma unroll 3
    for (int iz = 0; iz < dimz; iz++)
    {
        // Advance the slice (move the thread-front)
        for (int i = RADIUS - 1; i > 0; i--) behind[i] = behind[i - 1];
        behind[0] = current;
        current = infront[0];
#pragma unroll 4
        for (int i = 0; i < RADIUS - 1; i++) infront[i] = infront[i + 1];
        if (validr) infront[RADIUS - 1] = input[inputIndex];

        inputIndex += stride_z;
        outputIndex += stride_z;
        __syncthreads();

        // Update the data slice in the local tile: halo above & below, to the left & right
        if (validr)
        {
            if (ltidy < RADIUS)
            {
                tile[ltidy][tx] = input[outputIndex - RADIUS * stride_y];
                if (gtidy + worky < dimy + RADIUS) tile[ltidy + worky + RADIUS][tx] = input[outputIndex + worky * stride_y];
            }
            if (ltidx < RADIUS)
            {
                tile[ty][ltidx] = input[outputIndex - RADIUS];
                if (gtidx + workx < dimx + RADIUS) tile[ty][ltidx + workx + RADIUS] = input[outputIndex + workx];
            }
            tile[ty][tx] = current;
        }
        __syncthreads();

        // Compute the output value
        if (validw)
        {
            float value = stencil[0] * current;
#pragma unroll 4
            for (int i = 1; i <= RADIUS; i++)
            {
                value += stencil[i] * (infront[i - 1] + behind[i - 1] + tile[ty - i][tx] + tile[ty + i][tx] +
                                       tile[ty][tx - i] + tile[ty][tx + i]);
            }
            output[outputIndex] = value;
        }
    }
}

int main(void)
{
    const int dimx = 61, dimy = 43, dimz = 20;
    const int ox = dimx + 2 * RADIUS, oy = dimy + 2 * RADIUS, oz = dimz + 2 * RADIUS;
    const int volume = ox * oy * oz;
    float h_stencil[RADIUS + 1] = {1.0f, 0.25f, 0.125f, 0.0625f, 0.03125f};
    float *h_in = (float *)malloc(volume * sizeof(float)), *h_out = (float *)malloc(volume * sizeof(float));
    for (int i = 0; i < volume; i++) h_in[i] = (float)rand() / RAND_MAX;

    float *d_in, *d_out;
    cudaMalloc((void **)&d_in, volume * sizeof(float));
    cudaMalloc((void **)&d_out, volume * sizeof(float));
    cudaMemcpy(d_in, h_in, volume * sizeof(float), cudaMemcpyHostToDevice);
    cudaMemcpy(d_out, h_in, volume * sizeof(float), cudaMemcpyHostToDevice);
    if (cudaMemcpyToSymbol(stencil, (void *)h_stencil, (RADIUS + 1) * sizeof(float)) != cudaSuccess) return EXIT_FAILURE;

    struct cudaFuncAttributes funcAttrib;
    if (cudaFuncGetAttributes(&funcAttrib, FiniteDifferences3D) != cudaSuccess) return EXIT_FAILURE;
    printf("kernel may use up to %d threads per block\n", funcAttrib.maxThreadsPerBlock);
    dim3 dimBlock, dimGrid;
    dimBlock.x = BX;
    dimBlock.y = BY;
    dimGrid.x = (unsigned int)ceil((float)dimx / dimBlock.x);
    dimGrid.y = (unsigned int)ceil((float)dimy / dimBlock.y);
    FiniteDifferences3D<<<dimGrid, dimBlock>>>(d_out, d_in, dimx, dimy, dimz);
    cudaError_t e = cudaDeviceSynchronize();
    if (e != cudaSuccess) { printf("%s\n", cudaGetErrorString(e)); return EXIT_FAILURE; }
    cudaMemcpy(h_out, d_out, volume * sizeof(float), cudaMemcpyDeviceToHost);

    double worst = 0;
    for (int z = RADIUS; z < oz - RADIUS; z++)
        for (int y = RADIUS; y < oy - RADIUS; y++)
            for (int x = RADIUS; x < ox - RADIUS; x++)
            {
                const float *p = h_in + (z * oy + y) * ox + x;
                float v = p[0] * h_stencil[0];
                for (int i = 1; i <= RADIUS; i++)
                    v += h_stencil[i] * (p[i] + p[-i] + p[i * ox] + p[-i * ox] + p[i * ox * oy] + p[-i * ox * oy]);
                worst = fmax(worst, fabs(v - h_out[p - h_in]));
            }
    printf("largest difference %g\n", worst);
    cudaFree(d_in);
    cudaFree(d_out);
    free(h_in);
    free(h_out);
    printf("%s\n", worst < 1e-4 ? "PASS" : "FAIL");
    return worst < 1e-4 ? EXIT_SUCCESS : EXIT_FAILURE;
}
