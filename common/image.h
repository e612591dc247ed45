/* image.h - pictures in and out: PNG and JPEG files, sheets of small images, learned filters as colours.
 *
 *     Image photo;
 *     if (image_read_gray("seven.png", &photo, &err) != 0) die("%s", err.message);
 *     ...
 *     image_free(&photo);
 *
 * stb reads and writes PNG, libjpeg-turbo reads JPEG (stb 2.27, Debian's, writes beyond its tables on hostile JPEGs). A
 * file from outside may be anything, so sizes are checked before memory is asked for. Transparent parts count as white
 * paper.
 */
#ifndef COMMON_IMAGE_H
#define COMMON_IMAGE_H

#include "common/error.h"

#include <limits.h>
#include <math.h>
#include <sys/stat.h>
#include <turbojpeg.h>

#include "common/atomic_file.h"

enum { IMAGE_MAX_SIDE = 16384, IMAGE_MAX_PIXELS = 1 << 26, IMAGE_MAX_FILE_BYTES = 1 << 28 };

/* A few kilobytes of PNG may claim to unpack to gigabytes. */
static inline void *image_realloc(void *memory, size_t size) { return size >> 30 != 0 ? NULL : realloc(memory, size); }

/* Private copies of stb, without what is not used here, and without its compiler warnings. */
#define STBIDEF static __attribute__((unused))
#define STBIWDEF static __attribute__((unused))
#define STB_IMAGE_IMPLEMENTATION
#define STB_IMAGE_STATIC
#define STBI_ONLY_PNG
#define STBI_NO_GIF
#define STBI_NO_STDIO
#define STBI_NO_LINEAR
#define STBI_NO_HDR
#define STBI_FAILURE_USERMSG
#define STBI_MAX_DIMENSIONS IMAGE_MAX_SIDE
#define STBI_MALLOC(size) image_realloc(NULL, size)
#define STBI_REALLOC(memory, size) image_realloc(memory, size)
#define STBI_FREE(memory) free(memory)
#define STB_IMAGE_WRITE_IMPLEMENTATION
#define STB_IMAGE_WRITE_STATIC
/* Older stb declares the one and defines the other; newer has the first only. */
#define stbi__unpremultiply_on_load_thread stbi_set_unpremultiply_on_load_thread
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-function"
#pragma GCC diagnostic ignored "-Wunused-but-set-variable"
#pragma GCC diagnostic ignored "-Wmissing-field-initializers"
#ifdef __NVCC__
#pragma nv_diagnostic push
#pragma nv_diag_suppress 550
#endif
#include <stb/stb_image.h>
#include <stb/stb_image_write.h>
#ifdef __NVCC__
#pragma nv_diagnostic pop
#endif
#pragma GCC diagnostic pop

/* pixels (height,width,channels), 8 bits each. */
typedef struct Image {
  int width, height, channels;
  unsigned char *pixels;
} Image;

static inline void image_free(Image *image) {
  free(image->pixels);
  memset(image, 0, sizeof *image);
}

/* A white picture. Ends the program when the sizes are no sizes. */
static inline Image image_new(int width, int height, int channels) {
  Image image = {width, height, channels, NULL};
  if (width < 1 || height < 1 || (long long)width * height > IMAGE_MAX_PIXELS)
    die("a picture of %d x %d pixels cannot be made", width, height);
  size_t size = (size_t)width * (size_t)height * (size_t)channels;
  image.pixels = (unsigned char *)xmalloc(size);
  memset(image.pixels, 255, size);
  return image;
}

/* ---- reading ---- */

static inline int image_check_size(int width, int height, const char *name, Error *err) {
  if ((long long)width * height <= IMAGE_MAX_PIXELS) return 0;
  return error_set(err, "%s is %d x %d pixels; up to %d million are read, scale the image down", name, width, height,
                   IMAGE_MAX_PIXELS / 1000000);
}

