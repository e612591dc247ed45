/* Implementations by name: for all nodes, for one, by measuring; mistakes are named. */
#include "common/nn/implementation.h"

#include "common/nn/test_net.h"
#include "common/test.h"

static int slow_calls;

/* So slow that no measurement can doubt it. */
static void slow_forward(const Context *context, const Node *node, const OpArrays *a) {
  const struct timespec nap = {0, 3 * 1000 * 1000};
  nanosleep(&nap, NULL);
  slow_calls++;
  test_linear_forward(context, node, a);
}

static int fits_ten(const Implementation *implementation, const Node *node, Error *err) {
  if (shape_count(node->shape) == 10) return 0;
  return error_set(err, "%s has ten outputs, and this layer %zu: use plain", implementation->name,
                   shape_count(node->shape));
}

static const Op slow = {"Gemm", BACKWARD_NEEDS_X, 0, NULL, NULL, slow_forward, test_linear_backward};
static const Implementation list[] = {
    {"slow", &slow, NULL}, {"plain", &test_linear, NULL}, {"ten", &test_linear_reversed, fits_ten}};
static const OpChoice choice = {"linear", list, 3};

/* fc1 to 31, fc2 to 10; both slow, as the first of the list. */
static Graph *two_layers(void) {
  Graph *g = graph_create();
  int x = graph_input(g, "x", shape1(7));
  x = test_net_layer(g, x, 31);
  x = test_net_layer(g, x, 10);
  graph_loss(g, &test_loss, x, 1);
  for (int i = 1; i < 3; i++) g->nodes[i].op = &slow;
  return g;
}

static void expect_choice(const char *text, const char *expected) {
  Error err;
  Graph *g = two_layers();
  const int fastest[] = {-1, 1, 1};
  char chosen[IMPLEMENTATION_TEXT];
  if (implementation_apply(&choice, text, g, fastest, &err) != 0) fail_msg("%s: %s", text, err.message);
  implementation_text(&choice, g, chosen);
  assert_string_equal(chosen, expected);
  graph_destroy(g);
}

static void words_choose_from_left_to_right(void **unused) {
  (void)unused;
  expect_choice("", "fc1:slow,fc2:slow");
  expect_choice("plain", "fc1:plain,fc2:plain");
  expect_choice("fc2:plain", "fc1:slow,fc2:plain");
  expect_choice("plain,fc1:slow", "fc1:slow,fc2:plain");
  expect_choice("fc1:slow,plain", "fc1:plain,fc2:plain");
  expect_choice("auto,fc2:slow", "fc1:plain,fc2:slow");
  expect_choice("fc1:auto", "fc1:plain,fc2:slow");
  expect_choice("ten", "fc1:slow,fc2:ten"); /* where it fits */
}

static void expect_mistake(const char *text, const char *sentence) {
  Error err;
  Graph *g = two_layers();
  if (implementation_apply(&choice, text, g, NULL, &err) == 0) fail_msg("%s was accepted", text);
  if (strstr(err.message, sentence) == NULL) fail_msg("%s", err.message);
  graph_destroy(g);
}

static void mistakes_are_named(void **unused) {
  (void)unused;
  Error err;
  expect_mistake("quick", "--linear: unknown implementation \"quick\"; expected slow, plain, ten or auto");
  expect_mistake("fc2:", "unknown implementation \"\"");
  expect_mistake("fc3:plain", "--linear=fc3:plain: the network has no such node; --summary lists them");
  expect_mistake("x:plain", "the network has no such node");
  expect_mistake("fc1:auto", "--linear=fc1:auto: nothing was measured here; expected slow, plain, ten"); /* a file */
  expect_mistake("fc1:ten", "--linear=fc1:ten: ten has ten outputs, and this layer 31: use plain");
  expect_mistake("plain,fc1:ten", "--linear=fc1:ten: ten has ten outputs");
  assert_int_equal(implementation_check(&choice, "", &err), -1);
  assert_non_null(strstr(err.message, "slow, plain, ten or auto"));
  assert_int_equal(implementation_check(&choice, "fc1:plain,auto", &err), 0);
  assert_int_equal(implementation_check(&choice, "fc1:fast", &err), -1);
}

