/* Checks the exercises of map_peaks.cuh (learn/check.h). */
#include "phase3_cnn/12_lenet_mnist/map_peaks_lesson.cuh"

#include "learn/check.h"

CHECK_MAIN(map_peaks_lesson())
