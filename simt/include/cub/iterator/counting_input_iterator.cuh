/* cub/iterator/counting_input_iterator.cuh -*- c++ -*- */
#include "cub/iterator/simt_iterators.cuh"
