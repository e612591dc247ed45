/* timeline.h - what ran when, and beside what: spans of time in lanes, as a picture and in the terminal.
 *
 *     Timeline timeline = timeline_make("two streams");
 *     int copies = timeline_lane(&timeline, "copies"), kernels = timeline_lane(&timeline, "kernels");
 *     timeline_add(&timeline, copies, 0, 0.0, 1.5);                     // the span of number 0, from 0 to 1.5
 *     timeline_add(&timeline, kernels, 0, 1.5, 3.5);
 *     timeline_print(stdout, &timeline, 1, "ms");
 *     timeline_draw(&timeline, 1, "ms", "Copies and kernels", "runs/streams/timeline.svg", &err);
 *
 * Several timelines are drawn one below the other, on one axis. Spans that belong together have the same number; even
 * and odd ones have two shades. On a GPU a TimelineRecorder finds out when spans were, by events:
 *
 *     TimelineRecorder recorder = timeline_open(16, -1);                // as many numbers in each lane
 *     timeline_start(&recorder);                                        // waits for the GPU; time 0
 *     timeline_begin(&recorder, copies, i, stream);
 *     cudaMemcpyAsync(..., stream);
 *     timeline_end(&recorder, copies, i, stream);
 *     double length = timeline_stop(&recorder, &timeline);              // waits again; adds the spans
 *
 * An event is recorded when what was submitted to its stream before has ended: those that end a span can serve streams
 * to wait for each other as well (timeline_ended()). Times are milliseconds. An emulated GPU has no times that mean
 * anything: there they are steps, each copy and each kernel one, as early as streams and events permit
 * (simt/streams.h), which TIMELINE_UNIT says.
 */
#ifndef COMMON_TIMELINE_H
#define COMMON_TIMELINE_H

#include "common/plot.h"

#include <stdlib.h>

enum { TIMELINE_LANES = 3, TIMELINE_WIDTH = 96 };

typedef struct TimelineSpan {
  int lane, number;
  double begin, end;
} TimelineSpan;

typedef struct Timeline {
  const char *name;
  const char *lane[TIMELINE_LANES];
  int lanes;
  TimelineSpan *span;
  size_t spans, room;
} Timeline;

static inline Timeline timeline_make(const char *name) {
  Timeline timeline;
  memset(&timeline, 0, sizeof timeline);
  timeline.name = name;
  return timeline;
}

static inline void timeline_free(Timeline *timeline) {
  free(timeline->span);
  timeline->span = NULL;
  timeline->spans = timeline->room = 0;
}

/* Lanes are numbered from 0. */
static inline int timeline_lane(Timeline *timeline, const char *name) {
  if (timeline->lanes == TIMELINE_LANES) die("a timeline has at most %d lanes", TIMELINE_LANES);
  timeline->lane[timeline->lanes] = name;
  return timeline->lanes++;
}

static inline void timeline_add(Timeline *timeline, int lane, int number, double begin, double end) {
  if (timeline->spans == timeline->room) {
    timeline->room = timeline->room > 0 ? 2 * timeline->room : 64;
    timeline->span = (TimelineSpan *)realloc(timeline->span, timeline->room * sizeof *timeline->span);
    if (timeline->span == NULL) die("out of memory for a timeline of %zu spans", timeline->room);
  }
  const TimelineSpan span = {lane, number, begin, end};
  timeline->span[timeline->spans++] = span;
}

/* When the last span ends. */
static inline double timeline_length(const Timeline *timeline) {
  double length = 0;
  for (size_t i = 0; i < timeline->spans; i++) length = fmax(length, timeline->span[i].end);
  return length;
}

/* A lane in which nothing happened is not shown. */
static inline int timeline_lane_used(const Timeline *timeline, int lane) {
  for (size_t i = 0; i < timeline->spans; i++)
    if (timeline->span[i].lane == lane) return 1;
  return 0;
}

