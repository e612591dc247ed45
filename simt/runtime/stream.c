/* stream.c - streams and events: who has to wait for whom.
 *
 * Eager (the default): whatever is submitted is done before the call returns, so every order that the program asks
 * for is kept, and more.
 *
 * Lazy (SIMT_STREAMS=lazy): what is submitted waits in its stream until somebody waits for it. Then exactly that runs
 * which must have run: the stream up to that point, and what it waits for by events and by the rules of the default
 * stream. When all must run (cudaDeviceSynchronize), the stream with the newest work goes first. A program that forgot
 * to synchronise so meets the worst of the permitted orders: it reads results before they are there, or a stream
 * overtakes the one it should have waited for. A query answers "not ready" and does the work then, so that polling
 * ends. When more than QUEUE_LENGTH operations wait, the oldest runs, as a GPU's queue fills up, too.
 *
 * Random (SIMT_STREAMS=random:SEED): as lazy, but at each wait other streams may go on as well, some way, and when all
 * must run, a stream drawn by lot goes on for a while. So a stream also gets far ahead of one that should hold it back.
 *
 * The default stream (legacy) waits for every stream that was not created as non-blocking, and they wait for it.
 */
#include "host.h"
#include "simt/streams.h"

enum { QUEUE_LENGTH = 1024, RANDOM_STRETCH = 16 };
#define STREAM_MAGIC 0x5712ea3u
#define EVENT_MAGIC 0xe0e2717u

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

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t idle = PTHREAD_COND_INITIALIZER;
static int running; /* a thread executes operations; only one does */
static pthread_t runner;
static unsigned long operations;
static atomic_ulong pending;
/* The default streams, one for each device; they are the last in the list of all. */
#define LEGACY(n, following) \
  { .magic = STREAM_MAGIC, .id = 1, .index = n + 1, .device = n, .last = &legacy[n].first, .next = following }
static struct CUstream_st legacy[SIMT_DEVICES_MOST] = {
    LEGACY(0, &legacy[1]), LEGACY(1, &legacy[2]), LEGACY(2, &legacy[3]), LEGACY(3, &legacy[4]),
    LEGACY(4, &legacy[5]), LEGACY(5, &legacy[6]), LEGACY(6, &legacy[7]), LEGACY(7, NULL)};
static cudaStream_t streams = legacy;
static cudaEvent_t events;
static Capture *captures;
static unsigned long capture_count;
static atomic_int capturing; /* captures under way */
static Clock host_clock;     /* what the host has waited for */
static atomic_int counting;  /* steps */
static unsigned long host_step;
static __thread const Operation *executing;
static __thread SimtMoment moment;
static __thread cudaStream_t per_thread[SIMT_DEVICES_MOST];
static __thread int in_callback;
static __thread enum cudaStreamCaptureMode thread_mode = cudaStreamCaptureModeGlobal;

static int lazy;
static uint64_t lots; /* state of the generator; 0: no lots are drawn */
static int null_is_per_thread;

void simt_default_stream_per_thread(void) { null_is_per_thread = 1; }

__attribute__((constructor)) static void read_mode(void) {
  const char *mode = getenv("SIMT_STREAMS");
  if (!mode || !*mode || strcmp(mode, "eager") == 0) return;
  lazy = 1;
  if (strcmp(mode, "lazy") == 0) return;
  char *end = "?";
  if (strncmp(mode, "random:", 7) == 0 && mode[7] >= '0' && mode[7] <= '9') lots = strtoull(mode + 7, &end, 10) + 1;
  if (!*end && lots) return;
  fprintf(stderr, "=== simt: SIMT_STREAMS=%s: expected eager, lazy or random:SEED\n", mode);
  exit(2);
}

static void *need(void *memory) {
  if (memory) return memory;
  fputs("=== simt: out of memory for streams\n", stderr);
  abort();
}

/* ---- work ---- */

Work simt_work_copy(const Work *work) {
  Work copy = *work;
  size_t size = (work->size + 63) / 64 * 64;
  copy.context = need(aligned_alloc(64, size ? size : 64));
  if (work->size) memcpy(copy.context, work->context, work->size);
  return copy;
}

void simt_work_free(Work *work) { free(work->context); }

/* ---- handles; the lock is held ---- */

static cudaStream_t stream_new(unsigned flags, int priority) {
  static unsigned long long ids = 1;
  static unsigned indices = SIMT_DEVICES_MOST;
  cudaStream_t s = streams;
  while (s && (s->magic || s->first)) s = s->next;
  if (!s) {
    s = need(calloc(1, sizeof *s));
    s->last = &s->first;
    s->index = ++indices;
    s->next = streams;
    streams = s;
  }
  s->magic = STREAM_MAGIC;
  s->flags = flags;
  s->priority = priority;
  s->device = simt_current_device();
  s->id = ++ids;
  s->capture = NULL;
  return s;
}

static int plausible(const void *handle) { return (uintptr_t)handle >= 4096 && (uintptr_t)handle % 8 == 0; }

static cudaStream_t stream_of(cudaStream_t handle) {
  if (handle == NULL && null_is_per_thread) handle = cudaStreamPerThread;
  if (handle == NULL || handle == cudaStreamLegacy) return &legacy[simt_current_device()];
  if (handle == cudaStreamPerThread) {
    cudaStream_t *own = &per_thread[simt_current_device()];
    if (!*own) *own = stream_new(cudaStreamDefault, 0);
    return *own;
  }
  return plausible(handle) && handle->magic == STREAM_MAGIC ? handle : NULL;
}

