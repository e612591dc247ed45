/* whatif.h - for which other inputs would a wrong output be right? The reference runs again on inputs that are changed
 * in the ways in which wrong indices, loops and factors would change them. When it gives what was computed, the change
 * says what is wrong. This needs no knowledge of the lesson (lesson.h). For explain.h:
 *
 *     Your values would be right if within each tile of 16 x 16 of b rows and columns were exchanged.
 *     Your values would be right if order[i] were i: it is not looked up.
 *
 * The other calls that a lesson declares (lesson_alternative()) are tried, too. */
#ifndef COMMON_LESSON_WHATIF_H
#define COMMON_LESSON_WHATIF_H

#include <time.h>

#include "common/formula.h"
#include "common/lesson/outcome.h"

/* With fewer wrong elements some change fits by chance. All runs of the reference together take at most this many
 * seconds of processor time, because a student waits for them. */
enum { WHATIF_FEWEST = 4 };
#define WHATIF_SECONDS 1.5

/* How the columns or rows of an array are changed; `by` is a number of them. */
typedef enum WhatifLines {
  WHATIF_MODULO,   /* the first ones stand for all others */
  WHATIF_IN_64,    /* the same within each 64 */
  WHATIF_IN_128,   /* and within each 128 */
  WHATIF_GROUPED,  /* the first of each group stands for all of it */
  WHATIF_MIDDLE,   /* of each four the second and the third are exchanged */
  WHATIF_PAIRS,    /* neighbours are exchanged */
  WHATIF_REVERSED, /* each four are in the reverse order */
  WHATIF_FIRST,    /* all but the first ones are 0 */
  WHATIF_WHOLE,    /* those beyond the last whole tile are 0 */
  WHATIF_EVERY_SECOND,
  WHATIF_AGAIN, /* each tile counts once more than the next */
  WHATIF_TWICE, /* the first of each tile counts twice */
  WHATIF_LINES
} WhatifLines;

/* How all elements are changed. */
typedef enum WhatifValues {
  WHATIF_TURNED,       /* each tile is transposed within itself */
  WHATIF_TILES_TURNED, /* the tiles are exchanged, and each is right within itself */
  WHATIF_TRANSPOSED,   /* the same bytes, rows as long as columns are */
  WHATIF_BY,           /* a factor, or 0 */
  WHATIF_ONE,          /* 1 everywhere */
  WHATIF_TANH,         /* its own hyperbolic tangent */
  WHATIF_SQUARE,       /* its own square */
  WHATIF_IDENTITY,     /* indices: element i is i */
  WHATIF_VALUES
} WhatifValues;

typedef struct Whatif {
  const LessonOutcome *outcome;
  int output;
  Tolerance tolerance;
  float *array[LESSON_ARRAYS]; /* what the reference gets, in its own element types */
  float *changed;              /* one input */
  float *result;               /* of the reference */
  clock_t begin;
} Whatif;

static inline int whatif_has_time(const Whatif *w, int end) {
  static double spent;
  if (end) spent += (double)(clock() - w->begin) / CLOCKS_PER_SEC;
  return spent + (double)(clock() - w->begin) / CLOCKS_PER_SEC < WHATIF_SECONDS;
}

static inline size_t whatif_bytes(const Whatif *w, int a) {
  return lesson_array_bytes(w->outcome->lesson, &w->outcome->lesson->array[a], w->outcome->size);
}

/* The reverse of lesson_to_floats(). */
static inline void whatif_from_floats(void *to, const float *from, LessonElement element, size_t n) {
  for (size_t i = 0; i < n; i++) {
    if (element == LESSON_FLOAT)
      ((float *)to)[i] = from[i];
    else if (element == LESSON_INT)
      ((int32_t *)to)[i] = (int32_t)from[i];
    else if (element == LESSON_BYTE || element == LESSON_INDEX)
      ((uint8_t *)to)[i] = (uint8_t)from[i];
    else
      ((uint16_t *)to)[i] = lesson_to_bfloat16(from[i]);
  }
}

