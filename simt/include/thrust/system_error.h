/* thrust/system_error.h - what Thrust throws when CUDA reports an error. -*- c++ -*- */
#ifndef SIMT_THRUST_SYSTEM_ERROR
#define SIMT_THRUST_SYSTEM_ERROR

#include <cuda_runtime.h>

#include <new>
#include <stdexcept>
#include <system_error>

namespace thrust {
namespace system {

using ::std::error_category;
using ::std::error_code;
using ::std::error_condition;
using ::std::system_error;

}  // namespace system
using system::error_category;
using system::error_code;
using system::error_condition;
using system::system_error;

namespace details {

class CudaCategory : public std::error_category {
 public:
  const char *name() const noexcept override { return "cuda"; }
  std::string message(int error) const override {
    return std::string(cudaGetErrorName((cudaError_t)error)) + ": " + cudaGetErrorString((cudaError_t)error);
  }
};

class BadAllocation : public std::bad_alloc {
 public:
  explicit BadAllocation(cudaError_t error) : what_("std::bad_alloc: " + CudaCategory().message(error)) {}
  const char *what() const noexcept override { return what_.c_str(); }

 private:
  std::string what_;
};

}  // namespace details

namespace system {
inline const error_category &cuda_category() {
  static const details::CudaCategory category;
  return category;
}
}  // namespace system
using system::cuda_category;

namespace details {
inline void check(cudaError_t error, const char *what) {
  if (error != cudaSuccess) throw system_error(error, cuda_category(), what);
}
}  // namespace details

}  // namespace thrust

#endif /* SIMT_THRUST_SYSTEM_ERROR */
