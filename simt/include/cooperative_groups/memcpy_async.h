/* cooperative_groups/memcpy_async.h - a group copies together, and waits for it later. */
#ifndef SIMT_COOPERATIVE_GROUPS_MEMCPY_ASYNC_H
#define SIMT_COOPERATIVE_GROUPS_MEMCPY_ASYNC_H

#include "cooperative_groups.h"
#include "cuda_pipeline.h" /* NVIDIA's includes it, and programs count on that */
#include "simt/copy_async.h"

namespace cooperative_groups {

/* `bytes` may be a cuda::aligned_size_t. */
template <class Group, class T, class Size>
SIMT_INLINE void memcpy_async(const Group &group, T *__restrict__ destination, const T *__restrict__ source,
                              const Size &bytes) {
  simt::copy_share(destination, source, (size_t)bytes, group.thread_rank(), group.size());
}

/* The smaller of two numbers of elements. */
template <class Group, class T, class DestinationLayout, class SourceLayout>
SIMT_INLINE void memcpy_async(const Group &group, T *__restrict__ destination,
                              const DestinationLayout &destination_count, const T *__restrict__ source,
                              const SourceLayout &source_count) {
  size_t to = (size_t)destination_count, from = (size_t)source_count;
  simt::copy_share(destination, source, (to < from ? to : from) * sizeof(T), group.thread_rank(), group.size());
}

/* All copies of the group are done. */
template <class Group>
SIMT_INLINE void wait(const Group &group, SIMT_SITE) {
  group.sync(SIMT_PASS_SITE);
}

/* All but the last `stages` are done; here, all. */
template <unsigned stages, class Group>
SIMT_INLINE void wait_prior(const Group &group, SIMT_SITE) {
  group.sync(SIMT_PASS_SITE);
}

}  // namespace cooperative_groups

#endif /* SIMT_COOPERATIVE_GROUPS_MEMCPY_ASYNC_H */
