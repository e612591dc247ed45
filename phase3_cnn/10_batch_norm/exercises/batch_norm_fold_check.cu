/* Checks batch_norm_fold (learn/check.h). */
#include "phase3_cnn/10_batch_norm/batch_norm_lesson.cuh"

#include "learn/check.h"

CHECK_MAIN(batch_norm_fold_lesson())
