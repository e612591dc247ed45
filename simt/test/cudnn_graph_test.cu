/* cudnn_graph_test.cu - cuDNN's graph API: convolutions alone, with what is fused behind them, and what is refused. On
 * a GPU: nvcc -lcudnn. */
#include "dnn.cuh"

typedef cudnnBackendDescriptor_t Desc;

/* ---- descriptors ---- */

static std::vector<Desc> opened;

static Desc create(cudnnBackendDescriptorType_t type) {
  Desc d;
  DNN(cudnnBackendCreateDescriptor(type, &d));
  opened.push_back(d);
  return d;
}

static void close_all() {
  for (Desc d : opened) DNN(cudnnBackendDestroyDescriptor(d));
  opened.clear();
}

#define SET(d, name, type, count, values) \
  DNN(cudnnBackendSetAttribute(d, CUDNN_ATTR_##name, CUDNN_TYPE_##type, count, values))

static void set_child(Desc d, cudnnBackendAttributeName_t name, Desc child) {
  DNN(cudnnBackendSetAttribute(d, name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &child));
}

/* is_virtual: between two operations; by_value: one number of the host. */
static Desc tensor(int64_t id, const Array &a, bool is_virtual = false, bool by_value = false) {
  const int64_t dim[4] = {a.dim[0], a.dim[1], a.dim[2], a.dim[3]}, alignment = 16;
  const int64_t stride[4] = {a.stride[0], a.stride[1], a.stride[2], a.stride[3]};
  const cudnnDataType_t type = is_virtual ? CUDNN_DATA_FLOAT : a.type;
  Desc d = create(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  SET(d, TENSOR_UNIQUE_ID, INT64, 1, &id);
  SET(d, TENSOR_DATA_TYPE, DATA_TYPE, 1, &type);
  SET(d, TENSOR_DIMENSIONS, INT64, 4, dim);
  SET(d, TENSOR_STRIDES, INT64, 4, stride);
  SET(d, TENSOR_BYTE_ALIGNMENT, INT64, 1, &alignment);
  SET(d, TENSOR_IS_VIRTUAL, BOOLEAN, 1, &is_virtual);
  SET(d, TENSOR_IS_BY_VALUE, BOOLEAN, 1, &by_value);
  DNN(cudnnBackendFinalize(d));
  return d;
}

static Desc convolution(const int64_t *padding, const int64_t *stride, const int64_t *dilation) {
  const int64_t axes = 2;
  const cudnnDataType_t sum = CUDNN_DATA_FLOAT;
  const cudnnConvolutionMode_t mode = CUDNN_CROSS_CORRELATION;
  Desc d = create(CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
  SET(d, CONVOLUTION_SPATIAL_DIMS, INT64, 1, &axes);
  SET(d, CONVOLUTION_COMP_TYPE, DATA_TYPE, 1, &sum);
  SET(d, CONVOLUTION_CONV_MODE, CONVOLUTION_MODE, 1, &mode);
  SET(d, CONVOLUTION_PRE_PADDINGS, INT64, 2, padding);
  SET(d, CONVOLUTION_POST_PADDINGS, INT64, 2, padding);
  SET(d, CONVOLUTION_FILTER_STRIDES, INT64, 2, stride);
  SET(d, CONVOLUTION_DILATIONS, INT64, 2, dilation);
  DNN(cudnnBackendFinalize(d));
  return d;
}

static Desc conv_forward(Desc conv, Desc x, Desc w, Desc y) {
  Desc d = create(CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR);
  set_child(d, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC, conv);
  set_child(d, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X, x);
  set_child(d, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W, w);
  set_child(d, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y, y);
  SET(d, OPERATION_CONVOLUTION_FORWARD_ALPHA, FLOAT, 1, &ONE);
  SET(d, OPERATION_CONVOLUTION_FORWARD_BETA, FLOAT, 1, &ZERO);
  DNN(cudnnBackendFinalize(d));
  return d;
}

static Desc mode_of(cudnnPointwiseMode_t mode) {
  const cudnnDataType_t type = CUDNN_DATA_FLOAT;
  Desc d = create(CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
  SET(d, POINTWISE_MODE, POINTWISE_MODE, 1, &mode);
  SET(d, POINTWISE_MATH_PREC, DATA_TYPE, 1, &type);
  DNN(cudnnBackendFinalize(d));
  return d;
}

/* b NULL: of one argument. Not finalized. */
static Desc pointwise(cudnnPointwiseMode_t mode, Desc x, Desc b, Desc y) {
  Desc d = create(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
  set_child(d, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, mode_of(mode));
  set_child(d, CUDNN_ATTR_OPERATION_POINTWISE_XDESC, x);
  if (b) set_child(d, CUDNN_ATTR_OPERATION_POINTWISE_BDESC, b);
  set_child(d, CUDNN_ATTR_OPERATION_POINTWISE_YDESC, y);
  return d;
}

static Desc finalized(Desc d) {
  DNN(cudnnBackendFinalize(d));
  return d;
}

static Desc graph_of(std::vector<Desc> ops) {
  Desc d = create(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
  SET(d, OPERATIONGRAPH_OPS, BACKEND_DESCRIPTOR, (int64_t)ops.size(), ops.data());
  SET(d, OPERATIONGRAPH_HANDLE, HANDLE, 1, &handle);
  return d;
}

/* ---- execution ---- */

static Desc plan_of(Desc config) {
  Desc d = create(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
  set_child(d, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, config);
  SET(d, EXECUTION_PLAN_HANDLE, HANDLE, 1, &handle);
  return d;
}

static int64_t workspace_of(Desc plan) {
  int64_t bytes = -1, count = 0;
  DNN(cudnnBackendGetAttribute(plan, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64, 1, &count, &bytes));
  assert_int_equal(count, 1);
  return bytes;
}

static Desc pack_of(std::vector<int64_t> ids, std::vector<void *> pointers, void *workspace) {
  Desc d = create(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
  SET(d, VARIANT_PACK_UNIQUE_IDS, INT64, (int64_t)ids.size(), ids.data());
  SET(d, VARIANT_PACK_DATA_POINTERS, VOID_PTR, (int64_t)pointers.size(), pointers.data());
  SET(d, VARIANT_PACK_WORKSPACE, VOID_PTR, 1, &workspace);
  return finalized(d);
}

/* The configurations that a heuristic proposes; none, where it has no engine. */
static std::vector<Desc> proposed_by(cudnnBackendHeurMode_t mode, Desc graph) {
  Desc d = create(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
  set_child(d, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph);
  SET(d, ENGINEHEUR_MODE, HEUR_MODE, 1, &mode);
  if (CUDNN_STATUS_CATEGORY(cudnnBackendFinalize(d)) == NOT_SUPPORTED) return {};
  int64_t count = 0, got = 0;
  DNN(cudnnBackendGetAttribute(d, CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR, 0, &count, NULL));
  std::vector<Desc> configs;
  for (int i = 0; i < count; i++) configs.push_back(create(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR));
  if (count)
    DNN(cudnnBackendGetAttribute(d, CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR, count, &got,
                                 configs.data()));
  assert_true(got >= 0 && got <= count);
  configs.resize((size_t)got);
  return configs;
}

/* Those of the trained model, then those that take every shape. */
static std::vector<Desc> proposals(Desc graph) {
  std::vector<Desc> configs = proposed_by(CUDNN_HEUR_MODE_A, graph);
  for (Desc config : proposed_by(CUDNN_HEUR_MODE_FALLBACK, graph)) configs.push_back(config);
  return configs;
}

/* The number of its engine; -1: with float32 it rounds the inputs to TF32, or sums by Winograd's algorithm or Fourier
 * transforms, whose roundoff is not that of plain sums. The engine's notes say so. */
static int64_t engine_of(Desc config, cudnnDataType_t type) {
  Desc engine = create(CUDNN_BACKEND_ENGINE_DESCRIPTOR);
  cudnnBackendNumericalNote_t notes[16];
  int64_t index = -1, count = 0;
  DNN(cudnnBackendGetAttribute(config, CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &count, &engine));
  DNN(cudnnBackendGetAttribute(engine, CUDNN_ATTR_ENGINE_GLOBAL_INDEX, CUDNN_TYPE_INT64, 1, &count, &index));
  DNN(cudnnBackendGetAttribute(engine, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE, 16, &count, notes));
  for (int i = 0; i < count && i < 16 && type == CUDNN_DATA_FLOAT; i++)
    if (notes[i] != CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC && notes[i] != CUDNN_NUMERICAL_NOTE_STRICT_NAN_PROP)
      return -1;
  return index;
}

/* Which graphs a GPU must have an engine for: the emulation has one for all here. */
typedef enum Offer { OPTIONAL, REQUIRED } Offer;

/* By the first engine that takes it. false: there is none, which is printed; only where it is optional, on a GPU. */
static bool execute(const char *what, Offer offer, Desc graph, cudnnDataType_t type, std::vector<int64_t> ids,
                    std::vector<void *> pointers) {
  int counting = 0;
  const cudnnStatus_t whole = cudnnBackendFinalize(graph);
  if (CUDNN_STATUS_CATEGORY(whole) != NOT_SUPPORTED || offer == REQUIRED || HAS_REASONS) DNN(whole);
  const std::vector<Desc> configs = whole == CUDNN_STATUS_SUCCESS ? proposals(graph) : std::vector<Desc>();
  for (Desc config : configs) {
    const int64_t engine = engine_of(config, type);
    if (engine < 0) continue;
    counting++;
    Desc plan = plan_of(config);
    if (cudnnBackendFinalize(plan) != CUDNN_STATUS_SUCCESS) continue;
    const int64_t bytes = workspace_of(plan);
    void *workspace = NULL;
    CHECK(cudaMalloc(&workspace, (size_t)bytes + 1)); /* never NULL */
    const cudnnStatus_t status = cudnnBackendExecute(handle, plan, pack_of(ids, pointers, workspace));
    char reason[512] = "";
    cudnnGetLastErrorString(reason, sizeof reason);
    CHECK(cudaDeviceSynchronize());
    CHECK(cudaFree(workspace));
    if (status == CUDNN_STATUS_SUCCESS) return true;
    if (HAS_REASONS) fail_msg("%s: engine %d: %s", what, (int)engine, reason);
    print_message("%s: engine %d has a plan, but: %s: %s\n", what, (int)engine, cudnnGetErrorString(status), reason);
  }
  if (offer == REQUIRED || HAS_REASONS) fail_msg("%s: no engine takes the graph", what);
  print_message("%s: of %d engines that are proposed %d count, none takes the graph\n", what, (int)configs.size(),
                counting);
  return false;
}

/* ---- x (2,8,9,7), w (16,8,3,3), padding 1 ---- */

struct Fused {
  Array x, w, y, z, bias;
  std::vector<double> sums;
};

static Fused fused_arrays(Layout layout, cudnnDataType_t type) {
  Fused f = {array_of(2, 8, 9, 7, layout, type),  array_of(16, 8, 3, 3, layout, type),
             array_of(2, 16, 9, 7, layout, type), array_of(2, 16, 9, 7, layout, type),
             array_of(1, 16, 1, 1, layout, type), {}};
  f.sums.resize(f.y.count());
  for (int n = 0; n < 2; n++)
    for (int k = 0; k < 16; k++)
      for (int i = 0; i < 9; i++)
        for (int j = 0; j < 7; j++)
          for (int c = 0; c < 8; c++)
            for (int r = 0; r < 3; r++)
              for (int s = 0; s < 3; s++)
                if (i + r >= 1 && i + r <= 9 && j + s >= 1 && j + s <= 7)
                  f.sums[((n * 16 + k) * 9 + i) * 7 + j] += f.x.at(n, c, i + r - 1, j + s - 1) * f.w.at(k, c, r, s);
  return f;
}

static void done(Fused &f) {
  done(f.x);
  done(f.w);
  done(f.y);
  done(f.z);
  done(f.bias);
  close_all();
}

static const int64_t TWO_ONES[2] = {1, 1};
static double tolerance(cudnnDataType_t type) { return 0x1p-24 * 200 + 8 * roundoff(type); }

static void test_convolution(void **state) {
  (void)state;
  for (Layout layout : {NCHW, NHWC}) {
    Fused f = fused_arrays(layout, CUDNN_DATA_FLOAT);
    Desc op =
        conv_forward(convolution(TWO_ONES, TWO_ONES, TWO_ONES), tensor('x', f.x), tensor('w', f.w), tensor('y', f.y));
    if (execute(layout == NCHW ? "convolution" : "convolution, channels last", layout == NCHW ? REQUIRED : OPTIONAL,
                graph_of({op}), CUDNN_DATA_FLOAT, {'x', 'w', 'y'}, {f.x.d, f.w.d, f.y.d}))
      compare("convolution", f.y, f.sums, tolerance(CUDNN_DATA_FLOAT));
    done(f);
  }
}

/* Convolution, bias, perhaps a residual, ReLU; what lies between is virtual, and the order of the operations free. */
static void bias_relu(Offer offer, Layout layout, cudnnDataType_t type, bool residual) {
  Fused f = fused_arrays(layout, type);
  Desc sums = tensor('s', f.y, true), biased = tensor('b', f.y, true), added = tensor('a', f.y, true);
  Desc conv = conv_forward(convolution(TWO_ONES, TWO_ONES, TWO_ONES), tensor('x', f.x), tensor('w', f.w), sums);
  Desc bias = finalized(pointwise(CUDNN_POINTWISE_ADD, sums, tensor('c', f.bias), biased));
  Desc add = finalized(pointwise(CUDNN_POINTWISE_ADD, biased, tensor('z', f.z), added));
  Desc relu = finalized(pointwise(CUDNN_POINTWISE_RELU_FWD, residual ? added : biased, NULL, tensor('y', f.y)));
  std::vector<Desc> ops = residual ? std::vector<Desc>{conv, bias, add, relu} : std::vector<Desc>{conv, bias, relu};
  for (size_t i = 0; i < f.sums.size(); i++) {
    double value = f.sums[i] + f.bias.v[i / 63 % 16] + (residual ? f.z.v[i] : 0);
    f.sums[i] = value > 0 ? value : 0;
  }
  std::vector<int64_t> ids = {'x', 'w', 'c', 'y'};
  std::vector<void *> pointers = {f.x.d, f.w.d, f.bias.d, f.y.d};
  if (residual) ids.push_back('z'), pointers.push_back(f.z.d); /* of the graph's tensors alone */
  char what[80];
  snprintf(what, sizeof what, "convolution, bias%s, ReLU, %s, type %d", residual ? ", sum" : "",
           layout == NCHW ? "NCHW" : "NHWC", (int)type);
  if (execute(what, offer, graph_of(ops), type, ids, pointers)) compare(what, f.y, f.sums, tolerance(type));
  done(f);
}

static void test_bias_relu(void **state) {
  (void)state;
  bias_relu(REQUIRED, NHWC, CUDNN_DATA_HALF, false);
  bias_relu(OPTIONAL, NHWC, CUDNN_DATA_HALF, true);
  bias_relu(OPTIONAL, NHWC, CUDNN_DATA_BFLOAT16, true);
  bias_relu(OPTIONAL, NHWC, CUDNN_DATA_FLOAT, true);  /* without TF32 */
  bias_relu(REQUIRED, NCHW, CUDNN_DATA_FLOAT, false); /* what lesson phase5_production/01_cudnn_layers needs */
}

/* z - scale * x, by a number of the host; then tanh. */
static void test_pointwise(void **state) {
  (void)state;
  Array x = array_of(2, 3, 5, 7), z = array_of(2, 3, 5, 7), y = array_of(2, 3, 5, 7), one = array_of(1, 1, 1, 1);
  float scale = 0.75f;
  Desc scaled = tensor(2, x, true), difference = tensor(4, x, true);
  Desc mul = finalized(pointwise(CUDNN_POINTWISE_MUL, tensor(1, x), tensor(7, one, false, true), scaled));
  Desc sub = finalized(pointwise(CUDNN_POINTWISE_SUB, tensor(3, z), scaled, difference));
  Desc tanh_op = finalized(pointwise(CUDNN_POINTWISE_TANH_FWD, difference, NULL, tensor(5, y)));
  std::vector<double> expected(x.count());
  for (size_t i = 0; i < expected.size(); i++) expected[i] = tanh(z.v[i] - 0.75 * x.v[i]);
  if (execute("pointwise", OPTIONAL, graph_of({mul, sub, tanh_op}), CUDNN_DATA_FLOAT, {1, 7, 3, 5},
              {x.d, &scale, z.d, y.d})) /* no lesson needs a graph without a convolution */
    compare("pointwise", y, expected, 0x1p-20);
  close_all();
  for (Array *a : {&x, &z, &y, &one}) done(*a);
}

/* ---- descriptors as they are read; their lifetime ---- */

static void test_attributes(void **state) {
  (void)state;
  Fused f = fused_arrays(NCHW, CUDNN_DATA_FLOAT);
  Desc x = tensor('x', f.x);
  int64_t dim[8], count = 0, engines = 0;
  DNN(cudnnBackendGetAttribute(x, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, 8, &count, dim));
  assert_true(count == 4 && dim[0] == 2 && dim[1] == 8 && dim[2] == 9 && dim[3] == 7);
  Desc op = conv_forward(convolution(TWO_ONES, TWO_ONES, TWO_ONES), x, tensor('w', f.w), tensor('y', f.y));
  Desc graph = finalized(graph_of({op}));
  DNN(cudnnBackendGetAttribute(graph, CUDNN_ATTR_OPERATIONGRAPH_ENGINE_GLOBAL_COUNT, CUDNN_TYPE_INT64, 1, &count,
                               &engines));
  assert_true(engines >= 1);
  std::vector<Desc> configs = proposals(graph);
  while (configs.size() > 1 && engine_of(configs[0], CUDNN_DATA_FLOAT) < 0) configs.erase(configs.begin());
  assert_true(!configs.empty());
  Desc engine = create(CUDNN_BACKEND_ENGINE_DESCRIPTOR);
  int64_t index = -1;
  DNN(cudnnBackendGetAttribute(configs[0], CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &count,
                               &engine));
  DNN(cudnnBackendGetAttribute(engine, CUDNN_ATTR_ENGINE_GLOBAL_INDEX, CUDNN_TYPE_INT64, 1, &count, &index));
  assert_true(index >= 0 && index < engines);
  Desc plan = finalized(plan_of(configs[0])); /* lives on without what it was made of */
  const int64_t bytes = workspace_of(plan);
  void *workspace = NULL;
  if (bytes) CHECK(cudaMalloc(&workspace, (size_t)bytes));
  std::vector<Desc> others;
  for (Desc d : opened)
    if (d != plan) DNN(cudnnBackendDestroyDescriptor(d));
  opened = {plan};
  DNN(cudnnBackendExecute(handle, plan, pack_of({'x', 'w', 'y'}, {f.x.d, f.w.d, f.y.d}, workspace)));
  compare("after the others", f.y, f.sums, tolerance(CUDNN_DATA_FLOAT));
  CHECK(cudaFree(workspace));
  done(f);
}

/* ---- refusals ---- */

/* Of a convolution that may be wrong: whether it is found when it is set or when it is finalized is not promised. */
static cudnnStatus_t operation_status(Desc conv, Desc x, Desc w, Desc y) {
  Desc d = create(CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR);
  const cudnnBackendAttributeName_t name[] = {
      CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
      CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y};
  Desc child[] = {conv, x, w, y};
  for (int i = 0; i < 4; i++) {
    const cudnnStatus_t status = cudnnBackendSetAttribute(d, name[i], CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &child[i]);
    if (status != CUDNN_STATUS_SUCCESS) return status;
  }
  SET(d, OPERATION_CONVOLUTION_FORWARD_ALPHA, FLOAT, 1, &ONE);
  SET(d, OPERATION_CONVOLUTION_FORWARD_BETA, FLOAT, 1, &ZERO);
  return cudnnBackendFinalize(d);
}

static void test_refusals(void **state) {
  (void)state;
  Fused f = fused_arrays(NCHW, CUDNN_DATA_FLOAT);
  Desc d = create(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  const int64_t id = 1, three[3] = {1, 1, 1};
  const float wrong = 1;
  DNN_REFUSES(BAD_PARAM, cudnnBackendFinalize(d)); /* nothing is set */
  DNN_REFUSES(BAD_PARAM, cudnnBackendSetAttribute(d, CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_FLOAT, 1, &wrong));
  DNN_REFUSES(BAD_PARAM, cudnnBackendSetAttribute(d, CUDNN_ATTR_ENGINE_GLOBAL_INDEX, CUDNN_TYPE_INT64, 1, &id));
  DNN_REFUSES(BAD_PARAM, cudnnBackendSetAttribute(d, CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, 2, three));
  Desc x = tensor('x', f.x), w = tensor('w', f.w), y = tensor('y', f.y), narrow = tensor('n', f.x);
  Desc conv = convolution(TWO_ONES, TWO_ONES, TWO_ONES);
#ifdef SIMT_REWRITTEN /* cuDNN 9 on an H200 looks at neither, and throws std::bad_alloc */
  DNN_REFUSES(BAD_PARAM, operation_status(conv, d, w, y));    /* x is not finalized */
  DNN_REFUSES(BAD_PARAM, operation_status(conv, conv, w, y)); /* x is of another kind */
#endif
  DNN_REFUSES(BAD_PARAM, operation_status(conv, x, w, narrow)); /* 8 channels instead of 16 */
  Desc good = conv_forward(conv, x, w, y), plan = plan_of(proposals(finalized(graph_of({good})))[0]);
  Desc pack = pack_of({'x', 'w'}, {f.x.d, f.w.d}, NULL);
  DNN_REFUSES(BAD_PARAM, cudnnBackendExecute(handle, plan, pack)); /* the plan is not finalized */
  DNN(cudnnBackendFinalize(plan));
  /* no pointer for y. cuDNN 9 on an H200 has called such a thing an internal error, "vars.get_user_ptrs()[idx] !=
   * nullptr", and so does the emulation; another engine may look earlier. */
  const cudnnStatus_t status = cudnnBackendExecute(handle, plan, pack);
  assert_true(CUDNN_STATUS_CATEGORY(status) == CUDNN_STATUS_INTERNAL_ERROR ||
              CUDNN_STATUS_CATEGORY(status) == BAD_PARAM);
  close_all();
  done(f);
}

/* What the emulation does not have, by its name; a GPU may. */
static void test_not_supported(void **state) {
  (void)state;
#ifdef SIMT_REWRITTEN
  char reason[512];
  Desc d;
  assert_int_equal(CUDNN_STATUS_CATEGORY(cudnnBackendCreateDescriptor(CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR, &d)),
                   NOT_SUPPORTED);
  cudnnGetLastErrorString(reason, sizeof reason);
  assert_non_null(strstr(reason, "CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR"));
  Fused f = fused_arrays(NCHW, CUDNN_DATA_FLOAT);
  Desc x = tensor('x', f.x), y = tensor('y', f.x), sums = tensor('s', f.y, true);
  DNN_REFUSES(NOT_SUPPORTED, cudnnBackendFinalize(pointwise(CUDNN_POINTWISE_CMP_EQ, x, x, y)));
  Desc conv = conv_forward(convolution(TWO_ONES, TWO_ONES, TWO_ONES), x, tensor('w', f.w), sums);
  DNN_REFUSES(NOT_SUPPORTED, cudnnBackendFinalize(graph_of({conv}))); /* its result is virtual */
  Desc one = finalized(pointwise(CUDNN_POINTWISE_RELU_FWD, sums, NULL, tensor('1', f.y)));
  Desc two = finalized(pointwise(CUDNN_POINTWISE_TANH_FWD, sums, NULL, tensor('2', f.y)));
  DNN_REFUSES(NOT_SUPPORTED, cudnnBackendFinalize(graph_of({conv, one, two}))); /* it forks */
  DNN_REFUSES(NOT_SUPPORTED, cudnnBackendFinalize(graph_of({conv, conv})));
  close_all();
  done(f);
#else
  skip();
#endif
}

int main() {
  const CMUnitTest tests[] = {
      cmocka_unit_test(test_convolution), cmocka_unit_test(test_bias_relu), cmocka_unit_test(test_pointwise),
      cmocka_unit_test(test_attributes),  cmocka_unit_test(test_refusals),  cmocka_unit_test(test_not_supported),
  };
  const int failed = cmocka_run_group_tests(tests, open_handle, close_handle);
  return failed + other_answers;
}
