/* one_step_lesson.cuh - arrays, shapes, references and tolerances of conv_pool.cuh, forward and backward, and of
 * linear_chain.cuh: for the exercises. */
#ifndef PHASE3_CNN_ONE_STEP_LESSON_CUH
#define PHASE3_CNN_ONE_STEP_LESSON_CUH

#include <float.h>

#include "common/device.h"
#include "common/lesson/lesson.h"
#include "phase3_cnn/16_one_step/conv_pool.cuh"
#include "phase3_cnn/16_one_step/linear_chain.cuh"

/* ------------------------------------------------------------------------------------- convolution, ReLU, pooling */

typedef void ConvPoolForward(float *y, uint8_t *argmax, const float *x, const float *w, const float *bias, ConvPool s);
typedef void ConvPoolBackward(float *dx, float *dw, float *dbias, const float *dy, const uint8_t *argmax,
                              const float *x, const float *w, ConvPool s, float *workspace);

enum { CONV_POOL_CHOICES = 5 }; /* of argmax, as an int: four places, and nothing */

/* size: n c h w k s, and the padding. */
static inline ConvPool conv_pool_lesson_shape(const int *size) {
  return conv_pool_make(
      conv2d_shape(size[0], size[1], size[2], size[3], size[4], size[5], size[5], 1, size[LESSON_SIZES]));
}

static inline int conv_pool_lesson_p(const int *size) { return pool2d_out_h(conv_pool_lesson_shape(size).pool); }
static inline int conv_pool_lesson_q(const int *size) { return pool2d_out_w(conv_pool_lesson_shape(size).pool); }
static inline int conv_pool_lesson_rows(const int *size) { return size[5]; } /* of a filter: as many as columns */
static inline int conv_pool_lesson_choices(const int *size) {
  (void)size;
  return CONV_POOL_CHOICES;
}

static inline int conv_pool_lesson_check(const int *size, Error *err) {
  const ConvPool s = conv_pool_lesson_shape(size);
  if (conv2d_shape_check(s.conv, err) != 0 || max_pool2d_shape_check(s.pool, err) != 0) return -1;
  return conv_pool_fits(s) ? 0 : error_set(err, "filters of 3 x 3 or 5 x 5 and images that fit into 48 KiB are taken");
}

static inline size_t conv_pool_lesson_outputs(ConvPool s) {
  return (size_t)s.pool.n * s.pool.c * pool2d_out_h(s.pool) * pool2d_out_w(s.pool);
}

/* argmax as ints from 0 to 4, and back, on the host. */
static inline int conv_pool_lesson_int(uint8_t at) { return at == POOL2D_NOTHING ? CONV_POOL_CHOICES - 1 : at; }
static inline uint8_t conv_pool_lesson_byte(int at) {
  return (uint8_t)(at == CONV_POOL_CHOICES - 1 ? POOL2D_NOTHING : at);
}

/* The references take their workspace from the heap. */
static inline void conv_pool_forward_reference(float *y, uint8_t *argmax, const float *x, const float *w,
                                               const float *bias, ConvPool s) {
  float *workspace = (float *)xmalloc(conv2d_y_count(s.conv) * sizeof *workspace);
  conv_pool_forward_cpu(y, argmax, x, w, bias, s, workspace);
  free(workspace);
}

static inline void conv_pool_backward_reference(float *dx, float *dw, float *dbias, const float *dy,
                                                const uint8_t *argmax, const float *x, const float *w, ConvPool s,
                                                float *unused) {
  (void)unused;
  float *workspace = (float *)xmalloc(conv2d_y_count(s.conv) * sizeof *workspace);
  conv_pool_backward_cpu(dx, dw, dbias, dy, argmax, x, w, s, workspace);
  free(workspace);
}

