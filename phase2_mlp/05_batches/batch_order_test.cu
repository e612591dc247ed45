/* Orders: each image once, the same on both devices, as random as batch_order.cuh says, and no more. */
#include "phase2_mlp/05_batches/batch_order.cuh"

#include "common/test_arrays.h"

enum { MOST = 60000, WAYS = 3 };

typedef void OrderMaker(uint32_t *order, uint32_t count, uint64_t seed, uint32_t epoch);

static void sort_gpu(uint32_t *order, uint32_t count, uint64_t seed, uint32_t epoch) {
  size_t bytes = batches_sort_scratch(count) * sizeof(uint32_t);
  uint32_t *scratch = (uint32_t *)guard_alloc_elements(DEVICE_GPU, bytes / sizeof(uint32_t), sizeof(uint32_t));
  Error err;
  batches_sort_gpu(order, scratch, count, seed, epoch);
  if (guard_check_elements(DEVICE_GPU, scratch, bytes / sizeof(uint32_t), sizeof(uint32_t), "scratch", &err) != 0)
    fail_msg("%s", err.message);
  guard_free(DEVICE_GPU, scratch);
}

static const struct {
  const char *name;
  OrderMaker *cpu, *gpu;
} ways[WAYS] = {{"shuffle", batches_shuffle, batches_shuffle_gpu},
                {"sort", batches_sort_cpu, sort_gpu},
                {"cipher", batches_cipher_cpu, batches_cipher_gpu}};

static uint32_t order[MOST], other[MOST];

static void assert_permutation(const char *name, const uint32_t *items, uint32_t count) {
  static unsigned char seen[MOST];
  memset(seen, 0, count);
  for (uint32_t i = 0; i < count; i++) {
    if (items[i] >= count) fail_msg("%s of %u: place %u has image %u", name, count, i, items[i]);
    if (seen[items[i]]++) fail_msg("%s of %u: image %u comes twice", name, count, items[i]);
  }
}

/* Every size up to beyond a thread block, around powers of two, and MNIST's; many epochs of the small ones. */
static void every_image_comes_once(void **state) {
  (void)state;
  for (int w = 0; w < WAYS; w++) {
    for (uint32_t count = 1; count <= 300; count++)
      for (uint32_t epoch = 0; epoch < 5; epoch++) {
        ways[w].cpu(order, count, 1, epoch);
        assert_permutation(ways[w].name, order, count);
      }
    const uint32_t sizes[] = {1023, 1024, 1025, 4096, 4097, 16385, 32768, 60000};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
      ways[w].cpu(order, sizes[i], 1, 0);
      assert_permutation(ways[w].name, order, sizes[i]);
    }
    order[0] = 77;
    ways[w].cpu(order, 0, 1, 0); /* nothing to do, nothing touched */
    assert_int_equal(order[0], 77);
  }
}

static void the_gpu_has_the_same_bits(void **state) {
  (void)state;
  test_requires_gpu();
  const uint32_t sizes[] = {1, 2, 3, 4, 5, 16, 31, 33, 127, 255, 256, 257, 1021, 4099, 10007};
  for (int w = 0; w < WAYS; w++)
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
      for (uint32_t epoch = 0; epoch < 2; epoch++) {
        uint32_t count = sizes[i];
        ways[w].cpu(other, count, 0x123456789abcdefu, epoch);
        uint32_t *device_order = (uint32_t *)guard_alloc(DEVICE_GPU, count);
        ways[w].gpu(device_order, count, 0x123456789abcdefu, epoch);
        arrays_download(DEVICE_GPU, (float *)order, (float *)device_order, count, "order");
        if (memcmp(order, other, count * sizeof *order) != 0)
          fail_msg("%s of %u, epoch %u: CPU and GPU differ", ways[w].name, count, epoch);
      }
  batches_sort_gpu(NULL, NULL, 0, 1, 0);
  batches_cipher_gpu(NULL, 0, 1, 0);
}

