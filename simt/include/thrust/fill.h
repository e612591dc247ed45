/* thrust/fill.h - the same value in all elements. -*- c++ -*- */
#ifndef SIMT_THRUST_FILL
#define SIMT_THRUST_FILL

#include "thrust/simt_run.h"

namespace thrust {

template <class P, class Out, class T>
void fill(const details::Policy<P> &policy, Out first, Out last, const T &value, SIMT_THRUST_SITE) {
  T copy = value;
  details::each(
      policy.me(), "thrust::fill", site, details::length(first, last), [copy](size_t i, auto to) { to[i] = copy; },
      first);
}
template <class Out, class T>
void fill(Out first, Out last, const T &value, SIMT_THRUST_SITE) {
  return fill(details::policy_for<Out>(), first, last, value, site);
}
template <class P, class Out, class Count, class T>
Out fill_n(const details::Policy<P> &policy, Out first, Count count, const T &value, SIMT_THRUST_SITE) {
  T copy = value;
  details::each(
      policy.me(), "thrust::fill_n", site, (size_t)count, [copy](size_t i, auto to) { to[i] = copy; }, first);
  return first + (ptrdiff_t)count;
}
template <class Out, class Count, class T>
Out fill_n(Out first, Count count, const T &value, SIMT_THRUST_SITE) {
  return fill_n(details::policy_for<Out>(), first, count, value, site);
}

}  // namespace thrust

#endif /* SIMT_THRUST_FILL */
