/* report.h - what a training run leaves for people: confusion matrix, learning curve, filters, wrong answers.
 *
 *     curve.svg, curve.png     loss and accuracy over the epochs, from the log
 *     filters.png              the weights of the first layer, one tile a filter or unit: blue < 0 < red
 *     misclassified.png        the test images that were read wrong, the surest mistakes first, "4->9": a 4 read as 9
 */
#ifndef COMMON_NN_REPORT_H
#define COMMON_NN_REPORT_H

#include "common/confusion.h"
#include "common/image.h"
#include "common/nn/checkpoint.h"
#include "common/nn/device_set.h"
#include "common/plot.h"
#include "common/train_log.h"

enum {
  REPORT_MAX_CLASSES = 1000,
  REPORT_MAX_MISTAKES = 100,
  REPORT_TOP = 3,
  REPORT_WORST = 24,
  REPORT_MAX_SIDE = 8192 /* pixels */
};

/* A picture that cannot be written does not stop the others. */
static inline void report_image(const Image *image, const char *directory, const char *name) {
  Error err;
  char path[PATH_MAX + 64];
  snprintf(path, sizeof path, "%s/%s", directory, name);
  if (image_write_png(path, image, &err) != 0) result_lost(&err);
}

/* --------------------------------------------------------------------------------------- learning curve */

/* Loss and accuracy of one split, as functions of the epoch. */
typedef struct ReportCurve {
  double *epoch, *loss, *accuracy;
  size_t count;
} ReportCurve;

static inline ReportCurve report_curve(const TrainRecord *records, size_t count, const char *split,
                                       double steps_per_epoch, double last_step) {
  ReportCurve curve = {NULL, NULL, NULL, 0};
  curve.epoch = (double *)xcalloc(count, sizeof(double));
  curve.loss = (double *)xcalloc(count, sizeof(double));
  curve.accuracy = (double *)xcalloc(count, sizeof(double));
  for (size_t i = 0; i < count; i++) {
    if (strcmp(records[i].split, split) != 0) continue;
    curve.epoch[curve.count] = (double)records[i].step / steps_per_epoch;
    curve.loss[curve.count] = records[i].loss;
    int early = (double)records[i].step < 0.05 * last_step; /* would flatten the rest of the axis */
    curve.accuracy[curve.count++] = early ? NAN : 100 * records[i].accuracy;
  }
  return curve;
}

static inline void report_curve_free(ReportCurve *curve) {
  free(curve->epoch);
  free(curve->loss);
  free(curve->accuracy);
}

static inline void report_curves(const char *title, const TrainState *state, const char *directory) {
  Error err;
  TrainRecord *records;
  size_t count;
  char path[PATH_MAX + 32];
  if (train_log_load(directory, state->step, &records, &count, &err) != 0) {
    fprintf(stderr, "%s: warning: no learning curve: %s\n", program_invocation_short_name, err.message);
    return;
  }
  double steps = checkpoint_steps_per_epoch(state);
  ReportCurve train = report_curve(records, count, "train", steps, state->step);
  ReportCurve test = report_curve(records, count, "test", steps, state->step);
  ReportCurve validation = report_curve(records, count, "validation", steps, state->step);
  const PlotSeries series[] = {{"training loss", train.epoch, train.loss, train.count, 0},
                               {"test loss", test.epoch, test.loss, test.count, 0},
                               {"validation loss", validation.epoch, validation.loss, validation.count, 0},
                               {"training accuracy", train.epoch, train.accuracy, train.count, 1},
                               {"test accuracy", test.epoch, test.accuracy, test.count, 1}};
  const Plot plot = {title, "epoch", "loss (cross-entropy)", "accuracy, %", 0, 1, series, 5};
  snprintf(path, sizeof path, "%s/curve.svg", directory);
  if (plot_or_note(&plot, path) == 0) {
    snprintf(path, sizeof path, "%s/curve.png", directory);
    plot_or_note(&plot, path);
  }
  report_curve_free(&train);
  report_curve_free(&test);
  report_curve_free(&validation);
  free(records);
}

/* ----------------------------------------------------------------------------------------------- filters */

/* Convolution filters (K, C, R, S) as K rows of C tiles; the rows of a linear layer over pixels as square tiles. Of a
 * wide layer the first ones: as many as a picture has room for. */
