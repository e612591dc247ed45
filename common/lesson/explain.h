/* explain.h - explains a wrong output of a lesson (lesson.h). It looks for a formula that the numbers follow
 * (formula.h), for a wrong sum (sum.h), and for other inputs of which the output would be right (whatif.h). A table
 * shows the first wrong elements beside the inputs that they depend on.
 *
 *     In all 33 wrong elements your value is old w + 0.375 (lr) * velocity: the term 0.375 (lr) * velocity has the
 *     wrong sign. The first:
 *         element     old w  old velocity      grad   computed   expected
 *            w[0]  0.112312       1.43013  0.998351    1.01238  -0.787758
 */
#ifndef COMMON_LESSON_EXPLAIN_H
#define COMMON_LESSON_EXPLAIN_H

#include "common/formula.h"
#include "common/lesson/sum.h"
#include "common/lesson/whatif.h"

enum { LESSON_SHOWN = 4, LESSON_CELL = 64, LESSON_EXPLAINED = 1 << 20 };

/* How many elements of array `a` have these indices, where -1 stands for any index. The first is at *at, and the others
 * follow at a distance of *step. 0 when the array has none of the letters. */
static inline size_t lesson_slice(const LessonOutcome *outcome, int a, const long index[LESSON_SIZES], size_t *at,
                                  size_t *step) {
  const char *letters = outcome->lesson->array[a].letters;
  size_t open = 1, stride = 1, shared = letters[0] == '\0';
  *at = 0;
  *step = 1;
  for (size_t l = strlen(letters); l-- > 0;) {
    long here = index[strchr(outcome->lesson->letters, letters[l]) - outcome->lesson->letters];
    size_t extent = lesson_extent(outcome->lesson, letters[l], outcome->size);
    if (here >= 0) {
      *at += (size_t)here * stride;
      shared++;
    } else if (extent > 1) {
      *step = open == 1 ? stride : *step;
      open = open == 1 ? extent : SIZE_MAX; /* in several directions: no list */
    }
    stride *= extent;
  }
  return shared > 0 ? open : 0;
}

/* Array `a`, repeated along the letters that it does not have, so that it has one element for each element of `output`.
 * An array of labels becomes 1 at the label and 0 elsewhere. NULL when this is not possible. The caller frees it. */
static inline float *lesson_spread(const LessonOutcome *outcome, int output, int a, const float *x) {
  const LessonArray *declared = &outcome->lesson->array[a];
  const char *classes = declared->classes == 0 ? NULL : strchr(outcome->lesson->letters, declared->classes);
  const size_t n = outcome->elements[output];
  float *spread = (float *)xmalloc(n * sizeof *spread);
  for (size_t i = 0; i < n; i++) {
    long index[LESSON_SIZES];
    size_t at, step;
    lesson_index(outcome, output, i, index);
    if (lesson_slice(outcome, a, index, &at, &step) != 1) {
      if (i == 0 && outcome->elements[a] == n && !classes) { /* as it lies in memory, to recognise a copy */
        memcpy(spread, x, n * sizeof *spread);
        return spread;
      }
      free(spread);
      return NULL;
    }
    spread[i] = x[at];
    if (classes != NULL && index[classes - outcome->lesson->letters] >= 0)
      spread[i] = x[at] == (float)index[classes - outcome->lesson->letters];
  }
  return spread;
}

/* An output may be an input, or a product of two inputs, plus a rest that no formula describes: a step from the old
 * weights, or dy * y minus a sum over the row. Does the rest have a wrong factor, or one for each row or column? */
