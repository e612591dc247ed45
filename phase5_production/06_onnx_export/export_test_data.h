/* export_test_data.h - an exported model with inputs and our answers to them, in the layout of ONNX's own tests:
 *
 *     DIR/model.onnx   DIR/test_data_set_0/input_0.pb   DIR/test_data_set_0/output_0.pb
 *
 * Each .pb file is one TensorProto. Any runtime can be tested on it.
 */
#ifndef PHASE5_PRODUCTION_EXPORT_TEST_DATA_H
#define PHASE5_PRODUCTION_EXPORT_TEST_DATA_H

#include "common/nn/model.h"
#include "common/onnx/build.h"
#include "common/philox.h"
#include "phase5_production/06_onnx_export/onnx_export.cuh"

enum { TEST_DATA_STREAM = 0x7e57 };

/* A file that is one TensorProto of float32 (batch, shape). */
static inline int test_data_write_tensor(const char *path, const char *name, int batch, Shape shape,
                                         const float *values, Error *err) {
  OnnxModel memory;
  int64_t dim[SHAPE_MAX_RANK + 1] = {batch};
  AtomicFile file;
  onnx_model_create(&memory, "tensor");
  for (int i = 0; i < shape.rank; i++) dim[i + 1] = shape.dim[i];
  const Onnx__TensorProto *t = onnx_new_tensor(&memory, name, ONNX_FLOAT, shape.rank + 1, dim, values);
  const size_t size = onnx__tensor_proto__get_packed_size(t);
  uint8_t *bytes = (uint8_t *)xmalloc(size);
  onnx__tensor_proto__pack(t, bytes);
  int status = atomic_file_open(&file, path, err);
  if (status == 0) {
    fwrite(bytes, 1, size, file.stream); /* the commit reports what went wrong */
    status = atomic_file_commit(&file, err);
  }
  free(bytes);
  onnx_model_close(&memory);
  return status;
}

/* The network's answer to x (batch, input), as the exported file should give it: y (batch, output). */
static inline void test_data_answer(Model *net, const float *x, int batch, int probabilities, float *y) {
  const Device device = net->context.device;
  const int last = onnx_export_last(net->graph);
  const size_t width = shape_count(graph_shape(net->graph, last));
  device_upload(device, model_input(net, 0), x, (size_t)batch * model_input_width(net, 0) * sizeof *x);
  net->context.training = 0;
  model_forward(net, batch);
  device_download(device, y, model_output(net, last), (size_t)batch * width * sizeof *y);
  for (int b = 0; b < batch && probabilities; b++) { /* behind it the file has a Sigmoid or a Softmax */
    float *row = y + (size_t)b * width;
    double sum = 0, most = (double)row[0];
    for (size_t i = 1; i < width; i++) most = fmax(most, (double)row[i]);
    for (size_t i = 0; i < width; i++) sum += exp((double)row[i] - most);
    for (size_t i = 0; i < width; i++)
      row[i] = (float)(width == 1 ? 1 / (1 + exp(-(double)row[i])) : exp((double)row[i] - most) / sum);
  }
}

/* Random numbers as large as normalised pixels: in [-2, 2). */
static inline void test_data_fill(float *x, size_t count, uint64_t seed) {
  for (size_t i = 0; i < count; i++) x[i] = (float)philox4x32(seed, TEST_DATA_STREAM, i).word[0] * 0x1p-30f - 2;
}

static inline int test_data_write(const char *folder, Model *net, const OnnxModel *onnx, uint64_t seed, int batch,
                                  Error *err) {
  char path[PATH_MAX], set[PATH_MAX];
  const Onnx__GraphProto *g = onnx->proto->graph;
  const Shape in = graph_shape(net->graph, model_input_node(net, 0));
  const Shape out = graph_shape(net->graph, onnx_export_last(net->graph));
  if ((size_t)snprintf(set, sizeof set, "%s/test_data_set_0", folder) >= sizeof set - 16)
    return error_set(err, "%.60s...: the path is too long", folder);
  if (make_directories(set, err) != 0) return error_advise(err, "choose another with --test-data");
  snprintf(path, sizeof path, "%.*s/model.onnx", (int)strlen(folder), folder);
  if (onnx_model_write(onnx->proto, path, err) != 0) return -1;
  float *x = (float *)xmalloc((size_t)batch * shape_count(in) * sizeof *x);
  float *y = (float *)xmalloc((size_t)batch * shape_count(out) * sizeof *y);
  test_data_fill(x, (size_t)batch * shape_count(in), seed);
  test_data_answer(net, x, batch, strcmp(g->output[0]->name, ONNX_EXPORT_PROBABILITIES) == 0, y);
  snprintf(path, sizeof path, "%.*s/input_0.pb", (int)strlen(set), set);
  int status = test_data_write_tensor(path, g->input[0]->name, batch, in, x, err);
  snprintf(path, sizeof path, "%.*s/output_0.pb", (int)strlen(set), set);
  if (status == 0) status = test_data_write_tensor(path, g->output[0]->name, batch, out, y, err);
  free(x);
  free(y);
  return status;
}

#endif /* PHASE5_PRODUCTION_EXPORT_TEST_DATA_H */
