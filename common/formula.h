/* formula.h - which formula do wrong numbers follow?
 *
 * An element-wise kernel computes a sum of a few terms: w - lr * velocity. When the computed and the expected values
 * are both such sums of products of the inputs, the factors of both can be found from the numbers alone and compared:
 *
 *     Formula formula;
 *     formula_open(&formula, computed, expected, n, tolerance);
 *     formula_input(&formula, "old w", old_w);
 *     formula_output(&formula, "velocity", velocity_expected, velocity_computed);    // another output
 *     formula_scalar(&formula, "lr", 0.375);
 *     formula_explain(&formula, text, sizeof text);
 *
 *     In all 33 wrong elements your value is old w + 0.375 (lr) * velocity: the term 0.375 (lr) * velocity has the
 *     wrong sign.
 *
 * When the computed values contain a sum over a row, the factor between the two may still depend on an input: "(your
 * value) * (1 - h * h) is expected".
 *
 * A sum is accepted when it meets every wrong element within rounding, and when there are at least three elements more
 * than it has factors. So nothing is said that the numbers do not show. */
#ifndef COMMON_FORMULA_H
#define COMMON_FORMULA_H

#include "common/compare.h"

enum { FORMULA_INPUTS = 8, FORMULA_SCALARS = 12, FORMULA_TERMS = 72, FORMULA_FIT = 3, FORMULA_SAMPLES = 256 };
enum { FORMULA_DISTINCT = FORMULA_FIT + 3 };

/* Arrays with as many elements as the output. An input is the same for both sums; another output may be wrong itself,
 * so the computed sum uses its computed values and the expected sum its expected ones. */
typedef struct FormulaInput {
  const char *name;
  const float *for_expected, *for_computed;
  int label; /* 1 at the label, 0 elsewhere */
} FormulaInput;

typedef struct FormulaScalar {
  const char *name;
  double value;
} FormulaScalar;

/* A product of up to three arrays: inputs by their number, or FORMULA_OWN; none is the constant 1. The last may be a
 * divisor. */
enum { FORMULA_OWN = FORMULA_INPUTS };
typedef struct FormulaTerm {
  int factor[3], factors, divides;
} FormulaTerm;

typedef struct FormulaFit {
  int terms, term[FORMULA_FIT];
  double factor[FORMULA_FIT];
} FormulaFit;

typedef struct Formula {
  const float *computed, *expected;
  size_t n;
  Tolerance tolerance;
  FormulaInput input[FORMULA_INPUTS];
  FormulaScalar scalar[FORMULA_SCALARS];
  int inputs, outputs, scalars; /* the outputs are behind the inputs */
  FormulaTerm term[FORMULA_TERMS];
  int terms;
  size_t *at, count; /* the wrong elements that are looked into */
  int masked;        /* also look separately at elements that are 0, or should be */
} Formula;

static inline void formula_open(Formula *f, const float *computed, const float *expected, size_t n,
                                Tolerance tolerance) {
  memset(f, 0, sizeof *f);
  f->computed = computed;
  f->expected = expected;
  f->n = n;
  f->tolerance = tolerance;
  f->masked = 1;
}

/* Another output; after all inputs. */
static inline void formula_output(Formula *f, const char *name, const float *expected, const float *computed) {
  if (f->inputs + f->outputs == FORMULA_INPUTS) return;
  FormulaInput *input = &f->input[f->inputs + f->outputs++];
  input->name = name;
  input->for_expected = expected;
  input->for_computed = computed;
}

static inline void formula_input(Formula *f, const char *name, const float *x) {
  formula_output(f, name, x, x);
  f->inputs += f->outputs;
  f->outputs = 0;
}

static inline void formula_label(Formula *f, const char *name, const float *x) {
  formula_input(f, name, x);
  f->input[f->inputs - 1].label = 1;
}

