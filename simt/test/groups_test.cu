/* groups_test.cu - cooperative groups: blocks, tiles of every size, coalesced groups, partitions, reductions, scans,
 * the grid. The same program passes on a GPU (compute capability 8.0 and up). */
#include "collective.h"

#include <cooperative_groups.h>
#include <cooperative_groups/memcpy_async.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>
#include <cuda/barrier>

#include <type_traits>

namespace cg = cooperative_groups;

/* ---- a block ---- */

__global__ void block_kernel(unsigned *out) {
  cg::thread_block block = cg::this_thread_block();
  __shared__ unsigned last;
  if (block.thread_rank() == block.size() - 1) last = block.thread_rank();
  block.sync();
  unsigned i = block.thread_rank() + block.size() * (block.group_index().x + gridDim.x * block.group_index().y);
  dim3 index = block.thread_index();
  bool same = index.x == threadIdx.x && index.y == threadIdx.y && index.z == threadIdx.z &&
              block.group_dim().x == blockDim.x && block.dim_threads().y == blockDim.y &&
              block.num_threads() == blockDim.x * blockDim.y * blockDim.z &&
              block.thread_rank() == threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z) &&
              cg::thread_rank(block) == block.thread_rank() && cg::group_size(block) == block.size();
  cg::sync(block);
  out[i] = same ? last + 1 : 0;
}

static void test_a_block(void **state) {
  (void)state;
  unsigned *out = new_array<unsigned>(6 * 105);
  block_kernel<<<dim3(3, 2), dim3(3, 5, 7)>>>(out);
  finish();
  for (int i = 0; i < 6 * 105; i++) assert_int_equal(out[i], 105);
  CHECK(cudaFree(out));
}

/* ---- tiles ---- */

/* What a tile of N threads does, in a block of any size; results by the plain rules of the manual. out (32 rows,
 * threads) */
template <unsigned N, class Tile>
__device__ void use_tile(const Tile &tile, int *out, int rank, int threads) {
  int value = rank * 3 + 1, row = 0;
  out[threads * row++] = (int)tile.thread_rank();
  out[threads * row++] = (int)tile.size();
  out[threads * row++] = (int)tile.meta_group_rank();
  out[threads * row++] = (int)tile.meta_group_size();
  out[threads * row++] = tile.shfl(value, N - 1);
  out[threads * row++] = tile.shfl_up(value, 1);
  out[threads * row++] = tile.shfl_down(value, 2);
  out[threads * row++] = tile.shfl_xor(value, N / 2);
  out[threads * row++] = tile.any(value == 31) != 0;
  out[threads * row++] = tile.all(value < 100) != 0;
  out[threads * row++] = (int)tile.ballot(rank % 3 == 0);
  out[threads * row++] = (int)tile.match_any(rank % 5);
  int predicate;
  out[threads * row++] = (int)tile.match_all(rank / (int)N, predicate);
  out[threads * row++] = predicate != 0;
  out[threads * row++] = cg::reduce(tile, value, cg::plus<int>());
  out[threads * row++] = cg::reduce(tile, -value, cg::less<int>());
  out[threads * row++] = cg::reduce(tile, value, cg::greater<int>());
  out[threads * row++] = (int)cg::reduce(tile, 1u << (rank % 32), cg::bit_or<unsigned>());
  out[threads * row++] = cg::reduce(tile, value, [](int a, int b) { return max(a % 17, b % 17); });
  out[threads * row++] = cg::inclusive_scan(tile, value);
  out[threads * row++] = cg::exclusive_scan(tile, value);
  out[threads * row++] = cg::inclusive_scan(tile, -value, cg::less<int>());
  tile.sync();
  cg::sync(tile);
}
enum { TILE_ROWS = 22 };