/* Does a run of the lesson's reference give what was computed? */
static inline int whatif_meets(Whatif *w, void (*call)(LessonLauncher, float *const *, const int *)) {
  const Lesson *lesson = w->outcome->lesson;
  const size_t n = w->outcome->elements[w->output];
  for (int a = 0; a < lesson->arrays; a++)
    if (lesson->array[a].output) lesson_poison(w->array[a], lesson->array[a].element, w->outcome->elements[a]);
  call(lesson->reference, w->array, w->outcome->size);
  lesson_to_floats(w->result, w->array[w->output], lesson->array[w->output].element, n);
  for (size_t i = 0; i < n; i++)
    if (!compare_element(&w->outcome->computed[w->output][i], w->result[i], w->tolerance)) return 0;
  return 1;
}

/* The same with w->changed as input `a`. 0 where w->changed equals the input, or where the time is up. */
static inline int whatif_try(Whatif *w, int a) {
  const Lesson *lesson = w->outcome->lesson;
  const size_t n = w->outcome->elements[a];
  if (memcmp(w->changed, w->outcome->right[a], n * sizeof *w->changed) == 0 || !whatif_has_time(w, 0)) return 0;
  whatif_from_floats(w->array[a], w->changed, lesson->array[a].element, n);
  const int meets = whatif_meets(w, lesson->call);
  whatif_from_floats(w->array[a], w->outcome->right[a], lesson->array[a].element, n);
  return meets;
}

/* Which line takes the place of line i of n, and the factor with which it counts. */
static inline size_t whatif_line(WhatifLines kind, size_t by, size_t i, size_t n, double *weight) {
  static const size_t middle[] = {0, 2, 1, 3};
  size_t from = i;
  *weight = 1;
  switch (kind) {
    case WHATIF_MODULO:
      from = i % by;
      break;
    case WHATIF_IN_64:
      from = i / 64 * 64 + i % 64 % by;
      break;
    case WHATIF_IN_128:
      from = i / 128 * 128 + i % 128 % by;
      break;
    case WHATIF_GROUPED:
      from = i / by * by;
      break;
    case WHATIF_MIDDLE:
      from = i / 4 * 4 + middle[i % 4];
      break;
    case WHATIF_PAIRS:
      from = i ^ 1;
      break;
    case WHATIF_REVERSED:
      from = i ^ 3;
      break;
    case WHATIF_FIRST:
      *weight = i < by;
      break;
    case WHATIF_WHOLE:
      *weight = i < n / by * by;
      break;
    case WHATIF_EVERY_SECOND:
      *weight = i / by % 2 == 0;
      break;
    case WHATIF_AGAIN:
      *weight = (double)((n + by - 1) / by - i / by);
      break;
    case WHATIF_TWICE:
      *weight = i % by == 0 ? 2 : 1;
      break;
    default:
      break;
  }
  if (from >= n) *weight = 0;
  return from;
}

