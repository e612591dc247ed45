/* search_report.h - what a search has found: a table, search.csv, search.json and a picture. The validation loss
 * decides; the test images are not looked at.
 *
 * The picture is a curve where one option with numbers was searched, else a map with a field for each pair of values:
 * of more than two options the first two, each field with the lowest loss over the others.
 */
#ifndef PHASE4_TRAINING_SEARCH_REPORT_H
#define PHASE4_TRAINING_SEARCH_REPORT_H

#include "common/plot.h"
#include "phase4_training/08_train/search_trial.h"

typedef struct Search {
  const SearchGrid *grid;
  SearchTrial *trials;
  int *order;                 /* from the lowest loss up; behind them what has none */
  const char *title, *repeat; /* repeat: the command without the searched options */
} Search;

/* Whether loss a is lower than loss b. Nothing is lower than a number that is none. */
static inline int search_lower(double a, double b) { return isfinite(a) && (!isfinite(b) || a < b); }

/* Trials with the same loss stay in the order of the grid. */
static inline void search_sort(const Search *search) {
  for (int i = 0; i < search->grid->trials; i++) {
    int at = i;
    for (; at > 0 && search_lower(search->trials[i].loss, search->trials[search->order[at - 1]].loss); at--)
      search->order[at] = search->order[at - 1];
    search->order[at] = i;
  }
}

/* The trial with the lowest loss; -1: none has one. */
static inline int search_best(const Search *search) {
  const int first = search->order[0];
  return isfinite(search->trials[first].loss) ? first : -1;
}

static inline const char *search_state_name(const SearchTrial *trial) {
  return trial->state == SEARCH_DONE       ? "done"
         : trial->state == SEARCH_DIVERGED ? "diverged"
         : trial->state == SEARCH_REFUSED  ? "refused"
                                           : "not run";
}

static inline int search_width(const SearchAxis *axis) {
  size_t width = strlen(axis->name);
  for (int i = 0; i < axis->count; i++) width = strlen(axis->value[i]) > width ? strlen(axis->value[i]) : width;
  return (int)width;
}

/* Four digits behind the point, as long as there is a point. */
static inline const char *search_loss_text(double loss, char text[32]) {
  snprintf(text, 32, loss < 1e4 ? "%.4f" : "%.3g", loss);
  return text;
}

/* Why options were refused, each sentence once. */
static inline void search_print_refused(const Search *search) {
  for (int t = 0; t < search->grid->trials; t++) {
    int said = search->trials[t].state != SEARCH_REFUSED;
    for (int before = 0; before < t && !said; before++)
      said = search->trials[before].state == SEARCH_REFUSED &&
             strcmp(search->trials[before].why, search->trials[t].why) == 0;
    if (!said) printf("refused: %s\n", search->trials[t].why);
  }
}

static inline void search_print_table(const Search *search) {
  const SearchGrid *grid = search->grid;
  printf("\n ");
  for (int a = 0; a < grid->axes; a++) printf(" %-*s ", search_width(&grid->axis[a]), grid->axis[a].name);
  printf(" validation loss   best epoch   last accuracy   train loss\n");
  for (int i = 0; i < grid->trials; i++) {
    const int t = search->order[i];
    const SearchTrial *trial = &search->trials[t];
    char loss[32], train[32];
    printf("%c", t == search_best(search) ? '*' : ' ');
    for (int a = 0; a < grid->axes; a++) printf(" %-*s ", search_width(&grid->axis[a]), search_value(grid, t, a));
    if (trial->state == SEARCH_DONE)
      printf(" %15s %12d %13.2f %% %12s\n", search_loss_text(trial->loss, loss), trial->best_epoch,
             100 * trial->accuracy, search_loss_text(trial->train_loss, train));
    else
      printf(" %15s\n", search_state_name(trial));
  }
  search_print_refused(search);
}

/* The command that makes a trial's run again. */
static inline void search_command(const Search *search, int trial, char *text, size_t size) {
  size_t used = (size_t)snprintf(text, size, "%s", search->repeat);
  for (int a = 0; a < search->grid->axes && used < size; a++)
    used += (size_t)snprintf(text + used, size - used, " --%s=%s", search->grid->axis[a].name,
                             search_value(search->grid, trial, a));
}

/* -------------------------------------------------------------------------------------------------------- the files */

/* A field of CSV, in quotes where it needs them. */
static inline void search_print_field(FILE *file, const char *text) {
  const int quoted = strpbrk(text, ",\"\n") != NULL;
  if (quoted) fputc('"', file);
  for (; *text; text++) {
    if (*text == '"') fputc('"', file);
    fputc(*text, file);
  }
  if (quoted) fputc('"', file);
}

