/* thrust/unique.h - the first of each run of equal elements. -*- c++ -*- */
#ifndef SIMT_THRUST_UNIQUE
#define SIMT_THRUST_UNIQUE

#include "thrust/functional.h"
#include "thrust/pair.h"

namespace thrust {

/* In place, too: what stands before an element is overwritten by itself at most. */

template <class P, class In, class Out, class Equal>
Out unique_copy(const details::Policy<P> &policy, In first, In last, Out out, Equal same, SIMT_THRUST_SITE) {
  size_t count = details::length(first, last);

  size_t found = details::compute<size_t>(
      policy.me(), "thrust::unique_copy", site,
      [=](auto from, auto to) mutable {
        size_t n = 0;
        for (size_t i = 0; i < count; i++) {
          details::value_of<In> item = from[i];
          if (i == 0 || !same(from[i - 1], item)) to[n++] = item;
        }
        return n;
      },
      first, out);
  return out + (ptrdiff_t)found;
}
template <class In, class Out, class Equal>
Out unique_copy(In first, In last, Out out, Equal same, SIMT_THRUST_SITE) {
  return unique_copy(details::policy_for<In, Out>(), first, last, out, same, site);
}
template <class P, class In, class Out>
Out unique_copy(const details::Policy<P> &policy, In first, In last, Out out, SIMT_THRUST_SITE) {
  return unique_copy(policy, first, last, out, equal_to<>(), site);
}
template <class In, class Out>
Out unique_copy(In first, In last, Out out, SIMT_THRUST_SITE) {
  return unique_copy(details::policy_for<In, Out>(), first, last, out, equal_to<>(), site);
}
template <class P, class In, class Equal>
In unique(const details::Policy<P> &policy, In first, In last, Equal same, SIMT_THRUST_SITE) {
  return unique_copy(policy, first, last, first, same, site);
}
template <class In, class Equal>
In unique(In first, In last, Equal same, SIMT_THRUST_SITE) {
  return unique(details::policy_for<In>(), first, last, same, site);
}
template <class P, class In>
In unique(const details::Policy<P> &policy, In first, In last, SIMT_THRUST_SITE) {
  return unique(policy, first, last, equal_to<>(), site);
}
template <class In>
In unique(In first, In last, SIMT_THRUST_SITE) {
  return unique(details::policy_for<In>(), first, last, equal_to<>(), site);
}
template <class P, class Keys, class Values, class KeysOut, class ValuesOut, class Equal>
pair<KeysOut, ValuesOut> unique_by_key_copy(const details::Policy<P> &policy, Keys first, Keys last, Values values,
                                            KeysOut keys_out, ValuesOut values_out, Equal same, SIMT_THRUST_SITE) {
  size_t count = details::length(first, last);

  ptrdiff_t found = (ptrdiff_t)details::compute<size_t>(
      policy.me(), "thrust::unique_by_key_copy", site,
      [=](auto key, auto value, auto key_out, auto value_out) mutable {
        size_t n = 0;
        for (size_t i = 0; i < count; i++) {
          details::value_of<Keys> item = key[i];
          if (i == 0 || !same(key[i - 1], item)) {
            key_out[n] = item;
            value_out[n++] = value[i];
          }
        }
        return n;
      },
      first, values, keys_out, values_out);
  return {keys_out + found, values_out + found};
}
template <class Keys, class Values, class KeysOut, class ValuesOut, class Equal>
pair<KeysOut, ValuesOut> unique_by_key_copy(Keys first, Keys last, Values values, KeysOut keys_out,
                                            ValuesOut values_out, Equal same, SIMT_THRUST_SITE) {
  return unique_by_key_copy(details::policy_for<Keys, Values, KeysOut, ValuesOut>(), first, last, values, keys_out,
                            values_out, same, site);
}
template <class P, class Keys, class Values, class KeysOut, class ValuesOut>
pair<KeysOut, ValuesOut> unique_by_key_copy(const details::Policy<P> &policy, Keys first, Keys last, Values values,
                                            KeysOut keys_out, ValuesOut values_out, SIMT_THRUST_SITE) {
  return unique_by_key_copy(policy, first, last, values, keys_out, values_out, equal_to<>(), site);
}
template <class Keys, class Values, class KeysOut, class ValuesOut>
pair<KeysOut, ValuesOut> unique_by_key_copy(Keys first, Keys last, Values values, KeysOut keys_out,
                                            ValuesOut values_out, SIMT_THRUST_SITE) {
  return unique_by_key_copy(details::policy_for<Keys, Values, KeysOut, ValuesOut>(), first, last, values, keys_out,
                            values_out, equal_to<>(), site);
}
template <class P, class Keys, class Values, class Equal>
pair<Keys, Values> unique_by_key(const details::Policy<P> &policy, Keys first, Keys last, Values values, Equal same,
                                 SIMT_THRUST_SITE) {
  return unique_by_key_copy(policy, first, last, values, first, values, same, site);
}
template <class Keys, class Values, class Equal>
pair<Keys, Values> unique_by_key(Keys first, Keys last, Values values, Equal same, SIMT_THRUST_SITE) {
  return unique_by_key(details::policy_for<Keys, Values>(), first, last, values, same, site);
}
template <class P, class Keys, class Values>
pair<Keys, Values> unique_by_key(const details::Policy<P> &policy, Keys first, Keys last, Values values,
                                 SIMT_THRUST_SITE) {
  return unique_by_key(policy, first, last, values, equal_to<>(), site);
}
template <class Keys, class Values>
pair<Keys, Values> unique_by_key(Keys first, Keys last, Values values, SIMT_THRUST_SITE) {
  return unique_by_key(details::policy_for<Keys, Values>(), first, last, values, equal_to<>(), site);
}
template <class P, class In, class Equal>
ptrdiff_t unique_count(const details::Policy<P> &policy, In first, In last, Equal same, SIMT_THRUST_SITE) {
  size_t count = details::length(first, last);
  return details::compute<ptrdiff_t>(
      policy.me(), "thrust::unique_count", site,
      [=](auto from) mutable {
        ptrdiff_t n = 0;
        for (size_t i = 0; i < count; i++) n += i == 0 || !same(from[i - 1], from[i]) ? 1 : 0;
        return n;
      },
      first);
}
template <class In, class Equal>
ptrdiff_t unique_count(In first, In last, Equal same, SIMT_THRUST_SITE) {
  return unique_count(details::policy_for<In>(), first, last, same, site);
}
template <class P, class In>
ptrdiff_t unique_count(const details::Policy<P> &policy, In first, In last, SIMT_THRUST_SITE) {
  return unique_count(policy, first, last, equal_to<>(), site);
}
template <class In>
ptrdiff_t unique_count(In first, In last, SIMT_THRUST_SITE) {
  return unique_count(details::policy_for<In>(), first, last, equal_to<>(), site);
}

}  // namespace thrust

#endif /* SIMT_THRUST_UNIQUE */
