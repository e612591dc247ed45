/* nncuda_test.cu - through the ABI of libnncuda.so.1: the kernels against the CPU's versions. The CPU's are compared
 * with PyTorch in python/. nncuda_layers_test.cu: convolution, pooling, norms, attention. */
#include "phase5_production/05_pytorch/test_nncuda.h"

enum { F32 = NNCUDA_FLOAT32 };

static void softmax_rows(void **state) {
  (void)state;
  const int64_t sizes[][2] = {{1, 1}, {3, 31}, {33, 127}, {5, 2003}};
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
    const int64_t rows = sizes[i][0], cols = sizes[i][1];
    const size_t n = (size_t)(rows * cols);
    Twice x = twice_random(n, 1), y = twice_poison(n), dy = twice_random(n, 2), dx = twice_poison(n);
    BOTH(nncuda_softmax_forward(device, NULL, F32, y.at[on], x.at[on], rows, cols));
    BOTH(nncuda_softmax_backward(device, NULL, F32, dx.at[on], dy.at[on], y.at[on], rows, cols));
    twice_compare(&dx, rows, cols, 1e-5, 1e-6, "dx");
    twice_compare(&y, rows, cols, 1e-5, 1e-7, "y");
    twice_same(&x, "x");
    twice_same(&dy, "dy");
  }
}

/* Every third label is ignore_index, here a class; `wide`: of 64 bits. */
static void cross_entropy_case(int64_t rows, int64_t classes, int reduction, double smoothing, int wide, int gradient) {
  const size_t n = (size_t)(rows * classes);
  int64_t *labels = (int64_t *)xcalloc((size_t)rows, sizeof *labels), ignored = classes > 1 ? 1 : -7;
  for (int64_t row = 0; row < rows; row++) {
    const int64_t label = row % 3 == 1 ? ignored : row * 7919 % classes;
    if (wide)
      labels[row] = label;
    else
      ((int32_t *)labels)[row] = (int32_t)label;
  }
  const void *label[2] = {labels, arrays_upload_bytes(DEVICE_GPU, labels, (size_t)rows * sizeof *labels)};
  Twice logits = twice_random(n, 3), d = twice_poison(n), loss = twice_poison(1), report = twice_bytes(24);
  Scratch s = scratch_open(nncuda_cross_entropy_workspace(NNCUDA_CPU, rows, classes),
                           nncuda_cross_entropy_workspace(0, rows, classes));
  BOTH(nncuda_cross_entropy(device, NULL, F32, loss.at[on], gradient ? d.at[on] : NULL, (int64_t *)report.at[on],
                            logits.at[on], label[on], wide ? NNCUDA_INT64 : NNCUDA_INT32, rows, classes, reduction,
                            ignored, smoothing, s.at[on], s.bytes[on]));
  if (gradient)
    twice_compare(&d, rows, classes, 1e-5, 1e-6, "dlogits");
  else
    twice_free(&d);
  twice_compare(&loss, 1, 1, 1e-5, 1e-6, "loss");
  twice_same(&report, "report");
  twice_same(&logits, "logits");
  scratch_close(&s);
  device_free(DEVICE_GPU, (void *)label[1]);
  free(labels);
}

static void cross_entropy_options(void **state) {
  (void)state;
  for (int i = 0; i < 16; i++)
    cross_entropy_case(33, i % 2 ? 10 : 1100, i / 2 % 2 ? NNCUDA_SUM : NNCUDA_MEAN, i / 4 % 2 ? 0.1 : 0, i % 3 != 0,
                       i / 8);
  cross_entropy_case(1, 1, NNCUDA_MEAN, 0, 1, 1);
  cross_entropy_case(2, 5003, NNCUDA_MEAN, 0.25, 0, 1);
}

