/* thrust/simt_vector.h - host_vector and device_vector: one class, two kinds of memory. -*- c++ -*- */
#ifndef SIMT_THRUST_VECTOR
#define SIMT_THRUST_VECTOR

#include <initializer_list>
#include <vector>

#include "thrust/iterator/reverse_iterator.h"
#include "thrust/simt_copy.h"

namespace thrust {

struct default_init_t {};
struct no_init_t {};
static constexpr default_init_t default_init{};
static constexpr no_init_t no_init{};

namespace details {

struct HostMemory {
  template <class T>
  using Pointer = T *;
  template <class T>
  using Reference = T &;
  typedef HostPolicy Policy;
  static constexpr const char *name = "thrust::host_vector";
  static void *allocate(size_t bytes, Site) { return ::operator new(bytes); }
  static void release(void *memory) { ::operator delete(memory); }
};

struct DeviceMemory {
  template <class T>
  using Pointer = device_ptr<T>;
  template <class T>
  using Reference = device_reference<T>;
  typedef DevicePolicy Policy;
  static constexpr const char *name = "thrust::device_vector";
  static void *allocate(size_t bytes, Site site) {
    void *memory = nullptr;
    cudaError_t error = cudaMalloc(&memory, bytes, site.file, site.line);
    if (error != cudaSuccess) throw BadAllocation(error);
    return memory;
  }
  static void release(void *memory) { cudaFree(memory); }
};

template <class Iterator>
using IfIterator = typename std::iterator_traits<Iterator>::iterator_category;

template <class T, class Memory>
class Vector {
  template <class U>
  using Pointer = typename Memory::template Pointer<U>;
  typedef typename Memory::Policy Policy;
  static constexpr bool on_device = Policy::on_device;

 public:
  typedef T value_type;
  typedef size_t size_type;
  typedef ptrdiff_t difference_type;
  typedef Pointer<T> pointer;
  typedef Pointer<const T> const_pointer;
  typedef pointer iterator;
  typedef const_pointer const_iterator;
  typedef typename Memory::template Reference<T> reference;
  typedef typename Memory::template Reference<const T> const_reference;
  typedef thrust::reverse_iterator<iterator> reverse_iterator;
  typedef thrust::reverse_iterator<const_iterator> const_reverse_iterator;

  Vector() {}
  explicit Vector(size_t count, SIMT_THRUST_SITE) {
    reserve(count, site);
    append(count, site);
  }
  Vector(size_t count, default_init_t, SIMT_THRUST_SITE) : Vector(count, no_init, site) {}
  Vector(size_t count, no_init_t, SIMT_THRUST_SITE) {
    reserve(count, site);
    if constexpr (std::is_trivially_default_constructible_v<T>)
      size_ = count;
    else
      append(count, site);
  }
  Vector(size_t count, const T &value, SIMT_THRUST_SITE) {
    reserve(count, site);
    append(count, value, site);
  }
  template <class In, class = IfIterator<In>>
  Vector(In first, In last, SIMT_THRUST_SITE) {
    append_range(first, last, site);
  }
  Vector(const Vector &other, SIMT_THRUST_SITE) { append_range(other.begin(), other.end(), site); }
  Vector(Vector &&other) noexcept { swap(other); }
  template <class U, class M>
  Vector(const Vector<U, M> &other, SIMT_THRUST_SITE) {
    append_range(other.begin(), other.end(), site);
  }
  template <class U, class A>
  Vector(const std::vector<U, A> &other, SIMT_THRUST_SITE) {
    append_range(other.begin(), other.end(), site);
  }
  Vector(std::initializer_list<T> list, SIMT_THRUST_SITE) { append_range(list.begin(), list.end(), site); }
  ~Vector() {
    destroy(0);
    if (data_) Memory::release(data_);
  }

