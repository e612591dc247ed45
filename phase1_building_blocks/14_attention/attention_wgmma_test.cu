/* Attention by wgmma against the definition: ragged lengths, several heads, maxima that rise, keys that are ruled out,
 * and what is left to attention_mma(). */
#include "common/test_arrays.h"
#include "phase1_building_blocks/14_attention/attention_wgmma.cuh"

static const struct {
  const char *name;
  AttentionBf16Launcher *launch;
} versions[] = {{"attention_wgmma_alternate", attention_wgmma_alternate},
                {"attention_wgmma_turns", attention_wgmma_turns},
                {"attention_wgmma", attention_wgmma}};

enum { VERSIONS = sizeof versions / sizeof *versions };

/* q, k, v, o and what o should be: each `n` long, the arrays begin `offset` elements later. */
typedef struct Case {
  int b, h, s, d;
  size_t offset, rows, n;
  __nv_bfloat16 *host[5];
  float *lse; /* as it should be */
} Case;

static Case case_open(int b, int h, int s, int d, size_t offset) {
  Case c = {b, h, s, d, offset, (size_t)b * h * s, 0, {}, NULL};
  c.n = c.rows * d + offset + 8;
  for (int a = 0; a < 5; a++) {
    float *random = arrays_random(c.n, 61 + (uint64_t)a);
    c.host[a] = (__nv_bfloat16 *)xmalloc(c.n * sizeof *c.host[a]);
    for (size_t i = 0; i < c.n; i++) c.host[a][i] = __float2bfloat16(a < 3 ? random[i] : NAN);
    free(random);
  }
  c.lse = arrays_poison(c.rows);
  return c;
}

static void case_close(Case *c) {
  for (int a = 0; a < 5; a++) free(c->host[a]);
  free(c->lse);
}

static void expect_right(int version, const Case *c, bool causal, Tolerance t, Tolerance lse_t) {
  float *lse = arrays_poison(c->rows), *device_lse = arrays_upload(DEVICE_GPU, lse, c->rows), *wide[2];
  __nv_bfloat16 *device[4], *o = (__nv_bfloat16 *)xmalloc(c->n * sizeof *o);
  for (int a = 0; a < 4; a++)
    device[a] = (__nv_bfloat16 *)arrays_upload_bytes(DEVICE_GPU, c->host[a], c->n * sizeof *o);
  versions[version].launch(device[3] + c->offset, device_lse, device[0] + c->offset, device[1] + c->offset,
                           device[2] + c->offset, c->b, c->h, c->s, c->d, causal);
  device_download(DEVICE_GPU, o, device[3], c->n * sizeof *o);
  arrays_download(DEVICE_GPU, lse, device_lse, c->rows, "lse");
  for (int i = 0; i < 2; i++) {
    wide[i] = arrays_poison(c->n);
    for (size_t j = 0; j < c->n; j++) wide[i][j] = __bfloat162float(i ? c->host[4][j] : o[j]);
  }
  Comparison compared = compare_arrays(wide[0] + c->offset, wide[1] + c->offset, c->rows, (size_t)c->d, t);
  if (compared.ok) compared = compare_arrays(lse, c->lse, c->rows, 1, lse_t);
  if (!compared.ok)
    fail_msg("%s, (%d,%d,%d,%d)%s: %s", versions[version].name, c->b, c->h, c->s, c->d, causal ? ", causal" : "",
             compared.message);
  for (size_t i = 0; i < c->offset; i++) assert_true(isnan(wide[0][i]));
  for (size_t i = c->offset + c->rows * c->d; i < c->n; i++) assert_true(isnan(wide[0][i]));
  for (int a = 0; a < 4; a++) device_free(DEVICE_GPU, device[a]);
  for (int i = 0; i < 2; i++) free(wide[i]);
  free(o);
  free(lse);
}

/* Every version, causal and not. error: of o, of values up to 2; lse_error: of lse. */
static void expect_all_right(Case *c, double error, double lse_error) {
  for (int causal = 0; causal < 2; causal++) {
    attention_bf16_forward_cpu(c->host[4] + c->offset, c->lse, c->host[0] + c->offset, c->host[1] + c->offset,
                               c->host[2] + c->offset, c->b, c->h, c->s, c->d, causal);
    for (int version = 0; version < VERSIONS; version++)
      expect_right(version, c, causal, tolerance_make(error, error), tolerance_make(FLT_EPSILON, lse_error));
  }
}