static void expect_tile(const int *out, int n, int rank, int threads) {
  int first = rank / n * n, t = rank - first, row = 0, sum = 0, any = 0, all = 1, inclusive = 0, folded = -1;
  int ballot = 0, match = 0, bits = 0;
  for (int other = first; other < first + n; other++) {
    int v = other * 3 + 1;
    sum += v;
    any |= v == 31;
    all &= v < 100;
    ballot |= (other % 3 == 0) << (other - first);
    match |= (other % 5 == rank % 5) << (other - first);
    bits |= (int)(1u << (other % 32));
    if (other <= rank) inclusive += v;
    folded = n == 1 ? v : v % 17 > folded ? v % 17 : folded;
  }
  const int value = rank * 3 + 1;
  const int expected[TILE_ROWS] = {t,
                                   n,
                                   rank / n,
                                   (threads + n - 1) / n,
                                   (first + n - 1) * 3 + 1,
                                   t < 1 ? value : value - 3,
                                   t + 2 >= n ? value : value + 6,
                                   (first + (t ^ (n / 2))) * 3 + 1,
                                   any,
                                   all,
                                   ballot,
                                   match,
                                   n == 32 ? -1 : (1 << n) - 1,
                                   1,
                                   sum,
                                   -((first + n - 1) * 3 + 1),
                                   (first + n - 1) * 3 + 1,
                                   bits,
                                   folded,
                                   inclusive,
                                   inclusive - value,
                                   -value};
  for (row = 0; row < TILE_ROWS; row++)
    if (out[threads * row + rank] != expected[row])
      fail_msg("tile of %d, thread %d of %d, row %d: %d, not %d", n, rank, threads, row, out[threads * row + rank],
               expected[row]);
}

template <unsigned N>
__global__ void tile_kernel(int *out) {
  cg::thread_block block = cg::this_thread_block();
  auto tile = cg::tiled_partition<N>(block);
  static_assert(decltype(tile)::num_threads() == N, "");
  use_tile<N>(tile, out + block.thread_rank(), (int)block.thread_rank(), (int)block.size());
}

template <unsigned N>
static void check_tile(void) {
  const dim3 blocks[] = {dim3(32), dim3(96), dim3(16, 16), dim3(8, 4, 3)};
  for (const dim3 &block : blocks) {
    int threads = (int)(block.x * block.y * block.z), *out = new_array<int>((size_t)TILE_ROWS * (size_t)threads);
    tile_kernel<N><<<1, block>>>(out);
    finish();
    for (int rank = 0; rank < threads; rank++) expect_tile(out, N, rank, threads);
    CHECK(cudaFree(out));
  }
}

static void test_tiles_of_every_size(void **state) {
  (void)state;
  check_tile<1>();
  check_tile<2>();
  check_tile<4>();
  check_tile<8>();
  check_tile<16>();
  check_tile<32>();
}

/* Each tile goes its own way, as often as it likes; lanes of other tiles of the warp are not waited for. */
template <unsigned N>
__global__ void divergent_tiles_kernel(int *out) {
  cg::thread_block_tile<N> tile = cg::tiled_partition<N>(cg::this_thread_block());
  int sum = 0;
  for (unsigned turn = 0; turn <= tile.meta_group_rank() % 5; turn++) sum += tile.shfl((int)threadIdx.x, (int)turn % N);
  if (tile.meta_group_rank() % 2) sum = cg::reduce(tile, sum, cg::plus<int>());
  out[threadIdx.x] = sum;
}

template <unsigned N>
static void check_divergent_tiles(void) {
  int *out = new_array<int>(128);
  divergent_tiles_kernel<N><<<1, 128>>>(out);
  finish();
  for (int i = 0; i < 128; i++) {
    int group = i / (int)N, expected = 0;
    for (int turn = 0; turn <= group % 5; turn++) expected += group * (int)N + turn % (int)N;
    if (group % 2) expected *= (int)N;
    assert_int_equal(out[i], expected);
  }
  CHECK(cudaFree(out));
}

static void test_tiles_diverge(void **state) {
  (void)state;
  check_divergent_tiles<1>();
  check_divergent_tiles<4>();
  check_divergent_tiles<16>();
  check_divergent_tiles<32>();
}

