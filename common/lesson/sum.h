/* sum.h - explains a wrong output that is a sum of products over one size, as in a matrix product. Which terms does the
 * computed sum have, and was an input read with its indices exchanged? For explain.h.
 *
 * Let S be the sum by the declared letters: c (m,n) of a (m,k) and b (k,n) is the sum over k. What is expected may be S
 * plus a bias, or S times the slope of an activation; so a wrong sum W is recognised by
 *
 *     computed - W = expected - S in all wrong elements, or by computed / W = expected / S. */
#ifndef COMMON_LESSON_SUM_H
#define COMMON_LESSON_SUM_H

#include "common/formula.h"
#include "common/lesson/outcome.h"

/* Many sums are tried, so one of them would fit fewer wrong elements by chance. */
enum { LESSON_SUM_FEWEST = 4, LESSON_SUM_SAMPLES = 512, LESSON_SUM_TERMS = 4096 };

/* How an input is read: as declared, with its two letters exchanged, not at all, or with rows of some other size. */
enum { LESSON_AS_DECLARED, LESSON_EXCHANGED, LESSON_LEFT_OUT, LESSON_AS_ROWS };

typedef struct LessonSum {
  const LessonOutcome *outcome;
  int a, b;          /* the inputs; b may be -1 */
  int over;          /* which size */
  size_t *at, count; /* wrong elements of the output */
  double *right;     /* the sum as declared, at each of these */
  const float *computed, *expected;
  Tolerance tolerance;
} LessonSum;

/* The terms begin, begin + step, ... below end; term `twice` counts twice. */
typedef struct LessonWrongSum {
  size_t begin, end, step, twice;
  int how_a, how_b;
} LessonWrongSum;

/* NaN outside the array. */
static inline double lesson_read(const LessonOutcome *outcome, int a, const long index[LESSON_SIZES], int how) {
  const Lesson *lesson = outcome->lesson;
  const char *letters = lesson->array[a].letters;
  size_t at = 0, rank = strlen(letters);
  if (how == LESSON_LEFT_OUT) return 1;
  if (how != LESSON_AS_DECLARED && rank != 2) return NAN;
  for (size_t l = 0; l < rank; l++) {
    char letter = letters[how == LESSON_EXCHANGED ? rank - 1 - l : l];
    size_t extent = how >= LESSON_AS_ROWS && l > 0 ? (size_t)outcome->size[how - LESSON_AS_ROWS]
                                                   : lesson_extent(lesson, letter, outcome->size);
    at = at * extent + (size_t)index[strchr(lesson->letters, letter) - lesson->letters];
  }
  return at < outcome->elements[a] ? (double)outcome->right[a][at] : NAN;
}

static inline double lesson_sum_at(const LessonSum *s, int output, size_t i, const LessonWrongSum *w) {
  long index[LESSON_SIZES];
  double sum = 0;
  lesson_index(s->outcome, output, i, index);
  for (size_t k = w->begin; k < w->end; k += w->step) {
    index[s->over] = (long)k;
    double term = lesson_read(s->outcome, s->a, index, w->how_a);
    if (s->b >= 0) term *= lesson_read(s->outcome, s->b, index, w->how_b);
    sum += k == w->twice ? 2 * term : term;
  }
  return sum;
}

/* Is this what was computed? */
static inline int lesson_sum_is(const LessonSum *s, int output, const LessonWrongSum *w) {
  int plus = 1, times = 1;
  size_t apart = 0;
  for (size_t j = 0; j < s->count && (plus || times); j++) {
    size_t i = s->at[j];
    double computed = s->computed[i], expected = s->expected[i];
    double right = s->right[j], wrong = lesson_sum_at(s, output, i, w);
    double noise = 2 * (s->tolerance.absolute + s->tolerance.relative * fabs(expected)) +
                   1e-5 * (fabs(right) + fabs(wrong) + fabs(expected));
    plus &= fabs((computed - expected) - (wrong - right)) <= noise;
    times &= fabs(computed * right - expected * wrong) <= noise * (fabs(right) + fabs(wrong));
    apart += fabs(wrong - right) > 4 * noise;
  }
  return (plus || times) && 2 * apart >= s->count;
}

static inline int lesson_sum_say(const LessonSum *s, int output, const LessonWrongSum *w, const char *what, char *text,
                                 size_t size) {
  const Lesson *lesson = s->outcome->lesson;
  if (!lesson_sum_is(s, output, w)) return 0;
  formula_say(text, size, " In %s wrong elements your sum over %c (%d terms) is the one %s%s",
              s->count < LESSON_SUM_SAMPLES ? "all" : "the", lesson->letters[s->over], s->outcome->size[s->over], what,
              what[strlen(what) - 1] == '?' ? "" : ".");
  return 1;
}

