/* lesson.h - what a lesson is: its arrays, its shapes, its definition, and what a version of it is.
 *
 * A lesson computes one thing in several versions, from the obvious one to the fast one. What they have in common is
 * declared once, in a header beside the kernels (transpose_lesson.cuh), for the program that
 * tells the story, for the test that counts, and for the exercises:
 *
 *     typedef void TransposeLauncher(float *out, const float *in, int rows, int cols);
 *
 *     static inline void transpose_call(LessonLauncher launch, float *const *array, const int *size) {
 *       ((TransposeLauncher *)launch)(array[0], array[1], size[0], size[1]);
 *     }
 *     static inline LessonVersion transpose_version(const char *name, TransposeLauncher *launch, const char *limit) {
 *       return lesson_version(name, (LessonLauncher)launch, limit);
 *     }
 *     static inline Lesson transpose_lesson(void) {
 *       Lesson lesson = lesson_make("transpose", "rc", transpose_call, (LessonLauncher)transpose_cpu);
 *       lesson_output(&lesson, "out", "cr");           // sizes named by their letters: (cols, rows)
 *       lesson_input(&lesson, "in", "rc");
 *       lesson_check_shape(&lesson, 31, 33);
 *       ...
 *
 * An array holds floats, or what lesson_element() says. `call` finds it as a float * all the same, and casts:
 *
 *       lesson_output(&lesson, "losses", "b");
 *       lesson_input(&lesson, "logits", "bc");
 *       lesson_range(&lesson, "logits", -20, 20);                  // uniform; by default in [-1, 2)
 *       lesson_extreme(&lesson, "logits", 1e4f);                   // and a few elements are 1e4 or -1e4
 *       lesson_ruled_out(&lesson, "scores");                       // or a few are -inf
 *       lesson_labels(&lesson, "labels", "b", 'c');                // an input of ints from 0 to c - 1
 *       lesson_element(&lesson, "weights", LESSON_BFLOAT16);       // of 2 bytes; inputs and outputs
 *       lesson_element(&lesson, "pixels", LESSON_BYTE);            // inputs alone, uniform from 0 to 255
 *       lesson_output(&lesson, "total", "");                       // one number
 *       lesson_tolerance(&lesson, "total", total_tolerance);       // where the lesson's does not serve
 *       lesson_steps(&lesson, "losses", 'b');                      // an output that is written b elements at a time
 *       lesson_scalar(&lesson, "lr", 0.375f);                      // diagnoses say "lr" where they find this factor
 *       lesson_alternative(&lesson, "lr were 1", plain_call);      // and this where they find what that call gives
 *
 *     launch((float *)array[0], array[1], (const int *)array[2], (const __nv_bfloat16 *)array[3], array[4], ...)
 *
 * The reference gets the same types. What is not a float is compared after conversion; tolerances are for that.
 *
 * From then on a version is one line of a table,
 *
 *     transpose_version("tiled", transpose_tiled, "bank conflicts: 32 lanes read one bank; pad the rows"),
 *
 * and the headers beside this one make of it:
 *
 *     arrays.h    its arrays on one shape, on the host and on the GPU
 *     explain.h   a wrong output: which formula it follows, its first wrong elements
 *     verify.h    is a version right? Seeded inputs, guard bands, two runs, the inspector's counts
 *     main.h      a program: options, times, the table
 */
#ifndef COMMON_LESSON_H
#define COMMON_LESSON_H

#include <limits.h>
#include <stdarg.h>

#include "common/compare.h"
#include "common/error.h"

/* ---------------------------------------------------------------------------------------------------------------- */
/* Declarations */

enum { LESSON_ARRAYS = 12, LESSON_SIZES = 6, LESSON_SHAPES = 48, LESSON_VERSIONS = 32, LESSON_SCALARS = 4 };
enum { LESSON_ALTERNATIVES = 4 };

/* As many sizes as the lesson has letters, in their order. */
typedef struct LessonShape {
  int size[LESSON_SIZES];
} LessonShape;

/* Any launcher; cast to its own type before it is called, as `call` does. */
typedef void (*LessonLauncher)(void);

