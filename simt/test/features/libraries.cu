// cuBLAS, cuRAND, CUB, cuComplex.h and <cuda/std/...> in one program, on the same numbers.
// flags: -lcublas -lcurand --extended-lambda
// reports: alpha is NULL
#include <cuComplex.h>
#include <cublas_v2.h>
#include <curand.h>
#include <curand_kernel.h>

#include <cub/cub.cuh>
#include <cuda/atomic>
#include <cuda/functional>
#include <cuda/std/array>
#include <cuda/std/complex>
#include <cuda/std/tuple>

#include "expect.h"

enum { N = 1024, THREADS = 128, ITEMS = 8 };

// Each thread's eight numbers: their largest, where it is, and the order of all of them reversed.
__global__ void summarise(const double *x, double *reversed, double *largest) {
  using Reduce = cub::BlockReduce<double, THREADS, cub::BLOCK_REDUCE_WARP_REDUCTIONS>;
  __shared__ typename Reduce::TempStorage storage;
  double items[ITEMS], backwards[ITEMS];
  cub::LoadDirectBlocked(threadIdx.x, x, items);
  double most = items[0];
  for (int i = 0; i < ITEMS; i++) {
    most = items[i] > most ? items[i] : most;
    backwards[i] = items[ITEMS - 1 - i];
  }
  cub::StoreDirectBlocked(THREADS - 1 - threadIdx.x, reversed, backwards);
  most = Reduce(storage).Reduce(most, [](double a, double b) { return a > b ? a : b; });
  if (threadIdx.x == 0) *largest = most;
}

__global__ void stripes(const double *x, double *y) {
  double items[ITEMS];
  cub::LoadDirectStriped<THREADS>(threadIdx.x, x, items);
  for (double &item : items) item = -item;
  cub::StoreDirectStriped<THREADS>(threadIdx.x, y, items);
}

// The roots of unity multiplied by each other: all products have length 1, and their N-th power is 1.
__global__ void roots(cuComplex *z, cuda::std::complex<float> *w) {
  int i = threadIdx.x;
  cuComplex root = make_cuComplex(cosf(6.2831853f * i / 32), sinf(6.2831853f * i / 32)), product = make_cuComplex(1, 0);
  cuda::std::complex<float> other(cuCrealf(root), cuCimagf(root)), power(1, 0);
  for (int k = 0; k < 32; k++) product = cuCmulf(product, root), power *= other;
  z[i] = cuCsubf(cuCaddf(product, product), cuConjf(product));
  w[i] = power;
}
__global__ void doubled(cuDoubleComplex *z) {
  cuDoubleComplex v = cuCmul(*z, make_cuDoubleComplex(0, 1));
  *z = cuCadd(v, make_cuDoubleComplex(cuCimag(v), cuCreal(v)));
}

__global__ void standard(cuda::std::array<int, 4> numbers, int *sums, cuda::atomic<int, cuda::thread_scope_device> *a) {
  cuda::atomic_ref<int, cuda::thread_scope_device> sum(sums[0]);
  auto pair = cuda::std::make_tuple((int)threadIdx.x, 2);
  sum.fetch_add(numbers[threadIdx.x % 4] * cuda::std::get<1>(pair), cuda::std::memory_order_relaxed);
  a->fetch_add(cuda::std::get<0>(pair), cuda::memory_order_relaxed);
}

__global__ void draw(float4 *x) {
  curandStatePhilox4_32_10_t state;
  curand_init(7, threadIdx.x, 0, &state);
  float4 normal = curand_normal4(&state), uniform = curand_uniform4(&state);
  x[threadIdx.x] = make_float4(normal.x + normal.y, normal.z * normal.w, uniform.x, uniform.y + uniform.z + uniform.w);
}

// Programs print these names; all are different.
static const char *name_of(cublasStatus_t status) {
  switch (status) {
    case CUBLAS_STATUS_SUCCESS:
      return "success";
    case CUBLAS_STATUS_NOT_INITIALIZED:
      return "not initialized";
    case CUBLAS_STATUS_ALLOC_FAILED:
      return "no memory";
    case CUBLAS_STATUS_INVALID_VALUE:
      return "invalid value";
    case CUBLAS_STATUS_ARCH_MISMATCH:
      return "architecture";
    case CUBLAS_STATUS_MAPPING_ERROR:
      return "mapping";
    case CUBLAS_STATUS_EXECUTION_FAILED:
      return "execution";
    case CUBLAS_STATUS_INTERNAL_ERROR:
      return "internal";
    case CUBLAS_STATUS_NOT_SUPPORTED:
      return "not supported";
    case CUBLAS_STATUS_LICENSE_ERROR:
      return "licence";
  }
  return "unknown";
}
static const char *name_of(curandStatus_t status) {
  switch (status) {
    case CURAND_STATUS_SUCCESS:
      return "success";
    case CURAND_STATUS_VERSION_MISMATCH:
      return "version";
    case CURAND_STATUS_NOT_INITIALIZED:
      return "not initialized";
    case CURAND_STATUS_ALLOCATION_FAILED:
      return "no memory";
    case CURAND_STATUS_TYPE_ERROR:
      return "type";
    case CURAND_STATUS_OUT_OF_RANGE:
      return "range";
    case CURAND_STATUS_LENGTH_NOT_MULTIPLE:
      return "length";
    case CURAND_STATUS_DOUBLE_PRECISION_REQUIRED:
      return "double";
    case CURAND_STATUS_LAUNCH_FAILURE:
      return "launch";
    case CURAND_STATUS_PREEXISTING_FAILURE:
      return "earlier";
    case CURAND_STATUS_INITIALIZATION_FAILED:
      return "initialization";
    case CURAND_STATUS_ARCH_MISMATCH:
      return "architecture";
    case CURAND_STATUS_INTERNAL_ERROR:
      return "internal";
  }
  return "unknown";
}

