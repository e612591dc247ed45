/* Included by curand_kernel.h in NVIDIA's toolkit, and at times by programs: here it is all in one file. */
#include "curand_kernel.h"
