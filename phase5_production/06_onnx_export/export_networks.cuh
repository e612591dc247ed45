/* export_networks.cuh - the networks of this course in one table, each built for the file of weights at hand.
 *
 * What a network is follows, in this order, from --network, from what its checkpoint says of it ("784,128,10 relu"),
 * and from the tensors of the file: their names and shapes tell LeNet-5 from the Fashion CNN. The number of classes is
 * that of the last layer, the widths of a ResNet-18 or an MLP are those of its weights.
 */
#ifndef PHASE5_PRODUCTION_EXPORT_NETWORKS_CUH
#define PHASE5_PRODUCTION_EXPORT_NETWORKS_CUH

#include "common/nearest.h"
#include "common/nn/state_dict.h"
#include "phase2_mlp/03_mlp/mlp.cuh"
#include "phase3_cnn/11_residual/residual_depth.cuh"
#include "phase3_cnn/12_lenet_mnist/lenet.cuh"
#include "phase3_cnn/13_fashion_mnist/fashion_cnn.cuh"
#include "phase3_cnn/14_resnet_mnist/resnet_networks.cuh"
#include "phase3_cnn/15_cifar10/cifar_cnn.cuh"
#include "phase4_training/09_mixed_precision/stripes.cuh"
#include "phase5_production/03_resnet18/resnet18.cuh"

enum {
  EXPORT_TINY_SIDE = 64,
  EXPORT_TINY_WIDTH = 64,
  EXPORT_TINY_HIDDEN = 256,
  EXPORT_TINY_CLASSES = 200,
  EXPORT_DEPTH_MOST = 200
};

/* All that distinguishes two networks of one kind. */
typedef struct ExportShape {
  Shape images; /* of its input: (C,H,W), or (features) */
  int classes;
  int width;             /* of ResNet-18 and the Tiny-ImageNet CNN: channels of conv1; hidden neurons of `points` */
  MlpShape mlp;          /* of the MLP */
  ResnetShape resnet;    /* of resnet_mnist */
  DepthNetwork depth;    /* of residual_depth */
  Activation activation; /* of `points` */
} ExportShape;

typedef struct ExportNetwork {
  const char *name, *title, *lesson;
  const char *data; /* the set that its lesson trains it on; "": none of the table in common/nn */
  Graph *(*graph)(const ExportShape *shape);
  void (*standard)(ExportShape *shape);                             /* the lesson's own shape */
  void (*measure)(ExportShape *shape, const SafetensorsFile *file); /* what the tensors' sizes say; NULL: nothing */
} ExportNetwork;

/* ------------------------------------------------------------------------------------------------------- the graphs */

/* The point classifiers of lessons 1 and 2 of phase 2: one neuron, or a hidden layer before it. One logit. */
static inline Graph *export_points_graph(const ExportShape *s) {
  Graph *g = graph_create();
  g->weight_init = &xavier_normal;
  int x = graph_input(g, "x", shape1(2));
  if (s->width > 0) x = activation(g, linear(g, x, s->width), s->activation);
  graph_output(g, linear(g, x, 1));
  return g;
}

static inline Graph *export_softmax_graph(const ExportShape *s) {
  return softmax_regression_graph((int)shape_count(s->images), s->classes);
}
static inline Graph *export_mlp_graph(const ExportShape *s) { return mlp_graph(&s->mlp); }
static inline Graph *export_lenet_graph(const ExportShape *s) { return lenet_graph_for(s->images, s->classes); }
static inline Graph *export_fashion_graph(const ExportShape *s) { return fashion_cnn_graph_for(s->images, s->classes); }
static inline Graph *export_resnet_graph(const ExportShape *s) {
  return resnet_fused_for(s->resnet, s->images, s->classes);
}
static inline Graph *export_cifar_graph(const ExportShape *s) {
  return cifar_graph_for(&cifar_networks[CIFAR_RESNET], s->images, s->classes);
}
static inline Graph *export_stripes_graph(const ExportShape *s) {
  (void)s;
  return stripes_graph(DTYPE_FLOAT32);
}
static inline Graph *export_depth_graph(const ExportShape *s) { return depth_graph(s->depth); }

/* TinyImageNetCNN of lesson 5's Python package: three blocks of convolution, batch norm, ReLU and max pooling, then
 * two linear layers. */
static inline Graph *export_tiny_graph(const ExportShape *s) {
  Graph *g = graph_create();
  g->weight_init = &torch_default;
  int x = graph_input(g, "x", s->images);
  for (int i = 0; i < 3; i++)
    x = max_pool2d(g, relu(g, batch_norm2d(g, conv2d_no_bias(g, x, s->width << i, 3, 1, 1))), 2, 2);
  x = dropout(g, relu(g, linear(g, x, EXPORT_TINY_HIDDEN)), 0.5f);
  graph_loss(g, &cross_entropy_loss, linear(g, x, s->classes), 1);
  return g;
}

