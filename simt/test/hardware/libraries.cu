/* libraries.cu - prints what cuRAND and cuBLAS answer: checksums of sequences, and the status of calls at the edges.
 * Run on a GPU and on the emulator, the two outputs are compared: what differs is mended in simt/rand and simt/blas,
 * or explained in curand.h and cublas_api.h. Lines that begin with ~ may differ: a GPU rounds log, sin and cos
 * otherwise, and its Poisson numbers are others.
 *
 *     nvcc -arch=native libraries.cu -lcurand -lcublas -o gpu && ./gpu > gpu.txt
 *     simtcc libraries.cu -lcurand -lcublas -o cpu && ./cpu > cpu.txt 2> cpu.err; diff gpu.txt cpu.txt
 */
#include <cublas_v2.h>
#include <cuda_runtime.h>
#include <curand.h>
#include <curand_kernel.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COUNT 400000

static char *device_array, host_array[COUNT * 8];

static uint64_t checksum(const void *bytes, size_t count) { /* FNV-1a */
  uint64_t sum = 14695981039346656037ull;
  for (size_t i = 0; i < count; i++) sum = (sum ^ ((const unsigned char *)bytes)[i]) * 1099511628211ull;
  return sum;
}

/* ---- cuRAND's host API ---- */

typedef struct Generator {
  curandGenerator_t handle;
  int on_host;
  char *output;
} Generator;

static Generator open(int on_host, int type) {
  Generator g = {NULL, on_host, on_host ? host_array : device_array};
  int status = on_host ? curandCreateGeneratorHost(&g.handle, (curandRngType_t)type)
                       : curandCreateGenerator(&g.handle, (curandRngType_t)type);
  if (status != 0) printf("create: %d\n", status);
  curandSetPseudoRandomGeneratorSeed(g.handle, 1234);
  return g;
}

static void fetch(const Generator &g, size_t bytes) {
  cudaDeviceSynchronize();
  if (!g.on_host) cudaMemcpy(host_array, device_array, bytes, cudaMemcpyDeviceToHost);
}

static void bits(const Generator &g, size_t count) {
  int status = curandGenerate(g.handle, (unsigned *)g.output, count);
  fetch(g, count * 4);
  const unsigned *x = (const unsigned *)host_array;
  printf("  %zu numbers: status %d, %08x %08x .. %08x, sum %016llx\n", count, status, x[0], x[1], x[count - 1],
         (unsigned long long)checksum(x, count * 4));
}

static void sequences(int on_host, int type, int ordering) {
  printf("-- type %d on the %s, ordering %d\n", type, on_host ? "host" : "device", ordering);
  Generator g = open(on_host, type);
  if (ordering) printf("  ordering: status %d\n", curandSetGeneratorOrdering(g.handle, (curandOrdering_t)ordering));
  bits(g, COUNT);
  bits(g, 7);
  bits(g, 5000);
  int status = curandGenerateUniform(g.handle, (float *)g.output, 300001);
  fetch(g, 300001 * 4);
  const float *f = (const float *)host_array;
  printf("  uniform: status %d, %.9g %.9g .. %.9g, sum %016llx\n", status, f[0], f[1], f[300000],
         (unsigned long long)checksum(f, 300001 * 4));
  status = curandGenerateUniformDouble(g.handle, (double *)g.output, 300003);
  fetch(g, 300003 * 8);
  const double *d = (const double *)host_array;
  printf("  uniform double: status %d, %.17g %.17g .. %.17g, sum %016llx\n", status, d[0], d[1], d[300002],
         (unsigned long long)checksum(d, 300003 * 8));
  bits(g, 100000);
  status = curandGenerateNormal(g.handle, (float *)g.output, 100002, 1, 2);
  fetch(g, 100002 * 4);
  printf("~ normal: status %d, %.4f %.4f %.4f %.4f .. %.4f\n", status, f[0], f[1], f[2], f[3], f[100001]);
  bits(g, 100000);
  status = curandGenerateNormalDouble(g.handle, (double *)g.output, 10002, 1, 2);
  fetch(g, 10002 * 8);
  printf("~ normal double: status %d, %.10f %.10f %.10f %.10f .. %.10f\n", status, d[0], d[1], d[2], d[3], d[10001]);
  bits(g, 300000);
  status = curandGenerateLogNormal(g.handle, (float *)g.output, 10002, 0, 1);
  fetch(g, 10002 * 4);
  printf("~ log-normal: status %d, %.4f %.4f %.4f %.4f .. %.4f\n", status, f[0], f[1], f[2], f[3], f[10001]);
  bits(g, 100);
  const double lambdas[] = {0.5, 30, 300, 1e4};
  for (double lambda : lambdas) {
    status = curandGeneratePoisson(g.handle, (unsigned *)g.output, 1001, lambda);
    fetch(g, 1001 * 4);
    const unsigned *k = (const unsigned *)host_array;
    printf("~ poisson %g: status %d, %u %u %u %u\n", lambda, status, k[0], k[1], k[2], k[3]);
  }
  curandDestroyGenerator(g.handle);
}

