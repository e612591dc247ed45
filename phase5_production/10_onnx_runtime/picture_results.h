/* picture_results.h - what comes out of the pipeline: a table of classes as CSV or JSON Lines.
 *
 *   csv      file,width,height,rank,class,name,probability        a line for each of a picture's likeliest classes
 *   jsonl    {"file":"cat.jpg","width":640,"height":480,"top":[{"class":281,"name":"tabby","probability":0.91},...]}
 *
 * On stdout, or into a file that is there whole in the end or not at all. A picture that could not be read has a line
 * with an error in JSON, and none in CSV.
 */
#ifndef PHASE5_PRODUCTION_PICTURE_RESULTS_H
#define PHASE5_PRODUCTION_PICTURE_RESULTS_H

#include "common/atomic_file.h"
#include "common/train_log.h"
#include "phase5_production/03_resnet18/imagenet_classes.h"

typedef enum ResultFormat { RESULT_CSV, RESULT_JSONL } ResultFormat;

typedef struct PictureResults {
  ResultFormat format;
  AtomicFile file; /* stream NULL: stdout */
  FILE *out;
  ClassNames names;
} PictureResults;

/* Names out of a model's metadata, a JSON array of texts. */
static inline void results_model_names(ClassNames *names, const json_t *list) {
  memset(names, 0, sizeof *names);
  names->name = (char **)xcalloc(json_array_size(list), sizeof *names->name);
  for (size_t i = 0; i < json_array_size(list); i++) {
    char *name = strndup(json_string_value(json_array_get(list, i)), CLASSES_NAME);
    class_name_clean(name);
    names->name[names->count++] = name;
  }
}

/* path "": stdout. */
static inline int results_open(PictureResults *r, ResultFormat format, const char *path, Error *err) {
  r->format = format;
  r->out = stdout;
  if (path[0] != '\0') {
    if (atomic_file_open(&r->file, path, err) != 0) return -1;
    r->out = r->file.stream;
  }
  if (format == RESULT_CSV) fputs("file,width,height,rank,class,name,probability\n", r->out);
  return 0;
}

/* Quoted where it must be (RFC 4180). */
static inline void results_csv_text(FILE *out, const char *text) {
  if (strpbrk(text, ",\"\r\n") == NULL) {
    fputs(text, out);
    return;
  }
  fputc('"', out);
  for (; *text; text++) fprintf(out, *text == '"' ? "\"\"" : "%c", *text);
  fputc('"', out);
}

static inline void results_json_line(PictureResults *r, json_t *line) {
  json_dumpf(line, r->out, JSON_COMPACT | JSON_REAL_PRECISION(6));
  fputc('\n', r->out);
  json_decref(line);
}

/* `count` classes of a picture, the likeliest first. */
static inline void results_classes(PictureResults *r, const char *file, int width, int height, const int *label,
                                   const float *probability, int count) {
  char name[CLASSES_NAME + 1];
  json_t *top = r->format == RESULT_JSONL ? json_array() : NULL;
  for (int i = 0; i < count; i++) {
    class_name(&r->names, label[i], name);
    if (top) {
      json_array_append_new(top, json_pack("{s:i, s:o, s:f}", "class", label[i], "name", json_text(name), "probability",
                                           (double)probability[i]));
      continue;
    }
    results_csv_text(r->out, file);
    fprintf(r->out, ",%d,%d,%d,%d,", width, height, i + 1, label[i]);
    results_csv_text(r->out, name);
    fprintf(r->out, ",%.6g\n", (double)probability[i]);
  }
  if (top)
    results_json_line(
        r, json_pack("{s:o, s:i, s:i, s:o}", "file", json_text(file), "width", width, "height", height, "top", top));
}

static inline void results_error(PictureResults *r, const char *file, const Error *why) {
  if (r->format == RESULT_JSONL)
    results_json_line(r, json_pack("{s:o, s:o}", "file", json_text(file), "error", json_text(why->message)));
}

/* -1: the results could not be written. */
static inline int results_close(PictureResults *r, Error *err) {
  int status = 0;
  if (r->file.stream)
    status = atomic_file_commit(&r->file, err);
  else if (fflush(stdout) != 0 || ferror(stdout))
    status = error_set(err, "the results cannot be written to stdout: %s", strerror(errno));
  class_names_free(&r->names);
  return status;
}

#endif /* PHASE5_PRODUCTION_PICTURE_RESULTS_H */
