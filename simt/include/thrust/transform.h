/* thrust/transform.h - out[i] = a function of in[i], or of two elements. -*- c++ -*- */
#ifndef SIMT_THRUST_TRANSFORM
#define SIMT_THRUST_TRANSFORM

#include "thrust/simt_run.h"

namespace thrust {

template <class P, class In, class Out, class F>
Out transform(const details::Policy<P> &policy, In first, In last, Out out, F function, SIMT_THRUST_SITE) {
  size_t count = details::length(first, last);
  details::each(
      policy.me(), "thrust::transform", site, count,
      [function](size_t i, auto from, auto to) mutable { to[i] = function(from[i]); }, first, out);
  return out + (ptrdiff_t)count;
}
template <class In, class Out, class F>
Out transform(In first, In last, Out out, F function, SIMT_THRUST_SITE) {
  return transform(details::policy_for<In, Out>(), first, last, out, function, site);
}
template <class P, class In, class In2, class Out, class F>
Out transform(const details::Policy<P> &policy, In first, In last, In2 second, Out out, F function, SIMT_THRUST_SITE) {
  size_t count = details::length(first, last);
  details::each(
      policy.me(), "thrust::transform", site, count,
      [function](size_t i, auto a, auto b, auto to) mutable { to[i] = function(a[i], b[i]); }, first, second, out);
  return out + (ptrdiff_t)count;
}
template <class In, class In2, class Out, class F>
Out transform(In first, In last, In2 second, Out out, F function, SIMT_THRUST_SITE) {
  return transform(details::policy_for<In, In2, Out>(), first, last, second, out, function, site);
}
template <class P, class In, class Out, class F, class Predicate>
Out transform_if(const details::Policy<P> &policy, In first, In last, Out out, F function, Predicate wanted,
                 SIMT_THRUST_SITE) {
  size_t count = details::length(first, last);
  details::each(
      policy.me(), "thrust::transform_if", site, count,
      [function, wanted](size_t i, auto from, auto to) mutable {
        if (wanted(from[i])) to[i] = function(from[i]);
      },
      first, out);
  return out + (ptrdiff_t)count;
}
template <class In, class Out, class F, class Predicate>
Out transform_if(In first, In last, Out out, F function, Predicate wanted, SIMT_THRUST_SITE) {
  return transform_if(details::policy_for<In, Out>(), first, last, out, function, wanted, site);
}
template <class P, class In, class Stencil, class Out, class F, class Predicate>
Out transform_if(const details::Policy<P> &policy, In first, In last, Stencil stencil, Out out, F function,
                 Predicate wanted, SIMT_THRUST_SITE) {
  size_t count = details::length(first, last);
  details::each(
      policy.me(), "thrust::transform_if", site, count,
      [function, wanted](size_t i, auto from, auto mark, auto to) mutable {
        if (wanted(mark[i])) to[i] = function(from[i]);
      },
      first, stencil, out);
  return out + (ptrdiff_t)count;
}
template <class In, class Stencil, class Out, class F, class Predicate>
Out transform_if(In first, In last, Stencil stencil, Out out, F function, Predicate wanted, SIMT_THRUST_SITE) {
  return transform_if(details::policy_for<In, Stencil, Out>(), first, last, stencil, out, function, wanted, site);
}
template <class P, class In, class In2, class Stencil, class Out, class F, class Predicate>
Out transform_if(const details::Policy<P> &policy, In first, In last, In2 second, Stencil stencil, Out out, F function,
                 Predicate wanted, SIMT_THRUST_SITE) {
  size_t count = details::length(first, last);
  details::each(
      policy.me(), "thrust::transform_if", site, count,
      [function, wanted](size_t i, auto a, auto b, auto mark, auto to) mutable {
        if (wanted(mark[i])) to[i] = function(a[i], b[i]);
      },
      first, second, stencil, out);
  return out + (ptrdiff_t)count;
}
template <class In, class In2, class Stencil, class Out, class F, class Predicate>
Out transform_if(In first, In last, In2 second, Stencil stencil, Out out, F function, Predicate wanted,
                 SIMT_THRUST_SITE) {
  return transform_if(details::policy_for<In, In2, Stencil, Out>(), first, last, second, stencil, out, function, wanted,
                      site);
}

}  // namespace thrust

#endif /* SIMT_THRUST_TRANSFORM */
