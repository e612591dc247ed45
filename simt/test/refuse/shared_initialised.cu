// A __shared__ variable with a value. nvcc: "initializer not allowed for __shared__ variable".
__global__ void k(int *p) {
  __shared__ int count = 0;                 // REFUSED: cannot be initialised where it is declared
  __shared__ float weights[3] = {1, 2, 3};  // REFUSED: let one thread assign the value, and then __syncthreads()
  __shared__ int more{1}, last(2);          // REFUSED: cannot be initialised
  __shared__ int sizes[sizeof(int) == 4 ? 4 : 8];
  if (threadIdx.x == 0) count = 1, sizes[0] = 0;
  __syncthreads();
  *p = count + (int)weights[0] + sizes[0] + more + last;
}

int main() { return 0; }
