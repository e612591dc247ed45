/* thrust/iterator/permutation_iterator.h - elements[index[0]], elements[index[1]] ... -*- c++ -*- */
#ifndef SIMT_THRUST_PERMUTATION_ITERATOR
#define SIMT_THRUST_PERMUTATION_ITERATOR

#include "thrust/iterator/simt_iterator.h"

namespace thrust {

template <class Elements, class Index>
class permutation_iterator
    : public details::Iterator<permutation_iterator<Elements, Index>, typename details::Systems<Elements, Index>::type,
                               details::value_of<Elements>, details::reference_of<Elements>> {
 public:
  permutation_iterator() = default;
  permutation_iterator(Elements elements, Index index) : elements_(elements), index_(index) {}
  details::reference_of<Elements> at(ptrdiff_t n) const { return elements_[(ptrdiff_t)index_[n]]; }
  void move(ptrdiff_t n) { index_ += n; }
  ptrdiff_t to(const permutation_iterator &other) const { return other.index_ - index_; }
  Index base() const { return index_; }
  auto simt_raw() const {
    return permutation_iterator<details::Raw<Elements>, details::Raw<Index>>(details::raw(elements_),
                                                                             details::raw(index_));
  }

 private:
  Elements elements_;
  Index index_;
};

template <class Elements, class Index>
permutation_iterator<Elements, Index> make_permutation_iterator(Elements elements, Index index) {
  return {elements, index};
}

}  // namespace thrust

#endif /* SIMT_THRUST_PERMUTATION_ITERATOR */