/* A tile is a tile whatever it was cut from. */
__device__ int sum_of(cg::thread_block_tile<8> tile, int value) { return cg::reduce(tile, value, cg::plus<int>()); }
template <unsigned N, class Parent>
__device__ int last_of(const cg::thread_block_tile<N, Parent> &tile, int value) {
  return tile.shfl(value, N - 1);
}

__global__ void parents_kernel(int *out) {
  cg::thread_block block = cg::this_thread_block();
  auto warp = cg::tiled_partition<32>(block);
  auto half = cg::tiled_partition<16>(warp);
  auto eight = cg::tiled_partition<8>(half);
  auto direct = cg::tiled_partition<8>(block);
  cg::thread_block_tile<8> plain = eight;
  cg::thread_block_tile<4, cg::thread_block_tile<8>> four = cg::tiled_partition<4>(plain);
  int i = threadIdx.x;
  out[i] = sum_of(eight, i) == sum_of(direct, i) && sum_of(plain, i) == sum_of(direct, i);
  out[64 + i] = last_of(eight, i) == (i | 7) && last_of(half, i) == (i | 15) && last_of(four, i) == (i | 3);
  out[128 + i] = (int)(eight.meta_group_rank() + 10 * eight.meta_group_size() + 100 * direct.meta_group_rank() +
                       10000 * direct.meta_group_size());
  cg::thread_block_tile<1> alone = cg::this_thread();
  out[192 + i] = alone.size() == 1 && alone.thread_rank() == 0 && alone.shfl(i, 0) == i;
}

static void test_tiles_of_tiles(void **state) {
  (void)state;
  int *out = new_array<int>(256);
  parents_kernel<<<1, 64>>>(out);
  finish();
  for (int i = 0; i < 64; i++) {
    assert_int_equal(out[i], 1);
    assert_int_equal(out[64 + i], 1);
    assert_int_equal(out[128 + i], i / 8 % 2 + 10 * 2 + 100 * (i / 8) + 10000 * 8);
    assert_int_equal(out[192 + i], 1);
  }
  CHECK(cudaFree(out));
}

/* Shuffles of a tile move any type. */
struct Wide {
  double a;
  int b[4];
  char c;
};

__global__ void wide_kernel(int *ok) {
  auto tile = cg::tiled_partition<16>(cg::this_thread_block());
  int i = threadIdx.x, from = i / 16 * 16 + 5;
  Wide w = {i * 0.5, {i, -i, 7 * i, 1}, (char)i}, got = tile.shfl(w, 5);
  char c = tile.shfl_xor((char)(i * 3), 1);
  static_assert(std::is_same<decltype(tile.shfl((char)1, 0)), char>::value, "");
  static_assert(std::is_same<decltype(tile.shfl_down(1.0, 1)), double>::value, "");
  static_assert(std::is_same<decltype(cg::reduce(tile, 1.0f, cg::plus<float>())), float>::value, "");
  ok[i] = got.a == from * 0.5 && got.b[0] == from && got.b[1] == -from && got.b[2] == 7 * from && got.c == (char)from &&
          c == (char)((i ^ 1) * 3) && tile.shfl_down(i * 1e200, 3) == (i % 16 < 13 ? i + 3 : i) * 1e200;
}

static void test_tiles_move_any_type(void **state) {
  (void)state;
  int *ok = new_array<int>(32);
  wide_kernel<<<1, 32>>>(ok);
  finish();
  for (int i = 0; i < 32; i++) assert_int_equal(ok[i], 1);
  CHECK(cudaFree(ok));
}

struct Range {
  float low, high;
};

