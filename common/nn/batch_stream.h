/* batch_stream.h - the batches of a data set that stays in the host's memory: each is copied to the GPU while the GPU
 * computes the step before.
 *
 *     BatchStream stream;
 *     batch_stream_open(&stream, images, labels, pixels, label_bytes, most);
 *     batch_stream_take(&stream, order, count, start, batch);      // before a step
 *     ... launches that read batch_stream_images(&stream) ...
 *     batch_stream_forget(&stream);                                // `order` is another one from now on
 *
 * There are two slots. Each has a pinned buffer on the host and one on the GPU. The host puts a batch together in the
 * pinned buffer, in the order of the epoch, and a stream of its own copies it. batch_stream_take() submits the copy of
 * the batch behind the one that is asked for, into the other slot:
 *
 *     host        fill 1 | launch step 0 | fill 2 | launch step 1 | fill 3 ...
 *     copies              copy 1                  | copy 2                   ...
 *     the GPU             step 0                  | step 1                   ...
 *
 * Two events order them. A step waits until its own batch has been copied. A copy waits for the steps that were
 * submitted while its slot was the current one, because they read it. And the host waits, before it fills a pinned
 * buffer, until the copy from it has ended.
 *
 * What is asked for need not be what was expected: then it is copied at once, and the step waits for it. A CUDA graph
 * cannot record the events, which belong to two streams: call batch_stream_take() before the recording begins.
 */
#ifndef COMMON_NN_BATCH_STREAM_H
#define COMMON_NN_BATCH_STREAM_H

#include <stdint.h>
#include <string.h>

#include "common/check.h"
#include "common/error.h"

enum { BATCH_SLOTS = 2, BATCH_ALIGN = 64 };

typedef struct BatchSlot {
  uint8_t *pinned, *buffer; /* images, then labels; on the host, on the GPU */
  int start, batch;         /* which ones they are, of the order; start -1: none */
  cudaEvent_t copied, read; /* the copy into `buffer`; all that was submitted while this slot was the current one */
} BatchSlot;

typedef struct BatchStream {
  const uint8_t *images, *labels; /* (count, pixels), (count, label_bytes), on the host: the caller's */
  size_t pixels, label_bytes;
  uint32_t *in_order; /* (most), on the GPU: 0, 1, 2, ..: a batch in a slot is in its order */
  BatchSlot slot[BATCH_SLOTS];
  int current;
  cudaStream_t copies;
} BatchStream;

/* Where the labels of a batch begin. */
static inline size_t batch_stream_labels_at(const BatchStream *stream, int batch) {
  return (batch * stream->pixels + BATCH_ALIGN - 1) / BATCH_ALIGN * BATCH_ALIGN;
}

static inline void batch_stream_open(BatchStream *stream, const uint8_t *images, const uint8_t *labels, size_t pixels,
                                     size_t label_bytes, int most) {
  memset(stream, 0, sizeof *stream);
  stream->images = images;
  stream->labels = labels;
  stream->pixels = pixels;
  stream->label_bytes = label_bytes;
  const size_t bytes = batch_stream_labels_at(stream, most) + most * label_bytes;
  for (int i = 0; i < BATCH_SLOTS; i++) {
    BatchSlot *slot = &stream->slot[i];
    slot->start = -1;
    CUDA_CHECK(cudaMallocHost((void **)&slot->pinned, bytes));
    CUDA_CHECK(cudaMalloc((void **)&slot->buffer, bytes));
    CUDA_CHECK(cudaEventCreateWithFlags(&slot->copied, cudaEventDisableTiming));
    CUDA_CHECK(cudaEventCreateWithFlags(&slot->read, cudaEventDisableTiming));
  }
  uint32_t *in_order = (uint32_t *)xmalloc(most * sizeof *in_order);
  for (int i = 0; i < most; i++) in_order[i] = (uint32_t)i;
  CUDA_CHECK(cudaMalloc((void **)&stream->in_order, most * sizeof *in_order));
  CUDA_CHECK(cudaMemcpy(stream->in_order, in_order, most * sizeof *in_order, cudaMemcpyHostToDevice));
  free(in_order);
  CUDA_CHECK(cudaStreamCreateWithFlags(&stream->copies, cudaStreamNonBlocking));
}

