/* nncuda_layers_test.cu - the layers of networks through the ABI: the kernels against the CPU's versions. */
#include "phase5_production/05_pytorch/test_nncuda.h"

enum { F32 = NNCUDA_FLOAT32 };

static void conv_case(const nncuda_conv2d_shape *shape, int bias, int residual, int relu) {
  int64_t p = 0, q = 0;
  assert_int_equal(nncuda_conv2d_output(shape, &p, &q), NNCUDA_OK);
  const size_t in = (size_t)(shape->n * shape->c * shape->h * shape->w), out = (size_t)(shape->n * shape->k * p * q);
  const size_t weights = (size_t)(shape->k * shape->c / shape->groups * shape->r * shape->s);
  Twice x = twice_random(in, 15), w = twice_random(weights, 16), b = twice_random((size_t)shape->k, 17);
  Twice z = twice_random(out, 18), y = twice_poison(out), dx = twice_poison(in), dw = twice_poison(weights);
  Twice db = twice_poison((size_t)shape->k);
  Scratch s = scratch_open(nncuda_conv2d_workspace(NNCUDA_CPU, shape), nncuda_conv2d_workspace(0, shape));
  Scratch alone =
      scratch_open(nncuda_conv2d_forward_workspace(NNCUDA_CPU, shape), nncuda_conv2d_forward_workspace(0, shape));
  BOTH(nncuda_conv2d_forward(device, NULL, F32, y.at[on], x.at[on], w.at[on], bias ? b.at[on] : NULL,
                             residual ? z.at[on] : NULL, relu, shape, alone.at[on], alone.bytes[on]));
  BOTH(nncuda_conv2d_backward_input(device, NULL, F32, dx.at[on], z.at[on], w.at[on], shape, s.at[on], s.bytes[on]));
  BOTH(nncuda_conv2d_backward_weight(device, NULL, F32, dw.at[on], db.at[on], z.at[on], x.at[on], shape, s.at[on],
                                     s.bytes[on]));
  twice_compare(&y, (size_t)(shape->n * shape->k), (size_t)(p * q), 1e-4, 1e-4, "y");
  twice_compare(&dx, (size_t)(shape->n * shape->c), (size_t)(shape->h * shape->w), 1e-4, 1e-4, "dx");
  twice_compare(&dw, (size_t)shape->k, weights / (size_t)shape->k, 1e-4, 3e-4, "dw");
  twice_compare(&db, 1, (size_t)shape->k, 1e-4, 1e-4, "dbias");
  Twice *const all[] = {&x, &w, &b, &z};
  for (int i = 0; i < 4; i++) twice_same(all[i], "an input");
  scratch_close(&s);
  scratch_close(&alone);
}

static void convolutions(void **state) {
  (void)state;
  const nncuda_conv2d_shape shapes[] = {{1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 1, 1, 1},
                                        {2, 3, 9, 7, 5, 3, 3, 1, 1, 1, 1, 1, 1, 1},
                                        {2, 17, 9, 11, 19, 3, 3, 1, 1, 1, 1, 1, 1, 1}, /* Winograd */
                                        {3, 20, 7, 8, 24, 3, 3, 2, 2, 1, 1, 1, 1, 1},  /* implicit GEMM */
                                        {2, 8, 9, 9, 12, 3, 3, 1, 1, 2, 2, 2, 2, 4}};
  const int count = sizeof shapes / sizeof *shapes;
  for (int i = 0; i < count; i++)
    for (int j = 0; j < 4; j++) conv_case(&shapes[i], j & 1, j >> 1, (j ^ j >> 1) & 1);
  for (int way = NNCUDA_DIRECT; way <= NNCUDA_GEMM; way++) { /* shapes that are so small go to the direct kernels */
    assert_int_equal(nncuda_set_convolution(way), NNCUDA_OK);
    for (int i = 0; i < count; i++) conv_case(&shapes[i], i & 1, way & 1, i >> 1 & 1);
  }
  assert_int_equal(nncuda_set_convolution(NNCUDA_CHOSEN), NNCUDA_OK);
  assert_int_equal(nncuda_set_convolution(NNCUDA_GEMM + 1), NNCUDA_BAD_ARGUMENT);
  assert_string_equal(nncuda_last_argument(), "way");
}