static inline Graph *export_resnet18_graph(const ExportShape *s) {
  const Resnet18Shape shape = {s->images.dim[1], s->width, s->classes};
  return resnet18_fused(shape);
}

/* ------------------------------------------------------------------------------------------------- their own shapes */

static inline void export_points_standard(ExportShape *s) {
  s->images = shape1(2);
  s->classes = 1;
  s->width = 8;
  s->activation = ACTIVATION_TANH;
}
static inline void export_mnist_standard(ExportShape *s) {
  Error none;
  s->images = shape3(1, MNIST_SIDE, MNIST_SIDE);
  s->classes = MNIST_CLASSES;
  s->resnet = resnet_default;
  mlp_parse(&s->mlp, "784,128,10 relu", &none);
}
static inline void export_cifar_standard(ExportShape *s) {
  s->images = shape3(3, CIFAR_SIDE, CIFAR_SIDE);
  s->classes = 10;
}
static inline void export_stripes_standard(ExportShape *s) {
  s->images = shape3(1, STRIPES_SIDE, STRIPES_SIDE);
  s->classes = STRIPES_CLASSES;
}
static inline void export_depth_standard(ExportShape *s) {
  const DepthNetwork depth = {20, 8, 1, 1, &he_normal};
  export_mnist_standard(s);
  s->depth = depth;
}
static inline void export_tiny_standard(ExportShape *s) {
  s->images = shape3(3, EXPORT_TINY_SIDE, EXPORT_TINY_SIDE);
  s->classes = EXPORT_TINY_CLASSES;
  s->width = EXPORT_TINY_WIDTH;
}
static inline void export_resnet18_standard(ExportShape *s) {
  s->images = shape3(3, RESNET18_SIDE, RESNET18_SIDE);
  s->classes = RESNET18_CLASSES;
  s->width = RESNET18_WIDTH;
}

/* ------------------------------------------------------------------------------------- what the tensors' sizes say */

/* Size k of a tensor of the file; 0 where it has none, or an absurd one. */
static inline int export_size(const SafetensorsFile *file, const char *name, int k) {
  char prefix[STATE_DICT_PREFIX];
  state_dict_prefix(file, prefix);
  const SafetensorsTensor *tensor = state_dict_find(file, prefix, name);
  return tensor == NULL || k >= tensor->rank || tensor->shape[k] > 1 << 20 ? 0 : (int)tensor->shape[k];
}

static inline void export_measure(int *size, int measured) {
  if (measured > 0) *size = measured;
}

static inline void export_points_measure(ExportShape *s, const SafetensorsFile *file) {
  s->width = export_size(file, "fc2.weight", 1);
}
static inline void export_softmax_measure(ExportShape *s, const SafetensorsFile *file) {
  const int features = export_size(file, "fc.weight", 1);
  if (features > 0 && (size_t)features != shape_count(s->images)) s->images = shape1(features);
}
static inline void export_mlp_measure(ExportShape *s, const SafetensorsFile *file) {
  MlpShape m = s->mlp;
  char name[32];
  for (m.count = 0; m.count < MLP_MAX_WIDTHS; m.count++) {
    snprintf(name, sizeof name, "fc%d.weight", m.count > 0 ? m.count : 1);
    m.width[m.count] = export_size(file, name, m.count > 0 ? 0 : 1);
    if (m.width[m.count] == 0) break;
  }
  if (m.count >= 2) s->mlp = m;
}
static inline void export_images_measure(ExportShape *s, const SafetensorsFile *file) {
  export_measure(&s->images.dim[0], export_size(file, "conv1.weight", 1));
  if (s->images.dim[0] == 3 && s->images.dim[1] == MNIST_SIDE) s->images = shape3(3, CIFAR_SIDE, CIFAR_SIDE);
}
static inline void export_resnet_measure(ExportShape *s, const SafetensorsFile *file) {
  export_images_measure(s, file);
  export_measure(&s->resnet.filters[0], export_size(file, "conv1.weight", 0));
  export_measure(&s->resnet.filters[1], export_size(file, "layer1.0.conv1.weight", 0));
  export_measure(&s->resnet.filters[2], export_size(file, "layer2.0.conv1.weight", 0));
}
static inline void export_tiny_measure(ExportShape *s, const SafetensorsFile *file) {
  const int width = export_size(file, "conv1.weight", 0), features = export_size(file, "fc1.weight", 1);
  if (width < 1 || features < 1) return;
  const int side = (int)lround(8 * sqrt((double)features / (4.0 * width)));
  s->width = width;
  if (side > 0 && side <= 4096) s->images = shape3(3, side, side);
}
/* Whether it has shortcuts its tensors do not say: it has. */
static inline void export_depth_measure(ExportShape *s, const SafetensorsFile *file) {
  char name[32];
  int layers = 0;
  do snprintf(name, sizeof name, "conv%d.weight", layers + 1);
  while (export_size(file, name, 0) > 0 && layers++ < EXPORT_DEPTH_MOST);
  export_measure(&s->depth.channels, export_size(file, "conv1.weight", 0));
  s->depth.batch_norm = export_size(file, "bn1.weight", 0) > 0;
  if (layers > 2 && layers % 2 == 1) s->depth.layers = layers - 1; /* the first is the stem */
}
static inline void export_resnet18_measure(ExportShape *s, const SafetensorsFile *file) {
  export_measure(&s->width, export_size(file, "bn1.weight", 0));
}

