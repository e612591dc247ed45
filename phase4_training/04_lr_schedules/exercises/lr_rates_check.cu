/* Checks schedule_cycle and schedule_cosine (learn/check.h). */
#include "phase4_training/04_lr_schedules/lr_schedules_lesson.cuh"

#include "learn/check.h"

CHECK_MAIN(rates_lesson())
