/* warp_test.cu - shuffles, votes, matches and reductions of a warp, against what CUDA's manual says of them. The same
 * program passes on a GPU (compute capability 8.0 and up). */
#include "collective.h"

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <type_traits>

#define FULL 0xffffffffu

/* ---- shuffles: every mode, width and operand ---- */

enum { INDEX, UP, DOWN, XOR, MODES };
static const int widths[] = {1, 2, 4, 8, 16, 32};
enum { WIDTHS = 6, OPERANDS = 40 }; /* operands beyond 31 too */

template <class T>
__device__ T shuffle(int mode, T value, int operand, int width) {
  switch (mode) {
    case INDEX:
      return __shfl_sync(FULL, value, operand, width);
    case UP:
      return __shfl_up_sync(FULL, value, (unsigned)operand, width);
    case DOWN:
      return __shfl_down_sync(FULL, value, (unsigned)operand, width);
    default:
      return __shfl_xor_sync(FULL, value, operand, width);
  }
}

/* out (MODES, WIDTHS, OPERANDS, 32) */
__global__ void shuffle_kernel(int *out) {
  int lane = threadIdx.x;
  for (int mode = 0; mode < MODES; mode++)
    for (int w = 0; w < WIDTHS; w++)
      for (int operand = 0; operand < OPERANDS; operand++, out += 32)
        out[lane] = shuffle(mode, 100 + lane, operand, 1 << w);
}

/* The lane that is read; the own one where that lies outside the segment. Operands count modulo 32. */
static int source_lane(int mode, int lane, int operand, int width) {
  int first = lane / width * width, end = first + width;
  operand %= 32;
  int source = mode == INDEX  ? first + operand % width
               : mode == UP   ? lane - operand
               : mode == DOWN ? lane + operand
                              : (lane ^ operand);
  if (mode == UP) return source < first ? lane : source;
  return source >= end ? lane : source; /* xor may reach back */
}

static void test_every_mode_width_and_operand(void **state) {
  (void)state;
  int *out = new_array<int>(MODES * WIDTHS * OPERANDS * 32), *p = out;
  shuffle_kernel<<<1, 32>>>(out);
  finish();
  for (int mode = 0; mode < MODES; mode++)
    for (int w = 0; w < WIDTHS; w++)
      for (int operand = 0; operand < OPERANDS; operand++)
        for (int lane = 0; lane < 32; lane++, p++)
          if (*p != 100 + source_lane(mode, lane, operand, widths[w]))
            fail_msg("mode %d width %d operand %d lane %d: got the value of lane %d, not of %d", mode, widths[w],
                     operand, lane, *p - 100, source_lane(mode, lane, operand, widths[w]));
  CHECK(cudaFree(out));
}

__global__ void negative_index_kernel(int *out) {
  out[threadIdx.x] = __shfl_sync(FULL, (int)threadIdx.x, (int)threadIdx.x - 3, 8);
}

static void test_a_source_counts_modulo_the_width(void **state) {
  (void)state;
  int *out = new_array<int>(32);
  negative_index_kernel<<<1, 32>>>(out);
  finish();
  for (int lane = 0; lane < 32; lane++) assert_int_equal(out[lane], lane / 8 * 8 + (lane + 32 - 3) % 8);
  CHECK(cudaFree(out));
}

/* Each type keeps all its bits: the value of lane l is made of l's bits in every byte. */
template <class T>
__global__ void types_kernel(const T *in, T *out) {
  int lane = threadIdx.x;
  T value = in[lane];
  out[lane] = __shfl_sync(FULL, value, (lane * 7 + 3) % 32);
  out[32 + lane] = __shfl_up_sync(FULL, value, 5u);
  out[64 + lane] = __shfl_down_sync(FULL, value, 9u);
  out[96 + lane] = __shfl_xor_sync(FULL, value, 21);
}

template <class T>
static void check_type(const char *name) {
  T *in = new_array<T>(32), *out = new_array<T>(128);
  unsigned char *bytes = (unsigned char *)in;
  for (size_t i = 0; i < 32 * sizeof(T); i++) bytes[i] = (unsigned char)(next_random() >> 20);
  types_kernel<<<1, 32>>>(in, out);
  finish();
  for (int lane = 0; lane < 32; lane++) {
    int from[4] = {(lane * 7 + 3) % 32, lane < 5 ? lane : lane - 5, lane + 9 > 31 ? lane : lane + 9, lane ^ 21};
    for (int mode = 0; mode < 4; mode++)
      if (memcmp(&out[32 * mode + lane], &in[from[mode]], sizeof(T)) != 0)
        fail_msg("%s: mode %d, lane %d: the bits are not those of lane %d", name, mode, lane, from[mode]);
  }
  CHECK(cudaFree(in));
  CHECK(cudaFree(out));
}