typedef enum LessonKind {
  LESSON_RUNG,    /* ours */
  LESSON_LIBRARY, /* the vendor's: the same work, checked as ours */
  LESSON_PEER,    /* the vendor's, whose results are others, and as good: timed, not checked */
  LESSON_COPY,    /* the vendor's device copy of the largest output's bytes: a yardstick, its result is not looked at */
} LessonKind;

typedef struct LessonVersion {
  const char *name;
  LessonLauncher launch;
  const char *limit; /* one sentence: what limits it now, and which lever comes next */
  LessonKind kind;
} LessonVersion;

typedef enum LessonElement { LESSON_FLOAT, LESSON_INT, LESSON_BFLOAT16, LESSON_BYTE } LessonElement;

typedef struct LessonArray {
  const char *name;
  const char *letters; /* "mk": size m times size k; the last is the row length; "": one number */
  int output;
  LessonElement element;
  char step;                           /* of outputs: the letter of so many elements, which one step writes; 0: none */
  char classes;                        /* of labels: the letter of the size that they are below; otherwise 0 */
  float low, high;                     /* other inputs are uniform in [low, high) */
  float extreme;                       /* but for a few, which are this or its negative; 0: none; -inf: always that */
  Tolerance (*tolerance)(const int *); /* NULL: the lesson's */
} LessonArray;

/* A number of the formula, so that a diagnosis can call it by its name. */
typedef struct LessonScalar {
  const char *name;
  double value;
} LessonScalar;

/* What else the lesson's reference could have been asked for: a diagnosis says so where that was computed. */
typedef struct LessonAlternative {
  const char *words; /* "the stream were 0" */
  void (*call)(LessonLauncher launch, float *const *array, const int *size);
} LessonAlternative;

typedef struct Lesson {
  const char *name;
  const char *letters; /* "mnk": the sizes of a shape */
  int sizes;
  LessonArray array[LESSON_ARRAYS];
  int arrays;
  LessonScalar scalar[LESSON_SCALARS];
  int scalars;
  LessonAlternative alternative[LESSON_ALTERNATIVES];
  int alternatives;
  void (*call)(LessonLauncher launch, float *const *array, const int *size);
  LessonLauncher reference;            /* the definition, on the CPU, with host pointers */
  LessonLauncher reference_gpu;        /* for shapes too large for it; NULL: there is none */
  double (*flops)(const int *size);    /* NULL: the lesson only moves bytes */
  double (*bytes)(const int *size);    /* each array once; by default the arrays' sizes */
  Tolerance (*tolerance)(const int *); /* by default exact */
  LessonShape check[LESSON_SHAPES];    /* ragged */
  int checks;
  double (*roof)(void);   /* launches what its units do at best, returns the FLOPs; NULL: float32's multiply-adds */
  double (*memory)(void); /* bytes of GPU memory that the last launch took beside the arrays; NULL: not shown */
  void (*before)(void);   /* what the program shows on stderr before the versions; NULL: nothing */
  LessonShape most;       /* sizes that the grids of all versions reach; by default any */
  LessonShape timed;      /* on a GPU */
  LessonShape counted;    /* by the inspector: small, its counts follow the geometry */
} Lesson;

/* ---------------------------------------------------------------------------------------------------------------- */
/* To declare a lesson */

static inline Tolerance lesson_exact(const int *size) {
  (void)size;
  return tolerance_make(0, 0);
}

static inline Lesson lesson_make(const char *name, const char *letters,
                                 void (*call)(LessonLauncher, float *const *, const int *), LessonLauncher reference) {
  Lesson lesson;
  memset(&lesson, 0, sizeof lesson);
  lesson.name = name;
  lesson.letters = letters;
  lesson.sizes = (int)strlen(letters);
  lesson.call = call;
  lesson.reference = reference;
  lesson.tolerance = lesson_exact;
  if (lesson.sizes < 1 || lesson.sizes > LESSON_SIZES) die("lesson %s: 1 to %d sizes", name, LESSON_SIZES);
  for (int i = 0; i < lesson.sizes; i++) lesson.most.size[i] = INT_MAX;
  return lesson;
}

