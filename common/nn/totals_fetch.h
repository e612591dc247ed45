/* totals_fetch.h - the sums of a training step, fetched without waiting for the steps that come after.
 *
 *     TotalsFetch fetch;
 *     totals_fetch_open(&fetch, &net);
 *     totals_fetch_begin(&fetch, &net);                  // behind the steps so far; returns at once
 *     ... launch further steps ...
 *     StepTotals totals = totals_fetch_end(&fetch);      // waits for the copy alone
 *
 * model_read_totals() waits for all that was launched, and then nothing is left for the GPU to do until the host has
 * looked, logged and launched again. Here the copy is one more entry of the thread's own stream, into memory that the
 * GPU can reach (pinned), and an event says when it is there. The loss scale of fp16 comes along.
 */
#ifndef COMMON_NN_TOTALS_FETCH_H
#define COMMON_NN_TOTALS_FETCH_H

#include "common/check.h"
#include "common/nn/model.h"

typedef struct StepTotals {
  Totals totals;
  double norms; /* of the gradients (MODEL_NORMS) */
} StepTotals;

typedef struct TotalsFetch {
  Device device;
  double *sums;     /* (MODEL_TOTALS), pinned where the network is on a GPU */
  LossScale *scale; /* likewise; NULL: the network has none */
  cudaEvent_t there;
} TotalsFetch;

static inline void totals_fetch_open(TotalsFetch *fetch, const Model *net) {
  memset(fetch, 0, sizeof *fetch);
  fetch->device = net->context.device;
  const size_t bytes = MODEL_TOTALS * sizeof(double);
  ON_DEVICE(
      fetch->device,
      {
        CUDA_CHECK(cudaMallocHost((void **)&fetch->sums, bytes));
        if (net->loss_scale) CUDA_CHECK(cudaMallocHost((void **)&fetch->scale, sizeof *fetch->scale));
        CUDA_CHECK(cudaEventCreateWithFlags(&fetch->there, cudaEventDisableTiming));
      },
      {
        fetch->sums = (double *)xcalloc(1, bytes);
        if (net->loss_scale) fetch->scale = (LossScale *)xcalloc(1, sizeof *fetch->scale);
      });
}

static inline void totals_fetch_close(TotalsFetch *fetch) {
  if (fetch->sums == NULL) return;
  ON_DEVICE(
      fetch->device,
      {
        CUDA_CHECK(cudaEventSynchronize(fetch->there));
        CUDA_CHECK(cudaEventDestroy(fetch->there));
        CUDA_CHECK(cudaFreeHost(fetch->sums));
        if (fetch->scale) CUDA_CHECK(cudaFreeHost(fetch->scale));
      },
      {
        free(fetch->sums);
        free(fetch->scale);
      });
  memset(fetch, 0, sizeof *fetch);
}

static inline void totals_fetch_begin(TotalsFetch *fetch, const Model *net) {
  const size_t bytes = MODEL_TOTALS * sizeof(double);
  ON_DEVICE(
      fetch->device,
      {
        CUDA_CHECK(cudaMemcpyAsync(fetch->sums, net->totals, bytes, cudaMemcpyDeviceToHost, 0));
        if (fetch->scale)
          CUDA_CHECK(cudaMemcpyAsync(fetch->scale, net->loss_scale, sizeof *fetch->scale, cudaMemcpyDeviceToHost, 0));
        CUDA_CHECK(cudaEventRecord(fetch->there, 0));
      },
      {
        memcpy(fetch->sums, net->totals, bytes);
        if (fetch->scale) *fetch->scale = *net->loss_scale;
      });
}

/* fetch->scale is there then, too. */
static inline StepTotals totals_fetch_end(TotalsFetch *fetch) {
  ON_DEVICE(fetch->device, CUDA_CHECK(cudaEventSynchronize(fetch->there)), (void)0);
  const StepTotals totals = {{fetch->sums[0], fetch->sums[1]}, fetch->sums[MODEL_NORMS]};
  return totals;
}

#endif /* COMMON_NN_TOTALS_FETCH_H */
