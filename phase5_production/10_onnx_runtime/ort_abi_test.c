/* ort_abi_test.c - ort_abi.h against ONNX Runtime's own header: position and type of each function. Most of it is done
 * by the compiler. Skipped where the header is not there (third_party/onnxruntime). */
#include <onnxruntime_c_api.h>

#include "common/test.h"
#include "phase5_production/10_onnx_runtime/ort_abi.h"

#define SAME_TYPE(position, result, name, arguments)                                                 \
  _Static_assert(__builtin_types_compatible_p(__typeof__(((OrtApi *)0)->name), result(*) arguments), \
                 #name " has another type");
ORT_FUNCTIONS(SAME_TYPE)

static void every_function_has_its_position(void **state) {
  (void)state;
#define POSITION(position, result, name, arguments) \
  if (offsetof(OrtApi, name) != (position) * sizeof(void *)) fail_msg(#name " is not at %d", position);
  ORT_FUNCTIONS(POSITION)
}

static void its_interface_is_as_new_as_ours(void **state) {
  (void)state;
  assert_true(ORT_API_VERSION >= ORT_ABI_VERSION);
}

/* The constants that ort_abi.h defines for whoever lacks the header. */
static void constants_are_theirs(void **state) {
  (void)state;
  assert_int_equal(ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, 1);
  assert_int_equal(ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64, 7);
  assert_int_equal(ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT16, 10);
  assert_int_equal(ONNX_TENSOR_ELEMENT_DATA_TYPE_BFLOAT16, 16);
  assert_int_equal(ORT_LOGGING_LEVEL_ERROR, 3);
  assert_int_equal(ORT_ENABLE_ALL, 99);
  assert_int_equal(ORT_ENABLE_EXTENDED, 2);
  assert_int_equal(OrtDeviceAllocator, 0);
  assert_int_equal(OrtMemTypeDefault, 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(every_function_has_its_position),
                                     cmocka_unit_test(its_interface_is_as_new_as_ours),
                                     cmocka_unit_test(constants_are_theirs)};
  return TEST_MAIN("ort_abi", tests);
}
