/* Names, shapes, order and number of the parameters are torchvision's: testdata/names.txt has a line for each tensor of
 * its state_dict(), in its order (tools/golden/resnet18_golden.py --names). */
#include "common/runfiles.h"
#include "common/test.h"
#include "phase5_production/03_resnet18/resnet18.cuh"

enum { LINE = 256 };

/* As a line of the file: "fc.bias trained 1000". */
static void describe(const Param *p, char *text) {
  int length = snprintf(text, LINE, "%s %s", p->name, p->trained ? "trained" : "buffer");
  for (int i = 0; i < p->rank; i++) length += snprintf(text + length, LINE - (size_t)length, " %zu", p->dim[i]);
}

/* -1 before the first parameter. Returns 0 behind the last. */
static int next_line(const Graph *g, int *node, int *index, char *text) {
  while (*node < g->count && *index >= g->nodes[*node].params) {
    ++*node;
    *index = 0;
  }
  if (*node == g->count) return 0;
  describe(&g->nodes[*node].param[(*index)++], text);
  return 1;
}

static void compare_with_file(const Graph *g) {
  Error err;
  char path[PATH_MAX], expected[LINE], got[LINE];
  if (g->failed) fail_msg("%s", g->error.message);
  if (runfiles_find("phase5_production/03_resnet18/testdata/names.txt", path, sizeof path, &err) != 0)
    fail_msg("%s", err.message);
  FILE *file = fopen(path, "r");
  assert_non_null(file);
  int node = 0, index = 0, lines = 0;
  for (; fgets(expected, sizeof expected, file) != NULL; lines++) {
    expected[strcspn(expected, "\n")] = '\0';
    assert_true(next_line(g, &node, &index, got));
    assert_string_equal(got, expected);
  }
  assert_int_equal(lines, 122);
  assert_false(next_line(g, &node, &index, got));
  fclose(file);
}

static void layers_have_the_names_of_torchvision(void **state) {
  (void)state;
  Graph *g = resnet18_layers(resnet18_imagenet);
  compare_with_file(g);
  graph_destroy(g);
}

/* Fused nodes keep their parameters and names; some stand at another place of the list. */
static void fused_has_the_same_parameters(void **state) {
  (void)state;
  Graph *plain = resnet18_layers(resnet18_imagenet), *fused = resnet18_fused(resnet18_imagenet);
  assert_int_equal(fused->count, plain->count);
  for (int i = 0; i < plain->count; i++) {
    char expected[LINE], got[LINE];
    const int at = graph_find(fused, plain->nodes[i].name);
    assert_true(at >= 0);
    assert_int_equal(fused->nodes[at].params, plain->nodes[i].params);
    for (int k = 0; k < plain->nodes[i].params; k++) {
      describe(&plain->nodes[i].param[k], expected);
      describe(&fused->nodes[at].param[k], got);
      assert_string_equal(got, expected);
    }
  }
  graph_destroy(plain);
  graph_destroy(fused);
}

static size_t trained(const Graph *g) {
  size_t count = 0;
  for (int i = 0; i < g->count; i++)
    for (int k = 0; k < g->nodes[i].params; k++) count += g->nodes[i].param[k].trained ? g->nodes[i].param[k].count : 0;
  return count;
}

static void expect_output(const Graph *g, const char *name, Shape shape) {
  const int node = graph_find(g, name);
  assert_true(node >= 0);
  assert_string_equal(shape_text(g->nodes[node].shape).text, shape_text(shape).text);
}

static void it_has_11689512_parameters_and_the_shapes_of_its_comment(void **state) {
  (void)state;
  Graph *g = resnet18_layers(resnet18_imagenet);
  assert_int_equal(trained(g), RESNET18_PARAMETERS);
  assert_int_equal(g->count, 69);
  expect_output(g, "conv1", shape3(64, 112, 112));
  expect_output(g, "maxpool", shape3(64, 56, 56));
  expect_output(g, "layer1.1.relu2", shape3(64, 56, 56));
  expect_output(g, "layer2.1.relu2", shape3(128, 28, 28));
  expect_output(g, "layer3.1.relu2", shape3(256, 14, 14));
  expect_output(g, "layer4.1.relu2", shape3(512, 7, 7));
  expect_output(g, "avgpool", shape1(512));
  expect_output(g, "fc", shape1(1000));
  double flops = 0;
  for (int i = 0; i < g->count; i++) flops += g->nodes[i].flops;
  assert_true(flops == 2 * 1814073344.0); /* torchvision's documentation: 1.81 G multiplications and additions */
  graph_destroy(g);
}

static void any_side_will_do(void **state) {
  (void)state;
  const int sides[] = {1, 33, 64, 225};
  for (int i = 0; i < 4; i++) {
    const Resnet18Shape shape = {sides[i], 8, 10};
    Graph *g = resnet18_fused(shape);
    if (g->failed) fail_msg("%s", g->error.message);
    expect_output(g, "avgpool", shape1(64));
    graph_destroy(g);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(layers_have_the_names_of_torchvision), cmocka_unit_test(fused_has_the_same_parameters),
      cmocka_unit_test(it_has_11689512_parameters_and_the_shapes_of_its_comment), cmocka_unit_test(any_side_will_do)};
  return TEST_MAIN("resnet18_names", tests);
}
