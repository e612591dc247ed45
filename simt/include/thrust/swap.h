/* thrust/swap.h - exchanges two values, or two ranges. -*- c++ -*- */
#ifndef SIMT_THRUST_SWAP
#define SIMT_THRUST_SWAP

#include "thrust/simt_run.h"

namespace thrust {

/* An object: as a function it would be in the way of std::swap() wherever types of Thrust's meet it. */
static constexpr struct Swap {
  template <class T>
  void operator()(T &a, T &b) const {
    T old = a;
    a = b;
    b = old;
  }
} swap{};
template <class P, class In, class In2>
In2 swap_ranges(const details::Policy<P> &policy, In first, In last, In2 other, SIMT_THRUST_SITE) {
  size_t count = details::length(first, last);
  details::each(
      policy.me(), "thrust::swap_ranges", site, count,
      [](size_t i, auto x, auto y) {
        details::value_of<In> old = x[i];
        x[i] = y[i];
        y[i] = old;
      },
      first, other);
  return other + (ptrdiff_t)count;
}
template <class In, class In2>
In2 swap_ranges(In first, In last, In2 other, SIMT_THRUST_SITE) {
  return swap_ranges(details::policy_for<In, In2>(), first, last, other, site);
}

}  // namespace thrust

#endif /* SIMT_THRUST_SWAP */
