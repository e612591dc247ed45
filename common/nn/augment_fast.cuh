/* augment_fast.cuh - augment.h for training: on CPU threads, and in one kernel.
 *
 *   augment_cpu_fast   a row at a time, in loops that the compiler makes vector instructions of; images among threads
 *   augment_gpu        one block per image, or one thread per pixel where the shape does not suit that
 *
 * Both work on the image in a frame. A pixel is one 32-bit word, its channels are the bytes; around the image lie black
 * pixels, one to the left and above, two to the right and below. A place is moved to at most one pixel outside, where
 * all that it mixes is black, too. So the four pixels around any place are four words of the frame, and no loop or
 * thread asks whether one of them lies outside of the image.
 *
 * In the kernel the frame is in shared memory. A warp makes a patch of 4 rows of 32 pixels: lanes 0 to 7 have a row,
 * four neighbouring pixels each, lanes 8 to 15 the next row, and so on. It stores 128 bytes of each row, a float4 per
 * lane.
 * The rows of the frame have an odd number of words. So, where nothing is rotated or scaled, the words that 32 lanes
 * read lie in 32 banks: 8 of them are 4 apart, and the next row's are shifted by an odd number.
 */
#ifndef COMMON_NN_AUGMENT_FAST_CUH
#define COMMON_NN_AUGMENT_FAST_CUH

#include <stdlib.h>
#include <string.h>

#include "common/error.h"
#include "common/nn/augment.h"
#include "common/simd.h"

/* Words in a row of the frame, and in all of it. Word (row + 1) stride + column + 1 is pixel (row, column). */
PHILOX_FUNCTION int augment_stride(int width) { return (width + 2) | 1; }
PHILOX_FUNCTION size_t augment_frame_words(int height, int width) {
  return (size_t)(height + 3) * augment_stride(width) + 1;
}

/* A place (Q8) of the image as one of the frame, which has one pixel before it; at most one pixel outside. A GPU of
 * compute capability 9.0 has one instruction for a minimum and a maximum with 0. */
PHILOX_FUNCTION int augment_framed(int at, int size) {
  at = at + 256 < (size + 1) * 256 ? at + 256 : (size + 1) * 256;
  return at > 0 ? at : 0;
}

/* ----------------------------------------------------------------------------------------------------- CPU threads */

enum { AUGMENT_RUN = 64, AUGMENT_CPU_SERIAL = 16384 }; /* pixels of a row at once; values for one thread alone */

/* An image (C,H,W) in its frame. */
static inline void augment_frame_cpu(uint32_t *frame, const uint8_t *image, int channels, int height, int width) {
  const int stride = augment_stride(width);
  memset(frame, 0, augment_frame_words(height, width) * sizeof *frame);
  for (int c = 0; c < channels; c++)
    for (int row = 0; row < height; row++, image += width) {
      uint32_t *to = frame + (size_t)(row + 1) * stride + 1;
#pragma omp simd
      for (int column = 0; column < width; column++) to[column] |= (uint32_t)image[column] << 8 * c;
    }
}