  Vector &operator=(const Vector &other) {
    if (this != &other) assign(other.begin(), other.end());
    return *this;
  }
  Vector &operator=(Vector &&other) noexcept {
    swap(other);
    return *this;
  }
  template <class U, class M>
  Vector &operator=(const Vector<U, M> &other) {
    assign(other.begin(), other.end());
    return *this;
  }
  template <class U, class A>
  Vector &operator=(const std::vector<U, A> &other) {
    assign(other.begin(), other.end());
    return *this;
  }
  Vector &operator=(std::initializer_list<T> list) {
    assign(list.begin(), list.end());
    return *this;
  }
  void assign(size_t count, const T &value, SIMT_THRUST_SITE) {
    T copy = value;
    clear();
    reserve(count, site);
    append(count, copy, site);
  }
  template <class In, class = IfIterator<In>>
  void assign(In first, In last, SIMT_THRUST_SITE) {
    clear();
    append_range(first, last, site);
  }

  size_t size() const { return size_; }
  size_t capacity() const { return capacity_; }
  size_t max_size() const { return (size_t)PTRDIFF_MAX / sizeof(T); }
  bool empty() const { return size_ == 0; }
  void reserve(size_t count, SIMT_THRUST_SITE) {
    if (count > capacity_) move_to(count, site);
  }
  void shrink_to_fit(SIMT_THRUST_SITE) {
    if (size_ < capacity_) move_to(size_, site);
  }
  void resize(size_t count, SIMT_THRUST_SITE) {
    destroy(count);
    if (count <= size_) return;
    reserve(count, site);
    append(count - size_, site);
  }
  void resize(size_t count, const T &value, SIMT_THRUST_SITE) {
    destroy(count);
    if (count <= size_) return;
    T copy = value;
    reserve(count, site);
    append(count - size_, copy, site);
  }
  void clear() { destroy(0); }
  void push_back(const T &value, SIMT_THRUST_SITE) {
    T copy = value;
    grow(1, site);
    append(1, copy, site);
  }
  void pop_back() { destroy(size_ - 1); }
  void swap(Vector &other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    std::swap(capacity_, other.capacity_);
  }

  iterator begin() { return iterator(data_); }
  iterator end() { return iterator(data_ + size_); }
  const_iterator begin() const { return const_iterator(data_); }
  const_iterator end() const { return const_iterator(data_ + size_); }
  const_iterator cbegin() const { return begin(); }
  const_iterator cend() const { return end(); }
  reverse_iterator rbegin() { return reverse_iterator(end()); }
  reverse_iterator rend() { return reverse_iterator(begin()); }
  const_reverse_iterator rbegin() const { return const_reverse_iterator(end()); }
  const_reverse_iterator rend() const { return const_reverse_iterator(begin()); }
  const_reverse_iterator crbegin() const { return rbegin(); }
  const_reverse_iterator crend() const { return rend(); }
  pointer data() { return begin(); }
  const_pointer data() const { return begin(); }
  reference operator[](size_t i) { return *(begin() + (ptrdiff_t)i); }
  const_reference operator[](size_t i) const { return *(begin() + (ptrdiff_t)i); }
  reference front() { return (*this)[0]; }
  const_reference front() const { return (*this)[0]; }
  reference back() { return (*this)[size_ - 1]; }
  const_reference back() const { return (*this)[size_ - 1]; }

  iterator insert(const_iterator place, const T &value, SIMT_THRUST_SITE) { return insert(place, 1, value, site); }
  iterator insert(const_iterator place, size_t count, const T &value, SIMT_THRUST_SITE) {
    Vector values(count, value, site);
    return insert(place, values.begin(), values.end(), site);
  }
  template <class In, class = IfIterator<In>>
  iterator insert(const_iterator place, In first, In last, SIMT_THRUST_SITE) {
    ptrdiff_t before = place - cbegin();
    Vector result;
    result.append_range(cbegin(), place, site);
    result.append_range(first, last, site);
    result.append_range(place, cend(), site);
    swap(result);
    return begin() + before;
  }
  iterator erase(const_iterator place, SIMT_THRUST_SITE) { return erase(place, place + 1, site); }
  iterator erase(const_iterator first, const_iterator last, SIMT_THRUST_SITE) {
    ptrdiff_t before = first - cbegin();
    Vector rest(last, cend(), site);
    destroy((size_t)before);
    append_range(rest.begin(), rest.end(), site);
    return begin() + before;
  }

