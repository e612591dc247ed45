/* thrust/count.h - how many elements are equal to a value, or fulfil a condition. -*- c++ -*- */
#ifndef SIMT_THRUST_COUNT
#define SIMT_THRUST_COUNT

#include "thrust/simt_run.h"

namespace thrust {

template <class P, class In, class Predicate>
ptrdiff_t count_if(const details::Policy<P> &policy, In first, In last, Predicate wanted, SIMT_THRUST_SITE) {
  size_t count = details::length(first, last);
  return details::compute<ptrdiff_t>(
      policy.me(), "thrust::count_if", site,
      [=](auto from) mutable {
        ptrdiff_t n = 0;
        for (size_t i = 0; i < count; i++) n += wanted(from[i]) ? 1 : 0;
        return n;
      },
      first);
}
template <class In, class Predicate>
ptrdiff_t count_if(In first, In last, Predicate wanted, SIMT_THRUST_SITE) {
  return count_if(details::policy_for<In>(), first, last, wanted, site);
}
template <class P, class In, class T>
ptrdiff_t count(const details::Policy<P> &policy, In first, In last, const T &value, SIMT_THRUST_SITE) {
  T other = value;
  return count_if(
      policy, first, last, [other](const auto &item) { return item == other; }, site);
}
template <class In, class T>
ptrdiff_t count(In first, In last, const T &value, SIMT_THRUST_SITE) {
  return count(details::policy_for<In>(), first, last, value, site);
}

}  // namespace thrust

#endif /* SIMT_THRUST_COUNT */
