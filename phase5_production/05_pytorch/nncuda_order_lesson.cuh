/* nncuda_order_lesson.cuh - arrays, sizes and reference of nncuda_order.cuh: for the program and the exercise. */
#ifndef PHASE5_PRODUCTION_NNCUDA_ORDER_LESSON_CUH
#define PHASE5_PRODUCTION_NNCUDA_ORDER_LESSON_CUH

#include <float.h>

#include "common/device.h"
#include "common/lesson/lesson.h"
#include "phase5_production/05_pytorch/nncuda_order.cuh"

/* Stands for order_cpu() where a launcher is expected. */
static inline void order_lesson_reference(const Order *o) { (void)o; }

static inline void order_call(LessonLauncher launch, float *const *array, const int *size) {
  if (launch == (LessonLauncher)order_lesson_reference)
    order_cpu(array[0], array[1], size[0] * size[1]);
  else
    order_run(array[0], array[1], size[0], size[1], (OrderVersion *)launch);
}

/* y and out are rounded, each by half an epsilon of values that differ by little, on one device in one step. */
static inline Tolerance order_tolerance(const int *size) {
  (void)size;
  return tolerance_make(2 * FLT_EPSILON, 0);
}

static inline Lesson order_lesson(void) {
  Lesson lesson = lesson_make("order", "pn", order_call, (LessonLauncher)order_lesson_reference);
  lesson_output(&lesson, "out", "pn");
  lesson_input(&lesson, "in", "pn");
  lesson_range(&lesson, "in", 2, 9);
  lesson.tolerance = order_tolerance;
  lesson.counted = lesson_shape(&lesson, ORDER_PROGRAMS, 512);
  lesson_check_shape(&lesson, lesson_shape(&lesson, 3, 31));
  lesson_check_shape(&lesson, lesson_shape(&lesson, 1, 1));
  lesson_check_shape(&lesson, lesson_shape(&lesson, ORDER_PROGRAMS, 1027));
  return lesson;
}

#endif /* PHASE5_PRODUCTION_NNCUDA_ORDER_LESSON_CUH */
