/* Attention and its gradients: the definition against itself by differences, every version against the definition on
 * ragged shapes, unaligned arrays and extreme inputs; both against vectors from PyTorch. */
#include "common/test_arrays.h"
#include "phase1_building_blocks/14_attention/attention_backward_tf32.cuh"
#include "phase1_building_blocks/14_attention/attention_cublas.cuh"
#include "phase1_building_blocks/14_attention/attention_tensor_core.cuh"
#include "phase1_building_blocks/14_attention/testdata/attention_golden.h"

enum { B = 1, H = 2, S = 5, D = 3, N = B * H * S * D };

/* A loss: the outputs, weighted with dout. */
static double loss(const double *q, const double *k, const double *v, const double *dout, bool causal) {
  double o[N], lse[B * H * S], sum = 0;
  attention_forward_cpu(o, lse, q, k, v, B, H, S, D, causal);
  for (int i = 0; i < N; i++) sum += o[i] * dout[i];
  return sum;
}

static void gradients_are_slopes(void **state) {
  (void)state;
  float *random = arrays_random(4 * N, 7);
  for (int causal = 0; causal < 2; causal++) {
    double x[4][N], gradient[3][N], o[N], lse[B * H * S];
    for (int i = 0; i < 4 * N; i++) x[i / N][i % N] = random[i];
    attention_forward_cpu(o, lse, x[0], x[1], x[2], B, H, S, D, causal);
    attention_backward_cpu(gradient[0], gradient[1], gradient[2], x[0], x[1], x[2], o, lse, x[3], B, H, S, D, causal);
    for (int i = 0; i < 3 * N; i++) {
      const double step = 1e-5;
      double *at = &x[i / N][i % N], there = *at;
      *at = there + step;
      double above = loss(x[0], x[1], x[2], x[3], causal);
      *at = there - step;
      double below = loss(x[0], x[1], x[2], x[3], causal);
      *at = there;
      double slope = (above - below) / (2 * step), got = gradient[i / N][i % N];
      if (!(fabs(got - slope) <= 1e-8)) /* step^2 times the third derivative, and rounding by 1e-16 / step */
        fail_msg("causal %d: gradient %d of d%c is %.12g, the slope is %.12g", causal, i % N, "qkv"[i / N], got, slope);
    }
  }
  free(random);
}

/* softmax of what can be worked out by hand. */
static void the_definition_is_a_mean(void **state) {
  (void)state;
  /* equal scores: the mean of the values, of those before it when causal */
  double q[6] = {}, k[6] = {1, 2, 3, 4, 5, 6}, v[6] = {3, 30, 6, 60, 0, 0}, o[6], lse[3];
  attention_forward_cpu(o, lse, q, k, v, 1, 1, 3, 2, false);
  for (int i = 0; i < 3; i++) {
    assert_true(fabs(o[2 * i] - 3) < 1e-12 && fabs(o[2 * i + 1] - 30) < 1e-11);
    assert_true(fabs(lse[i] - log(3)) < 1e-12);
  }
  attention_forward_cpu(o, lse, q, k, v, 1, 1, 3, 2, true);
  const double causal[6] = {3, 30, 4.5, 45, 3, 30};
  for (int i = 0; i < 6; i++) assert_true(fabs(o[i] - causal[i]) < 1e-11);
  /* one score far above the others, beyond what exp() can hold: that key's value alone */
  for (int i = 0; i < 6; i++) q[i] = 1e4;
  attention_forward_cpu(o, lse, q, k, v, 1, 1, 3, 2, false);
  for (int i = 0; i < 6; i++) assert_true(o[i] == 0);
  assert_true(fabs(lse[0] - 11e4 / sqrt(2)) < 1e-6);
}

/* ---------------------------------------------------------------------------------------------------------------- */

static const struct {
  const char *name;
  AttentionLauncher *launch;
  bool causal;   /* can be */
  bool infinite; /* takes infinite factors; attention_tf32() documents that it does not */
} versions[] = {{"attention_three_kernels", attention_three_kernels, true, true},
                {"attention_flash_rows", attention_flash_rows, true, true},
                {"attention_flash", attention_flash, true, true},
                {"attention_tf32", attention_tf32, true, false},
                {"attention_cublas", attention_cublas, false, true}};

