/* conv2d_nhwc_weight_plan.cuh - how conv2d_nhwc_backward_wgmma.cuh cuts the gradient of the weights into tiles, copies.
 *
 *     dw (K, R S C) = dy (pixels, K)^T A (pixels, R S C), where row m of A holds what output pixel m reads
 *
 * As in conv2d_nhwc_plan.cuh the pixels of x lie in shared memory with a pitch, and tap (r,s) reads them from a shift
 * on. dy lies there with the same pitch, with zeros between its rows, so that pixel m of dy meets pixel m + shift of x
 * for every m.
 *
 *   job     of a warpgroup: up to three taps that lie side by side in one plane. One wgmma, 64 columns per tap
 *   set     of a block: up to three jobs that read the same box of x. A 3 x 3 filter with stride 1 is one set, with
 *           stride 2 four: one for each plane
 *   split   a part of the pixels. Blocks with the same sums and different splits form clusters, which add up
 */
#ifndef PHASE3_CNN_CONV2D_NHWC_WEIGHT_PLAN_CUH
#define PHASE3_CNN_CONV2D_NHWC_WEIGHT_PLAN_CUH

#include "phase3_cnn/03_conv2d_implicit_gemm/conv2d_nhwc_plan.cuh"

enum { CONV2D_DW_JOBS = 3, CONV2D_DW_JOB_TAPS = 3, CONV2D_DW_SETS = 20, CONV2D_DW_RING = 4 };

/* Of its first tap: the place in the box, and the filter, r * S + s; and the steps from one tap to the next. */
typedef struct Conv2dDwJob {
  short taps, shift, step, filter, filter_step;
} Conv2dDwJob;

typedef struct Conv2dDwSet {
  short plane, row, col, jobs; /* where the box begins, from the tile's first pixel */
  Conv2dDwJob job[CONV2D_DW_JOBS];
} Conv2dDwSet;

typedef struct Conv2dDwPlan {
  int channels, filters, images, rows, cols, taps;
  int sets, planes;
  Conv2dDwSet set[CONV2D_DW_SETS];
  int tile_images, tile_rows, pitch, image_rows, box_rows;
  int depth;           /* pixels per tile, a multiple of 16 */
  int x_rows, dy_rows; /* of the buffers of a stage */
  int stages;
  int tiles_images, tiles_rows, splits, cluster;
  double cost;
} Conv2dDwPlan;

/* The rows and columns that the taps of a set read, for an output at (0,0); and the first tap of each job. */
typedef struct Conv2dDwReach {
  Conv2dNhwcReach box;
  int row[CONV2D_DW_JOBS], col[CONV2D_DW_JOBS];
} Conv2dDwReach;

/* Whether tap (row, col) of a plane can follow the last one in its job. */
static inline bool conv2d_dw_joins(const Conv2dDwPlan *plan, const Conv2dDwReach *reach, int plane, int row, int col) {
  if (plan->sets == 0) return false;
  const Conv2dDwSet *set = &plan->set[plan->sets - 1];
  const Conv2dDwReach *at = &reach[plan->sets - 1];
  const Conv2dDwJob *job = &set->job[set->jobs - 1];
  return set->plane == plane && job->taps < CONV2D_DW_JOB_TAPS && at->row[set->jobs - 1] == row &&
         (job->taps == 1 || col == at->col[set->jobs - 1] + job->taps * job->step);
}

/* The next tap, (row, col) of a plane: in the last job, in a new one, or in a new set. -1: too many sets. */
static inline int conv2d_dw_add_tap(Conv2dDwPlan *plan, Conv2dDwReach *reach, int plane, int row, int col, int filter) {
  Conv2dDwSet *set = plan->sets > 0 ? &plan->set[plan->sets - 1] : NULL;
  if (conv2d_dw_joins(plan, reach, plane, row, col)) {
    Conv2dDwJob *job = &set->job[set->jobs - 1];
    job->step = (short)((col - reach[plan->sets - 1].col[set->jobs - 1]) / job->taps);
    job->filter_step = (short)((filter - job->filter) / job->taps);
    job->taps++;
  } else {
    if (set == NULL || set->plane != plane || set->jobs == CONV2D_DW_JOBS) {
      if (plan->sets == CONV2D_DW_SETS) return -1;
      set = &plan->set[plan->sets];
      set->plane = (short)plane;
      set->jobs = 0;
      reach[plan->sets++].box = {row, row, col, col};
    }
    reach[plan->sets - 1].row[set->jobs] = row;
    reach[plan->sets - 1].col[set->jobs] = col;
    set->job[set->jobs++] = {1, 0, 1, (short)filter, 0};
  }
  Conv2dNhwcReach *box = &reach[plan->sets - 1].box;
  if (row < box->row_low) box->row_low = row;
  if (row > box->row_high) box->row_high = row;
  if (col < box->col_low) box->col_low = col;
  if (col > box->col_high) box->col_high = col;
  return 0;
}