static inline int image_decode_jpeg(const unsigned char *bytes, size_t size, const char *name, int channels, Image *out,
                                    Error *err) {
  int width = 0, height = 0, subsampling, colorspace;
  tjhandle decoder = tjInitDecompress();
  if (decoder == NULL) return error_set(err, "%s: no memory to decode it", name);
  int status = tjDecompressHeader3(decoder, bytes, size, &width, &height, &subsampling, &colorspace);
  if (status != 0 || width < 1 || height < 1)
    status = error_set(err, "%s is damaged or cut short: %s; fetch it again", name,
                       status != 0 ? tjGetErrorStr2(decoder) : "it holds no picture");
  else if (colorspace == TJCS_CMYK || colorspace == TJCS_YCCK)
    status =
        error_set(err, "%s has the colours of a print (CMYK); a grey or RGB image was expected, save it as RGB", name);
  else
    status = image_check_size(width, height, name, err);
  if (status == 0) {
    *out = image_new(width, height, channels);
    /* By default what is missing of a truncated file becomes grey, and a small file may hold thousands of scans. */
    if (tjDecompress2(decoder, bytes, size, out->pixels, width, 0, height, channels == 1 ? TJPF_GRAY : TJPF_RGB,
                      TJFLAG_STOPONWARNING | TJFLAG_LIMITSCANS) != 0) {
      image_free(out);
      status = error_set(err, "%s is damaged or cut short: %s; fetch it again", name, tjGetErrorStr2(decoder));
    }
  }
  tjDestroy(decoder);
  return status;
}

static inline int image_decode_png(const unsigned char *bytes, size_t size, const char *name, int channels, Image *out,
                                   Error *err) {
  int width, height, found;
  if (!stbi_info_from_memory(bytes, (int)size, &width, &height, &found))
    return error_set(err, "%s cannot be read: its header is damaged, or its size is not from 1 x 1 to %d x %d pixels",
                     name, IMAGE_MAX_SIDE, IMAGE_MAX_SIDE);
  if (image_check_size(width, height, name, err) != 0) return -1;
  unsigned char *pixels = stbi_load_from_memory(bytes, (int)size, &width, &height, &found, channels + 1);
  if (pixels == NULL)
    return error_set(err, "%s is damaged or cut short: %s; fetch it again", name, stbi_failure_reason());
  *out = image_new(width, height, channels);
  for (size_t i = 0; i < (size_t)width * (size_t)height; i++) {
    const unsigned char *from = pixels + i * (size_t)(channels + 1);
    unsigned alpha = from[channels];
    for (int c = 0; c < channels; c++)
      out->pixels[i * (size_t)channels + (size_t)c] =
          (unsigned char)((from[c] * alpha + 255 * (255 - alpha) + 127) / 255);
  }
  stbi_image_free(pixels);
  return 0;
}

/* Decodes a file in memory to 1 (grey) or 3 (red, green, blue) channels; `name` is for the messages. */
static inline int image_decode(const unsigned char *bytes, size_t size, const char *name, int channels, Image *out,
                               Error *err) {
  memset(out, 0, sizeof *out);
  if (size == 0) return error_set(err, "%s is empty; a PNG or JPEG image was expected", name);
  if (size > IMAGE_MAX_FILE_BYTES)
    return error_set(err, "%s is larger than %d MiB; scale the image down", name, IMAGE_MAX_FILE_BYTES >> 20);
  if (size >= 3 && memcmp(bytes, "\xff\xd8\xff", 3) == 0)
    return image_decode_jpeg(bytes, size, name, channels, out, err);
  if (size >= 8 && memcmp(bytes, "\x89PNG\r\n\x1a\n", 8) == 0)
    return image_decode_png(bytes, size, name, channels, out, err);
  return error_set(err, "%s is not an image this program reads; a PNG or JPEG file was expected", name);
}

static inline int image_read(const char *path, int channels, Image *out, Error *err) {
  struct stat info;
  memset(out, 0, sizeof *out);
  if (stat(path, &info) != 0) return error_set(err, "cannot open %s: %s", path, strerror(errno));
  if (!S_ISREG(info.st_mode))
    return error_set(err, "%s is a %s; a PNG or JPEG image was expected", path,
                     S_ISDIR(info.st_mode) ? "directory" : "device or pipe");
  if (info.st_size > IMAGE_MAX_FILE_BYTES)
    return error_set(err, "%s is larger than %d MiB; scale the image down", path, IMAGE_MAX_FILE_BYTES >> 20);
  FILE *in = fopen(path, "rb");
  if (in == NULL) return error_set(err, "cannot open %s: %s", path, strerror(errno));
  unsigned char *bytes = (unsigned char *)xmalloc((size_t)info.st_size);
  size_t size = fread(bytes, 1, (size_t)info.st_size, in);
  int status = ferror(in) ? error_set(err, "cannot read %s: %s", path, strerror(errno))
                          : image_decode(bytes, size, path, channels, out, err);
  free(bytes);
  fclose(in);
  return status;
}

