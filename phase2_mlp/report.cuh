/* report.cuh - what a training run leaves for people: confusion matrix, learning curve, filters, wrong answers.
 *
 *     curve.svg, curve.png     loss and accuracy over the epochs, from the log
 *     filters.png              the weights of the first layer, one tile a filter or unit: blue < 0 < red
 *     misclassified.png        the test images that were read wrong, the surest mistakes first, "4->9": a 4 read as 9
 */
#ifndef PHASE2_MLP_REPORT_CUH
#define PHASE2_MLP_REPORT_CUH

#include "common/confusion.h"
#include "common/image.h"
#include "common/plot.h"
#include "common/train_log.h"
#include "phase2_mlp/checkpoint.cuh"
#include "phase2_mlp/image_set.cuh"

enum { REPORT_MAX_CLASSES = 1000, REPORT_MAX_MISTAKES = 100, REPORT_TOP = 3 };

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
  const PlotSeries series[] = {{"training loss", train.epoch, train.loss, train.count, 0},
                               {"test loss", test.epoch, test.loss, test.count, 0},
                               {"training accuracy", train.epoch, train.accuracy, train.count, 1},
                               {"test accuracy", test.epoch, test.accuracy, test.count, 1}};
  const Plot plot = {title, "epoch", "loss (cross-entropy)", "accuracy, %", 0, 1, series, 4};
  snprintf(path, sizeof path, "%s/curve.svg", directory);
  if (plot_or_note(&plot, path) == 0) {
    snprintf(path, sizeof path, "%s/curve.png", directory);
    plot_or_note(&plot, path);
  }
  report_curve_free(&train);
  report_curve_free(&test);
  free(records);
}

/* ----------------------------------------------------------------------------------------------- filters */

/* Convolution filters (K, C, R, S) as K rows of C tiles; the rows of a linear layer over pixels as square tiles. */
static inline void report_filters(const Model *net, int pixels_per_image, const char *directory) {
  int node = 0, index = 0, count, height, width, columns;
  const Param *w = model_next_param(net, &node, &index); /* the first weight */
  if (w == NULL) return;
  if (w->rank == 4) {
    height = (int)w->dim[2];
    width = (int)w->dim[3];
    columns = w->dim[1] > 1 ? (int)w->dim[1] : 6;
  } else if (w->rank == 2 && w->dim[1] == (size_t)pixels_per_image) {
    height = width = (int)lround(sqrt((double)pixels_per_image));
    columns = 16;
  } else {
    return;
  }
  count = (int)(w->count / ((size_t)height * width));
  float *filters = (float *)xmalloc(w->count * sizeof(float));
  device_download(net->context.device, filters, model_param(net, w), w->count * sizeof(float));
  Image image =
      image_sheet_filters(filters, count, height, width, columns < count ? columns : count, height < 10 ? 20 : 3, 8);
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

static inline void report_mistakes(ReportMistake *mistakes, int count, const MnistSet *test, const char *directory) {
  char captions[REPORT_MAX_MISTAKES][8];
  const char *caption_list[REPORT_MAX_MISTAKES];
  qsort(mistakes, count, sizeof *mistakes, report_surest_first);
  if (count > REPORT_MAX_MISTAKES) count = REPORT_MAX_MISTAKES;
  size_t pixels = (size_t)test->height * test->width;
  unsigned char *tiles = (unsigned char *)xmalloc(count * pixels);
  for (int i = 0; i < count; i++) {
    const unsigned char *image = test->images + mistakes[i].index * pixels;
    for (size_t j = 0; j < pixels; j++) tiles[i * pixels + j] = 255 - image[j]; /* dark on light, as on paper */
    snprintf(captions[i], sizeof captions[i], "%d->%d", mistakes[i].label % 10, mistakes[i].answer % 10);
    caption_list[i] = captions[i];
  }
  char path[PATH_MAX + 32];
  snprintf(path, sizeof path, "%s/misclassified.png", directory);
  unlink(path); /* of an earlier run: this one may have made no mistakes */
  if (count > 0) {
    Image image =
        image_sheet_gray(tiles, count, test->height, test->width, count < 10 ? count : 10, 3, 10, caption_list);
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

/* Prints the confusion matrix and writes the pictures into `directory`. */
static inline void report_write(const char *title, Model *net, const ImageSet *test, const MnistSet *test_set,
                                const TrainState *state, const char *directory) {
  int classes = model_classes(net), wrong = 0;
  float *probabilities = (float *)xmalloc((size_t)test->count * classes * sizeof(float));
  int *confusion = (int *)xcalloc((size_t)classes * classes, sizeof(int));
  ReportMistake *mistakes = (ReportMistake *)xcalloc(test->count, sizeof(ReportMistake));
  image_set_evaluate(test, net, probabilities);
  for (int i = 0; i < test->count; i++) {
    const float *p = probabilities + (size_t)i * classes;
    int answer = report_answer(p, classes), label = test_set->labels[i];
    confusion[label * classes + answer]++;
    if (answer == label) continue;
    ReportMistake mistake = {i, label, answer, p[answer]};
    mistakes[wrong++] = mistake;
  }
  printf("\nconfusion matrix of the last epoch: rows are the digits, columns the answers\n");
  confusion_print(stdout, confusion, classes);
  report_mistakes(mistakes, wrong, test_set, directory);
  report_filters(net, test->pixels, directory);
  report_curves(title, state, directory);
  printf("\nbest test accuracy %.2f %% in epoch %d; %d of %d test images are wrong after the last\n",
         100 * state->best_accuracy, state->best_epoch, wrong, test->count);
  printf("model, log and pictures are in %s\n", directory);
  fflush(stdout);
  free(mistakes);
  free(confusion);
  free(probabilities);
}

/* ------------------------------------------------------------------------------------------------- predict */

/* Prints "three.png: 3 (99.8 %), 5 (0.1 %), 8 (0.0 %)", and returns the same for JSON. */
static inline json_t *report_prediction(const char *file, const float *probabilities, int classes) {
  float left[REPORT_MAX_CLASSES];
  memcpy(left, probabilities, classes * sizeof(float));
  json_t *top = json_array();
  printf("%s:", file);
  for (int i = 0; i < REPORT_TOP && i < classes; i++) {
    int answer = report_answer(left, classes);
    printf("%s %d (%.1f %%)", i ? "," : "", answer, 100.0 * probabilities[answer]);
    json_array_append_new(top, json_pack("{s:i, s:f}", "label", answer, "probability", (double)probabilities[answer]));
    left[answer] = -1;
  }
  putchar('\n');
  return json_pack("{s:o, s:o}", "file", json_text(file), "top", top);
}

#endif /* PHASE2_MLP_REPORT_CUH */
