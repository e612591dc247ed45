/* cpu_conv2d.c - plans of cpu_conv2d.h: weights are packed, an output is divided into tiles, tiles are shared out. */

#include <string.h>
#include <sys/mman.h>

#include "common/threads.h"
#include "phase5_production/08_engine/cpu_conv2d_plan.h"

enum {
  CPU_ALIGN = 64,
  CPU_HUGE = 2 << 20,
  CPU_SMALL = 200000, /* FLOPs: less is done before a second thread has begun */
};

static const char *const cpu_method_names[] = {"direct", "depthwise", "linear", "winograd"};

#define CPU_WINOGRAD_GROWTH 40.0 /* as in the lesson on Winograd's algorithm */

/* Large arrays begin at a huge page, if the system has them: weights are read once, and each small page that they
 * lie on costs a walk through the page tables. */
void *cpu_alloc(size_t floats) {
  void *p = NULL;
  const size_t bytes = (floats ? floats : 1) * sizeof(float), align = bytes >= CPU_HUGE ? CPU_HUGE : CPU_ALIGN;
  if (posix_memalign(&p, align, bytes) != 0) die("out of memory: %zu bytes for weights", bytes);
  if (align == CPU_HUGE) madvise(p, bytes, MADV_HUGEPAGE);
  return p;
}

/* -------------------------------------------------------------------------------------------------------- plans */

/* Cycles of a row with tiles of so many blocks: two products per cycle, two loads per cycle, and a sum that waits four
 * cycles for itself. */
static double cpu_row_cost(CpuTiling t, int blocks) {
  const int tiles = (t.width + t.pixels[blocks] - 1) / t.pixels[blocks];
  double cost = 0;
  for (int i = 0; i < tiles; i++) {
    const int pixels = t.width * (i + 1) / tiles - t.width * i / tiles;
    const double cycles = blocks * t.vectors * pixels / 2.0, loads = (blocks * t.vectors + pixels) / 2.0;
    cost += fmax(fmax(cycles, loads), 4);
  }
  return cost;
}

/* How many of `left` blocks of filters to take together. */
static int cpu_choose_blocks(CpuTiling t, int left) {
  int best = 1;
  double least = INFINITY;
  if (t.blocks > 0 && t.blocks <= left) return t.blocks;
  for (int blocks = 1; blocks <= CPU_TILE_BLOCKS && blocks <= left; blocks++) {
    if (t.pixels[blocks] == 0) continue;
    const double cost = cpu_row_cost(t, blocks) / blocks;
    if (cost < least) best = blocks, least = cost;
  }
  return best;
}

int cpu_plan_groups(CpuGroup **groups, const Conv2dShape *s, CpuTiling t) {
  const int blocks = (s->k + CPU_BLOCK - 1) / CPU_BLOCK, channels = s->c / s->groups, filters = s->k / s->groups;
  int count = 0;
  *groups = (CpuGroup *)xcalloc((size_t)blocks, sizeof **groups);
  for (int first = 0; first < blocks;) {
    CpuGroup *group = &(*groups)[count++];
    group->first = first;
    group->count = cpu_choose_blocks(t, blocks - first);
    first += group->count;
    const int last_filter = first * CPU_BLOCK < s->k ? first * CPU_BLOCK - 1 : s->k - 1;
    const int from = group->first * CPU_BLOCK / filters * channels, to = (last_filter / filters + 1) * channels;
    group->x_first = from / t.most_channels;
    group->x_blocks = (to - 1) / t.most_channels + 1 - group->x_first;
    group->last = to - (group->x_first + group->x_blocks - 1) * t.most_channels;
  }
  return count;
}

/* Of the groups of a convolution in float32, where their weights lie. */
static void cpu_plan_weights(CpuConv2d *conv, int most_channels) {
  const CpuTileKernels *kernels = conv->kernels;
  const CpuTiling tiling = {kernels->pixels, CPU_BLOCK / kernels->lanes,
                            conv->method == CPU_WINOGRAD ? CPU_TILE_PIXELS : conv->pixels,
                            conv->method == CPU_DEPTHWISE ? 1 : conv->two_rows, most_channels};
  conv->groups = cpu_plan_groups(&conv->group, &conv->shape, tiling);
  for (int g = 0; g < conv->groups; g++) {
    CpuGroup *group = &conv->group[g];
    const size_t read = (size_t)(group->x_blocks - 1) * most_channels + group->last;
    group->w_offset = conv->w_count;
    conv->w_count +=
        (conv->method == CPU_DEPTHWISE ? 1 : read) * conv->shape.r * conv->shape.s * group->count * CPU_BLOCK;
  }
}

