/* Checks the exercises of fft_tile.cuh, complex_product.cuh and conv2d_fft.cuh (learn/check.h). */
#include "phase3_cnn/05_conv2d_fft/conv2d_fft_lesson.cuh"

/* y by sums within tiles of 16 x 16 whose first outputs are step_h, step_w apart, and in which a filter that leaves a
 * tile comes back on its other side. turned: the filters run backwards. mirrored: so do the outputs of each tile. */
static inline void conv2d_check_circular(float *const *array, const int *size, int step_h, int step_w, bool turned,
                                         bool mirrored) {
  const Conv2dShape s = conv2d_lesson_shape(size);
  const int p_count = conv2d_out_h(s), q_count = conv2d_out_w(s), tile = 16, side = turned ? -1 : 1;
  for (int i = 0; i < s.n * s.k * p_count * q_count; i++) {
    int q = i % q_count, p = i / q_count % p_count, k = i / q_count / p_count % s.k, n = i / q_count / p_count / s.k;
    int p_first = p / step_h * step_h, q_first = q / step_w * step_w;
    int at_h = mirrored ? (tile - p + p_first) % tile : p - p_first,
        at_w = mirrored ? (tile - q + q_first) % tile : q - q_first;
    double sum = array[3][k];
    for (int c = 0; c < s.c; c++)
      for (int r = 0; r < s.r; r++)
        for (int v = 0; v < s.s; v++) {
          int h = p_first + (at_h + side * r + tile) % tile - s.padding_h;
          int w = q_first + (at_w + side * v + tile) % tile - s.padding_w;
          if (h < 0 || h >= s.h || w < 0 || w >= s.w) continue;
          sum += (double)array[2][((k * s.c + c) * s.r + r) * s.s + v] * array[1][((n * s.c + c) * s.h + h) * s.w + w];
        }
    array[0][i] = (float)sum;
  }
}

static inline void conv2d_check_plain(LessonLauncher, float *const *array, const int *size) {
  const Conv2dShape s = conv2d_lesson_shape(size);
  conv2d_check_circular(array, size, 17 - s.r, 17 - s.s, true, false);
}
static inline void conv2d_check_conjugate_x(LessonLauncher, float *const *array, const int *size) {
  const Conv2dShape s = conv2d_lesson_shape(size);
  conv2d_check_circular(array, size, 17 - s.r, 17 - s.s, false, true);
}
static inline void conv2d_check_no_overlap(LessonLauncher, float *const *array, const int *size) {
  conv2d_check_circular(array, size, 16, 16, false, false);
}
static inline void conv2d_check_one_row_more(LessonLauncher, float *const *array, const int *size) {
  const Conv2dShape s = conv2d_lesson_shape(size);
  conv2d_check_circular(array, size, 18 - s.r, 17 - s.s, false, false);
}
static inline void conv2d_check_exchanged(LessonLauncher, float *const *array, const int *size) {
  const Conv2dShape s = conv2d_lesson_shape(size);
  conv2d_check_circular(array, size, 17 - s.s, 17 - s.r, false, false);
}

static inline Lesson conv2d_fft_check_lesson(void) {
  static const char *const shapes[] = {"2x3x9x8x5x3x3:padding=1", "1x1x1x1x1x1x1", "1x2x21x33x3x3x4:padding=1x2"};
  Lesson lesson = conv2d_fft_forward_lesson("conv2d_fft");
  lesson_check_shapes(&lesson, shapes, sizeof shapes / sizeof *shapes);
  lesson.counted = lesson_shape_of(&lesson, "1x4x14x28x16x3x3:padding=1");
  lesson.method = &conv2d_fft_method;
  lesson.alternatives = 0; /* those of strides and gaps have no place here */
  lesson_alternative(&lesson, "the filters' spectra were not conjugated: the filters run backwards, round the tile",
                     conv2d_check_plain);
  lesson_alternative(&lesson,
                     "the images' spectra were conjugated, not the filters': the outputs of a tile run backwards",
                     conv2d_check_conjugate_x);
  lesson_alternative(&lesson, "the tiles did not overlap: a filter that leaves its tile comes back on the other side",
                     conv2d_check_no_overlap);
  lesson_alternative(&lesson, "step_h were one larger: the last row of a tile has filters that leave the tile",
                     conv2d_check_one_row_more);
  lesson_alternative(&lesson, "R and S were exchanged in the steps", conv2d_check_exchanged);
  return lesson;
}

#include "learn/check.h"

CHECK_MAIN(conv2d_fft_check_lesson())
