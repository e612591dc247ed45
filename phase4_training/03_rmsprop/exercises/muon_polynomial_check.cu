/* Checks the exercise on the polynomial of Newton-Schulz (learn/check.h). */
#include "phase4_training/03_rmsprop/muon_lesson.cuh"

#include "learn/check.h"

CHECK_MAIN(muon_polynomial_lesson())
