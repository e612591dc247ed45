/* cub/config.cuh -*- c++ -*- */
#include "cub/util_type.cuh"