static Context context_on(Device device) {
  Context context;
  memset(&context, 0, sizeof context);
  context.device = device;
  return context;
}

/* The slow one loses; the one that does not fit fc1 is not tried there. */
static void check_measuring(Device device, ModelUse use) {
  Error err;
  Graph *g = two_layers();
  static char said[4096];
  char chosen[IMPLEMENTATION_TEXT];
  memset(said, 0, sizeof said);
  FILE *out = fmemopen(said, sizeof said - 1, "w");
  slow_calls = 0;
  if (implementation_choose(&choice, "auto", g, context_on(device), &test_sgd, 3, use, out, &err) != 0)
    fail_msg("%s", err.message);
  fclose(out);
  implementation_text(&choice, g, chosen);
  assert_null(strstr(chosen, "slow"));
  assert_non_null(strstr(chosen, "fc1:plain"));
  assert_true(slow_calls > 2 * IMPLEMENTATION_ROUNDS);
  assert_non_null(strstr(said, "fc1 of 3 samples: slow "));
  const char *second = strstr(said, "fc2 of 3 samples: ");
  assert_non_null(second);
  assert_non_null(strstr(second, " ten "));
  assert_null(memmem(said, (size_t)(second - said), " ten ", 5));
  graph_destroy(g);
}

static void auto_takes_the_fastest_cpu(void **unused) {
  (void)unused;
  check_measuring(DEVICE_CPU, MODEL_TRAIN);
  check_measuring(DEVICE_CPU, MODEL_INFER);
}

static void auto_takes_the_fastest_gpu(void **unused) {
  (void)unused;
  test_requires_gpu();
  check_measuring(DEVICE_GPU, MODEL_TRAIN);
}

/* A model computes by the implementation that was chosen. */
static void the_chosen_one_computes(void **unused) {
  (void)unused;
  float logits[3][3 * 10];
  const char *const texts[] = {"plain", "plain,fc2:ten", "plain"};
  for (int i = 0; i < 3; i++) {
    Error err;
    Model m;
    Graph *g = two_layers();
    if (implementation_apply(&choice, texts[i], g, NULL, &err) != 0 ||
        model_open(&m, g, context_on(DEVICE_CPU), NULL, 3, MODEL_INFER, &err) != 0)
      fail_msg("%s", err.message);
    model_init(&m, 1);
    implementation_fill(&m);
    model_forward(&m, 3);
    memcpy(logits[i], model_logits(&m, 0), sizeof logits[i]);
    model_close(&m);
  }
  assert_memory_not_equal(logits[0], logits[1], sizeof logits[0]); /* it sums from the other end */
  assert_memory_equal(logits[0], logits[2], sizeof logits[0]);
  assert_matrix_close(logits[0], logits[1], 3, 10, 1e-5, 1e-6);
}

static void a_mistake_of_the_builder_is_kept(void **unused) {
  (void)unused;
  Error err;
  Model m;
  Graph *g = two_layers();
  graph_fail(g, "wrong from the start");
  assert_int_equal(
      implementation_choose(&choice, "auto", g, context_on(DEVICE_CPU), &test_sgd, 3, MODEL_TRAIN, stdout, &err), 0);
  assert_int_equal(model_open(&m, g, context_on(DEVICE_CPU), &test_sgd, 3, MODEL_TRAIN, &err), -1);
  assert_string_equal(err.message, "wrong from the start");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(words_choose_from_left_to_right), cmocka_unit_test(mistakes_are_named),
      cmocka_unit_test(auto_takes_the_fastest_cpu),      cmocka_unit_test(auto_takes_the_fastest_gpu),
      cmocka_unit_test(the_chosen_one_computes),         cmocka_unit_test(a_mistake_of_the_builder_is_kept),
  };
  return TEST_MAIN("implementation", tests);
}
