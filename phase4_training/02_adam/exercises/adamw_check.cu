/* Checks the exercise on AdamW (learn/check.h). */
#include "phase4_training/02_adam/adam_lesson.cuh"

#include "learn/check.h"

CHECK_MAIN(adam_both_lesson())
