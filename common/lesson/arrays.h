/* arrays.h - the arrays of a lesson (lesson.h) on one shape: their elements, seeded random inputs and poisoned
 * outputs on the host, and copies of them on the GPU. */
#ifndef COMMON_LESSON_ARRAYS_H
#define COMMON_LESSON_ARRAYS_H

#include "common/device.h"
#include "common/guard.h"
#include "common/lesson/lesson.h"
#include "common/philox.h"

/* A bfloat16 is the upper half of a float; rounded to nearest, halves to even. */
static inline uint16_t lesson_to_bfloat16(float x) {
  uint32_t bits = compare_bits(&x);
  if (isnan(x)) return 0x7FFF;
  return (uint16_t)((bits + 0x7FFF + (bits >> 16 & 1)) >> 16);
}

/* What a LESSON_INDEX is before it is written. */
enum { LESSON_NO_INDEX = 255 };

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
    const uint8_t byte = ((const uint8_t *)from)[element == LESSON_BYTE || element == LESSON_INDEX ? i : 0];
    if (element == LESSON_BYTE || (element == LESSON_INDEX && byte != LESSON_NO_INDEX)) {
      to[i] = byte;
      continue;
    }
    if (element == LESSON_INDEX) {
      compare_poison(&to[i], 1);
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
  if (element == LESSON_INDEX) {
    memset(x, LESSON_NO_INDEX, n);
    return;
  }
  if (element != LESSON_BFLOAT16) {
    compare_poison((float *)x, n);
    return;
  }
  for (size_t i = 0; i < n; i++) ((uint16_t *)x)[i] = COMPARE_POISON >> 16;
}

/* More than an emulated GPU gets through. */
#define LESSON_EMULATED_BYTES 1073741824.0

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
    if (classes != 0 && array->element == LESSON_INDEX)
      ((uint8_t *)x)[i] = (uint8_t)(word * classes >> 32);
    else if (classes != 0)
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
  if (lesson->workspace != NULL && lesson->arrays == LESSON_ARRAYS)
    die("lesson %s: at most %d arrays beside a workspace", lesson->name, LESSON_ARRAYS - 1);
  if (lesson->workspace != NULL) host->array[lesson->arrays] = NULL; /* the reference has none */
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

/* A workspace of a version, behind its arrays. Guarded: between bands, and full of NaN. Otherwise as it comes: the
 * inspector notices who reads what was never written. */
static inline void lesson_workspace_open(const Lesson *lesson, const LessonVersion *version, const int *size,
                                         int guarded, float *array[LESSON_ARRAYS]) {
  const size_t bytes = lesson_workspace_bytes(lesson, version, size);
  if (lesson->workspace == NULL) return;
  array[lesson->arrays] = NULL;
  if (bytes == 0) return;
  if (guarded)
    array[lesson->arrays] = (float *)guard_alloc_elements(DEVICE_GPU, bytes, 1);
  else
    CUDA_CHECK(cudaMalloc((void **)&array[lesson->arrays], bytes));
}

static inline void lesson_workspace_close(const Lesson *lesson, int guarded, float *const array[LESSON_ARRAYS]) {
  if (lesson->workspace == NULL || array[lesson->arrays] == NULL) return;
  if (guarded)
    guard_free(DEVICE_GPU, array[lesson->arrays]);
  else
    device_free(DEVICE_GPU, array[lesson->arrays]);
}

/* -1, and why, where a version does not take a shape, or where its workspace does not fit beside the arrays: both are
 * there twice, for two runs that are compared. */
static inline int lesson_refuses(const Lesson *lesson, const LessonVersion *version, const LessonShape *shape,
                                 Error *err) {
  if (lesson_version_fits(lesson, version, shape->size, err) != 0) return -1;
  const double workspace = (double)lesson_workspace_bytes(lesson, version, shape->size), gib = 1073741824.0;
  double bytes = 0;
  if (workspace == 0) return 0;
  for (int a = 0; a < lesson->arrays; a++) bytes += (double)lesson_array_bytes(lesson, &lesson->array[a], shape->size);
#ifdef SIMT_REWRITTEN
  const double memory = LESSON_EMULATED_BYTES;
#else
  const double memory = device_memory(DEVICE_GPU);
#endif
  char text[LESSON_TEXT];
  if (2 * (bytes + workspace) <= memory) return 0;
  return error_set(err,
                   "on %s it needs a workspace of %.2f GiB beside arrays of %.2f GiB, each twice, to compare two runs; "
                   "the memory is %.2f GiB",
                   lesson_shape_text(lesson, shape, text), workspace / gib, bytes / gib, memory / gib);
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

#endif /* COMMON_LESSON_ARRAYS_H */
