/* cooperative_groups.h - names for sets of threads that work together: a block, a part of a warp, a whole grid.
 *
 * A group of at most a warp is a mask of lanes; its operations are those of simt/warp.h for that mask, with ranks in
 * the group in place of lanes. Every group is a thread_group, which knows its kind, so that a function which takes a
 * thread_group by value or by reference works with each of them.
 *
 * Not here: tiles of more than 32 threads. Clusters need SIMT_CAPABILITY=9.0, unless they have one block.
 */
#ifndef SIMT_COOPERATIVE_GROUPS_H
#define SIMT_COOPERATIVE_GROUPS_H
#define _COOPERATIVE_GROUPS_H_ /* what others test for */

#include <cuda_runtime.h>

#include <chrono> /* programs rely on NVIDIA's header for it */
#include <type_traits>
#include <utility>

#include "simt/hopper.h"
#include "simt/warp.h"

namespace cooperative_groups {

namespace details {

enum GroupKind { coalesced_group_id = 1, grid_group_id, thread_block_id, cluster_group_id };

SIMT_UNSEEN inline unsigned lane_of_caller() { return simt_thread_rank() % SIMT_WARP_SIZE; }
SIMT_UNSEEN inline unsigned block_size() { return blockDim.x * blockDim.y * blockDim.z; }
SIMT_UNSEEN inline unsigned long long block_rank() {
  return ((unsigned long long)blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
}
SIMT_UNSEEN inline unsigned long long grid_size() { return (unsigned long long)gridDim.x * gridDim.y * gridDim.z; }

/* Bits of `bits` at the lanes of `mask`, moved together: bit r is that of the r-th lane. */
SIMT_UNSEEN inline unsigned pack_lanes(unsigned mask, unsigned bits) {
  unsigned packed = 0, rank = 0;
  for (; mask; mask &= mask - 1, rank++) packed |= (bits >> __builtin_ctz(mask) & 1) << rank;
  return packed;
}

/* The lane of the thread with `rank` in `mask`; 32 if there are fewer. */
SIMT_UNSEEN inline unsigned lane_of_rank(unsigned mask, unsigned rank) {
  for (; mask && rank; rank--) mask &= mask - 1;
  return mask ? (unsigned)__builtin_ctz(mask) : SIMT_WARP_SIZE;
}

/* `count` consecutive lanes from `first` on. */
SIMT_UNSEEN inline unsigned lanes_from(unsigned first, unsigned count) {
  return (count >= 32 ? 0xffffffffu : (1u << count) - 1) << first;
}

template <class T>
using plain = std::remove_cv_t<std::remove_reference_t<T>>;

}  // namespace details

/* ---- any group ---- */

class thread_group {
 public:
  SIMT_UNSEEN unsigned long long size() const;
  SIMT_UNSEEN unsigned long long num_threads() const { return size(); }
  SIMT_UNSEEN unsigned long long thread_rank() const;
  SIMT_UNSEEN void sync(SIMT_SITE) const;
  SIMT_UNSEEN unsigned get_type() const { return kind_; }

 protected:
  explicit thread_group(unsigned kind, unsigned mask = 0, unsigned meta_rank = 0, unsigned meta_size = 1)
      : kind_(kind), mask_(mask), meta_rank_(meta_rank), meta_size_(meta_size) {}
  unsigned kind_;
  unsigned mask_;                  /* of at most a warp: its lanes */
  unsigned meta_rank_, meta_size_; /* which part of its parent it is, of how many */
  unsigned tiled_ = 0;             /* the lanes follow each other */

  friend struct GroupAccess;
};

/* For the functions of this header and its companions. */
struct GroupAccess {
  SIMT_UNSEEN static unsigned mask(const thread_group &group) { return group.mask_; }
  SIMT_UNSEEN static thread_group tile(unsigned mask, unsigned meta_rank, unsigned meta_size) {
    thread_group group(details::coalesced_group_id, mask, meta_rank, meta_size);
    group.tiled_ = 1;
    return group;
  }
};

/* ---- the grid ---- */

class grid_group : public thread_group {
 public:
  typedef unsigned arrival_token;