static inline int search_write_csv(const Search *search, const char *path, Error *err) {
  const SearchGrid *grid = search->grid;
  AtomicFile file;
  if (atomic_file_open(&file, path, err) != 0) return -1;
  for (int a = 0; a < grid->axes; a++) fprintf(file.stream, "%s,", grid->axis[a].name);
  fputs("status,validation_loss,best_epoch,validation_accuracy,train_loss\n", file.stream);
  for (int i = 0; i < grid->trials; i++) {
    const SearchTrial *trial = &search->trials[search->order[i]];
    for (int a = 0; a < grid->axes; a++) {
      search_print_field(file.stream, search_value(grid, search->order[i], a));
      fputc(',', file.stream);
    }
    fputs(search_state_name(trial), file.stream);
    if (trial->state == SEARCH_DONE)
      fprintf(file.stream, ",%.17g,%d,%.17g,%.17g\n", trial->loss, trial->best_epoch, trial->accuracy,
              trial->train_loss);
    else
      fputs(",,,,\n", file.stream);
  }
  return atomic_file_commit(&file, err);
}

static inline json_t *search_json(const Search *search) {
  char text[8192];
  json_t *trials = json_array();
  const int best = search_best(search);
  for (int i = 0; i < search->grid->trials; i++) {
    const SearchTrial *trial = &search->trials[search->order[i]];
    json_t *options = json_object();
    for (int a = 0; a < search->grid->axes; a++)
      json_object_set_new(options, search->grid->axis[a].name,
                          json_text(search_value(search->grid, search->order[i], a)));
    json_t *row = json_pack("{s:o, s:s, s:o}", "options", options, "status", search_state_name(trial), "folder",
                            json_text(trial->folder));
    if (trial->state == SEARCH_DONE) {
      json_object_set_new(row, "validation_loss", json_number(trial->loss));
      json_object_set_new(row, "best_epoch", json_integer(trial->best_epoch));
      json_object_set_new(row, "validation_accuracy", json_number(trial->accuracy));
      json_object_set_new(row, "train_loss", json_number(trial->train_loss));
    }
    json_array_append_new(trials, row);
  }
  json_t *object = json_pack("{s:s, s:i}", "program", program_invocation_short_name, "trials", search->grid->trials);
  if (best >= 0) {
    search_command(search, best, text, sizeof text);
    json_object_set_new(object, "best", json_incref(json_object_get(json_array_get(trials, 0), "options")));
    json_object_set_new(object, "best_validation_loss", json_number(search->trials[best].loss));
    json_object_set_new(object, "command", json_text(text));
  }
  json_object_set_new(object, "rows", trials);
  return object;
}

static inline int search_write_json(const Search *search, const char *path, Error *err) {
  AtomicFile file;
  if (atomic_file_open(&file, path, err) != 0) return -1;
  json_t *object = search_json(search);
  json_dumpf(object, file.stream, JSON_INDENT(2) | JSON_REAL_PRECISION(15));
  fputc('\n', file.stream);
  json_decref(object);
  return atomic_file_commit(&file, err);
}

/* ------------------------------------------------------------------------------------------------------ the picture */

/* Numbers that are far apart are drawn on a logarithmic axis. What is not a number does not count. */
static inline int search_far_apart(const double *number, int count) {
  double least = INFINITY, most = 0;
  for (int i = 0; i < count; i++) {
    least = fmin(least, number[i]);
    most = fmax(most, number[i]);
  }
  return least > 0 && most >= 8 * least;
}

static inline int search_has_numbers(const SearchAxis *axis) {
  for (int i = 0; i < axis->count; i++)
    if (isnan(axis->number[i])) return 0;
  return 1;
}

/* Losses over the values of the only axis, in their order. */
static inline void search_draw_curve(const Search *search, const char *path) {
  const SearchAxis *axis = &search->grid->axis[0];
  const int best = search_best(search);
  double x[SEARCH_POINTS], loss[SEARCH_POINTS], train[SEARCH_POINTS];
  int count = 0;
  for (double below = -INFINITY; count < axis->count; count++) { /* the next larger value */
    int next = -1;
    for (int i = 0; i < axis->count; i++)
      if (axis->number[i] > below && (next < 0 || axis->number[i] < axis->number[next])) next = i;
    x[count] = below = axis->number[next];
    loss[count] = search->trials[next].loss;
    train[count] = search->trials[next].train_loss;
  }
  char name[SEARCH_TEXT + 16];
  double least = INFINITY, most = 0;
  for (int i = 0; i < count; i++) {
    least = fmin(least, loss[i]);
    most = fmax(most, loss[i]);
  }
  const double mark[] = {axis->number[best], axis->number[best]}, height[] = {least, most};
  snprintf(name, sizeof name, "best: %s", axis->value[best]);
  const PlotSeries series[] = {{"validation loss, lowest of all epochs", x, loss, (size_t)count, 0},
                               {"training loss, last epoch", x, train, (size_t)count, 0},
                               {name, mark, height, 2, 0}};
  const Plot plot = {search->title, axis->name, "loss", NULL, search_far_apart(x, count), search_far_apart(loss, count),
                     series,        3};
  plot_or_note(&plot, path);
}

