/* thrust/tabulate.h - out[i] = function(i). -*- c++ -*- */
#ifndef SIMT_THRUST_TABULATE
#define SIMT_THRUST_TABULATE

#include "thrust/simt_run.h"

namespace thrust {

template <class P, class Out, class F>
void tabulate(const details::Policy<P> &policy, Out first, Out last, F function, SIMT_THRUST_SITE) {
  details::each(
      policy.me(), "thrust::tabulate", site, details::length(first, last),
      [function](size_t i, auto to) mutable { to[i] = function((ptrdiff_t)i); }, first);
}
template <class Out, class F>
void tabulate(Out first, Out last, F function, SIMT_THRUST_SITE) {
  return tabulate(details::policy_for<Out>(), first, last, function, site);
}

}  // namespace thrust

#endif /* SIMT_THRUST_TABULATE */
