/* state_dict.h: what is saved is loaded; every way in which a file does not fit is refused in a sentence that names the
 * tensor, and leaves the network as it was. */
#include "common/nn/state_dict.h"
#include "common/test.h"

enum { WEIGHTS = 6, CHANNELS = 2 };

static void nothing(const Context *context, const Node *node, const OpArrays *arrays) {
  (void)context, (void)node, (void)arrays;
}
static const Op layer_op = {"Layer", 0, 0, NULL, NULL, nothing, nothing};

/* layer.weight (2,3), layer.bias (2), and what batch norm has: running_var (2), num_batches_tracked. */
static void open_network(Model *m, float first) {
  Error err;
  Context context;
  memset(&context, 0, sizeof context);
  Graph *g = graph_create();
  const int x = graph_input(g, "x", shape1(3));
  const int layer = graph_node(graph_name(g, "layer"), &layer_op, "layer", &x, 1, shape1(2), NULL, 0);
  const ParamSpec weight = {"weight", 2, {2, 3, 0, 0}, 3, 2, &init_zero, 1, 1};
  const ParamSpec bias = {"bias", 1, {2, 0, 0, 0}, 3, 2, &init_zero, 1, 0};
  const ParamSpec variance = {"running_var", 1, {2, 0, 0, 0}, 1, 1, &init_one, 0, 0};
  graph_param(g, layer, weight);
  graph_param(g, layer, bias);
  graph_param(g, layer, variance);
  graph_step_counter(g, layer, "num_batches_tracked");
  graph_output(g, layer);
  if (model_open(m, g, context, NULL, 1, MODEL_INFER, &err) != 0) fail_msg("%s", err.message);
  for (size_t i = 0; i < m->parameter_count; i++) m->parameters[i] = first + (float)i * 0.37f;
  for (size_t i = 0; i < m->buffer_count; i++) m->buffers[i] = first + 10 + (float)i;
}

static int64_t counted(const Model *m) { return model_find_param(m, "layer.num_batches_tracked")->counted; }

/* What stands in a file under test. Zero: as it should be. */
typedef struct Fault {
  const char *prefix, *dtype; /* of the weight and the bias; NULL: "", F32 */
  const char *skip, *surplus; /* a tensor that is missing, one that is too many */
  size_t rows;                /* of the weight; 0: 2 */
  float weight, variance;     /* a value that is not 0 takes the place of the last one */
  int64_t counter;            /* 0: 7 */
} Fault;

static const size_t two[] = {2};

static void add_named(SafetensorsWriter *out, const Fault *f, const char *name, const char *dtype, int rank,
                      const size_t *shape, const void *data) {
  char full[128];
  if (f->skip && strcmp(f->skip, name) == 0) return;
  snprintf(full, sizeof full, "%slayer.%s", f->prefix ? f->prefix : "", name);
  safetensors_add(out, full, dtype, rank, shape, data);
}

/* 16 or 64 bits of `count` numbers that all types hold exactly. */
static void convert(const char *dtype, const float *from, size_t count, void *to) {
  for (size_t i = 0; i < count; i++) {
    if (strcmp(dtype, "F64") == 0) ((double *)to)[i] = from[i];
    if (strcmp(dtype, "F32") == 0) ((float *)to)[i] = from[i];
    if (strcmp(dtype, "F16") == 0) ((uint16_t *)to)[i] = fp16_narrow(from[i]);
    if (strcmp(dtype, "BF16") == 0) ((uint16_t *)to)[i] = bf16_narrow(from[i]);
    if (strcmp(dtype, "I32") == 0) ((int32_t *)to)[i] = (int32_t)from[i];
  }
}

static const float expected_weight[WEIGHTS] = {1, -2, 3.5f, 0.25f, -5, 6}, expected_bias[CHANNELS] = {-7, 0.5f},
                   expected_variance[CHANNELS] = {2, 3};

