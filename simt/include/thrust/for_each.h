/* thrust/for_each.h - a function for each element. -*- c++ -*- */
#ifndef SIMT_THRUST_FOR_EACH
#define SIMT_THRUST_FOR_EACH

#include "thrust/simt_run.h"

namespace thrust {

template <class P, class In, class F>
In for_each(const details::Policy<P> &policy, In first, In last, F function, SIMT_THRUST_SITE) {
  size_t count = details::length(first, last);
  details::each(
      policy.me(), "thrust::for_each", site, count, [function](size_t i, auto at) mutable { function(at[i]); }, first);
  return last;
}
template <class In, class F>
In for_each(In first, In last, F function, SIMT_THRUST_SITE) {
  return for_each(details::policy_for<In>(), first, last, function, site);
}
template <class P, class In, class Count, class F>
In for_each_n(const details::Policy<P> &policy, In first, Count count, F function, SIMT_THRUST_SITE) {
  details::each(
      policy.me(), "thrust::for_each_n", site, (size_t)count,
      [function](size_t i, auto at) mutable { function(at[i]); }, first);
  return first + (ptrdiff_t)count;
}
template <class In, class Count, class F>
In for_each_n(In first, Count count, F function, SIMT_THRUST_SITE) {
  return for_each_n(details::policy_for<In>(), first, count, function, site);
}

}  // namespace thrust

#endif /* SIMT_THRUST_FOR_EACH */
