/* onnx_import.cu - what a model of ONNX becomes, and what it answers.
 *
 *     bazel run //phase5_production:onnx_import -- net.onnx                              what its nodes become
 *     bazel run //phase5_production:onnx_import -- net.onnx --nodes                      node by node
 *     bazel run //phase5_production:onnx_import -- net.onnx --input=x.npy --save=out     out/NAME.npy for each output
 *     bazel run //phase5_production:onnx_import -- net.onnx --shape=1,3,300,400 --input=photo.jpg --device=gpu
 *
 * Without a file it takes the small U-Net of this folder.
 */
#include <sys/stat.h>

#include "common/options.h"
#include "common/threads_begin.h"
#include "common/train_log.h"
#include "phase5_production/07_onnx_import/npy.h"
#include "phase5_production/07_onnx_import/onnx_input.cuh"
#include "phase5_production/07_onnx_import/onnx_run.cuh"

typedef struct Options {
  CommonOptions common;
  char model[PATH_MAX], save[PATH_MAX];
  OnnxInputOptions inputs;
  int nodes, operators, show;
} Options;

enum { KEY_INPUT = 1, KEY_SHAPE, KEY_NODES, KEY_OPERATORS, KEY_SAVE, KEY_NORMALIZE };

static error_t parse(int key, char *arg, struct argp_state *state) {
  Options *o = (Options *)state->input;
  Error err;
  switch (key) {
    case KEY_INPUT:
      if (onnx_input_add_file(&o->inputs, arg, &err) != 0) argp_error(state, "%s", err.message);
      return 0;
    case KEY_SHAPE:
      if (onnx_input_add_shape(&o->inputs, arg, &err) != 0) argp_error(state, "%s", err.message);
      return 0;
    case KEY_NORMALIZE:
      if (strcmp(arg, "imagenet") != 0 && strcmp(arg, "none") != 0)
        argp_error(state, "--normalize=%.40s: imagenet or none is expected", arg);
      o->inputs.imagenet = strcmp(arg, "imagenet") == 0;
      return 0;
    case KEY_NODES:
      o->nodes = 1;
      return 0;
    case KEY_OPERATORS:
      o->operators = 1;
      return 0;
    case KEY_SAVE:
      option_path(state, arg, "--save", o->save);
      return 0;
    case ARGP_KEY_ARG:
      if (o->model[0]) argp_error(state, "one model is expected, and \"%s\" comes after %s", arg, o->model);
      option_path(state, arg, "MODEL", o->model);
      return 0;
    default:
      return ARGP_ERR_UNKNOWN;
  }
}

static Options read_options(int argc, char **argv) {
  static const struct argp_option rows[] = {
      {"input", KEY_INPUT, "[NAME=]FILE", 0,
       "The values of an input: .npy, .pb (a TensorProto), or a picture, PNG or JPEG (default: random numbers)", 0},
      {"shape", KEY_SHAPE, "[NAME=]N,N,...", 0,
       "The sizes of an input that the file leaves open; N for the first is the batch", 0},
      {"normalize", KEY_NORMALIZE, "HOW", 0,
       "Of pictures: none, numbers from 0 to 1 (default), or imagenet, less the mean over the deviation", 0},
      {"nodes", KEY_NODES, NULL, 0, "Print what each node of the file becomes", 0},
      {"operators", KEY_OPERATORS, NULL, 0, "Print the operators that can be imported", 0},
      {"save", KEY_SAVE, "FOLDER", 0, "Write each output to FOLDER/NAME.npy", 0},
      OPTION_END};
  static const struct argp own = {rows,
                                  parse,
                                  "[MODEL.onnx]",
                                  "Imports a model of ONNX: prints what its nodes become, runs it, prints its outputs.",
                                  NULL,
                                  NULL,
                                  NULL};
  Options o;
  Error err;
  char typed[PATH_MAX];
  memset(&o, 0, sizeof o);
  o.common = options_default(OPTIONS_DEVICE | OPTIONS_SEED | OPTIONS_JSON | OPTIONS_BATCH_SIZE);
  o.common.batch_size = 1;
  options_parse(&o.common, &own, &o, argc, argv);
  char *paths[] = {o.model, o.save};
  for (int i = 0; i < 2; i++) {
    memcpy(typed, paths[i], sizeof typed);
    if (typed[0] && user_path(typed, paths[i], PATH_MAX, &err) != 0) die("%s", err.message);
  }
  if (o.model[0] == '\0' &&
      runfiles_find("phase5_production/07_onnx_import/testdata/unet.onnx", o.model, sizeof o.model, &err) != 0)
    die("%s", err.message);
  return o;
}

