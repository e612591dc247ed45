/* barrier_test.cu - cuda::barrier, latches, semaphores, pipelines, cuda::atomic, asynchronous copies, and the headers
 * under cuda/std. The same program passes on a GPU (compute capability 8.0 and up). */
#include "collective.h"

#include <cooperative_groups.h>
#include <cuda_awbarrier_primitives.h>
#include <cuda_pipeline.h>

#include <cuda/atomic>
#include <cuda/barrier>
#include <cuda/latch>
#include <cuda/pipeline>
#include <cuda/semaphore>
#include <cuda/std/array>
#include <cuda/std/atomic>
#include <cuda/std/limits>
#include <cuda/std/tuple>
#include <cuda/std/type_traits>
#include <cuda/std/utility>
#include <new>

namespace cg = cooperative_groups;

#pragma nv_diag_suppress static_var_with_dynamic_init

typedef cuda::barrier<cuda::thread_scope_block> Barrier;

/* ---- cuda::barrier ---- */

/* Each phase, everybody reads what another one wrote in the phase before. */
__global__ void phases_kernel(int *out, int turns) {
  __shared__ Barrier barrier;
  __shared__ int x[2][96];
  int i = threadIdx.x;
  if (i == 0) init(&barrier, blockDim.x);
  __syncthreads();
  int value = i;
  for (int turn = 0; turn < turns; turn++) {
    x[turn % 2][i] = value;
    if (turn % 3 == 0) {
      barrier.arrive_and_wait();
    } else {
      Barrier::arrival_token token = barrier.arrive();
      value += 1; /* work that nobody waits for */
      barrier.wait(cuda::std::move(token));
      value -= 1;
    }
    value = (x[turn % 2][(i + 1) % blockDim.x] * 3 + turn) % 1013;
  }
  out[i] = value;
}

static void test_phases_of_a_barrier(void **state) {
  (void)state;
  enum { N = 96, TURNS = 20 };
  int *out = new_array<int>(N), now[N], next[N];
  phases_kernel<<<1, N>>>(out, TURNS);
  finish();
  for (int i = 0; i < N; i++) now[i] = i;
  for (int turn = 0; turn < TURNS; turn++) {
    for (int i = 0; i < N; i++) next[i] = (now[(i + 1) % N] * 3 + turn) % 1013;
    memcpy(now, next, sizeof now);
  }
  for (int i = 0; i < N; i++) assert_int_equal(out[i], now[i]);
  CHECK(cudaFree(out));
}

/* One warp produces, the others consume: a barrier of fewer arrivals than the block has threads, and another that says
 * that the buffer is free again. Three buffers' barriers in an array. */
__global__ void producer_kernel(const int *in, int *out, int count) {
  enum { BUFFERS = 3 };
  __shared__ Barrier filled[BUFFERS], empty[BUFFERS];
  __shared__ int buffer[BUFFERS][32];
  int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  if (threadIdx.x < BUFFERS) {
    init(&filled[threadIdx.x], 64);
    init(&empty[threadIdx.x], 64);
  }
  __syncthreads();
  if (warp == 0) {
    for (int i = 0; i < count; i++) {
      if (i >= BUFFERS) empty[i % BUFFERS].arrive_and_wait();
      buffer[i % BUFFERS][lane] = in[32 * i + lane];
      (void)filled[i % BUFFERS].arrive();
    }
  } else if (warp == 1) {
    for (int i = 0; i < count; i++) {
      filled[i % BUFFERS].arrive_and_wait();
      out[32 * i + lane] = 2 * buffer[i % BUFFERS][31 - lane];
      if (i + BUFFERS < count) (void)empty[i % BUFFERS].arrive();
    }
  } /* the third warp has nothing to do with it */
}