/* The host of a GPU does not see the labels: the report names the row. */
static void cross_entropy_wrong_label(void **state) {
  (void)state;
  const int32_t labels[] = {0, -100, 4, 5, -1};
  Twice logits = twice_random(5 * 5, 4), d = twice_poison(5 * 5), loss = twice_poison(1), report = twice_bytes(24);
  int32_t *gpu_labels = (int32_t *)arrays_upload_bytes(DEVICE_GPU, labels, sizeof labels);
  Scratch s = scratch_open(nncuda_cross_entropy_workspace(NNCUDA_CPU, 5, 5), nncuda_cross_entropy_workspace(0, 5, 5));
  assert_int_equal(nncuda_cross_entropy(NNCUDA_CPU, NULL, F32, loss.at[0], d.at[0], NULL, logits.at[0], labels,
                                        NNCUDA_INT32, 5, 5, NNCUDA_MEAN, -100, 0, s.at[0], s.bytes[0]),
                   NNCUDA_BAD_ARGUMENT);
  assert_string_equal(nncuda_last_error(),
                      "nncuda_cross_entropy: labels[3] is 5; expected 0 to 4, or ignore_index, which is -100");
  assert_string_equal(nncuda_last_argument(), "labels");
  assert_int_equal(nncuda_cross_entropy(0, NULL, F32, loss.at[1], d.at[1], (int64_t *)report.at[1], logits.at[1],
                                        gpu_labels, NNCUDA_INT32, 5, 5, NNCUDA_MEAN, -100, 0, s.at[1], s.bytes[1]),
                   NNCUDA_OK);
  float got_loss = 0;
  int64_t got[3];
  CUDA_CHECK(cudaDeviceSynchronize());
  CUDA_CHECK(cudaMemcpy(&got_loss, loss.at[1], sizeof got_loss, cudaMemcpyDeviceToHost));
  CUDA_CHECK(cudaMemcpy(got, report.at[1], sizeof got, cudaMemcpyDeviceToHost));
  assert_true(isnan(got_loss));
  assert_int_equal(got[0], 4);
  assert_int_equal(got[1], 2);
  assert_int_equal(got[2], 3);
  device_free(DEVICE_GPU, gpu_labels);
  Twice *const all[] = {&logits, &d, &loss, &report};
  for (int i = 0; i < 4; i++) twice_free(all[i]);
  scratch_close(&s);
}

static void elements(void **state) {
  (void)state;
  const int64_t sizes[] = {1, 3, 31, 127, 4099};
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
    const int64_t n = sizes[i];
    Twice x = twice_random((size_t)n, 5), b = twice_random((size_t)n, 6), half = twice_random(1, 7);
    for (int kind = NNCUDA_RELU; kind <= NNCUDA_TANH; kind++) {
      Twice y = twice_poison((size_t)n), dx = twice_poison((size_t)n);
      BOTH(nncuda_activation_forward(device, NULL, F32, kind, y.at[on], x.at[on], n));
      BOTH(nncuda_activation_backward(device, NULL, F32, kind, dx.at[on], b.at[on], y.at[on], n));
      twice_compare(&y, 1, (size_t)n, 1e-5, 1e-6, "y");
      twice_compare(&dx, 1, (size_t)n, 1e-5, 1e-6, "dx");
    }
    Twice y = twice_poison((size_t)n), d = twice_poison((size_t)n);
    BOTH(nncuda_add_relu_forward(device, NULL, F32, y.at[on], x.at[on], b.at[on], n));
    BOTH(nncuda_add_relu_backward(device, NULL, F32, d.at[on], b.at[on], y.at[on], n));
    twice_same(&y, "add + ReLU");
    twice_same(&d, "its gradient");
    Twice z = twice_poison((size_t)n), dropped = twice_poison((size_t)n);
    BOTH(nncuda_scale(device, NULL, F32, z.at[on], x.at[on], half.at[on], n));
    BOTH(nncuda_dropout(device, NULL, F32, dropped.at[on], x.at[on], n, 0.3, 42, 7));
    twice_same(&z, "scaled");
    twice_same(&dropped, "dropped");
    twice_same(&x, "x");
    twice_same(&b, "b");
    twice_free(&half);
  }
  assert_int_equal(nncuda_dropout(0, NULL, F32, NULL, NULL, 0, 0.5, 1, 1), NNCUDA_OK); /* nothing to do */
}

static void products(void **state) {
  (void)state;
  for (int i = 0; i < 8; i++) {
    const int64_t m = 17, n = 35, k = 67;
    Twice a = twice_random((size_t)(m * k), 8), b = twice_random((size_t)(k * n), 9);
    Twice c = twice_random((size_t)(m * n), 10);
    BOTH(nncuda_matmul(device, NULL, F32, c.at[on], a.at[on], b.at[on], m, n, k, i & 1, i >> 1 & 1, i >> 2));
    twice_compare(&c, (size_t)m, (size_t)n, 1e-5, 1e-4, "c");
    twice_same(&a, "a");
    twice_same(&b, "b");
  }
}