/* value[c] (n): pixels `start` to start + n - 1 of a row, mixed. n is at most AUGMENT_RUN. */
SIMD_INLINE void augment_run_mixed(int value[][AUGMENT_RUN], const uint32_t *frame, const AugmentDraw *draw,
                                   int channels, int height, int width, int row, int start, int n) {
  const int stride = augment_stride(width);
  const int x0 = draw->xy * row + draw->x0 + 128, y0 = draw->yy * row + draw->y0 + 128;
  const int sign = draw->flip ? -1 : 1, edge = draw->flip ? (width - 1) * 256 : 0;
  uint32_t upper_left[AUGMENT_RUN], upper_right[AUGMENT_RUN], lower_left[AUGMENT_RUN], lower_right[AUGMENT_RUN];
  int at[AUGMENT_RUN], far_x[AUGMENT_RUN], far_y[AUGMENT_RUN];
#pragma omp simd
  for (int i = 0; i < n; i++) {
    const int x = augment_framed(sign * ((draw->xx * (start + i) + x0) >> 8) + edge, width);
    const int y = augment_framed((draw->yx * (start + i) + y0) >> 8, height);
    at[i] = (y >> 8) * stride + (x >> 8);
    far_x[i] = x & 255;
    far_y[i] = y & 255;
  }
#pragma omp simd
  for (int i = 0; i < n; i++) {
    upper_left[i] = frame[at[i]];
    upper_right[i] = frame[at[i] + 1];
    lower_left[i] = frame[at[i] + stride];
    lower_right[i] = frame[at[i] + stride + 1];
  }
  for (int c = 0; c < channels; c++) {
#pragma omp simd
    for (int i = 0; i < n; i++) {
      const int right = far_x[i], low = far_y[i], shift = 8 * c;
      const int upper =
          (256 - right) * (int)(upper_left[i] >> shift & 255) + right * (int)(upper_right[i] >> shift & 255);
      const int lower =
          (256 - right) * (int)(lower_left[i] >> shift & 255) + right * (int)(lower_right[i] >> shift & 255);
      value[c][i] = ((256 - low) * upper + low * lower + AUGMENT_ONE / 2) >> 16;
    }
  }
}

/* The same where the image is only moved by whole pixels and mirrored. */
SIMD_INLINE void augment_run_moved(int value[][AUGMENT_RUN], const uint8_t *image, const AugmentDraw *draw,
                                   int channels, int height, int width, int row, int start, int n) {
  const int from_row = row + (draw->y0 >> 16), from = start + (draw->x0 >> 16);
  const int inside = from_row >= 0 && from_row < height;
  const int first = from >= 0 ? 0 : -from < n ? -from : n, last = width - from < n ? width - from : n;
  for (int c = 0; c < channels; c++) {
    const uint8_t *line = image + ((size_t)c * height + (inside ? from_row : 0)) * width;
    if (!inside || first > 0 || last < n) memset(value[c], 0, n * sizeof *value[c]);
    if (!inside) continue;
    if (draw->flip)
      for (int i = first; i < last; i++) value[c][i] = line[width - 1 - from - i];
    else
      for (int i = first; i < last; i++) value[c][i] = line[from + i];
  }
}

SIMD_INLINE void augment_run_recoloured(int value[][AUGMENT_RUN], const AugmentDraw *draw, int channels, int n) {
  int luma[AUGMENT_RUN] = {0};
  if (channels == 3) {
#pragma omp simd
    for (int i = 0; i < n; i++) luma[i] = augment_luma(value[0][i], value[1][i], value[2][i]);
  }
  for (int c = 0; c < channels; c++) {
#pragma omp simd
    for (int i = 0; i < n; i++) value[c][i] = augment_recoloured(draw, value[c][i], luma[i]);
  }
}

/* One image; frame: NULL where nothing is mixed. table (C,256): all that augment_normalized() can give, because a
 * processor without the instruction takes long for fmaf(). */
CPU_CLONES static void augment_image_cpu(float *y, const AugmentSource *source, const AugmentMost *most,
                                         const AugmentDraw *draw, const uint8_t *image, const uint32_t *frame,
                                         const float *table) {
  const int channels = source->channels, height = source->height, width = source->width;
  const int recolours = augment_recolours(most);
  const size_t plane = (size_t)height * width;
  int value[AUGMENT_CHANNELS][AUGMENT_RUN];
  for (int row = 0; row < height; row++, y += width) {
    for (int start = 0; start < width; start += AUGMENT_RUN) {
      const int n = width - start < AUGMENT_RUN ? width - start : AUGMENT_RUN;
      if (frame)
        augment_run_mixed(value, frame, draw, channels, height, width, row, start, n);
      else
        augment_run_moved(value, image, draw, channels, height, width, row, start, n);
      if (recolours) augment_run_recoloured(value, draw, channels, n);
      for (int c = 0; c < channels; c++) {
        const float *normalized = table + 256 * c;
        float *to = y + c * plane + start;
#pragma omp simd
        for (int i = 0; i < n; i++) to[i] = normalized[value[c][i]];
      }
    }
    const int left = draw->cut_left > 0 ? draw->cut_left : 0, right = draw->cut_right < width ? draw->cut_right : width;
    if (row >= draw->cut_top && row < draw->cut_bottom && left < right)
      for (int c = 0; c < channels; c++) memset(y + c * plane + left, 0, (right - left) * sizeof *y);
  }
}

