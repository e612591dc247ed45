/* norms_lesson.cuh - arrays, shapes, references and tolerances of layer norm and instance norm: for the program, its
 * test and the exercises. */
#ifndef PHASE3_CNN_NORMS_LESSON_CUH
#define PHASE3_CNN_NORMS_LESSON_CUH

#include "common/lesson/lesson.h"
#include "phase3_cnn/10_batch_norm/instance_norm.cuh"

/* Layer norm: x (rows,cols), weight (cols). Instance norm: a row is a plane, weight (channels). */
typedef void LayerNormForward(float *y, float *saved, const float *x, const float *weight, const float *bias, int rows,
                              int cols);
typedef void LayerNormBackward(float *dx, float *dweight, float *dbias, const float *dy, const float *x,
                               const float *weight, const float *saved, int rows, int cols, float *workspace);
typedef void InstanceNormForward(float *y, float *saved, const float *x, const float *weight, const float *bias,
                                 InstanceNormShape shape);
typedef void InstanceNormBackward(float *dx, float *dweight, float *dbias, const float *dy, const float *x,
                                  const float *weight, const float *saved, InstanceNormShape shape, float *workspace);

/* Sizes are rows, cols, then 2 and the channels; the last two follow. */
static inline int norms_two(const int *size) {
  (void)size;
  return 2;
}
static inline int norms_channels(const int *size) { return size[LESSON_SIZES]; }

static inline InstanceNormShape norms_shape(const int *size) {
  const InstanceNormShape shape = {size[0] / size[LESSON_SIZES], size[LESSON_SIZES], size[1]};
  return shape;
}

static inline void layer_norm_forward_call(LessonLauncher launch, float *const *array, const int *size) {
  ((LayerNormForward *)launch)(array[0], array[1], array[2], array[3], array[4], size[0], size[1]);
}
static inline void layer_norm_backward_call(LessonLauncher launch, float *const *array, const int *size) {
  ((LayerNormBackward *)launch)(array[0], array[1], array[2], array[3], array[4], array[5], array[6], size[0], size[1],
                                array[7]);
}
static inline void instance_norm_forward_call(LessonLauncher launch, float *const *array, const int *size) {
  ((InstanceNormForward *)launch)(array[0], array[1], array[2], array[3], array[4], norms_shape(size));
}
static inline void instance_norm_backward_call(LessonLauncher launch, float *const *array, const int *size) {
  ((InstanceNormBackward *)launch)(array[0], array[1], array[2], array[3], array[4], array[5], array[6],
                                   norms_shape(size), array[7]);
}

static inline LessonVersion layer_norm_forward_version(const char *name, LayerNormForward *launch, const char *limit) {
  return lesson_version(name, (LessonLauncher)launch, limit);
}
static inline LessonVersion instance_norm_forward_version(const char *name, InstanceNormForward *launch,
                                                          const char *limit) {
  return lesson_version(name, (LessonLauncher)launch, limit);
}
static inline LessonVersion instance_norm_backward_version(const char *name, InstanceNormBackward *launch,
                                                           const char *limit) {
  return lesson_version(name, (LessonLauncher)launch, limit);
}

static inline int norms_shape_check(const int *size, Error *err) {
  const int channels = size[LESSON_SIZES];
  if (channels >= 1 && size[0] % channels == 0) return 0;
  return error_set(err, "%d rows are no whole images of %d channels; channels must divide the rows", size[0], channels);
}

/* ---- workspaces ---- */

/* What a version is asked for its workspace with: floats() gives its size, NULL: none. */
typedef struct NormsMethod {
  size_t (*floats)(const int *size);
} NormsMethod;

static inline size_t norms_workspace(const void *method, const int *size) {
  const NormsMethod *norms = (const NormsMethod *)method;
  return norms->floats == NULL ? 0 : norms->floats(size) * sizeof(float);
}
static inline size_t layer_norm_lesson_floats(const int *size) { return layer_norm_workspace_floats(size[0], size[1]); }
static inline size_t instance_norm_lesson_floats(const int *size) {
  return instance_norm_workspace_floats(norms_shape(size));
}

static const NormsMethod norms_no_workspace = {NULL}, layer_norm_slices_method = {layer_norm_lesson_floats},
                         instance_norm_sums_method = {instance_norm_lesson_floats};

/* method: of its workspace. */
static inline LessonVersion layer_norm_backward_version(const char *name, LayerNormBackward *launch,
                                                        const NormsMethod *method, const char *limit) {
  return lesson_version_of(name, (LessonLauncher)launch, method, limit);
}

/* ---- tolerances ---- */

/* x lies between NORMS_LOW and NORMS_LOW + 1: the mean is large, so that E[x^2] - E[x]^2 fails. */
enum { NORMS_LOW = 100 };

/* How the mean of `length` terms of size 1 errs in float: see tolerance_dot(). */
static inline double norms_mean_error(double length) { return FLT_EPSILON * fmin(length + 1, 4 * sqrt(length + 1)); }

/* t = (x - mean) / deviation, so the error of the mean is divided by the deviation, too. That of many uniform x is 1 /
 * sqrt(12); a few may have less, but epsilon makes it at least 1 / 316. The relative error of inv_std is the same. */
static inline double norms_error(int cols) {
  const double deviation = cols < 8 ? 1 / 316.0 : 1 / sqrt(12.0);
  return (NORMS_LOW + 1) * norms_mean_error(cols) / deviation + 8 * (double)FLT_EPSILON;
}

/* weight and bias are below 2. */
static inline Tolerance norms_forward_tolerance(const int *size) {
  return tolerance_make(norms_error(size[1]), 2 * norms_error(size[1]));
}

