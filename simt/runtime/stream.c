/* stream.c - streams: handles, submission, waiting, attributes. When the work is done is decided in queue.c. */
#include "stream.h"

pthread_mutex_t simt_stream_lock = PTHREAD_MUTEX_INITIALIZER;
__thread int simt_in_callback;
static __thread cudaStream_t per_thread[SIMT_DEVICES_MOST];
static int null_is_per_thread;

/* The default streams, one for each device; they are the last in the list of all. */
#define LEGACY(n, following)                                                                            \
  {                                                                                                     \
    .magic = STREAM_MAGIC, .id = 1, .index = n + 1, .device = n, .last = &simt_legacy_streams[n].first, \
    .next = following                                                                                   \
  }
struct CUstream_st simt_legacy_streams[SIMT_DEVICES_MOST] = {
    LEGACY(0, &simt_legacy_streams[1]), LEGACY(1, &simt_legacy_streams[2]),
    LEGACY(2, &simt_legacy_streams[3]), LEGACY(3, &simt_legacy_streams[4]),
    LEGACY(4, &simt_legacy_streams[5]), LEGACY(5, &simt_legacy_streams[6]),
    LEGACY(6, &simt_legacy_streams[7]), LEGACY(7, NULL)};
cudaStream_t simt_all_streams = simt_legacy_streams;

void simt_default_stream_per_thread(void) { null_is_per_thread = 1; }

/* ---- handles; the lock is held ---- */

cudaStream_t simt_stream_new(unsigned flags, int priority) {
  static unsigned long long ids = 1;
  static unsigned indices = SIMT_DEVICES_MOST;
  cudaStream_t s = simt_all_streams;
  while (s && (s->magic || s->first)) s = s->next;
  if (!s) {
    s = need(calloc(1, sizeof *s));
    s->last = &s->first;
    s->index = ++indices;
    s->next = simt_all_streams;
    simt_all_streams = s;
  }
  s->magic = STREAM_MAGIC;
  s->flags = flags;
  s->priority = priority;
  s->device = simt_current_device();
  s->id = ++ids;
  s->capture = NULL;
  return s;
}

cudaStream_t simt_stream_of(cudaStream_t handle) {
  if (handle == NULL && null_is_per_thread) handle = cudaStreamPerThread;
  if (handle == NULL || handle == cudaStreamLegacy) return &simt_legacy_streams[simt_current_device()];
  if (handle == cudaStreamPerThread) {
    cudaStream_t *own = &per_thread[simt_current_device()];
    if (!*own) *own = simt_stream_new(cudaStreamDefault, 0);
    return *own;
  }
  return simt_is_plausible(handle) && handle->magic == STREAM_MAGIC ? handle : NULL;
}

int simt_is_legacy(const struct CUstream_st *s) {
  return s >= simt_legacy_streams && s < simt_legacy_streams + SIMT_DEVICES_MOST;
}

/* ---- submission and waiting ---- */

int simt_streams_are_lazy(void) { return simt_lazy; }

int simt_stream_defers(cudaStream_t stream) {
  return simt_lazy || stream || null_is_per_thread || atomic_load_explicit(&simt_capturing, memory_order_relaxed) ||
         atomic_load_explicit(&simt_steps_counted, memory_order_relaxed);
}

cudaError_t simt_stream_submit(cudaStream_t handle, void (*run)(void *), const void *context, size_t size,
                               const char *what, const char *file, int line) {
  Work work = {run, (void *)context, size, what, file, line};
  if (simt_in_callback) return simt_error(cudaErrorNotPermitted);
  if (!simt_stream_defers(handle)) { /* the common case */
    run(work.context);
    return simt_error(cudaSuccess);
  }
  cudaError_t error = cudaSuccess;
  int now = 0;
  pthread_mutex_lock(&simt_stream_lock);
  cudaStream_t s = simt_stream_of(handle);
  if (!s)
    error = cudaErrorInvalidResourceHandle;
  else if (s->capture)
    error = simt_capture_append(s, &work);
  else if (simt_is_legacy(s) && simt_legacy_is_barred(s))
    error = simt_capture_spoil(NULL, cudaErrorStreamCaptureImplicit);
  else if (simt_lazy)
    simt_enqueue(s, &work, NULL);
  else
    now = 1;
  if (error == cudaSuccess && !s->capture) s->step = simt_step_of_next(s) + 1;
  pthread_mutex_unlock(&simt_stream_lock);
  error = simt_error(error);
  if (now) run(work.context); /* a kernel's fault is found later, as by simt_launch() */
  return error;
}

