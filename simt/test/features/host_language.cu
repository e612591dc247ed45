// The host's half of a .cu file is C++: its library, exceptions, owners of device memory, names that CUDA has too.
// flags: -O3 --use_fast_math --expt-relaxed-constexpr
#include <cuda_profiler_api.h>
#include <cuda_runtime.h>
#include <device_launch_parameters.h>

#include <algorithm>
#include <cfloat>
#include <climits>
#include <cmath>
#include <cstdint>
#include <iomanip>
#include <iostream>
#include <limits>
#include <memory>
#include <numeric>
#include <random>
#include <sstream>
#include <stdexcept>
#include <unordered_map>
#include <utility>
#include <vector>

#include "expect.h"

using namespace std;  // min, max and abs are both CUDA's and the library's

static void check(cudaError_t error, const char *what) {
  if (error != cudaSuccess) throw runtime_error(string(what) + ": " + cudaGetErrorName(error));
}
#define CHECKED(call) check((call), #call)

// Owns device memory; moves, does not copy.
template <typename T>
class Buffer {
 public:
  explicit Buffer(size_t n) : n_(n) { CHECKED(cudaMalloc(&p_, max<size_t>(n, 1) * sizeof(T))); }
  Buffer(const vector<T> &host) : Buffer(host.size()) {
    CHECKED(cudaMemcpy(p_, host.data(), n_ * sizeof(T), cudaMemcpyHostToDevice));
  }
  Buffer(Buffer &&other) noexcept : p_(exchange(other.p_, nullptr)), n_(other.n_) {}
  Buffer(const Buffer &) = delete;
  ~Buffer() { cudaFree(p_); }
  T *get() const { return p_; }
  vector<T> fetch() const {
    vector<T> host(n_);
    CHECKED(cudaMemcpy(host.data(), p_, n_ * sizeof(T), cudaMemcpyDeviceToHost));
    return host;
  }

 private:
  T *p_ = nullptr;
  size_t n_;
};

// The nearest of the given points, or the largest int where none is near. numeric_limits and std::max are constexpr.
__global__ void nearest(const float *points, int count, const float *x, int *best, int n, float radius) {
  unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float least = std::numeric_limits<float>::infinity();
  int found = INT_MAX;
  for (int k = 0; k < count; k++) {
    float distance = abs(points[k] - x[i]);
    if (distance < min(least, radius)) least = distance, found = k;
  }
  best[i] = std::max(found, 0);
}

// Constants and functions of <math.h>, in float and in double.
__global__ void wave(float *y, double *z) {
  int i = threadIdx.x;
  y[i] = sinf((float)M_PI * i / 8) + powf(2.0f, -i);
  z[i] = erf(i * M_SQRT1_2) + pow(i, 1.5);
}

int main() {
  const int n = 700;
  mt19937 random(5);
  uniform_real_distribution<float> uniform(0, 100);
  vector<float> points(20), x(n);
  generate(points.begin(), points.end(), [&] { return uniform(random); });
  iota(x.begin(), x.end(), 0.0f);
  transform(x.begin(), x.end(), x.begin(), [](float v) { return v / 7; });
  try {
    CHECKED(cudaProfilerStart());
    auto on_device = make_unique<Buffer<float>>(points);
    Buffer<float> given(x), moved(std::move(given)), y(16);
    Buffer<int> best(n);
    Buffer<double> z(16);
    nearest<<<(n + 127) / 128, 128>>>(on_device->get(), points.size(), moved.get(), best.get(), n, 2.0f);
    wave<<<1, 16>>>(y.get(), z.get());
    CHECKED(cudaGetLastError());
    unordered_map<int, int> found;
    for (int k : best.fetch()) found[k]++;
    for (int i = 0; i < n; i++) {
      auto by_distance = [&](float a, float b) { return fabs(a - x[i]) < fabs(b - x[i]); };
      auto nearest = min_element(points.begin(), points.end(), by_distance);
      found[fabs(*nearest - x[i]) < 2 ? int(nearest - points.begin()) : INT_MAX]--;
    }
    for (auto [k, difference] : found) EXPECT(difference == 0);
    auto [waves, curves] = make_pair(y.fetch(), z.fetch());
    for (int i = 0; i < 16; i++) {
      EXPECT(abs(waves[i] - (sin(M_PI * i / 8) + 1.0 / (1 << i))) < 1e-5);
      EXPECT(abs(curves[i] - (erf(i / sqrt(2.0)) + i * sqrt(double(i)))) < 1e-12 * (1 + i * i));
    }
    CHECKED(cudaProfilerStop());
  } catch (const exception &e) {
    cerr << "not expected: " << e.what() << endl;
    return 2;
  }
  ostringstream thrown;
  try {
    Buffer<double> too_large(numeric_limits<size_t>::max() / 64);
  } catch (const runtime_error &e) {
    thrown << setw(6) << setfill('.') << 42 << ' ' << e.what();
  }
  EXPECT(thrown.str().find("....42 cudaMalloc") == 0 && thrown.str().find("cudaErrorMemoryAllocation") != string::npos);
  EXPECT(cudaGetLastError() == cudaErrorMemoryAllocation);
  return mistakes;
}
