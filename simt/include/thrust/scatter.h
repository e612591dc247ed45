/* thrust/scatter.h - out[map[i]] = in[i]. -*- c++ -*- */
#ifndef SIMT_THRUST_SCATTER
#define SIMT_THRUST_SCATTER

#include "thrust/simt_run.h"

namespace thrust {

template <class P, class In, class Map, class Out>
void scatter(const details::Policy<P> &policy, In first, In last, Map map, Out out, SIMT_THRUST_SITE) {
  details::each(
      policy.me(), "thrust::scatter", site, details::length(first, last),
      [](size_t i, auto from, auto at, auto to) { to[(ptrdiff_t)at[i]] = from[i]; }, first, map, out);
}
template <class In, class Map, class Out>
void scatter(In first, In last, Map map, Out out, SIMT_THRUST_SITE) {
  return scatter(details::policy_for<In, Map, Out>(), first, last, map, out, site);
}
template <class P, class In, class Map, class Stencil, class Out, class Predicate>
void scatter_if(const details::Policy<P> &policy, In first, In last, Map map, Stencil stencil, Out out,
                Predicate wanted, SIMT_THRUST_SITE) {
  details::each(
      policy.me(), "thrust::scatter_if", site, details::length(first, last),
      [wanted](size_t i, auto from, auto at, auto mark, auto to) mutable {
        if (wanted(mark[i])) to[(ptrdiff_t)at[i]] = from[i];
      },
      first, map, stencil, out);
}
template <class In, class Map, class Stencil, class Out, class Predicate>
void scatter_if(In first, In last, Map map, Stencil stencil, Out out, Predicate wanted, SIMT_THRUST_SITE) {
  return scatter_if(details::policy_for<In, Map, Stencil, Out>(), first, last, map, stencil, out, wanted, site);
}
template <class P, class In, class Map, class Stencil, class Out>
void scatter_if(const details::Policy<P> &policy, In first, In last, Map map, Stencil stencil, Out out,
                SIMT_THRUST_SITE) {
  return scatter_if(
      policy, first, last, map, stencil, out, [](const auto &mark) { return (bool)mark; }, site);
}
template <class In, class Map, class Stencil, class Out>
void scatter_if(In first, In last, Map map, Stencil stencil, Out out, SIMT_THRUST_SITE) {
  return scatter_if(
      details::policy_for<In, Map, Stencil, Out>(), first, last, map, stencil, out,
      [](const auto &mark) { return (bool)mark; }, site);
}

}  // namespace thrust

#endif /* SIMT_THRUST_SCATTER */
