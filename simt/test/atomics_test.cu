/* atomics_test.cu - atomic operations: every type and scope, old values, many blocks at once; locks and flags. */
#include "map.cuh"

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <algorithm>
#include <limits>
#include <type_traits>

enum { BLOCKS = 37, THREADS = 131, N = BLOCKS * THREADS };

static __device__ int my_rank(void) { return (int)(blockIdx.x * blockDim.x + threadIdx.x); }

/* ---- adding one: the old values are 0 .. N - 1, each once, whatever the order ---- */

enum Scope { DEVICE, BLOCK, SYSTEM };

/* *cell += 1; in a block's own cell where only a block is promised. */
template <class T, Scope scope>
static __global__ void count_kernel(T *cells, T *old) {
  const int i = my_rank();
  T *cell = scope == BLOCK ? cells + blockIdx.x : cells;
  old[i] = scope == DEVICE  ? atomicAdd(cell, (T)1)
           : scope == BLOCK ? atomicAdd_block(cell, (T)1)
                            : atomicAdd_system(cell, (T)1);
}

template <class T, Scope scope>
static void expect_count(void) {
  T *cells = upload(std::vector<T>(BLOCKS, (T)0)), *old = device_array<T>(N);
  count_kernel<T, scope><<<BLOCKS, THREADS>>>(cells, old);
  std::vector<T> o = download(old, N), c = download(cells, BLOCKS);
  for (int b = 0; b < BLOCKS; b++) assert_true(c[b] == (T)(scope == BLOCK ? THREADS : b == 0 ? N : 0));
  std::sort(o.begin(), o.end());
  for (int i = 0; i < N; i++) assert_true(o[i] == (T)(scope == BLOCK ? i / BLOCKS : i));
}

template <class T>
static void expect_counts(void) {
  expect_count<T, DEVICE>();
  expect_count<T, BLOCK>();
  expect_count<T, SYSTEM>();
}

static void test_add_counts_every_thread_once(void **state) {
  (void)state;
  expect_counts<int>();
  expect_counts<unsigned>();
  expect_counts<unsigned long long>();
  expect_counts<float>();
  expect_counts<double>();
}

/* Long enough for blocks to meet, on however few processors. */
static __global__ void contend_kernel(int *sum, float *real, unsigned *wrapped, int *swapped, int *parity, int rounds) {
  for (int k = 0; k < rounds; k++) {
    atomicAdd(sum, 1);
    atomicAdd(real, k % 2 ? -1.0f : 1.0f);
    atomicInc(wrapped, 0xffffffffu);
    int old = 0, expected; /* a guess: where it is wrong, the swap fails and tells */
    do {
      expected = old;
      old = atomicCAS(swapped, expected, expected + 1);
    } while (old != expected);
    atomicXor(parity, 1 << (threadIdx.x % 32));
  }
}

static void test_blocks_that_meet(void **state) {
  (void)state;
  const int blocks = 64, threads = 64, rounds = 3001;
  int *cells = upload(std::vector<int>(5, 0));
  contend_kernel<<<blocks, threads>>>(cells, (float *)(cells + 1), (unsigned *)(cells + 2), cells + 3, cells + 4,
                                      rounds);
  const std::vector<int> c = download(cells, 5);
  const int n = blocks * threads * rounds;
  float real;
  memcpy(&real, &c[1], sizeof real);
  assert_int_equal(c[0], n);
  assert_true(real == blocks * threads);
  assert_int_equal(c[2], n);
  assert_int_equal(c[3], n);
  assert_int_equal(c[4], 0); /* an even number of flips */
}

/* ---- the integer operations, against a loop ---- */

enum { SUB, MIN, MAX, AND, OR, XOR, INC, DEC, ADD, OPERATIONS };

template <class T>
struct Cells {
  T device[OPERATIONS], block[OPERATIONS], system[OPERATIONS];
};

#define ALL_SCOPES(operation, f)          \
  f(&cells->device[operation], x);        \
  f##_block(&cells->block[operation], x); \
  f##_system(&cells->system[operation], x);

/* One block, so that the _block forms have nobody else to fear. */
template <class T>
static __global__ void integer_kernel(Cells<T> *cells, const T *values, int n) {
  for (int i = (int)threadIdx.x; i < n; i += (int)blockDim.x) {
    const T x = values[i];
    ALL_SCOPES(MIN, atomicMin)
    ALL_SCOPES(MAX, atomicMax)
    ALL_SCOPES(AND, atomicAnd)
    ALL_SCOPES(OR, atomicOr)
    ALL_SCOPES(XOR, atomicXor)
  }
}

