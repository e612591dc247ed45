/* cudnn_test.cu - cuDNN: its operations against plain loops in double, for ragged sizes, types, layouts, alpha and
 * beta; streams and graphs. On a GPU: nvcc -lcudnn. cudnn_refuse_test.cu has what it refuses. */
#include <thread>

#include "dnn.cuh"

/* ---- convolutions ---- */

struct Shape {
  int n, c, h, w, k, r, s, pad[2], stride[2], dilation[2], groups;
};

static const Shape SHAPES[] = {
    {2, 3, 7, 5, 4, 3, 3, {1, 1}, {1, 1}, {1, 1}, 1},   {1, 1, 1, 1, 1, 1, 1, {0, 0}, {1, 1}, {1, 1}, 1},
    {3, 4, 9, 11, 6, 3, 2, {2, 0}, {2, 3}, {1, 1}, 2},  {2, 17, 6, 7, 5, 1, 1, {0, 0}, {2, 2}, {1, 1}, 1},
    {1, 6, 12, 10, 6, 3, 3, {2, 1}, {1, 2}, {2, 3}, 6}, {2, 1, 13, 3, 1, 5, 3, {2, 2}, {1, 1}, {1, 1}, 1},
    {2, 16, 8, 8, 32, 3, 3, {1, 1}, {1, 1}, {1, 1}, 1}, {1, 8, 5, 6, 4, 5, 6, {0, 0}, {1, 1}, {1, 1}, 2},
};

static int out_of(const Shape &s, int axis) {
  const int in = axis ? s.w : s.h, filter = axis ? s.s : s.r;
  return 1 + (in + 2 * s.pad[axis] - ((filter - 1) * s.dilation[axis] + 1)) / s.stride[axis];
}

struct Conv {
  Shape s;
  Array x, w, y;
  cudnnConvolutionDescriptor_t desc;
  bool flipped;

  /* Calls f(index of x, of w, of y) for each product of the sum. */
  template <class F>
  void each(F f) {
    const int p = out_of(s, 0), q = out_of(s, 1), cg = s.c / s.groups, kg = s.k / s.groups;
    for (int n = 0; n < s.n; n++)
      for (int k = 0; k < s.k; k++)
        for (int i = 0; i < p; i++)
          for (int j = 0; j < q; j++)
            for (int c = 0; c < cg; c++)
              for (int r = 0; r < s.r; r++)
                for (int t = 0; t < s.s; t++) {
                  const int h = i * s.stride[0] - s.pad[0] + r * s.dilation[0],
                            v = j * s.stride[1] - s.pad[1] + t * s.dilation[1];
                  if (h < 0 || h >= s.h || v < 0 || v >= s.w) continue;
                  const int rr = flipped ? s.r - 1 - r : r, tt = flipped ? s.s - 1 - t : t;
                  f(((n * s.c + k / kg * cg + c) * s.h + h) * s.w + v, ((k * cg + c) * s.r + rr) * s.s + tt,
                    ((n * s.k + k) * p + i) * q + j);
                }
  }
};

static Conv conv_of(const Shape &s, Layout x, Layout w, Layout y, cudnnDataType_t type, bool flipped = false) {
  Conv c;
  c.s = s;
  c.flipped = flipped;
  c.x = array_of(s.n, s.c, s.h, s.w, x, type);
  c.w = array_of(s.k, s.c / s.groups, s.r, s.s, w, type);
  c.y = array_of(s.n, s.k, out_of(s, 0), out_of(s, 1), y, type);
  DNN(cudnnCreateConvolutionDescriptor(&c.desc));
  DNN(cudnnSetConvolution2dDescriptor(c.desc, s.pad[0], s.pad[1], s.stride[0], s.stride[1], s.dilation[0],
                                      s.dilation[1], flipped ? CUDNN_CONVOLUTION : CUDNN_CROSS_CORRELATION,
                                      CUDNN_DATA_FLOAT));
  DNN(cudnnSetConvolutionGroupCount(c.desc, s.groups));
  /* products of halves are exact in a float: tensor cores may compute them */
  DNN(cudnnSetConvolutionMathType(c.desc, type == CUDNN_DATA_FLOAT ? CUDNN_FMA_MATH : CUDNN_TENSOR_OP_MATH));
  int n, k, p, q;
  DNN(cudnnGetConvolution2dForwardOutputDim(c.desc, c.x.desc, c.w.filter, &n, &k, &p, &q));
  assert_true(n == s.n && k == s.k && p == out_of(s, 0) && q == out_of(s, 1));
  return c;
}

