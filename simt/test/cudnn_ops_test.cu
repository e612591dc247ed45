/* cudnn_ops_test.cu - cuDNN's operations that are no convolutions, against plain loops in double. On a GPU:
 * nvcc -lcudnn. */
#include "dnn.cuh"

static const Layout LAYOUTS[] = {NCHW, NHWC, GAPS};

/* ---- activations ---- */

typedef struct Activation {
  cudnnActivationMode_t mode;
  double coef;
} Activation;

static double activated(Activation a, double x) {
  switch (a.mode) {
    case CUDNN_ACTIVATION_SIGMOID:
      return 1 / (1 + exp(-x));
    case CUDNN_ACTIVATION_RELU:
      return fmax(x, 0);
    case CUDNN_ACTIVATION_TANH:
      return tanh(x);
    case CUDNN_ACTIVATION_CLIPPED_RELU:
      return fmin(fmax(x, 0), a.coef);
    case CUDNN_ACTIVATION_ELU:
      return x > 0 ? x : a.coef * (exp(x) - 1);
    default: /* swish */
      return x / (1 + exp(-x));
  }
}

static void activation(Activation a, Layout layout, cudnnDataType_t type, float alpha, float beta) {
  Array x = array_of(2, 3, 5, 7, layout, type), y = array_of(2, 3, 5, 7, layout, type);
  Array dy = array_of(2, 3, 5, 7, layout, type), dx = array_of(2, 3, 5, 7, layout, type);
  cudnnActivationDescriptor_t desc;
  DNN(cudnnCreateActivationDescriptor(&desc));
  DNN(cudnnSetActivationDescriptor(desc, a.mode, CUDNN_NOT_PROPAGATE_NAN, a.coef));
  std::vector<double> forward(x.count()), backward(x.count());
  for (double &v : x.v) v = rounded(type, 3 * v);
  send(x);
  for (size_t i = 0; i < x.count(); i++) {
    forward[i] = alpha * activated(a, x.v[i]) + (beta != 0 ? beta * y.v[i] : 0);
    const double h = 1e-5; /* no element is so near to a kink */
    const double slope = (activated(a, x.v[i] + h) - activated(a, x.v[i] - h)) / (2 * h);
    backward[i] = alpha * dy.v[i] * slope + (beta != 0 ? beta * dx.v[i] : 0);
  }
  DNN(cudnnActivationForward(handle, desc, &alpha, x.desc, x.d, &beta, y.desc, y.d));
  compare("activation", y, forward, 8 * roundoff(type) * 3);
  for (size_t i = 0; i < x.count(); i++) y.v[i] = rounded(type, activated(a, x.v[i]));
  send(y);
  DNN(cudnnActivationBackward(handle, desc, &alpha, y.desc, y.d, dy.desc, dy.d, x.desc, x.d, &beta, dx.desc, dx.d));
  compare("activation backward", dx, backward, 8 * roundoff(type) * 3 + 1e-6);
  DNN(cudnnDestroyActivationDescriptor(desc));
  for (Array *array : {&x, &y, &dy, &dx}) done(*array);
}

static void test_activations(void **state) {
  (void)state;
  const Activation all[] = {{CUDNN_ACTIVATION_SIGMOID, 0}, {CUDNN_ACTIVATION_RELU, 0},
                            {CUDNN_ACTIVATION_TANH, 0},    {CUDNN_ACTIVATION_CLIPPED_RELU, 0.75},
                            {CUDNN_ACTIVATION_ELU, 0.5},   {CUDNN_ACTIVATION_SWISH, 0}};
  for (Activation a : all) {
    activation(a, NCHW, CUDNN_DATA_FLOAT, 1, 0);
    activation(a, NHWC, CUDNN_DATA_FLOAT, 0.5f, 2);
  }
  activation(all[1], GAPS, CUDNN_DATA_HALF, 1, 1);
  activation(all[2], NHWC, CUDNN_DATA_BFLOAT16, 1, 0);
}

