/* augmentation_lesson.cuh - arrays, shapes and reference of augmentation.cuh: for the program, its tests and the
 * exercises. The tolerance is zero: every version has the bits of augment_cpu().
 *
 * Shapes are batch x channels x height x width, "nchw". The order is an input, and so is the key of (seed, epoch). */
#ifndef PHASE4_TRAINING_AUGMENTATION_LESSON_CUH
#define PHASE4_TRAINING_AUGMENTATION_LESSON_CUH

#include "common/lesson/lesson.h"
#include "phase4_training/06_augmentation/augmentation.cuh"

typedef void AugmentationLauncher(float *y, const AugmentSource *source, const AugmentMost *most, int batch,
                                  void *workspace);

/* All changes, or one of them alone. */
typedef enum AugmentationCase {
  AUGMENTATION_ALL,
  AUGMENTATION_FLIP,
  AUGMENTATION_AFFINE,
  AUGMENTATION_COLOUR,
  AUGMENTATION_CUTOUT
} AugmentationCase;

static inline AugmentMost augmentation_most(AugmentationCase which) {
  /* crop:2,affine:rotate=15,scale=0.1,shear=5,shift=0.5,cutout:6,colour:brightness=0.2,contrast=0.3,saturation=0.5 */
  static const AugmentMost all = {2, 1, 178956971, 59652324, 6554, 32768, 6, 13107, 19661, 32768};
  AugmentMost most = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0};
  if (which == AUGMENTATION_ALL) most = all;
  if (which == AUGMENTATION_FLIP) most.flip = 1;
  if (which == AUGMENTATION_AFFINE) {
    most.rotate = 4 * all.rotate;
    most.scale = 2 * all.scale;
    most.slide = all.slide;
  }
  if (which == AUGMENTATION_COLOUR) {
    most.brightness = most.contrast = 49152;
    most.saturation = AUGMENT_ONE;
  }
  if (which == AUGMENTATION_CUTOUT) most.cutout = 4;
  return most;
}

/* y, images, order, key. Every channel is normalised in another way. */
static inline AugmentSource augmentation_source(float *const *array, const int *size) {
  static const AugmentNorm norm = {{0.0179f, 0.0175f, 0.0171f, 0.0163f}, {-2.1f, -2, -1.8f, -1.7f}};
  AugmentSource source;
  memset(&source, 0, sizeof source);
  source.images = (const uint8_t *)array[1];
  source.row = source.sample = (const uint32_t *)array[2];
  source.key = (const AugmentKey *)array[3];
  source.norm = norm;
  source.middle = 112 * AUGMENT_ONE;
  source.channels = size[1];
  source.height = size[2];
  source.width = size[3];
  return source;
}

template <AugmentationCase which>
static inline void augmentation_call(LessonLauncher launch, float *const *array, const int *size) {
  const AugmentSource source = augmentation_source(array, size);
  const AugmentMost most = augmentation_most(which);
  ((AugmentationLauncher *)launch)(array[0], &source, &most, size[0], array[4]);
}

static inline void augmentation_reference(float *y, const AugmentSource *source, const AugmentMost *most, int batch,
                                          void *workspace) {
  (void)workspace;
  augment_cpu(y, source, most, batch);
}

/* ---- what an exercise may have done instead ---- */

typedef enum AugmentationSlip {
  SLIP_NEVER_FLIPPED,
  SLIP_ALWAYS_FLIPPED,
  SLIP_UPSIDE_DOWN,
  SLIP_NEAREST,   /* one pixel of the four */
  SLIP_MIRRORED,  /* left and right exchange their weights */
  SLIP_EDGE,      /* beyond the border: the pixel at the border */
  SLIP_CUT_OFF,   /* without rounding */
  SLIP_OWN,       /* the pixel for its grey */
  SLIP_NO_ADD,    /* without `add` */
  SLIP_NO_LIMIT,  /* values below 0 and above 255 */
  SLIP_ONE_PLANE, /* the square is in the first channel only */
  SLIP_EXCHANGED  /* the square's row and column are exchanged */
} AugmentationSlip;

template <AugmentationSlip slip>
static inline int augmentation_slip_mixed(const uint8_t *plane, AugmentPlace at, int height, int width) {
  int sum = slip == SLIP_CUT_OFF ? 0 : AUGMENT_ONE / 2;
  for (int j = 0; j < 2; j++)
    for (int i = 0; i < 2; i++) {
      const int far_x = slip == SLIP_MIRRORED ? 256 - (at.x & 255) : slip == SLIP_NEAREST ? 0 : at.x & 255;
      const int far_y = slip == SLIP_NEAREST ? 0 : at.y & 255;
      int row = (at.y >> 8) + j, column = (at.x >> 8) + i;
      if (slip == SLIP_EDGE) {
        row = row < 0 ? 0 : row >= height ? height - 1 : row;
        column = column < 0 ? 0 : column >= width ? width - 1 : column;
      }
      if (row < 0 || row >= height || column < 0 || column >= width) continue;
      sum += (j ? far_y : 256 - far_y) * (i ? far_x : 256 - far_x) * plane[row * width + column];
    }
  return sum >> 16;
}

