/* thrust/gather.h - out[i] = in[map[i]]. -*- c++ -*- */
#ifndef SIMT_THRUST_GATHER
#define SIMT_THRUST_GATHER

#include "thrust/simt_run.h"

namespace thrust {

template <class P, class Map, class In, class Out>
Out gather(const details::Policy<P> &policy, Map first, Map last, In in, Out out, SIMT_THRUST_SITE) {
  size_t count = details::length(first, last);
  details::each(
      policy.me(), "thrust::gather", site, count,
      [](size_t i, auto map, auto from, auto to) { to[i] = from[(ptrdiff_t)map[i]]; }, first, in, out);
  return out + (ptrdiff_t)count;
}
template <class Map, class In, class Out>
Out gather(Map first, Map last, In in, Out out, SIMT_THRUST_SITE) {
  return gather(details::policy_for<Map, In, Out>(), first, last, in, out, site);
}
template <class P, class Map, class Stencil, class In, class Out, class Predicate>
Out gather_if(const details::Policy<P> &policy, Map first, Map last, Stencil stencil, In in, Out out, Predicate wanted,
              SIMT_THRUST_SITE) {
  size_t count = details::length(first, last);
  details::each(
      policy.me(), "thrust::gather_if", site, count,
      [wanted](size_t i, auto map, auto mark, auto from, auto to) mutable {
        if (wanted(mark[i])) to[i] = from[(ptrdiff_t)map[i]];
      },
      first, stencil, in, out);
  return out + (ptrdiff_t)count;
}
template <class Map, class Stencil, class In, class Out, class Predicate>
Out gather_if(Map first, Map last, Stencil stencil, In in, Out out, Predicate wanted, SIMT_THRUST_SITE) {
  return gather_if(details::policy_for<Map, Stencil, In, Out>(), first, last, stencil, in, out, wanted, site);
}
template <class P, class Map, class Stencil, class In, class Out>
Out gather_if(const details::Policy<P> &policy, Map first, Map last, Stencil stencil, In in, Out out,
              SIMT_THRUST_SITE) {
  return gather_if(
      policy, first, last, stencil, in, out, [](const auto &mark) { return (bool)mark; }, site);
}
template <class Map, class Stencil, class In, class Out>
Out gather_if(Map first, Map last, Stencil stencil, In in, Out out, SIMT_THRUST_SITE) {
  return gather_if(
      details::policy_for<Map, Stencil, In, Out>(), first, last, stencil, in, out,
      [](const auto &mark) { return (bool)mark; }, site);
}

}  // namespace thrust

#endif /* SIMT_THRUST_GATHER */
