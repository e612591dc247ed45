// A kernel called like a function. nvcc: "a __global__ function call must be configured".
__global__ void k(int *p) { *p = 1; }
template <class T>
__global__ void t(T *p) {
  *p = 1;
}

int main() {
  int *p;
  if (cudaMalloc(&p, sizeof *p)) return 1;
  k(p);       // REFUSED: k() is a kernel, and this call has no <<<grid, block>>>
  t(p);       // REFUSED: t() is a kernel
  t<int>(p);  // REFUSED: this call has no <<<grid, block>>>
  k<<<1, 1>>>(p);
  return cudaFree(p) != cudaSuccess;
}