template <class T>
static __global__ void word_kernel(Cells<T> *cells, const T *values, int n) {
  for (int i = (int)threadIdx.x; i < n; i += (int)blockDim.x) {
    const T x = values[i];
    ALL_SCOPES(SUB, atomicSub)
    ALL_SCOPES(ADD, atomicAdd)
  }
}

static __global__ void wrap_kernel(Cells<unsigned> *cells, int n) {
  const unsigned x = 9;
  for (int i = (int)threadIdx.x; i < n; i += (int)blockDim.x) {
    ALL_SCOPES(INC, atomicInc)
    ALL_SCOPES(DEC, atomicDec)
  }
}

static void expect_cell(const char *name, uint64_t got, uint64_t want) {
  if (got != want) fail_msg("%s: %#llx, expected %#llx", name, (unsigned long long)got, (unsigned long long)want);
}

template <class T>
static void expect_cells(const char *name, int operation, const Cells<T> &c, T want) {
  expect_cell(name, (uint64_t)c.device[operation], (uint64_t)want);
  expect_cell(name, (uint64_t)c.block[operation], (uint64_t)want);
  expect_cell(name, (uint64_t)c.system[operation], (uint64_t)want);
}

template <class T>
static Cells<T> initial_cells(T start) {
  Cells<T> c;
  for (int k = 0; k < OPERATIONS; k++) {
    c.device[k] = k == MIN ? std::numeric_limits<T>::max() : k == MAX ? std::numeric_limits<T>::min() : start;
    c.block[k] = c.system[k] = c.device[k];
  }
  return c;
}

template <class T>
static void expect_integer_operations(void) {
  std::vector<T> values(1000);
  for (T &v : values) v = (T)random_bits(); /* of both signs */
  for (T &v : values) {
    v |= (T)0x0101; /* so that not all bits vanish in the conjunction, nor all appear in the disjunction */
    v &= (T) ~(T)0x0200;
  }
  T lowest = values[0], highest = values[0], all = (T)0x5a5a5a5a5a5a5a5aull, any = all, odd = all, sum = all,
    difference = all;
  for (T v : values) {
    lowest = v < lowest ? v : lowest;
    highest = v > highest ? v : highest;
    all &= v, any |= v, odd ^= v;
    sum = (T)((uint64_t)sum + (uint64_t)v), difference = (T)((uint64_t)difference - (uint64_t)v);
  }
  Cells<T> *cells = upload(std::vector<Cells<T>>{initial_cells((T)0x5a5a5a5a5a5a5a5aull)});
  T *device_values = upload(values);
  integer_kernel<<<1, 100>>>(cells, device_values, (int)values.size());
  if constexpr (sizeof(T) == 4) word_kernel<<<1, 100>>>(cells, device_values, (int)values.size());
  const Cells<T> c = download(cells, 1)[0];
  CHECK(cudaFree(device_values));
  expect_cells("atomicMin", MIN, c, lowest);
  expect_cells("atomicMax", MAX, c, highest);
  expect_cells("atomicAnd", AND, c, all);
  expect_cells("atomicOr", OR, c, any);
  expect_cells("atomicXor", XOR, c, odd);
  if constexpr (sizeof(T) == 4) {
    expect_cells("atomicSub", SUB, c, difference);
    expect_cells("atomicAdd", ADD, c, sum);
  }
}

static void test_integer_operations(void **state) {
  (void)state;
  expect_integer_operations<int>();
  expect_integer_operations<unsigned>();
  expect_integer_operations<long long>();
  expect_integer_operations<unsigned long long>();
}

static void test_increment_and_decrement_wrap(void **state) {
  (void)state;
  const int n = 1003;
  Cells<unsigned> *cells = upload(std::vector<Cells<unsigned>>{initial_cells(13u)});
  wrap_kernel<<<1, 77>>>(cells, n);
  const Cells<unsigned> c = download(cells, 1)[0];
  unsigned up = 13, down = 13; /* beyond the limit of 9: the first step brings both back */
  for (int i = 0; i < n; i++) up = up >= 9 ? 0 : up + 1, down = down == 0 || down > 9 ? 9 : down - 1;
  expect_cells("atomicInc", INC, c, up);
  expect_cells("atomicDec", DEC, c, down);
}