/* y is what convolution, ReLU and pooling give apart. */
static void stem_by_two(const float *y, const float *x, const float *w, const float *bias,
                        const nncuda_conv2d_shape *conv, const nncuda_pool2d_shape *pool, size_t n) {
  const size_t bytes = nncuda_conv2d_workspace(NNCUDA_CPU, conv);
  float *out = (float *)xmalloc((size_t)(pool->n * pool->c * pool->h * pool->w) * sizeof *out);
  float *expected = (float *)xmalloc(n * sizeof *expected);
  uint8_t *argmax = (uint8_t *)xmalloc(n);
  Scratch s = scratch_open(bytes, 0);
  assert_int_equal(nncuda_conv2d_forward(NNCUDA_CPU, NULL, F32, out, x, w, bias, NULL, 1, conv, s.at[0], bytes),
                   NNCUDA_OK);
  assert_int_equal(nncuda_max_pool2d_forward(NNCUDA_CPU, NULL, F32, expected, argmax, out, 0, pool), NNCUDA_OK);
  const Comparison c = compare_arrays(y, expected, 1, n, tolerance_make(1e-6, 1e-6));
  if (!c.ok) fail_msg("convolution, then pooling: %s", c.message);
  scratch_close(&s);
  free(out);
  free(expected);
  free(argmax);
}

/* Forward alone needs no more than all three; one picture of a large layer needs little. */
static void workspaces_of_convolutions(void **state) {
  (void)state;
  const nncuda_conv2d_shape shapes[] = {{64, 128, 28, 28, 128, 3, 3, 1, 1, 1, 1, 1, 1, 1}, /* Winograd, in two parts */
                                        {64, 64, 13, 13, 128, 3, 3, 1, 1, 0, 0, 1, 1, 1},
                                        {256, 1, 28, 28, 64, 3, 3, 1, 1, 0, 0, 1, 1, 1},
                                        {1, 512, 7, 7, 512, 3, 3, 1, 1, 1, 1, 1, 1, 1},
                                        {1, 3, 224, 224, 64, 7, 7, 2, 2, 3, 3, 1, 1, 1}};
  const size_t forward_most[] = {56 << 20, 1 << 20, 0, 0, 0},
               all_most[] = {56 << 20, 24 << 20, 1 << 20, 1 << 20, 40 << 20};
  for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
    const size_t forward = nncuda_conv2d_forward_workspace(0, &shapes[i]), all = nncuda_conv2d_workspace(0, &shapes[i]);
    if (forward > forward_most[i] || forward > all || all > all_most[i])
      fail_msg("shape %zu: %zu bytes for forward, %zu with gradients", i, forward, all);
  }
}

/* The oracle is the two operations, in float32, or what the rounding of the factors leaves of it. */
static void stem(void **state) {
  (void)state;
  const nncuda_conv2d_shape conv = {2, 3, 21, 18, 16, 7, 7, 2, 2, 3, 3, 1, 1, 1};
  nncuda_pool2d_shape pool = {2, 16, 11, 9, 3, 3, 2, 2, 1, 1, 1, 1, 0};
  const size_t out = 2 * 16 * 6 * 5;
  for (int dtype = NNCUDA_FLOAT32; dtype <= NNCUDA_TF32; dtype += NNCUDA_TF32) {
    Twice x = twice_random(2 * 3 * 21 * 18, 40), w = twice_random(16 * 147, 41), b = twice_random(16, 42);
    Twice y = twice_poison(out);
    Scratch s = scratch_open(nncuda_stem_pool2d_workspace(NNCUDA_CPU, dtype, &conv, &pool),
                             nncuda_stem_pool2d_workspace(0, dtype, &conv, &pool));
    BOTH(nncuda_stem_pool2d_forward(device, NULL, dtype, y.at[on], x.at[on], w.at[on], (const float *)b.at[on], &conv,
                                    &pool, s.at[on], s.bytes[on]));
    if (dtype == NNCUDA_FLOAT32) stem_by_two(y.at[0], x.at[0], w.at[0], b.at[0], &conv, &pool, out);
    /* 147 products of up to 1, whose factors are rounded to 11 bits */
    twice_compare(&y, out / 16, 16, dtype == NNCUDA_TF32 ? 2e-3 : 1e-5, dtype == NNCUDA_TF32 ? 0.04 : 1e-5, "y");
    Twice *const all[] = {&x, &w, &b};
    for (int i = 0; i < 3; i++) twice_same(all[i], "an input");
    scratch_close(&s);
  }
  float few[4];
  pool.h = 12;
  assert_int_equal(nncuda_stem_pool2d_forward(0, NULL, NNCUDA_FLOAT32, few, few, few, few, &conv, &pool, NULL, 0),
                   NNCUDA_BAD_ARGUMENT);
  assert_string_equal(nncuda_last_error(),
                      "nncuda_stem_pool2d_forward: pool is of 2 x 16 x 12 x 9; expected 2 x 16 x "
                      "11 x 9, what the convolution gives");
  pool.h = 11;
  assert_int_equal(nncuda_stem_pool2d_forward(0, NULL, NNCUDA_TF32, few + ((uintptr_t)few % 16 == 0), few, few, few,
                                              &conv, &pool, NULL, 0),
                   NNCUDA_BAD_ARGUMENT);
  assert_string_equal(nncuda_last_argument(), "y");
  pool.stride_h = 1;
  assert_int_equal(nncuda_stem_pool2d_forward(0, NULL, NNCUDA_FLOAT16, few, few, few, few, &conv, &pool, NULL, 0),
                   NNCUDA_UNSUPPORTED);
  assert_string_equal(nncuda_last_argument(), "conv");
}

