/* verify.h - is a version of a lesson (lesson.h) right?
 *
 * It runs twice on seeded random inputs. Its outputs are filled with NaN before (compare.h), and all arrays lie between
 * guard bands (guard.h). The version must compute what the CPU reference computes, must not write its inputs or outside
 * its arrays, and must give the same bits in both runs. With the inspector (simt/; SIMT_INSPECT) its accesses are
 * counted, and a finding of the inspector counts as wrong, too. */
#ifndef COMMON_LESSON_VERIFY_H
#define COMMON_LESSON_VERIFY_H

#include "common/check.h"
#include "common/lesson/counts.h"
#include "common/lesson/explain.h"

#ifdef SIMT_INSPECT
#include "simt/inspector.h"
#include "simt/streams.h"
#endif

typedef enum LessonFault {
  LESSON_RIGHT,
  LESSON_CUDA_ERROR,    /* the launch, or a fault in the kernel */
  LESSON_WRONG,         /* values and places say how */
  LESSON_OUTSIDE,       /* wrote outside an array */
  LESSON_INPUT_CHANGED, /* wrote where it should read */
  LESSON_NOT_REPEATED,  /* the second run gave other bits: a race */
  LESSON_REFUSED,       /* the version does not take the shape */
  LESSON_FINDING,       /* the values are right; the inspector found a fault */
} LessonFault;

typedef struct LessonResult {
  int ok;
  LessonFault fault;
  char message[4096]; /* what is wrong, where, what to try; when ok, error and tolerance */
  double error, tolerance;
  Diagnosis values, places; /* of the first wrong output */
  Diagnoses found;          /* all that the message says */
  int explained;            /* the message says what the wrong values have in common, not only where they are */
  char wrong[400];          /* "3 of 10 elements of y are wrong": for the message where the inspector knows the cause */
  int inspected;            /* 1: counts and findings are known */
  LessonCounts counts;
  int findings;
  char finding[2048];     /* the first */
  Diagnosis finding_kind; /* its name */
} LessonResult;

/* One version on one shape: 0, or -1 and result->message. */
static inline int lesson_verify(const Lesson *lesson, const LessonVersion *version, const LessonShape *shape,
                                uint64_t seed, LessonResult *result);

/* On all check shapes that the version takes, until one fails. Error and tolerance are those of the worst; counts are
 * added up. */
static inline int lesson_verify_all(const Lesson *lesson, const LessonVersion *version, uint64_t seed,
                                    LessonResult *result);

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

/* The name of an error that a kernel left behind. */
static inline Diagnosis lesson_cuda_diagnosis(cudaError_t status) {
  switch (status) {
    case cudaSuccess:
      return DIAGNOSIS_NONE;
    case cudaErrorInvalidConfiguration:
    case cudaErrorLaunchOutOfResources:
      return DIAGNOSIS_LAUNCH;
    case cudaErrorLaunchTimeout:
      return DIAGNOSIS_ENDLESS;
    case cudaErrorIllegalAddress:
      return DIAGNOSIS_ILLEGAL_ADDRESS;
    case cudaErrorMisalignedAddress:
      return DIAGNOSIS_MISALIGNED;
    case cudaErrorAssert:
      return DIAGNOSIS_ASSERTION;
    default:
      return DIAGNOSIS_CUDA_ERROR;
  }
}

