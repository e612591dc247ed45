/* train_log.h - the history of a training run, as log.jsonl, log.csv and a file for TensorBoard with the same records.
 *
 *     TrainLog log;
 *     if (train_log_open(&log, "runs/lenet_mnist", -1, &err) != 0) die("%s", err.message);
 *     TrainRecord record = train_record();              // all figures NAN, the time now
 *     record.step = step;
 *     ...
 *     train_log_write(&log, &record);
 *     ...
 *     if (train_log_close(&log, &err) != 0) status = 1;     // after the checkpoint is saved
 *
 * A run that is resumed from a checkpoint gives its step instead of -1: the records after it, which a killed run wrote
 * and the resumed one will write again, are dropped. A record is on its way to the disk when train_log_write() returns.
 * A full disk does not stop the training: it is said once, the log ends there, and train_log_close() fails.
 *
 * Figures that were not measured are NAN: null in JSON, an empty field in CSV, left out for TensorBoard. Its file,
 * events.out.tfevents.SECOND.nn (event_file.h), is written anew when a run is resumed, under a later name, so that a
 * TensorBoard that is open goes over to it. A record of the split "train" becomes the values loss/train,
 * accuracy/train, images_per_second/train, lr and gradient_norm.
 */
#ifndef COMMON_TRAIN_LOG_H
#define COMMON_TRAIN_LOG_H

#include "common/atomic_file.h"
#include "common/error.h"
#include "common/event_file.h"

#include <jansson.h>
#include <math.h>
#include <time.h>

typedef struct TrainRecord {
  long step, epoch;
  char split[16]; /* "train", "validation", "test" */
  /* seconds: spent training so far. gradient_norm: the mean of the steps, before clipping. time: since 1970. */
  double loss, accuracy, lr, images_per_second, seconds, gradient_norm, time;
} TrainRecord;

enum { TRAIN_RECORD_FIGURES = 7 };
static const char *const train_record_names[TRAIN_RECORD_FIGURES] = {
    "loss", "accuracy", "lr", "images_per_second", "seconds", "gradient_norm", "time"};

static inline void train_record_figures(const TrainRecord *record, double figures[TRAIN_RECORD_FIGURES]) {
  memcpy(figures, &record->loss, TRAIN_RECORD_FIGURES * sizeof *figures);
}

/* Seconds since 1970. */
static inline double train_log_now(void) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* Nothing was measured yet. */
static inline TrainRecord train_record(void) {
  TrainRecord record;
  memset(&record, 0, sizeof record);
  record.loss = record.accuracy = record.lr = record.images_per_second = record.seconds = record.gradient_norm = NAN;
  record.time = train_log_now();
  return record;
}

/* The three files, in the order in which they are opened. */
typedef enum TrainLogFile { TRAIN_LOG_JSONL, TRAIN_LOG_CSV, TRAIN_LOG_EVENTS, TRAIN_LOG_FILES } TrainLogFile;

typedef struct TrainLog {
  FILE *file[TRAIN_LOG_FILES];
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
  double figures[TRAIN_RECORD_FIGURES];
  json_t *line = json_object();
  train_record_figures(record, figures);
  json_object_set_new(line, "step", json_integer(record->step));
  json_object_set_new(line, "epoch", json_integer(record->epoch));
  json_object_set_new(line, "split", json_string(record->split));
  for (int i = 0; i < TRAIN_RECORD_FIGURES; i++)
    json_object_set_new(line, train_record_names[i], json_number(figures[i]));
  json_dumpf(line, file, JSON_COMPACT);
  fputc('\n', file);
  json_decref(line);
}

static inline void train_log_print_csv(FILE *file, const TrainRecord *record) {
  double figures[TRAIN_RECORD_FIGURES];
  train_record_figures(record, figures);
  fprintf(file, "%ld,%ld,%s", record->step, record->epoch, record->split);
  for (int i = 0; i < TRAIN_RECORD_FIGURES; i++) {
    fputc(',', file);
    if (isfinite(figures[i])) fprintf(file, "%.17g", figures[i]);
  }
  fputc('\n', file);
}

/* What TensorBoard shows in one chart has the same name before the slash. The learning rate and the gradients are
 * those of training alone. */
static inline void train_log_print_event(FILE *file, const TrainRecord *record) {
  char names[3][48];
  snprintf(names[0], sizeof names[0], "loss/%s", record->split);
  snprintf(names[1], sizeof names[1], "accuracy/%s", record->split);
  snprintf(names[2], sizeof names[2], "images_per_second/%s", record->split);
  const int trains = strcmp(record->split, "train") == 0;
  const char *const all[] = {names[0], names[1], names[2], "lr", "gradient_norm"};
  const double values[] = {record->loss, record->accuracy, record->images_per_second, record->lr,
                           record->gradient_norm};
  event_file_scalars(file, isfinite(record->time) ? record->time : 0, record->step, all, values, trains ? 5 : 3);
}

static inline void train_log_begin_csv(FILE *file) {
  fputs("step,epoch,split", file);
  for (int i = 0; i < TRAIN_RECORD_FIGURES; i++) fprintf(file, ",%s", train_record_names[i]);
  fputc('\n', file);
}

