/* What a network sees: outputs that later layers write over, receptive fields against perturbed pixels, the pictures
 * that excite a filter against a search of all, and where the drawings have which colour. */
#include "common/nn/features_picture.h"

#include "common/nn/fuse.h"
#include "common/nn/test_net.h"
#include "common/test.h"

/* ---------------------------------------------------------------------------------- operations in the plainest form */

typedef struct TestWindow {
  int channels, size[2];
  NodeWindow window;
} TestWindow;

/* Filters (K,C,R,S) without bias; R x S is the window. With `pool` each map by itself, all weights 1. */
static void test_windows(const Node *node, const OpArrays *a, int pool) {
  const TestWindow *t = (const TestWindow *)node->attributes.bytes;
  const NodeWindow *w = &t->window;
  const int maps = node->shape.dim[0], p = node->shape.dim[1], q = node->shape.dim[2];
  const int channels = t->channels, h = t->size[0], width = t->size[1], span = w->size[0] * w->size[1];
  for (int i = 0; i < a->batch * maps * p * q; i++) {
    const int b = i / (maps * p * q), k = i / (p * q) % maps, y = i / q % p, x = i % q;
    float sum = 0;
    for (int j = 0; j < (pool ? 1 : channels) * span; j++) {
      const int c = pool ? k : j / span, r = j / w->size[1] % w->size[0], s = j % w->size[1];
      const int v = y * w->stride[0] - w->padding[0] + r, u = x * w->stride[1] - w->padding[1] + s;
      if (v < 0 || v >= h || u < 0 || u >= width) continue;
      sum += (pool ? 1 : a->param[0][k * channels * span + j]) * a->x[0][((b * channels + c) * h + v) * width + u];
    }
    a->y[i] = sum;
  }
}

static void test_conv_forward(const Context *context, const Node *node, const OpArrays *a) {
  (void)context;
  test_windows(node, a, 0);
}
static void test_pool_forward(const Context *context, const Node *node, const OpArrays *a) {
  (void)context;
  test_windows(node, a, 1);
}
static void test_relu_forward(const Context *context, const Node *node, const OpArrays *a) {
  (void)context;
  for (size_t i = 0; i < a->batch * shape_count(node->shape); i++) a->y[i] = a->x[0][i] > 0 ? a->x[0][i] : 0;
}
static void test_add_forward(const Context *context, const Node *node, const OpArrays *a) {
  (void)context;
  for (size_t i = 0; i < a->batch * shape_count(node->shape); i++) a->y[i] = a->x[0][i] + a->x[1][i];
}

static const Op test_conv_op = {"Conv", 0, 0, NULL, NULL, test_conv_forward, NULL};
static const Op test_pool_op = {"AveragePool", 0, 0, NULL, NULL, test_pool_forward, NULL};
static const Op test_relu_op = {"Relu", 0, OP_IN_PLACE, NULL, NULL, test_relu_forward, NULL};
static const Op test_add_op = {"Add", 0, OP_IN_PLACE, NULL, NULL, test_add_forward, NULL};

static int test_window_node(Graph *g, const Op *op, int x, int maps, NodeWindow w) {
  const Shape in = graph_shape(g, x);
  TestWindow t = {in.dim[0], {in.dim[1], in.dim[2]}, w};
  int out[2];
  for (int a = 0; a < 2; a++) out[a] = (t.size[a] + 2 * w.padding[a] - w.size[a]) / w.stride[a] + 1;
  return graph_window(
      g, graph_node(g, op, op == &test_conv_op ? "conv" : "pool", &x, 1, shape3(maps, out[0], out[1]), &t, sizeof t),
      w);
}

static int test_conv(Graph *g, int x, int filters, NodeWindow w) {
  const int node = test_window_node(g, &test_conv_op, x, filters, w);
  const size_t channels = (size_t)graph_shape(g, x).dim[0];
  const ParamSpec weight = {
      "weight", 4, {(size_t)filters, channels, (size_t)w.size[0], (size_t)w.size[1]}, 1, 1, &test_net_init, 1, 1};
  graph_param(g, node, weight);
  return node;
}
static int test_pool(Graph *g, int x, NodeWindow w) {
  return test_window_node(g, &test_pool_op, x, graph_shape(g, x).dim[0], w);
}
static int test_relu(Graph *g, int x) {
  return graph_node(g, &test_relu_op, "relu", &x, 1, graph_shape(g, x), NULL, 0);
}
static int test_add(Graph *g, int a, int b) {
  const int inputs[] = {a, b};
  return graph_node(g, &test_add_op, "add", inputs, 2, graph_shape(g, a), NULL, 0);
}

