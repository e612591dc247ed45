/* test_model.h - small ONNX models for tests, made by build.h, and what a reader says of them after a change. */
#ifndef COMMON_ONNX_TEST_MODEL_H
#define COMMON_ONNX_TEST_MODEL_H

#include "common/onnx/build.h"
#include "common/test.h"

/* x (N,2) -> Gemm with w (3,2), b (3) -> h -> Relu -> y (N,3); metadata; a Constant of int64 nobody reads. */
static inline void test_model_create(OnnxModel *m) {
  static const float w[6] = {1, -2, 3, -4, 5, -6}, b[3] = {0.5F, 0, -0.5F};
  static const int64_t w_dim[2] = {3, 2}, b_dim[1] = {3}, two[1] = {2}, numbers[2] = {7, -8};
  const OnnxDim in[2] = {{0, "N"}, {2, NULL}}, out[2] = {{0, "N"}, {3, NULL}};
  onnx_model_create(m, "test");
  onnx_set_producer(m, "test", "1");
  onnx_set_metadata(m, "key", "value");
  onnx_add_input(m, "x", ONNX_FLOAT, 2, in);
  onnx_add_output(m, "y", ONNX_FLOAT, 2, out);
  onnx_add_tensor(m, "w", ONNX_FLOAT, 2, w_dim, w);
  onnx_add_tensor(m, "b", ONNX_FLOAT, 1, b_dim, b);
  Onnx__NodeProto *gemm = onnx_add_node(m, "Gemm", "gemm");
  onnx_add_node_input(m, gemm, "x");
  onnx_add_node_input(m, gemm, "w");
  onnx_add_node_input(m, gemm, "b");
  onnx_add_node_output(m, gemm, "h");
  onnx_set_int(m, gemm, "transB", 1);
  onnx_set_float(m, gemm, "alpha", 1);
  Onnx__NodeProto *constant = onnx_add_node(m, "Constant", "constant");
  onnx_add_node_output(m, constant, "c");
  onnx_set_tensor(m, constant, "value", onnx_new_tensor(m, "", ONNX_INT64, 1, two, numbers));
  Onnx__NodeProto *relu = onnx_add_node(m, "Relu", "relu");
  onnx_add_node_input(m, relu, "h");
  onnx_add_node_output(m, relu, "y");
}

/* The bytes of the model; to be freed. */
static inline uint8_t *test_model_pack(const OnnxModel *m, size_t *size) {
  *size = onnx__model_proto__get_packed_size(m->proto);
  uint8_t *bytes = (uint8_t *)xmalloc(*size);
  onnx__model_proto__pack(m->proto, bytes);
  return bytes;
}

/* Packs and parses it again: -1 with a sentence where it is refused. */
static inline int test_model_reads(const OnnxModel *m, Error *err) {
  OnnxModel again;
  size_t size;
  uint8_t *bytes = test_model_pack(m, &size);
  const int status = onnx_model_parse(&again, bytes, size, ".", err);
  free(bytes);
  if (status == 0) onnx_model_close(&again);
  return status;
}

#endif /* COMMON_ONNX_TEST_MODEL_H */
