/* device_types.h - enumerations for device code: in cuda_runtime.h. */
#include "cuda_runtime.h"
