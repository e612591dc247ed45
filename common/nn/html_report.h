/* html_report.h - report.html: what came of a training run, on one page that needs no other file and no network.
 *
 *     HtmlReport page;                                        // title, folder, settings, environment: once
 *     html_report_write(&page, &state, &figures, "2 of 5 epochs", 1, NULL, &err);     // while it runs
 *     html_report_write(&page, &state, &figures, "finished", 0, &answers, &err);
 *
 * While the run goes on the page asks the browser to load it anew every few seconds; it is replaced in one step, so
 * that it can be kept open. What a run does not have (a validation set, images, answers to look at) is left out.
 */
#ifndef COMMON_NN_HTML_REPORT_H
#define COMMON_NN_HTML_REPORT_H

#include "common/chart.h"
#include "common/html.h"
#include "common/nn/report.h"
#include "common/timer.h"

enum { HTML_REPORT_RELOAD = 5 /* seconds */, HTML_REPORT_PAIRS = 20, HTML_REPORT_BYTES = 400000 /* of all pictures */ };

typedef struct HtmlReport {
  const char *title, *directory;
  HtmlRows settings, environment;
  double written; /* seconds_now() of the last time; that of the start before */
} HtmlReport;

/* Colours are Okabe and Ito's where a page is light, and lighter ones of the same hues where it is dark. */
static const char html_report_style[] =
    ":root{color-scheme:light dark;--back:#fff;--text:#1c1e21;--soft:#5f6670;--line:#dfe2e6;--card:#f5f6f8;"
    "--c0:#0072b2;--c1:#d55e00;--c2:#008a66;--right:0,114,178;--wrong:213,94,0}\n"
    "@media(prefers-color-scheme:dark){:root{--back:#15171a;--text:#e6e8ea;--soft:#9aa2ac;--line:#31363c;--card:#"
    "1e2125;"
    "--c0:#5ab4e8;--c1:#ff9248;--c2:#3ecfa5;--right:90,180,232;--wrong:255,146,72}}\n"
    "*{box-sizing:border-box}body{margin:0 auto;padding:24px 20px 48px;max-width:1160px;background:var(--back);"
    "color:var(--text);font:16px/1.5 system-ui,sans-serif}\n"
    "h1{font-size:26px;line-height:1.25;margin:0 0 4px;overflow-wrap:anywhere}h2{font-size:19px;margin:36px 0 12px}"
    "p{margin:0 0 12px}.after{margin-top:10px}.soft,figcaption{color:var(--soft)}\n"
    ".tiles{display:grid;grid-template-columns:repeat(auto-fit,minmax(150px,1fr));gap:12px;margin:20px 0 0}"
    ".tiles div{background:var(--card);border-radius:8px;padding:10px 14px}"
    ".tiles span{display:block;color:var(--soft);font-size:13px}.tiles b{font-size:20px;font-weight:600}\n"
    ".charts{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,460px),1fr));gap:20px}"
    "figure{margin:0;min-width:0}figcaption{font-size:14px}figcaption "
    "b{color:var(--text)}svg{display:block;width:100%}\n"
    ".axis{font-size:14px;fill:var(--soft)}.grid{stroke:var(--line);fill:none}.base{stroke:var(--soft);fill:none}"
    ".line{fill:none;stroke-width:2;stroke-linejoin:round}circle.s0{fill:var(--c0)}circle.s1{fill:var(--c1)}"
    "circle.s2{fill:var(--c2)}.line.s0{stroke:var(--c0)}.line.s1{stroke:var(--c1)}"
    ".line.s2{stroke:var(--c2);stroke-dasharray:7 4}\n"
    ".key{white-space:nowrap;margin-left:10px}.key:before{content:'';display:inline-block;width:16px;"
    "border-top:3px solid var(--c0);vertical-align:middle;margin-right:5px}.k1:before{border-color:var(--c1)}"
    ".k2:before{border-color:var(--c2);border-top-style:dashed}\n"
    ".wide{overflow-x:auto}table{border-collapse:collapse;font-size:14px}.matrix td,.matrix th{padding:4px 7px;"
    "text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}.matrix "
    "th{font-weight:500;color:var(--soft)}"
    ".matrix td{min-width:42px;border:1px solid var(--back)}.d{background:rgba(var(--right),var(--a))}"
    ".e{background:rgba(var(--wrong),var(--a))}.matrix .sum{color:var(--soft)}\n"
    ".mistakes{display:grid;grid-template-columns:repeat(auto-fill,minmax(104px,1fr));gap:14px}"
    ".mistakes img{display:block;image-rendering:pixelated;border:1px solid var(--line);border-radius:4px}"
    ".mistakes figcaption{font-size:13px;line-height:1.35;margin-top:4px;overflow-wrap:anywhere}\n"
    ".facts{width:100%;table-layout:fixed}.facts th{width:150px;text-align:left;font-weight:500;color:var(--soft)}"
    ".facts td,.facts th{padding:5px 8px 5px 0;border-bottom:1px solid var(--line);vertical-align:top;"
    "overflow-wrap:anywhere}\n"
    ".pair{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,440px),1fr));gap:0 40px}\n"
    "@media(max-width:520px){body{padding:16px 14px 32px}h1{font-size:22px}.facts th{width:128px}"
    ".axis{font-size:17px}}\n";