  SIMT_UNSEEN bool is_valid() const { return simt_grid_is_cooperative(); }
  SIMT_UNSEEN void sync(SIMT_SITE) const { simt_grid_barrier(SIMT_PASS_SITE); }
  /* Arriving early gives nothing here; that all wait for all is what counts. */
  SIMT_UNSEEN arrival_token barrier_arrive() const { return 0; }
  SIMT_UNSEEN void barrier_wait(arrival_token &&, SIMT_SITE) const { simt_grid_barrier(SIMT_PASS_SITE); }

  SIMT_UNSEEN static unsigned long long size() { return num_threads(); }
  SIMT_UNSEEN static unsigned long long num_threads() { return details::grid_size() * details::block_size(); }
  SIMT_UNSEEN static unsigned long long thread_rank() {
    return details::block_rank() * details::block_size() + simt_thread_rank();
  }
  SIMT_UNSEEN static unsigned long long num_blocks() { return details::grid_size(); }
  SIMT_UNSEEN static unsigned long long block_rank() { return details::block_rank(); }
  SIMT_UNSEEN static dim3 block_index() { return dim3(blockIdx.x, blockIdx.y, blockIdx.z); }
  SIMT_UNSEEN static dim3 dim_blocks() { return gridDim; }
  SIMT_UNSEEN static dim3 group_dim() { return gridDim; }
  SIMT_UNSEEN static dim3 dim_threads() {
    return dim3(gridDim.x * blockDim.x, gridDim.y * blockDim.y, gridDim.z * blockDim.z);
  }
  SIMT_UNSEEN static dim3 thread_index() {
    return dim3(blockIdx.x * blockDim.x + threadIdx.x, blockIdx.y * blockDim.y + threadIdx.y,
                blockIdx.z * blockDim.z + threadIdx.z);
  }

 private:
  grid_group() : thread_group(details::grid_group_id) {}
  friend grid_group this_grid();
};

SIMT_UNSEEN inline grid_group this_grid() { return grid_group(); }

/* ---- the cluster: blocks of a grid that reach each other's shared memory ---- */

class cluster_group : public thread_group {
 public:
  struct arrival_token {};

  SIMT_UNSEEN static void sync(SIMT_SITE) {
    simt_cluster_arrive(SIMT_PASS_SITE);
    simt_cluster_wait(SIMT_PASS_SITE);
  }
  SIMT_UNSEEN static arrival_token barrier_arrive(SIMT_SITE) {
    simt_cluster_arrive(SIMT_PASS_SITE);
    return arrival_token();
  }
  SIMT_UNSEEN static void barrier_wait(SIMT_SITE) { simt_cluster_wait(SIMT_PASS_SITE); }
  SIMT_UNSEEN static void barrier_wait(arrival_token &&, SIMT_SITE) { simt_cluster_wait(SIMT_PASS_SITE); }

  /* The same variable in the shared memory of another block; whose shared memory it is. */
  template <class T>
  SIMT_UNSEEN static T *map_shared_rank(T *variable, int rank, SIMT_SITE) {
    return (T *)simt_cluster_pointer((const void *)variable, (unsigned)rank, SIMT_PASS_SITE);
  }
  SIMT_UNSEEN static unsigned query_shared_rank(const void *address, SIMT_SITE) {
    return simt_cluster_rank_of(address, SIMT_PASS_SITE);
  }

  SIMT_UNSEEN static dim3 dim_blocks() {
    uint3 blocks = simt_cluster_shape();
    return dim3(blocks.x, blocks.y, blocks.z);
  }
  SIMT_UNSEEN static dim3 block_index() {
    uint3 blocks = simt_cluster_shape();
    return dim3(blockIdx.x % blocks.x, blockIdx.y % blocks.y, blockIdx.z % blocks.z);
  }
  SIMT_UNSEEN static unsigned num_blocks() { return simt_cluster_blocks(); }
  SIMT_UNSEEN static unsigned block_rank() { return simt_cluster_rank(); }
  SIMT_UNSEEN static unsigned size() { return num_threads(); }
  SIMT_UNSEEN static unsigned num_threads() { return simt_cluster_blocks() * details::block_size(); }
  SIMT_UNSEEN static unsigned thread_rank() { return simt_cluster_rank() * details::block_size() + simt_thread_rank(); }
  SIMT_UNSEEN static dim3 dim_threads() {
    dim3 blocks = dim_blocks();
    return dim3(blocks.x * blockDim.x, blocks.y * blockDim.y, blocks.z * blockDim.z);
  }
  SIMT_UNSEEN static dim3 thread_index() {
    dim3 block = block_index();
    return dim3(block.x * blockDim.x + threadIdx.x, block.y * blockDim.y + threadIdx.y,
                block.z * blockDim.z + threadIdx.z);
  }

