/* train_log.h - the history of a training run, as log.jsonl and log.csv with the same records.
 *
 *     TrainLog log;
 *     if (train_log_open(&log, "runs/lenet_mnist", -1, &err) != 0) die("%s", err.message);
 *     TrainRecord record = {step, epoch, "train", loss, accuracy, lr, images_per_second, seconds};
 *     train_log_write(&log, &record);
 *     ...
 *     if (train_log_close(&log, &err) != 0) status = 1;     // after the checkpoint is saved
 *
 * A run that is resumed from a checkpoint gives its step instead of -1: the records after it, which a killed run wrote
 * and the resumed one will write again, are dropped. A record is on its way to the disk when train_log_write() returns.
 * A full disk does not stop the training: it is said once, the log ends there, and train_log_close() fails.
 *
 * Figures that were not measured are NAN, which is null in JSON and an empty field in CSV.
 */
#ifndef COMMON_TRAIN_LOG_H
#define COMMON_TRAIN_LOG_H

#include "common/atomic_file.h"
#include "common/error.h"

#include <jansson.h>
#include <math.h>

typedef struct TrainRecord {
  long step, epoch;
  char split[16]; /* "train", "test" */
  double loss, accuracy, lr, images_per_second, seconds;
} TrainRecord;

typedef struct TrainLog {
  FILE *jsonl, *csv;
  char folder[PATH_MAX];
  Error failure; /* "" while all is well */
} TrainLog;

/* A JSON number, null for what JSON has no number for: NaN and the infinities. */
static inline json_t *json_number(double value) { return isfinite(value) ? json_real(value) : json_null(); }

/* The inverse; NAN also when there is no such key. */
static inline double json_get_number(const json_t *object, const char *key) {
  const json_t *value = json_object_get(object, key);
  return json_is_number(value) ? json_number_value(value) : NAN;
}

static inline void train_log_print_json(FILE *file, const TrainRecord *record) {
  json_t *line = json_object();
  json_object_set_new(line, "step", json_integer(record->step));
  json_object_set_new(line, "epoch", json_integer(record->epoch));
  json_object_set_new(line, "split", json_string(record->split));
  json_object_set_new(line, "loss", json_number(record->loss));
  json_object_set_new(line, "accuracy", json_number(record->accuracy));
  json_object_set_new(line, "lr", json_number(record->lr));
  json_object_set_new(line, "images_per_second", json_number(record->images_per_second));
  json_object_set_new(line, "seconds", json_number(record->seconds));
  json_dumpf(line, file, JSON_COMPACT);
  fputc('\n', file);
  json_decref(line);
}

static inline void train_log_print_csv(FILE *file, const TrainRecord *record) {
  const double figures[] = {record->loss, record->accuracy, record->lr, record->images_per_second, record->seconds};
  fprintf(file, "%ld,%ld,%s", record->step, record->epoch, record->split);
  for (int i = 0; i < 5; i++) {
    fputc(',', file);
    if (isfinite(figures[i])) fprintf(file, "%.17g", figures[i]);
  }
  fputc('\n', file);
}

/* 0 when the line holds a record; a line that a kill or a full disk cut short does not. */
static inline int train_log_parse(const char *line, TrainRecord *record) {
  json_t *object = json_loads(line, 0, NULL);
  const char *split = json_string_value(json_object_get(object, "split"));
  int valid = json_is_integer(json_object_get(object, "step")) && split != NULL;
  if (valid) {
    memset(record, 0, sizeof *record);
    record->step = (long)json_integer_value(json_object_get(object, "step"));
    record->epoch = (long)json_integer_value(json_object_get(object, "epoch"));
    snprintf(record->split, sizeof record->split, "%s", split);
    record->loss = json_get_number(object, "loss");
    record->accuracy = json_get_number(object, "accuracy");
    record->lr = json_get_number(object, "lr");
    record->images_per_second = json_get_number(object, "images_per_second");
    record->seconds = json_get_number(object, "seconds");
  }
  json_decref(object);
  return valid ? 0 : -1;
}

/* All records up to and including `last_step`, in an array for free(). No log.jsonl is no error, and no records. */
static inline int train_log_load(const char *folder, long last_step, TrainRecord **records, size_t *count, Error *err) {
  char path[PATH_MAX];
  *records = NULL;
  *count = 0;
  if ((size_t)snprintf(path, sizeof path, "%s/log.jsonl", folder) >= sizeof path)
    return error_set(err, "%.60s...: the path is too long", folder);
  FILE *file = fopen(path, "r");
  if (file == NULL) return errno == ENOENT ? 0 : error_set(err, "%s cannot be read: %s", path, strerror(errno));
  char *line = NULL;
  size_t line_capacity = 0, capacity = 0;
  TrainRecord record;
  while (getline(&line, &line_capacity, file) > 0) {
    if (train_log_parse(line, &record) != 0 || record.step > last_step) continue;
    if (*count == capacity) {
      capacity = capacity == 0 ? 256 : 2 * capacity;
      *records = (TrainRecord *)realloc(*records, capacity * sizeof record);
      if (*records == NULL) die("out of memory: %zu records of %s", capacity, path);
    }
    (*records)[(*count)++] = record;
  }
  int failed = ferror(file), reason = errno;
  free(line);
  fclose(file);
  if (!failed) return 0;
  free(*records);
  *records = NULL;
  *count = 0;
  return error_set(err, "%s cannot be read: %s; move it away to begin a new log", path, strerror(reason));
}

