/* ONNX's own tests of its operators (Debian's libonnx-testdata): each case is a model with inputs, and the outputs that
 * its makers computed. Every case whose operators can all be imported runs four times: on the CPU and on the GPU, with
 * what can be an input at run time, and with all but the first input as constants, which makes other nodes of it (a
 * convolution of phase 3 instead of a generic one). Types and shapes must be equal, integers too, other numbers to 1e-4
 * or a unit of their type.
 *
 * A case is left out where it needs an operator that is not imported, strings, sequences or optional values, or where
 * no computation gives its numbers. Each is printed with the reason. Everything else that stops a case is a failure.
 *
 * An operator passes if it appears in a case that ran, all cases with it pass, and no case about it alone is left out.
 * With NN_ONNX_CASE=resize only cases with this in their name run. */
#include <dirent.h>

#include "common/test.h"
#include "phase5_production/07_onnx_import/nd.cuh"
#include "phase5_production/07_onnx_import/onnx_run.cuh"

/* Of libonnx-testdata 1.12: models, those that are not read, those of strings, those that run and how often, operators
 * of which all pass. */
enum {
  PACKAGE_CASES = 1072,
  PACKAGE_UNREAD = 23,
  PACKAGE_STRINGS = 6,
  PACKAGE_RUN = 851,
  PACKAGE_RUNS = 4 * PACKAGE_RUN,
  PACKAGE_PASSED = 132
};
enum { MOST = 10, OPERATORS = 256, LEFT = 512 };

/* Cases whose expected numbers no computation gives. */
static const struct {
  const char *name, *reason;
} impossible[] = {
    {"node/test_cast_FLOAT_to_BFLOAT16", "bf16 by cutting off; later versions of ONNX round"},
    {"node/test_castlike_BFLOAT16_to_FLOAT", "its data have another shape than its model says"},
    {"node/test_castlike_BFLOAT16_to_FLOAT_expanded", "its data have another shape than its model says"},
    {"node/test_castlike_FLOAT_to_BFLOAT16", "its data have another shape than its model says"},
    {"node/test_castlike_FLOAT_to_BFLOAT16_expanded", "its data have another shape than its model says"},
    {"node/test_training_dropout", "random numbers of numpy"},
    {"node/test_training_dropout_default", "random numbers of numpy"},
    {"node/test_training_dropout_default_mask", "random numbers of numpy"},
    {"node/test_training_dropout_mask", "random numbers of numpy"},
};

typedef struct Account {
  char name[40];
  int cases, left; /* cases that ran; left: failures, and what is left out of the cases about this operator alone */
} Account;

static Account accounts[OPERATORS];
static int account_count, cases_run, cases_left, cases_failed, runs, failures, has_gpu, unread, strings, found;
static char left_out[LEFT][96];
static int left_count[LEFT], left_kinds;

static const char *collections_path(void) {
  const char *named = getenv("NN_ONNX_TESTDATA");
  return named && named[0] ? named : "/usr/share/libonnx-testdata/data/node";
}

static Account *account_of(const char *op) {
  for (int i = 0; i < account_count; i++)
    if (strcmp(accounts[i].name, op) == 0) return &accounts[i];
  assert_true(account_count < OPERATORS);
  snprintf(accounts[account_count].name, sizeof accounts->name, "%s", op);
  return &accounts[account_count++];
}

/* Calls change(account) once for each operator of the model. */
static void for_each_operator(const OnnxModel *m, void (*change)(Account *account)) {
  const Onnx__GraphProto *g = m->proto->graph;
  for (size_t i = 0; i < g->n_node; i++) {
    int first = 1;
    for (size_t j = 0; j < i; j++) first &= strcmp(g->node[j]->op_type, g->node[i]->op_type) != 0;
    if (first) change(account_of(g->node[i]->op_type));
  }
}
static void add_case(Account *a) { a->cases++; }
static void add_left(Account *a) { a->left++; }

/* m NULL: it could not be read. */
static void fail_case(const OnnxModel *m, const char *test, const char *reason) {
  failures++;
  print_message("  FAILED: %s: %s\n", test, reason);
  if (m) for_each_operator(m, add_left);
}

static void leave_out(const OnnxModel *m, const char *test, const char *reason) {
  char text[96];
  int k = 0;
  snprintf(text, sizeof text, "%.90s", reason);
  while (k < left_kinds && strcmp(left_out[k], text) != 0) k++;
  assert_true(k < LEFT);
  if (k == left_kinds) memcpy(left_out[left_kinds++], text, sizeof text);
  left_count[k]++;
  print_message("  not run: %s: %s\n", test, reason);
  if (m && m->proto->graph->n_node == 1) for_each_operator(m, add_left);
}

