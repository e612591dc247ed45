#include "common/philox.h"

#include "common/test.h"

/* The vectors that come with Random123, the authors' own library (kat_vectors, philox4x32, 10 rounds). */
static void published_vectors(void **state) {
  (void)state;
  static const struct {
    PhiloxBlock counter;
    uint32_t key0, key1;
    PhiloxBlock result;
  } vectors[] = {
      {{{0, 0, 0, 0}}, 0, 0, {{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}}},
      {{{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}},
       0xffffffff,
       0xffffffff,
       {{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}}},
      {{{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}},
       0xa4093822,
       0x299f31d0,
       {{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}}},
  };
  for (size_t i = 0; i < sizeof vectors / sizeof *vectors; i++) {
    PhiloxBlock block = philox_rounds(vectors[i].counter, vectors[i].key0, vectors[i].key1);
    for (int w = 0; w < 4; w++) assert_int_equal(block.word[w], vectors[i].result.word[w]);
  }
}

/* The same vectors through the counter layout: seed = key, stream = word 2, index = words 0 and 1. */
static void seed_stream_index_fill_key_and_counter(void **state) {
  (void)state;
  PhiloxBlock block = philox_attempt(0x299f31d0a4093822u, 0x13198a2e, 0x85a308d3243f6a88u, 0x03707344);
  assert_int_equal(block.word[0], 0xd16cfe09);
  assert_int_equal(block.word[3], 0x24126ea1);
  for (uint64_t i = 0; i < 8; i++) assert_int_equal(philox_word(block, i), block.word[i % 4]);
  block = philox4x32(0, 0, 0);
  assert_int_equal(block.word[0], 0x6627e8d5);
}

static void uniform_keeps_to_its_interval(void **state) {
  (void)state;
  assert_true(philox_uniform(0) == 0);
  assert_true(philox_uniform(0xffffffff) == 1 - 0x1p-24f);
  assert_true(philox_uniform_positive(0) == 0x1p-24f);
  assert_true(philox_uniform_positive(0xffffffff) == 1);
}

/* Mean, variance and the two higher moments of 4 million draws, each within 5 standard errors. */
static void moments(void **state) {
  (void)state;
  enum { BLOCKS = 1 << 20 };
  double uniform = 0, uniform2 = 0, normal = 0, normal2 = 0, normal3 = 0, normal4 = 0, product = 0;
  for (uint64_t i = 0; i < BLOCKS; i++) {
    PhiloxBlock block = philox4x32(42, 7, i);
    for (int w = 0; w < 4; w++) {
      double u = philox_uniform(block.word[w]);
      uniform += u;
      uniform2 += u * u;
    }
    float pair[2];
    philox_normal(block, &pair[0], &pair[1]);
    product += pair[0] * pair[1];
    for (int p = 0; p < 2; p++) {
      double z = pair[p];
      normal += z;
      normal2 += z * z;
      normal3 += z * z * z;
      normal4 += z * z * z * z;
    }
  }
  double n = 4.0 * BLOCKS, m = 2.0 * BLOCKS;
  assert_true(fabs(uniform / n - 1 / 2.0) < 5 * sqrt(1 / 12.0 / n));
  assert_true(fabs(uniform2 / n - 1 / 3.0) < 5 * sqrt(4 / 45.0 / n));
  assert_true(fabs(normal / m) < 5 * sqrt(1 / m));
  assert_true(fabs(normal2 / m - 1) < 5 * sqrt(2 / m));
  assert_true(fabs(normal3 / m) < 5 * sqrt(15 / m));
  assert_true(fabs(normal4 / m - 3) < 5 * sqrt(96 / m));
  assert_true(fabs(product / BLOCKS) < 5 * sqrt(1.0 / BLOCKS));
}

static void normal_is_finite_at_the_edges(void **state) {
  (void)state;
  const uint32_t edges[] = {0, 1, 255, 256, 0x7fffffff, 0x80000000, 0xffffffff};
  for (size_t i = 0; i < 7; i++)
    for (size_t j = 0; j < 7; j++) {
      PhiloxBlock block = {{edges[i], edges[j], 0, 0}};
      float a, b;
      philox_normal(block, &a, &b);
      assert_true(fabsf(a) < 6 && fabsf(b) < 6);
    }
}