/* All taps: plane by plane, row by row of the filter. */
static inline int conv2d_dw_sets(Conv2dDwPlan *plan, Conv2dDwReach *reach, Conv2dShape s) {
  for (int plane = plan->planes - 1; plane >= 0; plane--)
    for (int r = 0; r < s.r; r++)
      for (int q = 0; q < s.s; q++) {
        int row, col, a = conv2d_nhwc_axis(false, r, s.stride_h, s.padding_h, s.dilation_h, 0, &row);
        int b = conv2d_nhwc_axis(false, q, s.stride_w, s.padding_w, s.dilation_w, 0, &col);
        if (a * s.stride_w + b != plane) continue;
        if (conv2d_dw_add_tap(plan, reach, plane, row, col, r * s.s + q) != 0) return -1;
      }
  return 0;
}

/* Shifts, now that the pitch is known. */
static inline void conv2d_dw_finish(Conv2dDwPlan *plan, const Conv2dDwReach *reach) {
  for (int i = 0; i < plan->sets; i++) {
    Conv2dDwSet *set = &plan->set[i];
    set->row = (short)reach[i].box.row_low;
    set->col = (short)reach[i].box.col_low;
    for (int job = 0; job < set->jobs; job++)
      set->job[job].shift = (short)((reach[i].row[job] - set->row) * plan->pitch + reach[i].col[job] - set->col);
  }
}

/* How many clusters of 1, 2, 4 and 8 blocks a GPU runs at a time. */
enum { CONV2D_DW_CLUSTER_SIZES = 4 };
typedef struct Conv2dDwClusters {
  int active[CONV2D_DW_CLUSTER_SIZES];
} Conv2dDwClusters;

/* Splits and clusters: as many blocks as the GPU runs at a time. What does not fit into one cluster costs a second
 * kernel. Clocks of an H200, roughly. */
static inline void conv2d_dw_split(Conv2dDwPlan *plan, Conv2dDwClusters clusters) {
  int units = plan->sets * ((plan->channels + 63) / 64) * ((plan->filters + 63) / 64);
  int tiles = plan->tiles_images * plan->tiles_rows;
  double weights = (double)plan->filters * plan->taps * plan->channels;
  int most = 0; /* taps of a set */
  for (int i = 0; i < plan->sets; i++) {
    int taps = 0;
    for (int job = 0; job < plan->set[i].jobs; job++) taps += plan->set[i].job[job].taps;
    if (taps > most) most = taps;
  }
  double products = plan->depth / 16 * 32.0 * most, copied = (plan->x_rows + plan->dy_rows) * 128 / 40.0;
  double tile = (products > copied ? products : copied) + 100;
  plan->cost = 0;
  for (int i = 0; i < CONV2D_DW_CLUSTER_SIZES; i++) {
    int cluster = 1 << i, blocks = clusters.active[i] * cluster, splits = blocks / units;
    if (splits > tiles) splits = tiles;
    splits -= splits % cluster;
    if (splits == 0 && cluster > 1) continue;
    if (splits == 0) splits = 1;
    double rounds = ceil(units * splits / (double)blocks);
    double added = splits > cluster ? 4000 + splits / cluster * weights * 8 / 1800 : 0;
    double cost = ceil(tiles / (double)splits) * tile * rounds + added;
    if (plan->cost > 0 && cost >= plan->cost) continue;
    plan->cost = cost;
    plan->splits = splits;
    plan->cluster = cluster;
  }
  plan->cost += tile / plan->stages;
}