static float cpu_weight(const Conv2dShape *s, const float *w, int k, int c, int r, int tap) {
  const int channels = s->c / s->groups, in = c - k / (s->k / s->groups) * channels;
  if (in < 0 || in >= channels) return 0; /* of another of the shape's groups */
  return w[(((size_t)k * channels + in) * s->r + r) * s->s + tap];
}

/* w (K,C/groups,R,S) -> for each group (blocks of x, R, S, channels, filters), as a kernel reads it. */
static void cpu_pack_weights(CpuConv2d *conv, const float *w, int most_channels) {
  const Conv2dShape *s = &conv->shape;
  conv->w = (float *)cpu_alloc(conv->w_count);
  for (int g = 0; g < conv->groups; g++) {
    const CpuGroup *group = &conv->group[g];
    float *to = conv->w + group->w_offset;
    for (int b = 0; b < group->x_blocks; b++) {
      const int channels = b + 1 < group->x_blocks ? most_channels : group->last;
      for (int r = 0; r < s->r; r++)
        for (int tap = 0; tap < s->s; tap++)
          for (int i = 0; i < (conv->method == CPU_DEPTHWISE ? 1 : channels); i++)
            for (int f = 0; f < group->count * CPU_BLOCK; f++, to++) {
              const int k = group->first * CPU_BLOCK + f;
              const int c = conv->method == CPU_DEPTHWISE ? k : (group->x_first + b) * most_channels + i;
              *to = k < s->k ? cpu_weight(s, w, k, c, r, tap) : 0;
            }
    }
  }
}

static int cpu_step_index(size_t step) {
  static const size_t steps[CPU_STEP_ANY] = {CPU_BLOCK, 2 * CPU_BLOCK, 1, 2};
  for (int i = 0; i < CPU_STEP_ANY; i++)
    if (steps[i] == step) return i;
  return CPU_STEP_ANY;
}

/* What convolutions and linear layers have in common, once shape, x, y, method, rows, pixels and tile are known. */
static void cpu_finish(CpuConv2d *conv, const float *w, const float *bias, int most_channels) {
  const int blocks = cpu_blocks(conv->y);
  conv->kernels = cpu_tile_kernels();
  conv->step = cpu_step_index(conv->tile.x_step);
  if (conv->method == CPU_DEPTHWISE && conv->step > CPU_STEP_BLOCKS) conv->step = CPU_STEP_ANY;
  if (conv->method == CPU_DIRECT && conv->step <= CPU_STEP_BLOCKS && conv->rows > 1 &&
      2 * conv->pixels <= conv->kernels->pixels[conv->kernels->two_rows])
    conv->two_rows = conv->kernels->two_rows;
  conv->tile.channels = most_channels;
  conv->tile.least = conv->activation.least;
  conv->tile.most = conv->activation.most;
  cpu_plan_weights(conv, most_channels);
  conv->bias = (float *)cpu_alloc((size_t)blocks * CPU_BLOCK);
  memset(conv->bias, 0, (size_t)blocks * CPU_BLOCK * sizeof *conv->bias);
  if (bias) memcpy(conv->bias, bias, conv->shape.k * sizeof *bias);
  if (conv->method == CPU_WINOGRAD)
    cpu_winograd_pack(conv, w);
  else
    cpu_pack_weights(conv, w, most_channels);
}

