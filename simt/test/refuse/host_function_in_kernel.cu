// A kernel calls what only the host has, and the host what only a kernel has. g++ would see no difference.
#include <stdio.h>

int host_square(int x) { return x * x; }
template <class T>
T host_twice(T x) {
  return 2 * x;
}
__device__ int device_square(int x) { return x * x; }
__host__ __device__ int both_square(int x) { return x * x; }
constexpr int cube(int x) { return x * x * x; }
extern "C" int in_another_file(int x);

__device__ int helper(int x) { return host_square(x) + 1; }  // REFUSED: host_square() is a function of the host

__global__ void k(int *p) {
  p[0] = host_square(3);      // REFUSED: write __device__ (or __host__ __device__) before it
  p[1] = host_twice(3);       // REFUSED: host_twice() is a function of the host, and k() runs on the GPU
  p[2] = host_twice<int>(3);  // REFUSED: host_twice() is a function of the host
  p[3] = sizeof(host_square(3));
  p[3] = host_twice(host_square(3));  // REFUSED: host_twice() is a function // REFUSED: host_square() is a function
  p[4] = cube(3);             // REFUSED: cube() is a function of the host
  p[5] = in_another_file(3);  // REFUSED: in_another_file() is a function of the host
  auto host_square = [](int x) { return x; };  // another one
  p[6] = device_square(3) + both_square(3) + helper(3);
}

int main() {
  int *p;
  if (cudaMalloc(&p, 64)) return 1;
  k<<<1, 1>>>(p);
  printf("%d %d\n", both_square(2) + cube(2), device_square(2));  // REFUSED: device_square() is a __device__ function
  return cudaFree(p) != cudaSuccess;
}
