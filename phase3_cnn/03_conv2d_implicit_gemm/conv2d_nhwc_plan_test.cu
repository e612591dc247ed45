/* A plan is right if following it gives the convolution. Here the host follows it: it copies boxes to a buffer, adds up
 * shifted rows of it, and writes boxes, as the kernel for Hopper does, which runs on no other GPU. */
#include "phase3_cnn/03_conv2d_implicit_gemm/conv2d_nhwc_plan.cuh"

#include "common/test.h"
#include "phase3_cnn/01_conv2d_naive/conv2d_cpu.cuh"

enum { CHANNELS = 8 }; /* and as many filters: the plan does not depend on them */

/* Pixel (row, col) of a plane of images (N,H,W,CHANNELS); NULL outside. */
static double *pixel_at(double *x, int n, int h, int w, int stride_h, int stride_w, int plane, int image, int row,
                        int col) {
  row = row * stride_h + plane / stride_w;
  col = col * stride_w + plane % stride_w;
  if (image >= n || row < 0 || row >= h || col < 0 || col >= w) return NULL;
  return x + (((size_t)image * h + row) * w + col) * CHANNELS;
}

typedef struct Images {
  double *x;
  int n, h, w, stride_h, stride_w;
} Images;

/* One box: rows of zeros outside, and behind it. */
static void copy_box(double *buffer, const Conv2dNhwcPlan *plan, const Conv2dNhwcChunk *chunk, const Images *in,
                     int image0, int row0, int col0) {
  int box = plan->box_rows * plan->tile_images * plan->pitch;
  memset(buffer, 0, (size_t)plan->buffer_rows * CHANNELS * sizeof *buffer);
  for (int j = 0; j < box; j++) {
    int image = j / plan->pitch / plan->box_rows, row = j / plan->pitch % plan->box_rows, col = j % plan->pitch;
    const double *from = pixel_at(in->x, in->n, in->h, in->w, in->stride_h, in->stride_w, chunk->plane, image0 + image,
                                  row0 + row + chunk->row, col0 + col + chunk->col);
    if (from != NULL) memcpy(buffer + j * CHANNELS, from, CHANNELS * sizeof *from);
  }
}

/* sum (pixels,filters) += buffer from the tap's shift on, times the weights of the tap */
static void add_tap(double *sum, const double *buffer, const Conv2dNhwcPlan *plan, const Conv2dNhwcTap *tap,
                    const double *w, int taps, bool backward) {
  if (tap->shift < 0 || tap->shift + plan->pixels > plan->buffer_rows)
    fail_msg("a tap reads pixels %d to %d of %d", tap->shift, tap->shift + plan->pixels - 1, plan->buffer_rows);
  for (int j = 0; j < plan->pixels; j++)
    for (int f = 0; f < CHANNELS; f++)
      for (int c = 0; c < CHANNELS; c++) {
        int k = backward ? c : f, of = backward ? f : c; /* w (K,R,S,C) */
        sum[j * CHANNELS + f] += buffer[(j + tap->shift) * CHANNELS + c] * w[(k * taps + tap->filter) * CHANNELS + of];
      }
}

static void write_box(const double *sum, const Conv2dNhwcPlan *plan, int problem, const Images *out, int image0,
                      int row0, int col0) {
  int width = plan->tile_cols == plan->cols ? plan->pitch : plan->tile_cols;
  for (int j = 0; j < width * plan->image_rows * plan->tile_images; j++) {
    int image = j / width / plan->image_rows, row = j / width % plan->image_rows, col = j % width;
    double *to = pixel_at(out->x, out->n, out->h, out->w, out->stride_h, out->stride_w, problem, image0 + image,
                          row0 + row, col0 + col);
    if (to == NULL) continue;
    if (j >= plan->pixels) fail_msg("output pixel %d of a tile of %d sums", j, plan->pixels);
    memcpy(to, sum + j * CHANNELS, CHANNELS * sizeof *to);
  }
}

/* added: the image of the chunk behind the planes, whose tap is a convolution of 1 x 1 with the weights `one`; or
 * NULL */
