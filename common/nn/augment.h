/* augment.h - random changes of training images that leave their class as it is: what is drawn for an image, and what
 * becomes of a pixel.
 *
 *     Augment augment;                                          // or one of the constants below
 *     if (augment_parse("crop,flip,cutout:8", &augment, &err) != 0) die("%s", err.message);    // augment_text.h
 *     augment_apply(&augment, device, y, &source, batch);                                      // augment.cu
 *
 * Each batch is made anew from the bytes of the data set, in this order:
 *
 *     flip        half of the images are mirrored, left for right
 *     affine      shear and scale, rotation, shift; the four pixels around a place are mixed by bilinear weights
 *     colour      brightness b p, contrast c p + (1 - c) m, saturation s p + (1 - s) L; p is a pixel, m the grey of the
 *                 training set's mean, L = 0.299 R + 0.587 G + 0.114 B; as one formula: own p + grey L + add
 *     normalise   (p / 255 - mean) / stddev, as one fused multiply-add: p scale + shift
 *     cutout      a square becomes 0, which is the mean (DeVries, Taylor, 2017); it may reach beyond the border
 *
 * Beyond the image's border all pixels are black.
 *
 * What happens to a sample is a function of (seed, epoch, number of the sample), drawn from Philox: the order of the
 * samples, the size of the batch, the number of threads and a stop in between do not matter.
 *
 * CPU and GPU give the same bits. Some processors compute a * b + c with one rounding and others with two, and their
 * sines differ, too. So everything before the last step is computed with integers: numbers are multiples of 2^-16
 * ("Q16") or 2^-8 ("Q8"), angles are multiples of 2^-32 of a turn, pixels are whole numbers from 0 to 255 between the
 * steps. The last step is fmaf(), which has one rounding everywhere.
 *
 *     augment_cpu        here: plain loops, the definition
 *     augment_cpu_fast   augment_fast.cuh: an image in a frame of black pixels, a row at a time, images among threads
 *     augment_gpu        augment_fast.cuh: the same frame in shared memory, one block per image
 */
#ifndef COMMON_NN_AUGMENT_H
#define COMMON_NN_AUGMENT_H

#include "common/nn/op.h"
#include "common/philox.h"

enum {
  AUGMENT_STREAM = 0x41554721, /* of the random numbers, and the next three */
  AUGMENT_BLOCKS = 4,          /* of four words each, for an image */
  AUGMENT_CHANNELS = 4,        /* at most */
  AUGMENT_TEXT = 160,          /* bytes of a name as typed */
  AUGMENT_ONE = 1 << 16,       /* 1 in Q16 */
  AUGMENT_SIDE = 2048          /* of an image, at most, where its pixels are mixed: positions are Q16 in 32 bits */
};

/* How far each change goes at most; 0: it is left out. */
typedef struct AugmentMost {
  int shift;                            /* whole pixels, down or up and right or left */
  int flip;                             /* 1: half of the images */
  uint32_t rotate, shear;               /* 2^-32 of a turn, either way */
  int scale;                            /* Q16: by 1 - scale to 1 + scale */
  int slide;                            /* Q16 pixels: a shift that is not whole */
  int cutout;                           /* pixels: the side of the square */
  int brightness, contrast, saturation; /* Q16: factors from 1 - x to 1 + x */
} AugmentMost;

typedef struct Augment {
  char name[AUGMENT_TEXT]; /* as typed; a checkpoint keeps it */
  AugmentMost most;
} Augment;

static const Augment augment_none = {"none", {0, 0, 0, 0, 0, 0, 0, 0, 0, 0}};
static const Augment augment_shift = {"shift", {2, 0, 0, 0, 0, 0, 0, 0, 0, 0}};
static const Augment augment_flip = {"flip", {0, 1, 0, 0, 0, 0, 0, 0, 0, 0}};
static const Augment augment_crop = {"crop", {4, 1, 0, 0, 0, 0, 0, 0, 0, 0}};

PHILOX_FUNCTION int augment_mixes(const AugmentMost *most) {
  return most->rotate != 0 || most->shear != 0 || most->scale != 0 || most->slide != 0;
}

PHILOX_FUNCTION int augment_recolours(const AugmentMost *most) {
  return most->brightness != 0 || most->contrast != 0 || most->saturation != 0;
}

PHILOX_FUNCTION int augment_changes(const AugmentMost *most) {
  return augment_mixes(most) || augment_recolours(most) || most->shift != 0 || most->flip != 0 || most->cutout != 0;
}

/* 32-bit words, so that a kernel can read it from an array of them. */
typedef struct AugmentKey {
  uint32_t seed_low, seed_high, epoch;
} AugmentKey;

