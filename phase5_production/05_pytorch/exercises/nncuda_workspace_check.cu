/* Checks the exercise of nncuda_workspace.cuh (learn/check.h). */
#include "phase5_production/05_pytorch/nncuda_workspace_lesson.cuh"

#include "learn/check.h"

CHECK_MAIN(workspace_lesson())
