/* thrust/device_reference.h - an element of device memory: the host reads and writes it by copies. -*- c++ -*- */
#ifndef SIMT_THRUST_DEVICE_REFERENCE
#define SIMT_THRUST_DEVICE_REFERENCE

#include "thrust/device_ptr.h"

#endif /* SIMT_THRUST_DEVICE_REFERENCE */