static void test_producer_and_consumer(void **state) {
  (void)state;
  enum { COUNT = 10 };
  int *in = new_array<int>(32 * COUNT), *out = new_array<int>(32 * COUNT);
  for (int i = 0; i < 32 * COUNT; i++) in[i] = (int)(next_random() >> 4);
  producer_kernel<<<1, 96>>>(in, out, COUNT);
  finish();
  for (int i = 0; i < 32 * COUNT; i++) assert_int_equal(out[i], 2 * in[i / 32 * 32 + 31 - i % 32]);
  CHECK(cudaFree(in));
  CHECK(cudaFree(out));
}

/* Threads leave one after the other; the phases go on with those that are left. */
__global__ void dropping_kernel(int *sums) {
  __shared__ Barrier barrier;
  __shared__ int sum;
  int i = threadIdx.x;
  if (i == 0) {
    init(&barrier, blockDim.x);
    sum = 0;
  }
  __syncthreads();
  for (int turn = 0; turn <= i; turn++) {
    atomicAdd(&sum, 1);
    barrier.arrive_and_wait();
    if (i == (int)blockDim.x - 1) sums[turn] = sum;
    if (turn == i)
      barrier.arrive_and_drop();
    else
      barrier.arrive_and_wait();
  }
}

static void test_threads_that_leave_a_barrier(void **state) {
  (void)state;
  int *sums = new_array<int>(40);
  dropping_kernel<<<1, 40>>>(sums);
  finish();
  for (int turn = 0, sum = 0; turn < 40; turn++) assert_int_equal(sums[turn], sum += 40 - turn);
  CHECK(cudaFree(sums));
}

struct Count { /* what the last to arrive does */
  int *calls;
  __host__ __device__ void operator()() const noexcept { ++*calls; }
};

__global__ void completion_kernel(int *out) {
  typedef cuda::barrier<cuda::thread_scope_block, Count> Counting;
  __shared__ int calls;
  __shared__ alignas(Counting) char room[sizeof(Counting)];
  Counting &barrier = *(Counting *)room;
  if (threadIdx.x == 0) {
    calls = 0;
    init(&barrier, blockDim.x, Count{&calls});
  }
  __syncthreads();
  for (int turn = 0; turn < 5; turn++) {
    barrier.arrive_and_wait();
    out[turn * blockDim.x + threadIdx.x] = calls;
    barrier.arrive_and_wait();
  }
}

static void test_a_completion_runs_once_a_phase(void **state) {
  (void)state;
  int *out = new_array<int>(5 * 64);
  completion_kernel<<<1, 64>>>(out);
  finish();
  for (int i = 0; i < 5 * 64; i++) assert_int_equal(out[i], i / 64 * 2 + 1);
  CHECK(cudaFree(out));
}

__global__ void parity_kernel(int *out) {
  __shared__ Barrier barrier;
  __shared__ int x;
  if (threadIdx.x == 0) init(&barrier, 1);
  __syncthreads();
  for (int turn = 0; turn < 6; turn++) {
    if (threadIdx.x == 0) {
      x = turn * turn;
      (void)barrier.arrive();
    }
    barrier.wait_parity(turn % 2);
    out[turn * blockDim.x + threadIdx.x] = x;
    __syncthreads();
  }
}

__global__ void primitives_kernel(int *out) {
  __shared__ __mbarrier_t barrier;
  __shared__ int x[64];
  if (threadIdx.x == 0) __mbarrier_init(&barrier, blockDim.x);
  __syncthreads();
  x[threadIdx.x] = threadIdx.x * 5;
  __mbarrier_token_t token = __mbarrier_arrive(&barrier);
  while (!__mbarrier_test_wait(&barrier, token)) {
  }
  out[threadIdx.x] = x[63 - threadIdx.x];
}

static void test_phases_by_their_parity(void **state) {
  (void)state;
  int *out = new_array<int>(6 * 64);
  parity_kernel<<<1, 64>>>(out);
  finish();
  for (int i = 0; i < 6 * 64; i++) assert_int_equal(out[i], (i / 64) * (i / 64));
  primitives_kernel<<<1, 64>>>(out);
  finish();
  for (int i = 0; i < 64; i++) assert_int_equal(out[i], 5 * (63 - i));
  CHECK(cudaFree(out));
}

