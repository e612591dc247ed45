/* Checks the exercises of batches.cuh (learn/check.h). */
#include "phase2_mlp/05_batches/batches_lesson.cuh"

#include "learn/check.h"

CHECK_MAIN(batch_gather_lesson())
