/* state_dict.h - the weights of a network as PyTorch keeps them: the tensors of a state dict by their names, in a
 * safetensors file, and nothing of a training run (which checkpoint.h has besides).
 *
 *     StateDictLoaded loaded;
 *     if (state_dict_load(&net, "resnet18.safetensors", NULL, &loaded, &err) != 0) die("%s", err.message);
 *     ...
 *     if (state_dict_save(&net, "mine.safetensors", &err) != 0) die("%s", err.message);
 *
 * Loading is strict, as load_state_dict(strict=True) is: every parameter and running statistic must be there with its
 * shape, and nothing else. Three differences are allowed:
 *
 *     prefixes      "module." (DataParallel) and "_orig_mod." (torch.compile) before every name are taken off
 *     dtypes        F16, BF16 and F64 become float32; integers are refused
 *     counters      num_batches_tracked may be missing: PyTorch before version 0.4.1 had none
 *
 * The network is not touched on failure.
 */
#ifndef COMMON_NN_STATE_DICT_H
#define COMMON_NN_STATE_DICT_H

#include "common/half.h"
#include "common/nn/checkpoint.h"

enum { STATE_DICT_PREFIX = 64, STATE_DICT_NAME = NODE_NAME + STATE_DICT_PREFIX + 32 };

typedef struct StateDictLoaded {
  size_t tensors;                 /* of the file */
  char prefix[STATE_DICT_PREFIX]; /* what was taken off every name: "module."; mostly "" */
  char dtype[8];                  /* of the weights in the file: "F32" */
  int counters;                   /* whether it has num_batches_tracked */
} StateDictLoaded;

/* Whether every name in the file begins so. */
static inline int state_dict_all_begin(const SafetensorsFile *file, const char *prefix) {
  const size_t length = strlen(prefix);
  for (size_t i = 0; i < file->count; i++)
    if (strncmp(file->tensors[i].name, prefix, length) != 0) return 0;
  return file->count > 0;
}

/* The wrappers' prefixes before every name, "module._orig_mod." for example. */
static inline void state_dict_prefix(const SafetensorsFile *file, char prefix[STATE_DICT_PREFIX]) {
  static const char *const wrappers[] = {"module.", "_orig_mod."};
  prefix[0] = '\0';
  for (int i = 0, tried = 0; tried < 2; i = 1 - i) {
    char longer[STATE_DICT_PREFIX];
    const int length = snprintf(longer, sizeof longer, "%s%s", prefix, wrappers[i]);
    tried++;
    if (length >= STATE_DICT_PREFIX || !state_dict_all_begin(file, longer)) continue;
    memcpy(prefix, longer, (size_t)length + 1);
    tried = 0;
  }
}

/* The tensor of a parameter in the file; NULL where it has none. */
static inline const SafetensorsTensor *state_dict_find(const SafetensorsFile *file, const char *prefix,
                                                       const char *name) {
  char full[STATE_DICT_NAME];
  snprintf(full, sizeof full, "%s%s", prefix, name);
  return safetensors_find(file, full);
}

static inline const char *state_dict_shape(const Param *p, char *text, size_t size) {
  return safetensors_describe(text, size, p->counts ? "I64" : "F32", p->rank, p->dim);
}

