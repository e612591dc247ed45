/* cub/iterator/discard_output_iterator.cuh -*- c++ -*- */
#include "cub/iterator/simt_iterators.cuh"
