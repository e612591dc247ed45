/* cub/device/device_segmented_sort.cuh -*- c++ -*- */
#include "cub/device/device_segmented_radix_sort.cuh"
