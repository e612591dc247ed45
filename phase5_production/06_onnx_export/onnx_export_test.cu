/* Every network of the course as ONNX: what is in the file, and what programs from outside make of it: ONNX's checker
 * and shape inference, PyTorch by the operators' definitions (tools/golden/onnx_check.py), ONNX Runtime. */
#include "common/subprocess.h"
#include "phase5_production/06_onnx_export/export_weights.cuh"
#include "phase5_production/06_onnx_export/onnx_print.h"
#include "phase5_production/06_onnx_export/test_export.h"
#include "phase5_production/10_onnx_runtime/ort.h"

enum { FOLDERS = EXPORT_NETWORKS + 3 };

static char folder[FOLDERS][64]; /* below test_tmpdir(), with a model and test data in each */
static int folders;

static const char *in_tmp(const char *name) {
  static char buffers[4][PATH_MAX];
  static int next;
  return test_path(buffers[next++ % 4], PATH_MAX, name);
}

static void export_to(Model *net, const char *name, int probabilities, int any_size) {
  Error err;
  OnnxModel onnx;
  const OnnxExportOptions options = {name, probabilities, any_size};
  if (onnx_export(&onnx, net, &options, &err) != 0) fail_msg("%s: %s", name, err.message);
  snprintf(folder[folders], sizeof folder[0], "%s", name);
  if (test_data_write(in_tmp(name), net, &onnx, 7, TEST_EXPORT_BATCH, &err) != 0) fail_msg("%s", err.message);
  folders++;
  onnx_model_close(&onnx);
}

/* The folders that the tests below look at: made by the first of them that runs. */
static void need_folders(void) {
  ExportChoice c;
  Model net;
  const ExportNetwork *n;
  if (folders > 0) return;
  for (int i = 0; (n = test_export_choice(i, &c)) != NULL; i++) {
    test_export_open(&net, n->graph(&c.shape), (uint64_t)i);
    export_to(&net, n->name, 0, 0);
    if (strcmp(n->name, "resnet18") == 0) export_to(&net, "resnet18_any_size", 1, 1);
    if (strcmp(n->name, "points") == 0) export_to(&net, "points_probability", 1, 0);
    model_close(&net);
  }
  test_export_open(&net, test_export_zoo(), 5);
  export_to(&net, "zoo", 0, 0);
  model_close(&net);
  assert_int_equal(folders, FOLDERS);
}

/* ---- what is in the file ---- */

/* Parameters under their own names, bit by bit, and nothing else. */
static void parameters_keep_names_and_bits(void **state) {
  (void)state;
  need_folders();
  ExportChoice c;
  Model net;
  const ExportNetwork *n;
  for (int i = 0; (n = test_export_choice(i, &c)) != NULL; i++) {
    OnnxModel onnx;
    Error err;
    const Param *p;
    char path[PATH_MAX];
    size_t count = 0;
    test_export_open(&net, n->graph(&c.shape), (uint64_t)i);
    snprintf(path, sizeof path, "%s/model.onnx", in_tmp(n->name));
    if (onnx_model_read(&onnx, path, &err) != 0) fail_msg("%s", err.message);
    assert_true(onnx.proto->ir_version == 8 && onnx_model_opset(&onnx) == 17);
    for (int node = 0, index = 0; (p = model_next_param(&net, &node, &index)) != NULL;) {
      OnnxTensor t;
      const Onnx__TensorProto *tensor = onnx_initializer(&onnx, p->name);
      if (p->counts) continue;
      count++;
      if (tensor == NULL) fail_msg("%s lacks %s", path, p->name);
      assert_true(tensor->has_raw_data);
      if (onnx_tensor_load(&t, &onnx, tensor, &err) != 0) fail_msg("%s", err.message);
      assert_true(t.type == ONNX_FLOAT && t.rank == p->rank && t.count == p->count);
      for (int d = 0; d < p->rank; d++) assert_true(t.dim[d] == (int64_t)p->dim[d]);
      assert_memory_equal(t.data, model_param(&net, p), p->count * sizeof(float));
      onnx_tensor_free(&t);
    }
    assert_int_equal(onnx.proto->graph->n_initializer, count);
    onnx_model_close(&onnx);
    model_close(&net);
  }
}

