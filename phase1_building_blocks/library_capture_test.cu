/* The library calls of lessons 6, 11, 14 and 15 in a CUDA graph, as common/lesson/time.h times short ones. Compiled
 * like the lessons for a GPU, so that <<<...>>> launches to the thread's own stream. A library whose handle has no
 * stream set uses the legacy stream, which may not be used while another stream is captured. */
#include "common/test_arrays.h"
#include "phase1_building_blocks/03_matmul_naive/matmul_cublas.cuh"
#include "phase1_building_blocks/11_random_init/random_init_curand.cuh"
#include "phase1_building_blocks/14_attention/attention_cublas.cuh"
#include "phase1_building_blocks/15_matmul_tensor_core/matmul_cublas_bfloat16.cuh"

enum { M = 64, N = 65, K = 33, HEADS = 2, S = 33, D = 64, OUTPUTS = HEADS * S * D };

typedef struct Arrays {
  float *c, *lse, *a, *b, *v;
  __nv_bfloat16 *half_a, *half_b;
} Arrays;

static void call_matmul(const Arrays *x) { matmul_cublas(x->c, x->a, x->b, M, N, K); }
static void call_matmul_bfloat16(const Arrays *x) { matmul_cublas_bfloat16(x->c, x->half_a, x->half_b, M, N, K); }
static void call_attention(const Arrays *x) { attention_cublas(x->c, x->lse, x->a, x->b, x->v, 1, HEADS, S, D, false); }
static void call_uniform(const Arrays *x) { random_uniform_curand(x->c, OUTPUTS, 0, 1, 7, 0); }

static __nv_bfloat16 *upload_bfloat16(const float *x, size_t n) {
  __nv_bfloat16 *rounded = (__nv_bfloat16 *)xmalloc(n * sizeof *rounded);
  for (size_t i = 0; i < n; i++) rounded[i] = __float2bfloat16(x[i]);
  void *device_x = arrays_upload_bytes(DEVICE_GPU, rounded, n * sizeof *rounded);
  free(rounded);
  return (__nv_bfloat16 *)device_x;
}

/* A call writes `outputs` floats. Launched by the graph it writes the same as when called, or others if `random`. */
static void expect_captured(void (*call)(const Arrays *), size_t outputs, bool random) {
  float *a = arrays_random(OUTPUTS, 1), *b = arrays_random(OUTPUTS, 2), *v = arrays_random(OUTPUTS, 3);
  float *poison = arrays_poison(OUTPUTS), *called = arrays_poison(OUTPUTS), *captured = arrays_poison(OUTPUTS);
  Arrays x = {arrays_upload(DEVICE_GPU, poison, OUTPUTS),
              arrays_upload(DEVICE_GPU, poison, HEADS * S),
              arrays_upload(DEVICE_GPU, a, OUTPUTS),
              arrays_upload(DEVICE_GPU, b, OUTPUTS),
              arrays_upload(DEVICE_GPU, v, OUTPUTS),
              upload_bfloat16(a, OUTPUTS),
              upload_bfloat16(b, OUTPUTS)};
  call(&x); /* creates the handle */
  device_download(DEVICE_GPU, called, x.c, OUTPUTS * sizeof *called);
  device_upload(DEVICE_GPU, x.c, poison, OUTPUTS * sizeof *poison);

  cudaGraph_t graph;
  cudaGraphExec_t launchable;
  size_t nodes = 0;
  CUDA_CHECK(cudaStreamBeginCapture(cudaStreamPerThread, cudaStreamCaptureModeRelaxed));
  call(&x);
  CUDA_CHECK(cudaStreamEndCapture(cudaStreamPerThread, &graph));
  CUDA_CHECK(cudaGraphGetNodes(graph, NULL, &nodes));
  assert_true(nodes >= 1);
  device_download(DEVICE_GPU, captured, x.c, OUTPUTS * sizeof *captured);
  assert_memory_equal(captured, poison, OUTPUTS * sizeof *captured); /* nothing has run yet */

  CUDA_CHECK(cudaGraphInstantiate(&launchable, graph, 0));
  CUDA_CHECK(cudaGraphLaunch(launchable, cudaStreamPerThread));
  CUDA_CHECK(cudaStreamSynchronize(cudaStreamPerThread));
  arrays_download(DEVICE_GPU, captured, x.c, OUTPUTS, "output");
  for (size_t i = 0; i < outputs; i++)
    if (random ? !(captured[i] > 0 && captured[i] <= 1) : captured[i] != called[i])
      fail_msg("element %zu: %g from the graph, %g from the call", i, captured[i], called[i]);

  CUDA_CHECK(cudaGraphExecDestroy(launchable));
  CUDA_CHECK(cudaGraphDestroy(graph));
  arrays_download(DEVICE_GPU, NULL, x.lse, HEADS * S, "lse");
  arrays_download(DEVICE_GPU, NULL, x.a, OUTPUTS, "a");
  arrays_download(DEVICE_GPU, NULL, x.b, OUTPUTS, "b");
  arrays_download(DEVICE_GPU, NULL, x.v, OUTPUTS, "v");
  device_free(DEVICE_GPU, x.half_a);
  device_free(DEVICE_GPU, x.half_b);
  free(a), free(b), free(v), free(poison), free(called), free(captured);
}

static void cublas_is_captured(void **state) {
  (void)state;
  test_requires_gpu();
  expect_captured(call_matmul, M * N, false);
}

static void cublas_bfloat16_is_captured(void **state) {
  (void)state;
  test_requires_gpu();
  expect_captured(call_matmul_bfloat16, M * N, false);
}

static void attention_by_cublas_is_captured(void **state) {
  (void)state;
  test_requires_gpu();
  expect_captured(call_attention, OUTPUTS, false);
}

static void curand_is_captured(void **state) {
  (void)state;
  test_requires_gpu();
  expect_captured(call_uniform, OUTPUTS, true);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(cublas_is_captured),
      cmocka_unit_test(cublas_bfloat16_is_captured),
      cmocka_unit_test(attention_by_cublas_is_captured),
      cmocka_unit_test(curand_is_captured),
  };
  return TEST_MAIN("library_capture", tests);
}