static void test_nan(void **state) {
  (void)state;
  Array x = array_of(1, 1, 1, 4), y = array_of(1, 1, 1, 4);
  cudnnActivationDescriptor_t desc;
  x.v = {NAN, -1, 2, NAN};
  send(x);
  DNN(cudnnCreateActivationDescriptor(&desc));
  DNN(cudnnSetActivationDescriptor(desc, CUDNN_ACTIVATION_RELU, CUDNN_PROPAGATE_NAN, 0));
  DNN(cudnnActivationForward(handle, desc, &ONE, x.desc, x.d, &ZERO, y.desc, y.d));
  std::vector<double> got = receive(y);
  assert_true(isnan(got[0]) && got[1] == 0 && got[2] == 2 && isnan(got[3]));
  DNN(cudnnDestroyActivationDescriptor(desc));
  done(x);
  done(y);
}

/* ---- pooling ---- */

typedef struct Pool {
  cudnnPoolingMode_t mode;
  int window[2], padding[2], stride[2];
} Pool;

static void pooling(Pool p, Layout layout, cudnnDataType_t type, float alpha, float beta) {
  const bool is_max = p.mode == CUDNN_POOLING_MAX || p.mode == CUDNN_POOLING_MAX_DETERMINISTIC;
  Array x = array_of(2, 3, 9, 7, layout, type), dx = array_of(2, 3, 9, 7, layout, type);
  cudnnPoolingDescriptor_t desc;
  int n, c, h, w;
  DNN(cudnnCreatePoolingDescriptor(&desc));
  DNN(cudnnSetPooling2dDescriptor(desc, p.mode, CUDNN_NOT_PROPAGATE_NAN, p.window[0], p.window[1], p.padding[0],
                                  p.padding[1], p.stride[0], p.stride[1]));
  DNN(cudnnGetPooling2dForwardOutputDim(desc, x.desc, &n, &c, &h, &w));
  assert_true(n == 2 && c == 3);
  assert_int_equal(h, 1 + (9 + 2 * p.padding[0] - p.window[0]) / p.stride[0]);
  assert_int_equal(w, 1 + (7 + 2 * p.padding[1] - p.window[1]) / p.stride[1]);
  Array y = array_of(n, c, h, w, layout, type), dy = array_of(n, c, h, w, layout, type);
  for (size_t i = 0; i < x.count(); i++) /* all different, also in few bits */
    x.v[i] = rounded(type, ((int)(i * 97 % x.count()) - 150) / 64.0);
  send(x);
  std::vector<double> forward(y.count()), pooled(y.count()), backward(x.count(), 0);
  for (size_t o = 0; o < y.count(); o++) {
    const int i = (int)(o / w % h), j = (int)(o % w), plane = (int)(o / w / h);
    double sum = 0, most = -INFINITY;
    int inside = 0;
    size_t where = 0;
    for (int round = 0; round < 2; round++) /* the second: gradients */
      for (int r = 0; r < p.window[0]; r++)
        for (int s = 0; s < p.window[1]; s++) {
          const int a = i * p.stride[0] - p.padding[0] + r, b = j * p.stride[1] - p.padding[1] + s;
          if (a < 0 || a >= 9 || b < 0 || b >= 7) continue;
          const size_t at = ((size_t)plane * 9 + a) * 7 + b;
          if (round == 0) {
            inside++;
            sum += x.v[at];
            if (x.v[at] > most) most = x.v[at], where = at;
          } else if (is_max) {
            if (at == where) backward[at] += alpha * dy.v[o];
          } else {
            const int count =
                p.mode == CUDNN_POOLING_AVERAGE_COUNT_INCLUDE_PADDING ? p.window[0] * p.window[1] : inside;
            backward[at] += alpha * dy.v[o] / count;
          }
        }
    const int count = p.mode == CUDNN_POOLING_AVERAGE_COUNT_INCLUDE_PADDING ? p.window[0] * p.window[1] : inside;
    pooled[o] = is_max ? most : sum / count;
    forward[o] = alpha * pooled[o] + (beta != 0 ? beta * y.v[o] : 0);
  }
  for (size_t i = 0; i < backward.size(); i++) backward[i] += beta != 0 ? beta * dx.v[i] : 0;
  DNN(cudnnPoolingForward(handle, desc, &alpha, x.desc, x.d, &beta, y.desc, y.d));
  compare("pooling", y, forward, 16 * roundoff(type) * 3);
  y.v = pooled;
  send(y);
  DNN(cudnnPoolingBackward(handle, desc, &alpha, y.desc, y.d, dy.desc, dy.d, x.desc, x.d, &beta, dx.desc, dx.d));
  compare("pooling backward", dx, backward, 16 * roundoff(type) * 3);
  DNN(cudnnDestroyPoolingDescriptor(desc));
  for (Array *array : {&x, &y, &dy, &dx}) done(*array);
}

