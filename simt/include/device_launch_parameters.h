/* device_launch_parameters.h - threadIdx, blockIdx, blockDim, gridDim: in simt/core.h. */
#ifndef __DEVICE_LAUNCH_PARAMETERS_H__
#define __DEVICE_LAUNCH_PARAMETERS_H__

#include "cuda_runtime.h"

#endif /* __DEVICE_LAUNCH_PARAMETERS_H__ */
