/* confusion.h - which classes a classifier takes for which, as a table in the terminal.
 *
 *     counts[truth * classes + predicted]++;                          for each test image
 *     confusion_print(stdout, counts, 10);                            classes are named 0..9
 *     confusion_print_named(stdout, counts, 10, fashion_names);
 *
 * A row is a true class: how its images were classified, how many there are, and the recall, the share that was right.
 * Of more than CONFUSION_COLUMNS classes the columns are left out. Below stand the accuracy and the pairs that are
 * confused most.
 */
#ifndef COMMON_CONFUSION_H
#define COMMON_CONFUSION_H

#include "common/error.h"

enum { CONFUSION_PAIRS = 5, CONFUSION_COLUMNS = 20 };

/* The class's name, at most `width` characters of it. */
static inline void confusion_name(char *text, size_t width, int label, const char *const *names) {
  char number[12];
  snprintf(number, sizeof number, "%d", label);
  snprintf(text, width + 1, "%.*s", (int)width, names != NULL ? names[label] : number);
}

/* The next error after `previous` (-1: the first), by falling count, then by place; -1 when there is none. */
static inline int confusion_next(const int *counts, int classes, int previous) {
  int best = -1;
  for (int i = 0; i < classes * classes; i++) {
    if (i / classes == i % classes || counts[i] == 0) continue;
    if (previous >= 0 && (counts[i] > counts[previous] || (counts[i] == counts[previous] && i <= previous))) continue;
    if (best < 0 || counts[i] > counts[best]) best = i;
  }
  return best;
}

/* counts (classes,classes): true class, predicted class. `names` may be NULL. */
static inline void confusion_print_named(FILE *out, const int *counts, int classes, const char *const *names) {
  enum { NAME = 24, HEAD = 7 }; /* the most characters of a name, in a row and over a column */
  char name[NAME + 1], other[NAME + 1];
  long all = 0, right = 0;
  int rows = (int)strlen("true"), columns = 3;
  const int shown = classes <= CONFUSION_COLUMNS ? classes : 0; /* columns */
  for (int i = 0; i < classes; i++) {
    confusion_name(name, NAME, i, names);
    if ((int)strlen(name) > rows) rows = (int)strlen(name);
    confusion_name(name, HEAD, i, names);
    if ((int)strlen(name) > columns) columns = (int)strlen(name);
  }
  for (int i = 0; i < classes * classes; i++) {
    int digits = snprintf(NULL, 0, "%d", counts[i]);
    if (digits > columns) columns = digits;
  }

  if (shown) fprintf(out, "%*s  predicted\n", rows, "");
  fprintf(out, "%*s ", rows, "true");
  for (int i = 0; i < shown; i++) {
    confusion_name(name, HEAD, i, names);
    fprintf(out, " %*s", columns, name);
  }
  fprintf(out, "    total  recall\n");
  for (int truth = 0; truth < classes; truth++) {
    const int *row = counts + truth * classes;
    long total = 0;
    confusion_name(name, NAME, truth, names);
    fprintf(out, "%*s ", rows, name);
    for (int i = 0; i < shown; i++) {
      if (row[i] > 0) fprintf(out, " %*d", columns, row[i]);
      if (row[i] == 0) fprintf(out, " %*s", columns, "."); /* so that the errors stand out */
    }
    for (int i = 0; i < classes; i++) total += row[i];
    fprintf(out, " %8ld ", total);
    if (total > 0) fprintf(out, " %5.1f%%\n", 100.0 * row[truth] / (double)total);
    if (total == 0) fprintf(out, " %6s\n", "-"); /* no image of this class */
    all += total;
    right += row[truth];
  }

  if (all > 0) fprintf(out, "accuracy %.2f%%: %ld of %ld\n", 100.0 * (double)right / (double)all, right, all);
  for (int pair = confusion_next(counts, classes, -1), n = 0; pair >= 0 && n < CONFUSION_PAIRS; n++) {
    confusion_name(name, NAME, pair / classes, names);
    confusion_name(other, NAME, pair % classes, names);
    fprintf(out, "%s%s taken for %s: %d", n == 0 ? "most confused: " : ", ", name, other, counts[pair]);
    pair = confusion_next(counts, classes, pair);
    if (pair < 0 || n + 1 == CONFUSION_PAIRS) fputc('\n', out);
  }
}

static inline void confusion_print(FILE *out, const int *counts, int classes) {
  confusion_print_named(out, counts, classes, NULL);
}

#endif /* COMMON_CONFUSION_H */
