/* host_device_test_other.cu - the second file of that test. */
#include "copied.cuh"

void launch_the_other_copy(int *x) { copied<<<1, 64>>>(x); }