static inline void conv_pool_lesson_forward_call(LessonLauncher launch, float *const *array, const int *size) {
  const Device device = launch == (LessonLauncher)conv_pool_forward_reference ? DEVICE_CPU : DEVICE_GPU;
  const ConvPool s = conv_pool_lesson_shape(size);
  const size_t n = conv_pool_lesson_outputs(s);
  uint8_t *argmax = (uint8_t *)device_alloc(device, n), *bytes = (uint8_t *)xmalloc(n);
  int *ints = (int *)xmalloc(n * sizeof *ints);
  ((ConvPoolForward *)launch)(array[0], argmax, array[2], array[3], array[4], s);
  device_synchronize(device);
  device_download(device, bytes, argmax, n);
  for (size_t i = 0; i < n; i++) ints[i] = conv_pool_lesson_int(bytes[i]);
  device_upload(device, array[1], ints, n * sizeof *ints);
  device_free(device, argmax);
  free(bytes);
  free(ints);
}

static inline void conv_pool_lesson_backward_call(LessonLauncher launch, float *const *array, const int *size) {
  const Device device = launch == (LessonLauncher)conv_pool_backward_reference ? DEVICE_CPU : DEVICE_GPU;
  const ConvPool s = conv_pool_lesson_shape(size);
  const size_t n = conv_pool_lesson_outputs(s);
  uint8_t *argmax = (uint8_t *)device_alloc(device, n), *bytes = (uint8_t *)xmalloc(n);
  float *workspace = (float *)device_alloc(device, conv_pool_workspace_floats(s) * sizeof(float));
  int *ints = (int *)xmalloc(n * sizeof *ints);
  device_download(device, ints, array[4], n * sizeof *ints);
  for (size_t i = 0; i < n; i++) bytes[i] = conv_pool_lesson_byte(ints[i]);
  device_upload(device, argmax, bytes, n);
  ((ConvPoolBackward *)launch)(array[0], array[1], array[2], array[3], argmax, array[5], array[6], s, workspace);
  device_synchronize(device);
  device_free(device, argmax);
  device_free(device, workspace);
  free(bytes);
  free(ints);
}

/* Sums of c s^2 products, or of as many as there are filters or windows, of numbers up to 2. */
static inline Tolerance conv_pool_lesson_tolerance(const int *size) {
  const ConvPool s = conv_pool_lesson_shape(size);
  const double windows = (double)conv_pool_lesson_outputs(s) / s.conv.k, area = (double)s.conv.s * s.conv.s;
  const double products = fmax(windows + 8, area * fmax(s.conv.c, s.conv.k));
  return tolerance_make(1e-5, 4 * products * FLT_EPSILON);
}

static inline Lesson conv_pool_lesson_make(void (*call)(LessonLauncher, float *const *, const int *),
                                           LessonLauncher reference) {
  Lesson lesson = lesson_make("one_step", "nchwks", call, reference);
  lesson_parameter(&lesson, "padding", 1, 0);
  lesson_derived(&lesson, 'p', conv_pool_lesson_p);
  lesson_derived(&lesson, 'q', conv_pool_lesson_q);
  lesson_derived(&lesson, 'r', conv_pool_lesson_rows);
  lesson_derived(&lesson, 'm', conv_pool_lesson_choices);
  lesson.shape_check = conv_pool_lesson_check;
  lesson.tolerance = conv_pool_lesson_tolerance;
  /* The first shows faults best. Splits of the images; odd sizes, whose last row pooling leaves out; one window, one
   * channel, one filter; several parts of a sum. */
  static const char *const shapes[] = {"3x2x9x12x5x3:padding=1", "70x1x6x5x1x3:padding=1", "1x1x4x4x1x3",
                                       "2x6x14x14x16x5", "2x1x11x9x3x5:padding=2"};
  lesson_check_shapes(&lesson, shapes, sizeof shapes / sizeof *shapes);
  lesson.timed = lesson_shape_of(&lesson, "64x6x14x14x16x5");
  lesson.counted = lesson_shape_of(&lesson, "2x6x14x14x16x5");
  return lesson;
}

