/* The transforms against sums in double; the products; every version of the convolution and its gradients against the
 * reference, on ragged shapes, with every tile size and with the images in parts. */
#include "phase3_cnn/05_conv2d_fft/conv2d_fft.cuh"

#include "common/test_arrays.h"
#include "phase3_cnn/01_conv2d_naive/conv2d.cuh"
#include "phase3_cnn/05_conv2d_fft/conv2d_fft_cufft.cuh"
#include "phase3_cnn/05_conv2d_fft/conv2d_fft_lesson.cuh"

static int pick(uint64_t *counter, const int *from, int count) {
  PhiloxBlock block = philox4x32(31, 1, (*counter)++);
  return from[block.word[0] % count];
}

/* ---- transforms ---- */

/* Element (u,v) of the spectrum of a tile, from the definition. */
static void spectrum_element(double *re, double *im, const float *tile, int size, int u, int v) {
  *re = *im = 0;
  for (int i = 0; i < size; i++)
    for (int j = 0; j < size; j++) {
      double angle = -2 * M_PI * ((double)(i * u % size) + j * v % size) / size;
      *re += tile[i * size + j] * cos(angle);
      *im += tile[i * size + j] * sin(angle);
    }
}

/* The tile of fft_tile.cuh's own indices, from the planes. */
static void cut_tile(float *tile, int size, const float *x, FftPlanes p, int n, int c, int tile_h, int tile_w) {
  for (int i = 0; i < size; i++)
    for (int j = 0; j < size; j++) {
      int h = tile_h * p.step_h - p.padding_h + i, v = tile_w * p.step_w - p.padding_w + j;
      bool inside = h >= 0 && h < p.h && v >= 0 && v < p.w && i < p.extent_h && j < p.extent_w;
      tile[i * size + j] = inside ? x[((n * p.c + c) * p.h + h) * p.w + v] : 0;
    }
}

/* All spectra are those of the definition, at a few frequencies of each kind, and lie where fft_layout() says. */
template <int T>
static void check_spectra(FftPlanes p, bool by_channel) {
  FftLayout l = fft_layout(p, by_channel);
  size_t planes = (size_t)p.n * p.c * p.h * p.w, numbers = (size_t)FftTile<T>::frequencies * l.rows * l.pitch;
  float *x = arrays_random(planes, 5), *spectrum = arrays_poison(2 * numbers);
  float *device_x = arrays_upload(DEVICE_GPU, x, planes), *device_spectrum = guard_alloc(DEVICE_GPU, 2 * numbers);
  fft_tiles_forward<T>((float2 *)device_spectrum, device_x, p, l);
  arrays_download(DEVICE_GPU, spectrum, device_spectrum, 2 * numbers, "spectrum");
  arrays_download(DEVICE_GPU, NULL, device_x, planes, "x");
  for (size_t i = 0; i < 2 * numbers; i++) assert_false(isnan(spectrum[i]));

  static float tile[64 * 64];
  for (int row = 0; row < l.rows; row++)
    for (int lane = 0; lane < l.lanes; lane += 1 + (row + lane) % 3) {
      int c = by_channel ? lane : row, t = by_channel ? row : lane;
      cut_tile(tile, T, x, p, t / p.tiles_w / p.tiles_h, c, t / p.tiles_w % p.tiles_h, t % p.tiles_w);
      const int v[] = {0, T / 2, 1, T / 2 - 1, 3}, u[] = {0, T / 2, 1, T - 2, 5};
      for (int i = 0; i < 25; i++) {
        int at_v = v[i / 5], at_u = u[i % 5], f = T + 2 + (at_v - 1) * T + at_u;
        if (at_v % (T / 2) == 0) { /* the columns 0 and T/2 are their own conjugates: half of them is kept */
          if (at_u > T / 2) continue;
          f = at_v == 0 ? at_u : T / 2 + 1 + at_u;
        }
        double re, im;
        spectrum_element(&re, &im, tile, T, at_u, at_v);
        const float *got = spectrum + 2 * (((size_t)f * l.rows + row) * l.pitch + lane);
        double error = fmax(fabs(got[0] - re), fabs(got[1] - im)), tolerance = 2e-6 * T;
        if (!(error <= tolerance))
          fail_msg("tile of %d, row %d, lane %d, frequency (%d,%d): (%g, %g), expected (%g, %g)", T, row, lane, at_u,
                   at_v, got[0], got[1], re, im);
      }
    }
  free(x);
  free(spectrum);
}

