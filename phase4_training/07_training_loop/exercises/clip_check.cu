/* Checks clip_warp_sum and clip_stride (learn/check.h). */
#include "phase4_training/07_training_loop/training_loop_lesson.cuh"

#include "learn/check.h"

CHECK_MAIN(clip_lesson())