/* Replaces FOLDER/name by these records in one step, and opens it for more. */
static inline FILE *train_log_begin(const char *folder, const char *name, const char *header,
                                    void (*print)(FILE *, const TrainRecord *), const TrainRecord *records,
                                    size_t count, Error *err) {
  char path[PATH_MAX];
  AtomicFile file;
  if ((size_t)snprintf(path, sizeof path, "%s/%s", folder, name) >= sizeof path) {
    error_set(err, "%.60s...: the path is too long", folder);
    return NULL;
  }
  if (atomic_file_open(&file, path, err) != 0) return NULL;
  fputs(header, file.stream);
  for (size_t i = 0; i < count; i++) print(file.stream, &records[i]);
  if (atomic_file_commit(&file, err) != 0) return NULL;
  FILE *stream = fopen(path, "a");
  if (stream == NULL) error_set(err, "%s cannot be written: %s", path, strerror(errno));
  return stream;
}

/* Begins a log in an existing folder. `resume_step`: -1 for a new one, else the step of the checkpoint. */
static inline int train_log_open(TrainLog *log, const char *folder, long resume_step, Error *err) {
  TrainRecord *records = NULL;
  size_t count = 0;
  memset(log, 0, sizeof *log);
  snprintf(log->folder, sizeof log->folder, "%s", folder);
  if (resume_step >= 0 && train_log_load(folder, resume_step, &records, &count, err) != 0) return -1;
  log->jsonl = train_log_begin(folder, "log.jsonl", "", train_log_print_json, records, count, err);
  if (log->jsonl != NULL)
    log->csv = train_log_begin(folder, "log.csv", "step,epoch,split,loss,accuracy,lr,images_per_second,seconds\n",
                               train_log_print_csv, records, count, err);
  free(records);
  if (log->csv != NULL) return 0;
  if (log->jsonl != NULL) fclose(log->jsonl);
  log->jsonl = NULL;
  return -1;
}

static inline void train_log_write(TrainLog *log, const TrainRecord *record) {
  if (log->failure.message[0] != '\0') return;
  errno = 0;
  train_log_print_json(log->jsonl, record);
  train_log_print_csv(log->csv, record);
  if (fflush(log->jsonl) == 0 && fflush(log->csv) == 0) return;
  error_set(&log->failure, "the training log in %.512s ends at step %ld: %s", log->folder, record->step,
            strerror(errno));
  fprintf(stderr, "%s: warning: %s; training goes on\n", program_invocation_short_name, log->failure.message);
}

/* -1 when the log is not complete; the sentence was printed when it happened, and is given again. */
static inline int train_log_close(TrainLog *log, Error *err) {
  fclose(log->jsonl);
  fclose(log->csv);
  log->jsonl = log->csv = NULL;
  return log->failure.message[0] == '\0' ? 0 : error_set(err, "%s", log->failure.message);
}

/* A JSON string of any text: a path may hold bytes that are no UTF-8, which JSON cannot; each becomes a '?'. */
static inline json_t *json_text(const char *text) {
  json_t *string = json_string(text);
  if (string != NULL) return string;
  char *copy = (char *)xmalloc(strlen(text) + 1);
  for (size_t i = 0; i <= strlen(text); i++) copy[i] = (unsigned char)text[i] < 128 ? text[i] : '?';
  string = json_string(copy);
  free(copy);
  return string;
}

/* For --json: prints the object, which it takes over, as the last line on stdout. 15 digits: 0.944 stays 0.944. */
static inline int json_result(json_t *object, Error *err) {
  if (object == NULL) return error_set(err, "there is no JSON result: one of its numbers is not finite");
  int failed = json_dumpf(object, stdout, JSON_COMPACT | JSON_REAL_PRECISION(15)) != 0;
  failed |= putchar('\n') == EOF || fflush(stdout) != 0 || ferror(stdout);
  json_decref(object);
  return failed ? error_set(err, "the JSON result cannot be written to stdout: %s", strerror(errno)) : 0;
}

/* The last call of a program: ends it with status 1 when stdout (a full disk) or a result_lost() was not written. */
static inline void stdout_finish(void) {
  if (fflush(stdout) != 0 || ferror(stdout)) die("the results cannot be written to stdout: %s", strerror(errno));
  if (results_lost > 0) exit(1);
}

#endif /* COMMON_TRAIN_LOG_H */