static inline void augment_cpu_fast(float *y, const AugmentSource *source, const AugmentMost *most, int batch) {
  const size_t size = (size_t)source->channels * source->height * source->width;
  const int mixes = augment_mixes(most);
  float table[AUGMENT_CHANNELS * 256];
  for (int i = 0; i < 256 * source->channels; i++) table[i] = augment_normalized(&source->norm, i / 256, i % 256);
#pragma omp parallel if (batch * size > AUGMENT_CPU_SERIAL)
  {
    const size_t words = mixes ? augment_frame_words(source->height, source->width) : 1;
    uint32_t *frame = (uint32_t *)xmalloc(words * sizeof *frame);
#pragma omp for schedule(static)
    for (int b = 0; b < batch; b++) {
      const AugmentDraw draw = augment_draw(most, source, b);
      const uint8_t *image = source->images + source->row[b] * size;
      if (mixes) augment_frame_cpu(frame, image, source->channels, source->height, source->width);
      augment_image_cpu(y + b * size, source, most, &draw, image, mixes ? frame : NULL, table);
      if (source->labels) source->labels[b] = augment_label(source, b);
    }
    free(frame);
  }
}

#include "common/check.h"

/* --------------------------------------------------------------------------------------------------------- kernels */

enum {
  AUGMENT_BLOCK = 256,
  AUGMENT_WARPS = AUGMENT_BLOCK / 32,
  AUGMENT_LOADERS = AUGMENT_WARPS - 1, /* warps that load; the last one draws */
  AUGMENT_ROWS = 4,
  AUGMENT_LANES = 8,
  AUGMENT_AHEAD = 5
};
enum { AUGMENT_SHARED = 48 << 10, AUGMENT_MOST_PIECES = 65535 };

/* Any shape: one thread per pixel, one row of blocks per image. */
static __global__ void augment_pixels_kernel(float *y, AugmentSource source, AugmentMost most) {
  __shared__ AugmentDraw draw;
  const int b = blockIdx.x, plane = source.height * source.width;
  if (threadIdx.x == 0) {
    draw = augment_draw(&most, &source, b);
    if (source.labels && blockIdx.y == 0) source.labels[b] = augment_label(&source, b);
  }
  __syncthreads();
  y += (size_t)b * source.channels * plane;
  for (int i = blockIdx.y * blockDim.x + threadIdx.x; i < plane; i += gridDim.y * blockDim.x) {
    const int row = i / source.width, column = i % source.width, cut = augment_is_cut(&draw, row, column);
    int value[AUGMENT_CHANNELS];
    augment_pixel(value, &source, &draw, b, row, column);
    for (int c = 0; c < source.channels; c++)
      y[(size_t)c * plane + i] = cut ? 0 : augment_normalized(&source.norm, c, value[c]);
  }
}

/* Four pixels, a word of each of CHANNELS planes, as four words; of a word's bytes beyond the channels nothing is
 * expected. */
template <int CHANNELS>
static __device__ __forceinline__ void augment_pack(uint32_t word[4], const uint32_t quad[CHANNELS]) {
  if (CHANNELS == 3) {
    const uint32_t green = quad[1 % CHANNELS], blue = quad[2 % CHANNELS];
    const uint32_t low = __byte_perm(quad[0], green, 0x5140), high = __byte_perm(quad[0], green, 0x7362); /* RGRG */
    word[0] = __byte_perm(low, blue, 0x4410);
    word[1] = __byte_perm(low, blue, 0x5532);
    word[2] = __byte_perm(high, blue, 0x6610);
    word[3] = __byte_perm(high, blue, 0x7732);
  } else {
    for (int j = 0; j < 4; j++) word[j] = quad[0] >> 8 * j;
  }
}

