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
 *       lesson_element(&lesson, "argmax", LESSON_INDEX);           // a byte below 255; 255 says: not written
 *       lesson_indices(&lesson, "argmax", "nc", 'k');              // an input of such bytes from 0 to k - 1
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
 * A shape may need more than its sizes: parameters, which have defaults, and sizes that follow from the others.
 *
 *       Lesson lesson = lesson_make("conv2d", "nchwkrs", ...);     // sizes that the user types: 2x3x8x8x4x3x3
 *       lesson_parameter(&lesson, "stride", 2, 1);                 // of each of 2 axes, by default 1:
 *       lesson_parameter(&lesson, "groups", 1, 1);                 //   --shape=2x3x8x8x4x3x3:stride=2x1:groups=3
 *       lesson.shape_check = conv2d_lesson_check;                  // refuses a shape with a sentence
 *       lesson_derived(&lesson, 'p', conv2d_lesson_p);             // a letter for arrays; called after the check
 *       lesson_output(&lesson, "y", "nkpq");
 *       lesson_check_shape(&lesson, lesson_shape_of(&lesson, "1x2x9x7x4x3x2:stride=2x1"));
 *
 * In `size` the letters' sizes come first, derived ones behind those that are typed; parameters begin at
 * size[LESSON_SIZES], an int for each axis, in the order of their declarations.
 *
 * A version may take only some shapes, and may need a workspace. Both are asked of the lesson, with what the version
 * was made with (lesson_version_of()):
 *
 *       lesson.fits = ...;        // -1 and a sentence: not this shape. It is shown as refused, and not as wrong
 *       lesson.workspace = ...;   // bytes; `call` finds a pointer to as many in array[lesson.arrays], NULL where 0
 *
 * The workspace is allocated before anything is timed, filled with NaN before each check, and lies between guard bands.
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

enum { LESSON_ARRAYS = 12, LESSON_SIZES = 12, LESSON_SHAPES = 48, LESSON_VERSIONS = 32, LESSON_SCALARS = 4 };
enum { LESSON_ALTERNATIVES = 6, LESSON_PARAMETERS = 10, LESSON_TEXT = 256 };

/* As many sizes as the lesson has letters, in their order; at [LESSON_SIZES] its parameters begin. */
typedef struct LessonShape {
  int size[LESSON_SIZES + LESSON_PARAMETERS];
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
  const void *method; /* what the lesson's fits() and workspace() are asked with; NULL: the lesson's own */
  int any_order;      /* it adds by atomics: two runs may differ in their rounding, and each must be right */
} LessonVersion;

typedef enum LessonElement { LESSON_FLOAT, LESSON_INT, LESSON_BFLOAT16, LESSON_BYTE, LESSON_INDEX } LessonElement;

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

/* Of a shape, beside its sizes: one number, or one for each axis. */
typedef struct LessonParameter {
  const char *name;
  int axes, standard;
  int at; /* in `size` */
} LessonParameter;

typedef struct Lesson {
  const char *name;
  char letters[LESSON_SIZES + 1]; /* "mnk": the sizes of a shape */
  int sizes, typed;               /* the first `typed` of them are typed, the others follow from the shape */
  int (*derived[LESSON_SIZES])(const int *size);
  LessonParameter parameter[LESSON_PARAMETERS];
  int parameters;
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
  /* May be NULL: every shape is one; every version takes it; none needs memory beside the arrays. */
  int (*shape_check)(const int *size, Error *err);
  int (*fits)(const void *method, const int *size, Error *err);
  size_t (*workspace)(const void *method, const int *size);
  const void *method;   /* of versions that have none of their own: an exercise's, say; NULL: asked for nothing */
  int any_order;        /* as a version's; of an exercise */
  void (*before)(void); /* what the program shows on stderr before the versions; NULL: nothing */
  LessonShape most;     /* sizes that the grids of all versions reach; by default any */
  LessonShape timed;    /* on a GPU */
  LessonShape counted;  /* by the inspector: small, its counts follow the geometry */
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
  lesson.sizes = lesson.typed = (int)strlen(letters);
  lesson.call = call;
  lesson.reference = reference;
  lesson.tolerance = lesson_exact;
  if (lesson.sizes < 1 || lesson.sizes > LESSON_SIZES) die("lesson %s: 1 to %d sizes", name, LESSON_SIZES);
  strcpy(lesson.letters, letters);
  for (int i = 0; i < LESSON_SIZES; i++) lesson.most.size[i] = INT_MAX;
  return lesson;
}

