/* The fused kernels against the references of what they compute together, on ragged shapes; and LeNet-5 with them: the
 * same losses, gradients and names as operation by operation, in fewer launches. */
#include "common/nn/step_replay.h"
#include "common/philox.h"
#include "common/test.h"
#include "common/test_arrays.h"
#include "phase2_mlp/05_batches/batches_op.cuh"
#include "phase3_cnn/12_lenet_mnist/lenet.cuh"
#include "phase3_cnn/16_one_step/conv_pool.cuh"
#include "phase3_cnn/16_one_step/linear_chain.cuh"
#include "phase3_cnn/16_one_step/loss_step.cuh"
#include "phase3_cnn/16_one_step/one_step_op.cuh"

/* `count` floats in [-1, 1), on the host; a stream for each array. */
static float *random_floats(size_t count, uint32_t stream) {
  float *values = (float *)xmalloc((count + 1) * sizeof *values);
  for (size_t i = 0; i < count; i++) values[i] = 2 * philox_uniform(philox4x32(5, stream, i).word[0]) - 1;
  return values;
}

/* A copy on the device, `shift` floats behind an aligned address; freed by device_free(at - shift). */
static float *upload(const float *values, size_t count, int shift) {
  float *at = (float *)device_alloc(DEVICE_GPU, (count + shift) * sizeof *values) + shift;
  if (values)
    device_upload(DEVICE_GPU, at, values, count * sizeof *values);
  else
    CUDA_CHECK(cudaMemset(at, 0xff, count * sizeof *at)); /* NaN: what is not written shows */
  return at;
}

static void expect_close(const float *device, const float *expected, size_t count, double tolerance, const char *what,
                         int number) {
  float *got = (float *)xmalloc((count + 1) * sizeof *got);
  device_download(DEVICE_GPU, got, device, count * sizeof *got);
  for (size_t i = 0; i < count; i++)
    if (!(fabs((double)got[i] - expected[i]) <= tolerance * (1 + fabs(expected[i]))))
      fail_msg("case %d, %s[%zu]: %.9g, expected %.9g, tolerance %g", number, what, i, got[i], expected[i], tolerance);
  free(got);
}

/* ------------------------------------------------------------------------------------------------------- conv_pool */

