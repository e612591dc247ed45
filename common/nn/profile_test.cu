/* The figures of --profile, for a network of two layers: which rows there are, what they add up to, and bytes and FLOPs
 * beside those that are worked out here by hand. */
#include "common/nn/fuse.h"
#include "common/nn/profile.h"
#include "common/nn/test_net.h"
#include "common/test.h"

enum { BATCH = 32, IN = 3 * 8 * 8, HIDDEN = 100, CLASSES = 10, WORKING = 8, MOST_ROWS = 32 };

static const DataSource source = {"test", "Test", "things", {3, {3, 8, 8, 0}}, CLASSES, NULL, {NULL}, NULL, NULL};

/* Computed by another node, as after graph_fuse(): it must not be listed. */
static const Op passed = {"Relu", 0, OP_IN_PLACE | OP_PASSED, NULL, NULL, op_passed, op_passed};

static Graph *two_layers(void) {
  Graph *g = graph_create();
  int x = graph_input(g, "x", source.shape);
  x = test_net_layer(graph_name(g, "fc1"), x, HIDDEN);
  x = graph_node(graph_name(g, "relu1"), &passed, "relu", &x, 1, shape1(HIDDEN), NULL, 0);
  graph_loss(g, &test_loss, test_net_layer(graph_name(g, "fc2"), x, CLASSES), 1);
  return g;
}

static const Task task = {"Test", "",    two_layers, NULL, &source, &test_batches, &test_sgd, NULL,
                          1,      BATCH, {0, 0, 0},  NULL, 0,       NULL,          NULL};

static void measure(Profile *profile, Model *net, Device device) {
  Error err;
  Context context;
  memset(&context, 0, sizeof context);
  context.device = device;
  if (model_open(net, two_layers(), context, &test_sgd, BATCH, MODEL_TRAIN, &err) != 0) die("%s", err.message);
  model_init(net, 1);
  profile_open(profile, &task, &source, net, BATCH, 1);
  profile_measure(profile);
}

static void finish(Profile *profile, Model *net) {
  profile_close(profile);
  model_close(net);
}

/* ------------------------------------------------------------------------------------------- what the rows have */

typedef struct Expected {
  const char *layer, *direction;
  double bytes, flops;
} Expected;

/* In floats: x (B,192), fc1 (B,100) with 19,200 + 100 parameters, fc2 (B,10) with 1,000 + 10. A pixel of the
 * data set is one byte; a label, there and in the batch, and an index of an image are four. Backward: dy, x, dx, the
 * parameters and their gradients; the images need no gradient. SGD reads parameters, momentum and gradients, and writes
 * the first two. */
static const Expected expected[WORKING] = {
    {"batch", "gather", 32 * (192 * (1 + 4.0) + 4 + 4 + 4), 0},
    {"fc1", "forward", 4.0 * (32 * (192 + 100) + 19300), 2.0 * 192 * 100 * 32},
    {"fc2", "forward", 4.0 * (32 * (100 + 10) + 1010), 2.0 * 100 * 10 * 32},
    {"loss", "forward", 4.0 * 32 * (10 + 10 + 1 + 1), 0}, /* logits, probabilities; label, loss */
    {"loss", "backward", 4.0 * 32 * (10 + 10 + 1), 0},
    {"fc2", "backward", 4.0 * (32 * (10 + 100 + 100) + 2 * 1010), 2 * 2.0 * 100 * 10 * 32},
    {"fc1", "backward", 4.0 * (32 * (100 + 192) + 2 * 19300), 2.0 * 192 * 100 * 32}, /* no dx */
    {"sgd", "update", 4.0 * 5 * (19300 + 1010), 0}};

static double number(const json_t *row, const char *name) {
  const json_t *value = json_object_get(row, name);
  if (!json_is_number(value)) fail_msg("%s is missing", name);
  return json_number_value(value);
}

static void check_rows(const json_t *rows) {
  assert_int_equal(json_array_size(rows), WORKING);
  for (int i = 0; i < WORKING; i++) {
    const json_t *row = json_array_get(rows, (size_t)i);
    assert_string_equal(json_string_value(json_object_get(row, "layer")), expected[i].layer);
    assert_string_equal(json_string_value(json_object_get(row, "direction")), expected[i].direction);
    const double bytes = number(row, "bytes"), flops = expected[i].flops > 0 ? number(row, "flops") : 0;
    if (bytes != expected[i].bytes)
      fail_msg("%s %s: %.0f bytes; %.0f are expected", expected[i].layer, expected[i].direction, bytes,
               expected[i].bytes);
    if (flops != expected[i].flops)
      fail_msg("%s %s: %.0f FLOPs; %.0f are expected", expected[i].layer, expected[i].direction, flops,
               expected[i].flops);
    if (expected[i].flops == 0) assert_null(json_object_get(row, "flops")); /* absent, not zero */
  }
}

