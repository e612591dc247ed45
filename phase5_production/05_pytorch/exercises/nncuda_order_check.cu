/* Checks the exercise of nncuda_order.cuh (learn/check.h). */
#include "phase5_production/05_pytorch/nncuda_order_lesson.cuh"

#include "learn/check.h"

CHECK_MAIN(order_lesson())
