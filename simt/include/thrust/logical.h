/* thrust/logical.h - do all elements fulfil a condition, or any, or none? -*- c++ -*- */
#ifndef SIMT_THRUST_LOGICAL
#define SIMT_THRUST_LOGICAL

#include "thrust/find.h"

namespace thrust {

template <class P, class In, class Predicate>
bool any_of(const details::Policy<P> &policy, In first, In last, Predicate wanted, SIMT_THRUST_SITE) {
  return find_if(policy, first, last, wanted, site) != last;
}
template <class In, class Predicate>
bool any_of(In first, In last, Predicate wanted, SIMT_THRUST_SITE) {
  return any_of(details::policy_for<In>(), first, last, wanted, site);
}
template <class P, class In, class Predicate>
bool all_of(const details::Policy<P> &policy, In first, In last, Predicate wanted, SIMT_THRUST_SITE) {
  return find_if_not(policy, first, last, wanted, site) == last;
}
template <class In, class Predicate>
bool all_of(In first, In last, Predicate wanted, SIMT_THRUST_SITE) {
  return all_of(details::policy_for<In>(), first, last, wanted, site);
}
template <class P, class In, class Predicate>
bool none_of(const details::Policy<P> &policy, In first, In last, Predicate wanted, SIMT_THRUST_SITE) {
  return find_if(policy, first, last, wanted, site) == last;
}
template <class In, class Predicate>
bool none_of(In first, In last, Predicate wanted, SIMT_THRUST_SITE) {
  return none_of(details::policy_for<In>(), first, last, wanted, site);
}

}  // namespace thrust

#endif /* SIMT_THRUST_LOGICAL */