/* Patches of an image. `reciprocal` is 2^16 / across, rounded up, in place of a division for each patch: there are less
 * than 2^16 / across patches of an image that fits into shared memory. */
typedef struct AugmentPatches {
  int across, count;
  uint32_t reciprocal;
} AugmentPatches;

static __device__ __forceinline__ AugmentPatches augment_patches(int height, int width) {
  AugmentPatches patches;
  patches.across = (width + AUGMENT_LANES * 4 - 1) / (AUGMENT_LANES * 4);
  patches.count = (height + AUGMENT_ROWS - 1) / AUGMENT_ROWS * patches.across;
  patches.reciprocal = (65535u + patches.across) / patches.across;
  return patches;
}

/* Of patch p: this lane's row and the first of its four columns. */
static __device__ __forceinline__ void augment_patch(const AugmentPatches *patches, int p, int *row, int *column) {
  const int lane = threadIdx.x % 32, down = (int)(p * patches->reciprocal >> 16);
  *row = down * AUGMENT_ROWS + lane / AUGMENT_LANES;
  *column = ((p - down * patches->across) * AUGMENT_LANES + lane % AUGMENT_LANES) * 4;
}

/* AUGMENT_AHEAD patches of a warp, from `first` on, each AUGMENT_LOADERS further: the loads of all of them are under
 * way before the first is waited for. */
template <int CHANNELS>
static __device__ __forceinline__ void augment_load(uint32_t quad[AUGMENT_AHEAD][CHANNELS], const uint8_t *image,
                                                    const AugmentPatches *patches, int first, int height, int width) {
  const size_t plane = (size_t)height * width;
#pragma unroll
  for (int k = 0; k < AUGMENT_AHEAD; k++) {
    int row, column;
    augment_patch(patches, first + k * AUGMENT_LOADERS, &row, &column);
    const int inside = row < height && column < width;
    for (int c = 0; c < CHANNELS; c++)
      quad[k][c] = inside ? *(const uint32_t *)(image + c * plane + (size_t)row * width + column) : 0;
  }
}

/* What augment_load() has loaded, into the frame; no two lanes of a warp write the same bank. */
template <int CHANNELS>
static __device__ __forceinline__ void augment_store(uint32_t *frame, const uint32_t quad[AUGMENT_AHEAD][CHANNELS],
                                                     const AugmentPatches *patches, int first, int height, int width) {
#pragma unroll
  for (int k = 0; k < AUGMENT_AHEAD; k++) {
    int row, column;
    augment_patch(patches, first + k * AUGMENT_LOADERS, &row, &column);
    if (row < height && column < width) {
      uint32_t word[4], *to = frame + (row + 1) * augment_stride(width) + column + 1;
      augment_pack<CHANNELS>(word, quad[k]);
      for (int j = 0; j < 4; j++) to[j] = word[j];
    }
  }
}

/* The black pixels around it, by the warps that load. */
static __device__ __forceinline__ void augment_clear_border(uint32_t *frame, int height, int width) {
  const int stride = augment_stride(width), threads = AUGMENT_LOADERS * 32;
  for (int i = threadIdx.x; i < stride; i += threads) {
    frame[i] = 0;
    frame[(height + 1) * stride + i] = 0;
    frame[(height + 2) * stride + i] = 0;
  }
  for (int row = threadIdx.x + 1; row <= height; row += threads) {
    frame[row * stride] = 0;
    for (int i = width + 1; i < stride; i++) frame[row * stride + i] = 0;
  }
  if (threadIdx.x == 0) frame[(height + 3) * stride] = 0;
}

/* value[c] of the pixel at a place (Q8) of the image.
 * An instruction __dp2a adds the products of two 16-bit weights with two bytes: the mean of two neighbours in a row. */