static inline int image_read_gray(const char *path, Image *out, Error *err) { return image_read(path, 1, out, err); }
static inline int image_read_rgb(const char *path, Image *out, Error *err) { return image_read(path, 3, out, err); }

/* The rectangle (x, y, width, height) of a grey image, scaled to out (out_height,out_width): each new pixel is the mean
 * of the area it covers, parts of pixels included. Debian's stb_image_resize would end the program on a failed
 * assertion at some sizes, 7 to 5 with its triangle filter for one. */
static inline void image_scale_gray(const Image *image, int x, int y, int width, int height, unsigned char *out,
                                    int out_width, int out_height) {
  double step_x = (double)width / out_width, step_y = (double)height / out_height;
  for (int j = 0; j < out_height; j++)
    for (int i = 0; i < out_width; i++) {
      double left = i * step_x, right = fmin(left + step_x, width);
      double top = j * step_y, bottom = fmin(top + step_y, height), sum = 0;
      for (int v = (int)top; v < bottom; v++)
        for (int u = (int)left; u < right; u++)
          sum += (fmin(u + 1, right) - fmax(u, left)) * (fmin(v + 1, bottom) - fmax(v, top)) *
                 image->pixels[(size_t)(y + v) * (size_t)image->width + (size_t)(x + u)];
      out[j * out_width + i] = (unsigned char)lrint(sum / (step_x * step_y));
    }
}

/* ---- writing ---- */

static inline void image_write_piece(void *stream, void *bytes, int size) {
  fwrite(bytes, 1, (size_t)size, (FILE *)stream);
}

/* `path` is replaced in one step. */
static inline int image_write_png(const char *path, const Image *image, Error *err) {
  AtomicFile f;
  if (atomic_file_open(&f, path, err) != 0) return -1;
  if (!stbi_write_png_to_func(image_write_piece, f.stream, image->width, image->height, image->channels, image->pixels,
                              image->width * image->channels)) {
    atomic_file_abandon(&f);
    return error_set(err, "cannot write %s: no memory to encode %d x %d pixels", path, image->width, image->height);
  }
  return atomic_file_commit(&f, err);
}

/* ---- sheets ---- */

/* Paints a rectangle of an RGB image; what lies outside is clipped. */
static inline void image_put_rectangle(Image *image, int x, int y, int width, int height, const unsigned char rgb[3]) {
  for (int j = y; j < y + height; j++)
    for (int i = x; i < x + width; i++)
      if (i >= 0 && i < image->width && j >= 0 && j < image->height)
        memcpy(image->pixels + ((size_t)j * (size_t)image->width + (size_t)i) * 3, rgb, 3);
}

static inline void image_put_block(Image *image, int x, int y, int size, const unsigned char rgb[3]) {
  image_put_rectangle(image, x, y, size, size, rgb);
}

/* Lines of `thick` pixels round a rectangle, outside of it. */
static inline void image_put_frame(Image *image, int x, int y, int width, int height, int thick,
                                   const unsigned char rgb[3]) {
  image_put_rectangle(image, x - thick, y - thick, width + 2 * thick, thick, rgb);
  image_put_rectangle(image, x - thick, y + height, width + 2 * thick, thick, rgb);
  image_put_rectangle(image, x - thick, y, thick, height, rgb);
  image_put_rectangle(image, x + width, y, thick, height, rgb);
}

