/* Checks the exercise on RMSprop (learn/check.h). */
#include "phase4_training/03_rmsprop/rmsprop_lesson.cuh"

#include "learn/check.h"

CHECK_MAIN(rmsprop_all_lesson())
