/* plot.h - the picture of a lesson, by gnuplot (plot.h): its ladder as bars, and the roofs above it.
 *
 * On a GPU: one bar a version for its rate, a line for the roof; where there is arithmetic a roofline beside it, that
 * shows which of the two roofs is the lower one at the lesson's FLOPs a byte. From the inspector: bars for the sectors
 * of global memory and, where there are any, for the wavefronts of shared memory. No ground, and grey ink: the page
 * behind the picture may be light or dark.
 */
#ifndef COMMON_LESSON_PLOT_H
#define COMMON_LESSON_PLOT_H

#include "common/plot.h"

enum { LESSON_BARS = 64 };

#define LESSON_INK "'#7a7a7a'" /* contrast 4.3 to white, 4.4 to the dark page of GitHub */

typedef struct LessonBar {
  const char *name;
  int library;                /* the vendor's, in another colour */
  double rate;                /* FLOP/s or bytes/s */
  double intensity;           /* FLOPs a byte */
  double sectors, wavefronts; /* of the inspector */
} LessonBar;

typedef struct LessonPlot {
  char title[256];
  LessonBar bar[LESSON_BARS];
  int bars, timed, flops; /* timed: rates, else counts; flops: the rates are FLOP/s */
  double copy_bytes_per_second, flops_per_second;
} LessonPlot;

/* 1, 2 or 5 times a power of ten, so that two to five of them make `most`. */
static inline double lesson_plot_step(double most) {
  double step = pow(10, floor(log10(most / 2)));
  return most >= 10 * step ? 5 * step : most >= 5 * step ? 2 * step : step;
}

/* Horizontal bars from the top down, each with its figure, in the bar where it fits; `value` picks it, `roof` is a
 * line across (0: none). */
static inline void lesson_plot_bars(FILE *script, const LessonPlot *plot, const char *title, const char *format,
                                    double (*value)(const LessonBar *), double roof) {
  double most = roof;
  fputs("$bars << END\n", script);
  for (int i = 0; i < plot->bars; i++) {
    double x = value(&plot->bar[i]);
    if (x > most) most = x;
    fprintf(script, "%.9g %d %s\n", x, i, plot->bar[i].library ? "0xd55e00" : "0x0072b2");
  }
  fputs("END\nunset label\nunset arrow\nunset logscale\nset ytics scale 0 (", script);
  for (int i = 0; i < plot->bars; i++) {
    fputs(i > 0 ? ", " : "", script);
    plot_print_string(script, plot->bar[i].name);
    fprintf(script, " %d", i);
  }
  fprintf(script, ")\nset yrange [%g:-0.6]\nset xrange [0:%g]\nset xtics %g\nset grid xtics noytics\n",
          plot->bars - 0.4, most > 0 ? 1.1 * most : 1, most > 0 ? lesson_plot_step(most) : 1);
  plot_print_title(script, "set xlabel", title);
  for (int i = 0; i < plot->bars; i++) {
    char text[32];
    snprintf(text, sizeof text, format, value(&plot->bar[i]));
    fprintf(script, "set label %d ", i + 1);
    plot_print_string(script, text);
    if (value(&plot->bar[i]) > 0.2 * most)
      fprintf(script, " at %.9g,%d right offset -0.5,0 front textcolor rgb '#ffffff'\n", value(&plot->bar[i]), i);
    else
      fprintf(script, " at %.9g,%d left offset 0.5,0 textcolor rgb " LESSON_INK "\n", value(&plot->bar[i]), i);
  }
  if (roof > 0)
    fprintf(script,
            "set arrow 1 from %.9g,-0.6 to %.9g,%g nohead linecolor " LESSON_INK
            " dashtype 2 linewidth 1.5\n"
            "set label %d 'roof' at %.9g,-0.5 right offset -0.5,0 textcolor rgb " LESSON_INK "\n",
            roof, roof, plot->bars - 0.4, plot->bars + 1, roof);
  fputs(
      "plot $bars using ($1/2):2:($1/2):(0.36):3 with boxxyerror fillstyle solid 1 noborder linecolor rgb variable"
      " notitle\n",
      script);
}

