/* thrust/scan.h - running sums, or other combinations. -*- c++ -*- */
#ifndef SIMT_THRUST_SCAN
#define SIMT_THRUST_SCAN

#include "thrust/functional.h"

namespace thrust {

namespace details {
/* Element i becomes the combination of the elements up to i, or before i; `out` may be `first`. value(in, i) is the
 * element that counts. */
template <bool has_initial, bool inclusive, class P, class In, class Out, class T, class Op, class Value>
Out scan(const P &policy, const char *name, In first, In last, Out out, T initial, Op op, Value value, Site site) {
  typedef std::decay_t<decltype(value(std::declval<Raw<In> &>(), 0))> Item;
  typedef std::decay_t<std::invoke_result_t<Op &, T, Item>> Sum;
  size_t count = length(first, last);
  compute<char>(
      policy, name, site,
      [=](auto from, auto to) mutable {
        Sum sum = (Sum)initial;
        for (size_t i = 0; i < count; i++) {
          Item item = value(from, i);
          if (!inclusive) to[i] = sum;
          sum = i == 0 && !has_initial ? (Sum)item : (Sum)op(sum, item);
          if (inclusive) to[i] = sum;
        }
        return 0;
      },
      first, out);
  return out + (ptrdiff_t)count;
}
template <bool inclusive, class P, class Keys, class In, class Out, class T, class Equal, class Op>
Out scan_by_key(const P &policy, const char *name, Keys first, Keys last, In in, Out out, T initial, Equal equal, Op op,
                Site site) {
  typedef value_of<In> Item;
  typedef std::decay_t<std::invoke_result_t<Op &, T, Item>> Sum;
  size_t count = length(first, last);
  compute<char>(
      policy, name, site,
      [=](auto key, auto from, auto to) mutable {
        Sum sum = (Sum)initial;
        for (size_t i = 0; i < count; i++) {
          Item item = from[i];
          bool begins = i == 0 || !equal(key[i - 1], key[i]);
          if (begins) sum = (Sum)initial;
          if (!inclusive) to[i] = sum;
          sum = begins && inclusive ? (Sum)item : (Sum)op(sum, item);
          if (inclusive) to[i] = sum;
        }
        return 0;
      },
      first, in, out);
  return out + (ptrdiff_t)count;
}
struct Itself {
  template <class In>
  auto operator()(In &in, size_t i) const {
    return (value_of<In>)in[i];
  }
};
}  // namespace details

template <class P, class In, class Out, class Op>
Out inclusive_scan(const details::Policy<P> &policy, In first, In last, Out out, Op op, SIMT_THRUST_SITE) {
  return details::scan<false, true>(policy.me(), "thrust::inclusive_scan", first, last, out, details::value_of<In>(),
                                    op, details::Itself(), site);
}
template <class In, class Out, class Op>
Out inclusive_scan(In first, In last, Out out, Op op, SIMT_THRUST_SITE) {
  return inclusive_scan(details::policy_for<In, Out>(), first, last, out, op, site);
}
template <class P, class In, class Out, class T, class Op>
Out inclusive_scan(const details::Policy<P> &policy, In first, In last, Out out, T initial, Op op, SIMT_THRUST_SITE) {
  return details::scan<true, true>(policy.me(), "thrust::inclusive_scan", first, last, out, initial, op,
                                   details::Itself(), site);
}
template <class In, class Out, class T, class Op>
Out inclusive_scan(In first, In last, Out out, T initial, Op op, SIMT_THRUST_SITE) {
  return inclusive_scan(details::policy_for<In, Out>(), first, last, out, initial, op, site);
}
template <class P, class In, class Out>
Out inclusive_scan(const details::Policy<P> &policy, In first, In last, Out out, SIMT_THRUST_SITE) {
  return inclusive_scan(policy, first, last, out, plus<>(), site);
}
template <class In, class Out>
Out inclusive_scan(In first, In last, Out out, SIMT_THRUST_SITE) {
  return inclusive_scan(details::policy_for<In, Out>(), first, last, out, plus<>(), site);
}
template <class P, class In, class Out, class T, class Op>
Out exclusive_scan(const details::Policy<P> &policy, In first, In last, Out out, T initial, Op op, SIMT_THRUST_SITE) {
  return details::scan<true, false>(policy.me(), "thrust::exclusive_scan", first, last, out, initial, op,
                                    details::Itself(), site);
}
template <class In, class Out, class T, class Op>
Out exclusive_scan(In first, In last, Out out, T initial, Op op, SIMT_THRUST_SITE) {
  return exclusive_scan(details::policy_for<In, Out>(), first, last, out, initial, op, site);
}
template <class P, class In, class Out, class T>
Out exclusive_scan(const details::Policy<P> &policy, In first, In last, Out out, T initial, SIMT_THRUST_SITE) {
  return exclusive_scan(policy, first, last, out, initial, plus<>(), site);
}
template <class In, class Out, class T>
Out exclusive_scan(In first, In last, Out out, T initial, SIMT_THRUST_SITE) {
  return exclusive_scan(details::policy_for<In, Out>(), first, last, out, initial, plus<>(), site);
}
template <class P, class In, class Out>
Out exclusive_scan(const details::Policy<P> &policy, In first, In last, Out out, SIMT_THRUST_SITE) {
  return exclusive_scan(policy, first, last, out, details::value_of<In>(), plus<>(), site);
}
template <class In, class Out>
Out exclusive_scan(In first, In last, Out out, SIMT_THRUST_SITE) {
  return exclusive_scan(details::policy_for<In, Out>(), first, last, out, details::value_of<In>(), plus<>(), site);
}
template <class P, class Keys, class In, class Out, class Equal, class Op>
Out inclusive_scan_by_key(const details::Policy<P> &policy, Keys first, Keys last, In in, Out out, Equal equal, Op op,
                          SIMT_THRUST_SITE) {
  return details::scan_by_key<true>(policy.me(), "thrust::inclusive_scan_by_key", first, last, in, out,
                                    details::value_of<In>(), equal, op, site);
}
template <class Keys, class In, class Out, class Equal, class Op>
Out inclusive_scan_by_key(Keys first, Keys last, In in, Out out, Equal equal, Op op, SIMT_THRUST_SITE) {
  return inclusive_scan_by_key(details::policy_for<Keys, In, Out>(), first, last, in, out, equal, op, site);
}
template <class P, class Keys, class In, class Out, class Equal>
Out inclusive_scan_by_key(const details::Policy<P> &policy, Keys first, Keys last, In in, Out out, Equal equal,
                          SIMT_THRUST_SITE) {
  return inclusive_scan_by_key(policy, first, last, in, out, equal, plus<>(), site);
}
template <class Keys, class In, class Out, class Equal>
Out inclusive_scan_by_key(Keys first, Keys last, In in, Out out, Equal equal, SIMT_THRUST_SITE) {
  return inclusive_scan_by_key(details::policy_for<Keys, In, Out>(), first, last, in, out, equal, plus<>(), site);
}
template <class P, class Keys, class In, class Out>
Out inclusive_scan_by_key(const details::Policy<P> &policy, Keys first, Keys last, In in, Out out, SIMT_THRUST_SITE) {
  return inclusive_scan_by_key(policy, first, last, in, out, equal_to<>(), plus<>(), site);
}
template <class Keys, class In, class Out>
Out inclusive_scan_by_key(Keys first, Keys last, In in, Out out, SIMT_THRUST_SITE) {
  return inclusive_scan_by_key(details::policy_for<Keys, In, Out>(), first, last, in, out, equal_to<>(), plus<>(),
                               site);
}
template <class P, class Keys, class In, class Out, class T, class Equal, class Op>
Out exclusive_scan_by_key(const details::Policy<P> &policy, Keys first, Keys last, In in, Out out, T initial,
                          Equal equal, Op op, SIMT_THRUST_SITE) {
  return details::scan_by_key<false>(policy.me(), "thrust::exclusive_scan_by_key", first, last, in, out, initial, equal,
                                     op, site);
}
template <class Keys, class In, class Out, class T, class Equal, class Op>
Out exclusive_scan_by_key(Keys first, Keys last, In in, Out out, T initial, Equal equal, Op op, SIMT_THRUST_SITE) {
  return exclusive_scan_by_key(details::policy_for<Keys, In, Out>(), first, last, in, out, initial, equal, op, site);
}
template <class P, class Keys, class In, class Out, class T, class Equal>
Out exclusive_scan_by_key(const details::Policy<P> &policy, Keys first, Keys last, In in, Out out, T initial,
                          Equal equal, SIMT_THRUST_SITE) {
  return exclusive_scan_by_key(policy, first, last, in, out, initial, equal, plus<>(), site);
}
template <class Keys, class In, class Out, class T, class Equal>
Out exclusive_scan_by_key(Keys first, Keys last, In in, Out out, T initial, Equal equal, SIMT_THRUST_SITE) {
  return exclusive_scan_by_key(details::policy_for<Keys, In, Out>(), first, last, in, out, initial, equal, plus<>(),
                               site);
}
template <class P, class Keys, class In, class Out, class T>
Out exclusive_scan_by_key(const details::Policy<P> &policy, Keys first, Keys last, In in, Out out, T initial,
                          SIMT_THRUST_SITE) {
  return exclusive_scan_by_key(policy, first, last, in, out, initial, equal_to<>(), plus<>(), site);
}
template <class Keys, class In, class Out, class T>
Out exclusive_scan_by_key(Keys first, Keys last, In in, Out out, T initial, SIMT_THRUST_SITE) {
  return exclusive_scan_by_key(details::policy_for<Keys, In, Out>(), first, last, in, out, initial, equal_to<>(),
                               plus<>(), site);
}
template <class P, class Keys, class In, class Out>
Out exclusive_scan_by_key(const details::Policy<P> &policy, Keys first, Keys last, In in, Out out, SIMT_THRUST_SITE) {
  return exclusive_scan_by_key(policy, first, last, in, out, details::value_of<In>(), equal_to<>(), plus<>(), site);
}
template <class Keys, class In, class Out>
Out exclusive_scan_by_key(Keys first, Keys last, In in, Out out, SIMT_THRUST_SITE) {
  return exclusive_scan_by_key(details::policy_for<Keys, In, Out>(), first, last, in, out, details::value_of<In>(),
                               equal_to<>(), plus<>(), site);
}

}  // namespace thrust

#endif /* SIMT_THRUST_SCAN */
