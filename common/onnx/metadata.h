/* metadata.h - what a model wants of its pictures and how its classes are called, in metadata_props: so that a program
 * that has nothing but the .onnx file can classify a picture.
 *
 *     preprocessing   {"layout": "NCHW", "channels": "rgb", "height": 224, "width": 224, "resize": 256,
 *                      "mean": [0.485, 0.456, 0.406], "stddev": [0.229, 0.224, 0.225]}
 *                     x = (pixel / 255 - mean) / stddev for each channel; resize: the shorter side of a picture
 *                     before the middle is cut out, 0: the picture is scaled to fit
 *     class_names     ["t-shirt", "trouser", ...]       in the order of the logits
 *
 * Both are JSON, because a value of metadata_props is a text. Onnx__ModelProto has no field of its own for either.
 */
#ifndef COMMON_ONNX_METADATA_H
#define COMMON_ONNX_METADATA_H

#include <jansson.h>
#include <math.h>

#include "common/onnx/build.h"

#define ONNX_PREPROCESSING "preprocessing"
#define ONNX_CLASS_NAMES "class_names"

enum { ONNX_MAX_CHANNELS = 4, ONNX_MAX_SIDE = 16384, ONNX_MAX_CLASSES = 1 << 20 };

typedef struct OnnxPreprocessing {
  int channels; /* 1: gray, 3: red, green, blue */
  int height, width, resize;
  float mean[ONNX_MAX_CHANNELS], stddev[ONNX_MAX_CHANNELS];
} OnnxPreprocessing;

/* ---- writing ---- */

/* JSON as text, in the model's memory; takes over `json`. */
static inline void onnx_set_metadata_json(OnnxModel *m, const char *key, json_t *json) {
  char *text = json_dumps(json, JSON_COMPACT | JSON_REAL_PRECISION(9));
  if (text == NULL) die("out of memory: the metadata %s", key);
  onnx_set_metadata(m, key, text);
  free(text);
  json_decref(json);
}

/* The number with the fewest digits that is this float: 0.485, not 0.485000014. */
static inline json_t *onnx_json_float(float x) {
  char text[32];
  for (int digits = 6; digits <= 9; digits++) {
    snprintf(text, sizeof text, "%.*g", digits, (double)x);
    if (strtof(text, NULL) == x) break;
  }
  return json_real(strtod(text, NULL));
}

static inline void onnx_set_preprocessing(OnnxModel *m, const OnnxPreprocessing *p) {
  json_t *mean = json_array(), *stddev = json_array();
  for (int c = 0; c < p->channels; c++) {
    json_array_append_new(mean, onnx_json_float(p->mean[c]));
    json_array_append_new(stddev, onnx_json_float(p->stddev[c]));
  }
  onnx_set_metadata_json(
      m, ONNX_PREPROCESSING,
      json_pack("{s:s, s:s, s:i, s:i, s:i, s:o, s:o}", "layout", "NCHW", "channels", p->channels == 1 ? "gray" : "rgb",
                "height", p->height, "width", p->width, "resize", p->resize, "mean", mean, "stddev", stddev));
}

/* Names of the classes, in the order of the logits. */
static inline void onnx_set_class_names(OnnxModel *m, const char *const *names, int count) {
  json_t *list = json_array();
  for (int i = 0; i < count; i++) json_array_append_new(list, json_stringn_nocheck(names[i], strlen(names[i])));
  onnx_set_metadata_json(m, ONNX_CLASS_NAMES, list);
}

/* ---- reading: the file may be anybody's ---- */

/* The JSON of a key: NULL where there is none, with *status 0, or where it is none, with -1 and a sentence. */
static inline json_t *onnx_metadata_json(const OnnxModel *m, const char *key, int *status, Error *err) {
  json_error_t reason;
  const char *text = onnx_metadata(m, key);
  *status = 0;
  if (text == NULL) return NULL;
  json_t *json = json_loads(text, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &reason);
  if (json == NULL) *status = error_set(err, "%s: its metadata %s is not JSON: %.200s", m->path, key, reason.text);
  return json;
}