static const char *write_file(const Fault *f) {
  static char path[PATH_MAX];
  static double weight[WEIGHTS], bias[CHANNELS];
  static float values[WEIGHTS], variance[CHANNELS];
  static int64_t counter;
  Error err;
  const char *dtype = f->dtype ? f->dtype : "F32";
  const size_t shape[] = {f->rows ? f->rows : 2, f->rows ? WEIGHTS / f->rows : 3};
  SafetensorsWriter out = SafetensorsWriter();
  memcpy(values, expected_weight, sizeof values);
  memcpy(variance, expected_variance, sizeof variance);
  if (f->weight != 0) values[WEIGHTS - 1] = f->weight; /* NaN, too */
  if (f->variance != 0) variance[1] = f->variance;
  counter = f->counter ? f->counter : 7;
  convert(dtype, values, WEIGHTS, weight);
  convert(dtype, expected_bias, CHANNELS, bias);
  add_named(&out, f, "num_batches_tracked", "I64", 0, NULL, &counter);
  add_named(&out, f, "weight", dtype, 2, shape, weight);
  add_named(&out, f, "bias", dtype, 1, two, bias);
  add_named(&out, f, "running_var", "F32", 1, two, variance);
  if (f->surplus) add_named(&out, f, f->surplus, "F32", 1, two, variance);
  test_path(path, sizeof path, "state_dict.safetensors");
  if (safetensors_write(&out, path, &err) != 0) fail_msg("%s", err.message);
  safetensors_writer_free(&out);
  return path;
}

static void load_good(const Fault *f, const char *prefix, int64_t counter) {
  Error err;
  Model m;
  StateDictLoaded loaded;
  open_network(&m, 100);
  if (state_dict_load(&m, write_file(f), NULL, &loaded, &err) != 0) fail_msg("%s", err.message);
  assert_memory_equal(model_param(&m, model_find_param(&m, "layer.weight")), expected_weight, sizeof expected_weight);
  assert_memory_equal(model_param(&m, model_find_param(&m, "layer.bias")), expected_bias, sizeof expected_bias);
  assert_memory_equal(m.buffers, expected_variance, sizeof expected_variance);
  assert_int_equal(counted(&m), counter);
  assert_string_equal(loaded.prefix, prefix);
  assert_string_equal(loaded.dtype, f->dtype ? f->dtype : "F32");
  assert_int_equal(loaded.counters, counter != 0);
  model_close(&m);
}

static void prefixes_and_dtypes(void **state) {
  (void)state;
  const char *prefixes[] = {"", "module.", "_orig_mod.", "module._orig_mod.", "_orig_mod.module."};
  const char *dtypes[] = {"F32", "F16", "BF16", "F64"};
  for (int p = 0; p < 5; p++)
    for (int d = 0; d < 4; d++) {
      Fault f = {};
      f.prefix = prefixes[p];
      f.dtype = dtypes[d];
      load_good(&f, prefixes[p], 7);
    }
}

static void counters_may_be_missing(void **state) {
  (void)state;
  Fault f = {};
  f.skip = "num_batches_tracked";
  load_good(&f, "", 0);
}

static void refused(const Fault *f, const char *a, const char *b) {
  Error err;
  Model m;
  StateDictLoaded loaded;
  open_network(&m, 100);
  assert_int_equal(state_dict_load(&m, write_file(f), "theirs.pth", &loaded, &err), -1);
  if (strstr(err.message, "theirs.pth") == NULL || strstr(err.message, a) == NULL || strstr(err.message, b) == NULL)
    fail_msg("expected \"%s\" and \"%s\" in: %s", a, b, err.message);
  for (size_t i = 0; i < m.parameter_count; i++) assert_true(m.parameters[i] == 100 + (float)i * 0.37f);
  for (size_t i = 0; i < m.buffer_count; i++) assert_true(m.buffers[i] == 110 + (float)i);
  assert_int_equal(counted(&m), 0);
  model_close(&m);
}