static inline Lesson conv_pool_forward_lesson(void) {
  Lesson lesson = conv_pool_lesson_make(conv_pool_lesson_forward_call, (LessonLauncher)conv_pool_forward_reference);
  lesson_output(&lesson, "y", "nkpq");
  lesson_output(&lesson, "argmax", "nkpq");
  lesson_element(&lesson, "argmax", LESSON_INT);
  lesson_tolerance(&lesson, "argmax", lesson_exact);
  lesson_input(&lesson, "x", "nchw");
  lesson_range(&lesson, "x", -2, 1); /* about half of the sums are below 0 */
  lesson_input(&lesson, "w", "kcrs");
  lesson_range(&lesson, "w", -1, 1);
  lesson_input(&lesson, "bias", "k");
  return lesson;
}

static inline Lesson conv_pool_backward_lesson(void) {
  Lesson lesson = conv_pool_lesson_make(conv_pool_lesson_backward_call, (LessonLauncher)conv_pool_backward_reference);
  lesson_output(&lesson, "dx", "nchw");
  lesson_output(&lesson, "dw", "kcrs");
  lesson_output(&lesson, "dbias", "k");
  lesson_input(&lesson, "dy", "nkpq");
  lesson_labels(&lesson, "argmax", "nkpq", 'm');
  lesson_input(&lesson, "x", "nchw");
  lesson_input(&lesson, "w", "kcrs");
  return lesson;
}

/* ------------------------------------------------------------------------------------------------ a chain of layers */

typedef void ChainForward(float *y, float *hidden, const float *x, LinearChain s);

static inline void chain_lesson_call(LessonLauncher launch, float *const *array, const int *size) {
  const LinearChain s = {
      size[0], 2, {size[1], size[2], size[3]}, {array[3], array[5], NULL}, {array[4], array[6], NULL}};
  ((ChainForward *)launch)(array[0], array[1], array[2], s);
}

static inline int chain_lesson_check(const int *size, Error *err) {
  const LinearChain s = {size[0], 2, {size[1], size[2], size[3]}, {NULL}, {NULL}};
  if (chain_fits(&s)) return 0;
  return error_set(err, "inputs and hidden numbers are multiples of 4, up to %d", CHAIN_WIDTH);
}

static inline Tolerance chain_lesson_tolerance(const int *size) {
  return tolerance_make(1e-5, 16.0 * (size[1] + size[2]) * FLT_EPSILON);
}

/* sizes: samples, inputs, hidden numbers, outputs */
static inline Lesson chain_forward_lesson(void) {
  Lesson lesson = lesson_make("one_step", "bihc", chain_lesson_call, (LessonLauncher)chain_forward_cpu);
  lesson_output(&lesson, "logits", "bc");
  lesson_output(&lesson, "hidden", "bh");
  lesson_input(&lesson, "x", "bi");
  lesson_input(&lesson, "w1", "hi");
  lesson_range(&lesson, "w1", -0.2f, 0.15f);
  lesson_input(&lesson, "b1", "h");
  lesson_input(&lesson, "w2", "ch");
  lesson_range(&lesson, "w2", -0.3f, 0.2f);
  lesson_input(&lesson, "b2", "c");
  lesson.shape_check = chain_lesson_check;
  lesson.tolerance = chain_lesson_tolerance;
  lesson_check_shape(&lesson, lesson_shape(&lesson, 3, 132, 8, 5)); /* more inputs than a warp takes at a time */
  lesson_check_shape(&lesson, lesson_shape(&lesson, 2, 4, 4, 1));
  lesson_check_shape(&lesson, lesson_shape(&lesson, 1, 400, 120, 10));
  lesson_check_shape(&lesson, lesson_shape(&lesson, 5, 36, 132, 33));
  lesson.timed = lesson_shape(&lesson, 64, 400, 120, 10);
  lesson.counted = lesson_shape(&lesson, 2, 256, 64, 8);
  return lesson;
}

#endif /* PHASE3_CNN_ONE_STEP_LESSON_CUH */
