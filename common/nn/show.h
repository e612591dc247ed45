/* show.h - --show-features and --show-excited: what a trained network sees, in words and in pictures. Nothing is
 * trained; the model is that of --predict. */
#ifndef COMMON_NN_SHOW_H
#define COMMON_NN_SHOW_H

#include "common/nn/features_picture.h"
#include "common/nn/predict.h"

enum { SHOW_BATCH = 256 };

/* "runs/lenet_mnist/features.png", written; a picture that cannot be written ends the program. */
static inline void show_write(const Image *image, const char *path) {
  Error err;
  if (image_write_png(path, image, &err) != 0) die("%s", err.message);
}

/* What stands behind the last / of a path. */
static inline const char *show_base_name(const char *path) {
  const char *slash = strrchr(path, '/');
  return slash && slash[1] ? slash + 1 : path;
}

static inline json_t *show_shape(Shape shape) {
  json_t *dims = json_array();
  for (int i = 0; i < shape.rank; i++) json_array_append_new(dims, json_integer(shape.dim[i]));
  return dims;
}

/* ------------------------------------------------------------------------------------------------- --show-features */

/* A line for each node, and the same for JSON. */
static inline json_t *show_layers(const FeatureMaps *maps) {
  json_t *layers = json_array();
  printf("%-24s %-20s %-14s %10s %10s %10s\n", "layer", "operation", "output", "smallest", "largest", "positive");
  for (int i = 0; i < maps->graph->count; i++) {
    const Node *node = &maps->graph->nodes[i];
    const FeatureRange range = features_range(maps->values[i], shape_count(node->shape));
    const char *operation = node->op ? node->op->name : "input";
    printf("%-24s %-20s %-14s %10.4g %10.4g %8.1f %%\n", node->name, operation, shape_text(node->shape).text,
           (double)range.smallest, (double)range.largest, 100 * range.positive);
    json_array_append_new(
        layers, json_pack("{s:s, s:s, s:o, s:f, s:f, s:f}", "node", node->name, "operation", operation, "shape",
                          show_shape(node->shape), "smallest", (double)range.smallest, "largest", (double)range.largest,
                          "positive", range.positive));
  }
  putchar('\n');
  return layers;
}

/* The picture of options->features, layer by layer, into `path`. */
static inline void show_features(const Task *task, const TrainOptions *options, Model *net, const DataNorm *norm,
                                 const char *path, json_t *result) {
  Error err;
  const int classes = model_classes(net);
  const char *const *names = classes == options->data->classes ? options->data->class_names : NULL;
  uint8_t *sample = (uint8_t *)xmalloc(shape_count(options->data->shape));
  float *probabilities = (float *)xmalloc((size_t)classes * sizeof *probabilities);
  if (predict_read(net, options->data, norm, options->features, sample, &err) != 0) die("%s", err.message);
  FeatureMaps maps = features_record(net);
  model_score(net, 1);
  if (predict_answer(net, options->features, probabilities, &err) != 0) die("%s", err.message);
  json_object_set_new(result, "layers", show_layers(&maps));
  json_object_set_new(result, "prediction", report_prediction(options->features, probabilities, classes, names));
  char title[512];
  snprintf(title, sizeof title, "%.200s: what each layer makes of %.200s", task->title,
           show_base_name(options->features));
  const FeatureStory story = {title, &maps, sample, options->data->shape, probabilities, classes, names};
  int drawn;
  Image image = features_draw(&story, &drawn);
  show_write(&image, path);
  if (drawn < maps.graph->count)
    printf("the first %d of %d layers are drawn in %s\n", drawn, maps.graph->count, path);
  else
    printf("all %d layers are drawn in %s\n", drawn, path);
  json_object_set_new(result, "features", json_text(path));
  image_free(&image);
  features_free(&maps);
  free(probabilities);
  free(sample);
}

/* -------------------------------------------------------------------------------------------------- --show-excited */

static inline json_t *show_peaks(const Graph *g, const FeatureSearch *search, int l, const DataSet *test) {
  const FeatureLayer *layer = &search->layer[l];
  const int columns = g->nodes[layer->node].shape.dim[2];
  json_t *filters = json_array();
  for (int f = 0; f < layer->filters; f++) {
    json_t *top = json_array();
    for (int k = 0; k < search->most; k++) {
      const FeaturePeak peak = layer->peak[(size_t)f * search->most + k];
      if (peak.image < 0) continue;
      json_array_append_new(
          top, json_pack("{s:i, s:i, s:f, s:i, s:i}", "image", peak.image, "label", test->labels[peak.image], "value",
                         (double)peak.value, "row", peak.place / columns, "column", peak.place % columns));
    }
    json_array_append_new(filters, top);
  }
  return filters;
}