static void test_pooling(void **state) {
  (void)state;
  for (int mode = CUDNN_POOLING_MAX; mode <= CUDNN_POOLING_MAX_DETERMINISTIC; mode++) {
    const cudnnPoolingMode_t m = (cudnnPoolingMode_t)mode;
    pooling({m, {2, 2}, {0, 0}, {2, 2}}, NCHW, CUDNN_DATA_FLOAT, 1, 0);
    pooling({m, {3, 3}, {1, 1}, {2, 2}}, NHWC, CUDNN_DATA_FLOAT, 1, 0);
    pooling({m, {3, 2}, {2, 1}, {1, 3}}, NCHW, CUDNN_DATA_FLOAT, 0.5f, 2);
    pooling({m, {9, 7}, {0, 0}, {1, 1}}, NHWC, CUDNN_DATA_HALF, 1, 0);
  }
}

/* ---- softmax ---- */

static void softmax(int algorithm, int mode, Layout layout, float alpha, float beta) {
  Array x = array_of(3, 5, 4, 2, layout), y = array_of(3, 5, 4, 2, layout), dy = array_of(3, 5, 4, 2, layout),
        dx = array_of(3, 5, 4, 2, layout);
  std::vector<double> forward(x.count()), probability(x.count()), backward(x.count());
  const bool by_channel = mode == CUDNN_SOFTMAX_MODE_CHANNEL, is_log = algorithm == CUDNN_SOFTMAX_LOG;
  for (double &v : x.v) v = (float)(v * 4 + (algorithm == CUDNN_SOFTMAX_FAST ? 0 : 200)); /* exp(200) overflows */
  send(x);
  for (size_t i = 0; i < x.count(); i++) {
    double sum = 0;
    for (size_t j = 0; j < x.count(); j++)
      if (i / 40 == j / 40 && (!by_channel || i % 8 == j % 8)) sum += exp(x.v[j] - x.v[i]);
    probability[i] = is_log ? -log(sum) : 1 / sum;
  }
  for (size_t i = 0; i < x.count(); i++) {
    double sum = 0;
    for (size_t j = 0; j < x.count(); j++)
      if (i / 40 == j / 40 && (!by_channel || i % 8 == j % 8)) sum += is_log ? dy.v[j] : dy.v[j] * probability[j];
    backward[i] = alpha * (is_log ? dy.v[i] - exp(probability[i]) * sum : probability[i] * (dy.v[i] - sum));
    backward[i] += beta != 0 ? beta * dx.v[i] : 0;
    forward[i] = alpha * probability[i] + (beta != 0 ? beta * y.v[i] : 0);
  }
  DNN(cudnnSoftmaxForward(handle, (cudnnSoftmaxAlgorithm_t)algorithm, (cudnnSoftmaxMode_t)mode, &alpha, x.desc, x.d,
                          &beta, y.desc, y.d));
  compare("softmax", y, forward, is_log ? 4e-5 : 4e-6); /* of numbers near 200, half a last bit is 8e-6 */
  y.v = probability;
  send(y);
  DNN(cudnnSoftmaxBackward(handle, (cudnnSoftmaxAlgorithm_t)algorithm, (cudnnSoftmaxMode_t)mode, &alpha, y.desc, y.d,
                           dy.desc, dy.d, &beta, dx.desc, dx.d));
  compare("softmax backward", dx, backward, 1e-5);
  for (Array *array : {&x, &y, &dy, &dx}) done(*array);
}

