/* cub_device_test.cu - CUB's device-wide algorithms, against plain loops. The same program passes with NVIDIA's CUB
 * on a GPU. */
#include <cub/cub.cuh>

#include <algorithm>
#include <vector>

#include "collective.h" /* last: cmocka makes macros of common words */

struct Greater { /* an operation of one's own */
  __host__ __device__ int operator()(int a, int b) const { return a > b ? a : b; }
};
struct Add {
  template <class T>
  __host__ __device__ T operator()(const T &a, const T &b) const {
    return a + b;
  }
};
/* Asks for the storage, gets it, calls again. */
#define TWICE(call)                     \
  do {                                  \
    void *storage = NULL;               \
    size_t bytes = 0;                   \
    CHECK(call);                        \
    assert_true(bytes > 0);             \
    CHECK(cudaMalloc(&storage, bytes)); \
    CHECK(call);                        \
    CHECK(cudaDeviceSynchronize());     \
    CHECK(cudaFree(storage));           \
  } while (0)

static const int sizes[] = {1, 31, 257, 5000};

static void test_device_reduce(void **state) {
  (void)state;
  for (int n : sizes) {
    int *x = new_array<int>((size_t)n), *out = new_array<int>(8);
    for (int i = 0; i < n; i++) x[i] = (int)(next_random() >> 14) - 100000;
    TWICE(cub::DeviceReduce::Sum(storage, bytes, x, out, n));
    TWICE(cub::DeviceReduce::Min(storage, bytes, x, out + 1, n));
    TWICE(cub::DeviceReduce::Max(storage, bytes, x, out + 2, n));
    TWICE(cub::DeviceReduce::Reduce(storage, bytes, x, out + 3, n, Greater(), -5));
    TWICE(cub::DeviceReduce::ArgMin(storage, bytes, x, out + 4, out + 5, n));
    TWICE(cub::DeviceReduce::ArgMax(storage, bytes, x, out + 6, out + 7, n));
    int *least = std::min_element(x, x + n), *greatest = std::max_element(x, x + n), sum = 0;
    for (int i = 0; i < n; i++) sum += x[i];
    assert_int_equal(out[0], sum);
    assert_int_equal(out[1], *least);
    assert_int_equal(out[2], *greatest);
    assert_int_equal(out[3], std::max(-5, *greatest));
    assert_int_equal(out[4], *least);
    assert_int_equal(out[5], least - x);
    assert_int_equal(out[6], *greatest);
    assert_int_equal(out[7], greatest - x);
    CHECK(cudaFree(x));
    CHECK(cudaFree(out));
  }
}

/* 2^24 and one more: a sum that adds ones to a float, one after the other, stops at 2^24. */
static void test_a_long_sum_of_floats(void **state) {
  (void)state;
  const int n = (1 << 24) + 1000;
  float *x = new_array<float>((size_t)n), *out = new_array<float>(1);
  for (int i = 0; i < n; i++) x[i] = 1;
  TWICE(cub::DeviceReduce::Sum(storage, bytes, x, out, n));
  assert_true(*out > n * 0.9999999f && *out < n * 1.0000001f);
  CHECK(cudaFree(x));
  CHECK(cudaFree(out));
}

static void test_device_segmented_reduce(void **state) {
  (void)state;
  enum { N = 1000, SEGMENTS = 5 };
  const int limits[SEGMENTS + 1] = {0, 1, 1, 400, 999, 1000};
  int *x = new_array<int>(N), *offsets = new_array<int>(SEGMENTS + 1), *out = new_array<int>(2 * SEGMENTS);
  for (int i = 0; i < N; i++) x[i] = (int)(next_random() >> 20);
  memcpy(offsets, limits, sizeof limits);
  TWICE(cub::DeviceSegmentedReduce::Sum(storage, bytes, x, out, (int)SEGMENTS, offsets, offsets + 1));
  TWICE(cub::DeviceSegmentedReduce::Reduce(storage, bytes, x, out + SEGMENTS, (int)SEGMENTS, offsets, offsets + 1,
                                           Greater(), -1));
  for (int s = 0; s < SEGMENTS; s++) {
    int sum = 0, greatest = -1;
    for (int i = limits[s]; i < limits[s + 1]; i++) {
      sum += x[i];
      greatest = std::max(greatest, x[i]);
    }
    assert_int_equal(out[s], sum);
    assert_int_equal(out[SEGMENTS + s], greatest);
  }
  CHECK(cudaFree(x));
  CHECK(cudaFree(offsets));
  CHECK(cudaFree(out));
}

