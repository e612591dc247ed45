/* cuda_awbarrier_primitives.h - cuda::barrier, in C: __mbarrier_init() and its kin. */
#ifndef SIMT_CUDA_AWBARRIER_PRIMITIVES_H
#define SIMT_CUDA_AWBARRIER_PRIMITIVES_H

#include "cuda/barrier"

typedef cuda::barrier<cuda::thread_scope_block> __mbarrier_t;
typedef __mbarrier_t::arrival_token __mbarrier_token_t;

inline uint32_t __mbarrier_maximum_count(void) { return (uint32_t)__mbarrier_t::max(); }
inline void __mbarrier_init(__mbarrier_t *barrier, uint32_t expected) { init(barrier, expected); }
inline void __mbarrier_inval(__mbarrier_t *) {}
inline __mbarrier_token_t __mbarrier_arrive(__mbarrier_t *barrier, SIMT_SITE) {
  return barrier->arrive(1, SIMT_PASS_SITE);
}
inline __mbarrier_token_t __mbarrier_arrive_and_drop(__mbarrier_t *barrier, SIMT_SITE) {
  __mbarrier_token_t token = barrier->token();
  barrier->arrive_and_drop(SIMT_PASS_SITE);
  return token;
}
inline bool __mbarrier_test_wait(__mbarrier_t *barrier, __mbarrier_token_t token) { return barrier->try_wait(token); }
inline bool __mbarrier_test_wait_parity(__mbarrier_t *barrier, bool parity) { return barrier->try_wait_parity(parity); }
inline bool __mbarrier_try_wait(__mbarrier_t *barrier, __mbarrier_token_t token, uint32_t) {
  return barrier->try_wait(token);
}
inline bool __mbarrier_try_wait_parity(__mbarrier_t *barrier, bool parity, uint32_t) {
  return barrier->try_wait_parity(parity);
}
/* This thread's copies are done at once: nothing to arrive for. */
inline void __pipeline_arrive_on(__mbarrier_t *) {
  simt_pipeline_commit();
  simt_pipeline_wait(0);
}

#endif /* SIMT_CUDA_AWBARRIER_PRIMITIVES_H */
