/* thrust/execution_policy.h - thrust::host, thrust::device, thrust::seq. -*- c++ -*- */
#include "thrust/simt_common.h"