static void test_device_scan(void **state) {
  (void)state;
  cudaStream_t stream;
  CHECK(cudaStreamCreate(&stream));
  for (int n : sizes) {
    int *x = new_array<int>((size_t)n), *out = new_array<int>(4 * (size_t)n), *place = new_array<int>((size_t)n);
    for (int i = 0; i < n; i++) place[i] = x[i] = (int)(next_random() >> 14) - 100000;
    TWICE(cub::DeviceScan::ExclusiveSum(storage, bytes, x, out, n, stream));
    TWICE(cub::DeviceScan::InclusiveSum(storage, bytes, x, out + n, n));
    TWICE(cub::DeviceScan::ExclusiveScan(storage, bytes, x, out + 2 * n, Greater(), -7, n, stream));
    TWICE(cub::DeviceScan::InclusiveScan(storage, bytes, x, out + 3 * n, Greater(), n));
    TWICE(cub::DeviceScan::ExclusiveSum(storage, bytes, place, place, n));
    int sum = 0, greatest = -7, plain = x[0];
    for (int i = 0; i < n; i++) {
      assert_int_equal(out[i], sum);
      assert_int_equal(place[i], sum);
      assert_int_equal(out[2 * n + i], greatest);
      sum += x[i];
      greatest = std::max(greatest, x[i]);
      plain = std::max(plain, x[i]);
      assert_int_equal(out[n + i], sum);
      assert_int_equal(out[3 * n + i], plain);
    }
    CHECK(cudaFree(x));
    CHECK(cudaFree(out));
    CHECK(cudaFree(place));
  }
  CHECK(cudaStreamDestroy(stream));
}

template <class Key>
static void check_device_sort(int n, long long spread) {
  Key *x = new_array<Key>((size_t)n), *up = new_array<Key>((size_t)n), *down = new_array<Key>((size_t)n);
  Key *a = new_array<Key>((size_t)n), *b = new_array<Key>((size_t)n);
  int *in = new_array<int>((size_t)n), *out = new_array<int>((size_t)n), *other = new_array<int>((size_t)n);
  int *va = new_array<int>((size_t)n), *vb = new_array<int>((size_t)n);
  for (int i = 0; i < n; i++) {
    long long wide = (long long)next_random() << 20 ^ next_random();
    a[i] = x[i] = (Key)(wide % spread - spread / 3);
    va[i] = in[i] = i;
  }
  TWICE(cub::DeviceRadixSort::SortKeys(storage, bytes, x, up, n));
  TWICE(cub::DeviceRadixSort::SortPairs(storage, bytes, x, up, in, out, n));
  TWICE(cub::DeviceRadixSort::SortPairsDescending(storage, bytes, x, down, in, other, n));
  cub::DoubleBuffer<Key> keys(a, b);
  cub::DoubleBuffer<int> values(va, vb);
  TWICE(cub::DeviceRadixSort::SortPairs(storage, bytes, keys, values, n));
  std::vector<int> order((size_t)n), reverse((size_t)n);
  for (int i = 0; i < n; i++) order[(size_t)i] = reverse[(size_t)i] = i;
  std::stable_sort(order.begin(), order.end(), [&](int i, int j) { return x[i] < x[j]; });
  std::stable_sort(reverse.begin(), reverse.end(), [&](int i, int j) { return x[i] > x[j]; });
  for (int i = 0; i < n; i++) {
    assert_true(up[i] == x[order[(size_t)i]]);
    assert_int_equal(out[i], order[(size_t)i]);
    assert_true(down[i] == x[reverse[(size_t)i]]);
    assert_int_equal(other[i], reverse[(size_t)i]);
    assert_true(keys.Current()[i] == up[i]);
    assert_int_equal(values.Current()[i], order[(size_t)i]);
  }
  CHECK(cudaFree(x));
  CHECK(cudaFree(up));
  CHECK(cudaFree(down));
  CHECK(cudaFree(a));
  CHECK(cudaFree(b));
  CHECK(cudaFree(in));
  CHECK(cudaFree(out));
  CHECK(cudaFree(other));
  CHECK(cudaFree(va));
  CHECK(cudaFree(vb));
}

static void test_device_radix_sort(void **state) {
  (void)state;
  for (int n : sizes) {
    check_device_sort<int>(n, 1ll << 31);
    check_device_sort<float>(n, 2000000);
  }
}

