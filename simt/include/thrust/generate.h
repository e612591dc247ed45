/* thrust/generate.h - elements from a function without arguments. On the device each element has a copy of it.
 * -*- c++ -*- */
#ifndef SIMT_THRUST_GENERATE
#define SIMT_THRUST_GENERATE

#include "thrust/simt_run.h"

namespace thrust {

template <class P, class Out, class F>
void generate(const details::Policy<P> &policy, Out first, Out last, F function, SIMT_THRUST_SITE) {
  details::each(
      policy.me(), "thrust::generate", site, details::length(first, last),
      [function](size_t i, auto to) mutable { to[i] = function(); }, first);
}
template <class Out, class F>
void generate(Out first, Out last, F function, SIMT_THRUST_SITE) {
  return generate(details::policy_for<Out>(), first, last, function, site);
}
template <class P, class Out, class Count, class F>
Out generate_n(const details::Policy<P> &policy, Out first, Count count, F function, SIMT_THRUST_SITE) {
  details::each(
      policy.me(), "thrust::generate_n", site, (size_t)count,
      [function](size_t i, auto to) mutable { to[i] = function(); }, first);
  return first + (ptrdiff_t)count;
}
template <class Out, class Count, class F>
Out generate_n(Out first, Count count, F function, SIMT_THRUST_SITE) {
  return generate_n(details::policy_for<Out>(), first, count, function, site);
}

}  // namespace thrust

#endif /* SIMT_THRUST_GENERATE */