/* Channels last. Factors of tf32 have 11 bits, sums of up to 162 products of up to 4 here. */
static void convolutions_by_tensor_cores(void **state) {
  (void)state;
  const nncuda_conv2d_shape s = {2, 18, 7, 9, 19, 3, 3, 2, 1, 1, 1, 1, 1, 1};
  int64_t p = 0, q = 0;
  assert_int_equal(nncuda_conv2d_output(&s, &p, &q), NNCUDA_OK);
  const size_t out = (size_t)(s.n * p * q * s.k);
  for (int i = 0; i < 4; i++) {
    Twice x = twice_random((size_t)(s.n * s.c * s.h * s.w), 25), w = twice_random((size_t)(s.k * s.c * 9), 26);
    Twice b = twice_random((size_t)s.k, 27), z = twice_random(out, 28), y = twice_poison(out);
    Scratch scratch = scratch_open(0, nncuda_conv2d_nhwc_workspace(0, NNCUDA_TF32));
    BOTH(nncuda_conv2d_nhwc_forward(device, NULL, NNCUDA_TF32, y.at[on], x.at[on], w.at[on], i & 1 ? b.at[on] : NULL,
                                    i >> 1 ? z.at[on] : NULL, i & 1, &s, scratch.at[on], scratch.bytes[on]));
    twice_compare(&y, out / (size_t)s.k, (size_t)s.k, 2e-3, 0.08, "y");
    Twice *const all[] = {&x, &w, &b, &z};
    for (int j = 0; j < 4; j++) twice_same(all[j], "an input");
    scratch_close(&scratch);
  }
}

/* Numbers of 16 bits that a float's upper half holds exactly, so that both devices compute the same sums. */
static void convolution_of_bfloat16(void **state) {
  (void)state;
  const nncuda_conv2d_shape s = {1, 8, 5, 5, 8, 3, 3, 1, 1, 1, 1, 1, 1, 1};
  uint16_t x[200], w[576], y[2][200];
  for (int i = 0; i < 576; i++) {
    const float values[2] = {(float)(i % 7) - 3, (float)(i % 5) - 1};
    uint32_t bits[2];
    memcpy(bits, values, sizeof bits);
    if (i < 200) x[i] = (uint16_t)(bits[0] >> 16);
    w[i] = (uint16_t)(bits[1] >> 16);
  }
  void *gpu[3] = {arrays_upload_bytes(DEVICE_GPU, x, sizeof x), arrays_upload_bytes(DEVICE_GPU, w, sizeof w),
                  device_alloc(DEVICE_GPU, sizeof y[1])};
  assert_int_equal(
      nncuda_conv2d_nhwc_forward(NNCUDA_CPU, NULL, NNCUDA_BFLOAT16, y[0], x, w, NULL, NULL, 1, &s, NULL, 0), NNCUDA_OK);
  assert_int_equal(
      nncuda_conv2d_nhwc_forward(0, NULL, NNCUDA_BFLOAT16, gpu[2], gpu[0], gpu[1], NULL, NULL, 1, &s, NULL, 0),
      NNCUDA_OK);
  CUDA_CHECK(cudaDeviceSynchronize());
  device_download(DEVICE_GPU, y[1], gpu[2], sizeof y[1]);
  assert_memory_equal(y[0], y[1], sizeof y[0]);
  for (int i = 0; i < 3; i++) device_free(DEVICE_GPU, gpu[i]);
}

