/* lesson.h - what a lesson is, and whether one of its versions is right.
 *
 * A lesson computes one thing in several versions, from the obvious one to the fast one. What they have in common is
 * declared once, in a header beside the kernels (phase1_building_blocks/transpose_lesson.cuh), for the program that
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
 *
 *     launch((float *)array[0], array[1], (const int *)array[2], (const __nv_bfloat16 *)array[3], array[4], ...)
 *
 * The reference gets the same types. What is not a float is compared after conversion; tolerances are for that.
 *
 * From then on a version is one line of a table,
 *
 *     transpose_version("tiled", transpose_tiled, "bank conflicts: 32 lanes read one bank; pad the rows"),
 *
 * and lesson_verify() knows what is wrong with it. It runs twice on seeded random inputs, its outputs full of NaN
 * (compare.h), between guard bands (guard.h): it must compute what the CPU reference does, leave its inputs and its
 * neighbours alone, and give the same bits again. Where the inspector looks on (simt/; SIMT_INSPECT) there are counts
 * of its accesses, and what the inspector found counts as wrong, too.
 *
 * lesson_main.h makes a program of it: options, times, the table.
 */
#ifndef COMMON_LESSON_H
#define COMMON_LESSON_H

#include <limits.h>
#include <stdarg.h>

#include "common/check.h"
#include "common/compare.h"
#include "common/error.h"
#include "common/guard.h"
#include "common/philox.h"

#ifdef SIMT_INSPECT
#include "simt/inspector.h"
#include "simt/streams.h"
#endif

/* ---------------------------------------------------------------------------------------------------------------- */
/* Declarations */

enum { LESSON_ARRAYS = 12, LESSON_SIZES = 6, LESSON_SHAPES = 48, LESSON_VERSIONS = 32 };

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
  char classes;                        /* of labels: the letter of the size that they are below; otherwise 0 */
  float low, high;                     /* other inputs are uniform in [low, high) */
  float extreme;                       /* but for a few, which are this or its negative; 0: none; -inf: always that */
  Tolerance (*tolerance)(const int *); /* NULL: the lesson's */
} LessonArray;