static void check_json(Device device) {
  Profile profile;
  Model net;
  measure(&profile, &net, device);
  json_t *result = profile_json(&profile), *rows = json_object_get(result, "rows");
  check_rows(rows);
  double seconds = 0, shares = 0, launches = 0;
  for (int i = 0; i < WORKING; i++) {
    const json_t *row = json_array_get(rows, (size_t)i);
    if (profile_has_times(device)) seconds += number(row, "time_us");
    if (profile_has_times(device)) shares += number(row, "share");
    if (device == DEVICE_GPU) launches += number(row, "launches");
  }
  if (profile_has_times(device)) {
    const double sum = number(result, "sum_us");
    if (!(fabs(shares - 1) < 1e-9)) fail_msg("the shares add up to %g; 1 is expected", shares);
    if (!(fabs(seconds - sum) < 1e-9 * sum)) fail_msg("the rows add up to %g us, sum_us is %g", seconds, sum);
  } else {
    assert_null(json_object_get(result, "sum_us"));
  }
  if (device == DEVICE_GPU) {
    assert_true(launches == number(result, "launches"));
    assert_int_equal((int)number(json_array_get(rows, 6), "launches"), 1); /* fc1 backward: the weights' kernel */
    assert_int_equal((int)number(json_array_get(rows, 5), "launches"), 2); /* fc2 backward: and the input's */
  }
  json_decref(result);
  finish(&profile, &net);
}

static void the_rows_are_the_operations_cpu(void **state) {
  (void)state;
  check_json(DEVICE_CPU);
}

static void the_rows_are_the_operations_gpu(void **state) {
  (void)state;
  test_requires_gpu();
  check_json(DEVICE_GPU);
}

/* ---------------------------------------------------------------------------------------------------- the table */

/* The columns of a line; NAN: it is empty. */
typedef struct Line {
  double us, share, launches, kilobytes, megaflops;
} Line;

static double column(const char *line, int *at, int width) {
  char text[16] = "", *end;
  const int length = (int)strlen(line), left = length - *at;
  if (left > 0) snprintf(text, sizeof text, "%.*s", left < width ? left : width, line + *at);
  *at += width;
  const double value = strtod(text, &end);
  return end == text ? NAN : value;
}

static Line line_read(const Profile *p, const char *text) {
  Line line = {NAN, NAN, NAN, NAN, NAN};
  int at = 24;
  if (isfinite(p->sum)) line.us = column(text, &at, 9);
  if (isfinite(p->sum)) line.share = column(text, &at, 9);
  if (isfinite(p->graph)) column(text, &at, 9);
  if (p->launches > 0) line.launches = column(text, &at, 9);
  line.kilobytes = column(text, &at, 11);
  line.megaflops = column(text, &at, 9);
  return line;
}

/* The lines from the table's first row to its sum, which is the last; each begins with the row's name. */
static int table_read(const Profile *p, char *text, char *lines[MOST_ROWS]) {
  int count = 0, inside = 0;
  for (char *line = strtok(text, "\n"); line && count < MOST_ROWS; line = strtok(NULL, "\n")) {
    if (inside) lines[count++] = line;
    if (inside && strncmp(line, "sum ", 4) == 0) return count;
    if (strncmp(line, "operation ", 10) == 0) inside = 1;
  }
  (void)p;
  fail_msg("the table has no line of sums");
  return 0;
}

static void near(const char *what, double rows, double sum, double tolerance) {
  if (!(fabs(rows - sum) <= tolerance))
    fail_msg("%s: the rows add up to %g, the line of sums says %g (within %g)", what, rows, sum, tolerance);
}

static void check_table(Device device) {
  Profile profile;
  Model net;
  char *text = NULL, *lines[MOST_ROWS];
  size_t size = 0;
  measure(&profile, &net, device);
  FILE *out = open_memstream(&text, &size);
  profile_print(out, &profile);
  fclose(out);
  const int count = table_read(&profile, text, lines) - 1;
  assert_int_equal(count, WORKING);
  Line all = {0, 0, 0, 0, 0};
  for (int i = 0; i < count; i++) {
    char name[32];
    snprintf(name, sizeof name, "%-14s %-9s", expected[i].layer, expected[i].direction);
    if (strncmp(lines[i], name, strlen(name)) != 0) fail_msg("\"%s\": %s is expected", lines[i], name);
    const Line line = line_read(&profile, lines[i]);
    all.us += line.us;
    all.share += line.share;
    all.launches += line.launches;
    all.kilobytes += line.kilobytes;
    if (isfinite(line.megaflops)) all.megaflops += line.megaflops;
  }
  const Line sum = line_read(&profile, lines[count]);
  if (isfinite(profile.sum)) near("us", all.us, sum.us, 0.05 * (count + 1) + 1e-9);
  if (isfinite(profile.sum)) near("share", all.share, 100, 0.05 * count + 1e-9);
  if (device == DEVICE_GPU) near("launches", all.launches, sum.launches, 0);
  near("kB", all.kilobytes, sum.kilobytes, 0.05 * (count + 1) + 1e-9);
  near("MFLOP", all.megaflops, sum.megaflops, 0.005 * (count + 1) + 1e-9);
  /* Forward; backward twice for fc2, once for fc1, whose input needs no gradient. */
  near("MFLOP by hand", 2e-6 * 32 * (2 * 192 * 100 + 3 * 100 * 10), sum.megaflops, 0.005 + 1e-9);
  free(text);
  finish(&profile, &net);
}