static void fold(void **state) {
  (void)state;
  for (int bias = 0; bias < 2; bias++) {
    Twice w = twice_random(5 * 27, 19), v = twice_poison(5 * 27), c = twice_poison(5), a[5];
    for (int i = 0; i < 5; i++) a[i] = twice_random(5, 20 + (uint64_t)i);
    for (int i = 0; i < 5; i++) a[4].at[0][i] = fabsf(a[4].at[0][i]) + 0.1f; /* the variance */
    CUDA_CHECK(cudaMemcpy(a[4].at[1], a[4].at[0], 5 * sizeof(float), cudaMemcpyHostToDevice));
    BOTH(nncuda_conv2d_fold_batch_norm(device, NULL, F32, v.at[on], c.at[on], w.at[on], bias ? a[0].at[on] : NULL,
                                       a[1].at[on], a[2].at[on], a[3].at[on], a[4].at[on], 1e-5, 5, 27));
    twice_compare(&v, 5, 27, 1e-6, 1e-7, "new_w");
    twice_compare(&c, 1, 5, 1e-6, 1e-6, "new_bias");
    twice_same(&w, "w");
    for (int i = 0; i < 5; i++) twice_same(&a[i], "an input");
  }
}

static void pool_case(const nncuda_pool2d_shape *shape, int option) {
  int64_t p = 0, q = 0;
  assert_int_equal(nncuda_pool2d_output(shape, &p, &q), NNCUDA_OK);
  const size_t planes = (size_t)(shape->n * shape->c), pixels = (size_t)(shape->h * shape->w), out = (size_t)(p * q);
  Twice x = twice_random(planes * pixels, 30), dy = twice_random(planes * out, 31), y = twice_poison(planes * out);
  Twice places = twice_bytes(planes * out), dx = twice_poison(planes * pixels);
  BOTH(nncuda_max_pool2d_forward(device, NULL, F32, y.at[on], (uint8_t *)places.at[on], x.at[on], option, shape));
  BOTH(nncuda_max_pool2d_backward(device, NULL, F32, dx.at[on], dy.at[on], (uint8_t *)places.at[on], shape));
  twice_same(&y, "max");
  twice_same(&places, "argmax");
  twice_compare(&dx, planes, pixels, 1e-6, 1e-6, "the gradient of max");
  Twice mean = twice_poison(planes * out), dmean = twice_poison(planes * pixels);
  BOTH(nncuda_avg_pool2d_forward(device, NULL, F32, mean.at[on], x.at[on], option, shape));
  BOTH(nncuda_avg_pool2d_backward(device, NULL, F32, dmean.at[on], dy.at[on], option, shape));
  twice_compare(&mean, planes, out, 1e-6, 1e-6, "mean");
  twice_compare(&dmean, planes, pixels, 1e-6, 1e-6, "the gradient of mean");
  Twice all = twice_poison(planes), dall = twice_poison(planes * pixels);
  BOTH(nncuda_global_avg_pool2d_forward(device, NULL, F32, all.at[on], x.at[on], (int64_t)planes, (int64_t)pixels));
  BOTH(nncuda_global_avg_pool2d_backward(device, NULL, F32, dall.at[on], all.at[on], (int64_t)planes, (int64_t)pixels));
  twice_compare(&dall, planes, pixels, 1e-6, 1e-6, "the gradient of the global mean");
  twice_compare(&all, 1, planes, 1e-6, 1e-6, "global mean");
  twice_same(&x, "x");
  twice_same(&dy, "dy");
}

static void pooling(void **state) {
  (void)state;
  const nncuda_pool2d_shape shapes[] = {{1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 1, 1, 0},
                                        {2, 3, 8, 10, 2, 2, 2, 2, 0, 0, 1, 1, 0},
                                        {2, 5, 13, 11, 3, 3, 2, 2, 1, 1, 1, 1, 1},
                                        {1, 2, 9, 7, 4, 3, 3, 2, 2, 1, 1, 1, 0}};
  for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
    for (int option = 0; option < 2; option++) pool_case(&shapes[i], option);
}