static void linear_case(int64_t batch, int64_t in, int64_t out, int bias, int relu) {
  Twice x = twice_random((size_t)(batch * in), 11), w = twice_random((size_t)(out * in), 12);
  Twice c = twice_random((size_t)out, 13), y = twice_poison((size_t)(batch * out));
  Twice dy = twice_random((size_t)(batch * out), 14), dx = twice_poison((size_t)(batch * in));
  Twice dw = twice_poison((size_t)(out * in)), dc = twice_poison((size_t)out);
  Scratch s =
      scratch_open(nncuda_linear_workspace(NNCUDA_CPU, batch, in, out), nncuda_linear_workspace(0, batch, in, out));
  Scratch t = scratch_open(nncuda_linear_backward_workspace(NNCUDA_CPU, batch, in, out, relu),
                           nncuda_linear_backward_workspace(0, batch, in, out, relu));
  BOTH(nncuda_linear_forward(device, NULL, F32, y.at[on], x.at[on], w.at[on], bias ? c.at[on] : NULL, batch, in, out,
                             relu, s.at[on], s.bytes[on]));
  BOTH(nncuda_linear_backward(device, NULL, F32, dx.at[on], dw.at[on], dc.at[on], dy.at[on], y.at[on], x.at[on],
                              w.at[on], batch, in, out, relu, t.at[on], t.bytes[on]));
  const double sum = 4e-7 * (double)in + 1e-5;
  twice_compare(&y, (size_t)batch, (size_t)out, 1e-5, sum, "y");
  twice_compare(&dx, (size_t)batch, (size_t)in, 1e-5, 1e-4, "dx");
  twice_compare(&dw, (size_t)out, (size_t)in, 1e-5, 1e-4, "dw");
  twice_compare(&dc, 1, (size_t)out, 1e-5, 1e-5, "dbias");
  Twice *const all[] = {&x, &w, &c, &dy};
  for (int i = 0; i < 4; i++) twice_same(all[i], "an input");
  scratch_close(&s);
  scratch_close(&t);
}

static void linear_layers(void **state) {
  (void)state;
  for (int i = 0; i < 4; i++) {
    linear_case(1, 1, 1, i & 1, i >> 1);
    linear_case(33, 127, 10, i & 1, i >> 1);
  }
  linear_case(3, 90001, 3, 1, 1); /* sums in parts, and no fused backward */
}

enum { TENSORS = 50 }; /* more than the table of one emulated launch */

/* All tensors lie in one array, at odd places; the first is empty. */
static void optimizer_steps(void **state) {
  (void)state;
  int64_t length[TENSORS];
  size_t n = 1;
  for (int i = 0; i < TENSORS; i++) n += (size_t)(length[i] = i == 1 ? 5003 : i * 7 % 31);
  for (int kind = 0; kind < 4; kind++) {
    Twice w = twice_random(n, 70), grad = twice_random(n, 71), m = twice_of((float *)xcalloc(n, 4), n);
    Twice v = twice_of((float *)xcalloc(n, 4), n);
    for (int step = 1; step <= 2; step++)
      for (int on = 0; on < 2; on++) {
        float *weights[TENSORS], *first[TENSORS], *second[TENSORS];
        const float *gradients[TENSORS];
        size_t at = 1;
        for (int i = 0; i < TENSORS; at += (size_t)length[i++]) {
          weights[i] = w.at[on] + at, first[i] = m.at[on] + at, second[i] = v.at[on] + at;
          gradients[i] = grad.at[on] + at;
        }
        const int status = kind < 2 ? nncuda_sgd_step(on - 1, NULL, TENSORS, weights, gradients, kind ? first : NULL,
                                                      length, 0.1, kind ? 0.9 : 0, 0, kind, 0.01, step == 1)
                                    : nncuda_adam_step(on - 1, NULL, TENSORS, weights, gradients, first, second, length,
                                                       0.01, 0.9, 0.999, 1e-8, 0.01, kind == 3, step);
        if (status != NNCUDA_OK) fail_msg("%s", nncuda_last_error());
      }
    Twice *const all[] = {&w, &m, &v};
    for (int i = 0; i < 3; i++) twice_compare(all[i], 1, n, 1e-5, 1e-6, "w or its state");
    twice_same(&grad, "grad");
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(softmax_rows),
      cmocka_unit_test(cross_entropy_options),
      cmocka_unit_test(cross_entropy_wrong_label),
      cmocka_unit_test(elements),
      cmocka_unit_test(products),
      cmocka_unit_test(linear_layers),
      cmocka_unit_test(optimizer_steps),
  };
  return TEST_MAIN("nncuda", tests);
}
