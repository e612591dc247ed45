/* thrust/tuple.h - tuples that kernels may use; those of references assign through them. -*- c++ -*- */
#ifndef SIMT_THRUST_TUPLE
#define SIMT_THRUST_TUPLE

#include <tuple>

#include "thrust/pair.h"

namespace thrust {

namespace details {

struct Given {};

template <size_t index, class T>
struct Element {
  T value;
  constexpr Element() : value() {}
  template <class U>
  constexpr Element(Given, U &&u) : value((U &&) u) {}
};

template <class Indices, class... T>
struct Elements;
template <size_t... index, class... T>
struct Elements<std::index_sequence<index...>, T...> : Element<index, T>... {
  constexpr Elements() = default;
  template <class... U>
  constexpr Elements(Given given, U &&...u) : Element<index, T>(given, (U &&) u)... {}
};

/* A tuple is also given by references to its elements: const, or not. */
template <size_t index, class T>
constexpr T &element(Element<index, T> &e) {
  return e.value;
}
template <size_t index, class T>
constexpr const T &element(const Element<index, T> &e) {
  return e.value;
}

}  // namespace details

template <class... T>
class tuple : public details::Elements<std::index_sequence_for<T...>, T...> {
  typedef details::Elements<std::index_sequence_for<T...>, T...> Base;
  template <size_t... index, class Other>
  constexpr tuple(std::index_sequence<index...>, Other &other)
      : Base(details::Given(), details::element<index>(other)...) {}
  template <size_t... index, class Other>
  constexpr void assign(std::index_sequence<index...>, Other &other) {
    ((void)(details::element<index>(*this) = details::element<index>(other)), ...);
  }

 public:
  constexpr tuple() = default;
  constexpr tuple(const tuple &) = default;
  template <class... U, std::enable_if_t<sizeof...(U) == sizeof...(T) && (std::is_convertible_v<U, T> && ...), int> = 0>
  constexpr tuple(U &&...u) : Base(details::Given(), (U &&) u...) {}
  template <class... U, std::enable_if_t<sizeof...(U) == sizeof...(T), int> = 0>
  constexpr tuple(const tuple<U...> &other) : tuple(std::index_sequence_for<T...>(), other) {}
  template <class A, class B>
  constexpr tuple(const pair<A, B> &other) : Base(details::Given(), other.first, other.second) {}

  constexpr tuple &operator=(const tuple &other) {
    assign(std::index_sequence_for<T...>(), other);
    return *this;
  }
  template <class... U>
  constexpr tuple &operator=(const tuple<U...> &other) {
    assign(std::index_sequence_for<T...>(), other);
    return *this;
  }
  template <class A, class B>
  constexpr tuple &operator=(const pair<A, B> &other) {
    return *this = tuple<const A &, const B &>(other.first, other.second);
  }
};
template <class... T>
tuple(T...) -> tuple<T...>;

using std::tuple_element;
using std::tuple_size;

template <size_t index, class... T>
constexpr auto &get(tuple<T...> &t) {
  return details::element<index>(t);
}
template <size_t index, class... T>
constexpr const auto &get(const tuple<T...> &t) {
  return details::element<index>(t);
}
template <size_t index, class... T>
constexpr typename tuple_element<index, tuple<T...>>::type &&get(tuple<T...> &&t) {
  return (typename tuple_element<index, tuple<T...>>::type &&) details::element<index>(t);
}

template <class... T>
constexpr tuple<std::decay_t<T>...> make_tuple(T &&...t) {
  return {(T &&) t...};
}
template <class... T>
constexpr tuple<T &...> tie(T &...t) {
  return {t...};
}

namespace details {
template <class A, class B, size_t... index>
constexpr bool equal_elements(const A &a, const B &b, std::index_sequence<index...>) {
  return ((element<index>(a) == element<index>(b)) && ...);
}
template <size_t index, size_t size, class A, class B>
constexpr bool less_elements(const A &a, const B &b) {
  if constexpr (index == size) {
    return false;
  } else {
    if (element<index>(a) < element<index>(b)) return true;
    if (element<index>(b) < element<index>(a)) return false;
    return less_elements<index + 1, size>(a, b);
  }
}
}  // namespace details

template <class... T, class... U>
constexpr bool operator==(const tuple<T...> &a, const tuple<U...> &b) {
  return details::equal_elements(a, b, std::index_sequence_for<T...>());
}
template <class... T, class... U>
constexpr bool operator!=(const tuple<T...> &a, const tuple<U...> &b) {
  return !(a == b);
}
template <class... T, class... U>
constexpr bool operator<(const tuple<T...> &a, const tuple<U...> &b) {
  return details::less_elements<0, sizeof...(T)>(a, b);
}
template <class... T, class... U>
constexpr bool operator>(const tuple<T...> &a, const tuple<U...> &b) {
  return b < a;
}
template <class... T, class... U>
constexpr bool operator<=(const tuple<T...> &a, const tuple<U...> &b) {
  return !(b < a);
}
template <class... T, class... U>
constexpr bool operator>=(const tuple<T...> &a, const tuple<U...> &b) {
  return !(a < b);
}

}  // namespace thrust

template <class... T>
struct std::tuple_size<thrust::tuple<T...>> : std::integral_constant<size_t, sizeof...(T)> {};
template <size_t index, class... T>
struct std::tuple_element<index, thrust::tuple<T...>> : std::tuple_element<index, std::tuple<T...>> {};

#endif /* SIMT_THRUST_TUPLE */
