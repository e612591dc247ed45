/* A wrong call of cuDNN: the message says where, which call, the status, what to try and, where cuDNN knows it, the
 * reason. On the CPU cuDNN is the emulation's; on a GPU the test is skipped without cuDNN 9. */
#include "common/check.h"
#include "common/check_cudnn.h"
#include "common/test.h"

#if CUDNN_COMPILED

enum { NOTHING_TO_TEST = 77 };

static const Cudnn *loaded(void) {
  Error err;
  int count = 0;
  const Cudnn *dnn = cudnn_load(&err);
  if (dnn == NULL || cudaGetDeviceCount(&count) != cudaSuccess || count == 0) exit(NOTHING_TO_TEST);
  return dnn;
}

static void works(void) {
  const Cudnn *dnn = loaded();
  cudnnHandle_t handle = cudnn_handle(dnn);
  cudnnTensorDescriptor_t tensor;
  size_t bytes;
  CUDNN_CHECK(dnn, dnn->cudnnCreateTensorDescriptor(&tensor));
  CUDNN_CHECK(dnn, dnn->cudnnSetTensor4dDescriptor(tensor, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, 2, 3, 5, 7));
  CUDNN_CHECK(dnn, dnn->cudnnGetTensorSizeInBytes(tensor, &bytes));
  CUDNN_CHECK(dnn, dnn->cudnnDestroyTensorDescriptor(tensor));
  CUDNN_CHECK(dnn, dnn->cudnnDestroy(handle));
  exit(bytes == 840 && dnn->cudnnGetVersion() >= 90000 ? 0 : 1);
}

static void describes_nothing(void) {
  const Cudnn *dnn = loaded();
  cudnnTensorDescriptor_t tensor;
  CUDNN_CHECK(dnn, dnn->cudnnCreateTensorDescriptor(&tensor));
  printf("line %d\n", __LINE__ + 1);
  CUDNN_CHECK(dnn, dnn->cudnnSetTensor4dDescriptor(tensor, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, 2, -3, 5, 7));
}

static void child(void (*body)(void), int expected, char *output, size_t size) {
  const int status = test_fork(body, output, size);
  print_message("%s", output);
  if (status == NOTHING_TO_TEST) {
    print_message("skipped: no cuDNN 9, or no GPU\n");
    skip();
  }
  assert_int_equal(status, expected);
}

static void test_works(void **state) {
  char output[4096];
  (void)state;
  child(works, 0, output, sizeof output);
}

static void test_message(void **state) {
  char output[4096], where[64];
  (void)state;
  child(describes_nothing, 1, output, sizeof output);
  const char *line = strstr(output, "line ");
  assert_non_null(line);
  snprintf(where, sizeof where, "check_cudnn_test.cu:%d: ", atoi(line + 5));
  const char *parts[] = {": error: ",
                         where,
                         "dnn->cudnnSetTensor4dDescriptor",
                         " failed: CUDNN_STATUS_BAD_PARAM",
                         "\n  try: an argument is out of range",
                         CUDNN_EMULATED ? "dimension 1 is -3" : ""};
  for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
    if (strstr(output, parts[i]) == NULL) fail_msg("'%s' is missing from: %s", parts[i], output);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_works),
      cmocka_unit_test(test_message),
  };
  return TEST_MAIN("check_cudnn", tests);
}

#else

static void test_skipped(void **state) {
  (void)state;
  print_message("skipped: compiled without cudnn.h\n");
  skip();
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_skipped)};
  return TEST_MAIN("check_cudnn", tests);
}

#endif
