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

PHILOX_FUNCTION int augment_clamped(int at, int size) { return at < -256 ? -256 : at > size * 256 ? size * 256 : at; }

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
    const int x = augment_clamped(sign * ((draw->xx * (start + i) + x0) >> 8) + edge, width);
    const int y = augment_clamped((draw->yx * (start + i) + y0) >> 8, height);
    at[i] = ((y >> 8) + 1) * stride + (x >> 8) + 1;
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

/* One image; frame: NULL where nothing is mixed. */
CPU_CLONES static void augment_image_cpu(float *y, const AugmentSource *source, const AugmentMost *most,
                                         const AugmentDraw *draw, const uint8_t *image, const uint32_t *frame) {
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
        const float *table = source->table + 256 * c;
        float *to = y + c * plane + start;
#pragma omp simd
        for (int i = 0; i < n; i++) to[i] = table[value[c][i]];
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
#pragma omp parallel if (batch * size > AUGMENT_CPU_SERIAL)
  {
    const size_t words = mixes ? augment_frame_words(source->height, source->width) : 1;
    uint32_t *frame = (uint32_t *)xmalloc(words * sizeof *frame);
#pragma omp for schedule(static)
    for (int b = 0; b < batch; b++) {
      const AugmentDraw draw = augment_draw(most, source, b);
      const uint8_t *image = source->images + source->row[b] * size;
      if (mixes) augment_frame_cpu(frame, image, source->channels, source->height, source->width);
      augment_image_cpu(y + b * size, source, most, &draw, image, mixes ? frame : NULL);
      if (source->labels) source->labels[b] = augment_label(source, b);
    }
    free(frame);
  }
}

#include "common/check.h"

/* --------------------------------------------------------------------------------------------------------- kernels */

enum { AUGMENT_BLOCK = 256, AUGMENT_WARPS = AUGMENT_BLOCK / 32, AUGMENT_ROWS = 4, AUGMENT_LANES = 8 };
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
    for (int c = 0; c < source.channels; c++) y[(size_t)c * plane + i] = cut ? 0 : source.table[256 * c + value[c]];
  }
}

/* Four pixels of CHANNELS planes, at `quad` of each, as four words; of a word's bytes beyond the channels nothing is
 * expected. */
template <int CHANNELS>
static __device__ __forceinline__ void augment_pack(uint32_t word[4], const uint8_t *quad, size_t plane) {
  const uint32_t first = *(const uint32_t *)quad;
  if (CHANNELS == 3) {
    const uint32_t green = *(const uint32_t *)(quad + plane), blue = *(const uint32_t *)(quad + 2 * plane);
    const uint32_t low = __byte_perm(first, green, 0x5140), high = __byte_perm(first, green, 0x7362); /* RGRG */
    word[0] = __byte_perm(low, blue, 0x4410);
    word[1] = __byte_perm(low, blue, 0x5532);
    word[2] = __byte_perm(high, blue, 0x6610);
    word[3] = __byte_perm(high, blue, 0x7732);
  } else {
    for (int j = 0; j < 4; j++) word[j] = first >> 8 * j;
  }
}

/* Threads `first`, first + 1, ... of the block bring the image, in patches, so that no two lanes of a warp write the
 * same bank. */
template <int CHANNELS>
static __device__ __forceinline__ void augment_load_frame(uint32_t *frame, const uint8_t *image, int first, int height,
                                                          int width) {
  const int stride = augment_stride(width), lane = threadIdx.x % 32, warp = (threadIdx.x - first) / 32;
  const int step = (AUGMENT_WARPS - first / 32) * AUGMENT_ROWS;
  for (int row = warp * AUGMENT_ROWS + lane / AUGMENT_LANES; row < height; row += step) {
#pragma unroll 2 /* the loads of two patches are under way at a time */
    for (int column = lane % AUGMENT_LANES * 4; column < width; column += AUGMENT_LANES * 4) {
      uint32_t word[4];
      augment_pack<CHANNELS>(word, image + (size_t)row * width + column, (size_t)height * width);
      uint32_t *to = frame + (row + 1) * stride + column + 1;
      for (int j = 0; j < 4; j++) to[j] = word[j];
    }
  }
}

/* The black pixels around it, by all threads. */
static __device__ __forceinline__ void augment_clear_border(uint32_t *frame, int height, int width) {
  const int stride = augment_stride(width);
  for (int i = threadIdx.x; i < stride; i += AUGMENT_BLOCK) {
    frame[i] = 0;
    frame[(height + 1) * stride + i] = 0;
    frame[(height + 2) * stride + i] = 0;
  }
  for (int row = threadIdx.x + 1; row <= height; row += AUGMENT_BLOCK) {
    frame[row * stride] = 0;
    for (int i = width + 1; i < stride; i++) frame[row * stride + i] = 0;
  }
  if (threadIdx.x == 0) frame[(height + 3) * stride] = 0;
}

