#include <wb_like.h>

// MP: tiled 2D convolution with three channels; input tiles larger than output tiles (strategy 2 of the lecture)

#define wbCheck(stmt)                                                     \
  do {                                                                    \
    cudaError_t err = stmt;                                               \
    if (err != cudaSuccess) {                                             \
      wbLog(ERROR, "Failed to run stmt ", #stmt);                         \
      wbLog(ERROR, "Got CUDA error ...  ", cudaGetErrorString(err));      \
      return -1;                                                          \
    }                                                                     \
  } while (0)

#define Mask_width 5
#define Mask_radius Mask_width / 2
#define TILE_WIDTH 16
#define w (TILE_WIDTH + Mask_width - 1)
#define clamp(x) (min(max((x), 0.0), 1.0))

//@@ the mask is read-only and small: constant memory
__constant__ float M[Mask_width * Mask_width];

__global__ void convolution(const float *I, float *P, int channels, int width, int height) {
  __shared__ float N_ds[w][w];
  for (int k = 0; k < channels; k++) {
    // First batch loading
    int dest = threadIdx.y * TILE_WIDTH + threadIdx.x, destY = dest / w, destX = dest % w,
        srcY = blockIdx.y * TILE_WIDTH + destY - Mask_radius,
        srcX = blockIdx.x * TILE_WIDTH + destX - Mask_radius,
        src = (srcY * width + srcX) * channels + k;
    if (srcY >= 0 && srcY < height && srcX >= 0 && srcX < width)
      N_ds[destY][destX] = I[src];
    else
      N_ds[destY][destX] = 0;

    // Second batch loading
    dest = threadIdx.y * TILE_WIDTH + threadIdx.x + TILE_WIDTH * TILE_WIDTH;
    destY = dest / w, destX = dest % w;
    srcY = blockIdx.y * TILE_WIDTH + destY - Mask_radius;
    srcX = blockIdx.x * TILE_WIDTH + destX - Mask_radius;
    src = (srcY * width + srcX) * channels + k;
    if (destY < w) {
      if (srcY >= 0 && srcY < height && srcX >= 0 && srcX < width)
        N_ds[destY][destX] = I[src];
      else
        N_ds[destY][destX] = 0;
    }
    __syncthreads();

    float accum = 0;
    int y, x;
    for (y = 0; y < Mask_width; y++)
      for (x = 0; x < Mask_width; x++)
        accum += N_ds[threadIdx.y + y][threadIdx.x + x] * M[y * Mask_width + x];
    y = blockIdx.y * TILE_WIDTH + threadIdx.y;
    x = blockIdx.x * TILE_WIDTH + threadIdx.x;
    if (y < height && x < width)
      P[(y * width + x) * channels + k] = clamp(accum);
    __syncthreads();
  }
}

int main(int argc, char *argv[]) {
  int imageChannels = 3, imageWidth = 203, imageHeight = 149;
  float *hostInput, *hostOutput, *deviceInputImageData, *deviceOutputImageData;
  float hostMask[Mask_width * Mask_width];
  int bytes = imageChannels * imageWidth * imageHeight * sizeof(float);

  hostInput = (float *)malloc(bytes);
  hostOutput = (float *)malloc(bytes);
  wbRandom(hostInput, bytes / sizeof(float), 0.f, 1.f);
  wbRandom(hostMask, Mask_width * Mask_width, -0.1f, 0.2f);

  wbTime_start(GPU, "Doing GPU Computation (memory + compute)");
  wbTime_start(GPU, "Doing GPU memory allocation");
  wbCheck(cudaMalloc((void **)&deviceInputImageData, bytes));
  wbCheck(cudaMalloc((void **)&deviceOutputImageData, bytes));
  wbTime_stop(GPU, "Doing GPU memory allocation");

  wbTime_start(Copy, "Copying data to the GPU");
  wbCheck(cudaMemcpy(deviceInputImageData, hostInput, bytes, cudaMemcpyHostToDevice));
  wbCheck(cudaMemcpyToSymbol(M, hostMask, sizeof(hostMask)));
  wbTime_stop(Copy, "Copying data to the GPU");

  wbTime_start(Compute, "Doing the computation on the GPU");
  dim3 dimGrid(ceil((float)imageWidth / TILE_WIDTH), ceil((float)imageHeight / TILE_WIDTH));
  dim3 dimBlock(TILE_WIDTH, TILE_WIDTH, 1);
  convolution<<<dimGrid, dimBlock>>>(deviceInputImageData, deviceOutputImageData, imageChannels, imageWidth, imageHeight);
  wbCheck(cudaGetLastError());
  wbCheck(cudaDeviceSynchronize());
  wbTime_stop(Compute, "Doing the computation on the GPU");

  wbCheck(cudaMemcpy(hostOutput, deviceOutputImageData, bytes, cudaMemcpyDeviceToHost));
  wbTime_stop(GPU, "Doing GPU Computation (memory + compute)");

  float *expected = (float *)malloc(bytes);
  for (int y = 0; y < imageHeight; y++)
    for (int x = 0; x < imageWidth; x++)
      for (int k = 0; k < imageChannels; k++) {
        float accum = 0;
        for (int j = 0; j < Mask_width; j++)
          for (int i = 0; i < Mask_width; i++) {
            int yy = y + j - Mask_radius, xx = x + i - Mask_radius;
            if (yy >= 0 && yy < imageHeight && xx >= 0 && xx < imageWidth)
              accum += hostInput[(yy * imageWidth + xx) * imageChannels + k] * hostMask[j * Mask_width + i];
          }
        expected[(y * imageWidth + x) * imageChannels + k] = accum < 0 ? 0 : accum > 1 ? 1 : accum;
      }
  int rc = wbSolution(expected, hostOutput, bytes / sizeof(float));

  cudaFree(deviceInputImageData);
  cudaFree(deviceOutputImageData);
  free(hostInput);
  free(hostOutput);
  free(expected);
  return rc;
}
