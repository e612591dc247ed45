/* mlp_one_kernel_lesson.cuh - arrays, sizes, reference and tolerance of the versions of mlp_one_kernel.cuh: for their
 * test and the exercises. An epoch on n images of i pixels, with h hidden units, c classes, b images per step. */
#ifndef PHASE2_MLP_MLP_ONE_KERNEL_LESSON_CUH
#define PHASE2_MLP_MLP_ONE_KERNEL_LESSON_CUH

#include "common/device.h"
#include "common/lesson/lesson.h"
#include "phase2_mlp/08_mlp_one_kernel/mlp_one_kernel.cuh"

typedef void MlpLauncher(MlpRun *run);
typedef void MlpReference(const MlpEpoch *epoch);

/* For the exercise on the counter: the first step is given, the others ask. */
static inline void mlp_epoch_first_given(MlpRun *run) {
  MlpCounter second = MlpCounter();
  second.next = run->epoch.batch;
  mlp_capture_step(run);
  CUDA_CHECK(cudaMemcpyAsync(run->counter, &second, sizeof second, cudaMemcpyHostToDevice, run->stream));
  mlp_launch_step(run, 0);
  for (int position = run->epoch.batch; position < run->epoch.count; position += run->epoch.batch)
    CUDA_CHECK(cudaGraphLaunch(run->graph, run->stream));
}

/* The labels become bytes; the weights one flat array, and that four again. */
static inline void mlp_lesson_call(LessonLauncher launch, float *const *array, const int *size) {
  const Device device = launch == (LessonLauncher)mlp_epoch_cpu ? DEVICE_CPU : DEVICE_GPU;
  const size_t n = size[0], i = size[1], h = size[2], c = size[3];
  const size_t part[4] = {h * i, h, c * h, c};
  MlpEpoch e = MlpEpoch();
  e.count = size[0];
  e.inputs = size[1];
  e.hidden = size[2];
  e.classes = size[3];
  e.batch = size[4];
  e.mean = 0.5f;
  e.stddev = 0.3f;
  e.lr = 0.1f;
  e.momentum = 0.9f;
  e.losses = array[0];
  e.images = (const uint8_t *)array[5];
  int *ints = (int *)xmalloc(n * sizeof *ints);
  uint8_t *bytes = (uint8_t *)xmalloc(n), *labels = (uint8_t *)device_alloc(device, n);
  device_download(device, ints, array[6], n * sizeof *ints);
  for (size_t j = 0; j < n; j++) bytes[j] = (uint8_t)ints[j];
  device_upload(device, labels, bytes, n);
  e.labels = labels;
  e.order = (const uint32_t *)array[7];
  const size_t count = mlp_parameter_count(&e);
  e.parameters = (float *)device_alloc(device, count * sizeof(float));
  e.velocity = (float *)device_alloc(device, count * sizeof(float));
  float *at = e.parameters;
  for (int a = 0; a < 4; at += part[a++]) device_copy(device, at, array[8 + a], part[a] * sizeof(float));
  device_synchronize(device);
  if (device == DEVICE_CPU) {
    ((MlpReference *)launch)(&e);
  } else {
    MlpRun *run = (MlpRun *)xmalloc(sizeof *run);
    mlp_open(run, &e);
    ((MlpLauncher *)launch)(run);
    device_synchronize(device);
    mlp_close(run);
    free(run);
  }
  at = e.parameters;
  for (int a = 0; a < 4; at += part[a++]) device_copy(device, array[1 + a], at, part[a] * sizeof(float));
  device_synchronize(device);
  device_free(device, e.parameters);
  device_free(device, e.velocity);
  device_free(device, labels);
  free(ints);
  free(bytes);
}

static inline LessonVersion mlp_version(const char *name, MlpLauncher *launch, const char *limit) {
  return lesson_version(name, (LessonLauncher)launch, limit);
}

/* Sums of up to i, h or b products of numbers near 1, in steps that build on each other. */
static inline Tolerance mlp_tolerance(const int *size) {
  (void)size;
  return tolerance_make(1e-4, 1e-4);
}

static inline Lesson mlp_lesson(void) {
  Lesson lesson = lesson_make("mlp_one_kernel", "nihcb", mlp_lesson_call, (LessonLauncher)mlp_epoch_cpu);
  lesson_output(&lesson, "losses", "n");
  lesson_steps(&lesson, "losses", 'b');
  lesson_output(&lesson, "new w1", "hi");
  lesson_output(&lesson, "new b1", "h");
  lesson_output(&lesson, "new w2", "ch");
  lesson_output(&lesson, "new b2", "c");
  lesson_input(&lesson, "images", "ni");
  lesson_element(&lesson, "images", LESSON_BYTE);
  lesson_labels(&lesson, "labels", "n", 'c');
  lesson_labels(&lesson, "order", "n", 'n');
  lesson_input(&lesson, "w1", "hi");
  lesson_range(&lesson, "w1", -0.1f, 0.15f);
  lesson_input(&lesson, "b1", "h");
  lesson_input(&lesson, "w2", "ch");
  lesson_range(&lesson, "w2", -0.3f, 0.2f);
  lesson_input(&lesson, "b2", "c");
  lesson.tolerance = mlp_tolerance;
  /* images, inputs, hidden, classes, batch: widths of 1, 3 and 127, a last batch of less, a batch larger than the set,
   * tiles full and not */
  lesson_check_shape(&lesson, lesson_shape(&lesson, 7, 3, 5, 3, 7)); /* shows faults best: one step */
  lesson_check_shape(&lesson, lesson_shape(&lesson, 7, 3, 5, 3, 2));
  lesson_check_shape(&lesson, lesson_shape(&lesson, 1, 1, 1, 1, 1));
  lesson_check_shape(&lesson, lesson_shape(&lesson, 10, 127, 9, 10, 16));
  lesson_check_shape(&lesson, lesson_shape(&lesson, 70, 33, 17, 16, 33));
  lesson_check_shape(&lesson, lesson_shape(&lesson, 66, 112, 24, 10, 64));
  lesson_check_shape(&lesson, lesson_shape(&lesson, 5, 240, 3, 2, 3));
  lesson.timed = lesson_shape(&lesson, 6400, 784, 128, 10, 64);
  lesson.counted = lesson_shape(&lesson, 128, 128, 16, 10, 64);
  return lesson;
}

#endif /* PHASE2_MLP_MLP_ONE_KERNEL_LESSON_CUH */