static inline void report_filters(const Model *net, Shape image_shape, const char *directory) {
  const int margin = 8;
  int node = 0, index = 0, count, height, width, columns;
  const Param *w = model_next_param(net, &node, &index); /* the first weight */
  if (w == NULL) return;
  if (w->rank == 4) {
    height = (int)w->dim[2];
    width = (int)w->dim[3];
    columns = w->dim[1] > 1 ? (int)w->dim[1] : 6;
  } else if (w->rank == 2 && image_shape.dim[0] == 1 && w->dim[1] == shape_count(image_shape)) {
    height = image_shape.dim[1];
    width = image_shape.dim[2];
    columns = 16;
  } else {
    return;
  }
  const int scale = height < 10 ? 20 : 3, room = REPORT_MAX_SIDE - margin;
  const int most_columns = room / (width * scale + margin), most_rows = room / (height * scale + margin);
  if (most_columns < 1 || most_rows < 1) return;
  if (columns > most_columns) columns = most_columns;
  count = (int)(w->count / ((size_t)height * width));
  if (count > columns * most_rows) count = columns * most_rows;
  float *filters = (float *)xmalloc(w->count * sizeof(float));
  device_download(net->context.device, filters, model_param(net, w), w->count * sizeof(float));
  Image image = image_sheet_filters(filters, count, height, width, columns < count ? columns : count, scale, margin);
  report_image(&image, directory, "filters.png");
  image_free(&image);
  free(filters);
}

/* ---------------------------------------------------------------------------------------------- mistakes */

typedef struct ReportMistake {
  int index, label, answer;
  float confidence;
} ReportMistake;

static inline int report_surest_first(const void *a, const void *b) {
  const ReportMistake *x = (const ReportMistake *)a, *y = (const ReportMistake *)b;
  if (x->confidence != y->confidence) return x->confidence < y->confidence ? 1 : -1;
  return x->index - y->index;
}

/* The pixels of one image as a tile: grey, dark on light as on paper, or (H,W,3). */
static inline void report_tile(uint8_t *tile, const uint8_t *image, Shape shape) {
  const size_t plane = (size_t)shape.dim[1] * shape.dim[2];
  if (shape.dim[0] != 3) {
    for (size_t i = 0; i < plane; i++) tile[i] = (uint8_t)(255 - image[i]);
    return;
  }
  for (size_t i = 0; i < plane; i++)
    for (int c = 0; c < 3; c++) tile[3 * i + c] = image[c * plane + i];
}

static inline void report_mistakes(ReportMistake *mistakes, int count, const DataSet *test, const char *directory) {
  char captions[REPORT_MAX_MISTAKES][32];
  const char *caption_list[REPORT_MAX_MISTAKES];
  qsort(mistakes, count, sizeof *mistakes, report_surest_first);
  if (count > REPORT_MAX_MISTAKES) count = REPORT_MAX_MISTAKES;
  const int height = test->shape.dim[1], width = test->shape.dim[2], colors = test->shape.dim[0] == 3 ? 3 : 1;
  const size_t bytes = shape_count(test->shape), tile = (size_t)colors * height * width;
  uint8_t *tiles = (uint8_t *)xmalloc(count * tile);
  for (int i = 0; i < count; i++) {
    report_tile(tiles + i * tile, test->samples + mistakes[i].index * bytes, test->shape);
    snprintf(captions[i], sizeof captions[i], "%d->%d", mistakes[i].label, mistakes[i].answer);
    caption_list[i] = captions[i];
  }
  char path[PATH_MAX + 32];
  snprintf(path, sizeof path, "%s/misclassified.png", directory);
  unlink(path); /* of an earlier run: this one may have made no mistakes */
  if (count > 0) {
    const int columns = count < 10 ? count : 10;
    Image image = colors == 3 ? image_sheet_rgb(tiles, count, height, width, columns, 3, 10, caption_list)
                              : image_sheet_gray(tiles, count, height, width, columns, 3, 10, caption_list);
    report_image(&image, directory, "misclassified.png");
    image_free(&image);
  }
  free(tiles);
}

/* ------------------------------------------------------------------------------------------------- all of it */

/* The class with the largest probability, the first of equals. */
static inline int report_answer(const float *probabilities, int classes) {
  int best = 0;
  for (int c = 1; c < classes; c++)
    if (probabilities[c] > probabilities[best]) best = c;
  return best;
}

/* A mistake, and its loss: the logarithm of the probability that its class was given, negative. */
typedef struct ReportWorst {
  int index, label, answer;
  double loss;
} ReportWorst;

/* What a network said to the test set. */
typedef struct ReportAnswers {
  int classes, count, wrong;
  int *confusion;                  /* (classes, classes): true class, answer */
  ReportMistake *mistakes;         /* (wrong) */
  ReportWorst worst[REPORT_WORST]; /* by falling loss */
  int worst_count;
  const DataSet *test;
  const char *things;       /* "digits" */
  const char *const *names; /* NULL: numbers */
} ReportAnswers;

