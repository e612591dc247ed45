/* cub_test.cu - CUB's collectives of blocks and warps, against plain loops. The same program passes with NVIDIA's CUB
 * on a GPU. */
#include <cub/block/block_shuffle.cuh>
#include <cub/cub.cuh>

#include <float.h>
#include <limits.h>
#include <string.h>

#include <algorithm>
#include <vector>

#include "collective.h" /* last: cmocka makes macros of common words */

struct Greater { /* an operation of one's own */
  __host__ __device__ int operator()(int a, int b) const { return a > b ? a : b; }
};
/* Not commutative: digits written behind each other, modulo a prime. (value, weight) */
struct Digits {
  unsigned value, weight;
};
struct Append {
  __host__ __device__ Digits operator()(Digits a, Digits b) const {
    return Digits{(a.value * b.weight + b.value) % 9973u, a.weight * b.weight % 9973u};
  }
};
static Digits digits_of(int i) { return Digits{(unsigned)i % 10, 10}; }

/* ---- blocks ---- */

enum { ROWS = 12 };

template <int BLOCK>
__global__ void reduce_kernel(const int *x, int *out, Digits *digits, int valid) {
  typedef cub::BlockReduce<int, BLOCK> Reduce;
  typedef cub::BlockReduce<Digits, BLOCK, cub::BLOCK_REDUCE_RAKING> Ordered;
  typedef cub::BlockReduce<int, BLOCK, cub::BLOCK_REDUCE_RAKING_COMMUTATIVE_ONLY> Raking;
  __shared__ union {
    typename Reduce::TempStorage reduce;
    typename Ordered::TempStorage ordered;
    typename Raking::TempStorage raking;
  } storage;
  int i = threadIdx.x, items[3] = {x[3 * i], x[3 * i + 1], x[3 * i + 2]};
  int results[6];
  results[0] = Reduce(storage.reduce).Sum(x[i]);
  __syncthreads();
  results[1] = Reduce(storage.reduce).Reduce(x[i], Greater());
  __syncthreads();
  results[2] = Reduce(storage.reduce).Sum(items);
  __syncthreads();
  results[3] = Reduce(storage.reduce).Sum(x[i], valid);
  __syncthreads();
  results[4] = Reduce(storage.reduce).Reduce(x[i], [](int a, int b) { return a ^ b; });
  __syncthreads();
  results[5] = Raking(storage.raking).Sum(x[i]);
  __syncthreads();
  Digits all = Ordered(storage.ordered).Reduce(Digits{(unsigned)i % 10, 10}, Append());
  if (i == 0) { /* only here */
    for (int r = 0; r < 6; r++) out[r] = results[r];
    *digits = all;
  }
}

template <int BLOCK>
static void check_block_reduce(int valid) {
  int *x = new_array<int>(3 * BLOCK), *out = new_array<int>(6);
  Digits *digits = new_array<Digits>(1), all = digits_of(0);
  for (int i = 0; i < 3 * BLOCK; i++) x[i] = (int)(next_random() >> 16) - 30000;
  reduce_kernel<BLOCK><<<1, BLOCK>>>(x, out, digits, valid);
  finish();
  int sum = 0, greatest = x[0], items = 0, first = 0, odd = 0;
  for (int i = 0; i < BLOCK; i++) {
    sum += x[i];
    greatest = std::max(greatest, x[i]);
    if (i < valid) first += x[i];
    odd ^= x[i];
    if (i > 0) all = Append()(all, digits_of(i));
  }
  for (int i = 0; i < 3 * BLOCK; i++) items += x[i];
  assert_int_equal(out[0], sum);
  assert_int_equal(out[1], greatest);
  assert_int_equal(out[2], items);
  assert_int_equal(out[3], first);
  assert_int_equal(out[4], odd);
  assert_int_equal(out[5], sum);
  assert_int_equal(digits->value, all.value);
  CHECK(cudaFree(x));
  CHECK(cudaFree(out));
  CHECK(cudaFree(digits));
}

static void test_block_reduce(void **state) {
  (void)state;
  check_block_reduce<32>(17);
  check_block_reduce<128>(128);
  check_block_reduce<96>(1);
  check_block_reduce<200>(199);
  check_block_reduce<1024>(777);
}

