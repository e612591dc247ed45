/* Checks the exercises of fold_shortcut.cuh (learn/check.h). */
#include "phase5_production/04_resnet18_fused/fold_shortcut_lesson.cuh"

#include "learn/check.h"

CHECK_MAIN(fold_shortcut_lesson())
