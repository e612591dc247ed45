/* cub_test.cu - CUB's collectives of blocks and warps, and its device-wide algorithms, against plain loops. The same program
 * passes with NVIDIA's CUB on a GPU. */
#include <cub/block/block_shuffle.cuh>
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

/* ---- device-wide ---- */

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
  for (int n : sizes) { /* 4, 8 and 1 passes of a byte */
    check_device_sort<int>(n, 1ll << 31);
    check_device_sort<float>(n, 2000000);
    check_device_sort<long long>(n, 1ll << 40);
    check_device_sort<unsigned char>(n, 256);
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
  enum { N = 1000 };
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
      cmocka_unit_test(test_block_reduce),
      cmocka_unit_test(test_block_scan),
      cmocka_unit_test(test_block_load_and_store),
      cmocka_unit_test(test_block_radix_sort),
      cmocka_unit_test(test_block_exchange),
      cmocka_unit_test(test_block_histogram_and_flags),
      cmocka_unit_test(test_warps),
      cmocka_unit_test(test_device_reduce),
      cmocka_unit_test(test_a_long_sum_of_floats),
      cmocka_unit_test(test_device_segmented_reduce),
      cmocka_unit_test(test_device_scan),
      cmocka_unit_test(test_device_radix_sort),
      cmocka_unit_test(test_a_sort_by_some_bits),
      cmocka_unit_test(test_device_select),
      cmocka_unit_test(test_device_partition),
      cmocka_unit_test(test_device_runs),
      cmocka_unit_test(test_device_histogram),
      cmocka_unit_test(test_device_merge_sort),
      cmocka_unit_test(test_too_little_storage_is_refused),
  };
  return cmocka_run_group_tests_name("cub", tests, NULL, NULL);
}