/* The first operator of the model that cannot be imported; NULL: all can. */
static const char *missing_operator(const OnnxModel *m) {
  const Onnx__GraphProto *g = m->proto->graph;
  for (size_t i = 0; i < g->n_node; i++) {
    int found = 0;
    for (int k = 0; onnx_import_operator(k) && !found; k++)
      found = strcmp(onnx_import_operator(k), g->node[i]->op_type) == 0;
    if (!found) return g->node[i]->op_type;
  }
  return NULL;
}

/* ---------------------------------------------------------------------------------------------------------- compare */

/* The windows of ONNX were computed with 3.1415 as pi; its own tests allow 1e-3. */
static double unit_of(const char *name, int type) {
  if (strstr(name, "window")) return 1e-3;
  return type == ONNX_FLOAT16 ? 0x1p-10 : type == ONNX_BFLOAT16 ? 0x1p-7 : type == ONNX_DOUBLE ? 1e-6 : 1e-4;
}

/* Of an element type of ONNX; -1: the graph has none. */
static int type_of(int onnx_type) {
  static const int types[][2] = {{ONNX_FLOAT, DTYPE_FLOAT32}, {ONNX_DOUBLE, DTYPE_DOUBLE}, {ONNX_FLOAT16, DTYPE_FP16},
                                 {ONNX_BFLOAT16, DTYPE_BF16}, {ONNX_BOOL, DTYPE_BOOL},     {ONNX_INT8, DTYPE_INT8},
                                 {ONNX_INT16, DTYPE_INT16},   {ONNX_INT32, DTYPE_INT32},   {ONNX_INT64, DTYPE_INT64},
                                 {ONNX_UINT8, DTYPE_UINT8},   {ONNX_UINT16, DTYPE_UINT16}, {ONNX_UINT32, DTYPE_UINT32},
                                 {ONNX_UINT64, DTYPE_UINT64}};
  for (size_t i = 0; i < sizeof types / sizeof *types; i++)
    if (types[i][0] == onnx_type) return types[i][1];
  return -1;
}

/* Arrays of one type. 0 and a sentence where they differ. */
static int close_enough(const char *name, const OnnxTensor *expected, const void *actual, DType type, char *text,
                        size_t size) {
  const int whole = nd_compute(type) == ND_INT || nd_compute(type) == ND_UINT; /* then to the last bit */
  const double unit = unit_of(name, expected->type);
  for (size_t i = 0; i < expected->count; i++) {
    const double a = nd_load<double>(actual, type, i), b = nd_load<double>(expected->data, type, i);
    if (whole ? nd_load<int64_t>(actual, type, i) == nd_load<int64_t>(expected->data, type, i)
              : a == b || (isnan(a) && isnan(b)) || (isfinite(b) && fabs(a - b) <= unit * (fabs(b) + 0.2)))
      continue;
    snprintf(text, size, "element %zu is %.9g, %.9g is expected", i, a, b);
    return 0;
  }
  return 1;
}

typedef struct Case {
  char name[160], folder[PATH_MAX];
  OnnxModel model;
  OnnxTensor input[MOST], output[MOST];
  int inputs, outputs;
} Case;

/* files name_0.pb, name_1.pb ... of one data set; -1: one is not a tensor of numbers. */
static int load_files(const char *folder, const char *name, OnnxTensor *list, int *count, Error *err) {
  for (*count = 0;; ++*count) {
    char path[PATH_MAX + 64];
    snprintf(path, sizeof path, "%s/%s_%d.pb", folder, name, *count);
    if (access(path, F_OK) != 0) return 0;
    if (*count == MOST) return error_set(err, "%s: this test reads %d files of a kind", path, MOST);
    if (onnx_tensor_read(&list[*count], path, err) != 0) return -1;
  }
}

/* numpy has no bf16: the bits of this input lie in an array of uint16. */
static const char bits_of_bf16[] = "node/test_cast_BFLOAT16_to_FLOAT";

/* As many files as the model has inputs and outputs, the inputs of the types that it declares. 0; -1 with what is
 * wrong. */
