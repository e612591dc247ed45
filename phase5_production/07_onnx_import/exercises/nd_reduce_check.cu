/* Checks the exercise of nd_reduce_lesson.cuh (learn/check.h). */
#include "phase5_production/07_onnx_import/nd_reduce_lesson.cuh"

#include "learn/check.h"

CHECK_MAIN(nd_reduce_lesson())