__global__ void reduce_types_kernel(float *out) {
  auto warp = cg::tiled_partition<32>(cg::this_thread_block());
  int i = threadIdx.x;
  out[i] = cg::reduce(warp, i * 0.25f, cg::plus<float>());
  out[32 + i] = (float)cg::reduce(warp, i * 0.125, cg::greater<double>());
  out[64 + i] = (float)cg::reduce(warp, (long long)i << 33, cg::plus<long long>()) * 1e-9f;
  Range mine = {(float)(i * 7 % 32), (float)(i * 5 % 32)}, all = cg::reduce(warp, mine, [](Range a, Range b) {
                                                             return Range{fminf(a.low, b.low), fmaxf(a.high, b.high)};
                                                           });
  out[96 + i] = all.low * 100 + all.high;
  out[128 + i] = (float)cg::reduce(warp, (unsigned)i * 3u, cg::bit_xor<unsigned>());
  out[160 + i] = (float)cg::reduce(warp, (unsigned)i | 64u, cg::bit_and<unsigned>());
}

static void test_reductions_of_any_type(void **state) {
  (void)state;
  float *out = new_array<float>(192);
  reduce_types_kernel<<<1, 32>>>(out);
  finish();
  unsigned odd = 0;
  for (unsigned i = 0; i < 32; i++) odd ^= 3 * i;
  for (int i = 0; i < 32; i++) {
    assert_true(out[i] == 124.0f);
    assert_true(out[32 + i] == 3.875f);
    assert_true(out[64 + i] == (float)(496ll << 33) * 1e-9f);
    assert_true(out[96 + i] == 31.0f);
    assert_true(out[128 + i] == (float)odd);
    assert_true(out[160 + i] == 64.0f);
  }
  CHECK(cudaFree(out));
}

/* ---- any group, by its base ---- */

__device__ int reduce_in_memory(cg::thread_group g, int *x, int value) {
  int rank = (int)g.thread_rank();
  for (int half = (int)g.size() / 2; half > 0; half /= 2) {
    x[rank] = value;
    g.sync();
    if (rank < half) value += x[rank + half];
    g.sync();
  }
  return value;
}
__device__ int count_of(const cg::thread_group &g) { return (int)g.size(); }

__global__ void base_kernel(int *out) {
  __shared__ int x[64];
  cg::thread_block block = cg::this_thread_block();
  int i = threadIdx.x;
  int total = reduce_in_memory(block, x, i);
  if (i == 0) out[0] = total;
  block.sync();
  cg::thread_group tile = cg::tiled_partition(block, 16);
  int part = reduce_in_memory(tile, x + i / 16 * 16, i);
  if (tile.thread_rank() == 0) out[1 + i / 16] = part;
  block.sync();
  auto fixed = cg::tiled_partition<32>(block);
  part = reduce_in_memory(fixed, x + i / 32 * 32, i);
  if (fixed.thread_rank() == 0) out[5 + i / 32] = part;
  cg::thread_group quarter = cg::tiled_partition(tile, 4);
  block.sync();
  part = reduce_in_memory(quarter, x + i / 4 * 4, i);
  if (quarter.thread_rank() == 0) out[16 + i / 4] = part;
  if (i == 63) out[7] = count_of(block) + 100 * count_of(tile) + 10000 * count_of(fixed) + 1000000 * count_of(quarter);
}

static void test_a_group_by_its_base(void **state) {
  (void)state;
  int *out = new_array<int>(32);
  base_kernel<<<1, 64>>>(out);
  finish();
  assert_int_equal(out[0], 63 * 32);
  for (int t = 0; t < 4; t++) assert_int_equal(out[1 + t], 16 * 16 * t + 120);
  for (int t = 0; t < 2; t++) assert_int_equal(out[5 + t], 32 * 32 * t + 496);
  for (int t = 0; t < 16; t++) assert_int_equal(out[16 + t], 16 * t + 6);
  assert_int_equal(out[7], 64 + 1600 + 320000 + 4000000);
  CHECK(cudaFree(out));
}

/* ---- coalesced groups ---- */