static inline int onnx_metadata_size(const json_t *object, const char *key, int least, int *size) {
  const json_t *value = json_object_get(object, key);
  if (!json_is_integer(value) || json_integer_value(value) < least || json_integer_value(value) > ONNX_MAX_SIDE)
    return -1;
  *size = (int)json_integer_value(value);
  return 0;
}

/* One number for each channel, finite; above 0 where `positive`. */
static inline int onnx_metadata_numbers(const json_t *object, const char *key, int channels, int positive,
                                        float *numbers) {
  const json_t *list = json_object_get(object, key);
  if (!json_is_array(list) || json_array_size(list) != (size_t)channels) return -1;
  for (int c = 0; c < channels; c++) {
    const json_t *value = json_array_get(list, (size_t)c);
    numbers[c] = (float)json_number_value(value);
    if (!json_is_number(value) || !isfinite(numbers[c]) || (positive && !(numbers[c] > 0))) return -1;
  }
  return 0;
}

/* 1: the model says how pictures are prepared; 0: it says nothing; -1: what it says cannot be understood. */
static inline int onnx_get_preprocessing(const OnnxModel *m, OnnxPreprocessing *p, Error *err) {
  int status;
  memset(p, 0, sizeof *p);
  json_t *json = onnx_metadata_json(m, ONNX_PREPROCESSING, &status, err);
  if (json == NULL) return status;
  const char *layout = json_string_value(json_object_get(json, "layout"));
  const char *channels = json_string_value(json_object_get(json, "channels"));
  p->channels = channels != NULL && strcmp(channels, "gray") == 0  ? 1
                : channels != NULL && strcmp(channels, "rgb") == 0 ? 3
                                                                   : 0;
  const int good = layout != NULL && strcmp(layout, "NCHW") == 0 && p->channels > 0 &&
                   onnx_metadata_size(json, "height", 1, &p->height) == 0 &&
                   onnx_metadata_size(json, "width", 1, &p->width) == 0 &&
                   onnx_metadata_size(json, "resize", 0, &p->resize) == 0 &&
                   onnx_metadata_numbers(json, "mean", p->channels, 0, p->mean) == 0 &&
                   onnx_metadata_numbers(json, "stddev", p->channels, 1, p->stddev) == 0;
  json_decref(json);
  if (good) return 1;
  return error_set(err,
                   "%s: its metadata " ONNX_PREPROCESSING
                   " cannot be understood: layout NCHW, channels gray or rgb, height, width and resize up to %d, mean "
                   "and a positive stddev for each channel were expected",
                   m->path, ONNX_MAX_SIDE);
}

/* The names of the classes: *names is a JSON array of texts, to be json_decref()ed, NULL where the model has none. -1
 * where it says something else. classes: how many are expected; 0: any number. */
static inline int onnx_get_class_names(const OnnxModel *m, int classes, json_t **names, Error *err) {
  int status;
  *names = onnx_metadata_json(m, ONNX_CLASS_NAMES, &status, err);
  if (*names == NULL) return status;
  const size_t count = json_array_size(*names);
  int good = json_is_array(*names) && count > 0 && count <= ONNX_MAX_CLASSES;
  for (size_t i = 0; good && i < count; i++) good = json_is_string(json_array_get(*names, i));
  if (good && classes > 0 && count != (size_t)classes)
    status = error_set(err, "%s: its metadata " ONNX_CLASS_NAMES " has %zu names, and the model %d classes", m->path,
                       count, classes);
  if (!good)
    status = error_set(err, "%s: its metadata " ONNX_CLASS_NAMES " is not a list of 1 to %d texts", m->path,
                       ONNX_MAX_CLASSES);
  if (status == 0) return 0;
  json_decref(*names);
  *names = NULL;
  return -1;
}

#endif /* COMMON_ONNX_METADATA_H */
