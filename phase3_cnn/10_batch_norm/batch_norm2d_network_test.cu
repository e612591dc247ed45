/* Batch norm in networks: folded into the convolution before it. */
#include "common/philox.h"
#include "common/test.h"
#include "phase1_building_blocks/10_softmax_cross_entropy/softmax_cross_entropy_op.cuh"
#include "phase2_mlp/03_mlp/linear_op.cuh"
#include "phase2_mlp/03_mlp/sgd_op.cuh"
#include "phase3_cnn/10_batch_norm/batch_norm2d_fold.cuh"
#include "phase3_cnn/11_residual/residual_block.cuh"

enum { BATCH = 5, CLASSES = 3, PIXELS = 2 * 9 * 7 };

/* Uniform from low to high, on the host. */
static void random_fill(float *to, size_t n, uint32_t stream, float low, float high) {
  for (size_t i = 0; i < n; i++) to[i] = low + (high - low) * philox_uniform(philox4x32(7, stream, i).word[0]);
}

/* Convolutions with and without a bias, one that two nodes read, batch norms behind something else. 4 of 6 fold. */
static Graph *network(void) {
  Graph *g = graph_create();
  const int x = graph_input(g, "x", shape3(2, 9, 7));
  int h = relu(g, batch_norm2d(g, conv2d(g, x, 4, 3, 1, 1)));
  h = residual_block(g, "layer1", h, 4, 1);
  const int twice = conv2d_no_bias(g, h, 5, 3, 2, 1);
  const int norm = batch_norm2d(g, twice);
  h = conv2d_general(g, add(g, twice, norm), conv2d_shape(1, 1, 1, 1, 5, 3, 3, 1, 1));
  h = batch_norm2d(g, relu(g, batch_norm2d(g, h)));
  graph_loss(g, &cross_entropy_loss, linear(g, h, CLASSES), 1);
  return g;
}

/* Every parameter random, variances and gammas positive. */
static void open_trained(Model *m, Device device) {
  sgd_model_open(m, network(), device, BATCH);
  float *host = batch_norm2d_fold_host(m);
  int node = 0, index = 0;
  uint32_t stream = 1;
  const Param *p;
  while ((p = model_next_param(m, &node, &index)) != NULL) {
    const int positive = strstr(p->name, "running_var") != NULL;
    random_fill(batch_norm2d_fold_at(m, host, p), p->count, stream++, positive ? 0.2f : -0.5f, positive ? 2 : 0.75f);
  }
  device_upload(device, m->parameters, host, m->parameter_count * sizeof(float));
  device_upload(device, m->buffers, host + m->parameter_count, m->buffer_count * sizeof(float));
  free(host);
}

static void evaluate(Model *m, float *logits) {
  float x[BATCH * PIXELS];
  int labels[BATCH] = {0, 1, 2, 0, 1};
  random_fill(x, BATCH * PIXELS, 99, -1, 2);
  device_upload(m->context.device, model_input(m, 0), x, sizeof x);
  device_upload(m->context.device, model_labels(m), labels, sizeof labels);
  model_evaluate_step(m, BATCH);
  device_download(m->context.device, logits, model_logits(m, 0), BATCH * CLASSES * sizeof(float));
}

static int norms(const Graph *g) {
  int count = 0;
  for (int i = 0; i < g->count; i++) count += batch_norm2d_is(&g->nodes[i]);
  return count;
}

static void check_fold(Device device) {
  Error err;
  Model trained, folded;
  float expected[BATCH * CLASSES], got[BATCH * CLASSES];
  open_trained(&trained, device);
  if (batch_norm2d_fold_open(&folded, &trained, BATCH, &err) != 0) fail_msg("%s", err.message);
  assert_int_equal(norms(trained.graph), 6);
  assert_int_equal(norms(folded.graph), 2); /* behind `twice`, and behind the ReLU */
  assert_non_null(model_find_param(&folded, "layer1.conv2.bias"));
  assert_null(model_find_param(&folded, "layer1.bn2.weight"));
  evaluate(&trained, expected);
  evaluate(&folded, got);
  assert_close(got, expected, BATCH * CLASSES, 1e-5, 2e-5);
  model_close(&folded);
  model_close(&trained);
}

static void a_folded_network_computes_the_same_cpu(void **state) {
  (void)state;
  check_fold(DEVICE_CPU);
}

static void a_folded_network_computes_the_same_gpu(void **state) {
  (void)state;
  test_requires_gpu();
  check_fold(DEVICE_GPU);
}

/* A model of another graph: a sentence, and it stays as it is. */
static void another_network_is_refused(void **state) {
  (void)state;
  Error err;
  Model trained, other;
  open_trained(&trained, DEVICE_CPU);
  Graph *g = graph_create();
  const int x = graph_input(g, "x", shape3(2, 9, 7));
  graph_loss(g, &cross_entropy_loss, linear(graph_name(g, "head"), x, CLASSES), 1);
  if (model_open(&other, g, trained.context, NULL, BATCH, MODEL_INFER, &err) != 0) fail_msg("%s", err.message);
  assert_int_equal(batch_norm2d_fold_parameters(&other, &trained, &err), -1);
  assert_non_null(strstr(err.message, "no parameter head.weight of 378 numbers"));
  model_close(&other);
  model_close(&trained);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_folded_network_computes_the_same_cpu),
      cmocka_unit_test(a_folded_network_computes_the_same_gpu),
      cmocka_unit_test(another_network_is_refused),
  };
  return TEST_MAIN("batch_norm2d_network", tests);
}
