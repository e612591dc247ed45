/* onnx_run.cuh - an imported model that is ready to run: import, memory, parameters, and its arrays by number.
 *
 *     OnnxRun run;
 *     if (onnx_run_open(&run, &file, inputs, count, DEVICE_GPU, 8, &err) != 0) ...
 *     onnx_run_set(&run, 0, x, batch);                      // host memory, of the input's type
 *     model_forward(&run.net, batch);
 *     onnx_run_get(&run, 0, y, batch);
 *     onnx_run_close(&run);
 */
#ifndef PHASE5_PRODUCTION_ONNX_RUN_CUH
#define PHASE5_PRODUCTION_ONNX_RUN_CUH

#include "phase5_production/07_onnx_import/onnx_import.cuh"

typedef struct OnnxRun {
  OnnxImport import; /* its graph is net's */
  Model net;
} OnnxRun;

static inline int onnx_run_open(OnnxRun *run, const OnnxModel *file, const OnnxImportInput *inputs, int count,
                                Device device, int max_batch, Error *err) {
  Context context;
  memset(&context, 0, sizeof context);
  context.device = device;
  if (onnx_import(&run->import, file, inputs, count, err) != 0) return -1;
  if (model_open(&run->net, run->import.graph, context, NULL, max_batch, MODEL_INFER, err) != 0) {
    onnx_import_close(&run->import);
    return -1;
  }
  run->import.graph = NULL;
  if (onnx_import_parameters(&run->import, &run->net, err) == 0) return 0;
  model_close(&run->net);
  onnx_import_close(&run->import);
  return -1;
}

static inline void onnx_run_close(OnnxRun *run) {
  model_close(&run->net);
  onnx_import_close(&run->import);
}

/* Bytes of a value in a batch. */
static inline size_t onnx_run_bytes(const OnnxRun *run, const OnnxImportValue *value, int batch) {
  const Node *node = &run->net.graph->nodes[value->node];
  return node_bytes(node) * (size_t)node_samples(node, batch);
}

/* Fills input i from the host. */
static inline void onnx_run_set(const OnnxRun *run, int i, const void *data, int batch) {
  const OnnxImportValue *value = &run->import.inputs[i];
  device_upload(run->net.context.device, model_output(&run->net, value->node), data, onnx_run_bytes(run, value, batch));
}

/* Fetches output i. */
static inline void onnx_run_get(const OnnxRun *run, int i, void *data, int batch) {
  const OnnxImportValue *value = &run->import.outputs[i];
  device_download(run->net.context.device, data, model_output(&run->net, value->node),
                  onnx_run_bytes(run, value, batch));
}

/* Of its name; -1: there is none. */
static inline int onnx_run_input(const OnnxRun *run, const char *name) {
  for (int i = 0; i < run->import.input_count; i++)
    if (strcmp(run->import.inputs[i].name, name) == 0) return i;
  return -1;
}

#endif /* PHASE5_PRODUCTION_ONNX_RUN_CUH */
