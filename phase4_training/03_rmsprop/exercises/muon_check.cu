/* Checks the exercise on Muon's momentum (learn/check.h). */
#include "phase4_training/03_rmsprop/muon_lesson.cuh"

#include "learn/check.h"

CHECK_MAIN(muon_momentum_lesson())