static const struct {
  const char *name;
  AttentionGradients *launch;
} gradients[] = {{"attention_gradients_naive", attention_gradients_naive},
                 {"attention_gradients_flash", attention_gradients_flash},
                 {"attention_gradients_tf32", attention_gradients_tf32}};

typedef struct Case {
  int b, h, s, d;
  size_t offset; /* floats from an aligned address */
  float factor;  /* of q */
  const char *what;
} Case;

/* e, by which a score may err, and with it everything: see attention_tolerance() of attention_lesson.cuh. */
static Tolerance tolerance_of(const Case *c) {
  double e = tolerance_dot((size_t)c->d, fabs(c->factor) / sqrt((double)c->d)).absolute;
  return tolerance_make(4 * (double)FLT_EPSILON, 4 * fmin(e, 0.5) + 8 * sqrt(c->s) * FLT_EPSILON);
}

static void check_case(int version, const Case *c, const float *special, bool causal) {
  size_t rows = (size_t)c->b * c->h * c->s, n = rows * c->d, padded = n + c->offset;
  float *host[3], *device[3], *expected = arrays_poison(n + rows), *o = arrays_poison(padded),
                              *lse = arrays_poison(rows);
  for (int i = 0; i < 3; i++) {
    host[i] = arrays_random(padded, 11 + (uint64_t)i);
    if (special != NULL)
      for (size_t j = 0; j < padded; j++) host[i][j] = special[i];
    for (size_t j = 0; j < padded && i == 0; j++) host[i][j] *= c->factor;
    device[i] = arrays_upload(DEVICE_GPU, host[i], padded);
  }
  attention_forward_cpu(expected, expected + n, host[0] + c->offset, host[1] + c->offset, host[2] + c->offset, c->b,
                        c->h, c->s, c->d, causal);
  float *device_o = arrays_upload(DEVICE_GPU, o, padded), *device_lse = arrays_upload(DEVICE_GPU, lse, rows);
  versions[version].launch(device_o + c->offset, device_lse, device[0] + c->offset, device[1] + c->offset,
                           device[2] + c->offset, c->b, c->h, c->s, c->d, causal);
  arrays_download(DEVICE_GPU, o, device_o, padded, "o");
  arrays_download(DEVICE_GPU, lse, device_lse, rows, "lse");
  Comparison got = compare_arrays(o + c->offset, expected, rows, (size_t)c->d, tolerance_of(c));
  if (got.ok) got = compare_arrays(lse, expected + n, rows, 1, tolerance_of(c));
  if (!got.ok)
    fail_msg("%s, %s, (%d,%d,%d,%d)%s: %s", versions[version].name, c->what, c->b, c->h, c->s, c->d,
             causal ? ", causal" : "", got.message);
  for (size_t i = 0; i < c->offset; i++) assert_true(compare_is_poison(&o[i]));
  for (int i = 0; i < 3; i++) {
    arrays_download(DEVICE_GPU, NULL, device[i], padded, "an input");
    free(host[i]);
  }
  free(expected);
  free(o);
  free(lse);
}

static void check_all(const Case *cases, size_t count, const float *special) {
  for (size_t version = 0; version < sizeof versions / sizeof *versions; version++)
    for (size_t i = 0; i < count; i++)
      for (int causal = 0; causal < 1 + versions[version].causal; causal++)
        check_case((int)version, &cases[i], special, causal);
}

static void every_version_matches_the_definition(void **state) {
  (void)state;
  test_requires_gpu();
  const Case cases[] = {{1, 1, 1, 1, 0, 1, "one"},         {1, 1, 1, 64, 0, 1, "one query"},
                        {1, 2, 3, 16, 0, 1, "few"},        {2, 1, 127, 64, 0, 1, "less than a tile"},
                        {1, 1, 257, 64, 0, 1, "one more"}, {1, 2, 65, 128, 0, 1, "wide"},
                        {1, 1, 33, 40, 0, 1, "any width"}, {1, 1, 31, 63, 0, 1, "odd width"},
                        {1, 1, 67, 64, 1, 1, "unaligned"}, {2, 1, 33, 128, 3, 1, "wide, unaligned"},
                        {1, 1, 131, 32, 0, 1, "narrow"}};
  check_all(cases, sizeof cases / sizeof *cases, NULL);
}

