/* task.h - what a program that trains a network is: a table. app.h is the program around it.
 *
 *     static const Task lenet = {
 *         "LeNet-5 (61,706 parameters)",                       // title
 *         "Trains LeNet-5 on handwritten digits ...",          // for --help
 *         lenet_graph, NULL,                                   // builds the network; it has no options
 *         &data_mnist, &batch_kernels, &sgd, &schedule_linear,
 *         5, 64, {0.03, 0.9, 0},                               // epochs, batch size; rate, momentum, weight decay
 *         choices, 1,                                          // operations with several implementations
 *         NULL, map_peaks};                                    // no augmentation; kernels of --show-excited
 *
 *     int main(int argc, char **argv) { return app_main(&lenet, argc, argv); }
 */
#ifndef COMMON_NN_TASK_H
#define COMMON_NN_TASK_H

#include "common/nn/checkpoint.h"
#include "common/nn/device_set.h"
#include "common/nn/features.h"
#include "common/nn/train_options.h"

/* Where a program can make several networks: their options; the network that was chosen in a few words, which a
 * checkpoint keeps; and back from these words, -1 with a sentence when the user has asked for another one or when they
 * cannot be understood. fit() is called before graph(): the network is for these images and classes; NULL where
 * it is the same for all. infer() makes of a trained model another one, which gives the same answers sooner: --predict
 * uses it; NULL: it uses the trained one. settings() puts what the options would have to be for the chosen network
 * into a Config (config_set()), for config.json; NULL: those that were typed say it. */
typedef struct TaskNetworks {
  const struct argp *options;
  void (*text)(char text[CHECKPOINT_NETWORK]);
  int (*from_text)(const char *text, Error *err);
  void (*fit)(const DataSource *data);
  int (*infer)(Model *fast, const Model *trained, int max_batch, Error *err);
  void (*settings)(Config *config);
} TaskNetworks;

typedef struct TaskHyper {
  double lr, momentum, weight_decay; /* lr: at its highest */
} TaskHyper;

typedef struct Task {
  const char *title;            /* "LeNet-5 (61,706 parameters)" */
  const char *description;      /* for --help */
  Graph *(*graph)(void);        /* the network; one input, one loss on its classes */
  const TaskNetworks *networks; /* NULL: graph() builds one network */
  const DataSource *data;
  const Batches *batches; /* how a batch is put together */
  const Optimizer *optimizer;
  const Schedule *schedule; /* NULL: constant */
  int epochs, batch_size;   /* defaults, as is what follows */
  TaskHyper hyper;
  const OpChoice *const *choices;
  int choice_count;
  const Augment *augment; /* of the training images, by default; NULL: none */
  MapPeaks *peaks;        /* of --show-excited; NULL: the host looks for them */
} Task;

#endif /* COMMON_NN_TASK_H */
