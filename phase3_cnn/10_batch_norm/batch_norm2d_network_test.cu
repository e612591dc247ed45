/* Batch norm in networks: folded into the convolution before it, fused with what follows, refused where there is no
 * variance. */
#include "common/philox.h"
#include "common/test.h"
#include "phase1_building_blocks/10_softmax_cross_entropy/softmax_cross_entropy_op.cuh"
#include "phase2_mlp/03_mlp/linear_op.cuh"
#include "phase2_mlp/03_mlp/sgd_op.cuh"
#include "phase3_cnn/10_batch_norm/batch_norm2d_fold.cuh"
#include "phase3_cnn/11_residual/residual_block.cuh"

/* A sum with ReLU, as FUSE_BATCH_NORM_ADD_RELU expects it; it computes nothing by itself here. */
static const Op sum_relu_op = {"Add", 0, 0, NULL, NULL, op_passed, op_passed};
#define add_relu_op sum_relu_op

static const Fusion fusions[] = {
    FUSE_BATCH_NORM_RELU,
    {&add_op, &activation_ops[ACTIVATION_RELU], &sum_relu_op, &relu_passed_op, NULL},
    FUSE_BATCH_NORM_ADD_RELU,
};

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
  if (batch_norm2d_fold_open(&folded, batch_norm2d_fold_graph(trained.graph), &trained, BATCH, &err) != 0)
    fail_msg("%s", err.message);
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

/* Two residual blocks: in the first, the sum's other input comes after the batch norm that takes it. */
static Graph *blocks(int fused) {
  Graph *g = graph_create();
  int h = graph_input(g, "x", shape3(2, 9, 7));
  h = relu(g, batch_norm2d(g, conv2d_no_bias(g, h, 4, 3, 1, 1)));
  h = residual_block(g, "layer1", h, 6, 2);
  h = residual_block(g, "layer2", h, 6, 1);
  graph_output(g, h);
  graph_loss(g, &cross_entropy_loss, linear(g, h, CLASSES), 1);
  if (fused) graph_fuse(g, fusions, sizeof fusions / sizeof *fusions);
  return g;
}

static void open_blocks(Model *m, Device device, int fused) {
  float x[BATCH * PIXELS];
  int labels[BATCH] = {0, 1, 2, 0, 1};
  random_fill(x, BATCH * PIXELS, 99, -1, 2);
  sgd_model_open(m, blocks(fused), device, BATCH);
  model_init(m, 3);
  device_upload(device, model_input(m, 0), x, sizeof x);
  device_upload(device, model_labels(m), labels, sizeof labels);
}

/* By its name, from both models: gradient, parameter or buffer. */
static void compare_models(const Model *got, const Model *expected) {
  int node = 0, index = 0;
  const Param *p;
  while ((p = model_next_param(expected, &node, &index)) != NULL) {
    const Param *q = model_find_param(got, p->name);
    if (q == NULL || q->count != p->count) fail_msg("%s is not there", p->name);
    float *a = (float *)xmalloc((2 * p->count + 1) * sizeof *a), *b = a + p->count;
    for (int gradient = 0; gradient < (p->trained ? 2 : 1); gradient++) {
      device_download(got->context.device, a, gradient ? model_gradient(got, q) : model_param(got, q),
                      p->count * sizeof *a);
      device_download(expected->context.device, b, gradient ? model_gradient(expected, p) : model_param(expected, p),
                      p->count * sizeof *b);
      for (size_t i = 0; i < p->count; i++)
        if (!(fabsf(a[i] - b[i]) <= 1e-5f * (1 + fabsf(b[i]))))
          fail_msg("%s%s[%zu] is %g; %g by single operations", p->name, gradient ? "'s gradient" : "", i, a[i], b[i]);
    }
    free(a);
  }
}

static void check_fused(Device device) {
  Error err;
  Model fused, plain, folded;
  float logits[3][BATCH * CLASSES];
  open_blocks(&fused, device, 1);
  open_blocks(&plain, device, 0);
  for (int step = 0; step < 3; step++) {
    sgd_train_step(&fused, BATCH, 0.05f, 0.9f);
    sgd_train_step(&plain, BATCH, 0.05f, 0.9f);
    compare_models(&fused, &plain);
  }
  if (batch_norm2d_fold_open(&folded, batch_norm2d_fold_graph(fused.graph), &fused, BATCH, &err) != 0)
    fail_msg("%s", err.message);
  assert_int_equal(norms(folded.graph), 0);
  Model *const all[] = {&fused, &plain, &folded};
  for (int i = 0; i < 3; i++) {
    evaluate(all[i], logits[i]);
    assert_close(logits[i], logits[0], BATCH * CLASSES, 2e-5, 5e-5);
    model_close(all[i]);
  }
}

