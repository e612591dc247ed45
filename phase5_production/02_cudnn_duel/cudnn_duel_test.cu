/* The memory that is counted is the memory that is planned; and a mixture takes what is faster. */
#include "common/test.h"
#include "phase5_production/02_cudnn_duel/cudnn_duel_lesson.cuh"

static long kept(const Model *m) {
  const long weights = (long)(m->parameter_count * sizeof(float)), buffers = (long)(m->buffer_count * sizeof(float));
  return m->use == MODEL_TRAIN ? weights * (2 + m->optimizer->slots) + buffers : weights + buffers;
}

static MemoryCount check_memory(const Contest *c, const char *how) {
  Model m;
  Error err;
  if (duel_prepare(&m, c, how, &err) != 0) fail_msg("%s %s: %s", c->network->name, how, err.message);
  const MemoryCount count = duel_memory(&m);
  long at_peak = 0;
  for (int k = 0; k < MEMORY_KINDS; k++) at_peak += count.at_peak[k];
  assert_int_equal(count.peak, at_peak);
  assert_int_equal(count.sum, kept(&m)); /* what was taken for a step was given back */
  assert_int_equal(count.peak, kept(&m) + (long)m.plan.live_bytes);
  assert_true((double)count.peak <= model_bytes(&m));
  if (c->use == MODEL_INFER) assert_int_equal(count.at_peak[MEMORY_GRADIENTS] + count.at_peak[MEMORY_DIFFERENCES], 0);
  model_close(&m);
  return count;
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
      if (use == MODEL_TRAIN && n < 2) assert_true(theirs.peak > ours.peak); /* x and y of the pooling */
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
  duel_mix(&ours, &theirs, pairs.graph, words);
  assert_string_equal(words, "ours,conv1:cudnn");
  set_times(&theirs, 0.75, "conv1", 3);
  duel_mix(&ours, &theirs, pairs.graph, words);
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

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(memory_is_what_is_planned),
      cmocka_unit_test(a_mixture_takes_the_faster),
  };
  return TEST_MAIN("cudnn_duel", tests);
}