static inline AugmentKey augment_key(uint64_t seed, uint32_t epoch) {
  const AugmentKey key = {(uint32_t)seed, (uint32_t)(seed >> 32), epoch};
  return key;
}

/* A pixel p of channel c becomes p scale[c] + shift[c]. */
typedef struct AugmentNorm {
  float scale[AUGMENT_CHANNELS], shift[AUGMENT_CHANNELS];
} AugmentNorm;

/* (p / 255 - mean) / stddev; the two numbers are computed in double and rounded once. */
static inline AugmentNorm augment_norm(const float *mean, const float *stddev, int channels) {
  AugmentNorm norm = {{0}, {0}};
  for (int c = 0; c < channels; c++) {
    norm.scale[c] = (float)(1 / (255.0 * stddev[c]));
    norm.shift[c] = (float)(-(double)mean[c] / stddev[c]);
  }
  return norm;
}

/* One rounding, on every processor. */
PHILOX_FUNCTION float augment_normalized(const AugmentNorm *norm, int c, int value) {
  return fmaf((float)value, norm->scale[c], norm->shift[c]);
}

/* What a batch is made from. All arrays are on the device; the key, too, so that a recorded CUDA graph serves all
 * epochs. */
typedef struct AugmentSource {
  const uint8_t *images;  /* (count, C,H,W) */
  const uint32_t *row;    /* (batch): which of `images` */
  const uint32_t *sample; /* (batch): its number in the data set, by which it is drawn */
  const AugmentKey *key;
  AugmentNorm norm;
  int middle; /* Q16, 0 to 255: the grey around which contrast changes */
  int channels, height, width;
  const uint8_t *byte_labels; /* (count); NULL: int_labels has them */
  const int *int_labels;
  int *labels; /* (batch): becomes the labels of the batch; NULL: they are not wanted */
} AugmentSource;

/* On `device`; y (batch, C,H,W) and source->labels are written. */
void augment_apply(const Augment *augment, Device device, float *y, const AugmentSource *source, int batch);

/* AugmentSource.middle for images whose channels have these means, from 0 to 1. */
static inline int augment_middle(const float *mean, int channels) {
  const double luma[] = {0.299, 0.587, 0.114};
  double middle = 0;
  for (int c = 0; c < channels; c++) middle += mean[c] * (channels == 3 ? luma[c] : 1.0 / channels);
  return (int)lrint(middle * 255 * AUGMENT_ONE);
}

/* --------------------------------------------------------------------------------------------------------- drawing */

/* What happens to one image. The first six, Q16: pixel (row, column) of the result is the image's at
 * x = xx column + xy row + x0 and y = yx column + yy row + y0, before it is mirrored. */
typedef struct AugmentDraw {
  int xx, xy, x0, yx, yy, y0;
  int flip;
  int cut_top, cut_bottom, cut_left, cut_right; /* the square: rows from cut_top on, before cut_bottom */
  int own, grey, add;                           /* Q16: a value becomes own value + grey L + add */
} AugmentDraw;

/* -most to most, each equally likely but for 2^-32 of all draws. */
PHILOX_FUNCTION int64_t augment_between(uint32_t word, uint32_t most) {
  return (int64_t)(word * (2 * (uint64_t)most + 1) >> 32) - (int64_t)most;
}

PHILOX_FUNCTION int augment_times(int a, int b) { return (int)(((int64_t)a * b + AUGMENT_ONE / 2) >> 16); }

PHILOX_FUNCTION int augment_q30(int a, int b) { return (int)((int64_t)a * b >> 30); }

/* The sine of angle / 2^32 turns, Q16. Of a quarter turn it is the series t (c1 - t^2 (c3 - t^2 (c5 - ...))) with
 * ck = (pi/2)^k / k! and t from 0 to 1, all Q30. The first term that is left out is (pi/2)^13 / 13! = 6e-8, so the
 * sines of whole quarter turns are exactly 0 and 1. */
PHILOX_FUNCTION int augment_sine(uint32_t angle) {
  const uint32_t quarter = 1u << 30, into = angle & (quarter - 1);
  const int t = (int)(angle & quarter ? quarter - into : into), t2 = augment_q30(t, t);
  int sum = 172272 - augment_q30(t2, 3864);
  sum = 5026995 - augment_q30(t2, sum);
  sum = 85569306 - augment_q30(t2, sum);
  sum = 693598668 - augment_q30(t2, sum);
  sum = 1686629713 - augment_q30(t2, sum);
  const int sine = (augment_q30(t, sum) + (1 << 13)) >> 14;
  return angle >> 31 ? -sine : sine;
}

PHILOX_FUNCTION int augment_cosine(uint32_t angle) { return augment_sine(angle + (1u << 30)); }

