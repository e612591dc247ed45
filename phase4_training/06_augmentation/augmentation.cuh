/* augmentation.cuh - the changes of common/nn/augment.h as kernels: from one pass per change to one pass for all.
 *
 *     y (batch, C,H,W)   the images of `source`, changed and normalised
 *
 *   augmentation_passes   a kernel for each change, one thread per value; each thread draws what happens to its image
 *   augmentation_drawn    the same kernels; before them one thread per image draws, and writes its numbers to memory
 *   augmentation_fused    one kernel, one thread per pixel: bytes in, normalised floats out
 *   augment_gpu           in common/nn/augment_fast.cuh, the one that networks use: the image in a frame in shared
 *                         memory, four pixels per thread, stored as a float4 for each channel
 *
 * The passes keep images as floats, as a program does that begins with "make a float of each pixel". Their values are
 * whole numbers from 0 to 255 until they are normalised, so every version has the bits of augment_cpu().
 *
 * `workspace`, augmentation_workspace() bytes: images between the passes, then a draw for each image.
 */
#ifndef PHASE4_TRAINING_AUGMENTATION_CUH
#define PHASE4_TRAINING_AUGMENTATION_CUH

#include "common/check.h"
#include "common/nn/augment.h"

enum { AUGMENTATION_BLOCK = 256 };

/* ---------------------------------------------------------------------------------------------------------------- */
/* Passes: one thread per value */

/* A value's place in its batch. */
typedef struct AugmentationIndex {
  int b, c, row, column;
} AugmentationIndex;

static __device__ __forceinline__ AugmentationIndex augmentation_index(size_t i, AugmentSource s) {
  AugmentationIndex at;
  at.column = (int)(i % s.width);
  at.row = (int)(i / s.width % s.height);
  at.c = (int)(i / s.width / s.height % s.channels);
  at.b = (int)(i / s.width / s.height / s.channels);
  return at;
}

/* Plane c of image b: of the data set's bytes, or of the batch that the pass before has written. */
static __device__ __forceinline__ const uint8_t *augmentation_plane(const uint8_t *from, AugmentSource s, int b,
                                                                    int c) {
  return from + ((size_t)s.row[b] * s.channels + c) * s.height * s.width;
}
static __device__ __forceinline__ const float *augmentation_plane(const float *from, AugmentSource s, int b, int c) {
  return from + ((size_t)b * s.channels + c) * s.height * s.width;
}

/* What happens to image b: read, or, where nobody has drawn it before, drawn here. */
static __device__ __forceinline__ AugmentDraw augmentation_draw_of(const AugmentDraw *draws, AugmentSource s,
                                                                   AugmentMost most, int b) {
  return draws ? draws[b] : augment_draw(&most, &s, b);
}

/* From: uint8_t, the data set, or float, another pass. */
template <typename From>
static __global__ void augmentation_flip_kernel(float *to, const From *from, size_t n, AugmentSource s,
                                                AugmentMost most, const AugmentDraw *draws) {
  const size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const AugmentationIndex at = augmentation_index(i, s);
  const AugmentDraw draw = augmentation_draw_of(draws, s, most, at.b);
  const From *plane = augmentation_plane(from, s, at.b, at.c);
  // >>> exercise augmentation_flip: write pixel (at.row, at.column) of the plane; with draw.flip, of its mirror image
  // hint: a row of the plane has s.width pixels; a mirror exchanges left and right, and no rows
  // hint: column 0 becomes s.width - 1, column 1 becomes s.width - 2
  // hint: to[i] = plane[at.row * s.width + (draw.flip ? s.width - 1 - at.column : at.column)];
  const int column = draw.flip ? s.width - 1 - at.column : at.column;
  to[i] = plane[at.row * s.width + column];
  // <<< exercise
}

/* Shear, scale, rotation and shift; the image is mirrored already. */
template <typename From>
static __global__ void augmentation_affine_kernel(float *to, const From *from, size_t n, AugmentSource s,
                                                  AugmentMost most, const AugmentDraw *draws) {
  const size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const AugmentationIndex at = augmentation_index(i, s);
  AugmentDraw draw = augmentation_draw_of(draws, s, most, at.b);
  draw.flip = 0;
  const From *plane = augmentation_plane(from, s, at.b, at.c);
  const AugmentPlace place = augment_place(&draw, at.row, at.column, s.width);
  const int left = place.x >> 8, top = place.y >> 8;      /* the pixel to the upper left of the place */
  const int far_x = place.x & 255, far_y = place.y & 255; /* how far the place is from it, in 256ths */
  int sum = AUGMENT_ONE / 2;                              /* so that sum >> 16 is rounded */
  // >>> exercise augmentation_bilinear: add the four pixels around the place to `sum`, each times its weight
  // hint: they are (top, left), (top, left + 1), (top + 1, left), (top + 1, left + 1); those outside of the plane are 0
  // hint: the nearer, the heavier: 256 - far_x for the left ones, far_x for the right ones; the same in y; multiply
  // hint: if the plane has (top, left): sum += (256 - far_y) * (256 - far_x) * (int)plane[top * s.width + left];
  const bool upper = top >= 0 && top < s.height, lower = top + 1 >= 0 && top + 1 < s.height;
  const bool first = left >= 0 && left < s.width, second = left + 1 >= 0 && left + 1 < s.width;
  const From *corner = plane + top * s.width + left;
  if (upper && first) sum += (256 - far_y) * (256 - far_x) * (int)corner[0];
  if (upper && second) sum += (256 - far_y) * far_x * (int)corner[1];
  if (lower && first) sum += far_y * (256 - far_x) * (int)corner[s.width];
  if (lower && second) sum += far_y * far_x * (int)corner[s.width + 1];
  // <<< exercise
  to[i] = (float)(sum >> 16);
}