/* Appends the sentence's end; `lines` is "columns", "rows" or "elements". */
static inline void whatif_say_lines(WhatifLines kind, size_t by, const char *name, const char *lines, char *text,
                                    size_t size) {
  const char *within = kind == WHATIF_IN_64 ? " within each 64" : kind == WHATIF_IN_128 ? " within each 128" : "";
  formula_say(text, size, " Your values would be right if ");
  if (kind <= WHATIF_IN_128 && by == 1)
    formula_say(text, size, "all %s of %s%s were the first: an index is missing.", lines, name, within);
  else if (kind <= WHATIF_IN_128)
    formula_say(text, size,
                "the first %zu %s of %s%s stood for all others, too: where a tile begins is missing in an "
                "index.",
                by, lines, name, within);
  else if (kind == WHATIF_GROUPED)
    formula_say(text, size, "each %zu %s of %s were the first of these: the place in the group is missing in an index.",
                by, lines, name);
  else if (kind == WHATIF_MIDDLE)
    formula_say(text, size, "of each four %s of %s the second and the third were exchanged.", lines, name);
  else if (kind == WHATIF_PAIRS)
    formula_say(text, size, "neighbours were exchanged among the %s of %s.", lines, name);
  else if (kind == WHATIF_REVERSED)
    formula_say(text, size, "each four %s of %s were in the reverse order.", lines, name);
  else if (kind == WHATIF_FIRST)
    formula_say(text, size, "only the first %zu %s of %s counted: does a loop end too early?", by, lines, name);
  else if (kind == WHATIF_WHOLE)
    formula_say(text, size, "the last %s of %s, beyond the last whole %zu, did not count: is the rest left out?", lines,
                name, by);
  else if (kind == WHATIF_EVERY_SECOND && by == 1)
    formula_say(text, size, "every second of the %s of %s did not count: is a step too large?", lines, name);
  else if (kind == WHATIF_EVERY_SECOND)
    formula_say(text, size, "every second %zu %s of %s did not count: is a step too large?", by, lines, name);
  else if (kind == WHATIF_AGAIN)
    formula_say(text, size, "the first %zu %s of %s counted again with each further %zu: a loop begins at 0 each time.",
                by, lines, name, by);
  else
    formula_say(text, size, "each %zuth of the %s of %s, from the first on, counted twice.", by, lines, name);
}

/* The numbers of lines that are tried for each kind, besides the sizes of the lesson. */
static inline const char *whatif_sizes(WhatifLines kind, size_t *most) {
  static const char modulo[] = {1, 4, 8, 16, 32, 64}, grouped[] = {2, 4, 8, 16, 32}, four[] = {4};
  static const char whole[] = {4, 8, 16, 32}, second[] = {1, 8, 16, 32};
  const char *of;
  if (kind <= WHATIF_IN_128 || kind == WHATIF_FIRST)
    of = modulo, *most = sizeof modulo;
  else if (kind == WHATIF_GROUPED)
    of = grouped, *most = sizeof grouped;
  else if (kind <= WHATIF_REVERSED)
    of = four, *most = sizeof four;
  else if (kind == WHATIF_EVERY_SECOND)
    of = second, *most = sizeof second;
  else
    of = whole, *most = sizeof whole;
  return of;
}

/* The rows of one matrix, where the array holds several. */
static inline size_t whatif_rows(const Whatif *w, int a) {
  const char *letters = w->outcome->lesson->array[a].letters;
  const size_t rank = strlen(letters);
  return rank < 2 ? 1 : lesson_extent(w->outcome->lesson, letters[rank - 2], w->outcome->size);
}

/* Rows and columns of one input: the rows of each matrix by themselves, where it holds several, and all of them. */
static inline Diagnosis whatif_lines(Whatif *w, int a, char *text, size_t size) {
  const Lesson *lesson = w->outcome->lesson;
  const LessonArray *array = &lesson->array[a];
  const size_t columns = lesson_columns(lesson, array, w->outcome->size), rows = w->outcome->elements[a] / columns;
  const size_t letters = strlen(array->letters);
  const float *x = w->outcome->right[a];
  static const size_t again[] = {64, 128, 256, 384, 512, 1024};
  for (int kind = 0; kind < WHATIF_LINES; kind++)
    for (int down = 0; down < 2; down++) {
      size_t by[32], count, own;
      const char *of = whatif_sizes((WhatifLines)kind, &count);
      for (size_t t = 0; t < count; t++) by[t] = (size_t)of[t];
      for (size_t t = 0; t < sizeof again / sizeof *again && kind == WHATIF_AGAIN; t++) by[count++] = again[t];
      own = count; /* behind them: one image, head, .. stands for all */
      for (size_t l = letters, block = 1; l-- > 1 && down && kind == WHATIF_MODULO;) {
        block *= lesson_extent(lesson, array->letters[l - 1], w->outcome->size);
        by[count++] = block;
      }
      for (size_t t = 0; t < count; t++) {
        const size_t n = !down ? columns : t < own ? whatif_rows(w, a) : rows;
        if (by[t] >= n || (kind == WHATIF_IN_64 && n <= 64) || (kind == WHATIF_IN_128 && n <= 128)) continue;
        if (array->element != LESSON_FLOAT && array->element != LESSON_BFLOAT16 && kind >= WHATIF_AGAIN) continue;
        for (size_t r = 0; r < rows; r++)
          for (size_t c = 0; c < columns; c++) {
            double weight;
            const size_t line = down ? r % n : c, from = whatif_line((WhatifLines)kind, by[t], line, n, &weight);
            const size_t at = down ? (r - line + from) * columns + c : r * columns + from;
            w->changed[r * columns + c] = weight == 0 ? 0 : (float)(weight * x[at]);
          }
        if (!whatif_try(w, a)) continue;
        whatif_say_lines((WhatifLines)kind, by[t], array->name,
                         rows == 1 ? "elements"
                         : down    ? "rows"
                                   : "columns",
                         text, size);
        return DIAGNOSIS_INPUT_INDEX;
      }
    }
  return DIAGNOSIS_NONE;
}

