/* cub/thread/thread_store.cuh -*- c++ -*- */
#include "cub/iterator/simt_iterators.cuh"
