/* thrust/pair.h -*- c++ -*- */
#ifndef SIMT_THRUST_PAIR
#define SIMT_THRUST_PAIR

#include <cuda_runtime.h>

namespace thrust {

template <class A, class B>
struct pair {
  typedef A first_type;
  typedef B second_type;
  A first;
  B second;
  constexpr pair() : first(), second() {}
  constexpr pair(const A &a, const B &b) : first(a), second(b) {}
  template <class C, class D>
  constexpr pair(const pair<C, D> &other) : first(other.first), second(other.second) {}
  template <class C, class D>
  constexpr pair(const std::pair<C, D> &other) : first(other.first), second(other.second) {}
};

template <class A, class B>
constexpr pair<A, B> make_pair(A a, B b) {
  return {a, b};
}
template <class A, class B>
constexpr bool operator==(const pair<A, B> &x, const pair<A, B> &y) {
  return x.first == y.first && x.second == y.second;
}
template <class A, class B>
constexpr bool operator!=(const pair<A, B> &x, const pair<A, B> &y) {
  return !(x == y);
}
template <class A, class B>
constexpr bool operator<(const pair<A, B> &x, const pair<A, B> &y) {
  return x.first < y.first || (!(y.first < x.first) && x.second < y.second);
}
template <class A, class B>
constexpr bool operator>(const pair<A, B> &x, const pair<A, B> &y) {
  return y < x;
}
template <class A, class B>
constexpr bool operator<=(const pair<A, B> &x, const pair<A, B> &y) {
  return !(y < x);
}
template <class A, class B>
constexpr bool operator>=(const pair<A, B> &x, const pair<A, B> &y) {
  return !(x < y);
}

}  // namespace thrust

#endif /* SIMT_THRUST_PAIR */
