/* thrust/sequence.h - initial, initial + step, initial + 2 * step ... -*- c++ -*- */
#ifndef SIMT_THRUST_SEQUENCE
#define SIMT_THRUST_SEQUENCE

#include "thrust/simt_run.h"

namespace thrust {

template <class P, class Out, class T>
void sequence(const details::Policy<P> &policy, Out first, Out last, T initial, T step, SIMT_THRUST_SITE) {
  typedef details::value_of<Out> Value;
  details::each(
      policy.me(), "thrust::sequence", site, details::length(first, last),
      [initial, step](size_t i, auto to) { to[i] = (Value)(initial + step * (T)i); }, first);
}
template <class Out, class T>
void sequence(Out first, Out last, T initial, T step, SIMT_THRUST_SITE) {
  return sequence(details::policy_for<Out>(), first, last, initial, step, site);
}
template <class P, class Out, class T>
void sequence(const details::Policy<P> &policy, Out first, Out last, T initial, SIMT_THRUST_SITE) {
  return sequence(policy, first, last, initial, (T)1, site);
}
template <class Out, class T>
void sequence(Out first, Out last, T initial, SIMT_THRUST_SITE) {
  return sequence(details::policy_for<Out>(), first, last, initial, (T)1, site);
}
template <class P, class Out>
void sequence(const details::Policy<P> &policy, Out first, Out last, SIMT_THRUST_SITE) {
  return sequence(policy, first, last, details::value_of<Out>(0), details::value_of<Out>(1), site);
}
template <class Out>
void sequence(Out first, Out last, SIMT_THRUST_SITE) {
  return sequence(details::policy_for<Out>(), first, last, details::value_of<Out>(0), details::value_of<Out>(1), site);
}

}  // namespace thrust

#endif /* SIMT_THRUST_SEQUENCE */
