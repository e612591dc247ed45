/* thrust/copy.h - copies of all elements, also between host and device, and of those that are wanted. -*- c++ -*- */
#ifndef SIMT_THRUST_COPY
#define SIMT_THRUST_COPY

#include "thrust/simt_copy.h"

namespace thrust {

template <class P, class In, class Out>
Out copy(const details::Policy<P> &policy, In first, In last, Out out, SIMT_THRUST_SITE) {
  if constexpr (!P::on_device)
    return details::copy_here(first, last, out);
  else
    return details::copy_there(policy.me(), first, last, out, site);
}
template <class In, class Out>
Out copy(In first, In last, Out out, SIMT_THRUST_SITE) {
  return details::copy_range(first, last, out, site);
}
template <class P, class In, class Count, class Out>
Out copy_n(const details::Policy<P> &policy, In first, Count count, Out out, SIMT_THRUST_SITE) {
  return copy(policy, first, std::next(first, (ptrdiff_t)count), out, site);
}
template <class In, class Count, class Out>
Out copy_n(In first, Count count, Out out, SIMT_THRUST_SITE) {
  return copy(first, std::next(first, (ptrdiff_t)count), out, site);
}
template <class P, class In, class Out, class Predicate>
Out copy_if(const details::Policy<P> &policy, In first, In last, Out out, Predicate wanted, SIMT_THRUST_SITE) {
  size_t count = details::length(first, last);
  size_t found = details::compute<size_t>(
      policy.me(), "thrust::copy_if", site,
      [wanted, count](auto from, auto to) mutable {
        size_t n = 0;
        for (size_t i = 0; i < count; i++) {
          details::value_of<In> item = from[i];
          if (wanted(item)) to[n++] = item;
        }
        return n;
      },
      first, out);
  return out + (ptrdiff_t)found;
}
template <class In, class Out, class Predicate>
Out copy_if(In first, In last, Out out, Predicate wanted, SIMT_THRUST_SITE) {
  return copy_if(details::policy_for<In, Out>(), first, last, out, wanted, site);
}
template <class P, class In, class Stencil, class Out, class Predicate>
Out copy_if(const details::Policy<P> &policy, In first, In last, Stencil stencil, Out out, Predicate wanted,
            SIMT_THRUST_SITE) {
  size_t count = details::length(first, last);
  size_t found = details::compute<size_t>(
      policy.me(), "thrust::copy_if", site,
      [wanted, count](auto from, auto mark, auto to) mutable {
        size_t n = 0;
        for (size_t i = 0; i < count; i++) {
          details::value_of<In> item = from[i];
          if (wanted(mark[i])) to[n++] = item;
        }
        return n;
      },
      first, stencil, out);
  return out + (ptrdiff_t)found;
}
template <class In, class Stencil, class Out, class Predicate>
Out copy_if(In first, In last, Stencil stencil, Out out, Predicate wanted, SIMT_THRUST_SITE) {
  return copy_if(details::policy_for<In, Stencil, Out>(), first, last, stencil, out, wanted, site);
}

}  // namespace thrust

#endif /* SIMT_THRUST_COPY */
