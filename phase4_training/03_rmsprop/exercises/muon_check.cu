/* Checks the exercises on Muon (learn/check.h). */
#include "phase4_training/03_rmsprop/muon_lesson.cuh"

#include "learn/check.h"

CHECK_MAIN(muon_lesson())
