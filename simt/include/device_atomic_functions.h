/* device_atomic_functions.h - where CUDA keeps its atomic operations. */
#ifndef SIMT_DEVICE_ATOMIC_FUNCTIONS_H
#define SIMT_DEVICE_ATOMIC_FUNCTIONS_H
#define __DEVICE_ATOMIC_FUNCTIONS_H__

#include "simt/atomics.h"

#endif /* SIMT_DEVICE_ATOMIC_FUNCTIONS_H */
