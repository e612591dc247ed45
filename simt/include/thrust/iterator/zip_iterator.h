/* thrust/iterator/zip_iterator.h - tuples of the elements of several ranges. -*- c++ -*- */
#ifndef SIMT_THRUST_ZIP_ITERATOR
#define SIMT_THRUST_ZIP_ITERATOR

#include "thrust/iterator/simt_iterator.h"
#include "thrust/tuple.h"

namespace thrust {

template <class Tuple>
class zip_iterator;

template <class... In>
class zip_iterator<tuple<In...>>
    : public details::Iterator<zip_iterator<tuple<In...>>, typename details::Systems<In...>::type,
                               tuple<details::value_of<In>...>, tuple<details::reference_of<In>...>> {
  static_assert(!(details::Systems<In...>::device && details::Systems<In...>::host),
                "simt: Thrust: a zip_iterator of ranges in host memory and in device memory; copy the first ones");

 public:
  zip_iterator() = default;
  zip_iterator(const tuple<In...> &in) : in_(in) {}
  template <class... Other, std::enable_if_t<(sizeof...(Other) > 1) && sizeof...(Other) == sizeof...(In), int> = 0>
  zip_iterator(Other... other) : in_(other...) {}

  tuple<details::reference_of<In>...> at(ptrdiff_t n) const { return at(n, std::index_sequence_for<In...>()); }
  void move(ptrdiff_t n) { move(n, std::index_sequence_for<In...>()); }
  ptrdiff_t to(const zip_iterator &other) const { return get<0>(other.in_) - get<0>(in_); }
  const tuple<In...> &get_iterator_tuple() const { return in_; }
  auto simt_raw() const { return raw(std::index_sequence_for<In...>()); }

 private:
  template <size_t... i>
  tuple<details::reference_of<In>...> at(ptrdiff_t n, std::index_sequence<i...>) const {
    return {get<i>(in_)[n]...};
  }
  template <size_t... i>
  void move(ptrdiff_t n, std::index_sequence<i...>) {
    ((void)(get<i>(in_) += n), ...);
  }
  template <size_t... i>
  auto raw(std::index_sequence<i...>) const {
    typedef tuple<details::Raw<In>...> Bare;
    return zip_iterator<Bare>(Bare(details::raw(get<i>(in_))...));
  }

  tuple<In...> in_;
};

template <class... In>
zip_iterator<tuple<In...>> make_zip_iterator(const tuple<In...> &in) {
  return {in};
}
template <class First, class... In, class = typename std::iterator_traits<First>::value_type>
zip_iterator<tuple<First, In...>> make_zip_iterator(First first, In... in) {
  return {tuple<First, In...>(first, in...)};
}

}  // namespace thrust

#endif /* SIMT_THRUST_ZIP_ITERATOR */
