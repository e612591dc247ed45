/* onnx_import_op.cu - the functions of onnx_import.cuh. */
#include "phase5_production/07_onnx_import/onnx_import.cuh"

#include "phase5_production/07_onnx_import/import_model.h"

static int import_all(Import *im, const OnnxImportInput *inputs, int count) {
  const Onnx__GraphProto *graph = im->model->proto->graph;
  if (im->opset < 1) return import_fail(im, "it does not say which version of the operators it has");
  if (import_check_operators(im) != 0) return -1;
  import_collect(im);
  if (import_initializers(im) != 0 || import_inputs(im, inputs, count) != 0) return -1;
  im->out->rows = (OnnxImportRow *)xcalloc(graph->n_node, sizeof *im->out->rows);
  for (size_t i = 0; i < graph->n_node; i++)
    if (import_node(im, i) != 0) return -1;
  if (import_outputs(im) != 0) return -1;
  import_sweep(im);
  return 0;
}

int onnx_import(OnnxImport *out, const OnnxModel *m, const OnnxImportInput *inputs, int count, Error *err) {
  memset(out, 0, sizeof *out);
  Import *im = (Import *)xcalloc(1, sizeof *im);
  im->out = out;
  im->model = m;
  im->err = err;
  im->opset = (int)onnx_model_opset(m);
  im->g = out->graph = graph_create();
  out->state = im;
  if (import_all(im, inputs, count) == 0) return 0;
  char needs[sizeof out->needs];
  memcpy(needs, out->needs, sizeof needs);
  onnx_import_drop(out);
  memcpy(out->needs, needs, sizeof needs);
  return -1;
}

const OnnxConstant *onnx_import_constant(const OnnxImport *in, const char *param) {
  for (int i = 0; i < in->constant_count; i++)
    if (strcmp(in->constants[i].name, param) == 0) return &in->constants[i];
  return NULL;
}

int onnx_import_quantized(const OnnxImport *in, const char *param, OnnxQuantized *quantized) {
  const OnnxConstant *c = onnx_import_constant(in, param);
  if (c == NULL || c->quantized < 0) return 0;
  *quantized = in->state->quantized[c->quantized];
  return 1;
}

int onnx_import_parameters(const OnnxImport *in, Model *m, Error *err) {
  const Param *p;
  int found = 0; /* mostly they have the same order */
  model_use_device(m);
  for (int node = 0, index = 0; (p = model_next_param(m, &node, &index)) != NULL;) {
    if (p->counts) continue;
    int tried = 0;
    while (tried < in->constant_count && strcmp(in->constants[found].name, p->name) != 0) {
      found = (found + 1) % in->constant_count;
      tried++;
    }
    if (tried == in->constant_count) return error_set(err, "the file has no values for the parameter '%s'", p->name);
    const OnnxConstant *c = &in->constants[found];
    const size_t expected = p->bytes ? p->bytes : p->count * sizeof(float);
    if (c->bytes != expected)
      return error_set(err, "the parameter '%s' has %zu bytes, and %zu in the file", p->name, expected, c->bytes);
    device_upload(m->context.device, model_param(m, p), c->data, c->bytes);
  }
  return 0;
}

void onnx_import_close(OnnxImport *in) {
  Import *im = in->state;
  if (im) {
    for (int i = 0; i < im->buffer_count; i++) free(im->buffers[i]);
    free(im->buffers);
    free(im->quantized);
    free(im->values);
    free(im);
  }
  free(in->rows);
  free(in->constants);
  memset(in, 0, sizeof *in);
}

const char *onnx_import_operator(int i) { return i >= 0 && i < IMPORT_OPERATORS ? import_operators[i].name : NULL; }