 private:
  cluster_group() : thread_group(details::cluster_group_id) {}
  friend cluster_group this_cluster();
};

SIMT_UNSEEN inline cluster_group this_cluster() { return cluster_group(); }

/* ---- the block ---- */

class thread_block : public thread_group {
 public:
  struct arrival_token {};

  SIMT_UNSEEN static void sync(SIMT_SITE) { simt_block_barrier(0, "thread_block::sync", SIMT_PASS_SITE); }
  SIMT_UNSEEN arrival_token barrier_arrive() const { return arrival_token(); }
  SIMT_UNSEEN void barrier_wait(arrival_token &&, SIMT_SITE) const {
    simt_block_barrier(0, "thread_block::barrier_wait", SIMT_PASS_SITE);
  }
  SIMT_UNSEEN static unsigned size() { return details::block_size(); }
  SIMT_UNSEEN static unsigned num_threads() { return details::block_size(); }
  SIMT_UNSEEN static unsigned thread_rank() { return simt_thread_rank(); }
  SIMT_UNSEEN static dim3 group_index() { return dim3(blockIdx.x, blockIdx.y, blockIdx.z); }
  SIMT_UNSEEN static dim3 thread_index() { return dim3(threadIdx.x, threadIdx.y, threadIdx.z); }
  SIMT_UNSEEN static dim3 group_dim() { return blockDim; }
  SIMT_UNSEEN static dim3 dim_threads() { return blockDim; }

 private:
  thread_block() : thread_group(details::thread_block_id) {}
  friend thread_block this_thread_block();
};

SIMT_UNSEEN inline thread_block this_thread_block() { return thread_block(); }

/* ---- lanes that happen to be together, or that a partition put together ---- */

class coalesced_group : public thread_group {
 public:
  SIMT_UNSEEN unsigned size() const { return (unsigned)__builtin_popcount(mask_); }
  SIMT_UNSEEN unsigned num_threads() const { return size(); }
  SIMT_UNSEEN unsigned thread_rank() const {
    return (unsigned)__builtin_popcount(mask_ & details::lanes_from(0, details::lane_of_caller()));
  }
  SIMT_UNSEEN unsigned meta_group_rank() const { return meta_rank_; }
  SIMT_UNSEEN unsigned meta_group_size() const { return meta_size_; }
  SIMT_UNSEEN void sync(SIMT_SITE) const {
    simt_warp_rendezvous(mask_, NULL, NULL, "coalesced_group::sync", SIMT_PASS_SITE);
  }

  template <class T>
  SIMT_UNSEEN details::plain<T> shfl(T &&value, int source_rank, SIMT_SITE) const {
    return shuffle((details::plain<T>)value, details::lane_of_rank(mask_, (unsigned)source_rank), SIMT_PASS_SITE);
  }
  template <class T>
  SIMT_UNSEEN details::plain<T> shfl_down(T &&value, unsigned delta, SIMT_SITE) const {
    return shuffle((details::plain<T>)value, details::lane_of_rank(mask_, thread_rank() + delta), SIMT_PASS_SITE);
  }
  template <class T>
  SIMT_UNSEEN details::plain<T> shfl_up(T &&value, int delta, SIMT_SITE) const {
    unsigned rank = thread_rank();
    unsigned source = (unsigned)delta > rank ? SIMT_WARP_SIZE : details::lane_of_rank(mask_, rank - (unsigned)delta);
    return shuffle((details::plain<T>)value, source, SIMT_PASS_SITE);
  }
  SIMT_UNSEEN int any(int predicate, SIMT_SITE) const { return __any_sync(mask_, predicate, SIMT_PASS_SITE); }
  SIMT_UNSEEN int all(int predicate, SIMT_SITE) const { return __all_sync(mask_, predicate, SIMT_PASS_SITE); }
  SIMT_UNSEEN unsigned ballot(int predicate, SIMT_SITE) const {
    return details::pack_lanes(mask_, __ballot_sync(mask_, predicate, SIMT_PASS_SITE));
  }
  template <class T>
  SIMT_UNSEEN unsigned match_any(T value, SIMT_SITE) const {
    return details::pack_lanes(mask_, __match_any_sync(mask_, value, SIMT_PASS_SITE));
  }
  template <class T>
  SIMT_UNSEEN unsigned match_all(T value, int &predicate, SIMT_SITE) const {
    return details::pack_lanes(mask_, __match_all_sync(mask_, value, &predicate, SIMT_PASS_SITE));
  }