template <AugmentationCase which, AugmentationSlip slip>
static inline void augmentation_slip_call(LessonLauncher launch, float *const *array, const int *size) {
  (void)launch;
  const AugmentSource s = augmentation_source(array, size);
  const AugmentMost most = augmentation_most(which);
  const size_t area = (size_t)s.height * s.width;
  float *y = array[0];
  for (int b = 0; b < size[0]; b++, y += area * s.channels) {
    AugmentDraw draw = augment_draw(&most, &s, b);
    const uint8_t *image = s.images + s.row[b] * area * s.channels;
    const int upside_down = slip == SLIP_UPSIDE_DOWN && draw.flip;
    if (slip == SLIP_NEVER_FLIPPED || slip == SLIP_UPSIDE_DOWN) draw.flip = 0;
    if (slip == SLIP_ALWAYS_FLIPPED) draw.flip = 1;
    if (slip == SLIP_NO_ADD) draw.add = 0;
    for (size_t i = 0; i < area; i++) {
      const int row = (int)(i / s.width), column = (int)(i % s.width),
                from_row = upside_down ? s.height - 1 - row : row;
      int value[AUGMENT_CHANNELS];
      const AugmentPlace at = augment_place(&draw, from_row, column, s.width);
      for (int c = 0; c < s.channels; c++)
        value[c] = augmentation_slip_mixed<slip>(image + c * area, at, s.height, s.width);
      const int luma = s.channels == 3 ? augment_luma(value[0], value[1], value[2]) : 0;
      const int cut = slip == SLIP_EXCHANGED ? column >= draw.cut_top && column < draw.cut_bottom &&
                                                   row >= draw.cut_left && row < draw.cut_right
                                             : augment_is_cut(&draw, row, column);
      for (int c = 0; c < s.channels; c++) {
        AugmentDraw rounded = draw;
        if (slip == SLIP_CUT_OFF && which == AUGMENTATION_COLOUR) rounded.add -= AUGMENT_ONE / 2;
        const int grey = slip == SLIP_OWN ? value[c] : luma;
        const int unlimited = (draw.own * value[c] + draw.grey * grey + draw.add + AUGMENT_ONE / 2) >> 16;
        const int byte = slip == SLIP_NO_LIMIT ? unlimited : augment_recoloured(&rounded, value[c], grey);
        y[c * area + i] = cut && (slip != SLIP_ONE_PLANE || c == 0) ? 0 : augment_normalized(&s.norm, c, byte);
      }
    }
  }
}

/* ---- the lesson ---- */

static inline int augmentation_three(const int *size) {
  (void)size;
  return 3;
}

static inline int augmentation_shape_check(const int *size, Error *err) {
  if (size[1] > AUGMENT_CHANNELS)
    return error_set(err, "%d channels: images of 1 to %d are changed", size[1], AUGMENT_CHANNELS);
  if (size[2] > AUGMENT_SIDE || size[3] > AUGMENT_SIDE)
    return error_set(err, "images of %d x %d pixels: they are at most %d x %d", size[3], size[2], AUGMENT_SIDE,
                     AUGMENT_SIDE);
  return 0;
}

/* What a version was made with is not NULL where it needs a workspace. */
static inline size_t augmentation_lesson_workspace(const void *method, const int *size) {
  (void)method;
  float *const none[4] = {NULL, NULL, NULL, NULL};
  const AugmentSource source = augmentation_source(none, size);
  return augmentation_workspace(&source, size[0]);
}

static inline LessonVersion augmentation_version(const char *name, AugmentationLauncher *launch, const char *limit) {
  static const char needs_a_workspace = 1;
  return lesson_version_of(name, (LessonLauncher)launch, &needs_a_workspace, limit);
}

static inline Lesson augmentation_lesson_of(const char *name,
                                            void (*call)(LessonLauncher, float *const *, const int *)) {
  Lesson lesson = lesson_make(name, "nchw", call, (LessonLauncher)augmentation_reference);
  lesson.shape_check = augmentation_shape_check;
  lesson_derived(&lesson, 'k', augmentation_three);
  lesson_output(&lesson, "y", "nchw");
  lesson_input(&lesson, "images", "nchw");
  lesson_element(&lesson, "images", LESSON_BYTE);
  lesson_labels(&lesson, "order", "n", 'n');
  lesson_input(&lesson, "key", "k");
  lesson_element(&lesson, "key", LESSON_INT);
  lesson_range(&lesson, "key", 0, 1000);
  lesson.workspace = augmentation_lesson_workspace;
  lesson.most = lesson_shape_of(&lesson, "1x4x2048x2048");
  lesson.most.size[0] = 16384;
  lesson.timed = lesson_shape_of(&lesson, "512x3x64x64");
  lesson.counted = lesson_shape_of(&lesson, "4x3x32x32");
  return lesson;
}

static inline Lesson augmentation_lesson(void) {
  Lesson lesson = augmentation_lesson_of("augmentation", augmentation_call<AUGMENTATION_ALL>);
  /* one and several channels; widths that are a multiple of 4, and none; patches that are full, and not */
  static const char *const shapes[] = {"3x3x9x12",  "2x1x28x28", "1x1x1x1",  "5x3x7x5", "2x4x6x3",
                                       "2x2x31x33", "1x3x10x44", "3x1x13x4", "7x3x8x32"};
  lesson_check_shapes(&lesson, shapes, sizeof shapes / sizeof *shapes);
  return lesson;
}

/* For exercises: one change alone. */
template <AugmentationCase which>
static inline Lesson augmentation_lesson_alone(void) {
  Lesson lesson = augmentation_lesson_of("augmentation", augmentation_call<which>);
  static const char *const shapes[] = {"5x3x9x12", "2x1x28x28", "1x1x1x1", "9x3x7x5", "2x2x11x33"};
  lesson_check_shapes(&lesson, shapes, sizeof shapes / sizeof *shapes);
  return lesson;
}

#endif /* PHASE4_TRAINING_AUGMENTATION_LESSON_CUH */
