/* What the importer makes of small models that are built here: which nodes, which names, which sentences. */
#include "common/onnx/build.h"
#include "common/test.h"
#include "phase2_mlp/03_mlp/linear_op.cuh"
#include "phase3_cnn/10_batch_norm/batch_norm2d_op.cuh"
#include "phase5_production/07_onnx_import/nd_op.cuh"
#include "phase5_production/07_onnx_import/onnx_run.cuh"

/* A model with the input x (N,3) or other sizes and the output y. */
static void begin(OnnxModel *m, int rank, const OnnxDim *dim) {
  onnx_model_create(m, "test");
  onnx_add_input(m, "x", ONNX_FLOAT, rank, dim);
  onnx_add_output(m, "y", ONNX_FLOAT, 0, NULL);
  m->proto->graph->output[0]->type = NULL;
}

/* A node that reads up to three values, NULL behind the last, and computes `output`. */
static Onnx__NodeProto *node(OnnxModel *m, const char *op, const char *name, const char *a, const char *b,
                             const char *c, const char *output) {
  Onnx__NodeProto *n = onnx_add_node(m, op, name);
  const char *inputs[] = {a, b, c};
  for (int i = 0; i < 3 && inputs[i]; i++) onnx_add_node_input(m, n, inputs[i]);
  onnx_add_node_output(m, n, output);
  return n;
}

static void floats(OnnxModel *m, const char *name, int rank, int64_t d0, int64_t d1, const float *values) {
  const int64_t dim[] = {d0, d1};
  onnx_add_tensor(m, name, ONNX_FLOAT, rank, dim, values);
}

static void ints(OnnxModel *m, const char *name, int64_t count, const int64_t *values) {
  onnx_add_tensor(m, name, ONNX_INT64, 1, &count, values);
}

/* The model must be refused with both pieces of text. */
static void expect_refused(OnnxModel *m, const char *where, const char *what) {
  OnnxImport import;
  Error err;
  if (onnx_import(&import, m, NULL, 0, &err) == 0) fail_msg("nothing is wrong; \"%s\" is expected", what);
  if (strstr(err.message, where) == NULL || strstr(err.message, what) == NULL)
    fail_msg("\"%s\" and \"%s\" are not in: %s", where, what, err.message);
  onnx_model_close(m);
}

static void open_or_fail(OnnxRun *run, const OnnxModel *m, int batch) {
  Error err;
  if (onnx_run_open(run, m, NULL, 0, DEVICE_CPU, batch, &err) != 0) fail_msg("%s", err.message);
}

static void close_both(OnnxRun *run, OnnxModel *m) {
  onnx_run_close(run);
  onnx_model_close(m);
}

static const OnnxDim batch_of_3[] = {{0, "N"}, {3, NULL}}, pictures[] = {{0, "N"}, {2, NULL}, {3, NULL}, {4, NULL}};

/* --------------------------------------------------------------------------------------------------------- mistakes */

static void missing_operators_are_named_with_their_nodes(void **state) {
  (void)state;
  OnnxModel m;
  begin(&m, 2, batch_of_3);
  node(&m, "Relu", "first", "x", NULL, NULL, "a");
  node(&m, "Det", "the determinant", "a", NULL, NULL, "b");
  node(&m, "Unique", "", "b", NULL, NULL, "y");
  expect_refused(&m,
                 "2 operators of version 17 cannot be imported: Det at node 'the determinant' (Det); Unique at node 2",
                 "--operators");
}