 private:
  explicit coalesced_group(unsigned mask, unsigned meta_rank = 0, unsigned meta_size = 1)
      : thread_group(details::coalesced_group_id, mask, meta_rank, meta_size) {}
  /* From `lane`; a lane outside the warp stands for the own one. */
  template <class T>
  SIMT_UNSEEN T shuffle(T value, unsigned lane, const char *file, int line) const {
    if (lane >= SIMT_WARP_SIZE) lane = details::lane_of_caller();
    return simt::shuffle<simt::SHUFFLE_INDEX>(mask_, value, lane, SIMT_WARP_SIZE, "coalesced_group::shfl", file, line);
  }
  friend coalesced_group coalesced_threads();
  friend coalesced_group tiled_partition(const coalesced_group &, unsigned, const char *, int);
  friend coalesced_group details_part(unsigned mask, unsigned meta_rank, unsigned meta_size);
};

SIMT_UNSEEN inline coalesced_group coalesced_threads() { return coalesced_group(simt_active_mask()); }

SIMT_UNSEEN inline coalesced_group details_part(unsigned mask, unsigned meta_rank, unsigned meta_size) {
  return coalesced_group(mask, meta_rank, meta_size);
}

/* ---- tiles: 1, 2, 4 .. 32 consecutive threads of a block ---- */

template <unsigned Size, class Parent = void>
class thread_block_tile;

template <unsigned Size>
class thread_block_tile<Size, void> : public thread_group {
  static_assert(Size != 0 && (Size & (Size - 1)) == 0, "the size of a tile is a power of two");
  static_assert(
      Size <= SIMT_WARP_SIZE,
      "tiles of more than 32 threads span warps and are not emulated: use the thread_block and shared memory");

 public:
  template <class Parent>
  thread_block_tile(const thread_block_tile<Size, Parent> &tile) : thread_group(tile) {}

  static constexpr unsigned size() { return Size; }
  static constexpr unsigned num_threads() { return Size; }
  SIMT_UNSEEN static unsigned thread_rank() { return simt_thread_rank() % Size; }
  SIMT_UNSEEN unsigned meta_group_rank() const { return meta_rank_; }
  SIMT_UNSEEN unsigned meta_group_size() const { return meta_size_; }
  SIMT_UNSEEN void sync(SIMT_SITE) const {
    simt_warp_rendezvous(mask_, NULL, NULL, "thread_block_tile::sync", SIMT_PASS_SITE);
  }

  template <class T>
  SIMT_UNSEEN details::plain<T> shfl(T &&value, int source_rank, SIMT_SITE) const {
    return simt::shuffle<simt::SHUFFLE_INDEX>(mask_, (details::plain<T>)value, (unsigned)source_rank, (int)Size,
                                              "thread_block_tile::shfl", SIMT_PASS_SITE);
  }
  template <class T>
  SIMT_UNSEEN details::plain<T> shfl_up(T &&value, unsigned delta, SIMT_SITE) const {
    return simt::shuffle<simt::SHUFFLE_UP>(mask_, (details::plain<T>)value, delta, (int)Size,
                                           "thread_block_tile::shfl_up", SIMT_PASS_SITE);
  }
  template <class T>
  SIMT_UNSEEN details::plain<T> shfl_down(T &&value, unsigned delta, SIMT_SITE) const {
    return simt::shuffle<simt::SHUFFLE_DOWN>(mask_, (details::plain<T>)value, delta, (int)Size,
                                             "thread_block_tile::shfl_down", SIMT_PASS_SITE);
  }
  template <class T>
  SIMT_UNSEEN details::plain<T> shfl_xor(T &&value, unsigned lane_mask, SIMT_SITE) const {
    return simt::shuffle<simt::SHUFFLE_XOR>(mask_, (details::plain<T>)value, lane_mask, (int)Size,
                                            "thread_block_tile::shfl_xor", SIMT_PASS_SITE);
  }
  SIMT_UNSEEN int any(int predicate, SIMT_SITE) const { return __any_sync(mask_, predicate, SIMT_PASS_SITE); }
  SIMT_UNSEEN int all(int predicate, SIMT_SITE) const { return __all_sync(mask_, predicate, SIMT_PASS_SITE); }
  SIMT_UNSEEN unsigned ballot(int predicate, SIMT_SITE) const {
    return pack(__ballot_sync(mask_, predicate, SIMT_PASS_SITE));
  }
  template <class T>
  SIMT_UNSEEN unsigned match_any(T value, SIMT_SITE) const {
    return pack(__match_any_sync(mask_, value, SIMT_PASS_SITE));
  }
  template <class T>
  SIMT_UNSEEN unsigned match_all(T value, int &predicate, SIMT_SITE) const {
    return pack(__match_all_sync(mask_, value, &predicate, SIMT_PASS_SITE));
  }

