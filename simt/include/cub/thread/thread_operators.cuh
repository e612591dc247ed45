/* cub/thread/thread_operators.cuh - operations to combine with: Sum, Max, Min, ArgMax, ArgMin and more. -*- c++ -*- */
#ifndef SIMT_CUB_THREAD_OPERATORS
#define SIMT_CUB_THREAD_OPERATORS

#include "cub/util_type.cuh"
#include "cuda/functional"

namespace cub {

struct Equality {
  template <class A, class B>
  bool operator()(const A &a, const B &b) const {
    return a == b;
  }
};
struct Inequality {
  template <class A, class B>
  bool operator()(const A &a, const B &b) const {
    return !(a == b);
  }
};
struct Sum {
  template <class A, class B>
  auto operator()(const A &a, const B &b) const -> decltype(a + b) {
    return a + b;
  }
};
struct Difference {
  template <class A, class B>
  auto operator()(const A &a, const B &b) const -> decltype(a - b) {
    return a - b;
  }
};
struct Division {
  template <class A, class B>
  auto operator()(const A &a, const B &b) const -> decltype(a / b) {
    return a / b;
  }
};
struct Max {
  template <class A, class B>
  std::common_type_t<A, B> operator()(const A &a, const B &b) const {
    return a < b ? b : a;
  }
};
struct Min {
  template <class A, class B>
  std::common_type_t<A, B> operator()(const A &a, const B &b) const {
    return b < a ? b : a;
  }
};
/* Of (index, value) pairs: the greatest value, at its first place. */
struct ArgMax {
  template <class K, class V>
  KeyValuePair<K, V> operator()(const KeyValuePair<K, V> &a, const KeyValuePair<K, V> &b) const {
    return a.value < b.value || (a.value == b.value && b.key < a.key) ? b : a;
  }
};
struct ArgMin {
  template <class K, class V>
  KeyValuePair<K, V> operator()(const KeyValuePair<K, V> &a, const KeyValuePair<K, V> &b) const {
    return b.value < a.value || (a.value == b.value && b.key < a.key) ? b : a;
  }
};
template <class T>
struct CastOp {
  template <class A>
  T operator()(const A &a) const {
    return (T)a;
  }
};

}  // namespace cub

#endif /* SIMT_CUB_THREAD_OPERATORS */
