// A kernel calls functions of the libraries that only the host has. By the name alone they are refused; what CUDA has for
// kernels, and what the program has of such a name, is not. nvcc 13 refuses and accepts the same lines.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <ctime>
#include <unistd.h>
#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

#define BIGGER(a, b) std::max(a, b)
#define LARGER(a, b) ((a) > (b) ? (a) : (b))

struct Bed {
  int now;
  __device__ int sleep(int x) { return now + x; }
};
__device__ int gcd(int a, int b) { return b ? gcd(b, a % b) : a; }
__device__ int seed() { return rand(); }  // REFUSED: rand() is a function of the host's C library, and seed() runs on

template <class T>
__device__ T unused(T x) {
  return x + rand();  // a template that nobody uses
}
__host__ __device__ int both(int x) { return x + rand(); }  // the host may call it

__global__ void k(int *p, float *f) {
  p[0] = (int)time(NULL);            // REFUSED: time() is a function of the host's C library, and k() runs on the GPU: clock64()
  srand(1);                          // REFUSED: use curand_kernel.h, a generator for kernels (in the course: common/philox.h)
  p[1] = rand() % 2;                 // REFUSED: rand() is a function
  p[2] = std::rand();                // REFUSED: rand() is a function
  fopen("a", "r");                   // REFUSED: read and write files on the host
  fprintf(stderr, "x");              // REFUSED: print with printf()
  puts("x");                         // REFUSED: print with printf()
  exit(1);                           // REFUSED: end a thread with return
  usleep(10);                        // REFUSED: __nanosleep()
  p[3] = (int)strlen((char *)p);  // REFUSED: strlen() is a function of the host's C library
  p[4] = atoi("3");                  // REFUSED: do it on the host, and pass the result
  void *m = calloc(4, 4);            // REFUSED: cudaMalloc() on the host, before the launch
  cudaMemcpy(p, p + 1, 4, cudaMemcpyDeviceToDevice);  // REFUSED: copy on the host, before the launch
  cudaMalloc(&p, 4);                 // REFUSED: cudaMalloc() is a function of CUDA for the host
  p[5] = std::max(p[1], p[2]);       // REFUSED: std::max() is a function of the C++ library, which only the host has
  p[5] = std::min<int>(p[1], 7);     // REFUSED: use max() or min(), or fmaxf() and fminf() for floats
  p[5] = BIGGER(p[1], p[2]);         // REFUSED: std::max()
  std::swap(p[1], p[2]);             // REFUSED: use a third variable
  std::sort(p, p + 4);               // REFUSED: std::sort()
  f[0] = std::numeric_limits<float>::max();  // REFUSED: FLT_MAX
  auto draw = [=] { return rand(); };        // REFUSED: rand() is a function

  Bed bed{3};
  p[6] = bed.sleep(1) + gcd(p[1], p[2]) + LARGER(p[1], p[2]) + both(1);
  auto random = [](int x) { return x; };
  p[7] = random(3) + sizeof(rand()) + (int)clock() + (int)std::clock();
  printf("%d\n", max(p[0], p[1]));
  memcpy(p, p + 4, 16);
  memset(p, 0, 16);
  m = malloc(4);
  free(m);
  f[1] = sqrtf(f[0]) + std::sqrt(f[0]) + std::abs(f[0]) + std::pow(f[0], 2.0f) + fmaxf(f[0], 1) + std::fmax(f[0], f[1]);
  p[8] = std::move(p[1]) + (int)std::is_same<int, int>::value + abs(p[2]);
}

int main() {
  srand((unsigned)time(NULL));
  k<<<1, 1>>>(nullptr, nullptr);
  return std::max(0, rand() % 1);
}
