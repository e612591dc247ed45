/* Graphs: names, shapes, and mistakes, which are named; what graphs of ONNX have besides: types, views, constants. */
#include <math.h>

#include "common/nn/test_ops.h"

enum { WIDTH = 5 };

/* ---- names, shapes, mistakes ---- */

static void nodes_are_named_within_their_scope(void **unused) {
  (void)unused;
  Graph *g = graph_create();
  const int x = graph_input(g, "x", shape1(4));
  graph_enter(g, "layer1");
  graph_enter(g, "0");
  const int first = one(g, SCALE, x), second = one(g, SCALE, first);
  graph_leave(g);
  const int outer = one(g, BEND, second);
  graph_leave(g);
  graph_enter(g, "layer2.0"); /* one scope: leaving it leaves both parts of its name */
  const int inner = one(g, SCALE, outer);
  graph_leave(g);
  const int named = one(graph_name(g, "fc"), SCALE, inner);
  assert_int_equal(g->failed, 0);
  assert_string_equal(g->nodes[inner].name, "layer2.0.scale1");
  assert_string_equal(g->nodes[first].name, "layer1.0.scale1");
  assert_string_equal(g->nodes[second].param[0].name, "layer1.0.scale2.weight");
  assert_string_equal(g->nodes[outer].name, "layer1.bend1");
  assert_string_equal(g->nodes[named].name, "fc");
  assert_int_equal(graph_find(g, "layer1.bend1"), outer);
  assert_int_equal(graph_find(g, "bend1"), GRAPH_ERROR);
  graph_leave(g);
  assert_string_equal(g->error.message, "graph_leave() without graph_enter()");
  graph_destroy(g);
}

static void a_mismatch_names_both_nodes_and_shapes(void **unused) {
  (void)unused;
  Error err;
  Model m;
  Graph *g = graph_create();
  const int a = one(g, SCALE, graph_input(g, "x", shape3(64, 28, 28)));
  const int b = one(g, BEND, graph_input(g, "z", shape3(32, 28, 28)));
  const int sum = two(g, ADD, a, b);
  assert_int_equal(sum, GRAPH_ERROR);
  assert_int_equal(one(g, BEND, sum), GRAPH_ERROR); /* goes on, and says nothing else */
  assert_int_equal(two(g, ADD, 99, a), GRAPH_ERROR);
  assert_int_equal(model_open(&m, g, context_on(DEVICE_CPU), &plain, 1, MODEL_TRAIN, &err), -1);
  assert_string_equal(err.message,
                      "add: scale1 has the shape (64,28,28), bend1 has (32,28,28); the same shape is expected");
}

typedef struct Mistake {
  void (*make)(Graph *g, int x);
  const char *message;
} Mistake;

static void two_of_a_name(Graph *g, int x) { one(graph_name(g, "x"), BEND, x); }
static void a_node_that_does_not_exist(Graph *g, int x) {
  const int later = x + 1;
  const int kind = BEND;
  graph_node(g, &ops[BEND], "bend", &later, 1, shape1(1), &kind, sizeof kind);
}
static void no_size(Graph *g, int x) {
  (void)x;
  graph_input(g, "y", shape1(0));
}
static void negative_sizes(Graph *g, int x) {
  (void)x;
  graph_input(g, "y", shape3(-1, -1, 5));
}
static void more_than_an_int(Graph *g, int x) {
  const int kind = BEND;
  graph_node(g, &ops[BEND], "bend", &x, 1, shape3(65536, 65536, 1), &kind, sizeof kind);
}
static void a_deep_scope(Graph *g, int x) {
  (void)x;
  graph_enter(g, "abcdefghijklmnopqrstuvwxyz.abcdefghijklm");
  graph_enter(g, "abcdefghijklmnopqrstuvw");
}
static void no_such_node_to_add(Graph *g, int x) { two(g, ADD, x, 99); }
static void no_such_node_to_lose(Graph *g, int x) { graph_loss(g, &distance, x + 7, 1); }
static void no_such_output(Graph *g, int x) {
  (void)x;
  graph_output(g, graph_find(g, "y"));
}
static void two_losses(Graph *g, int x) {
  graph_loss(g, &distance, x, 1);
  graph_loss(g, &distance, x, 1);
}
static void no_loss(Graph *g, int x) { one(g, BEND, x); }
static void a_long_name(Graph *g, int x) {
  char name[80];
  memset(name, 'n', sizeof name);
  name[79] = '\0';
  one(graph_name(g, name), BEND, x);
}
static void attributes_too_large(Graph *g, int x) {
  char bytes[NODE_ATTRIBUTE_BYTES + 1] = {0};
  graph_node(g, &ops[BEND], "bend", &x, 1, shape1(1), bytes, sizeof bytes);
}