static const NodeWindow one = {{1, 1}, {1, 1}, {0, 0}}, three = {{3, 3}, {1, 1}, {1, 1}},
                        halved = {{3, 2}, {2, 1}, {1, 0}}, two = {{2, 2}, {2, 2}, {0, 0}};

static void open_model(Model *m, Graph *g, int batch) {
  Error err;
  Context context;
  memset(&context, 0, sizeof context);
  if (model_open(m, g, context, NULL, batch, MODEL_INFER, &err) != 0) fail_msg("%s", err.message);
  model_init(m, 5);
}

/* Two convolutions, a ReLU in place behind each, pooling, a layer of 5 classes. */
static Graph *small_graph(void) {
  Graph *g = graph_create();
  int x = graph_input(g, "x", shape3(2, 9, 7));
  x = test_pool(g, test_relu(g, test_conv(g, x, 3, three)), two);
  x = test_relu(g, test_conv(g, x, 4, halved));
  graph_loss(g, &test_loss, test_net_layer(graph_name(g, "fc"), x, 5), 1);
  return g;
}

/* ------------------------------------------------------------------------------------------------ what is recorded */

/* In this plan a ReLU writes over its convolution, and later arrays over earlier ones; what is recorded is still the
 * output of each. */
static void every_output_is_recorded_before_it_is_lost(void **state) {
  (void)state;
  Model m;
  open_model(&m, small_graph(), 1);
  test_random_fill(model_input(&m, 0), shape_count(shape3(2, 9, 7)), 3);
  FeatureMaps maps = features_record(&m);
  const Graph *g = m.graph;
  int in_place = 0, negative = 0;
  for (int i = 0; i < g->count; i++) {
    const Node *node = &g->nodes[i];
    if (node->op == NULL) continue;
    in_place += m.plan.node[i].in_place;
    OpArrays a = model_arrays(&m, i, 1, 0);
    const size_t count = shape_count(node->shape);
    float *expected = (float *)xmalloc(count * sizeof *expected);
    for (int k = 0; k < node->inputs; k++) a.x[k] = maps.values[node->input[k]];
    a.y = expected;
    node->op->forward(&m.context, node, &a);
    assert_memory_equal(maps.values[i], expected, count * sizeof *expected);
    for (size_t j = 0; j < count; j++) negative += node->op == &test_conv_op && expected[j] < 0;
    free(expected);
  }
  assert_int_equal(in_place, 2);
  assert_true(negative > 0); /* else the ReLU would change nothing */
  features_free(&maps);
  model_close(&m);
}

static void a_range_counts_what_is_above_zero(void **state) {
  (void)state;
  const float values[] = {0, -2, 3, 0.5f, -0.0f};
  const FeatureRange range = features_range(values, 5);
  assert_true(range.smallest == -2 && range.largest == 3 && range.positive == 0.4);
}

/* ------------------------------------------------------------------------------------------------ receptive fields */

/* All weights and pixels positive, so that an output changes with every pixel that it depends on. */
static void check_boxes(Graph *g, int node) {
  Model m;
  graph_output(g, node);
  open_model(&m, g, 1);
  for (size_t i = 0; i < m.parameter_count; i++) m.parameters[i] = 1;
  const Shape in = graph_shape(g, 0), out = graph_shape(g, node);
  const int pixels = in.dim[1] * in.dim[2], places = out.dim[1] * out.dim[2];
  float *x = model_input(&m, 0), *before = (float *)xmalloc(places * sizeof *before);
  FeatureBox *seen = (FeatureBox *)xcalloc(places, sizeof *seen);
  for (int i = 0; i < places; i++) seen[i].first[0] = seen[i].first[1] = INT_MAX;
  for (int i = 0; i < pixels; i++) x[i] = 1;
  model_forward(&m, 1);
  memcpy(before, model_output(&m, node), places * sizeof *before);
  for (int p = 0; p < pixels; p++) {
    x[p] = 2;
    model_forward(&m, 1);
    x[p] = 1;
    const int at[2] = {p / in.dim[2], p % in.dim[2]};
    for (int i = 0; i < places; i++)
      for (int a = 0; a < 2 && model_output(&m, node)[i] != before[i]; a++) {
        if (at[a] < seen[i].first[a]) seen[i].first[a] = at[a];
        if (at[a] > seen[i].last[a]) seen[i].last[a] = at[a];
      }
  }
  for (int i = 0; i < places; i++) {
    const FeatureBox box = features_box(g, node, i / out.dim[2], i % out.dim[2], 1);
    if (memcmp(&box, &seen[i], sizeof box) != 0)
      fail_msg("output %d of %s: rows %d..%d, columns %d..%d; expected %d..%d, %d..%d", i, g->nodes[node].name,
               box.first[0], box.last[0], box.first[1], box.last[1], seen[i].first[0], seen[i].last[0],
               seen[i].first[1], seen[i].last[1]);
  }
  free(seen);
  free(before);
  model_close(&m);
}

