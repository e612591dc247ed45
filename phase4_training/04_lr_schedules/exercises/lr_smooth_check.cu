/* Checks smooth_warp and smooth_carry (learn/check.h). */
#include "phase4_training/04_lr_schedules/lr_schedules_lesson.cuh"

#include "learn/check.h"

CHECK_MAIN(smooth_lesson())