#ifdef SIMT_INSPECT
static inline Diagnosis lesson_finding_diagnosis(SimtFindingKind kind) {
  switch (kind) {
    case SIMT_DATA_RACE:
      return DIAGNOSIS_DATA_RACE;
    case SIMT_OUT_OF_BOUNDS:
      return DIAGNOSIS_OUT_OF_BOUNDS;
    case SIMT_USE_AFTER_FREE:
      return DIAGNOSIS_USE_AFTER_FREE;
    case SIMT_UNINITIALISED_READ:
      return DIAGNOSIS_UNINITIALISED_READ;
    case SIMT_MISALIGNED:
      return DIAGNOSIS_MISALIGNED;
    case SIMT_HOST_POINTER:
      return DIAGNOSIS_HOST_POINTER;
    case SIMT_DEVICE_POINTER:
      return DIAGNOSIS_DEVICE_POINTER;
    case SIMT_NULL_POINTER:
      return DIAGNOSIS_NULL_POINTER;
    case SIMT_READ_ONLY_WRITE:
      return DIAGNOSIS_READ_ONLY_WRITE;
    case SIMT_MISSING_SYNC:
      return DIAGNOSIS_MISSING_SYNC;
    case SIMT_STREAM_RACE:
      return DIAGNOSIS_STREAM_RACE;
    case SIMT_WRONG_DEVICE:
      return DIAGNOSIS_WRONG_DEVICE;
    case SIMT_FINDING_KINDS:
      break;
  }
  return DIAGNOSIS_NONE;
}
#endif

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
  c->global_atomic_requests = (double)count[SIMT_GLOBAL_ATOMIC_REQUESTS];
  const SimtWork work = simt_inspect_work(NULL);
  c->launched_blocks = (double)work.blocks;
  c->launched_threads = (double)work.threads;
  c->working_blocks = (double)work.working_blocks;
  c->working_warps = (double)work.working_warps;
  c->working_threads = (double)work.working_threads;
  c->stream_steps = simt_steps();
  c->bulk_copies = (double)count[SIMT_BULK_COPIES];
  c->bulk_bytes = (double)count[SIMT_BULK_BYTES];
  c->wgmma_products = (double)count[SIMT_WGMMA_PRODUCTS];
  if (simt_inspect_findings() == 0) return;
  const SimtInspectReport *report = simt_inspect_report();
  result->findings = report->finding_count;
  if (report->finding_count == 0) return;
  result->finding_kind = lesson_finding_diagnosis(report->findings[0].kind);
  FILE *text = fmemopen(result->finding, sizeof result->finding, "w");
  if (text == NULL) return;
  simt_inspect_print_finding(text, report, &report->findings[0]);
  fclose(text);
#else
  (void)result;
#endif
}

static inline Tolerance lesson_array_tolerance(const Lesson *lesson, int a, const int *size) {
  return (lesson->array[a].tolerance != NULL ? lesson->array[a].tolerance : lesson->tolerance)(size);
}

/* "3 of 10 elements of y and all 5 of z are wrong" */
static inline void lesson_count_wrong(const LessonOutcome *outcome, const Comparison *compared, char *text,
                                      size_t size) {
  int outputs = 0;
  text[0] = '\0';
  for (int a = 0; a < outcome->lesson->arrays; a++) {
    if (compared[a].values == DIAGNOSIS_NONE) continue;
    formula_say(text, size, "%s%zu of %zu%s of %s", outputs > 0 ? ", " : "", compared[a].wrong, outcome->elements[a],
                outputs == 0 ? " elements" : "", outcome->lesson->array[a].name);
    outputs++;
  }
  formula_say(text, size, " are wrong");
}

/* For an output that is written in steps: in which step the wrong elements begin, instead of a guess about the grid. */
static inline void lesson_say_steps(const LessonOutcome *outcome, int output, Comparison *c) {
  const LessonArray *array = &outcome->lesson->array[output];
  if (array->step == 0 || c->first == outcome->elements[output]) return;
  const size_t each = lesson_extent(outcome->lesson, array->step, outcome->size), n = outcome->elements[output];
  c->message[c->before_places] = '\0';
  compare_say(c,
              " The first of them is element %zu, in step %zu, counted from 0: each step writes %zu, and there are %zu "
              "steps.",
              c->first, c->first / each, each, (n + each - 1) / each);
}

/* Adds the names of what is said about a wrong output: `cause` in place of "wrong values", and the step in place of a
 * guess about the grid. */
static inline void lesson_note(const Comparison *c, Diagnosis cause, int in_steps, Diagnoses *found) {
  if (c->values != DIAGNOSIS_WRONG_VALUES || cause == DIAGNOSIS_NONE) diagnoses_add(found, c->values);
  diagnoses_add(found, cause);
  diagnoses_add(found, in_steps ? DIAGNOSIS_STEP : c->places);
}

