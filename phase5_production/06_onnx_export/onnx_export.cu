/* onnx_export.cu - a trained network of this course as an ONNX file.
 *
 *     bazel run //phase5_production:onnx_export -- runs/lenet_mnist/best.safetensors            lenet.onnx
 *     bazel run //phase5_production:onnx_export -- resnet18.pth --any-size -o resnet18.onnx     torchvision's weights
 *     bazel run //phase5_production:onnx_export -- --network=resnet18                           random weights
 *     bazel run //phase5_production:onnx_export -- --list                                       all networks
 */
#include "common/options.h"
#include "common/threads_begin.h"
#include "common/train_log.h"
#include "phase5_production/06_onnx_export/export_config.h"
#include "phase5_production/06_onnx_export/export_test_data.h"
#include "phase5_production/06_onnx_export/export_weights.cuh"
#include "phase5_production/06_onnx_export/onnx_export.cuh"
#include "phase5_production/06_onnx_export/onnx_print.h"

enum {
  TEST_BATCH = 3,
  KEY_NETWORK = 'N',
  KEY_CONFIG = 1,
  KEY_DATA,
  KEY_CLASSES,
  KEY_SIDE,
  KEY_ANY,
  KEY_PROBABILITIES,
  KEY_TEST,
  KEY_NODES,
  KEY_LIST
};

typedef struct Options {
  CommonOptions common;
  char weights[PATH_MAX], output[PATH_MAX], classes[PATH_MAX], test_data[PATH_MAX], config[PATH_MAX];
  char shown[PATH_MAX]; /* the output as typed */
  char network[CHECKPOINT_NETWORK], data[CHECKPOINT_NAME];
  int side, any_size, probabilities, nodes, list;
} Options;

static error_t parse(int key, char *arg, struct argp_state *state) {
  Options *o = (Options *)state->input;
  switch (key) {
    case KEY_NETWORK:
      if (strlen(arg) >= sizeof o->network)
        argp_error(state, "--network: the text is longer than %zu letters", sizeof o->network - 1);
      snprintf(o->network, sizeof o->network, "%s", arg);
      return 0;
    case 'o':
      option_path(state, arg, "--output", o->output);
      return 0;
    case KEY_CONFIG:
      option_path(state, arg, "--config", o->config);
      return 0;
    case KEY_DATA:
      if (data_source_named(arg) == NULL)
        argp_error(state, "--data=%s: one of mnist, fashion_mnist, cifar10 and cifar100 is expected", arg);
      snprintf(o->data, sizeof o->data, "%s", arg);
      return 0;
    case KEY_CLASSES:
      option_path(state, arg, "--classes", o->classes);
      return 0;
    case KEY_SIDE:
      o->side = (int)option_int(state, arg, "--side", 1, 4096);
      return 0;
    case KEY_ANY:
      o->any_size = 1;
      return 0;
    case KEY_PROBABILITIES:
      o->probabilities = 1;
      return 0;
    case KEY_TEST:
      option_path(state, arg, "--test-data", o->test_data);
      return 0;
    case KEY_NODES:
      o->nodes = 1;
      return 0;
    case KEY_LIST:
      o->list = 1;
      return 0;
    case ARGP_KEY_ARG:
      if (o->weights[0]) argp_error(state, "one file of weights is expected; \"%s\" is the second", arg);
      option_path(state, arg, "WEIGHTS", o->weights);
      return 0;
    case ARGP_KEY_END:
      if (!o->list && !o->weights[0] && !o->network[0] && !o->config[0])
        argp_error(state,
                   "a file of weights, or --network=NAME or --config=FILE for random ones, is expected; --list names "
                   "the networks");
      return 0;
    default:
      return ARGP_ERR_UNKNOWN;
  }
}

static void options_read(Options *o, int argc, char **argv) {
  static const struct argp_option rows[] = {
      {"output", 'o', "FILE", 0, "The ONNX file (default: NETWORK.onnx)", 0},
      {"network", KEY_NETWORK, "NAME", 0,
       "Which network the weights are of (default: what the file says); without a file: its random weights", 0},
      {"config", KEY_CONFIG, "FILE", 0, "Network and data set of this config.json of a training run", 0},
      {"data", KEY_DATA, "NAME", 0,
       "Data set that the classes are of: mnist, fashion_mnist, cifar10 or cifar100 (default: what the file says)", 0},
      {"classes", KEY_CLASSES, "FILE", 0, "Names of the classes, one in each line", 0},
      {"side", KEY_SIDE, "N", 0, "Height and width of the pictures, where the network takes any", 0},
      {"any-size", KEY_ANY, NULL, 0, "Leave height and width of the pictures open in the file, too", 0},
      {"probabilities", KEY_PROBABILITIES, NULL, 0,
       "End with a Softmax (of one logit: a Sigmoid): probabilities instead of logits", 0},
      {"test-data", KEY_TEST, "DIR", 0,
       "Also write the model with random inputs and our answers to them, in the layout of ONNX's tests", 0},
      {"nodes", KEY_NODES, NULL, 0, "Print every node of the file", 0},
      {"list", KEY_LIST, NULL, 0, "Export nothing: list the networks", 0},
      OPTION_END};
  static const struct argp own = {
      rows,
      parse,
      "[WEIGHTS]",
      "Writes a network of this course as an ONNX file (opset 17). WEIGHTS is a checkpoint of a "
      "training program, a .safetensors file or a .pth file of PyTorch.",
      NULL,
      NULL,
      NULL};
  memset(o, 0, sizeof *o);
  o->common = options_default(OPTIONS_SEED | OPTIONS_JSON);
  options_parse(&o->common, &own, o, argc, argv);
  Error err;
  memcpy(o->shown, o->output, sizeof o->shown);
  char typed[PATH_MAX], *paths[] = {o->weights, o->output, o->classes, o->test_data, o->config};
  for (int i = 0; i < 5; i++) {
    memcpy(typed, paths[i], sizeof typed);
    if (typed[0] && user_path(typed, paths[i], PATH_MAX, &err) != 0) die("%s", err.message);
  }
}