/* ---- exchanging: nothing is lost, nothing doubled ---- */

template <class T>
static __global__ void exchange_kernel(T *cell, T *old) {
  const int i = my_rank();
  const T mine = (T)(i + 1);
  old[i] = i % 3 == 0 ? atomicExch(cell, mine) : i % 3 == 1 ? atomicExch_system(cell, mine) : atomicExch(cell, mine);
}

template <class T>
static void expect_exchange(void) {
  T *cell = upload(std::vector<T>{0}), *old = device_array<T>(N);
  exchange_kernel<<<BLOCKS, THREADS>>>(cell, old);
  std::vector<T> seen = download(old, N);
  seen.push_back(download(cell, 1)[0]);
  std::sort(seen.begin(), seen.end());
  for (int i = 0; i <= N; i++) assert_true(seen[i] == (T)i);
}

static void test_exchange_loses_nothing(void **state) {
  (void)state;
  expect_exchange<int>();
  expect_exchange<unsigned>();
  expect_exchange<unsigned long long>();
  expect_exchange<float>();
}

/* ---- compare and swap ---- */

template <class T>
static __global__ void swap_kernel(T *cell, T *old) {
  T seen = 0, expected;
  do {
    expected = seen;
    seen = atomicCAS(cell, expected, (T)(expected + 1));
  } while (seen != expected);
  old[my_rank()] = seen;
}

template <class T>
static void expect_swap(void) {
  T *cell = upload(std::vector<T>{0}), *old = device_array<T>(N);
  swap_kernel<<<BLOCKS, THREADS>>>(cell, old);
  std::vector<T> o = download(old, N);
  assert_true(download(cell, 1)[0] == (T)N);
  std::sort(o.begin(), o.end());
  for (int i = 0; i < N; i++) assert_true(o[i] == (T)i);
}

/* As programs write a maximum of floats: on the bits. */
static __device__ float max_by_swapping(float *address, float value) {
  int *bits = (int *)address, old = 0, expected;
  do {
    expected = old;
    old = atomicCAS(bits, expected, __float_as_int(fmaxf(value, __int_as_float(expected))));
  } while (old != expected);
  return __int_as_float(old);
}
static __global__ void float_max_kernel(float *cell, const float *values) { max_by_swapping(cell, values[my_rank()]); }

static void test_compare_and_swap(void **state) {
  (void)state;
  expect_swap<unsigned short>();
  expect_swap<int>();
  expect_swap<unsigned>();
  expect_swap<unsigned long long>();
  std::vector<float> values(N);
  float highest = -INFINITY;
  for (float &v : values) v = (float)random_uniform(-1000, -1), highest = fmaxf(highest, v);
  float *cell = upload(std::vector<float>{-INFINITY}), *in = upload(values);
  float_max_kernel<<<BLOCKS, THREADS>>>(cell, in);
  assert_true(download(cell, 1)[0] == highest);
  CHECK(cudaFree(in));
}

/* ---- floats narrower and wider than a word ---- */

/* Whole numbers below 256: exact in each format, so that the sum does not depend on the order. */
template <class T>
static __device__ T whole(int x);
template <>
__device__ __half whole<__half>(int x) {
  return __int2half_rn(x);
}
template <>
__device__ __nv_bfloat16 whole<__nv_bfloat16>(int x) {
  return __int2bfloat16_rn(x);
}
template <>
__device__ __half2 whole<__half2>(int x) {
  return __halves2half2(__int2half_rn(x), __int2half_rn(2 * x));
}
template <>
__device__ __nv_bfloat162 whole<__nv_bfloat162>(int x) {
  return __halves2bfloat162(__int2bfloat16_rn(x), __int2bfloat16_rn(2 * x));
}

template <class T>
static __global__ void narrow_kernel(T *cells) {
  atomicAdd(&cells[threadIdx.x % 5], whole<T>((int)threadIdx.x % 2)); /* neighbours share a word */
}

template <class H>
static float to_float(H h);
template <>
float to_float(__half h) {
  return __half2float(h);
}
template <>
float to_float(__nv_bfloat16 h) {
  return __bfloat162float(h);
}

