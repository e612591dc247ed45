// Modern C++ take on the hello-world of GPUs: RAII buffers, exceptions, templates, lambdas.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdlib>
#include <iomanip>
#include <iostream>
#include <memory>
#include <numeric>
#include <random>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace gpu {

class error : public std::runtime_error {
 public:
  error(cudaError_t code, const char* expr, const char* file, int line)
      : std::runtime_error(std::string(file) + ":" + std::to_string(line) + ": " + expr + ": " +
                           cudaGetErrorName(code) + " (" + cudaGetErrorString(code) + ")"),
        code_(code) {}
  cudaError_t code() const noexcept { return code_; }

 private:
  cudaError_t code_;
};

#define GPU_TRY(expr)                                             \
  do {                                                            \
    if (auto rc_ = (expr); rc_ != cudaSuccess)                    \
      throw ::gpu::error(rc_, #expr, __FILE__, __LINE__);         \
  } while (false)

template <typename T>
class buffer {
 public:
  explicit buffer(std::size_t n) : size_(n) {
    T* raw = nullptr;
    GPU_TRY(cudaMalloc(&raw, n * sizeof(T)));
    data_.reset(raw);
  }
  explicit buffer(const std::vector<T>& v) : buffer(v.size()) {
    GPU_TRY(cudaMemcpy(data(), v.data(), v.size() * sizeof(T), cudaMemcpyHostToDevice));
  }
  [[nodiscard]] T* data() noexcept { return data_.get(); }
  [[nodiscard]] const T* data() const noexcept { return data_.get(); }
  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  std::vector<T> to_host() const {
    std::vector<T> v(size_);
    GPU_TRY(cudaMemcpy(v.data(), data(), size_ * sizeof(T), cudaMemcpyDeviceToHost));
    return v;
  }

 private:
  struct deleter {
    void operator()(T* p) const noexcept { cudaFree(p); }
  };
  std::unique_ptr<T, deleter> data_;
  std::size_t size_;
};

template <typename T, typename Op>
__global__ void zip_with(T* __restrict__ out, const T* __restrict__ a, const T* __restrict__ b, std::size_t n, Op op) {
  const auto i = static_cast<std::size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < n) out[i] = op(a[i], b[i]);
}

struct plus {
  template <typename T>
  __host__ __device__ constexpr T operator()(const T& a, const T& b) const {
    return a + b;
  }
};

struct axpy {
  double alpha;
  template <typename T>
  __host__ __device__ T operator()(T x, T y) const {
    return static_cast<T>(alpha) * x + y;
  }
};

template <typename T, typename Op>
buffer<T> zip(const buffer<T>& a, const buffer<T>& b, Op op) {
  constexpr unsigned block = 192;
  buffer<T> out(a.size());
  const auto grid = static_cast<unsigned>((a.size() + block - 1) / block);
  zip_with<<<grid, block>>>(out.data(), a.data(), b.data(), a.size(), op);
  GPU_TRY(cudaGetLastError());
  return out;
}

}  // namespace gpu

template <typename T, typename Op>
bool check(const char* what, std::size_t n, Op op) {
  static_assert(std::is_arithmetic_v<T>, "numbers only");
  std::mt19937 rng{42};
  std::vector<T> a(n), b(n);
  auto fill = [&rng](std::vector<T>& v) {
    std::generate(v.begin(), v.end(), [&] { return static_cast<T>(rng() % 1000) / static_cast<T>(3); });
  };
  fill(a);
  fill(b);
  const gpu::buffer<T> da(a), db(b);
  const auto c = gpu::zip(da, db, op).to_host();
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < n; ++i) {
    if (std::abs(static_cast<double>(c[i]) - static_cast<double>(op(a[i], b[i]))) > 1e-3) ++wrong;
  }
  std::cout << std::setw(20) << std::left << what << " n=" << std::setw(8) << n << (wrong ? "FAIL" : "ok") << '\n';
  return wrong == 0;
}

int main() try {
  bool ok = true;
  for (std::size_t n : {1u, 31u, 1000u, 65537u}) {
    ok &= check<float>("float plus", n, gpu::plus{});
    ok &= check<double>("double axpy", n, gpu::axpy{2.5});
    ok &= check<long long>("int64 plus", n, gpu::plus{});
  }
  // An allocation that cannot be satisfied must throw, and must not poison what follows.
  bool thrown = false;
  try {
    gpu::buffer<double> huge(std::size_t{1} << 50);
  } catch (const gpu::error& e) {
    thrown = e.code() == cudaErrorMemoryAllocation;
    std::cout << "expected: " << e.what() << '\n';
  }
  cudaGetLastError();
  ok &= thrown;
  ok &= check<float>("float after error", 777, gpu::plus{});
  std::cout << (ok ? "All tests passed" : "FAILED") << std::endl;
  return ok ? EXIT_SUCCESS : EXIT_FAILURE;
} catch (const std::exception& e) {
  std::cerr << "fatal: " << e.what() << std::endl;
  return EXIT_FAILURE;
}
