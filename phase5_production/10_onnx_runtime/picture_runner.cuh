/* picture_runner.cuh - who computes: ONNX Runtime on the CPU or on the GPU. See picture_runner_engine.cuh for ours.
 *
 *     Runner runner;
 *     if (runner_open_ort(&runner, "resnet18.onnx", &options, &err) != 0) die("%s", err.message);
 *     runner.infer(&runner, x, 8, 224, 224, y, &err)
 *
 * x and y lie on runner.device. That is the GPU with the CUDA provider: its inputs and outputs are bound, and nothing
 * is copied. (On an emulated GPU there is no CUDA provider.)
 */
#ifndef PHASE5_PRODUCTION_PICTURE_RUNNER_CUH
#define PHASE5_PRODUCTION_PICTURE_RUNNER_CUH

#include "common/device.h"
#include "phase5_production/10_onnx_runtime/ort.h"

typedef struct Runner {
  char name[80]; /* "ONNX Runtime 1.29.0, CUDA provider" */
  Device device;
  OrtPort input, output;
  int (*infer)(struct Runner *r, float *x, int n, int height, int width, float *y, size_t y_floats, Error *err);
  /* Sizes of the output for one picture: dim[0] is 1. x: n pictures that are computed next; NULL: not known yet. */
  int (*shape)(struct Runner *r, float *x, int n, int height, int width, int *rank, int64_t dim[ORT_RANK], Error *err);
  void (*close)(struct Runner *r);
  int batch; /* that the model demands; 0: any */
  Ort ort;
  OrtNet net;
  OrtArray known; /* the output's sizes for pictures of known_height x known_width */
  int known_height, known_width;
  OrtArray ahead; /* the answer to ahead_x, which was computed to learn its sizes; data NULL: none */
  const float *ahead_x;
  void *engine;
} Runner;

static inline OrtArray runner_x(const Runner *r, float *x, int n, int height, int width) {
  OrtArray array = ort_floats(x, 4, n, (int)r->input.dim[1], height, width);
  array.gpu = r->device == DEVICE_GPU;
  return array;
}

/* The output's first dimension follows the input's. */
static inline int runner_infer_ort(Runner *r, float *x, int n, int height, int width, float *y, size_t y_floats,
                                   Error *err) {
  const OrtArray in = runner_x(r, x, n, height, width);
  int rank;
  int64_t dim[ORT_RANK];
  if (r->shape(r, x, n, height, width, &rank, dim, err) != 0) return -1;
  dim[0] = n;
  OrtArray out = ort_array(ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, y, rank, dim);
  out.gpu = in.gpu;
  if (out.bytes > y_floats * sizeof(float))
    return error_set(err, "%s: the output is larger than expected", r->output.name);
  if (r->ahead.data) {
    const int is_ours = r->ahead_x == x && r->ahead.bytes == out.bytes;
    if (is_ours) memcpy(y, r->ahead.data, out.bytes);
    ort_array_free(&r->ahead);
    if (is_ours) return 0;
  }
  if (!out.gpu) return ort_run_some(&r->net, &in, &out, 1, err);
  if (ort_bind_input(&r->net, 0, &in, err) != 0 || ort_bind_output(&r->net, 0, &out, err) != 0) return -1;
  return ort_run_bound(&r->net, err);
}

/* ONNX Runtime says how large an output is by computing it: that of x, which is kept for runner_infer_ort(), or that of
 * a picture of zeros, where x is not known or lies on the GPU. */
static inline int runner_try_shape(Runner *r, float *x, int pictures, int height, int width, Error *err) {
  const int ahead = x != NULL && r->device == DEVICE_CPU, n = ahead ? pictures : r->batch ? r->batch : 1;
  OrtArray in = ort_floats(x, 4, n, (int)r->input.dim[1], height, width), out;
  memset(&out, 0, sizeof out);
  ort_array_free(&r->ahead);
  if (!ahead) in.data = xcalloc(in.bytes, 1);
  const int status = ort_run_some(&r->net, &in, &out, 1, err);
  if (!ahead) free(in.data);
  if (status != 0) return -1;
  OrtArray known = out;
  known.data = NULL;
  if (ahead) {
    r->ahead = out;
    r->ahead_x = x;
  } else {
    ort_array_free(&out);
  }
  if (known.rank < 1 || known.dim[0] != n)
    return error_set(err, "output %s has %lld in its first dimension for %d picture%s; as many were expected",
                     r->output.name, (long long)(known.rank < 1 ? 0 : known.dim[0]), n, n > 1 ? "s" : "");
  r->known = known;
  r->known_height = height;
  r->known_width = width;
  return 0;
}

/* Known for the size that was asked for last. */
static inline int runner_shape_ort(Runner *r, float *x, int n, int height, int width, int *rank, int64_t dim[ORT_RANK],
                                   Error *err) {
  const int known = r->known_height == height && r->known_width == width;
  if (!known && runner_try_shape(r, x, n, height, width, err) != 0) return -1;
  *rank = r->known.rank;
  memcpy(dim, r->known.dim, sizeof r->known.dim);
  dim[0] = 1;
  return 0;
}

static inline void runner_close_ort(Runner *r) {
  ort_array_free(&r->ahead);
  ort_session_close(&r->net);
  ort_close(&r->ort);
}

static inline int runner_open_ort(Runner *r, const char *model, const OrtNetOptions *options, Error *err) {
  memset(r, 0, sizeof *r);
  r->infer = runner_infer_ort;
  r->shape = runner_shape_ort;
  r->close = runner_close_ort;
#ifndef SIMT_REWRITTEN
  r->device = options->cuda ? DEVICE_GPU : DEVICE_CPU;
#endif
  if (ort_open(&r->ort, err) != 0) return -1;
  if (ort_session(&r->net, &r->ort, model, options, err) != 0) {
    ort_close(&r->ort);
    return -1;
  }
  snprintf(r->name, sizeof r->name, "ONNX Runtime %s, %s provider", r->ort.version, ort_provider_name(&r->net));
  r->input = r->net.input[0];
  r->output = r->net.output[0];
  r->batch = r->input.dim[0] > 0 ? (int)r->input.dim[0] : 0;
  if (r->net.inputs == 1 && r->net.outputs >= 1) return 0;
  const int inputs = r->net.inputs;
  runner_close_ort(r);
  return error_set(err, "%s has %d inputs; one, for pictures, was expected", model, inputs);
}

#endif /* PHASE5_PRODUCTION_PICTURE_RUNNER_CUH */