static void check_conv_pool(Conv2dShape conv, int number) {
  const ConvPool s = conv_pool_make(conv);
  if (!conv_pool_fits(s)) fail_msg("case %d does not fit", number);
  const size_t inputs = conv2d_x_count(conv), weights = conv2d_w_count(conv), sums = conv2d_y_count(conv);
  const size_t outputs = (size_t)conv.n * conv.k * pool2d_out_h(s.pool) * pool2d_out_w(s.pool);
  float *x = random_floats(inputs, 1), *w = random_floats(weights, 2), *bias = random_floats((size_t)conv.k, 3);
  float *dy = random_floats(outputs, 4), *y = random_floats(outputs, 9), *work = random_floats(sums, 9);
  float *dx = random_floats(inputs, 9), *dw = random_floats(weights, 9), *dbias = random_floats((size_t)conv.k, 9);
  uint8_t *argmax = (uint8_t *)xmalloc(outputs), *got = (uint8_t *)xmalloc(outputs);
  conv_pool_forward_cpu(y, argmax, x, w, bias, s, work);
  conv_pool_backward_cpu(dx, dw, dbias, dy, argmax, x, w, s, work);

  float *gpu_x = upload(x, inputs, 0), *gpu_w = upload(w, weights, 0), *gpu_bias = upload(bias, (size_t)conv.k, 0);
  float *gpu_dy = upload(dy, outputs, 0), *gpu_y = upload(NULL, outputs, 0), *gpu_dx = upload(NULL, inputs, 0);
  float *gpu_dw = upload(NULL, weights, 0), *gpu_dbias = upload(NULL, (size_t)conv.k, 0);
  float *gpu_work = upload(NULL, conv_pool_workspace_floats(s), 0);
  uint8_t *gpu_argmax = (uint8_t *)device_alloc(DEVICE_GPU, outputs);
  conv_pool_forward_gpu(gpu_y, gpu_argmax, gpu_x, gpu_w, gpu_bias, s);
  expect_close(gpu_y, y, outputs, 1e-5 * conv.c * conv.s, "y", number);
  device_download(DEVICE_GPU, got, gpu_argmax, outputs);
  for (size_t i = 0; i < outputs; i++)
    if (got[i] != argmax[i]) fail_msg("case %d, argmax[%zu]: %d, expected %d", number, i, got[i], argmax[i]);
  conv_pool_backward_gpu(gpu_dx, gpu_dw, gpu_dbias, gpu_dy, gpu_argmax, gpu_x, gpu_w, s, gpu_work);
  expect_close(gpu_dx, dx, inputs, 1e-5 * conv.k, "dx", number);
  expect_close(gpu_dw, dw, weights, 1e-6 * (double)(outputs / conv.k + 20), "dw", number);
  expect_close(gpu_dbias, dbias, (size_t)conv.k, 1e-6 * (double)(outputs / conv.k + 20), "dbias", number);
  CUDA_CHECK(cudaMemset(gpu_dw, 0xff, weights * sizeof(float)));
  conv_pool_backward_gpu(NULL, gpu_dw, NULL, gpu_dy, gpu_argmax, gpu_x, gpu_w, s, gpu_work); /* of a first layer */
  expect_close(gpu_dw, dw, weights, 1e-6 * (double)(outputs / conv.k + 20), "dw", number);

  float *host[] = {x, w, bias, dy, y, work, dx, dw, dbias};
  float *device[] = {gpu_x, gpu_w, gpu_bias, gpu_dy, gpu_y, gpu_dx, gpu_dw, gpu_dbias, gpu_work, (float *)gpu_argmax};
  for (size_t i = 0; i < sizeof host / sizeof *host; i++) free(host[i]);
  for (size_t i = 0; i < sizeof device / sizeof *device; i++) device_free(DEVICE_GPU, device[i]);
  free(argmax);
  free(got);
}

/* LeNet's two, with batches that need several splits of images and one; odd heights and widths, of which pooling leaves
 * out the last; more padding than half the filter; one channel, one filter, odd numbers of both. */
static void a_convolution_and_its_pooling(void **unused) {
  (void)unused;
  test_requires_gpu();
  const Conv2dShape cases[] = {
      conv2d_shape(5, 1, 28, 28, 6, 5, 5, 1, 2), conv2d_shape(3, 6, 14, 14, 16, 5, 5, 1, 0),
      conv2d_shape(33, 1, 9, 7, 1, 3, 3, 1, 1),  conv2d_shape(1, 3, 7, 11, 5, 3, 3, 1, 2),
      conv2d_shape(2, 7, 6, 8, 15, 5, 5, 1, 4),  conv2d_shape(3, 1, 4, 4, 1, 3, 3, 1, 0),
      conv2d_shape(2, 8, 8, 6, 13, 3, 3, 1, 1),
  };
  for (int i = 0; i < (int)(sizeof cases / sizeof *cases); i++) check_conv_pool(cases[i], i);
}

static void what_does_not_fit_is_refused(void **unused) {
  (void)unused;
  Conv2dShape strided = conv2d_shape(1, 3, 8, 8, 4, 3, 3, 2, 1), apart = conv2d_shape(1, 3, 12, 12, 4, 3, 3, 1, 1);
  apart.dilation_h = 2;
  assert_false(conv_pool_fits(conv_pool_make(strided)));
  assert_false(conv_pool_fits(conv_pool_make(apart)));
  assert_false(conv_pool_fits(conv_pool_make(conv2d_shape(1, 64, 56, 56, 64, 3, 3, 1, 1)))); /* shared memory */
  assert_false(conv_pool_fits(conv_pool_make(conv2d_shape(1, 1, 16, 16, 4, 7, 7, 1, 3))));
  for (int n = 2; n < 130; n++) { /* a larger batch never needs less workspace */
    const ConvPool few = conv_pool_make(conv2d_shape(n - 1, 1, 16, 16, 1, 3, 3, 1, 1)), more = conv_pool_batch(few, n);
    assert_true(conv_pool_workspace_floats(few) <= conv_pool_workspace_floats(more));
  }
  ConvPool wide = conv_pool_make(conv2d_shape(1, 1, 16, 16, 4, 3, 3, 1, 1));
  assert_true(conv_pool_fits(wide));
  wide.pool.kernel_w = 3;
  assert_false(conv_pool_fits(wide));
}

