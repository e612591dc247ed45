/* Checks confusion_answer and confusion_end (learn/check.h). */
#include "phase4_training/07_training_loop/training_loop_lesson.cuh"

#include "learn/check.h"

CHECK_MAIN(confusion_lesson())