/* Names: nothing may be missing but counters, and nothing left over. */
static inline int state_dict_check_names(const SafetensorsFile *file, const Model *m, const char *prefix, Error *err) {
  size_t missing = 0, known = 0;
  const Param *first = NULL, *p;
  const SafetensorsTensor *surplus = NULL;
  char text[256];
  for (int node = 0, index = 0; (p = model_next_param(m, &node, &index)) != NULL;) {
    const int found = state_dict_find(file, prefix, p->name) != NULL;
    known += (size_t)found;
    if (found || p->counts) continue;
    if (missing++ == 0) first = p;
  }
  for (size_t i = 0; i < file->count && surplus == NULL; i++)
    if (model_find_param(m, file->tensors[i].name + strlen(prefix)) == NULL) surplus = &file->tensors[i];
  if (first != NULL && surplus != NULL)
    return error_set(err,
                     "%s does not fit the network: it lacks '%s%s' of %s (%zu missing), and has '%.100s', which the "
                     "network has not (%zu surplus); is it of another network?",
                     file->path, prefix, first->name, state_dict_shape(first, text, sizeof text), missing,
                     surplus->name, file->count - known);
  if (first != NULL)
    return error_set(err, "%s lacks the tensor '%s%s' of %s; %zu of %zu are missing: is it of another network?",
                     file->path, prefix, first->name, state_dict_shape(first, text, sizeof text), missing,
                     missing + known);
  if (surplus != NULL)
    return error_set(err,
                     "%s has the tensor '%.100s', which the network has not (%zu surplus); is it of another network?",
                     file->path, surplus->name, file->count - known);
  return 0;
}

/* Element i of a file's array. */
static inline float state_dict_element(const void *from, const char *dtype, size_t i) {
  if (strcmp(dtype, "F64") == 0) return (float)((const double *)from)[i];
  return half_widen(strcmp(dtype, "F16") == 0 ? DTYPE_FP16 : DTYPE_BF16, ((const uint16_t *)from)[i]);
}

/* The elements of a tensor as float32. */
static inline int state_dict_fetch(const SafetensorsFile *file, const SafetensorsTensor *tensor, size_t count,
                                   float *values, Error *err) {
  const size_t at = file->data_start + tensor->offset;
  if (strcmp(tensor->dtype, "F32") == 0) return safetensors_fetch(file, at, values, count * sizeof *values, err);
  void *from = xmalloc(tensor->bytes);
  const int status = safetensors_fetch(file, at, from, tensor->bytes, err);
  for (size_t i = 0; status == 0 && i < count; i++) values[i] = state_dict_element(from, tensor->dtype, i);
  free(from);
  return status;
}

/* What cannot be a weight: not finite, or a variance below 0, whose root would be NaN. */
static inline int state_dict_check_values(const SafetensorsFile *file, const char *name, const float *values,
                                          size_t count, Error *err) {
  const size_t length = strlen(name);
  const int variance = length >= 11 && strcmp(name + length - 11, "running_var") == 0;
  for (size_t i = 0; i < count; i++) {
    if (!isfinite(values[i]))
      return error_set(err, "%s: element %zu of '%s' is %g; a finite number is expected, in float32", file->path, i,
                       name, (double)values[i]);
    if (variance && values[i] < 0)
      return error_set(err, "%s: element %zu of '%s' is %g; a variance of at least 0 is expected", file->path, i, name,
                       (double)values[i]);
  }
  return 0;
}

static inline int state_dict_read_tensor(const SafetensorsFile *file, const char *prefix, const Param *p, float *values,
                                         Error *err) {
  const SafetensorsTensor *tensor = state_dict_find(file, prefix, p->name);
  char expected[256], found[256];
  int good = tensor->rank == p->rank;
  for (int i = 0; good && i < p->rank; i++) good = tensor->shape[i] == p->dim[i];
  const char *dtypes[] = {"F32", "F16", "BF16", "F64"};
  int known = 0;
  for (int i = 0; i < 4; i++) known |= strcmp(tensor->dtype, dtypes[i]) == 0;
  if (!good || !known)
    return error_set(
        err, "%s: tensor '%s' is %s, expected %s%s", file->path, tensor->name,
        safetensors_describe(found, sizeof found, tensor->dtype, tensor->rank, tensor->shape),
        state_dict_shape(p, expected, sizeof expected),
        good ? "; F16, BF16 and F64 are converted, other dtypes are no weights" : "; is it of another network?");
  if (state_dict_fetch(file, tensor, p->count, values, err) != 0) return -1;
  return state_dict_check_values(file, p->name, values, p->count, err);
}

