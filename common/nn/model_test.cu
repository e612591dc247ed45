/* Models: random graphs, trained in one arena that begins as NaN, against the same graphs in double, each array its
 * own; their memory; the optimizer. */
#include <math.h>
#include <pthread.h>

#include "common/nn/test_ops.h"

enum { WIDTH = 5, BATCH = 3, MAX_NODES = 24 };

/* ---- random graphs ---- */

/* Numbers of a graph's own. */
typedef struct Dice {
  uint64_t seed;
  uint32_t count;
} Dice;
static int roll(Dice *dice, int sides) { return (int)(philox4x32(dice->seed, 7, dice->count++).word[0] % sides); }

/* One or two inputs, up to 20 operations that read anything before them, some of them frozen, up to three losses. */
static Graph *random_graph(uint64_t seed) {
  Dice dice = {seed, 0};
  Graph *g = graph_create();
  graph_input(g, "x", shape1(WIDTH));
  if (roll(&dice, 2)) graph_input(g, "z", shape1(WIDTH));
  one(g, SCALE, roll(&dice, g->count));
  const int count = g->count + 1 + roll(&dice, 19);
  while (g->count < count) {
    const Kind kind = (Kind)roll(&dice, KINDS);
    int inputs[3];
    for (int k = 0; k < 3; k++) inputs[k] = roll(&dice, 3) ? g->count - 1 : roll(&dice, g->count);
    const int node = add_node(g, kind, inputs);
    if (roll(&dice, 3) == 0) graph_freeze(g, node);
  }
  const int losses = 1 + roll(&dice, 3);
  for (int l = 0; l < losses; l++) {
    const int node = l == 0 ? g->count - 1 : roll(&dice, g->count);
    int taken = g->nodes[node].op == NULL;
    for (int i = 0; i < l && i < g->loss_count; i++) taken |= g->losses[i].node == node;
    if (!taken) graph_loss(g, &distance, node, 0.5f + 0.25f * (float)l);
  }
  if (roll(&dice, 2)) graph_output(g, roll(&dice, g->count));
  return g;
}

/* The same in double, every array its own. */
typedef struct Reference {
  double y[MAX_NODES][BATCH * WIDTH], dy[MAX_NODES][BATCH * WIDTH], dw[MAX_NODES][WIDTH];
  double loss[GRAPH_MAX_LOSSES];
} Reference;

static float value(uint32_t stream, int i) { return 2 * philox_uniform(philox4x32(11, stream, i).word[0]) - 1; }
static float input_value(int input, int i) { return value(input, i); }
static float target_value(int loss, int i) { return value(100 + loss, i); }

/* parameters: those that are trained, then the frozen ones. */
static float reference_weight(const Node *node, const float *parameters, size_t trained, int i) {
  const Param *w = &node->param[0];
  return node->params ? parameters[(w->trained ? 0 : trained) + w->offset + i % WIDTH] : 0;
}

static void reference_run(Reference *r, const Graph *g, const float *parameters, size_t trained) {
  memset(r, 0, sizeof *r);
  int input = 0;
  for (int n = 0; n < g->count; n++) {
    const Node *node = &g->nodes[n];
    const int kind = node->op ? *(const int *)node->attributes.bytes : 0;
    for (int i = 0; i < BATCH * WIDTH; i++) {
      double x[3] = {0, 0, 0};
      for (int k = 0; k < node->inputs; k++) x[k] = r->y[node->input[k]][i];
      const double w = reference_weight(node, parameters, trained, i);
      r->y[n][i] = node->op ? element_forward(kind, x[0], x[1], x[2], w) : input_value(input, i);
    }
    input += node->op == NULL;
  }
  for (int l = 0; l < g->loss_count; l++)
    for (int i = 0; i < BATCH * WIDTH; i++) {
      const double d = r->y[g->losses[l].node][i] - target_value(l, i);
      r->loss[l] += d * d / 2;
      r->dy[g->losses[l].node][i] += d * g->losses[l].weight / BATCH;
    }
  for (int n = g->count - 1; n >= 0; n--) {
    const Node *node = &g->nodes[n];
    const int kind = node->op ? *(const int *)node->attributes.bytes : 0;
    for (int i = 0; node->op && i < BATCH * WIDTH; i++) {
      const double a = r->y[node->input[0]][i], b = node->inputs > 1 ? r->y[node->input[1]][i] : 0;
      const double w = reference_weight(node, parameters, trained, i);
      for (int k = 0; k < node->inputs; k++)
        r->dy[node->input[k]][i] += r->dy[n][i] * element_slope(kind, k, a, b, r->y[n][i], w);
      if (kind == SCALE) r->dw[n][i % WIDTH] += r->dy[n][i] * a;
    }
  }
}

