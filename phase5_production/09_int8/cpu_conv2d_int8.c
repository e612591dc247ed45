/* cpu_conv2d_int8.c - plans of cpu_conv2d_int8.h: weights are packed into words, tiles are shared out to threads. */
#include "phase5_production/09_int8/cpu_conv2d_int8.h"

#include <string.h>

#include "phase5_production/08_engine/cpu_conv2d_plan.h"
#include "phase5_production/09_int8/cpu_int8_plan.h"

enum { INT8_SMALL = 800000 }; /* operations: less is done before a second thread has begun */

typedef enum Int8Method { INT8_DIRECT, INT8_DEPTHWISE, INT8_LINEAR } Int8Method;

struct CpuInt8 {
  Conv2dShape shape;
  CpuShape x, y;
  const CpuInt8Kernels *kernels;
  Int8Method method;
  int rows, pixels; /* of y; of a linear layer one row, whose pixels are the images */
  int two_rows, step;
  bool few; /* a pixel of x has one word */
  CpuGroup *group;
  int groups;
  CpuInt8Tile tile;        /* what is the same in all tiles */
  size_t x_image, y_image; /* words; elements */
  int32_t *w, *bias;
  float *scale;
  size_t w_count; /* words */
  double flops;
};

/* ---------------------------------------------------------------------------------------------------------- plans */

/* Weight of channel c of all and filter k, or 0: k is beyond the last, or reads another group's channels. */
static int int8_weight(const Conv2dShape *s, const int8_t *w, int k, int c, int r, int tap) {
  const int channels = s->c / s->groups, in = k < s->k ? c - k / (s->k / s->groups) * channels : -1;
  return in < 0 || in >= channels ? 0 : w[(((size_t)k * s->r + r) * s->s + tap) * channels + in];
}

/* The word of a filter at channels c, c + 1, ...: four numbers of 8 bits, or two of 16. */
static int32_t int8_word(const CpuInt8 *conv, const int8_t *w, int k, int c, int most, int r, int tap) {
  const int bytes = (int)conv->kernels->bytes;
  uint32_t word = 0;
  for (int i = 0; i < 4 / bytes && c + i < most; i++) {
    const uint32_t q = (uint32_t)int8_weight(&conv->shape, w, k, c + i, r, tap);
    word |= (q & (bytes == 1 ? 0xff : 0xffff)) << (8 * bytes * i);
  }
  return (int32_t)word;
}

static int int8_words(const CpuInt8 *conv, int channels) { return (channels * (int)conv->kernels->bytes + 3) / 4; }

/* w (K,R,S,C/groups) -> for each group (blocks of x, R, S, words, filters), as a kernel reads it. */
static void int8_pack_weights(CpuInt8 *conv, const int8_t *w) {
  const Conv2dShape *s = &conv->shape;
  const int per_word = 4 / (int)conv->kernels->bytes;
  int32_t *to = conv->w;
  for (int g = 0; g < conv->groups; g++) {
    const CpuGroup *group = &conv->group[g];
    const int most = (group->x_first + group->x_blocks - 1) * CPU_BLOCK + group->last;
    for (int b = 0; b < group->x_blocks; b++) {
      const int words = b + 1 < group->x_blocks ? conv->tile.words : int8_words(conv, group->last);
      for (int r = 0; r < s->r; r++)
        for (int tap = 0; tap < s->s; tap++)
          for (int i = 0; i < (conv->method == INT8_DEPTHWISE ? 1 : words); i++)
            for (int f = 0; f < group->count * CPU_BLOCK; f++) {
              const int k = group->first * CPU_BLOCK + f, c = (group->x_first + b) * CPU_BLOCK + i * per_word;
              *to++ = conv->method == INT8_DEPTHWISE ? int8_weight(s, w, k, k, r, tap)
                                                     : int8_word(conv, w, k, c, most, r, tap);
            }
    }
  }
}