/* -------------------------------------------------------------------------------------------------------- the table */

enum { EXPORT_NETWORKS = 11 };

static inline const ExportNetwork *export_network_at(int i) {
  static const ExportNetwork table[EXPORT_NETWORKS] = {
      {"points", "Point classifier", "phase2_mlp/02_xor", "", export_points_graph, export_points_standard,
       export_points_measure},
      {"softmax", "Softmax regression", "phase2_mlp/03_mlp", "mnist", export_softmax_graph, export_mnist_standard,
       export_softmax_measure},
      {"mlp", "Multi-layer perceptron", "phase2_mlp/07_mlp_mnist", "mnist", export_mlp_graph, export_mnist_standard,
       export_mlp_measure},
      {"residual_depth", "Deep network with shortcuts", "phase3_cnn/11_residual", "mnist", export_depth_graph,
       export_depth_standard, export_depth_measure},
      {"lenet", "LeNet-5", "phase3_cnn/12_lenet_mnist", "mnist", export_lenet_graph, export_mnist_standard,
       export_images_measure},
      {"fashion_cnn", "Fashion CNN", "phase3_cnn/13_fashion_mnist", "fashion_mnist", export_fashion_graph,
       export_mnist_standard, export_images_measure},
      {"resnet_mnist", "Residual network", "phase3_cnn/14_resnet_mnist", "mnist", export_resnet_graph,
       export_mnist_standard, export_resnet_measure},
      {"resnet_cifar", "Residual network for colour pictures", "phase3_cnn/15_cifar10", "cifar10", export_cifar_graph,
       export_cifar_standard, export_images_measure},
      {"stripes", "Residual network for stripes", "phase4_training/09_mixed_precision", "", export_stripes_graph,
       export_stripes_standard, NULL},
      {"tiny_imagenet", "Tiny-ImageNet CNN", "phase5_production/05_pytorch", "", export_tiny_graph,
       export_tiny_standard, export_tiny_measure},
      {"resnet18", "ResNet-18", "phase5_production/03_resnet18", "", export_resnet18_graph, export_resnet18_standard,
       export_resnet18_measure},
  };
  return i >= 0 && i < EXPORT_NETWORKS ? &table[i] : NULL;
}

/* NULL where there is none of this name, of which `length` letters count. */
static inline const ExportNetwork *export_network_named(const char *name, size_t length) {
  const ExportNetwork *n;
  for (int i = 0; (n = export_network_at(i)) != NULL; i++)
    if (strlen(n->name) == length && strncmp(n->name, name, length) == 0) return n;
  return NULL;
}

static inline const char *export_network_names(char *text, size_t size) {
  const ExportNetwork *n;
  size_t used = 0;
  for (int i = 0; (n = export_network_at(i)) != NULL && used < size; i++)
    used += (size_t)snprintf(text + used, size - used, "%s%s", i ? ", " : "", n->name);
  return text;
}

/* ------------------------------------------------------------------------------------------------------- the choice */

typedef struct ExportChoice {
  const ExportNetwork *network;
  ExportShape shape;
  int own; /* the text says more than the name: the widths of an MLP */
} ExportChoice;

/* The network in the lesson's own shape. */
static inline void export_choose(ExportChoice *c, const ExportNetwork *network) {
  memset(c, 0, sizeof *c);
  c->network = network;
  network->standard(&c->shape);
}

/* What --network or a checkpoint says: a name of the table, and behind it what distinguishes this one, or, as the
 * programs of single lessons write it, only that: "mlp 784,300,10 tanh", "784,300,10 tanh". -1 where it is neither. */