static void nodes_are(const char *name, const char *const *lines, size_t count) {
  OnnxModel onnx;
  Error err;
  char path[PATH_MAX], line[ONNX_LINE];
  snprintf(path, sizeof path, "%s/model.onnx", in_tmp(name));
  if (onnx_model_read(&onnx, path, &err) != 0) fail_msg("%s", err.message);
  assert_int_equal(onnx.proto->graph->n_node, count);
  for (size_t i = 0; i < count; i++)
    assert_string_equal(onnx_node_line(onnx.proto->graph->node[i], line, sizeof line), lines[i]);
  onnx_model_close(&onnx);
}

static void operators_have_their_arguments(void **state) {
  (void)state;
  need_folders();
  static const char *const points[] = {"Gemm (x, fc1.weight, fc1.bias) -> fc1 transB=1", "Tanh (fc1) -> tanh1",
                                       "Gemm (tanh1, fc2.weight, fc2.bias) -> logits transB=1",
                                       "Sigmoid (logits) -> probabilities"};
  nodes_are("points_probability", points, sizeof points / sizeof *points);
  static const char *const zoo[] = {
      "Conv (x, conv1.weight, conv1.bias) -> conv1 kernel_shape=3,2 strides=2,1 dilations=2,1 pads=1,2,1,2 group=2",
      "LeakyRelu (conv1) -> leaky_relu1 alpha=0.01",
      "InstanceNormalization (leaky_relu1, norm1.weight, norm1.bias) -> norm1 epsilon=1e-05",
      "MaxPool (norm1) -> pool1 kernel_shape=3,2 strides=2,1 pads=1,0,1,0 ceil_mode=1 dilations=1,2",
      "Tanh (pool1) -> tanh1",
      "ConvTranspose (tanh1, conv_transpose1.weight, conv_transpose1.bias) -> conv_transpose1 kernel_shape=3,3 "
      "strides=2,2 dilations=1,1 output_padding=1,1 pads=1,1,1,1 group=1",
      "InstanceNormalization (conv_transpose1, norm2.weight, norm2.bias) -> norm2 epsilon=1e-05",
      "AveragePool (norm2) -> avgpool1 kernel_shape=2,3 strides=1,2 pads=0,1,0,1 count_include_pad=1",
      "BatchNormalization (avgpool1, bn1.weight, bn1.bias, bn1.running_mean, bn1.running_var) -> bn1 epsilon=1e-05 "
      "momentum=0.9",
      "AveragePool (norm2) -> avgpool2 kernel_shape=2,3 strides=1,2 pads=0,1,0,1 count_include_pad=0",
      "BatchNormalization (avgpool2, bn2.weight, bn2.bias, bn2.running_mean, bn2.running_var) -> bn2 epsilon=1e-05 "
      "momentum=0.9",
      "Add (bn1, bn2) -> add1",
      "Relu (add1) -> relu1",
      "LayerNormalization (relu1, norm3.weight, norm3.bias) -> norm3 axis=-1 epsilon=1e-05",
      "Sigmoid (norm3) -> sigmoid1",
      "LayerNormalization (sigmoid1, norm4.weight, norm4.bias) -> norm4 axis=-3 epsilon=1e-05",
      "Flatten (norm4) -> fc1.flatten axis=1",
      "Gemm (fc1.flatten, fc1.weight, fc1.bias) -> fc1 transB=1",
      "Gemm (fc1, fc2.weight, fc2.bias) -> fc2 transB=1",
      "Softmax (fc2) -> logits axis=-1"};
  nodes_are("zoo", zoo, sizeof zoo / sizeof *zoo);
}

static void shapes_are_open_where_they_can_be(void **state) {
  (void)state;
  need_folders();
  OnnxModel onnx;
  Error err;
  int64_t dim[ONNX_MAX_RANK];
  const char *symbol[ONNX_MAX_RANK];
  if (onnx_model_read(&onnx, in_tmp("resnet18_any_size/model.onnx"), &err) != 0) fail_msg("%s", err.message);
  assert_int_equal(onnx_value_shape(onnx.proto->graph->input[0], dim, symbol), 4);
  assert_true(strcmp(symbol[0], "N") == 0 && dim[1] == 3 && strcmp(symbol[2], "H") == 0 && strcmp(symbol[3], "W") == 0);
  assert_int_equal(onnx_value_shape(onnx.proto->graph->output[0], dim, symbol), 2);
  assert_true(strcmp(symbol[0], "N") == 0 && dim[1] == 13);
  assert_string_equal(onnx.proto->graph->output[0]->name, "probabilities");
  onnx_model_close(&onnx);
}