template <int CHANNELS, int MIXES>
static __device__ __forceinline__ void augment_frame_pixel(int value[CHANNELS], const uint32_t *frame, int x, int y,
                                                           int height, int width) {
  const int stride = augment_stride(width);
  x = augment_framed(x, width);
  y = augment_framed(y, height);
  const uint32_t *at = frame + (y >> 8) * stride + (x >> 8);
  if (!MIXES) {
    for (int c = 0; c < CHANNELS; c++) value[c] = (int)(at[0] >> 8 * c & 255);
    return;
  }
  const uint32_t far_y = y & 255, far_x = x & 255, weights = far_x * 65535u + 256;
  uint32_t row[2][4]; /* of channel c, Q8 */
  for (int j = 0; j < 2; j++) {
    const uint32_t left = at[j * stride], right = at[j * stride + 1];
    const uint32_t two = __byte_perm(left, right, 0x5140); /* red left, red right, green left, green right */
    row[j][0] = __dp2a_lo(weights, two, 0u);
    if (CHANNELS == 1) continue;
    row[j][1] = __dp2a_hi(weights, two, 0u);
    row[j][2] = __dp2a_lo(weights, __byte_perm(left, right, 0x0062), 0u);
  }
  for (int c = 0; c < CHANNELS; c++)
    value[c] = (int)((row[0][c] * (256 - far_y) + (row[1][c] * far_y + AUGMENT_ONE / 2)) >> 16);
}

/* out[c][j]: the normalised channels of four neighbours of a row, from column `left` on. */
template <int CHANNELS, int MIXES, int RECOLOURS>
static __device__ __forceinline__ void augment_quad(float out[CHANNELS][4], const uint32_t *frame,
                                                    const AugmentNorm *norm, const AugmentDraw *draw, int row, int left,
                                                    int height, int width) {
  const int x0 = draw->xx * left + draw->xy * row + draw->x0 + 128;
  const int y0 = draw->yx * left + draw->yy * row + draw->y0 + 128;
  const int sign = draw->flip ? -1 : 1, edge = draw->flip ? (width - 1) * 256 : 0;
#pragma unroll
  for (int j = 0; j < 4; j++) {
    int value[CHANNELS];
    augment_frame_pixel<CHANNELS, MIXES>(value, frame, sign * ((draw->xx * j + x0) >> 8) + edge,
                                         (draw->yx * j + y0) >> 8, height, width);
    if (RECOLOURS) {
      const int luma = CHANNELS == 3 ? augment_luma(value[0], value[1 % CHANNELS], value[2 % CHANNELS]) : 0;
      for (int c = 0; c < CHANNELS; c++) value[c] = augment_recoloured(draw, value[c], luma);
    }
    for (int c = 0; c < CHANNELS; c++) out[c][j] = augment_normalized(norm, c, value[c]);
  }
  if (row < draw->cut_top || row >= draw->cut_bottom || left + 3 < draw->cut_left || left >= draw->cut_right) return;
#pragma unroll
  for (int j = 0; j < 4; j++)
    for (int c = 0; c < CHANNELS && augment_is_cut(draw, row, left + j); c++) out[c][j] = 0;
}

/* One block per image of 1 or 3 channels, its width a multiple of 4. The last warp draws while the others load: a warp
 * that did both would keep all others waiting at the barrier. MIXES, RECOLOURS: augment_mixes() and augment_recolours(),
 * known to the compiler so that it loads the words of four pixels before it computes the first. */
