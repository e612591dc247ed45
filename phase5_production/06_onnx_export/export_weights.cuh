/* export_weights.cuh - from a file of weights, or from none, to a Model, and to what its ONNX file says besides the
 * graph: how pictures are prepared, what the classes are called, how well the network did.
 *
 *     ExportSource source;
 *     if (export_open(&source, &request, &err) != 0) die("%s", err.message);
 *     ... source.net, source.choice ...
 *     export_describe(&source, &onnx);
 *     export_close(&source);
 *
 * The file is a checkpoint of this course, a state dict of PyTorch as safetensors, or a .pth file.
 */
#ifndef PHASE5_PRODUCTION_EXPORT_WEIGHTS_CUH
#define PHASE5_PRODUCTION_EXPORT_WEIGHTS_CUH

#include "common/onnx/metadata.h"
#include "phase5_production/03_resnet18/imagenet_classes.h"
#include "phase5_production/03_resnet18/preprocess.cuh"
#include "phase5_production/03_resnet18/pth.h"
#include "phase5_production/06_onnx_export/export_networks.cuh"
#include "phase5_production/06_onnx_export/onnx_export.cuh"

/* What the user wants. "": not said. */
typedef struct ExportRequest {
  const char *weights; /* a file; "": fresh weights */
  const char *network; /* a name of export_networks.cuh */
  const char *data;    /* a name of common/nn/data_set.h */
  const char *classes; /* a file with a name in each line */
  int side;            /* of the pictures, where the network takes any; 0: the usual one */
  uint64_t seed;       /* of fresh weights */
  int batch;           /* samples at a time that the model has room for */
} ExportRequest;

typedef struct ExportSource {
  ExportChoice choice;
  Model net;
  TrainState state;       /* of a checkpoint of ours; mean[0] and stddev[0] are 0 where the file says nothing */
  const DataSource *data; /* NULL: none of the table */
  ClassNames names;       /* of the user's file, or ImageNet's */
  StateDictLoaded loaded;
} ExportSource;

static inline void export_close(ExportSource *s) {
  model_close(&s->net);
  class_names_free(&s->names);
}

/* Which network, of which shape. `file` NULL: fresh weights. */
static inline int export_choose_all(ExportSource *s, const ExportRequest *r, const SafetensorsFile *file, Error *err) {
  ExportChoice *c = &s->choice;
  Error why;
  const char *text = r->network[0] ? r->network : s->state.network;
  const char *data = r->data[0] ? r->data : s->state.data;
  if (text[0] == '\0' && file == NULL)
    return error_set(err, "there is neither a file of weights nor --network; give one of them");
  if (text[0] != '\0' && export_choose_text(c, text, &why) != 0)
    return error_set(err, "%s%.900s", r->network[0] ? "--network: " : "the checkpoint: ", why.message);
  if (text[0] == '\0' && export_recognise(c, file, err) != 0) return -1;
  s->data = data_source_named(data[0] ? data : c->network->data);
  if (data[0] && s->data && c->shape.images.rank == 3) export_choose_data(c, s->data);
  if (r->side > 0 && c->shape.images.rank == 3) c->shape.images.dim[1] = c->shape.images.dim[2] = r->side;
  if (file) export_choose_sizes(c, file);
  return 0;
}

/* Whether the network that was built takes the pictures that the user speaks of. A data set that nobody asked for is
 * dropped where it is another's. */
static inline int export_check_pictures(ExportSource *s, const ExportRequest *r, const Graph *g, Error *err) {
  const Shape in = graph_shape(g, 0);
  const int classes = (int)shape_count(graph_shape(g, onnx_export_last(g)));
  if (r->side > 0 && (in.rank != 3 || in.dim[1] != r->side || in.dim[2] != r->side))
    return error_set(err, "--side=%d: %s takes %s and nothing else; leave --side out", r->side,
                     s->choice.network->title, shape_text(in).text);
  if (s->data == NULL || (s->data->classes == classes && shape_count(s->data->shape) == shape_count(in))) return 0;
  if (r->data[0])
    return error_set(err, "--data=%s has %d classes of %s, and this %s has %d of %s; leave --data out", r->data,
                     s->data->classes, shape_text(s->data->shape).text, s->choice.network->title, classes,
                     shape_text(in).text);
  s->data = NULL;
  return 0;
}

/* The model with the file's weights, or fresh ones. */
static inline int export_open_net(ExportSource *s, const ExportRequest *r, const char *path, Error *err) {
  Context context;
  memset(&context, 0, sizeof context); /* the CPU: nothing is computed but the answers of --test-data */
  context.device = DEVICE_CPU;
  Graph *g = s->choice.network->graph(&s->choice.shape);
  if (g->failed) {
    error_set(err, "%s cannot be built for pictures of %s: %.800s", s->choice.network->title,
              shape_text(s->choice.shape.images).text, g->error.message);
    graph_destroy(g);
    return -1;
  }
  if (export_check_pictures(s, r, g, err) != 0) {
    graph_destroy(g);
    return -1;
  }
  if (model_open(&s->net, g, context, NULL, r->batch, MODEL_INFER, err) != 0) return -1;
  if (path[0] == '\0') {
    model_init(&s->net, r->seed);
    return 0;
  }
  if (state_dict_load(&s->net, path, r->weights, &s->loaded, err) == 0) return 0;
  model_close(&s->net);
  return -1;
}