/* One pass of a byte, and eight. */
template <class Key>
static void check_device_sort_keys(int n, long long spread) {
  Key *x = new_array<Key>((size_t)n), *out = new_array<Key>((size_t)n);
  for (int i = 0; i < n; i++) x[i] = (Key)((long long)((uint64_t)next_random() << 20 ^ next_random()) % spread);
  TWICE(cub::DeviceRadixSort::SortKeys(storage, bytes, x, out, n));
  std::sort(x, x + n);
  for (int i = 0; i < n; i++) assert_true(out[i] == x[i]);
  CHECK(cudaFree(x));
  CHECK(cudaFree(out));
}

static void test_narrow_and_wide_keys(void **state) {
  (void)state;
  for (int n : sizes) {
    check_device_sort_keys<unsigned char>(n, 256);
    check_device_sort_keys<double>(n, 1ll << 40);
  }
}

static void test_a_sort_by_some_bits(void **state) {
  (void)state;
  enum { N = 1000 };
  unsigned *x = new_array<unsigned>(N), *out = new_array<unsigned>(N);
  for (int i = 0; i < N; i++) x[i] = next_random();
  TWICE(cub::DeviceRadixSort::SortKeys(storage, bytes, x, out, (int)N, 4, 17));
  std::vector<unsigned> sorted(x, x + N);
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](unsigned a, unsigned b) { return (a >> 4 & 0x1fff) < (b >> 4 & 0x1fff); });
  for (int i = 0; i < N; i++) assert_int_equal(out[i], sorted[(size_t)i]);
  CHECK(cudaFree(x));
  CHECK(cudaFree(out));
}

struct Descending {
  __host__ __device__ bool operator()(int a, int b) const { return a > b; }
};

struct Odd {
  __host__ __device__ bool operator()(int x) const { return x & 1; }
};

static void test_device_select(void **state) {
  (void)state;
  for (int n : sizes) {
    int *x = new_array<int>((size_t)n), *out = new_array<int>(3 * (size_t)n), *found = new_array<int>(3);
    char *flags = new_array<char>((size_t)n);
    for (int i = 0; i < n; i++) {
      x[i] = (int)(next_random() >> 8) % 5 + i / 7;
      flags[i] = (char)(i % 3 == 1);
    }
    TWICE(cub::DeviceSelect::If(storage, bytes, x, out, found, n, Odd()));
    TWICE(cub::DeviceSelect::Flagged(storage, bytes, x, flags, out + n, found + 1, n));
    TWICE(cub::DeviceSelect::Unique(storage, bytes, x, out + 2 * n, found + 2, n));
    int odd = 0, flagged = 0, unique = 0;
    for (int i = 0; i < n; i++) {
      if (x[i] & 1) assert_int_equal(out[odd++], x[i]);
      if (flags[i]) assert_int_equal(out[n + flagged++], x[i]);
      if (i == 0 || x[i] != x[i - 1]) assert_int_equal(out[2 * n + unique++], x[i]);
    }
    assert_int_equal(found[0], odd);
    assert_int_equal(found[1], flagged);
    assert_int_equal(found[2], unique);
    CHECK(cudaFree(x));
    CHECK(cudaFree(out));
    CHECK(cudaFree(found));
    CHECK(cudaFree(flags));
  }
}

static void test_device_partition(void **state) {
  (void)state;
  enum { N = 777 };
  int *x = new_array<int>(N), *out = new_array<int>(N), *found = new_array<int>(1);
  for (int i = 0; i < N; i++) x[i] = (int)(next_random() >> 8);
  TWICE(cub::DevicePartition::If(storage, bytes, x, out, found, (int)N, Odd()));
  int front = 0, back = N;
  for (int i = 0; i < N; i++) assert_int_equal(out[x[i] & 1 ? front++ : --back], x[i]);
  assert_int_equal(*found, front);
  CHECK(cudaFree(x));
  CHECK(cudaFree(out));
  CHECK(cudaFree(found));
}

