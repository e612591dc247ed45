/* input_pipeline_lesson.cuh - arrays, sizes and reference of the versions of input_pipeline.cuh: for its test and the
 * exercises. The work on a batch is to normalise it. The results of all batches are kept, so that a buffer that was
 * overwritten too early, or read too early, shows, with its batch. */
#ifndef PHASE2_MLP_INPUT_PIPELINE_LESSON_CUH
#define PHASE2_MLP_INPUT_PIPELINE_LESSON_CUH

#include "common/lesson/lesson.h"
#include "phase2_mlp/05_batches/batches.cuh"
#include "phase2_mlp/06_streams/input_pipeline.cuh"

#define FEED_LESSON_MEAN 0.1307f
#define FEED_LESSON_STDDEV 0.3081f

typedef struct FeedLesson {
  int images, pixels;        /* of a batch; of an image */
  float *y;                  /* (batches, images, pixels) */
  int *labels;               /* (images), not checked */
  const uint8_t *all_labels; /* (images) */
  const uint32_t *order;     /* (images): 0, 1, .. */
} FeedLesson;

static inline void feed_lesson_work(const uint8_t *images, int batch, void *context) {
  const FeedLesson *lesson = (const FeedLesson *)context;
  batch_gather_gpu(lesson->y + (size_t)batch * lesson->images * lesson->pixels, lesson->labels, images,
                   lesson->all_labels, lesson->order, lesson->images, lesson->pixels, FEED_LESSON_MEAN,
                   FEED_LESSON_STDDEV);
}
static inline void feed_lesson_work_cpu(const uint8_t *images, int batch, void *context) {
  const FeedLesson *lesson = (const FeedLesson *)context;
  batch_gather_cpu(lesson->y + (size_t)batch * lesson->images * lesson->pixels, lesson->labels, images,
                   lesson->all_labels, lesson->order, lesson->images, lesson->pixels, FEED_LESSON_MEAN,
                   FEED_LESSON_STDDEV);
}

/* Arrays for one device, of `images` elements each. */
static inline FeedLesson feed_lesson_open(Device device, float *y, int images, int pixels) {
  FeedLesson lesson;
  uint32_t *order = (uint32_t *)xmalloc((size_t)images * sizeof *order);
  for (int i = 0; i < images; i++) order[i] = (uint32_t)i;
  lesson.images = images;
  lesson.pixels = pixels;
  lesson.y = y;
  lesson.labels = (int *)device_alloc(device, (size_t)images * sizeof *lesson.labels);
  lesson.all_labels = (uint8_t *)device_alloc(device, (size_t)images);
  lesson.order = (uint32_t *)device_alloc(device, (size_t)images * sizeof *order);
  device_upload(device, (void *)lesson.order, order, (size_t)images * sizeof *order);
  free(order);
  return lesson;
}
static inline void feed_lesson_close(Device device, FeedLesson *lesson) {
  device_free(device, lesson->labels);
  device_free(device, (void *)lesson->all_labels);
  device_free(device, (void *)lesson->order);
}

/* Stands for feed_cpu() where a launcher is expected: it gets host pointers. */
static inline void feed_lesson_reference(Feed *feed) { (void)feed; }

/* y (batches, images, pixels); pixels as floats from 0 to 255 and a fraction, which become the bytes of the images, on
 * the host, where a feed begins. */
static inline void feed_call(LessonLauncher launch, float *const *array, const int *size) {
  const int on_gpu = launch != (LessonLauncher)feed_lesson_reference;
  const size_t bytes = (size_t)size[1] * size[2], all = (size_t)size[0] * bytes;
  const Device device = on_gpu ? DEVICE_GPU : DEVICE_CPU;
  float *values = (float *)xmalloc(all * sizeof *values);
  uint8_t *images = (uint8_t *)xmalloc(all);
  device_download(device, values, array[1], all * sizeof *values);
  for (size_t i = 0; i < all; i++) images[i] = (uint8_t)values[i];
  FeedLesson lesson = feed_lesson_open(device, array[0], size[1], size[2]);
  if (on_gpu) {
    Feed feed;
    Timeline timeline = feed_timeline("");
    feed_open(&feed, images, size[0], bytes, feed_lesson_work, &lesson);
    feed_forget(&feed);
    feed_run(&feed, (FeedVersion *)launch, &timeline);
    timeline_free(&timeline);
    feed_close(&feed);
  } else {
    feed_cpu(images, size[0], bytes, feed_lesson_work_cpu, &lesson);
  }
  feed_lesson_close(device, &lesson);
  free(images);
  free(values);
}

static inline LessonVersion feed_version(const char *name, FeedVersion *version, const char *limit) {
  return lesson_version(name, (LessonLauncher)version, limit);
}

/* Exact: the same two divisions and a difference everywhere. */
static inline Lesson feed_lesson(void) {
  Lesson lesson = lesson_make("feed", "nbp", feed_call, (LessonLauncher)feed_lesson_reference);
  lesson_output(&lesson, "y", "nbp");
  lesson_input(&lesson, "pixels", "nbp");
  lesson_range(&lesson, "pixels", 0, 256);
  lesson.timed = lesson_shape(&lesson, 16, 512, 784);
  lesson.counted = lesson_shape(&lesson, 8, 4, 64);
  /* one batch, both buffers just used, and again; more batches than a stream is ahead */
  const int shapes[][3] = {{3, 3, 33}, {1, 1, 1}, {2, 1, 31}, {4, 2, 127}, {5, 1, 784}, {9, 7, 64}, {24, 2, 33}};
  for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
    lesson_check_shape(&lesson, lesson_shape(&lesson, shapes[i][0], shapes[i][1], shapes[i][2]));
  return lesson;
}

#endif /* PHASE2_MLP_INPUT_PIPELINE_LESSON_CUH */
