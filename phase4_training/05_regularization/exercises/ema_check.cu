/* Checks ema_update (learn/check.h). */
#include "phase4_training/05_regularization/regularization_lesson.cuh"

#include "learn/check.h"

CHECK_MAIN(ema_lesson())
