/* thrust/mismatch.h - the first place where two ranges differ. -*- c++ -*- */
#ifndef SIMT_THRUST_MISMATCH
#define SIMT_THRUST_MISMATCH

#include "thrust/functional.h"
#include "thrust/pair.h"

namespace thrust {

template <class P, class In, class In2, class Equal>
pair<In, In2> mismatch(const details::Policy<P> &policy, In first, In last, In2 second, Equal equal, SIMT_THRUST_SITE) {
  size_t count = details::length(first, last);
  ptrdiff_t place = (ptrdiff_t)details::compute<size_t>(
      policy.me(), "thrust::mismatch", site,
      [=](auto a, auto b) mutable {
        size_t i = 0;
        while (i < count && equal(a[i], b[i])) i++;
        return i;
      },
      first, second);
  return {first + place, second + place};
}
template <class In, class In2, class Equal>
pair<In, In2> mismatch(In first, In last, In2 second, Equal equal, SIMT_THRUST_SITE) {
  return mismatch(details::policy_for<In, In2>(), first, last, second, equal, site);
}
template <class P, class In, class In2>
pair<In, In2> mismatch(const details::Policy<P> &policy, In first, In last, In2 second, SIMT_THRUST_SITE) {
  return mismatch(policy, first, last, second, equal_to<>(), site);
}
template <class In, class In2>
pair<In, In2> mismatch(In first, In last, In2 second, SIMT_THRUST_SITE) {
  return mismatch(details::policy_for<In, In2>(), first, last, second, equal_to<>(), site);
}

}  // namespace thrust

#endif /* SIMT_THRUST_MISMATCH */
