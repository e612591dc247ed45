/* resnet18.cu - torchvision's ResNet-18: its layers, its weights, and what it sees on pictures.
 *
 *     bazel run //phase5_production:resnet18                                                 the layers
 *     bazel run //phase5_production:resnet18 -- --weights=resnet18.pth --predict cat.jpg     the five likeliest classes
 *     bazel run //phase5_production:resnet18 -- --weights=resnet18.pth --save=resnet18.safetensors
 *
 * The weights are a file of torchvision's, which you bring (README.md): .pth or .safetensors.
 */
#include "common/options.h"
#include "common/threads_begin.h"
#include "phase5_production/03_resnet18/resnet18.cuh"
#include "phase5_production/03_resnet18/resnet18_layers.h"
#include "phase5_production/03_resnet18/resnet18_predict.cuh"
#include "phase5_production/03_resnet18/resnet18_weights.h"

enum { MOST_FILES = 4096, MOST_TOP = 100 };

typedef struct Options {
  CommonOptions common;
  char weights[PATH_MAX], save[PATH_MAX], classes[PATH_MAX];
  int top, predict, nodes, file_count;
  const char *files[MOST_FILES];
} Options;

enum { KEY_WEIGHTS = 1, KEY_SAVE, KEY_CLASSES, KEY_TOP, KEY_PREDICT, KEY_NODES };

static error_t parse(int key, char *arg, struct argp_state *state) {
  Options *o = (Options *)state->input;
  switch (key) {
    case KEY_WEIGHTS:
      option_path(state, arg, "--weights", o->weights);
      return 0;
    case KEY_SAVE:
      option_path(state, arg, "--save", o->save);
      return 0;
    case KEY_CLASSES:
      option_path(state, arg, "--classes", o->classes);
      return 0;
    case KEY_TOP:
      o->top = (int)option_int(state, arg, "--top", 1, MOST_TOP);
      return 0;
    case KEY_PREDICT:
      o->predict = 1;
      return 0;
    case KEY_NODES:
      o->nodes = 1;
      return 0;
    case ARGP_KEY_ARG:
      if (o->file_count == MOST_FILES) argp_error(state, "at most %d pictures are possible", MOST_FILES);
      o->files[o->file_count++] = arg;
      return 0;
    case ARGP_KEY_END:
      if (o->predict && o->file_count == 0) argp_error(state, "--predict: the files of pictures are expected");
      if (!o->predict && o->file_count > 0)
        argp_error(state, "\"%s\" is not an option; pictures are expected behind --predict", o->files[0]);
      if (!o->predict && o->classes[0]) argp_error(state, "--classes: names are printed with --predict");
      return 0;
    default:
      return ARGP_ERR_UNKNOWN;
  }
}

static void options_read(Options *o, int argc, char **argv) {
  static const struct argp_option rows[] = {
      {"weights", KEY_WEIGHTS, "FILE", 0,
       "Weights: a .safetensors or .pth file of torchvision's (default: random ones)", 0},
      {"predict", KEY_PREDICT, NULL, 0, "Print what is on the pictures that are named, PNG or JPEG files", 0},
      {"top", KEY_TOP, "N", 0, "How many classes of each picture to print (default: 5)", 0},
      {"classes", KEY_CLASSES, "FILE", 0, "Names of the classes, one in each line (default: ImageNet's)", 0},
      {"save", KEY_SAVE, "FILE", 0, "Write the weights to a safetensors file, which torchvision loads", 0},
      {"nodes", KEY_NODES, NULL, 0, "Print every operation, and not only every block", 0},
      OPTION_END};
  static const struct argp own = {
      rows,
      parse,
      "[PICTURE...]",
      "Torchvision's ResNet-18: prints its layers, or, with --predict, what is on pictures.",
      NULL,
      NULL,
      NULL};
  memset(o, 0, sizeof *o);
  o->common = options_default(OPTIONS_LESSON);
  o->top = 5;
  options_parse(&o->common, &own, o, argc, argv);
  Error err;
  char typed[PATH_MAX], *paths[] = {o->weights, o->save, o->classes};
  for (int i = 0; i < 3; i++) {
    memcpy(typed, paths[i], sizeof typed);
    if (typed[0] && user_path(typed, paths[i], PATH_MAX, &err) != 0) die("%s", err.message);
  }
}