static inline void formula_scalar(Formula *f, const char *name, double value) {
  if (f->scalars == FORMULA_SCALARS || value == 0) return;
  f->scalar[f->scalars].name = name;
  f->scalar[f->scalars++].value = value;
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* Words */

__attribute__((format(printf, 3, 4))) static inline void formula_say(char *text, size_t size, const char *format, ...) {
  size_t used = strlen(text);
  va_list args;
  va_start(args, format);
  vsnprintf(text + used, size - used, format, args);
  va_end(args);
}

static inline int formula_same(double a, double b) { return fabs(a - b) <= 5e-4 * fmax(fabs(a), fabs(b)); }

/* A positive factor: "0.375 (lr)". 1 if it has a name, or needs none. */
static inline int formula_number(const Formula *f, double x, char *text, size_t size) {
  snprintf(text, size, "%.4g", x);
  if (formula_same(x, floor(x + 0.5)) && x < 2.5) return 1;
  for (int s = 0; s < f->scalars; s++) {
    const char *name = f->scalar[s].name;
    double value = fabs(f->scalar[s].value);
    const char *format = formula_same(x, value)                          ? " (%s)"
                         : formula_same(x, 1 / value)                    ? " (1 / %s)"
                         : value < 1 && formula_same(x, 1 - value)       ? " (1 - %s)"
                         : value < 1 && formula_same(x, 1 / (1 - value)) ? " (1 / (1 - %s))"
                         : formula_same(x, 2 * value) && x != value      ? " (2 * %s)"
                         : value > 0 && formula_same(x, value * value)   ? " (%s squared)"
                                                                         : NULL;
    char words[64];
    if (format == NULL) continue;
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    snprintf(words, sizeof words, format, name);
#pragma GCC diagnostic pop
    formula_say(text, size, "%s", words);
    return 1;
  }
  for (int s = 0; s < f->scalars; s++)
    for (int t = s + 1; t < f->scalars; t++)
      if (formula_same(x, fabs(f->scalar[s].value * f->scalar[t].value))) {
        formula_say(text, size, " (%s * %s)", f->scalar[s].name, f->scalar[t].name);
        return 1;
      }
  return 0;
}

/* "0.375 (lr) * velocity", without a sign. `own` is what FORMULA_OWN is called. */
static inline void formula_product(const Formula *f, const FormulaTerm *term, double factor, const char *own,
                                   char *text, size_t size) {
  const int plain = formula_same(fabs(factor), 1) && term->factors > 0;
  text[0] = '\0';
  if (!plain) formula_number(f, fabs(factor), text, size);
  for (int i = 0; i < term->factors; i++)
    formula_say(text, size, "%s%s",
                plain && i == 0                           ? ""
                : term->divides && i == term->factors - 1 ? " / "
                                                          : " * ",
                term->factor[i] == FORMULA_OWN ? own : f->input[term->factor[i]].name);
}

/* What is subtracted comes last. A common FORMULA_OWN is written once. */
static inline void formula_sum(const Formula *f, const FormulaFit *fit, const char *own, char *text, size_t size) {
  int common = fit->terms > 1;
  for (int j = 0; j < fit->terms; j++)
    common &= f->term[fit->term[j]].factors > 0 && f->term[fit->term[j]].factor[0] == FORMULA_OWN;
  snprintf(text, size, "%s", fit->terms == 0 ? "0" : "");
  if (common) formula_say(text, size, "%s * (", own);
  int first = 1;
  for (int positive = 1; positive >= 0; positive--)
    for (int j = 0; j < fit->terms; j++) {
      char product[160];
      FormulaTerm term = f->term[fit->term[j]];
      if ((fit->factor[j] > 0) != positive) continue;
      if (common && term.divides && term.factors == 2) { /* own / x */
        formula_number(f, fabs(fit->factor[j]), product, sizeof product);
        formula_say(product, sizeof product, " / %s", f->input[term.factor[1]].name);
      } else {
        if (common) memmove(term.factor, term.factor + 1, (size_t)--term.factors * sizeof *term.factor);
        formula_product(f, &term, fit->factor[j], own, product, sizeof product);
      }
      formula_say(text, size, "%s%s", first ? (positive ? "" : "-") : positive ? " + " : " - ", product);
      first = 0;
    }
  if (common) formula_say(text, size, ")");
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* Fitting */

typedef enum FormulaSide { FORMULA_EXPECTED, FORMULA_COMPUTED, FORMULA_DIFFERENCE } FormulaSide;

static inline double formula_target(const Formula *f, FormulaSide side, size_t i) {
  if (side == FORMULA_EXPECTED) return f->expected[i];
  if (side == FORMULA_COMPUTED) return f->computed[i];
  return (double)f->computed[i] - f->expected[i];
}

/* FORMULA_OWN is the other side: expected in a sum for what is computed. */
static inline double formula_term_value(const Formula *f, const FormulaTerm *term, FormulaSide side, size_t i) {
  double value = 1;
  for (int j = 0; j < term->factors; j++) {
    int k = term->factor[j];
    const float *x = side == FORMULA_EXPECTED ? f->computed : f->expected;
    if (k != FORMULA_OWN) x = side == FORMULA_EXPECTED ? f->input[k].for_expected : f->input[k].for_computed;
    value = term->divides && j == term->factors - 1 ? value / x[i] : value * x[i];
  }
  return value;
}

/* The error that rounding explains at one element. */
static inline double formula_allowance(const Formula *f, size_t i) {
  double size = fmax(fabs((double)f->expected[i]), fabs((double)f->computed[i]));
  return f->tolerance.absolute + (f->tolerance.relative + 4e-6) * size + 1e-44;
}

static inline void formula_add_term(Formula *f, int a, int b, int c, int divides) {
  if (f->terms == FORMULA_TERMS) return;
  FormulaTerm *term = &f->term[f->terms++];
  term->factors = (a >= 0) + (b >= 0) + (c >= 0);
  term->factor[0] = a;
  term->factor[1] = b;
  term->factor[2] = c;
  term->divides = divides;
}

/* The candidates, simple ones first: inputs, 1, products of two, quotients, products of three. */
static inline void formula_terms(Formula *f, int inputs) {
  f->terms = 0;
  for (int a = 0; a < inputs; a++) formula_add_term(f, a, -1, -1, 0);
  formula_add_term(f, -1, -1, -1, 0);
  for (int a = 0; a < inputs && inputs <= 6; a++)
    for (int b = a; b < inputs; b++) formula_add_term(f, a, b, -1, 0);
  for (int a = 0; a < inputs && inputs <= 4; a++)
    for (int b = 0; b < inputs; b++)
      if (b != a) formula_add_term(f, a, b, -1, 1);
  for (int a = 0; a < inputs && inputs <= 3; a++)
    for (int b = a; b < inputs; b++)
      for (int c = b; c < inputs; c++) formula_add_term(f, a, b, c, 0);
}

/* What is computed or expected, times 1, an input, or two of them, or divided by one. */
static inline void formula_own_terms(Formula *f) {
  f->terms = 0;
  formula_add_term(f, FORMULA_OWN, -1, -1, 0);
  for (int a = 0; a < f->inputs; a++) formula_add_term(f, FORMULA_OWN, a, -1, 0);
  for (int a = 0; a < f->inputs; a++) formula_add_term(f, FORMULA_OWN, a, -1, 1);
  for (int a = 0; a < f->inputs; a++)
    for (int b = a; b < f->inputs; b++) formula_add_term(f, FORMULA_OWN, a, b, 0);
}

/* Gauss on the normal equations of at most three terms; 0 when one follows from the others. */
static inline int formula_solve(double a[FORMULA_FIT][FORMULA_FIT + 1], int n, double *x) {
  for (int c = 0; c < n; c++) {
    for (int r = c + 1; r < n; r++) {
      double before = a[r][r], share = a[r][c] / a[c][c];
      for (int k = c; k <= n; k++) a[r][k] -= share * a[c][k];
      if (r == c + 1 && !(a[r][r] > 1e-6 * before)) return 0;
    }
  }
  for (int c = n - 1; c >= 0; c--) {
    x[c] = a[c][n];
    for (int k = c + 1; k < n; k++) x[c] -= a[c][k] * x[k];
    x[c] /= a[c][c];
  }
  return 1;
}

/* One side and its candidates at the samples, each divided by what rounding allows there. */
typedef struct FormulaTable {
  size_t samples;
  int distinct; /* of them, up to FORMULA_DISTINCT: an element that is there ten times counts once */
  double target[FORMULA_SAMPLES], column[FORMULA_TERMS][FORMULA_SAMPLES];
  double gram[FORMULA_TERMS][FORMULA_TERMS], moment[FORMULA_TERMS];
  int usable[FORMULA_TERMS];
} FormulaTable;

/* The same inputs and the same values? */
static inline int formula_twins(const Formula *f, size_t i, size_t j) {
  int same = f->computed[i] == f->computed[j] && f->expected[i] == f->expected[j];
  for (int k = 0; k < f->inputs + f->outputs && same; k++) {
    const FormulaInput *x = &f->input[k];
    same = x->for_expected[i] == x->for_expected[j] && x->for_computed[i] == x->for_computed[j];
  }
  return same;
}

static inline void formula_table(const Formula *f, FormulaSide side, FormulaTable *table) {
  table->samples = f->count < FORMULA_SAMPLES ? f->count : (size_t)FORMULA_SAMPLES;
  size_t seen[FORMULA_DISTINCT];
  table->distinct = 0;
  for (int t = 0; t < f->terms; t++) table->usable[t] = 1;
  for (size_t s = 0; s < table->samples; s++) {
    size_t i = f->at[s * f->count / table->samples];
    int twins = 0;
    for (int d = 0; d < table->distinct && !twins; d++) twins = formula_twins(f, i, seen[d]);
    if (!twins && table->distinct < FORMULA_DISTINCT) seen[table->distinct++] = i;
    double allowed = formula_allowance(f, i);
    table->target[s] = formula_target(f, side, i) / allowed;
    for (int t = 0; t < f->terms; t++) {
      double value = formula_term_value(f, &f->term[t], side, i);
      table->usable[t] &= isfinite(value);
      table->column[t][s] = value / allowed;
    }
  }
  for (int t = 0; t < f->terms; t++) {
    const double *x = table->column[t];
    for (int u = 0; u <= t && table->usable[t]; u++) {
      double sum = 0;
      for (size_t s = 0; s < table->samples; s++) sum += x[s] * table->column[u][s];
      table->gram[t][u] = table->gram[u][t] = sum;
    }
    table->moment[t] = 0;
    for (size_t s = 0; s < table->samples; s++) table->moment[t] += x[s] * table->target[s];
    for (int j = 0; j < f->term[t].factors && side == FORMULA_DIFFERENCE; j++) {
      const FormulaInput *input = &f->input[f->term[t].factor[j]];
      if (input->for_expected != input->for_computed) table->usable[t] = 0;
    }
    table->usable[t] = table->usable[t] && table->gram[t][t] > 0;
  }
}

/* Does this sum meet the samples, and then every wrong element, with terms that all matter? */
static inline int formula_meets(const Formula *f, FormulaSide side, const FormulaTable *table, const FormulaFit *fit) {
  double weight[FORMULA_FIT] = {0, 0, 0};
  for (size_t s = 0; s < table->samples; s++) {
    double rest = table->target[s], slack = 3;
    for (int j = 0; j < fit->terms; j++) {
      double part = fit->factor[j] * table->column[fit->term[j]][s];
      rest -= part;
      slack += 2e-6 * fabs(part);
      weight[j] += fabs(part);
    }
    if (!(fabs(rest) <= slack)) return 0;
  }
  for (int j = 0; j < fit->terms; j++)
    if (weight[j] < 20 * (double)table->samples) return 0;
  for (size_t k = 0; k < f->count; k++) {
    double rest = formula_target(f, side, f->at[k]), slack = 3 * formula_allowance(f, f->at[k]);
    for (int j = 0; j < fit->terms; j++) {
      double part = fit->factor[j] * formula_term_value(f, &f->term[fit->term[j]], side, f->at[k]);
      rest -= part;
      slack += 4e-6 * fabs(part);
    }
    if (!(fabs(rest) <= slack)) return 0;
  }
  return 1;
}

static inline int formula_try(const Formula *f, FormulaSide side, const FormulaTable *table, FormulaFit *fit) {
  double a[FORMULA_FIT][FORMULA_FIT + 1];
  if (table->distinct < fit->terms + 3) return 0;
  for (int r = 0; r < fit->terms; r++) {
    if (!table->usable[fit->term[r]]) return 0;
    for (int c = 0; c < fit->terms; c++) a[r][c] = table->gram[fit->term[r]][fit->term[c]];
    a[r][fit->terms] = table->moment[fit->term[r]];
  }
  return formula_solve(a, fit->terms, fit->factor) && formula_meets(f, side, table, fit);
}

/* The shortest sum that meets one side, of at most so many terms. */
static inline int formula_find(const Formula *f, FormulaSide side, int most, FormulaTable *table, FormulaFit *fit) {
  formula_table(f, side, table);
  for (fit->terms = 0; fit->terms <= most; fit->terms++) {
    int *term = fit->term, last = f->terms - 1;
    if (fit->terms == 0 && formula_try(f, side, table, fit)) return 1;
    for (term[0] = 0; fit->terms > 0 && term[0] <= last; term[0]++) {
      if (fit->terms == 1 && formula_try(f, side, table, fit)) return 1;
      for (term[1] = term[0] + 1; fit->terms > 1 && term[1] <= last; term[1]++) {
        if (fit->terms == 2 && formula_try(f, side, table, fit)) return 1;
        for (term[2] = term[1] + 1; fit->terms > 2 && term[2] <= last; term[2]++)
          if (formula_try(f, side, table, fit)) return 1;
      }
    }
  }
  return 0;
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* What the two sums differ in */

typedef enum FormulaKind {
  FORMULA_UNKNOWN,
  FORMULA_FOLLOWS, /* from another output that is wrong */
  FORMULA_ROUNDED, /* the same formula */
  FORMULA_COPY,
  FORMULA_TERMS_DIFFER,
  FORMULA_TIMES, /* a factor that depends on an input */
} FormulaKind;

static inline double formula_factor_of(const FormulaFit *fit, int term) {
  for (int j = 0; j < fit->terms; j++)
    if (fit->term[j] == term) return fit->factor[j];
  return 0;
}

/* Two sums of the same candidates. */
static inline FormulaKind formula_differ(const Formula *f, const FormulaFit *expected, const FormulaFit *computed,
                                         char *text, size_t size) {
  char product[160], is_number[80], should_number[80];
  int differences = 0;
  for (int t = 0; t < f->terms; t++) {
    double is = formula_factor_of(computed, t), should = formula_factor_of(expected, t);
    if (formula_same(is, should)) continue;
    formula_say(text, size, "%s", differences++ == 0 ? ":" : ",");
    formula_product(f, &f->term[t], should != 0 ? should : is, "", product, sizeof product);
    if (is == 0) {
      formula_say(text, size, " the term %s%s is missing", should < 0 ? "-" : "", product);
    } else if (should == 0) {
      formula_say(text, size, " the term %s%s is superfluous", is < 0 ? "-" : "", product);
    } else if (formula_same(is, -should)) {
      formula_say(text, size, " the term %s has the wrong sign", product);
    } else {
      formula_product(f, &f->term[t], 1, "", product, sizeof product);
      formula_number(f, fabs(is), is_number, sizeof is_number);
      formula_number(f, fabs(should), should_number, sizeof should_number);
      formula_say(text, size, " the term %s has the factor %s%s where %s%s is expected", product, is < 0 ? "-" : "",
                  is_number, should < 0 ? "-" : "", should_number);
    }
  }
  if (differences > 0) {
    formula_say(text, size, ".");
    return FORMULA_TERMS_DIFFER;
  }
  int follows = 0;
  for (int j = 0; j < computed->terms; j++)
    for (int k = 0; k < f->term[computed->term[j]].factors; k++) {
      const FormulaInput *input = &f->input[f->term[computed->term[j]].factor[k]];
      follows |= input->for_expected != input->for_computed;
    }
  formula_say(text, size, ", as it should be: %s.",
              follows ? "it follows from another output, which is wrong"
                      : "what differs is the rounding (lower precision, a difference of nearly equal numbers)");
  return follows ? FORMULA_FOLLOWS : FORMULA_ROUNDED;
}

/* How unlikely a sum is: the number of its terms, and of factors that the task does not have. */
static inline int formula_cost(const Formula *f, const FormulaFit *fit) {
  char text[80] = "";
  int cost = fit->terms;
  for (int j = 0; j < fit->terms; j++)
    cost += !formula_number(f, fabs(fit->factor[j]), text, sizeof text) || strstr(text, "(1 / ") != NULL;
  return cost;
}

/* Explains the elements at f->at, or says nothing. */
static inline FormulaKind formula_explain_these(Formula *f, const char *where, FormulaTable *table, char *text,
                                                size_t size) {
  FormulaFit expected, computed, fit;
  char sum[400];
  int used = f->inputs;
  formula_terms(f, used);
  int known = formula_find(f, FORMULA_EXPECTED, FORMULA_FIT, table, &expected);
  const int cost = known ? formula_cost(f, &expected) : 0;
  if (f->outputs > 0) { /* w may be declared before the velocity that it follows from, so both ways are tried */
    formula_terms(f, f->inputs + f->outputs);
    if (formula_find(f, FORMULA_EXPECTED, FORMULA_FIT, table, &fit) && (!known || formula_cost(f, &fit) < cost)) {
      known = 1;
      expected = fit;
      used = f->inputs + f->outputs;
    }
    formula_terms(f, used);
  }
  if (formula_find(f, FORMULA_COMPUTED, FORMULA_FIT, table, &computed)) {
    const FormulaTerm *alone = &f->term[computed.term[0]];
    const int copy = computed.terms == 1 && alone->factors == 1 && formula_same(computed.factor[0], 1);
    if (computed.terms == 0 && !known) return FORMULA_UNKNOWN; /* the comparison says already that they are 0 */
    formula_sum(f, &computed, "", sum, sizeof sum);
    formula_say(text, size, " In all %zu wrong elements%s your value is %s%s", f->count, where, sum,
                copy ? ", unchanged" : "");
    if (copy && known && expected.terms > 2) known = 0; /* listing all terms would give the solution away */
    if (known) return formula_differ(f, &expected, &computed, text, size);
    formula_say(text, size, ".");
    return copy ? FORMULA_COPY : FORMULA_TERMS_DIFFER;
  }
  if (formula_find(f, FORMULA_DIFFERENCE, 2, table, &fit) && fit.terms > 0) {
    const int missing = fit.terms == 1 && fit.factor[0] < 0;
    if (missing) fit.factor[0] = -fit.factor[0];
    formula_sum(f, &fit, "", sum, sizeof sum);
    formula_say(text, size, " In all %zu wrong elements%s your value is the expected one %s %s: %s.", f->count, where,
                missing ? "minus" : "plus", sum,
                fit.terms > 1 ? "look at these terms"
                : missing     ? "that term is missing or too small"
                              : "that term is superfluous or too large");
    return FORMULA_TERMS_DIFFER;
  }
  formula_own_terms(f);
  const int missing = formula_find(f, FORMULA_EXPECTED, 2, table, &fit) && fit.terms > 0;
  const int divided = missing && fit.terms == 1 && f->term[fit.term[0]].divides;
  if (missing && !divided) {
    formula_sum(f, &fit, "(your value)", sum, sizeof sum);
    formula_say(text, size, " In all %zu wrong elements%s %s is expected: a factor is missing.", f->count, where, sum);
    return FORMULA_TIMES;
  }
  if (formula_find(f, FORMULA_COMPUTED, 2, table, &fit) && fit.terms > 0) {
    formula_sum(f, &fit, "(the expected value)", sum, sizeof sum);
    formula_say(text, size, " In all %zu wrong elements%s your value is %s: a factor is superfluous.", f->count, where,
                sum);
    return FORMULA_TIMES;
  }
  return FORMULA_UNKNOWN;
}

/* Keeps the wrong elements where `x` has this sign, or is 0; all without `x`. */
static inline void formula_mark(Formula *f, const float *x, int sign) {
  f->count = 0;
  for (size_t i = 0; i < f->n; i++) {
    if (compare_element(&f->computed[i], f->expected[i], f->tolerance)) continue;
    if (!isfinite(f->computed[i]) || !isfinite(f->expected[i])) continue;
    if (x != NULL && !(sign < 0 ? x[i] < 0 : sign > 0 ? x[i] > 0 : x[i] == 0)) continue;
    f->at[f->count++] = i;
  }
}

/* Are all wrong elements where an input has one sign, and hardly a right one with them? In the label's column? */
static inline void formula_say_where(const Formula *f, char *text, size_t size) {
  for (int k = 0; k < f->inputs; k++) {
    const float *x = f->input[k].for_expected;
    size_t wrong[2] = {0, 0}, right[2] = {0, 0};
    if (x != f->input[k].for_computed) continue;
    for (size_t i = 0; i < f->n; i++)
      (compare_element(&f->computed[i], f->expected[i], f->tolerance) ? right : wrong)[x[i] > 0]++;
    for (int positive = 0; positive < 2; positive++) {
      if (wrong[!positive] > 0 || right[!positive] < 3 || wrong[positive] < 3) continue;
      if (right[positive] * 10 > wrong[positive]) continue;
      if (f->input[k].label) {
        formula_say(text, size, " All wrong elements are %sin the label's column.", positive ? "" : "not ");
        return;
      }
      formula_say(text, size, " All wrong elements have %s %s 0, and %s of those are right.", f->input[k].name,
                  positive ? ">" : "<=", right[positive] == 0 ? "none" : "few");
      return;
    }
  }
}

/* Appends what the numbers show to `text`; a space precedes each sentence. */
static inline FormulaKind formula_explain(Formula *f, char *text, size_t size) {
  FormulaTable *table = (FormulaTable *)xmalloc(sizeof *table);
  f->at = (size_t *)xmalloc(f->n * sizeof *f->at);
  formula_mark(f, NULL, 0);
  formula_say_where(f, text, size);
  FormulaKind kind = f->count >= 4 ? formula_explain_these(f, "", table, text, size) : FORMULA_UNKNOWN;
  for (int k = 0; k < f->inputs && kind == FORMULA_UNKNOWN; k++) { /* a case for each sign of an input? */
    for (int sign = -1; sign <= 1; sign += 2) {
      char where[80];
      snprintf(where, sizeof where, " with %s %s 0", f->input[k].name, sign < 0 ? "<" : ">");
      formula_mark(f, f->input[k].for_expected, sign);
      FormulaKind here = f->count >= 6 ? formula_explain_these(f, where, table, text, size) : FORMULA_UNKNOWN;
      if (here != FORMULA_UNKNOWN) kind = here;
    }
  }
  const int masked = f->masked && kind == FORMULA_UNKNOWN; /* 0 in other elements than those expected? */
  for (int expected = 0; expected < 2 && masked; expected++) {
    formula_mark(f, expected ? f->expected : f->computed, 0);
    const char *where = expected ? " where 0 is expected" : " that are 0";
    FormulaKind here = f->count >= 4 ? formula_explain_these(f, where, table, text, size) : FORMULA_UNKNOWN;
    if (here != FORMULA_UNKNOWN) kind = here;
  }
  free(f->at);
  free(table);
  f->at = NULL;
  return kind;
}

#endif /* COMMON_FORMULA_H */
