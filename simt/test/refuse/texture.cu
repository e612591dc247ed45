// Texture objects. The type, the calls and the fetch are each refused with their line.
#include <cuda_runtime.h>

__global__ void scale(float *out,
                      cudaTextureObject_t image,  // REFUSED: cudaTextureObject_t: textures are not supported
                      int width, int height) {
  int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x < width && y < height)
    out[y * width + x] = tex2D<float>(image, x + 0.5f, y + 0.5f);  // REFUSED: read the array by its index
}

int main() {
  cudaTextureObject_t image = 0;  // REFUSED: textures
  scale<<<1, 1>>>(nullptr, image, 0, 0);
  cudaDestroyTextureObject(image);  // REFUSED: textures
  return 0;
}
