/* common_functions.h - clock(), printf(), assert() in kernels: in cuda_runtime.h. */
#include "cuda_runtime.h"
