/* schedule_test.cu - who runs when: every thread once, barriers that hold, launches that are refused as CUDA refuses
 * them.
 *
 * All of it is true of a GPU, too; what only the emulator does stands in #ifdef SIMT_REWRITTEN. A launch that fails
 * leaves the device unusable, so those cases run in a process of their own. */
#undef NDEBUG /* the kernels below mean their assert() */
#include <assert.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern "C" { /* cmocka 1 does not say so itself */
#include <cmocka.h>
}
#include <cuda_runtime.h>
#include <pthread.h>

static void check(cudaError_t error, const char *what, int line) {
  if (error != cudaSuccess) fail_msg("line %d: %s: %s", line, what, cudaGetErrorString(error));
}
#define CHECK(call) check(call, #call, __LINE__)

template <class T>
static T *device_array(size_t count) {
  T *array = NULL;
  CHECK(cudaMalloc((void **)&array, count * sizeof(T)));
  CHECK(cudaMemset(array, 0, count * sizeof(T)));
  return array;
}

template <class T>
static T *download(const T *from, size_t count) {
  T *to = (T *)malloc(count * sizeof(T));
  CHECK(cudaMemcpy(to, from, count * sizeof(T), cudaMemcpyDeviceToHost));
  return to;
}

/* ---- every thread once ---- */

__global__ void count_kernel(unsigned *visits, unsigned long long *checksum) {
  unsigned long long block =
      blockIdx.x + (unsigned long long)gridDim.x * (blockIdx.y + (unsigned long long)gridDim.y * blockIdx.z);
  unsigned rank = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
  unsigned long long i = block * (blockDim.x * blockDim.y * blockDim.z) + rank;
  atomicAdd(&visits[i], 1u);
  atomicAdd(checksum, i + 1);
}

static void expect_each_thread_once(dim3 grid, dim3 block) {
  size_t n = (size_t)grid.x * grid.y * grid.z * block.x * block.y * block.z;
  unsigned *visits = device_array<unsigned>(n);
  unsigned long long *checksum = device_array<unsigned long long>(1);
  count_kernel<<<grid, block>>>(visits, checksum);
  CHECK(cudaGetLastError());
  CHECK(cudaDeviceSynchronize());
  unsigned *v = download(visits, n);
  unsigned long long *sum = download(checksum, 1);
  for (size_t i = 0; i < n; i++)
    if (v[i] != 1)
      fail_msg("grid %u,%u,%u block %u,%u,%u: thread %zu ran %u times", grid.x, grid.y, grid.z, block.x, block.y,
               block.z, i, v[i]);
  assert_true(*sum == (unsigned long long)n * (n + 1) / 2);
  free(v);
  free(sum);
  CHECK(cudaFree(visits));
  CHECK(cudaFree(checksum));
}

static void test_every_thread_runs_once(void **state) {
  (void)state;
  const dim3 blocks[] = {dim3(1),          dim3(31),      dim3(33),     dim3(1024), dim3(1, 1, 64),
                         dim3(1, 1024, 1), dim3(7, 5, 3), dim3(32, 32), dim3(127)};
  const dim3 grids[] = {dim3(1), dim3(2), dim3(17), dim3(5, 3, 2), dim3(1, 33), dim3(1, 1, 9)};
  for (const dim3 &block : blocks)
    for (const dim3 &grid : grids) expect_each_thread_once(grid, block);
  expect_each_thread_once(dim3(100003), dim3(1));
  expect_each_thread_once(dim3(1, 65535), dim3(2));
  expect_each_thread_once(dim3(1, 1, 65535), dim3(2));
}

/* ---- barriers ---- */

/* Each round every thread takes its neighbour's number: after n rounds each has its own again, if no barrier leaks. */
__global__ void rotate_kernel(int *out, int rounds) {
  extern __shared__ int s[];
  int t = threadIdx.x, n = blockDim.x;
  s[t] = t + 1000 * blockIdx.x;
  for (int r = 0; r < rounds; r++) {
    __syncthreads();
    int v = s[(t + 1) % n];
    __syncthreads();
    s[t] = v;
  }
  out[blockIdx.x * n + t] = s[t];
}

static void test_barriers_hold(void **state) {
  (void)state;
  for (int n : {1, 2, 31, 32, 33, 127, 256, 1000, 1024}) {
    int blocks = 5, rounds = 7;
    int *out = device_array<int>((size_t)blocks * n);
    rotate_kernel<<<blocks, n, n * sizeof(int)>>>(out, rounds);
    CHECK(cudaGetLastError());
    int *h = download(out, (size_t)blocks * n);
    for (int i = 0; i < blocks * n; i++) assert_int_equal(h[i], (i % n + rounds) % n + 1000 * (i / n));
    free(h);
    CHECK(cudaFree(out));
  }
}

