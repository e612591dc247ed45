/* Checks soft_loss and soft_gradient (learn/check.h). */
#include "phase4_training/05_regularization/regularization_lesson.cuh"

#include "learn/check.h"

CHECK_MAIN(soft_lesson())