static void mistakes_name_the_node(void **state) {
  (void)state;
  static const float four[] = {1, 2, 3, 4}, twelve[12] = {0};
  OnnxModel m;
  begin(&m, 2, batch_of_3);
  floats(&m, "four", 1, 4, 0, four);
  node(&m, "Add", "sum", "x", "four", NULL, "y");
  expect_refused(&m, "node 'sum' (Add)", "the shapes (N,3) and (4) do not go together: axis 1 is 3 and 4");
  begin(&m, 4, pictures);
  const int64_t filters[] = {1, 3, 2, 2};
  onnx_add_tensor(&m, "w", ONNX_FLOAT, 4, filters, twelve);
  node(&m, "Conv", "conv", "x", "w", NULL, "y");
  expect_refused(&m, "node 'conv' (Conv)", "weights (1,3,2,2) and 1 groups for x of the shape (N,2,3,4)");
  begin(&m, 2, batch_of_3);
  onnx_set_int(&m, node(&m, "Softmax", "s", "x", NULL, NULL, "y"), "axis", 2);
  expect_refused(&m, "node 's' (Softmax)", "axis 2 of an array of 2 axes; -2 to 1 are possible");
  begin(&m, 2, batch_of_3);
  const int64_t turned[] = {1, 0};
  onnx_set_ints(&m, node(&m, "Transpose", "t", "x", NULL, NULL, "y"), "perm", 2, turned);
  expect_refused(&m, "node 't' (Transpose)", "the batch would become axis 1 of (3,N); it must stay the first axis");
  begin(&m, 2, batch_of_3);
  node(&m, "ReduceSum", "r", "x", NULL, NULL, "y");
  expect_refused(&m, "node 'r' (ReduceSum)", "the batch must stay");
  const OnnxDim open[] = {{0, "N"}, {3, NULL}, {0, "height"}, {5, NULL}};
  begin(&m, 4, open);
  node(&m, "Relu", "", "x", NULL, NULL, "y");
  expect_refused(&m, "input 'x'", "size 2, height is not a number; give one");
}

/* Indices and axes that would lead behind an array. */
static void what_would_read_elsewhere_is_refused(void **state) {
  (void)state;
  static const int64_t twice[] = {0, 0}, starts[] = {2, 2}, ends[] = {3, 3}, far[12] = {0}, wide[] = {3, 4};
  static const float four[] = {1, 2, 3, 4};
  static const double complex[] = {1, 1};
  const int64_t one = 1;
  OnnxModel m;
  begin(&m, 1, batch_of_3 + 1);
  ints(&m, "starts", 2, starts);
  ints(&m, "ends", 2, ends);
  ints(&m, "axes", 2, twice);
  onnx_add_node_input(&m, node(&m, "Slice", "s", "x", "starts", "ends", "y"), "axes");
  expect_refused(&m, "node 's' (Slice)", "axis 0 is named twice");
  begin(&m, 1, batch_of_3 + 1);
  ints(&m, "axes", 2, twice);
  node(&m, "Unsqueeze", "u", "x", "axes", NULL, "y");
  expect_refused(&m, "node 'u' (Unsqueeze)", "axis 0 is named twice");
  begin(&m, 1, batch_of_3 + 1);
  floats(&m, "w", 2, 1, 4, four);
  onnx_add_tensor(&m, "far", ONNX_INT64, 2, wide, far);
  onnx_set_int(&m, node(&m, "GatherElements", "g", "w", "far", NULL, "y"), "axis", 1);
  expect_refused(&m, "node 'g' (GatherElements)", "indices (3,4) along axis 1 of (1,4)");
  begin(&m, 1, batch_of_3 + 1);
  ints(&m, "size", 1, &one);
  Onnx__NodeProto *n = node(&m, "ConstantOfShape", "c", "size", NULL, NULL, "y");
  onnx_set_tensor(&m, n, "value", onnx_new_tensor(&m, "", ONNX_COMPLEX128, 1, &one, complex));
  expect_refused(&m, "node 'c' (ConstantOfShape)", "the type complex128 is not computed with");
}

/* What decides about a shape must be known; the caller learns which input it is. */
static void a_value_that_must_be_known_is_named(void **state) {
  (void)state;
  static const int64_t target[] = {3, -1};
  const OnnxDim two[] = {{2, NULL}}, six[] = {{2, NULL}, {3, NULL}};
  OnnxModel m;
  OnnxImport import;
  Error err;
  begin(&m, 2, six);
  onnx_add_input(&m, "shape", ONNX_INT64, 1, two);
  node(&m, "Reshape", "", "x", "shape", NULL, "y");
  assert_int_equal(onnx_import(&import, &m, NULL, 0, &err), -1);
  assert_string_equal(import.needs, "shape");
  const OnnxImportInput given = {"shape", 1, {2}, target};
  if (onnx_import(&import, &m, &given, 1, &err) != 0) fail_msg("%s", err.message);
  assert_int_equal(import.outputs[0].dim[0], 3);
  assert_int_equal(import.outputs[0].dim[1], 2);
  onnx_import_drop(&import);
  const OnnxImportInput unknown = {"shapes", 1, {2}, target};
  assert_int_equal(onnx_import(&import, &m, &unknown, 1, &err), -1);
  assert_non_null(strstr(err.message, "the model has no input 'shapes'"));
  onnx_model_close(&m);
}

/* ---------------------------------------------------------------------------------------------------------- folding */

