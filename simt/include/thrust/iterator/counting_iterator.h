/* thrust/iterator/counting_iterator.h - first, first + 1, first + 2 ... -*- c++ -*- */
#ifndef SIMT_THRUST_COUNTING_ITERATOR
#define SIMT_THRUST_COUNTING_ITERATOR

#include "thrust/iterator/simt_iterator.h"

namespace thrust {

template <class Value, class System = use_default, class Traversal = use_default, class Difference = use_default>
class counting_iterator
    : public details::Iterator<counting_iterator<Value, System, Traversal, Difference>,
                               std::conditional_t<std::is_same_v<System, use_default>, any_system_tag, System>, Value> {
 public:
  counting_iterator() : value_() {}
  explicit counting_iterator(Value first) : value_(first) {}
  Value at(ptrdiff_t n) const { return (Value)(value_ + n); }
  void move(ptrdiff_t n) { value_ = (Value)(value_ + n); }
  ptrdiff_t to(const counting_iterator &other) const { return (ptrdiff_t)other.value_ - (ptrdiff_t)value_; }
  Value base() const { return value_; }

 private:
  Value value_;
};

template <class Value>
counting_iterator<Value> make_counting_iterator(Value first) {
  return counting_iterator<Value>(first);
}

}  // namespace thrust

#endif /* SIMT_THRUST_COUNTING_ITERATOR */
