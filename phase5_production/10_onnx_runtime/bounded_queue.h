/* bounded_queue.h - how the threads of a pipeline hand work to each other: with limits, so that the fast ones wait and
 * memory stays bounded.
 *
 * A queue of pointers, first in, first out. Where it is full, who puts waits; where it is empty, who takes waits:
 *
 *     queue_open(&q, 3);
 *     queue_put(&q, batch);                     // 0; -1: the queue was closed
 *     while ((batch = queue_take(&q)) != NULL)  // NULL: closed, and nothing is left
 *
 * A window over numbered items, which several producers prepare in any order and one consumer takes in order. Item i
 * has a place of its own, i % window, from window_begin() to window_release():
 *
 *     while ((i = window_begin(&w)) >= 0) {     // -1: no more
 *       read_picture(i, &place[i % SIZE]);
 *       window_ready(&w, i);
 *     }
 *     window_leave(&w);
 *
 *     while ((i = window_take(&w)) >= 0) {      // in order; -1: no more
 *       use(&place[i % SIZE]);
 *       window_release(&w);
 *     }
 *
 * Both count the seconds that threads have waited: who waits is not what limits the pipeline.
 */
#ifndef PHASE5_PRODUCTION_BOUNDED_QUEUE_H
#define PHASE5_PRODUCTION_BOUNDED_QUEUE_H

#include "common/error.h"

#include <pthread.h>

#include "common/timer.h"

enum { QUEUE_MOST = 16 };

typedef struct BoundedQueue {
  pthread_mutex_t lock;
  pthread_cond_t changed;
  void *entry[QUEUE_MOST];
  int first, count, room, closed;
  double put_waited, take_waited; /* seconds */
} BoundedQueue;

static inline void queue_open(BoundedQueue *q, int room) {
  memset(q, 0, sizeof *q);
  pthread_mutex_init(&q->lock, NULL);
  pthread_cond_init(&q->changed, NULL);
  q->room = room < QUEUE_MOST ? room : QUEUE_MOST;
}

/* When no thread uses it any more. */
static inline void queue_destroy(BoundedQueue *q) {
  pthread_cond_destroy(&q->changed);
  pthread_mutex_destroy(&q->lock);
}

static inline int queue_put(BoundedQueue *q, void *entry) {
  pthread_mutex_lock(&q->lock);
  const double start = seconds_now();
  while (q->count == q->room && !q->closed) pthread_cond_wait(&q->changed, &q->lock);
  q->put_waited += seconds_now() - start;
  const int closed = q->closed;
  if (!closed) q->entry[(q->first + q->count++) % q->room] = entry;
  pthread_cond_broadcast(&q->changed);
  pthread_mutex_unlock(&q->lock);
  return closed ? -1 : 0;
}

static inline void *queue_take(BoundedQueue *q) {
  void *entry = NULL;
  pthread_mutex_lock(&q->lock);
  const double start = seconds_now();
  while (q->count == 0 && !q->closed) pthread_cond_wait(&q->changed, &q->lock);
  q->take_waited += seconds_now() - start;
  if (q->count > 0) {
    entry = q->entry[q->first];
    q->first = (q->first + 1) % q->room;
    q->count--;
  }
  pthread_cond_broadcast(&q->changed);
  pthread_mutex_unlock(&q->lock);
  return entry;
}

/* Nothing more is put. What is in the queue is still taken. */
static inline void queue_close(BoundedQueue *q) {
  pthread_mutex_lock(&q->lock);
  q->closed = 1;
  pthread_cond_broadcast(&q->changed);
  pthread_mutex_unlock(&q->lock);
}

/* ---------------------------------------------------------------------------------------------------------------- */

typedef struct OrderedWindow {
  pthread_mutex_t lock;
  pthread_cond_t changed;
  long items;        /* in all */
  long begun, taken; /* the next that a producer begins; the next that the consumer gets */
  int size, producers, stopped;
  char *ready;                          /* (size): item i's is ready[i % size] */
  double producers_waited, take_waited; /* seconds; of the producers all together */
} OrderedWindow;

static inline void window_open(OrderedWindow *w, long items, int size, int producers) {
  memset(w, 0, sizeof *w);
  pthread_mutex_init(&w->lock, NULL);
  pthread_cond_init(&w->changed, NULL);
  w->items = items;
  w->size = size;
  w->producers = producers;
  w->ready = (char *)xcalloc((size_t)size, 1);
}

static inline void window_close(OrderedWindow *w) {
  pthread_cond_destroy(&w->changed);
  pthread_mutex_destroy(&w->lock);
  free(w->ready);
}

/* No item is begun from now on; those that are begun still come to the consumer. */
static inline void window_stop(OrderedWindow *w) {
  pthread_mutex_lock(&w->lock);
  w->stopped = 1;
  pthread_cond_broadcast(&w->changed);
  pthread_mutex_unlock(&w->lock);
}

/* A producer's next item, when its place is free; -1: there is none. */
static inline long window_begin(OrderedWindow *w) {
  pthread_mutex_lock(&w->lock);
  const double start = seconds_now();
  while (!w->stopped && w->begun < w->items && w->begun - w->taken >= w->size) pthread_cond_wait(&w->changed, &w->lock);
  w->producers_waited += seconds_now() - start;
  const long item = w->stopped || w->begun >= w->items ? -1 : w->begun++;
  pthread_mutex_unlock(&w->lock);
  return item;
}

static inline void window_ready(OrderedWindow *w, long item) {
  pthread_mutex_lock(&w->lock);
  w->ready[item % w->size] = 1;
  pthread_cond_broadcast(&w->changed);
  pthread_mutex_unlock(&w->lock);
}

/* A producer begins no more. */
static inline void window_leave(OrderedWindow *w) {
  pthread_mutex_lock(&w->lock);
  w->producers--;
  pthread_cond_broadcast(&w->changed);
  pthread_mutex_unlock(&w->lock);
}

/* The next item in order; its place stays the consumer's until window_release(). */
static inline long window_take(OrderedWindow *w) {
  pthread_mutex_lock(&w->lock);
  const double start = seconds_now();
  while (!w->ready[w->taken % w->size] && (w->taken < w->begun || w->producers > 0) && w->taken < w->items)
    pthread_cond_wait(&w->changed, &w->lock);
  w->take_waited += seconds_now() - start;
  const long item = w->ready[w->taken % w->size] ? w->taken : -1;
  pthread_mutex_unlock(&w->lock);
  return item;
}

static inline void window_release(OrderedWindow *w) {
  pthread_mutex_lock(&w->lock);
  w->ready[w->taken++ % w->size] = 0;
  pthread_cond_broadcast(&w->changed);
  pthread_mutex_unlock(&w->lock);
}

#endif /* PHASE5_PRODUCTION_BOUNDED_QUEUE_H */
