/* event.c - events: recorded in a stream, waited for by streams and by the host. */
#include "simt/streams.h"
#include "stream.h"

#define EVENT_MAGIC 0xe0e2717u

static cudaEvent_t events;

static int is_event(cudaEvent_t event) { return simt_is_plausible(event) && event->magic == EVENT_MAGIC; }

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned int flags) {
  RETURN_IF_STICKY;
  int between_processes = (flags & cudaEventInterprocess) && !(flags & cudaEventDisableTiming);
  if (!event || flags > 7 || between_processes) return simt_error(cudaErrorInvalidValue);
  pthread_mutex_lock(&simt_stream_lock);
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
                           .point.stream = simt_legacy_streams,
                           .device = simt_current_device(),
                           .clock = e->clock,
                           .next = e->next};
  pthread_mutex_unlock(&simt_stream_lock);
  *event = e;
  return cudaSuccess;
}

cudaError_t cudaEventCreate(cudaEvent_t *event) { return cudaEventCreateWithFlags(event, cudaEventDefault); }

cudaError_t cudaEventDestroy(cudaEvent_t event) {
  RETURN_IF_STICKY;
  pthread_mutex_lock(&simt_stream_lock);
  int known = is_event(event);
  if (known) event->magic = 0;
  pthread_mutex_unlock(&simt_stream_lock);
  return simt_error(known ? cudaSuccess : cudaErrorInvalidResourceHandle);
}

typedef struct Record {
  cudaEvent_t event;
  unsigned generation; /* of the event: it may have been recorded again, or destroyed */
} Record;

void simt_record_now(void *context) {
  const Record *r = context;
  pthread_mutex_lock(&simt_stream_lock);
  if (r->event->generation == r->generation) {
    r->event->time = simt_clock();
    r->event->done = 1;
  }
  pthread_mutex_unlock(&simt_stream_lock);
}

static cudaError_t record(cudaEvent_t e, cudaStream_t s, SimtSite site) {
  if (!s || !is_event(e) || e->device != s->device) return cudaErrorInvalidResourceHandle;
  if (simt_is_legacy(s) && simt_legacy_is_barred(s)) return simt_capture_spoil(NULL, cudaErrorStreamCaptureImplicit);
  e->generation++;
  e->recorded = 1;
  e->clock.count = 0;
  e->capture = s->capture ? s->capture->number : 0;
  if (s->capture) {
    e->point = (Point){s, s->captured};
    return s->capture->invalid ? cudaErrorStreamCaptureInvalidated : cudaSuccess;
  }
  e->done = !simt_lazy;
  e->time = simt_clock();
  if (simt_lazy) {
    Record r = {e, e->generation};
    Work work = {simt_record_now, &r, sizeof r, "cudaEventRecord", site.file, site.line};
    simt_enqueue(s, &work, NULL);
    simt_clock_join(&e->clock, &s->clock);
  }
  e->point = simt_end_of(s);
  e->step = simt_step_of_next(s);
  return cudaSuccess;
}

cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream, unsigned int flags) {
  SimtSite site = SIMT_CALLER;
  RETURN_IF_STICKY;
  if (flags > cudaEventRecordExternal) return simt_error(cudaErrorInvalidValue);
  pthread_mutex_lock(&simt_stream_lock);
  cudaError_t error = record(event, simt_stream_of(stream), site);
  pthread_mutex_unlock(&simt_stream_lock);
  return simt_error(error);
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  SimtSite site = SIMT_CALLER;
  if (site.file) simt_at(site.file, site.line);
  return cudaEventRecordWithFlags(event, stream, 0);
}

cudaError_t cudaStreamWaitEvent(cudaStream_t handle, cudaEvent_t event, unsigned int flags) {
  cudaError_t error = cudaSuccess;
  RETURN_IF_STICKY;
  if (flags > cudaEventWaitExternal) return simt_error(cudaErrorInvalidValue);
  pthread_mutex_lock(&simt_stream_lock);
  cudaStream_t s = simt_stream_of(handle);
  if (!s || !is_event(event))
    error = cudaErrorInvalidResourceHandle;
  else if (event->recorded && (event->capture || s->capture))
    error = simt_capture_wait(s, event);
  else if (simt_lazy && event->recorded)
    simt_enqueue(s, NULL, event);
  if (error == cudaSuccess && event->recorded && !event->capture && !s->capture) simt_step_join(&s->step, event->step);
  pthread_mutex_unlock(&simt_stream_lock);
  return simt_error(error);
}

/* Asks about an event; `wait`: lets its work be done first. */
static cudaError_t event_state(cudaEvent_t e, int wait) {
  cudaError_t error = cudaSuccess;
  pthread_mutex_lock(&simt_stream_lock);
  if (!is_event(e)) {
    error = cudaErrorInvalidResourceHandle;
  } else if (e->capture) {
    error = simt_capture_spoil(simt_capture_numbered(e->capture), cudaErrorCapturedEvent);
  } else if (e->recorded && !e->done && !wait) {
    error = cudaErrorNotReady;
    simt_run_to(e->point);
  } else if (e->recorded) {
    simt_wait_for(e->point, &e->clock);
    simt_step_join(&simt_host_step, e->step);
  }
  pthread_mutex_unlock(&simt_stream_lock);
  return error;
}

cudaError_t cudaEventQuery(cudaEvent_t event) {
  RETURN_IF_STICKY;
  return simt_error(event_state(event, 0));
}

cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  RETURN_IF_STICKY;
  cudaError_t error = simt_in_callback ? cudaErrorNotPermitted : event_state(event, 1);
  return simt_error(error != cudaSuccess ? error : simt_error_pending());
}

cudaError_t cudaEventElapsedTime(float *milliseconds, cudaEvent_t start, cudaEvent_t stop) {
  SimtSite site = SIMT_CALLER;
  cudaError_t error = cudaSuccess;
  RETURN_IF_STICKY;
  if (!milliseconds) return simt_error(cudaErrorInvalidValue);
  pthread_mutex_lock(&simt_stream_lock);
  if (!is_event(start) || !is_event(stop) || start->device != stop->device || !start->recorded || !stop->recorded ||
      start->capture || stop->capture || ((start->flags | stop->flags) & cudaEventDisableTiming))
    error = cudaErrorInvalidResourceHandle;
  else if (!start->done || !stop->done)
    error = cudaErrorNotReady;
  else
    *milliseconds = (float)((double)(long long)(stop->time - start->time) * 1e-6);
  pthread_mutex_unlock(&simt_stream_lock);
  if (error == cudaErrorNotReady)
    simt_report_call("not ready", "cudaEventElapsedTime", site,
                     "the events have not both happened yet, so there is no time between them\n"
                     "    try: cudaEventSynchronize(stop) first");
  return simt_error(error);
}

double simt_event_step(cudaEvent_t event) {
  pthread_mutex_lock(&simt_stream_lock);
  double step = is_event(event) && event->recorded && !event->capture && simt_steps_counted ? (double)event->step : -1;
  pthread_mutex_unlock(&simt_stream_lock);
  return step;
}
