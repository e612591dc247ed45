/* cuda_pipeline.h - asynchronous copies: the primitives in C, and CUDA 11's first class for them. */
#ifndef SIMT_CUDA_PIPELINE_H
#define SIMT_CUDA_PIPELINE_H

#include "cuda_pipeline_primitives.h"

namespace nvcuda {
namespace experimental {

class pipeline {
 public:
  size_t commit() { return batches_++; }
  void commit_and_wait() { wait(commit()); }
  void wait(size_t) { __pipeline_wait_prior(0); }
  template <unsigned batches>
  void wait_prior() {
    __pipeline_wait_prior(batches);
  }

 private:
  size_t batches_ = 0;
};

template <class T>
SIMT_INLINE void memcpy_async(T &destination, const T &source, pipeline &) {
  simt::copy_share(&destination, &source, sizeof destination, 0, 1);
}

}  // namespace experimental
}  // namespace nvcuda

#endif /* SIMT_CUDA_PIPELINE_H */