/* The maximum must be taken off before exp(), whatever comes first or last. */
static void extreme_scores_neither_overflow_nor_vanish(void **state) {
  (void)state;
  test_requires_gpu();
  const Case cases[] = {{1, 1, 70, 64, 0, 300, "scores of thousands"},
                        {1, 1, 70, 64, 0, -300, "scores of minus thousands"},
                        {1, 1, 70, 64, 0, 1e-30f, "scores of nothing"},
                        {1, 1, 70, 64, 0, 1e-42f, "denormal queries"}};
  check_all(cases, sizeof cases / sizeof *cases, NULL);
  const Case equal = {1, 1, 130, 64, 0, 1, "all equal"};
  const float values[][3] = {{0, 0, 0}, {1, -3, 2}, {100, 100, -1}};
  for (int i = 0; i < 3; i++) check_all(&equal, 1, values[i]);
}

/* Scores whose rounding alone is more than exp() can take: a query looks at its largest score, of key 3, and no other.
 * Powers of two, so that the dot products are exact in any order. */
static void huge_scores_choose_one_key(void **state) {
  (void)state;
  test_requires_gpu();
  enum { KEYS = 130, COLS = 64, COUNT = KEYS * COLS };
  const int exponents[] = {10, 26, 44, 80};
  for (size_t e = 0; e < sizeof exponents / sizeof *exponents; e++) {
    float *q = arrays_poison(COUNT), *k = arrays_poison(COUNT), *v = arrays_random(COUNT, 51);
    float *dout = arrays_random(COUNT, 52), *expected = arrays_poison(COUNT), *zero = arrays_poison(COUNT);
    for (int i = 0; i < COUNT; i++) {
      q[i] = ldexpf(i / COLS % 3 ? 3 : 2, exponents[e]); /* odd, so that scale * score is rounded */
      k[i] = i / COLS == 3 ? 1 : 0.5f;
      expected[i] = v[3 * COLS + i % COLS];
      zero[i] = 0;
    }
    float *dv = (float *)xcalloc(COUNT, sizeof *dv); /* all queries' gradients go to key 3 */
    for (int i = 0; i < COUNT; i++) dv[3 * COLS + i % COLS] += dout[i];
    const float *const host[] = {q, k, v, dout};
    float *device[4], *result[4], *got = arrays_poison(COUNT);
    for (int a = 0; a < 4; a++) {
      device[a] = arrays_upload(DEVICE_GPU, host[a], COUNT);
      result[a] = arrays_upload(DEVICE_GPU, got, COUNT);
    }
    for (size_t version = 0; version < sizeof versions / sizeof *versions; version++) {
      versions[version].launch(result[0], result[3], device[0], device[1], device[2], 1, 1, KEYS, COLS, false);
      device_download(DEVICE_GPU, got, result[0], COUNT * sizeof *got);
      Comparison c = compare_arrays(got, expected, KEYS, COLS, tolerance_make(FLT_EPSILON, 0));
      if (!c.ok) fail_msg("%s, scores of 2^%d: %s", versions[version].name, exponents[e] + 2, c.message);
    }
    __nv_bfloat16 *narrow[4]; /* o, q, k, v; of these v alone is rounded */
    for (int a = 0; a < 4; a++) {
      __nv_bfloat16 values[COUNT];
      for (int i = 0; i < COUNT; i++) values[i] = __float2bfloat16(a == 0 ? NAN : host[a - 1][i]);
      narrow[a] = (__nv_bfloat16 *)arrays_upload_bytes(DEVICE_GPU, values, sizeof values);
    }
    __nv_bfloat16 values[COUNT]; /* attention_mma() is not for such scores */
    attention_wmma(narrow[0], result[3], narrow[1], narrow[2], narrow[3], 1, 1, KEYS, COLS, false);
    device_download(DEVICE_GPU, values, narrow[0], sizeof values);
    for (int i = 0; i < COUNT; i++) got[i] = __bfloat162float(values[i]);
    Comparison rounded = compare_arrays(got, expected, KEYS, COLS, tolerance_make(1.0 / 256, 0));
    if (!rounded.ok) fail_msg("wmma, scores of 2^%d: %s", exponents[e] + 2, rounded.message);
    for (int a = 0; a < 4; a++) device_free(DEVICE_GPU, narrow[a]);
    for (size_t g = 0; g < sizeof gradients / sizeof *gradients; g++) {
      gradients[g].launch(result[0], result[1], result[2], device[0], device[1], device[2], device[3], 1, 1, KEYS, COLS,
                          false);
      for (int a = 0; a < 3; a++) {
        device_download(DEVICE_GPU, got, result[a], COUNT * sizeof *got);
        /* dq, dk: p (dp - delta), where dp is delta but for rounding, times the other's size and the keys' number */
        double size = a == 0 ? 1 : ldexp(3, exponents[e]) * KEYS;
        Tolerance t = tolerance_make(0, a == 2 ? 1e-4 : 1e-5 * size);
        Comparison c = compare_arrays(got, a == 2 ? dv : zero, KEYS, COLS, t);
        if (!c.ok) fail_msg("%s, scores of 2^%d, d%c: %s", gradients[g].name, exponents[e] + 2, "qkv"[a], c.message);
      }
    }
    for (int a = 0; a < 4; a++) {
      arrays_download(DEVICE_GPU, NULL, device[a], COUNT, "an input");
      arrays_download(DEVICE_GPU, NULL, result[a], COUNT, "a result");
    }
    free(q), free(k), free(v), free(dout), free(expected), free(zero), free(dv), free(got);
  }
}

