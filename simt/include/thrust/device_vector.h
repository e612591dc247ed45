/* thrust/device_vector.h - an array in device memory that grows. -*- c++ -*- */
#ifndef SIMT_THRUST_DEVICE_VECTOR
#define SIMT_THRUST_DEVICE_VECTOR

#include "thrust/device_allocator.h"
#include "thrust/simt_common.h"
#include "thrust/simt_vector.h"

namespace thrust {

template <class T, class Allocator = device_allocator<T>>
class device_vector : public details::Vector<T, details::DeviceMemory> {
  static_assert(std::is_same_v<Allocator, device_allocator<T>>,
                "simt: Thrust: a device_vector with an allocator of one's own is not supported");
  typedef details::Vector<T, details::DeviceMemory> Base;

 public:
  typedef Allocator allocator_type;
  using Base::Base;
  using Base::operator=;
};

}  // namespace thrust

#endif /* SIMT_THRUST_DEVICE_VECTOR */
