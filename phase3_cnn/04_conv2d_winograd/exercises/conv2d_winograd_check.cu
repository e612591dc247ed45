#include "phase3_cnn/04_conv2d_winograd/conv2d_winograd_lesson.cuh"

/* What F(2x2,3x3) computes with other transforms of the input, or with operands of other points or tiles. */
typedef struct WinogradFault {
  double bt[4][4];
  bool first_u, first_v; /* every point has the filters, or the inputs, of point 0 */
  int tiles;             /* tile t has the inputs of tile t % tiles; 0: its own */
} WinogradFault;

static inline void conv2d_check_winograd(float *const *array, const int *size, WinogradFault fault) {
  static const double g[4][3] = {{1, 0, 0}, {0.5, 0.5, 0.5}, {0.5, -0.5, 0.5}, {0, 0, 1}};
  static const double at[2][4] = {{1, 1, 1, 0}, {0, 1, -1, -1}};
  const Conv2dShape s = conv2d_lesson_shape(size);
  const int p_count = conv2d_out_h(s), q_count = conv2d_out_w(s);
  for (int i = 0; i < s.n * s.k * p_count * q_count; i++) {
    int q = i % q_count, p = i / q_count % p_count, k = i / q_count / p_count % s.k, n = i / q_count / p_count / s.k;
    int tiles_h = (p_count + 1) / 2, tiles_w = (q_count + 1) / 2, t = (n * tiles_h + p / 2) * tiles_w + q / 2;
    if (fault.tiles > 0) t %= fault.tiles;
    int h0 = t / tiles_w % tiles_h * 2 - s.padding_h, w0 = t % tiles_w * 2 - s.padding_w, image = t / tiles_w / tiles_h;
    double y = array[3][k];
    for (int point = 0; point < 16; point++) {
      int pu = fault.first_u ? 0 : point, pv = fault.first_v ? 0 : point;
      double factor = at[p % 2][point / 4] * at[q % 2][point % 4], m = 0;
      for (int c = 0; factor != 0 && c < s.c; c++) {
        const float *plane = array[1] + (size_t)(image * s.c + c) * s.h * s.w,
                    *w = array[2] + (size_t)(k * s.c + c) * 9;
        double u = 0, v = 0;
        for (int r = 0; r < 9; r++) u += g[pu / 4][r / 3] * g[pu % 4][r % 3] * w[r];
        for (int r = 0; r < 16; r++) {
          int h = h0 + r / 4, col = w0 + r % 4;
          if (h < 0 || h >= s.h || col < 0 || col >= s.w) continue;
          v += fault.bt[pv / 4][r / 4] * fault.bt[pv % 4][r % 4] * plane[h * s.w + col];
        }
        m += u * v;
      }
      y += factor * m;
    }
    array[0][i] = (float)y;
  }
}

static inline void conv2d_check_v3(LessonLauncher, float *const *array, const int *size) {
  conv2d_check_winograd(array, size, {{{1, 0, -1, 0}, {0, 1, 1, 0}, {0, -1, 1, 0}, {0, -1, 0, 1}}, false, false, 0});
}
static inline void conv2d_check_v2(LessonLauncher, float *const *array, const int *size) {
  conv2d_check_winograd(array, size, {{{1, 0, -1, 0}, {0, 1, 1, 0}, {0, 1, -1, 0}, {0, 1, 0, -1}}, false, false, 0});
}
static inline void conv2d_check_untransformed(LessonLauncher, float *const *array, const int *size) {
  conv2d_check_winograd(array, size, {{{1, 0, 0, 0}, {0, 1, 0, 0}, {0, 0, 1, 0}, {0, 0, 0, 1}}, false, false, 0});
}
static inline void conv2d_check_first_u(LessonLauncher, float *const *array, const int *size) {
  conv2d_check_winograd(array, size, {{{1, 0, -1, 0}, {0, 1, 1, 0}, {0, -1, 1, 0}, {0, 1, 0, -1}}, true, false, 0});
}
static inline void conv2d_check_first_v(LessonLauncher, float *const *array, const int *size) {
  conv2d_check_winograd(array, size, {{{1, 0, -1, 0}, {0, 1, 1, 0}, {0, -1, 1, 0}, {0, 1, 0, -1}}, false, true, 0});
}
static inline void conv2d_check_first_tiles(LessonLauncher, float *const *array, const int *size) {
  conv2d_check_winograd(array, size, {{{1, 0, -1, 0}, {0, 1, 1, 0}, {0, -1, 1, 0}, {0, 1, 0, -1}}, false, false, 64});
}

static inline Lesson conv2d_winograd_check_lesson(void) {
  static const char *const shapes[] = {"2x3x9x8x5x3x3:padding=1", "1x1x5x5x1x3x3", "1x2x17x19x70x3x3:padding=1"};
  Lesson lesson = conv2d_winograd2_lesson();
  lesson_check_shapes(&lesson, shapes, sizeof shapes / sizeof *shapes);
  lesson.method = &winograd2_forward;
  lesson.alternatives = 0; /* those of strides and gaps have no place here */
  lesson_alternative(&lesson, "v[3] had the other sign", conv2d_check_v3);
  lesson_alternative(&lesson, "v[2] had the other sign", conv2d_check_v2);
  lesson_alternative(&lesson, "v were the four inputs as they are", conv2d_check_untransformed);
  lesson_alternative(&lesson, "every point had the filters of the first one", conv2d_check_first_u);
  lesson_alternative(&lesson, "every point had the inputs of the first one", conv2d_check_first_v);
  lesson_alternative(&lesson, "tiles 64, 65, ... had the inputs of tiles 0, 1, ...", conv2d_check_first_tiles);
  return lesson;
}

#include "learn/check.h"

CHECK_MAIN(conv2d_winograd_check_lesson())
