/* Children that make the mistakes students make: the message must say where, what it means and what to try. Errors are
 * made on purpose here, so leave this test out of a run under compute-sanitizer. */
#include "common/check.h"

#include "common/test.h"

enum { NO_GPU = 77 };

/* Each child prints the line of its mistake first. */
#define NEXT_LINE() printf("line %d\n", __LINE__ + 1)

/* The parent must not touch CUDA before fork(), so the child finds out whether there is a GPU. */
static void need_gpu(void) {
  int count = 0;
  if (cudaGetDeviceCount(&count) != cudaSuccess || count == 0) exit(NO_GPU);
}

/* Asserts that the child ends with file and line, the call, the error's name and this part of the advice. */
static void assert_message(void (*child)(void), const char *call, const char *name, const char *advice) {
  static char output[16384]; /* the emulator's diagnosis is long */
  char where[64];
  int status = test_fork(child, output, sizeof output);
  if (status == NO_GPU) {
    print_message("skipped: no usable NVIDIA GPU\n");
    skip();
  }
  print_message("%s", output);
  assert_int_equal(status, 1);
  const char *line = strstr(output, "line ");
  assert_non_null(line);
  snprintf(where, sizeof where, "check_test.cu:%d: ", atoi(line + 5));
  const char *parts[] = {": error: ", where, call, " failed: ", name, "\n  try: ", advice};
  for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
    if (strstr(output, parts[i]) == NULL) fail_msg("'%s' is missing from: %s", parts[i], output);
}

__global__ void write_kernel(float *x) { x[threadIdx.x] = 1; }

__global__ void write4_kernel(float4 *x) { x[threadIdx.x] = make_float4(1, 2, 3, 4); }

static void finds_no_gpu(void) {
  float *x;
  setenv("CUDA_VISIBLE_DEVICES", "", 1);
  NEXT_LINE();
  CUDA_CHECK(cudaMalloc(&x, 4));
}

static void allocates_too_much(void) {
  float *x;
  need_gpu();
  NEXT_LINE();
  CUDA_CHECK(cudaMalloc(&x, (size_t)1 << 50));
}

static void copies_to_null(void) {
  float x[3] = {1, 2, 3};
  need_gpu();
  NEXT_LINE();
  CUDA_CHECK(cudaMemcpy(NULL, x, sizeof x, cudaMemcpyHostToDevice));
}

static void launches_too_many_threads(void) {
  float *x;
  need_gpu();
  CUDA_CHECK(cudaMalloc(&x, 4096 * sizeof *x));
  write_kernel<<<1, 4096>>>(x);
  NEXT_LINE();
  CUDA_CHECK_LAUNCH();
}

static void launches_no_block(void) {
  need_gpu();
  write_kernel<<<0, 32>>>(NULL);
  NEXT_LINE();
  CUDA_CHECK_LAUNCH();
}

static void writes_to_null(void) {
  need_gpu();
  write_kernel<<<1, 32>>>(NULL);
  CUDA_CHECK_LAUNCH();
  NEXT_LINE();
  CUDA_CHECK(cudaDeviceSynchronize());
}

static void writes_misaligned(void) {
  float *x;
  need_gpu();
  CUDA_CHECK(cudaMalloc(&x, 4096));
  write4_kernel<<<1, 1>>>((float4 *)(x + 1));
  CUDA_CHECK_LAUNCH();
  NEXT_LINE();
  CUDA_CHECK(cudaDeviceSynchronize());
}

static void fails_without_advice(void) {
  cudaError_t status = cudaErrorPeerAccessNotEnabled;
  cuda_fail(status, "cudaX()", "file.cu", 12, cuda_error_advice(status));
}

static void no_gpu_is_explained(void **state) {
  (void)state;
  assert_message(finds_no_gpu, "cudaMalloc(&x, 4)", "(cudaError", "use --device=cpu");
}

static void calls_are_explained(void **state) {
  (void)state;
  assert_message(allocates_too_much, "cudaMalloc(&x, (size_t)1 << 50)", "cudaErrorMemoryAllocation", "smaller batch");
  assert_message(copies_to_null, "cudaMemcpy(", "cudaErrorInvalidValue", "NULL or host pointer");
}

static void launches_are_explained(void **state) {
  (void)state;
  const char *call = "the kernel launch above";
  assert_message(launches_too_many_threads, call, "cudaErrorInvalid", "at most 1024 threads");
  assert_message(launches_no_block, call, "cudaErrorInvalid", "grid sizes above zero");
}

static void faults_in_kernels_are_explained(void **state) {
  (void)state;
#if defined(NN_SANITIZED) || defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  skip(); /* the sanitizer sees it first, and ends the program */
#endif
  const char *call = "cudaDeviceSynchronize()";
  assert_message(writes_to_null, call, "cudaErrorIllegalAddress", "one launched before");
  assert_message(writes_misaligned, call, "cudaErrorMisalignedAddress", "float4");
}

static void no_advice_is_no_line(void **state) {
  (void)state;
  char output[1024];
  assert_int_equal(test_fork(fails_without_advice, output, sizeof output), 1);
  assert_non_null(strstr(output, "file.cu:12: cudaX() failed: "));
  assert_null(strstr(output, "try:"));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(no_gpu_is_explained),    cmocka_unit_test(calls_are_explained),
      cmocka_unit_test(launches_are_explained), cmocka_unit_test(faults_in_kernels_are_explained),
      cmocka_unit_test(no_advice_is_no_line),
  };
  return TEST_MAIN("check", tests);
}