static void done(Conv &c) {
  done(c.x);
  done(c.w);
  done(c.y);
  DNN(cudnnDestroyConvolutionDescriptor(c.desc));
}

/* Sums of `length` products of numbers below 1, in float, then rounded to the type, as is beta times the old number. */
static double tolerance(cudnnDataType_t type, double length) { return 0x1p-24 * (4 + length) * 2 + 4 * roundoff(type); }

/* Not every algorithm has every layout and type on every GPU: cuDNN says so by its answer. */
static bool refused(cudnnStatus_t answer) { return CUDNN_STATUS_CATEGORY(answer) == NOT_SUPPORTED; }

/* A pass by an algorithm; false where cuDNN does not have it for these tensors, and nothing was written. */
static bool forward(Conv &c, int algorithm, float alpha, float beta) {
  std::vector<double> expected(c.y.count(), 0);
  void *workspace = NULL;
  size_t bytes;
  cudnnStatus_t answer = cudnnGetConvolutionForwardWorkspaceSize(handle, c.x.desc, c.w.filter, c.desc, c.y.desc,
                                                                 (cudnnConvolutionFwdAlgo_t)algorithm, &bytes);
  if (refused(answer)) return false;
  DNN(answer);
  if (bytes) CHECK(cudaMalloc(&workspace, bytes));
  c.each([&](int x, int w, int y) { expected[y] += c.x.v[x] * c.w.v[w]; });
  for (size_t i = 0; i < expected.size(); i++) expected[i] = alpha * expected[i] + (beta != 0 ? beta * c.y.v[i] : 0);
  answer = cudnnConvolutionForward(handle, &alpha, c.x.desc, c.x.d, c.w.filter, c.w.d, c.desc,
                                   (cudnnConvolutionFwdAlgo_t)algorithm, workspace, bytes, &beta, c.y.desc, c.y.d);
  if (refused(answer)) {
    CHECK(cudaFree(workspace));
    return false;
  }
  DNN(answer);
  compare("forward", c.y, expected, tolerance(c.x.type, c.s.c / c.s.groups * c.s.r * c.s.s));
  CHECK(cudaFree(workspace));
  return true;
}

static bool backward_data(Conv &c, int algorithm, float alpha, float beta) {
  std::vector<double> expected(c.x.count(), 0);
  void *workspace = NULL;
  size_t bytes;
  cudnnStatus_t answer = cudnnGetConvolutionBackwardDataWorkspaceSize(handle, c.w.filter, c.y.desc, c.desc, c.x.desc,
                                                                      (cudnnConvolutionBwdDataAlgo_t)algorithm, &bytes);
  if (refused(answer)) return false;
  DNN(answer);
  if (bytes) CHECK(cudaMalloc(&workspace, bytes));
  c.each([&](int x, int w, int y) { expected[x] += c.y.v[y] * c.w.v[w]; });
  for (size_t i = 0; i < expected.size(); i++) expected[i] = alpha * expected[i] + (beta != 0 ? beta * c.x.v[i] : 0);
  answer =
      cudnnConvolutionBackwardData(handle, &alpha, c.w.filter, c.w.d, c.y.desc, c.y.d, c.desc,
                                   (cudnnConvolutionBwdDataAlgo_t)algorithm, workspace, bytes, &beta, c.x.desc, c.x.d);
  if (refused(answer)) {
    CHECK(cudaFree(workspace));
    return false;
  }
  DNN(answer);
  compare("backward data", c.x, expected, tolerance(c.x.type, c.s.k / c.s.groups * c.s.r * c.s.s));
  CHECK(cudaFree(workspace));
  return true;
}

static bool backward_filter(Conv &c, int algorithm, float alpha, float beta) {
  std::vector<double> expected(c.w.count(), 0);
  void *workspace = NULL;
  size_t bytes;
  cudnnStatus_t answer = cudnnGetConvolutionBackwardFilterWorkspaceSize(
      handle, c.x.desc, c.y.desc, c.desc, c.w.filter, (cudnnConvolutionBwdFilterAlgo_t)algorithm, &bytes);
  if (refused(answer)) return false;
  DNN(answer);
  if (bytes) CHECK(cudaMalloc(&workspace, bytes));
  c.each([&](int x, int w, int y) { expected[w] += c.x.v[x] * c.y.v[y]; });
  for (size_t i = 0; i < expected.size(); i++) expected[i] = alpha * expected[i] + (beta != 0 ? beta * c.w.v[i] : 0);
  answer = cudnnConvolutionBackwardFilter(handle, &alpha, c.x.desc, c.x.d, c.y.desc, c.y.d, c.desc,
                                          (cudnnConvolutionBwdFilterAlgo_t)algorithm, workspace, bytes, &beta,
                                          c.w.filter, c.w.d);
  if (refused(answer)) {
    CHECK(cudaFree(workspace));
    return false;
  }
  DNN(answer);
  const double length = (double)c.s.n * out_of(c.s, 0) * out_of(c.s, 1);
  compare("backward filter", c.w, expected, tolerance(c.x.type, length) + 2 * roundoff(c.x.type) * sqrt(length));
  CHECK(cudaFree(workspace));
  return true;
}