/* ---- copies and pipelines ---- */

__global__ void barrier_copy_kernel(const float *in, float *out, int n) {
  __shared__ Barrier barrier;
  __shared__ alignas(16) float x[256];
  cg::thread_block block = cg::this_thread_block();
  if (block.thread_rank() == 0) init(&barrier, block.size());
  block.sync();
  for (int start = 0; start < n; start += 256) {
    cuda::memcpy_async(block, x, in + start, cuda::aligned_size_t<16>(256 * sizeof(float)), barrier);
    barrier.arrive_and_wait();
    for (int i = threadIdx.x; i < 256; i += blockDim.x) out[start + i] = x[255 - i] + 1;
    block.sync();
  }
  if (threadIdx.x < 16) { /* every thread for itself */
    cuda::memcpy_async(&x[4 * threadIdx.x], &in[4 * threadIdx.x], sizeof(float) * 4, barrier);
  }
  barrier.arrive_and_wait();
  for (int i = threadIdx.x; i < 64; i += blockDim.x) out[n + i] = x[i] * 2;
}

static void test_copies_that_a_barrier_waits_for(void **state) {
  (void)state;
  enum { N = 1024 };
  float *in = new_array<float>(N), *out = new_array<float>(N + 64);
  for (int i = 0; i < N; i++) in[i] = (float)(i * 7 % 1000);
  barrier_copy_kernel<<<1, 128>>>(in, out, N);
  finish();
  for (int i = 0; i < N; i++) assert_true(out[i] == in[i / 256 * 256 + 255 - i % 256] + 1);
  for (int i = 0; i < 64; i++) assert_true(out[N + i] == in[i] * 2);
  CHECK(cudaFree(in));
  CHECK(cudaFree(out));
}

/* Two stages, filled ahead: the usual loop. */
template <int stages>
__global__ void pipeline_kernel(const int *in, int *out, int batches) {
  __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, stages> state;
  __shared__ int buffer[stages][128];
  cg::thread_block block = cg::this_thread_block();
  auto pipeline = cuda::make_pipeline(block, &state);
  int fetched = 0;
  for (int batch = 0; batch < batches; batch++) {
    for (; fetched < batches && fetched < batch + stages; fetched++) {
      pipeline.producer_acquire();
      cuda::memcpy_async(block, buffer[fetched % stages], in + 128 * fetched, sizeof(int) * 128, pipeline);
      pipeline.producer_commit();
    }
    pipeline.consumer_wait();
    for (int i = threadIdx.x; i < 128; i += blockDim.x) out[128 * batch + i] = buffer[batch % stages][127 - i] + batch;
    pipeline.consumer_release();
  }
}

template <int stages>
static void check_pipeline(void) {
  enum { BATCHES = 9 };
  int *in = new_array<int>(128 * BATCHES), *out = new_array<int>(128 * BATCHES);
  for (int i = 0; i < 128 * BATCHES; i++) in[i] = (int)(next_random() >> 3);
  pipeline_kernel<stages><<<1, 64>>>(in, out, BATCHES);
  finish();
  for (int i = 0; i < 128 * BATCHES; i++) assert_int_equal(out[i], in[i / 128 * 128 + 127 - i % 128] + i / 128);
  CHECK(cudaFree(in));
  CHECK(cudaFree(out));
}

static void test_pipelines_of_a_block(void **state) {
  (void)state;
  check_pipeline<1>();
  check_pipeline<2>();
  check_pipeline<4>();
}

