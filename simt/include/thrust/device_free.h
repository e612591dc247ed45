/* thrust/device_free.h -*- c++ -*- */
#ifndef SIMT_THRUST_DEVICE_FREE
#define SIMT_THRUST_DEVICE_FREE

#include "thrust/device_ptr.h"

namespace thrust {

inline void device_free(device_ptr<void> pointer) { details::check(cudaFree(pointer.get()), "thrust::device_free"); }

}  // namespace thrust

#endif /* SIMT_THRUST_DEVICE_FREE */
