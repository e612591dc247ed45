/* warp.h - what the threads of a block and the lanes of a warp do together: barriers, shuffles, votes, matches,
 * reductions.
 *
 * A warp operation is a rendezvous (core.h): each lane posts a small struct on its own stack; whoever comes last
 * computes the results of all lanes, so that one switch of stacks per lane is all it costs.
 *
 * Overloads are nvcc's, no more: __shfl_sync(mask, some_char, 0) is an int here as well, and a double keeps its 64
 * bits. A lane whose source does not take part keeps its own value; on a GPU the result is undefined.
 */
#ifndef SIMT_WARP_H
#define SIMT_WARP_H

#include <string.h>

#include "core.h"

#ifdef __cplusplus
#include <type_traits>

/* Functions that touch other lanes' stacks: the inspector shall neither judge nor count their accesses. */
#if defined(SIMT_INSPECT) && defined(__clang__)
#define SIMT_UNSEEN __attribute__((no_sanitize("thread", "undefined", "coverage")))
#elif defined(SIMT_INSPECT)
#define SIMT_UNSEEN __attribute__((no_sanitize_thread, no_sanitize_undefined, no_sanitize_coverage))
#else
#define SIMT_UNSEEN
#endif

/* Functions whose accesses and meetings the inspector shall ascribe to the line that calls them. */
#ifdef SIMT_INSPECT
#define SIMT_INLINE inline __attribute__((always_inline))
#else
#define SIMT_INLINE inline
#endif

static const int warpSize = SIMT_WARP_SIZE;

/* ---- barriers ---- */

SIMT_UNSEEN inline void __syncthreads(SIMT_SITE) { simt_block_barrier(0, "__syncthreads", SIMT_PASS_SITE); }

SIMT_UNSEEN inline int __syncthreads_count(int predicate, SIMT_SITE) {
  return simt_block_barrier(predicate, "__syncthreads_count", SIMT_PASS_SITE);
}

SIMT_UNSEEN inline int __syncthreads_and(int predicate, SIMT_SITE) {
  return simt_block_barrier(!predicate, "__syncthreads_and", SIMT_PASS_SITE) == 0;
}

SIMT_UNSEEN inline int __syncthreads_or(int predicate, SIMT_SITE) {
  return simt_block_barrier(predicate, "__syncthreads_or", SIMT_PASS_SITE) != 0;
}

SIMT_UNSEEN inline void __syncwarp(unsigned mask = 0xffffffffu, SIMT_SITE) {
  simt_warp_rendezvous(mask, NULL, NULL, "__syncwarp", SIMT_PASS_SITE);
}

inline unsigned __activemask(void) { return simt_active_mask(); }

namespace simt {

/* ---- shuffles ---- */

enum ShuffleMode { SHUFFLE_INDEX, SHUFFLE_UP, SHUFFLE_DOWN, SHUFFLE_XOR };

template <class Word>
struct ShuffleLane {
  Word value, result;
  unsigned operand; /* source lane, delta or lane mask */
  unsigned segment; /* bits of the lane number that name its segment: 32 - width */
};

/* The lane that `lane` reads, or `lane` itself where that lies outside its segment; as PTX defines shfl.sync. */
template <ShuffleMode mode>
SIMT_UNSEEN inline __attribute__((always_inline)) unsigned shuffle_source(unsigned lane, unsigned operand,
                                                                          unsigned segment) {
  unsigned first = lane & segment, last = first | (31 & ~segment);
  if (mode == SHUFFLE_INDEX) return first | (operand & ~segment);
  if (mode == SHUFFLE_UP) return lane < first + operand ? lane : lane - operand;
  unsigned source = mode == SHUFFLE_DOWN ? lane + operand : lane ^ operand;
  return source > last ? lane : source; /* xor may reach back to an earlier segment, not forward to a later one */
}

template <ShuffleMode mode, class Word>
SIMT_UNSEEN void shuffle_complete(unsigned lanes, void *const posts[]) {
  ShuffleLane<Word> *const *lane = (ShuffleLane<Word> *const *)posts;
  if (lanes == 0xffffffffu) { /* the usual case, without a test for each lane */
    for (unsigned i = 0; i < 32; i++)
      lane[i]->result = lane[shuffle_source<mode>(i, lane[i]->operand, lane[i]->segment)]->value;
    return;
  }
  unsigned sources = 0;
  for (unsigned rest = lanes; rest; rest &= rest - 1) {
    unsigned i = (unsigned)__builtin_ctz(rest);
    unsigned source = shuffle_source<mode>(i, lane[i]->operand, lane[i]->segment);
    lane[i]->result = lane[lanes >> source & 1 ? source : i]->value;
    sources |= 1u << source;
  }
  /* By a distance, as in a reduction, lanes read beyond the last one as a rule, and have no use for the value. */
  if ((sources & ~lanes) && (mode == SHUFFLE_INDEX || mode == SHUFFLE_XOR))
    simt_shuffle_from_outside(sources & ~lanes, mode == SHUFFLE_INDEX && !(sources & lanes));
}

template <size_t bytes>
struct ShuffleBytes {
  unsigned char byte[bytes];
};
template <size_t bytes>
struct ShuffleWord { /* half words travel in a whole one; only cooperative groups shuffle what is larger than 8 bytes */
  typedef std::conditional_t<(bytes <= 4), uint32_t, std::conditional_t<bytes == 8, uint64_t, ShuffleBytes<bytes>>>
      type;
};

template <ShuffleMode mode, class T>
SIMT_UNSEEN inline T shuffle(unsigned mask, T value, unsigned operand, int width, const char *what, const char *file,
                             int line) {
  typedef typename ShuffleWord<sizeof(T)>::type Word;
  ShuffleLane<Word> lane;
  if (sizeof(T) < sizeof(Word)) lane.value = Word();
  memcpy((void *)&lane.value, (const void *)&value, sizeof value);
  lane.operand = operand & 31;
  lane.segment = (32u - (unsigned)width) & 31;
  simt_warp_rendezvous(mask, &lane, shuffle_complete<mode, Word>, what, file, line);
  memcpy((void *)&value, (const void *)&lane.result, sizeof value);
  return value;
}

}  // namespace simt