/* Keys of -inf, as many as the tiles of any version: their scores are -inf, and o is a mean of the others' values. */
static void keys_may_be_ruled_out(void **state) {
  (void)state;
  test_requires_gpu();
  enum { KEYS = 130, COLS = 64, RULED_OUT = 64, COUNT = KEYS * COLS };
  float *q = arrays_random(COUNT, 41), *k = arrays_random(COUNT, 42), *v = arrays_random(COUNT, 43);
  float *expected = arrays_poison(COUNT + KEYS);
  __nv_bfloat16 narrow[3][COUNT], narrow_o[COUNT];
  for (int i = 0; i < COUNT; i++) {
    q[i] = fabsf(q[i]) / 8 + 0.01f;
    if (i < RULED_OUT * COLS) k[i] = -INFINITY;
    narrow[0][i] = __float2bfloat16(q[i]), narrow[1][i] = __float2bfloat16(k[i]), narrow[2][i] = __float2bfloat16(v[i]);
  }
  attention_forward_cpu(expected, expected + COUNT, q, k, v, 1, 1, KEYS, COLS, false);
  for (size_t version = 0; version < sizeof versions / sizeof *versions + 2; version++) {
    bool wide = version < sizeof versions / sizeof *versions;
    bool mma = version > sizeof versions / sizeof *versions;
    if ((mma && mma_refusal() != NULL) || (wide && !versions[version].infinite)) continue;
    float *o = arrays_poison(COUNT), *lse = arrays_poison(KEYS), *device_lse = arrays_upload(DEVICE_GPU, lse, KEYS);
    const float *in[3] = {q, k, v};
    void *device[4];
    for (int a = 0; a < 3; a++)
      device[a] = arrays_upload_bytes(DEVICE_GPU, wide ? (const void *)in[a] : narrow[a], COUNT * (wide ? 4 : 2));
    device[3] = device_alloc(DEVICE_GPU, COUNT * (wide ? 4 : 2));
    if (wide)
      versions[version].launch((float *)device[3], device_lse, (float *)device[0], (float *)device[1],
                               (float *)device[2], 1, 1, KEYS, COLS, false);
    else
      (mma ? attention_mma : attention_wmma)((__nv_bfloat16 *)device[3], device_lse, (__nv_bfloat16 *)device[0],
                                             (__nv_bfloat16 *)device[1], (__nv_bfloat16 *)device[2], 1, 1, KEYS, COLS,
                                             false);
    device_download(DEVICE_GPU, wide ? (void *)o : narrow_o, device[3], COUNT * (wide ? 4 : 2));
    for (int i = 0; i < COUNT && !wide; i++) o[i] = __bfloat162float(narrow_o[i]);
    arrays_download(DEVICE_GPU, lse, device_lse, KEYS, "lse");
    double e = wide ? 1e-4 : 1.0 / 32; /* bfloat16 rounds q, k and v as well */
    Comparison c = compare_arrays(o, expected, KEYS, COLS, tolerance_make(0, e));
    if (c.ok) c = compare_arrays(lse, expected + COUNT, KEYS, 1, tolerance_make(0, e));
    if (!c.ok) fail_msg("%s: %s", wide ? versions[version].name : mma ? "mma" : "wmma", c.message);
    for (int a = 0; a < 4; a++) device_free(DEVICE_GPU, device[a]);
    free(o);
    free(lse);
  }
  free(q);
  free(k);
  free(v);
  free(expected);
}