static inline void train_log_begin_events(FILE *file) { event_file_begin(file, train_log_now()); }

/* How a file begins, and how a record is written into it. */
typedef struct TrainLogForm {
  const char *name; /* NULL: one that changes */
  void (*begin)(FILE *);
  void (*print)(FILE *, const TrainRecord *);
} TrainLogForm;

static const TrainLogForm train_log_form[TRAIN_LOG_FILES] = {{"log.jsonl", NULL, train_log_print_json},
                                                             {"log.csv", train_log_begin_csv, train_log_print_csv},
                                                             {NULL, train_log_begin_events, train_log_print_event}};

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
    record->gradient_norm = json_get_number(object, "gradient_norm");
    record->time = json_get_number(object, "time");
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
static inline FILE *train_log_begin(const char *folder, const char *name, const TrainLogForm *form,
                                    const TrainRecord *records, size_t count, Error *err) {
  char path[PATH_MAX];
  AtomicFile file;
  if ((size_t)snprintf(path, sizeof path, "%s/%s", folder, name) >= sizeof path) {
    error_set(err, "%.60s...: the path is too long", folder);
    return NULL;
  }
  if (atomic_file_open(&file, path, err) != 0) return NULL;
  if (form->begin) form->begin(file.stream);
  for (size_t i = 0; i < count; i++) form->print(file.stream, &records[i]);
  if (atomic_file_commit(&file, err) != 0) return NULL;
  FILE *stream = fopen(path, "ab");
  if (stream == NULL) error_set(err, "%s cannot be written: %s", path, strerror(errno));
  return stream;
}

/* Removes the folder's event files, but for the one of this name; "": all. */
static inline void train_log_remove_events(const char *folder, const char *kept) {
  char path[PATH_MAX + NAME_MAX + 2];
  EventFileName name = {""};
  while (event_file_next(folder, &name)) {
    snprintf(path, sizeof path, "%s/%s", folder, name.text);
    if (strcmp(name.text, kept) != 0) unlink(path);
  }
}

/* Begins a log in an existing folder. `resume_step`: -1 for a new one, else the step of the checkpoint. */
static inline int train_log_open(TrainLog *log, const char *folder, long resume_step, Error *err) {
  TrainRecord *records = NULL;
  size_t count = 0;
  int opened = 0;
  memset(log, 0, sizeof *log);
  snprintf(log->folder, sizeof log->folder, "%s", folder);
  if (resume_step >= 0 && train_log_load(folder, resume_step, &records, &count, err) != 0) return -1;
  const EventFileName events = event_file_name(folder, train_log_now());
  for (; opened < TRAIN_LOG_FILES; opened++) {
    const TrainLogForm *form = &train_log_form[opened];
    const char *name = form->name ? form->name : events.text;
    log->file[opened] = train_log_begin(folder, name, form, records, count, err);
    if (log->file[opened] == NULL) break;
  }
  free(records);
  if (opened == TRAIN_LOG_FILES) {
    train_log_remove_events(folder, events.text);
    return 0;
  }
  while (opened-- > 0) fclose(log->file[opened]);
  memset(log->file, 0, sizeof log->file);
  return -1;
}

/* 0 when all that was written has left the program. */
static inline int train_log_flush(TrainLog *log, long step) {
  int failed = 0;
  for (int i = 0; i < TRAIN_LOG_FILES && !failed; i++) failed = fflush(log->file[i]) != 0;
  if (!failed) return 0;
  error_set(&log->failure, "the training log in %.512s ends at step %ld: %s", log->folder, step, strerror(errno));
  fprintf(stderr, "%s: warning: %s; training goes on\n", program_invocation_short_name, log->failure.message);
  return -1;
}

static inline void train_log_write(TrainLog *log, const TrainRecord *record) {
  if (log->failure.message[0] != '\0') return;
  errno = 0;
  for (int i = 0; i < TRAIN_LOG_FILES; i++) train_log_form[i].print(log->file[i], record);
  train_log_flush(log, record->step);
}

/* A text for TensorBoard alone, in Markdown. */
static inline void train_log_text(TrainLog *log, long step, const char *name, const char *text) {
  if (log->failure.message[0] != '\0') return;
  errno = 0;
  event_file_text(log->file[TRAIN_LOG_EVENTS], train_log_now(), step, name, text);
  train_log_flush(log, step);
}

/* Waits until the records are on the disk, so that after a power cut none is missing before a checkpoint's step. The
 * other files are written anew from log.jsonl. */
static inline void train_log_sync(TrainLog *log) {
  if (log->failure.message[0] == '\0') fdatasync(fileno(log->file[TRAIN_LOG_JSONL]));
}

/* -1 when the log is not complete; the sentence was printed when it happened, and is given again. */
static inline int train_log_close(TrainLog *log, Error *err) {
  for (int i = 0; i < TRAIN_LOG_FILES; i++) fclose(log->file[i]);
  memset(log->file, 0, sizeof log->file);
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