template <int CHANNELS, int MIXES, int RECOLOURS>
static __global__ void __launch_bounds__(AUGMENT_BLOCK, 4)
    augment_kernel(float *y, AugmentSource source, AugmentMost most) {
  extern __shared__ uint32_t frame[];
  __shared__ PhiloxBlock random[AUGMENT_BLOCKS];
  __shared__ AugmentDraw drawn;
  const int b = blockIdx.x, lane = threadIdx.x % 32, warp = threadIdx.x / 32, height = source.height,
            width = source.width;
  const size_t plane = (size_t)height * width;
  const AugmentPatches patches = augment_patches(height, width);
  if (warp == AUGMENT_LOADERS) {
    if (lane < AUGMENT_BLOCKS) random[lane] = augment_block(*source.key, source.sample[b], lane);
    __syncwarp();
    if (lane == 0) {
      drawn = augment_draw_from(&most, random, source.middle, CHANNELS, height, width);
      if (source.labels) source.labels[b] = augment_label(&source, b);
    }
  } else {
    const uint8_t *image = source.images + source.row[b] * plane * CHANNELS;
    uint32_t quad[AUGMENT_AHEAD][CHANNELS];
    augment_load<CHANNELS>(quad, image, &patches, warp, height, width);
    augment_clear_border(frame, height, width);
    augment_store<CHANNELS>(frame, quad, &patches, warp, height, width);
    for (int p = warp + AUGMENT_AHEAD * AUGMENT_LOADERS; p < patches.count; p += AUGMENT_AHEAD * AUGMENT_LOADERS) {
      augment_load<CHANNELS>(quad, image, &patches, p, height, width);
      augment_store<CHANNELS>(frame, quad, &patches, p, height, width);
    }
  }
  __syncthreads();

  const AugmentDraw draw = drawn;
  y += b * plane * CHANNELS;
  for (int p = warp; p < patches.count; p += AUGMENT_WARPS) {
    int row, left;
    float out[CHANNELS][4];
    augment_patch(&patches, p, &row, &left);
    if (row >= height || left >= width) continue;
    augment_quad<CHANNELS, MIXES, RECOLOURS>(out, frame, &source.norm, &draw, row, left, height, width);
    for (int c = 0; c < CHANNELS; c++)
      __stcs((float4 *)(y + c * plane + (size_t)row * width + left),
             make_float4(out[c][0], out[c][1], out[c][2], out[c][3]));
  }
}

/* -------------------------------------------------------------------------------------------------------- launcher */

/* Bytes of shared memory for the frame. */
static inline size_t augment_shared_bytes(int height, int width) {
  return augment_frame_words(height, width) * sizeof(uint32_t);
}

/* Are quads aligned to 4 bytes in the images and to 16 in y, and does the frame fit? */
static inline int augment_fits(const float *y, const AugmentSource *source) {
  return (source->channels == 1 || source->channels == 3) && source->width % 4 == 0 &&
         (uintptr_t)source->images % 4 == 0 && (uintptr_t)y % sizeof(float4) == 0 &&
         augment_shared_bytes(source->height, source->width) <= AUGMENT_SHARED - 512;
}

static inline void augment_gpu(float *y, const AugmentSource *source, const AugmentMost *most, int batch) {
  if (batch == 0) return;
  if (!augment_fits(y, source)) {
    const int plane = source->height * source->width, pieces = (plane + 4 * AUGMENT_BLOCK - 1) / (4 * AUGMENT_BLOCK);
    const dim3 grid(batch, pieces < AUGMENT_MOST_PIECES ? pieces : AUGMENT_MOST_PIECES);
    augment_pixels_kernel<<<grid, AUGMENT_BLOCK>>>(y, *source, *most);
    CUDA_CHECK_LAUNCH();
    return;
  }
  static void (*const kernels[2][2][2])(float *, AugmentSource, AugmentMost) = {
      {{augment_kernel<1, 0, 0>, augment_kernel<1, 0, 1>}, {augment_kernel<1, 1, 0>, augment_kernel<1, 1, 1>}},
      {{augment_kernel<3, 0, 0>, augment_kernel<3, 0, 1>}, {augment_kernel<3, 1, 0>, augment_kernel<3, 1, 1>}}};
  void (*const kernel)(float *, AugmentSource, AugmentMost) =
      kernels[source->channels == 3][augment_mixes(most)][augment_recolours(most)];
  const size_t shared = augment_shared_bytes(source->height, source->width);
  kernel<<<batch, AUGMENT_BLOCK, shared>>>(y, *source, *most);
  CUDA_CHECK_LAUNCH();
}

#endif /* COMMON_NN_AUGMENT_FAST_CUH */
