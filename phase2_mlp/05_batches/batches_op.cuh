/* batches_op.cuh - batches.cuh as Batches of common/nn: how an epoch is shuffled, and how a batch is gathered. */
#ifndef PHASE2_MLP_BATCHES_OP_CUH
#define PHASE2_MLP_BATCHES_OP_CUH

#include "common/nn/device_set.h"
#include "phase2_mlp/05_batches/batches.cuh"

static inline void batches_op_gather(Device device, float *x, int *labels, const uint8_t *samples,
                                     const uint8_t *all_labels, const uint32_t *order, int batch, int pixels,
                                     float mean, float stddev) {
  ON_DEVICE(device, batch_gather_gpu(x, labels, samples, all_labels, order, batch, pixels, mean, stddev),
            batch_gather_cpu_fast(x, labels, samples, all_labels, order, batch, pixels, mean, stddev));
}

static const Batches batch_kernels = {batches_shuffle, batches_op_gather};

#endif /* PHASE2_MLP_BATCHES_OP_CUH */
