/* thrust/remove.h - the elements that stay, in their order; the new end is given. -*- c++ -*- */
#ifndef SIMT_THRUST_REMOVE
#define SIMT_THRUST_REMOVE

#include "thrust/copy.h"

namespace thrust {

template <class P, class In, class Out, class Predicate>
Out remove_copy_if(const details::Policy<P> &policy, In first, In last, Out out, Predicate wanted, SIMT_THRUST_SITE) {
  size_t count = details::length(first, last);
  size_t found = details::compute<size_t>(
      policy.me(), "thrust::remove_copy_if", site,
      [wanted, count](auto from, auto to) mutable {
        size_t n = 0;
        for (size_t i = 0; i < count; i++) {
          details::value_of<In> item = from[i];
          if (!wanted(item)) to[n++] = item;
        }
        return n;
      },
      first, out);
  return out + (ptrdiff_t)found;
}
template <class In, class Out, class Predicate>
Out remove_copy_if(In first, In last, Out out, Predicate wanted, SIMT_THRUST_SITE) {
  return remove_copy_if(details::policy_for<In, Out>(), first, last, out, wanted, site);
}
template <class P, class In, class Stencil, class Out, class Predicate>
Out remove_copy_if(const details::Policy<P> &policy, In first, In last, Stencil stencil, Out out, Predicate wanted,
                   SIMT_THRUST_SITE) {
  size_t count = details::length(first, last);
  size_t found = details::compute<size_t>(
      policy.me(), "thrust::remove_copy_if", site,
      [wanted, count](auto from, auto mark, auto to) mutable {
        size_t n = 0;
        for (size_t i = 0; i < count; i++) {
          details::value_of<In> item = from[i];
          if (!wanted(mark[i])) to[n++] = item;
        }
        return n;
      },
      first, stencil, out);
  return out + (ptrdiff_t)found;
}
template <class In, class Stencil, class Out, class Predicate>
Out remove_copy_if(In first, In last, Stencil stencil, Out out, Predicate wanted, SIMT_THRUST_SITE) {
  return remove_copy_if(details::policy_for<In, Stencil, Out>(), first, last, stencil, out, wanted, site);
}
template <class P, class In, class Predicate>
In remove_if(const details::Policy<P> &policy, In first, In last, Predicate unwanted, SIMT_THRUST_SITE) {
  return remove_copy_if(policy, first, last, first, unwanted, site);
}
template <class In, class Predicate>
In remove_if(In first, In last, Predicate unwanted, SIMT_THRUST_SITE) {
  return remove_if(details::policy_for<In>(), first, last, unwanted, site);
}
template <class P, class In, class Stencil, class Predicate>
In remove_if(const details::Policy<P> &policy, In first, In last, Stencil stencil, Predicate unwanted,
             SIMT_THRUST_SITE) {
  return remove_copy_if(policy, first, last, stencil, first, unwanted, site);
}
template <class In, class Stencil, class Predicate>
In remove_if(In first, In last, Stencil stencil, Predicate unwanted, SIMT_THRUST_SITE) {
  return remove_if(details::policy_for<In, Stencil>(), first, last, stencil, unwanted, site);
}
template <class P, class In, class Out, class T>
Out remove_copy(const details::Policy<P> &policy, In first, In last, Out out, const T &value, SIMT_THRUST_SITE) {
  T other = value;
  return remove_copy_if(
      policy, first, last, out, [other](const auto &item) { return item == other; }, site);
}
template <class In, class Out, class T>
Out remove_copy(In first, In last, Out out, const T &value, SIMT_THRUST_SITE) {
  return remove_copy(details::policy_for<In, Out>(), first, last, out, value, site);
}
template <class P, class In, class T>
In remove(const details::Policy<P> &policy, In first, In last, const T &value, SIMT_THRUST_SITE) {
  return remove_copy(policy, first, last, first, value, site);
}
template <class In, class T>
In remove(In first, In last, const T &value, SIMT_THRUST_SITE) {
  return remove(details::policy_for<In>(), first, last, value, site);
}

}  // namespace thrust

#endif /* SIMT_THRUST_REMOVE */
