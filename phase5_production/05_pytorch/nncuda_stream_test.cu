/* nncuda_stream_test.cu - launches of the library go to the caller's stream. Linked with the library's objects, not
 * with the library itself, so that the streams of the emulator are the same for both. */
#include "common/test_arrays.h"
#include "phase5_production/05_pytorch/nncuda.h"

enum { ROWS = 33, COLS = 127, N = ROWS * COLS };

static __global__ void double_kernel(float *x, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] *= 2;
}

static void double_in(cudaStream_t stream, float *x) {
  double_kernel<<<(N + 255) / 256, 256, 0, stream>>>(x, N);
  CUDA_CHECK_LAUNCH();
}

typedef struct Case {
  float *x, *y, *expected; /* x, y on the GPU; expected: softmax(2 x) * 2 */
  cudaStream_t stream;
} Case;

static Case case_open(uint64_t seed) {
  float *x = arrays_random(N, seed), *y = arrays_poison(N);
  Case c = {arrays_upload(DEVICE_GPU, x, N), arrays_upload(DEVICE_GPU, y, N), y, NULL};
  for (int i = 0; i < N; i++) x[i] *= 2;
  assert_int_equal(nncuda_softmax_forward(NNCUDA_CPU, NULL, NNCUDA_FLOAT32, c.expected, x, ROWS, COLS), NNCUDA_OK);
  for (int i = 0; i < N; i++) c.expected[i] *= 2;
  CUDA_CHECK(cudaStreamCreateWithFlags(&c.stream, cudaStreamNonBlocking));
  free(x);
  return c;
}

/* Three steps, each of which reads what the one before has written. */
static void case_submit(const Case *c, cudaStream_t stream) {
  double_in(stream, c->x);
  if (nncuda_softmax_forward(0, stream, NNCUDA_FLOAT32, c->y, c->x, ROWS, COLS) != NNCUDA_OK)
    fail_msg("%s", nncuda_last_error());
  double_in(stream, c->y);
}

static void case_close(Case *c) {
  float *y = arrays_poison(N);
  CUDA_CHECK(cudaMemcpy(y, c->y, N * sizeof *y, cudaMemcpyDeviceToHost));
  assert_matrix_close(y, c->expected, ROWS, COLS, 1e-5, 1e-7);
  CUDA_CHECK(cudaStreamDestroy(c->stream));
  arrays_download(DEVICE_GPU, NULL, c->x, N, "x");
  arrays_download(DEVICE_GPU, NULL, c->y, N, "y");
  free(y);
  free(c->expected);
}

/* With SIMT_STREAMS=lazy or random, and on a GPU, a launch in another stream would come too early or too late. */
static void order_of_a_stream(void **state) {
  (void)state;
  Case c = case_open(1), d = case_open(2);
  case_submit(&c, c.stream);
  case_submit(&d, d.stream);
  CUDA_CHECK(cudaStreamSynchronize(c.stream));
  CUDA_CHECK(cudaStreamSynchronize(d.stream));
  case_close(&c);
  case_close(&d);
}

static void null_is_the_legacy_stream(void **state) {
  (void)state;
  Case c = case_open(3);
  case_submit(&c, NULL);
  CUDA_CHECK(cudaStreamSynchronize(cudaStreamLegacy));
  case_close(&c);
}

/* Nothing else records a launch: neither the legacy stream nor the thread's own. */
static void graph_records_the_call(void **state) {
  (void)state;
  Case c = case_open(4);
  cudaGraph_t graph;
  cudaGraphExec_t launchable;
  size_t nodes = 0;
  CUDA_CHECK(cudaStreamBeginCapture(c.stream, cudaStreamCaptureModeThreadLocal));
  case_submit(&c, c.stream);
  CUDA_CHECK(cudaStreamEndCapture(c.stream, &graph));
  CUDA_CHECK(cudaGraphGetNodes(graph, NULL, &nodes));
  assert_int_equal(nodes, 3);
  CUDA_CHECK(cudaGraphInstantiate(&launchable, graph, 0));
  CUDA_CHECK(cudaGraphLaunch(launchable, c.stream));
  CUDA_CHECK(cudaStreamSynchronize(c.stream));
  CUDA_CHECK(cudaGraphExecDestroy(launchable));
  CUDA_CHECK(cudaGraphDestroy(graph));
  case_close(&c);
}

#ifdef SIMT_REWRITTEN /* a GPU's driver may read what such a handle points to */

/* A failed launch is a status, and does not reach the next call. */
static void stream_that_is_none(void **state) {
  (void)state;
  Case c = case_open(5);
  assert_int_equal(nncuda_softmax_forward(0, (void *)64, NNCUDA_FLOAT32, c.y, c.x, ROWS, COLS), NNCUDA_CUDA);
  assert_string_equal(nncuda_last_argument(), "stream");
  assert_non_null(strstr(nncuda_last_error(), "the stream belongs to another device than the call's"));
  assert_int_equal(cudaGetLastError(), cudaSuccess);
  case_submit(&c, c.stream);
  CUDA_CHECK(cudaStreamSynchronize(c.stream));
  case_close(&c);
}

#endif

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(order_of_a_stream),
      cmocka_unit_test(null_is_the_legacy_stream),
      cmocka_unit_test(graph_records_the_call),
#ifdef SIMT_REWRITTEN
      cmocka_unit_test(stream_that_is_none),
#endif
  };
  return TEST_MAIN("nncuda_stream", tests);
}
