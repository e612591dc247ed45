/* augment.cu - augment_apply(), compiled once for all programs. */
#include "common/nn/augment.h"

#include "common/nn/augment_fast.cuh"

void augment_apply(const Augment *augment, Device device, float *y, const AugmentSource *source, int batch) {
  ON_DEVICE(device, augment_gpu(y, source, &augment->most, batch), augment_cpu_fast(y, source, &augment->most, batch));
}