__global__ void coalesced_kernel(const int *x, int n, int *count, int *out, int *ok) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n && x[i] > 0) { /* keep the positive ones: one atomic for a group, whoever is in it */
    cg::coalesced_group g = cg::coalesced_threads();
    int place = 0;
    if (g.thread_rank() == 0) place = atomicAdd(count, (int)g.size());
    place = g.shfl(place, 0) + (int)g.thread_rank();
    out[place] = x[i];
    int members = cg::reduce(g, 1, cg::plus<int>()), before = cg::exclusive_scan(g, 1);
    unsigned all = g.ballot(1), last = g.shfl(g.thread_rank(), (int)g.size() - 1);
    int up = g.shfl_up(i, 1), down = g.shfl_down(i, 1);
    ok[i] = members == (int)g.size() && before == (int)g.thread_rank() && __popc(all) == members &&
            (all & (all + 1)) == 0 && last == g.size() - 1 && g.all(x[i] > 0) && !g.any(x[i] <= 0) &&
            (g.thread_rank() == 0 ? up == i : up < i) && (g.thread_rank() == g.size() - 1 ? down == i : down > i);
    g.sync();
  } else if (i < n) {
    ok[i] = 1;
  }
}

static void test_coalesced_threads(void **state) {
  (void)state;
  enum { N = 1000 };
  int *x = new_array<int>(N), *out = new_array<int>(N), *ok = new_array<int>(N), *count = new_array<int>(1);
  int positive = 0;
  long long sum = 0, square = 0;
  for (int i = 0; i < N; i++) {
    x[i] = (int)(next_random() >> 20) - 2048;
    if (x[i] <= 0) continue;
    positive++;
    sum += x[i];
    square += (long long)x[i] * x[i];
  }
  coalesced_kernel<<<(N + 127) / 128, 128>>>(x, N, count, out, ok);
  finish();
  assert_int_equal(*count, positive);
  for (int i = 0; i < positive; i++) {
    assert_true(out[i] > 0);
    sum -= out[i];
    square -= (long long)out[i] * out[i];
  }
  assert_true(sum == 0 && square == 0);
  for (int i = 0; i < N; i++) assert_int_equal(ok[i], 1);
  CHECK(cudaFree(x));
  CHECK(cudaFree(out));
  CHECK(cudaFree(ok));
  CHECK(cudaFree(count));
}

/* Groups with the same label; in each, every operation by rank. out (12 rows, 64) */
__global__ void labeled_kernel(const int *label, int *out) {
  int i = threadIdx.x, row = 0;
  auto warp = cg::tiled_partition<32>(cg::this_thread_block());
  cg::coalesced_group g = cg::labeled_partition(warp, label[i]);
  int rank = (int)g.thread_rank(), size = (int)g.size();
  out[64 * row++ + i] = rank;
  out[64 * row++ + i] = size;
  out[64 * row++ + i] = g.shfl(i, size - 1);
  out[64 * row++ + i] = g.shfl_up(i, 1);
  out[64 * row++ + i] = g.shfl_down(i, 2);
  out[64 * row++ + i] = (int)g.ballot(i & 1);
  out[64 * row++ + i] = (int)g.match_any(i % 3);
  out[64 * row++ + i] = cg::reduce(g, i, cg::plus<int>());
  out[64 * row++ + i] = cg::inclusive_scan(g, i);
  out[64 * row++ + i] = (int)g.meta_group_rank() * 100 + (int)g.meta_group_size();
  cg::coalesced_group pair = cg::tiled_partition(g, 2);
  out[64 * row++ + i] = cg::reduce(pair, i, cg::plus<int>());
  cg::coalesced_group odd = cg::binary_partition(g, i & 1);
  out[64 * row++ + i] = cg::reduce(odd, 1, cg::plus<int>()) + 100 * (int)odd.thread_rank();
}

