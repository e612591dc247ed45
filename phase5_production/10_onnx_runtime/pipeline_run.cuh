/* pipeline_run.cuh - the stages of pipeline.cuh one after the other in one thread, or all at once in threads of their
 * own. */
#ifndef PHASE5_PRODUCTION_PIPELINE_RUN_CUH
#define PHASE5_PRODUCTION_PIPELINE_RUN_CUH

#include "phase5_production/10_onnx_runtime/pipeline.cuh"

/* ---------------------------------------------------------------------------------------------------------------- */
/* One stage after the other, in one thread */

static inline void pipeline_finish_batch(Pipeline *p, Batch *b) {
  pipeline_wait_device(p);
  if (pipeline_infer(p, b, &p->fatal) == 0) pipeline_write(p, b);
  batch_reset(b);
}

static inline void pipeline_run_sequential(Pipeline *p) {
  Batch *b = &p->batch[0];
  PictureIn in;
  for (long item = 0; item < p->list->count && !interrupt_requested() && p->fatal.code == ERROR_NONE; item++) {
    pipeline_read(p, item, &in);
    if (!batch_takes(b, p, &in)) pipeline_finish_batch(p, b);
    batch_add(b, p, &in, item);
  }
  if (p->fatal.code == ERROR_NONE && b->entries > 0) pipeline_finish_batch(p, b);
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* All stages at once */

/* After Ctrl-C there is none. */
static inline long pipeline_next_picture(Pipeline *p) {
  if (interrupt_requested()) window_stop(&p->window);
  return window_begin(&p->window);
}

static inline void *pipeline_reader(void *pipeline) {
  Pipeline *p = (Pipeline *)pipeline;
#ifdef _OPENMP
  omp_set_num_threads(1); /* the readers are the threads */
#endif
  for (long item; (item = pipeline_next_picture(p)) >= 0;) {
    pipeline_read(p, item, &p->place[item % p->window_size]);
    window_ready(&p->window, item);
  }
  window_leave(&p->window);
  return NULL;
}

/* Passes a batch on, and takes an empty one; NULL: the pipeline was stopped. */
static inline Batch *pipeline_next_batch(Pipeline *p, Batch *full) {
  pipeline_wait_device(p);
  if (queue_put(&p->full, full) != 0) return NULL;
  Batch *b = (Batch *)queue_take(&p->empty);
  if (b) batch_reset(b);
  return b;
}

static inline void *pipeline_batcher(void *pipeline) {
  Pipeline *p = (Pipeline *)pipeline;
  Batch *b = (Batch *)queue_take(&p->empty);
  for (long item; (item = window_take(&p->window)) >= 0; window_release(&p->window)) {
    PictureIn *in = &p->place[item % p->window_size];
    if (b && !batch_takes(b, p, in)) b = pipeline_next_batch(p, b);
    if (b)
      batch_add(b, p, in, item);
    else
      picture_in_free(in);
    if (interrupt_requested()) window_stop(&p->window); /* before a place is free: readers may wait for one */
  }
  if (b && b->entries > 0) {
    pipeline_wait_device(p);
    queue_put(&p->full, b);
  }
  queue_close(&p->full);
  return NULL;
}

static inline void *pipeline_writer(void *pipeline) {
  Pipeline *p = (Pipeline *)pipeline;
  for (Batch *b; (b = (Batch *)queue_take(&p->done)) != NULL;) {
    pipeline_write(p, b);
    queue_put(&p->empty, b);
  }
  return NULL;
}

/* Nothing is begun any more; who waits is woken. */
static inline void pipeline_stop(Pipeline *p) {
  window_stop(&p->window);
  queue_close(&p->empty);
  queue_close(&p->full);
}

static inline void pipeline_start(pthread_t *thread, void *(*work)(void *), Pipeline *p) {
  const int why = pthread_create(thread, NULL, work, p);
  if (why != 0) die("a thread cannot be started: %s; use fewer --readers", strerror(why));
}

static inline void pipeline_run_overlapped(Pipeline *p) {
  pthread_t reader[PIPELINE_READERS], batcher, writer;
  p->window_size = 2 * p->batch_size > 4 * p->readers ? 2 * p->batch_size : 4 * p->readers;
  p->place = (PictureIn *)xcalloc((size_t)p->window_size, sizeof *p->place);
  window_open(&p->window, p->list->count, p->window_size, p->readers);
  queue_open(&p->empty, PIPELINE_BATCHES);
  queue_open(&p->full, PIPELINE_BATCHES);
  queue_open(&p->done, PIPELINE_BATCHES);
  for (int i = 0; i < PIPELINE_BATCHES; i++) queue_put(&p->empty, &p->batch[i]);
  for (int i = 0; i < p->readers; i++) pipeline_start(&reader[i], pipeline_reader, p);
  pipeline_start(&batcher, pipeline_batcher, p);
  pipeline_start(&writer, pipeline_writer, p);
  for (Batch *b; (b = (Batch *)queue_take(&p->full)) != NULL;) {
    if (p->fatal.code == ERROR_NONE && pipeline_infer(p, b, &p->fatal) == 0)
      queue_put(&p->done, b);
    else
      pipeline_stop(p);
  }
  queue_close(&p->done);
  for (int i = 0; i < p->readers; i++) pthread_join(reader[i], NULL);
  pthread_join(batcher, NULL);
  pthread_join(writer, NULL);
  queue_destroy(&p->empty);
  queue_destroy(&p->full);
  queue_destroy(&p->done);
  window_close(&p->window);
  free(p->place);
}

#endif /* PHASE5_PRODUCTION_PIPELINE_RUN_CUH */