/* By the first of some algorithms that cuDNN has. Those of Winograd and Fourier round otherwise, and are not asked.
 * Packed floats in the order NCHW, and the emulation, must have the very first. */
static void first_of(bool (*pass)(Conv &, int, float, float), const char *name, bool must, Conv &c,
                     std::vector<int> algorithms, float alpha, float beta) {
#ifdef SIMT_REWRITTEN
  must = true;
#endif
  for (int algorithm : algorithms) {
    if (pass(c, algorithm, alpha, beta)) return;
    if (must) fail_msg("%s: algorithm %d is not supported", name, algorithm);
  }
  print_message("%s of x (%d,%d,%d,%d), strides %d,%d,%d,%d, type %d: this cuDNN has no such algorithm\n", name, c.s.n,
                c.s.c, c.s.h, c.s.w, c.x.stride[0], c.x.stride[1], c.x.stride[2], c.x.stride[3], (int)c.x.type);
}

static void all_passes(const Shape &s, Layout x, Layout w, Layout y, cudnnDataType_t type, bool flipped, float alpha,
                       float beta) {
  Conv c = conv_of(s, x, w, y, type, flipped);
  const bool must = x == NCHW && w == NCHW && y == NCHW && type == CUDNN_DATA_FLOAT;
  first_of(backward_data, "backward data", must, c,
           {CUDNN_CONVOLUTION_BWD_DATA_ALGO_1, CUDNN_CONVOLUTION_BWD_DATA_ALGO_0}, alpha, beta);
  send(c.x);
  first_of(
      backward_filter, "backward filter", must, c,
      {CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1, CUDNN_CONVOLUTION_BWD_FILTER_ALGO_0, CUDNN_CONVOLUTION_BWD_FILTER_ALGO_3},
      alpha, beta);
  send(c.w);
  first_of(forward, "forward", must, c,
           {CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM, CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM}, alpha, beta);
  done(c);
}

static void test_convolutions(void **state) {
  (void)state;
  for (const Shape &s : SHAPES) {
    all_passes(s, NCHW, NCHW, NCHW, CUDNN_DATA_FLOAT, false, 1, 0);
    all_passes(s, NCHW, NCHW, NCHW, CUDNN_DATA_FLOAT, false, 0.5f, -0.25f);
  }
}

static void test_layouts(void **state) {
  (void)state;
  for (int i = 0; i < 6; i++) {
    all_passes(SHAPES[i], NHWC, NHWC, NHWC, CUDNN_DATA_FLOAT, false, 1, 0);
    all_passes(SHAPES[i], GAPS, NCHW, GAPS, CUDNN_DATA_FLOAT, false, 1, i & 1);
  }
  all_passes(SHAPES[0], NHWC, NHWC, NHWC, CUDNN_DATA_HALF, false, 1, 0);
  all_passes(SHAPES[2], NHWC, NHWC, NHWC, CUDNN_DATA_BFLOAT16, false, 1, 1);
}

/* A convolution whose filter is turned by 180 degrees is the cross-correlation. */
static void test_modes(void **state) {
  (void)state;
  for (int i : {0, 2, 5}) {
    all_passes(SHAPES[i], NCHW, NCHW, NCHW, CUDNN_DATA_FLOAT, true, 1, 0);
    all_passes(SHAPES[i], NCHW, NCHW, NCHW, CUDNN_DATA_FLOAT, true, 2, 1);
  }
}

/* ---- algorithms ---- */