static void test_every_type_keeps_its_bits(void **state) {
  (void)state;
  check_type<int>("int");
  check_type<unsigned>("unsigned");
  check_type<long>("long");
  check_type<unsigned long>("unsigned long");
  check_type<long long>("long long");
  check_type<unsigned long long>("unsigned long long");
  check_type<float>("float");
  check_type<double>("double");
  check_type<__half>("half");
  check_type<__half2>("half2");
  check_type<__nv_bfloat16>("bfloat16");
  check_type<__nv_bfloat162>("bfloat162");
}

enum Colour { RED, GREEN };

/* The overloads are nvcc's: what is narrower than an int becomes one. */
__global__ void conversions_kernel(int *out) {
  int lane = threadIdx.x;
  static_assert(std::is_same<decltype(__shfl_sync(FULL, (char)1, 0)), int>::value, "");
  static_assert(std::is_same<decltype(__shfl_sync(FULL, (unsigned char)1, 0)), int>::value, "");
  static_assert(std::is_same<decltype(__shfl_sync(FULL, (short)1, 0)), int>::value, "");
  static_assert(std::is_same<decltype(__shfl_xor_sync(FULL, true, 1)), int>::value, "");
  static_assert(std::is_same<decltype(__shfl_up_sync(FULL, (size_t)1, 1)), unsigned long>::value, "");
  static_assert(std::is_same<decltype(__shfl_down_sync(FULL, 1.0, 1)), double>::value, "");
  static_assert(std::is_same<decltype(__shfl_down_sync(FULL, 1.0f, 1)), float>::value, "");
  static_assert(std::is_same<decltype(__reduce_add_sync(FULL, 1)), int>::value, "");
  static_assert(std::is_same<decltype(__reduce_max_sync(FULL, 1u)), unsigned>::value, "");
  static_assert(std::is_same<decltype(__ballot_sync(FULL, 1)), unsigned>::value, "");
  char c = (char)(lane - 16);
  out[lane] = __shfl_sync(FULL, c, 31 - lane);
  out[32 + lane] = __shfl_sync(FULL, lane % 3 == 0, (lane + 1) % 32); /* bool */
  out[64 + lane] = __shfl_sync(FULL, (short)(-lane), 31);
  out[96 + lane] = (int)(__shfl_sync(FULL, lane * 1e300, 3) == 3e300);
  out[128 + lane] = __shfl_sync(FULL, lane == 5 ? GREEN : RED, 5);
}

static void test_types_convert_as_with_nvcc(void **state) {
  (void)state;
  int *out = new_array<int>(5 * 32);
  conversions_kernel<<<1, 32>>>(out);
  finish();
  for (int lane = 0; lane < 32; lane++) {
    assert_int_equal(out[lane], 15 - lane);
    assert_int_equal(out[32 + lane], (lane + 1) % 32 % 3 == 0);
    assert_int_equal(out[64 + lane], -31);
    assert_int_equal(out[96 + lane], 1);
    assert_int_equal(out[128 + lane], GREEN);
  }
  CHECK(cudaFree(out));
}

/* ---- masks ---- */

/* Four groups of eight lanes, each of which goes round as often as it likes; then all vote together. The first group
 * to be ready waits at the vote with a full mask while others are still busy at a smaller one. */
__global__ void disjoint_kernel(const int *turns, int *sums, unsigned *ballots) {
  int lane = threadIdx.x % 32, group = lane / 8;
  unsigned mask = 0xffu << (8 * group);
  int sum = 0;
  for (int turn = 0; turn < turns[group]; turn++) {
    int value = lane * 10 + turn;
    for (int step = 4; step > 0; step /= 2) value += __shfl_xor_sync(mask, value, step);
    sum += value;
  }
  sums[threadIdx.x] = sum;
  ballots[threadIdx.x] = __ballot_sync(FULL, sum % 3 == 0);
}