static void mistakes_are_named(void **unused) {
  (void)unused;
  const Mistake mistakes[] = {
      {two_of_a_name, "two nodes are called x; give one another name"},
      {a_node_that_does_not_exist, "bend1 reads node 1; only the 1 nodes before it can be read"},
      {no_size, "y has the shape (0); up to 8 dimensions of at least 1 are expected"},
      {negative_sizes, "y has the shape (-1,-1,5); up to 8 dimensions of at least 1 are expected"},
      {more_than_an_int, "bend1 has the shape (65536,65536,1); at most 2147483647 elements"},
      {a_deep_scope, "the scope abcdefghijklmnopqrstuvwxyz.abcdefghijklm.abcdefghijklmnopqrstuvw. is longer than 63"},
      {no_such_node_to_add, "add reads node 99; only the 1 nodes before it can be read"},
      {no_such_node_to_lose, "distance reads node 7; only the 1 nodes before it can be read"},
      {no_such_output, "an output reads node -1; only the 1 nodes before it can be read"},
      {two_losses, "x has two losses; one is possible"},
      {no_loss, "a network to train needs a loss and an optimizer"},
      {attributes_too_large, "bend1 has 513 bytes of attributes; raise NODE_ATTRIBUTE_BYTES"},
      {a_long_name, "is longer than 63 characters"}};
  for (size_t i = 0; i < sizeof mistakes / sizeof mistakes[0]; i++) {
    Error err;
    error_set(&err, "none");
    Model m;
    Graph *g = graph_create();
    mistakes[i].make(g, graph_input(g, "x", shape1(4)));
    assert_int_equal(model_open(&m, g, context_on(DEVICE_CPU), &plain, 1, MODEL_TRAIN, &err), -1);
    if (strstr(err.message, mistakes[i].message) == NULL)
      fail_msg("\"%s\" is not in: %s", mistakes[i].message, err.message);
  }
}

static void what_does_not_fit_is_refused(void **unused) {
  (void)unused;
  Error err;
  Model m;
  Graph *g = graph_create();
  int x = graph_input(g, "x", shape3(1024, 1024, 1024));
  graph_loss(g, &distance, one(g, WAVE, x), 1);
  assert_int_equal(model_open(&m, g, context_on(DEVICE_CPU), &plain, 1 << 20, MODEL_TRAIN, &err), -1);
  assert_non_null(strstr(err.message, "the network would take"));
  assert_non_null(strstr(err.message, "take a smaller network, or a smaller batch"));
  assert_null(strstr(err.message, "scratch"));
  model_close(&m); /* of nothing */
}

static size_t a_tebi_float(const Context *context, const Node *node, int batch) {
  (void)context;
  (void)node;
  return (size_t)batch << 40;
}

/* A node that wants more memory for its scratch than there is: its name and its shapes are said. */
static void too_much_scratch_is_refused(void **unused) {
  (void)unused;
  static const Op greedy = {"Greedy", 0, 0, NULL, a_tebi_float, NULL, NULL};
  Error err;
  Model m;
  Graph *g = graph_create();
  const int x = graph_input(g, "x", shape3(3, 5, 7));
  graph_output(g, graph_node(g, &greedy, "greedy", &x, 1, shape3(2, 5, 6), NULL, 0));
  assert_int_equal(model_open(&m, g, context_on(DEVICE_CPU), NULL, 4, MODEL_INFER, &err), -1);
  if (strstr(err.message,
             "more than half is scratch memory of greedy1, 4 x (3,5,7) to (2,5,6), 16384.0 GiB: take "
             "another implementation") == NULL)
    fail_msg("%s", err.message);
}

static void no_second_input(void) {
  Model m;
  Graph *g = graph_create();
  graph_loss(g, &distance, one(g, WAVE, graph_input(g, "x", shape1(WIDTH))), 1);
  open_or_fail(&m, g, DEVICE_CPU, 1, MODEL_INFER);
  model_input(&m, 1);
}

static void training_to_infer(void) {
  Model m;
  Graph *g = graph_create();
  graph_loss(g, &distance, one(g, SCALE, graph_input(g, "x", shape1(WIDTH))), 1);
  open_or_fail(&m, g, DEVICE_CPU, 1, MODEL_INFER);
  model_init(&m, 1);
  model_train_step(&m, 1);
}

static void misuse_is_named(void **unused) {
  (void)unused;
  char output[512];
  assert_int_equal(test_fork(no_second_input, output, sizeof output), 1);
  assert_non_null(strstr(output, "the network has no input 1; it has 1, counted from 0"));
  assert_int_equal(test_fork(training_to_infer, output, sizeof output), 1);
  assert_non_null(strstr(output, "open it for MODEL_TRAIN"));
}

/* ---- what graphs of ONNX have besides ---- */

static const Op view_op = {"Reshape", 0, OP_VIEW, NULL, NULL, op_constant, op_constant};

static int view(Graph *g, int x, Shape shape) { return graph_node(g, &view_op, "view", &x, 1, shape, NULL, 0); }

