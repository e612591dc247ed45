/* thrust/host_vector.h - an array in host memory that grows. -*- c++ -*- */
#ifndef SIMT_THRUST_HOST_VECTOR
#define SIMT_THRUST_HOST_VECTOR

#include <memory>

#include "thrust/simt_common.h"
#include "thrust/simt_vector.h"

namespace thrust {

template <class T, class Allocator = std::allocator<T>>
class host_vector : public details::Vector<T, details::HostMemory> {
  static_assert(std::is_same_v<Allocator, std::allocator<T>>,
                "simt: Thrust: a host_vector with an allocator of one's own is not supported");
  typedef details::Vector<T, details::HostMemory> Base;

 public:
  typedef Allocator allocator_type;
  using Base::Base;
  using Base::operator=;
};

}  // namespace thrust

#endif /* SIMT_THRUST_HOST_VECTOR */
