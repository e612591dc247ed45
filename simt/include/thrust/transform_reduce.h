/* thrust/transform_reduce.h - the reduction of a function of each element. -*- c++ -*- */
#ifndef SIMT_THRUST_TRANSFORM_REDUCE
#define SIMT_THRUST_TRANSFORM_REDUCE

#include "thrust/simt_common.h"

namespace thrust {

template <class P, class In, class F, class T, class Op>
T transform_reduce(const details::Policy<P> &policy, In first, In last, F function, T initial, Op op,
                   SIMT_THRUST_SITE) {
  size_t count = details::length(first, last);
  return details::compute<T>(
      policy.me(), "thrust::transform_reduce", site,
      [=](auto from) mutable {
        return details::fold(details::indexed([&](size_t i) { return (T)function(from[i]); }), count, initial, op);
      },
      first);
}
template <class In, class F, class T, class Op>
T transform_reduce(In first, In last, F function, T initial, Op op, SIMT_THRUST_SITE) {
  return transform_reduce(details::policy_for<In>(), first, last, function, initial, op, site);
}

}  // namespace thrust

#endif /* SIMT_THRUST_TRANSFORM_REDUCE */