static void a_receptive_field_is_what_an_output_depends_on(void **state) {
  (void)state;
  for (int kind = 0; kind < 5; kind++) {
    Graph *g = graph_create();
    int x = graph_input(g, "x", shape3(1, 13, 11));
    if (kind == 0) x = test_conv(g, x, 1, three);
    if (kind == 1) x = test_conv(g, test_pool(g, test_relu(g, test_conv(g, x, 1, three)), two), 1, halved);
    if (kind == 2) x = test_conv(g, test_conv(g, x, 1, halved), 1, halved);
    if (kind == 3) { /* a sum sees what both of its inputs see */
      const int h = test_conv(g, test_conv(g, x, 1, three), 1, three);
      x = test_add(g, x, h);
    }
    if (kind == 4) { /* whichever is the larger */
      const int narrow = test_conv(g, x, 1, one), wide = test_conv(g, x, 1, three);
      x = test_add(g, narrow, wide);
    }
    check_boxes(g, x);
  }
}

static void a_field_is_as_large_as_without_an_edge(void **state) {
  (void)state;
  Graph *g = small_graph(); /* 3, a pool of 2 makes it 4, 3 x 2 of twice as far apart add 4 and 2 */
  int size[2];
  features_field(g, graph_find(g, "conv1"), size);
  assert_true(size[0] == 3 && size[1] == 3);
  features_field(g, graph_find(g, "conv2"), size);
  assert_true(size[0] == 8 && size[1] == 6);
  graph_destroy(g);
}

/* Without a window: element by element where the sizes are equal, else about the same place; features see all. */
static void what_does_not_say_its_window_is_estimated(void **state) {
  (void)state;
  Node node;
  memset(&node, 0, sizeof node);
  const FeatureBox at = {{2, 1}, {3, 1}};
  node.shape = shape3(4, 6, 5);
  FeatureBox box = features_needs(&node, shape3(4, 6, 5), at);
  assert_memory_equal(&box, &at, sizeof box);
  box = features_needs(&node, shape3(4, 12, 10), at);
  assert_true(box.first[0] == 4 && box.last[0] == 7 && box.first[1] == 2 && box.last[1] == 3);
  node.shape = shape1(10);
  box = features_needs(&node, shape3(4, 12, 10), at);
  assert_true(box.first[0] == 0 && box.last[0] == 11 && box.first[1] == 0 && box.last[1] == 9);
}

/* -------------------------------------------------------------------------------------- what excites each filter */

enum { PICTURES = 11, MOST = 4, PIXELS = 2 * 9 * 7 };

typedef struct Pictures {
  DataSet host;
  DeviceSet set;
  uint8_t samples[PICTURES * PIXELS];
  int labels[PICTURES];
} Pictures;

/* Random, and picture 7 is picture 2 once more. */
static void open_pictures(Pictures *p) {
  const DataNorm norm = {2, {0.5f, 0.25f}, {0.25f, 0.5f}};
  for (int i = 0; i < PICTURES * PIXELS; i++) p->samples[i] = (uint8_t)(philox4x32(9, 0, (uint64_t)i).word[0] >> 24);
  memcpy(p->samples + 7 * PIXELS, p->samples + 2 * PIXELS, PIXELS);
  for (int i = 0; i < PICTURES; i++) p->labels[i] = i % 5;
  const DataSet host = {shape3(2, 9, 7), PICTURES, 5, p->samples, p->labels};
  p->host = host;
  device_set_create(&p->set, DEVICE_CPU, &test_batches, &p->host, PICTURES, &norm);
}

