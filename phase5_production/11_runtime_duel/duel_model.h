/* duel_model.h - what the duel must know of a model: its input's sizes. */
#ifndef PHASE5_PRODUCTION_DUEL_MODEL_H
#define PHASE5_PRODUCTION_DUEL_MODEL_H

#include "common/onnx/onnx.h"

enum { DUEL_RANK = 8, DUEL_NAME = 64, DUEL_SAMPLE_FLOATS = 1 << 26 };

typedef struct DuelModel {
  char path[PATH_MAX], name[DUEL_NAME]; /* name: of the file, or of its folder where the file is model.onnx */
  int rank;
  int64_t dim[DUEL_RANK]; /* dim[0], the batch, is -1 */
  double file_bytes;
} DuelModel;

/* Floats of one sample. */
static inline size_t duel_model_floats(const DuelModel *m) {
  size_t floats = 1;
  for (int i = 1; i < m->rank; i++) floats *= (size_t)m->dim[i];
  return floats;
}

static inline void duel_model_name(DuelModel *m) {
  char path[PATH_MAX];
  snprintf(path, sizeof path, "%s", m->path);
  char *slash = strrchr(path, '/');
  if (slash && strcmp(slash + 1, "model.onnx") == 0) {
    *slash = '\0';
    slash = strrchr(path, '/');
  }
  char *name = slash ? slash + 1 : path, *dot = strrchr(name, '.');
  if (dot && strcmp(dot, ".onnx") == 0) *dot = '\0';
  snprintf(m->name, sizeof m->name, "%.60s", name);
}

/* side: of pictures whose height and width are open. -1: the model is none for a duel; the sentence says why. */
static inline int duel_model_input(DuelModel *m, const OnnxModel *onnx, int side, Error *err) {
  const Onnx__GraphProto *g = onnx->proto->graph;
  const Onnx__ValueInfoProto *input = NULL;
  const char *symbol[ONNX_MAX_RANK];
  int64_t dim[ONNX_MAX_RANK];
  int inputs = 0;
  for (size_t i = 0; i < g->n_input; i++)
    if (onnx_is_input(onnx, i) && inputs++ == 0) input = g->input[i];
  if (inputs != 1) return error_set(err, "%s has %d inputs; one was expected", m->path, inputs);
  m->rank = onnx_value_shape(input, dim, symbol);
  if (onnx_value_type(input) != ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT || m->rank < 2 || m->rank > DUEL_RANK)
    return error_set(err, "%s: its input %s is not a float array with the batch in front", m->path, input->name);
  if (dim[0] >= 0)
    return error_set(err, "%s: its input %s has a fixed batch of %lld; an open one was expected", m->path, input->name,
                     (long long)dim[0]);
  double floats = 1;
  for (int i = 1; i < m->rank; i++) {
    if (dim[i] < 0 && m->rank == 4 && i >= 2) dim[i] = side;
    if (dim[i] < 1) return error_set(err, "%s: dimension %d of its input %s is not known", m->path, i, input->name);
    floats *= (double)(m->dim[i] = dim[i]);
  }
  m->dim[0] = -1;
  if (floats > DUEL_SAMPLE_FLOATS) return error_set(err, "%s: its input %s is too large", m->path, input->name);
  return 0;
}

/* "3,224,224": the sizes of a sample, as the parent has read them. The file is not read: that is the runtime's work. */
static inline int duel_model_given(DuelModel *m, const char *path, const char *shape, Error *err) {
  memset(m, 0, sizeof *m);
  snprintf(m->path, sizeof m->path, "%s", path);
  duel_model_name(m);
  m->dim[m->rank++] = -1;
  for (const char *at = shape; *at != '\0' && m->rank < DUEL_RANK;) {
    char *end;
    m->dim[m->rank] = strtoll(at, &end, 10);
    if (end == at || m->dim[m->rank++] < 1 || (*end != ',' && *end != '\0')) break;
    at = *end == ',' ? end + 1 : end;
    if (*at == '\0') return 0;
  }
  return error_set(err, "--shape=%s: sizes such as 3,224,224 were expected", shape);
}

static inline int duel_model_open(DuelModel *m, const char *path, int side, Error *err) {
  OnnxModel onnx;
  struct stat info;
  memset(m, 0, sizeof *m);
  snprintf(m->path, sizeof m->path, "%s", path);
  duel_model_name(m);
  if (onnx_model_read(&onnx, path, err) != 0) return -1;
  const int status = duel_model_input(m, &onnx, side, err);
  onnx_model_close(&onnx);
  if (status == 0 && stat(path, &info) == 0) m->file_bytes = (double)info.st_size;
  return status;
}

#endif /* PHASE5_PRODUCTION_DUEL_MODEL_H */