static void strange_op_forward(const Context *context, const Node *node, const OpArrays *a) {
  (void)context;
  (void)node;
  (void)a;
}
static const Op strange_op = {"Strange", 0, 0, NULL, NULL, strange_op_forward, NULL};

static void export_refused(Graph *g, int any_size, const char *says) {
  Model net;
  OnnxModel onnx;
  Error err;
  const OnnxExportOptions options = {"refused", 0, any_size};
  test_export_open(&net, g, 1);
  assert_int_equal(onnx_export(&onnx, &net, &options, &err), -1);
  if (strstr(err.message, says) == NULL) fail_msg("%s", err.message);
  assert_null(onnx.proto);
  model_close(&net);
}

static void what_cannot_be_exported_is_named(void **state) {
  (void)state;
  Graph *g = graph_create();
  const int x = graph_input(g, "x", shape1(4));
  graph_output(g, graph_node(g, &strange_op, "odd", &x, 1, shape1(4), NULL, 0));
  export_refused(g, 0, "odd1: there is no rule for its operation Strange");
  export_refused(lenet_graph(), 1, "fc1 multiplies every pixel of pool2, of shape (16,5,5)");
  g = graph_create();
  graph_output(g, softmax(g, graph_input(g, "x", shape3(2, 3, 3))));
  export_refused(g, 0, "softmax1 is a softmax of shape (2,3,3); one of a row of numbers can be exported");
}

/* ---- which network a file is of ---- */

static void networks_are_recognised_by_their_tensors(void **state) {
  (void)state;
  ExportChoice c;
  Model net;
  const ExportNetwork *n;
  for (int i = 0; (n = test_export_choice(i, &c)) != NULL; i++) {
    ExportSource source;
    Error err;
    ExportRequest request = {in_tmp("weights.safetensors"), "", "", "", 0, 1, 1};
    test_export_open(&net, n->graph(&c.shape), (uint64_t)i);
    if (state_dict_save(&net, request.weights, &err) != 0) fail_msg("%s", err.message);
    if (strcmp(n->name, "resnet18") == 0) request.side = 32; /* which its tensors do not say */
    if (export_open(&source, &request, &err) != 0) fail_msg("%s: %s", n->name, err.message);
    assert_string_equal(source.choice.network->name, n->name);
    assert_int_equal(source.choice.shape.classes, c.shape.classes);
    assert_int_equal(source.net.parameter_count, net.parameter_count);
    assert_memory_equal(source.net.parameters, net.parameters, net.parameter_count * sizeof(float));
    assert_memory_equal(source.net.buffers, net.buffers, net.buffer_count * sizeof(float));
    export_close(&source);
    model_close(&net);
  }
}

/* A checkpoint says which network, which data, mean and deviation, and how good it was. */
static void a_checkpoint_describes_itself(void **state) {
  (void)state;
  Model net;
  Error err;
  TrainState saved;
  ExportSource source;
  OnnxModel onnx;
  OnnxPreprocessing p;
  json_t *names;
  const ExportRequest request = {in_tmp("best.safetensors"), "", "", "", 0, 1, 1};
  const OnnxExportOptions options = {"lenet", 0, 0};
  memset(&saved, 0, sizeof saved);
  snprintf(saved.data, sizeof saved.data, "fashion_mnist");
  saved.mean[0] = 0.2860, saved.stddev[0] = 0.3530, saved.test_accuracy = 0.9125, saved.best_accuracy = NAN;
  saved.epochs = 5, saved.epoch = 4, saved.batch_size = 64, saved.lr = 0.1, saved.train_images = saved.test_images = 1;
  test_export_open(&net, lenet_graph(), 3);
  SafetensorsWriter out = SafetensorsWriter();
  float *host = checkpoint_host(&net);
  checkpoint_download(&net, 0, host);
  assert_int_equal(checkpoint_add(&out, &net, CHECKPOINT_ALL, "", host, &err), 0);
  checkpoint_add_state(&out, &saved);
  if (safetensors_write(&out, request.weights, &err) != 0) fail_msg("%s", err.message);
  safetensors_writer_free(&out);
  free(host);
  model_close(&net);
  if (export_open(&source, &request, &err) != 0) fail_msg("%s", err.message);
  if (onnx_export(&onnx, &source.net, &options, &err) != 0) fail_msg("%s", err.message);
  export_describe(&source, &request, &onnx);
  assert_int_equal(onnx_get_preprocessing(&onnx, &p, &err), 1);
  assert_true(p.channels == 1 && p.height == 28 && p.width == 28 && p.resize == 0);
  assert_true(p.mean[0] == 0.2860f && p.stddev[0] == 0.3530f);
  assert_int_equal(onnx_get_class_names(&onnx, 10, &names, &err), 0);
  assert_string_equal(json_string_value(json_array_get(names, 9)), "boot");
  json_decref(names);
  assert_string_equal(onnx_metadata(&onnx, "network"), "lenet");
  assert_string_equal(onnx_metadata(&onnx, "data"), "fashion_mnist");
  assert_string_equal(onnx_metadata(&onnx, "test_accuracy"), "0.9125");
  assert_string_equal(onnx_metadata(&onnx, "epoch"), "4");
  assert_null(onnx_metadata(&onnx, "weights"));
  onnx_model_close(&onnx);
  export_close(&source);
}