/* Neighbouring seeds, streams and indices: half of the 128 bits differ, and the uniforms do not correlate. */
static void neighbours_are_independent(void **state) {
  (void)state;
  enum { N = 1 << 16 };
  for (int what = 0; what < 4; what++) {
    double correlation = 0, flipped = 0;
    for (uint64_t i = 0; i < N; i++) {
      PhiloxBlock a = philox4x32(1, 1, 2 * i), b = a;
      if (what == 0) b = philox4x32(2, 1, 2 * i);
      if (what == 1) b = philox4x32(1, 2, 2 * i);
      if (what == 2) b = philox4x32(1, 1, 2 * i + 1);
      if (what == 3) b = philox4x32((uint64_t)1 << 32 | 1, 1, 2 * i);
      for (int w = 0; w < 4; w++) {
        correlation += 12 * (philox_uniform(a.word[w]) - 0.5) * (philox_uniform(b.word[w]) - 0.5);
        flipped += __builtin_popcount(a.word[w] ^ b.word[w]);
      }
    }
    assert_true(fabs(correlation / (4 * N)) < 5 / sqrt(4.0 * N));
    assert_true(fabs(flipped / (128.0 * N) - 0.5) < 5 * 0.5 / sqrt(128.0 * N));
  }
}

/* A bound of 3/4 of 2^32 shows a bias at once: by word % bound the lower third, and by word * bound / 2^32 every third
 * value, would come twice as often. */
static void below_is_unbiased(void **state) {
  (void)state;
  enum { N = 30000 };
  const uint32_t bounds[] = {1, 2, 3, 10, 60000, 0xc0000000u, 0xffffffffu};
  for (size_t b = 0; b < sizeof bounds / sizeof *bounds; b++) {
    int thirds[3] = {0}, residues[3] = {0};
    for (uint64_t i = 0; i < N; i++) {
      uint32_t x = philox_below(bounds[b], 3, 1, i);
      assert_true(x < bounds[b]);
      thirds[(uint64_t)x * 3 / bounds[b]]++;
      residues[x % 3]++;
    }
    if (bounds[b] % 3 != 0) continue;
    for (int t = 0; t < 3; t++) {
      assert_true(abs(thirds[t] - N / 3) < 5 * sqrt(N * 2.0 / 9));
      assert_true(abs(residues[t] - N / 3) < 5 * sqrt(N * 2.0 / 9));
    }
  }
}

/* All 24 orders of four items, by chi-square: 23 degrees of freedom, 60 is passed by chance once in 30,000 seeds. */
static void shuffle_is_fair(void **state) {
  (void)state;
  enum { N = 48000 };
  int seen[256] = {0}, orders = 0;
  for (uint32_t i = 0; i < N; i++) {
    uint32_t items[4] = {0, 1, 2, 3};
    philox_shuffle(items, 4, 11, i);
    seen[items[0] << 6 | items[1] << 4 | items[2] << 2 | items[3]]++;
  }
  double chi2 = 0, wanted = N / 24.0;
  for (int i = 0; i < 256; i++) {
    if (seen[i] == 0) continue;
    orders++;
    chi2 += (seen[i] - wanted) * (seen[i] - wanted) / wanted;
  }
  print_message("chi-square %.1f\n", chi2);
  assert_int_equal(orders, 24);
  assert_true(chi2 < 60);
}

static void shuffle_permutes_and_repeats(void **state) {
  (void)state;
  const uint32_t sizes[] = {0, 1, 2, 33, 1021, 60000};
  static uint32_t a[60000], b[60000];
  static char seen[60000];
  for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
    uint32_t n = sizes[s];
    for (uint32_t i = 0; i < n; i++) a[i] = b[i] = i;
    philox_shuffle(a, n, 5, 9);
    philox_shuffle(b, n, 5, 9);
    assert_memory_equal(a, b, n * sizeof *a);
    memset(seen, 0, sizeof seen);
    for (uint32_t i = 0; i < n; i++) {
      assert_true(a[i] < n && !seen[a[i]]);
      seen[a[i]] = 1;
    }
    if (n < 33) continue;
    for (uint32_t i = 0; i < n; i++) b[i] = i;
    philox_shuffle(b, n, 5, 10);
    assert_memory_not_equal(a, b, n * sizeof *a);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(published_vectors),
      cmocka_unit_test(seed_stream_index_fill_key_and_counter),
      cmocka_unit_test(uniform_keeps_to_its_interval),
      cmocka_unit_test(moments),
      cmocka_unit_test(normal_is_finite_at_the_edges),
      cmocka_unit_test(neighbours_are_independent),
      cmocka_unit_test(below_is_unbiased),
      cmocka_unit_test(shuffle_is_fair),
      cmocka_unit_test(shuffle_permutes_and_repeats),
  };
  return TEST_MAIN("philox", tests);
}