static void follow(const Conv2dNhwcPlan *plan, const Images *out, const Images *in, const double *w, int taps,
                   bool backward, const Images *added, const double *one) {
  double *buffer = (double *)xmalloc((size_t)plan->buffer_rows * CHANNELS * sizeof *buffer);
  double *sum = (double *)xmalloc((size_t)plan->pixels * CHANNELS * sizeof *sum);
  int count = plan->tiles_images * plan->tiles_rows * plan->tiles_cols;
  for (int tile = 0; tile < plan->problems * count; tile++) {
    int problem = tile / count, col0 = tile % plan->tiles_cols * plan->tile_cols;
    int row0 = tile / plan->tiles_cols % plan->tiles_rows * plan->tile_rows;
    int image0 = tile % count / plan->tiles_cols / plan->tiles_rows * plan->tile_images;
    memset(sum, 0, (size_t)plan->pixels * CHANNELS * sizeof *sum);
    for (int c = plan->first_chunk[problem]; c < plan->first_chunk[problem + 1]; c++) {
      const bool is_added = plan->chunk[c].plane == plan->planes;
      Conv2dNhwcChunk chunk = plan->chunk[c];
      if (is_added) chunk.plane = 0;
      copy_box(buffer, plan, &chunk, is_added ? added : in, image0, row0, col0);
      for (int t = 0; t < plan->chunk[c].taps; t++)
        add_tap(sum, buffer, plan, &plan->tap[plan->chunk[c].first_tap + t], is_added ? one : w, is_added ? 1 : taps,
                backward);
    }
    write_box(sum, plan, problem, out, image0, row0, col0);
  }
  free(buffer);
  free(sum);
}

/* (N,pixels,CHANNELS) -> (N,CHANNELS,pixels) */
static double *channels_first(const double *x, int n, int pixels) {
  double *to = (double *)xmalloc((size_t)n * pixels * CHANNELS * sizeof *to);
  for (int i = 0; i < n; i++)
    for (int p = 0; p < pixels; p++)
      for (int c = 0; c < CHANNELS; c++)
        to[((size_t)i * CHANNELS + c) * pixels + p] = x[((size_t)i * pixels + p) * CHANNELS + c];
  return to;
}

static double *random_doubles(size_t n, uint64_t seed) {
  float *x = (float *)xmalloc(n * sizeof *x);
  double *to = (double *)xmalloc(n * sizeof *to);
  test_random_fill(x, n, seed);
  for (size_t i = 0; i < n; i++) to[i] = x[i];
  free(x);
  return to;
}

/* Follows the plan with that many sums, blocks and kind of boxes, if there is one. */
static void expect_plan(Conv2dShape s, bool backward, Conv2dNhwcBoxes boxes, int pixels, int blocks) {
  Conv2dNhwcPlan plan = {};
  Conv2dNhwcLimits limits = {boxes, pixels, blocks};
  Error err;
  if (conv2d_nhwc_plan(&plan, s, backward, limits, 132, &err) != 0) {
    if (pixels == 0 && blocks == 0) fail_msg("%s", err.message);
    return;
  }
  int p = conv2d_out_h(s), q = conv2d_out_w(s);
  Images x = {random_doubles(conv2d_x_count(s), 1), s.n, s.h, s.w, s.stride_h, s.stride_w};
  Images y = {random_doubles(conv2d_y_count(s), 2), s.n, p, q, 1, 1};
  double *w = random_doubles(conv2d_w_count(s), 3);
  Images *out = backward ? &x : &y, *in = backward ? &y : &x;
  double *in_first = channels_first(in->x, s.n, in->h * in->w), *w_first = channels_first(w, s.k, s.r * s.s);
  size_t count = (size_t)out->n * out->h * out->w * CHANNELS;
  double *expected = (double *)xmalloc(count * sizeof *expected);
  if (backward)
    conv2d_backward_input_cpu(expected, in_first, w_first, s);
  else
    conv2d_forward_cpu<double>(expected, in_first, w_first, NULL, s);
  for (size_t i = 0; i < count; i++) out->x[i] = NAN;
  follow(&plan, out, in, w, s.r * s.s, backward, NULL, NULL);
  double *actual = channels_first(out->x, s.n, out->h * out->w);
  for (size_t i = 0; i < count; i++)
    if (!(fabs(actual[i] - expected[i]) <= 1e-9 * (1 + fabs(expected[i]))))
      fail_msg("%s%s, %d sums, %d blocks, tiles of %d images, %d rows, %d columns: element %zu is %g, expected %g",
               backward ? "gradient of " : "", conv2d_shape_text(s).text, plan.pixels, plan.blocks, plan.tile_images,
               plan.tile_rows, plan.tile_cols, i, actual[i], expected[i]);
  double *all[] = {x.x, y.x, w, in_first, w_first, expected, actual};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) free(all[i]);
}

