/* thrust/sort.h - by less or by a comparison of one's own; equal elements keep their order. -*- c++ -*- */
#ifndef SIMT_THRUST_SORT
#define SIMT_THRUST_SORT

#include <memory>

#include "cub/util_sort.cuh"
#include "thrust/simt_common.h"

namespace thrust {

namespace details {

/* In a kernel, where there is no other memory. */
template <class Keys, class Values, class Less>
void insertion_sort(Keys keys, Values values, size_t count, Less less) {
  for (size_t i = 1; i < count; i++) {
    value_of<Keys> key = keys[i];
    value_of<Values> value = values[i];
    size_t to = i;
    for (; to > 0 && less(key, keys[to - 1]); to--) {
      keys[to] = keys[to - 1];
      values[to] = values[to - 1];
    }
    keys[to] = key;
    values[to] = value;
  }
}

template <class P, class Keys, class Values, class Less>
void sort_pairs(const P &policy, const char *name, Keys first, Keys last, Values values, Less less, Site site) {
  typedef value_of<Keys> Key;
  typedef value_of<Values> Value;
  size_t count = length(first, last);
  if (count < 2) return;
  if (simt_in_kernel()) {
    insertion_sort(raw(first), raw(values), count, less);
  } else if constexpr (P::on_device) {
    Scratch<Key, P> keys_scratch(policy, count, name, site);
    Scratch<Value, P> values_scratch(policy, count, name, site);
    compute<char>(
        policy, name, site,
        [=](auto k, auto v, Key *k_other, Value *v_other) {
          cub::details::merge_sort_pairs(k, v, k_other, v_other, count, less);
          return 0;
        },
        first, values, keys_scratch.get(), values_scratch.get());
  } else {
    check_policy<P, Keys, Values>();
    check_host_pointers<P>(name, site, first, values);
    std::unique_ptr<Key[]> keys_scratch(new Key[count]);
    std::unique_ptr<Value[]> values_scratch(new Value[count]);
    cub::details::merge_sort_pairs(first, values, keys_scratch.get(), values_scratch.get(), count, less);
  }
}

}  // namespace details

template <class P, class In, class Less>
void stable_sort(const details::Policy<P> &policy, In first, In last, Less less, SIMT_THRUST_SITE) {
  details::sort_pairs(policy.me(), "thrust::stable_sort", first, last, cub::NullValues(), less, site);
}
template <class In, class Less>
void stable_sort(In first, In last, Less less, SIMT_THRUST_SITE) {
  return stable_sort(details::policy_for<In>(), first, last, less, site);
}
template <class P, class In>
void stable_sort(const details::Policy<P> &policy, In first, In last, SIMT_THRUST_SITE) {
  stable_sort(policy, first, last, less<>(), site);
}
template <class In>
void stable_sort(In first, In last, SIMT_THRUST_SITE) {
  return stable_sort(details::policy_for<In>(), first, last, less<>(), site);
}
template <class P, class In, class Less>
void sort(const details::Policy<P> &policy, In first, In last, Less less, SIMT_THRUST_SITE) {
  details::sort_pairs(policy.me(), "thrust::sort", first, last, cub::NullValues(), less, site);
}
template <class In, class Less>
void sort(In first, In last, Less less, SIMT_THRUST_SITE) {
  return sort(details::policy_for<In>(), first, last, less, site);
}
template <class P, class In>
void sort(const details::Policy<P> &policy, In first, In last, SIMT_THRUST_SITE) {
  sort(policy, first, last, less<>(), site);
}
template <class In>
void sort(In first, In last, SIMT_THRUST_SITE) {
  return sort(details::policy_for<In>(), first, last, less<>(), site);
}
template <class P, class Keys, class Values, class Less>
void stable_sort_by_key(const details::Policy<P> &policy, Keys first, Keys last, Values values, Less less,
                        SIMT_THRUST_SITE) {
  details::sort_pairs(policy.me(), "thrust::stable_sort_by_key", first, last, values, less, site);
}
template <class Keys, class Values, class Less>
void stable_sort_by_key(Keys first, Keys last, Values values, Less less, SIMT_THRUST_SITE) {
  return stable_sort_by_key(details::policy_for<Keys, Values>(), first, last, values, less, site);
}
template <class P, class Keys, class Values>
void stable_sort_by_key(const details::Policy<P> &policy, Keys first, Keys last, Values values, SIMT_THRUST_SITE) {
  stable_sort_by_key(policy, first, last, values, less<>(), site);
}
template <class Keys, class Values>
void stable_sort_by_key(Keys first, Keys last, Values values, SIMT_THRUST_SITE) {
  return stable_sort_by_key(details::policy_for<Keys, Values>(), first, last, values, less<>(), site);
}
template <class P, class Keys, class Values, class Less>
void sort_by_key(const details::Policy<P> &policy, Keys first, Keys last, Values values, Less less, SIMT_THRUST_SITE) {
  details::sort_pairs(policy.me(), "thrust::sort_by_key", first, last, values, less, site);
}
template <class Keys, class Values, class Less>
void sort_by_key(Keys first, Keys last, Values values, Less less, SIMT_THRUST_SITE) {
  return sort_by_key(details::policy_for<Keys, Values>(), first, last, values, less, site);
}
template <class P, class Keys, class Values>
void sort_by_key(const details::Policy<P> &policy, Keys first, Keys last, Values values, SIMT_THRUST_SITE) {
  sort_by_key(policy, first, last, values, less<>(), site);
}
template <class Keys, class Values>
void sort_by_key(Keys first, Keys last, Values values, SIMT_THRUST_SITE) {
  return sort_by_key(details::policy_for<Keys, Values>(), first, last, values, less<>(), site);
}
template <class P, class In, class Less>
In is_sorted_until(const details::Policy<P> &policy, In first, In last, Less less, SIMT_THRUST_SITE) {
  size_t count = details::length(first, last);
  return first + (ptrdiff_t)details::compute<size_t>(
                     policy.me(), "thrust::is_sorted_until", site,
                     [=](auto from) mutable {
                       size_t i = 1;
                       while (i < count && !less(from[i], from[i - 1])) i++;
                       return i < count ? i : count;
                     },
                     first);
}
template <class In, class Less>
In is_sorted_until(In first, In last, Less less, SIMT_THRUST_SITE) {
  return is_sorted_until(details::policy_for<In>(), first, last, less, site);
}
template <class P, class In>
In is_sorted_until(const details::Policy<P> &policy, In first, In last, SIMT_THRUST_SITE) {
  return is_sorted_until(policy, first, last, less<>(), site);
}
template <class In>
In is_sorted_until(In first, In last, SIMT_THRUST_SITE) {
  return is_sorted_until(details::policy_for<In>(), first, last, less<>(), site);
}
template <class P, class In, class Less>
bool is_sorted(const details::Policy<P> &policy, In first, In last, Less less, SIMT_THRUST_SITE) {
  return is_sorted_until(policy, first, last, less, site) == last;
}
template <class In, class Less>
bool is_sorted(In first, In last, Less less, SIMT_THRUST_SITE) {
  return is_sorted(details::policy_for<In>(), first, last, less, site);
}
template <class P, class In>
bool is_sorted(const details::Policy<P> &policy, In first, In last, SIMT_THRUST_SITE) {
  return is_sorted_until(policy, first, last, less<>(), site) == last;
}
template <class In>
bool is_sorted(In first, In last, SIMT_THRUST_SITE) {
  return is_sorted(details::policy_for<In>(), first, last, less<>(), site);
}

}  // namespace thrust

#endif /* SIMT_THRUST_SORT */
