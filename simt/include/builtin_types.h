/* builtin_types.h - types of the runtime and vectors: in driver_types.h and vector_types.h. */
#include "cuda_runtime_api.h"