/* Some threads fill, the others use. */
template <bool by_role>
__global__ void roles_kernel(const int *in, int *out, int batches) {
  enum { STAGES = 2, PRODUCERS = 32 };
  __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, STAGES> state;
  __shared__ int buffer[STAGES][PRODUCERS];
  cg::thread_block block = cg::this_thread_block();
  bool producer = block.thread_rank() < PRODUCERS;
  auto role = producer ? cuda::pipeline_role::producer : cuda::pipeline_role::consumer;
  auto pipeline = by_role ? cuda::make_pipeline(block, &state, role) : cuda::make_pipeline(block, &state, PRODUCERS);
  int lane = threadIdx.x % PRODUCERS, consumer = threadIdx.x / PRODUCERS - 1;
  for (int batch = 0; batch < batches; batch++) {
    if (producer) {
      pipeline.producer_acquire();
      cuda::memcpy_async(&buffer[batch % STAGES][lane], &in[PRODUCERS * batch + lane], sizeof(int), pipeline);
      pipeline.producer_commit();
    } else {
      pipeline.consumer_wait();
      out[(2 * batch + consumer) * PRODUCERS + lane] = buffer[batch % STAGES][PRODUCERS - 1 - lane] + consumer;
      pipeline.consumer_release();
    }
  }
}

template <bool by_role>
static void check_roles(void) {
  enum { BATCHES = 7 };
  int *in = new_array<int>(32 * BATCHES), *out = new_array<int>(64 * BATCHES);
  for (int i = 0; i < 32 * BATCHES; i++) in[i] = (int)(next_random() >> 3);
  roles_kernel<by_role><<<1, 96>>>(in, out, BATCHES);
  finish();
  for (int i = 0; i < 64 * BATCHES; i++) {
    int batch = i / 64, consumer = i / 32 % 2, lane = i % 32;
    assert_int_equal(out[i], in[32 * batch + 31 - lane] + consumer);
  }
  CHECK(cudaFree(in));
  CHECK(cudaFree(out));
}

static void test_pipelines_with_roles(void **state) {
  (void)state;
  check_roles<false>();
  check_roles<true>();
}

__global__ void primitive_copy_kernel(const float *in, float *out) {
  __shared__ alignas(16) float x[3][64 * 4];
  int i = threadIdx.x;
  __pipeline_memcpy_async(&x[0][4 * i], &in[4 * i], 16);
  __pipeline_commit();
  for (int j = 0; j < 4; j++) __pipeline_memcpy_async(&x[1][i + 64 * j], &in[i + 64 * j], 4);
  __pipeline_memcpy_async(&x[2][2 * i], &in[2 * i], 8, 4); /* the second half becomes 0 */
  __pipeline_commit();
  __pipeline_wait_prior(1);
  __syncthreads();
  float first = x[0][255 - i];
  __pipeline_wait_prior(0);
  __syncthreads();
  out[i] = first + 1000 * x[1][63 - i];
  out[64 + i] = x[2][127 - i];
  auto alone = cuda::make_pipeline(); /* of one thread */
  alone.producer_acquire();
  cuda::memcpy_async(&x[0][i], &in[i + 64], sizeof(float), alone);
  alone.producer_commit();
  cuda::pipeline_consumer_wait_prior<0>(alone);
  alone.consumer_release();
  out[128 + i] = x[0][i];
}

static void test_copies_in_c(void **state) {
  (void)state;
  float *in = new_array<float>(256), *out = new_array<float>(192);
  for (int i = 0; i < 256; i++) in[i] = (float)(i * 3 % 100);
  primitive_copy_kernel<<<1, 64>>>(in, out);
  finish();
  for (int i = 0; i < 64; i++) {
    assert_true(out[i] == in[255 - i] + 1000 * in[63 - i]);
    assert_true(out[64 + i] == ((127 - i) % 2 ? 0 : in[127 - i]));
    assert_true(out[128 + i] == in[i + 64]);
  }
  CHECK(cudaFree(in));
  CHECK(cudaFree(out));
}

/* ---- atomics ---- */

__device__ cuda::atomic<int, cuda::thread_scope_device> counter{5};

