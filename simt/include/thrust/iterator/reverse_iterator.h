/* thrust/iterator/reverse_iterator.h - a range from its end. -*- c++ -*- */
#ifndef SIMT_THRUST_REVERSE_ITERATOR
#define SIMT_THRUST_REVERSE_ITERATOR

#include "thrust/iterator/simt_iterator.h"

namespace thrust {

template <class In>
class reverse_iterator : public details::Iterator<reverse_iterator<In>, typename details::SystemOf<In>::type,
                                                  details::value_of<In>, details::reference_of<In>> {
 public:
  reverse_iterator() = default;
  explicit reverse_iterator(In in) : in_(in) {}
  template <class Other, std::enable_if_t<std::is_convertible_v<Other, In>, int> = 0>
  reverse_iterator(const reverse_iterator<Other> &other) : in_(other.base()) {}
  details::reference_of<In> at(ptrdiff_t n) const { return in_[-1 - n]; }
  void move(ptrdiff_t n) { in_ -= n; }
  ptrdiff_t to(const reverse_iterator &other) const { return in_ - other.in_; }
  In base() const { return in_; }
  auto simt_raw() const { return reverse_iterator<details::Raw<In>>(details::raw(in_)); }

 private:
  In in_;
};

template <class In>
reverse_iterator<In> make_reverse_iterator(In in) {
  return reverse_iterator<In>(in);
}

}  // namespace thrust

#endif /* SIMT_THRUST_REVERSE_ITERATOR */