/* Poison first: what is read before it is written shows. */
static void poison_and_fill(const Model *m) {
  unsigned char *poison = (unsigned char *)xmalloc(m->plan.arena_bytes);
  memset(poison, 0xFF, m->plan.arena_bytes);
  device_upload(m->context.device, m->arena, poison, m->plan.arena_bytes);
  free(poison);
  int inputs = 0;
  for (int n = 0; n < m->graph->count; n++) inputs += m->graph->nodes[n].op == NULL;
  float values[BATCH * WIDTH];
  for (int input = 0; input < inputs; input++) {
    for (int i = 0; i < BATCH * WIDTH; i++) values[i] = input_value(input, i);
    device_upload(m->context.device, model_input(m, input), values, sizeof values);
  }
  for (int l = 0; l < m->graph->loss_count; l++) {
    for (int i = 0; i < BATCH * WIDTH; i++) values[i] = target_value(l, i);
    device_upload(m->context.device, model_targets(m, l), values, sizeof values);
  }
}

static void check_outputs(const Model *m, const Reference *r, uint64_t seed) {
  float y[BATCH * WIDTH];
  for (int n = 0; n < m->graph->count; n++) {
    if (!graph_is_output(m->graph, n)) continue;
    device_download(m->context.device, y, model_output(m, n), sizeof y);
    for (int i = 0; i < BATCH * WIDTH; i++)
      if (!(fabs(y[i] - r->y[n][i]) <= 5e-4 * (1 + fabs(r->y[n][i]))))
        fail_msg("graph %d, %s[%d] = %g, expected %g", (int)seed, m->graph->nodes[n].name, i, (double)y[i], r->y[n][i]);
  }
  for (int l = 0; l < m->graph->loss_count; l++) {
    const double loss = model_read_totals(m, l).loss;
    if (!(fabs(loss - r->loss[l]) <= 5e-4 * (1 + r->loss[l])))
      fail_msg("graph %d, loss %d = %g, expected %g", (int)seed, l, loss, r->loss[l]);
  }
}

/* Sums of sums and products of products grow: float cannot follow double through large numbers. */
static int grows(const Reference *r, const Graph *g) {
  for (int n = 0; n < g->count; n++)
    for (int i = 0; i < BATCH * WIDTH; i++)
      if (fabs(r->y[n][i]) > 50 || fabs(r->dy[n][i]) > 50) return 1;
  return 0;
}

/* 0 where the graph's numbers grow too large to compare. */
static int check_random_graph(Device device, uint64_t seed) {
  static Reference r;
  Model m;
  open_or_fail(&m, random_graph(seed), device, BATCH + (int)(seed % 3), MODEL_TRAIN);
  model_init(&m, seed);
  const size_t trained = m.parameter_count;
  float *parameters = (float *)xmalloc((2 * trained + m.buffer_count) * sizeof(float));
  float *gradients = parameters + trained + m.buffer_count;
  device_download(device, parameters, m.parameters, trained * sizeof(float));
  device_download(device, parameters + trained, m.buffers, m.buffer_count * sizeof(float));
  reference_run(&r, m.graph, parameters, trained);
  if (grows(&r, m.graph)) {
    model_close(&m);
    free(parameters);
    return 0;
  }
  poison_and_fill(&m);
  for (int step = 0; step < 2; step++) { /* inputs and targets stay; between two steps there is an evaluation */
    model_evaluate_step(&m, BATCH);
    for (int l = 0; l < m.graph->loss_count; l++) {
      const Totals none = {0, 0};
      model_reset_totals(&m, l, none);
    }
    model_forward(&m, BATCH);
    model_score(&m, BATCH);
    model_backward(&m, BATCH);
  }
  check_outputs(&m, &r, seed);
  device_download(device, gradients, m.gradients, m.parameter_count * sizeof(float));
  for (int n = 0; n < m.graph->count; n++) {
    const Node *node = &m.graph->nodes[n];
    for (int i = 0; node->params && node->param[0].trained && i < WIDTH; i++) {
      const double got = gradients[node->param[0].offset + i], wanted = r.dw[n][i];
      if (!(fabs(got - wanted) <= 5e-4 * (1 + fabs(wanted))))
        fail_msg("graph %d, gradient of %s[%d] = %g, expected %g", (int)seed, node->param[0].name, i, got, wanted);
    }
  }
  model_close(&m);

  Model infer; /* the same answers in less memory */
  open_or_fail(&infer, random_graph(seed), device, BATCH, MODEL_INFER);
  model_init(&infer, seed);
  poison_and_fill(&infer);
  model_evaluate_step(&infer, BATCH);
  check_outputs(&infer, &r, seed);
  model_close(&infer);
  free(parameters);
  return 1;
}

