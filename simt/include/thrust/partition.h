/* thrust/partition.h - the wanted elements first; both parts keep their order. -*- c++ -*- */
#ifndef SIMT_THRUST_PARTITION
#define SIMT_THRUST_PARTITION

#include "thrust/functional.h"
#include "thrust/pair.h"

namespace thrust {

template <class P, class In, class Out, class Out2, class Predicate>
pair<Out, Out2> stable_partition_copy(const details::Policy<P> &policy, In first, In last, Out wanted_out,
                                      Out2 others_out, Predicate wanted, SIMT_THRUST_SITE) {
  size_t count = details::length(first, last);

  size_t found = details::compute<size_t>(
      policy.me(), "thrust::partition_copy", site,
      [=](auto from, auto yes, auto no) mutable {
        size_t n = 0;
        for (size_t i = 0; i < count; i++) {
          details::value_of<In> item = from[i];
          if (wanted(item))
            yes[n++] = item;
          else
            no[i - n] = item;
        }
        return n;
      },
      first, wanted_out, others_out);
  return {wanted_out + (ptrdiff_t)found, others_out + (ptrdiff_t)(count - found)};
}
template <class In, class Out, class Out2, class Predicate>
pair<Out, Out2> stable_partition_copy(In first, In last, Out wanted_out, Out2 others_out, Predicate wanted,
                                      SIMT_THRUST_SITE) {
  return stable_partition_copy(details::policy_for<In, Out, Out2>(), first, last, wanted_out, others_out, wanted, site);
}
template <class P, class In, class Out, class Out2, class Predicate>
pair<Out, Out2> partition_copy(const details::Policy<P> &policy, In first, In last, Out wanted_out, Out2 others_out,
                               Predicate wanted, SIMT_THRUST_SITE) {
  return stable_partition_copy(policy, first, last, wanted_out, others_out, wanted, site);
}
template <class In, class Out, class Out2, class Predicate>
pair<Out, Out2> partition_copy(In first, In last, Out wanted_out, Out2 others_out, Predicate wanted, SIMT_THRUST_SITE) {
  return partition_copy(details::policy_for<In, Out, Out2>(), first, last, wanted_out, others_out, wanted, site);
}
template <class P, class In, class Predicate>
In stable_partition(const details::Policy<P> &policy, In first, In last, Predicate wanted, SIMT_THRUST_SITE) {
  size_t count = details::length(first, last);

  typedef details::value_of<In> T;
  details::Scratch<T, P> others(policy.me(), count + 1, "thrust::partition", site);
  return first + (ptrdiff_t)details::compute<size_t>(
                     policy.me(), "thrust::partition", site,
                     [=](auto at, T *other) mutable {
                       size_t n = 0;
                       for (size_t i = 0; i < count; i++) {
                         T item = at[i];
                         if (wanted(item))
                           at[n++] = item;
                         else
                           new (other + (i - n)) T(item);
                       }
                       for (size_t i = n; i < count; i++) {
                         at[i] = other[i - n];
                         other[i - n].~T();
                       }
                       return n;
                     },
                     first, others.get());
}
template <class In, class Predicate>
In stable_partition(In first, In last, Predicate wanted, SIMT_THRUST_SITE) {
  return stable_partition(details::policy_for<In>(), first, last, wanted, site);
}
template <class P, class In, class Predicate>
In partition(const details::Policy<P> &policy, In first, In last, Predicate wanted, SIMT_THRUST_SITE) {
  return stable_partition(policy, first, last, wanted, site);
}
template <class In, class Predicate>
In partition(In first, In last, Predicate wanted, SIMT_THRUST_SITE) {
  return partition(details::policy_for<In>(), first, last, wanted, site);
}
template <class P, class In, class Predicate>
bool is_partitioned(const details::Policy<P> &policy, In first, In last, Predicate wanted, SIMT_THRUST_SITE) {
  size_t count = details::length(first, last);
  return details::compute<bool>(
      policy.me(), "thrust::is_partitioned", site,
      [=](auto from) mutable {
        size_t i = 0;
        while (i < count && wanted(from[i])) i++;
        while (i < count && !wanted(from[i])) i++;
        return i == count;
      },
      first);
}
template <class In, class Predicate>
bool is_partitioned(In first, In last, Predicate wanted, SIMT_THRUST_SITE) {
  return is_partitioned(details::policy_for<In>(), first, last, wanted, site);
}

}  // namespace thrust

#endif /* SIMT_THRUST_PARTITION */
