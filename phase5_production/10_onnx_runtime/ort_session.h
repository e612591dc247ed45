/* ort_session.h - a model in ONNX Runtime: its options, and what goes in and out. See ort.h. */
#ifndef PHASE5_PRODUCTION_ORT_SESSION_H
#define PHASE5_PRODUCTION_ORT_SESSION_H

#include "phase5_production/10_onnx_runtime/ort_library.h"

enum { ORT_RANK = 8, ORT_PORTS = 16, ORT_NAME = 128 };

typedef struct OrtNetOptions {
  int cuda;            /* 1: the CUDA provider computes what it can, the CPU provider the rest */
  int gpu;             /* of CUDA: which one */
  int threads;         /* of the CPU provider; 0: one per core */
  int optimization;    /* 0: the graph as it is; 1, 2: more and more passes; 3: all */
  int no_tf32;         /* of CUDA: products of float32 in full precision; by default in TF32 */
  int cuda_graph;      /* of CUDA: the launches of a run are recorded once; with bound arrays, of one shape */
  void *stream;        /* of CUDA: a cudaStream_t; NULL: one of its own */
  const char *profile; /* the beginning of the name of a file for ort_profile.h; NULL: none */
} OrtNetOptions;

/* An input or output of the model. */
typedef struct OrtPort {
  char name[ORT_NAME];
  int type, rank;            /* type: onnx.proto's number; 0: no tensor */
  int64_t dim[ORT_RANK];     /* -1: given at run time */
  char symbol[ORT_RANK][32]; /* the name of such a dimension, "N"; "" where it has none */
} OrtPort;

typedef struct OrtNet {
  Ort *ort;
  OrtSession *session;
  OrtIoBinding *binding;
  OrtMemoryInfo *device;
  OrtNetOptions options;
  int inputs, outputs;
  OrtPort input[ORT_PORTS], output[ORT_PORTS];
} OrtNet;

static inline OrtNetOptions ort_net_options(void) {
  const OrtNetOptions options = {0, 0, 0, 3, 0, 0, NULL, NULL};
  return options;
}

static inline const char *ort_provider_name(const OrtNet *net) { return net->options.cuda ? "CUDA" : "CPU"; }

/* "float", "int64"; a number of onnx.proto that has no name here is "type 23". */
static inline const char *ort_type_name(int type) {
  static const char *const names[] = {"no tensor", "float",  "uint8",     "int8",       "uint16",  "int16",
                                      "int32",     "int64",  "string",    "bool",       "float16", "double",
                                      "uint32",    "uint64", "complex64", "complex128", "bfloat16"};
  static __thread char number[16];
  if (type >= 0 && type < (int)(sizeof names / sizeof *names)) return names[type];
  snprintf(number, sizeof number, "type %d", type);
  return number;
}

