/* thrust/reverse.h - the elements from the last to the first. -*- c++ -*- */
#ifndef SIMT_THRUST_REVERSE
#define SIMT_THRUST_REVERSE

#include "thrust/simt_run.h"

namespace thrust {

template <class P, class In>
void reverse(const details::Policy<P> &policy, In first, In last, SIMT_THRUST_SITE) {
  size_t count = details::length(first, last);
  details::each(
      policy.me(), "thrust::reverse", site, count / 2,
      [count](size_t i, auto at) {
        details::value_of<In> a = at[i], b = at[count - 1 - i];
        at[i] = b;
        at[count - 1 - i] = a;
      },
      first);
}
template <class In>
void reverse(In first, In last, SIMT_THRUST_SITE) {
  return reverse(details::policy_for<In>(), first, last, site);
}
template <class P, class In, class Out>
Out reverse_copy(const details::Policy<P> &policy, In first, In last, Out out, SIMT_THRUST_SITE) {
  size_t count = details::length(first, last);
  details::each(
      policy.me(), "thrust::reverse_copy", site, count,
      [count](size_t i, auto from, auto to) { to[i] = from[count - 1 - i]; }, first, out);
  return out + (ptrdiff_t)count;
}
template <class In, class Out>
Out reverse_copy(In first, In last, Out out, SIMT_THRUST_SITE) {
  return reverse_copy(details::policy_for<In, Out>(), first, last, out, site);
}

}  // namespace thrust

#endif /* SIMT_THRUST_REVERSE */