/* The four shuffles for one type. cuda_fp16.h and cuda_bf16.h add theirs with it. */
#define SIMT_SHUFFLES(T)                                                                                               \
  SIMT_UNSEEN inline T __shfl_sync(unsigned mask, T var, int src_lane, int width = SIMT_WARP_SIZE, SIMT_SITE) {        \
    return simt::shuffle<simt::SHUFFLE_INDEX>(mask, var, (unsigned)src_lane, width, "__shfl_sync", SIMT_PASS_SITE);    \
  }                                                                                                                    \
  SIMT_UNSEEN inline T __shfl_up_sync(unsigned mask, T var, unsigned delta, int width = SIMT_WARP_SIZE, SIMT_SITE) {   \
    return simt::shuffle<simt::SHUFFLE_UP>(mask, var, delta, width, "__shfl_up_sync", SIMT_PASS_SITE);                 \
  }                                                                                                                    \
  SIMT_UNSEEN inline T __shfl_down_sync(unsigned mask, T var, unsigned delta, int width = SIMT_WARP_SIZE, SIMT_SITE) { \
    return simt::shuffle<simt::SHUFFLE_DOWN>(mask, var, delta, width, "__shfl_down_sync", SIMT_PASS_SITE);             \
  }                                                                                                                    \
  SIMT_UNSEEN inline T __shfl_xor_sync(unsigned mask, T var, int lane_mask, int width = SIMT_WARP_SIZE, SIMT_SITE) {   \
    return simt::shuffle<simt::SHUFFLE_XOR>(mask, var, (unsigned)lane_mask, width, "__shfl_xor_sync", SIMT_PASS_SITE); \
  }

SIMT_SHUFFLES(int)
SIMT_SHUFFLES(unsigned)
SIMT_SHUFFLES(long)
SIMT_SHUFFLES(unsigned long)
SIMT_SHUFFLES(long long)
SIMT_SHUFFLES(unsigned long long)
SIMT_SHUFFLES(float)
SIMT_SHUFFLES(double)

/* ---- votes ---- */

namespace simt {

enum VoteMode { VOTE_ALL, VOTE_ANY, VOTE_UNIFORM, VOTE_BALLOT };

struct VoteLane {
  int predicate;
  unsigned result;
};

template <VoteMode mode>
SIMT_UNSEEN void vote_complete(unsigned lanes, void *const posts[]) {
  unsigned ballot = 0;
  for (unsigned rest = lanes; rest; rest &= rest - 1) {
    unsigned i = (unsigned)__builtin_ctz(rest);
    ballot |= (unsigned)(((VoteLane *)posts[i])->predicate != 0) << i;
  }
  unsigned result = mode == VOTE_ALL       ? ballot == lanes
                    : mode == VOTE_ANY     ? ballot != 0
                    : mode == VOTE_UNIFORM ? ballot == lanes || ballot == 0
                                           : ballot;
  for (unsigned rest = lanes; rest; rest &= rest - 1) ((VoteLane *)posts[__builtin_ctz(rest)])->result = result;
}

template <VoteMode mode>
SIMT_UNSEEN inline unsigned vote(unsigned mask, int predicate, const char *what, const char *file, int line) {
  VoteLane lane = {predicate, 0};
  simt_warp_rendezvous(mask, &lane, vote_complete<mode>, what, file, line);
  return lane.result;
}

}  // namespace simt

