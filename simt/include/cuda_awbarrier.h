/* cuda_awbarrier.h - CUDA 11's first class for barriers with separate arrival; cuda::barrier is the newer one. */
#ifndef SIMT_CUDA_AWBARRIER_H
#define SIMT_CUDA_AWBARRIER_H

#include "cuda_awbarrier_primitives.h"

namespace nvcuda {
namespace experimental {

class awbarrier {
 public:
  typedef __mbarrier_token_t arrival_token;

  awbarrier() = default;
  friend void init(awbarrier *self, uint32_t expected) { init(&self->barrier_, expected); }
  friend void inval(awbarrier *) {}
  arrival_token arrive(SIMT_SITE) { return barrier_.arrive(1, SIMT_PASS_SITE); }
  arrival_token arrive_and_drop(SIMT_SITE) { return __mbarrier_arrive_and_drop(&barrier_, SIMT_PASS_SITE); }
  void wait(arrival_token token, SIMT_SITE) { barrier_.wait(token, SIMT_PASS_SITE); }
  void arrive_and_wait(SIMT_SITE) { barrier_.arrive_and_wait(SIMT_PASS_SITE); }
  bool timed_wait(arrival_token token, uint32_t) { return barrier_.try_wait(token); }
  bool timed_wait_parity(bool parity, uint32_t) { return barrier_.try_wait_parity(parity); }
  bool try_wait(arrival_token token, uint32_t) { return barrier_.try_wait(token); }
  bool try_wait_parity(bool parity, uint32_t) { return barrier_.try_wait_parity(parity); }
  static constexpr uint32_t max() { return (uint32_t)__mbarrier_t::max(); }

 private:
  __mbarrier_t barrier_;
};

}  // namespace experimental
}  // namespace nvcuda

#endif /* SIMT_CUDA_AWBARRIER_H */