/* ----------------------------------------------------------------------------------------------------------- curves */

/* One figure of one split, as a function of the epoch; memory for free(). */
static inline double *html_report_values(const TrainRecord *records, size_t count, const char *split, size_t figure,
                                         double factor) {
  double *y = (double *)xcalloc(count, sizeof *y);
  for (size_t i = 0; i < count; i++) {
    double figures[TRAIN_RECORD_FIGURES];
    train_record_figures(&records[i], figures);
    y[i] = strcmp(records[i].split, split) == 0 ? factor * figures[figure] : NAN;
  }
  return y;
}

enum { HTML_REPORT_LOSS = 0, HTML_REPORT_ACCURACY = 1, HTML_REPORT_LR = 2, HTML_REPORT_NORM = 5 };

/* The figure of all `splits`: training, test, validation, as far as they have it. The accuracy of the first moments is
 * left out: it would flatten the rest. */
static inline void html_report_chart(FILE *out, const char *title, const char *unit, const TrainRecord *records,
                                     size_t count, const double *epoch, size_t figure, int splits) {
  static const char *const names[] = {"train", "test", "validation"}, *const shown[] = {"training", "test",
                                                                                        "validation"};
  ChartSeries series[3];
  for (int s = 0; s < splits; s++) {
    double *y = html_report_values(records, count, names[s], figure, figure == HTML_REPORT_ACCURACY ? 100 : 1);
    for (size_t i = 0; i < count && figure == HTML_REPORT_ACCURACY; i++)
      if ((double)records[i].step < 0.05 * (double)records[count - 1].step) y[i] = NAN;
    const ChartSeries one = {shown[s], epoch, y, count, s};
    series[s] = one;
  }
  const Chart chart = {title, "epoch", unit, figure == HTML_REPORT_LOSS || figure == HTML_REPORT_NORM, series, splits};
  chart_write(out, &chart);
  for (int s = 0; s < splits; s++) free((double *)series[s].y);
}

/* Why the curve of the training loss may lie above the others; nothing where labels are as they are. */
static inline void html_report_changed_labels(FILE *out, const TrainState *state) {
  const int smoothed = state->label_smoothing > 0, mixed = state->mixup > 0;
  if (!smoothed && !mixed) return;
  fprintf(out,
          "<p class=\"soft after\">The training losses are those of %s%s%s labels%s; the other losses are those of the "
          "labels as they are. So the training loss can lie above them.</p>\n",
          smoothed ? "smoothed" : "", smoothed && mixed ? " and " : "", mixed ? "mixed" : "",
          smoothed && mixed ? " (--label-smoothing, --mixup)"
          : smoothed        ? " (--label-smoothing)"
                            : " (--mixup)");
}

