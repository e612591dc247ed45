/* cudnn_test.cu - cuDNN: its operations against plain loops in double, for ragged sizes, types, layouts, alpha and
 * beta; streams and graphs. On a GPU: nvcc -lcudnn. cudnn_refuse_test.cu has what it refuses. */
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
  DNN(cudnnSetConvolutionMathType(c.desc, CUDNN_FMA_MATH));
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

static void forward(Conv &c, int algorithm, float alpha, float beta) {
  std::vector<double> expected(c.y.count(), 0);
  void *workspace = NULL;
  size_t bytes;
  DNN(cudnnGetConvolutionForwardWorkspaceSize(handle, c.x.desc, c.w.filter, c.desc, c.y.desc,
                                              (cudnnConvolutionFwdAlgo_t)algorithm, &bytes));
  if (bytes) CHECK(cudaMalloc(&workspace, bytes));
  c.each([&](int x, int w, int y) { expected[y] += c.x.v[x] * c.w.v[w]; });
  for (size_t i = 0; i < expected.size(); i++) expected[i] = alpha * expected[i] + (beta != 0 ? beta * c.y.v[i] : 0);
  DNN(cudnnConvolutionForward(handle, &alpha, c.x.desc, c.x.d, c.w.filter, c.w.d, c.desc,
                              (cudnnConvolutionFwdAlgo_t)algorithm, workspace, bytes, &beta, c.y.desc, c.y.d));
  compare("forward", c.y, expected, tolerance(c.x.type, c.s.c / c.s.groups * c.s.r * c.s.s));
  CHECK(cudaFree(workspace));
}

static void backward_data(Conv &c, int algorithm, float alpha, float beta) {
  std::vector<double> expected(c.x.count(), 0);
  void *workspace = NULL;
  size_t bytes;
  DNN(cudnnGetConvolutionBackwardDataWorkspaceSize(handle, c.w.filter, c.y.desc, c.desc, c.x.desc,
                                                   (cudnnConvolutionBwdDataAlgo_t)algorithm, &bytes));
  if (bytes) CHECK(cudaMalloc(&workspace, bytes));
  c.each([&](int x, int w, int y) { expected[x] += c.y.v[y] * c.w.v[w]; });
  for (size_t i = 0; i < expected.size(); i++) expected[i] = alpha * expected[i] + (beta != 0 ? beta * c.x.v[i] : 0);
  DNN(cudnnConvolutionBackwardData(handle, &alpha, c.w.filter, c.w.d, c.y.desc, c.y.d, c.desc,
                                   (cudnnConvolutionBwdDataAlgo_t)algorithm, workspace, bytes, &beta, c.x.desc, c.x.d));
  compare("backward data", c.x, expected, tolerance(c.x.type, c.s.k / c.s.groups * c.s.r * c.s.s));
  CHECK(cudaFree(workspace));
}

static void backward_filter(Conv &c, int algorithm, float alpha, float beta) {
  std::vector<double> expected(c.w.count(), 0);
  void *workspace = NULL;
  size_t bytes;
  DNN(cudnnGetConvolutionBackwardFilterWorkspaceSize(handle, c.x.desc, c.y.desc, c.desc, c.w.filter,
                                                     (cudnnConvolutionBwdFilterAlgo_t)algorithm, &bytes));
  if (bytes) CHECK(cudaMalloc(&workspace, bytes));
  c.each([&](int x, int w, int y) { expected[w] += c.x.v[x] * c.y.v[y]; });
  for (size_t i = 0; i < expected.size(); i++) expected[i] = alpha * expected[i] + (beta != 0 ? beta * c.w.v[i] : 0);
  DNN(cudnnConvolutionBackwardFilter(handle, &alpha, c.x.desc, c.x.d, c.y.desc, c.y.d, c.desc,
                                     (cudnnConvolutionBwdFilterAlgo_t)algorithm, workspace, bytes, &beta, c.w.filter,
                                     c.w.d));
  const double length = (double)c.s.n * out_of(c.s, 0) * out_of(c.s, 1);
  compare("backward filter", c.w, expected, tolerance(c.x.type, length) + 2 * roundoff(c.x.type) * sqrt(length));
  CHECK(cudaFree(workspace));
}

static void all_passes(const Shape &s, Layout x, Layout w, Layout y, cudnnDataType_t type, bool flipped, float alpha,
                       float beta) {
  Conv c = conv_of(s, x, w, y, type, flipped);
  backward_data(c, CUDNN_CONVOLUTION_BWD_DATA_ALGO_1, alpha, beta);
  send(c.x);
  backward_filter(c, CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1, alpha, beta);
  send(c.w);
  forward(c, CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM, alpha, beta);
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

int main() {
  const CMUnitTest tests[] = {
      cmocka_unit_test(test_convolutions),
      cmocka_unit_test(test_layouts),
      cmocka_unit_test(test_modes),
  };
  return cmocka_run_group_tests(tests, open_handle, close_handle);
}