int cpu_conv2d_check(Conv2dShape s, CpuShape x, CpuShape y, Error *err) {
  const Conv2dShapeText text = conv2d_shape_text(s);
  if (conv2d_shape_check(s, err) != 0) return -1;
  if (x.c != s.c || x.h != s.h || x.w != s.w || y.c != s.k || y.h != conv2d_out_h(s) || y.w != conv2d_out_w(s))
    return error_set(err, "convolution of %s: x is an array of (%d,%d,%d) and y one of (%d,%d,%d); expected (%d,%d,%d)",
                     text.text, x.c, x.h, x.w, y.c, y.h, y.w, s.k, conv2d_out_h(s), conv2d_out_w(s));
  const int padding = s.padding_h > s.padding_w ? s.padding_h : s.padding_w;
  if ((x.border >= 0 && x.border < padding) || y.border < 0)
    return error_set(err,
                     "convolution of %s: x has a border of %d, y one of %d; x needs one of at least its padding, %d",
                     text.text, x.border, y.border, padding);
  return 0;
}

int cpu_conv2d_open(CpuConv2d **result, Conv2dShape s, CpuShape x, CpuShape y, const float *w, const float *bias,
                    CpuActivation activation, Error *err) {
  *result = NULL;
  const int images = s.n;
  s.n = 1;
  if (cpu_conv2d_check(s, x, y, err) != 0) return -1;
  s = conv2d_bounded_stride(s);
  CpuConv2d *conv = (CpuConv2d *)xcalloc(1, sizeof *conv);
  conv->shape = s;
  conv->x = x;
  conv->y = y;
  conv->activation = activation;
  conv->rows = y.h;
  conv->pixels = y.w;
  conv->flops = conv2d_flops(s);
  conv->y_image = cpu_count(y);
  const bool plain = x.border < 0;
  conv->method = !plain && s.groups == s.c && s.k == s.c && s.c > 1 ? CPU_DEPTHWISE : CPU_DIRECT;
  if (cpu_winograd_fits(conv, images)) conv->method = CPU_WINOGRAD;
  const size_t pixel = plain ? 1 : CPU_BLOCK, row = plain ? (size_t)s.w + 2 * s.padding_w : cpu_row(x);
  if (plain && (s.padding_h > 0 || s.padding_w > 0)) conv->padded = s.c * (s.h + 2 * (size_t)s.padding_h) * row;
  conv->x_image = plain ? (size_t)s.c * s.h * s.w : cpu_count(x);
  conv->tile.y_plane = cpu_plane(y);
  conv->tile.y_step = CPU_BLOCK;
  conv->tile.x_plane = plain ? (s.h + 2 * (size_t)s.padding_h) * row : cpu_plane(x);
  conv->tile.x_row = s.dilation_h * row;
  conv->tile.x_down = s.stride_h * row;
  conv->tile.y_down = cpu_row(y);
  conv->tile.x_tap = s.dilation_w * pixel;
  conv->tile.x_step = s.stride_w * pixel;
  conv->tile.r = s.r;
  conv->tile.s = s.s;
  cpu_finish(conv, w, bias, plain ? 1 : CPU_BLOCK);
  if (plain && s.dilation_w == 1) { /* the taps of a row of a filter lie side by side, as the channels of a block do */
    conv->tile.channels = s.s;
    conv->tile.s = 1;
  }
  *result = conv;
  return 0;
}

int cpu_linear_open(CpuConv2d **result, CpuShape x, int k, const float *w, const float *bias, CpuActivation activation,
                    Error *err) {
  *result = NULL;
  if (x.c < 1 || x.h < 1 || x.w < 1 || x.border < 0 || k < 1)
    return error_set(err, "linear layer of (%d,%d,%d) to %d features: every size must be at least 1", x.c, x.h, x.w, k);
  /* As a convolution of 1 x 1 whose channels are all numbers of x's array, and whose pixels are the images. */
  const int features = (int)cpu_count(x), row = x.w + 2 * x.border;
  float *wide = (float *)xcalloc((size_t)k * features, sizeof *wide);
  for (int f = 0; f < k; f++)
    for (int c = 0; c < x.c; c++)
      for (int h = 0; h < x.h; h++)
        for (int i = 0; i < x.w; i++)
          wide[(size_t)f * features + c / CPU_BLOCK * cpu_plane(x) +
               ((size_t)(h + x.border) * row + i + x.border) * CPU_BLOCK + c % CPU_BLOCK] =
              w[(((size_t)f * x.c + c) * x.h + h) * x.w + i];
  CpuConv2d *conv = (CpuConv2d *)xcalloc(1, sizeof *conv);
  conv->shape = conv2d_shape(1, features, 1, 1, k, 1, 1, 1, 0);
  conv->x = x;
  conv->y = cpu_shape(k, 1, 1, 0);
  conv->activation = activation;
  conv->method = CPU_LINEAR;
  conv->rows = 1;
  conv->pixels = 1;
  conv->flops = 2.0 * k * x.c * x.h * x.w;
  conv->x_image = (size_t)features;
  conv->y_image = cpu_count(conv->y);
  conv->tile.y_plane = conv->tile.x_plane = CPU_BLOCK;
  conv->tile.y_step = conv->y_image;
  conv->tile.x_step = conv->x_image;
  conv->tile.r = conv->tile.s = 1;
  cpu_finish(conv, wide, bias, CPU_BLOCK);
  free(wide);
  *result = conv;
  return 0;
}