static void texts_choose_networks(void **state) {
  (void)state;
  ExportChoice c;
  Error err;
  assert_int_equal(export_choose_text(&c, "784,300,100,10 tanh", &err), 0);
  assert_true(strcmp(c.network->name, "mlp") == 0 && c.shape.mlp.count == 4 && c.shape.mlp.width[1] == 300);
  assert_true(c.shape.mlp.activation == ACTIVATION_TANH);
  assert_int_equal(export_choose_text(&c, "mlp 4,5 sigmoid", &err), 0);
  assert_true(c.shape.mlp.count == 2 && c.shape.mlp.activation == ACTIVATION_SIGMOID);
  assert_int_equal(export_choose_text(&c, "resnet 8,16,24 dropout 0.25", &err), 0);
  assert_true(strcmp(c.network->name, "resnet_mnist") == 0 && c.shape.resnet.filters[2] == 24);
  assert_int_equal(export_choose_text(&c, "resnet_mnist resnet 8,16,24 dropout 0.25", &err), 0);
  assert_true(c.shape.resnet.filters[0] == 8);
  assert_int_equal(export_choose_text(&c, "resnet", &err), 0);
  assert_string_equal(c.network->name, "resnet_cifar");
  assert_int_equal(export_choose_text(&c, "lenett", &err), -1);
  assert_non_null(strstr(err.message, "do you mean lenet?"));
  assert_int_equal(export_choose_text(&c, "lenet 5", &err), -1);
  assert_non_null(strstr(err.message, "\"5\" behind the network lenet cannot be understood"));
}

/* ---- what others make of it ---- */

/* A line of the script for each folder: name, output, shape, difference. */
static void onnx_and_pytorch_agree(void **state) {
  (void)state;
  need_folders();
  Error err;
  char script[PATH_MAX], path[FOLDERS][PATH_MAX];
  const char *argv[FOLDERS + 4] = {"/usr/bin/python3", "-B", script};
  if (runfiles_find("tools/golden/onnx_check.py", script, sizeof script, &err) != 0) fail_msg("%s", err.message);
  for (int i = 0; i < folders; i++) {
    test_path(path[i], PATH_MAX, folder[i]);
    argv[3 + i] = path[i];
  }
  Subprocess run = subprocess_run(argv, 240);
  if (run.status == 77 || run.status == 127) {
    print_message("skipped: python3-onnx is not installed; ./setup.sh --dev installs it\n");
    subprocess_free(&run);
    skip();
  }
  if (run.status != 0) fail_msg("exit status %d: %s%s", run.status, run.out, run.err);
  const char *line = run.out;
  for (int i = 0; i < folders; i++) {
    char name[64], output[64], shape[64], number[64];
    if (sscanf(line, "%63s %63s %63s %63s", name, output, shape, number) != 4) fail_msg("%s", run.out);
    assert_string_equal(name, folder[i]);
    assert_true(strncmp(shape, "N,", 2) == 0);
    if (strcmp(number, "not") != 0 && !(atof(number) <= 1e-5)) fail_msg("%.60s: 1e-5 is allowed", line);
    line = strchr(line, '\n') + 1;
  }
  print_message("%s", run.out);
  subprocess_free(&run);
}

