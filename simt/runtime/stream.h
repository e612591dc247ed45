/* stream.h - what the files about streams know of each other.
 *
 *   stream.c    streams: handles, submission, waiting, attributes
 *   queue.c     lazy mode: which operation runs when; work that nobody waited for
 *   event.c     events
 *   capture.c   captures, which make graphs
 *   steps.c     what may run at the same time (simt/streams.h)
 *
 * The functions and variables here are used with simt_stream_lock held, if nothing else is said.
 */
#ifndef SIMT_STREAM_H
#define SIMT_STREAM_H

#include "host.h"

#define STREAM_MAGIC 0x5712ea3u

/* All that was submitted to a stream up to a point. */
typedef struct Point {
  cudaStream_t stream;
  unsigned long position;
} Point;

/* For each stream, by its index, a position: what is known to have ended before. */
typedef struct Clock {
  unsigned long *positions;
  unsigned count;
} Clock;

typedef struct Operation {
  struct Operation *next;
  Work work;            /* run: NULL when it only waits */
  unsigned long number; /* of all streams together */
  Clock clock;
  int wait_count;
  Point waits[];
} Operation;

/* The capture of a graph, shared by the streams that take part. */
typedef struct Capture {
  cudaGraph_t graph;
  cudaStream_t origin;
  enum cudaStreamCaptureMode mode;
  pthread_t thread;
  unsigned long number; /* tells captures apart after they have ended */
  int invalid;
  struct Capture *next;
} Capture;

/* Streams and events are never given back to malloc(), but used again: a stale handle can be looked at, and a Point
 * of a destroyed stream is simply one that has been reached. */
struct CUstream_st {
  unsigned magic; /* 0: destroyed */
  unsigned flags;
  int priority;
  unsigned long long id;
  unsigned index; /* 1, 2, ..: of the structure */
  int device;
  unsigned long submitted, completed, newest;
  Operation *first, **last;
  Clock clock;        /* of the last operation, with itself */
  unsigned long step; /* at which its last operation ends; simt/streams.h */
  Capture *capture;
  unsigned long captured, joined; /* operations of the capture; those that another stream waits for */
  int was_joined;
  cudaStream_t next; /* all */
};

struct CUevent_st {
  unsigned magic, flags, generation;
  int device; /* that was current when it was created */
  int recorded, done;
  Point point;
  unsigned long long time; /* nanoseconds */
  unsigned long capture;   /* its number, when recorded in one */
  Clock clock;             /* of the record */
  unsigned long step;
  cudaEvent_t next; /* all */
};

extern pthread_mutex_t simt_stream_lock;

static inline void *need(void *memory) {
  if (memory) return memory;
  fputs("=== simt: out of memory for streams\n", stderr);
  abort();
}

/* ---- stream.c ---- */

extern cudaStream_t simt_all_streams; /* the first; each names the next */
extern struct CUstream_st simt_legacy_streams[SIMT_DEVICES_MOST];
extern __thread int simt_in_callback; /* this thread executes a host function: the API is forbidden */

cudaStream_t simt_stream_new(unsigned flags, int priority);
/* The stream of a handle, also of a default stream's; NULL where it is none. */
cudaStream_t simt_stream_of(cudaStream_t handle);
int simt_is_legacy(const struct CUstream_st *s);
/* A copy of a live stream's fields. Takes the lock itself. */
cudaError_t simt_stream_look_at(cudaStream_t handle, struct CUstream_st *found);

#define LOOK_AT(stream, wanted)                            \
  struct CUstream_st found;                                \
  RETURN_IF_STICKY;                                        \
  if (!(wanted)) return simt_error(cudaErrorInvalidValue); \
  if (simt_stream_look_at(stream, &found) != cudaSuccess) return simt_error(cudaErrorInvalidResourceHandle)

static inline int simt_is_plausible(const void *handle) {
  return (uintptr_t)handle >= 4096 && (uintptr_t)handle % 8 == 0;
}

static inline int simt_blocks_on_legacy(const struct CUstream_st *s) { return !(s->flags & cudaStreamNonBlocking); }

static inline Point simt_end_of(cudaStream_t s) { return (Point){s, s->submitted}; }

/* ---- queue.c ---- */

extern int simt_lazy;            /* also in random mode */
extern atomic_ulong simt_queued; /* operations that have not been done */

void simt_clock_join(Clock *clock, const Clock *other);
/* `event`: to wait for, or NULL. */
void simt_enqueue(cudaStream_t s, const Work *work, cudaEvent_t event);
/* Runs a stream up to a point, and whatever that waits for. */
void simt_run_to(Point point);
/* The same, and the host knows that it has ended. */
void simt_wait_for(Point point, const Clock *clock);
void simt_host_waited(Point point, const Clock *clock);
/* All that was submitted to a device before this call, the streams with the newest work first. only_blocking: only to
 * streams that the default stream waits for. */
void simt_run_all(int device, int only_blocking);
/* The rules of the default stream: an operation of `s` waits for what was submitted to `other`. */
int simt_is_implied(cudaStream_t s, cudaStream_t other);
/* How many streams that is now; their ends, unless `waits` is NULL. */
int simt_implied_waits(cudaStream_t s, Point *waits);

/* ---- event.c ---- */

void simt_record_now(void *context); /* the work of a queued record; takes the lock itself */

/* ---- capture.c ---- */

extern atomic_int simt_capturing; /* captures under way */

/* A call that would make the host, or the default stream, wait for work that is only being written down: makes the
 * capture (NULL: all captures) invalid, and gives `error`. */
cudaError_t simt_capture_spoil(Capture *only, cudaError_t error);
cudaError_t simt_capture_append(cudaStream_t s, const Work *work);
/* The default stream would have to wait for blocking streams that capture. */
int simt_legacy_is_barred(const struct CUstream_st *s);
Capture *simt_capture_numbered(unsigned long number); /* NULL: it has ended */
/* A wait for an event in a capture: `s` joins the capture of the event's stream, or the event's stream is joined to
 * that of `s`. */
cudaError_t simt_capture_wait(cudaStream_t s, cudaEvent_t e);

/* ---- steps.c ---- */

extern atomic_int simt_steps_counted;
extern unsigned long simt_host_step;

static inline void simt_step_join(unsigned long *step, unsigned long other) {
  if (*step < other) *step = other;
}

/* When an operation that is submitted to `s` now begins. */
unsigned long simt_step_of_next(cudaStream_t s);

#endif /* SIMT_STREAM_H */