static inline int export_open_file(ExportSource *s, const ExportRequest *r, const char *path, Error *err) {
  SafetensorsFile file;
  if (safetensors_open(path, &file, err) != 0) return -1;
  free(file.path);
  file.path = strdup(r->weights); /* for messages: a converted file has a name that the user never saw */
  int status = 0;
  if (safetensors_metadata(&file, "mean") != NULL) /* a checkpoint of this course */
    status = checkpoint_read_state(&file, CHECKPOINT_MODEL, &s->state, err);
  if (status == 0) status = export_choose_all(s, r, &file, err);
  safetensors_close(&file);
  return status == 0 ? export_open_net(s, r, path, err) : -1;
}

/* After 0, end with export_close(). */
static inline int export_open(ExportSource *s, const ExportRequest *r, Error *err) {
  char converted[PATH_MAX] = "";
  memset(s, 0, sizeof *s);
  int status;
  if (r->weights[0] == '\0')
    status = export_choose_all(s, r, NULL, err) == 0 ? export_open_net(s, r, "", err) : -1;
  else if (!pth_is(r->weights))
    status = export_open_file(s, r, r->weights, err);
  else if ((status = pth_convert(r->weights, converted, sizeof converted, err)) == 0)
    status = export_open_file(s, r, converted, err);
  else
    converted[0] = '\0';
  if (converted[0]) unlink(converted);
  if (status != 0) return -1;
  const int image_net = strcmp(s->choice.network->name, "resnet18") == 0;
  if (r->classes[0] || image_net) status = class_names_open(r->classes, s->choice.shape.classes, &s->names, err);
  if (status != 0) export_close(s);
  return status;
}

/* ----------------------------------------------------------------------------------------- what the file says of it */

static inline const char *export_class_name(const ExportSource *s, int i, char text[CLASSES_NAME + 1]) {
  if (i < s->names.count) return s->names.name[i];
  if (s->data && s->data->class_names) return s->data->class_names[i];
  snprintf(text, CLASSES_NAME + 1, "%d", i);
  return text;
}

static inline void export_describe_classes(const ExportSource *s, OnnxModel *onnx) {
  char text[CLASSES_NAME + 1];
  const int known = s->names.count > 0 || s->data != NULL;
  const int classes = s->choice.shape.classes;
  if (!known) return;
  const char **names = (const char **)xcalloc((size_t)classes, sizeof *names);
  for (int i = 0; i < classes; i++) names[i] = onnx_copy_text(onnx, export_class_name(s, i, text));
  onnx_set_class_names(onnx, names, classes);
  free(names);
}

/* What becomes of a picture before the network sees it. Mean and deviation are the checkpoint's, those of ImageNet
 * for a ResNet-18, else 0 and 1. The MLP takes pictures, too, whose pixels are its features. 0: it takes none. */
static inline int export_preprocessing(const ExportSource *s, OnnxPreprocessing *p) {
  const int is_row = graph_shape(s->net.graph, model_input_node(&s->net, 0)).rank == 1;
  const Shape shape = s->data ? s->data->shape : s->choice.shape.images;
  const int image_net = strcmp(s->choice.network->name, "resnet18") == 0;
  memset(p, 0, sizeof *p);
  if ((is_row && s->data == NULL) || shape.rank != 3 || (shape.dim[0] != 1 && shape.dim[0] != 3)) return 0;
  p->channels = shape.dim[0];
  p->height = shape.dim[1];
  p->width = shape.dim[2];
  if (image_net) p->resize = p->height * preprocess_imagenet.resize / preprocess_imagenet.crop;
  for (int c = 0; c < p->channels; c++) {
    const int ours = s->state.stddev[c] > 0;
    p->mean[c] = image_net ? preprocess_imagenet.mean[c] : (float)s->state.mean[c];
    p->stddev[c] = image_net ? preprocess_imagenet.stddev[c] : ours ? (float)s->state.stddev[c] : 1;
  }
  return 1;
}

static inline void export_describe_pictures(const ExportSource *s, OnnxModel *onnx) {
  OnnxPreprocessing p;
  if (export_preprocessing(s, &p)) onnx_set_preprocessing(onnx, &p);
}

/* metadata_props of the exported file. */
static inline void export_describe(const ExportSource *s, const ExportRequest *r, OnnxModel *onnx) {
  export_describe_pictures(s, onnx);
  export_describe_classes(s, onnx);
  onnx_set_metadata(onnx, "network", s->choice.network->name);
  if (s->data) onnx_set_metadata(onnx, "data", s->data->name);
  if (r->weights[0] == '\0')
    onnx_set_metadata(onnx, "weights", onnx_text(onnx, "random, seed %llu", (unsigned long long)r->seed));
  if (s->state.stddev[0] > 0 && isfinite(s->state.test_accuracy)) {
    onnx_set_metadata(onnx, "epoch", onnx_text(onnx, "%d", s->state.epoch));
    onnx_set_metadata(onnx, "test_accuracy", onnx_text(onnx, "%.4f", s->state.test_accuracy));
  }
}

#endif /* PHASE5_PRODUCTION_EXPORT_WEIGHTS_CUH */
