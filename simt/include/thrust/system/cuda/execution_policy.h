/* thrust/system/cuda/execution_policy.h - thrust::cuda::par, par.on(stream), par_nosync. -*- c++ -*- */
#include "thrust/simt_common.h"