static void bytes_follow_from_type_and_layout(void **unused) {
  (void)unused;
  Graph *g = graph_create();
  Shape five = {5, {2, 3, 1, 4, 2, 0, 0, 0}}, none = {0, {0}};
  const int x = graph_typed(g, graph_input(g, "x", five), DTYPE_INT64, 0);
  const int mask = graph_typed(g, graph_input(g, "mask", none), DTYPE_BOOL, 7);
  const int plain16 = graph_typed(g, graph_input(g, "plain", shape3(3, 2, 2)), DTYPE_FP16, 0);
  const int last = graph_input(g, "last", shape3(3, 2, 2));
  assert_int_equal(g->failed, 0);
  assert_string_equal(shape_text(g->nodes[mask].shape).text, "()");
  assert_int_equal(node_bytes(&g->nodes[x]), 48 * 8);
  assert_int_equal(node_bytes(&g->nodes[mask]), 1);
  assert_int_equal(node_bytes(&g->nodes[plain16]), 12 * 2);
  g->nodes[last].type = DTYPE_BF16;
  assert_int_equal(node_bytes(&g->nodes[last]), 4 * 8 * 2);
  g->nodes[last].type = DTYPE_INT8;
  assert_int_equal(node_bytes(&g->nodes[last]), 12);
  g->nodes[last].layout = LAYOUT_CHANNELS_LAST;
  assert_int_equal(node_bytes(&g->nodes[last]), 4 * 16);
  Plan plan;
  const Context context = context_on(DEVICE_CPU);
  plan_create(&plan, g, &context, 10, MODEL_INFER);
  assert_int_equal(plan.arrays[plan.node[x].output].bytes, 3840);
  assert_int_equal(plan.arrays[plan.node[mask].output].bytes, PLAN_ALIGN); /* 7 bytes, and not 10 * 7 */
  plan_destroy(&plan);
  graph_destroy(g);
}

/* x -> twice = 2 x -> two views, of which bend could overwrite one: the other is still read. A constant is not an
 * array of the arena, and nobody writes over it. */
static void views_and_constants_are_arrays_of_others(void **unused) {
  (void)unused;
  Model m;
  const float numbers[] = {1, 2, 3, 4, 5, 6};
  Graph *g = graph_create();
  const int x = graph_input(g, "x", shape1(6));
  const int first = graph_constant(g, "odd", DTYPE_INT8, shape1(3));
  const int c = graph_constant(g, "c", DTYPE_FLOAT32, shape1(6));
  const int sum = two(g, ADD, x, x);
  const int flat = view(g, view(g, sum, shape3(1, 2, 3)), shape3(6, 1, 1)), other = view(g, sum, shape3(3, 2, 1));
  const int bent = one(g, BEND, flat), late = one(g, BEND, other);
  const int bent_constant = graph_typed(g, one(g, BEND, c), DTYPE_FLOAT32, 1);
  graph_output(g, bent);
  graph_output(g, late);
  graph_output(g, first);
  graph_output(g, bent_constant);
  open_or_fail(&m, g, DEVICE_CPU, 2, MODEL_INFER);
  assert_int_equal(m.plan.node[first].output, PLAN_NONE);
  assert_int_equal(m.plan.node[flat].output, m.plan.node[sum].output);
  assert_int_not_equal(m.plan.node[bent].output, m.plan.node[sum].output);
  assert_int_equal(m.plan.node[late].output, m.plan.node[sum].output); /* the last node that reads it */
  assert_ptr_equal(model_output(&m, other), model_output(&m, sum));
  assert_int_equal((uintptr_t)model_output(&m, c) % 64, 0);
  assert_ptr_equal(model_output(&m, c), model_param(&m, &g->nodes[c].param[0]));
  memcpy(model_param(&m, &g->nodes[c].param[0]), numbers, sizeof numbers);
  for (int i = 0; i < 12; i++) model_input(&m, 0)[i] = 0.1f * (float)i;
  model_forward(&m, 2);
  for (int i = 0; i < 12; i++) {
    const double expected = tanh(0.2 * i);
    assert_true(fabs(model_output(&m, bent)[i] - expected) < 1e-6);
    assert_true(fabs(model_output(&m, late)[i] - expected) < 1e-6);
    if (i < 6) assert_true(fabs(model_output(&m, bent_constant)[i] - tanh(numbers[i])) < 1e-6);
    if (i < 6) assert_true(model_output(&m, c)[i] == numbers[i]);
  }
  model_close(&m);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(nodes_are_named_within_their_scope),
      cmocka_unit_test(a_mismatch_names_both_nodes_and_shapes),
      cmocka_unit_test(mistakes_are_named),
      cmocka_unit_test(what_does_not_fit_is_refused),
      cmocka_unit_test(too_much_scratch_is_refused),
      cmocka_unit_test(misuse_is_named),
      cmocka_unit_test(bytes_follow_from_type_and_layout),
      cmocka_unit_test(views_and_constants_are_arrays_of_others),
  };
  return TEST_MAIN("graph", tests);
}