static inline void lesson_array(Lesson *lesson, const char *name, const char *letters, int output) {
  if (lesson->arrays == LESSON_ARRAYS) die("lesson %s: more than %d arrays", lesson->name, LESSON_ARRAYS);
  if (strspn(letters, lesson->letters) != strlen(letters))
    die("lesson %s: array %s is (%s), but the sizes are (%s)", lesson->name, name, letters, lesson->letters);
  LessonArray *array = &lesson->array[lesson->arrays++];
  array->name = name;
  array->letters = letters;
  array->output = output;
  array->low = -1; /* neither symmetric nor of zero mean, root mean square 1 */
  array->high = 2;
}

/* In the order in which `call` finds them. */
static inline void lesson_output(Lesson *lesson, const char *name, const char *letters) {
  lesson_array(lesson, name, letters, 1);
}
static inline void lesson_input(Lesson *lesson, const char *name, const char *letters) {
  lesson_array(lesson, name, letters, 0);
}

/* A number that `call` passes. */
static inline void lesson_scalar(Lesson *lesson, const char *name, double value) {
  if (lesson->scalars == LESSON_SCALARS) die("lesson %s: more than %d scalars", lesson->name, LESSON_SCALARS);
  lesson->scalar[lesson->scalars].name = name;
  lesson->scalar[lesson->scalars++].value = value;
}

/* "Your values would be right if `words`": of a call that differs from the lesson's in what it passes. */
static inline void lesson_alternative(Lesson *lesson, const char *words,
                                      void (*call)(LessonLauncher, float *const *, const int *)) {
  if (lesson->alternatives == LESSON_ALTERNATIVES)
    die("lesson %s: more than %d alternatives", lesson->name, LESSON_ALTERNATIVES);
  lesson->alternative[lesson->alternatives].words = words;
  lesson->alternative[lesson->alternatives++].call = call;
}

static inline LessonArray *lesson_find_array(Lesson *lesson, const char *name) {
  for (int a = 0; a < lesson->arrays; a++)
    if (strcmp(lesson->array[a].name, name) == 0) return &lesson->array[a];
  die("lesson %s: there is no array %s", lesson->name, name);
}

/* What an array is that has been declared; see above. */
static inline void lesson_element(Lesson *lesson, const char *name, LessonElement element) {
  LessonArray *array = lesson_find_array(lesson, name);
  if (array->output && element == LESSON_BYTE)
    die("lesson %s: output %s of bytes: each of their values is a result, none could say that nothing was written",
        lesson->name, name);
  array->element = element;
}
static inline void lesson_range(Lesson *lesson, const char *name, float low, float high) {
  LessonArray *array = lesson_find_array(lesson, name);
  array->low = low;
  array->high = high;
}
static inline void lesson_extreme(Lesson *lesson, const char *name, float extreme) {
  lesson_find_array(lesson, name)->extreme = extreme;
}
static inline void lesson_ruled_out(Lesson *lesson, const char *name) { lesson_extreme(lesson, name, -INFINITY); }
/* Elements are written in steps of so many, one step after the other: what is missing is no edge of a grid. */
static inline void lesson_steps(Lesson *lesson, const char *name, char letter) {
  lesson_find_array(lesson, name)->step = letter;
}
static inline void lesson_tolerance(Lesson *lesson, const char *name, Tolerance (*tolerance)(const int *)) {
  lesson_find_array(lesson, name)->tolerance = tolerance;
}

/* An input of ints from 0 to the size `classes` - 1. */
static inline void lesson_labels(Lesson *lesson, const char *name, const char *letters, char classes) {
  if (strchr(lesson->letters, classes) == NULL)
    die("lesson %s: labels %s are below %c, but the sizes are (%s)", lesson->name, name, classes, lesson->letters);
  lesson_input(lesson, name, letters);
  lesson_element(lesson, name, LESSON_INT);
  lesson_find_array(lesson, name)->classes = classes;
}

/* As many sizes as there are letters. */
static inline LessonShape lesson_shape(const Lesson *lesson, ...) {
  LessonShape shape;
  memset(&shape, 0, sizeof shape);
  va_list sizes;
  va_start(sizes, lesson);
  for (int i = 0; i < lesson->sizes; i++) shape.size[i] = va_arg(sizes, int);
  va_end(sizes);
  return shape;
}

/* One more shape to check. */
static inline void lesson_check_shape(Lesson *lesson, LessonShape shape) {
  if (lesson->checks == LESSON_SHAPES) die("lesson %s: more than %d shapes", lesson->name, LESSON_SHAPES);
  lesson->check[lesson->checks++] = shape;
}

