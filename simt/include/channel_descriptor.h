/* channel_descriptor.h - formats of CUDA arrays, which are not emulated. */
#include "cuda_runtime.h"
