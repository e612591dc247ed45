/* thrust/device_allocator.h - the allocator of a device_vector, which is always cudaMalloc(). -*- c++ -*- */
#ifndef SIMT_THRUST_DEVICE_ALLOCATOR
#define SIMT_THRUST_DEVICE_ALLOCATOR

namespace thrust {

template <class T>
struct device_allocator {
  typedef T value_type;
};

}  // namespace thrust

#endif /* SIMT_THRUST_DEVICE_ALLOCATOR */
