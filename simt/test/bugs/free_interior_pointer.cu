// The pointer was advanced while it was used and is then freed from where it stands.
// mode: plain inspect
// expect: invalid free
#include <stdio.h>

int main(void) {
  float *dx, value = 1;
  cudaMalloc(&dx, 100 * sizeof(float));
  for (int i = 0; i < 3; i++) cudaMemcpy(dx++, &value, sizeof value, cudaMemcpyHostToDevice);
  cudaFree(dx);  // BUG
  printf("%s\n", cudaGetErrorString(cudaGetLastError()));
}