/* One number, or one for each of the axes, which the user may leave out. */
static inline void lesson_parameter(Lesson *lesson, const char *name, int axes, int standard) {
  int at = LESSON_SIZES;
  for (int i = 0; i < lesson->parameters; i++) at += lesson->parameter[i].axes;
  if (at + axes > LESSON_SIZES + LESSON_PARAMETERS)
    die("lesson %s: parameters of more than %d numbers", lesson->name, LESSON_PARAMETERS);
  LessonParameter *parameter = &lesson->parameter[lesson->parameters++];
  parameter->name = name;
  parameter->axes = axes;
  parameter->standard = standard;
  parameter->at = at;
}

/* A size that follows from the others and from the parameters. */
static inline void lesson_derived(Lesson *lesson, char letter, int (*of)(const int *size)) {
  if (lesson->sizes == LESSON_SIZES) die("lesson %s: more than %d sizes", lesson->name, LESSON_SIZES);
  if (strchr(lesson->letters, letter) != NULL) die("lesson %s: there is a size %c already", lesson->name, letter);
  lesson->derived[lesson->sizes] = of;
  lesson->letters[lesson->sizes++] = letter;
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

/* The same as bytes; `classes` is at most 255. */
static inline void lesson_indices(Lesson *lesson, const char *name, const char *letters, char classes) {
  lesson_labels(lesson, name, letters, classes);
  lesson_element(lesson, name, LESSON_INDEX);
}

/* Parameters get their defaults. */
static inline LessonShape lesson_shape_empty(const Lesson *lesson) {
  LessonShape shape;
  memset(&shape, 0, sizeof shape);
  for (int i = 0; i < lesson->parameters; i++)
    for (int axis = 0; axis < lesson->parameter[i].axes; axis++)
      shape.size[lesson->parameter[i].at + axis] = lesson->parameter[i].standard;
  return shape;
}

/* Checks a shape whose typed sizes and parameters are there, and computes the others. */
static inline int lesson_shape_complete(const Lesson *lesson, LessonShape *shape, Error *err) {
  if (lesson->shape_check != NULL && lesson->shape_check(shape->size, err) != 0) return -1;
  for (int i = lesson->typed; i < lesson->sizes; i++) shape->size[i] = lesson->derived[i](shape->size);
  return 0;
}

/* As many sizes as are typed. */
static inline LessonShape lesson_shape(const Lesson *lesson, ...) {
  LessonShape shape = lesson_shape_empty(lesson);
  Error err;
  va_list sizes;
  va_start(sizes, lesson);
  for (int i = 0; i < lesson->typed; i++) shape.size[i] = va_arg(sizes, int);
  va_end(sizes);
  if (lesson_shape_complete(lesson, &shape, &err) != 0) die("lesson %s: %s", lesson->name, err.message);
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
  version.method = NULL;
  version.any_order = 0;
  return version;
}

/* With what the lesson's fits() and workspace() are asked. */
static inline LessonVersion lesson_version_of(const char *name, LessonLauncher launch, const void *method,
                                              const char *limit) {
  LessonVersion version = lesson_version(name, launch, limit);
  version.method = method;
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

/* One whose sums are added by atomics, made as above. */
static inline LessonVersion lesson_any_order_version(LessonVersion version) {
  version.any_order = 1;
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
  if (array->element == LESSON_BYTE || array->element == LESSON_INDEX) return 1;
  return array->element == LESSON_BFLOAT16 ? sizeof(uint16_t) : sizeof(float);
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

static inline const void *lesson_method(const Lesson *lesson, const LessonVersion *version) {
  return version->method != NULL ? version->method : lesson->method;
}

/* Bytes that a version takes beside the arrays. */
static inline size_t lesson_workspace_bytes(const Lesson *lesson, const LessonVersion *version, const int *size) {
  const void *method = lesson_method(lesson, version);
  return lesson->workspace != NULL && method != NULL ? lesson->workspace(method, size) : 0;
}

/* -1, and why, where the version does not take the shape. */
static inline int lesson_version_fits(const Lesson *lesson, const LessonVersion *version, const int *size, Error *err) {
  const void *method = lesson_method(lesson, version);
  return lesson->fits != NULL && method != NULL ? lesson->fits(method, size, err) : 0;
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* Shapes as text */

/* "31x33", and the parameters that are not the defaults: "31x33:stride=2x1" */
static inline const char *lesson_shape_text(const Lesson *lesson, const LessonShape *shape, char text[LESSON_TEXT]) {
  int used = 0;
  text[0] = '\0';
  for (int i = 0; i < lesson->typed; i++)
    used += snprintf(text + used, LESSON_TEXT - (size_t)used, "%s%d", i > 0 ? "x" : "", shape->size[i]);
  for (int i = 0; i < lesson->parameters; i++) {
    const LessonParameter *parameter = &lesson->parameter[i];
    const int *value = &shape->size[parameter->at];
    int standard = 1, same = 1;
    for (int axis = 0; axis < parameter->axes; axis++) {
      standard &= value[axis] == parameter->standard;
      same &= value[axis] == value[0];
    }
    if (standard) continue;
    used += snprintf(text + used, LESSON_TEXT - (size_t)used, ":%s=", parameter->name);
    for (int axis = 0; axis < (same ? 1 : parameter->axes); axis++)
      used += snprintf(text + used, LESSON_TEXT - (size_t)used, "%s%d", axis > 0 ? "x" : "", value[axis]);
  }
  return text;
}

/* "stride=1, groups=1": the parameters with their defaults. */
static inline const char *lesson_parameters_text(const Lesson *lesson, char text[LESSON_TEXT]) {
  int used = 0;
  text[0] = '\0';
  for (int i = 0; i < lesson->parameters; i++)
    used += snprintf(text + used, LESSON_TEXT - (size_t)used, "%s%s=%d", i > 0 ? ", " : "", lesson->parameter[i].name,
                     lesson->parameter[i].standard);
  return text;
}

/* "nxcxhxw": the sizes that are typed. */
static inline const char *lesson_letters_text(const Lesson *lesson, char text[2 * LESSON_SIZES]) {
  for (int l = 0; l < lesson->typed && l < LESSON_SIZES; l++) { /* gcc does not know that it is never more */
    text[2 * l] = lesson->letters[l];
    text[2 * l + 1] = l + 1 < lesson->typed ? 'x' : '\0';
  }
  return text;
}

/* A whole number of at least `least`; `stops` may follow it. Returns where it ends, NULL with *too_large or not. */
static inline const char *lesson_parse_number(const char *at, int least, const char *stops, int *number,
                                              int *too_large) {
  char *end;
  errno = 0;
  const long value = strtol(at, &end, 10);
  *too_large = 0;
  if (end == at || value < least || (*end != '\0' && strchr(stops, *end) == NULL)) return NULL;
  *too_large = errno != 0 || value > INT_MAX;
  *number = (int)value;
  return *too_large ? NULL : end;
}

/* "stride=2x1" at *at; `given` has a bit for each parameter that has been read. */
static inline int lesson_parse_parameter(const Lesson *lesson, const char **at, LessonShape *shape, unsigned *given,
                                         Error *err) {
  char known[LESSON_TEXT];
  const size_t length = strcspn(*at, "=:,");
  const int written = (int)strcspn(*at, ":,");
  int found = 0, axis = 0, too_large = 0;
  while (found < lesson->parameters &&
         (strlen(lesson->parameter[found].name) != length || strncmp(lesson->parameter[found].name, *at, length) != 0))
    found++;
  if (found == lesson->parameters || (*at)[length] != '=')
    return error_set(err, "\"%.*s\" is no parameter of this lesson; they are by default %s", written, *at,
                     lesson_parameters_text(lesson, known));
  const LessonParameter *parameter = &lesson->parameter[found];
  if (*given >> found & 1) return error_set(err, "%s is given twice", parameter->name);
  *given |= 1u << found;
  int *value = &shape->size[parameter->at];
  const char *end = *at + length;
  do {
    const int more = axis + 1 < parameter->axes, may_end = axis == 0 || !more;
    end = lesson_parse_number(end + 1, 0, !more ? ":," : may_end ? "x:," : "x", &value[axis], &too_large);
    if (end != NULL && *end == '\0' && !may_end) end = NULL;
    if (end == NULL && too_large) return error_set(err, "%s: a number is at most %d", parameter->name, INT_MAX);
    if (end == NULL)
      return error_set(err, "%.*s: %s", written, *at,
                       parameter->axes == 1 ? "a number of at least 0 is expected"
                                            : "a number of at least 0 is expected, or one for each axis, as in 2x1");
    axis++;
  } while (*end == 'x');
  for (; axis < parameter->axes; axis++) value[axis] = value[0];
  *at = end;
  return 0;
}

/* What a shape looks like. */
static inline int lesson_shape_expected(const Lesson *lesson, Error *err) {
  char example[LESSON_TEXT], known[LESSON_TEXT], letters[2 * LESSON_SIZES];
  lesson_shape_text(lesson, &lesson->counted, example);
  if (lesson->parameters == 0 && lesson->typed == 1)
    return error_set(err, "a size of at least 1 is expected, as in %s, or several with commas", example);
  if (lesson->parameters == 0)
    return error_set(err, "%d sizes of at least 1 are expected, as in %s, or several such shapes with commas",
                     lesson->typed, example);
  return error_set(err,
                   "%d sizes of at least 1 are expected, %s, as in %s; then, each after a colon, the parameters that "
                   "are not %s; or several such shapes with commas",
                   lesson->typed, lesson_letters_text(lesson, letters), example, lesson_parameters_text(lesson, known));
}

/* "4096x4096", "2x3x8x8x4x3x3:stride=2x1:groups=3": one shape, which ends at a comma or at the end of the text; *at
 * becomes that place. -1, and the reason, where it is none. */
static inline int lesson_parse_shape(const Lesson *lesson, const char **at, LessonShape *shape, Error *err) {
  unsigned given = 0;
  *shape = lesson_shape_empty(lesson);
  for (int i = 0; i < lesson->typed; i++) {
    int too_large;
    const int last = i + 1 == lesson->typed;
    const char *stops = !last ? "x" : lesson->parameters > 0 ? ":," : ",";
    const char *end = lesson_parse_number(*at, 1, stops, &shape->size[i], &too_large);
    if (end == NULL && too_large) return error_set(err, "a size is at most %d", INT_MAX);
    if (end == NULL || (!last && *end == '\0')) return lesson_shape_expected(lesson, err);
    *at = last ? end : end + 1;
  }
  while (**at == ':') {
    ++*at;
    if (lesson_parse_parameter(lesson, at, shape, &given, err) != 0) return -1;
  }
  return lesson_shape_complete(lesson, shape, err);
}

/* A shape from text, for declarations. */
static inline LessonShape lesson_shape_of(const Lesson *lesson, const char *text) {
  LessonShape shape;
  Error err;
  const char *end = text;
  if (lesson_parse_shape(lesson, &end, &shape, &err) != 0) die("lesson %s: %s: %s", lesson->name, text, err.message);
  if (*end != '\0') die("lesson %s: %s: one shape is expected", lesson->name, text);
  return shape;
}

/* These shapes are checked, and no others. */
static inline void lesson_check_shapes(Lesson *lesson, const char *const *shapes, size_t count) {
  lesson->checks = 0;
  for (size_t i = 0; i < count; i++) lesson_check_shape(lesson, lesson_shape_of(lesson, shapes[i]));
}

#endif /* COMMON_LESSON_H */