static float odd_threads[5]; /* how many threads with an odd number add to each cell */
template <class T, class H, int each>
static void expect_narrow_sums(void) {
  T *cells = device_array<T>(5);
  CHECK(cudaMemset((void *)cells, 0, 5 * sizeof(T)));
  narrow_kernel<<<3, 200>>>(cells);
  const std::vector<T> got = download(cells, 5);
  for (int c = 0; c < 5; c++)
    for (int k = 0; k < each; k++) {
      H h;
      memcpy((void *)&h, (const char *)&got[c] + 2 * k, 2);
      const float sum = to_float(h);
      if (sum != (k + 1) * odd_threads[c])
        fail_msg("cell %d, half %d: %g, expected %g", c, k, sum, (k + 1) * odd_threads[c]);
    }
}

static void test_16_bit_sums(void **state) {
  (void)state;
  memset(odd_threads, 0, sizeof odd_threads);
  for (int i = 0; i < 200; i++) odd_threads[i % 5] += 3 * (float)(i % 2);
  expect_narrow_sums<__half, __half, 1>();
  expect_narrow_sums<__half2, __half, 2>();
  expect_narrow_sums<__nv_bfloat16, __nv_bfloat16, 1>();
  expect_narrow_sums<__nv_bfloat162, __nv_bfloat16, 2>();
}

static __global__ void vector_kernel(float2 *two, float4 *four, int *done) {
#if defined(SIMT_REWRITTEN) || __CUDA_ARCH__ >= 900
  const float x = (float)threadIdx.x;
  atomicAdd(two, make_float2(x, 1));
  atomicAdd(four, make_float4(x, 1, -x, 2));
  if (my_rank() == 0) *done = 1;
#endif
}

static void test_vectors_are_added_by_element(void **state) {
  (void)state;
  float2 *two = upload(std::vector<float2>{make_float2(0.5f, 0)});
  float4 *four = upload(std::vector<float4>{make_float4(0, 0, 0, 0.25f)});
  int *done = upload(std::vector<int>{0});
  vector_kernel<<<7, 100>>>(two, four, done);
  const float2 t = download(two, 1)[0];
  const float4 f = download(four, 1)[0];
  if (!download(done, 1)[0]) skip(); /* compute capability 9.0 */
  const float sum = 7 * 99 * 100 / 2;
  assert_true(t.x == sum + 0.5f && t.y == 700);
  assert_true(f.x == sum && f.y == 700 && f.z == -sum && f.w == 1400.25f);
}

/* ---- arguments convert, results have the type ---- */

static __global__ void convert_kernel(float *f, double *d, unsigned long long *u, int *shared_result) {
  __shared__ int cell;
  if (threadIdx.x == 0) cell = 0;
  __syncthreads();
  atomicAdd(f, 1);
  atomicAdd(d, 1.0f);
  atomicAdd(u, 1);
  atomicMax(&cell, (int)threadIdx.x);
  static_assert(std::is_same<decltype(atomicAdd(f, 1)), float>::value, "");
  static_assert(std::is_same<decltype(atomicExch(u, 1)), unsigned long long>::value, "");
  static_assert(std::is_same<decltype(atomicCAS(&cell, 0, 1)), int>::value, "");
  __syncthreads();
  if (my_rank() == 0) *shared_result = cell;
}

static void test_arguments_convert(void **state) {
  (void)state;
  float *f = upload(std::vector<float>{0});
  double *d = upload(std::vector<double>{0});
  unsigned long long *u = upload(std::vector<unsigned long long>{0});
  int *s = device_array<int>(1);
  convert_kernel<<<2, 99>>>(f, d, u, s);
  assert_true(download(f, 1)[0] == 198 && download(d, 1)[0] == 198 && download(u, 1)[0] == 198 &&
              download(s, 1)[0] == 98);
}

/* ---- locks ---- */

struct Lock {
  int taken;
  unsigned count, inside, most;
};

/* What the lock protects: not atomic, and a chance for everyone else while it is held. */
static __device__ void work(volatile Lock *lock) {
  const unsigned before = lock->count;
  const unsigned inside = lock->inside + 1;
  lock->inside = inside;
  if (inside > lock->most) lock->most = inside;
  __nanosleep(20);
  lock->count = before + 1;
  lock->inside = inside - 1;
}