/* The longest of several: what their common axis ends with. */
static inline double timelines_length(const Timeline *timelines, int count) {
  double length = 0;
  for (int t = 0; t < count; t++) length = fmax(length, timeline_length(&timelines[t]));
  return length;
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* In the terminal */

/* A line of TIMELINE_WIDTH characters, each an equal share of `length`: the last digit of the number of the span that
 * fills most of it, or a dot where none was; blanks after the timeline's own end. */
static inline void timeline_line(const Timeline *timeline, int lane, double length, char line[TIMELINE_WIDTH + 1]) {
  double filled[TIMELINE_WIDTH] = {0};
  const int own = (int)ceil(timeline_length(timeline) / length * TIMELINE_WIDTH);
  memset(line, ' ', TIMELINE_WIDTH);
  memset(line, '.', (size_t)own);
  line[TIMELINE_WIDTH] = '\0';
  for (size_t i = 0; i < timeline->spans; i++) {
    const TimelineSpan *span = &timeline->span[i];
    double begin = span->begin / length * TIMELINE_WIDTH, end = span->end / length * TIMELINE_WIDTH;
    for (int c = (int)begin; span->lane == lane && c >= 0 && c < own && c < end; c++) {
      double share = fmin(end, c + 1) - fmax(begin, c);
      if (share <= filled[c]) continue;
      filled[c] = share;
      line[c] = (char)('0' + span->number % 10);
    }
  }
}

/* A line for each lane, below the timeline's name; the axis ends at the end of the longest timeline. */
static inline void timeline_print(FILE *out, const Timeline *timelines, int count, const char *unit) {
  const double length = timelines_length(timelines, count);
  char line[TIMELINE_WIDTH + 1];
  int widest = 0;
  if (!(length > 0)) return;
  for (int t = 0; t < count; t++)
    for (int lane = 0; lane < timelines[t].lanes; lane++)
      widest = (int)fmax(widest, (double)strlen(timelines[t].lane[lane]));
  for (int t = 0; t < count; t++) {
    fprintf(out, "%s\n", timelines[t].name);
    for (int lane = 0; lane < timelines[t].lanes; lane++) {
      if (!timeline_lane_used(&timelines[t], lane)) continue;
      timeline_line(&timelines[t], lane, length, line);
      for (size_t end = strlen(line); end > 0 && line[end - 1] == ' ';) line[--end] = '\0';
      fprintf(out, "  %-*s %s\n", widest, timelines[t].lane[lane], line);
    }
  }
  char end[64];
  snprintf(end, sizeof end, "%.4g %s", length, unit);
  fprintf(out, "  %*s 0%*s\n", widest, "", TIMELINE_WIDTH - 1, end);
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* As a picture */

typedef struct TimelinePicture {
  const Timeline *timelines;
  int count;
  const char *unit, *title;
} TimelinePicture;

/* Boxes from the top down, a row for each lane, half a row between two timelines. No ground, and grey ink: the page
 * behind the picture may be light or dark. The colours are Okabe and Ito's, each with a lighter shade. */
static inline void timeline_print_script(FILE *script, const void *what, int png) {
  static const char *const colour[TIMELINE_LANES][2] = {
      {"0xd55e00", "0xf0904a"}, {"0x0072b2", "0x4aa3d8"}, {"0x009e73", "0x4fc9a4"}};
  const TimelinePicture *picture = (const TimelinePicture *)what;
  const char *ink = "'#7a7a7a'"; /* as in lesson/plot.h */
  const double length = timelines_length(picture->timelines, picture->count), unit = length / 900; /* about a pixel */
  double row = 0;
  size_t longest = 0;
  fputs("set encoding utf8\n$spans << END\n", script);
  for (int t = 0; t < picture->count; t++, row += 0.5) {
    const Timeline *timeline = &picture->timelines[t];
    for (int lane = 0; lane < timeline->lanes; lane++) {
      if (!timeline_lane_used(timeline, lane)) continue;
      for (size_t i = 0; i < timeline->spans; i++) {
        const TimelineSpan *span = &timeline->span[i];
        if (span->lane != lane || !isfinite(span->begin) || !isfinite(span->end)) continue;
        fprintf(script, "%.9g %.9g %g %s %d\n", span->begin, fmax(span->end, span->begin + unit), row,
                colour[lane][span->number & 1], span->number);
      }
      row++;
    }
  }
  const double bottom = row - 1; /* the last timeline has no gap below */
  fputs("END\nset ytics scale 0 (", script);
  row = 0;
  for (int t = 0, first = 1; t < picture->count; t++, row += 0.5)
    for (int lane = 0; lane < picture->timelines[t].lanes; lane++) {
      if (!timeline_lane_used(&picture->timelines[t], lane)) continue;
      char name[128];
      snprintf(name, sizeof name, "%s: %s", picture->timelines[t].name, picture->timelines[t].lane[lane]);
      if (strlen(name) > longest) longest = strlen(name);
      fputs(first ? "" : ", ", script);
      plot_print_string(script, name);
      fprintf(script, " %g", row++);
      first = 0;
    }
  const int height = 110 + (int)(30 * (bottom + 1));
  fprintf(script, ")\nset yrange [%g:-0.7]\nset xrange [0:%.9g]\n", bottom + 0.7, length * 1.01);
  if (png)
    fprintf(script, "set terminal pngcairo size 1650,%d noenhanced transparent font 'Sans,18'\n", height * 3 / 2);
  else
    fprintf(script, "set terminal svg size 1100,%d noenhanced font 'sans-serif,14'\n", height);
  fprintf(script,
          "set border 1 linecolor %s\nset tics nomirror textcolor rgb %s\nset grid xtics noytics linecolor %s "
          "linetype 1 linewidth 0.2\nset lmargin %zu\nset format x '%%g'\nset style fill solid 1 noborder\n",
          ink, ink, ink, longest + 2);
  plot_print_title(script, "set title", picture->title);
  fprintf(script, "set title textcolor rgb %s\n", ink);
  plot_print_title(script, "set xlabel", picture->unit);
  fprintf(script, "set xlabel textcolor rgb %s\n", ink);
  /* a number where its box has room for it, 16 pixels and more */
  fprintf(script,
          "plot $spans using (($1+$2)/2):3:1:2:($3-0.36):($3+0.36):4 with boxxyerror linecolor rgb variable notitle, "
          "$spans using ($2-$1 > %.9g ? ($1+$2)/2 : NaN):3:5 with labels textcolor rgb '#ffffff' notitle\n",
          18 * unit);
}

/* Draws the timelines; the name ends in .svg or .png. */
static inline int timeline_draw(const Timeline *timelines, int count, const char *unit, const char *title,
                                const char *path, Error *err) {
  const TimelinePicture picture = {timelines, count, unit, title};
  if (!(timelines_length(timelines, count) > 0))
    return error_set(err, "%s is not drawn: there is no span that could be shown", path);
  return plot_render(timeline_print_script, &picture, path, err);
}

/* ---------------------------------------------------------------------------------------------------------------- */
#ifdef __CUDACC__
/* From events */

#include "common/check.h"
#include "common/timer.h"

#ifdef SIMT_REWRITTEN
#include "simt/streams.h"
#define TIMELINE_UNIT "steps"
#else
#define TIMELINE_UNIT "ms"
#endif

typedef struct TimelineRecorder {
  int numbers; /* in each lane, from 0 */
  cudaEvent_t origin;
  cudaEvent_t *begin[TIMELINE_LANES], *end[TIMELINE_LANES]; /* (numbers) */
  unsigned char *recorded[TIMELINE_LANES];                  /* (numbers) 1: since timeline_start() */
  double host_origin;
  double *host_begin, *host_end; /* (numbers), ms; of the lane that the host fills itself, if there is one */
  int host_lane;
} TimelineRecorder;

/* `host_lane`: the lane for timeline_host_begin() and _end(), or -1. */
static inline TimelineRecorder timeline_open(int numbers, int host_lane) {
  TimelineRecorder r;
  memset(&r, 0, sizeof r);
  r.numbers = numbers;
  r.host_lane = host_lane;
  CUDA_CHECK(cudaEventCreate(&r.origin));
  r.host_begin = (double *)xcalloc((size_t)numbers, sizeof(double));
  r.host_end = (double *)xcalloc((size_t)numbers, sizeof(double));
  for (int lane = 0; lane < TIMELINE_LANES; lane++) {
    r.begin[lane] = (cudaEvent_t *)xcalloc((size_t)numbers, sizeof(cudaEvent_t));
    r.end[lane] = (cudaEvent_t *)xcalloc((size_t)numbers, sizeof(cudaEvent_t));
    r.recorded[lane] = (unsigned char *)xcalloc((size_t)numbers, 1);
    for (int i = 0; i < numbers && lane != host_lane; i++) {
      CUDA_CHECK(cudaEventCreate(&r.begin[lane][i]));
      CUDA_CHECK(cudaEventCreate(&r.end[lane][i]));
    }
  }
  return r;
}

static inline void timeline_close(TimelineRecorder *r) {
  for (int lane = 0; lane < TIMELINE_LANES; lane++) {
    for (int i = 0; i < r->numbers && lane != r->host_lane; i++) {
      CUDA_CHECK(cudaEventDestroy(r->begin[lane][i]));
      CUDA_CHECK(cudaEventDestroy(r->end[lane][i]));
    }
    free(r->begin[lane]);
    free(r->end[lane]);
    free(r->recorded[lane]);
  }
  CUDA_CHECK(cudaEventDestroy(r->origin));
  free(r->host_begin);
  free(r->host_end);
}

/* Time 0, once the GPU has come to rest. */
static inline void timeline_start(TimelineRecorder *r) {
  CUDA_CHECK(cudaDeviceSynchronize());
  for (int lane = 0; lane < TIMELINE_LANES; lane++) memset(r->recorded[lane], 0, (size_t)r->numbers);
#ifdef SIMT_REWRITTEN
  simt_steps_begin();
#endif
  r->host_origin = seconds_now();
  CUDA_CHECK(cudaEventRecord(r->origin, 0));
}

static inline void timeline_begin(TimelineRecorder *r, int lane, int number, cudaStream_t stream) {
  CUDA_CHECK(cudaEventRecord(r->begin[lane][number], stream));
}

static inline void timeline_end(TimelineRecorder *r, int lane, int number, cudaStream_t stream) {
  CUDA_CHECK(cudaEventRecord(r->end[lane][number], stream));
  r->recorded[lane][number] = 1;
}

/* For a stream, or the host, to wait for the end of a span. */
static inline cudaEvent_t timeline_ended(const TimelineRecorder *r, int lane, int number) {
  return r->end[lane][number];
}

/* What the host does itself. Its clock and the GPU's begin at the same origin, to some microseconds. */
static inline void timeline_host_begin(TimelineRecorder *r, int number) {
  r->host_begin[number] = 1e3 * (seconds_now() - r->host_origin);
}
static inline void timeline_host_end(TimelineRecorder *r, int number) {
  r->host_end[number] = 1e3 * (seconds_now() - r->host_origin);
  r->recorded[r->host_lane][number] = 1;
}

static inline double timeline_since_origin(const TimelineRecorder *r, cudaEvent_t event) {
#ifdef SIMT_REWRITTEN
  return simt_event_step(event) - simt_event_step(r->origin);
#else
  float milliseconds;
  CUDA_CHECK(cudaEventElapsedTime(&milliseconds, r->origin, event));
  return milliseconds;
#endif
}

/* Waits for the GPU, puts the spans into `timeline` instead of those that were there, and returns when the last ended.
 * What the host did has no steps, and is left out where there are no times. */
static inline double timeline_stop(TimelineRecorder *r, Timeline *timeline) {
  CUDA_CHECK(cudaDeviceSynchronize());
  timeline->spans = 0;
  for (int lane = 0; lane < timeline->lanes; lane++)
    for (int i = 0; i < r->numbers; i++) {
      if (!r->recorded[lane][i]) continue;
      if (lane != r->host_lane)
        timeline_add(timeline, lane, i, timeline_since_origin(r, r->begin[lane][i]),
                     timeline_since_origin(r, r->end[lane][i]));
#ifndef SIMT_REWRITTEN
      else
        timeline_add(timeline, lane, i, r->host_begin[i], r->host_end[i]);
#endif
    }
  return timeline_length(timeline);
}
#endif /* __CUDACC__ */

#endif /* COMMON_TIMELINE_H */