static void test_softmax(void **state) {
  (void)state;
  for (int algorithm = CUDNN_SOFTMAX_FAST; algorithm <= CUDNN_SOFTMAX_LOG; algorithm++)
    for (int mode = CUDNN_SOFTMAX_MODE_INSTANCE; mode <= CUDNN_SOFTMAX_MODE_CHANNEL; mode++) {
      softmax(algorithm, mode, NCHW, 1, 0);
      softmax(algorithm, mode, NHWC, 0.5f, 2);
    }
}

/* ---- batch normalization ---- */

static void batch_norm(cudnnBatchNormMode_t mode, Layout layout, cudnnDataType_t type, float alpha, float beta) {
  const bool per_activation = mode == CUDNN_BATCHNORM_PER_ACTIVATION;
  const double epsilon = 1e-3, factor = 0.25;
  const int features = per_activation ? 5 * 6 * 3 : 5, count = per_activation ? 4 : 4 * 18;
  const int h = per_activation ? 6 : 1, w = per_activation ? 3 : 1;
  Array x = array_of(4, 5, 6, 3, layout, type), y = array_of(4, 5, 6, 3, layout, type);
  Array dy = array_of(4, 5, 6, 3, layout, type), dx = array_of(4, 5, 6, 3, layout, type);
  Array scale = array_of(1, 5, h, w), bias = array_of(1, 5, h, w), mean = array_of(1, 5, h, w),
        variance = array_of(1, 5, h, w), saved = array_of(1, 5, h, w), inverse = array_of(1, 5, h, w),
        dscale = array_of(1, 5, h, w), dbias = array_of(1, 5, h, w);
  cudnnTensorDescriptor_t desc;
  cudnnDataType_t derived_type;
  int dim[4], stride[4];
  DNN(cudnnCreateTensorDescriptor(&desc));
  DNN(cudnnDeriveBNTensorDescriptor(desc, x.desc, mode));
  DNN(cudnnGetTensor4dDescriptor(desc, &derived_type, &dim[0], &dim[1], &dim[2], &dim[3], &stride[0], &stride[1],
                                 &stride[2], &stride[3]));
  assert_true(derived_type == CUDNN_DATA_FLOAT && dim[0] == 1 && dim[1] == 5 && dim[2] == h && dim[3] == w);
  auto feature = [&](size_t i) { return per_activation ? i % 90 : i / 18 % 5; };
  for (double &v : variance.v) v = v * v + 0.5;
  send(variance);

  std::vector<double> sum(features), squares(features), m(features), r(features), expected(x.count()),
      inference(x.count());
  for (size_t i = 0; i < x.count(); i++) sum[feature(i)] += x.v[i];
  for (int f = 0; f < features; f++) m[f] = sum[f] / count;
  for (size_t i = 0; i < x.count(); i++) squares[feature(i)] += pow(x.v[i] - m[feature(i)], 2);
  for (int f = 0; f < features; f++) r[f] = 1 / sqrt(squares[f] / count + epsilon);
  for (size_t i = 0; i < x.count(); i++) {
    const size_t f = feature(i);
    expected[i] = alpha * (scale.v[f] * (x.v[i] - m[f]) * r[f] + bias.v[f]) + (beta != 0 ? beta * y.v[i] : 0);
    inference[i] = scale.v[f] * (x.v[i] - mean.v[f]) / sqrt(variance.v[f] + epsilon) + bias.v[f];
  }
  const double tolerance = 64 * 0x1p-24 + 8 * roundoff(type);
  DNN(cudnnBatchNormalizationForwardInference(handle, mode, &ONE, &ZERO, x.desc, x.d, dx.desc, dx.d, desc, scale.d,
                                              bias.d, mean.d, variance.d, epsilon));
  compare("inference", dx, inference, tolerance);
  send(dx);
  DNN(cudnnBatchNormalizationForwardTraining(handle, mode, &alpha, &beta, x.desc, x.d, y.desc, y.d, desc, scale.d,
                                             bias.d, factor, mean.d, variance.d, epsilon, saved.d, inverse.d));
  compare("training", y, expected, 4 * tolerance);
  compare("saved mean", saved, m, tolerance);
  compare("saved inverse deviation", inverse, r, 8 * tolerance);
  std::vector<double> running_mean(features), running_variance(features);
  for (int f = 0; f < features; f++) {
    running_mean[f] = (1 - factor) * mean.v[f] + factor * m[f];
    running_variance[f] = (1 - factor) * variance.v[f] + factor * squares[f] / (count - 1);
  }
  compare("running mean", mean, running_mean, tolerance);
  compare("running variance", variance, running_variance, tolerance);

  std::vector<double> a(features), b(features), back(x.count());
  for (size_t i = 0; i < x.count(); i++) {
    a[feature(i)] += dy.v[i];
    b[feature(i)] += dy.v[i] * (x.v[i] - m[feature(i)]) * r[feature(i)];
  }
  for (size_t i = 0; i < x.count(); i++) {
    const size_t f = feature(i);
    back[i] = alpha * scale.v[f] * r[f] * (dy.v[i] - a[f] / count - (x.v[i] - m[f]) * r[f] * b[f] / count) +
              (beta != 0 ? beta * dx.v[i] : 0);
  }
  for (int with_saved = 1; with_saved >= 0; with_saved--) {
    DNN(cudnnBatchNormalizationBackward(handle, mode, &alpha, &beta, &ONE, &ZERO, x.desc, x.d, dy.desc, dy.d, dx.desc,
                                        dx.d, desc, scale.d, dscale.d, dbias.d, epsilon, with_saved ? saved.d : NULL,
                                        with_saved ? inverse.d : NULL));
    compare("backward", dx, back, 16 * tolerance);
    compare("dscale", dscale, b, 16 * tolerance);
    compare("dbias", dbias, a, 16 * tolerance);
    send(dx);
  }
  DNN(cudnnDestroyTensorDescriptor(desc));
  for (Array *array : {&x, &y, &dy, &dx, &scale, &bias, &mean, &variance, &saved, &inverse, &dscale, &dbias})
    done(*array);
}