enum Kind { SWAP, EXCHANGE, SWAP_ONCE };
template <Kind kind>
static __device__ void with_lock(Lock *lock) {
  if (kind == SWAP) {
    while (atomicCAS(&lock->taken, 0, 1) != 0) {
    }
    __threadfence();
    work(lock);
    __threadfence();
    atomicExch(&lock->taken, 0);
  } else if (kind == EXCHANGE) {
    while (atomicExch(&lock->taken, 1)) {
    }
    __threadfence();
    work(lock);
    __threadfence();
    atomicExch(&lock->taken, 0);
  } else { /* the form that was safe before Volta: nobody waits for a lane of the own warp */
    for (bool done = false; !done;) {
      if (atomicCAS(&lock->taken, 0, 1) == 0) {
        __threadfence();
        work(lock);
        __threadfence();
        atomicExch(&lock->taken, 0);
        done = true;
      }
    }
  }
}

/* Between the threads of a warp, of warps, of blocks: `shared` of them, the rest of the grid takes a lock of its own.
 * */
template <Kind kind>
static __global__ void lock_kernel(Lock *locks, int shared) {
  with_lock<kind>(&locks[my_rank() / shared]);
}
template <Kind kind>
static __global__ void shared_lock_kernel(Lock *out) {
  __shared__ Lock lock;
  if (threadIdx.x == 0) lock = Lock{0, 0, 0, 0};
  __syncthreads();
  with_lock<kind>(&lock);
  __syncthreads();
  if (threadIdx.x == 0) out[blockIdx.x] = lock;
}

static void expect_locks(const std::vector<Lock> &locks, unsigned count) {
  for (const Lock &l : locks)
    if (l.taken || l.count != count || l.inside || l.most != 1)
      fail_msg("a lock that %u threads took: count %u, %u still inside, %u at once, taken %d", count, l.count, l.inside,
               l.most, l.taken);
}

template <Kind kind>
static void expect_lock(void) {
  const int total = 8 * 96;
  for (int shared : {2, 32, 96, 192, 768}) {
    Lock *locks = upload(std::vector<Lock>(total / shared, Lock{0, 0, 0, 0}));
    lock_kernel<kind><<<8, 96>>>(locks, shared);
    expect_locks(download(locks, total / shared), (unsigned)shared);
  }
  Lock *out = device_array<Lock>(5);
  shared_lock_kernel<kind><<<5, 70>>>(out);
  expect_locks(download(out, 5), 70);
}

static void test_locks(void **state) {
  (void)state;
  expect_lock<SWAP>();
  expect_lock<EXCHANGE>();
  expect_lock<SWAP_ONCE>();
}

/* ---- flags: one thread waits for another of its block, looking with an operation that changes nothing ---- */

static __global__ void flag_kernel(int *out, int way) {
  __shared__ int flag, value;
  if (threadIdx.x == 0) flag = 0, value = 0;
  __syncthreads();
  if (threadIdx.x == 64) { /* in another warp than those that wait, and not the last to come to the barrier */
    *(volatile int *)&value = 42;
    __threadfence_block();
    atomicExch(&flag, 1);
  } else if (threadIdx.x < 64) {
    if (way == 0)
      while (atomicAdd(&flag, 0) == 0) {
      }
    else if (way == 1)
      while (atomicCAS(&flag, 0, 0) == 0) {
      }
    else if (way == 2)
      while (atomicOr(&flag, 0) == 0) {
      }
    else
      while (atomicCAS(&flag, 1, 1) != 1) {
      }
    __threadfence_block();
    out[threadIdx.x] = *(volatile int *)&value;
  }
}

static void test_waiting_for_a_flag(void **state) {
  (void)state;
  for (int way = 0; way < 4; way++) {
    int *out = device_array<int>(64);
    flag_kernel<<<1, 97>>>(out, way);
    for (int v : download(out, 64)) assert_int_equal(v, 42);
  }
}

/* ---- a hash table: swaps that fail for good reason ---- */

static __global__ void insert_kernel(const unsigned *keys, int n, unsigned *table, int size, int *inserted) {
  const int i = my_rank();
  if (i >= n) return;
  const unsigned key = keys[i];
  for (unsigned slot = key * 2654435761u % (unsigned)size;; slot = (slot + 1) % (unsigned)size) {
    const unsigned old = atomicCAS(&table[slot], 0, key);
    if (old == 0) atomicAdd(inserted, 1);
    if (old == 0 || old == key) return;
  }
}