struct Running { /* what comes before a block: the total of the tiles so far */
  int total;
  __device__ int operator()(int tile) {
    int before = total;
    total += tile;
    return before;
  }
};

/* out (ROWS, 4 * BLOCK) */
template <int BLOCK, cub::BlockScanAlgorithm algorithm>
__global__ void scan_kernel(const int *x, int *out, Digits *digits) {
  typedef cub::BlockScan<int, BLOCK, algorithm> Scan;
  typedef cub::BlockScan<Digits, BLOCK, algorithm> Ordered;
  __shared__ union {
    typename Scan::TempStorage scan;
    typename Ordered::TempStorage ordered;
  } storage;
  int i = threadIdx.x, *row = out + i, value, total;
  Scan(storage.scan).InclusiveSum(x[i], value);
  row[0] = value;
  __syncthreads();
  Scan(storage.scan).ExclusiveSum(x[i], value, total);
  (row += 4 * BLOCK)[0] = value;
  row[BLOCK] = total;
  __syncthreads();
  Scan(storage.scan).InclusiveScan(x[i], value, Greater());
  (row += 4 * BLOCK)[0] = value;
  __syncthreads();
  Scan(storage.scan).ExclusiveScan(x[i], value, -100000, Greater());
  (row += 4 * BLOCK)[0] = value;
  __syncthreads();
  int items[4], scanned[4];
  for (int j = 0; j < 4; j++) items[j] = x[4 * i + j];
  Scan(storage.scan).ExclusiveSum(items, scanned);
  row += 4 * BLOCK - i;
  for (int j = 0; j < 4; j++) row[4 * i + j] = scanned[j];
  __syncthreads();
  Scan(storage.scan).InclusiveSum(items, items, total); /* in place */
  row += 4 * BLOCK;
  for (int j = 0; j < 4; j++) row[4 * i + j] = items[j] + 2 * total;
  __syncthreads();
  Running before = {1000};
  for (int tile = 0; tile < 4; tile++) { /* a long scan, tile by tile */
    Scan(storage.scan).ExclusiveSum(x[tile * BLOCK + i], value, before);
    row[4 * BLOCK + tile * BLOCK + i] = value;
    __syncthreads();
  }
  Digits mine = {(unsigned)i % 10, 10}, all;
  Ordered(storage.ordered).InclusiveScan(mine, all, Append());
  digits[i] = all;
}

template <int BLOCK, cub::BlockScanAlgorithm algorithm>
static void check_block_scan(void) {
  enum { N = 4 * BLOCK };
  int *x = new_array<int>(N), *out = new_array<int>(ROWS * N);
  Digits *digits = new_array<Digits>(BLOCK);
  for (int i = 0; i < N; i++) x[i] = (int)(next_random() >> 16) - 30000;
  scan_kernel<BLOCK, algorithm><<<1, BLOCK>>>(x, out, digits);
  finish();
  int sum = 0, greatest = -100000, all = 0, total = 0;
  Digits appended = {0, 1};
  for (int i = 0; i < BLOCK; i++) all += x[i];
  for (int i = 0; i < N; i++) total += x[i];
  for (int i = 0; i < BLOCK; i++) {
    assert_int_equal(out[N + i], sum);
    assert_int_equal(out[N + BLOCK + i], all);
    assert_int_equal(out[3 * N + i], greatest);
    sum += x[i];
    greatest = std::max(greatest, x[i]);
    appended = Append()(appended, digits_of(i));
    assert_int_equal(out[i], sum);
    assert_int_equal(out[2 * N + i], greatest);
    assert_int_equal(digits[i].value, appended.value);
  }
  sum = 0;
  for (int i = 0; i < N; i++) {
    assert_int_equal(out[4 * N + i], sum);
    assert_int_equal(out[6 * N + i], 1000 + sum);
    sum += x[i];
    assert_int_equal(out[5 * N + i], sum + 2 * total);
  }
  CHECK(cudaFree(x));
  CHECK(cudaFree(out));
  CHECK(cudaFree(digits));
}

static void test_block_scan(void **state) {
  (void)state;
  check_block_scan<64, cub::BLOCK_SCAN_WARP_SCANS>();
  check_block_scan<100, cub::BLOCK_SCAN_RAKING>();
  check_block_scan<256, cub::BLOCK_SCAN_RAKING_MEMOIZE>();
}