PHILOX_FUNCTION PhiloxBlock augment_block(AugmentKey key, uint32_t sample, int i) {
  const uint64_t seed = (uint64_t)key.seed_high << 32 | key.seed_low;
  return philox4x32(seed, (uint32_t)(AUGMENT_STREAM + i), (uint64_t)key.epoch << 32 | sample);
}

/* The map of a draw. In the result a point p of the image lies at R S p + t, seen from the middle: S shears by
 * x + k y and scales by `scale`, R rotates clockwise, as y points down, and t shifts. So the result's point q comes
 * from S^-1 R^-1 (q - t):  u = (c qx + s qy) / scale,  v = (-s qx + c qy) / scale,  x = u - k v,  y = v. */
PHILOX_FUNCTION void augment_draw_map(AugmentDraw *draw, uint32_t rotation, int scale, uint32_t shear, int right,
                                      int down, int height, int width) {
  const int c = augment_cosine(rotation), s = augment_sine(rotation);
  /* Of 32 bits: a GPU takes several times as long to divide 64. The sine of 45 degrees, Q32, is less than 2^32. */
  const int sine = augment_sine(shear);
  const uint32_t slope = (uint32_t)(sine < 0 ? -sine : sine) * AUGMENT_ONE / (uint32_t)augment_cosine(shear);
  const int k = sine < 0 ? -(int)slope : (int)slope;
  const int inverse = (int)((UINT32_MAX - (uint32_t)scale / 2) / (uint32_t)scale) + 1; /* 2^32 / scale, rounded */
  const int uu = augment_times(inverse, c), uv = augment_times(inverse, s);
  const int middle_x = (width - 1) * (AUGMENT_ONE / 2), middle_y = (height - 1) * (AUGMENT_ONE / 2);
  const int from_x = middle_x + right, from_y = middle_y + down;
  draw->xx = uu + augment_times(k, uv);
  draw->xy = uv - augment_times(k, uu);
  draw->yx = -uv;
  draw->yy = uu;
  draw->x0 = middle_x - (int)(((int64_t)draw->xx * from_x + (int64_t)draw->xy * from_y + AUGMENT_ONE / 2) >> 16);
  draw->y0 = middle_y - (int)(((int64_t)draw->yx * from_x + (int64_t)draw->yy * from_y + AUGMENT_ONE / 2) >> 16);
}

/* random: augment_block() 0, 1, 2 and 3. */
PHILOX_FUNCTION AugmentDraw augment_draw_from(const AugmentMost *most, const PhiloxBlock *random, int middle,
                                              int channels, int height, int width) {
  AugmentDraw draw;
  const int down = (int)augment_between(random[0].word[0], (uint32_t)most->shift);
  const int right = (int)augment_between(random[0].word[1], (uint32_t)most->shift);
  draw.flip = most->flip && (random[0].word[2] & 1);
  if (augment_mixes(most)) {
    const uint32_t rotation = (uint32_t)augment_between(random[1].word[0], most->rotate);
    const int scale = AUGMENT_ONE + (int)augment_between(random[1].word[1], (uint32_t)most->scale);
    const uint32_t shear = (uint32_t)augment_between(random[1].word[2], most->shear);
    const int slide_right = (int)augment_between(random[2].word[0], (uint32_t)most->slide);
    const int slide_down = (int)augment_between(random[2].word[1], (uint32_t)most->slide);
    augment_draw_map(&draw, rotation, scale, shear, right * AUGMENT_ONE + slide_right, down * AUGMENT_ONE + slide_down,
                     height, width);
  } else {
    draw.xx = draw.yy = AUGMENT_ONE;
    draw.xy = draw.yx = 0;
    draw.x0 = -right * AUGMENT_ONE;
    draw.y0 = -down * AUGMENT_ONE;
  }
  draw.cut_top = (int)((uint64_t)random[2].word[2] * (uint32_t)height >> 32) - most->cutout / 2;
  draw.cut_left = (int)((uint64_t)random[2].word[3] * (uint32_t)width >> 32) - most->cutout / 2;
  draw.cut_bottom = draw.cut_top + most->cutout;
  draw.cut_right = draw.cut_left + most->cutout;
  const int b = AUGMENT_ONE + (int)augment_between(random[3].word[0], (uint32_t)most->brightness);
  const int c = AUGMENT_ONE + (int)augment_between(random[3].word[1], (uint32_t)most->contrast);
  const int s = AUGMENT_ONE + (channels == 3 ? (int)augment_between(random[3].word[2], (uint32_t)most->saturation) : 0);
  const int bc = augment_times(b, c);
  draw.own = augment_times(s, bc);
  draw.grey = bc - draw.own;
  draw.add = augment_times(AUGMENT_ONE - c, middle);
  return draw;
}