/* x.view(x.shape[0], -1), as PyTorch writes it: five nodes, of which nothing is left. */
static void arithmetic_on_shapes_leaves_nothing(void **state) {
  (void)state;
  static const int64_t zero = 0, one = -1;
  static const int64_t axes = 0;
  OnnxModel m;
  OnnxRun run;
  begin(&m, 4, pictures);
  onnx_add_tensor(&m, "zero", ONNX_INT64, 0, NULL, &zero);
  ints(&m, "rest", 1, &one);
  ints(&m, "axes", 1, &axes);
  node(&m, "Shape", "", "x", NULL, NULL, "shape");
  node(&m, "Gather", "", "shape", "zero", NULL, "n");
  node(&m, "Unsqueeze", "", "n", "axes", NULL, "n1");
  onnx_set_int(&m, node(&m, "Concat", "", "n1", "rest", NULL, "target"), "axis", 0);
  node(&m, "Reshape", "", "x", "target", NULL, "flat");
  node(&m, "Neg", "", "flat", NULL, NULL, "y");
  open_or_fail(&run, &m, 2);
  assert_int_equal(run.net.graph->count, 3); /* x, its view, Neg */
  assert_int_equal(run.net.graph->nodes[1].op->flags & OP_VIEW, OP_VIEW);
  assert_int_equal(run.import.outputs[0].dim[0], ONNX_IMPORT_BATCH);
  assert_int_equal(run.import.outputs[0].dim[1], 24);
  float x[48], y[48];
  for (int i = 0; i < 48; i++) x[i] = (float)i;
  onnx_run_set(&run, 0, x, 2);
  model_forward(&run.net, 2);
  onnx_run_get(&run, 0, y, 2);
  for (int i = 0; i < 48; i++) assert_true(y[i] == -x[i]);
  close_both(&run, &m);
}

/* A row that is expanded to the batch, as class tokens are: a node, not a constant. */
static void a_constant_is_expanded_to_the_batch(void **state) {
  (void)state;
  static const float row[] = {1, 2, 3};
  OnnxModel m;
  OnnxRun run;
  begin(&m, 2, batch_of_3);
  floats(&m, "row", 2, 1, 3, row);
  node(&m, "Shape", "", "x", NULL, NULL, "shape");
  node(&m, "Expand", "", "row", "shape", NULL, "rows");
  node(&m, "ConstantOfShape", "", "shape", NULL, NULL, "zeros");
  node(&m, "Sum", "", "x", "rows", "zeros", "sum");
  onnx_set_int(&m, node(&m, "Concat", "", "sum", "rows", NULL, "y"), "axis", 1);
  open_or_fail(&run, &m, 2);
  const float x[] = {10, 20, 30, 40, 50, 60}, expected[] = {11, 22, 33, 1, 2, 3, 41, 52, 63, 1, 2, 3};
  float y[12];
  onnx_run_set(&run, 0, x, 2);
  model_forward(&run.net, 2);
  onnx_run_get(&run, 0, y, 2);
  assert_memory_equal(y, expected, sizeof y);
  close_both(&run, &m);
}

/* A constant that depends on the batch is not a number. */
static void the_batch_cannot_be_computed_with(void **state) {
  (void)state;
  OnnxModel m;
  begin(&m, 2, batch_of_3);
  node(&m, "Shape", "", "x", NULL, NULL, "shape");
  onnx_set_int(&m, node(&m, "Cast", "", "shape", NULL, NULL, "float"), "to", ONNX_FLOAT);
  node(&m, "ReduceProd", "", "float", NULL, NULL, "elements");
  node(&m, "Div", "mean", "x", "elements", NULL, "y");
  expect_refused(&m, "node 'mean' (Div)", "'elements' depends on the size of the batch");
}

/* ---------------------------------------------------------------------------------------------------------- our Ops */

