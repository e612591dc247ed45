/* cub/iterator/simt_iterators.cuh - iterators that compute what they point to. -*- c++ -*- */
#ifndef SIMT_CUB_ITERATORS
#define SIMT_CUB_ITERATORS

#include "cub/util_type.cuh"

namespace cub {

enum CacheLoadModifier { LOAD_DEFAULT, LOAD_CA, LOAD_CG, LOAD_CS, LOAD_CV, LOAD_LDG, LOAD_VOLATILE };
enum CacheStoreModifier { STORE_DEFAULT, STORE_WB, STORE_CG, STORE_CS, STORE_WT, STORE_VOLATILE };

namespace details {

/* What all of them share: a place that moves. Derived::at(n) gives the element n places on. */
template <class Derived, class Value, class Offset, class Reference = Value>
struct IteratorBase {
  typedef Derived self_type;
  typedef Offset difference_type;
  typedef Value value_type;
  typedef Value *pointer;
  typedef Reference reference;
  typedef std::random_access_iterator_tag iterator_category;

  Reference operator*() const { return me().at(0); }
  template <class Distance>
  Reference operator[](Distance n) const {
    return me().at((Offset)n);
  }
  template <class Distance>
  Derived operator+(Distance n) const {
    Derived copy = me();
    copy.move((Offset)n);
    return copy;
  }
  template <class Distance>
  Derived operator-(Distance n) const {
    Derived copy = me();
    copy.move(-(Offset)n);
    return copy;
  }
  template <class Distance>
  Derived &operator+=(Distance n) {
    me().move((Offset)n);
    return me();
  }
  template <class Distance>
  Derived &operator-=(Distance n) {
    me().move(-(Offset)n);
    return me();
  }
  Derived &operator++() { return *this += 1; }
  Derived operator++(int) {
    Derived copy = me();
    ++*this;
    return copy;
  }
  Derived &operator--() { return *this -= 1; }
  Derived operator--(int) {
    Derived copy = me();
    --*this;
    return copy;
  }

 private:
  Derived &me() { return *(Derived *)this; }
  const Derived &me() const { return *(const Derived *)this; }
};

}  // namespace details

template <class Value, class Offset = ptrdiff_t>
class CountingInputIterator : public details::IteratorBase<CountingInputIterator<Value, Offset>, Value, Offset> {
 public:
  explicit CountingInputIterator(const Value &first) : value_(first) {}
  Value at(Offset n) const { return (Value)(value_ + (Value)n); }
  void move(Offset n) { value_ = (Value)(value_ + (Value)n); }
  using details::IteratorBase<CountingInputIterator, Value, Offset>::operator-;
  Offset operator-(const CountingInputIterator &other) const { return (Offset)(value_ - other.value_); }
  bool operator==(const CountingInputIterator &other) const { return value_ == other.value_; }
  bool operator!=(const CountingInputIterator &other) const { return value_ != other.value_; }

 private:
  Value value_;
};

template <class Value, class Offset = ptrdiff_t>
class ConstantInputIterator : public details::IteratorBase<ConstantInputIterator<Value, Offset>, Value, Offset> {
 public:
  explicit ConstantInputIterator(const Value &value, Offset = 0) : value_(value) {}
  Value at(Offset) const { return value_; }
  void move(Offset) {}

 private:
  Value value_;
};

template <class Value, class Function, class Input, class Offset = ptrdiff_t>
class TransformInputIterator
    : public details::IteratorBase<TransformInputIterator<Value, Function, Input, Offset>, Value, Offset> {
 public:
  TransformInputIterator(Input input, Function function) : input_(input), function_(function) {}
  Value at(Offset n) const { return (Value)function_(input_[n]); }
  void move(Offset n) { input_ += n; }

 private:
  Input input_;
  mutable Function function_;
};

template <class Input, class Offset = ptrdiff_t, class Value = details::value_of<Input>>
class ArgIndexInputIterator
    : public details::IteratorBase<ArgIndexInputIterator<Input, Offset, Value>, KeyValuePair<Offset, Value>, Offset> {
 public:
  explicit ArgIndexInputIterator(Input input, Offset place = 0) : input_(input), place_(place) {}
  KeyValuePair<Offset, Value> at(Offset n) const { return {(Offset)(place_ + n), (Value)input_[place_ + n]}; }
  void move(Offset n) { place_ = (Offset)(place_ + n); }
  void normalize() {
    input_ += place_;
    place_ = 0;
  }

 private:
  Input input_;
  Offset place_;
};

template <CacheLoadModifier modifier, class Value, class Offset = ptrdiff_t>
class CacheModifiedInputIterator
    : public details::IteratorBase<CacheModifiedInputIterator<modifier, Value, Offset>, Value, Offset> {
 public:
  explicit CacheModifiedInputIterator(const Value *pointer) : pointer_(pointer) {}
  Value at(Offset n) const { return pointer_[n]; }
  void move(Offset n) { pointer_ += n; }

 private:
  const Value *pointer_;
};

template <class Offset = ptrdiff_t>
class DiscardOutputIterator {
 public:
  typedef Offset difference_type;
  typedef void value_type;
  typedef void pointer;
  typedef void reference;
  typedef std::output_iterator_tag iterator_category;
  struct Nowhere {
    template <class T>
    const Nowhere &operator=(const T &) const {
      return *this;
    }
  };
  explicit DiscardOutputIterator(Offset = 0) {}
  Nowhere operator*() const { return Nowhere(); }
  template <class Distance>
  Nowhere operator[](Distance) const {
    return Nowhere();
  }
  template <class Distance>
  DiscardOutputIterator operator+(Distance) const {
    return *this;
  }
};

template <CacheLoadModifier modifier, class Iterator>
details::value_of<Iterator> ThreadLoad(Iterator from) {
  return *from;
}
template <CacheStoreModifier modifier, class Iterator, class T>
void ThreadStore(Iterator to, T value) {
  *to = value;
}

}  // namespace cub

#endif /* SIMT_CUB_ITERATORS */