static void layer_norm(void **state) {
  (void)state;
  const int64_t sizes[][2] = {{1, 3}, {3, 31}, {33, 127}, {2, 4999}};
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
    const int64_t rows = sizes[i][0], cols = sizes[i][1];
    const size_t n = (size_t)(rows * cols);
    Twice x = twice_random(n, 40), w = twice_random((size_t)cols, 41), b = twice_random((size_t)cols, 42);
    Twice y = twice_poison(n), saved = twice_poison(2 * (size_t)rows), dy = twice_random(n, 43), dx = twice_poison(n);
    Twice dw = twice_poison((size_t)cols), db = twice_poison((size_t)cols);
    Scratch s = scratch_open(0, nncuda_layer_norm_backward_workspace(0, rows, cols));
    BOTH(nncuda_layer_norm_forward(device, NULL, F32, y.at[on], saved.at[on], x.at[on], w.at[on], b.at[on], 1e-5, rows,
                                   cols));
    BOTH(nncuda_layer_norm_backward(device, NULL, F32, dx.at[on], dw.at[on], db.at[on], dy.at[on], x.at[on], w.at[on],
                                    saved.at[on], rows, cols, s.at[on], s.bytes[on]));
    twice_compare(&y, (size_t)rows, (size_t)cols, 1e-4, 1e-5, "y");
    twice_compare(&dx, (size_t)rows, (size_t)cols, 1e-4, 2e-5, "dx");
    twice_compare(&dw, 1, (size_t)cols, 1e-4, 2e-5, "dweight");
    twice_compare(&db, 1, (size_t)cols, 1e-4, 2e-5, "dbias");
    twice_compare(&saved, 2, (size_t)rows, 1e-4, 1e-6, "saved");
    Twice *const all[] = {&x, &w, &b, &dy};
    for (int j = 0; j < 4; j++) twice_same(all[j], "an input");
    scratch_close(&s);
  }
}

static void batch_norm_case(int64_t n, int64_t c, int64_t pixels, int after) {
  const size_t count = (size_t)(n * c * pixels), channels = (size_t)c;
  const int add = after == NNCUDA_THEN_ADD_RELU;
  Twice x = twice_random(count, 50), z = twice_random(count, 51), dy = twice_random(count, 52);
  Twice gamma = twice_random(channels, 53), beta = twice_random(channels, 54), y = twice_poison(count);
  Twice mean = twice_random(channels, 55), var = twice_random(channels, 56), dx = twice_poison(count);
  Twice own = twice_poison(channels), inverse = twice_poison(channels), dz = twice_poison(count);
  Twice dgamma = twice_poison(channels), dbeta = twice_poison(channels), e = twice_poison(count);
  Twice passed = twice_bytes(nncuda_batch_norm_passed(n, c, pixels));
  Scratch s = scratch_open(0, nncuda_batch_norm_workspace(0, n, c, pixels));
  for (size_t i = 0; i < channels; i++) var.at[0][i] = fabsf(var.at[0][i]) + 0.5f;
  CUDA_CHECK(cudaMemcpy(var.at[1], var.at[0], channels * sizeof(float), cudaMemcpyHostToDevice));
  BOTH(nncuda_batch_norm_evaluate(device, NULL, F32, e.at[on], x.at[on], add ? z.at[on] : NULL, gamma.at[on],
                                  beta.at[on], mean.at[on], var.at[on], after, 1e-5, n, c, pixels));
  BOTH(nncuda_batch_norm_forward(device, NULL, F32, y.at[on], own.at[on], inverse.at[on], add ? passed.at[on] : NULL,
                                 mean.at[on], var.at[on], x.at[on], add ? z.at[on] : NULL, gamma.at[on], beta.at[on],
                                 after, 0.1, 1e-5, n, c, pixels, s.at[on], s.bytes[on]));
  /* from the GPU's statistics on both devices: a value next to 0 passes the ReLU on both or on none */
  CUDA_CHECK(cudaDeviceSynchronize());
  CUDA_CHECK(cudaMemcpy(own.at[0], own.at[1], channels * sizeof(float), cudaMemcpyDeviceToHost));
  CUDA_CHECK(cudaMemcpy(inverse.at[0], inverse.at[1], channels * sizeof(float), cudaMemcpyDeviceToHost));
  CUDA_CHECK(cudaMemcpy(passed.at[0], passed.at[1], passed.n * sizeof(float), cudaMemcpyDeviceToHost));
  BOTH(nncuda_batch_norm_backward(device, NULL, F32, dx.at[on], add ? dz.at[on] : NULL, dgamma.at[on], dbeta.at[on],
                                  dy.at[on], x.at[on], gamma.at[on], beta.at[on], own.at[on], inverse.at[on],
                                  add ? passed.at[on] : NULL, after, n, c, pixels, s.at[on], s.bytes[on]));
  Twice *const results[] = {&e, &y, &dx};
  for (int i = 0; i < 3; i++) twice_compare(results[i], (size_t)(n * c), (size_t)pixels, 1e-4, 5e-5, "y or dx");
  if (add)
    twice_same(&dz, "dz");
  else
    twice_free(&dz);
  Twice *const sums[] = {&dgamma, &dbeta, &mean, &var};
  for (int i = 0; i < 4; i++) twice_compare(sums[i], 1, channels, 1e-4, 1e-4, "dgamma, dbeta, or a running statistic");
  Twice *const inputs[] = {&x, &z, &dy, &gamma, &beta, &own, &inverse, &passed};
  for (int i = 0; i < 8; i++) twice_same(inputs[i], "an input");
  scratch_close(&s);
}

