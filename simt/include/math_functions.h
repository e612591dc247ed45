/* math_functions.h - CUDA once kept its mathematical functions here. */
#ifndef SIMT_MATH_FUNCTIONS_H
#define SIMT_MATH_FUNCTIONS_H
#define __MATH_FUNCTIONS_H__

#include "simt/math.h"

#endif /* SIMT_MATH_FUNCTIONS_H */