/* From the log, up to the state's step. */
static inline int html_report_curves(FILE *out, const HtmlReport *page, const TrainState *state, Error *err) {
  TrainRecord *records;
  size_t count;
  if (train_log_load(page->directory, state->step, &records, &count, err) != 0) return -1;
  if (count > 0) {
    double *epoch = (double *)xcalloc(count, sizeof *epoch);
    for (size_t i = 0; i < count; i++) epoch[i] = (double)records[i].step / checkpoint_steps_per_epoch(state);
    fputs("<h2>Curves</h2>\n<div class=\"charts\">\n", out);
    fputs("<div>", out);
    html_report_chart(out, "Loss", "", records, count, epoch, HTML_REPORT_LOSS, 3);
    html_report_changed_labels(out, state);
    fputs("</div>\n", out);
    html_report_chart(out, "Accuracy", " %", records, count, epoch, HTML_REPORT_ACCURACY, 3);
    html_report_chart(out, "Learning rate", "", records, count, epoch, HTML_REPORT_LR, 1);
    html_report_chart(out, "Norm of the gradients, before clipping", "", records, count, epoch, HTML_REPORT_NORM, 1);
    fputs("</div>\n", out);
    free(epoch);
  }
  free(records);
  return 0;
}

/* ------------------------------------------------------------------------------------------------- confusion matrix */

static inline void html_report_class(FILE *out, const ReportAnswers *answers, int label) {
  char name[64];
  confusion_name(name, sizeof name - 1, label, answers->names);
  html_text(out, name);
}

/* The classes that are taken for others most often. */
static inline void html_report_pairs(FILE *out, const ReportAnswers *answers, int most) {
  const int *counts = answers->confusion, classes = answers->classes;
  int pair = confusion_next(counts, classes, -1);
  if (pair < 0) return;
  fputs("<p class=\"soft after\">Most confused: ", out);
  for (int n = 0; pair >= 0 && n < most; n++, pair = confusion_next(counts, classes, pair)) {
    fputs(n > 0 ? "; " : "", out);
    html_report_class(out, answers, pair / classes);
    fputs(" taken for ", out);
    html_report_class(out, answers, pair % classes);
    fprintf(out, ": %d", counts[pair]);
  }
  fputs(".</p>\n", out);
}

static inline void html_report_matrix_row(FILE *out, const ReportAnswers *answers, int truth) {
  const int *row = answers->confusion + (size_t)truth * answers->classes;
  long total = 0;
  for (int i = 0; i < answers->classes; i++) total += row[i];
  fputs("<tr><th scope=\"row\">", out);
  html_report_class(out, answers, truth);
  fputs("</th>", out);
  for (int i = 0; i < answers->classes; i++) {
    const double share = total > 0 ? (double)row[i] / (double)total : 0;
    if (row[i] == 0)
      fputs("<td class=\"sum\">·</td>", out);
    else
      fprintf(out, "<td class=\"%c\" style=\"--a:%.2f\">%d</td>", i == truth ? 'd' : 'e',
              i == truth ? 0.08 + 0.5 * share : fmin(0.1 + 4 * share, 0.8), row[i]);
  }
  if (total > 0)
    fprintf(out, "<td class=\"sum\">%.1f %%</td></tr>\n", 100.0 * row[truth] / (double)total);
  else
    fputs("<td class=\"sum\">no image</td></tr>\n", out);
}

static inline void html_report_matrix(FILE *out, const ReportAnswers *answers) {
  const int table = answers->classes <= CONFUSION_COLUMNS;
  fprintf(out, "<h2>Confusion matrix</h2>\n<p class=\"soft\">Of the %d test images after the last epoch, %d are wrong.",
          answers->count, answers->wrong);
  if (table) {
    fputs(" Rows are the true classes of the ", out);
    html_text(out, answers->things);
    fputs(", columns the answers.</p>\n<div class=\"wide\"><table class=\"matrix\"><tr><th></th>", out);
    for (int i = 0; i < answers->classes; i++) {
      fputs("<th scope=\"col\">", out);
      html_report_class(out, answers, i);
      fputs("</th>", out);
    }
    fputs("<th>recall</th></tr>\n", out);
    for (int i = 0; i < answers->classes; i++) html_report_matrix_row(out, answers, i);
    fputs("</table></div>\n", out);
  } else {
    fprintf(out, " With %d classes the matrix is left out.</p>\n", answers->classes);
  }
  html_report_pairs(out, answers, table ? (int)CONFUSION_PAIRS : (int)HTML_REPORT_PAIRS);
}