SIMT_UNSEEN inline int __all_sync(unsigned mask, int predicate, SIMT_SITE) {
  return (int)simt::vote<simt::VOTE_ALL>(mask, predicate, "__all_sync", SIMT_PASS_SITE);
}

SIMT_UNSEEN inline int __any_sync(unsigned mask, int predicate, SIMT_SITE) {
  return (int)simt::vote<simt::VOTE_ANY>(mask, predicate, "__any_sync", SIMT_PASS_SITE);
}

SIMT_UNSEEN inline int __uni_sync(unsigned mask, int predicate, SIMT_SITE) {
  return (int)simt::vote<simt::VOTE_UNIFORM>(mask, predicate, "__uni_sync", SIMT_PASS_SITE);
}

SIMT_UNSEEN inline unsigned __ballot_sync(unsigned mask, int predicate, SIMT_SITE) {
  return simt::vote<simt::VOTE_BALLOT>(mask, predicate, "__ballot_sync", SIMT_PASS_SITE);
}

/* ---- matches: which lanes hold the same bits ---- */

namespace simt {

struct MatchLane {
  uint64_t value;
  unsigned result;
};

template <size_t bytes>
SIMT_UNSEEN void match_any_complete(unsigned lanes, void *const posts[]) {
  MatchLane *const *lane = (MatchLane *const *)posts;
  for (unsigned todo = lanes; todo;) { /* a turn for each distinct value */
    uint64_t value = lane[__builtin_ctz(todo)]->value;
    unsigned same = 0;
    for (unsigned rest = todo; rest; rest &= rest - 1)
      if (lane[__builtin_ctz(rest)]->value == value) same |= rest & -rest;
    for (unsigned rest = same; rest; rest &= rest - 1) lane[__builtin_ctz(rest)]->result = same;
    todo &= ~same;
  }
}

template <size_t bytes>
SIMT_UNSEEN void match_all_complete(unsigned lanes, void *const posts[]) {
  MatchLane *const *lane = (MatchLane *const *)posts;
  unsigned result = lanes;
  for (unsigned rest = lanes; rest; rest &= rest - 1)
    if (lane[__builtin_ctz(rest)]->value != lane[__builtin_ctz(lanes)]->value) result = 0;
  for (unsigned rest = lanes; rest; rest &= rest - 1) lane[__builtin_ctz(rest)]->result = result;
}

template <class T>
SIMT_UNSEEN inline unsigned match_any(unsigned mask, T value, const char *file, int line) {
  MatchLane lane = {0, 0};
  memcpy(&lane.value, &value, sizeof value);
  simt_warp_rendezvous(mask, &lane, match_any_complete<sizeof(T)>, "__match_any_sync", file, line);
  return lane.result;
}

template <class T>
SIMT_UNSEEN inline unsigned match_all(unsigned mask, T value, int *predicate, const char *file, int line) {
  MatchLane lane = {0, 0};
  memcpy(&lane.value, &value, sizeof value);
  simt_warp_rendezvous(mask, &lane, match_all_complete<sizeof(T)>, "__match_all_sync", file, line);
  *predicate = lane.result != 0;
  return lane.result;
}

}  // namespace simt

#define SIMT_MATCHES(T)                                                                        \
  SIMT_UNSEEN inline unsigned __match_any_sync(unsigned mask, T value, SIMT_SITE) {            \
    return simt::match_any(mask, value, SIMT_PASS_SITE);                                       \
  }                                                                                            \
  SIMT_UNSEEN inline unsigned __match_all_sync(unsigned mask, T value, int *pred, SIMT_SITE) { \
    return simt::match_all(mask, value, pred, SIMT_PASS_SITE);                                 \
  }

SIMT_MATCHES(int)
SIMT_MATCHES(unsigned)
SIMT_MATCHES(long)
SIMT_MATCHES(unsigned long)
SIMT_MATCHES(long long)
SIMT_MATCHES(unsigned long long)
SIMT_MATCHES(float)
SIMT_MATCHES(double)
#undef SIMT_MATCHES

/* ---- reductions ---- */