static int is_legacy(const struct CUstream_st *s) { return s >= legacy && s < legacy + SIMT_DEVICES_MOST; }

static int is_event(cudaEvent_t event) { return plausible(event) && event->magic == EVENT_MAGIC; }

/* ---- what is known to have ended; the lock is held ---- */

static unsigned long clock_at(const Clock *clock, unsigned stream) {
  return stream < clock->count ? clock->positions[stream] : 0;
}

static void clock_set(Clock *clock, unsigned stream, unsigned long position) {
  if (stream >= clock->count) {
    clock->positions = need(realloc(clock->positions, (stream + 1) * sizeof *clock->positions));
    memset(clock->positions + clock->count, 0, (stream + 1 - clock->count) * sizeof *clock->positions);
    clock->count = stream + 1;
  }
  if (clock->positions[stream] < position) clock->positions[stream] = position;
}

static void clock_join(Clock *clock, const Clock *other) {
  for (unsigned i = other->count; i-- > 0;) clock_set(clock, i, other->positions[i]);
}

/* ---- the lazy queues; the lock is held ---- */

static int begin_running(void) {
  if (running && pthread_equal(runner, pthread_self())) return 0; /* a callback: it is being done */
  while (running) pthread_cond_wait(&idle, &lock);
  running = 1;
  runner = pthread_self();
  return 1;
}

static void end_running(void) {
  running = 0;
  pthread_cond_broadcast(&idle);
}

static void execute(cudaStream_t s, Operation *op) {
  executing = op;
  moment = (SimtMoment){s->index, s->completed + 1};
  pthread_mutex_unlock(&lock);
  if (op->work.run && simt_error_pending() == cudaSuccess) op->work.run(op->work.context);
  simt_work_free(&op->work);
  pthread_mutex_lock(&lock);
  executing = NULL;
  moment = (SimtMoment){0, 0};
  free(op->clock.positions);
  free(op);
}

static int blocks_on_legacy(const struct CUstream_st *s) { return !(s->flags & cudaStreamNonBlocking); }

/* Runs the stream up to a point, and before each operation what it waits for. Between begin_ and end_running(). */
static void run_until(Point point) {
  cudaStream_t s = point.stream;
  while (s->completed < point.position) {
    Operation *op = s->first;
    for (int i = 0; i < op->wait_count; i++) run_until(op->waits[i]);
    s->first = op->next;
    if (!s->first) s->last = &s->first;
    execute(s, op);
    s->completed++;
    pending--;
  }
}

/* What a wait for a whole device, or for its default stream, concerns. */
static int concerns(const struct CUstream_st *s, int device, int only_blocking) {
  return s->device == device && (!only_blocking || blocks_on_legacy(s));
}

/* A number from 0 to n - 1. */
static unsigned draw(unsigned n) {
  lots = lots * 6364136223846793005u + 1442695040888963407u;
  return (unsigned)(lots >> 33) % n;
}

/* Of the streams (of one device; -1: of all) with work older than `limit`, one drawn by lot; NULL: there is none. */
static cudaStream_t draw_stream(unsigned long limit, int device, int only_blocking) {
  cudaStream_t drawn = NULL;
  unsigned count = 0;
  for (cudaStream_t s = streams; s; s = s->next)
    if (s->first && s->first->number <= limit && (device < 0 || concerns(s, device, only_blocking)) &&
        draw(++count) == 0)
      drawn = s;
  return drawn;
}

static void run_stretch(cudaStream_t s) {
  Point point = {s, s->completed + 1 + draw(RANDOM_STRETCH)};
  if (point.position > s->submitted) point.position = s->submitted;
  run_until(point);
}

static void run_to(Point point) {
  if (point.stream->completed >= point.position || !begin_running()) return;
  for (unsigned turns = lots ? draw(4) : 0; turns && pending; turns--) run_stretch(draw_stream(operations, -1, 0));
  run_until(point);
  end_running();
}

static void host_waited(Point point, const Clock *clock) {
  clock_join(&host_clock, clock);
  clock_set(&host_clock, point.stream->index, point.position);
}

static Point end_of(cudaStream_t s) { return (Point){s, s->submitted}; }

static void wait_for(Point point, const Clock *clock) {
  if (lazy) host_waited(point, clock);
  run_to(point);
}

/* All that was submitted to a device before this call, the streams with the newest work first. */
static void run_all(int device, int only_blocking) {
  unsigned long limit = operations;
  for (cudaStream_t s = streams; lazy && s; s = s->next)
    if (concerns(s, device, only_blocking)) host_waited(end_of(s), &s->clock);
  if (!pending || !begin_running()) return;
  for (;;) {
    cudaStream_t newest = lots ? draw_stream(limit, device, only_blocking) : NULL;
    for (cudaStream_t s = streams; s && !lots; s = s->next)
      if (s->first && s->first->number <= limit && concerns(s, device, only_blocking) &&
          (!newest || s->newest > newest->newest))
        newest = s;
    if (!newest) break;
    if (lots)
      run_stretch(newest);
    else
      run_until(end_of(newest));
  }
  end_running();
}