template <int BLOCK, int ITEMS, cub::BlockLoadAlgorithm loads, cub::BlockStoreAlgorithm stores>
__global__ void load_kernel(const int *x, int n, int *out, int *held) {
  typedef cub::BlockLoad<int, BLOCK, ITEMS, loads> Load;
  typedef cub::BlockStore<int, BLOCK, ITEMS, stores> Store;
  __shared__ union {
    typename Load::TempStorage load;
    typename Store::TempStorage store;
  } storage;
  int start = blockIdx.x * BLOCK * ITEMS, items[ITEMS];
  Load(storage.load).Load(x + start, items, n - start, -1);
  for (int j = 0; j < ITEMS; j++) held[start + threadIdx.x * ITEMS + j] = items[j];
  __syncthreads();
  Store(storage.store).Store(out + start, items, n - start);
}

template <cub::BlockLoadAlgorithm loads, cub::BlockStoreAlgorithm stores>
static void check_load(bool striped) {
  enum { BLOCK = 64, ITEMS = 5, N = 1000, BLOCKS = 4, ALL = BLOCKS * BLOCK * ITEMS };
  int *x = new_array<int>(N), *out = new_array<int>(ALL), *held = new_array<int>(ALL);
  for (int i = 0; i < N; i++) x[i] = 3 * i + 1;
  load_kernel<BLOCK, ITEMS, loads, stores><<<BLOCKS, BLOCK>>>(x, N, out, held);
  finish();
  for (int i = 0; i < ALL; i++) {
    int tile = i / (BLOCK * ITEMS), thread = i % (BLOCK * ITEMS) / ITEMS, item = i % ITEMS;
    int from = striped ? tile * BLOCK * ITEMS + item * BLOCK + thread : i;
    assert_int_equal(held[i], from < N ? x[from] : -1);
    assert_int_equal(out[i], i < N ? x[i] : 0);
  }
  CHECK(cudaFree(x));
  CHECK(cudaFree(out));
  CHECK(cudaFree(held));
}

static void test_block_load_and_store(void **state) {
  (void)state;
  check_load<cub::BLOCK_LOAD_DIRECT, cub::BLOCK_STORE_DIRECT>(false);
  check_load<cub::BLOCK_LOAD_VECTORIZE, cub::BLOCK_STORE_TRANSPOSE>(false);
  check_load<cub::BLOCK_LOAD_TRANSPOSE, cub::BLOCK_STORE_VECTORIZE>(false);
  check_load<cub::BLOCK_LOAD_WARP_TRANSPOSE, cub::BLOCK_STORE_WARP_TRANSPOSE>(false);
  check_load<cub::BLOCK_LOAD_STRIPED, cub::BLOCK_STORE_STRIPED>(true);
}

template <class Key, int BLOCK, int ITEMS>
__global__ void sort_kernel(const Key *x, Key *up, Key *down, Key *striped, int *places, Key *low) {
  typedef cub::BlockRadixSort<Key, BLOCK, ITEMS> Sort;
  typedef cub::BlockRadixSort<Key, BLOCK, ITEMS, int> SortPairs;
  __shared__ union {
    typename Sort::TempStorage keys;
    typename SortPairs::TempStorage pairs;
  } storage;
  Key keys[ITEMS];
  int values[ITEMS], first = threadIdx.x * ITEMS;
  for (int j = 0; j < ITEMS; j++) keys[j] = x[first + j];
  Sort(storage.keys).Sort(keys);
  for (int j = 0; j < ITEMS; j++) up[first + j] = keys[j];
  __syncthreads();
  for (int j = 0; j < ITEMS; j++) keys[j] = x[first + j], values[j] = first + j;
  SortPairs(storage.pairs).SortDescending(keys, values);
  for (int j = 0; j < ITEMS; j++) down[first + j] = keys[j], places[first + j] = values[j];
  __syncthreads();
  for (int j = 0; j < ITEMS; j++) keys[j] = x[first + j];
  Sort(storage.keys).SortBlockedToStriped(keys);
  for (int j = 0; j < ITEMS; j++) striped[j * BLOCK + threadIdx.x] = keys[j];
  __syncthreads();
  for (int j = 0; j < ITEMS; j++) keys[j] = x[first + j];
  Sort(storage.keys).Sort(keys, 2, 6); /* these four bits only */
  for (int j = 0; j < ITEMS; j++) low[first + j] = keys[j];
}

