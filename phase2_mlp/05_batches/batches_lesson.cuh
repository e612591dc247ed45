/* batches_lesson.cuh - arrays, sizes and references of a batch and of an order: for the program, its test and the
 * exercises. The tolerance is zero: the results have the same bits as the loops on the CPU.
 *
 * Shapes are batch x pixels x images, "bpn", so that both have the same sizes: an order is of n images. */
#ifndef PHASE2_MLP_BATCHES_LESSON_CUH
#define PHASE2_MLP_BATCHES_LESSON_CUH

#include "common/lesson/lesson.h"
#include "phase2_mlp/05_batches/batches.cuh"

/* x (batch,pixels_per_image), labels (batch); pixels (images,pixels_per_image), all_labels (images), order (batch) */
typedef void BatchGatherLauncher(float *x, int *labels, const uint8_t *pixels, const uint8_t *all_labels,
                                 const uint32_t *order, int batch, int pixels_per_image, float mean, float stddev);

/* order (count) */
typedef void BatchOrderLauncher(uint32_t *order, uint32_t count, uint64_t seed, uint32_t epoch);

#define BATCHES_LESSON_SEED 0x0123456789abcdefu
enum { BATCHES_LESSON_EPOCH = 7 };

static inline void batch_gather_call(LessonLauncher launch, float *const *array, const int *size) {
  ((BatchGatherLauncher *)launch)(array[0], (int *)array[1], (const uint8_t *)array[2], (const uint8_t *)array[3],
                                  (const uint32_t *)array[4], size[0], size[1], 0.1307f, 0.3081f);
}
static inline void batch_order_call(LessonLauncher launch, float *const *array, const int *size) {
  ((BatchOrderLauncher *)launch)((uint32_t *)array[0], (uint32_t)size[2], BATCHES_LESSON_SEED, BATCHES_LESSON_EPOCH);
}

static inline LessonVersion batch_gather_version(const char *name, BatchGatherLauncher *launch, const char *limit) {
  return lesson_version(name, (LessonLauncher)launch, limit);
}
static inline LessonVersion batch_order_version(const char *name, BatchOrderLauncher *launch, const char *limit) {
  return lesson_version(name, (LessonLauncher)launch, limit);
}

/* Sorting with scratch that grows when more is asked for. */
static inline void batches_sort_lesson(uint32_t *order, uint32_t count, uint64_t seed, uint32_t epoch) {
  static uint32_t *scratch;
  static uint32_t size;
  if (count > size) {
    CUDA_CHECK(cudaFree(scratch));
    CUDA_CHECK(cudaMalloc((void **)&scratch, batches_sort_scratch(count) * sizeof *scratch));
    size = count;
  }
  batches_sort_gpu(order, scratch, count, seed, epoch);
}

static inline void batches_lesson_shapes(Lesson *lesson) {
  lesson->timed = lesson_shape(lesson, 60000, 784, 60000); /* all of MNIST in one batch */
  lesson->counted = lesson_shape(lesson, 64, 256, 8192);
  /* one of each; widths that no load of four fits, and that it does; more than a warp, than a block; a batch larger
   * than the set; powers of two and their neighbours, where the cipher's halves change */
  const int shapes[][3] = {{5, 12, 7},    {1, 1, 1},       {1, 4, 2},     {3, 31, 3},    {5, 33, 4},     {37, 3, 5},
                           {2, 127, 15},  {127, 4, 16},    {31, 128, 17}, {64, 784, 1},  {33, 132, 100}, {9, 260, 31},
                           {7, 1000, 33}, {70, 1021, 127}, {6, 8, 1025},  {12, 60, 4099}};
  for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
    lesson_check_shape(lesson, lesson_shape(lesson, shapes[i][0], shapes[i][1], shapes[i][2]));
}

/* A batch's own images, not all of them. */
static inline double batch_gather_bytes(const int *size) {
  return (double)size[0] * size[1] * (sizeof(uint8_t) + sizeof(float)) +
         (double)size[0] * (sizeof(uint32_t) + sizeof(uint8_t) + sizeof(int));
}

static inline Lesson batch_gather_lesson(void) {
  Lesson lesson = lesson_make("batches", "bpn", batch_gather_call, (LessonLauncher)batch_gather_cpu);
  lesson_output(&lesson, "x", "bp");
  lesson_output(&lesson, "labels", "b");
  lesson_element(&lesson, "labels", LESSON_INT);
  lesson_input(&lesson, "pixels", "np");
  lesson_element(&lesson, "pixels", LESSON_BYTE);
  lesson_input(&lesson, "all_labels", "n");
  lesson_element(&lesson, "all_labels", LESSON_BYTE);
  lesson_labels(&lesson, "order", "b", 'n');
  lesson.bytes = batch_gather_bytes;
  batches_lesson_shapes(&lesson);
  return lesson;
}

/* An order of n images: as `reference` makes it. */
static inline Lesson batch_order_lesson(BatchOrderLauncher *reference) {
  Lesson lesson = lesson_make("batches", "bpn", batch_order_call, (LessonLauncher)reference);
  lesson_output(&lesson, "order", "n");
  lesson_element(&lesson, "order", LESSON_INT);
  batches_lesson_shapes(&lesson);
  return lesson;
}

#endif /* PHASE2_MLP_BATCHES_LESSON_CUH */
