/* run_page.h - report.html of a training run (html_report.h): what a Trainer and its settings have to say there.
 *
 *     HtmlReport page;
 *     run_page_open(&page, &task, &options, &trainer, title, device);
 *     run_page_grow(&page, &trainer);                              // after each epoch
 *     run_page_close(&page, &trainer, TRAIN_FINISHED, &answers);
 */
#ifndef COMMON_NN_RUN_PAGE_H
#define COMMON_NN_RUN_PAGE_H

#include "common/environment.h"
#include "common/nn/html_report.h"
#include "common/nn/run_settings.h"
#include "common/nn/trainer.h"

#define RUN_PAGE_EVERY 5.0 /* seconds at least between two versions of a page that grows */

/* `title` must live as long as the page. */
static inline void run_page_open(HtmlReport *page, const Task *task, const TrainOptions *options, const Trainer *t,
                                 const char *title, const char *device) {
  memset(page, 0, sizeof *page);
  page->title = title;
  page->directory = t->output_dir;
  page->written = seconds_now();
  run_settings_rows(&page->settings, task, options, &t->state, t->net, device);
  environment_rows(&page->environment);
}

/* The settings as a table in Markdown, for TensorBoard. */
static inline void run_page_log_settings(const HtmlReport *page, const Trainer *t) {
  char *text = NULL;
  size_t size = 0;
  FILE *out = open_memstream(&text, &size);
  if (out == NULL) return;
  fputs("| setting | value |\n|---|---|\n", out);
  for (int i = 0; i < page->settings.count; i++)
    fprintf(out, "| %s | %s |\n", page->settings.row[i].name, page->settings.row[i].value);
  fclose(out);
  train_log_text(t->log, t->state.step, "settings", text);
  free(text);
}

static inline void run_page_figures(HtmlRows *figures, const Trainer *t) {
  const TrainState *state = &t->state;
  memset(figures, 0, sizeof *figures);
  if (isfinite(state->test_accuracy)) html_row(figures, "test accuracy", "%.2f %%", 100 * state->test_accuracy);
  if (state->best_epoch > 0 && state->best_epoch != state->epoch)
    html_row(figures, "in the best epoch", "%.2f %% (%d)", 100 * state->best_accuracy, state->best_epoch);
  if (isfinite(t->test_loss)) html_row(figures, "test loss", "%.4f", t->test_loss);
  if (isfinite(state->validation_loss)) html_row(figures, "validation loss", "%.4f", state->validation_loss);
  if (isfinite(t->train_loss)) html_row(figures, "training loss", "%.4f", t->train_loss);
  html_row(figures, "epochs", "%d of %d", state->epoch, state->epochs);
  html_row(figures, "steps", "%ld", state->step);
  if (isfinite(t->images_per_second)) html_row(figures, "images per second", "%.0f", t->images_per_second);
  html_row(figures, "training steps took", "%.*f s", state->seconds < 100 ? 2 : 0, state->seconds);
}

static inline int run_page_write(HtmlReport *page, const Trainer *t, const char *status, int running,
                                 const ReportAnswers *answers, Error *err) {
  HtmlRows figures;
  run_page_figures(&figures, t);
  return html_report_write(page, &t->state, &figures, status, running, answers, err);
}

/* While the run goes on: a page now and then. One that cannot be written is not worth a message: the next checkpoint
 * has one. */
static inline void run_page_grow(HtmlReport *page, const Trainer *t) {
  Error err;
  char status[96];
  if (seconds_now() - page->written < RUN_PAGE_EVERY) return;
  snprintf(status, sizeof status, "Training: %d of %d epochs are done. This page loads itself anew.", t->state.epoch,
           t->state.epochs);
  run_page_write(page, t, status, 1, NULL, &err);
}

/* At the end; answers may be NULL. */
static inline void run_page_close(HtmlReport *page, const Trainer *t, TrainResult result,
                                  const ReportAnswers *answers) {
  const TrainState *state = &t->state;
  Error err;
  char status[256], when[64];
  environment_time(when, sizeof when, time(NULL));
  if (result == TRAIN_INTERRUPTED)
    snprintf(
        status, sizeof status,
        "Stopped in epoch %d at image %d of %d, %s; the same command with --resume goes on. The test set is looked "
        "at when the run ends.",
        state->epoch + 1, state->position, t->train->count, when);
  else if (state->epoch < state->epochs)
    snprintf(status, sizeof status,
             "Stopped early after epoch %d of %d, %s: the validation loss was lowest in epoch %d, %.4f.", state->epoch,
             state->epochs, when, state->best_epoch, state->best_loss);
  else
    snprintf(status, sizeof status, "Finished, %s.", when);
  if (run_page_write(page, t, status, 0, answers, &err) != 0) result_lost(&err);
}

#endif /* COMMON_NN_RUN_PAGE_H */
