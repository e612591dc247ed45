/* thrust/replace.h - other values for some elements. -*- c++ -*- */
#ifndef SIMT_THRUST_REPLACE
#define SIMT_THRUST_REPLACE

#include "thrust/simt_run.h"

namespace thrust {

template <class P, class In, class Predicate, class T>
void replace_if(const details::Policy<P> &policy, In first, In last, Predicate unwanted, const T &value,
                SIMT_THRUST_SITE) {
  T copy = value;
  details::each(
      policy.me(), "thrust::replace_if", site, details::length(first, last),
      [unwanted, copy](size_t i, auto at) mutable {
        if (unwanted(at[i])) at[i] = copy;
      },
      first);
}
template <class In, class Predicate, class T>
void replace_if(In first, In last, Predicate unwanted, const T &value, SIMT_THRUST_SITE) {
  return replace_if(details::policy_for<In>(), first, last, unwanted, value, site);
}
template <class P, class In, class Stencil, class Predicate, class T>
void replace_if(const details::Policy<P> &policy, In first, In last, Stencil stencil, Predicate unwanted,
                const T &value, SIMT_THRUST_SITE) {
  T copy = value;
  details::each(
      policy.me(), "thrust::replace_if", site, details::length(first, last),
      [unwanted, copy](size_t i, auto at, auto mark) mutable {
        if (unwanted(mark[i])) at[i] = copy;
      },
      first, stencil);
}
template <class In, class Stencil, class Predicate, class T>
void replace_if(In first, In last, Stencil stencil, Predicate unwanted, const T &value, SIMT_THRUST_SITE) {
  return replace_if(details::policy_for<In, Stencil>(), first, last, stencil, unwanted, value, site);
}
template <class P, class In, class Out, class Predicate, class T>
Out replace_copy_if(const details::Policy<P> &policy, In first, In last, Out out, Predicate unwanted, const T &value,
                    SIMT_THRUST_SITE) {
  T copy = value;
  size_t count = details::length(first, last);
  details::each(
      policy.me(), "thrust::replace_copy_if", site, count,
      [unwanted, copy](size_t i, auto from, auto to) mutable {
        if (unwanted(from[i]))
          to[i] = copy;
        else
          to[i] = from[i];
      },
      first, out);
  return out + (ptrdiff_t)count;
}
template <class In, class Out, class Predicate, class T>
Out replace_copy_if(In first, In last, Out out, Predicate unwanted, const T &value, SIMT_THRUST_SITE) {
  return replace_copy_if(details::policy_for<In, Out>(), first, last, out, unwanted, value, site);
}
template <class P, class In, class T>
void replace(const details::Policy<P> &policy, In first, In last, const T &old_value, const T &value,
             SIMT_THRUST_SITE) {
  T old = old_value;
  replace_if(
      policy, first, last, [old](const auto &item) { return item == old; }, value, site);
}
template <class In, class T>
void replace(In first, In last, const T &old_value, const T &value, SIMT_THRUST_SITE) {
  return replace(details::policy_for<In>(), first, last, old_value, value, site);
}
template <class P, class In, class Out, class T>
Out replace_copy(const details::Policy<P> &policy, In first, In last, Out out, const T &old_value, const T &value,
                 SIMT_THRUST_SITE) {
  T old = old_value;
  return replace_copy_if(
      policy, first, last, out, [old](const auto &item) { return item == old; }, value, site);
}
template <class In, class Out, class T>
Out replace_copy(In first, In last, Out out, const T &old_value, const T &value, SIMT_THRUST_SITE) {
  return replace_copy(details::policy_for<In, Out>(), first, last, out, old_value, value, site);
}

}  // namespace thrust

#endif /* SIMT_THRUST_REPLACE */
