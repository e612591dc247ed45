/* Checks the exercise of cifar_records.cuh (learn/check.h). */
#include "phase3_cnn/15_cifar10/cifar_records_lesson.cuh"

#include "learn/check.h"

CHECK_MAIN(cifar_records_lesson())
