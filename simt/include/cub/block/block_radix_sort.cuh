/* cub/block/block_radix_sort.cuh - sorts the items of a block, with values if wanted; equal keys keep their order.
 * -*- c++ -*- */
#ifndef SIMT_CUB_BLOCK_RADIX_SORT
#define SIMT_CUB_BLOCK_RADIX_SORT

#include "cub/block/block_exchange.cuh"
#include "cub/block/block_scan.cuh"
#include "cub/util_sort.cuh"

namespace cub {

namespace details {

template <class Key, class Value>
struct SortPost : simt::BlockPost {
  Key *keys;
  Value *values; /* NULL: none */
  int items, begin, end;
  bool descending, striped; /* striped: so the result is arranged */
};

template <class Key, class Value>
struct SortItem {
  uint64_t digits;
  Key key;
  Value value;
};

struct LessDigits {
  template <class Item>
  SIMT_UNSEEN bool operator()(const Item &a, const Item &b) const {
    return a.digits < b.digits;
  }
};

template <class Key, class Value>
SIMT_UNSEEN void sort_complete(simt::BlockPost **posts, int threads) {
  typedef SortItem<Key, Value> Item;
  SortPost<Key, Value> **post = (SortPost<Key, Value> **)posts;
  int items = post[0]->items, count = threads * items;
  Item *all = (Item *)malloc(2 * (size_t)count * sizeof(Item));
  if (!all) abort();
  for (int i = 0; i < count; i++) {
    all[i].key = post[i / items]->keys[i % items];
    if (post[0]->values) all[i].value = post[i / items]->values[i % items];
    all[i].digits = radix_digits(all[i].key, post[0]->begin, post[0]->end, post[0]->descending);
  }
  merge_sort(all, all + count, (size_t)count, LessDigits());
  for (int i = 0; i < count; i++) {
    int thread = post[0]->striped ? i % threads : i / items, item = post[0]->striped ? i / threads : i % items;
    post[thread]->keys[item] = all[i].key;
    if (post[0]->values) post[thread]->values[item] = all[i].value;
  }
  free(all);
}

}  // namespace details

template <class Key, int block_x, int items, class Value = NullType, int radix_bits = 4, bool memoize = true,
          BlockScanAlgorithm inner_scan = BLOCK_SCAN_WARP_SCANS,
          cudaSharedMemConfig config = cudaSharedMemBankSizeFourByte, int block_y = 1, int block_z = 1,
          int unused_arch = 0>
class BlockRadixSort {
 public:
  typedef details::TempStorage TempStorage;

  BlockRadixSort() : storage_(nullptr) {}
  explicit BlockRadixSort(TempStorage &storage) : storage_(&storage) {}

#define SIMT_CUB_SORT(Name, descending, striped)                                                               \
  SIMT_INLINE void Name(Key(&keys)[items], int begin_bit = 0, int end_bit = 8 * (int)sizeof(Key), SIMT_SITE) { \
    sort(keys, nullptr, begin_bit, end_bit, descending, striped, SIMT_PASS_SITE);                              \
  }                                                                                                            \
  SIMT_INLINE void Name(Key(&keys)[items], Value(&values)[items], int begin_bit = 0,                           \
                        int end_bit = 8 * (int)sizeof(Key), SIMT_SITE) {                                       \
    sort(keys, values, begin_bit, end_bit, descending, striped, SIMT_PASS_SITE);                               \
  }
  SIMT_CUB_SORT(Sort, false, false)
  SIMT_CUB_SORT(SortDescending, true, false)
  SIMT_CUB_SORT(SortBlockedToStriped, false, true)
  SIMT_CUB_SORT(SortDescendingBlockedToStriped, true, true)
#undef SIMT_CUB_SORT

 private:
  TempStorage *storage_;

  SIMT_INLINE void sort(Key *keys, Value *values, int begin, int end, bool descending, bool striped, const char *file,
                        int line) {
    details::SortPost<Key, Value> post;
    post.keys = keys;
    post.values = values;
    post.items = items;
    post.begin = begin;
    post.end = end;
    post.descending = descending;
    post.striped = striped;
    details::meet(&post, details::sort_complete<Key, Value>, storage_, "cub::BlockRadixSort", file, line);
  }
};

}  // namespace cub

#endif /* SIMT_CUB_BLOCK_RADIX_SORT */