/* num_batches_tracked, where it is there: -1 for what is missing. */
static inline int state_dict_read_counters(const SafetensorsFile *file, const char *prefix, const Model *m,
                                           int64_t *counts, int *found, Error *err) {
  char full[STATE_DICT_NAME];
  int count = 0;
  const Param *p;
  *found = 0;
  for (int node = 0, index = 0; (p = model_next_param(m, &node, &index)) != NULL && count < CHECKPOINT_COUNTERS;) {
    if (!p->counts) continue;
    counts[count] = -1;
    snprintf(full, sizeof full, "%s%s", prefix, p->name);
    if (safetensors_find(file, full) != NULL) {
      if (safetensors_read(file, full, "I64", 0, NULL, &counts[count], err) != 0) return -1;
      if (counts[count] < 0)
        return error_set(err, "%s: '%s' is %lld; a number of batches is expected", file->path, full,
                         (long long)counts[count]);
      *found = 1;
    }
    count++;
  }
  return 0;
}

static inline int state_dict_read(const SafetensorsFile *file, Model *m, StateDictLoaded *loaded, Error *err) {
  int64_t counts[CHECKPOINT_COUNTERS];
  const Param *p;
  memset(loaded, 0, sizeof *loaded);
  loaded->tensors = file->count;
  state_dict_prefix(file, loaded->prefix);
  if (state_dict_check_names(file, m, loaded->prefix, err) != 0) return -1;
  if (state_dict_read_counters(file, loaded->prefix, m, counts, &loaded->counters, err) != 0) return -1;
  float *host = checkpoint_host(m);
  int status = 0;
  for (int node = 0, index = 0; status == 0 && (p = model_next_param(m, &node, &index)) != NULL;) {
    if (p->counts) continue;
    if (loaded->dtype[0] == '\0')
      snprintf(loaded->dtype, sizeof loaded->dtype, "%s", state_dict_find(file, loaded->prefix, p->name)->dtype);
    float *values = host + (p->trained ? 0 : m->parameter_count) + p->offset;
    status = state_dict_read_tensor(file, loaded->prefix, p, values, err);
  }
  if (status == 0) {
    const Device device = m->context.device;
    device_upload(device, m->parameters, host, m->parameter_count * sizeof(float));
    device_upload(device, m->buffers, host + m->parameter_count, m->buffer_count * sizeof(float));
    checkpoint_set_counters(m, counts);
  }
  free(host);
  return status;
}

/* Loads `path`; messages call the file `shown`, or, where that is NULL, by its path. */
static inline int state_dict_load(Model *m, const char *path, const char *shown, StateDictLoaded *loaded, Error *err) {
  SafetensorsFile file;
  if (safetensors_open(path, &file, err) != 0) return -1;
  int status = safetensors_check(&file, err);
  if (shown) {
    free(file.path);
    file.path = strdup(shown);
  }
  if (status == 0) status = state_dict_read(&file, m, loaded, err);
  safetensors_close(&file);
  return status;
}

/* Writes a state dict that PyTorch loads with strict=True; `path` is replaced in one step. */
static inline int state_dict_save(const Model *m, const char *path, Error *err) {
  int64_t counts[CHECKPOINT_COUNTERS];
  SafetensorsWriter out = SafetensorsWriter();
  float *host = checkpoint_host(m);
  checkpoint_download(m, 0, host);
  int status = checkpoint_add_counters(&out, m, counts, err); /* the widest type first */
  if (status == 0) status = checkpoint_add(&out, m, CHECKPOINT_ALL, "", host, err);
  safetensors_add_metadata(&out, "format", "pt");
  if (status == 0) safetensors_add_checksum(&out);
  if (status == 0) status = safetensors_write(&out, path, err);
  safetensors_writer_free(&out);
  free(host);
  return status;
}

#endif /* COMMON_NN_STATE_DICT_H */
