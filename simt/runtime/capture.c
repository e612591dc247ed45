/* capture.c - a capture: what is submitted to its streams becomes a graph instead of being done. */
#include "stream.h"

static Capture *captures;
static unsigned long capture_count;
static __thread enum cudaStreamCaptureMode thread_mode = cudaStreamCaptureModeGlobal;
atomic_int simt_capturing;

/* ---- captures; the lock is held ---- */

Capture *simt_capture_numbered(unsigned long number) {
  Capture *c = captures;
  while (c && c->number != number) c = c->next;
  return c;
}

cudaError_t simt_capture_spoil(Capture *only, cudaError_t error) {
  for (Capture *c = captures; c; c = c->next)
    if (!only || c == only) c->invalid = 1;
  return error;
}

cudaError_t simt_capture_append(cudaStream_t s, const Work *work) {
  if (s->capture->invalid) return cudaErrorStreamCaptureInvalidated;
  simt_graph_append(s->capture->graph, work);
  s->captured++;
  return cudaSuccess;
}

int simt_legacy_is_barred(const struct CUstream_st *s) {
  for (Capture *c = captures; c; c = c->next)
    if (c->origin && c->origin->device == s->device && simt_blocks_on_legacy(c->origin)) return 1;
  return 0;
}

static int bars_this_thread(const Capture *c) {
  if (!c->origin || c->mode == cudaStreamCaptureModeRelaxed || thread_mode == cudaStreamCaptureModeRelaxed) return 0;
  return c->mode == cudaStreamCaptureModeGlobal || pthread_equal(c->thread, pthread_self());
}

cudaError_t forbidden(void) {
  for (Capture *c = captures; c; c = c->next)
    if (bars_this_thread(c)) return simt_capture_spoil(c, cudaErrorStreamCaptureUnsupported);
  return cudaSuccess;
}

cudaError_t simt_forbidden_in_capture(void) {
  if (!atomic_load_explicit(&simt_capturing, memory_order_relaxed)) return cudaSuccess;
  pthread_mutex_lock(&simt_stream_lock);
  cudaError_t error = forbidden();
  pthread_mutex_unlock(&simt_stream_lock);
  return error;
}

int simt_stream_captures(cudaStream_t handle) {
  if (!atomic_load_explicit(&simt_capturing, memory_order_relaxed)) return 0;
  pthread_mutex_lock(&simt_stream_lock);
  cudaStream_t s = simt_stream_of(handle);
  int captures_now = s && s->capture;
  pthread_mutex_unlock(&simt_stream_lock);
  return captures_now;
}

cudaError_t simt_capture_wait(cudaStream_t s, cudaEvent_t e) {
  Capture *theirs = e->capture ? simt_capture_numbered(e->capture) : NULL;
  if (!theirs)
    return e->capture ? cudaErrorCapturedEvent : simt_capture_spoil(s->capture, cudaErrorStreamCaptureIsolation);
  if (s->capture && s->capture != theirs) return simt_capture_spoil(NULL, cudaErrorStreamCaptureMerge);
  if (simt_is_legacy(s)) return simt_capture_spoil(theirs, cudaErrorStreamCaptureImplicit);
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

/* ---- the API ---- */

cudaError_t cudaStreamBeginCapture(cudaStream_t handle, enum cudaStreamCaptureMode mode) {
  cudaError_t error = cudaSuccess;
  RETURN_IF_STICKY;
  if ((unsigned)mode > cudaStreamCaptureModeRelaxed) return simt_error(cudaErrorInvalidValue);
  pthread_mutex_lock(&simt_stream_lock);
  cudaStream_t s = simt_stream_of(handle);
  if (!s) {
    error = cudaErrorInvalidResourceHandle;
  } else if (simt_is_legacy(s)) {
    error = cudaErrorStreamCaptureUnsupported;
  } else if (s->capture) {
    error = cudaErrorIllegalState;
  } else {
    Capture *c = need(calloc(1, sizeof *c));
    *c = (Capture){simt_graph_new(), s, mode, pthread_self(), ++capture_count, 0, captures};
    captures = s->capture = c;
    s->captured = 0;
    atomic_fetch_add(&simt_capturing, 1);
  }
  pthread_mutex_unlock(&simt_stream_lock);
  return simt_error(error);
}

/* Streams that joined the capture, and have work that nobody of it waits for. */
static int has_unjoined(const Capture *c) {
  for (cudaStream_t s = simt_all_streams; s; s = s->next)
    if (s->capture == c && s != c->origin && (!s->was_joined || s->captured > s->joined)) return 1;
  return 0;
}

static void end_capture(Capture *c) {
  Capture **link = &captures;
  for (cudaStream_t s = simt_all_streams; s; s = s->next)
    if (s->capture == c) s->capture = NULL;
  while (*link != c) link = &(*link)->next;
  *link = c->next;
  free(c);
  atomic_fetch_sub(&simt_capturing, 1);
}

cudaError_t cudaStreamEndCapture(cudaStream_t handle, cudaGraph_t *graph) {
  cudaError_t error = cudaSuccess;
  cudaGraph_t captured = NULL;
  RETURN_IF_STICKY;
  if (!graph) return simt_error(cudaErrorInvalidValue);
  pthread_mutex_lock(&simt_stream_lock);
  cudaStream_t s = simt_stream_of(handle);
  Capture *c = s ? s->capture : NULL;
  if (!s) {
    error = cudaErrorInvalidResourceHandle;
  } else if (!c) {
    error = cudaErrorIllegalState;
  } else if (c->origin != s) {
    error = simt_capture_spoil(c, cudaErrorStreamCaptureUnmatched);
  } else if (c->mode != cudaStreamCaptureModeRelaxed && !pthread_equal(c->thread, pthread_self())) {
    error = cudaErrorStreamCaptureWrongThread;
  } else {
    error = c->invalid ? cudaErrorStreamCaptureInvalidated : has_unjoined(c) ? cudaErrorStreamCaptureUnjoined : 0;
    captured = c->graph;
    end_capture(c);
  }
  pthread_mutex_unlock(&simt_stream_lock);
  if (error != cudaSuccess && captured) {
    cudaGraphDestroy(captured);
    captured = NULL;
  }
  *graph = captured;
  return simt_error(error);
}

cudaError_t cudaStreamIsCapturing(cudaStream_t stream, enum cudaStreamCaptureStatus *status) {
  LOOK_AT(stream, status);
  pthread_mutex_lock(&simt_stream_lock);
  cudaStream_t s = simt_stream_of(stream);
  *status = !s || !s->capture     ? cudaStreamCaptureStatusNone
            : s->capture->invalid ? cudaStreamCaptureStatusInvalidated
                                  : cudaStreamCaptureStatusActive;
  pthread_mutex_unlock(&simt_stream_lock);
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

/* ---- for graphs that are built call by call ---- */

cudaStream_t simt_recorder_open(cudaGraph_t graph) {
  pthread_mutex_lock(&simt_stream_lock);
  cudaStream_t s = simt_stream_new(cudaStreamNonBlocking, 0);
  Capture *c = need(calloc(1, sizeof *c));
  *c = (Capture){.graph = graph, .next = captures}; /* no origin: it bars nobody */
  captures = s->capture = c;
  atomic_fetch_add(&simt_capturing, 1);
  pthread_mutex_unlock(&simt_stream_lock);
  return s;
}

void simt_recorder_close(cudaStream_t s) {
  pthread_mutex_lock(&simt_stream_lock);
  end_capture(s->capture);
  s->magic = 0;
  pthread_mutex_unlock(&simt_stream_lock);
}