static void test_disjoint_masks_with_different_trip_counts(void **state) {
  (void)state;
  const int cases[][4] = {{1, 2, 3, 4}, {9, 0, 5, 1}, {0, 0, 0, 7}, {3, 3, 3, 3}, {0, 0, 0, 0}};
  int *turns = new_array<int>(4), *sums = new_array<int>(64);
  unsigned *ballots = new_array<unsigned>(64);
  for (const int(&c)[4] : cases) {
    memcpy(turns, c, sizeof c);
    disjoint_kernel<<<1, 64>>>(turns, sums, ballots);
    finish();
    unsigned ballot = 0;
    for (int lane = 0; lane < 32; lane++) {
      int group = lane / 8, expected = 0;
      for (int turn = 0; turn < c[group]; turn++) expected += 10 * (8 * 8 * group + 28) + 8 * turn;
      assert_int_equal(sums[lane], expected);
      assert_int_equal(sums[32 + lane], expected);
      ballot |= (unsigned)(expected % 3 == 0) << lane;
    }
    for (int lane = 0; lane < 64; lane++) assert_int_equal(ballots[lane], ballot);
  }
  CHECK(cudaFree(turns));
  CHECK(cudaFree(sums));
  CHECK(cudaFree(ballots));
}

/* The mask shrinks lane by lane; each lane that drops out goes ahead to the end. */
__global__ void shrinking_kernel(int *out) {
  int lane = threadIdx.x;
  int sum = 0;
  for (int k = 0; k <= lane; k++) sum += __shfl_sync(FULL << k, lane * lane, k);
  __syncwarp();
  out[lane] = __shfl_sync(FULL, sum, 31 - lane);
}

static void test_a_shrinking_mask(void **state) {
  (void)state;
  int *out = new_array<int>(32);
  shrinking_kernel<<<1, 32>>>(out);
  finish();
  for (int lane = 0; lane < 32; lane++) {
    int expected = 0;
    for (int k = 0; k <= 31 - lane; k++) expected += k * k;
    assert_int_equal(out[lane], expected);
  }
  CHECK(cudaFree(out));
}

/* Every mask that is the own lane and some others, in turn: lanes that share a value form a group and add up in it. */
__global__ void groups_kernel(const int *label, int *out) {
  int lane = threadIdx.x;
  unsigned mask = __match_any_sync(FULL, label[lane]);
  int rank = __popc(mask & ((1u << lane) - 1)), leader = __ffs(mask) - 1;
  int sum = __reduce_add_sync(mask, lane);
  int first = __shfl_sync(mask, lane * 3, leader);
  unsigned odd = __ballot_sync(mask, lane & 1);
  out[lane] = sum;
  out[32 + lane] = first;
  out[64 + lane] = (int)odd;
  out[96 + lane] = rank;
  out[128 + lane] = __any_sync(mask, lane == 17);
  out[160 + lane] = __all_sync(mask, lane < 20);
}

static void test_random_partitions_of_a_warp(void **state) {
  (void)state;
  int *label = new_array<int>(32), *out = new_array<int>(6 * 32);
  for (int round = 0; round < 50; round++) {
    for (int lane = 0; lane < 32; lane++) label[lane] = (int)(next_random() >> 8) % (1 + round % 9);
    groups_kernel<<<1, 32>>>(label, out);
    finish();
    for (int lane = 0; lane < 32; lane++) {
      int sum = 0, leader = -1, rank = 0, any = 0, all = 1;
      unsigned odd = 0;
      for (int other = 0; other < 32; other++) {
        if (label[other] != label[lane]) continue;
        if (leader < 0) leader = other;
        sum += other;
        rank += other < lane;
        odd |= (unsigned)(other & 1) << other;
        any |= other == 17;
        all &= other < 20;
      }
      assert_int_equal(out[lane], sum);
      assert_int_equal(out[32 + lane], 3 * leader);
      assert_int_equal((unsigned)out[64 + lane], odd);
      assert_int_equal(out[96 + lane], rank);
      assert_int_equal(out[128 + lane] != 0, any);
      assert_int_equal(out[160 + lane] != 0, all);
    }
  }
  CHECK(cudaFree(label));
  CHECK(cudaFree(out));
}

/* ---- warps that are not whole ---- */

/* out[thread]: the sum of the thread's warp, by a loop in which only lanes that exist are read */
__global__ void partial_kernel(int *out, unsigned *ballots) {
  int rank = (int)(threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z)), lane = rank % 32;
  int threads = (int)(blockDim.x * blockDim.y * blockDim.z), lanes = min(32, threads - rank / 32 * 32);
  ballots[rank] = __ballot_sync(FULL, 1);
  int sum = 0;
  for (int other = 0; other < lanes; other++) sum += __shfl_sync(FULL, rank, other);
  out[rank] = sum + 1000 * __reduce_max_sync(FULL, lane) + 100000 * (__all_sync(FULL, rank >= 0) != 0);
}

