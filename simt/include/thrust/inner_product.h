/* thrust/inner_product.h - the sum of products, or other operations in their place. -*- c++ -*- */
#ifndef SIMT_THRUST_INNER_PRODUCT
#define SIMT_THRUST_INNER_PRODUCT

#include "thrust/functional.h"

namespace thrust {

template <class P, class In, class In2, class T, class Op, class Op2>
T inner_product(const details::Policy<P> &policy, In first, In last, In2 second, T initial, Op op, Op2 both,
                SIMT_THRUST_SITE) {
  size_t count = details::length(first, last);
  return details::compute<T>(
      policy.me(), "thrust::inner_product", site,
      [=](auto a, auto b) mutable {
        return details::fold(details::indexed([&](size_t i) { return (T)both(a[i], b[i]); }), count, initial, op);
      },
      first, second);
}
template <class In, class In2, class T, class Op, class Op2>
T inner_product(In first, In last, In2 second, T initial, Op op, Op2 both, SIMT_THRUST_SITE) {
  return inner_product(details::policy_for<In, In2>(), first, last, second, initial, op, both, site);
}
template <class P, class In, class In2, class T>
T inner_product(const details::Policy<P> &policy, In first, In last, In2 second, T initial, SIMT_THRUST_SITE) {
  return inner_product(policy, first, last, second, initial, plus<T>(), multiplies<T>(), site);
}
template <class In, class In2, class T>
T inner_product(In first, In last, In2 second, T initial, SIMT_THRUST_SITE) {
  return inner_product(details::policy_for<In, In2>(), first, last, second, initial, plus<T>(), multiplies<T>(), site);
}

}  // namespace thrust

#endif /* SIMT_THRUST_INNER_PRODUCT */
