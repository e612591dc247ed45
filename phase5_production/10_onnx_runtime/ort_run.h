/* ort_run.h - a model's run: with arrays of the host, or with arrays that are bound, of the host or of a GPU. See
 * ort.h. */
#ifndef PHASE5_PRODUCTION_ORT_RUN_H
#define PHASE5_PRODUCTION_ORT_RUN_H

#include "phase5_production/10_onnx_runtime/ort_session.h"

/* Row-major, of any rank. */
typedef struct OrtArray {
  int type, rank; /* onnx.proto's number of the type */
  int64_t dim[ORT_RANK];
  void *data;   /* NULL in an output: ort_run() allocates it, and says type, rank and sizes; ort_array_free() */
  size_t bytes; /* of data */
  int gpu;      /* 1: memory of the GPU; only for bound arrays */
} OrtArray;

static inline OrtArray ort_array(int type, void *data, int rank, const int64_t *dim) {
  OrtArray array;
  memset(&array, 0, sizeof array);
  array.type = type;
  array.rank = rank;
  array.data = data;
  array.bytes = ort_type_bytes(type);
  for (int i = 0; i < rank && i < ORT_RANK; i++) array.bytes *= (size_t)(array.dim[i] = dim[i]);
  return array;
}

/* Floats: "ort_floats(x, 4, 8, 3, 224, 224)" */
__attribute__((unused)) static inline OrtArray ort_floats(void *data, int rank, ...) {
  int64_t dim[ORT_RANK];
  va_list args;
  va_start(args, rank);
  for (int i = 0; i < rank && i < ORT_RANK; i++) dim[i] = va_arg(args, int);
  va_end(args);
  return ort_array(ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, data, rank, dim);
}

/* Of an array that ort_run() has allocated. */
static inline void ort_array_free(OrtArray *array) {
  free(array->data);
  memset(array, 0, sizeof *array);
}

static inline size_t ort_array_count(const OrtArray *array) {
  size_t count = 1;
  for (int i = 0; i < array->rank; i++) count *= (size_t)array->dim[i];
  return count;
}

/* The library's view of the array: no copy. */
static inline int ort_value(const OrtNet *net, const char *name, const OrtArray *array, OrtValue **value, Error *err) {
  static char nothing[1]; /* for an array without elements */
  const Ort *ort = net->ort;
  return ort_check(ort,
                   ort->f.CreateTensorWithDataAsOrtValue(
                       array->gpu ? net->device : ort->host, array->data ? array->data : nothing, array->bytes,
                       array->dim, (size_t)array->rank, (ONNXTensorElementDataType)array->type, value),
                   err, "%s", name);
}

/* Copies what the library allocated. */
static inline int ort_take_output(const OrtNet *net, const char *name, OrtValue *value, OrtArray *array, Error *err) {
  const Ort *ort = net->ort;
  OrtTensorTypeAndShapeInfo *info = NULL;
  OrtPort port;
  void *data = NULL;
  memset(&port, 0, sizeof port);
  snprintf(port.name, sizeof port.name, "%s", name);
  if (ort_check(ort, ort->f.GetTensorTypeAndShape(value, &info), err, "%s", name) != 0) return -1;
  int status = ort_port_shape(ort, info, &port, err);
  ort->f.ReleaseTensorTypeAndShapeInfo(info);
  if (status != 0) return -1;
  if (ort_type_bytes(port.type) == 0)
    return error_set(err, "output %s is of type %s, which this program cannot read", name, ort_type_name(port.type));
  if (ort_check(ort, ort->f.GetTensorMutableData(value, &data), err, "%s", name) != 0) return -1;
  *array = ort_array(port.type, NULL, port.rank, port.dim);
  array->data = xmalloc(array->bytes);
  memcpy(array->data, data, array->bytes);
  return 0;
}

/* in[i] is net->input[i]; out[i] net->output[i]. An out[i] with data is written in place and must have the shape that
 * the model gives it; one without is allocated. All outputs that are not wanted may be left out at the end. */
static inline int ort_run_some(OrtNet *net, const OrtArray *in, OrtArray *out, int outputs, Error *err) {
  const Ort *ort = net->ort;
  const char *in_names[ORT_PORTS] = {NULL}, *out_names[ORT_PORTS] = {NULL};
  OrtValue *x[ORT_PORTS] = {NULL}, *y[ORT_PORTS] = {NULL};
  int status = 0;
  for (int i = 0; i < net->inputs && status == 0; i++) {
    in_names[i] = net->input[i].name;
    status = ort_value(net, net->input[i].name, &in[i], &x[i], err);
  }
  for (int i = 0; i < outputs && status == 0; i++) {
    out_names[i] = net->output[i].name;
    if (out[i].data) status = ort_value(net, net->output[i].name, &out[i], &y[i], err);
  }
  if (status == 0)
    status = ort_check(ort,
                       ort->f.Run(net->session, NULL, in_names, (const OrtValue *const *)x, (size_t)net->inputs,
                                  out_names, (size_t)outputs, y),
                       err, "ONNX Runtime (%s provider)", ort_provider_name(net));
  for (int i = 0; i < outputs && status == 0; i++)
    if (out[i].data == NULL) status = ort_take_output(net, net->output[i].name, y[i], &out[i], err);
  for (int i = 0; i < ORT_PORTS; i++) {
    if (x[i]) ort->f.ReleaseValue(x[i]);
    if (y[i]) ort->f.ReleaseValue(y[i]);
  }
  return status;
}

static inline int ort_run(OrtNet *net, const OrtArray *in, OrtArray *out, Error *err) {
  return ort_run_some(net, in, out, net->outputs, err);
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* I/O binding: inputs and outputs are named once, and lie where the caller wants them. With arrays of the GPU a run
 * copies nothing between it and the host. */

static inline int ort_bind(OrtNet *net, const OrtPort *port, int output, const OrtArray *array, Error *err) {
  const Ort *ort = net->ort;
  OrtValue *value = NULL;
  if (net->binding == NULL && ort_check(ort, ort->f.CreateIoBinding(net->session, &net->binding), err, "binding") != 0)
    return -1;
  if (ort_value(net, port->name, array, &value, err) != 0) return -1;
  const int status = ort_check(
      ort,
      output ? ort->f.BindOutput(net->binding, port->name, value) : ort->f.BindInput(net->binding, port->name, value),
      err, "binding of %s", port->name);
  ort->f.ReleaseValue(value); /* the binding keeps a reference */
  return status;
}

/* Binding again replaces the array. A host array that the CUDA provider reads is copied when it is bound. */
static inline int ort_bind_input(OrtNet *net, int i, const OrtArray *array, Error *err) {
  return ort_bind(net, &net->input[i], 0, array, err);
}

static inline int ort_bind_output(OrtNet *net, int i, const OrtArray *array, Error *err) {
  return ort_bind(net, &net->output[i], 1, array, err);
}

/* Computes the bound outputs from the bound inputs, and waits for them. */
static inline int ort_run_bound(OrtNet *net, Error *err) {
  if (net->binding == NULL) return error_set(err, "no array is bound");
  return ort_check(net->ort, net->ort->f.RunWithBinding(net->session, NULL, net->binding), err,
                   "ONNX Runtime (%s provider)", ort_provider_name(net));
}

#endif /* PHASE5_PRODUCTION_ORT_RUN_H */
