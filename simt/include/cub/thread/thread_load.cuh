/* cub/thread/thread_load.cuh -*- c++ -*- */
#include "cub/iterator/simt_iterators.cuh"