/* What captions are made of, 5 x 7 dots: a byte a row, the leftmost dot is 16. Other characters are left blank. */
static inline const unsigned char *image_glyph(char c) {
  static const char characters[] =
      "0123456789->.%(),:/+_=;"
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
  static const unsigned char glyphs[][7] = {
      {14, 17, 19, 21, 25, 17, 14}, {4, 12, 4, 4, 4, 4, 14},      {14, 17, 1, 2, 4, 8, 31},
      {31, 2, 4, 2, 1, 17, 14},     {2, 6, 10, 18, 31, 2, 2},     {31, 16, 30, 1, 1, 17, 14},
      {6, 8, 16, 30, 17, 17, 14},   {31, 1, 2, 4, 8, 8, 8},       {14, 17, 17, 14, 17, 17, 14},
      {14, 17, 17, 15, 1, 2, 12},   {0, 0, 0, 31, 0, 0, 0},       {8, 4, 2, 1, 2, 4, 8},
      {0, 0, 0, 0, 0, 12, 12},      {24, 25, 2, 4, 8, 19, 3},     {2, 4, 8, 8, 8, 4, 2},
      {8, 4, 2, 2, 2, 4, 8},        {0, 0, 0, 0, 12, 4, 8},       {0, 12, 12, 0, 12, 12, 0},
      {1, 1, 2, 4, 8, 16, 16},      {0, 4, 4, 31, 4, 4, 0},       {0, 0, 0, 0, 0, 0, 31},
      {0, 0, 31, 0, 31, 0, 0},      {0, 12, 12, 0, 12, 4, 8},     {14, 17, 17, 31, 17, 17, 17},
      {30, 17, 17, 30, 17, 17, 30}, {14, 17, 16, 16, 16, 17, 14}, {30, 17, 17, 17, 17, 17, 30},
      {31, 16, 16, 30, 16, 16, 31}, {31, 16, 16, 30, 16, 16, 16}, {14, 17, 16, 23, 17, 17, 15},
      {17, 17, 17, 31, 17, 17, 17}, {14, 4, 4, 4, 4, 4, 14},      {7, 2, 2, 2, 2, 18, 12},
      {17, 18, 20, 24, 20, 18, 17}, {16, 16, 16, 16, 16, 16, 31}, {17, 27, 21, 21, 17, 17, 17},
      {17, 17, 25, 21, 19, 17, 17}, {14, 17, 17, 17, 17, 17, 14}, {30, 17, 17, 30, 16, 16, 16},
      {14, 17, 17, 17, 21, 18, 13}, {30, 17, 17, 30, 20, 18, 17}, {15, 16, 16, 14, 1, 1, 30},
      {31, 4, 4, 4, 4, 4, 4},       {17, 17, 17, 17, 17, 17, 14}, {17, 17, 17, 17, 17, 10, 4},
      {17, 17, 17, 21, 21, 21, 10}, {17, 17, 10, 4, 10, 17, 17},  {17, 17, 10, 4, 4, 4, 4},
      {31, 1, 2, 4, 8, 16, 31},     {0, 0, 14, 1, 15, 17, 15},    {16, 16, 30, 17, 17, 17, 30},
      {0, 0, 15, 16, 16, 16, 15},   {1, 1, 15, 17, 17, 17, 15},   {0, 0, 14, 17, 31, 16, 14},
      {6, 8, 28, 8, 8, 8, 8},       {15, 17, 17, 17, 15, 1, 14},  {16, 16, 30, 17, 17, 17, 17},
      {4, 0, 12, 4, 4, 4, 14},      {2, 0, 6, 2, 2, 18, 12},      {16, 16, 18, 20, 24, 20, 18},
      {12, 4, 4, 4, 4, 4, 14},      {0, 0, 26, 21, 21, 21, 21},   {0, 0, 30, 17, 17, 17, 17},
      {0, 0, 14, 17, 17, 17, 14},   {30, 17, 17, 17, 30, 16, 16}, {15, 17, 17, 17, 15, 1, 1},
      {0, 0, 22, 24, 16, 16, 16},   {0, 0, 15, 16, 14, 1, 30},    {8, 8, 28, 8, 8, 8, 6},
      {0, 0, 17, 17, 17, 17, 15},   {0, 0, 17, 17, 17, 10, 4},    {0, 0, 17, 17, 21, 21, 10},
      {0, 0, 17, 10, 4, 10, 17},    {17, 17, 17, 17, 15, 1, 14},  {0, 0, 31, 2, 4, 8, 31},
  };
  const char *at = c == '\0' ? NULL : strchr(characters, c);
  return at == NULL ? NULL : glyphs[at - characters];
}

/* Writes `text` in a colour, each dot `scale` pixels wide; a character takes 6 dots; g, p, q and y reach 2 dots below
 * the line. */
static inline void image_put_text_in(Image *image, int x, int y, int scale, const char *text,
                                     const unsigned char rgb[3]) {
  for (; *text != '\0'; text++, x += 6 * scale) {
    const unsigned char *glyph = image_glyph(*text);
    const int top = y + (strchr("gpqy", *text) ? 2 * scale : 0);
    for (int dot = 0; glyph != NULL && dot < 35; dot++)
      if (glyph[dot / 5] & (16 >> dot % 5))
        image_put_block(image, x + dot % 5 * scale, top + dot / 5 * scale, scale, rgb);
  }
}