static int check_files(const Case *c, char *text, size_t size) {
  const Onnx__GraphProto *g = c->model.proto->graph;
  int inputs = 0;
  for (size_t i = 0; i < g->n_input; i++) {
    if (!onnx_is_input(&c->model, i)) continue;
    const int k = inputs++, declared = onnx_value_type(g->input[i]);
    if (k >= c->inputs || c->input[k].type == declared) continue;
    if (strcmp(c->name, bits_of_bf16) == 0 && declared == ONNX_BFLOAT16 && c->input[k].type == ONNX_UINT16) continue;
    snprintf(text, size, "the file of input %d holds %s, the model declares %s", k, onnx_type_name(c->input[k].type),
             onnx_type_name(declared));
    return -1;
  }
  if (c->inputs == inputs && c->outputs == (int)g->n_output) return 0;
  snprintf(text, size, "the data set has %d inputs and %d outputs; the model has %d and %zu", c->inputs, c->outputs,
           inputs, g->n_output);
  return -1;
}

static void free_files(OnnxTensor *list, int count) {
  for (int i = 0; i < count; i++) onnx_tensor_free(&list[i]);
}

/* The inputs in the model's order; those chosen are constants. */
static int describe(const Case *c, const int *constant, OnnxImportInput *inputs) {
  const Onnx__GraphProto *g = c->model.proto->graph;
  int count = 0;
  for (size_t i = 0; i < g->n_input && count < c->inputs; i++) {
    if (!onnx_is_input(&c->model, i)) continue;
    const OnnxTensor *t = &c->input[count];
    OnnxImportInput *in = &inputs[count];
    memset(in, 0, sizeof *in);
    in->name = g->input[i]->name;
    in->rank = t->rank;
    memcpy(in->dim, t->dim, sizeof in->dim);
    in->value = constant[count] ? t->data : NULL;
    count++;
  }
  return count;
}

static int compare_outputs(const Case *c, const OnnxRun *run, char *text, size_t size) {
  for (int k = 0; k < c->outputs; k++) {
    const OnnxImportValue *v = &run->import.outputs[k];
    const OnnxTensor *t = &c->output[k];
    if (type_of(t->type) != (int)v->type) {
      snprintf(text, size, "output %d is of the type %s; %s is expected", k, dtype_name(v->type),
               onnx_type_name(t->type));
      return -1;
    }
    int same = v->rank == t->rank;
    for (int i = 0; same && i < t->rank; i++) same = v->dim[i] == t->dim[i];
    const size_t bytes = onnx_run_bytes(run, v, 1);
    if (!same || bytes != t->bytes) {
      snprintf(text, size, "output %d has %d axes and %zu bytes, the first size is %lld; %d, %zu and %lld are expected",
               k, v->rank, bytes, (long long)v->dim[0], t->rank, t->bytes, (long long)t->dim[0]);
      return -1;
    }
    void *actual = xmalloc(bytes);
    char why[200];
    onnx_run_get(run, k, actual, 1);
    const int close = close_enough(c->name, t, actual, v->type, why, sizeof why);
    free(actual);
    if (close) continue;
    snprintf(text, size, "output %d: %s", k, why);
    return -1;
  }
  return 0;
}

/* One run; all inputs that must be constants become such. 0; -1 with what is wrong. */
static int run_case(const Case *c, Device device, int constants, char *text, size_t size) {
  OnnxImportInput inputs[MOST];
  OnnxRun run;
  Error err;
  int constant[MOST] = {0}, status, everything = 0;
  for (int i = 1; i < c->inputs; i++) constant[i] = constants;
  do {
    const int count = describe(c, constant, inputs);
    status = onnx_run_open(&run, &c->model, inputs, count, device, 1, &err);
    int needed = -1;
    for (int i = 0; i < count && status != 0; i++)
      if (strcmp(run.import.needs, inputs[i].name) == 0 && !constant[i]) needed = i;
    if (status != 0 && needed < 0 && run.import.needs[0] && !everything) { /* what is computed from inputs */
      for (int i = 0; i < c->inputs; i++) constant[i] = 1;
      everything = 1;
      continue;
    }
    if (status != 0 && needed < 0) {
      snprintf(text, size, "%s", err.message);
      return -1;
    }
    if (status != 0) constant[needed] = 1;
  } while (status != 0);
  for (int i = 0; i < c->inputs; i++) {
    const int k = onnx_run_input(&run, inputs[i].name);
    if (k >= 0) onnx_run_set(&run, k, c->input[i].data, 1);
  }
  for (int i = 0; i < run.net.graph->count; i++) { /* what is not computed must not look right */
    if (run.net.plan.node[i].output != PLAN_NONE && run.net.graph->nodes[i].op &&
        !(run.net.graph->nodes[i].op->flags & OP_VIEW)) {
      const PlanArray *array = &run.net.plan.arrays[run.net.plan.node[i].output];
      int input = 0;
      for (int k = 0; k < run.import.input_count; k++)
        input |= run.net.plan.node[run.import.inputs[k].node].output == run.net.plan.node[i].output;
      void *poison = xmalloc(array->bytes);
      memset(poison, 0xAB, array->bytes);
      if (!input) device_upload(device, run.net.arena + array->offset, poison, array->bytes);
      free(poison);
    }
  }
  model_forward(&run.net, 1);
  status = compare_outputs(c, &run, text, size);
  onnx_run_close(&run);
  return status;
}