static void run_oldest(void) {
  cudaStream_t oldest = NULL;
  for (cudaStream_t s = streams; s; s = s->next)
    if (s->first && (!oldest || s->first->number < oldest->first->number)) oldest = s;
  if (oldest) run_to((Point){oldest, oldest->completed + 1});
}

/* The rules of the default stream: an operation of `s` waits for what was submitted to `other`. */
static int is_implied(cudaStream_t s, cudaStream_t other) {
  return s != other && s->device == other->device && (is_legacy(s) || is_legacy(other)) && blocks_on_legacy(s) &&
         blocks_on_legacy(other);
}

static int implied_waits(cudaStream_t s, Point *waits) {
  int count = 0;
  for (cudaStream_t other = streams; other; other = other->next) {
    if (!other->first || !is_implied(s, other)) continue;
    if (waits) waits[count] = end_of(other);
    count++;
  }
  return count;
}

/* ---- steps; the lock is held ---- */

static void step_join(unsigned long *step, unsigned long other) {
  if (*step < other) *step = other;
}

/* When an operation that is submitted to `s` now begins. */
static unsigned long step_of_next(cudaStream_t s) {
  unsigned long step = s->step;
  step_join(&step, host_step);
  for (cudaStream_t other = streams; other; other = other->next)
    if (is_implied(s, other)) step_join(&step, other->step);
  return step;
}

void simt_steps_begin(void) {
  pthread_mutex_lock(&lock);
  for (cudaStream_t s = streams; s; s = s->next) s->step = 0;
  host_step = 0;
  atomic_store(&counting, 1);
  pthread_mutex_unlock(&lock);
}

double simt_steps(void) {
  unsigned long step = 0;
  pthread_mutex_lock(&lock);
  for (cudaStream_t s = streams; s; s = s->next) step_join(&step, s->step);
  pthread_mutex_unlock(&lock);
  return (double)step;
}

double simt_event_step(cudaEvent_t event) {
  pthread_mutex_lock(&lock);
  double step = is_event(event) && event->recorded && !event->capture && counting ? (double)event->step : -1;
  pthread_mutex_unlock(&lock);
  return step;
}

void simt_steps_host_waits(cudaStream_t handle) {
  if (!atomic_load_explicit(&counting, memory_order_relaxed)) return;
  pthread_mutex_lock(&lock);
  cudaStream_t s = stream_of(handle);
  if (s) step_join(&host_step, s->step);
  pthread_mutex_unlock(&lock);
}

/* ---- queues; the lock is held ---- */

/* `event`: to wait for, or NULL. */
static void enqueue(cudaStream_t s, const Work *work, cudaEvent_t event) {
  int count = implied_waits(s, NULL);
  Operation *op = need(calloc(1, sizeof *op + (size_t)(count + 1) * sizeof op->waits[0]));
  op->wait_count = implied_waits(s, op->waits);
  if (event) op->waits[op->wait_count++] = event->point;
  op->work = work ? simt_work_copy(work) : (Work){0};
  op->number = s->newest = ++operations;
  *s->last = op;
  s->last = &op->next;
  s->submitted++;
  pending++;
  clock_join(&s->clock, &host_clock);
  for (cudaStream_t other = streams; other; other = other->next)
    if (is_implied(s, other)) clock_join(&s->clock, &other->clock);
  if (event) clock_join(&s->clock, &event->clock);
  clock_join(&op->clock, &s->clock);
  clock_set(&s->clock, s->index, s->submitted);
  while (pending > QUEUE_LENGTH && !(running && pthread_equal(runner, pthread_self()))) run_oldest();
}

/* ---- captures; the lock is held ---- */

static Capture *capture_numbered(unsigned long number) {
  Capture *c = captures;
  while (c && c->number != number) c = c->next;
  return c;
}

/* A call that would make the host, or the default stream, wait for work that is only being written down. */
static cudaError_t spoil(Capture *only, cudaError_t error) {
  for (Capture *c = captures; c; c = c->next)
    if (!only || c == only) c->invalid = 1;
  return error;
}

static cudaError_t append(cudaStream_t s, const Work *work) {
  if (s->capture->invalid) return cudaErrorStreamCaptureInvalidated;
  simt_graph_append(s->capture->graph, work);
  s->captured++;
  return cudaSuccess;
}

/* The default stream would have to wait for blocking streams that capture. */
static int legacy_is_barred(const struct CUstream_st *s) {
  for (Capture *c = captures; c; c = c->next)
    if (c->origin && c->origin->device == s->device && blocks_on_legacy(c->origin)) return 1;
  return 0;
}

static int bars_this_thread(const Capture *c) {
  if (!c->origin || c->mode == cudaStreamCaptureModeRelaxed || thread_mode == cudaStreamCaptureModeRelaxed) return 0;
  return c->mode == cudaStreamCaptureModeGlobal || pthread_equal(c->thread, pthread_self());
}

static cudaError_t forbidden(void) {
  for (Capture *c = captures; c; c = c->next)
    if (bars_this_thread(c)) return spoil(c, cudaErrorStreamCaptureUnsupported);
  return cudaSuccess;
}