/* Says what is wrong with each output. The table shows an output that does not follow from another wrong one. Where
 * some elements were never written, this is taken for the cause of all the rest. */
static inline void lesson_fail_outputs(const LessonOutcome *outcome, Comparison *compared, LessonResult *result) {
  int shown = 0, unwritten = -1;
  for (int a = outcome->lesson->arrays - 1; a >= 0; a--)
    if (compared[a].values == DIAGNOSIS_NEVER_WRITTEN && compared[a].places != DIAGNOSIS_EVERYWHERE) unwritten = a;
  for (int a = 0; a < outcome->lesson->arrays; a++) {
    Comparison *c = &compared[a];
    char text[2048] = "";
    if (c->values == DIAGNOSIS_NONE) continue;
    if (unwritten >= 0 && c->values != DIAGNOSIS_NEVER_WRITTEN) {
      lesson_fail(result, LESSON_WRONG, "%s%s: %zu of %zu elements are wrong, which may follow from %s.",
                  result->fault == LESSON_WRONG ? "\n" : "", outcome->lesson->array[a].name, c->wrong,
                  outcome->elements[a], outcome->lesson->array[unwritten].name);
      continue;
    }
    lesson_say_steps(outcome, a, c);
    Tolerance tolerance = lesson_array_tolerance(outcome->lesson, a, outcome->size);
    const Diagnosis cause = lesson_explain(outcome, a, c, tolerance, text, sizeof text);
    const int bits = c->values >= DIAGNOSIS_REFERENCE_NAN && c->values <= DIAGNOSIS_INFINITE;
    const int empty = bits && c->values <= DIAGNOSIS_READ_BEFORE_WRITTEN;
    const int vague = c->values == DIAGNOSIS_WRONG_VALUES || c->values == DIAGNOSIS_ROUNDING;
    lesson_note(c, cause, outcome->lesson->array[a].step != 0, &result->found);
    if (bits || cause != DIAGNOSIS_NONE || (!vague && c->wrong >= 3)) result->explained = 1;
    if (!shown && !empty && cause != DIAGNOSIS_FOLLOWS) {
      lesson_show(outcome, a, tolerance, text, sizeof text);
      shown = 1;
    }
    lesson_fail(result, LESSON_WRONG, "%s%s: %s%s", result->fault == LESSON_WRONG ? "\n" : "",
                outcome->lesson->array[a].name, c->message, text);
    if (result->values != DIAGNOSIS_NONE) continue;
    result->values = c->values;
    result->places = c->places;
  }
  for (int a = 0; a < outcome->lesson->arrays; a++) /* so the arrays that both depend on are not the cause */
    if (outcome->lesson->array[a].output && compared[a].ok) {
      diagnoses_add(&result->found, DIAGNOSIS_OTHERS_RIGHT);
      lesson_fail(result, LESSON_WRONG, "\n%s is right.", outcome->lesson->array[a].name);
    }
}