/* ---------------------------------------------------------------------------------------------------------------- */

static void every_gradient_matches_the_definition(void **state) {
  (void)state;
  test_requires_gpu();
  const int shapes[][5] = {{1, 1, 1, 1, 0},    {1, 2, 3, 16, 0},  {2, 1, 67, 64, 0}, {1, 1, 127, 32, 0},
                           {1, 1, 33, 128, 0}, {1, 1, 31, 63, 0}, {1, 1, 66, 64, 1}};
  for (size_t g = 0; g < sizeof gradients / sizeof *gradients; g++)
    for (size_t i = 0; i < 2 * sizeof shapes / sizeof *shapes; i++) {
      const int *shape = shapes[i / 2];
      bool causal = i % 2;
      size_t offset = (size_t)shape[4], n = (size_t)shape[0] * shape[1] * shape[2] * shape[3] + offset;
      float *host[7], *device[7], *expected[3];
      for (int a = 0; a < 7; a++) {
        host[a] = a < 3 ? arrays_poison(n) : arrays_random(n, 20 + (uint64_t)a);
        device[a] = arrays_upload(DEVICE_GPU, host[a], n);
      }
      for (int a = 0; a < 3; a++) expected[a] = arrays_poison(n);
      attention_gradients_cpu(expected[0] + offset, expected[1] + offset, expected[2] + offset, host[3] + offset,
                              host[4] + offset, host[5] + offset, host[6] + offset, shape[0], shape[1], shape[2],
                              shape[3], causal);
      gradients[g].launch(device[0] + offset, device[1] + offset, device[2] + offset, device[3] + offset,
                          device[4] + offset, device[5] + offset, device[6] + offset, shape[0], shape[1], shape[2],
                          shape[3], causal);
      double e = tolerance_dot((size_t)shape[3], 1 / sqrt((double)shape[3])).absolute * 8 * (1 + log(shape[2]));
      for (int a = 0; a < 7; a++) {
        arrays_download(DEVICE_GPU, host[a], device[a], n, "an array");
        if (a < 3) {
          Comparison c = compare_arrays(host[a] + offset, expected[a] + offset, (n - offset) / (size_t)shape[3],
                                        (size_t)shape[3], tolerance_make(FLT_EPSILON, e));
          if (!c.ok)
            fail_msg("%s, (%d,%d,%d,%d), causal %d, d%c: %s", gradients[g].name, shape[0], shape[1], shape[2], shape[3],
                     causal, "qkv"[a], c.message);
          free(expected[a]);
        }
        free(host[a]);
      }
    }
}

/* ---------------------------------------------------------------------------------------------------------------- */

/* One case of PyTorch's: where it lies in the golden arrays, and what PyTorch made of it. */
typedef struct Golden {
  const int *shape; /* b, h, s, d */
  size_t rows, n;
  const float *q, *k, *v, *dout, *out[2], *gradient[3]; /* out: o, lse */
} Golden;