PHILOX_FUNCTION AugmentDraw augment_draw(const AugmentMost *most, const AugmentSource *source, int b) {
  PhiloxBlock random[AUGMENT_BLOCKS];
  for (int i = 0; i < AUGMENT_BLOCKS; i++) random[i] = augment_block(*source->key, source->sample[b], i);
  return augment_draw_from(most, random, source->middle, source->channels, source->height, source->width);
}

/* ---------------------------------------------------------------------------------------------------------- pixels */

/* Q8, from the image's upper left pixel. */
typedef struct AugmentPlace {
  int x, y;
} AugmentPlace;

/* Where the result's pixel comes from. Mirrored in Q8, after the rounding, so that a mirrored image is mirrored
 * exactly. */
PHILOX_FUNCTION AugmentPlace augment_place(const AugmentDraw *draw, int row, int column, int width) {
  AugmentPlace at;
  at.x = (draw->xx * column + draw->xy * row + draw->x0 + 128) >> 8;
  at.y = (draw->yx * column + draw->yy * row + draw->y0 + 128) >> 8;
  if (draw->flip) at.x = (width - 1) * 256 - at.x;
  return at;
}

/* 0 to 255: the pixels around a place of a plane (height,width), each with a weight of what it is away from the place
 * in x, times the same in y. 255 of Q16 and a half are 24 bits. */
PHILOX_FUNCTION int augment_mixed(const uint8_t *plane, AugmentPlace at, int height, int width) {
  int sum = AUGMENT_ONE / 2;
  for (int j = 0; j < 2; j++)
    for (int i = 0; i < 2; i++) {
      const int row = (at.y >> 8) + j, column = (at.x >> 8) + i;
      const int far_y = at.y & 255, far_x = at.x & 255;
      if (row < 0 || row >= height || column < 0 || column >= width) continue; /* black */
      sum += (j ? far_y : 256 - far_y) * (i ? far_x : 256 - far_x) * plane[(size_t)row * width + column];
    }
  return sum >> 16;
}

/* The weights of ITU-R BT.601, Q16; their sum is 1. */
PHILOX_FUNCTION int augment_luma(int red, int green, int blue) {
  return (19595 * red + 38470 * green + 7471 * blue + AUGMENT_ONE / 2) >> 16;
}

PHILOX_FUNCTION int augment_recoloured(const AugmentDraw *draw, int value, int luma) {
  const int sum = (draw->own * value + draw->grey * luma + draw->add + AUGMENT_ONE / 2) >> 16;
  return sum < 0 ? 0 : sum > 255 ? 255 : sum;
}

PHILOX_FUNCTION int augment_is_cut(const AugmentDraw *draw, int row, int column) {
  return row >= draw->cut_top && row < draw->cut_bottom && column >= draw->cut_left && column < draw->cut_right;
}

/* Pixel (row, column) of all channels of image b: value[c], 0 to 255. */
PHILOX_FUNCTION void augment_pixel(int *value, const AugmentSource *source, const AugmentDraw *draw, int b, int row,
                                   int column) {
  const size_t plane = (size_t)source->height * source->width;
  const uint8_t *image = source->images + source->row[b] * plane * source->channels;
  const AugmentPlace at = augment_place(draw, row, column, source->width);
  for (int c = 0; c < source->channels; c++)
    value[c] = augment_mixed(image + c * plane, at, source->height, source->width);
  const int luma = source->channels == 3 ? augment_luma(value[0], value[1], value[2]) : 0;
  for (int c = 0; c < source->channels; c++) value[c] = augment_recoloured(draw, value[c], luma);
}

PHILOX_FUNCTION int augment_label(const AugmentSource *source, int b) {
  return source->byte_labels ? source->byte_labels[source->row[b]] : source->int_labels[source->row[b]];
}

/* The definition. */
static inline void augment_cpu(float *y, const AugmentSource *source, const AugmentMost *most, int batch) {
  const size_t plane = (size_t)source->height * source->width;
  for (int b = 0; b < batch; b++, y += plane * source->channels) {
    const AugmentDraw draw = augment_draw(most, source, b);
    for (int row = 0; row < source->height; row++)
      for (int column = 0; column < source->width; column++) {
        int value[AUGMENT_CHANNELS];
        augment_pixel(value, source, &draw, b, row, column);
        for (int c = 0; c < source->channels; c++)
          y[c * plane + (size_t)row * source->width + column] =
              augment_is_cut(&draw, row, column) ? 0 : augment_normalized(&source->norm, c, value[c]);
      }
    if (source->labels) source->labels[b] = augment_label(source, b);
  }
}

#endif /* COMMON_NN_AUGMENT_H */
