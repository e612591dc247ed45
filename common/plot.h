/* plot.h - line charts, drawn by gnuplot, as SVG or PNG.
 *
 *     PlotSeries series[] = {{"training loss", steps, losses, n, 0}, {"test accuracy", ends, accuracies, epochs, 1}};
 *     Plot plot = {"LeNet-5 on MNIST", "step", "loss", "accuracy", 0, 1, series, 2};
 *     plot_or_note(&plot, "runs/lenet_mnist/curve.png");
 *
 * gnuplot gets a script with the data in it on stdin and writes the picture to stdout. Neither passes a shell, and the
 * name of the file does not reach gnuplot at all, so that no title and no path can make it run or overwrite anything.
 * A picture is there whole or not at all.
 */
#ifndef COMMON_PLOT_H
#define COMMON_PLOT_H

#include "common/atomic_file.h"
#include "common/error.h"

#include <math.h>
#include <spawn.h>
#include <sys/wait.h>

typedef struct PlotSeries {
  const char *name;
  const double *x, *y; /* what is not finite is left out */
  size_t count;
  int right; /* 1: on the y axis at the right, drawn dashed */
} PlotSeries;

typedef struct Plot {
  const char *title, *x_title, *y_title;
  const char *right_title; /* of the second y axis; NULL when no series needs one */
  int log_x, log_y;        /* 1: logarithmic; what is not positive is left out */
  const PlotSeries *series;
  size_t series_count;
} Plot;

/* Within '' gnuplot takes everything as it is, except ' and the end of a line: those are joined on, as "'" and "\n". */
static inline void plot_print_string(FILE *script, const char *text) {
  fputc('\'', script);
  for (; *text != '\0'; text++) {
    if (*text == '\n') {
      fputs("'.\"\\n\".'", script);
    } else if (*text == '\'') {
      fputs("'.\"'\".'", script);
    } else if ((unsigned char)*text >= ' ' && *text != 127) { /* other control characters have no shape */
      fputc(*text, script);
    }
  }
  fputc('\'', script);
}

static inline void plot_print_title(FILE *script, const char *command, const char *text) {
  if (text == NULL) return;
  fprintf(script, "%s ", command);
  plot_print_string(script, text);
  fputc('\n', script);
}

static inline int plot_point_visible(const Plot *plot, const PlotSeries *series, size_t i) {
  double x = series->x[i], y = series->y[i];
  return isfinite(x) && isfinite(y) && (x > 0 || !plot->log_x) && (y > 0 || !plot->log_y || series->right);
}

/* How many points of the series can be drawn. gnuplot takes a series without any for an error. */
static inline size_t plot_visible(const Plot *plot, const PlotSeries *series) {
  size_t visible = 0;
  for (size_t i = 0; i < series->count; i++) visible += plot_point_visible(plot, series, i);
  return visible;
}

static inline void plot_print_script(FILE *script, const Plot *plot, int png) {
  /* Okabe and Ito's colours, told apart by colour-blind readers too; dark enough for thin lines on white. */
  static const char *const colours[] = {"#0072b2", "#d55e00", "#009e73", "#cc79a7",
                                        "#e69f00", "#56b4e9", "#000000", "#8c510a"};
  fputs("set encoding utf8\n", script);
  fputs(png ? "set terminal pngcairo size 1440,900 noenhanced background '#ffffff' font 'Sans,18' linewidth 2.5\n"
            : "set terminal svg size 960,600 noenhanced background '#ffffff' font 'sans-serif,16' linewidth 1.5\n",
        script);
  plot_print_title(script, "set title", plot->title);
  plot_print_title(script, "set xlabel", plot->x_title);
  plot_print_title(script, "set ylabel", plot->y_title);
  fputs(
      "set key below Left reverse\nset bmargin 5.5\nset border 3 linecolor '#404040'\nset tics nomirror\n"
      "set grid linecolor '#d0d0d0' linetype 1 linewidth 0.5\n",
      script);
  if (plot->right_title != NULL) {
    fputs("set border 11\nset y2tics\n", script);
    plot_print_title(script, "set y2label", plot->right_title);
  }
  if (plot->log_x) fputs("set logscale x\nset format x '%g'\n", script);
  if (plot->log_y) fputs("set logscale y\n", script);

  for (size_t s = 0; s < plot->series_count; s++) {
    const PlotSeries *series = &plot->series[s];
    fprintf(script, "$series%zu << END\n", s);
    for (size_t i = 0; i < series->count; i++)
      if (plot_point_visible(plot, series, i)) fprintf(script, "%.9g %.9g\n", series->x[i], series->y[i]);
    fputs("END\n", script);
  }
  const char *separator = "plot";
  for (size_t s = 0; s < plot->series_count; s++) {
    const PlotSeries *series = &plot->series[s];
    size_t visible = plot_visible(plot, series);
    if (visible == 0) continue;
    fprintf(script, "%s $series%zu axes x1y%d with %s linecolor '%s' dashtype %d pointtype 7 pointsize 0.7 title ",
            separator, s, series->right ? 2 : 1, visible <= 30 ? "linespoints" : "lines", colours[s % 8],
            series->right ? 2 : 1);
    plot_print_string(script, series->name);
    separator = ",";
  }
  fputc('\n', script);
}