/* Into its place among the worst, where it is one of them; the first of equals stays first. */
static inline void report_add_worst(ReportAnswers *answers, ReportWorst mistake) {
  int at = answers->worst_count;
  while (at > 0 && answers->worst[at - 1].loss < mistake.loss) at--;
  if (at == REPORT_WORST) return;
  if (answers->worst_count < REPORT_WORST) answers->worst_count++;
  for (int i = answers->worst_count - 1; i > at; i--) answers->worst[i] = answers->worst[i - 1];
  answers->worst[at] = mistake;
}

/* test_set: of which `test` has the first images. report_answers_free() gives the memory back. */
static inline void report_answers(ReportAnswers *answers, Model *net, const DeviceSet *test, const DataSet *test_set,
                                  const DataSource *source) {
  const int classes = model_classes(net);
  float *probabilities = (float *)xmalloc((size_t)test->count * classes * sizeof(float));
  memset(answers, 0, sizeof *answers);
  answers->classes = classes;
  answers->count = test->count;
  answers->test = test_set;
  answers->things = source->things;
  answers->names = classes == source->classes ? source->class_names : NULL; /* a network may have more: no names */
  answers->confusion = (int *)xcalloc((size_t)classes * classes, sizeof(int));
  answers->mistakes = (ReportMistake *)xcalloc(test->count, sizeof(ReportMistake));
  device_set_evaluate(test, net, probabilities);
  for (int i = 0; i < test->count; i++) {
    const float *p = probabilities + (size_t)i * classes;
    const int answer = report_answer(p, classes), label = test_set->labels[i];
    answers->confusion[label * classes + answer]++;
    if (answer == label) continue;
    const ReportMistake mistake = {i, label, answer, p[answer]};
    const ReportWorst worst = {i, label, answer, -log(fmax(p[label], 1e-38))};
    answers->mistakes[answers->wrong++] = mistake;
    report_add_worst(answers, worst);
  }
  free(probabilities);
}

static inline void report_answers_free(ReportAnswers *answers) {
  free(answers->confusion);
  free(answers->mistakes);
  memset(answers, 0, sizeof *answers);
}

/* Prints the confusion matrix and writes the pictures into `directory`. */
static inline void report_write(const char *title, Model *net, const ReportAnswers *answers, const TrainState *state,
                                const char *directory) {
  const int classes = answers->classes;
  if (classes <= CONFUSION_COLUMNS)
    printf("\nconfusion matrix of the last epoch: rows are the %s, columns the answers\n", answers->things);
  else
    printf("\nthe %d classes of %s in the last epoch\n", classes, answers->things);
  confusion_print_named(stdout, answers->confusion, classes, answers->names);
  report_mistakes(answers->mistakes, answers->wrong, answers->test, directory);
  report_filters(net, answers->test->shape, directory);
  report_curves(title, state, directory);
  printf("\nbest test accuracy %.2f %% in epoch %d; %d of %d test images are wrong after the last\n",
         100 * state->best_accuracy, state->best_epoch, answers->wrong, answers->count);
  printf("model, log and pictures are in %s\n", directory);
  fflush(stdout);
}

/* ------------------------------------------------------------------------------------------------- predict */

/* Prints "three.png: 3 (99.8 %), 5 (0.1 %), 8 (0.0 %)", and returns the same for JSON. `names` may be NULL. */
static inline json_t *report_prediction(const char *file, const float *probabilities, int classes,
                                        const char *const *names) {
  float left[REPORT_MAX_CLASSES];
  memcpy(left, probabilities, classes * sizeof(float));
  json_t *top = json_array();
  printf("%s:", file);
  for (int i = 0; i < REPORT_TOP && i < classes; i++) {
    int answer = report_answer(left, classes);
    char name[64];
    confusion_name(name, sizeof name - 1, answer, names);
    printf("%s %s (%.1f %%)", i ? "," : "", name, 100.0 * probabilities[answer]);
    json_t *entry = json_pack("{s:i, s:f}", "label", answer, "probability", (double)probabilities[answer]);
    if (names) json_object_set_new(entry, "name", json_string(name));
    json_array_append_new(top, entry);
    left[answer] = -1;
  }
  putchar('\n');
  return json_pack("{s:o, s:o}", "file", json_text(file), "top", top);
}

#endif /* COMMON_NN_REPORT_H */