static void numbers_of_libraries(double *x, double *y) {
  curandGenerator_t generator;
  cublasHandle_t handle;
  EXPECT(curandCreateGenerator(&generator, CURAND_RNG_PSEUDO_PHILOX4_32_10) == CURAND_STATUS_SUCCESS);
  EXPECT(curandSetPseudoRandomGeneratorSeed(generator, 11) == CURAND_STATUS_SUCCESS);
  EXPECT(curandGenerateUniformDouble(generator, x, N) == CURAND_STATUS_SUCCESS);
  EXPECT(cublasCreate(&handle) == CUBLAS_STATUS_SUCCESS);
  int largest = -1, smallest = -1;
  double sum = 0, *most;
  EXPECT(cublasIdamax(handle, N, x, 1, &largest) == CUBLAS_STATUS_SUCCESS);
  EXPECT(cublasIdamin(handle, N, x, 1, &smallest) == CUBLAS_STATUS_SUCCESS);
  EXPECT(cublasDasum(handle, N, x, 1, &sum) == CUBLAS_STATUS_SUCCESS);
  WORKS(cudaMallocManaged(&most, sizeof *most));
  summarise<<<1, THREADS>>>(x, y, most);
  WORKS(cudaDeviceSynchronize());
  EXPECT(*most == x[largest - 1] && sum > 0.4 * N && sum < 0.6 * N);  // BLAS counts from 1
  for (int i = 0; i < N; i++) EXPECT(y[i] == x[N - 1 - i]);

  cub::KeyValuePair<int, double> *least;
  void *storage = NULL;
  size_t bytes = 0;
  WORKS(cudaMallocManaged(&least, sizeof *least));
  WORKS(cub::DeviceReduce::ArgMin(storage, bytes, x, least, N));
  WORKS(cudaMalloc(&storage, bytes));
  WORKS(cub::DeviceReduce::ArgMin(storage, bytes, x, least, N));
  stripes<<<1, THREADS>>>(x, y);
  WORKS(cudaDeviceSynchronize());
  EXPECT(least->key == smallest - 1 && least->value == x[smallest - 1]);
  for (int i = 0; i < N; i++) EXPECT(y[i] == -x[i]);
  EXPECT(name_of(cublasDscal(handle, N, NULL, x, 1))[0] == 'i' && name_of(CURAND_STATUS_TYPE_ERROR)[0] == 't');
  EXPECT(CUB_VERSION >= 200000);
  WORKS(cudaFree(storage));
  WORKS(cudaFree(least));
  WORKS(cudaFree(most));
  EXPECT(cublasDestroy(handle) == CUBLAS_STATUS_SUCCESS && curandDestroyGenerator(generator) == CURAND_STATUS_SUCCESS);
}

int main() {
  double *x, *y;
  WORKS(cudaMallocManaged(&x, N * sizeof *x));
  WORKS(cudaMallocManaged(&y, N * sizeof *y));
  numbers_of_libraries(x, y);

  cuComplex *z = (cuComplex *)x;
  cuda::std::complex<float> *w = (cuda::std::complex<float> *)y;
  roots<<<1, 32>>>(z, w);
  WORKS(cudaDeviceSynchronize());
  for (int i = 0; i < 32; i++) {  // 2 p - conjugate(p) is 1 where p is 1
    EXPECT(fabsf(cuCrealf(z[i]) - 1) < 1e-4f && fabsf(cuCimagf(z[i])) < 1e-4f && fabsf(cuCabsf(z[i]) - 1) < 1e-4f);
    EXPECT(fabsf(w[i].real() - 1) < 1e-4f && fabsf(w[i].imag()) < 1e-4f);
  }
  cuDoubleComplex *c = (cuDoubleComplex *)x;
  *c = make_cuDoubleComplex(3, 4);
  doubled<<<1, 1>>>(c);  // i (3 + 4i) = -4 + 3i, and with its parts exchanged -1 - i
  WORKS(cudaDeviceSynchronize());
  EXPECT(c->x == -1 && c->y == -1);

  auto *counter = new (y) cuda::atomic<int, cuda::thread_scope_device>(5);
  int *sums = (int *)x;
  sums[0] = 0;
  standard<<<2, 64>>>({1, 10, 100, 1000}, sums, counter);
  WORKS(cudaDeviceSynchronize());
  EXPECT(sums[0] == 2 * 1111 * 32 && counter->load() == 5 + 64 * 63);

  float4 *drawn = (float4 *)x;
  double mean = 0;
  draw<<<1, 256>>>(drawn);
  WORKS(cudaDeviceSynchronize());
  for (int i = 0; i < 256; i++) {
    EXPECT(drawn[i].z > 0 && drawn[i].z <= 1 && drawn[i].w > 0 && drawn[i].w <= 3);
    mean += drawn[i].x / 256;
  }
  EXPECT(fabs(mean) < 0.35);  // four of its standard deviations
  WORKS(cudaFree(x));
  WORKS(cudaFree(y));
  return mistakes;
}