 protected:
  thread_block_tile(unsigned meta_rank, unsigned meta_size)
      : thread_group(details::coalesced_group_id, details::lanes_from(details::lane_of_caller() & ~(Size - 1), Size),
                     meta_rank, meta_size) {
    tiled_ = 1;
  }

 private:
  SIMT_UNSEEN unsigned pack(unsigned bits) const { return bits >> __builtin_ctz(mask_); }
  friend thread_block_tile<1, void> this_thread();
};

template <unsigned Size, class Parent>
class thread_block_tile : public thread_block_tile<Size, void> {
  static_assert(!std::is_same_v<Parent, coalesced_group>,
                "a coalesced_group is split at run time: tiled_partition(group, size)");

 public:
  thread_block_tile(const thread_block_tile<Size, void> &tile) : thread_block_tile<Size, void>(tile) {}

 private:
  explicit thread_block_tile(const Parent &parent)
      : thread_block_tile<Size, void>(parent.thread_rank() / Size, (parent.size() + Size - 1) / Size) {}
  template <unsigned S, class P>
  friend thread_block_tile<S, P> tiled_partition(const P &);
};

template <unsigned Size, class Parent>
SIMT_UNSEEN thread_block_tile<Size, Parent> tiled_partition(const Parent &parent) {
  return thread_block_tile<Size, Parent>(parent);
}

SIMT_UNSEEN inline thread_block_tile<1, void> this_thread() { return thread_block_tile<1, void>(0, 1); }

/* ---- partitions whose size is known at run time only ---- */

SIMT_UNSEEN inline coalesced_group tiled_partition(const coalesced_group &parent, unsigned size, SIMT_SITE) {
  if (size == 0 || size > 32 || (size & (size - 1)) != 0)
    simt_kernel_fault(cudaErrorLaunchFailure, SIMT_PASS_SITE,
                      "tiled_partition(group, %u): the size of a tile is 1, 2, 4, 8, 16 or 32", size);
  if (parent.size() <= size) return parent;
  unsigned rank = parent.thread_rank(), mask = 0;
  for (unsigned r = rank / size * size; r < (rank / size + 1) * size; r++) {
    unsigned lane = details::lane_of_rank(parent.mask_, r);
    if (lane < SIMT_WARP_SIZE) mask |= 1u << lane;
  }
  return details_part(mask, rank / size, (parent.size() + size - 1) / size);
}

SIMT_UNSEEN inline thread_group tiled_partition(const thread_block &parent, unsigned size, SIMT_SITE) {
  if (size == 0 || size > 32 || (size & (size - 1)) != 0)
    simt_kernel_fault(cudaErrorLaunchFailure, SIMT_PASS_SITE,
                      "tiled_partition(block, %u): the size of a tile is 1, 2, 4, 8, 16 or 32", size);
  unsigned first = parent.thread_rank() & ~(size - 1), left = parent.size() - first;
  unsigned mask = details::lanes_from(first % SIMT_WARP_SIZE, left < size ? left : size);
  return GroupAccess::tile(mask, first / size, (parent.size() + size - 1) / size);
}

SIMT_UNSEEN inline thread_group tiled_partition(const thread_group &parent, unsigned size, SIMT_SITE) {
  if (parent.get_type() == details::coalesced_group_id)
    return tiled_partition((const coalesced_group &)parent, size, SIMT_PASS_SITE);
  if (parent.get_type() == details::thread_block_id)
    return tiled_partition((const thread_block &)parent, size, SIMT_PASS_SITE);
  simt_kernel_fault(cudaErrorLaunchFailure, SIMT_PASS_SITE,
                    "tiled_partition() of a grid: only a block, a tile or a coalesced group can be split");
}

/* ---- partitions by value: the threads with the same label, or the same truth, become a group ---- */

template <class Group, class Label>
SIMT_UNSEEN coalesced_group labeled_partition(const Group &group, Label label, SIMT_SITE) {
  static_assert(std::is_integral_v<Label> || std::is_pointer_v<Label>, "a label is an integer or a pointer");
  unsigned mask = GroupAccess::mask(group);
  unsigned same = __match_any_sync(mask, (unsigned long long)label, SIMT_PASS_SITE);
  int leader = __builtin_ctz(same);
  unsigned leaders = __ballot_sync(mask, leader == (int)details::lane_of_caller(), SIMT_PASS_SITE);
  return details_part(same, (unsigned)__builtin_popcount(leaders & details::lanes_from(0, (unsigned)leader)),
                      (unsigned)__builtin_popcount(leaders));
}

template <class Group>
SIMT_UNSEEN coalesced_group binary_partition(const Group &group, bool predicate, SIMT_SITE) {
  unsigned mask = GroupAccess::mask(group), yes = __ballot_sync(mask, predicate, SIMT_PASS_SITE);
  return details_part(predicate ? yes : mask & ~yes, predicate, 2);
}

/* ---- a thread_group finds out what it is ---- */

inline unsigned long long thread_group::size() const {
  return kind_ == details::grid_group_id      ? grid_group::num_threads()
         : kind_ == details::thread_block_id  ? thread_block::num_threads()
         : kind_ == details::cluster_group_id ? cluster_group::num_threads()
                                              : (unsigned)__builtin_popcount(mask_);
}

inline unsigned long long thread_group::thread_rank() const {
  return kind_ == details::grid_group_id      ? grid_group::thread_rank()
         : kind_ == details::thread_block_id  ? thread_block::thread_rank()
         : kind_ == details::cluster_group_id ? cluster_group::thread_rank()
                                              : ((const coalesced_group *)this)->thread_rank();
}

inline void thread_group::sync(const char *file, int line) const {
  if (kind_ == details::grid_group_id)
    simt_grid_barrier(file, line);
  else if (kind_ == details::thread_block_id)
    simt_block_barrier(0, "thread_group::sync", file, line);
  else if (kind_ == details::cluster_group_id)
    cluster_group::sync(file, line);
  else
    simt_warp_rendezvous(mask_, NULL, NULL, "thread_group::sync", file, line);
}

/* ---- functions for any group ---- */

template <class Group>
SIMT_UNSEEN void sync(const Group &group, SIMT_SITE) {
  group.sync(SIMT_PASS_SITE);
}

template <class Group>
SIMT_UNSEEN auto thread_rank(const Group &group) -> decltype(group.thread_rank()) {
  return group.thread_rank();
}

template <class Group>
SIMT_UNSEEN auto group_size(const Group &group) -> decltype(group.size()) {
  return group.size();
}

/* One thread of the group calls function(arguments...). */
template <class Group, class Function, class... Arguments>
void invoke_one(const Group &group, Function &&function, Arguments &&...arguments) {
  if (group.thread_rank() == 0) std::forward<Function>(function)(std::forward<Arguments>(arguments)...);
}

/* One thread calls it, all get what it returned. */
template <class Group, class Function, class... Arguments>
auto invoke_one_broadcast(const Group &group, Function &&function, Arguments &&...arguments)
    -> details::plain<decltype(function(std::forward<Arguments>(arguments)...))> {
  details::plain<decltype(function(std::forward<Arguments>(arguments)...))> result = {};
  if (group.thread_rank() == 0) result = std::forward<Function>(function)(std::forward<Arguments>(arguments)...);
  return group.shfl(result, 0);
}

}  // namespace cooperative_groups

#endif /* SIMT_COOPERATIVE_GROUPS_H */