static void test_partial_warps(void **state) {
  (void)state;
  const dim3 blocks[] = {dim3(48), dim3(1), dim3(31), dim3(33), dim3(5, 5), dim3(8, 8), dim3(3, 7, 5), dim3(1, 50)};
  int *out = new_array<int>(1024);
  unsigned *ballots = new_array<unsigned>(1024);
  for (const dim3 &block : blocks) {
    partial_kernel<<<1, block>>>(out, ballots);
    finish();
    int threads = (int)(block.x * block.y * block.z);
    for (int rank = 0; rank < threads; rank++) {
      int first = rank / 32 * 32, lanes = threads - first < 32 ? threads - first : 32;
      int sum = lanes * first + lanes * (lanes - 1) / 2;
      assert_int_equal(ballots[rank], lanes == 32 ? FULL : (1u << lanes) - 1);
      assert_int_equal(out[rank], sum + 1000 * (lanes - 1) + 100000);
    }
  }
  CHECK(cudaFree(out));
  CHECK(cudaFree(ballots));
}

/* Lanes that have returned are not waited for, even where a mask names them. */
__global__ void exited_kernel(int stay, unsigned *ballots, int *values) {
  int lane = threadIdx.x % 32;
  if (lane % stay != 0) return;
  ballots[threadIdx.x] = __ballot_sync(FULL, 1);
  __syncwarp();
  values[threadIdx.x] = __shfl_sync(FULL, (int)threadIdx.x, 0);
}

static void test_lanes_that_have_returned(void **state) {
  (void)state;
  unsigned *ballots = new_array<unsigned>(64);
  int *values = new_array<int>(64);
  const int stays[] = {1, 2, 3, 5, 31, 32};
  for (int stay : stays) {
    exited_kernel<<<1, 64>>>(stay, ballots, values);
    finish();
    unsigned expected = 0;
    for (int lane = 0; lane < 32; lane += stay) expected |= 1u << lane;
    for (int thread = 0; thread < 64; thread++) {
      if (thread % 32 % stay != 0) continue;
      assert_int_equal(ballots[thread], expected);
      assert_int_equal(values[thread], thread / 32 * 32);
    }
  }
  CHECK(cudaFree(ballots));
  CHECK(cudaFree(values));
}

/* ---- votes and matches ---- */

__global__ void votes_kernel(const unsigned *words, int count, int *out) {
  int lane = threadIdx.x;
  for (int i = 0; i < count; i++) {
    int predicate = words[i] >> lane & 1 ? -5 : 0; /* any number but 0 is true */
    out[(4 * i + 0) * 32 + lane] = __all_sync(FULL, predicate) != 0;
    out[(4 * i + 1) * 32 + lane] = __any_sync(FULL, predicate) != 0;
    out[(4 * i + 2) * 32 + lane] = __uni_sync(FULL, predicate) != 0;
    out[(4 * i + 3) * 32 + lane] = (int)__ballot_sync(FULL, predicate);
  }
}

static void test_votes(void **state) {
  (void)state;
  enum { COUNT = 40 };
  unsigned *words = new_array<unsigned>(COUNT);
  int *out = new_array<int>(4 * COUNT * 32);
  for (int i = 0; i < COUNT; i++) words[i] = i == 0 ? 0 : i == 1 ? FULL : i < 34 ? 1u << (i - 2) : next_random();
  votes_kernel<<<1, 32>>>(words, COUNT, out);
  finish();
  for (int i = 0; i < COUNT; i++)
    for (int lane = 0; lane < 32; lane++) {
      assert_int_equal(out[(4 * i + 0) * 32 + lane], words[i] == FULL);
      assert_int_equal(out[(4 * i + 1) * 32 + lane], words[i] != 0);
      assert_int_equal(out[(4 * i + 2) * 32 + lane], words[i] == FULL || words[i] == 0);
      assert_int_equal((unsigned)out[(4 * i + 3) * 32 + lane], words[i]);
    }
  CHECK(cudaFree(words));
  CHECK(cudaFree(out));
}

template <class T>
__global__ void match_kernel(const T *in, unsigned *any, unsigned *all, int *predicates) {
  int lane = threadIdx.x;
  any[lane] = __match_any_sync(FULL, in[lane]);
  all[lane] = __match_all_sync(FULL, in[lane], &predicates[lane]);
}

