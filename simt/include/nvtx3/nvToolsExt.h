/* nvtx3/nvToolsExt.h - where CUDA 12 and later keep NVTX. */
#include "../nvToolsExt.h"