static void test_hash_table(void **state) {
  (void)state;
  const int n = 3000, size = 2048;
  std::vector<unsigned> keys(n), distinct;
  for (unsigned &k : keys) k = 1 + (unsigned)(random_bits() % 1500);
  unsigned *in = upload(keys), *table = upload(std::vector<unsigned>(size, 0));
  int *inserted = upload(std::vector<int>{0});
  insert_kernel<<<(n + 63) / 64, 64>>>(in, n, table, size, inserted);
  std::vector<unsigned> got = download(table, size);
  CHECK(cudaFree(in));
  got.erase(std::remove(got.begin(), got.end(), 0u), got.end());
  std::sort(got.begin(), got.end());
  std::sort(keys.begin(), keys.end());
  keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
  assert_true(got == keys && download(inserted, 1)[0] == (int)keys.size());
}

/* ---- operations that take an order and a scope ---- */

static __global__ void order_kernel(int *x, double *real, unsigned long long *wide, int *turns) {
  __nv_atomic_fetch_add(&x[0], 2, __NV_ATOMIC_RELAXED, __NV_THREAD_SCOPE_DEVICE);
  __nv_atomic_add(&real[0], 0.5, __NV_ATOMIC_RELAXED);
  __nv_atomic_max(&x[1], my_rank(), __NV_ATOMIC_ACQ_REL, __NV_THREAD_SCOPE_SYSTEM);
  __nv_atomic_fetch_or(&wide[0], 1ull << my_rank() % 64, __NV_ATOMIC_SEQ_CST);
  int old = __nv_atomic_load_n(&x[2], __NV_ATOMIC_ACQUIRE, __NV_THREAD_SCOPE_DEVICE), failed = 0;
  while (!__nv_atomic_compare_exchange_n(&x[2], &old, old + 3, false, __NV_ATOMIC_ACQ_REL, __NV_ATOMIC_ACQUIRE,
                                         __NV_THREAD_SCOPE_DEVICE))
    failed++;
  __nv_atomic_thread_fence(__NV_ATOMIC_SEQ_CST, __NV_THREAD_SCOPE_DEVICE);
  if (my_rank() == 5) {
    __nv_atomic_store_n(&x[3], 7, __NV_ATOMIC_RELEASE, __NV_THREAD_SCOPE_SYSTEM);
    x[4] = __nv_atomic_exchange_n(&x[3], 9, __NV_ATOMIC_ACQ_REL, __NV_THREAD_SCOPE_DEVICE);
    x[5] = __nv_atomic_compare_exchange_n(&x[3], &x[6], 1, false, __NV_ATOMIC_RELAXED, __NV_ATOMIC_RELAXED);
  }
  turns[my_rank()] = failed;
}

static void test_order_and_scope(void **state) {
  (void)state;
  int *x = upload(std::vector<int>(8, 0)), *turns = device_array<int>(N);
  double *real = upload(std::vector<double>(1, 0.0));
  unsigned long long *wide = upload(std::vector<unsigned long long>(1, 0ull));
  order_kernel<<<BLOCKS, THREADS>>>(x, real, wide, turns);
  std::vector<int> got = download(x, 8);
  assert_int_equal(got[0], 2 * N);
  assert_int_equal(got[1], N - 1);
  assert_int_equal(got[2], 3 * N);
  assert_int_equal(got[3], 9);
  assert_int_equal(got[4], 7);
  assert_int_equal(got[5], 0); /* 9 was there, and not 0: what was expected is now what was found */
  assert_int_equal(got[6], 9);
  assert_true(download(real, 1)[0] == 0.5 * N);
  assert_true(download(wide, 1)[0] == ~0ull);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_order_and_scope),
      cmocka_unit_test(test_add_counts_every_thread_once),
      cmocka_unit_test(test_blocks_that_meet),
      cmocka_unit_test(test_integer_operations),
      cmocka_unit_test(test_increment_and_decrement_wrap),
      cmocka_unit_test(test_exchange_loses_nothing),
      cmocka_unit_test(test_compare_and_swap),
      cmocka_unit_test(test_16_bit_sums),
      cmocka_unit_test(test_vectors_are_added_by_element),
      cmocka_unit_test(test_arguments_convert),
      cmocka_unit_test(test_locks),
      cmocka_unit_test(test_waiting_for_a_flag),
      cmocka_unit_test(test_hash_table),
  };
  setenv("SIMT_THREADS", "8", 0); /* for the emulator: more blocks at once than there may be processors */
  return cmocka_run_group_tests(tests, NULL, NULL);
}