static void names_that_do_not_fit(void **state) {
  (void)state;
  Fault f = {};
  f.skip = "bias";
  refused(&f, "lacks the tensor 'layer.bias' of F32 (2)", "1 of 4 are missing");
  f.skip = NULL;
  f.surplus = "scale";
  refused(&f, "has the tensor 'layer.scale'", "1 surplus");
  f.skip = "weight";
  refused(&f, "lacks 'layer.weight' of F32 (2, 3) (1 missing)", "'layer.scale'");
  f.skip = "running_var";
  f.surplus = NULL;
  f.prefix = "module.";
  refused(&f, "'module.layer.running_var'", "missing");
  f.prefix = "net."; /* of no wrapper */
  refused(&f, "lacks 'layer.weight'", "'net.layer.");
}

static void tensors_that_do_not_fit(void **state) {
  (void)state;
  Fault f = {};
  f.rows = 3;
  refused(&f, "tensor 'layer.weight' is F32 (3, 2), expected F32 (2, 3)", "another network");
  f.rows = 0;
  f.dtype = "I32";
  refused(&f, "tensor 'layer.weight' is I32 (2, 3), expected F32 (2, 3)", "no weights");
  f.dtype = NULL;
  f.weight = NAN;
  refused(&f, "element 5 of 'layer.weight' is nan", "finite");
  f.weight = -INFINITY;
  refused(&f, "element 5 of 'layer.weight' is -inf", "finite");
  f.weight = 0;
  f.variance = -1e-6f;
  refused(&f, "element 1 of 'layer.running_var' is -1e-06", "variance");
  f.variance = 0;
  f.counter = -3;
  refused(&f, "'layer.num_batches_tracked' is -3", "number of batches");
}

static void files_that_are_none(void **state) {
  (void)state;
  Error err;
  Model m;
  StateDictLoaded loaded;
  char path[PATH_MAX];
  const Fault f = {};
  open_network(&m, 100);
  assert_int_equal(state_dict_load(&m, test_path(path, sizeof path, "none"), NULL, &loaded, &err), -1);
  assert_non_null(strstr(err.message, "cannot open"));
  snprintf(path, sizeof path, "%s", write_file(&f));
  assert_int_equal(truncate(path, 300), 0);
  assert_int_equal(state_dict_load(&m, path, NULL, &loaded, &err), -1);
  assert_non_null(strstr(err.message, "cut short"));
  model_close(&m);
}

static void what_is_saved_is_loaded(void **state) {
  (void)state;
  Error err;
  Model a, b;
  StateDictLoaded loaded;
  SafetensorsFile file;
  char path[PATH_MAX];
  open_network(&a, 3);
  open_network(&b, 100);
  a.context.step = 41;
  if (state_dict_save(&a, test_path(path, sizeof path, "saved"), &err) != 0) fail_msg("%s", err.message);
  if (state_dict_load(&b, path, NULL, &loaded, &err) != 0) fail_msg("%s", err.message);
  assert_int_equal(loaded.tensors, 4);
  assert_memory_equal(a.parameters, b.parameters, a.parameter_count * sizeof(float));
  assert_memory_equal(a.buffers, b.buffers, a.buffer_count * sizeof(float));
  assert_int_equal(counted(&b), 41);
  if (safetensors_open(path, &file, &err) != 0) fail_msg("%s", err.message);
  assert_string_equal(safetensors_metadata(&file, "format"), "pt"); /* what libraries of PyTorch look for */
  safetensors_close(&file);
  a.parameters[1] = NAN;
  assert_int_equal(state_dict_save(&a, path, &err), -1);
  assert_non_null(strstr(err.message, "not finite"));
  assert_int_equal(state_dict_load(&b, path, NULL, &loaded, &err), 0); /* the file is as it was */
  model_close(&a);
  model_close(&b);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(prefixes_and_dtypes),   cmocka_unit_test(counters_may_be_missing),
      cmocka_unit_test(names_that_do_not_fit), cmocka_unit_test(tensors_that_do_not_fit),
      cmocka_unit_test(files_that_are_none),   cmocka_unit_test(what_is_saved_is_loaded)};
  return TEST_MAIN("state_dict", tests);
}