/* GFLOP/s over FLOPs a byte, both logarithmic; the versions stand one above the other, under the roof. */
static inline void lesson_plot_roofline(FILE *script, const LessonPlot *plot) {
  double peak = plot->flops_per_second * 1e-9, slope = plot->copy_bytes_per_second * 1e-9, ridge = peak / slope;
  double low = plot->bar[0].rate * 1e-9, at = plot->bar[0].intensity;
  fputs("$points << END\n", script);
  for (int i = 0; i < plot->bars; i++) {
    const LessonBar *bar = &plot->bar[i];
    if (bar->rate * 1e-9 < low) low = bar->rate * 1e-9;
    fprintf(script, "%.9g %.9g %s\n", bar->intensity, bar->rate * 1e-9, bar->library ? "0xd55e00" : "0x0072b2");
  }
  double left = fmin(ridge, at) / 8, right = fmax(ridge, at) * 4;
  fprintf(script,
          "END\nunset label\nunset arrow\nset logscale xy\nset tics scale 1 autofreq\nset yrange [%g:%g]\nset xrange "
          "[%g:%g]\n"
          "set grid xtics ytics\n",
          fmin(low, left * slope) / 2, peak * 2, left, right);
  fputs("set xlabel 'FLOPs a byte'\nset ylabel 'GFLOP/s' textcolor rgb " LESSON_INK "\n", script);
  fprintf(script, "set label 1 '%.0f GFLOP/s' at %g,%g right offset -0.5,0.7 textcolor rgb " LESSON_INK "\n", peak,
          right, peak);
  fprintf(script, "set label 2 '%.0f GB/s' at %g,%g left offset 0.5,-0.8 textcolor rgb " LESSON_INK "\n", slope,
          left * 1.2, left * 1.2 * slope);
  fprintf(script,
          "plot (x < %.9g ? x * %.9g : %.9g) with lines linecolor " LESSON_INK
          " linewidth 2 notitle, "
          "$points using 1:2:3 with points pointtype 7 pointsize 1 linecolor rgb variable notitle\nunset ylabel\n",
          ridge, slope, peak);
}

static inline double lesson_bar_rate(const LessonBar *bar) { return bar->rate * 1e-9; }
static inline double lesson_bar_sectors(const LessonBar *bar) { return bar->sectors; }
static inline double lesson_bar_wavefronts(const LessonBar *bar) { return bar->wavefronts; }

static inline void lesson_plot_print(FILE *script, const void *what, int png) {
  const LessonPlot *plot = (const LessonPlot *)what;
  int height = 240 + 34 * plot->bars; /* of the SVG; the PNG has half as many pixels more */
  double longest = 0, wavefronts = 0;
  for (int i = 0; i < plot->bars; i++) {
    longest = fmax(longest, (double)strlen(plot->bar[i].name));
    wavefronts += plot->bar[i].wavefronts;
  }
  int two = plot->timed ? plot->flops : wavefronts > 0;
  fputs("set encoding utf8\n", script);
  if (png)
    fprintf(script, "set terminal pngcairo size 1650,%d noenhanced transparent font 'Sans,18' linewidth 2\n",
            height * 3 / 2);
  else
    fprintf(script, "set terminal svg size 1100,%d noenhanced font 'sans-serif,14' linewidth 1.5\n", height);
  fprintf(script, "set multiplot layout 1,%d title ", two ? 2 : 1);
  plot_print_string(script, plot->title);
  fputs(" textcolor rgb " LESSON_INK "\nset samples 1000\nset border 3 linecolor " LESSON_INK
        "\nset tics nomirror textcolor rgb " LESSON_INK "\nset xlabel textcolor rgb " LESSON_INK
        "\nset grid linecolor " LESSON_INK
        " linetype 1 linewidth 0.2\n"
        "set format x '%.0s%c'\nset bmargin 4\nset tmargin 3\n",
        script);
  fprintf(script, "set lmargin %g\n", longest + 2);
  if (!plot->timed) {
    lesson_plot_bars(script, plot, "sectors of global memory", "%.0f", lesson_bar_sectors, 0);
    if (two) lesson_plot_bars(script, plot, "wavefronts of shared memory", "%.0f", lesson_bar_wavefronts, 0);
  } else {
    double copied = plot->copy_bytes_per_second * 1e-9, multiplied = plot->flops_per_second * 1e-9;
    double roof = plot->flops ? fmin(multiplied, copied * plot->bar[0].intensity) : copied;
    fputs("set format x '%g'\n", script);
    lesson_plot_bars(script, plot, plot->flops ? "GFLOP/s" : "GB/s", "%.0f", lesson_bar_rate, roof);
    if (plot->flops) {
      fputs("set lmargin 12\n", script);
      lesson_plot_roofline(script, plot);
    }
  }
  fputs("unset multiplot\n", script);
}

/* Could a picture be written there? -1 with what lesson_plot() would say; to be asked before the work that it shows.
 * Nothing is drawn, and no file is left. */
static inline int lesson_plot_possible(const char *path, Error *err) {
  AtomicFile picture;
  if (atomic_file_open(&picture, path, err) != 0) return -1;
  FILE *script = tmpfile(), *messages = tmpfile(); /* an empty script: does gnuplot start? */
  int status = -1;
  if (script == NULL || messages == NULL)
    error_set(err, "%s is not drawn: no temporary file can be made: %s", path, strerror(errno));
  else
    status = plot_run(script, picture.stream, messages, path, err);
  if (script != NULL) fclose(script);
  if (messages != NULL) fclose(messages);
  atomic_file_abandon(&picture);
  return status;
}

static inline int lesson_plot(const LessonPlot *plot, const char *path, Error *err) {
  return plot_render(lesson_plot_print, plot, path, err);
}

#endif /* COMMON_LESSON_PLOT_H */
