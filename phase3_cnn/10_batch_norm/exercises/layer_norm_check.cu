/* Checks layer_norm_statistics and layer_norm_moments (learn/check.h). */
#include "phase3_cnn/10_batch_norm/norms_lesson.cuh"

#include "learn/check.h"

CHECK_MAIN(layer_norm_forward_lesson())