/* Against all pictures one by one, sorted. */
static void check_search(const FeatureSearch *search, Model *m, const DeviceSet *set) {
  for (int l = 0; l < search->layers; l++) {
    const FeatureLayer *layer = &search->layer[l];
    const Shape shape = graph_shape(m->graph, layer->node);
    const int area = shape.dim[1] * shape.dim[2];
    for (int f = 0; f < layer->filters; f++) {
      FeaturePeak peak[PICTURES];
      for (int i = 0; i < PICTURES; i++) {
        device_set_gather(set, m, i, 1);
        FeatureMaps maps = features_record(m);
        const float *map = maps.values[layer->node] + f * area;
        const FeaturePeak none = {map[0], i, 0};
        peak[i] = none;
        for (int k = 1; k < area; k++)
          if (map[k] > peak[i].value) peak[i].value = map[k], peak[i].place = k;
        features_free(&maps);
        for (int j = i; j > 0 && peak[j].value > peak[j - 1].value; j--) {
          const FeaturePeak kept = peak[j];
          peak[j] = peak[j - 1];
          peak[j - 1] = kept;
        }
      }
      assert_memory_equal(layer->peak + f * search->most, peak, search->most * sizeof *peak);
    }
  }
}

static int searched;
static void counting_peaks(Device device, float *value, int *place, const float *x, int maps, int area) {
  searched += maps;
  features_map_peaks(device, value, place, x, maps, area);
}

/* In batches that do not divide the set, of which the last is smaller. */
static void the_strongest_pictures_are_found(void **state) {
  (void)state;
  Pictures p;
  open_pictures(&p);
  for (int batch = 1; batch <= 16; batch += 3) {
    Model m;
    FeatureSearch search;
    open_model(&m, small_graph(), batch);
    searched = 0;
    features_search(&search, &m, &p.set, batch > 1 ? counting_peaks : NULL, MOST);
    assert_int_equal(search.layers, 2);
    assert_int_equal(search.most, MOST);
    if (batch > 1) assert_int_equal(searched, PICTURES * (3 + 4));
    check_search(&search, &m, &p.set);
    features_search_free(&search);
    features_search(&search, &m, &p.set, NULL, 100); /* more than there are */
    assert_int_equal(search.most, PICTURES);
    check_search(&search, &m, &p.set);
    features_search_free(&search);
    model_close(&m);
  }
  device_set_destroy(&p.set);
}

static void of_equal_places_the_first_counts(void **state) {
  (void)state;
  const float x[] = {-3, -1, -2, -1, 0, 0, 0, 0, 5, 2, 7, 7};
  float value[3];
  int place[3];
  features_map_peaks(DEVICE_CPU, value, place, x, 3, 4);
  assert_true(value[0] == -1 && value[1] == 0 && value[2] == 7);
  assert_true(place[0] == 1 && place[1] == 0 && place[2] == 2);
}

/* ---------------------------------------------------------------------------------------------------- the drawings */

static void tiles_fit_whatever_the_shape(void **state) {
  (void)state;
  const Shape shapes[] = {shape3(1, 28, 28),  shape3(6, 28, 28),   shape3(16, 5, 5),   shape3(512, 1, 1),
                          shape3(64, 56, 56), shape3(3, 224, 224), shape3(2, 3, 1500), shape1(10),
                          shape1(120),        shape1(4096),        shape1(1)};
  for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
    const FeatureTiles t = features_tiles(shapes[i]);
    const int count = t.map ? shapes[i].dim[0] : (int)shape_count(shapes[i]);
    assert_true(t.scale >= 1 && t.columns >= 1 && t.shown >= 1 && t.shown <= count && t.lines <= FEATURES_LINES);
    assert_true(t.shown == count || t.shown == t.columns * FEATURES_LINES);
    assert_true(t.columns == 1 || features_tiles_width(&t) <= FEATURES_TILES);
  }
}

static unsigned pixel(const Image *image, int x, int y) {
  const unsigned char *rgb = image->pixels + 3 * ((size_t)y * image->width + x);
  return (unsigned)rgb[0] << 16 | (unsigned)rgb[1] << 8 | rgb[2];
}

static unsigned colour_of(const unsigned char rgb[3]) {
  return (unsigned)rgb[0] << 16 | (unsigned)rgb[1] << 8 | rgb[2];
}

