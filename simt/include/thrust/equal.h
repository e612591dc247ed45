/* thrust/equal.h - are two ranges equal? -*- c++ -*- */
#ifndef SIMT_THRUST_EQUAL
#define SIMT_THRUST_EQUAL

#include "thrust/mismatch.h"

namespace thrust {

template <class P, class In, class In2, class Equal>
bool equal(const details::Policy<P> &policy, In first, In last, In2 second, Equal same, SIMT_THRUST_SITE) {
  return mismatch(policy, first, last, second, same, site).first == last;
}
template <class In, class In2, class Equal>
bool equal(In first, In last, In2 second, Equal same, SIMT_THRUST_SITE) {
  return equal(details::policy_for<In, In2>(), first, last, second, same, site);
}
template <class P, class In, class In2>
bool equal(const details::Policy<P> &policy, In first, In last, In2 second, SIMT_THRUST_SITE) {
  return equal(policy, first, last, second, equal_to<>(), site);
}
template <class In, class In2>
bool equal(In first, In last, In2 second, SIMT_THRUST_SITE) {
  return equal(details::policy_for<In, In2>(), first, last, second, equal_to<>(), site);
}

}  // namespace thrust

#endif /* SIMT_THRUST_EQUAL */