static void test_labeled_partitions(void **state) {
  (void)state;
  int *label = new_array<int>(64), *out = new_array<int>(64 * 12);
  for (int round = 0; round < 30; round++) {
    for (int i = 0; i < 64; i++) label[i] = (int)(next_random() >> 8) % (1 + round % 7) - 2;
    labeled_kernel<<<1, 64>>>(label, out);
    finish();
    for (int i = 0; i < 64; i++) {
      int first = i / 32 * 32, members[32], size = 0, rank = 0, ballot = 0, match = 0, sum = 0, before = 0;
      int parity = 0, parity_rank = 0, labels = 0, label_rank = 0;
      for (int other = first; other < first + 32; other++) {
        int leader = 1; /* the first of its label? */
        for (int o = first; o < other; o++) leader &= label[o] != label[other];
        labels += leader;
        if (label[other] != label[i]) continue;
        if (other < i) rank = size + 1;
        ballot |= (other & 1) << size;
        match |= (other % 3 == i % 3) << size;
        sum += other;
        if (other <= i) before += other;
        parity += (other & 1) == (i & 1);
        parity_rank += (other & 1) == (i & 1) && other < i;
        members[size++] = other;
      }
      for (int other = first; other < members[0]; other++) {
        int leader = 1;
        for (int o = first; o < other; o++) leader &= label[o] != label[other];
        label_rank += leader;
      }
      int mate = rank ^ 1;
      const int expected[12] = {rank,
                                size,
                                members[size - 1],
                                rank > 0 ? members[rank - 1] : i,
                                rank + 2 < size ? members[rank + 2] : i,
                                ballot,
                                match,
                                sum,
                                before,
                                label_rank * 100 + labels,
                                i + (mate < size ? members[mate] : 0),
                                parity + 100 * parity_rank};
      for (int row = 0; row < 12; row++)
        if (out[64 * row + i] != expected[row])
          fail_msg("round %d thread %d row %d: %d, not %d", round, i, row, out[64 * row + i], expected[row]);
    }
  }
  CHECK(cudaFree(label));
  CHECK(cudaFree(out));
}

__global__ void invoke_kernel(int *calls, int *out) {
  auto tile = cg::tiled_partition<16>(cg::this_thread_block());
  cg::invoke_one(tile, [&] { atomicAdd(calls, 1); });
  out[threadIdx.x] =
      cg::invoke_one_broadcast(tile, [&] { return (int)(atomicAdd(calls + 1, 0) + tile.meta_group_rank()); });
}

static void test_one_thread_for_all(void **state) {
  (void)state;
  int *calls = new_array<int>(2), *out = new_array<int>(64);
  invoke_kernel<<<1, 64>>>(calls, out);
  finish();
  assert_int_equal(calls[0], 4);
  for (int i = 0; i < 64; i++) assert_int_equal(out[i], i / 16);
  CHECK(cudaFree(calls));
  CHECK(cudaFree(out));
}

/* ---- copies ---- */

__global__ void copy_kernel(const float *from, const char *bytes, float *to, char *to_bytes) {
  __shared__ alignas(16) float x[200];
  __shared__ char c[77];
  cg::thread_block block = cg::this_thread_block();
  cg::memcpy_async(block, x, from, sizeof(float) * 200);
  cg::memcpy_async(block, c, bytes, 77);
  cg::wait(block);
  for (int i = threadIdx.x; i < 200; i += blockDim.x) to[i] = x[199 - i];
  for (int i = threadIdx.x; i < 77; i += blockDim.x) to_bytes[i] = c[76 - i];
  block.sync();
  auto tile = cg::tiled_partition<32>(block); /* each tile for itself, in two stages */
  float *mine = x + 64 * tile.meta_group_rank();
  cg::memcpy_async(tile, mine, from, cuda::aligned_size_t<16>(128));
  cg::memcpy_async(tile, mine + 32, from + 100, sizeof(float) * 32);
  cg::wait_prior<1>(tile);
  float first = mine[31 - tile.thread_rank()];
  cg::wait(tile);
  to[200 + threadIdx.x] = first + 1000 * mine[32 + (tile.thread_rank() + 1) % 32];
}