/* The lowest loss of all trials with these values of the first two axes; NAN: all have diverged. */
static inline double search_field(const Search *search, int i, int j) {
  double least = NAN;
  for (int t = 0; t < search->grid->trials; t++)
    if (search_index(search->grid, t, 0) == i && (search->grid->axes < 2 || search_index(search->grid, t, 1) == j) &&
        search_lower(search->trials[t].loss, least))
      least = search->trials[t].loss;
  return least;
}

static inline void search_print_tics(FILE *script, char which, const SearchAxis *axis) {
  fprintf(script, "set %clabel ", which);
  plot_print_string(script, axis->name);
  fprintf(script, "\nset %crange [-0.5:%g]\nset %ctics (", which, axis->count - 0.5, which);
  for (int i = 0; i < axis->count; i++) {
    if (i) fputs(", ", script);
    plot_print_string(script, axis->value[i]);
    fprintf(script, " %d", i);
  }
  fputs(")\n", script);
}

/* The losses of all fields far apart? */
static inline int search_map_log(const Search *search) {
  double loss[SEARCH_TRIALS];
  int count = 0;
  for (int t = 0; t < search->grid->trials; t++) loss[count++] = search->trials[t].loss;
  return search_far_apart(loss, count);
}

/* Dark is low; a field without a loss stays grey. */
static inline void search_print_map(FILE *script, const void *what, int png) {
  const Search *search = (const Search *)what;
  const SearchGrid *grid = search->grid;
  const int rows = grid->axes > 1 ? grid->axis[1].count : 1;
  const double lowest = search->trials[search_best(search)].loss;
  fputs("set encoding utf8\n", script);
  fputs(png ? "set terminal pngcairo size 1440,900 noenhanced background '#ffffff' font 'Sans,18'\n"
            : "set terminal svg size 960,600 noenhanced background '#ffffff' font 'sans-serif,16'\n",
        script);
  plot_print_title(script, "set title", search->title);
  search_print_tics(script, 'x', &grid->axis[0]);
  if (grid->axes > 1)
    search_print_tics(script, 'y', &grid->axis[1]);
  else
    fputs("unset ytics\nset yrange [-0.5:0.5]\n", script);
  fputs(
      "set cblabel 'validation loss, lowest of all epochs' offset 3\nset rmargin 22\nset format cb '%g'\nset tics "
      "nomirror\nset key off\n"
      "set object 1 rectangle from graph 0,0 to graph 1,1 behind fillcolor rgb '#d0d0d0' fillstyle solid\n"
      "set palette defined (0 '#0072b2', 0.5 '#9ecae1', 1 '#ffffff')\n",
      script);
  if (search_map_log(search)) fputs("set logscale cb\n", script);
  fputs("$fields << END\n", script);
  for (int i = 0; i < grid->axis[0].count; i++)
    for (int j = 0; j < rows; j++)
      if (isfinite(search_field(search, i, j))) fprintf(script, "%d %d %.9g\n", i, j, search_field(search, i, j));
  fputs("END\n$labels << END\n", script);
  for (int i = 0; i < grid->axis[0].count; i++)
    for (int j = 0; j < rows; j++) {
      const double loss = search_field(search, i, j);
      char text[32];
      fprintf(script, "%d %d %s%s\n", i, j, loss == lowest ? "*" : "",
              isfinite(loss) ? search_loss_text(loss, text) : "-");
    }
  fputs(
      "END\nplot $fields using 1:2:(0.5):(0.5):3 with boxxyerror linecolor palette fillstyle solid, "
      "$labels using 1:2:3 with labels\n",
      script);
}

/* search.csv, search.json, search.svg and search.png in the folder. */
static inline int search_write(const Search *search, const char *directory, Error *err) {
  static const char *const pictures[] = {"search.svg", "search.png"};
  char path[PATH_MAX + 32];
  Error why;
  snprintf(path, sizeof path, "%s/search.csv", directory);
  if (search_write_csv(search, path, err) != 0) return -1;
  snprintf(path, sizeof path, "%s/search.json", directory);
  if (search_write_json(search, path, err) != 0) return -1;
  for (int i = 0; i < 2 && search_best(search) >= 0; i++) {
    snprintf(path, sizeof path, "%s/%s", directory, pictures[i]);
    if (search->grid->axes == 1 && search_has_numbers(&search->grid->axis[0]))
      search_draw_curve(search, path);
    else
      plot_report(plot_render(search_print_map, search, path, &why), &why);
  }
  return 0;
}

#endif /* PHASE4_TRAINING_SEARCH_REPORT_H */