/* One data set. 1: it ran, 0: it is left out, -1: it failed. */
static int run_set(Case *c) {
  Error err;
  char text[1200], where[1400];
  if (load_files(c->folder, "input", c->input, &c->inputs, &err) != 0 ||
      load_files(c->folder, "output", c->output, &c->outputs, &err) != 0) {
    if (strstr(err.message, ": its tensor holds strings;")) {
      leave_out(&c->model, c->name, "strings");
      strings++;
      return 0;
    }
    fail_case(&c->model, c->name, err.message);
    return -1;
  }
  if (check_files(c, text, sizeof text) != 0) {
    fail_case(&c->model, c->name, text);
    return -1;
  }
  for (int way = 0; way < 4; way++) {
    const Device device = way / 2 ? DEVICE_GPU : DEVICE_CPU;
    if (device == DEVICE_GPU && !has_gpu) continue;
    runs++;
    if (run_case(c, device, way % 2, text, sizeof text) == 0) continue;
    snprintf(where, sizeof where, "on the %s, %s: %s", device_name(device), way % 2 ? "constants" : "at run time",
             text);
    fail_case(&c->model, c->name, where);
    return -1;
  }
  return 1;
}

/* How many folders test_data_set_* the case has. */
static int count_sets(const char *folder) {
  int count = 0;
  DIR *directory = opendir(folder);
  if (directory == NULL) fail_msg("cannot open %s", folder);
  for (const struct dirent *entry; (entry = readdir(directory)) != NULL;)
    count += strncmp(entry->d_name, "test_data_set_", 14) == 0;
  closedir(directory);
  return count;
}

/* All data sets of a case. 1: they ran, 0: one is left out, -1: one failed. */
static int run_sets(Case *c, const char *folder) {
  const int sets = count_sets(folder);
  int result = 1;
  if (sets == 0) {
    fail_case(&c->model, c->name, "it has no data set");
    return -1;
  }
  for (int set = 0; set < sets && result == 1; set++) {
    snprintf(c->folder, sizeof c->folder, "%.3400s/test_data_set_%d", folder, set);
    result = run_set(c);
    free_files(c->input, c->inputs);
    free_files(c->output, c->outputs);
    c->inputs = c->outputs = 0;
  }
  return result;
}

/* Why the reader refuses the model of a case about sequences or optional values; NULL: that is not the reason. */
static const char *refusal(const char *name, const char *path, const char *message) {
  static const char behind[] = "' is not declared as a tensor";
  const size_t skip = strlen(path) + 2, length = strlen(message), tail = sizeof behind - 1;
  if (strstr(name, "seq") == NULL && strstr(name, "_opt") == NULL) return NULL;
  if (length < skip + tail || strncmp(message, path, skip - 2) != 0) return NULL;
  const char *reason = message + skip;
  const int input = strncmp(reason, "graph input '", 13) == 0 && strcmp(message + length - tail, behind) == 0;
  return input || strstr(reason, "(Optional) has the type 13;") ? reason : NULL; /* 13: a type, as an attribute */
}