/* ----------------------------------------------------------------------------------------------------------- chain */

/* `shift`: floats by which the weights are not aligned. */
static void check_chain(int batch, int layers, const int *width, int shift, int number) {
  LinearChain s, gpu;
  float *w[CHAIN_LAYERS], *bias[CHAIN_LAYERS], *dw[CHAIN_LAYERS], *dbias[CHAIN_LAYERS];
  float *gpu_dw[CHAIN_LAYERS], *gpu_dbias[CHAIN_LAYERS];
  memset(&s, 0, sizeof s);
  s.batch = batch;
  s.layers = layers;
  for (int l = 0; l <= layers; l++) s.width[l] = width[l];
  gpu = s;
  if (!chain_fits(&s)) fail_msg("chain %d does not fit", number);
  for (int l = 0; l < layers; l++) {
    const size_t n = (size_t)width[l] * width[l + 1];
    s.w[l] = w[l] = random_floats(n, 10 + l);
    s.bias[l] = bias[l] = random_floats((size_t)width[l + 1], 20 + l);
    dw[l] = random_floats(n, 9);
    dbias[l] = random_floats((size_t)width[l + 1], 9);
    gpu.w[l] = upload(w[l], n, shift);
    gpu.bias[l] = upload(bias[l], (size_t)width[l + 1], shift);
    gpu_dw[l] = upload(NULL, n, shift);
    gpu_dbias[l] = upload(NULL, (size_t)width[l + 1], shift);
  }
  const size_t in = (size_t)batch * width[0], out = (size_t)batch * width[layers];
  const size_t between = (size_t)batch * chain_hidden(&s);
  float *x = random_floats(in, 1), *dy = random_floats(out, 2), *y = random_floats(out, 9), *dx = random_floats(in, 9);
  float *hidden = random_floats(between, 9), *deltas = random_floats(between, 9);
  chain_forward_cpu(y, hidden, x, s);
  chain_in_turn_backward(DEVICE_CPU, dx, dw, dbias, dy, hidden, x, deltas, s);
  float *gpu_x = upload(x, in, 0), *gpu_dy = upload(dy, out, 0), *gpu_y = upload(NULL, out, 0);
  float *gpu_dx = upload(NULL, in, 0), *gpu_hidden = upload(NULL, between, 0), *gpu_deltas = upload(NULL, between, 0);
  chain_forward_gpu(gpu_y, gpu_hidden, gpu_x, gpu);
  expect_close(gpu_y, y, out, 1e-4, "y", number);
  expect_close(gpu_hidden, hidden, between, 1e-4, "hidden", number);
  chain_backward_gpu(gpu_dx, gpu_dw, gpu_dbias, gpu_dy, gpu_hidden, gpu_x, gpu_deltas, gpu);
  expect_close(gpu_dx, dx, in, 1e-4, "dx", number);
  for (int l = 0; l < layers; l++) {
    expect_close(gpu_dw[l], dw[l], (size_t)width[l] * width[l + 1], 1e-4, "dw", number);
    expect_close(gpu_dbias[l], dbias[l], (size_t)width[l + 1], 1e-4, "dbias", number);
  }
  for (int l = 0; l < layers; l++) {
    float *host[] = {w[l], bias[l], dw[l], dbias[l]};
    const float *device[] = {gpu.w[l], gpu.bias[l], gpu_dw[l], gpu_dbias[l]};
    for (int i = 0; i < 4; i++) {
      free(host[i]);
      device_free(DEVICE_GPU, (float *)device[i] - shift);
    }
  }
  float *host[] = {x, dy, y, dx, hidden, deltas}, *device[] = {gpu_x, gpu_dy, gpu_y, gpu_dx, gpu_hidden, gpu_deltas};
  for (int i = 0; i < 6; i++) {
    free(host[i]);
    device_free(DEVICE_GPU, device[i]);
  }
}