/* Barriers in a uniform branch and in a loop whose trip count only the block knows. */
__global__ void uniform_branch_kernel(int *out) {
  __shared__ int left;
  if (threadIdx.x == 0) left = blockIdx.x;
  __syncthreads();
  int turns = 0;
  while (left > 0) {
    __syncthreads();
    if (threadIdx.x == 0) left--;
    turns++;
    __syncthreads();
  }
  if (blockIdx.x % 2) __syncthreads();
  out[blockIdx.x * blockDim.x + threadIdx.x] = turns;
}

static void test_barriers_in_uniform_branches(void **state) {
  (void)state;
  int *out = device_array<int>(9 * 65);
  uniform_branch_kernel<<<9, 65>>>(out);
  int *h = download(out, 9 * 65);
  for (int i = 0; i < 9 * 65; i++) assert_int_equal(h[i], i / 65);
  free(h);
  CHECK(cudaFree(out));
}

__global__ void predicate_kernel(int *out) {
  int t = threadIdx.x, n = blockDim.x;
  out[t] = __syncthreads_count(t % 3 == 0);
  out[n + t] = __syncthreads_and(t < 1024);
  out[2 * n + t] = __syncthreads_and(t != n - 1);
  out[3 * n + t] = __syncthreads_or(t == n - 1);
  out[4 * n + t] = __syncthreads_or(t > n);
}

static void test_barriers_that_count(void **state) {
  (void)state;
  for (int n : {1, 32, 100, 1024}) {
    int *out = device_array<int>((size_t)5 * n);
    predicate_kernel<<<1, n>>>(out);
    int *h = download(out, (size_t)5 * n);
    for (int t = 0; t < n; t++) {
      assert_int_equal(h[t], (n + 2) / 3);
      assert_true(h[n + t]);
      assert_false(h[2 * n + t]);
      assert_true(h[3 * n + t]);
      assert_false(h[4 * n + t]);
    }
    free(h);
    CHECK(cudaFree(out));
  }
}

/* Threads that have returned are not waited for (compute capability 7.0 and later). */
__global__ void early_return_kernel(int *out) {
  if (threadIdx.x >= 40) return;
  __syncthreads();
  out[threadIdx.x] = 1;
}

static void test_returned_threads_are_not_waited_for(void **state) {
  (void)state;
  int *out = device_array<int>(64);
  early_return_kernel<<<1, 64>>>(out);
  int *h = download(out, 64);
  for (int i = 0; i < 64; i++) assert_int_equal(h[i], i < 40);
  free(h);
  CHECK(cudaFree(out));
}

/* ---- threads that wait for each other without a barrier ---- */

__device__ int lock_word;

__global__ void lock_kernel(int *counter) {
  bool done = false;
  while (!done) {
    if (atomicCAS(&lock_word, 0, 1) == 0) {
      __threadfence();
      *(volatile int *)counter = *(volatile int *)counter + 1;
      __threadfence();
      atomicExch(&lock_word, 0);
      done = true;
    }
  }
}

static void test_a_spin_lock_makes_progress(void **state) {
  (void)state;
  int *counter = device_array<int>(1);
  lock_kernel<<<7, 96>>>(counter);
  CHECK(cudaDeviceSynchronize());
  int *h = download(counter, 1);
  assert_int_equal(*h, 7 * 96);
  free(h);
  CHECK(cudaFree(counter));
}

/* ---- launches that cannot be ---- */

__global__ void nothing_kernel(int *) {}

static void expect_refused(dim3 grid, dim3 block, size_t shared, int line) {
  nothing_kernel<<<grid, block, shared>>>(NULL);
  cudaError_t error = cudaGetLastError();
  /* CUDA 13 says InvalidValue for some of what CUDA 12 called InvalidConfiguration. */
  if (error != cudaErrorInvalidConfiguration && error != cudaErrorInvalidValue)
    fail_msg("line %d: expected a refusal, got %s", line, cudaGetErrorName(error));
  assert_int_equal(cudaGetLastError(), cudaSuccess);
  CHECK(cudaDeviceSynchronize());
}

static void test_impossible_launches_are_refused(void **state) {
  (void)state;
  expect_refused(dim3(1), dim3(1025), 0, __LINE__);
  expect_refused(dim3(1), dim3(1280), 0, __LINE__);
  expect_refused(dim3(1), dim3(32, 33), 0, __LINE__);
  expect_refused(dim3(1), dim3(1, 1, 65), 0, __LINE__);
  expect_refused(dim3(1), dim3(0), 0, __LINE__);
  expect_refused(dim3(0), dim3(1), 0, __LINE__);
  expect_refused(dim3(1, 65536), dim3(1), 0, __LINE__);
  expect_refused(dim3(1, 1, 65536), dim3(1), 0, __LINE__);
  expect_refused(dim3(1), dim3(1), 48 * 1024 + 1, __LINE__);
  nothing_kernel<<<1, 1024, 48 * 1024>>>(NULL);
  CHECK(cudaGetLastError());
}

