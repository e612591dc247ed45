/* thrust/iterator/transform_iterator.h - a function of each element, computed when it is read. -*- c++ -*- */
#ifndef SIMT_THRUST_TRANSFORM_ITERATOR
#define SIMT_THRUST_TRANSFORM_ITERATOR

#include "thrust/iterator/simt_iterator.h"

namespace thrust {

namespace details {
/* What the function gives: computed from elements as a kernel sees them. */
template <class Function, class In, class Wanted>
struct Transformed {
  typedef Wanted type;
};
template <class Function, class In>
struct Transformed<Function, In, use_default> {
  typedef std::invoke_result_t<Function &, reference_of<Raw<In>>> type;
};
template <class Value, class Reference>
using ValueOr =
    std::conditional_t<std::is_same_v<Value, use_default>, std::remove_cv_t<std::remove_reference_t<Reference>>, Value>;
}  // namespace details

template <class Function, class In, class Reference = use_default, class Value = use_default>
class transform_iterator
    : public details::Iterator<transform_iterator<Function, In, Reference, Value>, typename details::SystemOf<In>::type,
                               details::ValueOr<Value, typename details::Transformed<Function, In, Reference>::type>,
                               typename details::Transformed<Function, In, Reference>::type> {
 public:
  typedef typename details::Transformed<Function, In, Reference>::type reference;
  transform_iterator() = default;
  transform_iterator(In in, Function function) : in_(in), function_(function) {}
  explicit transform_iterator(In in) : in_(in), function_() {}
  reference at(ptrdiff_t n) const {
    if constexpr (std::is_same_v<details::Raw<In>, In>) {
      return function_(in_[n]);
    } else { /* read by the host, from the device */
      details::value_of<In> item = in_[n];
      return function_(item);
    }
  }
  void move(ptrdiff_t n) { in_ += n; }
  ptrdiff_t to(const transform_iterator &other) const { return other.in_ - in_; }
  In base() const { return in_; }
  Function functor() const { return function_; }
  auto simt_raw() const {
    return transform_iterator<Function, details::Raw<In>, Reference, Value>(details::raw(in_), function_);
  }

 private:
  In in_;
  mutable Function function_;
};

template <class Function, class In>
transform_iterator<Function, In> make_transform_iterator(In in, Function function) {
  return {in, function};
}

}  // namespace thrust

#endif /* SIMT_THRUST_TRANSFORM_ITERATOR */