static void plans_give_the_convolution(void **state) {
  (void)state;
  const Conv2dShape shapes[] = {
      {1, 8, 8, 16, 8, 1, 1, 1, 1, 0, 0, 1, 1, 1},  {2, 8, 8, 8, 8, 3, 3, 1, 1, 1, 1, 1, 1, 1},
      {7, 8, 7, 7, 8, 3, 3, 1, 1, 1, 1, 1, 1, 1},   {2, 8, 14, 14, 8, 3, 3, 1, 1, 1, 1, 1, 1, 1},
      {1, 8, 9, 56, 8, 3, 3, 1, 1, 1, 1, 1, 1, 1},  {2, 8, 33, 31, 8, 5, 3, 1, 1, 2, 1, 1, 1, 1},
      {2, 8, 15, 17, 8, 3, 3, 2, 2, 1, 1, 1, 1, 1}, {3, 8, 14, 14, 8, 1, 1, 2, 2, 0, 0, 1, 1, 1},
      {1, 8, 3, 300, 8, 3, 3, 1, 1, 0, 1, 1, 1, 1}, {3, 8, 20, 20, 8, 3, 3, 1, 1, 2, 2, 2, 2, 1},
      {2, 8, 15, 15, 8, 7, 7, 2, 2, 3, 3, 1, 1, 1}, {1, 8, 12, 12, 8, 2, 4, 1, 2, 1, 0, 1, 1, 1},
      {3, 8, 10, 10, 8, 3, 3, 1, 1, 3, 3, 1, 1, 1}, {5, 8, 6, 9, 8, 3, 2, 2, 1, 2, 1, 1, 2, 1},
      {5, 8, 6, 9, 8, 3, 3, 2, 2, 2, 1, 2, 2, 1},   {4, 8, 1, 5, 8, 1, 5, 1, 1, 0, 2, 1, 1, 1},
      {9, 8, 3, 2, 8, 3, 3, 2, 2, 1, 1, 1, 1, 1},
  };
  for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
    for (int variant = 0; variant < 6; variant++) {
      expect_plan(shapes[i], variant % 2, (Conv2dNhwcBoxes)(variant / 2), 0, 0);
      for (int blocks = 1; blocks <= 2; blocks++)
        expect_plan(shapes[i], variant % 2, (Conv2dNhwcBoxes)(variant / 2), 208, blocks);
    }
}

