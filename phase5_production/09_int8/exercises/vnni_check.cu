/* Checks the exercise vnni_signed (learn/check.h). */
#include "phase5_production/09_int8/vnni_lesson.cuh"

#include "learn/check.h"

CHECK_MAIN(vnni_lesson())