static void wgmma_required(void) {
  test_requires_gpu();
  if (matmul_wgmma_refusal() == NULL) return;
  print_message("skipped: %s\n", matmul_wgmma_refusal());
  skip();
}

/* p and o are rounded to bfloat16: attention_bf16_tolerance() of attention_tensor_core_lesson.cuh. */
static const double ROUNDED = 1.0 / 128;

static void every_version_matches_the_definition(void **state) {
  (void)state;
  wgmma_required();
  /* one query; tiles of queries and of keys that are not full; tiles that are exactly full; several heads: a box of
   * the tensor map must not contain rows of two; more tiles than the emulated GPU has multiprocessors */
  const int shapes[][4] = {{1, 1, 1, 64},  {2, 2, 31, 64},  {1, 1, 128, 64},  {1, 3, 257, 64},  {1, 1, 449, 64},
                           {1, 1, 1, 128}, {1, 2, 65, 128}, {1, 1, 256, 128}, {2, 1, 385, 128}, {3, 13, 33, 64}};
  for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
    Case c = case_open(shapes[i][0], shapes[i][1], shapes[i][2], shapes[i][3], 0);
    expect_all_right(&c, ROUNDED, 1e-4);
    case_close(&c);
  }
}

/* Other widths, and arrays that are not aligned, go to attention_mma(). */
static void what_tma_cannot_copy_is_right(void **state) {
  (void)state;
  wgmma_required();
  const int shapes[][5] = {{1, 2, 35, 41, 0}, {1, 1, 67, 64, 1}, {1, 1, 66, 128, 4}, {1, 2, 40, 72, 0}};
  for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
    Case c = case_open(shapes[i][0], shapes[i][1], shapes[i][2], shapes[i][3], (size_t)shapes[i][4]);
    expect_all_right(&c, ROUNDED, 1e-4);
    case_close(&c);
  }
}

/* Scores of up to some hundreds whose size falls or rises from tile to tile, so that each tile has a new maximum, in
 * whatever order the tiles are taken; and scores that are all equal. */
static void maxima_may_rise(void **state) {
  (void)state;
  wgmma_required();
  for (int kind = 0; kind < 3; kind++)
    for (int d = 64; d <= 128; d += 64) {
      Case c = case_open(1, 1, 400, d, 0);
      for (int i = 0; i < 400 * d; i++) {
        float key = __bfloat162float(c.host[1][i]), row = (float)(i / d);
        c.host[0][i] = __float2bfloat16(kind == 2 ? 1 : 4 * __bfloat162float(c.host[0][i]));
        c.host[1][i] = __float2bfloat16(kind == 2 ? 2 : key * (kind ? row : 400 - row) / 8);
      }
      /* lse is up to 2000, as a sum of products of which each is rounded: relative errors of a few FLT_EPSILON */
      expect_all_right(&c, ROUNDED, 2e-3);
      case_close(&c);
    }
}

/* Keys of -inf, as many as the tiles of any version, first or last: their scores are -inf. */
static void keys_may_be_ruled_out(void **state) {
  (void)state;
  wgmma_required();
  for (int last = 0; last < 2; last++) {
    Case c = case_open(1, 1, 330, 64, 0);
    for (int i = 0; i < 330 * 64; i++) {
      c.host[0][i] = __float2bfloat16(fabsf(__bfloat162float(c.host[0][i])) / 8 + 0.01f);
      if (last ? i / 64 >= 330 - 200 : i / 64 < 200 && i / 64 > 0) c.host[1][i] = __float2bfloat16(-INFINITY);
    }
    expect_all_right(&c, ROUNDED, 1e-4);
    case_close(&c);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_version_matches_the_definition),
      cmocka_unit_test(what_tma_cannot_copy_is_right),
      cmocka_unit_test(maxima_may_rise),
      cmocka_unit_test(keys_may_be_ruled_out),
  };
  return TEST_MAIN("attention_wgmma", tests);
}
