/* thrust/transform_scan.h - running sums of a function of each element. -*- c++ -*- */
#ifndef SIMT_THRUST_TRANSFORM_SCAN
#define SIMT_THRUST_TRANSFORM_SCAN

#include "thrust/scan.h"

namespace thrust {

template <class P, class In, class Out, class F, class Op>
Out transform_inclusive_scan(const details::Policy<P> &policy, In first, In last, Out out, F function, Op op,
                             SIMT_THRUST_SITE) {
  typedef std::decay_t<std::invoke_result_t<F &, details::reference_of<details::Raw<In>>>> T;
  return details::scan<false, true>(
      policy.me(), "thrust::transform_inclusive_scan", first, last, out, T(), op,
      [function](auto &from, size_t i) mutable { return function(from[i]); }, site);
}
template <class In, class Out, class F, class Op>
Out transform_inclusive_scan(In first, In last, Out out, F function, Op op, SIMT_THRUST_SITE) {
  return transform_inclusive_scan(details::policy_for<In, Out>(), first, last, out, function, op, site);
}
template <class P, class In, class Out, class F, class T, class Op>
Out transform_inclusive_scan(const details::Policy<P> &policy, In first, In last, Out out, F function, T initial, Op op,
                             SIMT_THRUST_SITE) {
  return details::scan<true, true>(
      policy.me(), "thrust::transform_inclusive_scan", first, last, out, initial, op,
      [function](auto &from, size_t i) mutable { return function(from[i]); }, site);
}
template <class In, class Out, class F, class T, class Op>
Out transform_inclusive_scan(In first, In last, Out out, F function, T initial, Op op, SIMT_THRUST_SITE) {
  return transform_inclusive_scan(details::policy_for<In, Out>(), first, last, out, function, initial, op, site);
}
template <class P, class In, class Out, class F, class T, class Op>
Out transform_exclusive_scan(const details::Policy<P> &policy, In first, In last, Out out, F function, T initial, Op op,
                             SIMT_THRUST_SITE) {
  return details::scan<true, false>(
      policy.me(), "thrust::transform_exclusive_scan", first, last, out, initial, op,
      [function](auto &from, size_t i) mutable { return function(from[i]); }, site);
}
template <class In, class Out, class F, class T, class Op>
Out transform_exclusive_scan(In first, In last, Out out, F function, T initial, Op op, SIMT_THRUST_SITE) {
  return transform_exclusive_scan(details::policy_for<In, Out>(), first, last, out, function, initial, op, site);
}

}  // namespace thrust

#endif /* SIMT_THRUST_TRANSFORM_SCAN */