static int bits_2_to_6(int key) { return key >> 2 & 15; }
/* Floats in the order of their bits; 4 bits of a float are of no interest. */
static int bits_2_to_6(float key) {
  unsigned bits;
  memcpy(&bits, &key, sizeof bits);
  bits = bits >> 31 ? ~bits : bits | 0x80000000u;
  return (int)(bits >> 2 & 15);
}

template <class Key>
static void check_block_sort(int spread) {
  enum { BLOCK = 96, ITEMS = 4, N = BLOCK * ITEMS };
  Key *x = new_array<Key>(N), *up = new_array<Key>(N), *down = new_array<Key>(N), *striped = new_array<Key>(N);
  Key *low = new_array<Key>(N);
  int *places = new_array<int>(N);
  for (int i = 0; i < N; i++) x[i] = (Key)((int)(next_random() >> 8) % spread - spread / 3);
  sort_kernel<Key, BLOCK, ITEMS><<<1, BLOCK>>>(x, up, down, striped, places, low);
  finish();
  std::vector<Key> sorted(x, x + N), by_bits(x, x + N);
  std::vector<int> order(N);
  for (int i = 0; i < N; i++) order[(size_t)i] = i;
  std::stable_sort(sorted.begin(), sorted.end());
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return x[a] > x[b]; });
  std::stable_sort(by_bits.begin(), by_bits.end(), [](Key a, Key b) { return bits_2_to_6(a) < bits_2_to_6(b); });
  for (int i = 0; i < N; i++) {
    assert_true(up[i] == sorted[(size_t)i]);
    assert_true(striped[i] == sorted[(size_t)i]);
    assert_true(down[i] == sorted[(size_t)(N - 1 - i)]);
    assert_int_equal(places[i], order[(size_t)i]);
    assert_true(low[i] == by_bits[(size_t)i]);
  }
  CHECK(cudaFree(x));
  CHECK(cudaFree(up));
  CHECK(cudaFree(down));
  CHECK(cudaFree(striped));
  CHECK(cudaFree(low));
  CHECK(cudaFree(places));
}

static void test_block_radix_sort(void **state) {
  (void)state;
  check_block_sort<int>(1 << 20);
  check_block_sort<int>(50); /* many equal ones */
  check_block_sort<float>(10000);
}

enum { EXCHANGE_BLOCK = 64, EXCHANGE_ITEMS = 3 };

__global__ void exchange_kernel(int *out) {
  typedef cub::BlockExchange<int, EXCHANGE_BLOCK, EXCHANGE_ITEMS> Exchange;
  __shared__ typename Exchange::TempStorage storage;
  int t = threadIdx.x, items[EXCHANGE_ITEMS], got[EXCHANGE_ITEMS], ranks[EXCHANGE_ITEMS];
  const int n = EXCHANGE_BLOCK * EXCHANGE_ITEMS;
  for (int j = 0; j < EXCHANGE_ITEMS; j++) items[j] = t * EXCHANGE_ITEMS + j;
  Exchange(storage).BlockedToStriped(items, got);
  for (int j = 0; j < EXCHANGE_ITEMS; j++) out[t * EXCHANGE_ITEMS + j] = got[j];
  __syncthreads();
  Exchange(storage).StripedToBlocked(got, got);
  for (int j = 0; j < EXCHANGE_ITEMS; j++) out[n + t * EXCHANGE_ITEMS + j] = got[j];
  __syncthreads();
  for (int j = 0; j < EXCHANGE_ITEMS; j++) ranks[j] = (items[j] * 5 + 2) % n;
  Exchange(storage).ScatterToBlocked(items, got, ranks);
  for (int j = 0; j < EXCHANGE_ITEMS; j++) out[2 * n + t * EXCHANGE_ITEMS + j] = got[j];
  __syncthreads();
  Exchange(storage).BlockedToWarpStriped(items, got);
  for (int j = 0; j < EXCHANGE_ITEMS; j++) out[3 * n + t * EXCHANGE_ITEMS + j] = got[j];
}