static void test_batch_norm(void **state) {
  (void)state;
  batch_norm(CUDNN_BATCHNORM_SPATIAL, NCHW, CUDNN_DATA_FLOAT, 1, 0);
  batch_norm(CUDNN_BATCHNORM_SPATIAL, NCHW, CUDNN_DATA_FLOAT, 0.5f, 2);
  batch_norm(CUDNN_BATCHNORM_SPATIAL_PERSISTENT, NHWC, CUDNN_DATA_FLOAT, 1, 0);
  batch_norm(CUDNN_BATCHNORM_SPATIAL, NHWC, CUDNN_DATA_HALF, 1, 0);
  batch_norm(CUDNN_BATCHNORM_PER_ACTIVATION, NCHW, CUDNN_DATA_FLOAT, 1, 0);
}

/* ---- element by element ---- */

static void test_elements(void **state) {
  (void)state;
  for (Layout layout : LAYOUTS) {
    Array c = array_of(2, 3, 5, 7, layout), bias = array_of(1, 3, 1, 1), row = array_of(1, 1, 1, 7),
          full = array_of(2, 3, 5, 7);
    const float alpha = 0.5f, alpha2 = -2, beta = 0.25f, value = 1.25f;
    std::vector<double> expected(c.count());
    for (size_t i = 0; i < c.count(); i++) expected[i] = alpha * bias.v[i / 35 % 3] + beta * c.v[i];
    DNN(cudnnAddTensor(handle, &alpha, bias.desc, bias.d, &beta, c.desc, c.d));
    compare("add", c, expected, 0x1p-22);
    send(c);
    for (int op = CUDNN_OP_TENSOR_ADD; op <= CUDNN_OP_TENSOR_NOT; op++) {
      cudnnOpTensorDescriptor_t desc;
      DNN(cudnnCreateOpTensorDescriptor(&desc));
      DNN(cudnnSetOpTensorDescriptor(desc, (cudnnOpTensorOp_t)op, CUDNN_DATA_FLOAT, CUDNN_NOT_PROPAGATE_NAN));
      if (op == CUDNN_OP_TENSOR_SQRT) {
        for (double &v : full.v) v = fabs(v);
        send(full);
      }
      for (size_t i = 0; i < c.count(); i++) {
        const double a = alpha * full.v[i], b = alpha2 * row.v[i % 7];
        const double results[] = {a + b, a * b, fmin(a, b), fmax(a, b), sqrt(a), 1 - a};
        expected[i] = results[op] + beta * c.v[i];
      }
      DNN(cudnnOpTensor(handle, desc, &alpha, full.desc, full.d, &alpha2, row.desc, row.d, &beta, c.desc, c.d));
      compare("op", c, expected, 0x1p-21);
      send(c);
      DNN(cudnnDestroyOpTensorDescriptor(desc));
    }
    DNN(cudnnTransformTensor(handle, &alpha, full.desc, full.d, &beta, c.desc, c.d));
    for (size_t i = 0; i < c.count(); i++) expected[i] = alpha * full.v[i] + beta * c.v[i];
    compare("transform", c, expected, 0x1p-22);
    for (double &v : expected) v *= alpha;
    DNN(cudnnScaleTensor(handle, c.desc, c.d, &alpha));
    compare("scale", c, expected, 0x1p-22);
    DNN(cudnnSetTensor(handle, c.desc, c.d, &value));
    compare("set", c, std::vector<double>(c.count(), 1.25), 0);
    for (Array *array : {&c, &bias, &row, &full}) done(*array);
  }
}

