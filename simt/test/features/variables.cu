// Variables in every memory space: what a kernel finds in them, and what the host's copies by symbol move.
#include <stddef.h>
#include <string.h>

#include "expect.h"

typedef int (*Function)(int);
struct Row {
  int id;
  char name[8];
  float weight[2];
};

__device__ int plain = 3, list[4] = {10, 20, 30};
static __device__ long long wide = 5ll << 40;
__constant__ float table[2][3] = {{1, 2, 3}, {4, 5, 6}};
__constant__ static Row rows[3];
__device__ __constant__ int both_words = 9;
__managed__ int counted[2] = {100, 0};
const __device__ char text[] = "of the device";
__device__ const int primes[] = {2, 3, 5, 7};
__device__ int *kept;  // an address of the device, kept there
__device__ volatile int flag = 1;
namespace deep {
namespace deeper {
__constant__ int level = 2;
}
__device__ dim3 shape(4, 3);
}  // namespace deep
template <class T>
__device__ T &one_per_type() {
  static __device__ T value = T(sizeof(T));
  return value;
}
__device__ int half_of(int x) { return x / 2; }
__device__ int negated(int x) { return -x; }
__device__ Function functions[2] = {half_of, negated};
__constant__ Function chosen = negated;

__global__ void look(double *seen) {
  double all[] = {(double)plain,
                  (double)list[1],
                  (double)list[3],
                  (double)(wide >> 40),
                  table[1][2],
                  (double)rows[2].id,
                  rows[2].weight[1],
                  (double)rows[2].name[1],
                  (double)both_words,
                  (double)text[3],
                  (double)primes[3],
                  (double)deep::deeper::level,
                  (double)deep::shape.x * deep::shape.y,
                  (double)one_per_type<char>(),
                  (double)one_per_type<double>(),
                  (double)functions[0](8),
                  (double)chosen(8),
                  (double)*kept,
                  (double)flag};
  for (unsigned i = 0; i < sizeof all / sizeof *all; i++) seen[i] = all[i];
  functions[1] = half_of;
  one_per_type<char>()++;
  counted[1] = counted[0] + 1;
  list[3]++;
}

int main() {
  const double expected[] = {7, 20, 0, 5, 6.5, 12, 0.25, 'w', 9, 't', 7, 2, 12, 1, 8, 4, -8, 30, 1};
  const int n = sizeof expected / sizeof *expected, seven = 7;
  const Row host[2] = {{11, "one", {1, 2}}, {12, "two", {0.5f, 0.25f}}};
  double *seen;
  int *address, back[4];
  float last = 6.5f;
  size_t size = 0;
  cudaStream_t stream;
  WORKS(cudaStreamCreate(&stream));
  WORKS(cudaMallocManaged(&seen, n * sizeof *seen));
  WORKS(cudaMemcpyToSymbol(plain, &seven, sizeof seven));
  WORKS(cudaMemcpyToSymbol(table, &last, sizeof last, 5 * sizeof last));  // an offset in bytes
  WORKS(cudaMemcpyToSymbolAsync(rows, host, sizeof host, sizeof *host, cudaMemcpyHostToDevice, stream));
  WORKS(cudaGetSymbolAddress((void **)&address, list));
  WORKS(cudaGetSymbolSize(&size, list));
  EXPECT(size == sizeof back);
  address += 2;
  WORKS(cudaMemcpyToSymbol(kept, &address, sizeof address));
  WORKS(cudaStreamSynchronize(stream));

  look<<<1, 1>>>(seen);
  WORKS(cudaMemcpyFromSymbolAsync(back, list, sizeof back, 0, cudaMemcpyDeviceToHost, 0));
  WORKS(cudaDeviceSynchronize());
  for (int i = 0; i < n; i++)
    if (seen[i] != expected[i]) printf("variable %d: %g, expected %g\n", i, seen[i], expected[i]), mistakes++;
  EXPECT(counted[1] == 101 && back[3] == 1 && back[0] == 10);

  look<<<1, 1>>>(seen);  // what the first launch wrote is still there
  WORKS(cudaDeviceSynchronize());
  EXPECT(seen[13] == 2 && seen[14] == 8 && seen[2] == 1);
  Function table_of_functions[2];
  WORKS(cudaMemcpyFromSymbol(table_of_functions, functions, sizeof table_of_functions));
  EXPECT(table_of_functions[0] == table_of_functions[1]);
  WORKS(cudaStreamDestroy(stream));
  WORKS(cudaFree(seen));
  return mistakes;
}