/* What starts a sequence anew, and where. */
static void restarts(int on_host, int type) {
  printf("-- type %d on the %s: restarts\n", type, on_host ? "host" : "device");
  Generator g = open(on_host, type);
  bits(g, 13);
  puts("  the same seed");
  curandSetPseudoRandomGeneratorSeed(g.handle, 1234);
  bits(g, 5000);
  puts("  another seed");
  curandSetPseudoRandomGeneratorSeed(g.handle, 99);
  bits(g, 5000);
  puts("  offset 3");
  curandSetGeneratorOffset(g.handle, 3);
  bits(g, 5000);
  puts("  the first seed");
  curandSetPseudoRandomGeneratorSeed(g.handle, 1234);
  bits(g, 5000);
  puts("  offset 0, the first seed");
  curandSetGeneratorOffset(g.handle, 0);
  curandSetPseudoRandomGeneratorSeed(g.handle, 1234);
  bits(g, 5000);
  puts("  the legacy order");
  curandSetGeneratorOrdering(g.handle, CURAND_ORDERING_PSEUDO_LEGACY);
  bits(g, 5000);
  puts("  curandGenerateSeeds");
  curandGenerateSeeds(g.handle);
  bits(g, 5000);
  puts("  a large offset");
  curandSetGeneratorOffset(g.handle, 123456789012345ull);
  bits(g, 5000);
  curandDestroyGenerator(g.handle);
}

#define SAY(call) printf("%-80s %d\n", #call, (int)(call))

static void curand_edges(void) {
  puts("-- cuRAND: statuses");
  curandGenerator_t g = NULL, philox = NULL;
  unsigned *d = (unsigned *)device_array;
  int version = 0;
  SAY(curandCreateGenerator(NULL, CURAND_RNG_PSEUDO_DEFAULT));
  SAY(curandCreateGenerator(&g, (curandRngType_t)7));
  SAY(curandCreateGenerator(&g, CURAND_RNG_PSEUDO_DEFAULT));
  SAY(curandCreateGenerator(&philox, CURAND_RNG_PSEUDO_PHILOX4_32_10));
  SAY(curandGenerate(NULL, d, 4));
  SAY(curandGenerate(g, d, 0));
  SAY(curandGenerateLongLong(g, (unsigned long long *)d, 4));
  SAY(curandGenerateNormal(g, (float *)d, 3, 0, 1));
  SAY(curandGenerateNormalDouble(g, (double *)d, 3, 0, 1));
  SAY(curandGenerateLogNormal(g, (float *)d, 3, 0, 1));
  SAY(curandGenerateNormal(philox, (float *)d, 3, 0, 1));
  SAY(curandGenerateNormal(g, (float *)d, 2, 0, -1));
  SAY(curandGeneratePoisson(g, d, 3, 1));
  SAY(curandGeneratePoisson(g, d, 4, 0));
  SAY(curandGeneratePoisson(g, d, 4, -1));
  SAY(curandGeneratePoisson(g, d, 4, 400000));
  SAY(curandGeneratePoisson(g, d, 4, 400001));
  SAY(curandSetGeneratorOrdering(g, (curandOrdering_t)7));
  SAY(curandSetGeneratorOrdering(g, CURAND_ORDERING_QUASI_DEFAULT));
  SAY(curandSetGeneratorOrdering(g, CURAND_ORDERING_PSEUDO_DYNAMIC));
  SAY(curandSetQuasiRandomGeneratorDimensions(g, 3));
  SAY(curandSetStream(NULL, 0));
  SAY(curandDestroyGenerator(NULL));
  SAY(curandGetVersion(&version));
  SAY(curandDestroyGenerator(g));
  SAY(curandDestroyGenerator(philox));
}

/* ---- cuRAND's device API ---- */

template <class State>
static __global__ void draw(unsigned *out, unsigned long long seed, unsigned long long offset) {
  State state;
  unsigned thread = blockIdx.x * blockDim.x + threadIdx.x;
  curand_init(seed, thread, offset, &state);
  out += thread * 8;
  out[0] = curand(&state);
  out[1] = __float_as_uint(curand_uniform(&state));
  double u = curand_uniform_double(&state);
  memcpy(&out[2], &u, 8);
  skipahead(1000003, &state);
  out[4] = curand(&state);
  skipahead_sequence(5, &state);
  out[5] = curand(&state);
  out[6] = curand_poisson(&state, 4.0);
  out[7] = curand(&state);
}