__global__ void atomics_kernel(int *sums, float *floats, double *doubles, unsigned *extremes) {
  __shared__ cuda::atomic<int, cuda::thread_scope_block> shared_sum;
  if (threadIdx.x == 0) shared_sum.store(0);
  __syncthreads();
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  counter.fetch_add(i, cuda::memory_order_relaxed);
  shared_sum += i;
  shared_sum++;
  cuda::atomic_ref<int, cuda::thread_scope_device> sum(sums[0]);
  sum.fetch_sub(i);
  cuda::atomic_ref<float, cuda::thread_scope_device>(floats[0]).fetch_add(0.25f);
  cuda::atomic_ref<double, cuda::thread_scope_device>(doubles[0]).fetch_add(0.5);
  cuda::atomic_ref<unsigned, cuda::thread_scope_device>(extremes[0]).fetch_max((unsigned)i * 7);
  cuda::atomic_ref<unsigned, cuda::thread_scope_device>(extremes[1]).fetch_min(5000u - i);
  cuda::atomic_ref<unsigned, cuda::thread_scope_device>(extremes[2]).fetch_or(1u << (i % 32));
  cuda::atomic_ref<unsigned, cuda::thread_scope_device>(extremes[3]).fetch_xor((unsigned)i);
  int old = sums[1]; /* any operation, by exchange */
  cuda::atomic_ref<int, cuda::thread_scope_device> product(sums[1]);
  old = product.load();
  while (!product.compare_exchange_weak(old, old * 3 % 1000003)) {
  }
  __syncthreads();
  if (threadIdx.x == 0) sum.fetch_add(shared_sum.load());
}

__global__ void read_counter_kernel(int *out) { *out = counter.load(); }

static void test_atomics(void **state) {
  (void)state;
  enum { BLOCKS = 5, BLOCK = 64, N = BLOCKS * BLOCK };
  int *sums = new_array<int>(3);
  float *floats = new_array<float>(1);
  double *doubles = new_array<double>(1);
  unsigned *extremes = new_array<unsigned>(4), odd = 0;
  sums[1] = 1;
  extremes[1] = ~0u;
  atomics_kernel<<<BLOCKS, BLOCK>>>(sums, floats, doubles, extremes);
  finish();
  read_counter_kernel<<<1, 1>>>(sums + 2);
  finish();
  int product = 1;
  for (unsigned i = 0; i < N; i++) {
    product = product * 3 % 1000003;
    odd ^= i;
  }
  assert_int_equal(sums[2], 5 + N * (N - 1) / 2);
  assert_int_equal(sums[0], N); /* all i cancel; one for each thread is left */
  assert_int_equal(sums[1], product);
  assert_true(floats[0] == 0.25f * N && doubles[0] == 0.5 * N);
  assert_int_equal(extremes[0], (N - 1) * 7);
  assert_int_equal(extremes[1], 5000 - (N - 1));
  assert_int_equal(extremes[2], 0xffffffffu);
  assert_int_equal(extremes[3], odd);
  CHECK(cudaFree(sums));
  CHECK(cudaFree(floats));
  CHECK(cudaFree(doubles));
  CHECK(cudaFree(extremes));
}

/* A value is passed on from thread to thread, each waiting in a loop for its turn. */
__global__ void turns_kernel(int *out) {
  __shared__ cuda::atomic<int, cuda::thread_scope_block> turn;
  __shared__ int value;
  if (threadIdx.x == 0) {
    turn.store(0);
    value = 1;
  }
  __syncthreads();
  int mine = (threadIdx.x * 37 + 11) % blockDim.x;
  while (turn.load(cuda::memory_order_acquire) != mine) {
  }
  value = (value * 5 + mine) % 10007;
  out[mine] = value;
  turn.store(mine + 1, cuda::memory_order_release);
}

__global__ void lock_kernel(int *total) {
  typedef cuda::binary_semaphore<cuda::thread_scope_block> Lock;
  typedef cuda::latch<cuda::thread_scope_block> Latch;
  __shared__ alignas(16) char lock_room[sizeof(Lock)], latch_room[sizeof(Latch)];
  Lock &lock = *(Lock *)lock_room;
  Latch &all_done = *(Latch *)latch_room;
  __shared__ int sum;
  if (threadIdx.x == 0) {
    new (&lock) Lock(1);
    new (&all_done) Latch(blockDim.x);
    sum = 0;
  }
  __syncthreads();
  lock.acquire();
  sum = sum * 1 + (int)threadIdx.x; /* not atomic: the lock makes it so */
  lock.release();
  all_done.arrive_and_wait();
  total[threadIdx.x] = sum;
}