/* ---- a kernel that stops ---- */

__global__ void assert_kernel(int *x) {
  assert(threadIdx.x != 3);
  x[threadIdx.x] = 1;
}

__global__ void null_kernel(int *x) { x[threadIdx.x] = 1; }

/* The exit status of action() in a process of its own, its stderr in `text`. */
static int in_child(int (*action)(void), char *text, size_t size) {
  int ends[2], status = 0;
  assert_int_equal(pipe(ends), 0);
  fflush(NULL);
  pid_t child = fork();
  if (child == 0) {
    dup2(ends[1], 2);
    close(ends[0]);
    close(ends[1]);
    _exit(action());
  }
  close(ends[1]);
  size_t length = 0;
  ssize_t got;
  while ((got = read(ends[0], text + length, size - 1 - length)) > 0) length += (size_t)got;
  text[length] = '\0';
  close(ends[0]);
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static int run_assert(void) {
  int *x;
  if (cudaMalloc((void **)&x, 64 * sizeof(int)) != cudaSuccess) return 1;
  assert_kernel<<<1, 64>>>(x);
  if (cudaDeviceSynchronize() != cudaErrorAssert) return 2;
  if (cudaGetLastError() != cudaErrorAssert) return 3;
  if (cudaMalloc((void **)&x, 4) != cudaErrorAssert) return 4; /* for good */
  return 42;
}

static int run_null(void) {
  null_kernel<<<1, 64>>>(NULL);
  if (cudaDeviceSynchronize() != cudaErrorIllegalAddress) return 2;
  if (cudaDeviceSynchronize() != cudaErrorIllegalAddress) return 3;
  return 42;
}

static void test_assert_is_an_error_of_the_next_call(void **state) {
  (void)state;
  static char text[4096];
  assert_int_equal(in_child(run_assert, text, sizeof text), 42);
  assert_non_null(strstr(text, "schedule_test.cu"));
  assert_non_null(strstr(text, "thread: [3,0,0]"));
  assert_non_null(strstr(text, "threadIdx.x != 3"));
}

static void test_a_null_pointer_is_an_illegal_address(void **state) {
  (void)state;
#if defined(NN_SANITIZED) || defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  skip(); /* the sanitizer keeps the signal for itself */
#endif
  static char text[8192];
  assert_int_equal(in_child(run_null, text, sizeof text), 42);
#ifdef SIMT_REWRITTEN
  assert_non_null(strstr(text, "=== simt: null pointer"));
  assert_non_null(strstr(text, "schedule_test.cu"));
  assert_non_null(strstr(text, "thread (")); /* whichever runs first in the order asked for */
#endif
}

/* ---- several host threads ---- */

static void *launch_many(void *argument) {
  int *out = (int *)argument;
  for (int i = 0; i < 50; i++) rotate_kernel<<<3, 64, 64 * sizeof(int)>>>(out, 64);
  return (void *)(intptr_t)cudaDeviceSynchronize();
}

static void test_host_threads_launch_side_by_side(void **state) {
  (void)state;
  pthread_t threads[4];
  int *out[4];
  for (int i = 0; i < 4; i++) {
    out[i] = device_array<int>(3 * 64);
    assert_int_equal(pthread_create(&threads[i], NULL, launch_many, out[i]), 0);
  }
  for (int i = 0; i < 4; i++) {
    void *error;
    pthread_join(threads[i], &error);
    assert_null(error);
    int *h = download(out[i], 3 * 64);
    for (int j = 0; j < 3 * 64; j++) assert_int_equal(h[j], j % 64 + 1000 * (j / 64));
    free(h);
    CHECK(cudaFree(out[i]));
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      /* First those that fork: a process that has used a GPU cannot hand it to its child. */
      cmocka_unit_test(test_assert_is_an_error_of_the_next_call),
      cmocka_unit_test(test_a_null_pointer_is_an_illegal_address),
      cmocka_unit_test(test_every_thread_runs_once),
      cmocka_unit_test(test_barriers_hold),
      cmocka_unit_test(test_barriers_in_uniform_branches),
      cmocka_unit_test(test_barriers_that_count),
      cmocka_unit_test(test_returned_threads_are_not_waited_for),
      cmocka_unit_test(test_a_spin_lock_makes_progress),
      cmocka_unit_test(test_impossible_launches_are_refused),
      cmocka_unit_test(test_host_threads_launch_side_by_side),
  };
  return cmocka_run_group_tests_name("schedule", tests, NULL, NULL);
}