cudaError_t simt_forbidden_in_capture(void) {
  if (!atomic_load_explicit(&capturing, memory_order_relaxed)) return cudaSuccess;
  pthread_mutex_lock(&lock);
  cudaError_t error = forbidden();
  pthread_mutex_unlock(&lock);
  return error;
}

/* ---- submission and waiting ---- */

int simt_stream_captures(cudaStream_t handle) {
  if (!atomic_load_explicit(&capturing, memory_order_relaxed)) return 0;
  pthread_mutex_lock(&lock);
  cudaStream_t s = stream_of(handle);
  int captures_now = s && s->capture;
  pthread_mutex_unlock(&lock);
  return captures_now;
}

int simt_streams_are_lazy(void) { return lazy; }

int simt_stream_defers(cudaStream_t stream) {
  return lazy || stream || null_is_per_thread || atomic_load_explicit(&capturing, memory_order_relaxed) ||
         atomic_load_explicit(&counting, memory_order_relaxed);
}

cudaError_t simt_stream_submit(cudaStream_t handle, void (*run)(void *), const void *context, size_t size,
                               const char *what, const char *file, int line) {
  Work work = {run, (void *)context, size, what, file, line};
  if (in_callback) return simt_error(cudaErrorNotPermitted);
  if (!simt_stream_defers(handle)) { /* the common case */
    run(work.context);
    return simt_error(cudaSuccess);
  }
  cudaError_t error = cudaSuccess;
  int now = 0;
  pthread_mutex_lock(&lock);
  cudaStream_t s = stream_of(handle);
  if (!s)
    error = cudaErrorInvalidResourceHandle;
  else if (s->capture)
    error = append(s, &work);
  else if (is_legacy(s) && legacy_is_barred(s))
    error = spoil(NULL, cudaErrorStreamCaptureImplicit);
  else if (lazy)
    enqueue(s, &work, NULL);
  else
    now = 1;
  if (error == cudaSuccess && !s->capture) s->step = step_of_next(s) + 1;
  pthread_mutex_unlock(&lock);
  error = simt_error(error);
  if (now) run(work.context); /* a kernel's fault is found later, as by simt_launch() */
  return error;
}

cudaError_t simt_stream_finish(cudaStream_t handle) {
  cudaError_t error = cudaSuccess;
  if (in_callback) return cudaErrorNotPermitted;
  pthread_mutex_lock(&lock);
  cudaStream_t s = stream_of(handle);
  if (!s)
    error = cudaErrorInvalidResourceHandle;
  else if (s->capture)
    error = spoil(s->capture, cudaErrorStreamCaptureUnsupported);
  else if (is_legacy(s) && legacy_is_barred(s))
    error = spoil(NULL, cudaErrorStreamCaptureImplicit);
  else if (is_legacy(s))
    run_all(s->device, 1);
  else
    wait_for(end_of(s), &s->clock);
  if (error == cudaSuccess) step_join(&host_step, step_of_next(s));
  pthread_mutex_unlock(&lock);
  return error != cudaSuccess ? error : simt_error_pending();
}

void simt_stream_drain(void) {
  if ((!lazy && !atomic_load_explicit(&counting, memory_order_relaxed)) || in_callback) return;
  pthread_mutex_lock(&lock);
  const int device = simt_current_device();
  for (cudaStream_t s = streams; s; s = s->next)
    if (s->device == device) step_join(&host_step, s->step);
  run_all(device, 0);
  pthread_mutex_unlock(&lock);
}

cudaError_t cudaDeviceSynchronize(void) {
  RETURN_IF_STICKY;
  if (in_callback) return simt_error(cudaErrorNotPermitted);
  cudaError_t error = simt_forbidden_in_capture();
  if (error != cudaSuccess) return simt_error(error);
  simt_stream_drain();
  return simt_error(simt_error_pending());
}

cudaError_t cudaThreadSynchronize(void) { return cudaDeviceSynchronize(); }

/* ---- streams ---- */

enum { GREATEST_PRIORITY = -5, LEAST_PRIORITY = 0 };

cudaError_t cudaDeviceGetStreamPriorityRange(int *least, int *greatest) {
  RETURN_IF_STICKY;
  if (least) *least = LEAST_PRIORITY;
  if (greatest) *greatest = GREATEST_PRIORITY;
  return cudaSuccess;
}

cudaError_t cudaStreamCreateWithPriority(cudaStream_t *stream, unsigned int flags, int priority) {
  RETURN_IF_STICKY;
  if (!stream || flags > cudaStreamNonBlocking) return simt_error(cudaErrorInvalidValue);
  if (priority < GREATEST_PRIORITY) priority = GREATEST_PRIORITY;
  if (priority > LEAST_PRIORITY) priority = LEAST_PRIORITY;
  pthread_mutex_lock(&lock);
  *stream = stream_new(flags, priority);
  pthread_mutex_unlock(&lock);
  return cudaSuccess;
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned int flags) {
  return cudaStreamCreateWithPriority(stream, flags, LEAST_PRIORITY);
}

cudaError_t cudaStreamCreate(cudaStream_t *stream) { return cudaStreamCreateWithFlags(stream, cudaStreamDefault); }