static inline int lesson_explain_rest(const LessonOutcome *outcome, int output, const Formula *formula, char *text,
                                      size_t size) {
  size_t n = outcome->elements[output], columns = n, line[2];
  double by[2];
  if (outcome->lesson->array[output].letters[0] != '\0')
    columns = lesson_columns(outcome->lesson, &outcome->lesson->array[output], outcome->size);
  float *actual = (float *)xmalloc(2 * n * sizeof *actual), *expected = actual + n;
  CompareView view;
  view.actual = actual;
  view.expected = expected;
  view.rows = n / columns;
  view.cols = columns;
  view.marked = (unsigned char *)xmalloc(n);
  int said = 0;
  for (int a = 0; a < formula->inputs && !said; a++)
    for (int b = a - 1; b < formula->inputs && !said; b++) { /* a - 1: the input by itself */
      const float *x = formula->input[a].for_expected, *y = b < a ? NULL : formula->input[b].for_expected;
      double largest = 0;
      view.count = 0;
      for (size_t i = 0; i < n; i++) {
        double base = y == NULL ? x[i] : (double)x[i] * y[i];
        actual[i] = (float)(formula->computed[i] - base);
        expected[i] = (float)(formula->expected[i] - base);
        view.marked[i] = !compare_element(&formula->computed[i], formula->expected[i], formula->tolerance);
        view.count += view.marked[i];
        largest = fmax(largest, fmax(fabs(base), fabs((double)formula->expected[i])));
      }
      view.tolerance = formula->tolerance;
      view.tolerance.absolute += (view.tolerance.relative + 2 * FLT_EPSILON) * largest;
      view.tolerance.relative = 0;
      char name[160];
      snprintf(name, sizeof name, "%s%s%s", formula->input[a].name, y == NULL ? "" : " * ",
               y == NULL ? "" : formula->input[b].name);
      double factor = view.count >= 5 ? compare_factor(&view) : 0;
      said = 1;
      if (fabs(factor + 1) < 1e-3)
        formula_say(text, size, " What your value adds to %s has the opposite sign.", name);
      else if (factor != 0)
        formula_say(text, size, " What your value adds to %s is %.4g times what it should be.", name, factor);
      else if (view.rows > 1 && compare_is_lines(&view, 1, view.rows, view.cols, view.cols, 1, line, by))
        formula_say(text, size,
                    " What your value adds to %s has a wrong factor in each row (row %zu: %.4g, row %zu: %.4g).", name,
                    line[0], by[0], line[1], by[1]);
      else if (view.rows > 1 && compare_is_lines(&view, 1, view.cols, view.rows, 1, view.cols, line, by))
        formula_say(
            text, size,
            " What your value adds to %s has a wrong factor in each column (column %zu: %.4g, column %zu: %.4g).", name,
            line[0], by[0], line[1], by[1]);
      else
        said = 0;
    }
  free(actual);
  free(view.marked);
  return said;
}

/* The name of what a formula shows. */
static inline Diagnosis lesson_formula_diagnosis(FormulaKind kind) {
  switch (kind) {
    case FORMULA_FOLLOWS:
      return DIAGNOSIS_FOLLOWS;
    case FORMULA_ROUNDED:
      return DIAGNOSIS_ROUNDING;
    case FORMULA_COPY:
      return DIAGNOSIS_COPY;
    case FORMULA_TERMS_DIFFER:
      return DIAGNOSIS_WRONG_TERM;
    case FORMULA_TIMES:
      return DIAGNOSIS_WRONG_PRODUCT;
    default:
      return DIAGNOSIS_NONE;
  }
}

