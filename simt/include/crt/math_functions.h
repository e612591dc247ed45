/* crt/math_functions.h - where newer toolkits keep math_functions.h. */
#include "../cuda_runtime.h"