static inline void batch_stream_close(BatchStream *stream) {
  CUDA_CHECK(cudaDeviceSynchronize());
  for (int i = 0; i < BATCH_SLOTS; i++) {
    BatchSlot *slot = &stream->slot[i];
    CUDA_CHECK(cudaEventDestroy(slot->copied));
    CUDA_CHECK(cudaEventDestroy(slot->read));
    CUDA_CHECK(cudaFree(slot->buffer));
    CUDA_CHECK(cudaFreeHost(slot->pinned));
  }
  CUDA_CHECK(cudaFree(stream->in_order));
  CUDA_CHECK(cudaStreamDestroy(stream->copies));
}

/* Images and labels start .. start + batch - 1 of the order into the pinned buffer. */
static inline void batch_stream_fill(const BatchStream *stream, BatchSlot *slot, const uint32_t *order, int start,
                                     int batch) {
  const size_t pixels = stream->pixels, label_bytes = stream->label_bytes;
  uint8_t *labels = slot->pinned + batch_stream_labels_at(stream, batch);
#pragma omp parallel for schedule(static) if (batch * pixels > 1 << 20)
  for (int b = 0; b < batch; b++) {
    const size_t image = order[start + b];
    memcpy(slot->pinned + b * pixels, stream->images + image * pixels, pixels);
    memcpy(labels + b * label_bytes, stream->labels + image * label_bytes, label_bytes);
  }
  slot->start = start;
  slot->batch = batch;
}

static inline void batch_stream_fetch(BatchStream *stream, BatchSlot *slot, const uint32_t *order, int start,
                                      int batch) {
  const size_t bytes = batch_stream_labels_at(stream, batch) + batch * stream->label_bytes;
  CUDA_CHECK(cudaEventSynchronize(slot->copied));
  batch_stream_fill(stream, slot, order, start, batch);
  CUDA_CHECK(cudaStreamWaitEvent(stream->copies, slot->read, 0));
  CUDA_CHECK(cudaMemcpyAsync(slot->buffer, slot->pinned, bytes, cudaMemcpyHostToDevice, stream->copies));
  CUDA_CHECK(cudaEventRecord(slot->copied, stream->copies));
}

static inline int batch_stream_holds(const BatchSlot *slot, int start, int batch) {
  return slot->start == start && slot->batch == batch;
}

/* Images start .. start + batch - 1 of the order become the current ones for all that is submitted next to the thread's
 * own stream; those behind them follow while that computes. */
static inline void batch_stream_take(BatchStream *stream, const uint32_t *order, int count, int start, int batch) {
  BatchSlot *last = &stream->slot[stream->current], *slot = &stream->slot[1 - stream->current];
  if (batch_stream_holds(last, start, batch)) return;
  CUDA_CHECK(cudaEventRecord(last->read, 0));
  if (!batch_stream_holds(slot, start, batch)) batch_stream_fetch(stream, slot, order, start, batch);
  CUDA_CHECK(cudaStreamWaitEvent(0, slot->copied, 0));
  stream->current = 1 - stream->current;
  const int next = start + batch, left = count - next;
  if (left > 0) batch_stream_fetch(stream, last, order, next, left < batch ? left : batch);
}

/* The slots hold nothing that can be asked for. */
static inline void batch_stream_forget(BatchStream *stream) {
  for (int i = 0; i < BATCH_SLOTS; i++) stream->slot[i].start = -1;
}

/* Of the current batch, on the GPU. */
static inline const uint8_t *batch_stream_images(const BatchStream *stream) {
  return stream->slot[stream->current].buffer;
}

static inline const uint8_t *batch_stream_labels(const BatchStream *stream) {
  const BatchSlot *slot = &stream->slot[stream->current];
  return slot->buffer + batch_stream_labels_at(stream, slot->batch);
}

#endif /* COMMON_NN_BATCH_STREAM_H */