/* dx = inv_std (g - mean of g - t mean of g t), with inv_std up to 2, t up to 6, and g t of the size 1.5. */
static inline Tolerance norms_dx_tolerance(const int *size) {
  return tolerance_make(8 * FLT_EPSILON, 16 * norms_mean_error(size[1]) + 64 * (double)FLT_EPSILON);
}

/* Sums over rows of dy and of dy t; of instance norm over the pixels, too. */
static inline Tolerance layer_norm_weight_tolerance(const int *size) { return tolerance_dot((size_t)size[0], 1.5); }
static inline Tolerance instance_norm_weight_tolerance(const int *size) {
  return tolerance_dot((size_t)(size[0] / size[LESSON_SIZES]) * (size_t)size[1], 1.5);
}

/* ---- lessons ---- */

/* The first shows faults best; a single element; around a warp, around what a warp and a block keep, and beyond; row
 * lengths that are a multiple of four and others; more rows than a block takes at once. */
static inline Lesson norms_lesson_make(const char *name, void (*call)(LessonLauncher, float *const *, const int *),
                                       LessonLauncher reference) {
  static const char *const shapes[] = {"6x33:channels=3",
                                       "1x1",
                                       "3x5",
                                       "132x3:channels=4",
                                       "2x31:channels=2",
                                       "9x128",
                                       "3x257",
                                       "10x772:channels=5",
                                       "2x1025",
                                       "35x260:channels=7",
                                       "1x2052",
                                       "1x4100",
                                       "2x4099"};
  Lesson lesson = lesson_make(name, "rc", call, reference);
  lesson_parameter(&lesson, "channels", 1, 1);
  lesson_derived(&lesson, 't', norms_two);
  lesson_derived(&lesson, 'k', norms_channels);
  lesson.shape_check = norms_shape_check;
  lesson.most.size[0] = lesson.most.size[1] = INT_MAX - 127; /* naive's blocks of 128 rows or columns */
  lesson.timed = lesson_shape_of(&lesson, "65536x1024:channels=64");
  lesson.counted = lesson_shape_of(&lesson, "64x512:channels=8");
  lesson_check_shapes(&lesson, shapes, sizeof shapes / sizeof *shapes);
  return lesson;
}

static inline Lesson norms_forward_lesson(const char *name, const char *letters,
                                          void (*call)(LessonLauncher, float *const *, const int *),
                                          LessonLauncher reference) {
  Lesson lesson = norms_lesson_make(name, call, reference);
  lesson_output(&lesson, "y", "rc");
  lesson_output(&lesson, "saved", "tr");
  lesson_input(&lesson, "x", "rc");
  lesson_range(&lesson, "x", NORMS_LOW, NORMS_LOW + 1);
  lesson_input(&lesson, "weight", letters);
  lesson_input(&lesson, "bias", letters);
  lesson.tolerance = norms_forward_tolerance;
  return lesson;
}

/* saved is an input like the others: the gradients do not ask whether it is what forward computes from x. */
static inline Lesson norms_backward_lesson(const char *name, const char *letters,
                                           void (*call)(LessonLauncher, float *const *, const int *),
                                           LessonLauncher reference, Tolerance (*weight_tolerance)(const int *),
                                           const NormsMethod *method) {
  Lesson lesson = norms_lesson_make(name, call, reference);
  lesson_output(&lesson, "dx", "rc");
  lesson_output(&lesson, "dweight", letters);
  lesson_output(&lesson, "dbias", letters);
  lesson_input(&lesson, "dy", "rc");
  lesson_input(&lesson, "x", "rc");
  lesson_input(&lesson, "weight", letters);
  lesson_input(&lesson, "saved", "tr");
  lesson.tolerance = norms_dx_tolerance;
  lesson_tolerance(&lesson, "dweight", weight_tolerance);
  lesson_tolerance(&lesson, "dbias", weight_tolerance);
  lesson.workspace = norms_workspace;
  lesson.method = method;
  return lesson;
}

static inline Lesson layer_norm_forward_lesson(void) {
  return norms_forward_lesson("norms", "c", layer_norm_forward_call, (LessonLauncher)layer_norm_forward_cpu<float>);
}

static inline void layer_norm_backward_reference(float *dx, float *dweight, float *dbias, const float *dy,
                                                 const float *x, const float *weight, const float *saved, int rows,
                                                 int cols, float *workspace) {
  (void)workspace;
  layer_norm_backward_cpu(dx, dweight, dbias, dy, x, weight, saved, rows, cols);
}

static inline Lesson layer_norm_backward_lesson(void) {
  return norms_backward_lesson("norms", "c", layer_norm_backward_call, (LessonLauncher)layer_norm_backward_reference,
                               layer_norm_weight_tolerance, &layer_norm_slices_method);
}

static inline Lesson instance_norm_forward_lesson(void) {
  return norms_forward_lesson("norms", "k", instance_norm_forward_call,
                              (LessonLauncher)instance_norm_forward_cpu<float>);
}

static inline void instance_norm_backward_reference(float *dx, float *dweight, float *dbias, const float *dy,
                                                    const float *x, const float *weight, const float *saved,
                                                    InstanceNormShape shape, float *workspace) {
  (void)workspace;
  instance_norm_backward_cpu(dx, dweight, dbias, dy, x, weight, saved, shape);
}

static inline Lesson instance_norm_backward_lesson(void) {
  return norms_backward_lesson("norms", "k", instance_norm_backward_call,
                               (LessonLauncher)instance_norm_backward_reference, instance_norm_weight_tolerance,
                               &instance_norm_sums_method);
}

#endif /* PHASE3_CNN_NORMS_LESSON_CUH */
