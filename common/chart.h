/* chart.h - a line chart as SVG within a page (html.h): no other program draws it, and it follows the page's colours.
 *
 *     const ChartSeries series[] = {{"training", x, y, n, 0}, {"test", u, v, m, 1}};
 *     const Chart chart = {"Loss", "epoch", "", 1, series, 2};
 *     chart_write(file, &chart);
 *
 * The page's style sheet says what the classes are: s0, s1, ... the series, grid and axis.
 */
#ifndef COMMON_CHART_H
#define COMMON_CHART_H

#include "common/html.h"

#include <math.h>

enum {
  CHART_WIDTH = 520,
  CHART_HEIGHT = 290,
  CHART_LEFT = 58,
  CHART_RIGHT = 14,
  CHART_TOP = 12,
  CHART_BOTTOM = 42,
  CHART_POINTS = 400, /* of a line: of more points the lowest and the highest of each part are drawn */
  CHART_DOTS = 60     /* a series of up to so many points has a dot for each */
};

typedef struct ChartSeries {
  const char *name;
  const double *x, *y; /* what is not finite is left out */
  size_t count;
  int colour; /* class "s0" and so on */
} ChartSeries;

typedef struct Chart {
  const char *title, *x_title, *unit; /* unit: behind each number at the y axis */
  int may_be_log;                     /* a logarithmic y axis where values differ by more than 20 times */
  const ChartSeries *series;
  int series_count;
} Chart;

typedef struct ChartAxes {
  double x_low, x_high, y_low, y_high; /* y: the logarithm where log */
  int log;
} ChartAxes;

static inline int chart_visible(const ChartSeries *s, size_t i) { return isfinite(s->x[i]) && isfinite(s->y[i]); }

/* 1, 2 or 5 times a power of ten: the smallest that divides `range` into at most `parts` parts. */
static inline double chart_step(double range, int parts) {
  const double rough = range / parts, power = pow(10, floor(log10(rough)));
  return rough <= power ? power : rough <= 2 * power ? 2 * power : rough <= 5 * power ? 5 * power : 10 * power;
}

/* The ranges of all points; 0 where there is none. */
static inline int chart_axes(const Chart *chart, ChartAxes *axes) {
  double low = INFINITY, high = -INFINITY;
  axes->x_low = INFINITY;
  axes->x_high = -INFINITY;
  for (int s = 0; s < chart->series_count; s++)
    for (size_t i = 0; i < chart->series[s].count; i++) {
      if (!chart_visible(&chart->series[s], i)) continue;
      axes->x_low = fmin(axes->x_low, chart->series[s].x[i]);
      axes->x_high = fmax(axes->x_high, chart->series[s].x[i]);
      low = fmin(low, chart->series[s].y[i]);
      high = fmax(high, chart->series[s].y[i]);
    }
  if (!(low <= high)) return 0;
  axes->x_low = fmin(axes->x_low, 0); /* epochs and steps begin there */
  if (axes->x_high <= axes->x_low) axes->x_high = axes->x_low + 1;
  axes->log = chart->may_be_log && low > 0 && high > 20 * low;
  if (axes->log) {
    axes->y_low = log10(low) - 0.05;
    axes->y_high = log10(high) + 0.05;
    return 1;
  }
  const double margin = high > low ? 0.05 * (high - low) : high != 0 ? 0.1 * fabs(high) : 1;
  axes->y_low = low >= 0 && low < 0.3 * high ? 0 : low - margin;
  axes->y_high = high + margin;
  return 1;
}

static inline double chart_x(const ChartAxes *axes, double x) {
  return CHART_LEFT + (x - axes->x_low) / (axes->x_high - axes->x_low) * (CHART_WIDTH - CHART_LEFT - CHART_RIGHT);
}

static inline double chart_y(const ChartAxes *axes, double y) {
  const double value = axes->log ? log10(y) : y;
  return CHART_HEIGHT - CHART_BOTTOM -
         (value - axes->y_low) / (axes->y_high - axes->y_low) * (CHART_HEIGHT - CHART_TOP - CHART_BOTTOM);
}

static inline void chart_y_tick(FILE *out, const Chart *chart, const ChartAxes *axes, double value) {
  const double y = chart_y(axes, value);
  fprintf(out,
          "<path class=\"grid\" d=\"M%d %.1fH%d\"/><text class=\"axis\" x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%.4g",
          CHART_LEFT, y, CHART_WIDTH - CHART_RIGHT, CHART_LEFT - 7, y + 5, value);
  html_text(out, chart->unit);
  fputs("</text>\n", out);
}

