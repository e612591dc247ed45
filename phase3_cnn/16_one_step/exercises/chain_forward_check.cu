/* Checks chain_products (learn/check.h). */
#include "phase3_cnn/16_one_step/one_step_lesson.cuh"

#include "learn/check.h"

CHECK_MAIN(chain_forward_lesson())