static void test_block_exchange(void **state) {
  (void)state;
  enum { N = EXCHANGE_BLOCK * EXCHANGE_ITEMS };
  int *out = new_array<int>(4 * N);
  exchange_kernel<<<1, EXCHANGE_BLOCK>>>(out);
  finish();
  for (int i = 0; i < N; i++) {
    int t = i / EXCHANGE_ITEMS, j = i % EXCHANGE_ITEMS;
    assert_int_equal(out[i], j * EXCHANGE_BLOCK + t);
    assert_int_equal(out[N + i], i);
    assert_int_equal(out[2 * N + (i * 5 + 2) % N], i);
    assert_int_equal(out[3 * N + i], t / 32 * 32 * EXCHANGE_ITEMS + j * 32 + t % 32);
  }
  CHECK(cudaFree(out));
}

__global__ void histogram_kernel(const unsigned char *x, unsigned *out, int *heads, int *neighbours) {
  typedef cub::BlockHistogram<unsigned char, 64, 4, 16, cub::BLOCK_HISTO_ATOMIC> Histogram;
  typedef cub::BlockDiscontinuity<unsigned char, 64> Discontinuity;
  typedef cub::BlockShuffle<int, 64> Shuffle;
  __shared__ typename Histogram::TempStorage storage;
  __shared__ typename Discontinuity::TempStorage discontinuity;
  __shared__ typename Shuffle::TempStorage shuffle;
  __shared__ unsigned counts[16];
  unsigned char items[4];
  int flags[4], t = threadIdx.x, moved;
  for (int j = 0; j < 4; j++) items[j] = x[4 * t + j];
  Histogram(storage).Histogram(items, counts);
  __syncthreads();
  Histogram(storage).Composite(items, counts); /* once more on top */
  __syncthreads();
  if (t < 16) out[t] = counts[t];
  Discontinuity(discontinuity).FlagHeads(flags, items, [](unsigned char a, unsigned char b) { return a != b; });
  for (int j = 0; j < 4; j++) heads[4 * t + j] = flags[j];
  Shuffle(shuffle).Rotate(t * 10, moved, 3);
  neighbours[t] = moved;
}

static void test_block_histogram_and_flags(void **state) {
  (void)state;
  enum { N = 256 };
  unsigned char *x = new_array<unsigned char>(N);
  unsigned *out = new_array<unsigned>(16), expected[16] = {};
  int *heads = new_array<int>(N), *neighbours = new_array<int>(64);
  for (int i = 0; i < N; i++) expected[x[i] = i % 3 ? x[i - 1] : (unsigned char)(next_random() >> 28)] += 2;
  histogram_kernel<<<1, 64>>>(x, out, heads, neighbours);
  finish();
  for (int b = 0; b < 16; b++) assert_int_equal(out[b], expected[b]);
  for (int i = 0; i < N; i++) assert_int_equal(heads[i] != 0, i == 0 || x[i] != x[i - 1]);
  for (int t = 0; t < 64; t++) assert_int_equal(neighbours[t], (t + 3) % 64 * 10);
  CHECK(cudaFree(x));
  CHECK(cudaFree(out));
  CHECK(cudaFree(heads));
  CHECK(cudaFree(neighbours));
}

/* ---- warps ---- */

template <int N>
__global__ void warp_kernel(const int *x, int *out) {
  typedef cub::WarpReduce<int, N> Reduce;
  typedef cub::WarpScan<int, N> Scan;
  __shared__ typename Reduce::TempStorage reduce[128 / N];
  __shared__ typename Scan::TempStorage scan[128 / N];
  int i = threadIdx.x, group = i / N, value, total;
  int sum = Reduce(reduce[group]).Sum(x[i]);
  __syncwarp();
  int greatest = Reduce(reduce[group]).Reduce(x[i], Greater());
  __syncwarp();
  int first = Reduce(reduce[group]).Sum(x[i], N / 2 + 1);
  __syncwarp();
  int segment = Reduce(reduce[group]).HeadSegmentedSum(x[i], i % 3 == 0);
  if (i % N == 0) {
    out[i] = sum;
    out[128 + i] = greatest;
    out[256 + i] = first;
  }
  out[384 + i] = i % N == 0 || i % 3 == 0 ? segment : 0;
  Scan(scan[group]).InclusiveSum(x[i], value);
  out[512 + i] = value;
  __syncwarp();
  Scan(scan[group]).ExclusiveSum(x[i], value, total);
  out[640 + i] = value;
  out[768 + i] = total;
  __syncwarp();
  Scan(scan[group]).ExclusiveScan(x[i], value, -100000, Greater());
  out[896 + i] = value;
  __syncwarp();
  out[1024 + i] = Scan(scan[group]).Broadcast(x[i], N - 1);
}