void cpu_conv2d_close(CpuConv2d *conv) {
  if (conv == NULL) return;
  free(conv->w);
  free(conv->bias);
  free(conv->group);
  free(conv);
}

size_t cpu_conv2d_bytes(const CpuConv2d *conv) { return conv->w_count * sizeof *conv->w; }
const char *cpu_conv2d_method(const CpuConv2d *conv) { return cpu_method_names[conv->method]; }
double cpu_conv2d_growth(const CpuConv2d *conv) { return conv->method == CPU_WINOGRAD ? CPU_WINOGRAD_GROWTH : 1; }

size_t cpu_conv2d_workspace(const CpuConv2d *conv, int n, int threads) {
  return conv->method == CPU_WINOGRAD ? cpu_winograd_workspace(conv, n, threads) : conv->padded * (size_t)n;
}

/* ------------------------------------------------------------------------------------------------------- running */

/* A row of y, from its first pixel on, in tiles of nearly equal width. */
static void cpu_run_row(const CpuConv2d *conv, CpuTile *tile, int blocks, int pixels) {
  const bool depthwise = conv->method == CPU_DEPTHWISE;
  const int widest = depthwise ? CPU_DEPTHWISE_PIXELS : conv->kernels->pixels[blocks];
  const CpuTileKernel *kernel =
      depthwise ? conv->kernels->depthwise[conv->step] : conv->kernels->kernel[conv->step][blocks];
  const int tiles = (pixels + widest - 1) / widest;
  for (int i = 0, at = 0; i < tiles; i++) {
    const int end = pixels * (i + 1) / tiles, width = end - at;
    kernel[width](tile);
    tile->x += width * tile->x_step;
    tile->y += width * tile->y_step;
    if (tile->added) tile->added += width * tile->y_step;
    at = end;
  }
}

/* The border beside rows [from, to) of y, and above the first and below the last row. */
void cpu_clear_border_rows(float *y, CpuShape s, int from, int to) {
  const size_t row = cpu_row(s), side = (size_t)s.border * CPU_BLOCK;
  if (s.border == 0) return;
  if (from == 0) memset(y, 0, s.border * row * sizeof *y);
  if (to == s.h) memset(y + (s.border + (size_t)s.h) * row, 0, s.border * row * sizeof *y);
  for (int h = from; h < to; h++) {
    float *at = y + (s.border + (size_t)h) * row;
    memset(at, 0, side * sizeof *at);
    memset(at + row - side, 0, side * sizeof *at);
  }
}

typedef struct CpuCall {
  const CpuConv2d *conv;
  float *y;
  const float *x, *added;
  float *padded;                 /* where x is copied to */
  int n, images, bands, threads; /* images: 1 of a linear layer, whose pixels they are */
  bool weights_first;            /* tasks of one group of filters follow each other, and not those of one image */
} CpuCall;