/* "     0      4.31      4.02   7 7 9 7 7 7 2 7" */
static inline void show_filter(const FeatureSearch *search, int l, int filter, const DataSet *test,
                               const char *const *names) {
  const FeaturePeak *peak = search->layer[l].peak + (size_t)filter * search->most;
  printf("%6d %10.4g %10.4g  ", filter, (double)peak[0].value, (double)peak[search->most - 1].value);
  for (int k = 0; k < search->most && peak[k].image >= 0; k++) {
    char name[64];
    confusion_name(name, sizeof name - 1, test->labels[peak[k].image], names);
    printf(" %s", name);
  }
  putchar('\n');
}

/* A table for each layer with filters; and the same, of all filters, for JSON. */
static inline json_t *show_search(const Graph *g, const FeatureSearch *search, const DataSet *test,
                                  const DataSource *source) {
  json_t *layers = json_array();
  for (int l = 0; l < search->layers; l++) {
    const Node *node = &g->nodes[search->layer[l].node];
    int field[2];
    features_field(g, search->layer[l].node, field);
    printf("%s, %s %s: each value sees %d x %d pixels\n", node->name, node->op->name, shape_text(node->shape).text,
           field[0], field[1]);
    printf("filter  strongest    weakest   labels of the %d %s\n", search->most, source->things);
    const int cards = features_cards(search, l);
    for (int f = 0; f < cards; f++) show_filter(search, l, f, test, source->class_names);
    if (cards < search->layer[l].filters) printf("   ... and %d more\n", search->layer[l].filters - cards);
    putchar('\n');
    json_array_append_new(layers,
                          json_pack("{s:s, s:o, s:[i, i], s:o}", "node", node->name, "shape", show_shape(node->shape),
                                    "receptive_field", field[0], field[1], "filters", show_peaks(g, search, l, test)));
  }
  return layers;
}

/* For each filter the options->excited test pictures that excite it most, into `path`. */
static inline void show_excited(const Task *task, const TrainOptions *options, Model *net, const DataNorm *norm,
                                DataSet *test, const char *path, json_t *result) {
  DeviceSet set;
  FeatureSearch search;
  device_set_create(&set, net->context.device, task->batches, test, test->count, norm);
  features_search(&search, net, &set, task->peaks, options->excited);
  device_set_destroy(&set);
  if (search.layers == 0)
    die("--show-excited: the network has no layer with filters (a convolution); --show-features shows any network");
  char title[512];
  int drawn;
  snprintf(title, sizeof title, "%.200s: the %d of %d test %.100s that excite each filter most", task->title,
           search.most, test->count, options->data->things);
  printf("%s\n\n", title);
  json_object_set_new(result, "excited_layers", show_search(net->graph, &search, test, options->data));
  Image image = features_draw_excited(title, net, &search, test, &drawn);
  show_write(&image, path);
  if (drawn < search.layers)
    printf("the first %d of %d layers with filters are drawn in %s\n", drawn, search.layers, path);
  else
    printf("all %d layers with filters are drawn in %s\n", drawn, path);
  json_object_set_new(result, "excited", json_text(path));
  image_free(&image);
  features_search_free(&search);
}

/* The test pictures, the first --test-images of them. */
static inline void show_load(const TrainOptions *options, DataSet *test) {
  Error err;
  if (data_load(options->data, options->common.data_dir, DATA_TEST, test, &err) != 0) die("%s", err.message);
  if (options->test_images) data_keep_first(test, options->test_images);
}

/* --------------------------------------------------------------------------------------------------------- the mode */

static inline int show_run(const Task *task, TrainOptions *options) {
  Error err;
  Error why;
  char path[PATH_MAX + 32], picture[PATH_MAX + 32];
  Model net;
  DataNorm norm;
  DataSet test;
  memset(&test, 0, sizeof test);
  const int most = options->excited ? SHOW_BATCH : 1;
  if (predict_open(task, options, most, path, sizeof path, &net, &norm, &err) != 0) die("%s", err.message);
  if (options->excited) show_load(options, &test);
  if (make_directories(options->common.output_dir, &why) != 0) die("--output-dir: %.1000s", why.message);
  json_t *result = json_pack("{s:s, s:s, s:o}", "program", program_invocation_short_name, "device",
                             device_name(options->common.device), "checkpoint", json_text(path));
  if (options->features[0]) {
    snprintf(picture, sizeof picture, "%s/features.png", options->common.output_dir);
    show_features(task, options, &net, &norm, picture, result);
  }
  if (options->features[0] && options->excited) putchar('\n');
  if (options->excited) {
    snprintf(picture, sizeof picture, "%s/excited.png", options->common.output_dir);
    show_excited(task, options, &net, &norm, &test, picture, result);
  }
  if (options->common.json && json_result(json_incref(result), &err) != 0) die("%s", err.message);
  json_decref(result);
  data_free(&test);
  model_close(&net);
  return 0;
}

#endif /* COMMON_NN_SHOW_H */