static void the_table_adds_up_cpu(void **state) {
  (void)state;
  check_table(DEVICE_CPU);
}

static void the_table_adds_up_gpu(void **state) {
  (void)state;
  test_requires_gpu();
  check_table(DEVICE_GPU);
}

/* A header and a line for each row; an empty field where nothing was computed. */
static void the_file_has_the_rows(void **state) {
  (void)state;
  static char text[8192];
  char path[PATH_MAX];
  Profile profile;
  Model net;
  Error err;
  measure(&profile, &net, DEVICE_CPU);
  if (profile_write_csv(&profile, test_path(path, sizeof path, "profile.csv"), &err) != 0) fail_msg("%s", err.message);
  text[test_read_file(path, text, sizeof text - 1)] = '\0';
  assert_int_equal(test_count(text, "\n"), 1 + WORKING);
  assert_int_equal(test_count(text, "\nfc1,forward,"), 1);
  assert_int_equal(test_count(text, "\nfc1,backward,"), 1);
  assert_int_equal(test_count(text, ",18120,64000,"), 1); /* of fc2, forward: 32 x 110 + 1,010 floats */
  assert_int_equal(test_count(text, "relu1"), 0);
  finish(&profile, &net);
}

/* --------------------------------------------------------------------------------------------- regularization */

/* The batch is mixed before, the gradients are clipped after, the weights averaged last: 19,300 + 1,010 of them. */
static void regularizers_have_rows(void **state) {
  (void)state;
  Model net;
  StepParts parts;
  TrainState run;
  Error err;
  static TrainOptions options;
  memset(&run, 0, sizeof run);
  train_options_default(&options, OPTIONS_TRAINER, TRAIN_ALL);
  options.data = &source;
  options.optimizer = optimizer_named("sgd");
  options.ema = 0.9;
  options.clip_norm = 1;
  if (session_open(&task, &options, &run, BATCH, MODEL_TRAIN, 0, &net, &err) != 0) fail_msg("%s", err.message);
  net.context.mixup = 0.5f; /* this loss would be refused */
  model_init(&net, 1);
  step_parts_open(&parts, &task, &source, &net, BATCH, 1);
  const StepPart *mix = &parts.part[1], *clip = &parts.part[parts.count - 3], *average = &parts.part[parts.count - 1];
  assert_true(mix->kind == PART_MIX && mix->bytes == 4.0 * 2 * 32 * 192);
  assert_true(clip->kind == PART_CLIP && clip->bytes == 4.0 * 3 * 20310);
  assert_true(average->kind == PART_AVERAGE && average->bytes == 4.0 * 3 * 20310);
  for (int i = 0; i < parts.count; i++) step_part_run(&parts, i);
  assert_int_equal(net.context.step, 1);
  assert_memory_equal(net.average, net.parameters, 20310 * sizeof(float)); /* after one step */
  step_parts_close(&parts);
  model_close(&net);
}

/* --------------------------------------------------------------------------------------------------- 16 bits */

/* The two layers as lowered operations have them: on a GPU both weights have copies, with rows filled up to 104 and 16
 * and columns to 192 and 104. Of fp16 the gradients have a scale. */
static void open_lowered(Model *net, DType type, Device device) {
  Error err;
  Context context;
  Graph *g = two_layers();
  memset(&context, 0, sizeof context);
  context.device = device;
  g->type = type;
  for (int i = 0; i < g->count; i++)
    if (g->nodes[i].params > 0) {
      g->nodes[i].param[0].half_channels = (int)g->nodes[i].param[0].dim[1];
      g->nodes[i].param[0].half_pixels = 1;
    }
  if (model_open(net, g, context, &optimizer_sgd_momentum, BATCH, MODEL_TRAIN, &err) != 0) die("%s", err.message);
  model_init(net, 1);
  net->hyper.lr = 0.125f;
  net->hyper.momentum = 0.9f;
  net->hyper.ema = 0.5;
  net->clip_norm = net->clip_value = 1;
  net->context.mixup = 0.5f;
  model_average_open(net);
}