static void read_tensor(const char *name, const char *file, OnnxTensor *t) {
  Error err;
  char path[PATH_MAX];
  snprintf(path, sizeof path, "%s/test_data_set_0/%s.pb", in_tmp(name), file);
  if (onnx_tensor_read(t, path, &err) != 0) fail_msg("%s", err.message);
}

/* ONNX Runtime's y for x (n, ...), against ours. */
static void ort_agrees_on(Ort *ort, const char *name, const OrtArray *x, const float *ours, size_t count) {
  Error err;
  OrtNet net;
  OrtArray out;
  char path[PATH_MAX];
  const OrtNetOptions options = ort_net_options();
  double most = 0, difference = 0;
  snprintf(path, sizeof path, "%s/model.onnx", in_tmp(name));
  if (ort_session(&net, ort, path, &options, &err) != 0) fail_msg("%s: %s", name, err.message);
  memset(&out, 0, sizeof out);
  if (ort_run(&net, x, &out, &err) != 0) fail_msg("%s: %s", name, err.message);
  assert_true(ort_array_count(&out) == count && out.rank == 2 && out.dim[0] == x->dim[0]);
  for (size_t i = 0; i < count; i++) {
    const double error = fabs((double)((float *)out.data)[i] - (double)ours[i]);
    if (!isfinite(error)) fail_msg("%s: number %zu is not finite", name, i);
    most = fmax(most, fabs((double)ours[i]));
    difference = fmax(difference, error);
  }
  print_message("  %-20s %.1e of the largest output, 1e-5 is allowed\n", name, difference / most);
  if (!(difference <= 1e-5 * most)) fail_msg("%s: %g of %g", name, difference, most);
  ort_array_free(&out);
  ort_session_close(&net);
}

/* The file of ResNet-18 for pictures of any size, on two of 64 x 64: it was exported from a network for 32 x 32. */
static void ort_agrees_on_another_size(Ort *ort) {
  enum { SIDE = 64, BATCH = 2 };
  ExportChoice c;
  Model net;
  int i = 0;
  const int64_t dim[] = {BATCH, 3, SIDE, SIDE};
  while (strcmp(test_export_choice(i, &c)->name, "resnet18") != 0) i++;
  c.shape.images = shape3(3, SIDE, SIDE);
  test_export_open(&net, c.network->graph(&c.shape), (uint64_t)i); /* the same weights */
  const size_t count = (size_t)BATCH * 3 * SIDE * SIDE, classes = (size_t)BATCH * (size_t)c.shape.classes;
  float *x = (float *)xmalloc(count * sizeof *x), *y = (float *)xmalloc(classes * sizeof *y);
  test_data_fill(x, count, 9);
  test_data_answer(&net, x, BATCH, 1, y);
  const OrtArray in = ort_array(ONNX_FLOAT, x, 4, dim);
  ort_agrees_on(ort, "resnet18_any_size", &in, y, classes);
  free(x);
  free(y);
  model_close(&net);
}

static void onnx_runtime_agrees(void **state) {
  (void)state;
  Ort ort;
  Error err;
  if (ort_open(&ort, &err) != 0) {
    if (err.code != ERROR_NOT_INSTALLED) fail_msg("%s", err.message);
    print_message("skipped: %s\n", err.message);
    skip();
  }
  need_folders();
  for (int i = 0; i < folders; i++) {
    OnnxTensor x, y;
    read_tensor(folder[i], "input_0", &x);
    read_tensor(folder[i], "output_0", &y);
    const OrtArray in = ort_array(x.type, x.data, x.rank, x.dim);
    ort_agrees_on(&ort, folder[i], &in, (const float *)y.data, y.count);
    onnx_tensor_free(&x);
    onnx_tensor_free(&y);
  }
  ort_agrees_on_another_size(&ort);
  ort_close(&ort);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(parameters_keep_names_and_bits),
      cmocka_unit_test(operators_have_their_arguments),
      cmocka_unit_test(shapes_are_open_where_they_can_be),
      cmocka_unit_test(what_cannot_be_exported_is_named),
      cmocka_unit_test(networks_are_recognised_by_their_tensors),
      cmocka_unit_test(a_checkpoint_describes_itself),
      cmocka_unit_test(texts_choose_networks),
      cmocka_unit_test(onnx_and_pytorch_agree),
      cmocka_unit_test(onnx_runtime_agrees),
  };
  return TEST_MAIN("onnx_export", tests);
}