/* The largest magnitude has the full colour, half of it half of the colour; lines go on below. */
static void maps_have_their_colours_at_their_places(void **state) {
  (void)state;
  enum { MAPS = 30 };
  const Shape shape = shape3(MAPS, 2, 2);
  float values[MAPS * 4] = {0};
  values[1] = -4;                 /* map 0, row 0, column 1 */
  values[4 * (MAPS - 1) + 2] = 2; /* the last map, row 1, column 0 */
  const FeatureTiles t = features_tiles(shape);
  assert_int_equal(t.shown, MAPS);
  assert_true(t.columns < MAPS);
  Image image = image_new(FEATURES_TILES + 40, features_tiles_height(&t) + 40, 3);
  features_put_tiles(&image, 10, 10, &t, shape, values);
  assert_int_equal(pixel(&image, 10 + t.scale, 10), 0x0000ff);
  assert_int_equal(pixel(&image, 10 + t.scale - 1, 10), 0xffffff);
  const int x = 10 + (MAPS - 1) % t.columns * (t.width + t.gap);
  const int y = 10 + (MAPS - 1) / t.columns * (t.height + FEATURES_GAP);
  assert_int_equal(pixel(&image, x, y + t.scale), 0xff8080);
  assert_int_equal(pixel(&image, x - 1, y), colour_of(features_line));
  image_free(&image);
}

static void all_layers_are_drawn(void **state) {
  (void)state;
  Model m;
  open_model(&m, small_graph(), 1);
  uint8_t sample[PIXELS];
  for (int i = 0; i < PIXELS; i++) sample[i] = (uint8_t)(2 * i);
  test_random_fill(model_input(&m, 0), PIXELS, 3);
  *model_labels(&m) = 0;
  FeatureMaps maps = features_record(&m);
  model_score(&m, 1);
  const FeatureStory story = {"a test", &maps, sample, shape3(2, 9, 7), model_loss_saved(&m, 0), 5, NULL};
  int drawn;
  Image image = features_draw(&story, &drawn);
  assert_int_equal(drawn, m.graph->count);
  size_t red = 0, blue = 0; /* the largest magnitude of each layer, the end of the scale, the answer's bar */
  for (int y = 80; y < image.height; y++)
    for (int x = 0; x < image.width; x++) {
      red += pixel(&image, x, y) == 0xff0000;
      blue += pixel(&image, x, y) == 0x0000ff;
    }
  assert_true(red > 100 && blue > 100);
  image_free(&image);
  features_free(&maps);
  model_close(&m);
}

/* The frame is round the receptive field of the strongest place. */
static void the_strongest_place_is_framed(void **state) {
  (void)state;
  Pictures p;
  Model m;
  FeatureSearch search;
  int drawn;
  open_pictures(&p);
  open_model(&m, small_graph(), 4);
  features_search(&search, &m, &p.set, NULL, MOST);
  Image image = features_draw_excited("a test", &m, &search, &p.host, &drawn);
  assert_int_equal(drawn, 2);
  const FeatureCard card = features_card(&search, p.host.shape);
  const FeaturePeak peak = search.layer[0].peak[1]; /* filter 0 of conv1, its second picture */
  const FeatureBox box = features_box(m.graph, search.layer[0].node, peak.place / 7, peak.place % 7, 1);
  const int x = FEATURES_MARGIN + FEATURES_NUMBER + FEATURES_SIDE + 2 * FEATURES_GAP + card.step;
  const int y = FEATURES_MARGIN + 3 * FEATURES_LINE + FEATURES_GAP;
  const int left = x + box.first[1] * card.scale, top = y + box.first[0] * card.scale;
  const int right = x + (box.last[1] + 1) * card.scale, bottom = y + (box.last[0] + 1) * card.scale;
  const unsigned mark = colour_of(features_mark);
  assert_true(pixel(&image, left - 1, top) == mark && pixel(&image, right, bottom - 1) == mark);
  assert_true(pixel(&image, left, top - 1) == mark && pixel(&image, right - 1, bottom) == mark);
  assert_true(pixel(&image, left, top) != mark && pixel(&image, right - 1, bottom - 1) != mark);
  image_free(&image);
  features_search_free(&search);
  device_set_destroy(&p.set);
  model_close(&m);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_output_is_recorded_before_it_is_lost),
      cmocka_unit_test(a_range_counts_what_is_above_zero),
      cmocka_unit_test(a_receptive_field_is_what_an_output_depends_on),
      cmocka_unit_test(a_field_is_as_large_as_without_an_edge),
      cmocka_unit_test(what_does_not_say_its_window_is_estimated),
      cmocka_unit_test(the_strongest_pictures_are_found),
      cmocka_unit_test(of_equal_places_the_first_counts),
      cmocka_unit_test(tiles_fit_whatever_the_shape),
      cmocka_unit_test(maps_have_their_colours_at_their_places),
      cmocka_unit_test(all_layers_are_drawn),
      cmocka_unit_test(the_strongest_place_is_framed),
  };
  return TEST_MAIN("features", tests);
}