/* Appends what the numbers of a wrong output show, and returns its name. */
static inline Diagnosis lesson_explain(const LessonOutcome *outcome, int output, const Comparison *c,
                                       Tolerance tolerance, char *text, size_t size) {
  const Lesson *lesson = outcome->lesson;
  float *spread[2 * LESSON_ARRAYS];
  char letters[LESSON_SIZES][2], labels[LESSON_ARRAYS][48];
  int spreads = 0;
  Formula formula;
  if (outcome->elements[output] > LESSON_EXPLAINED) return DIAGNOSIS_NONE;
  formula_open(&formula, outcome->computed[output], outcome->right[output], outcome->elements[output], tolerance);
  formula.masked = c->values == DIAGNOSIS_WRONG_ZEROS;
  for (int s = 0; s < lesson->scalars; s++) formula_scalar(&formula, lesson->scalar[s].name, lesson->scalar[s].value);
  for (int l = 0; l < lesson->sizes && outcome->size[l] > 2; l++) {
    snprintf(letters[l], sizeof letters[l], "%c", lesson->letters[l]);
    formula_scalar(&formula, letters[l], outcome->size[l]);
  }
  if (c->values == DIAGNOSIS_FACTOR) {
    char number[80];
    formula_number(&formula, fabs(c->factor), number, sizeof number);
    if (strchr(number, '(') != NULL) formula_say(text, size, " The factor %s is one of the task.", number);
    return DIAGNOSIS_NONE;
  }
  if (c->values != DIAGNOSIS_WRONG_VALUES && c->values != DIAGNOSIS_LINE_FACTOR && c->values != DIAGNOSIS_WRONG_ZEROS &&
      (c->values != DIAGNOSIS_ZERO || c->places == DIAGNOSIS_EVERYWHERE))
    return DIAGNOSIS_NONE;
  for (int pass = 0; pass < 2; pass++) /* outputs come after the inputs */
    for (int a = 0; a < lesson->arrays; a++) {
      const LessonArray *declared = &lesson->array[a];
      if (a == output || declared->output != pass) continue;
      float *right = spread[spreads] = lesson_spread(outcome, output, a, outcome->right[a]);
      if (right == NULL) continue;
      spreads++;
      snprintf(labels[a], sizeof labels[a], "(1 at the label of %s)", declared->name);
      if (!pass && declared->classes != 0)
        formula_label(&formula, labels[a], right);
      else if (!pass)
        formula_input(&formula, declared->name, right);
      else if ((spread[spreads] = lesson_spread(outcome, output, a, outcome->computed[a])) != NULL)
        formula_output(&formula, declared->name, right, spread[spreads++]);
    }
  Diagnosis found = lesson_formula_diagnosis(formula_explain(&formula, text, size));
  if (found == DIAGNOSIS_NONE) found = lesson_explain_sum(outcome, output, tolerance, text, size);
  if (found == DIAGNOSIS_NONE) found = lesson_whatif(outcome, output, tolerance, text, size);
  if (found == DIAGNOSIS_NONE && c->values == DIAGNOSIS_WRONG_VALUES &&
      lesson_explain_rest(outcome, output, &formula, text, size))
    found = DIAGNOSIS_ADDED_PART;
  for (int s = 0; s < spreads; s++) free(spread[s]);
  return found;
}

/* Appends a table of the first wrong elements and of the inputs that they depend on: single elements and short rows. */
static inline void lesson_show(const LessonOutcome *outcome, int output, Tolerance tolerance, char *text, size_t size) {
  const Lesson *lesson = outcome->lesson;
  char cell[LESSON_SHOWN + 1][LESSON_ARRAYS + 3][LESSON_CELL];
  int rows = 1, columns = 0;
  memset(cell, 0, sizeof cell);
  for (size_t i = 0; i < outcome->elements[output] && rows <= LESSON_SHOWN; i++) {
    long index[LESSON_SIZES];
    size_t at, step;
    char number[32];
    if (compare_element(&outcome->computed[output][i], outcome->right[output][i], tolerance)) continue;
    columns = 0;
    lesson_index(outcome, output, i, index);
    snprintf(cell[0][columns], LESSON_CELL, "element");
    snprintf(cell[rows][columns], LESSON_CELL, "%s", lesson->array[output].name);
    for (const char *l = lesson->array[output].letters; *l != '\0'; l++)
      formula_say(cell[rows][columns], LESSON_CELL, "[%ld]", index[strchr(lesson->letters, *l) - lesson->letters]);
    columns++;
    for (int a = 0; a < lesson->arrays; a++) {
      size_t open = lesson->array[a].output ? 0 : lesson_slice(outcome, a, index, &at, &step);
      if (open == 0 || open > 4) continue;
      snprintf(cell[0][columns], LESSON_CELL, "%s", lesson->array[a].name);
      for (size_t j = 0; j < open; j++)
        formula_say(cell[rows][columns], LESSON_CELL, "%s%s", j > 0 ? " " : "",
                    compare_number(outcome->right[a][at + j * step], 6, number));
      columns++;
    }
    for (int expected = 0; expected < 2; expected++, columns++) {
      snprintf(cell[0][columns], LESSON_CELL, "%s", expected ? "expected" : "computed");
      compare_number(expected ? outcome->right[output][i] : outcome->computed[output][i], 6, cell[rows][columns]);
    }
    rows++;
  }
  formula_say(text, size, " The first:");
  for (int r = 0; r < rows; r++) {
    formula_say(text, size, "\n   ");
    for (int c = 0; c < columns; c++) {
      size_t width = 0;
      for (int other = 0; other < rows; other++)
        if (strlen(cell[other][c]) > width) width = strlen(cell[other][c]);
      formula_say(text, size, " %*s", (int)width + 1, cell[r][c]);
    }
  }
}

#endif /* COMMON_LESSON_EXPLAIN_H */