/* y = conv(x) + a convolution of 1 x 1 with this stride of another image, as one plan. */
static void expect_sum(Conv2dShape s, Conv2dNhwcBoxes boxes, bool floats, int stride) {
  Conv2dNhwcPlan plan = {};
  Conv2dNhwcLimits limits = {boxes, 0, 0};
  Error err;
  limits.floats = floats;
  limits.added = CONV2D_NHWC_ADDS_PRODUCT;
  limits.added_channels = CHANNELS;
  if (conv2d_nhwc_plan(&plan, s, false, limits, 132, &err) != 0) fail_msg("%s", err.message);
  const int p = conv2d_out_h(s), q = conv2d_out_w(s);
  const Conv2dShape one = conv2d_shape(s.n, CHANNELS, p * stride, q * stride - stride + 1, CHANNELS, 1, 1, stride, 0);
  Images x = {random_doubles(conv2d_x_count(s), 1), s.n, s.h, s.w, 1, 1};
  Images y = {random_doubles(conv2d_y_count(s), 2), s.n, p, q, 1, 1};
  Images added = {random_doubles(conv2d_x_count(one), 4), s.n, one.h, one.w, stride, stride};
  double *w = random_doubles(conv2d_w_count(s), 3), *v = random_doubles(conv2d_w_count(one), 5);
  double *x_first = channels_first(x.x, s.n, s.h * s.w), *w_first = channels_first(w, s.k, s.r * s.s);
  double *added_first = channels_first(added.x, s.n, one.h * one.w);
  const size_t count = conv2d_y_count(s);
  double *expected = (double *)xmalloc(count * sizeof *expected), *more = (double *)xmalloc(count * sizeof *more);
  conv2d_forward_cpu<double>(expected, x_first, w_first, NULL, s);
  conv2d_forward_cpu<double>(more, added_first, v, NULL, one);
  for (size_t i = 0; i < count; i++) y.x[i] = NAN;
  follow(&plan, &y, &x, w, s.r * s.s, false, &added, v);
  double *actual = channels_first(y.x, s.n, p * q);
  for (size_t i = 0; i < count; i++)
    if (!(fabs(actual[i] - expected[i] - more[i]) <= 1e-9 * (1 + fabs(expected[i]))))
      fail_msg("%s and a shortcut of stride %d: element %zu is %g, expected %g", conv2d_shape_text(s).text, stride, i,
               actual[i], expected[i] + more[i]);
  double *all[] = {x.x, y.x, added.x, w, v, x_first, w_first, added_first, expected, more, actual};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) free(all[i]);
}

static void an_added_image_is_one_more_tap(void **state) {
  (void)state;
  const Conv2dShape shapes[] = {conv2d_shape(7, 8, 7, 7, 8, 3, 3, 1, 1),   conv2d_shape(2, 8, 14, 14, 8, 3, 3, 1, 1),
                                conv2d_shape(1, 8, 9, 56, 8, 3, 3, 1, 1),  conv2d_shape(3, 8, 5, 6, 8, 1, 1, 1, 0),
                                conv2d_shape(1, 8, 3, 300, 8, 3, 3, 1, 1), conv2d_shape(2, 8, 9, 8, 8, 5, 5, 1, 2)};
  for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
    for (int variant = 0; variant < 12; variant++)
      expect_sum(shapes[i], (Conv2dNhwcBoxes)(variant % 3), variant / 3 % 2, 1 + variant / 6);
}

static void expect_refusal(Conv2dShape s, const char *why) {
  Conv2dNhwcPlan plan = {};
  Conv2dNhwcLimits any = {CONV2D_NHWC_BEST, 0, 0};
  Error err;
  if (conv2d_nhwc_plan(&plan, s, false, any, 132, &err) == 0) fail_msg("%s was not refused", conv2d_shape_text(s).text);
  if (strstr(err.message, why) == NULL || strstr(err.message, "use nhwc_mma") == NULL)
    fail_msg("\"%s\" does not say \"%s\" and what to use", err.message, why);
}

static void what_does_not_fit_is_refused(void **state) {
  (void)state;
  Conv2dShape s = conv2d_shape(2, 16, 8, 8, 16, 3, 3, 1, 1);
  s.groups = 2;
  expect_refusal(s, "one group");
  expect_refusal(conv2d_shape(2, 3, 8, 8, 16, 3, 3, 1, 1), "multiples of 8");
  expect_refusal(conv2d_shape(2, 8, 8, 8, 10, 3, 3, 1, 1), "multiples of 8");
  expect_refusal(conv2d_shape(2, 8, 8, 8, 16, 3, 3, 3, 1), "stride of 1 or 2");
  expect_refusal(conv2d_shape(2, 8, 18, 18, 16, 9, 9, 1, 1), "up to 60 taps");
  expect_refusal(conv2d_shape(2, 8, 8, 1, 16, 3, 3, 2, 1), "as large as the stride");
  s = conv2d_shape(1, 8, 33010, 1, 8, 2, 1, 1, 0);
  s.dilation_h = 33000;
  expect_refusal(s, "span up to 32767 pixels");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(plans_give_the_convolution),
      cmocka_unit_test(an_added_image_is_one_more_tap),
      cmocka_unit_test(what_does_not_fit_is_refused),
  };
  return TEST_MAIN("conv2d_nhwc_plan", tests);
}
