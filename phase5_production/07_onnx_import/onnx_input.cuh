/* onnx_input.cuh - the inputs of a model from files: arrays of numpy, TensorProtos, pictures; or random numbers. For
 * programs that run models of ONNX. */
#ifndef PHASE5_PRODUCTION_ONNX_INPUT_CUH
#define PHASE5_PRODUCTION_ONNX_INPUT_CUH

#include "common/image.h"
#include "common/philox.h"
#include "common/runfiles.h"
#include "phase5_production/07_onnx_import/nd.cuh"
#include "phase5_production/07_onnx_import/npy.h"
#include "phase5_production/07_onnx_import/onnx_run.cuh"

enum { ONNX_INPUT_FILES = 16 };

/* As typed: NAME=FILE or FILE; NAME=SIZES or SIZES. */
typedef struct OnnxInputOptions {
  const char *files[ONNX_INPUT_FILES], *shapes[ONNX_INPUT_FILES];
  int file_count, shape_count, imagenet;
} OnnxInputOptions;

static inline int onnx_input_add_file(OnnxInputOptions *o, const char *arg, Error *err) {
  if (o->file_count == ONNX_INPUT_FILES) return error_set(err, "--input: at most %d are possible", ONNX_INPUT_FILES);
  o->files[o->file_count++] = arg;
  return 0;
}

/* The name before '=', or "" for the first input; *rest: what is behind it. */
static inline void onnx_input_split(const char *arg, char name[256], const char **rest) {
  const char *equal = strchr(arg, '=');
  snprintf(name, 256, "%.*s", equal ? (int)(equal - arg < 255 ? equal - arg : 255) : 0, arg);
  *rest = equal ? equal + 1 : arg;
}

/* "N,3,224,224", "1x3x224x224" */
static inline int onnx_input_parse_shape(const char *text, OnnxImportInput *in, Error *err) {
  in->rank = 0;
  for (const char *at = text; *at;) {
    char *end;
    if (in->rank == ONNX_MAX_RANK)
      return error_set(err, "--shape=%.60s: at most %d sizes are possible", text, ONNX_MAX_RANK);
    const int batch = in->rank == 0 && (*at == 'N' || *at == 'n');
    const long long size = batch ? (long long)ONNX_IMPORT_BATCH : strtoll(at, &end, 10);
    if (batch) end = (char *)at + 1;
    if (end == at || (!batch && (size < 1 || size > INT_MAX)) || (*end && *end != ',' && *end != 'x'))
      return error_set(err, "--shape=%.60s: sizes from 1 on are expected, as in N,3,224,224", text);
    in->dim[in->rank++] = size;
    at = *end ? end + 1 : end;
  }
  return in->rank ? 0 : error_set(err, "--shape=: sizes are expected, as in N,3,224,224");
}

static inline int onnx_input_add_shape(OnnxInputOptions *o, const char *arg, Error *err) {
  OnnxImportInput checked;
  char name[256];
  const char *sizes;
  onnx_input_split(arg, name, &sizes);
  if (o->shape_count == ONNX_INPUT_FILES) return error_set(err, "--shape: at most %d are possible", ONNX_INPUT_FILES);
  if (onnx_input_parse_shape(sizes, &checked, err) != 0) return -1;
  o->shapes[o->shape_count++] = arg;
  return 0;
}

/* What is given for each input of a model. */
typedef struct OnnxInputs {
  OnnxImportInput given[ONNX_IMPORT_VALUES];
  char names[ONNX_IMPORT_VALUES][256];
  OnnxTensor tensors[ONNX_IMPORT_VALUES]; /* of files; data NULL: none */
  Image pictures[ONNX_IMPORT_VALUES];
  int count, loaded, imagenet;
} OnnxInputs;

/* The entry for the input of this name, "" for the first one. */
static inline int onnx_inputs_entry(OnnxInputs *in, const OnnxModel *file, const char *name, Error *err) {
  const Onnx__GraphProto *g = file->proto->graph;
  const char *found = NULL;
  for (size_t i = 0; i < g->n_input && found == NULL; i++)
    if (onnx_is_input(file, i) && (name[0] == '\0' || strcmp(name, g->input[i]->name) == 0)) found = g->input[i]->name;
  if (found == NULL) return error_set(err, "%s has no input '%s'", file->path, name);
  for (int i = 0; i < in->count; i++)
    if (strcmp(in->names[i], found) == 0) return i;
  if (in->count == ONNX_IMPORT_VALUES) return error_set(err, "more than %d inputs", ONNX_IMPORT_VALUES);
  snprintf(in->names[in->count], sizeof in->names[0], "%.255s", found);
  in->given[in->count].name = in->names[in->count];
  return in->count++;
}

