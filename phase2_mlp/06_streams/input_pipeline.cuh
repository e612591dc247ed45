/* input_pipeline.cuh - images from the host's memory to a GPU that works on them, batch after batch, in six ways.
 *
 * A batch is `bytes` bytes of images. feed->work(images, i, context) submits the work on batch i: kernels in the
 * default stream, which read `images` on the GPU. This file does not depend on what they compute. Each version submits
 * all batches and returns; the results are there after cudaDeviceSynchronize().
 *
 *   feed_cpu         plain loops, no GPU
 *   feed_pageable    copy, work, copy, work; from memory as malloc() gives it
 *   feed_pinned      the same from pinned memory
 *   feed_overlapped  copies in a stream of their own, into one of two buffers while the GPU works on the other
 *   feed_staged      the same from pageable memory: the host fills one of two pinned buffers meanwhile
 *   feed_mapped      no copies: the kernels read the host's pinned memory, across the bus
 *   feed_resident    no copies: the images have been on the GPU before
 *
 * A copy engine reads memory by physical addresses, and pages of ordinary memory may move or be swapped out at any
 * time. So the driver first copies such pages to a pinned buffer of its own, piece by piece, and cudaMemcpyAsync()
 * returns when that is done: it is asynchronous only from pinned memory. Pinned memory cannot be swapped out, and is
 * therefore kept small.
 *
 * A stream is a queue: what is submitted to it runs in order. Between two streams there is no order, unless an event
 * makes one: cudaEventRecord() puts a mark at the end of one queue, cudaStreamWaitEvent() stops the other there until
 * the mark is reached. Neither stops the host. `copies` is created with cudaStreamNonBlocking: any other stream waits
 * for the default stream, where the kernels are, and the default stream for it, and nothing would overlap.
 */
#ifndef PHASE2_MLP_INPUT_PIPELINE_CUH
#define PHASE2_MLP_INPUT_PIPELINE_CUH

#include "common/check.h"
#include "common/device.h"
#include "common/timeline.h"

enum { FEED_BUFFERS = 2 };

/* Lanes of the timeline. The events that end its spans also order the streams. */
enum { FEED_COPY, FEED_WORK, FEED_HOST };

typedef void FeedWork(const uint8_t *images, int batch, void *context);

typedef struct Feed Feed;
typedef void FeedVersion(Feed *feed);

struct Feed {
  int batches;
  size_t bytes;                   /* of a batch */
  FeedWork *work;                 /* submits kernels to the default stream */
  void *context;                  /* for work() */
  const uint8_t *pageable;        /* (batches, bytes), host */
  uint8_t *pinned;                /* (batches, bytes), host: the same images */
  uint8_t *staging[FEED_BUFFERS]; /* (bytes) each, host, pinned */
  uint8_t *buffer[FEED_BUFFERS];  /* (bytes) each, GPU */
  uint8_t *resident;              /* (batches, bytes), GPU: the same images */
  cudaStream_t copies;
  TimelineRecorder recorder;
};

/* images (batches, bytes) stay the caller's. */
static inline void feed_open(Feed *feed, const uint8_t *images, int batches, size_t bytes, FeedWork *work,
                             void *context) {
  const size_t all = (size_t)batches * bytes;
  memset(feed, 0, sizeof *feed);
  feed->batches = batches;
  feed->bytes = bytes;
  feed->work = work;
  feed->context = context;
  feed->pageable = images;
  CUDA_CHECK(cudaMallocHost((void **)&feed->pinned, all));
  memcpy(feed->pinned, images, all);
  for (int slot = 0; slot < FEED_BUFFERS; slot++) {
    CUDA_CHECK(cudaMallocHost((void **)&feed->staging[slot], bytes));
    CUDA_CHECK(cudaMalloc((void **)&feed->buffer[slot], bytes));
  }
  CUDA_CHECK(cudaMalloc((void **)&feed->resident, all));
  CUDA_CHECK(cudaMemcpy(feed->resident, images, all, cudaMemcpyHostToDevice));
  CUDA_CHECK(cudaStreamCreateWithFlags(&feed->copies, cudaStreamNonBlocking));
  feed->recorder = timeline_open(batches, FEED_HOST);
}

