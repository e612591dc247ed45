/* crt/device_functions.h - where newer toolkits keep device_functions.h. */
#include "../cuda_runtime.h"
