/* thrust/iterator/constant_iterator.h - the same value everywhere. -*- c++ -*- */
#ifndef SIMT_THRUST_CONSTANT_ITERATOR
#define SIMT_THRUST_CONSTANT_ITERATOR

#include "thrust/iterator/simt_iterator.h"

namespace thrust {

template <class Value, class Difference = use_default, class System = use_default>
class constant_iterator
    : public details::Iterator<constant_iterator<Value, Difference, System>,
                               std::conditional_t<std::is_same_v<System, use_default>, any_system_tag, System>, Value> {
 public:
  constant_iterator() : value_(), place_(0) {}
  explicit constant_iterator(const Value &value, ptrdiff_t place = 0) : value_(value), place_(place) {}
  Value at(ptrdiff_t) const { return value_; }
  void move(ptrdiff_t n) { place_ += n; }
  ptrdiff_t to(const constant_iterator &other) const { return other.place_ - place_; }

 private:
  Value value_;
  ptrdiff_t place_;
};

template <class Value>
constant_iterator<Value> make_constant_iterator(Value value, ptrdiff_t place = 0) {
  return constant_iterator<Value>(value, place);
}

}  // namespace thrust

#endif /* SIMT_THRUST_CONSTANT_ITERATOR */