/* ---- reductions ---- */

static void test_reduce(void **state) {
  (void)state;
  for (int op = CUDNN_REDUCE_TENSOR_ADD; op <= CUDNN_REDUCE_TENSOR_MUL_NO_ZEROS; op++) {
    Array a = array_of(2, 3, 5, 7, op & 1 ? NHWC : NCHW), c = array_of(1, 3, 1, 7);
    cudnnReduceTensorDescriptor_t desc;
    const float alpha = 1.5f, beta = 0.5f;
    size_t bytes;
    void *workspace = NULL;
    if (op == CUDNN_REDUCE_TENSOR_MUL_NO_ZEROS) a.v[11] = 0;
    send(a);
    DNN(cudnnCreateReduceTensorDescriptor(&desc));
    DNN(cudnnSetReduceTensorDescriptor(desc, (cudnnReduceTensorOp_t)op, CUDNN_DATA_FLOAT, CUDNN_NOT_PROPAGATE_NAN,
                                       CUDNN_REDUCE_TENSOR_NO_INDICES, CUDNN_32BIT_INDICES));
    DNN(cudnnGetReductionWorkspaceSize(handle, desc, a.desc, c.desc, &bytes));
    if (bytes) CHECK(cudaMalloc(&workspace, bytes));
    std::vector<double> expected(c.count());
    for (size_t i = 0; i < c.count(); i++) {
      double sum = 0, product = 1, least = INFINITY, most = -INFINITY, largest = 0, absolute = 0, squares = 0,
             nonzero = 1;
      for (int n = 0; n < 2; n++)
        for (int h = 0; h < 5; h++) {
          const double v = a.at(n, (int)i / 7, h, (int)i % 7);
          sum += v, product *= v, absolute += fabs(v), squares += v * v;
          least = fmin(least, v), most = fmax(most, v), largest = fmax(largest, fabs(v));
          if (v != 0) nonzero *= v;
        }
      const double all[] = {sum, product, least, most, largest, sum / 10, absolute, sqrt(squares), nonzero};
      expected[i] = alpha * all[op] + beta * c.v[i]; /* alpha once, for a product too */
    }
    DNN(cudnnReduceTensor(handle, desc, NULL, 0, workspace, bytes, &alpha, a.desc, a.d, &beta, c.desc, c.d));
    compare("reduce", c, expected, 0x1p-19);
    CHECK(cudaFree(workspace));
    DNN(cudnnDestroyReduceTensorDescriptor(desc));
    done(a);
    done(c);
  }
}