/* What is queued still runs; the handle is dead at once. */
cudaError_t cudaStreamDestroy(cudaStream_t handle) {
  RETURN_IF_STICKY;
  pthread_mutex_lock(&lock);
  cudaStream_t s = stream_of(handle);
  int ours = s && s == handle;
  if (ours && s->capture) spoil(s->capture, cudaSuccess);
  if (ours) s->magic = 0;
  pthread_mutex_unlock(&lock);
  return simt_error(ours ? cudaSuccess : cudaErrorInvalidResourceHandle);
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  RETURN_IF_STICKY;
  return simt_error(simt_stream_finish(stream));
}

cudaError_t cudaStreamQuery(cudaStream_t handle) {
  cudaError_t error = cudaSuccess;
  RETURN_IF_STICKY;
  if (in_callback) return simt_error(cudaErrorNotPermitted);
  pthread_mutex_lock(&lock);
  cudaStream_t s = stream_of(handle);
  if (!s) {
    error = cudaErrorInvalidResourceHandle;
  } else if (s->capture) {
    error = spoil(s->capture, cudaErrorStreamCaptureUnsupported);
  } else if (s->first || (is_legacy(s) && implied_waits(s, NULL))) {
    error = cudaErrorNotReady;
    if (is_legacy(s))
      run_all(s->device, 1);
    else
      run_to(end_of(s));
  } else if (lazy) {
    host_waited(end_of(s), &s->clock);
  }
  pthread_mutex_unlock(&lock);
  return simt_error(error);
}

/* A copy of a live stream's fields. */
static cudaError_t look_at(cudaStream_t handle, struct CUstream_st *found) {
  pthread_mutex_lock(&lock);
  cudaStream_t s = stream_of(handle);
  if (s) *found = *s;
  pthread_mutex_unlock(&lock);
  return s ? cudaSuccess : cudaErrorInvalidResourceHandle;
}

#define LOOK_AT(stream, wanted)                            \
  struct CUstream_st found;                                \
  RETURN_IF_STICKY;                                        \
  if (!(wanted)) return simt_error(cudaErrorInvalidValue); \
  if (look_at(stream, &found) != cudaSuccess) return simt_error(cudaErrorInvalidResourceHandle)

cudaError_t cudaStreamGetFlags(cudaStream_t stream, unsigned int *flags) {
  LOOK_AT(stream, flags);
  *flags = found.flags;
  return cudaSuccess;
}

cudaError_t cudaStreamGetPriority(cudaStream_t stream, int *priority) {
  LOOK_AT(stream, priority);
  *priority = found.priority;
  return cudaSuccess;
}

cudaError_t cudaStreamGetId(cudaStream_t stream, unsigned long long *id) {
  LOOK_AT(stream, id);
  *id = found.id;
  return cudaSuccess;
}

cudaError_t cudaStreamGetDevice(cudaStream_t stream, int *device) {
  LOOK_AT(stream, device);
  *device = found.device;
  return cudaSuccess;
}

int simt_stream_device(cudaStream_t stream) {
  struct CUstream_st found;
  return look_at(stream, &found) == cudaSuccess ? found.device : -1;
}

/* Attributes steer caches and waiting, of which there is nothing here. */
cudaError_t cudaStreamSetAttribute(cudaStream_t stream, cudaStreamAttrID attribute, const cudaStreamAttrValue *value) {
  LOOK_AT(stream, value);
  (void)attribute;
  return cudaSuccess;
}

cudaError_t cudaStreamGetAttribute(cudaStream_t stream, cudaStreamAttrID attribute, cudaStreamAttrValue *value) {
  LOOK_AT(stream, value);
  memset(value, 0, sizeof *value);
  if (attribute == cudaLaunchAttributePriority) value->priority = found.priority;
  if (attribute == cudaLaunchAttributeSynchronizationPolicy) value->syncPolicy = cudaSyncPolicyAuto;
  return cudaSuccess;
}

cudaError_t cudaStreamCopyAttributes(cudaStream_t to, cudaStream_t from) {
  LOOK_AT(from, 1);
  return simt_error(look_at(to, &found));
}

cudaError_t cudaStreamAttachMemAsync(cudaStream_t stream, void *pointer, size_t bytes, unsigned int flags) {
  SimtMemory memory;
  LOOK_AT(stream, pointer);
  (void)bytes;
  int managed = simt_memory_find(pointer, &memory) && memory.kind == SIMT_MANAGED_MEMORY;
  int known = flags == cudaMemAttachGlobal || flags == cudaMemAttachHost || flags == cudaMemAttachSingle;
  return simt_error(managed && known ? cudaSuccess : cudaErrorInvalidValue);
}

/* ---- host functions ---- */

typedef struct Callback {
  cudaHostFn_t function;
  cudaStreamCallback_t with_status;
  cudaStream_t stream;
  void *data;
} Callback;

static void call_back(void *context) {
  const Callback *c = context;
  in_callback++;
  if (c->function)
    c->function(c->data);
  else
    c->with_status(c->stream, cudaSuccess, c->data);
  in_callback--;
}

cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void *data) {
  Callback c = {.function = function, .stream = stream, .data = data};
  SimtSite site = SIMT_CALLER;
  RETURN_IF_STICKY;
  if (!function) return simt_error(cudaErrorInvalidValue);
  return simt_error(simt_stream_submit(stream, call_back, &c, sizeof c, "cudaLaunchHostFunc", site.file, site.line));
}