static void spectra_are_right(void **state) {
  (void)state;
  test_requires_gpu();
  for (int by_channel = 0; by_channel < 2; by_channel++) {
    FftPlanes p = {2, 3, 21, 30, 2, 3, 12, 11, 2, 1, 0, 0, 16, 16};
    check_spectra<16>(p, by_channel);
    FftPlanes q = {1, 2, 40, 20, 2, 1, 25, 30, 3, 0, 0, 0, 32, 31};
    check_spectra<32>(q, by_channel);
    FftPlanes r = {3, 2, 5, 70, 1, 2, 60, 60, 0, 2, 0, 0, 64, 60};
    check_spectra<64>(r, by_channel);
  }
}

/* Tiles that touch, there and back: the same planes, and the bias of each channel. */
template <int T>
static void check_round_trip(FftPlanes p, bool by_channel) {
  FftLayout l = fft_layout(p, by_channel);
  size_t planes = (size_t)p.n * p.c * p.h * p.w, numbers = (size_t)FftTile<T>::frequencies * l.rows * l.pitch;
  float *x = arrays_random(planes, 6), *bias = arrays_random(p.c, 7), *y = arrays_poison(planes);
  float *device_x = arrays_upload(DEVICE_GPU, x, planes), *device_y = arrays_upload(DEVICE_GPU, y, planes);
  float *device_bias = arrays_upload(DEVICE_GPU, bias, p.c), *spectrum = guard_alloc(DEVICE_GPU, 2 * numbers);
  const FftEpilogue epilogue = {device_bias, -INFINITY};
  fft_tiles_forward<T>((float2 *)spectrum, device_x, p, l);
  fft_tiles_inverse<T>(device_y, (const float2 *)spectrum, epilogue, p, l);
  arrays_download(DEVICE_GPU, y, device_y, planes, "y");
  arrays_download(DEVICE_GPU, NULL, spectrum, 2 * numbers, "spectrum");
  guard_free(DEVICE_GPU, device_x);
  guard_free(DEVICE_GPU, device_bias);
  for (size_t i = 0; i < planes; i++) x[i] += bias[i / p.h / p.w % p.c];
  Comparison c = compare_arrays(y, x, p.n * p.c, p.h * p.w, tolerance_make(0, 4e-6));
  if (!c.ok) fail_msg("tiles of %d%s: %s", T, by_channel ? ", by channel" : "", c.message);
  free(x);
  free(bias);
  free(y);
}

static void there_and_back_is_the_same(void **state) {
  (void)state;
  test_requires_gpu();
  for (int by_channel = 0; by_channel < 2; by_channel++) {
    FftPlanes p = {2, 35, 21, 30, 2, 3, 11, 10, 0, 0, 0, 0, 11, 10},
              q = {1, 3, 33, 40, 2, 2, 32, 32, 0, 0, 0, 0, 32, 32};
    FftPlanes r = {2, 2, 70, 50, 2, 1, 60, 60, 0, 0, 0, 0, 60, 60};
    check_round_trip<16>(p, by_channel);
    check_round_trip<32>(q, by_channel);
    check_round_trip<64>(r, by_channel);
  }
}

/* ---- products ---- */

typedef void Multiply(float2 *c, const float2 *a, const float2 *b, ComplexProduct p);

