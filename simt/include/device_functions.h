/* device_functions.h - CUDA once kept its device functions here. */
#ifndef SIMT_DEVICE_FUNCTIONS_H
#define SIMT_DEVICE_FUNCTIONS_H
#define __DEVICE_FUNCTIONS_H__

#include "simt/intrinsics.h"

#endif /* SIMT_DEVICE_FUNCTIONS_H */
