/* cpu_winograd.c - convolutions of 3 x 3 with stride 1 by Winograd's F(4x4,3x3): 36 products for 16 outputs, where
 * the sum has 144.
 *
 *     u (36, blocks of filters, C, 16)     the weights, transformed once
 *     v (36, blocks of channels, tiles, 16)  a chunk of tiles of x, transformed
 *     m (36, blocks of filters, tiles, 16)   for each point a matrix product: the kernels of 1 x 1 convolutions
 *     y                                      m, transformed back
 *
 * A thread takes a chunk of tiles from x to y, so that v and m stay in its L2 cache; u is read once per chunk. Where
 * there are fewer chunks than threads (one image), several threads share a chunk: each has a part of the filters, and
 * transforms the tiles of x for itself.
 */
#include <string.h>

#include "phase5_production/08_engine/cpu_conv2d_plan.h"

enum {
  CHUNK = 56,            /* tiles */
  CHUNK_BYTES = 1 << 20, /* of v and m, but no fewer tiles than */
  CHUNK_LEAST = 28,
  TILES_LEAST = 8, /* or the weights, four times as many as those of the sum, are read for too little */
  CHANNELS_LEAST = 32,
};

typedef struct Chunks {
  int across, down;                 /* tiles of an image */
  int tiles, count;                 /* of a chunk; chunks */
  int parts;                        /* of the groups of filters, each for a thread */
  size_t v_plane, v_point, m_point; /* floats: from a block to the next, from a point to the next */
  size_t floats;                    /* of workspace, per task that runs at a time */
} Chunks;

static int up(int n, int divisor) { return (n + divisor - 1) / divisor; }

/* The largest chunk, in tiles. */
static int winograd_most(const CpuConv2d *conv) {
  const int blocks = cpu_blocks(conv->x) + cpu_blocks(conv->y);
  const int most = (int)(CHUNK_BYTES / (CPU_WINOGRAD_POINTS * sizeof(float) * CPU_BLOCK * blocks));
  return most > CHUNK ? CHUNK : most < CHUNK_LEAST ? CHUNK_LEAST : most;
}

/* What a chunk of c->tiles needs. */
static void winograd_planes(const CpuConv2d *conv, Chunks *c) {
  c->v_plane = (size_t)c->tiles * CPU_BLOCK;
  c->v_point = cpu_blocks(conv->x) * c->v_plane + CPU_BLOCK; /* not a power of two: a tile's points go to other sets */
  c->m_point = cpu_blocks(conv->y) * c->v_plane + CPU_BLOCK;
  c->floats = CPU_WINOGRAD_POINTS * (c->v_point + c->m_point);
}

static Chunks winograd_chunks(const CpuConv2d *conv, int n, int threads) {
  Chunks c;
  c.across = up(conv->y.w, CPU_WINOGRAD_TILE);
  c.down = up(conv->y.h, CPU_WINOGRAD_TILE);
  const int all = n * c.across * c.down, most = winograd_most(conv);
  c.count = up(all, most);
  if (c.count > 1 || all / threads >= CPU_TILE_PIXELS) c.count = up(c.count, threads) * threads; /* no thread waits */
  if (c.count > all) c.count = all;
  c.tiles = up(all, c.count);
  c.count = up(all, c.tiles);
  c.parts = c.count < threads ? threads / c.count : 1;
  if (c.parts > conv->groups) c.parts = conv->groups;
  winograd_planes(conv, &c);
  return c;
}

bool cpu_winograd_fits(const CpuConv2d *conv, int n) {
  const Conv2dShape *s = &conv->shape;
  const int tiles = n * up(conv->y.w, CPU_WINOGRAD_TILE) * up(conv->y.h, CPU_WINOGRAD_TILE);
  return conv->method == CPU_DIRECT && conv->x.border >= 0 && conv2d_is_dense(*s) && s->r == 3 && s->s == 3 &&
         s->stride_h == 1 && s->stride_w == 1 && s->c >= CHANNELS_LEAST && s->k >= CHANNELS_LEAST &&
         tiles >= TILES_LEAST;
}