/* Not in place: a thread reads all channels of its pixel, and other threads write them. */
template <typename From>
static __global__ void augmentation_colour_kernel(float *to, const From *from, size_t n, AugmentSource s,
                                                  AugmentMost most, const AugmentDraw *draws) {
  const size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const AugmentationIndex at = augmentation_index(i, s);
  const AugmentDraw draw = augmentation_draw_of(draws, s, most, at.b);
  const From *red = augmentation_plane(from, s, at.b, 0) + at.row * s.width + at.column;
  const int area = s.height * s.width, pixel = (int)red[at.c * area];
  // >>> exercise augmentation_colour: write own pixel + grey L + add of the draw, rounded, and limited to 0 to 255
  // hint: L is the pixel's grey: augment_luma(red, green, blue) of 3 channels; of other images draw.grey is 0
  // hint: own, grey and add are Q16: add AUGMENT_ONE / 2, shift right by 16; below 0 becomes 0, above 255 becomes 255
  // hint: L = s.channels == 3 ? augment_luma((int)red[0], (int)red[area], (int)red[2 * area]) : 0
  const int luma = s.channels == 3 ? augment_luma((int)red[0], (int)red[area], (int)red[2 * area]) : 0;
  const int sum = (draw.own * pixel + draw.grey * luma + draw.add + AUGMENT_ONE / 2) >> 16;
  to[i] = (float)min(max(sum, 0), 255);
  // <<< exercise
}

/* In place. */
static __global__ void augmentation_normalize_kernel(float *y, size_t n, AugmentSource s) {
  const size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const int c = augmentation_index(i, s).c;
  y[i] = augment_normalized(&s.norm, c, (int)y[i]);
}