static int find_part(const StepParts *parts, const char *layer, const char *direction) {
  for (int i = 0; i < parts->count; i++)
    if (strcmp(parts->part[i].layer, layer) == 0 && strcmp(parts->part[i].direction, direction) == 0) return i;
  return -1;
}

static void check_lowered(DType type, Device device) {
  Model net;
  StepParts parts;
  open_lowered(&net, type, device);
  step_parts_open(&parts, &task, &source, &net, BATCH, 1);
  const int narrow = find_part(&parts, "weights", dtype_name(type)),
            unscale = find_part(&parts, "gradients", "unscale");
  assert_true(narrow == (device == DEVICE_GPU ? 2 : -1)); /* a CPU rounds where it multiplies */
  if (narrow >= 0)
    assert_true(parts.part[narrow].bytes == 4.0 * (19200 + 1000) + 2.0 * 2 * (104 * 192 + 16 * 104) &&
                parts.part[narrow - 1].kind == PART_MIX && parts.part[narrow + 1].kind == PART_FORWARD);
  assert_true((unscale >= 0) == (type == DTYPE_FP16));
  if (unscale >= 0)
    assert_true(parts.part[unscale].bytes == 4.0 * 2 * 20310 && parts.part[unscale - 1].kind == PART_BACKWARD &&
                parts.part[unscale + 1].kind == PART_CLIP);
  const float before = model_get_loss_scale(&net);
  for (int i = 0; i < parts.count; i++) step_part_run(&parts, i);
  assert_true(model_get_loss_scale(&net) == before);

  if (device == DEVICE_GPU) { /* the products read weights, not zeros */
    const size_t numbers = net.half_runs * HALF_RUN;
    uint16_t *half = (uint16_t *)xmalloc(numbers * sizeof *half);
    size_t zeros = 0;
    device_download(device, half, net.half, numbers * sizeof *half);
    for (size_t i = 0; i < numbers; i++) zeros += half[i] == 0;
    assert_in_range(zeros, 0, numbers - 2 * (19200 + 1000) + 100);
    free(half);
  }
  /* together they are a step: the same bits as those of one */
  Model whole;
  const size_t bytes = net.parameter_count * sizeof(float);
  float *weights[2] = {(float *)xmalloc(bytes), (float *)xmalloc(bytes)};
  open_lowered(&whole, type, device);
  device_set_gather(&parts.set, &whole, 0, BATCH);
  model_train_step(&whole, BATCH);
  device_download(device, weights[0], net.parameters, bytes);
  device_download(device, weights[1], whole.parameters, bytes);
  assert_memory_equal(weights[0], weights[1], bytes);
  free(weights[0]);
  free(weights[1]);
  step_parts_close(&parts);
  model_close(&whole);
  model_close(&net);
}

static void sixteen_bits_have_rows_cpu(void **state) {
  (void)state;
  check_lowered(DTYPE_BF16, DEVICE_CPU);
  check_lowered(DTYPE_FP16, DEVICE_CPU);
}

static void sixteen_bits_have_rows_gpu(void **state) {
  (void)state;
  test_requires_gpu();
  check_lowered(DTYPE_BF16, DEVICE_GPU);
  check_lowered(DTYPE_FP16, DEVICE_GPU);
}

/* The loss of this network is not made for soft labels. */
static void other_losses_refuse_soft_labels(void **state) {
  (void)state;
  Model net;
  TrainState run;
  Error err;
  static TrainOptions options;
  memset(&run, 0, sizeof run);
  train_options_default(&options, OPTIONS_TRAINER, TRAIN_ALL);
  options.data = &source;
  options.optimizer = optimizer_named("sgd");
  options.label_smoothing = 0.125;
  assert_int_equal(session_prepare(&task, &options, &run, BATCH, MODEL_TRAIN, &net, &err), -1);
  assert_string_equal(err.message,
                      "--label-smoothing=0.125 gives each sample several classes, and the loss of this network, "
                      "\"cross_entropy\", compares with one target alone; leave the option out");
  options.label_smoothing = 0;
  options.mixup = 0.25;
  assert_int_equal(session_prepare(&task, &options, &run, BATCH, MODEL_TRAIN, &net, &err), -1);
  assert_non_null(strstr(err.message, "--mixup=0.25 gives each sample several classes"));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_rows_are_the_operations_cpu), cmocka_unit_test(the_rows_are_the_operations_gpu),
      cmocka_unit_test(the_table_adds_up_cpu),           cmocka_unit_test(the_table_adds_up_gpu),
      cmocka_unit_test(the_file_has_the_rows),           cmocka_unit_test(regularizers_have_rows),
      cmocka_unit_test(sixteen_bits_have_rows_cpu),      cmocka_unit_test(sixteen_bits_have_rows_gpu),
      cmocka_unit_test(other_losses_refuse_soft_labels)};
  return TEST_MAIN("profile", tests);
}
