// Several host threads, each with its own stream (or the per-thread default stream); a pool feeding kernels; OpenMP for the
// reference; the last error belongs to the thread that made it.
#include <atomic>
#include <cmath>
#include <cstdio>
#include <cuda_runtime.h>
#include <future>
#include <mutex>
#include <omp.h>
#include <queue>
#include <thread>
#include <vector>

static std::mutex io;
#define CK(x) do { cudaError_t e = (x); if (e != cudaSuccess) { std::lock_guard<std::mutex> g(io); printf("%s -> %s\n", #x, cudaGetErrorString(e)); return false; } } while (0)

__global__ void poly(float *y, const float *x, float a, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = ((a * x[i] + 1) * x[i] - a) * x[i];
}

__global__ void block_sums(const float *y, double *out, int n) {
  __shared__ double s[128];
  double v = 0;
  for (int i = blockIdx.x * 128 + threadIdx.x; i < n; i += gridDim.x * 128) v += y[i];
  s[threadIdx.x] = v;
  for (int k = 64; k; k >>= 1) {
    __syncthreads();
    if (threadIdx.x < k) s[threadIdx.x] += s[threadIdx.x + k];
  }
  if (threadIdx.x == 0) out[blockIdx.x] = s[0];
}

static bool work(int id, const std::vector<float> &h, double &result) {
  const int n = (int)h.size(), blocks = 7;
  float *x, *y;
  double *p, part[blocks];
  cudaStream_t stream = cudaStreamPerThread;
  CK(cudaSetDevice(0));
  if (id % 2) CK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  CK(cudaMalloc(&x, n * sizeof(float)));
  CK(cudaMalloc(&y, n * sizeof(float)));
  CK(cudaMalloc(&p, sizeof part));
  CK(cudaMemcpyAsync(x, h.data(), n * sizeof(float), cudaMemcpyHostToDevice, stream));
  poly<<<(n + 255) / 256, 256, 0, stream>>>(y, x, id * 0.5f, n);
  block_sums<<<blocks, 128, 0, stream>>>(y, p, n);
  CK(cudaGetLastError());
  CK(cudaMemcpyAsync(part, p, sizeof part, cudaMemcpyDeviceToHost, stream));
  CK(cudaStreamSynchronize(stream));
  result = 0;
  for (double d : part) result += d;
  CK(cudaFree(x));
  CK(cudaFree(y));
  CK(cudaFree(p));
  if (id % 2) CK(cudaStreamDestroy(stream));
  return true;
}

__global__ void nothing() {}

static bool errors_are_private() {
  std::promise<void> failed, looked;
  std::atomic<int> other{-1};
  std::thread t([&] {
    nothing<<<1, 4096>>>();
    failed.set_value();
    looked.get_future().wait();
    other = cudaGetLastError();
  });
  failed.get_future().wait();
  const cudaError_t mine = cudaGetLastError();
  looked.set_value();
  t.join();
  printf("own last error %s, the other thread's %s\n", cudaGetErrorName(mine), cudaGetErrorName((cudaError_t)other.load()));
  return mine == cudaSuccess && other != cudaSuccess;
}

int main() {
  const int n = 50000, tasks = 16, workers = 4;
  std::vector<float> h(n);
  for (int i = 0; i < n; i++) h[i] = (i % 1000) / 1000.f;
  std::vector<double> result(tasks), want(tasks);
  std::atomic<int> failures{0};
  std::queue<int> q;
  for (int i = 0; i < tasks; i++) q.push(i);
  std::mutex m;
  std::vector<std::thread> pool;
  for (int w = 0; w < workers; w++)
    pool.emplace_back([&] {
      for (;;) {
        int id;
        {
          std::unique_lock<std::mutex> l(m);
          if (q.empty()) return;
          id = q.front();
          q.pop();
        }
        if (!work(id, h, result[id])) failures++;
      }
    });
  for (auto &t : pool) t.join();
#pragma omp parallel for num_threads(2)
  for (int id = 0; id < tasks; id++) {
    double s = 0;
    for (int i = 0; i < n; i++) { float x = h[i], a = id * 0.5f; s += ((a * x + 1) * x - a) * x; }
    want[id] = s;
  }
  int bad = failures;
  for (int i = 0; i < tasks; i++)
    if (!(std::abs(result[i] - want[i]) < 1e-3 * (1 + std::abs(want[i])))) {
      printf("task %d: %f, expected %f\n", i, result[i], want[i]);
      bad++;
    }
  auto f = std::async(std::launch::async, [&] { double r; return work(3, h, r) && std::abs(r - want[3]) < 1e-3 * std::abs(want[3]); });
  bad += !f.get();
  bad += !errors_are_private();
  printf("%d OpenMP threads at most; %s\n", omp_get_max_threads(), bad ? "threads FAILED" : "threads PASSED");
  return bad != 0;
}