/* Runs the version once on the arrays, and compares the results. */
static inline int lesson_run(const Lesson *lesson, const LessonVersion *version, const LessonShape *shape,
                             const LessonHost *host, float *const *array, LessonResult *result) {
  Comparison compared[LESSON_ARRAYS];
  void *got[LESSON_ARRAYS];
  int changed = -1, wrong = 0;
  lesson->call(version->launch, array, shape->size);
  cudaError_t status = cudaDeviceSynchronize();
  if (status != cudaSuccess) {
    diagnoses_add(&result->found, lesson_cuda_diagnosis(status));
    return lesson_fail(result, LESSON_CUDA_ERROR, "%s (%s) %s", cudaGetErrorString(status), cudaGetErrorName(status),
                       cuda_error_advice(status));
  }
  memset(compared, 0, sizeof compared);
  for (int a = 0; a < lesson->arrays; a++) {
    const LessonArray *declared = &lesson->array[a];
    size_t n = host->elements[a], columns = lesson_columns(lesson, declared, shape->size);
    got[a] = xmalloc(host->bytes[a]);
    device_download(DEVICE_GPU, got[a], array[a], host->bytes[a]);
    if (!declared->output) {
      if (memcmp(got[a], host->array[a], host->bytes[a]) != 0) changed = a;
      continue;
    }
    const int floats = declared->element == LESSON_FLOAT;
    float *converted = floats ? NULL : (float *)xmalloc(2 * n * sizeof *converted);
    const float *actual = floats ? (const float *)got[a] : converted;
    const float *expected = floats ? host->array[a] : converted + n;
    if (!floats) {
      lesson_to_floats(converted, got[a], declared->element, n);
      lesson_to_floats(converted + n, host->array[a], declared->element, n);
    }
    Comparison c = compared[a] =
        compare_arrays(actual, expected, n / columns, columns, lesson_array_tolerance(lesson, a, shape->size));
    free(converted);
    wrong += !c.ok;
    if (result->tolerance == 0 || c.error * result->tolerance >= result->error * c.tolerance) {
      result->error = c.error;
      result->tolerance = c.tolerance;
    }
  }
  if (wrong > 0) {
    LessonOutcome outcome = lesson_outcome_open(lesson, shape->size, host, got);
    lesson_count_wrong(&outcome, compared, result->wrong, sizeof result->wrong);
    lesson_fail_outputs(&outcome, compared, result);
    lesson_outcome_close(&outcome);
  } else if (changed >= 0) {
    diagnoses_add(&result->found, DIAGNOSIS_INPUT_CHANGED);
    lesson_fail(result, LESSON_INPUT_CHANGED, "The kernel wrote into its input %s.", lesson->array[changed].name);
  }
  for (int a = 0; a < lesson->arrays; a++) free(got[a]);
  return result->fault != LESSON_RIGHT ? -1 : 0;
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
    if (c.ok) continue;
    diagnoses_add(&result->found, c.values);
    return lesson_fail(result, LESSON_NOT_REPEATED, "%s: %s", lesson->array[a].name, c.message);
  }
  return 0;
}

/* Computes the expected outputs by the reference, or by the one on the GPU where the CPU would take minutes. */
static inline void lesson_expect(const Lesson *lesson, const LessonShape *shape, LessonHost *host) {
  if (lesson->reference_gpu == NULL || lesson_flops(lesson, shape->size) < 5e8) {
    lesson->call(lesson->reference, host->array, shape->size);
    return;
  }
  float *array[LESSON_ARRAYS] = {}; /* no workspace */
  lesson_gpu_open(lesson, host, 0, array);
  lesson->call(lesson->reference_gpu, array, shape->size);
  for (int a = 0; a < lesson->arrays; a++) device_download(DEVICE_GPU, host->array[a], array[a], host->bytes[a]);
  lesson_gpu_close(lesson, 0, array);
}