static inline Diagnosis whatif_values(Whatif *w, int a, WhatifValues kind, double by, const char *factor, char *text,
                                      size_t size) {
  const LessonArray *array = &w->outcome->lesson->array[a];
  const size_t columns = lesson_columns(w->outcome->lesson, array, w->outcome->size), n = w->outcome->elements[a];
  const size_t rows = whatif_rows(w, a), tile = (size_t)by; /* of each matrix */
  const float *x = w->outcome->right[a];
  if (kind == WHATIF_TILES_TURNED && (rows <= tile || columns <= tile)) return DIAGNOSIS_NONE;
  for (size_t i = 0; i < n; i++) {
    const size_t first = i / (rows * columns) * rows * columns, r = (i - first) / columns, c = i % columns;
    size_t row = r, column = c;
    if (kind == WHATIF_TURNED) row = r / tile * tile + c % tile, column = c / tile * tile + r % tile;
    if (kind == WHATIF_TILES_TURNED) row = c / tile * tile + r % tile, column = r / tile * tile + c % tile;
    w->changed[i] = row < rows && column < columns ? x[first + row * columns + column] : 0;
    if (kind == WHATIF_TRANSPOSED) w->changed[i] = x[first + c * rows + r];
    if (kind == WHATIF_BY) w->changed[i] = (float)(by * x[i]);
    if (kind == WHATIF_ONE) w->changed[i] = 1;
    if (kind == WHATIF_TANH) w->changed[i] = tanhf(x[i]);
    if (kind == WHATIF_SQUARE) w->changed[i] = x[i] * x[i];
    if (kind == WHATIF_IDENTITY) w->changed[i] = (float)i;
  }
  if (!whatif_try(w, a)) return DIAGNOSIS_NONE;
  formula_say(text, size, " Your values would be right if ");
  if (kind == WHATIF_TURNED)
    formula_say(text, size, "within each tile of %zu x %zu of %s rows and columns were exchanged.", tile, tile,
                array->name);
  else if (kind == WHATIF_TILES_TURNED)
    formula_say(text, size,
                "the tiles of %zu x %zu of %s were exchanged, the one in tile row i and tile column j for the "
                "one in row j and column i.",
                tile, tile, array->name);
  else if (kind == WHATIF_TRANSPOSED)
    formula_say(text, size, "%s were stored with rows and columns exchanged.", array->name);
  else if (kind == WHATIF_BY && by == 0)
    formula_say(text, size, "%s were 0: does it take part?", array->name);
  else if (kind == WHATIF_BY && by == -1)
    formula_say(text, size, "%s had the opposite sign.", array->name);
  else if (kind == WHATIF_BY)
    formula_say(text, size, "%s were multiplied by %.4g%s.", array->name, by, factor);
  else if (kind == WHATIF_ONE)
    formula_say(text, size, "%s were 1: is it left out as a factor?", array->name);
  else if (kind == WHATIF_IDENTITY)
    formula_say(text, size, "%s[i] were i: it is not looked up.", array->name);
  else
    formula_say(text, size, kind == WHATIF_TANH ? "%s were tanh(%s)." : "%s were its square.", array->name,
                array->name);
  if (kind == WHATIF_IDENTITY) return DIAGNOSIS_NOT_LOOKED_UP;
  return kind <= WHATIF_TRANSPOSED ? DIAGNOSIS_INPUT_TRANSPOSED : DIAGNOSIS_INPUT_VALUE;
}