/* ---- dropout ---- */

static void test_dropout(void **state) {
  (void)state;
  Array x = array_of(4, 8, 16, 16), y = array_of(4, 8, 16, 16), dx = array_of(4, 8, 16, 16);
  cudnnDropoutDescriptor_t desc;
  void *states, *reserve;
  size_t state_bytes, reserve_bytes;
  const double p = 0.25;
  DNN(cudnnCreateDropoutDescriptor(&desc));
  DNN(cudnnDropoutGetStatesSize(handle, &state_bytes));
  DNN(cudnnDropoutGetReserveSpaceSize(x.desc, &reserve_bytes));
  CHECK(cudaMalloc(&states, state_bytes));
  CHECK(cudaMalloc(&reserve, reserve_bytes));
  std::vector<double> kept[3];
  for (int round = 0; round < 3; round++) { /* the third begins again */
    if (round != 1) DNN(cudnnSetDropoutDescriptor(desc, handle, (float)p, states, state_bytes, 42));
    DNN(cudnnDropoutForward(handle, desc, x.desc, x.d, y.desc, y.d, reserve, reserve_bytes));
    const std::vector<double> got = receive(y);
    double dropped = 0;
    for (size_t i = 0; i < got.size(); i++) {
      kept[round].push_back(got[i] != 0);
      dropped += got[i] == 0;
      if (got[i] != 0 && !(fabs(got[i] - x.v[i] / (1 - p)) <= 0x1p-21)) fail_msg("element %zu is not scaled", i);
    }
    const double expected = p * (double)got.size(); /* six deviations of the binomial distribution */
    assert_true(fabs(dropped - expected) < 6 * sqrt(expected * (1 - p)));
    DNN(cudnnDropoutBackward(handle, desc, y.desc, x.d, dx.desc, dx.d, reserve, reserve_bytes));
    compare("dropout backward", dx, got, 0);
  }
  assert_true(kept[0] != kept[1]);
  assert_true(kept[0] == kept[2]);
  DNN(cudnnDestroyDropoutDescriptor(desc));
  CHECK(cudaFree(states));
  CHECK(cudaFree(reserve));
  for (Array *array : {&x, &y, &dx}) done(*array);
}

int main() {
  const CMUnitTest tests[] = {
      cmocka_unit_test(test_activations), cmocka_unit_test(test_nan),        cmocka_unit_test(test_pooling),
      cmocka_unit_test(test_softmax),     cmocka_unit_test(test_batch_norm), cmocka_unit_test(test_elements),
      cmocka_unit_test(test_reduce),      cmocka_unit_test(test_dropout),
  };
  return cmocka_run_group_tests(tests, open_handle, close_handle);
}