cudaError_t cudaStreamAddCallback(cudaStream_t stream, cudaStreamCallback_t callback, void *data, unsigned int flags) {
  Callback c = {.with_status = callback, .stream = stream, .data = data};
  SimtSite site = SIMT_CALLER;
  RETURN_IF_STICKY;
  if (!callback || flags) return simt_error(cudaErrorInvalidValue);
  if (simt_stream_captures(stream)) return simt_error(cudaErrorStreamCaptureUnsupported);
  return simt_error(simt_stream_submit(stream, call_back, &c, sizeof c, "cudaStreamAddCallback", site.file, site.line));
}

/* ---- events ---- */

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned int flags) {
  RETURN_IF_STICKY;
  int between_processes = (flags & cudaEventInterprocess) && !(flags & cudaEventDisableTiming);
  if (!event || flags > 7 || between_processes) return simt_error(cudaErrorInvalidValue);
  pthread_mutex_lock(&lock);
  cudaEvent_t e = events;
  while (e && e->magic) e = e->next;
  if (!e) {
    e = need(calloc(1, sizeof *e));
    e->next = events;
    events = e;
  }
  *e = (struct CUevent_st){.magic = EVENT_MAGIC,
                           .flags = flags,
                           .generation = e->generation + 1,
                           .point.stream = legacy,
                           .device = simt_current_device(),
                           .clock = e->clock,
                           .next = e->next};
  pthread_mutex_unlock(&lock);
  *event = e;
  return cudaSuccess;
}

cudaError_t cudaEventCreate(cudaEvent_t *event) { return cudaEventCreateWithFlags(event, cudaEventDefault); }

cudaError_t cudaEventDestroy(cudaEvent_t event) {
  RETURN_IF_STICKY;
  pthread_mutex_lock(&lock);
  int known = is_event(event);
  if (known) event->magic = 0;
  pthread_mutex_unlock(&lock);
  return simt_error(known ? cudaSuccess : cudaErrorInvalidResourceHandle);
}

typedef struct Record {
  cudaEvent_t event;
  unsigned generation; /* of the event: it may have been recorded again, or destroyed */
} Record;

static void record_now(void *context) {
  const Record *r = context;
  pthread_mutex_lock(&lock);
  if (r->event->generation == r->generation) {
    r->event->time = simt_clock();
    r->event->done = 1;
  }
  pthread_mutex_unlock(&lock);
}

static cudaError_t record(cudaEvent_t e, cudaStream_t s, SimtSite site) {
  if (!s || !is_event(e) || e->device != s->device) return cudaErrorInvalidResourceHandle;
  if (is_legacy(s) && legacy_is_barred(s)) return spoil(NULL, cudaErrorStreamCaptureImplicit);
  e->generation++;
  e->recorded = 1;
  e->clock.count = 0;
  e->capture = s->capture ? s->capture->number : 0;
  if (s->capture) {
    e->point = (Point){s, s->captured};
    return s->capture->invalid ? cudaErrorStreamCaptureInvalidated : cudaSuccess;
  }
  e->done = !lazy;
  e->time = simt_clock();
  if (lazy) {
    Record r = {e, e->generation};
    Work work = {record_now, &r, sizeof r, "cudaEventRecord", site.file, site.line};
    enqueue(s, &work, NULL);
    clock_join(&e->clock, &s->clock);
  }
  e->point = end_of(s);
  e->step = step_of_next(s);
  return cudaSuccess;
}

cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream, unsigned int flags) {
  SimtSite site = SIMT_CALLER;
  RETURN_IF_STICKY;
  if (flags > cudaEventRecordExternal) return simt_error(cudaErrorInvalidValue);
  pthread_mutex_lock(&lock);
  cudaError_t error = record(event, stream_of(stream), site);
  pthread_mutex_unlock(&lock);
  return simt_error(error);
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  SimtSite site = SIMT_CALLER;
  if (site.file) simt_at(site.file, site.line);
  return cudaEventRecordWithFlags(event, stream, 0);
}

/* In a capture: `s` joins the capture of the event's stream, or the event's stream is joined to that of `s`. */
static cudaError_t wait_in_capture(cudaStream_t s, cudaEvent_t e) {
  Capture *theirs = e->capture ? capture_numbered(e->capture) : NULL;
  if (!theirs) return e->capture ? cudaErrorCapturedEvent : spoil(s->capture, cudaErrorStreamCaptureIsolation);
  if (s->capture && s->capture != theirs) return spoil(NULL, cudaErrorStreamCaptureMerge);
  if (is_legacy(s)) return spoil(theirs, cudaErrorStreamCaptureImplicit);
  if (!s->capture) {
    s->capture = theirs;
    s->captured = s->joined = 0;
    s->was_joined = 0;
  }
  if (e->point.stream != s) {
    e->point.stream->was_joined = 1;
    if (e->point.position > e->point.stream->joined) e->point.stream->joined = e->point.position;
  }
  return cudaSuccess;
}

