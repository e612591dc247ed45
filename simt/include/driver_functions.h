/* driver_functions.h - make_cudaExtent() and its kin: in cuda_runtime_api.h. */
#include "cuda_runtime_api.h"
