#include <cuda_runtime.h>

__global__ void fill(cudaSurfaceObject_t image) {            // REFUSED: surfaces are not supported
  surf2Dwrite(1.0f, image, threadIdx.x * sizeof(float), 0);  // REFUSED: surf2Dwrite: surfaces are not supported
}

int main() { return 0; }
