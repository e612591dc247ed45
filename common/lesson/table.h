/* table.h - how a lesson's program (main.h) shows its rows: as a table of times or of the inspector's
 * counts, as JSON, and as a picture. */
#ifndef COMMON_LESSON_TABLE_H
#define COMMON_LESSON_TABLE_H

#include "common/lesson/plot.h"
#include "common/lesson/rows.h"
#include "common/train_log.h"

/* ---------------------------------------------------------------------------------------------------------------- */
/* The table */

/* What the error columns say: nothing is compared with a copy. */
static inline void lesson_print_check(const LessonRow *row) {
  if (!row->checked)
    printf("%9s %9s", "-", "-");
  else if (!row->check.ok)
    printf("%9s %9s", "WRONG", "-");
  else
    printf("%9.2g %9.2g", row->check.error, row->check.tolerance);
}

static inline void lesson_print_limit(const LessonRow *row) {
  putchar('\n');
  if (row->refused)
    printf("    Not this shape: %s.\n", row->refusal.message);
  else if (row->version->limit[0] != '\0')
    printf("    %s\n", row->version->limit);
}

static inline void lesson_print_factor(double factor) {
  if (factor > 0)
    printf(" %9.2fx", factor);
  else
    printf(" %10s", "-");
}

/* The last column, where the lesson says what its versions take, or one of them has a workspace. */
static inline int lesson_has_memory(const Lesson *lesson, const LessonRow *rows, int count) {
  int has = lesson->memory != NULL;
  for (int i = 0; i < count; i++) has |= rows[i].memory > 0;
  return has;
}

/* Of the header (row NULL), or of a row. */
static inline void lesson_print_memory(int has, const LessonRow *row) {
  if (!has) return;
  if (row == NULL)
    printf(" %13s", "more memory");
  else
    printf(" %9.2f MiB", row->memory / 1048576);
}

static inline void lesson_print_times(const LessonRun *run, const LessonRow *rows, int count) {
  const Lesson *lesson = run->lesson;
  const int memory = lesson_has_memory(lesson, rows, count);
  printf("%-20s %9s %9s %12s %10s %8s %10s %10s", "version", "error", "tolerance", "time",
         lesson->flops != NULL ? "GFLOP/s" : "GB/s", "of roof", "x library", "x above");
  lesson_print_memory(memory, NULL);
  putchar('\n');
  for (int i = 0; i < count; i++) {
    const LessonRow *row = &rows[i];
    printf("%-20s ", row->version->name);
    lesson_print_check(row);
    if (row->seconds > 0) {
      printf(" %9.1f us %10.1f %6.1f %%", row->seconds * 1e6, row->rate * 1e-9, 100 * row->roof_fraction);
      lesson_print_factor(row->vs_library);
      lesson_print_factor(row->vs_previous);
      lesson_print_memory(memory, row);
    }
    lesson_print_limit(row);
  }
  printf("Roofs, measured in between: %.0f GB/s copied, %.0f GFLOP/s multiplied and added at %.0f to %.0f MHz.\n",
         run->times.copy_bytes_per_second * 1e-9, run->times.flops_per_second * 1e-9, run->times.slowest_clock * 1e-6,
         run->times.fastest_clock * 1e-6);
  if (run->times.short_launches > 0)
    printf("Times below %.0f us: %s\n", LESSON_SHORT * 1e6,
           LESSON_GRAPHS
               ? "of many launches in one CUDA graph."
               : "with the gap between two launches; nvcc --default-stream per-thread times them in a graph.");
}

/* "4.00", or "-" where there were no requests */
static inline void lesson_print_ratio(double cost, double requests) {
  if (requests > 0)
    printf(" %8.2f", cost / requests);
  else
    printf(" %8s", "-");
}

/* Sectors of all kinds: what TMA copies has no lanes, and counts as the sectors that it fills. */
static inline double lesson_sectors(const LessonCounts *c) {
  return c->global_load_sectors + c->global_store_sectors + c->bulk_bytes / 32;
}

/* Sectors that carry what was asked for, were it packed: 12.5 % when each lane uses 4 of 32 bytes. */
static inline double lesson_sectors_used(const LessonCounts *c) {
  double sectors = lesson_sectors(c);
  return sectors > 0 ? (c->global_load_ideal_sectors + c->global_store_ideal_sectors + c->bulk_bytes / 32) / sectors
                     : 1;
}

static inline void lesson_print_counts(const Lesson *lesson, const LessonRow *rows, int count) {
  const int memory = lesson_has_memory(lesson, rows, count);
  printf("%-20s %9s %9s |         global memory sectors       |        shared memory wavefronts\n", "", "", "");
  printf("%-20s %9s %9s | %9s %7s %8s %8s | %9s %8s %8s %10s", "version", "error", "tolerance", "all", "needed",
         "/ load", "/ store", "all", "/ load", "/ store", "conflicts");
  lesson_print_memory(memory, NULL);
  putchar('\n');
  for (int i = 0; i < count; i++) {
    const LessonRow *row = &rows[i];
    const LessonCounts *c = &row->counts;
    if (!row->checked && !row->refused && row->version->kind != LESSON_RUNG)
      continue; /* no kernel of ours, no counts */
    printf("%-20s ", row->version->name);
    lesson_print_check(row);
    if (row->counted) {
      printf(" | %9.0f %5.0f %%", lesson_sectors(c), 100 * lesson_sectors_used(c));
      lesson_print_ratio(c->global_load_sectors, c->global_load_requests);
      lesson_print_ratio(c->global_store_sectors, c->global_store_requests);
      printf(" | %9.0f", c->shared_load_wavefronts + c->shared_store_wavefronts);
      lesson_print_ratio(c->shared_load_wavefronts, c->shared_load_requests);
      lesson_print_ratio(c->shared_store_wavefronts, c->shared_store_requests);
      printf(" %10.0f", c->shared_load_conflicts + c->shared_store_conflicts);
      lesson_print_memory(memory, row);
    }
    lesson_print_limit(row);
  }
}

