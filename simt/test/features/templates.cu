// Kernels from templates of every kind, and parameters of every kind. Each result is one that the host computes, too.
#include "expect.h"

template <class T>
__global__ void shift(T *x);  // declared first
template <class T>
__global__ void shift(T *x) {
  x[threadIdx.x] += 1;
}
template <>
__global__ void shift<short>(short *x) {
  x[threadIdx.x] += 100;
}
template __global__ void shift<double>(double *);

template <class... N>
__global__ void sum_of(int *x, N... numbers) {
  x[0] = (0 + ... + (int)numbers);
  x[1] = sizeof...(N);
}

template <class T>
struct Twice {
  __host__ __device__ static constexpr T of(T x) { return 2 * x; }
};
template <class T>
struct Square {
  __host__ __device__ static T of(T x) { return x * x; }
};
template <template <class> class OPERATION, class T, int TIMES = 2>
__host__ __device__ T repeat(T x) {
  for (int i = 0; i < TIMES; i++) x = OPERATION<T>::of(x);
  return x;
}
template <template <class> class OPERATION, int TIMES>
__global__ void repeated(int *x) {
  x[threadIdx.x] = repeat<OPERATION, int, TIMES>(threadIdx.x);
}

__host__ __device__ int cube(int x) { return x * x * x; }
template <int (*FUNCTION)(int)>
__global__ void of_function(int *x) {
  x[threadIdx.x] = FUNCTION(threadIdx.x);
}

template <class DERIVED>
struct Launcher {
  int *x;
  template <class K>
  void launch(K kernel) {
    static_cast<DERIVED *>(this)->counted++;
    kernel<<<1, 32>>>(x);
  }
};
struct Counting : Launcher<Counting> {
  int counted = 0;
};

enum class Sign : signed char { PLUS = 1, MINUS = -1 };
struct alignas(16) Parameter {
  char tag;
  double value;
  int table[9];
  Sign sign;
};
namespace outer {
namespace {
__global__ __launch_bounds__(32) void by_value(double *x, Parameter p, const Parameter q, bool plus) {
  double v = p.value * p.table[threadIdx.x % 9] + q.value;
  x[threadIdx.x] = plus ? v : v * (int)q.sign + p.tag;
}
}  // namespace
}  // namespace outer
extern "C" __global__ void of_c(float *__restrict__ x, const float *__restrict y) {
  x[threadIdx.x] = y[0] + threadIdx.x;
}

int main() {
  int *x;
  double *d;
  short *s;
  float *f;
  WORKS(cudaMallocManaged(&x, 32 * sizeof *x));
  WORKS(cudaMallocManaged(&d, 32 * sizeof *d));
  WORKS(cudaMallocManaged(&s, 32 * sizeof *s));
  WORKS(cudaMallocManaged(&f, 33 * sizeof *f));
  for (int i = 0; i < 32; i++) x[i] = i, d[i] = i / 2.0, s[i] = i;

  shift<<<1, 32>>>(x);
  shift<double><<<1, 32>>>(d);
  shift<<<1, 32>>>(s);
  WORKS(cudaDeviceSynchronize());
  for (int i = 0; i < 32; i++) EXPECT(x[i] == i + 1 && d[i] == i / 2.0 + 1 && s[i] == i + 100);

  sum_of<<<1, 1>>>(x);
  WORKS(cudaDeviceSynchronize());
  EXPECT(x[0] == 0 && x[1] == 0);
  sum_of<<<1, 1>>>(x, 1, 2.5f, 'c', 4L);
  WORKS(cudaDeviceSynchronize());
  EXPECT(x[0] == 1 + 2 + 'c' + 4 && x[1] == 4);

  Counting counting;
  counting.x = x;
  counting.launch(repeated<Twice, 3>);
  WORKS(cudaDeviceSynchronize());
  for (int i = 0; i < 32; i++) EXPECT(x[i] == 8 * i);
  counting.launch(repeated < Square, (3 > 2) ? 2 : 1 >);
  WORKS(cudaDeviceSynchronize());
  for (int i = 0; i < 32; i++) EXPECT(x[i] == i * i * i * i);
  counting.launch(of_function<cube>);
  WORKS(cudaDeviceSynchronize());
  for (int i = 0; i < 32; i++) EXPECT(x[i] * i == i * i * i * i);
  EXPECT(counting.counted == 3);

  Parameter p = {'t', 2.5, {1, 2, 3, 4, 5, 6, 7, 8, 9}, Sign::PLUS}, q = {'q', 0.5, {}, Sign::MINUS};
  outer::by_value<<<1, 32>>>(d, p, q, false);
  for (int i = 0; i <= 32; i++) f[i] = -1;
  f[32] = 7;
  of_c<<<1, 32>>>(f, f + 32);
  p.value = q.value = -1;  // the kernel has its copies
  WORKS(cudaDeviceSynchronize());
  for (int i = 0; i < 32; i++) EXPECT(d[i] == -(2.5 * (i % 9 + 1) + 0.5) + 't' && f[i] == 7 + i);
  WORKS(cudaFree(x));
  WORKS(cudaFree(d));
  WORKS(cudaFree(s));
  WORKS(cudaFree(f));
  return mistakes;
}