/* Some rows of some filters of an image. */
static void cpu_run_task(const CpuCall *call, int image, int g, int band) {
  const CpuConv2d *conv = call->conv;
  const CpuGroup *group = &conv->group[g];
  const Conv2dShape *s = &conv->shape;
  const bool linear = conv->method == CPU_LINEAR, plain = conv->x.border < 0;
  const int from = (int)((long)conv->rows * band / call->bands),
            to = (int)((long)conv->rows * (band + 1) / call->bands);
  CpuTile tile = conv->tile;
  const size_t y_first = image * conv->y_image + group->first * conv->tile.y_plane;
  const float *x = call->x + image * (conv->padded ? conv->padded : conv->x_image) + group->x_first * tile.x_plane;
  size_t x_row = tile.x_row / (size_t)s->dilation_h;
  if (!plain && !linear)
    x += (size_t)(conv->x.border - s->padding_h) * x_row + (size_t)(conv->x.border - s->padding_w) * CPU_BLOCK;
  tile.w = conv->w + group->w_offset;
  tile.bias = conv->bias + group->first * CPU_BLOCK;
  tile.blocks = group->x_blocks;
  tile.last = plain ? tile.channels : group->last;
  for (int b = 0; b < group->count && !linear; b++)
    cpu_clear_border_rows(call->y + y_first + b * tile.y_plane, conv->y, from, to);
  const CpuGroup *after =
      g + call->threads < conv->groups ? group + call->threads : NULL; /* likely this thread's next */
  const float *next = after ? conv->w + after->w_offset : NULL;
  const size_t count = (g + 1 < conv->groups ? group[1].w_offset : conv->w_count) - group->w_offset;
  int pass = 0;
  const bool two_rows = conv->two_rows == group->count;
  for (int p = from; p < to; p++) {
    const size_t y_row = linear ? 0 : cpu_first(conv->y) + p * cpu_row(conv->y);
    tile.x = x + (size_t)p * s->stride_h * x_row;
    tile.y = call->y + y_first + y_row;
    tile.added = call->added ? call->added + y_first + y_row : NULL;
    tile.next = cpu_next(tile.w, next, count, group->count, pass);
    if (two_rows && p + 1 < to) {
      conv->kernels->kernel[conv->step + CPU_STEP_ROWS][group->count][2 * conv->pixels](&tile);
      p++;
    } else {
      cpu_run_row(conv, &tile, group->count, linear ? call->n : conv->pixels);
    }
    pass++;
  }
}

/* Plain x (N,C,H,W) -> with zeros around each plane. */
static void cpu_copy_plane(void *arg, long i, int thread) {
  const CpuCall *call = (const CpuCall *)arg;
  const Conv2dShape *s = &call->conv->shape;
  const size_t row = (size_t)s->w + 2 * s->padding_w, plane = (s->h + 2 * (size_t)s->padding_h) * row;
  float *at = call->padded + i * plane;
  (void)thread;
  memset(at, 0, plane * sizeof *at);
  at += s->padding_h * row + s->padding_w;
  for (int h = 0; h < s->h; h++) memcpy(at + h * row, call->x + ((size_t)i * s->h + h) * s->w, s->w * sizeof *at);
}

static void cpu_run_numbered(void *arg, long task, int thread) {
  const CpuCall *call = (const CpuCall *)arg;
  const int band = (int)(task % call->bands), rest = (int)(task / call->bands), groups = call->conv->groups;
  (void)thread;
  if (call->weights_first)
    cpu_run_task(call, rest % call->images, rest / call->images, band);
  else
    cpu_run_task(call, rest / groups, rest % groups, band);
}

void cpu_conv2d_run(const CpuConv2d *conv, float *y, const float *x, const float *added, float *workspace, int n,
                    int threads) {
  if (conv->method == CPU_WINOGRAD) {
    cpu_winograd_run(conv, y, x, added, workspace, n, threads);
    return;
  }
  if (n * conv->flops < CPU_SMALL) threads = 1;
  CpuCall call = {conv, y, x, added, workspace, n, conv->method == CPU_LINEAR ? 1 : n, 1, threads, false};
  if (conv->padded) {
    cpu_parallel((long)n * conv->shape.c, threads, cpu_copy_plane, &call);
    call.x = workspace;
  }
  const int parts = call.images * conv->groups, wanted = threads > 1 ? 4 * threads : 1;
  call.bands = parts >= wanted ? 1 : (wanted + parts - 1) / parts;
  if (call.bands > conv->rows) call.bands = conv->rows;
  call.weights_first = conv->w_count > conv->x_image; /* what is larger is read once */
  cpu_parallel((long)parts * call.bands, threads, cpu_run_numbered, &call);
}