template <class T>
static void check_match(const char *name) {
  T *in = new_array<T>(32);
  unsigned *any = new_array<unsigned>(32), *all = new_array<unsigned>(32);
  int *predicates = new_array<int>(32);
  for (int values = 1; values < 40; values += 3) {
    for (int lane = 0; lane < 32; lane++) {
      unsigned v = (next_random() >> 8) % (unsigned)values;
      memset(&in[lane], 0, sizeof(T));
      ((unsigned char *)&in[lane])[sizeof(T) - 2] = (unsigned char)v; /* the high bits count */
    }
    match_kernel<<<1, 32>>>(in, any, all, predicates);
    finish();
    int equal = 1;
    for (int lane = 0; lane < 32; lane++) equal &= memcmp(&in[lane], &in[0], sizeof(T)) == 0;
    for (int lane = 0; lane < 32; lane++) {
      unsigned expected = 0;
      for (int other = 0; other < 32; other++)
        expected |= (unsigned)(memcmp(&in[lane], &in[other], sizeof(T)) == 0) << other;
      if (any[lane] != expected)
        fail_msg("__match_any_sync of %s, lane %d: 0x%08x, not 0x%08x", name, lane, any[lane], expected);
      assert_int_equal(all[lane], equal ? FULL : 0);
      assert_int_equal(predicates[lane] != 0, equal);
    }
  }
  CHECK(cudaFree(in));
  CHECK(cudaFree(any));
  CHECK(cudaFree(all));
  CHECK(cudaFree(predicates));
}

static void test_matches(void **state) {
  (void)state;
  check_match<int>("int");
  check_match<unsigned>("unsigned");
  check_match<long>("long");
  check_match<unsigned long long>("unsigned long long");
  check_match<float>("float");
  check_match<double>("double");
}

/* ---- reductions ---- */

__global__ void reduce_kernel(const unsigned *in, unsigned mask, unsigned *out) {
  int lane = threadIdx.x;
  unsigned u = in[lane];
  int s = (int)u;
  if (!(mask >> lane & 1)) return;
  out[0 * 32 + lane] = __reduce_add_sync(mask, u);
  out[1 * 32 + lane] = (unsigned)__reduce_add_sync(mask, s);
  out[2 * 32 + lane] = __reduce_min_sync(mask, u);
  out[3 * 32 + lane] = (unsigned)__reduce_min_sync(mask, s);
  out[4 * 32 + lane] = __reduce_max_sync(mask, u);
  out[5 * 32 + lane] = (unsigned)__reduce_max_sync(mask, s);
  out[6 * 32 + lane] = __reduce_and_sync(mask, u);
  out[7 * 32 + lane] = __reduce_or_sync(mask, u);
  out[8 * 32 + lane] = __reduce_xor_sync(mask, u);
}

static void test_reductions(void **state) {
  (void)state;
  unsigned *in = new_array<unsigned>(32), *out = new_array<unsigned>(9 * 32);
  for (int round = 0; round < 40; round++) {
    unsigned mask = round == 0 ? FULL : round <= 32 ? 1u << (round - 1) : next_random() | 1u;
    for (int lane = 0; lane < 32; lane++) in[lane] = next_random();
    reduce_kernel<<<1, 32>>>(in, mask, out);
    finish();
    unsigned add = 0, umin = FULL, umax = 0, all = FULL, any = 0, odd = 0;
    int smin = INT32_MAX, smax = INT32_MIN;
    for (int lane = 0; lane < 32; lane++) {
      if (!(mask >> lane & 1)) continue;
      unsigned u = in[lane];
      add += u;
      umin = u < umin ? u : umin;
      umax = u > umax ? u : umax;
      smin = (int)u < smin ? (int)u : smin;
      smax = (int)u > smax ? (int)u : smax;
      all &= u;
      any |= u;
      odd ^= u;
    }
    const unsigned expected[9] = {add, add, umin, (unsigned)smin, umax, (unsigned)smax, all, any, odd};
    for (int op = 0; op < 9; op++)
      for (int lane = 0; lane < 32; lane++)
        if ((mask >> lane & 1) && out[op * 32 + lane] != expected[op])
          fail_msg("reduction %d, mask 0x%08x, lane %d: 0x%08x, not 0x%08x", op, mask, lane, out[op * 32 + lane],
                   expected[op]);
  }
  CHECK(cudaFree(in));
  CHECK(cudaFree(out));
}