static void check_product(Multiply *multiply, bool conjugate, ComplexProduct p) {
  size_t a_count = (size_t)p.count * p.depth * p.a_pitch * 2, b_count = (size_t)p.count * p.depth * p.b_pitch * 2;
  size_t c_count = (size_t)p.count * p.m * p.b_pitch * 2;
  float *a = arrays_random(a_count, 1), *b = arrays_random(b_count, 2), *c = arrays_random(c_count, 3);
  float *before = arrays_random(c_count, 3);
  float *device_a = arrays_upload(DEVICE_GPU, a, a_count), *device_b = arrays_upload(DEVICE_GPU, b, b_count);
  float *device_c = arrays_upload(DEVICE_GPU, c, c_count);
  multiply((float2 *)device_c, (const float2 *)device_a, (const float2 *)device_b, p);
  arrays_download(DEVICE_GPU, c, device_c, c_count, "c");
  arrays_download(DEVICE_GPU, NULL, device_a, a_count, "a");
  arrays_download(DEVICE_GPU, NULL, device_b, b_count, "b");
  for (int f = 0; f < p.count; f++)
    for (int i = 0; i < p.m; i++)
      for (int j = 0; j < p.n; j++) {
        size_t at = 2 * (((size_t)f * p.m + i) * p.b_pitch + j);
        double re = p.add ? before[at] : 0, im = p.add ? before[at + 1] : 0;
        for (int d = 0; d < p.depth; d++) {
          const float *x = a + 2 * (((size_t)f * p.depth + d) * p.a_pitch + i);
          const float *y = b + 2 * (((size_t)f * p.depth + d) * p.b_pitch + j);
          double x_im = conjugate ? -x[1] : x[1];
          re += (double)x[0] * y[0] - x_im * y[1];
          im += (double)x[0] * y[1] + x_im * y[0];
        }
        double error = fmax(fabs(c[at] - re), fabs(c[at + 1] - im)), most = tolerance_dot(2 * p.depth + 1, 1).absolute;
        if (!(error <= most))
          fail_msg("m %d, n %d, depth %d: element (%d,%d) of frequency %d: (%g, %g), expected (%g, %g)", p.m, p.n,
                   p.depth, i, j, f, c[at], c[at + 1], re, im);
      }
  float *all[] = {a, b, c, before};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) free(all[i]);
}

static void products_are_right(void **state) {
  (void)state;
  test_requires_gpu();
  const ComplexProduct products[] = {
      {3, 1, 1, 1, 32, 32, false},    {2, 65, 33, 9, 96, 64, false},
      {2, 64, 128, 8, 64, 128, true}, {1, 5, 70, 31, 32, 96, true},
      {2, 3, 7, 17, 4, 8, false},     {COMPLEX_PRODUCT_GRID + 2, 1, 2, 1, 2, 2, true}}; /* more than a launch has */
  for (size_t i = 0; i < sizeof products / sizeof *products; i++) {
    check_product(complex_product_naive<true>, true, products[i]);
    check_product(complex_product_naive<false>, false, products[i]);
    check_product(conv2d_fft_product<true>, true, products[i]);
    check_product(conv2d_fft_product<false>, false, products[i]);
  }
}

/* ---- convolutions ---- */

/* `count` random shapes that transforms can compute, none of them large. */
static void each_shape(int count, void (*check)(Conv2dShape)) {
  const int n[] = {1, 2, 3}, c[] = {1, 2, 3, 6, 8, 33}, h[] = {1, 2, 5, 8, 13, 16, 31, 40}, k[] = {1, 2, 6, 9, 66};
  const int side[] = {1, 2, 3, 3, 5, 7, 9}, padding[] = {0, 1, 2, 4};
  uint64_t counter = 0;
  for (int done = 0; done < count;) {
    Conv2dShape s = conv2d_shape(pick(&counter, n, 3), pick(&counter, c, 6), pick(&counter, h, 8), pick(&counter, h, 8),
                                 pick(&counter, k, 5), pick(&counter, side, 7), pick(&counter, side, 7), 1, 0);
    s.padding_h = pick(&counter, padding, 4);
    s.padding_w = pick(&counter, padding, 4);
    if (conv2d_shape_check(s, NULL) != 0) continue;
    if ((double)conv2d_y_count(s) * s.c * s.r * s.s > 400000 || s.n * s.c * s.k > 400) continue; /* emulation is slow */
    check(s);
    done++;
  }
}

/* What is run: methods; or the last version's functions with a tile size, and `images` at a time. */
typedef struct Run {
  const Conv2dMethod *method;
  int tile, images;
  bool relu;
} Run;

static Conv2dFft tiling_of(Run run, Conv2dShape s, int h, int w) {
  Conv2dFft t = conv2d_fft_tiling(s, h, w, run.tile);
  if (run.images < t.images) t.images = run.images;
  return t;
}

static size_t floats_of(Run run, Conv2dShape s) {
  if (run.method != NULL) return run.method->workspace_floats(s);
  Conv2dFft forward = tiling_of(run, s, conv2d_out_h(s), conv2d_out_w(s)), backward = tiling_of(run, s, s.h, s.w);
  size_t floats[] = {conv2d_fft_floats(s, forward, false, false), conv2d_fft_floats(s, backward, false, true),
                     conv2d_fft_floats(s, forward, true, true)};
  return max(floats[0], max(floats[1], floats[2]));
}

