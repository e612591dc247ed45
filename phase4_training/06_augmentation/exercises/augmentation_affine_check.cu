/* Checks the exercise of augmentation.cuh (learn/check.h): rotated, scaled and shifted images. */
#include "phase4_training/06_augmentation/augmentation_lesson.cuh"

#include "learn/check.h"

static inline Lesson augmentation_affine_lesson(void) {
  Lesson lesson = augmentation_lesson_alone<AUGMENTATION_AFFINE>();
  lesson_alternative(&lesson, "the upper left pixel counted alone",
                     augmentation_slip_call<AUGMENTATION_AFFINE, SLIP_NEAREST>);
  lesson_alternative(&lesson, "left and right pixels had each other's weights",
                     augmentation_slip_call<AUGMENTATION_AFFINE, SLIP_MIRRORED>);
  lesson_alternative(&lesson, "the pixels at the border went on beyond it",
                     augmentation_slip_call<AUGMENTATION_AFFINE, SLIP_EDGE>);
  lesson_alternative(&lesson, "fractions were cut off, not rounded",
                     augmentation_slip_call<AUGMENTATION_AFFINE, SLIP_CUT_OFF>);
  return lesson;
}

CHECK_MAIN(augmentation_affine_lesson())
