/* host_c_test.c - the runtime's functions called from C, and the little of the driver API that there is. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>
#include <cuda.h>
#include <cuda_runtime_api.h>

#define CHECK(call) assert_int_equal(call, cudaSuccess)

static void test_memory(void **state) {
  (void)state;
  float *device, host[32], back[32];
  cudaStream_t stream;
  cudaEvent_t event;
  for (int i = 0; i < 32; i++) host[i] = (float)i;
  CHECK(cudaStreamCreate(&stream));
  CHECK(cudaEventCreate(&event));
  CHECK(cudaMalloc((void **)&device, sizeof host));
  CHECK(cudaMemcpyAsync(device, host, sizeof host, cudaMemcpyHostToDevice, stream));
  CHECK(cudaMemsetAsync(device + 30, 0, 8, stream));
  CHECK(cudaEventRecord(event, stream));
  CHECK(cudaStreamWaitEvent(0, event, 0));
  CHECK(cudaMemcpy(back, device, sizeof back, cudaMemcpyDeviceToHost));
  for (int i = 0; i < 32; i++) assert_true(back[i] == (i < 30 ? host[i] : 0));
  assert_int_equal(cudaMemcpy(back, device, sizeof back, cudaMemcpyHostToDevice), cudaErrorInvalidValue);
  assert_int_equal(cudaGetLastError(), cudaErrorInvalidValue);
  CHECK(cudaFree(device));
  CHECK(cudaStreamDestroy(stream));
  CHECK(cudaEventDestroy(event));
}

static void test_device(void **state) {
  (void)state;
  struct cudaDeviceProp properties;
  CHECK(cudaGetDeviceProperties(&properties, 0));
  assert_int_equal(properties.warpSize, 32);
  dim3 block = {32, 1, 1};
  assert_int_equal(block.x, 32);
  assert_string_equal(cudaGetErrorName(cudaErrorInvalidValue), "cudaErrorInvalidValue");
}

static void test_driver(void **state) {
  (void)state;
  CUdevice device;
  CUcontext context;
  CUdeviceptr pointer;
  int count = 0, value = 0;
  char name[100];
  const char *text;
  assert_int_equal(cuInit(0), CUDA_SUCCESS);
  assert_int_equal(cuDeviceGetCount(&count), CUDA_SUCCESS);
  assert_true(count >= 1);
  assert_int_equal(cuDeviceGet(&device, 0), CUDA_SUCCESS);
  assert_int_equal(cuDeviceGet(&device, 1000), CUDA_ERROR_INVALID_DEVICE);
  assert_int_equal(cuDeviceGet(&device, 0), CUDA_SUCCESS);
  assert_int_equal(cuDeviceGetName(name, sizeof name, device), CUDA_SUCCESS);
  assert_true(strlen(name) > 0);
  assert_int_equal(cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_WARP_SIZE, device), CUDA_SUCCESS);
  assert_int_equal(value, 32);
  assert_int_equal(cuDevicePrimaryCtxRetain(&context, device), CUDA_SUCCESS);
  assert_int_equal(cuCtxSetCurrent(context), CUDA_SUCCESS);
  int numbers[4] = {1, 2, 3, 4}, back[4] = {0};
  assert_int_equal(cuMemAlloc(&pointer, sizeof numbers), CUDA_SUCCESS);
  assert_int_equal(cuMemcpyHtoD(pointer, numbers, sizeof numbers), CUDA_SUCCESS);
  assert_int_equal(cuMemcpyDtoH(back, pointer, sizeof back), CUDA_SUCCESS);
  assert_int_equal(back[3], 4);
  assert_int_equal(cuMemFree(pointer), CUDA_SUCCESS);
  CUmodule module;
  assert_int_not_equal(cuModuleLoad(&module, "no such file.ptx"), CUDA_SUCCESS);
  assert_int_equal(cuGetErrorString(CUDA_ERROR_INVALID_VALUE, &text), CUDA_SUCCESS);
  assert_string_equal(text, "invalid argument");
  assert_int_equal(cuDevicePrimaryCtxRelease(device), CUDA_SUCCESS);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_memory),
      cmocka_unit_test(test_device),
      cmocka_unit_test(test_driver),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