static inline void feed_close(Feed *feed) {
  CUDA_CHECK(cudaDeviceSynchronize());
  timeline_close(&feed->recorder);
  CUDA_CHECK(cudaStreamDestroy(feed->copies));
  CUDA_CHECK(cudaFree(feed->resident));
  for (int slot = 0; slot < FEED_BUFFERS; slot++) {
    CUDA_CHECK(cudaFree(feed->buffer[slot]));
    CUDA_CHECK(cudaFreeHost(feed->staging[slot]));
  }
  CUDA_CHECK(cudaFreeHost(feed->pinned));
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* CPU reference: work() computes on the host */

static inline void feed_cpu(const uint8_t *images, int batches, size_t bytes, FeedWork *work, void *context) {
  for (int i = 0; i < batches; i++) work(images + (size_t)i * bytes, i, context);
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* Steps of every version: what is submitted for batch i, with an event at both ends */

/* to (bytes) on the GPU, from (bytes) on the host */
static inline void feed_copy(Feed *feed, int i, uint8_t *to, const uint8_t *from, cudaStream_t stream) {
  timeline_begin(&feed->recorder, FEED_COPY, i, stream);
  CUDA_CHECK(cudaMemcpyAsync(to, from, feed->bytes, cudaMemcpyHostToDevice, stream));
  timeline_end(&feed->recorder, FEED_COPY, i, stream);
}

static inline void feed_work(Feed *feed, int i, const uint8_t *images) {
  timeline_begin(&feed->recorder, FEED_WORK, i, 0);
  feed->work(images, i, feed->context);
  timeline_end(&feed->recorder, FEED_WORK, i, 0);
}

/* The events behind them */
static inline cudaEvent_t feed_copied(const Feed *feed, int i) { return timeline_ended(&feed->recorder, FEED_COPY, i); }
static inline cudaEvent_t feed_worked(const Feed *feed, int i) { return timeline_ended(&feed->recorder, FEED_WORK, i); }

/* ---------------------------------------------------------------------------------------------------------------- */
/* Versions */

/* One stream and one buffer: the stream runs copy and work in order, so no event is needed, and nothing overlaps. */
static inline void feed_pageable(Feed *feed) {
  for (int i = 0; i < feed->batches; i++) {
    feed_copy(feed, i, feed->buffer[0], feed->pageable + (size_t)i * feed->bytes, 0);
    feed_work(feed, i, feed->buffer[0]);
  }
}

static inline void feed_pinned(Feed *feed) {
  for (int i = 0; i < feed->batches; i++) {
    feed_copy(feed, i, feed->buffer[0], feed->pinned + (size_t)i * feed->bytes, 0);
    feed_work(feed, i, feed->buffer[0]);
  }
}

/* Batch i has the buffer i % 2. A copy into it waits for the work on batch i - 2, which read it last; the work waits
 * for the copy. So the copy of batch i + 1 has all the time of the work on batch i. */
static inline void feed_overlapped(Feed *feed) {
  for (int i = 0; i < feed->batches; i++) {
    uint8_t *buffer = feed->buffer[i % FEED_BUFFERS];
    const uint8_t *images = feed->pinned + (size_t)i * feed->bytes;
    // >>> exercise feed_overlapped: copy `images` to `buffer` in the stream feed->copies; work on it in the default one
    // hint: feed_copy() and feed_work() submit them; two things must wait for an event of the other stream
    // hint: the copy: until batch i - 2 has been worked on, if there was one; the work: until its own copy has ended
    // hint: CUDA_CHECK(cudaStreamWaitEvent(feed->copies, feed_worked(feed, i - FEED_BUFFERS), 0)); before the copy
    if (i >= FEED_BUFFERS) CUDA_CHECK(cudaStreamWaitEvent(feed->copies, feed_worked(feed, i - FEED_BUFFERS), 0));
    feed_copy(feed, i, buffer, images, feed->copies);
    CUDA_CHECK(cudaStreamWaitEvent(0, feed_copied(feed, i), 0));
    feed_work(feed, i, buffer);
    // <<< exercise
  }
}

/* One core does not read memory as fast as a GPU works: all cores fill a buffer, 64 KiB at a time. */
static inline void feed_fill(uint8_t *to, const uint8_t *from, size_t bytes) {
  const size_t piece = 65536;
#pragma omp parallel for schedule(static) if (bytes > piece)
  for (size_t at = 0; at < bytes; at += piece) memcpy(to + at, from + at, bytes - at < piece ? bytes - at : piece);
}

/* Two buffers on the host as well. Here they are filled with images from pageable memory, in other programs with images
 * that are read from a file, decoded, shuffled. The host is not a stream: it waits by cudaEventSynchronize(). */
static inline void feed_staged(Feed *feed) {
  for (int i = 0; i < feed->batches; i++) {
    uint8_t *buffer = feed->buffer[i % FEED_BUFFERS], *staging = feed->staging[i % FEED_BUFFERS];
    const uint8_t *images = feed->pageable + (size_t)i * feed->bytes;
    // >>> exercise feed_staged: let the host wait until it may fill `staging`; then fill it with `images`
    // hint: the GPU still reads `staging` while it copies batch i - 2; the call has returned long before that
    // hint: cudaEventSynchronize(event) stops the host until the event has happened; feed_fill() fills the buffer
    // hint: if (i >= FEED_BUFFERS) CUDA_CHECK(cudaEventSynchronize(feed_copied(feed, i - FEED_BUFFERS)));
    if (i >= FEED_BUFFERS) CUDA_CHECK(cudaEventSynchronize(feed_copied(feed, i - FEED_BUFFERS)));
    timeline_host_begin(&feed->recorder, i);
    feed_fill(staging, images, feed->bytes);
    timeline_host_end(&feed->recorder, i);
    // <<< exercise
    // >>> hidden feed_overlapped
    if (i >= FEED_BUFFERS) CUDA_CHECK(cudaStreamWaitEvent(feed->copies, feed_worked(feed, i - FEED_BUFFERS), 0));
    feed_copy(feed, i, buffer, staging, feed->copies);
    CUDA_CHECK(cudaStreamWaitEvent(0, feed_copied(feed, i), 0));
    feed_work(feed, i, buffer);
    // <<< hidden
  }
}

/* Pinned memory has an address on the GPU, too; on 64-bit systems the same one. Each access crosses the bus: for
 * data that are read once, by many threads at a time. */
static inline void feed_mapped(Feed *feed) {
  for (int i = 0; i < feed->batches; i++) {
    uint8_t *images;
    CUDA_CHECK(cudaHostGetDevicePointer((void **)&images, feed->pinned + (size_t)i * feed->bytes, 0));
    feed_work(feed, i, images);
  }
}

static inline void feed_resident(Feed *feed) {
  for (int i = 0; i < feed->batches; i++) feed_work(feed, i, feed->resident + (size_t)i * feed->bytes);
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* To run one */

static inline Timeline feed_timeline(const char *name) {
  Timeline timeline = timeline_make(name);
  timeline_lane(&timeline, "copy"); /* in the order of FEED_COPY, .. */
  timeline_lane(&timeline, "work");
  timeline_lane(&timeline, "host");
  return timeline;
}

/* All batches by one version, to the end; returns how long that took (TIMELINE_UNIT). */
static inline double feed_run(Feed *feed, FeedVersion *version, Timeline *timeline) {
  timeline_start(&feed->recorder);
  version(feed);
  return timeline_stop(&feed->recorder, timeline);
}

/* Clears the buffers, so that no version finds another version's images in them. */
static inline void feed_forget(Feed *feed) {
  for (int slot = 0; slot < FEED_BUFFERS; slot++) {
    CUDA_CHECK(cudaMemset(feed->buffer[slot], 0, feed->bytes));
    memset(feed->staging[slot], 0, feed->bytes);
  }
  CUDA_CHECK(cudaDeviceSynchronize());
}

#endif /* PHASE2_MLP_INPUT_PIPELINE_CUH */