static inline LessonVersion lesson_version(const char *name, LessonLauncher launch, const char *limit) {
  LessonVersion version;
  version.name = name;
  version.launch = launch;
  version.limit = limit;
  version.kind = LESSON_RUNG;
  return version;
}

/* A device copy, for comparison. */
static inline LessonVersion lesson_copy_version(const char *limit) {
  LessonVersion version = lesson_version("device copy", NULL, limit);
  version.kind = LESSON_COPY;
  return version;
}

/* The vendor's: made like any other version of the lesson, then passed through here. */
static inline LessonVersion lesson_library_version(LessonVersion version) {
  version.kind = LESSON_LIBRARY;
  return version;
}

/* As fast as it may be, this computes something else: the same random numbers in another order, say. Made as above. */
static inline LessonVersion lesson_peer_version(LessonVersion version) {
  version.kind = LESSON_PEER;
  return version;
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* Sizes */

static inline size_t lesson_extent(const Lesson *lesson, char letter, const int *size) {
  return (size_t)size[strchr(lesson->letters, letter) - lesson->letters];
}

/* Elements of a row, and of the array. */
static inline size_t lesson_columns(const Lesson *lesson, const LessonArray *array, const int *size) {
  if (array->letters[0] == '\0') return 1;
  return lesson_extent(lesson, array->letters[strlen(array->letters) - 1], size);
}
static inline size_t lesson_elements(const Lesson *lesson, const LessonArray *array, const int *size) {
  size_t elements = 1;
  for (const char *letter = array->letters; *letter != '\0'; letter++) elements *= lesson_extent(lesson, *letter, size);
  return elements;
}

static inline size_t lesson_element_bytes(const LessonArray *array) {
  return array->element == LESSON_BYTE ? 1 : array->element == LESSON_BFLOAT16 ? sizeof(uint16_t) : sizeof(float);
}
static inline size_t lesson_array_bytes(const Lesson *lesson, const LessonArray *array, const int *size) {
  return lesson_elements(lesson, array, size) * lesson_element_bytes(array);
}

/* For the `call` of a lesson on one long array of n elements: where n is 4 k + 1, the first element is computed by
 * itself, and then the others. Those begin at an address that is not aligned for a float4; of one element there are
 * none. Only small shapes, which are checked: what is counted or timed is what the user asked for. */
static inline size_t lesson_first_part(size_t n) { return n % 4 == 1 && n < 16384 ? 1 : 0; }

static inline double lesson_bytes(const Lesson *lesson, const int *size) {
  if (lesson->bytes != NULL) return lesson->bytes(size);
  double bytes = 0;
  for (int i = 0; i < lesson->arrays; i++) bytes += (double)lesson_array_bytes(lesson, &lesson->array[i], size);
  return bytes;
}

/* What a device copy is compared with: the largest output, filled from the largest other array; when that is too small,
 * one half of the output is filled from the other. Returns how many bytes are written, and as many are read. */
static inline size_t lesson_copied_bytes(const Lesson *lesson, const int *size, int *to, int *from) {
  size_t bytes = 0, source = 0;
  *to = *from = 0;
  for (int a = 0; a < lesson->arrays; a++) {
    size_t here = lesson_array_bytes(lesson, &lesson->array[a], size);
    if (!lesson->array[a].output || here <= bytes) continue;
    *to = a;
    bytes = here;
  }
  for (int a = 0; a < lesson->arrays; a++) {
    size_t here = lesson_array_bytes(lesson, &lesson->array[a], size);
    if (a == *to || here <= source) continue;
    *from = a;
    source = here;
  }
  if (source >= bytes) return bytes;
  *from = *to;
  return bytes / 2;
}

static inline double lesson_flops(const Lesson *lesson, const int *size) {
  return lesson->flops == NULL ? 0 : lesson->flops(size);
}

/* "31x33" */
static inline const char *lesson_shape_text(const Lesson *lesson, const LessonShape *shape, char text[80]) {
  text[0] = '\0';
  for (int i = 0; i < lesson->sizes; i++)
    snprintf(text + strlen(text), 80 - strlen(text), "%s%d", i > 0 ? "x" : "", shape->size[i]);
  return text;
}

#endif /* COMMON_LESSON_H */