static void layers_one_after_another(void **unused) {
  (void)unused;
  test_requires_gpu();
  const int lenet[] = {400, 120, 84, 10}, small[] = {4, 8, 3}, ragged[] = {132, 36, 127}, wide[] = {1024, 4, 1};
  check_chain(3, 3, lenet, 0, 0);
  check_chain(2, 3, lenet, 1, 1); /* not aligned to 16 bytes */
  check_chain(1, 2, small, 0, 2);
  check_chain(33, 2, ragged, 0, 3);
  check_chain(2, 2, wide, 0, 4);
}

/* ------------------------------------------------------------------------------------------------------------ loss */

/* share: of the other label; smoothing and share 0: the plain loss */
static void check_loss_of(int batch, int classes, float scale, float smoothing, float share) {
  const SoftLabels soft = soft_labels(smoothing, share);
  const int is_soft = smoothing > 0 || share > 0;
  const size_t n = (size_t)batch * classes;
  float *logits = random_floats(n, 1), *losses = random_floats((size_t)batch, 9), *p = random_floats(n, 9);
  float *dlogits = random_floats(n, 9);
  int *labels = (int *)xmalloc(batch * sizeof *labels);
  double totals[2] = {3, 4}, got[2];
  for (int b = 0; b < batch; b++) labels[b] = (7 * b + 1) % classes;
  for (size_t i = 0; i < n; i += 5) logits[i] *= 50;
  double *gpu_totals = (double *)device_alloc(DEVICE_GPU, sizeof totals);
  int *gpu_labels = (int *)device_alloc(DEVICE_GPU, batch * sizeof *labels);
  device_upload(DEVICE_GPU, gpu_totals, totals, sizeof totals);
  device_upload(DEVICE_GPU, gpu_labels, labels, batch * sizeof *labels);
  float *gpu_logits = upload(logits, n, 0), *gpu_losses = upload(NULL, (size_t)batch, 0), *gpu_p = upload(NULL, n, 0);
  float *gpu_dlogits = upload(NULL, n, 0);
  if (is_soft) {
    softmax_cross_entropy_soft_forward_cpu(losses, p, logits, labels, soft, batch, classes);
    softmax_cross_entropy_soft_backward_cpu(dlogits, p, labels, soft, scale, batch, classes);
    softmax_cross_entropy_soft_score_cpu(totals, losses, p, labels, soft, batch, classes);
    loss_step_soft_gpu(gpu_losses, gpu_p, gpu_dlogits, gpu_totals, gpu_logits, gpu_labels, soft, scale, batch, classes);
  } else {
    loss_step_cpu(losses, p, dlogits, totals, logits, labels, scale, batch, classes);
    loss_step_gpu(gpu_losses, gpu_p, gpu_dlogits, gpu_totals, gpu_logits, gpu_labels, scale, batch, classes);
  }
  expect_close(gpu_losses, losses, (size_t)batch, 1e-5, "losses", classes);
  expect_close(gpu_p, p, n, 1e-5, "probabilities", classes);
  expect_close(gpu_dlogits, dlogits, n, 1e-5, "dlogits", classes);
  device_download(DEVICE_GPU, got, gpu_totals, sizeof got);
  assert_true(fabs(got[0] - totals[0]) <= 1e-5 * totals[0]);
  assert_true(is_soft ? fabs(got[1] - totals[1]) < 1e-9 * batch : got[1] == totals[1]);
  void *device[] = {gpu_totals, gpu_labels, gpu_logits, gpu_losses, gpu_p, gpu_dlogits};
  for (int i = 0; i < 6; i++) device_free(DEVICE_GPU, device[i]);
  float *host[] = {logits, losses, p, dlogits};
  for (int i = 0; i < 4; i++) free(host[i]);
  free(labels);
}

