/* Checks loss_scale_check (learn/check.h). */
#include "phase4_training/09_mixed_precision/mixed_precision_lesson.cuh"

#include "learn/check.h"

CHECK_MAIN(unscale_lesson())