/* MatMul and Add by constants are one linear layer with the name of its weight; a flatten in front costs nothing. */
static void a_product_and_a_sum_are_a_linear_layer(void **state) {
  (void)state;
  static float w[24 * 2];
  static const float bias[] = {10, 20};
  OnnxModel m;
  OnnxRun run;
  for (int i = 0; i < 48; i++) w[i] = (float)(i % 7) - 3;
  begin(&m, 4, pictures);
  floats(&m, "head.weight", 2, 24, 2, w);
  floats(&m, "bias", 1, 2, 0, bias);
  node(&m, "Flatten", "", "x", NULL, NULL, "flat");
  node(&m, "MatMul", "", "flat", "head.weight", NULL, "product");
  node(&m, "Add", "", "bias", "product", NULL, "y");
  open_or_fail(&run, &m, 1);
  assert_int_equal(run.net.graph->count, 2);
  assert_ptr_equal(run.net.graph->nodes[1].op, &linear_op);
  assert_string_equal(run.net.graph->nodes[1].name, "head");
  float x[24], y[2];
  for (int i = 0; i < 24; i++) x[i] = (float)(i % 5) - 1;
  onnx_run_set(&run, 0, x, 1);
  model_forward(&run.net, 1);
  onnx_run_get(&run, 0, y, 1);
  for (int k = 0; k < 2; k++) {
    float sum = bias[k];
    for (int i = 0; i < 24; i++) sum += x[i] * w[2 * i + k];
    assert_true(fabsf(y[k] - sum) < 1e-4f);
  }
  close_both(&run, &m);
}

/* The product is read twice: its sum with the bias stays a node. */
static void a_product_that_others_read_keeps_its_zeros(void **state) {
  (void)state;
  static const float w[] = {1, 2, 3}, bias[] = {5};
  OnnxModel m;
  OnnxRun run;
  begin(&m, 2, batch_of_3);
  floats(&m, "w", 2, 3, 1, w);
  floats(&m, "bias", 1, 1, 0, bias);
  node(&m, "MatMul", "", "x", "w", NULL, "product");
  node(&m, "Add", "", "product", "bias", NULL, "sum");
  node(&m, "Mul", "", "sum", "product", NULL, "y");
  open_or_fail(&run, &m, 1);
  const float x[] = {1, -1, 1};
  float y;
  onnx_run_set(&run, 0, x, 1);
  model_forward(&run.net, 1);
  onnx_run_get(&run, 0, &y, 1);
  assert_true(y == (2 + 5) * 2);
  close_both(&run, &m);
}

/* TensorFlow's 1e-3 is in the variance. */
static void another_epsilon_is_in_the_variance(void **state) {
  (void)state;
  static const float scale[] = {2, 3}, bias[] = {0.5f, -1}, mean[] = {1, -2}, variance[] = {0.25f, 1e-4f};
  OnnxModel m;
  OnnxRun run;
  begin(&m, 4, pictures);
  floats(&m, "bn.weight", 1, 2, 0, scale);
  floats(&m, "b", 1, 2, 0, bias);
  floats(&m, "m", 1, 2, 0, mean);
  floats(&m, "v", 1, 2, 0, variance);
  Onnx__NodeProto *n = node(&m, "BatchNormalization", "norm", "x", "bn.weight", "b", "y");
  onnx_add_node_input(&m, n, "m");
  onnx_add_node_input(&m, n, "v");
  onnx_set_float(&m, n, "epsilon", 1e-3f);
  open_or_fail(&run, &m, 1);
  assert_ptr_equal(run.net.graph->nodes[1].op, &batch_norm2d_op);
  assert_string_equal(run.net.graph->nodes[1].name, "bn");
  float x[24], y[24];
  for (int i = 0; i < 24; i++) x[i] = 0.25f * (float)(i % 9) - 1;
  onnx_run_set(&run, 0, x, 1);
  model_forward(&run.net, 1);
  onnx_run_get(&run, 0, y, 1);
  for (int i = 0; i < 24; i++) {
    const int c = i / 12;
    const double expected = scale[c] * (x[i] - mean[c]) / sqrt(variance[c] + 1e-3) + bias[c];
    assert_true(fabs(y[i] - expected) <= 1e-5 * (1 + fabs(expected)));
  }
  close_both(&run, &m);
}