static Golden golden_case(size_t index, bool causal) {
  size_t at = 0, row = 0;
  for (size_t i = 0; i < index; i++) {
    size_t rows = (size_t)golden_shapes[i][0] * golden_shapes[i][1] * golden_shapes[i][2];
    row += rows, at += rows * golden_shapes[i][3];
  }
  Golden g;
  g.shape = golden_shapes[index];
  g.rows = (size_t)g.shape[0] * g.shape[1] * g.shape[2], g.n = g.rows * g.shape[3];
  g.q = golden_q + at, g.k = golden_k + at, g.v = golden_v + at, g.dout = golden_dout + at;
  g.out[0] = (causal ? golden_o_causal : golden_o) + at;
  g.out[1] = (causal ? golden_lse_causal : golden_lse) + row;
  g.gradient[0] = (causal ? golden_dq_causal : golden_dq) + at;
  g.gradient[1] = (causal ? golden_dk_causal : golden_dk) + at;
  g.gradient[2] = (causal ? golden_dv_causal : golden_dv) + at;
  return g;
}
enum { GOLDEN_CASES = sizeof golden_shapes / sizeof *golden_shapes };

static void check_golden(const char *name, const char *array, const Golden *g, bool causal, const float *got,
                         const float *expected, size_t cols, Tolerance t) {
  Comparison c = compare_arrays(got, expected, g->rows, cols, t);
  if (!c.ok)
    fail_msg("%s, (%d,%d,%d,%d), causal %d, %s: %s", name, g->shape[0], g->shape[1], g->shape[2], g->shape[3], causal,
             array, c.message);
}

static void the_definition_is_that_of_pytorch(void **state) {
  (void)state;
  for (int i = 0; i < 2 * GOLDEN_CASES; i++) {
    bool causal = i % 2;
    Golden g = golden_case((size_t)i / 2, causal);
    int b = g.shape[0], h = g.shape[1], s = g.shape[2], d = g.shape[3];
    float *o = arrays_poison(g.n), *lse = arrays_poison(g.rows), *gradient[3];
    for (int a = 0; a < 3; a++) gradient[a] = arrays_poison(g.n);
    attention_forward_cpu(o, lse, g.q, g.k, g.v, b, h, s, d, causal);
    attention_gradients_cpu(gradient[0], gradient[1], gradient[2], g.q, g.k, g.v, g.dout, b, h, s, d, causal);
    check_golden("attention_forward_cpu", "o", &g, causal, o, g.out[0], (size_t)d,
                 tolerance_make(FLT_EPSILON, FLT_EPSILON));
    check_golden("attention_forward_cpu", "lse", &g, causal, lse, g.out[1], 1,
                 tolerance_make(FLT_EPSILON, FLT_EPSILON));
    /* backward is given lse as a float, up to 16, where half a unit is 4 of FLT_EPSILON: by so much is each p off, and
     * the sums of up to 67 cancel */
    for (int a = 0; a < 3; a++) {
      check_golden("attention_gradients_cpu",
                   a == 0   ? "dq"
                   : a == 1 ? "dk"
                            : "dv",
                   &g, causal, gradient[a], g.gradient[a], (size_t)d,
                   tolerance_make(8 * FLT_EPSILON, 32 * FLT_EPSILON));
      free(gradient[a]);
    }
    free(o);
    free(lse);
  }
}