static void compare_to(const char *name, Run run, Conv2dShape s, const float *actual, const float *expected, int rows,
                       size_t count, size_t length) {
  Comparison c = compare_arrays(actual, expected, rows, (int)(count / rows), conv2d_fft_tolerance(length));
  if (!c.ok)
    fail_msg("%s of %s, tile %d, %s: %s", name, run.method ? run.method->name : "fft", run.tile,
             conv2d_shape_text(s).text, c.message);
}

static void check_forward(Run run, Conv2dShape s, bool biased, int shift) {
  const size_t n_x = conv2d_x_count(s), n_w = conv2d_w_count(s), n_y = conv2d_y_count(s), k = s.k;
  const size_t floats = floats_of(run, s);
  float *x = arrays_random(n_x, 1), *w = arrays_random(n_w, 2), *bias = arrays_random(k, 3);
  float *expected = arrays_poison(n_y), *actual = arrays_poison(n_y);
  float *device_x = arrays_upload(DEVICE_GPU, x, n_x), *device_w = arrays_upload(DEVICE_GPU, w, n_w);
  float *device_bias = arrays_upload(DEVICE_GPU, bias, k), *device_y = arrays_upload(DEVICE_GPU, actual, n_y);
  float *workspace = guard_alloc(DEVICE_GPU, floats + shift);
  const float *given = biased ? device_bias : NULL;
  const FftEpilogue epilogue = {given, -INFINITY};
  if (run.method != NULL)
    run.method->forward(device_y, device_x, device_w, given, s, workspace + shift);
  else
    conv2d_forward_fft_with(device_y, device_x, device_w, epilogue, s,
                            tiling_of(run, s, conv2d_out_h(s), conv2d_out_w(s)), workspace + shift);
  arrays_download(DEVICE_GPU, actual, device_y, n_y, "y");
  arrays_download(DEVICE_GPU, NULL, device_x, n_x, "x");
  arrays_download(DEVICE_GPU, NULL, device_w, n_w, "w");
  arrays_download(DEVICE_GPU, NULL, device_bias, k, "bias");
  arrays_download(DEVICE_GPU, NULL, workspace, floats + shift, "workspace");
  conv2d_forward_cpu(expected, x, w, biased ? bias : NULL, s);
  for (size_t i = 0; i < n_y && run.relu; i++) expected[i] = fmaxf(expected[i], 0.0f);
  compare_to("y", run, s, actual, expected, s.n * s.k, n_y, n_w / k + 1);
  float *all[] = {x, w, bias, expected, actual};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) free(all[i]);
}

static void check_backward(Run run, Conv2dShape s, bool biased) {
  const size_t n_x = conv2d_x_count(s), n_w = conv2d_w_count(s), n_y = conv2d_y_count(s), k = s.k;
  const size_t floats = floats_of(run, s);
  float *x = arrays_random(n_x, 1), *w = arrays_random(n_w, 2), *dy = arrays_random(n_y, 4);
  float *expected_dx = arrays_poison(n_x), *expected_dw = arrays_poison(n_w), *expected_dbias = arrays_poison(k);
  float *dx = arrays_poison(n_x), *dw = arrays_poison(n_w), *dbias = arrays_poison(k);
  float *device_x = arrays_upload(DEVICE_GPU, x, n_x), *device_w = arrays_upload(DEVICE_GPU, w, n_w);
  float *device_dy = arrays_upload(DEVICE_GPU, dy, n_y), *device_dx = arrays_upload(DEVICE_GPU, dx, n_x);
  float *device_dw = arrays_upload(DEVICE_GPU, dw, n_w), *device_dbias = arrays_upload(DEVICE_GPU, dbias, k);
  float *workspace = guard_alloc(DEVICE_GPU, floats);
  float *given = biased ? device_dbias : NULL;
  if (run.method != NULL) {
    run.method->backward_input(device_dx, device_dy, device_w, s, workspace);
    run.method->backward_weight(device_dw, given, device_dy, device_x, s, workspace);
  } else {
    Conv2dFft forward = tiling_of(run, s, conv2d_out_h(s), conv2d_out_w(s)), backward = tiling_of(run, s, s.h, s.w);
    conv2d_backward_input_fft_with(device_dx, device_dy, device_w, s, backward, workspace);
    conv2d_backward_weight_fft_with(device_dw, given, device_dy, device_x, s, forward, workspace);
  }
  arrays_download(DEVICE_GPU, dx, device_dx, n_x, "dx");
  arrays_download(DEVICE_GPU, dw, device_dw, n_w, "dw");
  arrays_download(DEVICE_GPU, dbias, device_dbias, k, "dbias");
  arrays_download(DEVICE_GPU, NULL, device_x, n_x, "x");
  arrays_download(DEVICE_GPU, NULL, device_w, n_w, "w");
  arrays_download(DEVICE_GPU, NULL, device_dy, n_y, "dy");
  arrays_download(DEVICE_GPU, NULL, workspace, floats, "workspace");
  conv2d_backward_input_cpu(expected_dx, dy, w, s);
  conv2d_backward_weight_cpu(expected_dw, expected_dbias, dy, x, s);
  compare_to("dx", run, s, dx, expected_dx, s.n * s.c, n_x, n_w / s.c);
  compare_to("dw", run, s, dw, expected_dw, s.k, n_w, n_y / k);
  if (biased) compare_to("dbias", run, s, dbias, expected_dbias, 1, k, n_y / k);
  for (size_t i = 0; i < k && !biased; i++) assert_true(isnan(dbias[i]));
  float *all[] = {x, w, dy, expected_dx, expected_dw, expected_dbias, dx, dw, dbias};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) free(all[i]);
}