static inline int export_choose_text(ExportChoice *c, const char *text, Error *err) {
  char known[256];
  const char *names[EXPORT_NETWORKS], *nearest;
  const size_t length = strcspn(text, " ");
  const char *own = text[length] == ' ' ? text + length + 1 : "";
  const ExportNetwork *network = export_network_named(text, length);
  MlpShape mlp;
  ResnetShape resnet;
  Error why;
  if (network == NULL && resnet_parse(text, &resnet) == 0)
    network = export_network_named("resnet_mnist", 12), own = text;
  if (network == NULL && mlp_parse(&mlp, text, &why) == 0) network = export_network_named("mlp", 3), own = text;
  if (network == NULL && strcmp(text, "resnet") == 0) network = export_network_named("resnet_cifar", 12);
  if (network == NULL) {
    for (int i = 0; i < EXPORT_NETWORKS; i++) names[i] = export_network_at(i)->name;
    error_set(err, "the network \"%.80s\" is unknown; one of %s is expected", text,
              export_network_names(known, sizeof known));
    if ((nearest = nearest_name(text, names, EXPORT_NETWORKS)) != NULL) error_advise(err, "do you mean %s?", nearest);
    return -1;
  }
  export_choose(c, network);
  if (own[0] == '\0') return 0;
  c->own = 1;
  if (strcmp(network->name, "mlp") == 0) {
    if (mlp_parse(&c->shape.mlp, own, err) != 0) return -1;
    c->shape.classes = c->shape.mlp.width[c->shape.mlp.count - 1];
    return 0;
  }
  if (strcmp(network->name, "resnet_mnist") == 0 && resnet_parse(own, &c->shape.resnet) == 0) return 0;
  return error_set(err, "\"%.80s\" behind the network %s cannot be understood", own, network->name);
}

/* The images of a data set, and its classes. */
static inline void export_choose_data(ExportChoice *c, const DataSource *data) {
  c->shape.images = data->shape;
  if (!c->own || strcmp(c->network->name, "mlp") != 0) c->shape.classes = data->classes;
  if (strcmp(c->network->name, "mlp") == 0 && !c->own) {
    c->shape.mlp.width[0] = (int)shape_count(data->shape);
    c->shape.mlp.width[c->shape.mlp.count - 1] = data->classes;
  }
}

/* The last parameter: the bias of the layer that makes the logits. */
static inline const Param *export_last_param(const Graph *g) {
  for (int i = g->count - 1; i >= 0; i--)
    if (g->nodes[i].params > 0) return &g->nodes[i].param[g->nodes[i].params - 1];
  return NULL;
}

/* The sizes that the file's tensors have become those of the network. */
static inline void export_choose_sizes(ExportChoice *c, const SafetensorsFile *file) {
  if (c->network->measure) c->network->measure(&c->shape, file);
  Graph *g = c->network->graph(&c->shape);
  const Param *last = g->failed ? NULL : export_last_param(g);
  if (last) export_measure(&c->shape.classes, export_size(file, last->name, 0));
  graph_destroy(g);
}

/* Whether the file's tensors are this network's: each of its parameters with its shape, and no other. */
static inline int export_fits(const Graph *g, const SafetensorsFile *file) {
  char prefix[STATE_DICT_PREFIX];
  size_t found = 0;
  state_dict_prefix(file, prefix);
  for (int i = 0; i < g->count; i++)
    for (int k = 0; k < g->nodes[i].params; k++) {
      const Param *p = &g->nodes[i].param[k];
      const SafetensorsTensor *tensor = state_dict_find(file, prefix, p->name);
      if (tensor == NULL && p->counts) continue;
      if (tensor == NULL || tensor->rank != p->rank) return 0;
      for (int d = 0; d < p->rank; d++)
        if (tensor->shape[d] != p->dim[d]) return 0;
      found++;
    }
  return found == file->count;
}

/* The network whose tensors these are. */
static inline int export_recognise(ExportChoice *c, const SafetensorsFile *file, Error *err) {
  char known[256];
  const ExportNetwork *n;
  for (int i = 0; (n = export_network_at(i)) != NULL; i++) {
    export_choose(c, n);
    export_choose_sizes(c, file);
    Graph *g = n->graph(&c->shape);
    const int fits = !g->failed && export_fits(g, file);
    graph_destroy(g);
    if (fits) return 0;
  }
  return error_set(
      err,
      "%s: its %zu tensors are those of none of %s, in a shape that can be told from them; name the network "
      "with --network, and take best.safetensors or last.safetensors of a run, not last.state.safetensors",
      file->path, file->count, export_network_names(known, sizeof known));
}

#endif /* PHASE5_PRODUCTION_EXPORT_NETWORKS_CUH */