static inline int onnx_inputs_load_file(OnnxInputs *in, int i, const char *path, Error *err) {
  const char *dot = strrchr(path, '.');
  OnnxTensor *t = &in->tensors[i];
  in->loaded++;
  if (dot && strcmp(dot, ".npy") == 0) return npy_read(path, t, err);
  if (dot && strcmp(dot, ".pb") == 0) return onnx_tensor_read(t, path, err);
  return image_read(path, 3, &in->pictures[i], err);
}

/* An array must have the type of its input. */
static inline int onnx_inputs_check_type(const OnnxInputs *in, const OnnxModel *file, int i, Error *err) {
  const Onnx__GraphProto *g = file->proto->graph;
  size_t k = 0;
  while (k < g->n_input && strcmp(g->input[k]->name, in->names[i]) != 0) k++;
  const int type = k < g->n_input ? onnx_value_type(g->input[k]) : 0;
  if (type == in->tensors[i].type) return 0;
  return error_set(err, "the values for the input '%.100s' are of %s; it is of %s", in->names[i],
                   onnx_type_name(in->tensors[i].type), onnx_type_name(type));
}

/* Reads the files. The sizes of arrays are those of the inputs, except for the batch; of whole numbers that decide
 * about shapes the values are constants. */
static inline int onnx_inputs_load(OnnxInputs *in, const OnnxInputOptions *o, const OnnxModel *file, Error *err) {
  char name[256], path[PATH_MAX];
  const char *rest;
  memset(in, 0, sizeof *in);
  in->imagenet = o->imagenet;
  for (int k = 0; k < o->shape_count; k++) {
    onnx_input_split(o->shapes[k], name, &rest);
    const int i = onnx_inputs_entry(in, file, name, err);
    if (i < 0 || onnx_input_parse_shape(rest, &in->given[i], err) != 0) return -1;
  }
  for (int k = 0; k < o->file_count; k++) {
    onnx_input_split(o->files[k], name, &rest);
    const int i = onnx_inputs_entry(in, file, name, err);
    if (i < 0 || user_path(rest, path, sizeof path, err) != 0 || onnx_inputs_load_file(in, i, path, err) != 0)
      return -1;
    const OnnxTensor *t = &in->tensors[i];
    if (t->data && onnx_inputs_check_type(in, file, i, err) != 0) return -1;
    if (t->data == NULL || in->given[i].rank) continue;
    in->given[i].rank = t->rank;
    for (int d = 1; d < t->rank; d++) in->given[i].dim[d] = t->dim[d];
  }
  return 0;
}

/* Imports the model. What must be known for that is taken from the files of inputs, as constants. */
static inline int onnx_inputs_open(OnnxInputs *in, OnnxRun *run, const OnnxModel *file, Device device, int batch,
                                   Error *err) {
  for (int tries = 0;; tries++) {
    if (onnx_run_open(run, file, in->given, in->count, device, batch, err) == 0) return 0;
    int i = 0;
    while (i < in->count && strcmp(in->names[i], run->import.needs) != 0) i++;
    if (i == in->count || in->tensors[i].data == NULL || in->given[i].value || tries == ONNX_IMPORT_VALUES) return -1;
    in->given[i].value = in->tensors[i].data;
    memcpy(in->given[i].dim, in->tensors[i].dim, sizeof in->given[i].dim);
  }
}