/* Tries what loops and indices get wrong. */
static inline Diagnosis lesson_sum_try(const LessonSum *s, int output, char *text, size_t size) {
  const Lesson *lesson = s->outcome->lesson;
  const size_t n = (size_t)s->outcome->size[s->over];
  const LessonWrongSum all = {0, n, 1, n, LESSON_AS_DECLARED, LESSON_AS_DECLARED};
  char what[160];
  for (size_t end = n - 1; end > 0; end--) { /* the first ones */
    LessonWrongSum w = all;
    w.end = end;
    if (end == n - 1)
      snprintf(what, sizeof what, "without the last: the loop ends too early");
    else
      snprintf(what, sizeof what, "of the first %s alone", end == 1 ? "term" : "terms");
    if (end > 1 && end < n - 1) snprintf(what, sizeof what, "of the first %zu terms alone", end);
    if (lesson_sum_say(s, output, &w, what, text, size)) return DIAGNOSIS_SUM_TERMS;
  }
  for (size_t begin = 1; begin < n; begin++) { /* the last ones */
    LessonWrongSum w = all;
    w.begin = begin;
    if (begin == 1)
      snprintf(what, sizeof what, "without the first: the loop begins too late");
    else if (begin == n - 1)
      snprintf(what, sizeof what, "of the last term alone: is it stored instead of added?");
    else
      snprintf(what, sizeof what, "of the last %zu terms alone", n - begin);
    if (lesson_sum_say(s, output, &w, what, text, size)) return DIAGNOSIS_SUM_TERMS;
  }
  for (size_t step = 2; step <= 64 && step < n; step *= 2)
    for (size_t begin = 0; begin < step && begin < n; begin++) {
      LessonWrongSum w = all;
      w.begin = begin;
      w.step = step;
      snprintf(what, sizeof what, "of each %zuth term alone, from term %zu on: are the other shares added?", step,
               begin);
      if (lesson_sum_say(s, output, &w, what, text, size)) return DIAGNOSIS_SUM_TERMS;
    }
  for (size_t twice = 0; twice < n; twice++) {
    LessonWrongSum w = all;
    w.twice = twice;
    snprintf(what, sizeof what, "with term %zu twice", twice);
    if (lesson_sum_say(s, output, &w, what, text, size)) return DIAGNOSIS_SUM_TERMS;
  }
  for (int second = 0; second < 2 && (second == 0 || s->b >= 0); second++) {
    const int a = second ? s->b : s->a;
    const char *name = lesson->array[a].name, *letters = lesson->array[a].letters;
    for (int how = LESSON_EXCHANGED; how < LESSON_AS_ROWS + lesson->sizes; how++) {
      LessonWrongSum w = all;
      *(second ? &w.how_b : &w.how_a) = how;
      if (how == LESSON_EXCHANGED && strlen(letters) == 2)
        snprintf(what, sizeof what, "with %s read as if it were (%c,%c) and not (%c,%c): its indices are exchanged",
                 name, letters[1], letters[0], letters[0], letters[1]);
      else if (how == LESSON_LEFT_OUT && s->b >= 0)
        snprintf(what, sizeof what, "with %s left out of the products", name);
      else if (how >= LESSON_AS_ROWS)
        snprintf(what, sizeof what, "with %s read as if its rows had %c = %d elements", name,
                 lesson->letters[how - LESSON_AS_ROWS], s->outcome->size[how - LESSON_AS_ROWS]);
      else
        continue;
      if (lesson_sum_say(s, output, &w, what, text, size)) return DIAGNOSIS_SUM_OPERAND;
    }
  }
  return DIAGNOSIS_NONE;
}

static inline int lesson_has(const char *letters, char letter) {
  return letter != '\0' && strchr(letters, letter) != NULL;
}

/* Is the output a sum over this size of products of inputs a and b? */
static inline int lesson_is_sum(const Lesson *lesson, int output, int a, int b, char over) {
  const char *of = lesson->array[output].letters, *x = lesson->array[a].letters;
  const char *y = b >= 0 ? lesson->array[b].letters : x;
  if (lesson->array[a].output || lesson->array[a].classes != 0) return 0;
  if (b >= 0 && (lesson->array[b].output || lesson->array[b].classes != 0)) return 0;
  if (lesson_has(of, over) || !lesson_has(x, over) || !lesson_has(y, over)) return 0;
  for (const char *l = lesson->letters; *l != '\0'; l++)
    if (*l != over && lesson_has(of, *l) != (lesson_has(x, *l) || lesson_has(y, *l))) return 0;
  return 1;
}

/* Appends a sentence, and returns its name, when a wrong sum is recognised. */
static inline Diagnosis lesson_explain_sum(const LessonOutcome *outcome, int output, Tolerance tolerance, char *text,
                                           size_t size) {
  const Lesson *lesson = outcome->lesson;
  size_t at[LESSON_SUM_SAMPLES];
  double right[LESSON_SUM_SAMPLES];
  LessonSum s;
  Diagnosis found = DIAGNOSIS_NONE;
  memset(&s, 0, sizeof s);
  s.outcome = outcome;
  s.at = at;
  s.right = right;
  s.computed = outcome->computed[output];
  s.expected = outcome->right[output];
  s.tolerance = tolerance;
  for (size_t i = 0; i < outcome->elements[output] && s.count < LESSON_SUM_SAMPLES; i++)
    if (!compare_element(&s.computed[i], s.expected[i], tolerance) && isfinite(s.computed[i])) at[s.count++] = i;
  for (int over = 0; over < lesson->sizes && s.count >= LESSON_SUM_FEWEST && !found; over++)
    for (s.a = 0; s.a < lesson->arrays && !found; s.a++)
      for (s.b = -1; s.b < lesson->arrays && !found; s.b++) {
        size_t n = (size_t)outcome->size[over];
        if ((s.b >= 0 && s.b <= s.a) || n > LESSON_SUM_TERMS) continue;
        if (!lesson_is_sum(lesson, output, s.a, s.b, lesson->letters[over])) continue;
        const LessonWrongSum all = {0, n, 1, n, LESSON_AS_DECLARED, LESSON_AS_DECLARED};
        s.over = over;
        for (size_t j = 0; j < s.count; j++) right[j] = lesson_sum_at(&s, output, at[j], &all);
        found = lesson_sum_try(&s, output, text, size);
      }
  return found;
}

#endif /* COMMON_LESSON_SUM_H */
