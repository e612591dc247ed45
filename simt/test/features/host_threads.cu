// Threads of C++ and of OpenMP, each with the default stream of its own; an error belongs to the thread that made it.
// flags: -Xcompiler -fopenmp --default-stream=per-thread
// reports: a block of 2048 threads
#include <future>
#include <mutex>
#include <thread>
#include <vector>

#include "expect.h"

static std::mutex in_turn;
static int failures;

__global__ void fill(int *x, int n, int value) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) x[i] = value + i;
}
__global__ void nothing() {}

// Fills and reads back without naming a stream, and counts what is wrong.
static int work(int id) {
  const int n = 3000 + id;
  std::vector<int> host(n);
  int *x, wrong = 0;
  if (cudaMalloc(&x, n * sizeof *x)) return n;
  fill<<<3, 128>>>(x, n, 1000 * id);
  cudaMemcpyAsync(host.data(), x, n * sizeof *x, cudaMemcpyDeviceToHost, 0);
  if (cudaStreamSynchronize(cudaStreamPerThread)) return n;
  for (int i = 0; i < n; i++) wrong += host[i] != 1000 * id + i;
  if (cudaFree(x)) wrong++;
  return wrong;
}

static void errors_stay() {
  std::promise<void> made, looked;
  std::thread other([&] {
    nothing<<<1, dim3(1, 1, 2048)>>>();
    made.set_value();
    looked.get_future().wait();
    EXPECT(cudaGetLastError() != cudaSuccess);
  });
  made.get_future().wait();
  EXPECT(cudaGetLastError() == cudaSuccess);
  looked.set_value();
  other.join();
}

int main() {
  std::vector<std::thread> threads;
  for (int id = 0; id < 6; id++)
    threads.emplace_back([id] {
      int wrong = work(id);
      std::lock_guard<std::mutex> lock(in_turn);
      failures += wrong;
    });
  for (std::thread &thread : threads) thread.join();
  EXPECT(failures == 0);
  int wrong = 0, members = 0;
#pragma omp parallel for num_threads(2) reduction(+ : wrong, members)
  for (int id = 0; id < 6; id++) wrong += work(id), members++;
  EXPECT(wrong == 0 && members == 6);
  EXPECT(std::async(std::launch::async, work, 7).get() == 0);
  errors_stay();
#ifndef _OPENMP
  EXPECT(!"OpenMP is on");
#endif
  return mistakes;
}
