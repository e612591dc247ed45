/* duel_answer.h - the side of a contender that this program is itself: reads questions, measures, answers
 * (duel_process.h). */
#ifndef PHASE5_PRODUCTION_DUEL_ANSWER_H
#define PHASE5_PRODUCTION_DUEL_ANSWER_H

#include "common/error.h"

#include <jansson.h>
#include <sys/stat.h>

#include "common/timer.h"

enum { DUEL_RUNS = 100000 };

/* What a runtime must be able to do. `self` is its state. */
typedef struct DuelRunner {
  void *self;
  int (*prepare)(void *self, int batch, Error *err); /* from now on so many samples; the first call is the start */
  int (*run)(void *self, Error *err);                /* may return before the answer is there */
  int (*wait)(void *self, Error *err);               /* until it is */
  int (*outputs)(void *self, float *y, Error *err);  /* (batch,classes) of the last run */
  void (*close)(void *self);
  size_t sample_floats, output_floats; /* of one sample; output_floats is known after the first run */
  double own_bytes;                    /* files that are mapped because of this program, and not of the runtime */
} DuelRunner;

static inline void duel_say(json_t *answer) {
  json_dumpf(answer, stdout, JSON_COMPACT | JSON_REAL_PRECISION(9));
  putchar('\n');
  fflush(stdout);
  json_decref(answer);
}

/* A number of kB of /proc/self/status, in bytes; 0: there is none. */
static inline double duel_status_bytes(const char *key) {
  FILE *file = fopen("/proc/self/status", "r");
  char line[256];
  double bytes = 0;
  while (file && fgets(line, sizeof line, file))
    if (strncmp(line, key, strlen(key)) == 0) bytes = 1024 * strtod(line + strlen(key) + 1, NULL);
  if (file) fclose(file);
  return bytes;
}

/* The sizes of all files that the process has mapped, each once: the program, and every library that it uses. */
static inline double duel_loaded_bytes(void) {
  FILE *file = fopen("/proc/self/maps", "r");
  char *line = NULL, last[4096] = "";
  size_t room = 0;
  double bytes = 0;
  while (file && getline(&line, &room, file) > 0) { /* the parts of a file stand together */
    char *path = strchr(line, '/');
    struct stat info;
    if (path == NULL) continue;
    path[strcspn(path, "\n")] = '\0';
    if (strcmp(path, last) == 0 || strncmp(path, "/dev/", 5) == 0) continue;
    snprintf(last, sizeof last, "%s", path);
    if (stat(path, &info) == 0 && S_ISREG(info.st_mode)) bytes += (double)info.st_size;
  }
  free(line);
  if (file) fclose(file);
  return bytes;
}

/* The outputs go to the file: batch * output_floats floats. */
static inline int duel_write_outputs(DuelRunner *r, int batch, const char *path, Error *err) {
  const size_t count = (size_t)batch * r->output_floats;
  float *y = (float *)xmalloc(count * sizeof *y);
  int status = r->outputs(r->self, y, err);
  FILE *file = status == 0 ? fopen(path, "wb") : NULL;
  if (status == 0 && (file == NULL || fwrite(y, sizeof *y, count, file) != count))
    status = error_set(err, "cannot write %s: %s", path, strerror(errno));
  if (file && fclose(file) != 0 && status == 0) status = error_set(err, "cannot write %s: %s", path, strerror(errno));
  free(y);
  return status;
}

static inline int duel_answer_batch(DuelRunner *r, int batch, const char *y_path, Error *err) {
  if (r->prepare(r->self, batch, err) != 0) return -1;
  const double start = seconds_now();
  for (int i = 0; i < 3 && (i == 0 || seconds_now() - start < 1); i++) /* what is slow is warm sooner */
    if (r->run(r->self, err) != 0 || r->wait(r->self, err) != 0) return -1;
  if (duel_write_outputs(r, batch, y_path, err) != 0) return -1;
  duel_say(json_pack("{s:i}", "ready", batch));
  return 0;
}

static inline int duel_answer_times(DuelRunner *r, int runs, Error *err) {
  json_t *times = json_array();
  for (int i = 0; i < runs; i++) {
    const double start = seconds_now();
    if (r->run(r->self, err) != 0 || r->wait(r->self, err) != 0) return -1;
    json_array_append_new(times, json_real(seconds_now() - start));
  }
  duel_say(json_pack("{s:o}", "times", times));
  return 0;
}

static inline int duel_answer_stream(DuelRunner *r, int runs, Error *err) {
  const double start = seconds_now();
  for (int i = 0; i < runs; i++)
    if (r->run(r->self, err) != 0) return -1;
  if (r->wait(r->self, err) != 0) return -1;
  duel_say(json_pack("{s:f}", "seconds", seconds_now() - start));
  return 0;
}

/* Answers until `quit` or the end of stdin. -1: something failed; the parent reads the sentence on stderr. */
static inline int duel_answer(DuelRunner *r, const char *name, const char *y_path, Error *err) {
  char line[128];
  if (r->prepare(r->self, 1, err) != 0 || r->run(r->self, err) != 0 || r->wait(r->self, err) != 0) return -1;
  duel_say(json_pack("{s:i}", "first", 1));
  while (fgets(line, sizeof line, stdin)) {
    int number = 0, status = 0;
    if (sscanf(line, "batch %d", &number) == 1 && number > 0)
      status = duel_answer_batch(r, number, y_path, err);
    else if (sscanf(line, "times %d", &number) == 1 && number > 0 && number <= DUEL_RUNS)
      status = duel_answer_times(r, number, err);
    else if (sscanf(line, "stream %d", &number) == 1 && number > 0 && number <= DUEL_RUNS)
      status = duel_answer_stream(r, number, err);
    else if (strncmp(line, "facts", 5) == 0)
      duel_say(json_pack("{s:s, s:f, s:f}", "name", name, "host_bytes", duel_status_bytes("VmHWM:"), "loaded_bytes",
                         duel_loaded_bytes() - r->own_bytes));
    else
      break;
    if (status != 0) return -1;
  }
  return 0;
}

#endif /* PHASE5_PRODUCTION_DUEL_ANSWER_H */