static const Conv2dMethod bias_relu_method = {
    "bias and ReLU", conv2d_fft_fits, conv2d_fft_workspace_floats, conv2d_bias_relu_forward_fft_tiled, NULL, NULL};

static void check_methods(Conv2dShape s) {
  const Conv2dMethod *const methods[] = {&conv2d_fft_whole_method, &conv2d_fft_whole_tiled_method,
                                         &conv2d_fft_overlap_method, &conv2d_fft_method};
  for (int i = 0; i < 4; i++) check_forward({methods[i], 0, 0, false}, s, true, 0);
  check_forward({&bias_relu_method, 0, 0, true}, s, s.n == 1, 0);
  check_backward({&conv2d_fft_method, 0, 0, false}, s, true);
}

static void methods_match_reference(void **state) {
  (void)state;
  test_requires_gpu();
  each_shape(25, check_methods);
  check_methods(conv2d_shape(2, 1, 40, 37, 2, 17, 20, 1, 9));
  check_methods(conv2d_shape(1, 2, 35, 33, 1, 33, 33, 1, 1)); /* the largest filter */
}

static void check_padded(Conv2dShape s, int padding_h, int padding_w) {
  s.padding_h = padding_h;
  s.padding_w = padding_w;
  check_methods(s);
}

static void edges_match_reference(void **state) {
  (void)state;
  test_requires_gpu();
  check_methods(conv2d_shape(1, 1, 1, 1, 1, 1, 1, 1, 0));
  check_methods(conv2d_shape(1, 1, 1, 1, 1, 1, 1, 1, 40));         /* nearly all outputs are the bias */
  check_methods(conv2d_shape(2, 3, 4, 5, 2, 4, 5, 1, 0));          /* one output */
  check_methods(conv2d_shape(1, 2, 2, 3, 2, 33, 32, 1, 16));       /* filters far larger than the image */
  check_padded(conv2d_shape(3, 1, 1, 70, 2, 1, 7, 1, 0), 0, 3);    /* a row */
  check_padded(conv2d_shape(1, 1, 67, 1, 1, 5, 1, 1, 0), 7, 0);    /* a column, more padding than filter */
  check_padded(conv2d_shape(1, 2, 3, 2, 1, 2, 3, 1, 0), 20, 1);    /* ten times as much */
  check_padded(conv2d_shape(2, 1, 17, 50, 34, 3, 17, 1, 0), 0, 8); /* too wide for tiles of 16 */
}

/* A sum that is not a number must not become 0. */
static void relu_keeps_nan(void **state) {
  (void)state;
  test_requires_gpu();
  const Conv2dShape s = conv2d_shape(1, 2, 4, 4, 2, 1, 1, 1, 0);
  float x[32] = {}, w[4] = {1, 1, 1, 1}, bias[2] = {NAN, -1}, y[32];
  float *device_x = arrays_upload(DEVICE_GPU, x, 32), *device_w = arrays_upload(DEVICE_GPU, w, 4);
  float *device_bias = arrays_upload(DEVICE_GPU, bias, 2), *device_y = guard_alloc(DEVICE_GPU, 32);
  float *workspace = guard_alloc(DEVICE_GPU, conv2d_fft_workspace_floats(s));
  conv2d_bias_relu_forward_fft_tiled(device_y, device_x, device_w, device_bias, s, workspace);
  arrays_download(DEVICE_GPU, y, device_y, 32, "y");
  for (int i = 0; i < 32; i++)
    if (i < 16 ? !isnan(y[i]) : y[i] != 0) fail_msg("y[%d] is %g; expected %s", i, y[i], i < 16 ? "NaN" : "0");
  float *all[] = {workspace, device_x, device_w, device_bias};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) guard_free(DEVICE_GPU, all[i]);
}

