/* The memory that is counted is the memory that is planned; and a mixture takes what is faster. */
#include "common/test.h"
#include "phase5_production/02_cudnn_duel/cudnn_duel_lesson.cuh"

static long kept(const Model *m) {
  const long weights = (long)(m->parameter_count * sizeof(float)), buffers = (long)(m->buffer_count * sizeof(float));
  return m->use == MODEL_TRAIN ? weights * (2 + m->optimizer->slots) + buffers : weights + buffers;
}

/* Without scratch memory: how much of that there is depends on the GPU, on its multiprocessors by ours, on its
 * algorithms by cuDNN's. */
static MemoryCount check_memory(const Contest *c, const char *how) {
  Model m;
  Error err;
  const size_t before = device_allocated(DEVICE_GPU).now;
  if (duel_open(&m, c, how, &err) != 0) fail_msg("%s %s: %s", c->network->name, how, err.message);
  assert_int_equal(device_allocated(DEVICE_GPU).now - before, duel_allocation(&m));
  const MemoryCount count = duel_memory(&m), without = duel_memory_without(&m, MEMORY_WORKSPACE);
  long at_peak = 0;
  for (int k = 0; k < MEMORY_KINDS; k++) at_peak += count.at_peak[k];
  assert_int_equal(count.peak, at_peak);
  assert_int_equal(count.sum, kept(&m)); /* what was taken for a step was given back */
  assert_int_equal(count.peak, kept(&m) + (long)m.plan.live_bytes);
  assert_true((size_t)count.peak <= duel_allocation(&m));
  assert_int_equal(without.at_peak[MEMORY_WORKSPACE], 0);
  assert_true(without.peak <= count.peak && without.peak >= count.peak - count.at_peak[MEMORY_WORKSPACE]);
  if (c->use == MODEL_INFER) assert_int_equal(count.at_peak[MEMORY_GRADIENTS] + count.at_peak[MEMORY_DIFFERENCES], 0);
  model_close(&m);
  assert_int_equal(device_allocated(DEVICE_GPU).now, before);
  return without;
}

static void memory_is_what_is_planned(void **unused) {
  (void)unused;
  test_requires_gpu();
  Error err;
  const int have = cudnn_load(&err) != NULL;
  for (int n = 0; n < DUEL_NETWORKS; n++)
    for (int use = MODEL_INFER; use <= MODEL_TRAIN; use++) {
      const Contest c = {duel_network(n), (ModelUse)use, 16};
      const MemoryCount ours = check_memory(&c, "ours");
      check_memory(&c, "pairs");
      if (!have) continue;
      const MemoryCount theirs = check_memory(&c, "cudnn");
      assert_int_equal(ours.at_peak[MEMORY_WEIGHTS], theirs.at_peak[MEMORY_WEIGHTS]);
      if (use == MODEL_TRAIN && n < 2) assert_true(theirs.peak > ours.peak); /* x and y of the pooling stay */
    }
}

/* What every part of a profile takes, in microseconds; `name` takes another time. */
static void set_times(Profile *p, double us, const char *name, double other) {
  for (int i = 0; i < p->parts.count; i++)
    p->row[i].alone = 1e-6 * (strcmp(p->parts.part[i].layer, name) == 0 ? other : us);
}