static inline int lesson_rows_timed(const LessonRow *rows, int count) {
  for (int i = 0; i < count; i++)
    if (rows[i].seconds > 0) return 1;
  return 0;
}

static inline void lesson_print_wrong(const LessonRow *rows, int count) {
  for (int i = 0; i < count; i++)
    if (rows[i].checked && !rows[i].check.ok) printf("\nWRONG: %s\n", rows[i].check.message);
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* JSON */

/* LessonCounts under the names that Nsight Compute gives them; NULL: it has no such count. */
static inline void lesson_json_counts(json_t *object, const LessonCounts *counts) {
  static const char *const names[] = {"l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum",
                                      "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum",
                                      NULL,
                                      "l1tex__t_requests_pipe_lsu_mem_global_op_st.sum",
                                      "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum",
                                      NULL,
                                      "smsp__inst_executed_op_shared_ld.sum",
                                      "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum",
                                      "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum",
                                      "smsp__inst_executed_op_shared_st.sum",
                                      "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_st.sum",
                                      "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_st.sum"};
  const double *count = &counts->global_load_requests; /* doubles one after the other */
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if (names[i] != NULL) json_object_set_new(object, names[i], json_integer((json_int_t)count[i]));
}

static inline void lesson_json_rows(LessonRun *run, const LessonTable *table, const LessonShape *shape,
                                    const LessonRow *rows) {
  const Lesson *lesson = run->lesson;
  char text[LESSON_TEXT];
  for (int i = 0; i < table->count; i++) {
    const LessonRow *row = &rows[i];
    json_t *object = json_pack("{s:s, s:s, s:s}", "version", row->version->name, "table", table->title, "shape",
                               lesson_shape_text(lesson, shape, text));
    if (row->checked) {
      json_object_set_new(object, "ok", json_boolean(row->check.ok));
      json_object_set_new(object, "error", json_number(row->check.error));
      json_object_set_new(object, "tolerance", json_number(row->check.tolerance));
      if (!row->check.ok) json_object_set_new(object, "message", json_text(row->check.message));
      if (row->check.ok && (lesson->memory != NULL || lesson->workspace != NULL))
        json_object_set_new(object, "memory_bytes", json_integer((json_int_t)row->memory));
    }
    if (row->refused) json_object_set_new(object, "refused", json_text(row->refusal.message));
    if (row->seconds > 0) {
      json_object_set_new(object, "time_us", json_real(row->seconds * 1e6));
      if (lesson->flops != NULL && row->version->kind != LESSON_COPY)
        json_object_set_new(object, "gflops", json_real(row->rate * 1e-9));
      else
        json_object_set_new(object, "gbps", json_real(row->rate * 1e-9));
      json_object_set_new(object, "roof_fraction", json_real(row->roof_fraction));
    }
    if (row->vs_library > 0) json_object_set_new(object, "vs_library", json_real(row->vs_library));
    if (row->vs_previous > 0) json_object_set_new(object, "vs_previous", json_real(row->vs_previous));
    if (row->counted) lesson_json_counts(object, &row->counts);
    json_array_append_new(run->rows, object);
  }
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* Pictures */

static inline void lesson_draw(LessonRun *run, const LessonTable *table, const LessonShape *shape,
                               const LessonRow *rows) {
  const Lesson *lesson = run->lesson;
  LessonPlot plot;
  char text[LESSON_TEXT], path[PATH_MAX + 16];
  Error err;
  memset(&plot, 0, sizeof plot);
  snprintf(plot.title, sizeof plot.title, "%.100s, %s, %.100s", table->title, lesson_shape_text(lesson, shape, text),
           lesson_rows_timed(rows, table->count) ? run->device : "counted by the inspector");
  for (int i = 0; i < table->count; i++) {
    const LessonRow *row = &rows[i];
    const LessonCounts *c = &row->counts;
    if (row->seconds <= 0 && !row->counted) continue;
    LessonBar *bar = &plot.bar[plot.bars++];
    bar->name = row->version->name;
    bar->library = row->version->kind != LESSON_RUNG;
    bar->rate = row->rate;
    bar->sectors = lesson_sectors(c);
    bar->wavefronts = c->shared_load_wavefronts + c->shared_store_wavefronts;
    bar->intensity = lesson_flops(lesson, shape->size) / lesson_bytes(lesson, shape->size);
    plot.timed |= row->seconds > 0;
  }
  plot.flops = lesson->flops != NULL;
  plot.copy_bytes_per_second = run->times.copy_bytes_per_second;
  plot.flops_per_second = run->times.flops_per_second;
  if (plot.bars == 0) return;
  const char *end = strrchr(run->options->plot, '.'); /* the second picture is ladder_2.svg */
  if (run->pictures++ == 0)
    snprintf(path, sizeof path, "%s", run->options->plot);
  else
    snprintf(path, sizeof path, "%.*s_%d%s", (int)(end - run->options->plot), run->options->plot, run->pictures, end);
  if (lesson_plot(&plot, path, &err) != 0) die("%s", err.message);
  printf("Drawn: %s\n", path);
}

#endif /* COMMON_LESSON_TABLE_H */
