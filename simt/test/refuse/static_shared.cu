// More static shared memory than a block has: what ptxas refuses.
template <class T>
__global__ void transpose(T *p) {  // REFUSED: 65536 bytes of __shared__ variables; a block has 49152 (48 KB)
  __shared__ T tile[64][128];
  tile[threadIdx.x][threadIdx.y] = p[threadIdx.x];
  __syncthreads();
  p[threadIdx.x] = tile[threadIdx.y][threadIdx.x];
}

__global__ void two_arrays(float *p) {  // REFUSED: 51200 bytes of __shared__ variables
  __shared__ float a[80][80], b[80][80];
  a[threadIdx.x][threadIdx.y] = p[0];
  b[threadIdx.y][threadIdx.x] = p[1];
  __syncthreads();
  p[threadIdx.x] = a[threadIdx.y][threadIdx.x] + b[threadIdx.y][threadIdx.x];
}

__global__ void just_fits(float *p) {
  __shared__ float a[96][128];
  a[threadIdx.x][threadIdx.y] = p[0];
  __syncthreads();
  p[threadIdx.x] = a[threadIdx.y][threadIdx.x];
}

int main() {
  transpose<<<1, 1>>>((double *)nullptr);
  two_arrays<<<1, 1>>>(nullptr);
  just_fits<<<1, 1>>>(nullptr);
  return 0;
}
