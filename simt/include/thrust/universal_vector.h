/* thrust/universal_vector.h - a vector in managed memory: the host uses its elements as its own. -*- c++ -*- */
#ifndef SIMT_THRUST_UNIVERSAL_VECTOR
#define SIMT_THRUST_UNIVERSAL_VECTOR

#include "thrust/iterator/simt_iterator.h"
#include "thrust/simt_common.h"
#include "thrust/simt_vector.h"

namespace thrust {

/* Algorithms run on the device. */
template <class T>
class universal_ptr : public details::Iterator<universal_ptr<T>, device_system_tag, std::remove_cv_t<T>, T &> {
 public:
  universal_ptr() : pointer_(nullptr) {}
  template <class U, std::enable_if_t<std::is_convertible_v<U *, T *>, int> = 0>
  explicit universal_ptr(U *pointer) : pointer_(pointer) {}
  template <class U, std::enable_if_t<std::is_convertible_v<U *, T *>, int> = 0>
  universal_ptr(const universal_ptr<U> &other) : pointer_(other.get()) {}
  T &at(ptrdiff_t n) const { return pointer_[n]; }
  void move(ptrdiff_t n) { pointer_ += n; }
  ptrdiff_t to(const universal_ptr &other) const { return other.pointer_ - pointer_; }
  T *operator->() const { return pointer_; }
  T *get() const { return pointer_; }
  T *simt_raw() const { return pointer_; }
  explicit operator bool() const { return pointer_ != nullptr; }

 private:
  T *pointer_;
};

template <class T>
T *raw_pointer_cast(const universal_ptr<T> &pointer) {
  return pointer.get();
}

namespace details {
struct UniversalMemory : DeviceMemory {
  template <class T>
  using Pointer = universal_ptr<T>;
  template <class T>
  using Reference = T &;
  static constexpr const char *name = "thrust::universal_vector";
  static void *allocate(size_t bytes, Site site) {
    void *memory = nullptr;
    cudaError_t error = cudaMallocManaged(&memory, bytes, cudaMemAttachGlobal, site.file, site.line);
    if (error != cudaSuccess) throw BadAllocation(error);
    return memory;
  }
};
}  // namespace details

template <class T>
class universal_vector : public details::Vector<T, details::UniversalMemory> {
  typedef details::Vector<T, details::UniversalMemory> Base;

 public:
  using Base::Base;
  using Base::operator=;
};

}  // namespace thrust

#endif /* SIMT_THRUST_UNIVERSAL_VECTOR */