/* ---- the rest ---- */

__global__ void active_kernel(int *ok) {
  int lane = threadIdx.x % 32;
  if (lane % 3 == 0) {
    unsigned mask = __activemask();
    /* Whichever lanes the mask has, they are of this branch, and can work together. */
    int rank = __popc(mask & ((1u << lane) - 1)), count = __popc(mask);
    int sum = __reduce_add_sync(mask, 1);
    ok[threadIdx.x] = (mask >> lane & 1) && (mask & ~0x49249249u) == 0 && rank < count && sum == count;
  } else {
    ok[threadIdx.x] = warpSize == 32;
  }
}

static void test_the_active_mask_contains_the_lane(void **state) {
  (void)state;
  int *ok = new_array<int>(96);
  active_kernel<<<1, 96>>>(ok);
  finish();
  for (int thread = 0; thread < 96; thread++) assert_int_equal(ok[thread], 1);
  CHECK(cudaFree(ok));
}

/* A sum as everybody writes it: shuffles in each warp, shared memory, shuffles in the first warp. */
__global__ void block_sum_kernel(const float *x, int n, float *sums) {
  __shared__ float partial[32];
  int i = blockIdx.x * blockDim.x + threadIdx.x, lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  float sum = i < n ? x[i] : 0;
  for (int step = 16; step > 0; step /= 2) sum += __shfl_down_sync(FULL, sum, step);
  if (lane == 0) partial[warp] = sum;
  __syncthreads();
  if (warp == 0) {
    sum = lane < blockDim.x / 32 ? partial[lane] : 0;
    for (int step = 16; step > 0; step /= 2) sum += __shfl_down_sync(FULL, sum, step);
    if (lane == 0) sums[blockIdx.x] = sum;
  }
}

static void test_a_block_sum(void **state) {
  (void)state;
  enum { N = 3001, BLOCK = 256, BLOCKS = (N + BLOCK - 1) / BLOCK };
  float *x = new_array<float>(N), *sums = new_array<float>(BLOCKS);
  for (int i = 0; i < N; i++) x[i] = (float)(i % 17 - 5);
  block_sum_kernel<<<BLOCKS, BLOCK>>>(x, N, sums);
  finish();
  for (int block = 0; block < BLOCKS; block++) {
    float expected = 0;
    for (int i = block * BLOCK; i < N && i < (block + 1) * BLOCK; i++) expected += x[i];
    assert_true(sums[block] == expected); /* small integers: exact in any order */
  }
  CHECK(cudaFree(x));
  CHECK(cudaFree(sums));
}

__global__ void block_votes_kernel(int *out) {
  int i = threadIdx.x;
  out[i] = __syncthreads_count(i % 3 == 0);
  out[100 + i] = (__syncthreads_and(i < 100) != 0) + 2 * (__syncthreads_and(i != 57) != 0);
  out[200 + i] = (__syncthreads_or(i == 99) != 0) + 2 * (__syncthreads_or(i > 99) != 0);
}

static void test_barriers_that_vote(void **state) {
  (void)state;
  int *out = new_array<int>(300);
  block_votes_kernel<<<1, 100>>>(out);
  finish();
  for (int i = 0; i < 100; i++) {
    assert_int_equal(out[i], 34);
    assert_int_equal(out[100 + i], 1);
    assert_int_equal(out[200 + i], 1);
  }
  CHECK(cudaFree(out));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_every_mode_width_and_operand),
      cmocka_unit_test(test_a_source_counts_modulo_the_width),
      cmocka_unit_test(test_every_type_keeps_its_bits),
      cmocka_unit_test(test_types_convert_as_with_nvcc),
      cmocka_unit_test(test_disjoint_masks_with_different_trip_counts),
      cmocka_unit_test(test_a_shrinking_mask),
      cmocka_unit_test(test_random_partitions_of_a_warp),
      cmocka_unit_test(test_partial_warps),
      cmocka_unit_test(test_lanes_that_have_returned),
      cmocka_unit_test(test_votes),
      cmocka_unit_test(test_matches),
      cmocka_unit_test(test_reductions),
      cmocka_unit_test(test_the_active_mask_contains_the_lane),
      cmocka_unit_test(test_a_block_sum),
      cmocka_unit_test(test_barriers_that_vote),
  };
  return cmocka_run_group_tests_name("warp", tests, NULL, NULL);
}