/* G w Gt of one filter and channel: in double, as it happens once. */
static void winograd_filter(double u[CPU_WINOGRAD_POINTS], const float *w) {
  static const double g[6][3] = {{1 / 4.0, 0, 0},
                                 {-1 / 6.0, -1 / 6.0, -1 / 6.0},
                                 {-1 / 6.0, 1 / 6.0, -1 / 6.0},
                                 {1 / 24.0, 1 / 12.0, 1 / 6.0},
                                 {1 / 24.0, -1 / 12.0, 1 / 6.0},
                                 {0, 0, 1}};
  for (int i = 0; i < 6; i++)
    for (int j = 0; j < 6; j++) {
      double sum = 0;
      for (int r = 0; r < 3; r++)
        for (int s = 0; s < 3; s++) sum += g[i][r] * w[r * 3 + s] * g[j][s];
      u[i * 6 + j] = sum;
    }
}

/* conv->groups are planned: group g of point f stands at f * (floats of a point) + its w_offset / 9. */
void cpu_winograd_pack(CpuConv2d *conv, const float *w) {
  const Conv2dShape *s = &conv->shape;
  const size_t point = conv->w_count / 9;
  conv->w_count = point * CPU_WINOGRAD_POINTS;
  conv->w = (float *)cpu_alloc(conv->w_count);
  memset(conv->w, 0, conv->w_count * sizeof *conv->w);
  for (int g = 0; g < conv->groups; g++) {
    CpuGroup *group = &conv->group[g];
    const int filters = group->count * CPU_BLOCK;
    group->w_offset /= 9;
    for (int f = 0; f < filters && group->first * CPU_BLOCK + f < s->k; f++)
      for (int c = 0; c < s->c; c++) {
        double u[CPU_WINOGRAD_POINTS];
        winograd_filter(u, w + ((size_t)(group->first * CPU_BLOCK + f) * s->c + c) * 9);
        for (int i = 0; i < CPU_WINOGRAD_POINTS; i++)
          conv->w[i * point + group->w_offset + (size_t)c * filters + f] = (float)u[i];
      }
  }
}

/* Enough for every smaller n and fewer threads, too: fewer images may be divided into larger chunks. */
size_t cpu_winograd_workspace(const CpuConv2d *conv, int n, int threads) {
  Chunks c = winograd_chunks(conv, n, threads);
  const long all = (long)n * c.across * c.down, tasks = all * conv->groups;
  c.tiles = all < winograd_most(conv) ? (int)all : winograd_most(conv);
  winograd_planes(conv, &c);
  return c.floats * (size_t)(tasks < threads ? tasks : threads);
}

/* Where tile t of all images lies: its first row and column of y, which is also that of x without padding. */
typedef struct Place {
  int image, row, column;
} Place;

static Place winograd_place(const Chunks *c, int t) {
  const int image = t / (c->across * c->down), in = t % (c->across * c->down);
  const Place place = {image, in / c->across * CPU_WINOGRAD_TILE, in % c->across * CPU_WINOGRAD_TILE};
  return place;
}

static void winograd_input(const CpuConv2d *conv, const Chunks *c, float *v, const float *x, int from, int to) {
  const int corner = conv->x.border - conv->shape.padding_h, side = conv->x.border - conv->shape.padding_w;
  for (int t = from; t < to; t++) {
    const Place place = winograd_place(c, t);
    CpuWinogradTile tile = {.x_row = cpu_row(conv->x), .point = c->v_point};
    tile.rows = conv->x.h + 2 * conv->x.border - corner - place.row;
    tile.columns = conv->x.w + 2 * conv->x.border - side - place.column;
    tile.x =
        x + place.image * conv->x_image + (corner + place.row) * tile.x_row + (size_t)(side + place.column) * CPU_BLOCK;
    tile.points = v + (t - from) * CPU_BLOCK;
    for (int b = 0; b < cpu_blocks(conv->x); b++, tile.x += cpu_plane(conv->x), tile.points += c->v_plane)
      conv->kernels->winograd_input(&tile);
  }
}