static void test_algorithms(void **state) {
  (void)state;
  Conv c = conv_of(SHAPES[6], NCHW, NCHW, NCHW, CUDNN_DATA_FLOAT); /* 3 x 3, stride 1: each has a chance */
  cudnnConvolutionFwdAlgoPerf_t perf[CUDNN_CONVOLUTION_FWD_ALGO_COUNT];
  cudnnConvolutionBwdDataAlgoPerf_t data[CUDNN_CONVOLUTION_BWD_DATA_ALGO_COUNT];
  cudnnConvolutionBwdFilterAlgoPerf_t filter[CUDNN_CONVOLUTION_BWD_FILTER_ALGO_COUNT];
  int count, some, works = 0;
  DNN(cudnnGetConvolutionForwardAlgorithmMaxCount(handle, &count));
  assert_true(count >= CUDNN_CONVOLUTION_FWD_ALGO_COUNT);
  DNN(cudnnGetConvolutionForwardAlgorithm_v7(handle, c.x.desc, c.w.filter, c.desc, c.y.desc, 3, &some, perf));
  assert_int_equal(some, 3);
  for (int i = 0; i < some; i++) {
    size_t bytes;
    assert_int_equal(perf[i].status, CUDNN_STATUS_SUCCESS);
    DNN(cudnnGetConvolutionForwardWorkspaceSize(handle, c.x.desc, c.w.filter, c.desc, c.y.desc, perf[i].algo, &bytes));
    assert_true(bytes <= perf[i].memory);
    assert_true(forward(c, perf[i].algo, 1, 0));
    send(c.y);
  }
  DNN(cudnnFindConvolutionForwardAlgorithm(handle, c.x.desc, c.w.filter, c.desc, c.y.desc,
                                           CUDNN_CONVOLUTION_FWD_ALGO_COUNT, &some, perf));
  for (int i = 0; i < some; i++) {
    if (perf[i].status == CUDNN_STATUS_SUCCESS && perf[i].memory > 0) works++;
    if (i > 0 && perf[i].status == CUDNN_STATUS_SUCCESS) {
      assert_int_equal(perf[i - 1].status, CUDNN_STATUS_SUCCESS); /* those that work come first, the fastest before */
      assert_true(perf[i - 1].time <= perf[i].time);
    }
  }
  assert_true(works >= 2);
  DNN(cudnnGetConvolutionBackwardDataAlgorithm_v7(handle, c.w.filter, c.y.desc, c.desc, c.x.desc, 1, &some, data));
  assert_true(some == 1 && data[0].status == CUDNN_STATUS_SUCCESS);
  assert_true(backward_data(c, data[0].algo, 1, 0));
  send(c.x);
  DNN(cudnnGetConvolutionBackwardFilterAlgorithm_v7(handle, c.x.desc, c.y.desc, c.desc, c.w.filter, 1, &some, filter));
  assert_true(some == 1 && filter[0].status == CUDNN_STATUS_SUCCESS);
  assert_true(backward_filter(c, filter[0].algo, 1, 0));
  DNN(cudnnGetConvolutionBackwardFilterAlgorithm_v7(handle, c.x.desc, c.y.desc, c.desc, c.w.filter,
                                                    CUDNN_CONVOLUTION_BWD_FILTER_ALGO_COUNT, &some, filter));
  for (int i = 0; i < some; i++) { /* which of them add atomically */
    const bool adds =
        filter[i].algo == CUDNN_CONVOLUTION_BWD_FILTER_ALGO_0 || filter[i].algo == CUDNN_CONVOLUTION_BWD_FILTER_ALGO_3;
    if (filter[i].status == CUDNN_STATUS_SUCCESS)
      assert_int_equal(filter[i].determinism, adds ? CUDNN_NON_DETERMINISTIC : CUDNN_DETERMINISTIC);
  }
  done(c);
}

/* ---- bias ---- */

static void test_bias(void **state) {
  (void)state;
  for (Layout layout : {NCHW, NHWC}) {
    Array dy = array_of(3, 5, 7, 2, layout), db = array_of(1, 5, 1, 1);
    const float alpha = 0.5f, beta = 2;
    std::vector<double> expected(5);
    for (int k = 0; k < 5; k++) {
      for (int n = 0; n < 3; n++)
        for (int h = 0; h < 7; h++)
          for (int w = 0; w < 2; w++) expected[k] += alpha * dy.at(n, k, h, w);
      expected[k] += beta * db.v[k];
    }
    DNN(cudnnConvolutionBackwardBias(handle, &alpha, dy.desc, dy.d, &beta, db.desc, db.d));
    compare("backward bias", db, expected, 42 * 0x1p-24 * 8);
    done(dy);
    done(db);
  }
}