/* Two independent orders agree in one place on average; 20 would come once in 10^18. */
static void seed_and_epoch_say_all(void **state) {
  (void)state;
  for (int w = 0; w < WAYS; w++) {
    ways[w].cpu(order, MOST, 1, 7);
    const struct {
      uint64_t seed;
      uint32_t epoch;
    } others[] = {{1, 7}, {1, 8}, {2, 7}, {0x100000001u, 7}};
    for (int k = 0; k < 4; k++) {
      uint32_t same = 0;
      ways[w].cpu(other, MOST, others[k].seed, others[k].epoch);
      for (uint32_t i = 0; i < MOST; i++) same += order[i] == other[i];
      if (k == 0 ? same != MOST : same > 20) fail_msg("%s, %d: %u places agree", ways[w].name, k, same);
    }
  }
}

/* Pearson's sum for `cells` counts of which each should be `expected`. Its mean is cells - 1 (or the degrees of freedom
 * given), its variance twice that; nearly normal for many cells. Seeds are fixed, so a right order that passes once
 * passes always; six standard deviations are left by one in 10^8 of other seeds. */
static double chi_square(const int *count, int cells, double expected) {
  double sum = 0;
  for (int i = 0; i < cells; i++) sum += (count[i] - expected) * (count[i] - expected) / expected;
  return sum;
}

static void assert_uniform(const char *name, const int *count, int cells, double expected, int freedom) {
  double sum = chi_square(count, cells, expected), sigma = (sum - freedom) / sqrt(2.0 * freedom);
  print_message("%s: chi-square %.1f of %d degrees of freedom, %+.1f standard deviations\n", name, sum, freedom, sigma);
  if (!(fabs(sigma) < 6)) fail_msg("%s: chi-square %.1f for %d degrees of freedom", name, sum, freedom);
}

/* Each image at each place equally often. Rows and columns have fixed sums, hence the degrees of freedom. */
static void each_image_is_at_each_place_equally_often(void **state) {
  (void)state;
  enum { FEW = 37, EPOCHS = 20000 };
  for (int w = 0; w < WAYS; w++) {
    static int count[FEW * FEW];
    memset(count, 0, sizeof count);
    for (uint32_t epoch = 0; epoch < EPOCHS; epoch++) {
      ways[w].cpu(order, FEW, 3, epoch);
      for (int i = 0; i < FEW; i++) count[i * FEW + (int)order[i]]++;
    }
    assert_uniform(ways[w].name, count, FEW * FEW, (double)EPOCHS / FEW, (FEW - 1) * (FEW - 1));
  }
}

/* Neighbours in an order are no neighbours in the file more often than others: the difference, modulo the count. */
static void neighbours_are_strangers(void **state) {
  (void)state;
  enum { FEW = 1000, EPOCHS = 200 };
  for (int w = 0; w < WAYS; w++) {
    static int count[FEW];
    memset(count, 0, sizeof count);
    for (uint32_t epoch = 0; epoch < EPOCHS; epoch++) {
      ways[w].cpu(order, FEW, 5, epoch);
      for (int i = 0; i + 1 < FEW; i++) count[(order[i + 1] + FEW - order[i]) % FEW]++;
    }
    assert_int_equal(count[0], 0);
    assert_uniform(ways[w].name, count + 1, FEW - 1, (double)EPOCHS * (FEW - 1) / (FEW - 1), FEW - 2);
  }
}

/* Which of the count! orders this is, for a small count (Lehmer's code), and whether it takes an odd number of
 * swaps. */
static int order_number(const uint32_t *items, int count, int *odd) {
  int number = 0;
  *odd = 0;
  for (int i = 0; i < count; i++) {
    int smaller = 0;
    for (int j = i + 1; j < count; j++) smaller += items[j] < items[i];
    number = number * (count - i) + smaller;
    *odd ^= smaller & 1;
  }
  return number;
}