/* The kernels sum in float: scores of up to 20, off by a few of their units, are exponents. */
static void the_kernels_are_those_of_pytorch(void **state) {
  (void)state;
  test_requires_gpu();
  const Tolerance close = tolerance_make(64 * FLT_EPSILON, 64 * FLT_EPSILON);
  for (int i = 0; i < 2 * GOLDEN_CASES; i++) {
    bool causal = i % 2;
    Golden g = golden_case((size_t)i / 2, causal);
    int b = g.shape[0], h = g.shape[1], s = g.shape[2], d = g.shape[3];
    const float *inputs[] = {g.q, g.k, g.v, g.dout};
    float *in[4], *host = arrays_poison(g.n);
    for (int a = 0; a < 4; a++) in[a] = arrays_upload(DEVICE_GPU, inputs[a], g.n);
    for (size_t version = 0; version < sizeof versions / sizeof *versions; version++) {
      if (causal && !versions[version].causal) continue;
      compare_poison(host, g.n);
      float *o = arrays_upload(DEVICE_GPU, host, g.n), *lse = arrays_upload(DEVICE_GPU, host, g.rows);
      versions[version].launch(o, lse, in[0], in[1], in[2], b, h, s, d, causal);
      arrays_download(DEVICE_GPU, host, o, g.n, "o");
      check_golden(versions[version].name, "o", &g, causal, host, g.out[0], (size_t)d, close);
      arrays_download(DEVICE_GPU, host, lse, g.rows, "lse");
      check_golden(versions[version].name, "lse", &g, causal, host, g.out[1], 1, close);
    }
    for (size_t version = 0; version < sizeof gradients / sizeof *gradients; version++) {
      float *out[3];
      compare_poison(host, g.n);
      for (int a = 0; a < 3; a++) out[a] = arrays_upload(DEVICE_GPU, host, g.n);
      gradients[version].launch(out[0], out[1], out[2], in[0], in[1], in[2], in[3], b, h, s, d, causal);
      for (int a = 0; a < 3; a++) {
        const char *name = a == 0 ? "dq" : a == 1 ? "dk" : "dv";
        arrays_download(DEVICE_GPU, host, out[a], g.n, name);
        check_golden(gradients[version].name, name, &g, causal, host, g.gradient[a], (size_t)d, close);
      }
    }
    for (int a = 0; a < 4; a++) arrays_download(DEVICE_GPU, NULL, in[a], g.n, "an input");
    free(host);
  }
}

/* ---------------------------------------------------------------------------------------------------------------- */

/* Arrays of bfloat16 that are not aligned, or whose rows are not; the lesson has the others. */
static void bfloat16_needs_no_alignment(void **state) {
  (void)state;
  test_requires_gpu();
  AttentionBf16Launcher *const launchers[] = {attention_wmma, attention_mma};
  const int shapes[][4] = {{1, 1, 67, 64}, {1, 2, 35, 41}, {1, 1, 66, 128}};
  for (int version = 0; version < 2; version++)
    for (int i = 0; i < 6; i++) {
      if (version == 1 && mma_refusal() != NULL) continue;
      const int *shape = shapes[i / 2], offset = 1;
      bool causal = i % 2;
      const size_t n = 66 * 128 + 1, rows = (size_t)shape[0] * shape[1] * shape[2]; /* n: as long as any array needs */
      float *random = arrays_random(3 * n, 31), *lse = arrays_poison(2 * rows), *wide = arrays_poison(2 * n);
      __nv_bfloat16 *host = (__nv_bfloat16 *)xmalloc(5 * n * sizeof *host); /* q, k, v, o, expected */
      for (size_t j = 0; j < 3 * n; j++) host[j] = __float2bfloat16(random[j]);
      for (size_t j = 3 * n; j < 5 * n; j++) host[j] = __float2bfloat16(NAN);
      attention_bf16_forward_cpu(host + 4 * n + offset, lse, host + offset, host + n + offset, host + 2 * n + offset,
                                 shape[0], shape[1], shape[2], shape[3], causal);
      __nv_bfloat16 *device[4];
      for (int a = 0; a < 4; a++)
        device[a] = (__nv_bfloat16 *)arrays_upload_bytes(DEVICE_GPU, host + a * n, n * sizeof *host);
      float *device_lse = arrays_upload(DEVICE_GPU, lse + rows, rows);
      launchers[version](device[3] + offset, device_lse, device[0] + offset, device[1] + offset, device[2] + offset,
                         shape[0], shape[1], shape[2], shape[3], causal);
      device_download(DEVICE_GPU, host + 3 * n, device[3], n * sizeof *host);
      arrays_download(DEVICE_GPU, lse + rows, device_lse, rows, "lse");
      for (size_t j = 0; j < 2 * n; j++) wide[j] = __bfloat162float(host[3 * n + j]);
      assert_true(isnan(wide[0])); /* before o */
      Comparison c = compare_arrays(wide + offset, wide + n + offset, rows, (size_t)shape[3],
                                    tolerance_make(1.0 / 128, 1.0 / 128));
      if (c.ok) c = compare_arrays(lse + rows, lse, rows, 1, tolerance_make(FLT_EPSILON, 1e-4));
      if (!c.ok)
        fail_msg("%s, (%d,%d,%d,%d): %s", version ? "mma" : "wmma", shape[0], shape[1], shape[2], shape[3], c.message);
      for (int a = 0; a < 4; a++) device_free(DEVICE_GPU, device[a]);
      free(random);
      free(lse);
      free(wide);
      free(host);
    }
}