/* The network with the weights of --weights, or random ones, for one picture at a time; a line says which. */
static void network_open(const Options *o, Model *net) {
  Error err;
  Resnet18Weights weights;
  Resnet18Shape shape = resnet18_imagenet;
  Context context;
  memset(&context, 0, sizeof context);
  context.device = o->common.device;
  if (o->weights[0] && resnet18_weights_open(o->weights, &weights, &err) != 0) die("%s", err.message);
  if (o->weights[0] && weights.classes > 0) shape.classes = weights.classes;
  if (model_open(net, resnet18_fused(shape), context, NULL, 1, MODEL_INFER, &err) != 0) die("%s", err.message);
  if (!o->weights[0]) {
    model_init(net, o->common.seed);
    printf("random weights (seed %llu): what the network answers means nothing; --weights=FILE names trained ones\n",
           (unsigned long long)o->common.seed);
    return;
  }
  const int status = resnet18_weights_load(&weights, net, &err);
  resnet18_weights_close(&weights);
  if (status != 0) die("%s", err.message);
  printf("weights of %s: %zu tensors, %s, %d classes\n", o->weights, weights.loaded.tensors, weights.loaded.dtype,
         shape.classes);
  if (weights.loaded.prefix[0])
    printf("every name begins with \"%s\", as wrappers of PyTorch write it; it was taken off\n", weights.loaded.prefix);
}

/* 1 where a picture could not be looked at. */
static int predict(const Options *o, Model *net, json_t *predictions) {
  Error err;
  ClassNames names;
  Model fast;
  int failed = 0;
  const int classes = model_classes(net);
  if (class_names_open(o->classes, classes, &names, &err) != 0) die("--classes: %s", err.message);
  if (names.count == 0 && classes == RESNET18_CLASSES)
    printf(
        "the names of ImageNet's classes are not there: install python3-torchvision and build again, or name a file "
        "with --classes\n");
  if (residual_infer(&fast, net, 1, &err) != 0) die("%s", err.message);
  for (int i = 0; i < o->file_count; i++) {
    json_t *result =
        resnet18_predict(&fast, o->files[i], preprocess_imagenet, o->top < classes ? o->top : classes, &names, &err);
    if (result == NULL) {
      failed = 1;
      fflush(stdout);
      fprintf(stderr, "%s: error: %s\n", program_invocation_short_name, err.message);
      result = json_pack("{s:o, s:o}", "file", json_text(o->files[i]), "error", json_text(err.message));
    }
    json_array_append_new(predictions, result);
  }
  model_close(&fast);
  class_names_free(&names);
  return failed;
}

int main(int argc, char **argv) {
  static Options options;
  static Model net;
  Error err;
  char description[512];
  int failed = 0;
  json_t *layers = NULL, *predictions = json_array();
  threads_begin();
  options_read(&options, argc, argv);
  if (device_open(options.common.device, description, sizeof description, &err) != 0) die("%s", err.message);
  printf("ResNet-18 on %s\n", description);
  network_open(&options, &net);
  putchar('\n');
  if (options.predict)
    failed = predict(&options, &net, predictions);
  else if (options.nodes)
    model_print_summary(stdout, &net);
  else
    layers = resnet18_print_layers(net.graph);
  if (options.save[0]) {
    if (state_dict_save(&net, options.save, &err) != 0) die("%s", err.message);
    printf("\nweights saved to %s\n", options.save);
  }
  if (options.common.json) {
    json_t *object =
        json_pack("{s:s, s:s, s:s, s:i, s:I}", "program", program_invocation_short_name, "device",
                  device_name(options.common.device), "weights", options.weights[0] ? options.weights : "random",
                  "classes", model_classes(&net), "parameters", (json_int_t)net.parameter_count);
    if (layers) json_object_set(object, "layers", layers);
    if (options.predict) json_object_set(object, "predictions", predictions);
    if (json_result(object, &err) != 0) die("%s", err.message);
  }
  json_decref(layers);
  json_decref(predictions);
  model_close(&net);
  stdout_finish();
  return failed;
}
