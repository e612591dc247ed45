/* queue.c - when the work of streams is done.
 *
 * Eager (the default): whatever is submitted is done before the call returns, so every order that the program asks
 * for is kept, and more.
 *
 * Lazy (SIMT_STREAMS=lazy): what is submitted waits in its stream until somebody waits for it. Then exactly that runs
 * which must have run: the stream up to that point, and what it waits for by events and by the rules of the default
 * stream. When all must run (cudaDeviceSynchronize), the stream with the newest work goes first. So a program that
 * forgot to synchronise meets the worst of the permitted orders: it reads results before they are there, or a stream
 * overtakes the one it should have waited for. A query answers "not ready" and does the work then, so that polling
 * ends. When more than QUEUE_LENGTH operations wait, the oldest runs, as it does when a GPU's queue is full.
 *
 * Random (SIMT_STREAMS=random:SEED): as lazy, but at each wait other streams may also run for a while, and when all
 * must run, a stream drawn by lot runs for a while. So a stream also gets far ahead of one that should hold it back.
 *
 * The default stream (legacy) waits for every stream that was not created as non-blocking, and they wait for it.
 */
#include "stream.h"

enum { QUEUE_LENGTH = 1024, RANDOM_STRETCH = 16 };

static pthread_cond_t idle = PTHREAD_COND_INITIALIZER;
static int running; /* a thread executes operations; only one does */
static pthread_t runner;
static unsigned long operations;
static Clock host_clock; /* what the host has waited for */
static uint64_t lots;    /* state of the generator; 0: no lots are drawn */
static __thread const Operation *executing;
static __thread SimtMoment moment;

int simt_lazy;
atomic_ulong simt_queued;

__attribute__((constructor)) static void read_mode(void) {
  const char *mode = getenv("SIMT_STREAMS");
  if (!mode || !*mode || strcmp(mode, "eager") == 0) return;
  simt_lazy = 1;
  if (strcmp(mode, "lazy") == 0) return;
  char *end = "?";
  if (strncmp(mode, "random:", 7) == 0 && mode[7] >= '0' && mode[7] <= '9') lots = strtoull(mode + 7, &end, 10) + 1;
  if (!*end && lots) return;
  fprintf(stderr, "=== simt: SIMT_STREAMS=%s: expected eager, lazy or random:SEED\n", mode);
  exit(2);
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

void simt_clock_join(Clock *clock, const Clock *other) {
  for (unsigned i = other->count; i-- > 0;) clock_set(clock, i, other->positions[i]);
}

/* ---- running what is queued; the lock is held ---- */

static int begin_running(void) {
  if (running && pthread_equal(runner, pthread_self())) return 0; /* a callback: it is being done */
  while (running) pthread_cond_wait(&idle, &simt_stream_lock);
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
  pthread_mutex_unlock(&simt_stream_lock);
  if (op->work.run && simt_error_pending() == cudaSuccess) op->work.run(op->work.context);
  simt_work_free(&op->work);
  pthread_mutex_lock(&simt_stream_lock);
  executing = NULL;
  moment = (SimtMoment){0, 0};
  free(op->clock.positions);
  free(op);
}

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
    simt_queued--;
  }
}