static void random_graphs_cpu(void **unused) {
  (void)unused;
  int checked = 0;
  for (uint64_t seed = 0; seed < 2000; seed++) checked += check_random_graph(DEVICE_CPU, seed);
  print_message("%d of 2000 random graphs checked\n", checked);
  assert_true(checked > 1500);
}

static void random_graphs_gpu(void **unused) {
  (void)unused;
  test_requires_gpu();
  int checked = 0;
  for (uint64_t seed = 0; seed < 40; seed++) checked += check_random_graph(DEVICE_GPU, seed);
  assert_true(checked > 25);
}

/* ---- side by side ---- */

enum { SIDE_GRAPHS = 6, SIDE_FLOATS = MAX_NODES * WIDTH };

/* A thread of its own, with a GPU of its own where there are two. */
typedef struct Side {
  pthread_t thread;
  int gpu, device_seen;
  float gradients[SIDE_GRAPHS][SIDE_FLOATS];
} Side;

static void *side_run(void *argument) {
  Side *side = (Side *)argument;
  Context context = context_on(DEVICE_GPU);
  context.gpu = side->gpu;
  for (int i = 0; i < SIDE_GRAPHS; i++) {
    Error err;
    Model m;
    if (model_open(&m, random_graph(100 + i), context, &plain, BATCH, MODEL_TRAIN, &err) != 0) die("%s", err.message);
    model_init(&m, i);
    poison_and_fill(&m);
    model_forward(&m, BATCH);
    model_backward(&m, BATCH);
    memset(side->gradients[i], 0, sizeof side->gradients[i]);
    device_download(DEVICE_GPU, side->gradients[i], m.gradients, m.parameter_count * sizeof(float));
    model_close(&m);
  }
  CUDA_CHECK(cudaGetDevice(&side->device_seen));
  return NULL;
}

/* Two models in two host threads, on two GPUs where there are two, give the bits that one alone gives. */
static void two_threads_and_devices_do_not_meet(void **unused) {
  (void)unused;
  static Side alone, side[2];
  int devices = 0;
  test_requires_gpu();
  CUDA_CHECK(cudaGetDeviceCount(&devices));
#ifdef SIMT_REWRITTEN
  assert_int_equal(devices, 2);
#endif
  side_run(&alone);
  for (int i = 0; i < 2; i++) {
    side[i].gpu = i < devices ? i : 0;
    assert_int_equal(pthread_create(&side[i].thread, NULL, side_run, &side[i]), 0);
  }
  for (int i = 0; i < 2; i++) {
    assert_int_equal(pthread_join(side[i].thread, NULL), 0);
    assert_int_equal(side[i].device_seen, side[i].gpu);
    assert_memory_equal(side[i].gradients, alone.gradients, sizeof alone.gradients);
  }
}

static void no_step(const Context *context, float *w, float *const *slot, const float *gradients, size_t n,
                    size_t decayed, const Hyper *hyper) {
  (void)context, (void)w, (void)slot, (void)gradients, (void)n, (void)decayed, (void)hyper;
}
static const Optimizer none = {"none", 0, {NULL}, no_step, 0, NULL, NULL};

static void expect_gpu(int gpu, int other) {
  int seen = -1;
  CUDA_CHECK(cudaGetDevice(&seen));
  assert_int_equal(seen, gpu);
  CUDA_CHECK(cudaSetDevice(other));
}