static void check_tiles(Conv2dShape s) {
  for (int tile = 16; tile <= 64; tile *= 2)
    for (int images = 1; images <= 2; images++) {
      if (tile < s.r || tile < s.s) continue;
      check_forward({NULL, tile, images, false}, s, images == 1, 0);
      check_backward({NULL, tile, images, false}, s, images == 2);
    }
}

static void every_tile_matches_reference(void **state) {
  (void)state;
  test_requires_gpu();
  check_tiles(conv2d_shape(3, 2, 35, 20, 5, 3, 4, 1, 1));
  check_tiles(conv2d_shape(2, 3, 9, 50, 2, 16, 1, 1, 5)); /* 16: one row of each tile of 16 is an output */
  check_tiles(conv2d_shape(3, 1, 3, 3, 2, 5, 5, 1, 4));   /* more padding than filter reaches */
}

/* float4 must be aligned, a workspace need not be. */
static void any_workspace_serves(void **state) {
  (void)state;
  test_requires_gpu();
  const Conv2dShape s = conv2d_shape(2, 3, 17, 12, 4, 3, 3, 1, 1);
  for (int shift = 1; shift < 4; shift++) {
    check_forward({&conv2d_fft_method, 0, 0, false}, s, true, shift);
    check_forward({&conv2d_fft_overlap_method, 0, 0, false}, s, true, shift);
  }
}

/* However few channels there are: where channels are lanes, they are padded to 32. */
static void workspace_of_many_images_is_bounded(void **state) {
  (void)state;
  for (int channels = 1; channels <= 64; channels *= 4) {
    const Conv2dShape s = conv2d_shape(100000, channels, 28, 28, channels, 5, 5, 1, 2);
    assert_true(conv2d_fft_workspace_floats(s) * sizeof(float) < 1.05 * CONV2D_FFT_SPECTRA);
  }
}

static void it_repeats_to_the_bit(void **state) {
  (void)state;
  test_requires_gpu();
  const Conv2dShape s = conv2d_shape(2, 5, 20, 20, 7, 3, 3, 1, 1);
  const size_t n_x = conv2d_x_count(s), n_w = conv2d_w_count(s), n_y = conv2d_y_count(s);
  float *x = arrays_random(n_x, 1), *w = arrays_random(n_w, 2), *dy = arrays_random(n_y, 3), *first[3], *again;
  float *device_x = arrays_upload(DEVICE_GPU, x, n_x), *device_w = arrays_upload(DEVICE_GPU, w, n_w);
  float *device_dy = arrays_upload(DEVICE_GPU, dy, n_y);
  float *workspace = guard_alloc(DEVICE_GPU, conv2d_fft_workspace_floats(s));
  const size_t sizes[3] = {n_y, n_x, n_w};
  for (int run = 0; run < 2; run++) {
    float *out[3];
    for (int i = 0; i < 3; i++) out[i] = guard_alloc(DEVICE_GPU, sizes[i]);
    conv2d_forward_fft_tiled(out[0], device_x, device_w, NULL, s, workspace);
    conv2d_backward_input_fft_tiled(out[1], device_dy, device_w, s, workspace);
    conv2d_backward_weight_fft_tiled(out[2], NULL, device_dy, device_x, s, workspace);
    for (int i = 0; i < 3; i++) {
      again = arrays_poison(sizes[i]);
      arrays_download(DEVICE_GPU, again, out[i], sizes[i], "an output");
      if (run == 0) {
        first[i] = again;
        continue;
      }
      assert_memory_equal(first[i], again, sizes[i] * sizeof *again);
      free(first[i]);
      free(again);
    }
  }
  float *device[] = {device_x, device_w, device_dy, workspace}, *host[] = {x, w, dy};
  for (int i = 0; i < 4; i++) guard_free(DEVICE_GPU, device[i]);
  for (int i = 0; i < 3; i++) free(host[i]);
}

