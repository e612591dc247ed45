/* thrust/iterator/discard_iterator.h - takes results that nobody wants. -*- c++ -*- */
#ifndef SIMT_THRUST_DISCARD_ITERATOR
#define SIMT_THRUST_DISCARD_ITERATOR

#include "thrust/iterator/simt_iterator.h"

namespace thrust {

namespace details {
typedef cub::DiscardOutputIterator<>::Nowhere Nowhere;
}

template <class System = use_default>
class discard_iterator
    : public details::Iterator<discard_iterator<System>,
                               std::conditional_t<std::is_same_v<System, use_default>, any_system_tag, System>,
                               details::Nowhere> {
 public:
  discard_iterator(ptrdiff_t place = 0) : place_(place) {}
  details::Nowhere at(ptrdiff_t) const { return {}; }
  void move(ptrdiff_t n) { place_ += n; }
  ptrdiff_t to(const discard_iterator &other) const { return other.place_ - place_; }

 private:
  ptrdiff_t place_;
};

inline discard_iterator<> make_discard_iterator(ptrdiff_t place = 0) { return {place}; }

}  // namespace thrust

#endif /* SIMT_THRUST_DISCARD_ITERATOR */