cudaError_t cudaStreamWaitEvent(cudaStream_t handle, cudaEvent_t event, unsigned int flags) {
  cudaError_t error = cudaSuccess;
  RETURN_IF_STICKY;
  if (flags > cudaEventWaitExternal) return simt_error(cudaErrorInvalidValue);
  pthread_mutex_lock(&lock);
  cudaStream_t s = stream_of(handle);
  if (!s || !is_event(event))
    error = cudaErrorInvalidResourceHandle;
  else if (event->recorded && (event->capture || s->capture))
    error = wait_in_capture(s, event);
  else if (lazy && event->recorded)
    enqueue(s, NULL, event);
  if (error == cudaSuccess && event->recorded && !event->capture && !s->capture) step_join(&s->step, event->step);
  pthread_mutex_unlock(&lock);
  return simt_error(error);
}

/* Asks about an event; `wait`: lets its work be done first. */
static cudaError_t event_state(cudaEvent_t e, int wait) {
  cudaError_t error = cudaSuccess;
  pthread_mutex_lock(&lock);
  if (!is_event(e)) {
    error = cudaErrorInvalidResourceHandle;
  } else if (e->capture) {
    error = spoil(capture_numbered(e->capture), cudaErrorCapturedEvent);
  } else if (e->recorded && !e->done && !wait) {
    error = cudaErrorNotReady;
    run_to(e->point);
  } else if (e->recorded) {
    wait_for(e->point, &e->clock);
    step_join(&host_step, e->step);
  }
  pthread_mutex_unlock(&lock);
  return error;
}

cudaError_t cudaEventQuery(cudaEvent_t event) {
  RETURN_IF_STICKY;
  return simt_error(event_state(event, 0));
}

cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  RETURN_IF_STICKY;
  cudaError_t error = in_callback ? cudaErrorNotPermitted : event_state(event, 1);
  return simt_error(error != cudaSuccess ? error : simt_error_pending());
}

cudaError_t cudaEventElapsedTime(float *milliseconds, cudaEvent_t start, cudaEvent_t stop) {
  SimtSite site = SIMT_CALLER;
  cudaError_t error = cudaSuccess;
  RETURN_IF_STICKY;
  if (!milliseconds) return simt_error(cudaErrorInvalidValue);
  pthread_mutex_lock(&lock);
  if (!is_event(start) || !is_event(stop) || start->device != stop->device || !start->recorded || !stop->recorded ||
      start->capture || stop->capture || ((start->flags | stop->flags) & cudaEventDisableTiming))
    error = cudaErrorInvalidResourceHandle;
  else if (!start->done || !stop->done)
    error = cudaErrorNotReady;
  else
    *milliseconds = (float)((double)(long long)(stop->time - start->time) * 1e-6);
  pthread_mutex_unlock(&lock);
  if (error == cudaErrorNotReady)
    simt_report_call("not ready", "cudaEventElapsedTime", site,
                     "the events have not both happened yet, so there is no time between them\n"
                     "    try: cudaEventSynchronize(stop) first");
  return simt_error(error);
}

/* ---- for the inspector ---- */

SimtMoment simt_stream_moment(void) { return moment; }

int simt_stream_ordered(SimtMoment then) {
  if (!executing || !then.stream) return 1;
  return clock_at(&executing->clock, then.stream) >= then.position;
}

/* A kernel, or a host function: it may touch an allocation if it was given a pointer into it. */
static int holds_pointer_into(const Work *work, const SimtMemory *memory) {
  const char *base = memory->base;
  for (size_t i = 0; i + sizeof(char *) <= work->size; i += sizeof(char *)) {
    const char *pointer;
    memcpy(&pointer, (const char *)work->context + i, sizeof pointer);
    if (pointer >= base && pointer < base + memory->size) return 1;
  }
  return 0;
}

int simt_stream_pending(const void *address, int host_writes, SimtPending *found) {
  SimtMemory memory;
  int touched = 0;
  if (!atomic_load_explicit(&pending, memory_order_relaxed) || in_callback) return 0;
  if (!simt_memory_find(address, &memory)) return 0;
  if (memory.kind != SIMT_PINNED_MEMORY && memory.kind != SIMT_MANAGED_MEMORY) return 0;
  pthread_mutex_lock(&lock);
  for (cudaStream_t s = streams; s && !touched; s = s->next)
    for (const Operation *op = s->first; op && !touched; op = op->next) {
      if (!op->work.run || op->work.run == record_now) continue;
      touched = simt_is_copy(&op->work) ? simt_copy_touches(&op->work, address, host_writes)
                                        : holds_pointer_into(&op->work, &memory);
      if (touched) *found = (SimtPending){op->work.what, op->work.file, op->work.line};
    }
  pthread_mutex_unlock(&lock);
  return touched;
}

/* ---- captures ---- */

cudaError_t cudaStreamBeginCapture(cudaStream_t handle, enum cudaStreamCaptureMode mode) {
  cudaError_t error = cudaSuccess;
  RETURN_IF_STICKY;
  if ((unsigned)mode > cudaStreamCaptureModeRelaxed) return simt_error(cudaErrorInvalidValue);
  pthread_mutex_lock(&lock);
  cudaStream_t s = stream_of(handle);
  if (!s) {
    error = cudaErrorInvalidResourceHandle;
  } else if (is_legacy(s)) {
    error = cudaErrorStreamCaptureUnsupported;
  } else if (s->capture) {
    error = cudaErrorIllegalState;
  } else {
    Capture *c = need(calloc(1, sizeof *c));
    *c = (Capture){simt_graph_new(), s, mode, pthread_self(), ++capture_count, 0, captures};
    captures = s->capture = c;
    s->captured = 0;
    atomic_fetch_add(&capturing, 1);
  }
  pthread_mutex_unlock(&lock);
  return simt_error(error);
}