/* One input as a whole. */
static inline Diagnosis whatif_input(Whatif *w, int a, char *text, size_t size) {
  const Lesson *lesson = w->outcome->lesson;
  const LessonArray *array = &lesson->array[a];
  const int number = array->element == LESSON_FLOAT || array->element == LESSON_BFLOAT16;
  char factor[64];
  Diagnosis found = DIAGNOSIS_NONE;
  if (array->classes != 0 && w->outcome->elements[a] <= lesson_extent(lesson, array->classes, w->outcome->size))
    found = whatif_values(w, a, WHATIF_IDENTITY, 0, "", text, size);
  if (!found) found = whatif_values(w, a, WHATIF_BY, 0, "", text, size);
  for (double by = -1; by <= 2 && number && !found; by = by < 0 ? 0.5 : 4 * by)
    found = whatif_values(w, a, WHATIF_BY, by, "", text, size);
  for (int tile = 4; tile <= 32 && !found; tile *= 2)
    for (int kind = WHATIF_TURNED; kind <= WHATIF_TILES_TURNED && !found; kind++)
      found = whatif_values(w, a, (WhatifValues)kind, tile, "", text, size);
  for (int kind = WHATIF_TRANSPOSED; kind < WHATIF_IDENTITY && number && !found; kind++)
    if (kind != WHATIF_BY) found = whatif_values(w, a, (WhatifValues)kind, 0, "", text, size);
  for (int i = 0; i < lesson->sizes + lesson->scalars && number && !found; i++) {
    const int scalar = i >= lesson->sizes;
    const double x = scalar ? lesson->scalar[i - lesson->sizes].value : w->outcome->size[i];
    const double by[] = {x, 1 / x, sqrt(x), 1 / sqrt(x)};
    static const char *const forms[] = {" (%.*s)", " (1 / %.*s)", " (the root of %.*s)", " (1 / the root of %.*s)"};
    for (int f = 0; f < 4 && x > 0 && !found; f++) {
      const char *name = scalar ? lesson->scalar[i - lesson->sizes].name : &lesson->letters[i];
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
      snprintf(factor, sizeof factor, forms[f], scalar ? (int)strlen(name) : 1, name);
#pragma GCC diagnostic pop
      found = whatif_values(w, a, WHATIF_BY, by[f], factor, text, size);
    }
  }
  return found;
}

/* An array backwards along one size, and indices below that size mirrored: this shows a comparison of two indices that
 * is the wrong way round. */
static inline void whatif_backwards(const Whatif *w, int a, int letter, const float *from, float *to) {
  const int below = w->outcome->lesson->array[a].classes == w->outcome->lesson->letters[letter];
  const char *letters = w->outcome->lesson->array[a].letters,
             *at = strchr(letters, w->outcome->lesson->letters[letter]);
  const size_t n = w->outcome->elements[a], extent = at == NULL ? 1 : (size_t)w->outcome->size[letter];
  size_t stride = 1;
  for (const char *l = at; l != NULL && l[1] != '\0'; l++)
    stride *= lesson_extent(w->outcome->lesson, l[1], w->outcome->size);
  for (size_t i = 0; i < n; i++) {
    size_t here = i / stride % extent;
    to[i] = from[i + (extent - 1 - here) * stride - here * stride];
    if (below) to[i] = (float)(w->outcome->size[letter] - 1) - to[i];
  }
}