/* What the command line does not say, the file of --config says. */
static void config_read(Options *o) {
  Error err;
  ExportConfig config;
  if (o->config[0] == '\0') return;
  if (export_config_read(o->config, &config, &err) != 0) die("%s", err.message);
  if (o->network[0] == '\0') memcpy(o->network, config.network, sizeof o->network);
  if (o->data[0] == '\0' && data_source_named(config.data)) memcpy(o->data, config.data, sizeof o->data);
}

static void list_networks(void) {
  const ExportNetwork *n;
  printf("%-14s %-38s %-40s %-11s %10s\n", "network", "", "lesson", "input", "parameters");
  for (int i = 0; (n = export_network_at(i)) != NULL; i++) {
    ExportChoice c;
    export_choose(&c, n);
    Graph *g = n->graph(&c.shape);
    size_t parameters = 0;
    for (int k = 0; k < g->count; k++)
      for (int p = 0; p < g->nodes[k].params; p++)
        parameters += g->nodes[k].param[p].trained ? g->nodes[k].param[p].count : 0;
    printf("%-14s %-38s %-40s %-11s %10zu\n", n->name, n->title, n->lesson, shape_text(graph_shape(g, 0)).text,
           parameters);
    graph_destroy(g);
  }
}

/* NETWORK.onnx in the folder where the command was typed, unless the user says where. */
static void output_path(Options *o, const ExportSource *source) {
  Error err;
  char name[64];
  if (o->output[0]) return;
  snprintf(name, sizeof name, "%s.onnx", source->choice.network->name);
  snprintf(o->shown, sizeof o->shown, "%s", name);
  if (user_path(name, o->output, sizeof o->output, &err) != 0) die("%s", err.message);
}

static void print_result(const Options *o, const ExportSource *source, const OnnxModel *onnx) {
  const Onnx__GraphProto *g = onnx->proto->graph;
  const Shape in = graph_shape(source->net.graph, model_input_node(&source->net, 0));
  printf("%s: %s, %zu nodes, %zu tensors of %zu trained parameters, input %s of %s\n", o->shown,
         source->choice.network->title, g->n_node, g->n_initializer, source->net.parameter_count, g->input[0]->name,
         shape_text(in).text);
  if (!o->weights[0])
    printf("the weights are random (seed %llu): its answers mean nothing\n", (unsigned long long)o->common.seed);
  for (size_t i = 0; i < onnx->proto->n_metadata_props; i++) {
    const Onnx__StringStringEntryProto *entry = onnx->proto->metadata_props[i];
    printf("  %-16s %.90s%s\n", entry->key, entry->value, strlen(entry->value) > 90 ? "..." : "");
  }
}

int main(int argc, char **argv) {
  static Options o;
  static ExportSource source;
  Error err;
  OnnxModel onnx;
  threads_begin();
  options_read(&o, argc, argv);
  if (o.list) {
    list_networks();
    stdout_finish();
    return 0;
  }
  config_read(&o);
  const ExportRequest request = {o.weights, o.network, o.data, o.classes, o.side, o.common.seed, TEST_BATCH};
  if (export_open(&source, &request, &err) != 0) die("%s", err.message);
  const OnnxExportOptions options = {source.choice.network->name, o.probabilities, o.any_size};
  if (onnx_export(&onnx, &source.net, &options, &err) != 0) die("%s", err.message);
  export_describe(&source, &request, &onnx);
  output_path(&o, &source);
  if (onnx_model_write(onnx.proto, o.output, &err) != 0) die("%s", err.message);
  print_result(&o, &source, &onnx);
  if (o.nodes) onnx_print_nodes(stdout, onnx.proto->graph);
  if (o.test_data[0]) {
    if (test_data_write(o.test_data, &source.net, &onnx, o.common.seed, TEST_BATCH, &err) != 0) die("%s", err.message);
    printf("%s: the model, %d random inputs and our answers\n", o.test_data, TEST_BATCH);
  }
  if (o.common.json && json_result(json_pack("{s:s, s:s, s:s, s:I, s:I}", "program", program_invocation_short_name,
                                             "network", source.choice.network->name, "file", o.output, "nodes",
                                             (json_int_t)onnx.proto->graph->n_node, "parameters",
                                             (json_int_t)source.net.parameter_count),
                                   &err) != 0)
    die("%s", err.message);
  onnx_model_close(&onnx);
  export_close(&source);
  stdout_finish();
  return 0;
}
