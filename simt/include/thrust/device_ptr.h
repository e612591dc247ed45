/* thrust/device_ptr.h - a pointer that knows that it points to device memory, and a reference to what is there.
 * -*- c++ -*- */
#ifndef SIMT_THRUST_DEVICE_PTR
#define SIMT_THRUST_DEVICE_PTR

#include <iosfwd>

#include "thrust/simt_run.h"

namespace thrust {

template <class T>
class device_ptr;

/* The host reads and writes it by cudaMemcpy(). */
template <class T>
class device_reference {
 public:
  typedef std::remove_cv_t<T> value_type;
  typedef device_ptr<T> pointer;

  explicit device_reference(device_ptr<T> pointer) : pointer_(pointer.get()) {}
  explicit device_reference(T *pointer) : pointer_(pointer) {}
  device_reference(const device_reference &) = default;
  template <class U, std::enable_if_t<std::is_convertible_v<U *, T *>, int> = 0>
  device_reference(const device_reference<U> &other) : pointer_((&other).get()) {}

  operator value_type() const {
    if (simt_in_kernel()) return *pointer_;
    alignas(T) unsigned char bytes[sizeof(T)];
    details::check(cudaMemcpy(bytes, pointer_, sizeof(T), cudaMemcpyDeviceToHost), "thrust::device_reference");
    return *(value_type *)(void *)bytes;
  }
  const device_reference &operator=(const value_type &value) const {
    if (simt_in_kernel())
      *pointer_ = value;
    else
      details::check(cudaMemcpy(pointer_, &value, sizeof(T), cudaMemcpyHostToDevice), "thrust::device_reference");
    return *this;
  }
  const device_reference &operator=(const device_reference &other) const { return *this = (value_type)other; }
  template <class U>
  const device_reference &operator=(const device_reference<U> &other) const {
    return *this = (value_type)(typename device_reference<U>::value_type)other;
  }
  device_ptr<T> operator&() const { return device_ptr<T>(pointer_); }

#define SIMT_THRUST_UPDATE(sign)                                   \
  template <class U>                                               \
  const device_reference &operator sign##=(const U &other) const { \
    return *this = (value_type)((value_type) * this sign other);   \
  }
  SIMT_THRUST_UPDATE(+)
  SIMT_THRUST_UPDATE(-)
  SIMT_THRUST_UPDATE(*)
  SIMT_THRUST_UPDATE(/)
  SIMT_THRUST_UPDATE(%)
  SIMT_THRUST_UPDATE(<<)
  SIMT_THRUST_UPDATE(>>)
  SIMT_THRUST_UPDATE(&)
  SIMT_THRUST_UPDATE(|)
  SIMT_THRUST_UPDATE(^)
#undef SIMT_THRUST_UPDATE
  const device_reference &operator++() const { return *this += 1; }
  const device_reference &operator--() const { return *this -= 1; }
  value_type operator++(int) const {
    value_type old = *this;
    ++*this;
    return old;
  }
  value_type operator--(int) const {
    value_type old = *this;
    --*this;
    return old;
  }

 private:
  T *pointer_;
};

template <class Char, class Traits, class T>
std::basic_ostream<Char, Traits> &operator<<(std::basic_ostream<Char, Traits> &out, const device_reference<T> &value) {
  return out << (typename device_reference<T>::value_type)value;
}

template <class T>
class device_ptr {
 public:
  typedef device_system_tag simt_system;
  typedef T element_type;
  typedef std::remove_cv_t<T> value_type;
  typedef ptrdiff_t difference_type;
  typedef device_ptr pointer;
  typedef T *raw_pointer;
  typedef std::conditional_t<std::is_void_v<T>, void, device_reference<std::conditional_t<std::is_void_v<T>, char, T>>>
      reference;
  typedef std::random_access_iterator_tag iterator_category;

  device_ptr() : pointer_(nullptr) {}
  device_ptr(std::nullptr_t) : pointer_(nullptr) {}
  template <class U, std::enable_if_t<std::is_convertible_v<U *, T *>, int> = 0>
  explicit device_ptr(U *pointer) : pointer_(pointer) {}
  template <class U, std::enable_if_t<std::is_convertible_v<U *, T *>, int> = 0>
  device_ptr(const device_ptr<U> &other) : pointer_(other.get()) {}
  template <class U, std::enable_if_t<std::is_void_v<U> && !std::is_void_v<T>, int> = 0>
  explicit device_ptr(const device_ptr<U> &other) : pointer_((T *)other.get()) {}

  T *get() const { return pointer_; }
  T *simt_raw() const { return pointer_; }
  device_ptr base() const { return *this; }
  explicit operator bool() const { return pointer_ != nullptr; }

  template <class U = T>
  device_reference<U> operator*() const {
    return device_reference<U>(pointer_);
  }
  template <class U = T>
  device_reference<U> operator[](ptrdiff_t n) const {
    return device_reference<U>(pointer_ + n);
  }
  device_ptr operator+(ptrdiff_t n) const { return device_ptr(pointer_ + n); }
  device_ptr operator-(ptrdiff_t n) const { return device_ptr(pointer_ - n); }
  friend device_ptr operator+(ptrdiff_t n, const device_ptr &p) { return p + n; }
  device_ptr &operator+=(ptrdiff_t n) { return *this = *this + n; }
  device_ptr &operator-=(ptrdiff_t n) { return *this = *this - n; }
  device_ptr &operator++() { return *this += 1; }
  device_ptr &operator--() { return *this -= 1; }
  device_ptr operator++(int) {
    device_ptr old = *this;
    ++*this;
    return old;
  }
  device_ptr operator--(int) {
    device_ptr old = *this;
    --*this;
    return old;
  }

 private:
  T *pointer_;
};

template <class T, class U>
ptrdiff_t operator-(const device_ptr<T> &a, const device_ptr<U> &b) {
  return a.get() - b.get();
}
#define SIMT_THRUST_COMPARE(sign)                                      \
  template <class T, class U>                                          \
  bool operator sign(const device_ptr<T> &a, const device_ptr<U> &b) { \
    return a.get() sign b.get();                                       \
  }
SIMT_THRUST_COMPARE(==)
SIMT_THRUST_COMPARE(!=)
SIMT_THRUST_COMPARE(<)
SIMT_THRUST_COMPARE(>)
SIMT_THRUST_COMPARE(<=)
SIMT_THRUST_COMPARE(>=)
#undef SIMT_THRUST_COMPARE
template <class T>
bool operator==(const device_ptr<T> &a, std::nullptr_t) {
  return !a;
}
template <class T>
bool operator!=(const device_ptr<T> &a, std::nullptr_t) {
  return (bool)a;
}

template <class T>
device_ptr<T> device_pointer_cast(T *pointer) {
  return device_ptr<T>(pointer);
}
template <class T>
device_ptr<T> device_pointer_cast(const device_ptr<T> &pointer) {
  return pointer;
}
template <class T>
T *raw_pointer_cast(T *pointer) {
  return pointer;
}
template <class T>
T *raw_pointer_cast(const device_ptr<T> &pointer) {
  return pointer.get();
}
template <class T>
T &raw_reference_cast(T &reference) {
  return reference;
}
template <class T>
T &raw_reference_cast(const device_reference<T> &reference) {
  return *(&reference).get();
}

}  // namespace thrust

#endif /* SIMT_THRUST_DEVICE_PTR */
