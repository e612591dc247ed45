/* thrust/extrema.h - the smallest and the largest element; of equal ones the first. -*- c++ -*- */
#ifndef SIMT_THRUST_EXTREMA
#define SIMT_THRUST_EXTREMA

#include "thrust/functional.h"
#include "thrust/pair.h"

namespace thrust {

template <class T, class Less>
const T &min(const T &a, const T &b, Less less) {
  return less(b, a) ? b : a;
}
template <class T>
const T &min(const T &a, const T &b) {
  return b < a ? b : a;
}
template <class T, class Less>
const T &max(const T &a, const T &b, Less less) {
  return less(a, b) ? b : a;
}
template <class T>
const T &max(const T &a, const T &b) {
  return a < b ? b : a;
}
template <class P, class In, class Less>
In min_element(const details::Policy<P> &policy, In first, In last, Less less, SIMT_THRUST_SITE) {
  size_t count = details::length(first, last);
  return first + (ptrdiff_t)details::compute<size_t>(
                     policy.me(), "thrust::min_element", site,
                     [=](auto from) mutable {
                       size_t best = 0;
                       for (size_t i = 1; i < count; i++)
                         if (less(from[i], from[best])) best = i;
                       return best;
                     },
                     first);
}
template <class In, class Less>
In min_element(In first, In last, Less less, SIMT_THRUST_SITE) {
  return min_element(details::policy_for<In>(), first, last, less, site);
}
template <class P, class In>
In min_element(const details::Policy<P> &policy, In first, In last, SIMT_THRUST_SITE) {
  return min_element(policy, first, last, less<>(), site);
}
template <class In>
In min_element(In first, In last, SIMT_THRUST_SITE) {
  return min_element(details::policy_for<In>(), first, last, less<>(), site);
}
template <class P, class In, class Less>
In max_element(const details::Policy<P> &policy, In first, In last, Less less, SIMT_THRUST_SITE) {
  size_t count = details::length(first, last);
  return first + (ptrdiff_t)details::compute<size_t>(
                     policy.me(), "thrust::max_element", site,
                     [=](auto from) mutable {
                       size_t best = 0;
                       for (size_t i = 1; i < count; i++)
                         if (less(from[best], from[i])) best = i;
                       return best;
                     },
                     first);
}
template <class In, class Less>
In max_element(In first, In last, Less less, SIMT_THRUST_SITE) {
  return max_element(details::policy_for<In>(), first, last, less, site);
}
template <class P, class In>
In max_element(const details::Policy<P> &policy, In first, In last, SIMT_THRUST_SITE) {
  return max_element(policy, first, last, less<>(), site);
}
template <class In>
In max_element(In first, In last, SIMT_THRUST_SITE) {
  return max_element(details::policy_for<In>(), first, last, less<>(), site);
}
template <class P, class In, class Less>
pair<In, In> minmax_element(const details::Policy<P> &policy, In first, In last, Less less, SIMT_THRUST_SITE) {
  return {min_element(policy, first, last, less, site), max_element(policy, first, last, less, site)};
}
template <class In, class Less>
pair<In, In> minmax_element(In first, In last, Less less, SIMT_THRUST_SITE) {
  return minmax_element(details::policy_for<In>(), first, last, less, site);
}
template <class P, class In>
pair<In, In> minmax_element(const details::Policy<P> &policy, In first, In last, SIMT_THRUST_SITE) {
  return minmax_element(policy, first, last, less<>(), site);
}
template <class In>
pair<In, In> minmax_element(In first, In last, SIMT_THRUST_SITE) {
  return minmax_element(details::policy_for<In>(), first, last, less<>(), site);
}

}  // namespace thrust

#endif /* SIMT_THRUST_EXTREMA */