/* bias less what the zero of x adds to each sum: every tap reads it, as the border holds it, too. */
static void int8_pack_end(CpuInt8 *conv, const int8_t *w, CpuInt8End end) {
  const size_t taps = (size_t)(conv->shape.c / conv->shape.groups) * conv->shape.r * conv->shape.s;
  const size_t filters = (size_t)cpu_blocks(conv->y) * CPU_BLOCK;
  conv->bias = (int32_t *)cpu_alloc(filters);
  conv->scale = (float *)cpu_alloc(filters);
  const int zero = conv->method == INT8_DEPTHWISE ? 0 : conv->tile.x_kind.zero; /* which depthwise kernels take off */
  for (size_t k = 0; k < filters; k++) {
    uint32_t sum = 0;
    const bool filter = k < (size_t)conv->shape.k;
    for (size_t i = 0; filter && i < taps; i++) sum += (uint32_t)w[k * taps + i];
    const uint32_t bias = filter && end.bias ? (uint32_t)end.bias[k] : 0;
    conv->bias[k] = (int32_t)(bias - (uint32_t)zero * sum);
    conv->scale[k] = filter ? end.scale[k] : 0;
  }
}

/* What convolutions and linear layers have in common, once all else is known. */
static void int8_finish_plan(CpuInt8 *conv, const int8_t *w, CpuInt8End end) {
  conv->tile.middle = end.middle;
  conv->tile.added_scale = end.added_scale;
  conv->tile.relu = end.relu;
  conv->tile.to_float = end.to_float;
  conv->tile.x_kind = cpu_int8_kind(end.x_positive);
  conv->tile.y_kind = cpu_int8_kind(end.y_positive);
  conv->tile.added_kind = cpu_int8_kind(end.added_positive);
  conv->tile.words = int8_words(conv, CPU_BLOCK);
  const CpuTiling tiling = {conv->kernels->pixels, CPU_BLOCK / conv->kernels->lanes, conv->pixels,
                            conv->method == INT8_DEPTHWISE ? 1 : conv->two_rows, CPU_BLOCK};
  conv->groups = cpu_plan_groups(&conv->group, &conv->shape, tiling);
  for (int g = 0; g < conv->groups; g++) {
    CpuGroup *group = &conv->group[g];
    const size_t words = (size_t)(group->x_blocks - 1) * conv->tile.words + int8_words(conv, group->last);
    group->w_offset = conv->w_count;
    conv->w_count +=
        (conv->method == INT8_DEPTHWISE ? 1 : words) * conv->shape.r * conv->shape.s * group->count * CPU_BLOCK;
  }
  conv->tile.x_word = 1;
  conv->w = (int32_t *)cpu_alloc(conv->w_count);
  int8_pack_weights(conv, w);
  int8_pack_end(conv, w, end);
}

int cpu_int8_conv2d_open(CpuInt8 **result, Conv2dShape s, CpuShape x, CpuShape y, const int8_t *w, CpuInt8End end,
                         Error *err) {
  *result = NULL;
  s.n = 1;
  if (x.border < 0) return error_set(err, "convolution of int8: x must be in blocks, its border is %d", x.border);
  if (cpu_conv2d_check(s, x, y, err) != 0) return -1;
  s = conv2d_bounded_stride(s);
  CpuInt8 *conv = (CpuInt8 *)xcalloc(1, sizeof *conv);
  conv->kernels = cpu_int8_table();
  conv->shape = s;
  conv->x = x;
  conv->y = y;
  conv->rows = y.h;
  conv->pixels = y.w;
  conv->flops = conv2d_flops(s);
  conv->method = s.groups == s.c && s.k == s.c && s.c > 1 ? INT8_DEPTHWISE : INT8_DIRECT;
  conv->step = s.stride_w == 1 ? INT8_STEP_ONE : s.stride_w == 2 ? INT8_STEP_TWO : INT8_STEP_ANY;
  if (conv->method == INT8_DIRECT && conv->step == INT8_STEP_ONE && conv->rows > 1 &&
      2 * conv->pixels <= conv->kernels->pixels[conv->kernels->two_rows])
    conv->two_rows = conv->kernels->two_rows;
  /* in words, or, of the kernels that take channels one by one, in elements */
  const size_t unit = conv->method == INT8_DEPTHWISE ? 1 : 4 / conv->kernels->bytes, row = cpu_row(x) / unit;
  conv->x_image = cpu_count(x) / unit;
  conv->y_image = cpu_count(y);
  conv->tile.x_plane = cpu_plane(x) / unit;
  conv->tile.x_row = s.dilation_h * row;
  conv->tile.x_tap = s.dilation_w * CPU_BLOCK / unit;
  conv->tile.x_step = s.stride_w * CPU_BLOCK / unit;
  conv->tile.x_down = s.stride_h * row;
  conv->tile.y_plane = cpu_plane(y);
  conv->tile.y_step = CPU_BLOCK;
  conv->tile.y_down = cpu_row(y);
  conv->tile.r = s.r;
  conv->tile.s = s.s;
  int8_finish_plan(conv, w, end);
  conv->few = conv->method == INT8_DIRECT && int8_words(conv, s.c) == 1;
  if (conv->few) { /* a picture: the taps of a row of a filter are what the words of a pixel are else */
    conv->tile.x_word = conv->tile.x_tap;
    conv->tile.s = 1;
  }
  *result = conv;
  return 0;
}

