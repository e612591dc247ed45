/* Checks picture_bytes (learn/check.h). */
#include "phase5_production/10_onnx_runtime/picture_output_lesson.cuh"

#include "learn/check.h"

CHECK_MAIN(picture_bytes_lesson())