/* One thread that has models on two GPUs: each call works on the GPU of its model, whichever was used before. */
static void a_call_uses_the_gpu_of_its_model(void **unused) {
  (void)unused;
  int devices = 0;
  test_requires_gpu();
  CUDA_CHECK(cudaGetDeviceCount(&devices));
  if (devices < 2) skip();
  Error err;
  Model m;
  const Totals zero = {0, 0};
  Context context = context_on(DEVICE_GPU);
  context.gpu = 1;
  if (model_open(&m, random_graph(100), context, &none, BATCH, MODEL_TRAIN, &err) != 0) fail_msg("%s", err.message);
  expect_gpu(1, 0);
  model_init(&m, 1);
  expect_gpu(1, 0);
  poison_and_fill(&m);
  model_reset_totals(&m, 0, zero);
  expect_gpu(1, 0);
  model_forward(&m, BATCH);
  expect_gpu(1, 0);
  model_score(&m, BATCH);
  expect_gpu(1, 0);
  model_backward(&m, BATCH);
  expect_gpu(1, 0);
  model_update(&m);
  expect_gpu(1, 0);
  assert_true(model_read_totals(&m, 0).loss > 0);
  expect_gpu(1, 0);
  model_close(&m);
  expect_gpu(1, 0);
}

/* ---- memory ---- */

/* A chain of 50 bends is one array, and its gradients another. */
static void what_works_in_place_shares_its_bytes(void **unused) {
  (void)unused;
  Model m;
  Graph *g = graph_create();
  int x = one(g, SCALE, graph_input(g, "x", shape1(1024)));
  for (int i = 0; i < 50; i++) x = two(g, ADD, x, 0);
  graph_loss(g, &distance, x, 1);
  open_or_fail(&m, g, DEVICE_CPU, 64, MODEL_TRAIN);
  const size_t array = 1024 * 64 * sizeof(float);
  assert_true(m.plan.arena_bytes < 4.1 * array); /* x, target, the chain, its gradient */
  for (int i = 2; i < m.graph->count; i++) assert_int_equal(m.plan.node[i].in_place, 1);
  model_close(&m);
}

/* What nobody reads in backward is gone by then; what somebody does is not. */
static void backward_keeps_what_it_needs(void **unused) {
  (void)unused;
  Model m;
  Graph *g = graph_create();
  int x = graph_input(g, "x", shape1(100));
  const int kept = one(g, SCALE, x), bent = one(g, BEND, kept), waved = one(g, WAVE, bent);
  graph_loss(g, &distance, waved, 1);
  open_or_fail(&m, g, DEVICE_CPU, 8, MODEL_TRAIN);
  assert_int_equal(m.plan.node[bent].in_place, 1);  /* SCALE's backward reads its input, BEND's its output */
  assert_int_equal(m.plan.node[waved].in_place, 0); /* WAVE's backward reads its input, BEND's the same array */
  assert_true(plan_kept_bytes(&m.plan, kept) > 0);
  assert_int_equal(plan_kept_bytes(&m.plan, bent), 0); /* counted with `kept` */
  model_close(&m);
}

/* What leads to no loss keeps nothing for backward, and its parameters stay as they are: nothing decays them. */
static void a_branch_without_a_loss_stays(void **unused) {
  (void)unused;
  Model m;
  Graph *g = graph_create();
  const int x = graph_input(g, "x", shape1(WIDTH)), learns = one(g, SCALE, x);
  const int dead = one(g, SCALE, learns), bent = one(g, BEND, dead), waved = one(g, WAVE, bent);
  graph_loss(g, &distance, learns, 1);
  open_or_fail(&m, g, DEVICE_CPU, BATCH, MODEL_TRAIN);
  assert_int_equal(m.plan.node[dead].trains, 0);
  assert_int_equal(m.plan.node[waved].in_place, 1);
  assert_int_equal(plan_kept_bytes(&m.plan, dead), 0);
  model_init(&m, 1);
  poison_and_fill(&m);
  const float *w = model_param(&m, model_find_param(&m, "scale1.weight"));
  const float *still = model_param(&m, model_find_param(&m, "scale2.weight"));
  const float w_before = w[0], before = still[0];
  m.hyper.lr = 0.1f;
  m.hyper.weight_decay = 0.3f;
  model_train_step(&m, BATCH);
  assert_true(w[0] != w_before);
  assert_true(still[0] == before);
  model_close(&m);
}

