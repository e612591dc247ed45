/* cub/block/block_exchange.cuh - the items of a block change their threads. -*- c++ -*-
 *
 * Blocked: thread t has the items t * items, t * items + 1, ..; striped: t, t + threads, ..; warp-striped: striped
 * within each warp's part of the blocked arrangement.
 */
#ifndef SIMT_CUB_BLOCK_EXCHANGE
#define SIMT_CUB_BLOCK_EXCHANGE

#include <stdlib.h>

#include "cub/util_type.cuh"

namespace cub {

namespace details {

/* Item i of a thread goes from its place in one arrangement to one in another. */
enum Arrangement { BLOCKED, STRIPED, WARP_STRIPED, BY_RANK };

SIMT_UNSEEN inline size_t place(Arrangement arrangement, int threads, int items, int thread, int i) {
  if (arrangement == BLOCKED) return (size_t)thread * items + i;
  if (arrangement == STRIPED) return (size_t)i * threads + thread;
  int warp = thread / SIMT_WARP_SIZE, first = warp * SIMT_WARP_SIZE;
  int lanes = threads - first < SIMT_WARP_SIZE ? threads - first : SIMT_WARP_SIZE;
  return (size_t)first * items + (size_t)i * lanes + thread % SIMT_WARP_SIZE;
}

template <class In, class Out>
struct ExchangePost : simt::BlockPost {
  const In *input;
  Out *output;
  const int *ranks; /* BY_RANK: where each item goes; a negative rank: nowhere */
  int items;
  Arrangement from, to;
};

template <class In, class Out>
SIMT_UNSEEN void exchange_complete(simt::BlockPost **posts, int threads) {
  ExchangePost<In, Out> **post = (ExchangePost<In, Out> **)posts;
  int items = post[0]->items;
  Arrangement from = post[0]->from, to = post[0]->to;
  size_t count = (size_t)threads * (size_t)items;
  Out *all = (Out *)malloc(count * sizeof(Out));
  unsigned char *set = (unsigned char *)calloc(count, 1);
  if (!all || !set) abort();
  for (int t = 0; t < threads; t++)
    for (int i = 0; i < items; i++) {
      if (from == BY_RANK && post[t]->ranks[i] < 0) continue;
      size_t where = from == BY_RANK ? (size_t)post[t]->ranks[i] : place(from, threads, items, t, i);
      if (where >= count) continue;
      all[where] = (Out)post[t]->input[i];
      set[where] = 1;
    }
  for (int t = 0; t < threads; t++)
    for (int i = 0; i < items; i++) {
      size_t where = place(to, threads, items, t, i);
      if (set[where]) post[t]->output[i] = all[where];
    }
  free(all);
  free(set);
}

template <int items, class In, class Out>
SIMT_INLINE void exchange(In (&input)[items], Out (&output)[items], const int *ranks, Arrangement from, Arrangement to,
                          TempStorage *storage, const char *what, const char *file, int line) {
  ExchangePost<In, Out> post;
  post.input = input;
  post.output = output;
  post.ranks = ranks;
  post.items = items;
  post.from = from;
  post.to = to;
  meet(&post, exchange_complete<In, Out>, storage, what, file, line);
}

}  // namespace details

template <class T, int block_x, int items, bool time_slicing = false, int block_y = 1, int block_z = 1,
          int unused_arch = 0>
class BlockExchange {
 public:
  typedef details::TempStorage TempStorage;

  BlockExchange() : storage_(nullptr) {}
  explicit BlockExchange(TempStorage &storage) : storage_(&storage) {}

#define SIMT_CUB_EXCHANGE(Name, from, to)                                                                         \
  template <class Out>                                                                                            \
  SIMT_INLINE void Name(T(&input)[items], Out(&output)[items], SIMT_SITE) {                                       \
    details::exchange(input, output, nullptr, details::from, details::to, storage_, "cub::BlockExchange::" #Name, \
                      SIMT_PASS_SITE);                                                                            \
  }                                                                                                               \
  SIMT_INLINE void Name(T(&in_place)[items], SIMT_SITE) { Name(in_place, in_place, SIMT_PASS_SITE); }
  SIMT_CUB_EXCHANGE(StripedToBlocked, STRIPED, BLOCKED)
  SIMT_CUB_EXCHANGE(BlockedToStriped, BLOCKED, STRIPED)
  SIMT_CUB_EXCHANGE(WarpStripedToBlocked, WARP_STRIPED, BLOCKED)
  SIMT_CUB_EXCHANGE(BlockedToWarpStriped, BLOCKED, WARP_STRIPED)
#undef SIMT_CUB_EXCHANGE

#define SIMT_CUB_SCATTER(Name, to)                                                                                  \
  template <class Out, class Rank>                                                                                  \
  SIMT_INLINE void Name(T(&input)[items], Out(&output)[items], Rank(&ranks)[items], SIMT_SITE) {                    \
    int places[items];                                                                                              \
    for (int i = 0; i < items; i++) places[i] = (int)ranks[i];                                                      \
    details::exchange(input, output, places, details::BY_RANK, details::to, storage_, "cub::BlockExchange::" #Name, \
                      SIMT_PASS_SITE);                                                                              \
  }                                                                                                                 \
  template <class Rank>                                                                                             \
  SIMT_INLINE void Name(T(&in_place)[items], Rank(&ranks)[items], SIMT_SITE) {                                      \
    Name(in_place, in_place, ranks, SIMT_PASS_SITE);                                                                \
  }
  SIMT_CUB_SCATTER(ScatterToBlocked, BLOCKED)
  SIMT_CUB_SCATTER(ScatterToStriped, STRIPED)
  SIMT_CUB_SCATTER(ScatterToStripedGuarded, STRIPED)
#undef SIMT_CUB_SCATTER

 private:
  TempStorage *storage_;
};

}  // namespace cub

#endif /* SIMT_CUB_BLOCK_EXCHANGE */