static void batch_norm(void **state) {
  (void)state;
  for (int after = NNCUDA_ALONE; after <= NNCUDA_THEN_ADD_RELU; after++) {
    batch_norm_case(2, 3, 5 * 7, after);
    batch_norm_case(3, 4, 64, after);
    batch_norm_case(1, 2, 150 * 151, after); /* slices: a cooperative launch */
  }
}

static void attention(void **state) {
  (void)state;
  const int64_t sizes[][4] = {{1, 1, 1, 1}, {1, 3, 33, 17}, {1, 1, 70, 100}};
  for (int i = 0; i < 5; i++) {
    const int64_t b = sizes[i / 2][0], h = sizes[i / 2][1], s = sizes[i / 2][2], d = sizes[i / 2][3];
    const size_t rows = (size_t)(b * h * s), n = rows * (size_t)d;
    Twice q = twice_random(n, 60), k = twice_random(n, 61), v = twice_random(n, 62), dout = twice_random(n, 63);
    Twice o = twice_poison(n), lse = twice_poison(rows), dq = twice_poison(n), dk = twice_poison(n),
          dv = twice_poison(n);
    Scratch w = scratch_open(0, nncuda_attention_backward_workspace(0, F32, b, h, s, d));
    BOTH(nncuda_attention_forward(device, NULL, F32, o.at[on], lse.at[on], q.at[on], k.at[on], v.at[on], b, h, s, d,
                                  i % 2));
    BOTH(nncuda_attention_backward(device, NULL, F32, dq.at[on], dk.at[on], dv.at[on], dout.at[on], q.at[on], k.at[on],
                                   v.at[on], o.at[on], lse.at[on], b, h, s, d, i % 2, w.at[on], w.bytes[on]));
    Twice *const results[] = {&o, &dq, &dk, &dv};
    for (int j = 0; j < 4; j++) twice_compare(results[j], rows, (size_t)d, 1e-4, 5e-5, "o, dq, dk or dv");
    twice_compare(&lse, 1, rows, 1e-5, 1e-5, "lse");
    Twice *const inputs[] = {&q, &k, &v, &dout};
    for (int j = 0; j < 4; j++) twice_same(inputs[j], "an input");
    scratch_close(&w);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(convolutions),
      cmocka_unit_test(workspaces_of_convolutions),
      cmocka_unit_test(stem),
      cmocka_unit_test(convolutions_by_tensor_cores),
      cmocka_unit_test(convolution_of_bfloat16),
      cmocka_unit_test(fold),
      cmocka_unit_test(pooling),
      cmocka_unit_test(layer_norm),
      cmocka_unit_test(batch_norm),
      cmocka_unit_test(attention),
  };
  return TEST_MAIN("nncuda_layers", tests);
}