/* Runs gnuplot on these three files; what it says when it fails goes into the error. */
static inline int plot_run(FILE *script, FILE *picture, FILE *messages, const char *path, Error *err) {
  extern char **environ;
  char program[] = "gnuplot", defaults[] = "-d"; /* -d: a picture must not depend on the user's ~/.gnuplot */
  char *const argv[] = {program, defaults, NULL};
  posix_spawn_file_actions_t files;
  pid_t child;
  int status, first;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_adddup2(&files, fileno(script), 0);
  posix_spawn_file_actions_adddup2(&files, fileno(picture), 1);
  posix_spawn_file_actions_adddup2(&files, fileno(messages), 2);
  int reason = posix_spawnp(&child, program, &files, NULL, argv, environ);
  posix_spawn_file_actions_destroy(&files);
  if (reason == ENOENT)
    return error_set_code(err, ERROR_NOT_INSTALLED,
                          "%s is not drawn: gnuplot is not installed; apt install gnuplot-nox", path);
  if (reason != 0) return error_set(err, "%s is not drawn: gnuplot cannot be started: %s", path, strerror(reason));
  while ((first = waitpid(child, &status, 0)) < 0 && errno == EINTR) continue;
  if (first == child && WIFEXITED(status) && WEXITSTATUS(status) == 0) return 0;
  char said[512];
  rewind(messages);
  size_t length = fread(said, 1, sizeof said - 1, messages);
  said[length] = '\0';
  for (char *c = said; *c != '\0'; c++)
    if (*c == '\n') *c = ' ';
  return error_set(err, "%s is not drawn: gnuplot failed: %s", path, said + strspn(said, " ^"));
}

/* gnuplot does not notice that a disk is full: the picture must end as its format says. */
static inline int plot_complete(const char *path, int png) {
  char tail[16] = "";
  const char *end = png ? "IEND" : "</svg>";
  int found = 0;
  FILE *file = fopen(path, "rb");
  if (file == NULL) return 0;
  if (fseek(file, -(long)sizeof tail, SEEK_END) == 0 && fread(tail, sizeof tail, 1, file) == 1)
    for (size_t i = 0; i + strlen(end) <= sizeof tail; i++) found |= memcmp(tail + i, end, strlen(end)) == 0;
  fclose(file);
  return found;
}

/* Prints a gnuplot script that draws `what`, into a PNG or an SVG. */
typedef void PlotPrint(FILE *script, const void *what, int png);

/* Draws what `print` says; the name ends in .svg or .png. */
static inline int plot_render(PlotPrint *print, const void *what, const char *path, Error *err) {
  const char *extension = strrchr(path, '.');
  int png = extension != NULL && strcmp(extension, ".png") == 0;
  if (!png && (extension == NULL || strcmp(extension, ".svg") != 0))
    return error_set(err, "%s is not drawn: the name of a chart ends in .svg or .png", path);
  AtomicFile picture;
  if (atomic_file_open(&picture, path, err) != 0) return -1;
  FILE *script = tmpfile(), *messages = tmpfile();
  int status = -1;
  if (script == NULL || messages == NULL) {
    error_set(err, "%s is not drawn: no temporary file can be made: %s", path, strerror(errno));
  } else {
    print(script, what, png);
    if (fflush(script) != 0 || fseek(script, 0, SEEK_SET) != 0)
      error_set(err, "%s is not drawn: the temporary script cannot be written: %s", path, strerror(errno));
    else
      status = plot_run(script, picture.stream, messages, path, err);
  }
  if (script != NULL) fclose(script);
  if (messages != NULL) fclose(messages);
  if (status == 0 && !plot_complete(picture.temporary, png))
    status = error_set(err, "%s is not drawn: the picture could not be written whole; is the disk full?", path);
  if (status == 0) return atomic_file_commit(&picture, err);
  atomic_file_abandon(&picture);
  return -1;
}

static inline void plot_print_chart(FILE *script, const void *what, int png) {
  plot_print_script(script, (const Plot *)what, png);
}

/* Draws the chart; the name ends in .svg or .png. */
static inline int plot_write(const Plot *plot, const char *path, Error *err) {
  size_t visible = 0;
  for (size_t s = 0; s < plot->series_count; s++) visible += plot_visible(plot, &plot->series[s]);
  if (visible == 0) return error_set(err, "%s is not drawn: there is not one point that can be shown", path);
  return plot_render(plot_print_chart, plot, path, err);
}

/* For programs that go on without a chart: what to do with the `status` of plot_write(), which is returned. That
 * gnuplot is not installed is a note on stderr, printed once; a chart that cannot be written is a lost result. */
static inline int plot_report(int status, const Error *err) {
  static int noted;
  if (status == 0) return 0;
  const int missing = err->code == ERROR_NOT_INSTALLED;
  if (!missing)
    result_lost(err);
  else if (!noted)
    fprintf(stderr, "%s: note: %s\n", program_invocation_short_name, err->message);
  noted |= missing;
  return status;
}

static inline int plot_or_note(const Plot *plot, const char *path) {
  Error err;
  return plot_report(plot_write(plot, path, &err), &err);
}

#endif /* COMMON_PLOT_H */
