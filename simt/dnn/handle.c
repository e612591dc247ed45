/* handle.c - the handle, the names of the status codes, refusals and checks of pointers. */
#include "dnn.h"

static _Thread_local char last_error[640];

cudnnStatus_t cudnnCreate(cudnnHandle_t *handle) {
  if (!handle) return bad_here("the place for the handle is NULL");
  *handle = NULL;
  if (simt_error_pending() != cudaSuccess)
    return refuse_plainly(CUDNN_STATUS_NOT_INITIALIZED, __func__, "an earlier kernel failed: %s",
                          cudaGetErrorName(simt_error_pending()));
  *handle = calloc(1, sizeof **handle);
  return *handle ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED;
}

/* As NVIDIA's: waits for the device. */
cudnnStatus_t cudnnDestroy(cudnnHandle_t handle) {
  if (!handle) return refuse_plainly(CUDNN_STATUS_NOT_INITIALIZED, __func__, "the handle is NULL");
  cudaDeviceSynchronize();
  free(handle);
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetStream(cudnnHandle_t handle, cudaStream_t stream) {
  if (!handle) return refuse_plainly(CUDNN_STATUS_NOT_INITIALIZED, __func__, "the handle is NULL");
  if (stream && simt_stream_device(stream) < 0) return bad_here("streamId is no stream, or one that was destroyed");
  handle->stream = stream;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetStream(cudnnHandle_t handle, cudaStream_t *stream) {
  if (!handle) return refuse_plainly(CUDNN_STATUS_NOT_INITIALIZED, __func__, "the handle is NULL");
  if (!stream) return bad_here("the place for the stream is NULL");
  *stream = handle->stream;
  return CUDNN_STATUS_SUCCESS;
}

size_t cudnnGetVersion(void) { return CUDNN_VERSION; }
size_t cudnnGetCudartVersion(void) { return CUDART_VERSION; }
cudnnStatus_t cudnnGraphVersionCheck(void) { return CUDNN_STATUS_SUCCESS; }
cudnnStatus_t cudnnOpsVersionCheck(void) { return CUDNN_STATUS_SUCCESS; }
cudnnStatus_t cudnnCnnVersionCheck(void) { return CUDNN_STATUS_SUCCESS; }

cudnnStatus_t cudnnGetProperty(libraryPropertyType type, int *value) {
  static const int version[] = {CUDNN_MAJOR, CUDNN_MINOR, CUDNN_PATCHLEVEL};
  if (!value || (unsigned)type > PATCH_LEVEL) return bad_here("the property is none of its values, or value is NULL");
  *value = version[type];
  return CUDNN_STATUS_SUCCESS;
}

#define ROW(status, number) {status, #status},
static const struct {
  cudnnStatus_t status;
  const char *name;
} statuses[] = {SIMT_CUDNN_STATUSES(ROW)};
#undef ROW

const char *cudnnGetErrorString(cudnnStatus_t status) {
  for (size_t i = 0; i < sizeof statuses / sizeof *statuses; i++)
    if (statuses[i].status == status) return statuses[i].name;
  return "CUDNN_UNKNOWN_STATUS";
}

void cudnnGetLastErrorString(char *message, size_t max_size) {
  if (!message || !max_size) return;
  snprintf(message, max_size, "%s", last_error);
  last_error[0] = '\0';
}

/* ---- refusals ---- */

cudnnStatus_t refuse_plainly(cudnnStatus_t status, const char *function, const char *format, ...) {
  char reason[512];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(reason, sizeof reason, format, arguments);
  va_end(arguments);
  snprintf(last_error, sizeof last_error, "%s: %s", function, reason);
  return status;
}

/* "cudnnAddTensor at main.cu:12 (main)"; only the name when the program carries no line numbers. */
static const char *call_text(const Call *call, char *text, size_t size) {
  char where[400];
  simt_where((const char *)call->caller - 1, where, sizeof where);
  if (strncmp(where, "0x", 2) == 0) {
    snprintf(text, size, "%s", call->name);
  } else {
    snprintf(text, size, "%s at %s", call->name, where);
  }
  return text;
}

cudnnStatus_t refuse(const Call *call, cudnnStatus_t status, const char *format, ...) {
  char text[512], reason[512];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(reason, sizeof reason, format, arguments);
  va_end(arguments);
  snprintf(last_error, sizeof last_error, "%s: %s", call->name, reason);
  simt_report_host("%s: %s: %s", call_text(call, text, sizeof text), cudnnGetErrorString(status), reason);
  return status;
}

/* ---- operands ---- */

Call call_of(cudnnHandle_t handle, const char *function, const void *caller) {
  return (Call){.stream = handle->stream, .name = function, .caller = caller};
}

cudnnStatus_t add_tensor(Call *call, const char *name, const Tensor *t, const void *data, int written) {
  if (!t) return bad(call, "the descriptor of %s is NULL", name);
  if (t->rank == 0) return bad(call, "the descriptor of %s was created, but never set", name);
  if (t->type != CUDNN_DATA_FLOAT && t->type != CUDNN_DATA_HALF && t->type != CUDNN_DATA_BFLOAT16)
    return not_supported(call, "%s is of type %s; the emulation's cuDNN computes in FLOAT, HALF and BFLOAT16", name,
                         dnn_type_name(t->type));
  if (!data) return bad(call, "%s is NULL", name);
  call->o[call->operands++] = (Operand){.name = name, .t = *t, .data = (void *)data, .written = written};
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t add_bytes(Call *call, const char *name, const void *data, size_t bytes, int written) {
  Operand o = {.name = name, .data = (void *)data, .written = written};
  o.t = (Tensor){.type = CUDNN_DATA_INT8, .rank = 2, .dim = {(int)(bytes >> 20) + 1, 1}, .stride = {1 << 20, 1}};
  o.t.dim[1] = (int)(bytes - ((size_t)(o.t.dim[0] - 1) << 20)); /* the last byte is where it must be */
  if (o.t.dim[1] == 0) o.t.dim[0]--, o.t.dim[1] = 1 << 20;
  if (!bytes) return CUDNN_STATUS_SUCCESS;
  call->o[call->operands++] = o;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t need_same_dims(Call *call, int a, int b) {
  char first[100], second[100];
  const Operand *x = &call->o[a], *y = &call->o[b];
  if (same_dims(&x->t, &y->t)) return CUDNN_STATUS_SUCCESS;
  return bad(call, "%s is %s, but %s is %s: they must have the same dimensions", x->name,
             dims_text(&x->t, first, sizeof first), y->name, dims_text(&y->t, second, sizeof second));
}

cudnnStatus_t need_same_type(Call *call, int a, int b) {
  const Operand *x = &call->o[a], *y = &call->o[b];
  if (x->t.type == y->t.type) return CUDNN_STATUS_SUCCESS;
  return bad(call, "%s is of type %s, but %s of type %s", x->name, dnn_type_name(x->t.type), y->name,
             dnn_type_name(y->t.type));
}

cudnnStatus_t need_4d(Call *call, int a) {
  if (call->o[a].t.rank == 4) return CUDNN_STATUS_SUCCESS;
  return not_supported(call, "%s has %d dimensions; the emulation's cuDNN has this operation for 4", call->o[a].name,
                       call->o[a].t.rank);
}

cudnnStatus_t factor_at(Call *call, const char *name, const void *pointer, float *value) {
  char text[512];
  if (!pointer) return bad(call, "%s is NULL: it points to a float of the host", name);
  if (simt_memory_host_may_use(pointer)) {
    memcpy(value, pointer, sizeof *value);
    return CUDNN_STATUS_SUCCESS;
  }
  simt_report_host("%s: %s is a device pointer; cuDNN reads it on the host", call_text(call, text, sizeof text), name);
  simt_error_sticky(cudaErrorIllegalAddress);
  return CUDNN_STATUS_EXECUTION_FAILED;
}

/* 1 when the operand lies in memory that the GPU could use, whole. */
static int in_reach(const Call *call, const Operand *o) {
  SimtMemory memory;
  char text[512], place[512], dims[100];
  size_t bytes = (size_t)span_of(&o->t) * dnn_type_bytes(o->t.type);
  if (!simt_memory_find(o->data, &memory)) {
    simt_report_host("%s: %s is %s. cuDNN works on device memory: cudaMalloc(), then cudaMemcpy()",
                     call_text(call, text, sizeof text), o->name,
                     memory.freed ? "memory that was freed" : "a host pointer");
    return 0;
  }
  size_t before = (size_t)((const char *)o->data - (const char *)memory.base);
  if (bytes <= memory.size - before) return 1;
  simt_report_host("%s: %s%s%s needs %zu bytes, but begins %zu bytes into %s", call_text(call, text, sizeof text),
                   o->name, o->t.rank > 2 ? " " : "", o->t.rank > 2 ? dims_text(&o->t, dims, sizeof dims) : "", bytes,
                   before, simt_memory_text(&memory, place, sizeof place));
  return 0;
}

static void run(void *context) {
  Call *call = context;
  call->work(call);
  for (int i = 0; i < call->operands; i++)
    if (call->o[i].written && call->o[i].data) wrote(&call->o[i]);
}

cudnnStatus_t submit(Call *call, Work *work) {
  if (simt_error_pending() != cudaSuccess)
    return refuse_plainly(CUDNN_STATUS_EXECUTION_FAILED, call->name, "an earlier kernel or call failed: %s",
                          cudaGetErrorName(simt_error_pending()));
  for (int i = 0; i < call->operands; i++) {
    if (!call->o[i].data || in_reach(call, &call->o[i])) continue;
    simt_error_sticky(cudaErrorIllegalAddress);
    return refuse_plainly(CUDNN_STATUS_EXECUTION_FAILED, call->name,
                          "%s does not lie in the GPU's memory, or not whole", call->o[i].name);
  }
  /* none: the legacy default stream, even where --default-stream makes NULL the thread's own */
  cudaStream_t stream = call->stream ? call->stream : cudaStreamLegacy;
  call->work = work;
  if (simt_stream_submit(stream, run, call, sizeof *call, call->name, NULL, 0) != cudaSuccess ||
      simt_error_pending() != cudaSuccess)
    return refuse_plainly(CUDNN_STATUS_EXECUTION_FAILED, call->name, "the stream did not take the work, or it failed");
  return CUDNN_STATUS_SUCCESS;
}