/* Bytes of an element; 0 of what has no fixed size. */
static inline size_t ort_type_bytes(int type) {
  static const unsigned char bytes[] = {0, 4, 1, 1, 2, 2, 4, 8, 0, 1, 2, 8, 4, 8, 8, 16, 2};
  return type > 0 && type < (int)sizeof bytes ? bytes[type] : 0;
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* Providers */

/* Passes the options on to the provider, which is loaded now, and the provider to the session. */
static inline int ort_append_cuda_options(const Ort *ort, OrtSessionOptions *session, const OrtNetOptions *o,
                                          OrtCUDAProviderOptionsV2 *cuda, Error *err) {
  char gpu[16], what[80];
  snprintf(gpu, sizeof gpu, "%d", o->gpu);
  snprintf(what, sizeof what, "ONNX Runtime %s cannot use its CUDA provider", ort->version);
  const char *const keys[] = {"device_id", "use_tf32", "enable_cuda_graph"};
  const char *const values[] = {gpu, o->no_tf32 ? "0" : "1", o->cuda_graph ? "1" : "0"};
  if (ort_check(ort, ort->f.UpdateCUDAProviderOptions(cuda, keys, values, 3), err, "%s", what) != 0) return -1;
  if (o->stream && ort_check(ort, ort->f.UpdateCUDAProviderOptionsWithValue(cuda, "user_compute_stream", o->stream),
                             err, "%s", what) != 0)
    return -1;
  return ort_check(ort, ort->f.SessionOptionsAppendExecutionProvider_CUDA_V2(session, cuda), err, "%s", what);
}

/* The CUDA provider is a library of its own, beside ONNX Runtime's. GetAvailableProviders() names it even where that
 * file is missing, so only what Append says counts. */
static inline int ort_append_cuda(const Ort *ort, OrtSessionOptions *session, const OrtNetOptions *o, Error *err) {
  char path[PATH_MAX];
  OrtCUDAProviderOptionsV2 *cuda = NULL;
  const char *slash = strrchr(ort->path, '/');
  snprintf(path, sizeof path, "%.*s" ORT_CUDA_LIBRARY, slash ? (int)(slash + 1 - ort->path) : 0, ort->path);
  if (slash && access(path, R_OK) != 0)
    return error_set_code(err, ERROR_NOT_INSTALLED,
                          "ONNX Runtime %s has no CUDA provider: %.400s is not there; " ORT_FETCH
                          " --cuda fetches it (179 MB, by npm)",
                          ort->version, path);
  if (ort_check(ort, ort->f.CreateCUDAProviderOptions(&cuda), err, "ONNX Runtime's CUDA provider") != 0) return -1;
  const int status = ort_append_cuda_options(ort, session, o, cuda, err);
  ort->f.ReleaseCUDAProviderOptions(cuda);
  if (status == 0) return 0;
  err->code = ERROR_NOT_INSTALLED;
  return error_advise(err,
                      "it needs a driver, and cuBLAS, cuRAND and cuDNN 9 of CUDA 13 where the loader finds them: "
                      "LD_LIBRARY_PATH names more folders");
}

static inline int ort_session_options(const Ort *ort, OrtSessionOptions *session, const OrtNetOptions *o, Error *err) {
  static const GraphOptimizationLevel levels[] = {ORT_DISABLE_ALL, ORT_ENABLE_BASIC, ORT_ENABLE_EXTENDED,
                                                  ORT_ENABLE_ALL};
  const char *what = "ONNX Runtime's options";
  if (ort_check(ort, ort->f.SetSessionGraphOptimizationLevel(session, levels[o->optimization & 3]), err, "%s", what) ||
      ort_check(ort, ort->f.SetIntraOpNumThreads(session, o->threads), err, "%s", what) ||
      ort_check(ort, ort->f.SetInterOpNumThreads(session, 1), err, "%s", what) ||
      ort_check(ort, ort->f.SetSessionLogSeverityLevel(session, ORT_LOGGING_LEVEL_FATAL), err, "%s", what))
    return -1;
  if (o->profile && ort_check(ort, ort->f.EnableProfiling(session, o->profile), err, "%s", what)) return -1;
  return o->cuda ? ort_append_cuda(ort, session, o, err) : 0;
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* Inputs and outputs */

static inline int ort_port_shape(const Ort *ort, const OrtTensorTypeAndShapeInfo *info, OrtPort *port, Error *err) {
  const char *symbols[ORT_RANK] = {NULL};
  ONNXTensorElementDataType type = ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED;
  size_t rank = 0;
  if (ort_check(ort, ort->f.GetTensorElementType(info, &type), err, "%s", port->name) ||
      ort_check(ort, ort->f.GetDimensionsCount(info, &rank), err, "%s", port->name))
    return -1;
  port->type = (int)type;
  port->rank = (int)rank;
  if (rank > ORT_RANK)
    return error_set(err, "%s has %zu dimensions; up to %d are possible", port->name, rank, (int)ORT_RANK);
  if (ort_check(ort, ort->f.GetDimensions(info, port->dim, rank), err, "%s", port->name) ||
      ort_check(ort, ort->f.GetSymbolicDimensions(info, symbols, rank), err, "%s", port->name))
    return -1;
  for (size_t i = 0; i < rank; i++)
    snprintf(port->symbol[i], sizeof port->symbol[i], "%s", symbols[i] ? symbols[i] : "");
  return 0;
}

static inline int ort_port(const OrtNet *net, int output, size_t i, OrtPort *port, Error *err) {
  const Ort *ort = net->ort;
  char *name = NULL;
  OrtTypeInfo *type = NULL;
  const OrtTensorTypeAndShapeInfo *info = NULL;
  OrtStatus *status = output ? ort->f.SessionGetOutputName(net->session, i, ort->allocator, &name)
                             : ort->f.SessionGetInputName(net->session, i, ort->allocator, &name);
  if (ort_check(ort, status, err, "a name of the model") != 0) return -1;
  const int fits = (size_t)snprintf(port->name, sizeof port->name, "%s", name) < sizeof port->name;
  ort->f.ReleaseStatus(ort->f.AllocatorFree(ort->allocator, name));
  if (!fits) return error_set(err, "the model's name %.40s... is longer than %d", port->name, (int)ORT_NAME - 1);
  status = output ? ort->f.SessionGetOutputTypeInfo(net->session, i, &type)
                  : ort->f.SessionGetInputTypeInfo(net->session, i, &type);
  if (ort_check(ort, status, err, "%s", port->name) != 0) return -1;
  int result = ort_check(ort, ort->f.CastTypeInfoToTensorInfo(type, &info), err, "%s", port->name);
  if (result == 0 && info) result = ort_port_shape(ort, info, port, err); /* NULL: a sequence or a map */
  ort->f.ReleaseTypeInfo(type);
  return result;
}

static inline int ort_ports(OrtNet *net, Error *err) {
  size_t inputs = 0, outputs = 0;
  if (ort_check(net->ort, net->ort->f.SessionGetInputCount(net->session, &inputs), err, "inputs") ||
      ort_check(net->ort, net->ort->f.SessionGetOutputCount(net->session, &outputs), err, "outputs"))
    return -1;
  if (inputs > ORT_PORTS || outputs > ORT_PORTS)
    return error_set(err, "the model has %zu inputs and %zu outputs; up to %d are possible", inputs, outputs,
                     (int)ORT_PORTS);
  net->inputs = (int)inputs;
  net->outputs = (int)outputs;
  for (size_t i = 0; i < inputs; i++)
    if (ort_port(net, 0, i, &net->input[i], err) != 0) return -1;
  for (size_t i = 0; i < outputs; i++)
    if (ort_port(net, 1, i, &net->output[i], err) != 0) return -1;
  return 0;
}

/* "x float (N,3,224,224)" */
static inline const char *ort_port_text(const OrtPort *port, char *text, size_t size) {
  int used = snprintf(text, size, "%s %s (", port->name, ort_type_name(port->type));
  for (int i = 0; i < port->rank && used < (int)size; i++) {
    const char *comma = i ? "," : "";
    used += port->dim[i] >= 0
                ? snprintf(text + used, size - (size_t)used, "%s%lld", comma, (long long)port->dim[i])
                : snprintf(text + used, size - (size_t)used, "%s%s", comma, port->symbol[i][0] ? port->symbol[i] : "?");
  }
  if (used < (int)size) snprintf(text + used, size - (size_t)used, ")");
  return text;
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* Sessions */

static inline void ort_session_close(OrtNet *net) {
  if (net->ort == NULL) return;
  if (net->binding) net->ort->f.ReleaseIoBinding(net->binding);
  if (net->device) net->ort->f.ReleaseMemoryInfo(net->device);
  if (net->session) net->ort->f.ReleaseSession(net->session);
  memset(net, 0, sizeof *net);
}

static inline int ort_session_start(OrtNet *net, const char *path, const void *bytes, size_t size, Error *err) {
  const Ort *ort = net->ort;
  OrtSessionOptions *session = NULL;
  if (ort_check(ort, ort->f.CreateSessionOptions(&session), err, "ONNX Runtime's options") != 0) return -1;
  int status = ort_session_options(ort, session, &net->options, err);
  if (status == 0)
    status = ort_check(ort,
                       bytes ? ort->f.CreateSessionFromArray(ort->env, bytes, size, session, &net->session)
                             : ort->f.CreateSession(ort->env, path, session, &net->session),
                       err, "%.300s (%s provider)", path, ort_provider_name(net));
  ort->f.ReleaseSessionOptions(session);
  return status;
}

/* A model in memory; `name` is for messages. What it keeps in files beside it is not found. */
static inline int ort_session_bytes(OrtNet *net, Ort *ort, const char *name, const void *bytes, size_t size,
                                    const OrtNetOptions *options, Error *err) {
  memset(net, 0, sizeof *net);
  net->ort = ort;
  net->options = *options;
  int status = ort_session_start(net, name, bytes, size, err);
  if (status == 0) status = ort_ports(net, err);
  if (status == 0)
    status = ort_check(
        ort, ort->f.CreateMemoryInfo("Cuda", OrtDeviceAllocator, options->gpu, OrtMemTypeDefault, &net->device), err,
        "ONNX Runtime");
  if (status != 0) ort_session_close(net);
  return status;
}

/* A model's file. */
static inline int ort_session(OrtNet *net, Ort *ort, const char *path, const OrtNetOptions *options, Error *err) {
  memset(net, 0, sizeof *net);
  if (access(path, R_OK) != 0) return error_set(err, "cannot open %s: %s", path, strerror(errno));
  return ort_session_bytes(net, ort, path, NULL, 0, options, err);
}

/* What the model's metadata says under a key: to be freed; NULL: nothing. */
static inline char *ort_metadata(const OrtNet *net, const char *key) {
  const Ort *ort = net->ort;
  OrtModelMetadata *metadata = NULL;
  char *value = NULL, *copy = NULL;
  Error none;
  if (ort_check(ort, ort->f.SessionGetModelMetadata(net->session, &metadata), &none, "metadata") != 0) return NULL;
  if (ort_check(ort, ort->f.ModelMetadataLookupCustomMetadataMap(metadata, ort->allocator, key, &value), &none,
                "metadata") == 0 &&
      value) {
    copy = strdup(value);
    ort->f.ReleaseStatus(ort->f.AllocatorFree(ort->allocator, value));
  }
  ort->f.ReleaseModelMetadata(metadata);
  return copy;
}

#endif /* PHASE5_PRODUCTION_ORT_SESSION_H */
