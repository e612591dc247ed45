/* Checks top_k_before (learn/check.h). */
#include "phase5_production/10_onnx_runtime/picture_output_lesson.cuh"

#include "learn/check.h"

CHECK_MAIN(top_k_lesson())