template <class State>
static void device_api(const char *name) {
  printf("-- device API: %s, %zu bytes\n", name, sizeof(State));
  for (int turn = 0; turn < 3; turn++) {
    unsigned long long seed = turn == 0   ? 0
                              : turn == 1 ? 1234
                                          : 0x123456789abcdefull,
                       offset = turn == 2 ? 1ull << 40 : 0;
    draw<State><<<16, 64>>>((unsigned *)device_array, seed, offset);
    printf("  launch: %d\n", (int)cudaDeviceSynchronize());
    cudaMemcpy(host_array, device_array, 16 * 64 * 32, cudaMemcpyDeviceToHost);
    const unsigned *x = (const unsigned *)host_array;
    for (int i = 0; i < 3; i++) {
      printf("  thread %d: %08x %08x %08x%08x %08x %08x %u %08x\n", i, x[8 * i], x[8 * i + 1], x[8 * i + 3],
             x[8 * i + 2], x[8 * i + 4], x[8 * i + 5], x[8 * i + 6], x[8 * i + 7]);
    }
    printf("  sum %016llx\n", (unsigned long long)checksum(x, 16 * 64 * 32));
  }
}

/* ---- cuBLAS ---- */

static void cublas_edges(void) {
  puts("-- cuBLAS: statuses");
  cublasHandle_t h = NULL;
  float one = 1, zero = 0, x[64] = {1, 2, 3}, *d = (float *)device_array, result = -1;
  int index = -1;
  cublasPointerMode_t mode;
  SAY(cublasCreate(NULL));
  SAY(cublasCreate(&h));
  cudaMemset(d, 0, 4096);
  SAY(cublasSetVector(-1, 4, x, 1, d, 1));
  SAY(cublasSetVector(0, 4, x, 1, d, 1));
  SAY(cublasSetVector(4, 4, x, 0, d, 1));
  SAY(cublasSetVector(4, 4, x, -1, d, 1));
  SAY(cublasSetVector(4, 0, x, 1, d, 1));
  SAY(cublasSetMatrix(-1, 2, 4, x, 4, d, 4));
  SAY(cublasSetMatrix(4, 2, 4, x, 3, d, 4));
  SAY(cublasSetMatrix(4, 2, 4, x, 4, d, 3));
  SAY(cublasSetMatrix(0, 2, 4, x, 0, d, 0));
  SAY(cublasGetPointerMode(h, NULL));
  SAY(cublasGetPointerMode(h, &mode));
  SAY(cublasSetPointerMode(h, (cublasPointerMode_t)5));
  SAY(cublasSetMathMode(h, (cublasMath_t)77));
  SAY(cublasSaxpy(h, -1, &one, d, 1, d, 1));
  SAY(cublasSaxpy(h, 4, NULL, d, 1, d, 1));
  SAY(cublasSaxpy(h, 4, &zero, d, 0, d, 0));
  SAY(cublasSscal(h, 4, &one, d, -1));
  SAY(cublasSscal(h, 4, &one, d, 0));
  SAY(cublasSdot(h, 4, d, 1, d, 1, NULL));
  SAY(cublasSdot(h, -1, d, 1, d, 1, &result));
  printf("  result %g\n", result);
  cublasSetVector(3, 4, x, 1, d, 1);
  SAY(cublasSnrm2(h, 3, d, -1, &result));
  printf("  result %g\n", result);
  SAY(cublasSasum(h, 3, d, 0, &result));
  printf("  result %g\n", result);
  SAY(cublasIsamax(h, 3, d, -1, &index));
  printf("  index %d\n", index);
  SAY(cublasIsamax(h, -1, d, 1, &index));
  printf("  index %d\n", index);
  SAY(cublasSgemv(h, CUBLAS_OP_N, 0, 4, &one, d, 1, d, 1, &zero, d, 1));
  SAY(cublasSgemv(h, CUBLAS_OP_N, 0, 4, &one, d, 0, d, 1, &zero, d, 1));
  SAY(cublasSgemv(h, CUBLAS_OP_N, 4, 4, &one, d, 4, d, 1, NULL, d, 1));
  SAY(cublasSgemm(h, CUBLAS_OP_N, CUBLAS_OP_N, 0, 4, 4, &one, d, 1, d, 4, &zero, d, 1));
  SAY(cublasSgemm(h, CUBLAS_OP_N, CUBLAS_OP_N, 0, 4, 4, &one, d, 0, d, 4, &zero, d, 1));
  SAY(cublasSgemm(h, CUBLAS_OP_N, CUBLAS_OP_N, 4, 4, 4, &one, d, 4, d, 4, NULL, d, 4));
  SAY(cublasSgemmStridedBatched(h, CUBLAS_OP_N, CUBLAS_OP_N, 2, 2, 2, &one, d, 2, 4, d, 2, 4, &zero, d, 2, 4, -1));
  SAY(cublasSgemmStridedBatched(h, CUBLAS_OP_N, CUBLAS_OP_N, 2, 2, 2, &one, d, 2, 4, d, 2, 4, &zero, d, 2, 4, 0));
  const cudaDataType types[] = {CUDA_R_16F, CUDA_R_16BF, CUDA_R_32F, CUDA_R_64F, CUDA_R_8I, CUDA_R_32I};
  const cublasComputeType_t computes[] = {CUBLAS_COMPUTE_16F,          CUBLAS_COMPUTE_32F, CUBLAS_COMPUTE_32F_FAST_TF32,
                                          CUBLAS_COMPUTE_32F_FAST_16F, CUBLAS_COMPUTE_64F, CUBLAS_COMPUTE_32I};
  const double scalar[2] = {0, 0}; /* zero in every type */
  for (cudaDataType ab : types) {
    for (cudaDataType c : types) {
      for (cublasComputeType_t compute : computes) {
        printf("cublasGemmEx types %d -> %d, compute %d: %d\n", (int)ab, (int)c, (int)compute,
               (int)cublasGemmEx(h, CUBLAS_OP_N, CUBLAS_OP_N, 8, 8, 8, scalar, d, ab, 8, d + 1024, ab, 8, scalar,
                                 d + 2048, c, 8, compute, CUBLAS_GEMM_DEFAULT));
      }
    }
  }
  SAY(cublasGemmEx(h, CUBLAS_OP_N, CUBLAS_OP_N, 6, 8, 8, scalar, d, CUDA_R_8I, 6, d + 1024, CUDA_R_8I, 8, scalar,
                   d + 2048, CUDA_R_32I, 6, CUBLAS_COMPUTE_32I, CUBLAS_GEMM_DEFAULT));
  SAY(cublasGemmEx(h, CUBLAS_OP_N, CUBLAS_OP_N, 8, 6, 6, scalar, d, CUDA_R_8I, 8, d + 1024, CUDA_R_8I, 6, scalar,
                   d + 2048, CUDA_R_32I, 8, CUBLAS_COMPUTE_32I, CUBLAS_GEMM_DEFAULT));
  cudaDeviceSynchronize();
  float nan[4] = {NAN, NAN, NAN, NAN};
  cublasSetVector(4, 4, nan, 1, d, 1);
  cublasSscal(h, 4, &zero, d, 1);
  cublasGetVector(4, 4, d, 1, x, 1);
  printf("scal: 0 * NaN is %s\n", x[0] == 0 ? "0" : "NaN");
  cublasSetVector(4, 4, nan, 1, d, 1);
  cudaMemset(d + 100, 0, 400);
  cublasSgemm(h, CUBLAS_OP_N, CUBLAS_OP_N, 2, 2, 2, &zero, d, 2, d, 2, &one, d + 100, 2);
  cublasGetVector(4, 4, d + 100, 1, x, 1);
  printf("gemm: alpha 0, A NaN gives %s\n", x[0] == 0 ? "0" : "NaN");
  cublasSaxpy(h, 4, &zero, d, 1, d + 100, 1);
  cublasGetVector(4, 4, d + 100, 1, x, 1);
  printf("axpy: alpha 0, x NaN gives %s\n", x[0] == 0 ? "0" : "NaN");
  puts("~ a NULL matrix: the emulator says so at once");
  SAY(cublasSgemm(h, CUBLAS_OP_N, CUBLAS_OP_N, 4, 4, 4, &one, NULL, 4, d, 4, &zero, d, 4));
  cudaDeviceSynchronize();
  SAY(cudaGetLastError());
  SAY(cublasDestroy(h));
  SAY(cublasDestroy(NULL));
}

int main(void) {
  setvbuf(stdout, NULL, _IOLBF, 0);
  if (cudaMalloc((void **)&device_array, sizeof host_array) != cudaSuccess) return 1;
  const int types[] = {CURAND_RNG_PSEUDO_PHILOX4_32_10, CURAND_RNG_PSEUDO_DEFAULT, CURAND_RNG_PSEUDO_XORWOW,
                       CURAND_RNG_PSEUDO_MRG32K3A};
  for (int type : types) {
    for (int ordering : {0, 100, 103}) {
      for (int on_host = 0; on_host < 2; on_host++) sequences(on_host, type, ordering);
    }
    for (int on_host = 0; on_host < 2; on_host++) restarts(on_host, type);
  }
  curand_edges();
  device_api<curandStatePhilox4_32_10_t>("Philox");
  device_api<curandStateXORWOW_t>("XORWOW");
  device_api<curandStateMRG32k3a_t>("MRG32k3a");
  cublas_edges();
  return 0;
}