 private:
  void grow(size_t count, Site site) {
    if (size_ + count > capacity_) move_to(std::max(size_ + count, 2 * capacity_), site);
  }
  void move_to(size_t capacity, Site site) {
    Vector old;
    swap(old);
    if (capacity == 0) return;
    data_ = (T *)Memory::allocate(capacity * sizeof(T), site);
    capacity_ = capacity;
    append_range(old.cbegin(), old.cend(), site);
  }
  /* At the end, where there is room: T(), or a copy. */
  void append(size_t count, Site site) {
    if constexpr (on_device && std::is_trivial_v<T>) {
      if (count) check(cudaMemset(data_ + size_, 0, count * sizeof(T), site.file, site.line), Memory::name);
    } else {
      each(
          Policy(), Memory::name, site, count, [](size_t i, T *to) { new (to + i) T(); }, data_ + size_);
    }
    size_ += count;
  }
  void append(size_t count, const T &value, Site site) {
    each(
        Policy(), Memory::name, site, count, [value](size_t i, T *to) { new (to + i) T(value); }, data_ + size_);
    size_ += count;
  }
  template <class In>
  void append_range(In first, In last, Site site) {
    size_t count = length(first, last);
    grow(count, site);
    if constexpr (on_device || Systems<In>::device)
      copy_range(first, last, end(), site);
    else
      for (T *to = data_ + size_; first != last; ++first) new (to++) T(*first);
    size_ += count;
  }
  void destroy(size_t from) {
    if (from >= size_) return;
    if constexpr (!std::is_trivially_destructible_v<T>)
      each(
          Policy(), Memory::name, {__builtin_FILE(), __builtin_LINE()}, size_ - from,
          [](size_t i, T *at) { at[i].~T(); }, data_ + from);
    size_ = from;
  }

  T *data_ = nullptr;
  size_t size_ = 0, capacity_ = 0;
};

template <class T>
Vector<T, HostMemory> on_host(const Vector<T, DeviceMemory> &vector) {
  return vector;
}
template <class Host>
const Host &on_host(const Host &vector) {
  return vector;
}
template <class A, class B>
bool same_elements(const A &a, const B &b) {
  if (a.size() != b.size()) return false;
  const auto &x = on_host(a);
  const auto &y = on_host(b);
  for (size_t i = 0; i < a.size(); i++)
    if (!(x[i] == y[i])) return false;
  return true;
}

template <class T, class M, class U, class N>
bool operator==(const Vector<T, M> &a, const Vector<U, N> &b) {
  return same_elements(a, b);
}
template <class T, class M, class U, class N>
bool operator!=(const Vector<T, M> &a, const Vector<U, N> &b) {
  return !same_elements(a, b);
}
template <class T, class M, class U, class A>
bool operator==(const Vector<T, M> &a, const std::vector<U, A> &b) {
  return same_elements(a, b);
}
template <class T, class M, class U, class A>
bool operator!=(const Vector<T, M> &a, const std::vector<U, A> &b) {
  return !same_elements(a, b);
}
template <class T, class M, class U, class A>
bool operator==(const std::vector<U, A> &a, const Vector<T, M> &b) {
  return same_elements(a, b);
}
template <class T, class M, class U, class A>
bool operator!=(const std::vector<U, A> &a, const Vector<T, M> &b) {
  return !same_elements(a, b);
}
template <class T, class M>
void swap(Vector<T, M> &a, Vector<T, M> &b) {
  a.swap(b);
}

}  // namespace details
}  // namespace thrust

#endif /* SIMT_THRUST_VECTOR */