/* ---- on the CPU ---- */

static void check_cpu(Conv2dShape s) {
  const size_t n_x = conv2d_x_count(s), n_w = conv2d_w_count(s), n_y = conv2d_y_count(s), k = s.k;
  float *x = arrays_random(n_x, 1), *w = arrays_random(n_w, 2), *bias = arrays_random(k, 3);
  float *expected = arrays_poison(n_y), *actual = arrays_poison(n_y);
  conv2d_forward_cpu(expected, x, w, bias, s);
  conv2d_forward_fft_cpu(actual, x, w, bias, s);
  Comparison c = compare_arrays(actual, expected, s.n * s.k, (int)(n_y / s.n / k), tolerance_dot(n_w / k + 1, 1));
  if (!c.ok) fail_msg("%s: %s", conv2d_shape_text(s).text, c.message);
  float *all[] = {x, w, bias, expected, actual};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) free(all[i]);
}

static void the_cpus_version_matches_reference(void **state) {
  (void)state;
  each_shape(40, check_cpu);
}

/* ---- the contract ---- */

static void check_refused(Conv2dShape s, const char *part) {
  Error err;
  assert_int_equal(conv2d_fft_method.fits(s, &err), -1);
  if (strstr(err.message, part) == NULL || strstr(err.message, "use implicit_gemm") == NULL)
    fail_msg("\"%s\" does not say \"%s\"", err.message, part);
}

static void what_it_cannot_do_is_refused(void **state) {
  (void)state;
  const Conv2dShape good = conv2d_shape(2, 4, 50, 50, 6, 5, 5, 1, 2);
  Error err;
  assert_int_equal(conv2d_fft_method.fits(good, &err), 0);
  Conv2dShape s = good;
  s.stride_w = 2;
  check_refused(s, "stride 1 x 2");
  s = good;
  s.dilation_h = 3;
  check_refused(s, "dilation 3 x 1");
  s = good;
  s.groups = 2;
  check_refused(s, "2 groups");
  s = good;
  s.r = CONV2D_FFT_FILTER;
  assert_int_equal(conv2d_fft_method.fits(s, &err), 0);
  s.r++;
  check_refused(s, "(6,4,34,5)");
}

/* A network plans its workspace for the largest batch and then comes with smaller ones. */
static void workspace_grows_with_the_batch(void **state) {
  (void)state;
  const Conv2dShape shapes[] = {conv2d_shape(1, 64, 56, 56, 64, 3, 3, 1, 1),
                                conv2d_shape(1, 3, 224, 224, 64, 7, 7, 1, 3),
                                conv2d_shape(1, 1, 28, 28, 6, 5, 5, 1, 2)};
  for (int i = 0; i < 3; i++) {
    Conv2dShape small = shapes[i], large = shapes[i];
    for (small.n = 1; small.n < 600; small.n++) {
      large.n = small.n + 1;
      assert_true(conv2d_fft_workspace_floats(small) <= conv2d_fft_workspace_floats(large));
    }
  }
}

/* Small filters take small tiles, large filters large ones. */
static void larger_filters_take_larger_tiles(void **state) {
  (void)state;
  for (int r = 1; r <= CONV2D_FFT_FILTER; r++) {
    int tile = conv2d_fft_forward_tiling(conv2d_shape(32, 64, 56, 56, 64, r, r, 1, r / 2)).tile;
    assert_true(tile >= r);
    if (r <= 3) assert_int_equal(tile, 16);
    if (r > 20) assert_int_equal(tile, 64);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(spectra_are_right),
      cmocka_unit_test(there_and_back_is_the_same),
      cmocka_unit_test(products_are_right),
      cmocka_unit_test(methods_match_reference),
      cmocka_unit_test(edges_match_reference),
      cmocka_unit_test(relu_keeps_nan),
      cmocka_unit_test(every_tile_matches_reference),
      cmocka_unit_test(any_workspace_serves),
      cmocka_unit_test(it_repeats_to_the_bit),
      cmocka_unit_test(the_cpus_version_matches_reference),
      cmocka_unit_test(what_it_cannot_do_is_refused),
      cmocka_unit_test(workspace_of_many_images_is_bounded),
      cmocka_unit_test(workspace_grows_with_the_batch),
      cmocka_unit_test(larger_filters_take_larger_tiles),
  };
  return TEST_MAIN("conv2d_fft", tests);
}