static void fused_networks_compute_the_same_cpu(void **state) {
  (void)state;
  check_fused(DEVICE_CPU);
}

static void fused_networks_compute_the_same_gpu(void **state) {
  (void)state;
  test_requires_gpu();
  check_fused(DEVICE_GPU);
}

static int count_op(const Graph *g, const Op *op) {
  int count = 0;
  for (int i = 0; i < g->count; i++) count += g->nodes[i].op == op;
  return count;
}

/* Which nodes are fused; names and parameters stay, and graph_unfuse() brings everything back. */
static void fusing_can_be_undone(void **state) {
  (void)state;
  Graph *plain = blocks(0), *fused = blocks(1);
  assert_int_equal(fused->count, plain->count);
  assert_int_equal(count_op(fused, &batch_norm2d_relu_op), 3);
  assert_int_equal(count_op(fused, &batch_norm2d_add_relu_op), 2);
  assert_int_equal(count_op(fused, &batch_norm2d_op), 1); /* the shortcut's */
  assert_int_equal(count_op(fused, &add_op) + count_op(fused, &activation_ops[ACTIVATION_RELU]), 0);
  for (int i = 0; i < fused->count; i++)
    for (int k = 0; k < fused->nodes[i].inputs; k++) assert_true(fused->nodes[i].input[k] < i);
  assert_string_equal(fused->nodes[fused->outputs[0]].name, plain->nodes[plain->outputs[0]].name);
  graph_unfuse(fused);
  for (int i = 0; i < plain->count; i++) {
    const Node *a = &plain->nodes[i], *b = &fused->nodes[graph_find(fused, a->name)];
    assert_ptr_equal(a->op, b->op);
    assert_int_equal(a->inputs, b->inputs);
    assert_int_equal(a->order, b->order);
    for (int k = 0; k < a->inputs; k++) /* the sum may have them the other way round */
      assert_true(strcmp(plain->nodes[a->input[k]].name, fused->nodes[b->input[k]].name) == 0 || a->inputs == 2);
  }
  graph_destroy(plain);
  graph_destroy(fused);
}

/* What another node or people read as well is not fused. */
static void what_is_read_twice_is_not_fused(void **state) {
  (void)state;
  for (int who = 0; who < 3; who++) {
    Graph *g = graph_create();
    const int x = graph_input(g, "x", shape3(2, 3, 3)), norm = batch_norm2d(g, x);
    const int sum = add(g, x, norm);
    relu(g, sum);
    if (who == 0) graph_output(g, norm);
    if (who == 1) graph_output(g, sum);
    graph_fuse(g, fusions, sizeof fusions / sizeof *fusions);
    assert_int_equal(count_op(g, &batch_norm2d_add_relu_op), who == 2);
    graph_destroy(g);
  }
}

/* Two values per channel are enough; one is not, and is refused before anything is allocated. */
static void one_value_per_channel_is_refused(void **state) {
  (void)state;
  Error err;
  for (int pixels = 1; pixels <= 2; pixels++)
    for (int batch = 1; batch <= 2; batch++) {
      Model m;
      Context context;
      memset(&context, 0, sizeof context);
      Graph *g = graph_create();
      const int x = graph_input(g, "x", shape3(3, 1, pixels));
      graph_loss(g, &cross_entropy_loss, linear(g, batch_norm2d(g, x), CLASSES), 1);
      assert_int_equal(model_check_batch(g, batch, &err), batch * pixels == 1 ? -1 : 0);
      if (model_open(&m, g, context, &sgd, batch, MODEL_TRAIN, &err) == 0) {
        assert_true(batch * pixels > 1);
        model_close(&m);
        continue;
      }
      assert_int_equal(batch * pixels, 1);
      assert_non_null(strstr(err.message,
                             "bn1 has the shape (3,1,1) and would get a batch of 1 in training, which is 1 value per "
                             "channel; expected at least 2"));
    }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_folded_network_computes_the_same_cpu),
      cmocka_unit_test(a_folded_network_computes_the_same_gpu),
      cmocka_unit_test(another_network_is_refused),
      cmocka_unit_test(fused_networks_compute_the_same_cpu),
      cmocka_unit_test(fused_networks_compute_the_same_gpu),
      cmocka_unit_test(fusing_can_be_undone),
      cmocka_unit_test(what_is_read_twice_is_not_fused),
      cmocka_unit_test(one_value_per_channel_is_refused),
  };
  return TEST_MAIN("batch_norm2d_network", tests);
}