/* Numbers and lines at round values. */
static inline void chart_write_axes(FILE *out, const Chart *chart, const ChartAxes *axes) {
  const int bottom = CHART_HEIGHT - CHART_BOTTOM;
  if (axes->log) {
    const int narrow = axes->y_high - axes->y_low < 2.5; /* decades */
    for (int power = (int)floor(axes->y_low); power <= axes->y_high; power++)
      for (int digit = 1; digit <= 5; digit += digit == 1 ? 1 : 3) {
        const double value = digit * pow(10, power), at = log10(value);
        if (at >= axes->y_low && at <= axes->y_high && (digit == 1 || narrow)) chart_y_tick(out, chart, axes, value);
      }
  } else {
    const double step = chart_step(axes->y_high - axes->y_low, 6);
    for (double k = ceil(axes->y_low / step); k * step <= axes->y_high; k++)
      chart_y_tick(out, chart, axes, k * step + 0.0);
  }
  const double step = chart_step(axes->x_high - axes->x_low, 8);
  for (double k = ceil(axes->x_low / step); k * step <= axes->x_high * (1 + 1e-9); k++)
    fprintf(out, "<text class=\"axis\" x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%.6g</text>\n",
            chart_x(axes, k * step), bottom + 18, k * step + 0.0);
  fprintf(out, "<path class=\"base\" d=\"M%d %dH%d\"/><text class=\"axis\" x=\"%d\" y=\"%d\" text-anchor=\"end\">",
          CHART_LEFT, bottom, CHART_WIDTH - CHART_RIGHT, CHART_WIDTH - CHART_RIGHT, CHART_HEIGHT - 6);
  html_text(out, chart->x_title);
  fputs("</text>\n", out);
}

static inline void chart_point(FILE *out, const ChartAxes *axes, const ChartSeries *s, size_t i) {
  fprintf(out, "%.1f,%.1f ", chart_x(axes, s->x[i]), chart_y(axes, s->y[i]));
}

/* The line; of many points the lowest and the highest of each part, in their order. */
static inline void chart_write_line(FILE *out, const ChartAxes *axes, const ChartSeries *s) {
  const size_t parts = CHART_POINTS / 2, each = s->count <= CHART_POINTS ? 1 : (s->count + parts - 1) / parts;
  fprintf(out, "<polyline class=\"line s%d\" points=\"", s->colour);
  for (size_t begin = 0; begin < s->count; begin += each) {
    size_t low = s->count, high = s->count;
    for (size_t i = begin; i < begin + each && i < s->count; i++) {
      if (!chart_visible(s, i)) continue;
      if (low == s->count || s->y[i] < s->y[low]) low = i;
      if (high == s->count || s->y[i] > s->y[high]) high = i;
    }
    if (low == s->count) continue;
    chart_point(out, axes, s, low < high ? low : high);
    if (low != high) chart_point(out, axes, s, low < high ? high : low);
  }
  fputs("\"/>\n", out);
}

static inline size_t chart_points(const ChartSeries *s) {
  size_t points = 0;
  for (size_t i = 0; i < s->count; i++) points += chart_visible(s, i);
  return points;
}

static inline void chart_write_dots(FILE *out, const Chart *chart, const ChartAxes *axes, const ChartSeries *s) {
  for (size_t i = 0; i < s->count; i++) {
    if (!chart_visible(s, i)) continue;
    fprintf(out, "<circle class=\"s%d\" cx=\"%.1f\" cy=\"%.1f\" r=\"3\"><title>", s->colour, chart_x(axes, s->x[i]),
            chart_y(axes, s->y[i]));
    html_text(out, s->name);
    fputs(", ", out);
    html_text(out, chart->x_title);
    fprintf(out, " %.4g: %.5g", s->x[i], s->y[i]);
    html_text(out, chart->unit);
    fputs("</title></circle>\n", out);
  }
}

/* Writes a <figure>; nothing where no series has a point. */
static inline void chart_write(FILE *out, const Chart *chart) {
  ChartAxes axes;
  if (!chart_axes(chart, &axes)) return;
  fputs("<figure><figcaption><b>", out);
  html_text(out, chart->title);
  fputs("</b>", out);
  for (int s = 0; s < chart->series_count && chart->series_count > 1; s++) {
    if (chart_points(&chart->series[s]) == 0) continue;
    fprintf(out, " <span class=\"key k%d\">", chart->series[s].colour);
    html_text(out, chart->series[s].name);
    fputs("</span>", out);
  }
  fprintf(out, "</figcaption>\n<svg viewBox=\"0 0 %d %d\" role=\"img\" aria-label=\"", CHART_WIDTH, CHART_HEIGHT);
  html_text(out, chart->title);
  fputs("\">\n", out);
  chart_write_axes(out, chart, &axes);
  for (int s = 0; s < chart->series_count; s++) {
    const ChartSeries *series = &chart->series[s];
    if (chart_points(series) > 1) chart_write_line(out, &axes, series);
    if (chart_points(series) <= CHART_DOTS) chart_write_dots(out, chart, &axes, series);
  }
  fputs("</svg></figure>\n", out);
}

#endif /* COMMON_CHART_H */