static void test_device_runs(void **state) {
  (void)state;
  for (int n : sizes) {
    int *x = new_array<int>((size_t)n), *unique = new_array<int>((size_t)n), *counts = new_array<int>((size_t)n);
    int *sums = new_array<int>((size_t)n), *values = new_array<int>((size_t)n), *runs = new_array<int>(2);
    for (int i = 0; i < n; i++) {
      x[i] = i > 0 && next_random() >> 30 ? x[i - 1] : (int)(next_random() >> 29);
      values[i] = i * 3 - 50;
    }
    TWICE(cub::DeviceRunLengthEncode::Encode(storage, bytes, x, unique, counts, runs, n));
    int run = 0;
    for (int i = 0; i < n; run++) {
      int start = i;
      while (i < n && x[i] == x[start]) i++;
      assert_int_equal(unique[run], x[start]);
      assert_int_equal(counts[run], i - start);
    }
    assert_int_equal(runs[0], run);
    TWICE(cub::DeviceReduce::ReduceByKey(storage, bytes, x, unique, values, sums, runs + 1, Add(), n));
    run = 0;
    for (int i = 0; i < n; run++) {
      int start = i, sum = 0;
      for (; i < n && x[i] == x[start]; i++) sum += values[i];
      assert_int_equal(unique[run], x[start]);
      assert_int_equal(sums[run], sum);
    }
    assert_int_equal(runs[1], run);
    CHECK(cudaFree(x));
    CHECK(cudaFree(unique));
    CHECK(cudaFree(counts));
    CHECK(cudaFree(sums));
    CHECK(cudaFree(values));
    CHECK(cudaFree(runs));
  }
}

static void test_device_histogram(void **state) {
  (void)state;
  enum { N = 5000 };
  unsigned char *x = new_array<unsigned char>(N);
  float *f = new_array<float>(N);
  unsigned *bins = new_array<unsigned>(256 + 10), expected[266] = {};
  for (int i = 0; i < N; i++) {
    x[i] = (unsigned char)(next_random() >> 24);
    expected[x[i]]++;
    f[i] = (float)(next_random() >> 8) / (1 << 20) - 3; /* -3 .. 13 */
    if (f[i] >= 0 && f[i] < 10) expected[256 + (int)f[i]]++;
  }
  TWICE(cub::DeviceHistogram::HistogramEven(storage, bytes, x, bins, 257, 0, 256, (int)N));
  TWICE(cub::DeviceHistogram::HistogramEven(storage, bytes, f, bins + 256, 11, 0.0f, 10.0f, (int)N));
  for (int b = 0; b < 266; b++) assert_int_equal(bins[b], expected[b]);
  CHECK(cudaFree(x));
  CHECK(cudaFree(f));
  CHECK(cudaFree(bins));
}

static void test_device_merge_sort(void **state) {
  (void)state;
  for (int n : sizes) {
    int *x = new_array<int>((size_t)n), *v = new_array<int>((size_t)n);
    std::vector<std::pair<int, int>> expected;
    for (int i = 0; i < n; i++) {
      x[i] = (int)(next_random() >> 8) % 100;
      v[i] = i;
      expected.push_back(std::make_pair(x[i], i));
    }
    TWICE(cub::DeviceMergeSort::StableSortPairs(storage, bytes, x, v, n, Descending()));
    std::stable_sort(expected.begin(), expected.end(),
                     [](const std::pair<int, int> &a, const std::pair<int, int> &b) { return a.first > b.first; });
    for (int i = 0; i < n; i++) {
      assert_int_equal(x[i], expected[(size_t)i].first);
      assert_int_equal(v[i], expected[(size_t)i].second);
    }
    CHECK(cudaFree(x));
    CHECK(cudaFree(v));
  }
}

static void test_too_little_storage_is_refused(void **state) {
  (void)state;
  enum { N = 100000 }; /* the real CUB sorts 1000 in one block, and needs a single byte */
  int *x = new_array<int>(N), *out = new_array<int>(N);
  size_t bytes = 0;
  CHECK(cub::DeviceRadixSort::SortKeys(NULL, bytes, x, out, (int)N));
  void *storage;
  CHECK(cudaMalloc(&storage, bytes));
  size_t less = bytes / 2;
  assert_int_equal(cub::DeviceRadixSort::SortKeys(storage, less, x, out, (int)N), cudaErrorInvalidValue);
  (void)cudaGetLastError();
  CHECK(cudaFree(storage));
  CHECK(cudaFree(x));
  CHECK(cudaFree(out));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_device_reduce),
      cmocka_unit_test(test_a_long_sum_of_floats),
      cmocka_unit_test(test_device_segmented_reduce),
      cmocka_unit_test(test_device_scan),
      cmocka_unit_test(test_device_radix_sort),
      cmocka_unit_test(test_narrow_and_wide_keys),
      cmocka_unit_test(test_a_sort_by_some_bits),
      cmocka_unit_test(test_device_select),
      cmocka_unit_test(test_device_partition),
      cmocka_unit_test(test_device_runs),
      cmocka_unit_test(test_device_histogram),
      cmocka_unit_test(test_device_merge_sort),
      cmocka_unit_test(test_too_little_storage_is_refused),
  };
  return cmocka_run_group_tests_name("cub_device", tests, NULL, NULL);
}
