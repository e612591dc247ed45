/* cub/block/block_merge_sort.cuh - sorts the items of a block by a comparison. -*- c++ -*- */
#ifndef SIMT_CUB_BLOCK_MERGE_SORT
#define SIMT_CUB_BLOCK_MERGE_SORT

#include "cub/util_sort.cuh"

namespace cub {

namespace details {

template <class Key, class Value, class Less>
struct MergePost : simt::BlockPost {
  Key *keys;
  Value *values; /* NULL: none */
  const Less *less;
  int items, valid; /* the first `valid` of the block's items exist */
};

template <class Key, class Value>
struct MergeItem {
  Key key;
  Value value;
};

template <class Less>
struct LessKey {
  Less less;
  template <class Item>
  SIMT_UNSEEN bool operator()(const Item &a, const Item &b) {
    return less(a.key, b.key);
  }
};

template <class Key, class Value, class Less>
SIMT_UNSEEN void merge_complete(simt::BlockPost **posts, int threads) {
  MergePost<Key, Value, Less> **post = (MergePost<Key, Value, Less> **)posts;
  int items = post[0]->items, count = threads * items;
  if (count > post[0]->valid) count = post[0]->valid;
  MergeItem<Key, Value> *all = (MergeItem<Key, Value> *)malloc(2 * (size_t)count * sizeof *all);
  if (!all) abort();
  for (int i = 0; i < count; i++) {
    all[i].key = post[i / items]->keys[i % items];
    if (post[0]->values) all[i].value = post[i / items]->values[i % items];
  }
  Less less = *post[0]->less;
  merge_sort(all, all + count, (size_t)count, LessKey<Less>{less});
  for (int i = 0; i < count; i++) {
    post[i / items]->keys[i % items] = all[i].key;
    if (post[0]->values) post[i / items]->values[i % items] = all[i].value;
  }
  free(all);
}

}  // namespace details

template <class Key, int block_x, int items, class Value = NullType, int block_y = 1, int block_z = 1>
class BlockMergeSort {
 public:
  typedef details::TempStorage TempStorage;

  BlockMergeSort() : storage_(nullptr) {}
  explicit BlockMergeSort(TempStorage &storage) : storage_(&storage) {}

  template <class Less>
  SIMT_INLINE void Sort(Key (&keys)[items], Less less, SIMT_SITE) {
    sort(keys, nullptr, less, all, SIMT_PASS_SITE);
  }
  template <class Less>
  SIMT_INLINE void Sort(Key (&keys)[items], Value (&values)[items], Less less, SIMT_SITE) {
    sort(keys, values, less, all, SIMT_PASS_SITE);
  }
  /* Of the block's items the first `valid` exist; the others, at the end, become `oob_default`. */
  template <class Less>
  SIMT_INLINE void Sort(Key (&keys)[items], Less less, int valid, Key oob_default, SIMT_SITE) {
    for (int i = 0; i < items; i++)
      if ((int)simt_thread_rank() * items + i >= valid) keys[i] = oob_default;
    sort(keys, nullptr, less, valid, SIMT_PASS_SITE);
  }
  template <class Less>
  SIMT_INLINE void StableSort(Key (&keys)[items], Less less, SIMT_SITE) {
    sort(keys, nullptr, less, all, SIMT_PASS_SITE);
  }
  template <class Less>
  SIMT_INLINE void StableSort(Key (&keys)[items], Value (&values)[items], Less less, SIMT_SITE) {
    sort(keys, values, less, all, SIMT_PASS_SITE);
  }

 private:
  static constexpr int all = block_x * block_y * block_z * items;
  TempStorage *storage_;

  template <class Less>
  SIMT_INLINE void sort(Key *keys, Value *values, Less &less, int valid, const char *file, int line) {
    details::MergePost<Key, Value, Less> post;
    post.keys = keys;
    post.values = values;
    post.less = &less;
    post.items = items;
    post.valid = valid;
    details::meet(&post, details::merge_complete<Key, Value, Less>, storage_, "cub::BlockMergeSort", file, line);
  }
};

}  // namespace cub

#endif /* SIMT_CUB_BLOCK_MERGE_SORT */
