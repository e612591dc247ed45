/* thrust/binary_search.h - where values belong in sorted ranges. -*- c++ -*- */
#ifndef SIMT_THRUST_BINARY_SEARCH
#define SIMT_THRUST_BINARY_SEARCH

#include "thrust/functional.h"
#include "thrust/pair.h"

namespace thrust {

namespace details {
/* The first place in x[0 .. count), sorted, that is not before (upper: that is behind) the value. */
template <bool upper, class In, class T, class Less>
size_t search(In x, size_t count, const T &value, Less &less) {
  size_t low = 0;
  while (count > 0) {
    size_t half = count / 2;
    if (upper ? !less(value, x[low + half]) : less(x[low + half], value)) {
      low += half + 1;
      count -= half + 1;
    } else {
      count = half;
    }
  }
  return low;
}
template <class In, class T, class Less>
bool is_there(In x, size_t count, const T &value, Less &less) {
  size_t i = search<false>(x, count, value, less);
  return i < count && !less(value, x[i]);
}
typedef less<> Less;
}  // namespace details

template <class P, class In, class T, class Less>
In lower_bound(const details::Policy<P> &policy, In first, In last, const T &value, Less less, SIMT_THRUST_SITE) {
  size_t count = details::length(first, last);
  T wanted = value;
  return first + (ptrdiff_t)details::compute<size_t>(
                     policy.me(), "thrust::lower_bound", site,
                     [=](auto x) mutable { return details::search<false>(x, count, wanted, less); }, first);
}
template <class In, class T, class Less>
In lower_bound(In first, In last, const T &value, Less less, SIMT_THRUST_SITE) {
  return lower_bound(details::policy_for<In>(), first, last, value, less, site);
}
template <class P, class In, class T>
In lower_bound(const details::Policy<P> &policy, In first, In last, const T &value, SIMT_THRUST_SITE) {
  return lower_bound(policy, first, last, value, details::Less(), site);
}
template <class In, class T>
In lower_bound(In first, In last, const T &value, SIMT_THRUST_SITE) {
  return lower_bound(details::policy_for<In>(), first, last, value, details::Less(), site);
}
template <class P, class In, class Values, class Out, class Less>
Out lower_bound(const details::Policy<P> &policy, In first, In last, Values values, Values values_last, Out out,
                Less less, SIMT_THRUST_SITE) {
  size_t count = details::length(first, last);
  size_t n = details::length(values, values_last);
  details::each(
      policy.me(), "thrust::lower_bound", site, n,
      [=](size_t i, auto x, auto v, auto to) mutable {
        details::value_of<Values> wanted = v[i];
        to[i] = details::search<false>(x, count, wanted, less);
      },
      first, values, out);
  return out + (ptrdiff_t)n;
}
template <class In, class Values, class Out, class Less>
Out lower_bound(In first, In last, Values values, Values values_last, Out out, Less less, SIMT_THRUST_SITE) {
  return lower_bound(details::policy_for<In, Values, Out>(), first, last, values, values_last, out, less, site);
}
template <class P, class In, class Values, class Out>
Out lower_bound(const details::Policy<P> &policy, In first, In last, Values values, Values values_last, Out out,
                SIMT_THRUST_SITE) {
  return lower_bound(policy, first, last, values, values_last, out, details::Less(), site);
}
template <class In, class Values, class Out>
Out lower_bound(In first, In last, Values values, Values values_last, Out out, SIMT_THRUST_SITE) {
  return lower_bound(details::policy_for<In, Values, Out>(), first, last, values, values_last, out, details::Less(),
                     site);
}
template <class P, class In, class T, class Less>
In upper_bound(const details::Policy<P> &policy, In first, In last, const T &value, Less less, SIMT_THRUST_SITE) {
  size_t count = details::length(first, last);
  T wanted = value;
  return first + (ptrdiff_t)details::compute<size_t>(
                     policy.me(), "thrust::upper_bound", site,
                     [=](auto x) mutable { return details::search<true>(x, count, wanted, less); }, first);
}
template <class In, class T, class Less>
In upper_bound(In first, In last, const T &value, Less less, SIMT_THRUST_SITE) {
  return upper_bound(details::policy_for<In>(), first, last, value, less, site);
}
template <class P, class In, class T>
In upper_bound(const details::Policy<P> &policy, In first, In last, const T &value, SIMT_THRUST_SITE) {
  return upper_bound(policy, first, last, value, details::Less(), site);
}
template <class In, class T>
In upper_bound(In first, In last, const T &value, SIMT_THRUST_SITE) {
  return upper_bound(details::policy_for<In>(), first, last, value, details::Less(), site);
}
template <class P, class In, class Values, class Out, class Less>
Out upper_bound(const details::Policy<P> &policy, In first, In last, Values values, Values values_last, Out out,
                Less less, SIMT_THRUST_SITE) {
  size_t count = details::length(first, last);
  size_t n = details::length(values, values_last);
  details::each(
      policy.me(), "thrust::upper_bound", site, n,
      [=](size_t i, auto x, auto v, auto to) mutable {
        details::value_of<Values> wanted = v[i];
        to[i] = details::search<true>(x, count, wanted, less);
      },
      first, values, out);
  return out + (ptrdiff_t)n;
}
template <class In, class Values, class Out, class Less>
Out upper_bound(In first, In last, Values values, Values values_last, Out out, Less less, SIMT_THRUST_SITE) {
  return upper_bound(details::policy_for<In, Values, Out>(), first, last, values, values_last, out, less, site);
}
template <class P, class In, class Values, class Out>
Out upper_bound(const details::Policy<P> &policy, In first, In last, Values values, Values values_last, Out out,
                SIMT_THRUST_SITE) {
  return upper_bound(policy, first, last, values, values_last, out, details::Less(), site);
}
template <class In, class Values, class Out>
Out upper_bound(In first, In last, Values values, Values values_last, Out out, SIMT_THRUST_SITE) {
  return upper_bound(details::policy_for<In, Values, Out>(), first, last, values, values_last, out, details::Less(),
                     site);
}
template <class P, class In, class T, class Less>
bool binary_search(const details::Policy<P> &policy, In first, In last, const T &value, Less less, SIMT_THRUST_SITE) {
  size_t count = details::length(first, last);
  T wanted = value;
  return details::compute<bool>(
      policy.me(), "thrust::binary_search", site,
      [=](auto x) mutable { return details::is_there(x, count, wanted, less); }, first);
}
template <class In, class T, class Less>
bool binary_search(In first, In last, const T &value, Less less, SIMT_THRUST_SITE) {
  return binary_search(details::policy_for<In>(), first, last, value, less, site);
}
template <class P, class In, class T>
bool binary_search(const details::Policy<P> &policy, In first, In last, const T &value, SIMT_THRUST_SITE) {
  return binary_search(policy, first, last, value, details::Less(), site);
}
template <class In, class T>
bool binary_search(In first, In last, const T &value, SIMT_THRUST_SITE) {
  return binary_search(details::policy_for<In>(), first, last, value, details::Less(), site);
}
template <class P, class In, class Values, class Out, class Less>
Out binary_search(const details::Policy<P> &policy, In first, In last, Values values, Values values_last, Out out,
                  Less less, SIMT_THRUST_SITE) {
  size_t count = details::length(first, last);
  size_t n = details::length(values, values_last);
  details::each(
      policy.me(), "thrust::binary_search", site, n,
      [=](size_t i, auto x, auto v, auto to) mutable {
        details::value_of<Values> wanted = v[i];
        to[i] = details::is_there(x, count, wanted, less);
      },
      first, values, out);
  return out + (ptrdiff_t)n;
}
template <class In, class Values, class Out, class Less>
Out binary_search(In first, In last, Values values, Values values_last, Out out, Less less, SIMT_THRUST_SITE) {
  return binary_search(details::policy_for<In, Values, Out>(), first, last, values, values_last, out, less, site);
}
template <class P, class In, class Values, class Out>
Out binary_search(const details::Policy<P> &policy, In first, In last, Values values, Values values_last, Out out,
                  SIMT_THRUST_SITE) {
  return binary_search(policy, first, last, values, values_last, out, details::Less(), site);
}
template <class In, class Values, class Out>
Out binary_search(In first, In last, Values values, Values values_last, Out out, SIMT_THRUST_SITE) {
  return binary_search(details::policy_for<In, Values, Out>(), first, last, values, values_last, out, details::Less(),
                       site);
}
template <class P, class In, class T, class Less>
pair<In, In> equal_range(const details::Policy<P> &policy, In first, In last, const T &value, Less less,
                         SIMT_THRUST_SITE) {
  return {lower_bound(policy, first, last, value, less, site), upper_bound(policy, first, last, value, less, site)};
}
template <class In, class T, class Less>
pair<In, In> equal_range(In first, In last, const T &value, Less less, SIMT_THRUST_SITE) {
  return equal_range(details::policy_for<In>(), first, last, value, less, site);
}
template <class P, class In, class T>
pair<In, In> equal_range(const details::Policy<P> &policy, In first, In last, const T &value, SIMT_THRUST_SITE) {
  return equal_range(policy, first, last, value, details::Less(), site);
}
template <class In, class T>
pair<In, In> equal_range(In first, In last, const T &value, SIMT_THRUST_SITE) {
  return equal_range(details::policy_for<In>(), first, last, value, details::Less(), site);
}

}  // namespace thrust

#endif /* SIMT_THRUST_BINARY_SEARCH */