/* All 120 orders of five images, for shuffle and sort. */
static void every_order_is_equally_likely(void **state) {
  (void)state;
  enum { EPOCHS = 24000, ORDERS = 120 };
  for (int w = 0; w < 2; w++) {
    int count[ORDERS] = {0}, odd;
    for (uint32_t epoch = 0; epoch < EPOCHS; epoch++) {
      ways[w].cpu(order, 5, 9, epoch);
      count[order_number(order, 5, &odd)]++;
    }
    assert_uniform(ways[w].name, count, ORDERS, (double)EPOCHS / ORDERS, ORDERS - 1);
  }
}

/* What the manual says of the cipher: of 16, 64 or 256 images only even permutations. One image less leaves the last
 * number out of its cycle, which is then odd, unless it was alone there: one time in as many as there are numbers. The
 * other ways have as many odd ones as even ones. */
static void the_cipher_favours_one_kind_of_permutation(void **state) {
  (void)state;
  enum { EPOCHS = 400 };
  const uint32_t sizes[] = {16, 15, 64, 63, 256, 255};
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
    for (int w = 0; w < WAYS; w++) {
      uint32_t count = sizes[i];
      int odds = 0;
      for (uint32_t epoch = 0; epoch < EPOCHS; epoch++) {
        int odd;
        ways[w].cpu(order, count, 11, epoch);
        order_number(order, (int)count, &odd);
        odds += odd;
      }
      double p = w < 2 ? 0.5 : count % 2 == 0 ? 0 : (double)count / (count + 1);
      if (!(fabs(odds - EPOCHS * p) <= 6 * sqrt(EPOCHS * p * (1 - p))))
        fail_msg("%s of %u: %d of %d orders are odd, expected %.1f", ways[w].name, count, odds, EPOCHS, EPOCHS * p);
    }
}

/* Two keys that are equal: the smaller image first, from either side; and never an image before itself. */
static void equal_keys_have_an_order(void **state) {
  (void)state;
  assert_true(batch_key_before(5, 1, 5, 2) && !batch_key_before(5, 2, 5, 1) && !batch_key_before(5, 1, 5, 1));
  assert_true(batch_key_before(4, 2, 5, 1) && !batch_key_before(5, 1, 4, 2));
  const BatchKeyed a = {5, 1}, b = {5, 2};
  assert_int_equal(batch_keyed_compare(&a, &b), -1);
  assert_int_equal(batch_keyed_compare(&b, &a), 1);
}

/* Streams from 0x80000000 on, one an epoch, so that no order draws the numbers of an initialisation, whose streams are
 * the layers' numbers. Checkpoints rely on it: an order that changes is another run. */
static void every_epoch_has_a_stream_of_its_own(void **state) {
  (void)state;
  enum { FEW = 50 };
  for (uint32_t epoch = 0; epoch < 100; epoch++) {
    batches_shuffle(order, FEW, 1, epoch);
    for (uint32_t i = 0; i < FEW; i++) other[i] = i;
    philox_shuffle(other, FEW, 1, 0x80000000u + epoch);
    assert_memory_equal(order, other, FEW * sizeof *order);
    assert_true(batch_key(1, 0x80000000u + epoch, 3) >> 32 == philox4x32(1, 0x80000000u + epoch, 3).word[0]);
    assert_true(batch_cipher(FEW, 1, epoch).stream == 0x80000000u + epoch);
    for (uint32_t stream = 0; stream < 100; stream++) {
      for (uint32_t i = 0; i < FEW; i++) other[i] = i;
      philox_shuffle(other, FEW, 1, stream);
      assert_memory_not_equal(order, other, FEW * sizeof *order);
    }
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_image_comes_once),
      cmocka_unit_test(the_gpu_has_the_same_bits),
      cmocka_unit_test(seed_and_epoch_say_all),
      cmocka_unit_test(each_image_is_at_each_place_equally_often),
      cmocka_unit_test(neighbours_are_strangers),
      cmocka_unit_test(every_order_is_equally_likely),
      cmocka_unit_test(the_cipher_favours_one_kind_of_permutation),
      cmocka_unit_test(equal_keys_have_an_order),
      cmocka_unit_test(every_epoch_has_a_stream_of_its_own),
  };
  return TEST_MAIN("batch_order", tests);
}