static void print_operators(void) {
  int count = 0;
  for (const char *name; (name = onnx_import_operator(count)) != NULL; count++) printf("%s%s", count ? ", " : "", name);
  printf("\n%d operators\n", count);
}

/* ----------------------------------------------------------------------------------------------------------- report */

static void print_value(const char *what, const OnnxImportValue *v) {
  printf("%-7s %-24s %-8s (", what, v->name, dtype_name(v->type));
  for (int i = 0; i < v->rank; i++)
    v->dim[i] == ONNX_IMPORT_BATCH ? printf("%sN", i ? "," : "") : printf("%s%lld", i ? "," : "", (long long)v->dim[i]);
  printf(")\n");
}

static const char *fate_text(const OnnxImportRow *row) {
  return row->fate == ONNX_FOLDED     ? "constant"
         : row->fate == ONNX_VANISHED ? "gone"
         : row->fate == ONNX_OURS     ? "ours"
                                      : "generic";
}

/* A line per node, or one for all nodes of an operator that became the same. */
static void print_rows(const OnnxImport *import, int each) {
  if (each)
    printf("\n%-44s %-20s %-9s %s\n", "node", "operator", "is now", "operations");
  else
    printf("\n%6s  %-20s %-9s %s\n", "nodes", "operator", "are now", "operations");
  for (int i = 0; i < import->row_count; i++) {
    const OnnxImportRow *row = &import->rows[i];
    int first = 1, count = 0;
    for (int j = 0; j < import->row_count && !each; j++) {
      const OnnxImportRow *other = &import->rows[j];
      const int same =
          strcmp(row->op, other->op) == 0 && row->fate == other->fate && strcmp(row->became, other->became) == 0;
      first &= !same || j >= i;
      count += same;
    }
    const char *became = row->fate == ONNX_FOLDED ? "" : row->became;
    if (each)
      printf("%-44.44s %-20s %-9s %s\n", row->name, row->op, fate_text(row), became);
    else if (first)
      printf("%6d  %-20s %-9s %s\n", count, row->op, fate_text(row), became);
  }
}

static size_t count_weights(const Model *net) {
  size_t count = 0;
  for (int i = 0; i < net->graph->count; i++)
    for (int k = 0; k < net->graph->nodes[i].params; k++)
      if (net->graph->nodes[i].param[k].bytes == 0) count += net->graph->nodes[i].param[k].count;
  return count;
}

static json_t *report(const OnnxModel *file, const OnnxRun *run, const Options *o) {
  const Onnx__ModelProto *p = file->proto;
  const OnnxImport *import = &run->import;
  int fates[4] = {0, 0, 0, 0}, computing = 0;
  double flops = 0;
  const char *slash = strrchr(o->model, '/');
  printf("%s: %s %s, version %lld of the operators, %zu nodes\n", slash ? slash + 1 : o->model,
         p->producer_name ? p->producer_name : "unknown", p->producer_version ? p->producer_version : "",
         (long long)onnx_model_opset(file), p->graph->n_node);
  for (int i = 0; i < import->input_count; i++) print_value("input", &import->inputs[i]);
  for (int i = 0; i < import->output_count; i++) print_value("output", &import->outputs[i]);
  print_rows(import, o->nodes);
  for (int i = 0; i < import->row_count; i++) fates[import->rows[i].fate]++;
  for (int i = 0; i < run->net.graph->count; i++) {
    const Op *op = run->net.graph->nodes[i].op;
    computing += op && !(op->flags & (OP_VIEW | OP_CONSTANT));
    flops += run->net.graph->nodes[i].flops;
  }
  printf("\n%d nodes are operations of earlier phases, %d are generic, %d are constants, %d are gone\n",
         fates[ONNX_OURS], fates[ONNX_GENERIC], fates[ONNX_FOLDED], fates[ONNX_VANISHED]);
  printf("the graph computes %d nodes; %zu weights; %.1f MFLOP in convolutions and products of one sample; %.2f MiB\n",
         computing, count_weights(&run->net), flops * 1e-6, model_inference_bytes(&run->net) / 1048576);
  return json_pack("{s:i, s:i, s:i, s:i, s:i, s:I}", "nodes", import->row_count, "ours", fates[ONNX_OURS], "generic",
                   fates[ONNX_GENERIC], "constants", fates[ONNX_FOLDED], "gone", fates[ONNX_VANISHED], "weights",
                   (json_int_t)count_weights(&run->net));
}

/* ---------------------------------------------------------------------------------------------------------- outputs */