static void test_waiting_for_each_other(void **state) {
  (void)state;
  int *out = new_array<int>(96);
  turns_kernel<<<1, 96>>>(out);
  finish();
  for (int i = 0, value = 1; i < 96; i++) assert_int_equal(out[i], value = (value * 5 + i) % 10007);
  lock_kernel<<<1, 96>>>(out);
  finish();
  for (int i = 0; i < 96; i++) assert_int_equal(out[i], 95 * 48);
  CHECK(cudaFree(out));
}

/* ---- the library for both sides ---- */

__host__ __device__ static int use_standard(int i) {
  cuda::std::array<int, 3> a = {i, i + 1, i + 2};
  cuda::std::tuple<int, float> t(i, 0.5f);
  cuda::std::pair<int, int> p = cuda::std::make_pair(a[0], a[2]);
  cuda::std::swap(p.first, p.second);
  static_assert(cuda::std::is_same<cuda::std::decay<const int &>::type, int>::value, "");
  return p.first - p.second + (int)a.size() + cuda::std::get<0>(t) +
         (cuda::std::numeric_limits<int>::max() == 0x7fffffff);
}

__global__ void standard_kernel(int *out) { out[threadIdx.x] = use_standard(threadIdx.x); }

static void test_the_standard_library(void **state) {
  (void)state;
  int *out = new_array<int>(32);
  standard_kernel<<<1, 32>>>(out);
  finish();
  for (int i = 0; i < 32; i++) {
    assert_int_equal(out[i], 6 + i);
    assert_int_equal(use_standard(i), 6 + i);
  }
  CHECK(cudaFree(out));
}

/* Undefined in CUDA, and reported here; yet hardware counts arrivals, wherever they come from, and so do we. */
__global__ void barriers_in_two_branches(int *out, int rounds) {
  __shared__ int value[96];
  int t = threadIdx.x, sum = 0;
  value[t] = t;
  if (t / 32 % 2) {
    for (int r = 0; r < rounds; r++) {
      __syncthreads();
      sum += value[(t + r) % 96];
      __syncthreads();
      value[t] = sum;
    }
  } else {
    for (int r = 0; r < rounds; r++) {
      __syncthreads();
      sum += value[(t + r) % 96];
      __syncthreads();
      value[t] = sum;
    }
  }
  out[t] = sum;
}

static void test_barriers_in_two_branches(void **state) {
  (void)state;
  enum { N = 96, ROUNDS = 5 };
  int *out = new_array<int>(N), value[N], sum[N] = {0};
  barriers_in_two_branches<<<1, N>>>(out, ROUNDS);
  finish();
  for (int t = 0; t < N; t++) value[t] = t;
  for (int r = 0; r < ROUNDS; r++) {
    for (int t = 0; t < N; t++) sum[t] += value[(t + r) % N];
    memcpy(value, sum, sizeof value);
  }
  for (int t = 0; t < N; t++) assert_int_equal(out[t], sum[t]);
  CHECK(cudaFree(out));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_phases_of_a_barrier),
      cmocka_unit_test(test_producer_and_consumer),
      cmocka_unit_test(test_threads_that_leave_a_barrier),
      cmocka_unit_test(test_a_completion_runs_once_a_phase),
      cmocka_unit_test(test_phases_by_their_parity),
      cmocka_unit_test(test_copies_that_a_barrier_waits_for),
      cmocka_unit_test(test_pipelines_of_a_block),
      cmocka_unit_test(test_pipelines_with_roles),
      cmocka_unit_test(test_copies_in_c),
      cmocka_unit_test(test_atomics),
      cmocka_unit_test(test_waiting_for_each_other),
      cmocka_unit_test(test_the_standard_library),
      cmocka_unit_test(test_barriers_in_two_branches),
  };
  return cmocka_run_group_tests_name("barrier", tests, NULL, NULL);
}
