/* thrust/iterator/simt_iterator.h - what Thrust's iterators share. -*- c++ -*- */
#ifndef SIMT_THRUST_ITERATOR
#define SIMT_THRUST_ITERATOR

#include "cub/iterator/simt_iterators.cuh"
#include "thrust/simt_run.h"

namespace thrust {
struct use_default {};
namespace details {

/* Derived::at(n), move(n) and to(other), the distance, make a whole iterator of it. */
template <class Derived, class System, class Value, class Reference = Value>
struct Iterator : cub::details::IteratorBase<Derived, Value, ptrdiff_t, Reference> {
  typedef System simt_system;
  friend ptrdiff_t operator-(const Derived &a, const Derived &b) { return b.to(a); }
  friend Derived operator+(ptrdiff_t n, const Derived &a) { return a + n; }
  friend bool operator==(const Derived &a, const Derived &b) { return a.to(b) == 0; }
  friend bool operator!=(const Derived &a, const Derived &b) { return a.to(b) != 0; }
  friend bool operator<(const Derived &a, const Derived &b) { return a.to(b) > 0; }
  friend bool operator>(const Derived &a, const Derived &b) { return a.to(b) < 0; }
  friend bool operator<=(const Derived &a, const Derived &b) { return a.to(b) >= 0; }
  friend bool operator>=(const Derived &a, const Derived &b) { return a.to(b) <= 0; }
};

}  // namespace details
}  // namespace thrust

#endif /* SIMT_THRUST_ITERATOR */