/* value[c] of the pixel at a place (Q8) of the frame. */
template <int CHANNELS>
static __device__ __forceinline__ void augment_frame_pixel(int value[CHANNELS], const uint32_t *frame, int x, int y,
                                                           int height, int width, int mixes) {
  const int stride = augment_stride(width);
  x = augment_clamped(x, width);
  y = augment_clamped(y, height);
  const uint32_t *at = frame + ((y >> 8) + 1) * stride + (x >> 8) + 1;
  const uint32_t word = at[0];
  if (!mixes) {
    for (int c = 0; c < CHANNELS; c++) value[c] = (int)(word >> 8 * c & 255);
    return;
  }
  const uint32_t right = at[1], below = at[stride], opposite = at[stride + 1];
  const int far_x = x & 255, far_y = y & 255;
  const int w11 = far_x * far_y, w01 = 256 * far_x - w11, w10 = 256 * far_y - w11;
  const int w00 = AUGMENT_ONE - 256 * far_x - w10;
  for (int c = 0; c < CHANNELS; c++)
    value[c] = (w00 * (int)(word >> 8 * c & 255) + w01 * (int)(right >> 8 * c & 255) +
                w10 * (int)(below >> 8 * c & 255) + w11 * (int)(opposite >> 8 * c & 255) + AUGMENT_ONE / 2) >>
               16;
}

/* One block per image of 1 or 3 channels, its width a multiple of 4. The first warp draws while the others load. */
template <int CHANNELS>
static __global__ void __launch_bounds__(AUGMENT_BLOCK)
    augment_kernel(float *y, AugmentSource source, AugmentMost most) {
  extern __shared__ uint32_t augment_shared[]; /* the table, then the frame */
  __shared__ PhiloxBlock random[AUGMENT_BLOCKS];
  __shared__ AugmentDraw drawn;
  float *table = (float *)augment_shared;
  uint32_t *frame = augment_shared + 256 * CHANNELS;
  const int b = blockIdx.x, lane = threadIdx.x % 32, height = source.height, width = source.width;
  const size_t plane = (size_t)height * width;
  if (threadIdx.x >= 32) {
    augment_load_frame<CHANNELS>(frame, source.images + source.row[b] * plane * CHANNELS, 32, height, width);
  } else {
    if (lane < AUGMENT_BLOCKS) random[lane] = augment_block(*source.key, source.sample[b], lane);
    __syncwarp();
    if (lane == 0) {
      drawn = augment_draw_from(&most, random, source.middle, CHANNELS, height, width);
      if (source.labels) source.labels[b] = augment_label(&source, b);
    }
  }
  for (int i = threadIdx.x; i < 256 * CHANNELS; i += AUGMENT_BLOCK) table[i] = source.table[i];
  augment_clear_border(frame, height, width);
  __syncthreads();

  const AugmentDraw draw = drawn;
  const int mixes = augment_mixes(&most), recolours = augment_recolours(&most);
  y += b * plane * CHANNELS;
  for (int row = threadIdx.x / 32 * AUGMENT_ROWS + lane / AUGMENT_LANES; row < height;
       row += AUGMENT_WARPS * AUGMENT_ROWS) {
    for (int left = lane % AUGMENT_LANES * 4; left < width; left += AUGMENT_LANES * 4) {
      float out[CHANNELS][4];
#pragma unroll
      for (int j = 0; j < 4; j++) {
        const int cut = augment_is_cut(&draw, row, left + j);
        const AugmentPlace at = augment_place(&draw, row, left + j, width);
        int value[CHANNELS];
        augment_frame_pixel<CHANNELS>(value, frame, at.x, at.y, height, width, mixes);
        if (recolours) {
          const int luma = CHANNELS == 3 ? augment_luma(value[0], value[1 % CHANNELS], value[2 % CHANNELS]) : 0;
          for (int c = 0; c < CHANNELS; c++) value[c] = augment_recoloured(&draw, value[c], luma);
        }
        for (int c = 0; c < CHANNELS; c++) out[c][j] = cut ? 0 : table[256 * c + value[c]];
      }
      for (int c = 0; c < CHANNELS; c++)
        *(float4 *)(y + c * plane + (size_t)row * width + left) =
            make_float4(out[c][0], out[c][1], out[c][2], out[c][3]);
    }
  }
}

/* -------------------------------------------------------------------------------------------------------- launcher */

/* Bytes of shared memory for table and frame. */
static inline size_t augment_shared_bytes(int channels, int height, int width) {
  return (256 * channels + augment_frame_words(height, width)) * sizeof(uint32_t);
}

/* Are quads aligned to 4 bytes in the images and to 16 in y, and does the frame fit? */
static inline int augment_fits(const float *y, const AugmentSource *source) {
  return (source->channels == 1 || source->channels == 3) && source->width % 4 == 0 &&
         (uintptr_t)source->images % 4 == 0 && (uintptr_t)y % sizeof(float4) == 0 &&
         augment_shared_bytes(source->channels, source->height, source->width) <= AUGMENT_SHARED - 512;
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
  const size_t shared = augment_shared_bytes(source->channels, source->height, source->width);
  if (source->channels == 3)
    augment_kernel<3><<<batch, AUGMENT_BLOCK, shared>>>(y, *source, *most);
  else
    augment_kernel<1><<<batch, AUGMENT_BLOCK, shared>>>(y, *source, *most);
  CUDA_CHECK_LAUNCH();
}

#endif /* COMMON_NN_AUGMENT_FAST_CUH */