static void try_case(const char *collection, const char *test) {
  Case c;
  Error err;
  char folder[3400], path[PATH_MAX];
  memset(&c, 0, sizeof c);
  snprintf(c.name, sizeof c.name, "%s/%.120s", collection, test);
  const char *only = getenv("NN_ONNX_CASE");
  if (only && strstr(c.name, only) == NULL) return;
  found++;
  snprintf(folder, sizeof folder, "%.3000s/../%.40s/%.200s", collections_path(), collection, test);
  snprintf(path, sizeof path, "%s/model.onnx", folder);
  if (onnx_model_read(&c.model, path, &err) != 0) {
    const char *reason = refusal(c.name, path, err.message);
    cases_left += reason != NULL;
    cases_failed += reason == NULL;
    unread += reason != NULL;
    if (reason)
      leave_out(NULL, c.name, reason);
    else
      fail_case(NULL, c.name, err.message);
    return;
  }
  const char *missing = missing_operator(&c.model), *reason = NULL;
  char text[96];
  for (size_t i = 0; i < sizeof impossible / sizeof *impossible; i++)
    if (strcmp(impossible[i].name, c.name) == 0) reason = impossible[i].reason;
  snprintf(text, sizeof text, "it needs %.60s", missing ? missing : "");
  if (missing) reason = text;
  if (reason) leave_out(&c.model, c.name, reason);
  const int result = reason ? 0 : run_sets(&c, folder);
  cases_run += result > 0;
  cases_left += result == 0;
  cases_failed += result < 0;
  if (result > 0) for_each_operator(&c.model, add_case);
  onnx_model_close(&c.model);
}

static int compare_names(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

static void try_collection(const char *collection) {
  char path[PATH_MAX];
  char **names = NULL;
  size_t count = 0;
  snprintf(path, sizeof path, "%s/../%s", collections_path(), collection);
  DIR *directory = opendir(path);
  if (directory == NULL) fail_msg("cannot open %s", path);
  for (const struct dirent *entry; (entry = readdir(directory)) != NULL;) {
    if (strncmp(entry->d_name, "test_", 5) != 0) continue;
    names = (char **)realloc(names, (count + 1) * sizeof *names);
    names[count++] = strdup(entry->d_name);
  }
  closedir(directory);
  qsort(names, count, sizeof *names, compare_names);
  for (size_t i = 0; i < count; i++) {
    try_case(collection, names[i]);
    free(names[i]);
  }
  free(names);
}

static void all_cases_pass(void **state) {
  static const char *const collections[] = {"node", "pytorch-converted", "pytorch-operator", "simple"};
  (void)state;
  if (access(collections_path(), R_OK) != 0) {
    print_message("skipped: there is no %s; on Debian and Ubuntu: apt install libonnx-testdata (or run ./setup.sh)\n",
                  collections_path());
    skip();
  }
  Error err;
  char description[200];
  has_gpu = device_open(DEVICE_GPU, description, sizeof description, &err) == 0;
  for (int i = 0; i < 4; i++) try_collection(collections[i]);
  int passed = 0, all = 0, without = 0;
  print_message("operators that pass, and their cases:\n");
  for (int k = 0; onnx_import_operator(k); k++) {
    const Account *a = account_of(onnx_import_operator(k));
    all++;
    if (a->cases == 0) without++;
    if (a->cases > 0 && a->left == 0) {
      passed++;
      print_message("  %s %d\n", a->name, a->cases);
    }
  }
  for (int k = 0; onnx_import_operator(k); k++) {
    const Account *a = account_of(onnx_import_operator(k));
    if (a->cases == 0 || a->left > 0)
      print_message("  not counted: %s, %d cases, %d left out\n", a->name, a->cases, a->left);
  }
  print_message("not run:\n");
  for (int k = 0; k < left_kinds; k++) print_message("  %d: %s\n", left_count[k], left_out[k]);
  print_message("%d operators can be imported; all cases of %d pass; %d have no case\n", all, passed, without);
  print_message("of %d cases %d ran, %d are left out, %d failed; %d runs, %d failures\n", found, cases_run, cases_left,
                cases_failed, runs, failures);
  assert_int_equal(failures, 0);
  assert_int_equal(cases_run + cases_left, found);
  if (getenv("NN_ONNX_CASE")) {
    if (found == 0) fail_msg("no case has '%s' in its name", getenv("NN_ONNX_CASE"));
    return;
  }
  assert_true(passed >= 100 && cases_run >= 700 && runs >= (has_gpu ? 4 : 2) * cases_run);
  if (found != PACKAGE_CASES) {
    print_message("another version of the package: %d are in that of which the numbers are known\n", PACKAGE_CASES);
    return;
  }
  assert_int_equal(unread, PACKAGE_UNREAD);
  assert_int_equal(strings, PACKAGE_STRINGS);
  assert_int_equal(cases_run, PACKAGE_RUN);
  assert_int_equal(runs, has_gpu ? PACKAGE_RUNS : PACKAGE_RUNS / 2);
  assert_int_equal(passed, PACKAGE_PASSED);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(all_cases_pass)};
  return TEST_MAIN("onnx_operators", tests);
}
