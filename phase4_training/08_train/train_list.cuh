/* train_list.cuh - --list: the networks and the data sets that train knows, as tables and, with --json, as an object.
 *
 * The number of a network's parameters depends on the images and the classes: there is a column for each data set, with
 * a dash where the network cannot be built for it.
 */
#ifndef PHASE4_TRAINING_TRAIN_LIST_CUH
#define PHASE4_TRAINING_TRAIN_LIST_CUH

#include "common/train_log.h"
#include "phase4_training/08_train/train_networks.cuh"

/* The table's, and behind them the folder of --data; NULL after the last. */
static inline const DataSource *train_list_data(const TrainOptions *options, int i) {
  if (i < DATA_SOURCES) return data_source_at(i);
  return i == DATA_SOURCES && options->data_folder[0] != '\0' ? options->data : NULL;
}

/* What is trained of a network for these images; 0: it cannot be built for them. */
static inline size_t train_list_parameters(const TrainNetwork *network, const DataSource *data) {
  const TrainNetwork *chosen = train_choice.network;
  size_t sum = 0;
  train_choice.network = network;
  train_fit(data);
  Graph *g = train_graph();
  for (int i = 0; i < g->count && !g->failed; i++)
    for (int k = 0; k < g->nodes[i].params; k++) sum += g->nodes[i].param[k].trained ? g->nodes[i].param[k].count : 0;
  if (g->failed) sum = 0;
  graph_destroy(g);
  train_choice.network = chosen;
  return sum;
}

/* Whether the files are on this machine: in the folder that was named for this set, or where they are expected. */
static inline int train_list_here(const TrainOptions *options, const DataSource *data) {
  Error none;
  char folder[PATH_MAX];
  const char *named = data == options->data ? options->common.data_dir : "";
  return data_folder(data, named, folder, sizeof folder, &none) == 0 && access(folder, R_OK) == 0;
}

static inline void train_list_networks(const TrainOptions *options) {
  const TrainNetwork *n;
  const DataSource *data;
  printf("%-14s%-38s%-29s parameters for\n%81s", "network", "", "lesson", "");
  for (int d = 0; (data = train_list_data(options, d)) != NULL; d++) printf(" %13s", data->name);
  putchar('\n');
  for (int i = 0; (n = train_network_at(i)) != NULL; i++) {
    printf("%-14s%-38s%-29s", n->name, n->title, n->lesson);
    for (int d = 0; (data = train_list_data(options, d)) != NULL; d++) {
      const size_t parameters = train_list_parameters(n, data);
      if (parameters)
        printf(" %13zu", parameters);
      else
        printf(" %13s", "-");
    }
    putchar('\n');
  }
}

static inline void train_list_sets(const TrainOptions *options) {
  const DataSource *data;
  printf("\n%-14s%-38s%-12s%8s   on this machine\n", "data set", "", "images", "classes");
  for (int d = 0; (data = train_list_data(options, d)) != NULL; d++)
    printf("%-14s%-38s%-12s%8d   %s\n", data->name, data->title, shape_text(data->shape).text, data->classes,
           train_list_here(options, data) ? "yes"
           : data->folder[0]              ? "no"
                                          : "no; download it, and name its folder with --data=FOLDER");
}

static inline json_t *train_list_json(const TrainOptions *options) {
  json_t *networks = json_array(), *sets = json_array();
  const TrainNetwork *n;
  const DataSource *data;
  for (int i = 0; (n = train_network_at(i)) != NULL; i++) {
    json_t *parameters = json_object();
    for (int d = 0; (data = train_list_data(options, d)) != NULL; d++) {
      const size_t count = train_list_parameters(n, data);
      json_object_set_new(parameters, data->name, count ? json_integer((json_int_t)count) : json_null());
    }
    json_array_append_new(networks, json_pack("{s:s, s:s, s:s, s:s, s:o}", "name", n->name, "title", n->title, "lesson",
                                              n->lesson, "data", n->data->name, "parameters", parameters));
  }
  for (int d = 0; (data = train_list_data(options, d)) != NULL; d++) {
    json_t *shape = json_array();
    for (int k = 0; k < data->shape.rank; k++) json_array_append_new(shape, json_integer(data->shape.dim[k]));
    json_array_append_new(
        sets, json_pack("{s:s, s:s, s:o, s:i, s:b}", "name", data->name, "title", data->title, "shape", shape,
                        "classes", data->classes, "available", train_list_here(options, data)));
  }
  return json_pack("{s:s, s:o, s:o}", "program", program_invocation_short_name, "networks", networks, "data", sets);
}

static inline int train_list(const TrainOptions *options) {
  Error err;
  train_list_networks(options);
  train_list_sets(options);
  if (options->common.json && json_result(train_list_json(options), &err) != 0) die("%s", err.message);
  stdout_finish();
  return 0;
}

#endif /* PHASE4_TRAINING_TRAIN_LIST_CUH */
