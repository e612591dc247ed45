/* thrust/adjacent_difference.h - out[0] = in[0]; out[i] = in[i] - in[i - 1]. -*- c++ -*- */
#ifndef SIMT_THRUST_ADJACENT_DIFFERENCE
#define SIMT_THRUST_ADJACENT_DIFFERENCE

#include "thrust/functional.h"

namespace thrust {

template <class P, class In, class Out, class Op>
Out adjacent_difference(const details::Policy<P> &policy, In first, In last, Out out, Op op, SIMT_THRUST_SITE) {
  size_t count = details::length(first, last);
  if (count == 0) return out;

  details::compute<char>(
      policy.me(), "thrust::adjacent_difference", site,
      [=](auto from, auto to) mutable {
        details::value_of<In> before = from[0]; /* `to` may be `from` */
        to[0] = before;
        for (size_t i = 1; i < count; i++) {
          details::value_of<In> item = from[i];
          to[i] = op(item, before);
          before = item;
        }
        return 0;
      },
      first, out);
  return out + (ptrdiff_t)count;
}
template <class In, class Out, class Op>
Out adjacent_difference(In first, In last, Out out, Op op, SIMT_THRUST_SITE) {
  return adjacent_difference(details::policy_for<In, Out>(), first, last, out, op, site);
}
template <class P, class In, class Out>
Out adjacent_difference(const details::Policy<P> &policy, In first, In last, Out out, SIMT_THRUST_SITE) {
  return adjacent_difference(policy, first, last, out, minus<>(), site);
}
template <class In, class Out>
Out adjacent_difference(In first, In last, Out out, SIMT_THRUST_SITE) {
  return adjacent_difference(details::policy_for<In, Out>(), first, last, out, minus<>(), site);
}

}  // namespace thrust

#endif /* SIMT_THRUST_ADJACENT_DIFFERENCE */