static void check_loss(int batch, int classes, float scale) { check_loss_of(batch, classes, scale, 0, 0); }

static void losses_gradients_and_sums_at_once(void **unused) {
  (void)unused;
  test_requires_gpu();
  check_loss(1, 1, 1);
  check_loss(64, 10, 1.0f / 64);
  check_loss(127, 32, 0.5f);
  check_loss(33, 3, 2);
  check_loss(3, 33, 1);                  /* too many classes: launch by launch */
  check_loss(LOSS_STEP_ROWS + 1, 10, 1); /* too many rows */
  check_loss_of(64, 10, 1.0f / 64, 0.1f, 0);
  check_loss_of(33, 3, 2, 0, 0.3f);
  check_loss_of(127, 32, 0.5f, 0.2f, 0.7f);
  check_loss_of(3, 33, 1, 0.2f, 0.7f);
}

/* ---------------------------------------------------------------------------------------------------------- LeNet-5 */

enum { BATCH = 5, COUNT = 61706 };

static void compute(Graph *g, Device device, float *losses, float *gradients, Totals *totals) {
  Model m;
  float x[BATCH * 784];
  int labels[BATCH];
  const Totals none = {0, 0};
  sgd_model_open(&m, g, device, BATCH);
  model_init(&m, 3);
  assert_int_equal(m.parameter_count, COUNT);
  for (int i = 0; i < BATCH * 784; i++) x[i] = 2 * philox_uniform(philox4x32(1, 2, (uint64_t)i).word[0]) - 1;
  for (int i = 0; i < BATCH; i++) labels[i] = 3 * i % 10;
  device_upload(device, model_input(&m, 0), x, sizeof x);
  device_upload(device, model_labels(&m), labels, sizeof labels);
  model_reset_totals(&m, 0, none);
  model_train_step(&m, BATCH); /* with a learning rate of 0 */
  *totals = model_read_totals(&m, 0);
  device_download(device, losses, m.losses[0], BATCH * sizeof *losses);
  device_download(device, gradients, m.gradients, COUNT * sizeof *gradients);
  model_close(&m);
}

static Graph *fused_lenet(int fused_before) {
  Graph *g = fused_before ? lenet_graph() : lenet_layers();
  one_step_fuse(g);
  return g;
}

/* On the CPU the same functions compute it, with the same bits. */
static void check_lenet(Device device, double tolerance) {
  static float expected[COUNT], got[COUNT];
  float losses[BATCH], fused_losses[BATCH];
  Totals totals, fused_totals;
  compute(lenet_layers(), device, losses, expected, &totals);
  for (int before = 0; before < 2; before++) {
    compute(fused_lenet(before), device, fused_losses, got, &fused_totals);
    for (int i = 0; i < BATCH; i++) assert_true(fabs(losses[i] - fused_losses[i]) <= tolerance * losses[i]);
    for (int i = 0; i < COUNT; i++)
      if (!(fabs(got[i] - expected[i]) <= tolerance * (1 + fabs(expected[i]))))
        fail_msg("gradient %d: %.9g, expected %.9g", i, got[i], expected[i]);
    assert_true(fabs(totals.loss - fused_totals.loss) <= tolerance * totals.loss);
    assert_true(totals.correct == fused_totals.correct);
  }
}

static void the_cpu_computes_the_same(void **unused) {
  (void)unused;
  check_lenet(DEVICE_CPU, 0);
}

static void the_gpu_computes_the_same(void **unused) {
  (void)unused;
  test_requires_gpu();
  check_lenet(DEVICE_GPU, 1e-5);
}

