/* picture_luma.h - colour pictures through a network that knows only grey ones, super-resolution for example: the
 * network gets the luma, and the chroma, in which eyes see less, is scaled to the size of its answer and put back, as
 * JFIF has it:
 *
 *     Y  =  0.299 R + 0.587 G + 0.114 B
 *     Cb = (B - Y) / 1.772, Cr = (R - Y) / 1.402
 */
#ifndef PHASE5_PRODUCTION_PICTURE_LUMA_H
#define PHASE5_PRODUCTION_PICTURE_LUMA_H

#include "common/image.h"

static inline float picture_luma_of(const unsigned char rgb[3]) {
  return 0.299f * rgb[0] + 0.587f * rgb[1] + 0.114f * rgb[2];
}

static inline unsigned char picture_luma_byte(float value) {
  return (unsigned char)(value <= 0 ? 0 : value >= 255 ? 255 : value + 0.5f);
}

/* The luma of an RGB picture: one channel. */
static inline Image picture_luma(const Image *colour) {
  Image luma = image_new(colour->width, colour->height, 1);
  for (size_t i = 0; i < (size_t)luma.width * (size_t)luma.height; i++)
    luma.pixels[i] = picture_luma_byte(picture_luma_of(colour->pixels + 3 * i));
  return luma;
}

/* B - Y and R - Y of the picture at (x, y), between its pixels on the line; outside as at the edge. */
static inline void picture_chroma_at(const Image *colour, float x, float y, float *blue, float *red) {
  const float right = (float)(colour->width - 1), bottom = (float)(colour->height - 1);
  x = fminf(fmaxf(x, 0), right);
  y = fminf(fmaxf(y, 0), bottom);
  const int left = (int)x, top = (int)y;
  *blue = *red = 0;
  for (int k = 0; k < 4; k++) {
    const int u = left + k % 2, v = top + k / 2;
    const float share =
        (k % 2 ? x - (float)left : 1 - (x - (float)left)) * (k / 2 ? y - (float)top : 1 - (y - (float)top));
    if (share <= 0) continue; /* beyond the edge, too */
    const unsigned char *rgb = colour->pixels + 3 * ((size_t)v * (size_t)colour->width + (size_t)u);
    *blue += share * (rgb[2] - picture_luma_of(rgb));
    *red += share * (rgb[0] - picture_luma_of(rgb));
  }
}

/* Another luma of any size, with the chroma of the picture: an RGB picture of the luma's size. */
static inline Image picture_join_luma(const unsigned char *luma, int width, int height, const Image *colour) {
  Image out = image_new(width, height, 3);
  const float step_x = (float)colour->width / (float)width, step_y = (float)colour->height / (float)height;
  for (int v = 0; v < height; v++)
    for (int u = 0; u < width; u++) {
      float blue, red;
      const size_t at = (size_t)v * (size_t)width + (size_t)u;
      picture_chroma_at(colour, ((float)u + 0.5f) * step_x - 0.5f, ((float)v + 0.5f) * step_y - 0.5f, &blue, &red);
      const float y = luma[at];
      out.pixels[3 * at] = picture_luma_byte(y + red);
      out.pixels[3 * at + 1] = picture_luma_byte(y - (0.114f * blue + 0.299f * red) / 0.587f);
      out.pixels[3 * at + 2] = picture_luma_byte(y + blue);
    }
  return out;
}

#endif /* PHASE5_PRODUCTION_PICTURE_LUMA_H */
