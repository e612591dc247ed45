/* Checks the exercise of augmentation.cuh (learn/check.h): brightness, contrast and saturation. */
#include "phase4_training/06_augmentation/augmentation_lesson.cuh"

#include "learn/check.h"

static inline Lesson augmentation_colour_lesson(void) {
  Lesson lesson = augmentation_lesson_alone<AUGMENTATION_COLOUR>();
  lesson_alternative(&lesson, "fractions were cut off, not rounded",
                     augmentation_slip_call<AUGMENTATION_COLOUR, SLIP_CUT_OFF>);
  lesson_alternative(&lesson, "the pixel were its own grey", augmentation_slip_call<AUGMENTATION_COLOUR, SLIP_OWN>);
  lesson_alternative(&lesson, "add were 0", augmentation_slip_call<AUGMENTATION_COLOUR, SLIP_NO_ADD>);
  lesson_alternative(&lesson, "values below 0 and above 255 were not limited",
                     augmentation_slip_call<AUGMENTATION_COLOUR, SLIP_NO_LIMIT>);
  return lesson;
}

CHECK_MAIN(augmentation_colour_lesson())