/* --------------------------------------------------------------------------------------------------- worst mistakes */

/* The pictures with the highest loss, as many as a page has room for. */
static inline void html_report_mistakes(FILE *out, const ReportAnswers *answers) {
  const Shape shape = answers->test->shape;
  if (answers->worst_count == 0 || shape.rank != 3) return;
  const int colours = shape.dim[0] == 3 ? 3 : 1;
  const int times = shape.dim[2] < 96 ? 96 / shape.dim[2] : 1;
  Image image = image_new(shape.dim[2], shape.dim[1], colours);
  size_t bytes = 0;
  fputs(
      "<h2>Worst mistakes</h2>\n<p class=\"soft\">The test images with the highest loss: true class → answer.</p>\n"
      "<div class=\"mistakes\">\n",
      out);
  for (int i = 0; i < answers->worst_count && bytes < HTML_REPORT_BYTES; i++) {
    const ReportWorst *worst = &answers->worst[i];
    char what[64];
    report_tile(image.pixels, answers->test->samples + worst->index * shape_count(shape), shape);
    snprintf(what, sizeof what, "test image %d", worst->index);
    fputs("<figure>", out);
    bytes += html_picture(out, &image, shape.dim[2] * times, shape.dim[1] * times, what);
    fputs("<figcaption><b>", out);
    html_report_class(out, answers, worst->label);
    fputs(" → ", out);
    html_report_class(out, answers, worst->answer);
    fprintf(out, "</b><br>loss %.2f<br>image %d</figcaption></figure>\n", worst->loss, worst->index);
  }
  fputs("</div>\n", out);
  image_free(&image);
}

/* --------------------------------------------------------------------------------------------------------- the page */

static inline void html_report_head(FILE *out, const HtmlReport *page, const HtmlRows *figures, const char *status,
                                    int running) {
  fputs(
      "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n",
      out);
  if (running) fprintf(out, "<meta http-equiv=\"refresh\" content=\"%d\">\n", HTML_REPORT_RELOAD);
  fputs("<title>", out);
  html_text(out, page->title);
  fprintf(out, "</title>\n<style>\n%s</style>\n</head>\n<body>\n<h1>", html_report_style);
  html_text(out, page->title);
  fputs("</h1>\n<p class=\"soft\">", out);
  html_text(out, status);
  fputs("</p>\n<div class=\"tiles\">\n", out);
  for (int i = 0; i < figures->count; i++) {
    fputs("<div><span>", out);
    html_text(out, figures->row[i].name);
    fputs("</span><b>", out);
    html_text(out, figures->row[i].value);
    fputs("</b></div>\n", out);
  }
  fputs("</div>\n", out);
}

/* answers may be NULL. Replaces FOLDER/report.html in one step. */
static inline int html_report_write(HtmlReport *page, const TrainState *state, const HtmlRows *figures,
                                    const char *status, int running, const ReportAnswers *answers, Error *err) {
  char path[PATH_MAX + 16];
  AtomicFile file;
  page->written = seconds_now();
  snprintf(path, sizeof path, "%s/report.html", page->directory);
  if (atomic_file_open(&file, path, err) != 0) return -1;
  FILE *out = file.stream;
  html_report_head(out, page, figures, status, running);
  if (html_report_curves(out, page, state, err) != 0) {
    atomic_file_abandon(&file);
    return -1;
  }
  if (answers) {
    html_report_matrix(out, answers);
    html_report_mistakes(out, answers);
  }
  fputs("<div class=\"pair\"><section><h2>Settings</h2>\n", out);
  html_table(out, &page->settings);
  fputs("</section><section><h2>Environment</h2>\n", out);
  html_table(out, &page->environment);
  fputs("</section></div>\n</body>\n</html>\n", out);
  return atomic_file_commit(&file, err);
}

#endif /* COMMON_NN_HTML_REPORT_H */