namespace simt {

/* A rendezvous in which every lane gets the fold of all values, as a balanced tree: lane i with i + 16, then i + 8 ..,
 * the order of the usual shuffle loop. */
template <class T, class Op>
struct FoldLane {
  T value;
  T result;
  const Op *op;
};

template <class T, class Op>
SIMT_UNSEEN void fold_complete(unsigned lanes, void *const posts[]) {
  FoldLane<T, Op> *lane[SIMT_WARP_SIZE];
  std::decay_t<Op> op = *((FoldLane<T, Op> *)posts[__builtin_ctz(lanes)])->op;
  int count = 0;
  for (unsigned rest = lanes; rest; rest &= rest - 1) {
    lane[count] = (FoldLane<T, Op> *)posts[__builtin_ctz(rest)];
    lane[count]->result = lane[count]->value;
    count++;
  }
  for (int half = SIMT_WARP_SIZE / 2; half; half /= 2)
    for (int i = 0; i < half && i + half < count; i++) {
      T a = lane[i]->result,
        b = lane[i + half]->result; /* the operation may be the kernel's, and see its own stack only */
      lane[i]->result = op(a, b);
    }
  for (int i = 1; i < count; i++) lane[i]->result = lane[0]->result;
}

template <class T, class Op>
SIMT_UNSEEN inline T fold(unsigned mask, const T &value, const Op &op, const char *what, const char *file, int line) {
  FoldLane<T, Op> lane = {value, value, &op};
  simt_warp_rendezvous(mask, &lane, fold_complete<T, Op>, what, file, line);
  return lane.result;
}

struct FoldAdd {
  template <class T>
  SIMT_UNSEEN T operator()(T a, T b) const {
    return (T)(a + b);
  }
};
struct FoldMin {
  template <class T>
  SIMT_UNSEEN T operator()(T a, T b) const {
    return b < a ? b : a;
  }
};
struct FoldMax {
  template <class T>
  SIMT_UNSEEN T operator()(T a, T b) const {
    return a < b ? b : a;
  }
};
struct FoldAnd {
  template <class T>
  SIMT_UNSEEN T operator()(T a, T b) const {
    return (T)(a & b);
  }
};
struct FoldOr {
  template <class T>
  SIMT_UNSEEN T operator()(T a, T b) const {
    return (T)(a | b);
  }
};
struct FoldXor {
  template <class T>
  SIMT_UNSEEN T operator()(T a, T b) const {
    return (T)(a ^ b);
  }
};

}  // namespace simt

SIMT_UNSEEN inline unsigned __reduce_add_sync(unsigned mask, unsigned value, SIMT_SITE) {
  return simt::fold(mask, value, simt::FoldAdd(), "__reduce_add_sync", SIMT_PASS_SITE);
}
SIMT_UNSEEN inline int __reduce_add_sync(unsigned mask, int value, SIMT_SITE) {
  return (int)simt::fold(mask, (unsigned)value, simt::FoldAdd(), "__reduce_add_sync", SIMT_PASS_SITE);
}
SIMT_UNSEEN inline unsigned __reduce_min_sync(unsigned mask, unsigned value, SIMT_SITE) {
  return simt::fold(mask, value, simt::FoldMin(), "__reduce_min_sync", SIMT_PASS_SITE);
}
SIMT_UNSEEN inline int __reduce_min_sync(unsigned mask, int value, SIMT_SITE) {
  return simt::fold(mask, value, simt::FoldMin(), "__reduce_min_sync", SIMT_PASS_SITE);
}
SIMT_UNSEEN inline unsigned __reduce_max_sync(unsigned mask, unsigned value, SIMT_SITE) {
  return simt::fold(mask, value, simt::FoldMax(), "__reduce_max_sync", SIMT_PASS_SITE);
}
SIMT_UNSEEN inline int __reduce_max_sync(unsigned mask, int value, SIMT_SITE) {
  return simt::fold(mask, value, simt::FoldMax(), "__reduce_max_sync", SIMT_PASS_SITE);
}
SIMT_UNSEEN inline unsigned __reduce_and_sync(unsigned mask, unsigned value, SIMT_SITE) {
  return simt::fold(mask, value, simt::FoldAnd(), "__reduce_and_sync", SIMT_PASS_SITE);
}
SIMT_UNSEEN inline unsigned __reduce_or_sync(unsigned mask, unsigned value, SIMT_SITE) {
  return simt::fold(mask, value, simt::FoldOr(), "__reduce_or_sync", SIMT_PASS_SITE);
}
SIMT_UNSEEN inline unsigned __reduce_xor_sync(unsigned mask, unsigned value, SIMT_SITE) {
  return simt::fold(mask, value, simt::FoldXor(), "__reduce_xor_sync", SIMT_PASS_SITE);
}

/* ---- what CUDA took away: without a mask nobody knows which lanes meet ---- */

#define SIMT_REMOVED(name)                                                                                   \
  template <class... Arguments>                                                                              \
  __attribute__((error(#name "() has no mask and was removed for GPUs since Volta: write " #name             \
                             "_sync(0xffffffff, ...), where all lanes of the mask must arrive"))) inline int \
  name(Arguments...);

SIMT_REMOVED(__shfl)
SIMT_REMOVED(__shfl_up)
SIMT_REMOVED(__shfl_down)
SIMT_REMOVED(__shfl_xor)
SIMT_REMOVED(__all)
SIMT_REMOVED(__any)
SIMT_REMOVED(__ballot)
#undef SIMT_REMOVED

#endif /* __cplusplus */

#endif /* SIMT_WARP_H */