/* lesson_verify() on arrays that have been filled, with the expected outputs. */
static inline int lesson_verify_on(const Lesson *lesson, const LessonVersion *version, const LessonShape *shape,
                                   const LessonHost *host, LessonResult *result) {
#ifdef SIMT_INSPECT
  const int first_guarded = 0; /* the inspector watches the arrays' ends in the first run, guard bands in the second */
#else
  const int first_guarded = 1;
#endif
  float *first[LESSON_ARRAYS], *second[LESSON_ARRAYS];
  char text[LESSON_TEXT];
  Error err;
  memset(result, 0, sizeof *result);
  result->ok = 1;
  snprintf(result->message, sizeof result->message, "%s on %s: ", version->name,
           lesson_shape_text(lesson, shape, text));
  if (lesson_refuses(lesson, version, shape, &err) != 0) return lesson_fail(result, LESSON_REFUSED, "%s", err.message);
  lesson_gpu_open(lesson, host, first_guarded, first);
  lesson_gpu_open(lesson, host, 1, second);
  lesson_workspace_open(lesson, version, shape->size, first_guarded, first);
  lesson_workspace_open(lesson, version, shape->size, 1, second);
  lesson_inspect_begin();
  int status = lesson_run(lesson, version, shape, host, first, result);
  lesson_inspect_end(result);
  if (status == 0 && lesson_run(lesson, version, shape, host, second, result) != 0) {
    diagnoses_add(&result->found, DIAGNOSIS_NOT_REPEATED);
    status = lesson_fail(result, result->fault, " That was the second run: the first, on the same inputs, was right.");
  }
  if (status == 0 && !lesson->any_order && !version->any_order)
    status = lesson_same_bits(lesson, host, first, second, result);
  for (int a = 0; a < lesson->arrays && result->fault != LESSON_CUDA_ERROR; a++)
    if (guard_check_elements(DEVICE_GPU, second[a], host->elements[a], lesson_element_bytes(&lesson->array[a]),
                             lesson->array[a].name, &err) != 0) {
      diagnoses_add(&result->found, DIAGNOSIS_OUT_OF_BOUNDS);
      status = lesson_fail(result, LESSON_OUTSIDE, " Outside its array %s.", err.message);
    }
  const size_t workspace = lesson_workspace_bytes(lesson, version, shape->size);
  if (workspace > 0 && result->fault != LESSON_CUDA_ERROR &&
      guard_check_elements(DEVICE_GPU, second[lesson->arrays], workspace, 1, "workspace", &err) != 0) {
    diagnoses_add(&result->found, DIAGNOSIS_OUT_OF_BOUNDS);
    status = lesson_fail(result, LESSON_OUTSIDE, " Outside its workspace: bytes of %s.", err.message);
  }
  if (result->findings > 0) {
    const LessonFault fault = result->fault == LESSON_RIGHT ? LESSON_FINDING : result->fault;
    Diagnoses found;
    memset(&found, 0, sizeof found);
    diagnoses_add(&found, result->finding_kind); /* nearer to the cause than the values */
    if (result->wrong[0] == '\0') diagnoses_join(&found, &result->found);
    result->found = found;
    if (result->wrong[0] != '\0') /* no formula: the values may come from a wrong address */
      snprintf(result->message, sizeof result->message, "%s on %s: %s.", version->name, text, result->wrong);
    status = lesson_fail(result, fault, "%sThe inspector found:\n%s", result->fault == LESSON_RIGHT ? "" : "\n",
                         result->finding);
  }
  if (result->ok)
    snprintf(result->message, sizeof result->message, "%s on %s: right, error %.3g, tolerance %.3g", version->name,
             text, result->error, result->tolerance);
  if (result->fault != LESSON_CUDA_ERROR) { /* after a fault every call on the GPU fails */
    lesson_workspace_close(lesson, first_guarded, first);
    lesson_workspace_close(lesson, 1, second);
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
  int taken = 0;
  for (int i = 0; i < lesson->checks; i++) {
    Error err;
    if (lesson_refuses(lesson, version, &lesson->check[i], &err) != 0) {
      if (taken > 0 || i + 1 < lesson->checks) continue;
      memset(result, 0, sizeof *result);
      return lesson_fail(result, LESSON_REFUSED, "%s takes not one of the shapes to check: %s", version->name,
                         err.message);
    }
    taken++;
    int status = lesson_verify(lesson, version, &lesson->check[i], seed + (uint64_t)i, result);
    lesson_counts_add(&result->counts, &total.counts);
    if (status != 0) return status;                                          /* its message stays */
    if (result->error * total.tolerance < total.error * result->tolerance) { /* the worst, in tolerances */
      result->error = total.error;
      result->tolerance = total.tolerance;
    }
    total = *result;
  }
  *result = total; /* where the last shape was refused */
  snprintf(result->message, sizeof result->message, "%s is right on %d shapes: error %.3g, tolerance %.3g",
           version->name, taken, result->error, result->tolerance);
  return 0;
}

#endif /* COMMON_LESSON_VERIFY_H */
