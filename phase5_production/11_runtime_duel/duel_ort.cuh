/* duel_ort.cuh - ONNX Runtime as a contender: inputs and outputs are bound, on the GPU with the CUDA provider. */
#ifndef PHASE5_PRODUCTION_DUEL_ORT_CUH
#define PHASE5_PRODUCTION_DUEL_ORT_CUH

#include "common/device.h"
#include "phase5_production/10_onnx_runtime/ort.h"
#include "phase5_production/11_runtime_duel/duel_answer.h"
#include "phase5_production/11_runtime_duel/duel_model.h"

typedef struct DuelOrt {
  DuelRunner runner;
  Ort ort;
  OrtNet net;
  OrtNetOptions options;
  const DuelModel *model;
  const float *samples; /* (most,sample_floats) of the host */
  Device device;
  float *x, *y;
  int batch;
} DuelOrt;

static inline OrtArray duel_ort_array(const DuelOrt *d, float *data, int rank, const int64_t *dim) {
  OrtArray array = ort_array(ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, data, rank, dim);
  array.gpu = d->device == DEVICE_GPU;
  return array;
}

static inline void duel_ort_free(DuelOrt *d) {
  if (d->x) device_free(d->device, d->x);
  if (d->y) device_free(d->device, d->y);
  d->x = d->y = NULL;
}

/* The output's sizes for one sample, where the model says them. A run to learn them would count as a slow start. */
static inline int duel_ort_known(DuelOrt *d) {
  const OrtPort *port = &d->net.output[0];
  size_t floats = 1;
  for (int i = 1; i < port->rank; i++) {
    if (port->dim[i] < 1) return 0;
    floats *= (size_t)port->dim[i];
  }
  if (port->rank < 2 || port->dim[0] >= 0) return 0;
  d->runner.output_floats = floats;
  return 1;
}

/* Else they are learnt from a run of one sample: a batch changes the first. */
static inline int duel_ort_shape(DuelOrt *d, OrtArray *out, Error *err) {
  int64_t dim[ORT_RANK];
  memcpy(dim, d->model->dim, sizeof dim);
  dim[0] = 1;
  const OrtArray in =
      ort_array(ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, (void *)(uintptr_t)d->samples, d->model->rank, dim);
  memset(out, 0, sizeof *out);
  if (ort_run_some(&d->net, &in, out, 1, err) != 0) return -1;
  free(out->data);
  out->data = NULL;
  d->runner.output_floats = ort_array_count(out);
  return 0;
}

/* A recorded CUDA graph is of one shape: another batch is another session. */
static inline int duel_ort_session(DuelOrt *d, Error *err) {
  OrtNetOptions plain = d->options;
  OrtArray out;
  if (d->net.session && !d->options.cuda_graph) return 0;
  if (d->net.session) ort_session_close(&d->net);
  if (ort_session(&d->net, &d->ort, d->model->path, &d->options, err) != 0) return -1;
  if (d->runner.output_floats > 0 || duel_ort_known(d)) return 0;
  if (d->options.cuda_graph) { /* a run without bound arrays cannot be recorded */
    plain.cuda_graph = 0;
    ort_session_close(&d->net);
    if (ort_session(&d->net, &d->ort, d->model->path, &plain, err) != 0) return -1;
  }
  if (duel_ort_shape(d, &out, err) != 0) return -1;
  if (out.rank < 1 || out.dim[0] != 1) return error_set(err, "output %s has no batch", d->net.output[0].name);
  if (!d->options.cuda_graph) return 0;
  ort_session_close(&d->net);
  return ort_session(&d->net, &d->ort, d->model->path, &d->options, err);
}

static inline int duel_ort_prepare(void *self, int batch, Error *err) {
  DuelOrt *d = (DuelOrt *)self;
  int64_t in_dim[ORT_RANK], out_dim[2];
  if (duel_ort_session(d, err) != 0) return -1;
  const size_t in_bytes = (size_t)batch * d->runner.sample_floats * sizeof(float);
  duel_ort_free(d);
  d->batch = batch;
  d->x = (float *)device_alloc(d->device, in_bytes);
  d->y = (float *)device_alloc(d->device, (size_t)batch * d->runner.output_floats * sizeof(float));
  device_upload(d->device, d->x, d->samples, in_bytes);
  device_synchronize(d->device);
  memcpy(in_dim, d->model->dim, sizeof in_dim);
  in_dim[0] = out_dim[0] = batch;
  out_dim[1] = (int64_t)d->runner.output_floats;
  const OrtArray x = duel_ort_array(d, d->x, d->model->rank, in_dim), y = duel_ort_array(d, d->y, 2, out_dim);
  return ort_bind_input(&d->net, 0, &x, err) != 0 || ort_bind_output(&d->net, 0, &y, err) != 0 ? -1 : 0;
}

static inline int duel_ort_run(void *self, Error *err) { return ort_run_bound(&((DuelOrt *)self)->net, err); }

/* ort_run_bound() has waited. */
static inline int duel_ort_wait(void *self, Error *err) { return (void)self, (void)err, 0; }

static inline int duel_ort_outputs(void *self, float *y, Error *err) {
  DuelOrt *d = (DuelOrt *)self;
  (void)err;
  device_download(d->device, y, d->y, (size_t)d->batch * d->runner.output_floats * sizeof *y);
  return 0;
}

static inline void duel_ort_close(void *self) {
  DuelOrt *d = (DuelOrt *)self;
  duel_ort_free(d);
  ort_session_close(&d->net);
  ort_close(&d->ort);
}

/* Opens the library; the model is opened when the first batch is prepared. */
static inline int duel_ort_open(DuelOrt *d, const DuelModel *model, const float *samples, OrtNetOptions options,
                                Error *err) {
  memset(d, 0, sizeof *d);
  d->model = model;
  d->samples = samples;
  d->options = options;
  d->device = options.cuda ? DEVICE_GPU : DEVICE_CPU;
  const DuelRunner runner = {
      d, duel_ort_prepare,   duel_ort_run, duel_ort_wait, duel_ort_outputs, duel_ort_close, duel_model_floats(model),
      0, duel_loaded_bytes()};
  d->runner = runner;
  return ort_open(&d->ort, err);
}

#endif /* PHASE5_PRODUCTION_DUEL_ORT_CUH */