/* m of some groups of filters */
static void winograd_product(const CpuConv2d *conv, const Chunks *c, float *m, const float *v, int g_from, int g_to,
                             int tiles) {
  static const float zeros[CPU_TILE_BLOCKS * CPU_BLOCK];
  const size_t point = conv->w_count / CPU_WINOGRAD_POINTS;
  CpuTile tile = {
      .bias = zeros, .y_plane = c->v_plane, .y_step = CPU_BLOCK, .x_plane = c->v_plane, .x_step = CPU_BLOCK};
  tile.r = tile.s = 1;
  tile.channels = CPU_BLOCK;
  tile.least = -INFINITY;
  tile.most = INFINITY;
  for (int f = 0; f < CPU_WINOGRAD_POINTS; f++)
    for (int g = g_from; g < g_to; g++) {
      const CpuGroup *group = &conv->group[g];
      const int widest = conv->kernels->pixels[group->count], parts = up(tiles, widest);
      tile.w = conv->w + f * point + group->w_offset;
      tile.blocks = group->x_blocks;
      tile.last = group->last;
      const float *next = f + 1 < CPU_WINOGRAD_POINTS ? conv->w + (f + 1) * point + conv->group[g_from].w_offset : NULL;
      if (g + 1 < g_to) next = conv->w + f * point + group[1].w_offset;
      for (int i = 0; i < parts; i++) {
        tile.next = cpu_next(tile.w, next, (size_t)conv->shape.c * group->count * CPU_BLOCK, group->count, i);
        const int at = tiles * i / parts, end = tiles * (i + 1) / parts;
        tile.x = v + f * c->v_point + (size_t)at * CPU_BLOCK;
        tile.y = m + f * c->m_point + group->first * c->v_plane + (size_t)at * CPU_BLOCK;
        conv->kernels->kernel[CPU_STEP_BLOCK][group->count][end - at](&tile);
      }
    }
}

static void winograd_output(const CpuConv2d *conv, const Chunks *c, float *y, const float *added, float *m, int from,
                            int to, int block_from, int block_to) {
  for (int t = from; t < to; t++) {
    const Place place = winograd_place(c, t);
    CpuWinogradTile tile = {.point = c->m_point, .y_row = cpu_row(conv->y)};
    tile.least = conv->activation.least;
    tile.most = conv->activation.most;
    tile.rows = conv->y.h - place.row;
    tile.columns = conv->y.w - place.column;
    const size_t first =
        place.image * conv->y_image + cpu_first(conv->y) + place.row * tile.y_row + (size_t)place.column * CPU_BLOCK;
    for (int b = block_from; b < block_to; b++) {
      tile.points = m + b * c->v_plane + (t - from) * CPU_BLOCK;
      tile.bias = conv->bias + b * CPU_BLOCK;
      tile.y = y + first + b * cpu_plane(conv->y);
      tile.added = added ? added + first + b * cpu_plane(conv->y) : NULL;
      conv->kernels->winograd_output(&tile);
      if (place.row == 0 && place.column == 0)
        cpu_clear_border_rows(y + place.image * conv->y_image + b * cpu_plane(conv->y), conv->y, 0, conv->y.h);
    }
  }
}

typedef struct WinogradCall {
  const CpuConv2d *conv;
  Chunks chunks;
  float *y, *workspace;
  const float *x, *added;
  int all; /* tiles */
} WinogradCall;

/* Some groups of filters of a chunk of tiles, from x to y. */
static void winograd_task(void *arg, long task, int thread) {
  const WinogradCall *call = (const WinogradCall *)arg;
  const CpuConv2d *conv = call->conv;
  const Chunks *c = &call->chunks;
  const int chunk = (int)(task / c->parts), part = (int)(task % c->parts);
  const int from = chunk * c->tiles, to = from + c->tiles < call->all ? from + c->tiles : call->all;
  const int g_from = conv->groups * part / c->parts, g_to = conv->groups * (part + 1) / c->parts;
  const CpuGroup *last = &conv->group[g_to - 1];
  float *v = call->workspace + c->floats * thread, *m = v + CPU_WINOGRAD_POINTS * c->v_point;
  winograd_input(conv, c, v, call->x, from, to);
  winograd_product(conv, c, m, v, g_from, g_to, to - from);
  winograd_output(conv, c, call->y, call->added, m, from, to, conv->group[g_from].first, last->first + last->count);
}

void cpu_winograd_run(const CpuConv2d *conv, float *y, const float *x, const float *added, float *workspace, int n,
                      int threads) {
  WinogradCall call = {conv, winograd_chunks(conv, n, threads), y, workspace, x, added, 0};
  call.all = n * call.chunks.across * call.chunks.down;
  cpu_parallel((long)call.chunks.count * call.chunks.parts, threads, winograd_task, &call);
}