/* In place, one thread per value of a square: n is batch * channels * cutout * cutout. */
static __global__ void augmentation_cutout_kernel(float *y, size_t n, AugmentSource s, AugmentMost most,
                                                  const AugmentDraw *draws) {
  const size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const int side = most.cutout, right = (int)(i % side), down = (int)(i / side % side);
  const int c = (int)(i / side / side % s.channels), b = (int)(i / side / side / s.channels);
  const AugmentDraw draw = augmentation_draw_of(draws, s, most, b);
  // >>> exercise augmentation_cutout: set value (down, right) of the square in channel c of image b to 0
  // hint: the square begins at row draw.cut_top and column draw.cut_left, which may be negative
  // hint: it may reach beyond the last row and column, too: only what the image has, s.height by s.width, is set
  // hint: y[(((size_t)b * s.channels + c) * s.height + row) * s.width + column] = 0;
  const int row = draw.cut_top + down, column = draw.cut_left + right;
  if (row >= 0 && row < s.height && column >= 0 && column < s.width)
    y[(((size_t)b * s.channels + c) * s.height + row) * s.width + column] = 0;
  // <<< exercise
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* One thread per image draws; one thread per pixel does all the rest */

static __global__ void augmentation_draw_kernel(AugmentDraw *draws, int batch, AugmentSource s, AugmentMost most) {
  const int b = blockIdx.x * blockDim.x + threadIdx.x;
  if (b < batch) draws[b] = augment_draw(&most, &s, b);
}

/* pixels: batch * height * width */
static __global__ void augmentation_fused_kernel(float *y, size_t pixels, AugmentSource s, const AugmentDraw *draws) {
  const size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= pixels) return;
  const int column = (int)(i % s.width), row = (int)(i / s.width % s.height), b = (int)(i / s.width / s.height);
  const AugmentDraw draw = draws[b];
  const int area = s.height * s.width, at = row * s.width + column;
  int value[AUGMENT_CHANNELS];
  augment_pixel(value, &s, &draw, b, row, column);
  y += (size_t)b * s.channels * area + at;
  for (int c = 0; c < s.channels; c++)
    y[(size_t)c * area] = augment_is_cut(&draw, row, column) ? 0 : augment_normalized(&s.norm, c, value[c]);
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* Launchers; all arrays lie on the GPU */

static inline unsigned augmentation_grid(size_t threads) {
  return (unsigned)((threads + AUGMENTATION_BLOCK - 1) / AUGMENTATION_BLOCK);
}

/* Values of a batch. */
static inline size_t augmentation_values(const AugmentSource *s, int batch) {
  return (size_t)batch * s->channels * s->height * s->width;
}

static inline void augmentation_normalize(float *y, const AugmentSource *s, int batch) {
  const size_t n = augmentation_values(s, batch);
  augmentation_normalize_kernel<<<augmentation_grid(n), AUGMENTATION_BLOCK>>>(y, n, *s);
  CUDA_CHECK_LAUNCH();
}

static inline void augmentation_cutout(float *y, const AugmentSource *s, const AugmentMost *most, int batch,
                                       const AugmentDraw *draws) {
  const size_t n = (size_t)batch * s->channels * most->cutout * most->cutout;
  if (n == 0) return;
  augmentation_cutout_kernel<<<augmentation_grid(n), AUGMENTATION_BLOCK>>>(y, n, *s, *most, draws);
  CUDA_CHECK_LAUNCH();
}

/* draws NULL: every thread draws. between: room for a batch. */
static inline void augmentation_in_passes(float *y, const AugmentSource *s, const AugmentMost *most, int batch,
                                          const AugmentDraw *draws, float *between) {
  const size_t n = augmentation_values(s, batch);
  const unsigned grid = augmentation_grid(n);
  augmentation_flip_kernel<<<grid, AUGMENTATION_BLOCK>>>(y, s->images, n, *s, *most, draws);
  CUDA_CHECK_LAUNCH();
  augmentation_affine_kernel<<<grid, AUGMENTATION_BLOCK>>>(between, (const float *)y, n, *s, *most, draws);
  CUDA_CHECK_LAUNCH();
  augmentation_colour_kernel<<<grid, AUGMENTATION_BLOCK>>>(y, (const float *)between, n, *s, *most, draws);
  CUDA_CHECK_LAUNCH();
  augmentation_normalize(y, s, batch);
  augmentation_cutout(y, s, most, batch, draws);
}

static inline size_t augmentation_workspace(const AugmentSource *s, int batch) {
  return augmentation_values(s, batch) * sizeof(float) + batch * sizeof(AugmentDraw);
}

static inline AugmentDraw *augmentation_draws(const AugmentSource *s, const AugmentMost *most, int batch,
                                              void *workspace) {
  AugmentDraw *draws = (AugmentDraw *)((float *)workspace + augmentation_values(s, batch));
  augmentation_draw_kernel<<<augmentation_grid(batch), AUGMENTATION_BLOCK>>>(draws, batch, *s, *most);
  CUDA_CHECK_LAUNCH();
  return draws;
}

static inline void augmentation_passes(float *y, const AugmentSource *s, const AugmentMost *most, int batch,
                                       void *workspace) {
  augmentation_in_passes(y, s, most, batch, NULL, (float *)workspace);
}

static inline void augmentation_drawn(float *y, const AugmentSource *s, const AugmentMost *most, int batch,
                                      void *workspace) {
  const AugmentDraw *draws = augmentation_draws(s, most, batch, workspace);
  augmentation_in_passes(y, s, most, batch, draws, (float *)workspace);
}

static inline void augmentation_fused(float *y, const AugmentSource *s, const AugmentMost *most, int batch,
                                      void *workspace) {
  const AugmentDraw *draws = augmentation_draws(s, most, batch, workspace);
  const size_t pixels = (size_t)batch * s->height * s->width;
  augmentation_fused_kernel<<<augmentation_grid(pixels), AUGMENTATION_BLOCK>>>(y, pixels, *s, draws);
  CUDA_CHECK_LAUNCH();
}

/* ---- one change alone, for the exercises ---- */

static inline void augmentation_flip_alone(float *y, const AugmentSource *s, const AugmentMost *most, int batch,
                                           void *workspace) {
  const size_t n = augmentation_values(s, batch);
  (void)workspace;
  augmentation_flip_kernel<<<augmentation_grid(n), AUGMENTATION_BLOCK>>>(y, s->images, n, *s, *most, NULL);
  CUDA_CHECK_LAUNCH();
  augmentation_normalize(y, s, batch);
}

static inline void augmentation_affine_alone(float *y, const AugmentSource *s, const AugmentMost *most, int batch,
                                             void *workspace) {
  const size_t n = augmentation_values(s, batch);
  (void)workspace;
  augmentation_affine_kernel<<<augmentation_grid(n), AUGMENTATION_BLOCK>>>(y, s->images, n, *s, *most, NULL);
  CUDA_CHECK_LAUNCH();
  augmentation_normalize(y, s, batch);
}

static inline void augmentation_colour_alone(float *y, const AugmentSource *s, const AugmentMost *most, int batch,
                                             void *workspace) {
  const size_t n = augmentation_values(s, batch);
  (void)workspace;
  augmentation_colour_kernel<<<augmentation_grid(n), AUGMENTATION_BLOCK>>>(y, s->images, n, *s, *most, NULL);
  CUDA_CHECK_LAUNCH();
  augmentation_normalize(y, s, batch);
}

/* After a flip that mirrors nothing. */
static inline void augmentation_cutout_alone(float *y, const AugmentSource *s, const AugmentMost *most, int batch,
                                             void *workspace) {
  augmentation_flip_alone(y, s, most, batch, workspace);
  augmentation_cutout(y, s, most, batch, NULL);
}

#endif /* PHASE4_TRAINING_AUGMENTATION_CUH */
