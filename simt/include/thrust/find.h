/* thrust/find.h - the first element that is equal to a value, or fulfils a condition. -*- c++ -*- */
#ifndef SIMT_THRUST_FIND
#define SIMT_THRUST_FIND

#include "thrust/simt_run.h"

namespace thrust {

template <class P, class In, class Predicate>
In find_if(const details::Policy<P> &policy, In first, In last, Predicate wanted, SIMT_THRUST_SITE) {
  size_t count = details::length(first, last);
  return first + (ptrdiff_t)details::compute<size_t>(
                     policy.me(), "thrust::find_if", site,
                     [=](auto from) mutable {
                       size_t i = 0;
                       while (i < count && !wanted(from[i])) i++;
                       return i;
                     },
                     first);
}
template <class In, class Predicate>
In find_if(In first, In last, Predicate wanted, SIMT_THRUST_SITE) {
  return find_if(details::policy_for<In>(), first, last, wanted, site);
}
template <class P, class In, class Predicate>
In find_if_not(const details::Policy<P> &policy, In first, In last, Predicate unwanted, SIMT_THRUST_SITE) {
  return find_if(
      policy, first, last, [unwanted](const auto &item) mutable { return !unwanted(item); }, site);
}
template <class In, class Predicate>
In find_if_not(In first, In last, Predicate unwanted, SIMT_THRUST_SITE) {
  return find_if_not(details::policy_for<In>(), first, last, unwanted, site);
}
template <class P, class In, class T>
In find(const details::Policy<P> &policy, In first, In last, const T &value, SIMT_THRUST_SITE) {
  T other = value;
  return find_if(
      policy, first, last, [other](const auto &item) { return item == other; }, site);
}
template <class In, class T>
In find(In first, In last, const T &value, SIMT_THRUST_SITE) {
  return find(details::policy_for<In>(), first, last, value, site);
}

}  // namespace thrust

#endif /* SIMT_THRUST_FIND */