static void a_mixture_takes_the_faster(void **unused) {
  (void)unused;
  test_requires_gpu();
  Error err;
  if (cudnn_load(&err) == NULL) skip();
  const Contest c = {duel_network(0), MODEL_TRAIN, 2};
  Model pairs, library;
  Profile ours, theirs;
  const Task task = duel_task(&c);
  char words[IMPLEMENTATION_TEXT];
  if (duel_open(&pairs, &c, "pairs", &err) != 0 || duel_open(&library, &c, "cudnn", &err) != 0)
    fail_msg("%s", err.message);
  profile_open(&ours, &task, c.network->data, &pairs, c.batch, 1);
  profile_open(&theirs, &task, c.network->data, &library, c.batch, 1);
  set_times(&ours, 2, "", 0);
  set_times(&theirs, 2, "conv1", 1); /* relu1 and pool1 take 4 us, ours computes both in 2 */
  duel_mix(&ours, &theirs, pairs.graph, "pairs", words);
  assert_string_equal(words, "ours,conv1:cudnn");
  set_times(&theirs, 0.75, "conv1", 3);
  duel_mix(&ours, &theirs, pairs.graph, "pairs", words);
  assert_string_equal(words,
                      "ours,relu1:cudnn,pool1:cudnn,conv2:cudnn,relu2:cudnn,pool2:cudnn,relu3:cudnn,relu4:cudnn");
  profile_close(&ours);
  profile_close(&theirs);
  model_close(&pairs);
  model_close(&library);
  Graph *g;
  if (duel_graph(&g, &c, words, &err) != 0) fail_msg("%s", err.message);
  assert_ptr_equal(g->nodes[graph_find(g, "conv1")].op, &conv2d_op);
  assert_int_equal(implementation_of(&dnn_layer_choice, &g->nodes[graph_find(g, "conv2")]), 1);
  graph_destroy(g);
}

/* A convolution that --conv has chosen is taken by cuDNN where that is faster, and stays elsewhere. */
static void a_mixture_takes_over_what_was_chosen(void **unused) {
  (void)unused;
  test_requires_gpu();
  Error err;
  if (cudnn_load(&err) == NULL) skip();
  const Contest c = {duel_network(0), MODEL_TRAIN, 2};
  const Task task = duel_task(&c);
  const char *const chosen = "ours,conv1:im2col,conv2:implicit_gemm";
  Model ours, library;
  Profile mine, theirs;
  char words[IMPLEMENTATION_TEXT];
  if (duel_open(&ours, &c, chosen, &err) != 0 || duel_open(&library, &c, "cudnn", &err) != 0)
    fail_msg("%s", err.message);
  assert_ptr_equal(ours.graph->nodes[graph_find(ours.graph, "conv1")].op, &conv2d_im2col_op.op);
  profile_open(&mine, &task, c.network->data, &ours, c.batch, 1);
  profile_open(&theirs, &task, c.network->data, &library, c.batch, 1);
  set_times(&mine, 2, "", 0);
  set_times(&theirs, 2, "conv1", 1);
  duel_mix(&mine, &theirs, ours.graph, chosen, words);
  assert_string_equal(words, "ours,conv1:im2col,conv2:implicit_gemm,conv1:cudnn");
  profile_close(&mine);
  profile_close(&theirs);
  model_close(&ours);
  model_close(&library);
  Graph *g;
  if (duel_graph(&g, &c, words, &err) != 0) fail_msg("%s", err.message);
  assert_int_equal(implementation_of(&dnn_layer_choice, &g->nodes[graph_find(g, "conv1")]), 1);
  assert_ptr_equal(g->nodes[graph_find(g, "conv2")].op, &conv2d_implicit_gemm_op.op);
  graph_destroy(g);
}

/* What auto says is a network of ours that can be opened. */
static void auto_is_a_contestant(void **unused) {
  (void)unused;
  test_requires_gpu();
  Error err;
  Model m;
  char words[IMPLEMENTATION_TEXT];
  const Contest c = {duel_network(0), MODEL_TRAIN, 2};
  duel_auto(&c, words);
  assert_true(strcmp(words, "pairs") == 0 || strncmp(words, "ours,conv1:", 11) == 0);
  if (duel_open(&m, &c, words, &err) != 0) fail_msg("%s: %s", words, err.message);
  for (int i = 0; i < m.graph->count; i++) assert_true(implementation_of(&dnn_layer_choice, &m.graph->nodes[i]) != 1);
  model_close(&m);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(memory_is_what_is_planned),
      cmocka_unit_test(a_mixture_takes_the_faster),
      cmocka_unit_test(a_mixture_takes_over_what_was_chosen),
      cmocka_unit_test(auto_is_a_contestant),
  };
  return TEST_MAIN("cudnn_duel", tests);
}