static inline void image_put_text(Image *image, int x, int y, int scale, const char *text) {
  static const unsigned char black[3] = {0, 0, 0};
  image_put_text_in(image, x, y, scale, text, black);
}

/* Pixels that the text takes, without the gap behind it. */
static inline int image_text_width(const char *text, int scale) {
  const int length = (int)strlen(text);
  return length > 0 ? (6 * length - 1) * scale : 0;
}

/* A sheet with room for `count` tiles in rows of `columns`: tiles (count,height,width,3), each pixel enlarged `scale`
 * times, `margin` pixels round each; captions[i] below tile i, or captions NULL. */
static inline Image image_sheet_rgb(const unsigned char *tiles, int count, int height, int width, int columns,
                                    int scale, int margin, const char *const *captions) {
  int text_scale = scale > 1 ? scale / 2 : 1;
  int step_x = width * scale + margin;
  int step_y = height * scale + margin + (captions != NULL ? 8 * text_scale : 0);
  int rows = count < 1 ? 1 : (count + columns - 1) / columns;
  Image sheet = image_new(columns * step_x + margin, rows * step_y + margin, 3);
  for (int tile = 0; tile < count; tile++) {
    int x = margin + tile % columns * step_x, y = margin + tile / columns * step_y;
    for (int i = 0; i < height * width; i++, tiles += 3)
      image_put_block(&sheet, x + i % width * scale, y + i / width * scale, scale, tiles);
    if (captions != NULL) image_put_text(&sheet, x, y + height * scale + text_scale, text_scale, captions[tile]);
  }
  return sheet;
}

/* The same for grey tiles (count,height,width). */
static inline Image image_sheet_gray(const unsigned char *tiles, int count, int height, int width, int columns,
                                     int scale, int margin, const char *const *captions) {
  size_t size = (size_t)count * (size_t)height * (size_t)width;
  unsigned char *rgb = (unsigned char *)xmalloc(3 * size);
  for (size_t i = 0; i < 3 * size; i++) rgb[i] = tiles[i / 3];
  Image sheet = image_sheet_rgb(rgb, count, height, width, columns, scale, margin, captions);
  free(rgb);
  return sheet;
}

/* Blue for -1, white for 0, red for +1, linear between; grey for NaN. */
static inline void image_diverging_color(float value, unsigned char rgb[3]) {
  float fade = fminf(fabsf(value), 1.0f);
  unsigned char pale = (unsigned char)lrintf(255.0f * (1.0f - fade));
  rgb[0] = value < 0 ? pale : 255;
  rgb[1] = pale;
  rgb[2] = value < 0 ? 255 : pale;
  if (isnan(value)) memset(rgb, 128, 3);
}

/* A map (height,width) as colours, each value enlarged `scale` times; -largest is blue, +largest red. */
static inline void image_put_map(Image *image, int x, int y, int scale, const float *values, int height, int width,
                                 float largest) {
  for (int i = 0; i < height * width; i++) {
    unsigned char rgb[3];
    image_diverging_color(values[i] == 0.0f ? 0.0f : values[i] / largest, rgb);
    image_put_block(image, x + i % width * scale, y + i / width * scale, scale, rgb);
  }
}

/* The largest magnitude of what is finite; 0 where nothing is. */
static inline float image_largest(const float *values, size_t count) {
  float largest = 0;
  for (size_t i = 0; i < count; i++)
    if (isfinite(values[i])) largest = fmaxf(largest, fabsf(values[i]));
  return largest;
}

/* Filters (count,height,width) as colours. The range is symmetric and common to all: -largest is blue, +largest red. */
static inline Image image_sheet_filters(const float *filters, int count, int height, int width, int columns, int scale,
                                        int margin) {
  size_t size = (size_t)count * (size_t)height * (size_t)width;
  const float largest = image_largest(filters, size);
  unsigned char *rgb = (unsigned char *)xmalloc(3 * size);
  for (size_t i = 0; i < size; i++)
    image_diverging_color(filters[i] == 0.0f ? 0.0f : filters[i] / largest, rgb + 3 * i);
  Image sheet = image_sheet_rgb(rgb, count, height, width, columns, scale, margin, NULL);
  free(rgb);
  return sheet;
}

#endif /* COMMON_IMAGE_H */