static inline Diagnosis whatif_other_way(Whatif *w, char *text, size_t size) {
  const Lesson *lesson = w->outcome->lesson;
  const size_t n = w->outcome->elements[w->output];
  int meets = 0;
  for (int letter = 0; letter < lesson->sizes && !meets; letter++) {
    if (w->outcome->size[letter] < 3 || !whatif_has_time(w, 0)) continue;
    for (int a = 0; a < lesson->arrays; a++) {
      if (lesson->array[a].output) {
        lesson_poison(w->array[a], lesson->array[a].element, w->outcome->elements[a]);
        continue;
      }
      whatif_backwards(w, a, letter, w->outcome->right[a], w->changed);
      whatif_from_floats(w->array[a], w->changed, lesson->array[a].element, w->outcome->elements[a]);
    }
    lesson->call(lesson->reference, w->array, w->outcome->size);
    lesson_to_floats(w->changed, w->array[w->output], lesson->array[w->output].element, n);
    whatif_backwards(w, w->output, letter, w->changed, w->result);
    meets = 1;
    for (size_t i = 0; i < n && meets; i++)
      meets = compare_element(&w->outcome->computed[w->output][i], w->result[i], w->tolerance);
    if (meets)
      formula_say(text, size,
                  " Your values would be right if %c ran backwards: is a comparison of two indices the wrong "
                  "way round?",
                  lesson->letters[letter]);
    for (int a = 0; a < lesson->arrays; a++)
      if (!lesson->array[a].output)
        whatif_from_floats(w->array[a], w->outcome->right[a], lesson->array[a].element, w->outcome->elements[a]);
  }
  return meets ? DIAGNOSIS_BACKWARDS : DIAGNOSIS_NONE;
}

/* Appends a sentence, and returns its name, when a change explains what was computed. */
static inline Diagnosis lesson_whatif(const LessonOutcome *outcome, int output, Tolerance tolerance, char *text,
                                      size_t size) {
  const Lesson *lesson = outcome->lesson;
  size_t wrong = 0, most = 0;
  Diagnosis found = DIAGNOSIS_NONE;
  Whatif w;
  memset(&w, 0, sizeof w);
  w.outcome = outcome;
  w.output = output;
  w.tolerance = tolerance;
  w.begin = clock();
  for (size_t i = 0; i < outcome->elements[output]; i++)
    wrong += !compare_element(&outcome->computed[output][i], outcome->right[output][i], tolerance);
  if (wrong < WHATIF_FEWEST || lesson->reference == NULL || !whatif_has_time(&w, 0)) return DIAGNOSIS_NONE;
  if (lesson_flops(lesson, outcome->size) > 1e8) return DIAGNOSIS_NONE; /* one run takes too long */
  for (int a = 0; a < lesson->arrays; a++) {
    w.array[a] = (float *)xmalloc(whatif_bytes(&w, a));
    if (!lesson->array[a].output)
      whatif_from_floats(w.array[a], outcome->right[a], lesson->array[a].element, outcome->elements[a]);
    if (outcome->elements[a] > most) most = outcome->elements[a];
  }
  w.changed = (float *)xmalloc(2 * most * sizeof *w.changed);
  w.result = w.changed + most;
  for (int i = 0; i < lesson->alternatives && !found; i++)
    if (whatif_meets(&w, lesson->alternative[i].call)) {
      formula_say(text, size, " Your values would be right if %s.", lesson->alternative[i].words);
      found = DIAGNOSIS_OTHER_ARGUMENT;
    }
  for (int a = 0; a < lesson->arrays && !found; a++)
    if (!lesson->array[a].output) found = whatif_input(&w, a, text, size);
  for (int a = 0; a < lesson->arrays && !found; a++)
    if (!lesson->array[a].output) found = whatif_lines(&w, a, text, size);
  if (!found) found = whatif_other_way(&w, text, size);
  whatif_has_time(&w, 1);
  for (int a = 0; a < lesson->arrays; a++) free(w.array[a]);
  free(w.changed);
  return found;
}

#endif /* COMMON_LESSON_WHATIF_H */