cudaError_t simt_stream_finish(cudaStream_t handle) {
  cudaError_t error = cudaSuccess;
  if (simt_in_callback) return cudaErrorNotPermitted;
  pthread_mutex_lock(&simt_stream_lock);
  cudaStream_t s = simt_stream_of(handle);
  if (!s)
    error = cudaErrorInvalidResourceHandle;
  else if (s->capture)
    error = simt_capture_spoil(s->capture, cudaErrorStreamCaptureUnsupported);
  else if (simt_is_legacy(s) && simt_legacy_is_barred(s))
    error = simt_capture_spoil(NULL, cudaErrorStreamCaptureImplicit);
  else if (simt_is_legacy(s))
    simt_run_all(s->device, 1);
  else
    simt_wait_for(simt_end_of(s), &s->clock);
  if (error == cudaSuccess) simt_step_join(&simt_host_step, simt_step_of_next(s));
  pthread_mutex_unlock(&simt_stream_lock);
  return error != cudaSuccess ? error : simt_error_pending();
}

void simt_stream_drain(void) {
  if ((!simt_lazy && !atomic_load_explicit(&simt_steps_counted, memory_order_relaxed)) || simt_in_callback) return;
  pthread_mutex_lock(&simt_stream_lock);
  const int device = simt_current_device();
  for (cudaStream_t s = simt_all_streams; s; s = s->next)
    if (s->device == device) simt_step_join(&simt_host_step, s->step);
  simt_run_all(device, 0);
  pthread_mutex_unlock(&simt_stream_lock);
}

cudaError_t cudaDeviceSynchronize(void) {
  RETURN_IF_STICKY;
  if (simt_in_callback) return simt_error(cudaErrorNotPermitted);
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
  pthread_mutex_lock(&simt_stream_lock);
  *stream = simt_stream_new(flags, priority);
  pthread_mutex_unlock(&simt_stream_lock);
  return cudaSuccess;
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned int flags) {
  return cudaStreamCreateWithPriority(stream, flags, LEAST_PRIORITY);
}

cudaError_t cudaStreamCreate(cudaStream_t *stream) { return cudaStreamCreateWithFlags(stream, cudaStreamDefault); }

/* What is queued still runs; the handle is dead at once. */
cudaError_t cudaStreamDestroy(cudaStream_t handle) {
  RETURN_IF_STICKY;
  pthread_mutex_lock(&simt_stream_lock);
  cudaStream_t s = simt_stream_of(handle);
  int ours = s && s == handle;
  if (ours && s->capture) simt_capture_spoil(s->capture, cudaSuccess);
  if (ours) s->magic = 0;
  pthread_mutex_unlock(&simt_stream_lock);
  return simt_error(ours ? cudaSuccess : cudaErrorInvalidResourceHandle);
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  RETURN_IF_STICKY;
  return simt_error(simt_stream_finish(stream));
}

cudaError_t cudaStreamQuery(cudaStream_t handle) {
  cudaError_t error = cudaSuccess;
  RETURN_IF_STICKY;
  if (simt_in_callback) return simt_error(cudaErrorNotPermitted);
  pthread_mutex_lock(&simt_stream_lock);
  cudaStream_t s = simt_stream_of(handle);
  if (!s) {
    error = cudaErrorInvalidResourceHandle;
  } else if (s->capture) {
    error = simt_capture_spoil(s->capture, cudaErrorStreamCaptureUnsupported);
  } else if (s->first || (simt_is_legacy(s) && simt_implied_waits(s, NULL))) {
    error = cudaErrorNotReady;
    if (simt_is_legacy(s))
      simt_run_all(s->device, 1);
    else
      simt_run_to(simt_end_of(s));
  } else if (simt_lazy) {
    simt_host_waited(simt_end_of(s), &s->clock);
  }
  pthread_mutex_unlock(&simt_stream_lock);
  return simt_error(error);
}

cudaError_t simt_stream_look_at(cudaStream_t handle, struct CUstream_st *found) {
  pthread_mutex_lock(&simt_stream_lock);
  cudaStream_t s = simt_stream_of(handle);
  if (s) *found = *s;
  pthread_mutex_unlock(&simt_stream_lock);
  return s ? cudaSuccess : cudaErrorInvalidResourceHandle;
}

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
  return simt_stream_look_at(stream, &found) == cudaSuccess ? found.device : -1;
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
  return simt_error(simt_stream_look_at(to, &found));
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
  simt_in_callback++;
  if (c->function)
    c->function(c->data);
  else
    c->with_status(c->stream, cudaSuccess, c->data);
  simt_in_callback--;
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
