/* Checks trial_rate and trial_steps (learn/check.h). */
#include "phase4_training/08_train/search_kernels_lesson.cuh"

#include "learn/check.h"

CHECK_MAIN(trial_steps_lesson())