static void fused(const Shape &s, Layout layout, cudnnActivationMode_t mode, float alpha2) {
  Conv c = conv_of(s, layout, layout, layout, CUDNN_DATA_FLOAT);
  Array z = array_of(s.n, s.k, out_of(s, 0), out_of(s, 1), layout), bias = array_of(1, s.k, 1, 1, layout);
  cudnnActivationDescriptor_t activation;
  const float alpha1 = 1.5f;
  size_t bytes;
  void *workspace = NULL;
  DNN(cudnnCreateActivationDescriptor(&activation));
  DNN(cudnnSetActivationDescriptor(activation, mode, CUDNN_NOT_PROPAGATE_NAN, 0));
  const cudnnConvolutionFwdAlgo_t algorithm = CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM;
  DNN(cudnnGetConvolutionForwardWorkspaceSize(handle, c.x.desc, c.w.filter, c.desc, c.y.desc, algorithm, &bytes));
  if (bytes) CHECK(cudaMalloc(&workspace, bytes));
  std::vector<double> expected(c.y.count(), 0);
  c.each([&](int x, int w, int y) { expected[y] += alpha1 * c.x.v[x] * c.w.v[w]; });
  const int plane = out_of(s, 0) * out_of(s, 1);
  for (size_t i = 0; i < expected.size(); i++) {
    expected[i] += alpha2 * z.v[i] + bias.v[i / plane % s.k];
    if (mode == CUDNN_ACTIVATION_RELU && expected[i] < 0) expected[i] = 0;
  }
#ifdef SIMT_REWRITTEN /* NVIDIA's manual says so; a version may be more generous */
  DNN(cudnnSetActivationDescriptor(activation, mode, CUDNN_PROPAGATE_NAN, 0));
  DNN_REFUSES(NOT_SUPPORTED, cudnnConvolutionBiasActivationForward(
                                 handle, &alpha1, c.x.desc, c.x.d, c.w.filter, c.w.d, c.desc, algorithm, workspace,
                                 bytes, &alpha2, z.desc, z.d, bias.desc, bias.d, activation, c.y.desc, c.y.d));
  DNN(cudnnSetActivationDescriptor(activation, mode, CUDNN_NOT_PROPAGATE_NAN, 0));
#endif
  DNN(cudnnConvolutionBiasActivationForward(handle, &alpha1, c.x.desc, c.x.d, c.w.filter, c.w.d, c.desc, algorithm,
                                            workspace, bytes, &alpha2, z.desc, z.d, bias.desc, bias.d, activation,
                                            c.y.desc, c.y.d));
  compare("convolution, bias, activation", c.y, expected, 2 * tolerance(CUDNN_DATA_FLOAT, s.c * s.r * s.s));
  CHECK(cudaFree(workspace));
  DNN(cudnnDestroyActivationDescriptor(activation));
  done(z);
  done(bias);
  done(c);
}

static void test_fused(void **state) {
  (void)state;
  fused(SHAPES[0], NCHW, CUDNN_ACTIVATION_RELU, 0.5f);
  fused(SHAPES[3], NHWC, CUDNN_ACTIVATION_RELU, 0);
  fused(SHAPES[5], NCHW, CUDNN_ACTIVATION_IDENTITY, 1);
}

/* ---- streams and graphs ---- */

static __global__ void add_one(float *array, int n) {
  const int i = (int)(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < n) array[i] += 1;
}

/* A kernel, cuDNN, a kernel, in a stream: captured, then launched twice. Nothing runs while it is captured. */
static void test_graph(void **state) {
  (void)state;
  Conv c = conv_of(SHAPES[0], NCHW, NCHW, NCHW, CUDNN_DATA_FLOAT);
  cudaStream_t stream;
  cudaGraph_t graph;
  cudaGraphExec_t executable;
  const int in = (int)c.x.count(), out = (int)c.y.count();
  CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  DNN(cudnnSetStream(handle, stream));
  cudaStream_t kept;
  DNN(cudnnGetStream(handle, &kept));
  assert_ptr_equal(kept, stream);
  CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  add_one<<<(in + 63) / 64, 64, 0, stream>>>((float *)c.x.d, in);
  DNN(cudnnConvolutionForward(handle, &ONE, c.x.desc, c.x.d, c.w.filter, c.w.d, c.desc,
                              CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM, NULL, 0, &ZERO, c.y.desc, c.y.d));
  add_one<<<(out + 63) / 64, 64, 0, stream>>>((float *)c.y.d, out);
  CHECK(cudaStreamEndCapture(stream, &graph));
  CHECK(cudaGraphInstantiate(&executable, graph, 0));
  compare("nothing ran", c.y, c.y.v, 0);
  for (int i = 0; i < 2; i++) CHECK(cudaGraphLaunch(executable, stream));
  std::vector<double> expected(c.y.count(), 1);
  c.each([&](int x, int w, int y) { expected[y] += (c.x.v[x] + 2) * c.w.v[w]; });
  compare("graph", c.y, expected, 4 * tolerance(CUDNN_DATA_FLOAT, 27));
  CHECK(cudaGraphExecDestroy(executable));
  CHECK(cudaGraphDestroy(graph));
  DNN(cudnnSetStream(handle, NULL));
  CHECK(cudaStreamDestroy(stream));
  done(c);
}