/* What a wait for a whole device, or for its default stream, concerns. */
static int concerns(const struct CUstream_st *s, int device, int only_blocking) {
  return s->device == device && (!only_blocking || simt_blocks_on_legacy(s));
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
  for (cudaStream_t s = simt_all_streams; s; s = s->next)
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

void simt_run_to(Point point) {
  if (point.stream->completed >= point.position || !begin_running()) return;
  for (unsigned turns = lots ? draw(4) : 0; turns && simt_queued; turns--) run_stretch(draw_stream(operations, -1, 0));
  run_until(point);
  end_running();
}

void simt_host_waited(Point point, const Clock *clock) {
  simt_clock_join(&host_clock, clock);
  clock_set(&host_clock, point.stream->index, point.position);
}

void simt_wait_for(Point point, const Clock *clock) {
  if (simt_lazy) simt_host_waited(point, clock);
  simt_run_to(point);
}

void simt_run_all(int device, int only_blocking) {
  unsigned long limit = operations;
  for (cudaStream_t s = simt_all_streams; simt_lazy && s; s = s->next)
    if (concerns(s, device, only_blocking)) simt_host_waited(simt_end_of(s), &s->clock);
  if (!simt_queued || !begin_running()) return;
  for (;;) {
    cudaStream_t newest = lots ? draw_stream(limit, device, only_blocking) : NULL;
    for (cudaStream_t s = simt_all_streams; s && !lots; s = s->next)
      if (s->first && s->first->number <= limit && concerns(s, device, only_blocking) &&
          (!newest || s->newest > newest->newest))
        newest = s;
    if (!newest) break;
    if (lots)
      run_stretch(newest);
    else
      run_until(simt_end_of(newest));
  }
  end_running();
}

static void run_oldest(void) {
  cudaStream_t oldest = NULL;
  for (cudaStream_t s = simt_all_streams; s; s = s->next)
    if (s->first && (!oldest || s->first->number < oldest->first->number)) oldest = s;
  if (oldest) simt_run_to((Point){oldest, oldest->completed + 1});
}

/* ---- who waits for whom; the lock is held ---- */

int simt_is_implied(cudaStream_t s, cudaStream_t other) {
  return s != other && s->device == other->device && (simt_is_legacy(s) || simt_is_legacy(other)) &&
         simt_blocks_on_legacy(s) && simt_blocks_on_legacy(other);
}

int simt_implied_waits(cudaStream_t s, Point *waits) {
  int count = 0;
  for (cudaStream_t other = simt_all_streams; other; other = other->next) {
    if (!other->first || !simt_is_implied(s, other)) continue;
    if (waits) waits[count] = simt_end_of(other);
    count++;
  }
  return count;
}

void simt_enqueue(cudaStream_t s, const Work *work, cudaEvent_t event) {
  int count = simt_implied_waits(s, NULL);
  Operation *op = need(calloc(1, sizeof *op + (size_t)(count + 1) * sizeof op->waits[0]));
  op->wait_count = simt_implied_waits(s, op->waits);
  if (event) op->waits[op->wait_count++] = event->point;
  op->work = work ? simt_work_copy(work) : (Work){0};
  op->number = s->newest = ++operations;
  *s->last = op;
  s->last = &op->next;
  s->submitted++;
  simt_queued++;
  simt_clock_join(&s->clock, &host_clock);
  for (cudaStream_t other = simt_all_streams; other; other = other->next)
    if (simt_is_implied(s, other)) simt_clock_join(&s->clock, &other->clock);
  if (event) simt_clock_join(&s->clock, &event->clock);
  simt_clock_join(&op->clock, &s->clock);
  clock_set(&s->clock, s->index, s->submitted);
  while (simt_queued > QUEUE_LENGTH && !(running && pthread_equal(runner, pthread_self()))) run_oldest();
}

/* ---- what the inspector asks ---- */

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
  if (!atomic_load_explicit(&simt_queued, memory_order_relaxed) || simt_in_callback) return 0;
  if (!simt_memory_find(address, &memory)) return 0;
  if (memory.kind != SIMT_PINNED_MEMORY && memory.kind != SIMT_MANAGED_MEMORY) return 0;
  pthread_mutex_lock(&simt_stream_lock);
  for (cudaStream_t s = simt_all_streams; s && !touched; s = s->next)
    for (const Operation *op = s->first; op && !touched; op = op->next) {
      if (!op->work.run || op->work.run == simt_record_now) continue;
      touched = simt_is_copy(&op->work) ? simt_copy_touches(&op->work, address, host_writes)
                                        : holds_pointer_into(&op->work, &memory);
      if (touched) *found = (SimtPending){op->work.what, op->work.file, op->work.line};
    }
  pthread_mutex_unlock(&simt_stream_lock);
  return touched;
}

/* ---- the end: after a fault, and of the program ---- */

void simt_streams_reset(void) {
  pthread_mutex_lock(&simt_stream_lock);
  if (begin_running()) { /* after a fault nothing runs: the queues are emptied */
    for (cudaStream_t s = simt_all_streams; s; s = s->next)
      while (s->first) run_until((Point){s, s->completed + 1});
    end_running();
  }
  pthread_mutex_unlock(&simt_stream_lock);
}

__attribute__((destructor)) static void report_queued(void) {
  enum { LINES = 8 };
  unsigned long works = 0;
  for (cudaStream_t s = simt_all_streams; s; s = s->next)
    for (Operation *op = s->first; op; op = op->next) works += op->work.run && op->work.run != simt_record_now;
  if (!works || simt_error_pending() != cudaSuccess) return;
  simt_report_host("missing synchronisation: %lu operation%s still queued when the program ended, and never done:",
                   works, works == 1 ? " was" : "s were");
  int lines = 0;
  for (cudaStream_t s = simt_all_streams; s; s = s->next)
    for (Operation *op = s->first; op; op = op->next) {
      if (!op->work.run || op->work.run == simt_record_now || lines > LINES) continue;
      if (lines++ == LINES)
        fputs("    ...\n", stderr);
      else if (op->work.file)
        fprintf(stderr, "    %s, %s:%d\n", op->work.what, op->work.file, op->work.line);
      else
        fprintf(stderr, "    %s\n", op->work.what);
    }
  fputs("    try: cudaDeviceSynchronize() before the program ends, or wait for each stream\n", stderr);
}