/* Weights of 8 bits become float32, and what they were made of is remembered. */
static void quantized_weights_are_remembered(void **state) {
  (void)state;
  static const int8_t w[] = {1, -2, 3, 4, 5, -6};
  static const float scales[] = {0.5f, 0.25f};
  const int64_t dim[] = {3, 2};
  OnnxModel m;
  OnnxRun run;
  OnnxQuantized q;
  begin(&m, 2, batch_of_3);
  onnx_add_tensor(&m, "w", ONNX_INT8, 2, dim, w);
  floats(&m, "scales", 1, 2, 0, scales);
  onnx_set_int(&m, node(&m, "DequantizeLinear", "", "w", "scales", NULL, "fc.weight"), "axis", 1);
  node(&m, "MatMul", "", "x", "fc.weight", NULL, "y");
  open_or_fail(&run, &m, 1);
  assert_int_equal(run.import.rows[0].fate, ONNX_FOLDED);
  const float x[] = {1, 10, 100};
  float y[2];
  onnx_run_set(&run, 0, x, 1);
  model_forward(&run.net, 1);
  onnx_run_get(&run, 0, y, 1);
  assert_true(y[0] == 0.5f * (1 + 30 + 500) && y[1] == 0.25f * (-2 + 40 - 600));
  assert_int_equal(onnx_import_quantized(&run.import, "fc.bias", &q), 0);
  assert_int_equal(onnx_import_quantized(&run.import, "fc.weight", &q), 1);
  static const int8_t turned[] = {1, 3, 5, -2, 4, -6}; /* (out,in), as the layer's weight */
  assert_int_equal(q.type, DTYPE_INT8);
  assert_int_equal(q.axis, 0);
  assert_int_equal(q.scale_count, 2);
  assert_memory_equal(q.data, turned, sizeof turned);
  close_both(&run, &m);
}

/* A convolution of integers whose bias is its ninth input. */
static void a_quantized_convolution_has_a_bias(void **state) {
  (void)state;
  static const uint8_t w[] = {3, 1}, zeros[] = {1}, offset[] = {10};
  static const float scale[] = {0.5f}, half[] = {2};
  static const int32_t bias[] = {8, -6};
  const int64_t one = 1, two = 2, filters[] = {2, 1, 1, 1};
  const OnnxDim sizes[] = {{0, "N"}, {1, NULL}, {1, NULL}, {3, NULL}};
  OnnxModel m;
  OnnxRun run;
  begin(&m, 4, sizes);
  onnx_add_tensor(&m, "w", ONNX_UINT8, 4, filters, w);
  onnx_add_tensor(&m, "zero", ONNX_UINT8, 1, &one, zeros);
  onnx_add_tensor(&m, "offset", ONNX_UINT8, 1, &one, offset);
  onnx_add_tensor(&m, "bias", ONNX_INT32, 1, &two, bias);
  floats(&m, "scale", 1, 1, 0, scale);
  floats(&m, "half", 1, 1, 0, half);
  node(&m, "QuantizeLinear", "", "x", "scale", "zero", "q");
  Onnx__NodeProto *n = node(&m, "QLinearConv", "", "q", "scale", "zero", "y");
  static const char *const more[] = {"w", "scale", "zero", "half", "offset", "bias"};
  for (int i = 0; i < 6; i++) onnx_add_node_input(&m, n, more[i]);
  open_or_fail(&run, &m, 1);
  const float x[] = {1, 4, -100}; /* q: 3, 9, 0 */
  uint8_t y[6];
  onnx_run_set(&run, 0, x, 1);
  model_forward(&run.net, 1);
  onnx_run_get(&run, 0, y, 1);
  for (int k = 0; k < 2; k++)
    for (int i = 0; i < 3; i++) {
      const int q = i == 0 ? 2 : i == 1 ? 8 : -1; /* less the zero point */
      assert_int_equal(y[3 * k + i], (int)rint((q * (w[k] - 1) + bias[k]) * 0.25 / 2) + 10);
    }
  close_both(&run, &m);
}

/* The same weights as raw bytes, as a list of numbers, and in a file beside the model. */
static void weights_may_lie_anywhere(void **state) {
  (void)state;
  static const float w[] = {0.5f, -1, 2};
  for (int way = 0; way < 3; way++) {
    OnnxModel m, read;
    OnnxRun run;
    Error err;
    char path[PATH_MAX], data[PATH_MAX];
    begin(&m, 2, batch_of_3);
    floats(&m, "w", 2, 3, 1, w);
    node(&m, "MatMul", "", "x", "w", NULL, "y");
    Onnx__TensorProto *t = m.proto->graph->initializer[0];
    Onnx__StringStringEntryProto entry = ONNX__STRING_STRING_ENTRY_PROTO__INIT, *entries[] = {&entry};
    if (way > 0) t->has_raw_data = 0;
    if (way == 1) t->n_float_data = 3, t->float_data = (float *)onnx_copy(&m, w, sizeof w);
    if (way == 2) {
      FILE *file = fopen(test_path(data, sizeof data, "w.bin"), "wb");
      assert_non_null(file);
      assert_int_equal(fwrite(w, sizeof *w, 3, file), 3);
      fclose(file);
      entry.key = (char *)"location";
      entry.value = (char *)"w.bin";
      t->n_external_data = 1;
      t->external_data = entries;
      t->has_data_location = 1;
      t->data_location = ONNX__TENSOR_PROTO__DATA_LOCATION__EXTERNAL;
    }
    if (onnx_model_write(m.proto, test_path(path, sizeof path, "weights.onnx"), &err) != 0) fail_msg("%s", err.message);
    if (onnx_model_read(&read, path, &err) != 0) fail_msg("%s", err.message);
    open_or_fail(&run, &read, 1);
    const float x[] = {2, 3, 4};
    float y;
    onnx_run_set(&run, 0, x, 1);
    model_forward(&run.net, 1);
    onnx_run_get(&run, 0, &y, 1);
    assert_true(y == 1 - 3 + 8);
    close_both(&run, &read);
    onnx_model_close(&m);
  }
}