int cpu_int8_linear_open(CpuInt8 **result, CpuShape x, int k, const int8_t *w, CpuInt8End end, Error *err) {
  *result = NULL;
  if (x.c < 1 || x.h < 1 || x.w < 1 || x.border < 0 || k < 1)
    return error_set(err, "linear layer of (%d,%d,%d) to %d features: every size must be at least 1", x.c, x.h, x.w, k);
  /* As a convolution of 1 x 1 whose channels are all numbers of x's array, and whose pixels are the images. */
  const int features = (int)cpu_count(x), row = x.w + 2 * x.border;
  int8_t *wide = (int8_t *)xcalloc((size_t)k * features, 1);
  for (int f = 0; f < k; f++)
    for (int h = 0; h < x.h; h++)
      for (int i = 0; i < x.w; i++)
        for (int c = 0; c < x.c; c++)
          wide[(size_t)f * features + c / CPU_BLOCK * cpu_plane(x) +
               ((size_t)(h + x.border) * row + i + x.border) * CPU_BLOCK + c % CPU_BLOCK] =
              w[(((size_t)f * x.h + h) * x.w + i) * x.c + c];
  CpuInt8 *conv = (CpuInt8 *)xcalloc(1, sizeof *conv);
  conv->kernels = cpu_int8_table();
  conv->shape = conv2d_shape(1, features, 1, 1, k, 1, 1, 1, 0);
  conv->x = x;
  conv->y = cpu_shape(k, 1, 1, 0);
  conv->method = INT8_LINEAR;
  conv->step = INT8_STEP_ANY;
  conv->rows = conv->pixels = 1;
  conv->flops = 2.0 * k * x.c * x.h * x.w;
  const size_t unit = 4 / conv->kernels->bytes;
  conv->x_image = conv->tile.x_step = features / unit;
  conv->y_image = conv->tile.y_step = cpu_count(conv->y);
  conv->tile.x_plane = CPU_BLOCK / unit;
  conv->tile.y_plane = CPU_BLOCK;
  conv->tile.r = conv->tile.s = 1;
  int8_finish_plan(conv, wide, end);
  free(wide);
  *result = conv;
  return 0;
}

void cpu_int8_close(CpuInt8 *conv) {
  if (conv == NULL) return;
  free(conv->w);
  free(conv->bias);
  free(conv->scale);
  free(conv->group);
  free(conv);
}

size_t cpu_int8_weight_bytes(const CpuInt8 *conv) { return conv->w_count * sizeof *conv->w; }

/* --------------------------------------------------------------------------------------------------------- running */

/* A row of y, from its first pixel on, in tiles of nearly equal width. */
static void int8_run_row(const CpuInt8 *conv, CpuInt8Tile *tile, int blocks, int pixels) {
  const int widest = conv->method == INT8_DEPTHWISE ? 1 : conv->kernels->pixels[blocks];
  const CpuInt8Kernel *kernel = conv->kernels->kernel[conv->step][blocks];
  const size_t y_bytes = tile->to_float ? sizeof(float) : conv->kernels->bytes;
  const size_t x_bytes = conv->method == INT8_DEPTHWISE ? conv->kernels->bytes : sizeof *tile->x;
  const int tiles = (pixels + widest - 1) / widest;
  for (int i = 0, at = 0; i < tiles; i++) {
    const int end = pixels * (i + 1) / tiles, width = end - at;
    (conv->method == INT8_DEPTHWISE ? conv->kernels->depthwise : kernel[width])(tile);
    tile->x = (const int32_t *)((const char *)tile->x + width * tile->x_step * x_bytes);
    tile->y = (char *)tile->y + width * tile->y_step * y_bytes;
    if (tile->added) tile->added = (const char *)tile->added + width * tile->y_step * conv->kernels->bytes;
    at = end;
  }
}

