/* rows.h - what a lesson's program (main.h) knows of each version: a row that is checked, counted by the
 * inspector or timed. */
#ifndef COMMON_LESSON_ROWS_H
#define COMMON_LESSON_ROWS_H

#include <jansson.h>

#include "common/lesson/main.h"
#include "common/lesson/options.h"
#include "common/lesson/time.h"
#include "common/lesson/verify.h"

static inline const Lesson *lesson_of_table(const LessonTable *table, const Lesson *program) {
  return table->lesson != NULL ? table->lesson : program;
}

typedef struct LessonRow {
  const LessonVersion *version;
  int checked, counted, refused;
  Error refusal;      /* why the version does not take the shape */
  LessonResult check; /* the worst of all shapes */
  LessonCounts counts;
  double memory;  /* bytes beside the arrays, where the lesson has them */
  double seconds; /* 0: not measured, here and below */
  double rate;    /* FLOP/s, or bytes/s where the lesson only moves them */
  double roof_fraction, vs_library, vs_previous;
} LessonRow;

typedef struct LessonRun {
  const Lesson *lesson;
  const LessonOptions *options;
  char device[512];
  LessonTimes times;
  json_t *rows;
  int wrong, pictures;
} LessonRun;

/* What is said of the versions while there is somebody to read it. */
static inline void lesson_progress(const char *what, const char *name) {
  if (!isatty(2)) return;
  if (name == NULL)
    fputs("\r\033[K", stderr);
  else
    fprintf(stderr, "\r\033[K%s %s ...", what, name);
}

static inline void lesson_check_rows(LessonRun *run, const LessonShape *shape, LessonRow *rows, int count) {
  const Lesson *lesson = run->lesson;
  uint64_t seed = run->options->common.seed;
  LessonHost host;
  lesson_host_open(lesson, shape, seed, &host);
  lesson_expect(lesson, shape, &host);
  for (int i = 0; i < count; i++) {
    LessonRow *row = &rows[i];
    if (row->version->kind == LESSON_COPY || row->version->kind == LESSON_PEER) continue;
    row->refused = lesson_refuses(lesson, row->version, shape, &row->refusal) != 0;
    if (row->refused) continue;
    lesson_progress("checking", row->version->name);
    nvtxRangePushA(row->version->name);
    row->checked = 1;
    const int alone = run->options->alone;
    if (alone || lesson_verify_all(lesson, row->version, seed, &row->check) == 0) {
      LessonResult result;
      if (lesson_verify_on(lesson, row->version, shape, &host, &result) != 0 || alone ||
          result.error * row->check.tolerance > row->check.error * result.tolerance)
        row->check = result;
      row->counted = result.inspected && row->version->kind == LESSON_RUNG; /* a library's kernels are not seen */
      row->counts = result.counts;
      if (lesson->memory != NULL) row->memory = lesson->memory();
      row->memory += (double)lesson_workspace_bytes(lesson, row->version, shape->size);
    }
    if (!row->check.ok) run->wrong++;
    nvtxRangePop();
  }
  lesson_progress(NULL, NULL);
  lesson_host_close(lesson, &host);
}

/* Bytes that a version moves at least, or the FLOPs where the lesson counts them. */
static inline double lesson_work(const Lesson *lesson, const LessonVersion *version, const int *size) {
  if (version->kind != LESSON_COPY) return lesson->flops != NULL ? lesson->flops(size) : lesson_bytes(lesson, size);
  int to, from;
  return 2.0 * (double)lesson_copied_bytes(lesson, size, &to, &from);
}

static inline void lesson_time_rows(LessonRun *run, const LessonTable *table, const LessonShape *shape,
                                    LessonRow *rows) {
  const Lesson *lesson = run->lesson;
  lesson_progress("timing", table->title);
  lesson_time(lesson, table->versions, table->count, shape, run->options->common.seed, &run->times);
  lesson_progress(NULL, NULL);
  double library = 0, previous = 0;
  double seconds_of_flops = lesson_flops(lesson, shape->size) / run->times.flops_per_second;
  double seconds_of_bytes = lesson_bytes(lesson, shape->size) / run->times.copy_bytes_per_second;
  for (int i = 0; i < table->count; i++) {
    LessonRow *row = &rows[i];
    if (row->refused) continue;
    row->seconds = run->times.seconds[i];
    row->rate = lesson_work(lesson, row->version, shape->size) / row->seconds;
    if (row->version->kind != LESSON_RUNG) library = row->rate;
  }
  for (int i = 0; i < table->count; i++) {
    LessonRow *row = &rows[i];
    if (row->refused) continue;
    row->roof_fraction = fmax(seconds_of_flops, seconds_of_bytes) / row->seconds;
    if (row->version->kind == LESSON_COPY) row->roof_fraction = row->rate / run->times.copy_bytes_per_second;
    if (row->version->kind != LESSON_RUNG) continue;
    if (library > 0) row->vs_library = row->rate / library;
    if (previous > 0) row->vs_previous = row->rate / previous;
    previous = row->rate;
  }
}

#endif /* COMMON_LESSON_ROWS_H */
