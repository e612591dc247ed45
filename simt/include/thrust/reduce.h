/* thrust/reduce.h - one value from many, and one for each run of equal keys. -*- c++ -*- */
#ifndef SIMT_THRUST_REDUCE
#define SIMT_THRUST_REDUCE

#include "thrust/functional.h"
#include "thrust/pair.h"

namespace thrust {

template <class P, class In, class T, class Op>
T reduce(const details::Policy<P> &policy, In first, In last, T initial, Op op, SIMT_THRUST_SITE) {
  size_t count = details::length(first, last);
  return details::compute<T>(
      policy.me(), "thrust::reduce", site, [=](auto from) { return details::fold(from, count, initial, op); }, first);
}
template <class In, class T, class Op>
T reduce(In first, In last, T initial, Op op, SIMT_THRUST_SITE) {
  return reduce(details::policy_for<In>(), first, last, initial, op, site);
}
template <class P, class In, class T>
T reduce(const details::Policy<P> &policy, In first, In last, T initial, SIMT_THRUST_SITE) {
  return reduce(policy, first, last, initial, plus<T>(), site);
}
template <class In, class T>
T reduce(In first, In last, T initial, SIMT_THRUST_SITE) {
  return reduce(details::policy_for<In>(), first, last, initial, plus<T>(), site);
}
template <class P, class In>
details::value_of<In> reduce(const details::Policy<P> &policy, In first, In last, SIMT_THRUST_SITE) {
  return reduce(policy, first, last, details::value_of<In>(), plus<details::value_of<In>>(), site);
}
template <class In>
details::value_of<In> reduce(In first, In last, SIMT_THRUST_SITE) {
  return reduce(details::policy_for<In>(), first, last, details::value_of<In>(), plus<details::value_of<In>>(), site);
}
template <class P, class Keys, class Values, class KeysOut, class ValuesOut, class Equal, class Op>
pair<KeysOut, ValuesOut> reduce_by_key(const details::Policy<P> &policy, Keys first, Keys last, Values values,
                                       KeysOut keys_out, ValuesOut values_out, Equal equal, Op op, SIMT_THRUST_SITE) {
  size_t count = details::length(first, last);

  ptrdiff_t found = (ptrdiff_t)details::compute<size_t>(
      policy.me(), "thrust::reduce_by_key", site,
      [=](auto key, auto value, auto key_out, auto value_out) mutable {
        size_t n = 0;
        for (size_t i = 0; i < count; n++) {
          details::value_of<Keys> now = key[i];
          details::value_of<Values> sum = value[i];
          for (i++; i < count && equal(now, key[i]); i++) sum = op(sum, value[i]);
          key_out[n] = now;
          value_out[n] = sum;
        }
        return n;
      },
      first, values, keys_out, values_out);
  return {keys_out + found, values_out + found};
}
template <class Keys, class Values, class KeysOut, class ValuesOut, class Equal, class Op>
pair<KeysOut, ValuesOut> reduce_by_key(Keys first, Keys last, Values values, KeysOut keys_out, ValuesOut values_out,
                                       Equal equal, Op op, SIMT_THRUST_SITE) {
  return reduce_by_key(details::policy_for<Keys, Values, KeysOut, ValuesOut>(), first, last, values, keys_out,
                       values_out, equal, op, site);
}
template <class P, class Keys, class Values, class KeysOut, class ValuesOut, class Equal>
pair<KeysOut, ValuesOut> reduce_by_key(const details::Policy<P> &policy, Keys first, Keys last, Values values,
                                       KeysOut keys_out, ValuesOut values_out, Equal equal, SIMT_THRUST_SITE) {
  return reduce_by_key(policy, first, last, values, keys_out, values_out, equal, plus<>(), site);
}
template <class Keys, class Values, class KeysOut, class ValuesOut, class Equal>
pair<KeysOut, ValuesOut> reduce_by_key(Keys first, Keys last, Values values, KeysOut keys_out, ValuesOut values_out,
                                       Equal equal, SIMT_THRUST_SITE) {
  return reduce_by_key(details::policy_for<Keys, Values, KeysOut, ValuesOut>(), first, last, values, keys_out,
                       values_out, equal, plus<>(), site);
}
template <class P, class Keys, class Values, class KeysOut, class ValuesOut>
pair<KeysOut, ValuesOut> reduce_by_key(const details::Policy<P> &policy, Keys first, Keys last, Values values,
                                       KeysOut keys_out, ValuesOut values_out, SIMT_THRUST_SITE) {
  return reduce_by_key(policy, first, last, values, keys_out, values_out, equal_to<>(), plus<>(), site);
}
template <class Keys, class Values, class KeysOut, class ValuesOut>
pair<KeysOut, ValuesOut> reduce_by_key(Keys first, Keys last, Values values, KeysOut keys_out, ValuesOut values_out,
                                       SIMT_THRUST_SITE) {
  return reduce_by_key(details::policy_for<Keys, Values, KeysOut, ValuesOut>(), first, last, values, keys_out,
                       values_out, equal_to<>(), plus<>(), site);
}

}  // namespace thrust

#endif /* SIMT_THRUST_REDUCE */