template <int N>
static void check_warp(void) {
  int *x = new_array<int>(128), *out = new_array<int>(9 * 128);
  for (int i = 0; i < 128; i++) x[i] = (int)(next_random() >> 18) - 8000;
  warp_kernel<N><<<1, 128>>>(x, out);
  finish();
  for (int g = 0; g < 128; g += N) {
    int sum = 0, greatest = -100000, first = 0, total = 0;
    for (int i = g; i < g + N; i++) total += x[i];
    for (int i = g; i < g + N; i++) {
      int segment = 0;
      for (int j = i; j < g + N && (j == i || j % 3 != 0); j++) segment += x[j];
      assert_int_equal(out[384 + i], i == g || i % 3 == 0 ? segment : 0);
      assert_int_equal(out[640 + i], sum);
      assert_int_equal(out[768 + i], total);
      assert_int_equal(out[896 + i], greatest);
      sum += x[i];
      greatest = std::max(greatest, x[i]);
      if (i - g < N / 2 + 1) first += x[i];
      assert_int_equal(out[512 + i], sum);
      assert_int_equal(out[1024 + i], x[g + N - 1]);
    }
    assert_int_equal(out[g], sum);
    assert_int_equal(out[128 + g], greatest);
    assert_int_equal(out[256 + g], first);
  }
  CHECK(cudaFree(x));
  CHECK(cudaFree(out));
}

static void test_warps(void **state) {
  (void)state;
  check_warp<32>();
  check_warp<16>();
  check_warp<8>();
  check_warp<4>();
}

/* Keys become unsigned words of the same order, and come back. */
template <class T>
static void expect_order(std::vector<T> ascending, cub::Category category) {
  typedef cub::Traits<T> Traits;
  typedef typename Traits::UnsignedBits Bits;
  assert_true(Traits::CATEGORY == category && Traits::PRIMITIVE);
  Bits before = 0;
  for (size_t i = 0; i < ascending.size(); i++) {
    Bits raw, key;
    memcpy(&raw, &ascending[i], sizeof raw);
    key = Traits::TwiddleIn(raw);
    assert_true(i == 0 || before < key);
    assert_true(Traits::TwiddleOut(key) == raw);
    before = key;
  }
  assert_true(Traits::Lowest() == ascending.front());
  assert_true(Traits::Max() == ascending.back());
}

static void test_traits(void **state) {
  (void)state;
  expect_order<int>({INT_MIN, -7, -1, 0, 1, 8, INT_MAX}, cub::SIGNED_INTEGER);
  expect_order<unsigned char>({0, 1, 127, 128, 255}, cub::UNSIGNED_INTEGER);
  expect_order<float>({-FLT_MAX, -2.5f, -1e-40f, 0.0f, 1e-40f, 2.5f, FLT_MAX}, cub::FLOATING_POINT);
  expect_order<double>({-DBL_MAX, -1.0, 0.0, 3.0, DBL_MAX}, cub::FLOATING_POINT);
  assert_true(cub::Traits<Digits>::CATEGORY == cub::NOT_A_NUMBER && !cub::Traits<Digits>::PRIMITIVE);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_traits),
      cmocka_unit_test(test_block_reduce),
      cmocka_unit_test(test_block_scan),
      cmocka_unit_test(test_block_load_and_store),
      cmocka_unit_test(test_block_radix_sort),
      cmocka_unit_test(test_block_exchange),
      cmocka_unit_test(test_block_histogram_and_flags),
      cmocka_unit_test(test_warps),
  };
  return cmocka_run_group_tests_name("cub", tests, NULL, NULL);
}
