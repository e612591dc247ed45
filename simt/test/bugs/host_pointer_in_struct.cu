// The struct is passed by value, the array it points to is the host's.
// mode: inspect
// expect: host pointer
#include <stdio.h>
#include <stdlib.h>

struct Matrix {
  int rows, columns;
  float *data;
};

__global__ void zero(Matrix a) {
  int i = threadIdx.x;
  if (i < a.rows * a.columns) a.data[i] = 0;  // BUG
}

int main(void) {
  Matrix a = {4, 8, (float *)malloc(32 * sizeof(float))};
  zero<<<1, 32>>>(a);
  printf("%s\n", cudaGetErrorString(cudaDeviceSynchronize()));
  free(a.data);
}
