/* map_peaks_op.cuh - map_peaks.cuh as MapPeaks of common/nn/features.h: for --show-excited of a Task. */
#ifndef PHASE3_CNN_MAP_PEAKS_OP_CUH
#define PHASE3_CNN_MAP_PEAKS_OP_CUH

#include "common/nn/features.h"
#include "phase3_cnn/12_lenet_mnist/map_peaks.cuh"

static inline void map_peaks(Device device, float *value, int *place, const float *x, int maps, int area) {
  ON_DEVICE(device, map_peaks_gpu(value, place, x, maps, area),
            features_map_peaks(device, value, place, x, maps, area));
}

#endif /* PHASE3_CNN_MAP_PEAKS_OP_CUH */
