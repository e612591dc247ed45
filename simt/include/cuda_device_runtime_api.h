/* cuda_device_runtime_api.h - the runtime for kernels that launch kernels, which are not emulated; its types. */
#include "cuda_runtime_api.h"