/* An input that is smaller than the output (a sum over a broadcast input, say) does not lie over it, nor dx over dy. */
static void another_shape_is_another_array(void **unused) {
  (void)unused;
  Model m;
  Graph *g = graph_create();
  const int small = one(g, SCALE, graph_input(g, "x", shape1(1)));
  const int inputs[] = {small, one(g, SCALE, graph_input(g, "z", shape1(WIDTH)))}, kind = ADD;
  const int sum = graph_node(g, &ops[ADD], "add", inputs, 2, shape1(WIDTH), &kind, sizeof kind);
  graph_loss(g, &distance, sum, 1);
  open_or_fail(&m, g, DEVICE_CPU, BATCH, MODEL_TRAIN);
  assert_int_not_equal(m.plan.node[sum].output, m.plan.node[small].output);
  assert_int_not_equal(m.plan.node[sum].gradient, m.plan.node[small].gradient);
  model_close(&m);
}

/* Arrays that live at the same time never share a byte, and the arena is hardly larger than what lives at once. */
static void arrays_that_live_together_do_not_overlap(void **unused) {
  (void)unused;
  double worst = 1, sum = 0;
  enum { GRAPHS = 500 };
  for (uint64_t seed = 0; seed < GRAPHS; seed++) {
    Model m;
    open_or_fail(&m, random_graph(seed), DEVICE_CPU, 1 + (int)(seed % 40), seed & 1 ? MODEL_TRAIN : MODEL_INFER);
    for (int i = 0; i < m.plan.count; i++)
      for (int j = 0; j < i; j++) {
        const PlanArray *a = &m.plan.arrays[i], *b = &m.plan.arrays[j];
        assert_true(a->offset + a->bytes <= m.plan.arena_bytes);
        if (plan_together(a, b)) assert_true(a->offset + a->bytes <= b->offset || b->offset + b->bytes <= a->offset);
      }
    const double ratio = (double)m.plan.arena_bytes / (double)m.plan.live_bytes;
    if (ratio > worst) worst = ratio;
    sum += ratio;
    model_close(&m);
  }
  print_message("arena / bytes alive at once, of %d random graphs: %.3f on average, %.3f at worst\n", GRAPHS,
                sum / GRAPHS, worst);
  assert_true(sum / GRAPHS < 1.02 && worst <= 1.25);
}

/* ---- the optimizer ---- */

static void weight_decay_reaches_what_is_decayed(void **unused) {
  (void)unused;
  Model m;
  Graph *g = graph_create();
  int x = graph_input(g, "x", shape1(2));
  const int first = one(g, SCALE, x), second = one(g, SCALE, first), third = one(g, SCALE, second);
  g->nodes[first].param[0].decayed = 0;
  graph_freeze(g, second); /* neither gradient nor step */
  graph_loss(g, &distance, third, 1);
  open_or_fail(&m, g, DEVICE_CPU, 1, MODEL_TRAIN);
  assert_int_equal(m.parameter_count, 4);
  assert_int_equal(m.decayed_count, 2);
  assert_int_equal(m.buffer_count, 2);
  model_init(&m, 1);
  const float *w1 = model_param(&m, model_find_param(&m, "scale1.weight"));
  const float *w2 = model_param(&m, model_find_param(&m, "scale2.weight"));
  const float *w3 = model_param(&m, model_find_param(&m, "scale3.weight"));
  assert_ptr_equal(w3, m.parameters);
  assert_ptr_equal(w1, m.parameters + 2);
  assert_ptr_equal(w2, m.buffers);
  const float before[] = {w1[0], w2[0], w3[0]};
  const float input[] = {0.5f, 0.25f}, target[] = {1, 2};
  memcpy(model_input(&m, 0), input, sizeof input);
  memcpy(model_targets(&m, 0), target, sizeof target);
  m.hyper.lr = 0.1f;
  m.hyper.weight_decay = 0.3f;
  model_train_step(&m, 1);
  const float y = before[0] * before[1] * before[2] * input[0], d = y - target[0];
  const float expected1 = before[0] - 0.1f * d * before[1] * before[2] * input[0];
  const float expected3 = before[2] - 0.1f * (d * before[1] * before[0] * input[0] + 0.3f * before[2]);
  assert_true(fabsf(w1[0] - expected1) < 1e-6f);
  assert_true(w2[0] == before[1]);
  assert_true(fabsf(w3[0] - expected3) < 1e-6f);
  assert_int_equal(m.context.step, 1);
  model_close(&m);
}