/* A picture as (3,H,W) of numbers from 0 to 1, or normalised; each pixel is the mean of what it covers. */
static inline int onnx_inputs_picture(const OnnxInputs *in, const Image *image, const OnnxImportValue *v, float *x,
                                      Error *err) {
  static const float mean[] = {0.485f, 0.456f, 0.406f}, deviation[] = {0.229f, 0.224f, 0.225f};
  if (v->rank != 4 || v->type != DTYPE_FLOAT32 || (v->dim[1] != 3 && v->dim[1] != 1))
    return error_set(err, "the input '%.100s' is not a picture of float32: (N,3,H,W) or (N,1,H,W) is expected",
                     v->name);
  const int channels = (int)v->dim[1], height = (int)v->dim[2], width = (int)v->dim[3];
  for (int y = 0; y < height; y++)
    for (int c = 0; c < width; c++) {
      const int y0 = y * image->height / height, y1 = (y + 1) * image->height / height, x0 = c * image->width / width,
                x1 = (c + 1) * image->width / width;
      double sum[3] = {0, 0, 0}, count = 0;
      for (int row = y0; row < (y1 > y0 ? y1 : y0 + 1); row++)
        for (int column = x0; column < (x1 > x0 ? x1 : x0 + 1); column++, count++)
          for (int k = 0; k < 3; k++) sum[k] += image->pixels[((size_t)row * image->width + column) * 3 + k];
      if (channels == 1) sum[0] = 0.299 * sum[0] + 0.587 * sum[1] + 0.114 * sum[2];
      for (int k = 0; k < channels; k++) {
        const float value = (float)(sum[k] / count / 255);
        x[((size_t)k * height + y) * width + c] = in->imagenet ? (value - mean[k]) / deviation[k] : value;
      }
    }
  return 0;
}

/* Fills input k of `run` for a batch; -1 with a sentence. */
static inline int onnx_inputs_fill_one(const OnnxInputs *in, const OnnxRun *run, int k, int batch, uint64_t seed,
                                       Error *err) {
  const OnnxImportValue *v = &run->import.inputs[k];
  const size_t bytes = onnx_run_bytes(run, v, batch), count = bytes / dtype_bytes(v->type);
  int i = 0, status = 0;
  while (i < in->count && strcmp(in->names[i], v->name) != 0) i++;
  const int known = i < in->count;
  if (known && in->tensors[i].data) {
    if (in->tensors[i].bytes != bytes)
      return error_set(err, "the values of the input '%.100s' have %zu bytes; %zu are expected", v->name,
                       in->tensors[i].bytes, bytes);
    onnx_run_set(run, k, in->tensors[i].data, batch);
    return 0;
  }
  void *data = xcalloc(bytes, 1);
  if (known && in->pictures[i].pixels) {
    status = onnx_inputs_picture(in, &in->pictures[i], v, (float *)data, err);
    const size_t sample = count / (size_t)node_samples(&run->net.graph->nodes[v->node], batch);
    for (size_t n = sample; n < count && status == 0; n++) ((float *)data)[n] = ((float *)data)[n - sample];
  } else {
    for (size_t n = 0; n < count; n++)
      nd_store<double>(data, v->type, n,
                       nd_compute(v->type) == ND_FLOAT || nd_compute(v->type) == ND_DOUBLE
                           ? 2 * (double)philox_uniform(philox4x32(seed, (uint32_t)k, n).word[0]) - 1
                           : 0);
  }
  if (status == 0) onnx_run_set(run, k, data, batch);
  free(data);
  return status;
}

/* All inputs. How many samples there are: as many as the array of a file has, at most `batch`; -1 with a sentence. */
static inline int onnx_inputs_fill(const OnnxInputs *in, const OnnxRun *run, int batch, uint64_t seed, Error *err) {
  for (int i = 0; i < in->count; i++) {
    const int k = onnx_run_input(run, in->names[i]);
    if (k < 0 || in->tensors[i].data == NULL || in->tensors[i].rank == 0 ||
        run->import.inputs[k].dim[0] != ONNX_IMPORT_BATCH)
      continue;
    if (in->tensors[i].dim[0] > batch || in->tensors[i].dim[0] < 1)
      return error_set(err, "the file for '%.100s' has %lld samples; at most %d are possible: --batch-size=%lld",
                       in->names[i], (long long)in->tensors[i].dim[0], batch, (long long)in->tensors[i].dim[0]);
    batch = (int)in->tensors[i].dim[0];
  }
  for (int k = 0; k < run->import.input_count; k++)
    if (onnx_inputs_fill_one(in, run, k, batch, seed, err) != 0) return -1;
  return batch;
}

static inline void onnx_inputs_free(OnnxInputs *in) {
  for (int i = 0; i < in->count; i++) {
    onnx_tensor_free(&in->tensors[i]);
    image_free(&in->pictures[i]);
  }
}

#endif /* PHASE5_PRODUCTION_ONNX_INPUT_CUH */
