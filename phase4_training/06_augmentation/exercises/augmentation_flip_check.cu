/* Checks the exercise of augmentation.cuh (learn/check.h): half of the images are mirrored. */
#include "phase4_training/06_augmentation/augmentation_lesson.cuh"

#include "learn/check.h"

static inline Lesson augmentation_flip_lesson(void) {
  Lesson lesson = augmentation_lesson_alone<AUGMENTATION_FLIP>();
  lesson_alternative(&lesson, "no image were flipped", augmentation_slip_call<AUGMENTATION_FLIP, SLIP_NEVER_FLIPPED>);
  lesson_alternative(&lesson, "every image were flipped",
                     augmentation_slip_call<AUGMENTATION_FLIP, SLIP_ALWAYS_FLIPPED>);
  lesson_alternative(&lesson, "top and bottom were exchanged, not left and right",
                     augmentation_slip_call<AUGMENTATION_FLIP, SLIP_UPSIDE_DOWN>);
  return lesson;
}

CHECK_MAIN(augmentation_flip_lesson())