/* Returns -1 and says why if the shape does not suit. */
static inline int conv2d_dw_plan(Conv2dDwPlan *best, Conv2dShape s, Conv2dDwClusters clusters, Error *err) {
  Conv2dShapeText text = conv2d_shape_text(s);
  if (s.groups != 1 || s.c % 8 != 0 || s.k % 8 != 0 || s.stride_h > 2 || s.stride_w > 2 || s.padding_h > 1000 ||
      s.padding_w > 1000)
    return error_set(err,
                     "the wgmma gradient takes one group, channels in multiples of 8 and a stride of 1 or 2; this one "
                     "is %s: use nhwc_mma",
                     text.text);
  if (s.h < s.stride_h || s.w < s.stride_w) /* a plane without rows or columns, which no tensor map can describe */
    return error_set(err,
                     "the wgmma gradient takes images that are at least as large as the stride; this one is %s: "
                     "use nhwc_mma",
                     text.text);
  if (conv2d_span_h(s) > SHRT_MAX || conv2d_span_w(s) > SHRT_MAX) /* places of a set are short */
    return error_set(err, "the wgmma gradient takes filters that span up to %d pixels; this one is %s: use nhwc_mma",
                     SHRT_MAX, text.text);
  bool found = false;
  int out_h = conv2d_out_h(s), out_w = conv2d_out_w(s);
  int in_h = conv2d_nhwc_plane_size(s.h, s.stride_h, 0), in_w = conv2d_nhwc_plane_size(s.w, s.stride_w, 0);
  for (int tile = 1; tile <= out_h + s.n - 1; tile++) { /* image rows, then several images */
    Conv2dDwPlan plan = {};
    Conv2dDwReach reach[CONV2D_DW_SETS] = {};
    plan.channels = s.c;
    plan.filters = s.k;
    plan.images = s.n;
    plan.rows = out_h;
    plan.cols = out_w;
    plan.taps = s.r * s.s;
    plan.planes = s.stride_h * s.stride_w;
    if (conv2d_dw_sets(&plan, reach, s) != 0) break;
    plan.tile_images = tile <= out_h ? 1 : tile - out_h + 1;
    plan.tile_rows = tile <= out_h ? tile : out_h;
    int image_rows = 0, high = 0, shift = 0;
    for (int i = 0; i < plan.sets; i++) {
      const Conv2dNhwcReach *r = &reach[i].box;
      int pitch = conv2d_nhwc_pitch(out_w, r->col_low, r->col_high, in_w);
      int rows = conv2d_nhwc_pitch(plan.tile_rows, r->row_low, r->row_high, in_h);
      if (pitch > plan.pitch) plan.pitch = pitch;
      if (rows > image_rows) image_rows = rows;
      if (r->row_high - r->row_low > high) high = r->row_high - r->row_low;
    }
    for (int i = 0; i < plan.sets; i++) {
      const Conv2dNhwcReach *r = &reach[i].box;
      int most = (r->row_high - r->row_low) * plan.pitch + r->col_high - r->col_low;
      if (most > shift) shift = most;
    }
    plan.image_rows = plan.tile_images > 1 ? image_rows : plan.tile_rows;
    plan.box_rows = plan.tile_images > 1 ? image_rows : plan.tile_rows + high;
    plan.depth = ((plan.tile_images - 1) * plan.image_rows + plan.tile_rows - 1) * plan.pitch + out_w;
    plan.depth = (plan.depth + 15) / 16 * 16;
    int x_box = plan.box_rows * plan.tile_images * plan.pitch, dy_box = plan.image_rows * plan.tile_images * plan.pitch;
    plan.x_rows = ((x_box > shift + plan.depth ? x_box : shift + plan.depth) + 7) / 8 * 8;
    plan.dy_rows = ((dy_box > plan.depth ? dy_box : plan.depth) + 7) / 8 * 8;
    if (plan.pitch > 256 || plan.box_rows > 256) break;
    plan.stages = CONV2D_NHWC_SHARED / ((plan.x_rows + plan.dy_rows) * CONV2D_NHWC_ROW);
    if (plan.stages > CONV2D_DW_RING) plan.stages = CONV2D_DW_RING;
    if (plan.stages < 2) break;
    plan.tiles_images = (s.n + plan.tile_images - 1) / plan.tile_images;
    plan.tiles_rows = (out_h + plan.tile_rows - 1) / plan.tile_rows;
    conv2d_dw_split(&plan, clusters);
    if (found && plan.cost >= best->cost) continue;
    conv2d_dw_finish(&plan, reach);
    *best = plan;
    found = true;
  }
  if (!found) return error_set(err, "no tile of %s fits into shared memory: use nhwc_mma", text.text);
  return 0;
}

#endif /* PHASE3_CNN_CONV2D_NHWC_WEIGHT_PLAN_CUH */