typedef struct Int8Call {
  const CpuInt8 *conv;
  char *y;
  const char *x, *added;
  int n, images, bands; /* images: 1 of a linear layer, whose pixels they are */
  bool weights_first;   /* tasks of one group of filters follow each other, and not those of one image */
} Int8Call;

/* Some rows of some filters of an image. */
static void int8_run_task(const Int8Call *call, int image, int g, int band) {
  const CpuInt8 *conv = call->conv;
  const CpuGroup *group = &conv->group[g];
  const Conv2dShape *s = &conv->shape;
  const bool linear = conv->method == INT8_LINEAR;
  const int from = (int)((long)conv->rows * band / call->bands),
            to = (int)((long)conv->rows * (band + 1) / call->bands);
  const size_t x_bytes = conv->method == INT8_DEPTHWISE ? conv->kernels->bytes : sizeof *conv->w;
  const size_t y_bytes = conv->tile.to_float ? sizeof(float) : conv->kernels->bytes;
  CpuInt8Tile tile = conv->tile;
  tile.w = conv->w + group->w_offset;
  tile.bias = conv->bias + group->first * CPU_BLOCK;
  tile.scale = conv->scale + group->first * CPU_BLOCK;
  tile.blocks = group->x_blocks;
  tile.last = conv->few ? s->s : int8_words(conv, group->last);
  const size_t y_first = image * conv->y_image + group->first * tile.y_plane;
  size_t x_first = image * conv->x_image + group->x_first * tile.x_plane;
  if (!linear)
    x_first += (conv->x.border - s->padding_h) * (tile.x_row / s->dilation_h) +
               (conv->x.border - s->padding_w) * (tile.x_tap / s->dilation_w);
  for (int b = 0; b < group->count && !linear; b++)
    cpu_int8_clear_border(call->y + (y_first + b * tile.y_plane) * y_bytes, conv->y, from, to, y_bytes,
                          conv->tile.to_float ? 0 : conv->tile.y_kind.zero);
  for (int p = from; p < to; p++) {
    const size_t at = y_first + (linear ? 0 : cpu_first(conv->y) + p * cpu_row(conv->y));
    tile.x = (const int32_t *)(call->x + (x_first + (size_t)p * tile.x_down) * x_bytes);
    tile.y = call->y + at * y_bytes;
    tile.added = call->added ? call->added + at * conv->kernels->bytes : NULL;
    if (conv->two_rows == group->count && p + 1 < to) {
      conv->kernels->kernel[INT8_STEP_ROWS][group->count][2 * conv->pixels](&tile);
      p++;
    } else {
      int8_run_row(conv, &tile, group->count, linear ? call->n : conv->pixels);
    }
  }
}

static void int8_run_numbered(void *arg, long task, int thread) {
  const Int8Call *call = (const Int8Call *)arg;
  const int band = (int)(task % call->bands), rest = (int)(task / call->bands), groups = call->conv->groups;
  (void)thread;
  if (call->weights_first)
    int8_run_task(call, rest % call->images, rest / call->images, band);
  else
    int8_run_task(call, rest / groups, rest % groups, band);
}

void cpu_int8_run(const CpuInt8 *conv, void *y, const void *x, const void *added, int n, int threads) {
  Int8Call call = {conv, (char *)y, (const char *)x, (const char *)added, n, conv->method == INT8_LINEAR ? 1 : n,
                   1,    false};
  if (n * conv->flops < INT8_SMALL) threads = 1;
  const int parts = call.images * conv->groups, wanted = threads > 1 ? 4 * threads : 1;
  call.bands = parts >= wanted ? 1 : (wanted + parts - 1) / parts;
  if (call.bands > conv->rows) call.bands = conv->rows;
  call.weights_first = conv->w_count > conv->x_image; /* what is larger is read once */
  cpu_parallel((long)parts * call.bands, threads, int8_run_numbered, &call);
}