static void the_summary_adds_up(void **unused) {
  (void)unused;
  Model m;
  char text[4096];
  Graph *g = random_graph(3);
  graph_freeze(g, graph_find(g, "scale1")); /* no parameter that is trained */
  open_or_fail(&m, g, DEVICE_CPU, 2, MODEL_TRAIN);
  assert_true(m.buffer_count > 0);
  FILE *file = fmemopen(text, sizeof text, "w");
  model_print_summary(file, &m);
  fclose(file);
  char parameters[64];
  snprintf(parameters, sizeof parameters, " %zu ", m.parameter_count);
  const char *sum = strstr(text, "\nsum ");
  assert_non_null(sum);
  assert_non_null(strstr(sum, parameters));
  assert_non_null(strstr(text, "scale1 "));
  double training, inference;
  assert_int_equal(sscanf(strstr(sum, "training, batch 2: "), "training, batch 2: %lf MiB", &training), 1);
  assert_int_equal(sscanf(strstr(sum, "inference, batch 2: "), "inference, batch 2: %lf MiB", &inference), 1);
  assert_true(fabs(training - model_bytes(&m) / 1048576) < 0.006 && training >= inference);
  model_close(&m);

  /* What it says of inference is what a model for it takes; so it is before anything is allocated. */
  Error err;
  Model prepared;
  if (model_prepare(&prepared, random_graph(3), context_on(DEVICE_CPU), &plain, 2, MODEL_TRAIN, &err) != 0)
    fail_msg("%s", err.message);
  assert_null(prepared.arena);
  const double before = model_bytes(&prepared), infer = model_inference_bytes(&prepared);
  model_close(&prepared);
  open_or_fail(&m, random_graph(3), DEVICE_CPU, 2, MODEL_TRAIN);
  assert_true(model_bytes(&m) == before);
  model_close(&m);
  open_or_fail(&m, random_graph(3), DEVICE_CPU, 2, MODEL_INFER);
  assert_true(model_bytes(&m) == infer && infer < before);
  model_close(&m);
}

/* Nothing is allocated, and no CUDA call ends the program. */
static void a_gpu_that_is_not_there_is_an_error(void **unused) {
  (void)unused;
  const int wrong[] = {99, -1};
  test_requires_gpu();
  for (int i = 0; i < 2; i++) {
    Error err;
    Model m;
    Context context = context_on(DEVICE_GPU);
    context.gpu = wrong[i];
    assert_int_equal(model_open(&m, random_graph(3), context, &plain, 2, MODEL_TRAIN, &err), -1);
    char expected[64];
    snprintf(expected, sizeof expected, "a model on GPU %d, and this machine has ", wrong[i]);
    if (strstr(err.message, expected) == NULL) fail_msg("%s", err.message);
  }
}

static void what_else_is_needed_counts(void **unused) {
  (void)unused;
  Error err;
  Model m;
  const double memory = device_memory(DEVICE_CPU);
  if (model_prepare(&m, random_graph(3), context_on(DEVICE_CPU), &plain, 2, MODEL_TRAIN, &err) != 0)
    fail_msg("%s", err.message);
  assert_int_equal(model_allocate(&m, memory, &err), -1);
  assert_non_null(strstr(err.message, ", and its data set "));
  assert_null(m.graph);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(random_graphs_cpu),
      cmocka_unit_test(what_works_in_place_shares_its_bytes),
      cmocka_unit_test(backward_keeps_what_it_needs),
      cmocka_unit_test(a_branch_without_a_loss_stays),
      cmocka_unit_test(another_shape_is_another_array),
      cmocka_unit_test(arrays_that_live_together_do_not_overlap),
      cmocka_unit_test(weight_decay_reaches_what_is_decayed),
      cmocka_unit_test(the_summary_adds_up),
      cmocka_unit_test(what_else_is_needed_counts),
      cmocka_unit_test(a_gpu_that_is_not_there_is_an_error),
      cmocka_unit_test(random_graphs_gpu),
      cmocka_unit_test(two_threads_and_devices_do_not_meet),
      cmocka_unit_test(a_call_uses_the_gpu_of_its_model),
  };
  return TEST_MAIN("model", tests);
}
