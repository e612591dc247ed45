/* train_networks.cuh - the networks of phases 2 and 3 in one table, each built for the images and classes of any data
 * set that it can read; and what --network=NAME chooses, as TaskNetworks of common/nn.
 *
 * A checkpoint keeps the name and, where the network has options of its own, what it says of them:
 * "mlp 784,128,10 relu".
 */
#ifndef PHASE4_TRAINING_TRAIN_NETWORKS_CUH
#define PHASE4_TRAINING_TRAIN_NETWORKS_CUH

#include "common/nearest.h"
#include "common/nn/task.h"
#include "phase2_mlp/03_mlp/mlp_networks.cuh"
#include "phase3_cnn/12_lenet_mnist/lenet.cuh"
#include "phase3_cnn/13_fashion_mnist/fashion_cnn.cuh"
#include "phase3_cnn/14_resnet_mnist/resnet_networks.cuh"
#include "phase3_cnn/15_cifar10/cifar_cnn.cuh"
#include "phase3_cnn/16_one_step/one_step_op.cuh"

typedef struct TrainNetwork {
  const char *name, *title, *lesson;
  Graph *(*graph)(Shape images, int classes);
  const TaskNetworks *(*own)(void);    /* its own options; NULL: it has none */
  void (*fit)(const DataSource *data); /* before graph(); NULL: nothing is to be done */
  int (*infer)(Model *fast, const Model *trained, int max_batch, Error *err); /* of TaskNetworks */
  const DataSource *data; /* what its lesson trains it on, and how: */
  const Schedule *schedule;
  int epochs, batch_size;
  TaskHyper hyper;
  const Augment *augment; /* of colour pictures; NULL: none */
} TrainNetwork;

/* ----------------------------------------------------------------------------------------------------- the builders */

static inline Graph *train_mlp(Shape images, int classes) {
  (void)images; /* its fit() knows them */
  (void)classes;
  return mlp_graph(&mlp_choice.shape);
}

static inline Graph *train_softmax(Shape images, int classes) {
  return softmax_regression_graph((int)shape_count(images), classes);
}

static inline Graph *train_lenet(Shape images, int classes) {
  return one_step_may_fuse(lenet_graph_for(images, classes));
}

static inline Graph *train_resnet_mnist(Shape images, int classes) {
  return resnet_fused_for(resnet_choice.shape, images, classes);
}

static inline Graph *train_resnet_cifar(Shape images, int classes) {
  return cifar_graph_for(&cifar_networks[CIFAR_RESNET], images, classes);
}

static inline const TaskNetworks *train_mlp_options(void) { return mlp_networks("784,128,10", ACTIVATION_RELU); }

/* -------------------------------------------------------------------------------------------------------- the table */

enum { TRAIN_NETWORKS = 6 };

static inline const TrainNetwork *train_network_at(int i) {
  static const TrainNetwork table[TRAIN_NETWORKS] = {
      {"softmax",
       "Softmax regression",
       "phase2_mlp/03_mlp",
       train_softmax,
       NULL,
       NULL,
       NULL,
       &data_mnist,
       &schedule_linear,
       5,
       64,
       {0.05, 0.9, 5e-4},
       NULL},
      {"mlp",
       "Multi-layer perceptron",
       "phase2_mlp/07_mlp_mnist",
       train_mlp,
       train_mlp_options,
       mlp_networks_fit,
       NULL,
       &data_mnist,
       &schedule_linear,
       10,
       64,
       {0.05, 0.9, 5e-4},
       NULL},
      {"lenet",
       "LeNet-5",
       "phase3_cnn/12_lenet_mnist",
       train_lenet,
       NULL,
       NULL,
       NULL,
       &data_mnist,
       &schedule_linear,
       5,
       64,
       {0.03, 0.9, 0},
       NULL},
      {"fashion_cnn",
       "Fashion CNN",
       "phase3_cnn/13_fashion_mnist",
       fashion_cnn_graph_for,
       NULL,
       NULL,
       NULL,
       &data_fashion_mnist,
       &schedule_linear,
       5,
       64,
       {0.05, 0.9, 5e-4},
       NULL},
      {"resnet_mnist",
       "Residual network",
       "phase3_cnn/14_resnet_mnist",
       train_resnet_mnist,
       resnet_networks,
       NULL,
       residual_infer,
       &data_mnist,
       &schedule_linear,
       2,
       64,
       {0.05, 0.9, 5e-4},
       NULL},
      {"resnet_cifar",
       "Residual network for colour pictures",
       "phase3_cnn/15_cifar10",
       train_resnet_cifar,
       NULL,
       NULL,
       residual_infer,
       &data_cifar10,
       &schedule_linear,
       20,
       128,
       {0.05, 0.9, 5e-4},
       &augment_crop},
  };
  return i >= 0 && i < TRAIN_NETWORKS ? &table[i] : NULL;
}

