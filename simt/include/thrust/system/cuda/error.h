/* thrust/system/cuda/error.h - thrust::cuda_category(). -*- c++ -*- */
#include "thrust/system_error.h"