/* Streams that joined the capture, and have work that nobody of it waits for. */
static int has_unjoined(const Capture *c) {
  for (cudaStream_t s = streams; s; s = s->next)
    if (s->capture == c && s != c->origin && (!s->was_joined || s->captured > s->joined)) return 1;
  return 0;
}

static void end_capture(Capture *c) {
  Capture **link = &captures;
  for (cudaStream_t s = streams; s; s = s->next)
    if (s->capture == c) s->capture = NULL;
  while (*link != c) link = &(*link)->next;
  *link = c->next;
  free(c);
  atomic_fetch_sub(&capturing, 1);
}

cudaError_t cudaStreamEndCapture(cudaStream_t handle, cudaGraph_t *graph) {
  cudaError_t error = cudaSuccess;
  cudaGraph_t captured = NULL;
  RETURN_IF_STICKY;
  if (!graph) return simt_error(cudaErrorInvalidValue);
  pthread_mutex_lock(&lock);
  cudaStream_t s = stream_of(handle);
  Capture *c = s ? s->capture : NULL;
  if (!s) {
    error = cudaErrorInvalidResourceHandle;
  } else if (!c) {
    error = cudaErrorIllegalState;
  } else if (c->origin != s) {
    error = spoil(c, cudaErrorStreamCaptureUnmatched);
  } else if (c->mode != cudaStreamCaptureModeRelaxed && !pthread_equal(c->thread, pthread_self())) {
    error = cudaErrorStreamCaptureWrongThread;
  } else {
    error = c->invalid ? cudaErrorStreamCaptureInvalidated : has_unjoined(c) ? cudaErrorStreamCaptureUnjoined : 0;
    captured = c->graph;
    end_capture(c);
  }
  pthread_mutex_unlock(&lock);
  if (error != cudaSuccess && captured) {
    cudaGraphDestroy(captured);
    captured = NULL;
  }
  *graph = captured;
  return simt_error(error);
}

cudaError_t cudaStreamIsCapturing(cudaStream_t stream, enum cudaStreamCaptureStatus *status) {
  LOOK_AT(stream, status);
  pthread_mutex_lock(&lock);
  cudaStream_t s = stream_of(stream);
  *status = !s || !s->capture     ? cudaStreamCaptureStatusNone
            : s->capture->invalid ? cudaStreamCaptureStatusInvalidated
                                  : cudaStreamCaptureStatusActive;
  pthread_mutex_unlock(&lock);
  return cudaSuccess;
}

cudaError_t cudaThreadExchangeStreamCaptureMode(enum cudaStreamCaptureMode *mode) {
  RETURN_IF_STICKY;
  if (!mode || (unsigned)*mode > cudaStreamCaptureModeRelaxed) return simt_error(cudaErrorInvalidValue);
  enum cudaStreamCaptureMode before = thread_mode;
  thread_mode = *mode;
  *mode = before;
  return cudaSuccess;
}

cudaStream_t simt_recorder_open(cudaGraph_t graph) {
  pthread_mutex_lock(&lock);
  cudaStream_t s = stream_new(cudaStreamNonBlocking, 0);
  Capture *c = need(calloc(1, sizeof *c));
  *c = (Capture){.graph = graph, .next = captures}; /* no origin: it bars nobody */
  captures = s->capture = c;
  atomic_fetch_add(&capturing, 1);
  pthread_mutex_unlock(&lock);
  return s;
}

void simt_recorder_close(cudaStream_t s) {
  pthread_mutex_lock(&lock);
  end_capture(s->capture);
  s->magic = 0;
  pthread_mutex_unlock(&lock);
}

/* ---- the end ---- */

void simt_streams_reset(void) {
  pthread_mutex_lock(&lock);
  if (begin_running()) { /* after a fault nothing runs: the queues are emptied */
    for (cudaStream_t s = streams; s; s = s->next)
      while (s->first) run_until((Point){s, s->completed + 1});
    end_running();
  }
  pthread_mutex_unlock(&lock);
}

__attribute__((destructor)) static void report_queued(void) {
  enum { LINES = 8 };
  unsigned long works = 0;
  for (cudaStream_t s = streams; s; s = s->next)
    for (Operation *op = s->first; op; op = op->next) works += op->work.run && op->work.run != record_now;
  if (!works || simt_error_pending() != cudaSuccess) return;
  simt_report_host("missing synchronisation: %lu operation%s still queued when the program ended, and never done:",
                   works, works == 1 ? " was" : "s were");
  int lines = 0;
  for (cudaStream_t s = streams; s; s = s->next)
    for (Operation *op = s->first; op; op = op->next) {
      if (!op->work.run || op->work.run == record_now || lines > LINES) continue;
      if (lines++ == LINES)
        fputs("    ...\n", stderr);
      else if (op->work.file)
        fprintf(stderr, "    %s, %s:%d\n", op->work.what, op->work.file, op->work.line);
      else
        fprintf(stderr, "    %s\n", op->work.what);
    }
  fputs("    try: cudaDeviceSynchronize() before the program ends, or wait for each stream\n", stderr);
}