/* An output may be an input, a constant, or another output. */
static void outputs_may_be_anything(void **state) {
  (void)state;
  static const float c[] = {7, 8};
  const OnnxDim two[] = {{2, NULL}};
  OnnxModel m;
  OnnxRun run;
  begin(&m, 2, batch_of_3);
  floats(&m, "c", 1, 2, 0, c);
  node(&m, "Identity", "", "x", NULL, NULL, "y");
  node(&m, "Neg", "", "c", NULL, NULL, "folded");
  onnx_add_output(&m, "folded", ONNX_FLOAT, 1, two);
  onnx_add_output(&m, "c", ONNX_FLOAT, 1, two);
  open_or_fail(&run, &m, 2);
  const float x[] = {1, 2, 3, 4, 5, 6};
  float y[6], folded[2];
  onnx_run_set(&run, 0, x, 2);
  model_forward(&run.net, 2);
  onnx_run_get(&run, 0, y, 2);
  onnx_run_get(&run, 1, folded, 2);
  assert_memory_equal(x, y, sizeof x);
  assert_true(folded[0] == -7 && folded[1] == -8);
  onnx_run_get(&run, 2, folded, 2);
  assert_true(folded[0] == 7 && folded[1] == 8);
  close_both(&run, &m);
}

/* Broadcasting with strides: the general loop against one written down here, ragged sizes. */
static void broadcasting_repeats_axes(void **state) {
  (void)state;
  static float b[5 * 3];
  const int64_t dim[] = {5, 1, 3};
  const OnnxDim sizes[] = {{0, "N"}, {5, NULL}, {7, NULL}, {3, NULL}};
  OnnxModel m;
  OnnxRun run;
  for (int i = 0; i < 15; i++) b[i] = (float)(i * i);
  begin(&m, 4, sizes);
  onnx_add_tensor(&m, "b", ONNX_FLOAT, 3, dim, b);
  node(&m, "Sub", "", "b", "x", NULL, "y");
  open_or_fail(&run, &m, 2);
  float x[2 * 105], y[2 * 105];
  for (int i = 0; i < 210; i++) x[i] = (float)(i % 31);
  onnx_run_set(&run, 0, x, 2);
  model_forward(&run.net, 2);
  onnx_run_get(&run, 0, y, 2);
  for (int i = 0; i < 210; i++) assert_true(y[i] == b[i / 21 % 5 * 3 + i % 3] - x[i]);
  close_both(&run, &m);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(missing_operators_are_named_with_their_nodes),
      cmocka_unit_test(mistakes_name_the_node),
      cmocka_unit_test(what_would_read_elsewhere_is_refused),
      cmocka_unit_test(a_value_that_must_be_known_is_named),
      cmocka_unit_test(arithmetic_on_shapes_leaves_nothing),
      cmocka_unit_test(a_constant_is_expanded_to_the_batch),
      cmocka_unit_test(the_batch_cannot_be_computed_with),
      cmocka_unit_test(a_product_and_a_sum_are_a_linear_layer),
      cmocka_unit_test(a_product_that_others_read_keeps_its_zeros),
      cmocka_unit_test(another_epsilon_is_in_the_variance),
      cmocka_unit_test(quantized_weights_are_remembered),
      cmocka_unit_test(a_quantized_convolution_has_a_bias),
      cmocka_unit_test(weights_may_lie_anywhere),
      cmocka_unit_test(outputs_may_be_anything),
      cmocka_unit_test(broadcasting_repeats_axes),
  };
  return TEST_MAIN("onnx_import", tests);
}