static const char *npy_descr(DType type) {
  static const char *const descr[DTYPE_COUNT] = {"<f4", NULL,  "<f2", "<f8", "|b1", "|i1", "|u1",
                                                 "<i2", "<u2", "<i4", "<u4", "<i8", "<u8"};
  return descr[type];
}

static void save_output(const char *folder, const OnnxImportValue *v, const void *data, size_t bytes, int batch) {
  char path[PATH_MAX + 300], name[256];
  int64_t dim[ONNX_MAX_RANK];
  Error err;
  snprintf(name, sizeof name, "%s", v->name);
  for (char *c = name; *c; c++)
    if (*c == '/' || *c == ':') *c = '_';
  for (int i = 0; i < v->rank; i++) dim[i] = v->dim[i] == ONNX_IMPORT_BATCH ? batch : v->dim[i];
  if (mkdir(folder, 0777) != 0 && errno != EEXIST) die("cannot make the folder %s: %s", folder, strerror(errno));
  snprintf(path, sizeof path, "%s/%s.npy", folder, name);
  if (npy_descr(v->type) == NULL)
    die("the output %s is of %s, which numpy does not have", v->name, dtype_name(v->type));
  if (npy_write(path, npy_descr(v->type), v->rank, dim, data, bytes, &err) != 0) die("%s", err.message);
  printf("written: %s\n", path);
}

static void print_output(const OnnxRun *run, int i, int batch, json_t *rows, const Options *o) {
  const OnnxImportValue *v = &run->import.outputs[i];
  const size_t bytes = onnx_run_bytes(run, v, batch), count = bytes / dtype_bytes(v->type);
  void *data = xmalloc(bytes);
  double least = INFINITY, most = -INFINITY, sum = 0;
  onnx_run_get(run, i, data, batch);
  for (size_t k = 0; k < count; k++) {
    const double x = nd_load<double>(data, v->type, k);
    least = fmin(least, x);
    most = fmax(most, x);
    sum += x;
  }
  const int finite = count > 0 && isfinite(sum) && isfinite(least) && isfinite(most);
  if (!finite)
    printf("%s: %zu numbers, %s:", v->name, count, count ? "not all of them finite" : "none");
  else
    printf("%s: %zu numbers from %.5g to %.5g, mean %.5g:", v->name, count, least, most, sum / (double)count);
  for (size_t k = 0; k < count && k < 6; k++) printf(" %.5g", nd_load<double>(data, v->type, k));
  printf("%s\n", count > 6 ? " ..." : "");
  json_t *row = json_pack("{s:s, s:I}", "name", v->name, "count", (json_int_t)count);
  if (finite)
    json_object_update_new(row,
                           json_pack("{s:f, s:f, s:f}", "least", least, "most", most, "mean", sum / (double)count));
  json_array_append_new(rows, row);
  if (o->save[0]) save_output(o->save, v, data, bytes, batch);
  free(data);
}

int main(int argc, char **argv) {
  static Options o;
  static OnnxModel file;
  static OnnxRun run;
  static OnnxInputs inputs;
  char description[200];
  Error err;
  o = read_options(argc, argv);
  if (o.operators) {
    print_operators();
    stdout_finish();
    return 0;
  }
  if (device_open(o.common.device, description, sizeof description, &err) != 0) die("%s", err.message);
  printf("%s\n", description);
  if (onnx_model_read(&file, o.model, &err) != 0) die("%s", err.message);
  if (onnx_inputs_load(&inputs, &o.inputs, &file, &err) != 0) die("%s", err.message);
  if (onnx_inputs_open(&inputs, &run, &file, o.common.device, o.common.batch_size, &err) != 0) die("%s", err.message);
  json_t *result = report(&file, &run, &o), *rows = json_array();
  const int batch = onnx_inputs_fill(&inputs, &run, o.common.batch_size, o.common.seed, &err);
  if (batch < 0) die("%s", err.message);
  model_forward(&run.net, batch);
  printf("\n%d sample%s, %s\n", batch, batch == 1 ? "" : "s", inputs.loaded ? "of files" : "of random numbers");
  for (int i = 0; i < run.import.output_count; i++) print_output(&run, i, batch, rows, &o);
  json_object_set_new(result, "outputs", rows);
  json_object_set_new(result, "program", json_string("onnx_import"));
  json_object_set_new(result, "device", json_string(device_name(o.common.device)));
  if (o.common.json && json_result(result, &err) != 0) die("%s", err.message);
  onnx_inputs_free(&inputs);
  onnx_run_close(&run);
  onnx_model_close(&file);
  stdout_finish();
  return 0;
}