typedef struct Lesson {
  const char *name;
  const char *letters; /* "mnk": the sizes of a shape */
  int sizes;
  LessonArray array[LESSON_ARRAYS];
  int arrays;
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

/* What the inspector counted: requests are instructions of a warp, sectors 32 bytes of device memory, wavefronts passes
 * over the 32 banks of shared memory. The names are the inspector's. */
typedef struct LessonCounts {
  double global_load_requests, global_load_sectors, global_load_ideal_sectors; /* ideal: had the bytes lain in a row */
  double global_store_requests, global_store_sectors, global_store_ideal_sectors;
  double shared_load_requests, shared_load_wavefronts, shared_load_conflicts;
  double shared_store_requests, shared_store_wavefronts, shared_store_conflicts;
  double stream_steps; /* kernels and copies, those that may run side by side as one (simt/streams.h) */
} LessonCounts;

typedef enum LessonFault {
  LESSON_RIGHT,
  LESSON_CUDA_ERROR,    /* the launch, or a fault in the kernel */
  LESSON_WRONG,         /* values and places say how */
  LESSON_OUTSIDE,       /* wrote outside an array */
  LESSON_INPUT_CHANGED, /* wrote where it should read */
  LESSON_NOT_REPEATED,  /* the second run gave other bits: a race */
  LESSON_FINDING,       /* right, as it happened; the inspector objects */
} LessonFault;

typedef struct LessonResult {
  int ok;
  LessonFault fault;
  char message[2048]; /* what is wrong, where, what to try; when ok, error and tolerance */
  double error, tolerance;
  CompareValues values;
  ComparePlaces places;
  int inspected; /* 1: counts and findings are known */
  LessonCounts counts;
  int findings;
  char finding[1024]; /* the first */
} LessonResult;

/* ---------------------------------------------------------------------------------------------------------------- */
/* To declare a lesson */

static inline double lesson_bytes(const Lesson *lesson, const int *size);
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

/* ---------------------------------------------------------------------------------------------------------------- */
/* To check a version */

/* One version on one shape: 0, or -1 and result->message. */
static inline int lesson_verify(const Lesson *lesson, const LessonVersion *version, const LessonShape *shape,
                                uint64_t seed, LessonResult *result);

/* On all check shapes, until one fails. Error and tolerance are those of the worst; counts are added up. */
static inline int lesson_verify_all(const Lesson *lesson, const LessonVersion *version, uint64_t seed,
                                    LessonResult *result);

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

/* A bfloat16 is the upper half of a float; rounded to nearest, halves to even. */
static inline uint16_t lesson_to_bfloat16(float x) {
  uint32_t bits = compare_bits(&x);
  if (isnan(x)) return 0x7FFF;
  return (uint16_t)((bits + 0x7FFF + (bits >> 16 & 1)) >> 16);
}

/* Any elements become floats, n of them. Poison stays poison. */
static inline void lesson_to_floats(float *to, const void *from, LessonElement element, size_t n) {
  for (size_t i = 0; i < n; i++) {
    uint32_t bits;
    if (element == LESSON_BFLOAT16) {
      bits = (uint32_t)((const uint16_t *)from)[i] << 16;
      if ((bits | COMPARE_QUIET) >> 16 == (COMPARE_POISON | COMPARE_QUIET) >> 16) bits |= COMPARE_POISON & 0xFFFF;
      memcpy(&to[i], &bits, sizeof bits);
      continue;
    }
    memcpy(&bits, (const char *)from + i * sizeof bits, sizeof bits);
    if (element == LESSON_INT && bits != COMPARE_POISON)
      to[i] = (float)(int32_t)bits;
    else
      memcpy(&to[i], &bits, sizeof bits);
  }
}

static inline void lesson_poison(void *x, LessonElement element, size_t n) {
  if (element != LESSON_BFLOAT16) {
    compare_poison((float *)x, n);
    return;
  }
  for (size_t i = 0; i < n; i++) ((uint16_t *)x)[i] = COMPARE_POISON >> 16;
}

/* The arrays of one shape on the host: inputs are random, outputs are what is expected. */
typedef struct LessonHost {
  float *array[LESSON_ARRAYS]; /* or other elements */
  size_t elements[LESSON_ARRAYS], bytes[LESSON_ARRAYS];
} LessonHost;

/* One element in so many is extreme; a prime, so that every lane and every bank gets its turn. */
enum { LESSON_EXTREME_STEP = 61 };

/* The first n elements of an input. One stream of random numbers an array. */
static inline void lesson_fill(const Lesson *lesson, int a, const int *size, uint64_t seed, void *x, size_t n) {
  const LessonArray *array = &lesson->array[a];
  const uint64_t classes = array->classes != 0 ? lesson_extent(lesson, array->classes, size) : 0;
  PhiloxBlock block;
  for (size_t i = 0; i < n; i++) {
    if (i % 4 == 0) block = philox4x32(seed, (uint32_t)a, i / 4);
    uint32_t word = block.word[i % 4];
    float value = (array->high - array->low) * philox_uniform(word) + array->low;
    if (array->extreme != 0 && i % LESSON_EXTREME_STEP == seed % LESSON_EXTREME_STEP)
      value = word % 2 == 0 || array->extreme == -INFINITY ? array->extreme : -array->extreme;
    if (classes != 0)
      ((int32_t *)x)[i] = (int32_t)(word * classes >> 32);
    else if (array->element == LESSON_INT)
      ((int32_t *)x)[i] = (int32_t)floorf(value);
    else if (array->element == LESSON_BYTE)
      ((uint8_t *)x)[i] = (uint8_t)(word >> 24);
    else if (array->element == LESSON_BFLOAT16)
      ((uint16_t *)x)[i] = lesson_to_bfloat16(value);
    else
      ((float *)x)[i] = value;
  }
}

static inline void lesson_host_open(const Lesson *lesson, const LessonShape *shape, uint64_t seed, LessonHost *host) {
  for (int a = 0; a < lesson->arrays; a++) {
    const LessonArray *array = &lesson->array[a];
    host->elements[a] = lesson_elements(lesson, array, shape->size);
    host->bytes[a] = lesson_array_bytes(lesson, array, shape->size);
    host->array[a] = (float *)xmalloc(host->bytes[a]);
    if (array->output)
      lesson_poison(host->array[a], array->element, host->elements[a]);
    else
      lesson_fill(lesson, a, shape->size, seed, host->array[a], host->elements[a]);
  }
}

static inline void lesson_host_close(const Lesson *lesson, LessonHost *host) {
  for (int a = 0; a < lesson->arrays; a++) free(host->array[a]);
}

/* Copies of them on the GPU, the outputs poisoned. Guarded: between bands that notice writes. Otherwise each array is
 * exactly as long as it is, so that the inspector sees one step beyond. */
static inline void lesson_gpu_open(const Lesson *lesson, const LessonHost *host, int guarded,
                                   float *array[LESSON_ARRAYS]) {
  for (int a = 0; a < lesson->arrays; a++) {
    const LessonArray *declared = &lesson->array[a];
    if (guarded)
      array[a] = (float *)guard_alloc_elements(DEVICE_GPU, host->elements[a], lesson_element_bytes(declared));
    else
      CUDA_CHECK(cudaMalloc((void **)&array[a], host->bytes[a]));
    if (declared->output) {
      void *poison = xmalloc(host->bytes[a]);
      lesson_poison(poison, declared->element, host->elements[a]);
      device_upload(DEVICE_GPU, array[a], poison, host->bytes[a]);
      free(poison);
    } else {
      device_upload(DEVICE_GPU, array[a], host->array[a], host->bytes[a]);
    }
  }
}

static inline void lesson_gpu_close(const Lesson *lesson, int guarded, float *const array[LESSON_ARRAYS]) {
  for (int a = 0; a < lesson->arrays; a++) {
    if (guarded)
      guard_free(DEVICE_GPU, array[a]);
    else
      device_free(DEVICE_GPU, array[a]);
  }
}

__attribute__((format(printf, 3, 4))) static inline int lesson_fail(LessonResult *result, LessonFault fault,
                                                                    const char *format, ...) {
  size_t used = strlen(result->message);
  va_list args;
  va_start(args, format);
  vsnprintf(result->message + used, sizeof result->message - used, format, args);
  va_end(args);
  result->ok = 0;
  result->fault = fault;
  return -1;
}

/* Counts and findings of all that ran since lesson_inspect_begin(). */
static inline void lesson_inspect_begin(void) {
#ifdef SIMT_INSPECT
  simt_inspect_forget();
  simt_steps_begin();
#endif
}

static inline void lesson_inspect_end(LessonResult *result) {
#ifdef SIMT_INSPECT
  uint64_t count[SIMT_COUNTERS];
  LessonCounts *c = &result->counts;
  simt_inspect_counts(NULL, count);
  result->inspected = 1;
  c->global_load_requests = (double)count[SIMT_GLOBAL_LOAD_REQUESTS];
  c->global_load_sectors = (double)count[SIMT_GLOBAL_LOAD_SECTORS];
  c->global_load_ideal_sectors = (double)count[SIMT_GLOBAL_LOAD_IDEAL_SECTORS];
  c->global_store_ideal_sectors = (double)count[SIMT_GLOBAL_STORE_IDEAL_SECTORS];
  c->global_store_requests = (double)count[SIMT_GLOBAL_STORE_REQUESTS];
  c->global_store_sectors = (double)count[SIMT_GLOBAL_STORE_SECTORS];
  c->shared_load_requests = (double)count[SIMT_SHARED_LOAD_REQUESTS];
  c->shared_load_wavefronts = (double)count[SIMT_SHARED_LOAD_WAVEFRONTS];
  c->shared_load_conflicts = (double)count[SIMT_SHARED_LOAD_CONFLICTS];
  c->shared_store_requests = (double)count[SIMT_SHARED_STORE_REQUESTS];
  c->shared_store_wavefronts = (double)count[SIMT_SHARED_STORE_WAVEFRONTS];
  c->shared_store_conflicts = (double)count[SIMT_SHARED_STORE_CONFLICTS];
  c->stream_steps = simt_steps();
  if (simt_inspect_findings() == 0) return;
  const SimtInspectReport *report = simt_inspect_report();
  result->findings = report->finding_count;
  if (report->finding_count == 0) return;
  FILE *text = fmemopen(result->finding, sizeof result->finding, "w");
  if (text == NULL) return;
  simt_inspect_print_finding(text, report, &report->findings[0]);
  fclose(text);
#else
  (void)result;
#endif
}

/* Runs the version once on the arrays, and compares what comes of it. */
static inline int lesson_run(const Lesson *lesson, const LessonVersion *version, const LessonShape *shape,
                             const LessonHost *host, float *const *array, LessonResult *result) {
  lesson->call(version->launch, array, shape->size);
  cudaError_t status = cudaDeviceSynchronize();
  if (status != cudaSuccess)
    return lesson_fail(result, LESSON_CUDA_ERROR, "%s (%s) %s", cudaGetErrorString(status), cudaGetErrorName(status),
                       cuda_error_advice(status));
  for (int a = 0; a < lesson->arrays; a++) {
    const LessonArray *declared = &lesson->array[a];
    size_t n = host->elements[a], columns = lesson_columns(lesson, declared, shape->size);
    void *got = xmalloc(host->bytes[a]);
    device_download(DEVICE_GPU, got, array[a], host->bytes[a]);
    if (declared->output) {
      Tolerance tolerance = (declared->tolerance != NULL ? declared->tolerance : lesson->tolerance)(shape->size);
      const int floats = declared->element == LESSON_FLOAT;
      float *converted = floats ? NULL : (float *)xmalloc(2 * n * sizeof *converted);
      const float *actual = floats ? (const float *)got : converted;
      const float *expected = floats ? host->array[a] : converted + n;
      if (!floats) {
        lesson_to_floats(converted, got, declared->element, n);
        lesson_to_floats(converted + n, host->array[a], declared->element, n);
      }
      Comparison c = compare_arrays(actual, expected, n / columns, columns, tolerance);
      free(converted);
      if (result->tolerance == 0 || c.error * result->tolerance >= result->error * c.tolerance) {
        result->error = c.error;
        result->tolerance = c.tolerance;
      }
      if (!c.ok) {
        result->values = c.values;
        result->places = c.places;
        lesson_fail(result, LESSON_WRONG, "%s: %s", declared->name, c.message);
      }
    } else if (memcmp(got, host->array[a], host->bytes[a]) != 0) {
      lesson_fail(result, LESSON_INPUT_CHANGED, "The kernel wrote into its input %s.", declared->name);
    }
    free(got);
    if (result->fault != LESSON_RIGHT) return -1;
  }
  return 0;
}

/* Did the second run give the bits of the first? */
static inline int lesson_same_bits(const Lesson *lesson, const LessonHost *host, float *const *first,
                                   float *const *second, LessonResult *result) {
  for (int a = 0; a < lesson->arrays; a++) {
    if (!lesson->array[a].output) continue;
    size_t n = host->elements[a];
    float *x = (float *)xmalloc(3 * n * sizeof *x), *y = x + n, *bits = y + n;
    device_download(DEVICE_GPU, bits, first[a], host->bytes[a]);
    lesson_to_floats(x, bits, lesson->array[a].element, n);
    device_download(DEVICE_GPU, bits, second[a], host->bytes[a]);
    lesson_to_floats(y, bits, lesson->array[a].element, n);
    Comparison c = compare_runs(x, y, n);
    free(x);
    if (!c.ok) return lesson_fail(result, LESSON_NOT_REPEATED, "%s: %s", lesson->array[a].name, c.message);
  }
  return 0;
}

/* The expected outputs, by the reference: where that would take minutes, by the one on the GPU. */
static inline void lesson_expect(const Lesson *lesson, const LessonShape *shape, LessonHost *host) {
  if (lesson->reference_gpu == NULL || lesson_flops(lesson, shape->size) < 5e8) {
    lesson->call(lesson->reference, host->array, shape->size);
    return;
  }
  float *array[LESSON_ARRAYS];
  lesson_gpu_open(lesson, host, 0, array);
  lesson->call(lesson->reference_gpu, array, shape->size);
  for (int a = 0; a < lesson->arrays; a++) device_download(DEVICE_GPU, host->array[a], array[a], host->bytes[a]);
  lesson_gpu_close(lesson, 0, array);
}

/* lesson_verify() on arrays that are there already, with what is expected. */
static inline int lesson_verify_on(const Lesson *lesson, const LessonVersion *version, const LessonShape *shape,
                                   const LessonHost *host, LessonResult *result) {
#ifdef SIMT_INSPECT
  const int first_guarded = 0; /* the inspector watches the arrays' ends in the first run, guard bands in the second */
#else
  const int first_guarded = 1;
#endif
  float *first[LESSON_ARRAYS], *second[LESSON_ARRAYS];
  char text[80];
  Error err;
  memset(result, 0, sizeof *result);
  result->ok = 1;
  snprintf(result->message, sizeof result->message, "%s on %s: ", version->name,
           lesson_shape_text(lesson, shape, text));
  lesson_gpu_open(lesson, host, first_guarded, first);
  lesson_gpu_open(lesson, host, 1, second);
  lesson_inspect_begin();
  int status = lesson_run(lesson, version, shape, host, first, result);
  lesson_inspect_end(result);
  if (status == 0 && lesson_run(lesson, version, shape, host, second, result) != 0)
    status = lesson_fail(result, result->fault, " That was the second run: the first, on the same inputs, was right.");
  if (status == 0) status = lesson_same_bits(lesson, host, first, second, result);
  for (int a = 0; a < lesson->arrays && result->fault != LESSON_CUDA_ERROR; a++)
    if (guard_check_elements(DEVICE_GPU, second[a], host->elements[a], lesson_element_bytes(&lesson->array[a]),
                             lesson->array[a].name, &err) != 0)
      status = lesson_fail(result, LESSON_OUTSIDE, " Outside its array %s.", err.message);
  if (result->findings > 0) {
    LessonFault fault = result->fault == LESSON_RIGHT ? LESSON_FINDING : result->fault;
    status = lesson_fail(result, fault, "%sThe inspector found:\n%s", result->fault == LESSON_RIGHT ? "" : "\n",
                         result->finding);
  }
  if (result->ok)
    snprintf(result->message, sizeof result->message, "%s on %s: right, error %.3g, tolerance %.3g", version->name,
             text, result->error, result->tolerance);
  if (result->fault != LESSON_CUDA_ERROR) { /* after a fault the GPU answers nothing any more */
    lesson_gpu_close(lesson, first_guarded, first);
    lesson_gpu_close(lesson, 1, second);
  }
  return status;
}

static inline int lesson_verify(const Lesson *lesson, const LessonVersion *version, const LessonShape *shape,
                                uint64_t seed, LessonResult *result) {
  LessonHost host;
  lesson_host_open(lesson, shape, seed, &host);
  lesson_expect(lesson, shape, &host);
  int status = lesson_verify_on(lesson, version, shape, &host, result);
  lesson_host_close(lesson, &host);
  return status;
}

static inline void lesson_counts_add(LessonCounts *sum, const LessonCounts *more) {
  double *to = &sum->global_load_requests; /* doubles one after the other */
  const double *from = &more->global_load_requests;
  for (size_t i = 0; i < sizeof *sum / sizeof *to; i++) to[i] += from[i];
}

static inline int lesson_verify_all(const Lesson *lesson, const LessonVersion *version, uint64_t seed,
                                    LessonResult *result) {
  LessonResult total;
  memset(&total, 0, sizeof total);
  if (lesson->checks == 0) die("lesson %s: not one shape to check", lesson->name);
  for (int i = 0; i < lesson->checks; i++) {
    int status = lesson_verify(lesson, version, &lesson->check[i], seed + (uint64_t)i, result);
    lesson_counts_add(&result->counts, &total.counts);
    if (status != 0) return status;                                          /* the one that failed tells */
    if (result->error * total.tolerance < total.error * result->tolerance) { /* the worst, in tolerances */
      result->error = total.error;
      result->tolerance = total.tolerance;
    }
    total = *result;
  }
  snprintf(result->message, sizeof result->message, "%s is right on %d shapes: error %.3g, tolerance %.3g",
           version->name, lesson->checks, result->error, result->tolerance);
  return 0;
}

#endif /* COMMON_LESSON_H */