static void test_copies(void **state) {
  (void)state;
  float *from = new_array<float>(200), *to = new_array<float>(264);
  char *bytes = new_array<char>(77), *to_bytes = new_array<char>(77);
  for (int i = 0; i < 200; i++) from[i] = (float)(i * i % 251);
  for (int i = 0; i < 77; i++) bytes[i] = (char)(i * 7);
  copy_kernel<<<1, 64>>>(from, bytes, to, to_bytes);
  finish();
  for (int i = 0; i < 200; i++) assert_true(to[i] == from[199 - i]);
  for (int i = 0; i < 77; i++) assert_int_equal(to_bytes[i], bytes[76 - i]);
  for (int i = 0; i < 64; i++) assert_true(to[200 + i] == from[31 - i % 32] + 1000 * from[100 + (i % 32 + 1) % 32]);
  CHECK(cudaFree(from));
  CHECK(cudaFree(to));
  CHECK(cudaFree(bytes));
  CHECK(cudaFree(to_bytes));
}

/* ---- the grid ---- */

__global__ void grid_kernel(int *x, int n, int turns, int *ok) {
  cg::grid_group grid = cg::this_grid();
  unsigned long long block = blockIdx.x + (unsigned long long)gridDim.x * blockIdx.y;
  if (grid.thread_rank() == 0)
    *ok = grid.is_valid() && grid.num_blocks() == gridDim.x * gridDim.y && grid.size() == grid.num_threads();
  if (grid.block_rank() != block || grid.thread_rank() != block * blockDim.x + threadIdx.x) *ok = 0;
  /* Each turn, every element becomes the sum of its neighbours: what other blocks wrote in the turn before. */
  for (int turn = 0; turn < turns; turn++) {
    int *from = x + turn % 2 * n, *to = x + (turn + 1) % 2 * n;
    for (unsigned long long i = grid.thread_rank(); i < n; i += grid.size())
      to[i] = (from[(i + n - 1) % n] + from[(i + 1) % n]) % 1009;
    grid.sync();
  }
}

static void test_the_grid_meets(void **state) {
  (void)state;
  enum { N = 500, TURNS = 11 };
  int *x = new_array<int>(2 * N), *ok = new_array<int>(1), n = N, turns = TURNS;
  static int now[N], next[N];
  for (int i = 0; i < N; i++) x[i] = now[i] = i * 37 % 101;
  void *arguments[] = {&x, &n, &turns, &ok};
  CHECK(cudaLaunchCooperativeKernel((void *)grid_kernel, dim3(3, 2), dim3(48), arguments, 0, 0));
  finish();
  for (int turn = 0; turn < TURNS; turn++) {
    for (int i = 0; i < N; i++) next[i] = (now[(i + N - 1) % N] + now[(i + 1) % N]) % 1009;
    memcpy(now, next, sizeof now);
  }
  for (int i = 0; i < N; i++) assert_int_equal(x[TURNS % 2 * N + i], now[i]);
  assert_int_equal(*ok, 1);
  CHECK(cudaFree(x));
  CHECK(cudaFree(ok));
}

__global__ void plain_grid_kernel(unsigned long long *out) {
  cg::grid_group grid = cg::this_grid();
  out[grid.thread_rank()] = grid.thread_rank() + 1;
}

static void test_a_grid_of_a_plain_launch(void **state) {
  (void)state;
  unsigned long long *out = new_array<unsigned long long>(2 * 3 * 20);
  plain_grid_kernel<<<dim3(2, 3), dim3(4, 5)>>>(out);
  finish();
  for (unsigned long long i = 0; i < 120; i++) assert_int_equal(out[i], i + 1);
  CHECK(cudaFree(out));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_a_block),
      cmocka_unit_test(test_tiles_of_every_size),
      cmocka_unit_test(test_tiles_diverge),
      cmocka_unit_test(test_tiles_of_tiles),
      cmocka_unit_test(test_tiles_move_any_type),
      cmocka_unit_test(test_reductions_of_any_type),
      cmocka_unit_test(test_a_group_by_its_base),
      cmocka_unit_test(test_coalesced_threads),
      cmocka_unit_test(test_labeled_partitions),
      cmocka_unit_test(test_one_thread_for_all),
      cmocka_unit_test(test_copies),
      cmocka_unit_test(test_the_grid_meets),
      cmocka_unit_test(test_a_grid_of_a_plain_launch),
  };
  return cmocka_run_group_tests_name("groups", tests, NULL, NULL);
}