/* Threads of the host with handles and streams of their own: each gets what it gets alone. */
static void test_threads(void **state) {
  (void)state;
  enum { THREADS = 4, ROUNDS = 6 };
  std::vector<Conv> convs;
  std::vector<std::thread> threads;
  for (int t = 0; t < THREADS; t++) convs.push_back(conv_of(SHAPES[t / 2], NCHW, NCHW, NCHW, CUDNN_DATA_FLOAT));
  int failures[THREADS] = {0};
  for (int t = 0; t < THREADS; t++)
    threads.emplace_back([&convs, &failures, t] {
      cudnnHandle_t own;
      cudaStream_t stream;
      Conv &c = convs[t];
      failures[t] += cudnnCreate(&own) != CUDNN_STATUS_SUCCESS;
      failures[t] += cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) != cudaSuccess;
      failures[t] += cudnnSetStream(own, stream) != CUDNN_STATUS_SUCCESS;
      for (int i = 0; i < ROUNDS; i++)
        failures[t] += cudnnConvolutionForward(own, &ONE, c.x.desc, c.x.d, c.w.filter, c.w.d, c.desc,
                                               CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM, NULL, 0, &ZERO, c.y.desc,
                                               c.y.d) != CUDNN_STATUS_SUCCESS;
      failures[t] += cudaStreamSynchronize(stream) != cudaSuccess;
      failures[t] += cudnnDestroy(own) != CUDNN_STATUS_SUCCESS;
      failures[t] += cudaStreamDestroy(stream) != cudaSuccess;
    });
  for (std::thread &thread : threads) thread.join();
  for (int t = 0; t < THREADS; t++) {
    std::vector<double> expected(convs[t].y.count(), 0);
    assert_int_equal(failures[t], 0);
    convs[t].each([&](int x, int w, int y) { expected[y] += convs[t].x.v[x] * convs[t].w.v[w]; });
    compare("a thread's convolution", convs[t].y, expected, tolerance(CUDNN_DATA_FLOAT, 27));
    done(convs[t]);
  }
}

/* Twice the same: not one bit differs. */
static void test_deterministic(void **state) {
  (void)state;
  Conv c = conv_of(SHAPES[6], NCHW, NCHW, NCHW, CUDNN_DATA_FLOAT);
  std::vector<double> first;
  for (int i = 0; i < 2; i++) {
    void *workspace;
    size_t bytes;
    const cudnnConvolutionBwdFilterAlgo_t algorithm = CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1;
    DNN(cudnnGetConvolutionBackwardFilterWorkspaceSize(handle, c.x.desc, c.y.desc, c.desc, c.w.filter, algorithm,
                                                       &bytes));
    CHECK(cudaMalloc(&workspace, bytes ? bytes : 1));
    DNN(cudnnConvolutionBackwardFilter(handle, &ONE, c.x.desc, c.x.d, c.y.desc, c.y.d, c.desc, algorithm, workspace,
                                       bytes, &ZERO, c.w.filter, c.w.d));
    if (i == 0) first = receive(c.w);
    CHECK(cudaFree(workspace));
  }
  compare("again", c.w, first, 0);
  done(c);
}

int main() {
  const CMUnitTest tests[] = {
      cmocka_unit_test(test_convolutions), cmocka_unit_test(test_layouts), cmocka_unit_test(test_modes),
      cmocka_unit_test(test_algorithms),   cmocka_unit_test(test_bias),    cmocka_unit_test(test_fused),
      cmocka_unit_test(test_graph),        cmocka_unit_test(test_threads), cmocka_unit_test(test_deterministic),
  };
  return cmocka_run_group_tests(tests, open_handle, close_handle);
}