static void parameters_keep_their_names_and_places(void **unused) {
  (void)unused;
  for (int before = 0; before < 2; before++) {
    Model plain, fused;
    sgd_model_open(&plain, lenet_layers(), DEVICE_CPU, BATCH);
    sgd_model_open(&fused, fused_lenet(before), DEVICE_CPU, BATCH);
    int node[2] = {0, 0}, index[2] = {0, 0}, working = 0;
    for (;;) {
      const Param *a = model_next_param(&plain, &node[0], &index[0]);
      const Param *b = model_next_param(&fused, &node[1], &index[1]);
      if (a == NULL || b == NULL) {
        assert_true(a == b);
        break;
      }
      assert_string_equal(a->name, b->name);
      assert_int_equal(a->offset, b->offset);
      assert_int_equal(a->stream, b->stream);
    }
    double flops[2] = {0, 0};
    for (int i = 0; i < plain.graph->count; i++) {
      flops[0] += plain.graph->nodes[i].flops;
      flops[1] += fused.graph->nodes[i].flops;
      working += fused.graph->nodes[i].op != NULL && !(fused.graph->nodes[i].op->flags & OP_ABSORBED);
    }
    assert_true(flops[0] == flops[1]);
    assert_int_equal(working, 3);
    assert_true(fused.plan.arena_bytes < plain.plan.arena_bytes);
    model_close(&plain);
    model_close(&fused);
  }
}

/* What somebody else reads in between must exist. */
static void what_is_read_elsewhere_is_not_absorbed(void **unused) {
  (void)unused;
  for (int who = 0; who < 2; who++) {
    Graph *g = graph_create();
    const int x = graph_input(g, "x", shape3(1, 8, 8)), layer = conv2d(g, x, 2, 3, 1, 1), bent = relu(g, layer);
    const int pool = max_pool2d(g, bent, 2, 2);
    if (who == 1) graph_output(g, bent);
    one_step_fuse(g);
    assert_ptr_equal(g->nodes[pool].op, who == 0 ? &conv_pool_op : &max_pool2d_op);
    assert_ptr_equal(g->nodes[layer].op, who == 0 ? &absorbed_op : &conv2d_op);
    graph_destroy(g);
  }
}

/* A batch has been gathered before; and none of the arguments changes from step to step. */
static void a_step_has_few_launches(void **unused) {
  (void)unused;
  test_requires_gpu();
  const struct {
    Graph *g;
    size_t launches;
  } cases[] = {{lenet_layers(), 35}, {lenet_graph(), 21}, {fused_lenet(1), 14}};
  for (int i = 0; i < 3; i++) {
    Model m;
    cudaGraph_t graph;
    size_t nodes = 0;
    sgd_model_open(&m, cases[i].g, DEVICE_GPU, 64);
    model_init(&m, 1);
    CUDA_CHECK(cudaStreamBeginCapture(cudaStreamPerThread, cudaStreamCaptureModeThreadLocal));
    model_train_step(&m, 64);
    CUDA_CHECK(cudaStreamEndCapture(cudaStreamPerThread, &graph));
    CUDA_CHECK(cudaGraphGetNodes(graph, NULL, &nodes));
    CUDA_CHECK(cudaGraphDestroy(graph));
    assert_int_equal(nodes, cases[i].launches);
    assert_int_equal(step_replay_check(&m, NULL), 0);
    model_close(&m);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_convolution_and_its_pooling),
      cmocka_unit_test(what_does_not_fit_is_refused),
      cmocka_unit_test(layers_one_after_another),
      cmocka_unit_test(losses_gradients_and_sums_at_once),
      cmocka_unit_test(the_cpu_computes_the_same),
      cmocka_unit_test(the_gpu_computes_the_same),
      cmocka_unit_test(parameters_keep_their_names_and_places),
      cmocka_unit_test(what_is_read_elsewhere_is_not_absorbed),
      cmocka_unit_test(a_step_has_few_launches),
  };
  return TEST_MAIN("one_step", tests);
}