/* NULL when there is none of this name, of which the first `length` letters count. */
static inline const TrainNetwork *train_network_named(const char *name, size_t length) {
  const TrainNetwork *n;
  for (int i = 0; (n = train_network_at(i)) != NULL; i++)
    if (strlen(n->name) == length && strncmp(n->name, name, length) == 0) return n;
  return NULL;
}

/* "softmax, mlp, ...", or those alone that can read such images. */
static inline const char *train_network_names(const DataSource *fit, char *text, size_t size) {
  const TrainNetwork *n;
  size_t used = 0;
  text[0] = '\0';
  for (int i = 0; (n = train_network_at(i)) != NULL && used < size; i++) {
    Graph *g = fit ? n->graph(fit->shape, fit->classes) : NULL;
    if (g == NULL || !g->failed) used += (size_t)snprintf(text + used, size - used, "%s%s", used ? ", " : "", n->name);
    if (g) graph_destroy(g);
  }
  return text;
}

/* ------------------------------------------------------------------------------------------------------- the choice */

typedef struct TrainChoice {
  const TrainNetwork *network;
  int given; /* 1: by --network */
  Shape images;
  int classes;
} TrainChoice;

static TrainChoice train_choice;

/* -1 with the nearest name. */
static inline int train_choose(const char *name, Error *err) {
  char known[160];
  const char *names[TRAIN_NETWORKS], *nearest;
  const TrainNetwork *network = train_network_named(name, strlen(name));
  if (network) {
    train_choice.network = network;
    return 0;
  }
  for (int i = 0; i < TRAIN_NETWORKS; i++) names[i] = train_network_at(i)->name;
  error_set(err, "--network=%.60s: one of %s is expected", name, train_network_names(NULL, known, sizeof known));
  if ((nearest = nearest_name(name, names, TRAIN_NETWORKS)) != NULL) error_advise(err, "do you mean %s?", nearest);
  return -1;
}

static inline void train_text(char text[CHECKPOINT_NETWORK]) {
  const TrainNetwork *n = train_choice.network;
  size_t used = (size_t)snprintf(text, CHECKPOINT_NETWORK, "%s", n->name);
  if (n->own == NULL) return;
  char own[CHECKPOINT_NETWORK];
  (n->own == resnet_networks ? resnet_networks_text : mlp_networks_text)(own);
  snprintf(text + used, CHECKPOINT_NETWORK - used, " %.160s", own);
}

/* A file from elsewhere says nothing of its network: its tensors will fit the one that was asked for, or not. */
static inline int train_from_text(const char *text, Error *err) {
  const size_t length = strcspn(text, " ");
  const TrainNetwork *n = train_network_named(text, length);
  if (text[0] == '\0') return 0;
  if (n == NULL)
    return error_set(err, "the checkpoint is of the network \"%.80s\"; one that this program has trained is expected",
                     text);
  if (train_choice.given && n != train_choice.network)
    return error_set(err,
                     "this is the network %s, not %s; leave --network out, or train another one into another "
                     "--output-dir",
                     n->name, train_choice.network->name);
  train_choice.network = n;
  if (n->own == NULL) return 0;
  const char *own = text + length + (text[length] == ' ');
  return n->own == resnet_networks ? resnet_networks_from_text(own, err) : mlp_networks_from_text(own, err);
}

static inline void train_settings(Config *config) {
  const TrainNetwork *n = train_choice.network;
  config_set(config, "network", n->name);
  if (n->own) (n->own == resnet_networks ? resnet_networks_settings : mlp_networks_settings)(config);
}

static inline void train_fit(const DataSource *data) {
  train_choice.images = data->shape;
  train_choice.classes = data->classes;
  if (train_choice.network->fit) train_choice.network->fit(data);
}

static inline Graph *train_graph(void) {
  return train_choice.network->graph(train_choice.images, train_choice.classes);
}

static inline int train_infer(Model *fast, const Model *trained, int max_batch, Error *err) {
  return train_choice.network->infer(fast, trained, max_batch, err);
}

/* -1 where the network cannot be built for these images; the sentence names those that can. */
static inline int train_check_fit(const DataSource *data, Error *err) {
  char fit[160];
  train_fit(data);
  Graph *g = train_graph();
  int status = 0;
  if (g->failed) {
    const Node *last = &g->nodes[g->count - 1];
    status =
        error_set(err,
                  "--network=%s does not fit the images of %s, of shape %s: what comes out of %s, %s, is too small "
                  "for the next layer",
                  train_choice.network->name, data->title, shape_text(data->shape).text, last->name,
                  shape_text(last->shape).text);
    error_advise(err, "these networks do: %s", train_network_names(data, fit, sizeof fit));
  }
  graph_destroy(g);
  return status;
}

#endif /* PHASE4_TRAINING_TRAIN_NETWORKS_CUH */