/* NaN as a GPU's instructions make it: all bits but the sign are 1. Adding to them for rounding must not lose it. */
static void nan_of_a_gpu_stays_nan(void **state) {
  (void)state;
  test_requires_gpu();
  enum { KEYS = 70, COLS = 64, COUNT = KEYS * COLS, AT = 5 * COLS + 3 };
  const uint32_t bits = 0x7FFFFFFF;
  for (size_t version = 0; version < sizeof versions / sizeof *versions; version++)
    for (int where = 0; where < 3; where++) { /* q, k, v */
      float *host[3], *device[5], *o = arrays_poison(COUNT);
      for (int a = 0; a < 3; a++) {
        host[a] = arrays_random(COUNT, 51 + (uint64_t)a);
        if (a == where) memcpy(&host[a][AT], &bits, sizeof bits);
        device[a] = arrays_upload(DEVICE_GPU, host[a], COUNT);
      }
      device[3] = arrays_upload(DEVICE_GPU, o, COUNT);
      device[4] = arrays_upload(DEVICE_GPU, o, KEYS);
      versions[version].launch(device[3], device[4], device[0], device[1], device[2], 1, 1, KEYS, COLS, false);
      arrays_download(DEVICE_GPU, o, device[3], COUNT, "o");
      for (int i = 0; i < COUNT; i++) {
        bool expected = where == 0 ? i / COLS == 5 : where == 1 || i % COLS == 3;
        if (isnan(o[i]) != expected)
          fail_msg("%s, NaN in %c: o[%d] is %g", versions[version].name, "qkv"[where], i, o[i]);
      }
      for (int a = 0; a < 3; a++) {
        arrays_download(DEVICE_GPU, NULL, device[a], COUNT, "an input");
        free(host[a]);
      }
      arrays_download(DEVICE_GPU, NULL, device[4], KEYS, "lse");
      free(o);
    }
}

/* GPUs of 163 KiB, and of 99 as GeForce RTX: kernels whose tiles do not fit have twins with smaller ones. */
static void little_shared_memory_is_enough(void **state) {
  (void)state;
  test_requires_gpu();
  const int sizes[] = {163 << 10, 99 << 10};
  const Case cases[] = {{1, 2, 131, 64, 0, 1, "little shared memory"}, {1, 1, 131, 128, 0, 1, "wide, little of it"}};
  for (int i = 0; i < 2; i++) {
    shared_limit_pretended = sizes[i];
    check_all(cases, sizeof cases / sizeof *cases, NULL);
    every_gradient_matches_the_definition(state);
    bfloat16_needs_no_alignment(state);
    shared_limit_pretended = 0;
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(nan_of_a_gpu_stays_nan),
      cmocka_unit_test(gradients_are_slopes),
      cmocka_unit_test(the_definition_is_a_mean),
      cmocka_unit_test(the_definition_is_that_of_pytorch),
      cmocka_unit_test(the_kernels_are_those_of_pytorch),
      cmocka_unit_test(every_version_matches_the_definition),
      cmocka_unit_test(extreme_scores_neither_overflow_nor_vanish),
      cmocka_unit_test(huge_scores_choose_one_key),
      cmocka_unit_test(keys_may_be_ruled_out),
      cmocka_unit_test(every_gradient_matches_the_definition),
      cmocka_unit_test(bfloat16_needs_no_alignment),
      cmocka_unit_test(little_shared_memory_is_enough),
  };
  return TEST_MAIN("attention", tests);
}
