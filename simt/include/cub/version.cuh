/* cub/version.cuh -*- c++ -*- */
#include "cub/util_type.cuh"
