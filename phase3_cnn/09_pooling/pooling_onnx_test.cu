/* ONNX's tests of MaxPool, AveragePool and GlobalAveragePool (common/onnx_testdata.h): the definition, the fast version
 * for the CPU and the one for the GPU against what numpy and PyTorch computed, and argmax against ONNX's Indices.
 * Images of one dimension have one row here. Where the padding is not the same on both sides, the image is padded by as
 * much as the larger one on both, and windows that ONNX does not have are left out. Volumes and whole numbers are left
 * out. */
#include "common/onnx_testdata.h"
#include "common/test_arrays.h"
#include "phase3_cnn/09_pooling/avg_pool2d.cuh"
#include "phase3_cnn/09_pooling/global_avg_pool2d.cuh"
#include "phase3_cnn/09_pooling/max_pool2d.cuh"

static const char *const max_tests[] = {
    "maxpool_1d_default",
    "maxpool_2d_ceil",
    "maxpool_2d_default",
    "maxpool_2d_dilations",
    "maxpool_2d_pads",
    "maxpool_2d_precomputed_pads",
    "maxpool_2d_precomputed_same_upper",
    "maxpool_2d_precomputed_strides",
    "maxpool_2d_same_lower",
    "maxpool_2d_same_upper",
    "maxpool_2d_strides",
    "maxpool_with_argmax_2d_precomputed_pads",
    "maxpool_with_argmax_2d_precomputed_strides",
    "pytorch-converted/MaxPool1d",
    "pytorch-converted/MaxPool1d_stride",
    "pytorch-converted/MaxPool1d_stride_padding_dilation",
    "pytorch-converted/MaxPool2d",
    "pytorch-converted/MaxPool2d_stride_padding_dilation",
    "pytorch-operator/operator_maxpool",
};

static const char *const average_tests[] = {
    "averagepool_1d_default",
    "averagepool_2d_ceil",
    "averagepool_2d_default",
    "averagepool_2d_pads",
    "averagepool_2d_pads_count_include_pad",
    "averagepool_2d_precomputed_pads",
    "averagepool_2d_precomputed_pads_count_include_pad",
    "averagepool_2d_precomputed_same_upper",
    "averagepool_2d_precomputed_strides",
    "averagepool_2d_same_lower",
    "averagepool_2d_same_upper",
    "averagepool_2d_strides",
};

static const char *const global_tests[] = {"globalaveragepool", "globalaveragepool_precomputed"};

#define COUNT(array) ((int)(sizeof(array) / sizeof *(array)))

typedef struct Data {
  const char *test;
  OnnxTestNode node;
  OnnxTestTensor x, y;
  Pool2dShape shape;
  int first[2], count[2]; /* the windows of the shape, down and across, that ONNX has, too */
  bool include_pad;
} Data;

static int number(const Data *data, const char *attribute, int i, int standard) {
  const OnnxTestAttribute *a = onnx_test_attribute(&data->node, attribute);
  if (a == NULL) return standard;
  if (i >= a->ints) fail_msg("%s: %s has %d numbers", data->test, attribute, a->ints);
  return (int)a->value[i];
}

/* One axis, 0 or 1, of an image of `dimensions`; of one dimension there is axis 1 alone. */
static void read_axis(Data *data, int axis, int dimensions, int size, int *kernel, int *stride, int *pad,
                      int *dilation) {
  const int i = axis - (2 - dimensions), given = i >= 0;
  *kernel = given ? number(data, "kernel_shape", i, 0) : 1;
  *stride = given ? number(data, "strides", i, 1) : 1;
  *dilation = given ? number(data, "dilations", i, 1) : 1;
  int before = given ? number(data, "pads", i, 0) : 0, after = given ? number(data, "pads", i + dimensions, 0) : 0;
  const int span = *dilation * (*kernel - 1) + 1;
  const OnnxTestAttribute *automatic = onnx_test_attribute(&data->node, "auto_pad");
  if (given && automatic != NULL && strncmp(automatic->text, "SAME", 4) == 0) {
    const int outputs = (size + *stride - 1) / *stride;
    const int all = (outputs - 1) * *stride + span > size ? (outputs - 1) * *stride + span - size : 0;
    before = strcmp(automatic->text, "SAME_LOWER") == 0 ? (all + 1) / 2 : all / 2; /* an odd one: to the other end */
    after = all - before;
  }
  *pad = before > after ? before : after;
  if (before<after && * stride> 1) fail_msg("%s: paddings of %d and %d with a stride", data->test, before, after);
  data->first[axis] = *pad - before;
  data->count[axis] = pool2d_out(size + before + after, *kernel, *stride, 0, *dilation, 0);
  if (data->shape.ceil_mode) data->count[axis] = pool2d_out(size, *kernel, *stride, *pad, *dilation, 1);
}

static Data load(const char *test, const char *op) {
  Data data;
  memset(&data, 0, sizeof data);
  data.test = test;
  onnx_testdata_load_node(test, &data.node);
  assert_string_equal(data.node.op, op);
  onnx_testdata_load(test, "input_0", &data.x);
  onnx_testdata_load(test, "output_0", &data.y);
  const int dimensions = data.x.rank - 2, lines = dimensions == 1;
  if (dimensions != 1 && dimensions != 2) fail_msg("%s: x has %d sizes", test, data.x.rank);
  Pool2dShape *s = &data.shape;
  s->n = (int)data.x.shape[0];
  s->c = (int)data.x.shape[1];
  s->h = lines ? 1 : (int)data.x.shape[2];
  s->w = (int)data.x.shape[lines ? 2 : 3];
  if (strncmp(op, "Global", 6) == 0) return data;
  s->ceil_mode = number(&data, "ceil_mode", 0, 0);
  data.include_pad = number(&data, "count_include_pad", 0, 0) != 0;
  read_axis(&data, 0, dimensions, s->h, &s->kernel_h, &s->stride_h, &s->pad_h, &s->dilation_h);
  read_axis(&data, 1, dimensions, s->w, &s->kernel_w, &s->stride_w, &s->pad_w, &s->dilation_w);
  if (data.y.count != (size_t)s->n * s->c * data.count[0] * data.count[1])
    fail_msg("%s: %d x %d windows per plane, and %zu outputs", test, data.count[0], data.count[1], data.y.count);
  return data;
}

static void unload(Data *data) {
  onnx_test_node_free(&data->node);
  onnx_test_tensor_free(&data->x);
  onnx_test_tensor_free(&data->y);
}

/* Output o of ONNX is this one of ours. */
static size_t ours(const Data *data, size_t o) {
  const size_t q = o % data->count[1], p = o / data->count[1] % data->count[0];
  const size_t plane = o / data->count[1] / data->count[0];
  return (plane * pool2d_out_h(data->shape) + p + data->first[0]) * pool2d_out_w(data->shape) + q + data->first[1];
}

static void check(const Data *data, const char *version, const float *y, size_t terms) {
  float *chosen = arrays_poison(data->y.count);
  for (size_t o = 0; o < data->y.count; o++) chosen[o] = data->count[0] > 0 ? y[ours(data, o)] : y[o];
  Comparison c = compare_arrays(chosen, data->y.floats, 1, data->y.count, tolerance_dot(terms, 1));
  free(chosen);
  if (!c.ok) fail_msg("%s, %s: %s", data->test, version, c.message);
}

/* ONNX counts the elements of the whole tensor; with storage_order 1 those of a plane column by column. */
static void check_indices(const Data *data, const char *version, const uint8_t *argmax) {
  const Pool2dShape s = data->shape;
  OnnxTestTensor indices;
  onnx_testdata_load(data->test, "output_1", &indices);
  for (size_t o = 0; o < data->y.count; o++) {
    const size_t at = ours(data, o), outputs = (size_t)pool2d_out_h(s) * pool2d_out_w(s), plane = at / outputs;
    const int p = (int)(at % outputs / pool2d_out_w(s)), q = (int)(at % pool2d_out_w(s));
    const int h = p * s.stride_h - s.pad_h + argmax[at] / s.kernel_w * s.dilation_h;
    const int v = q * s.stride_w - s.pad_w + argmax[at] % s.kernel_w * s.dilation_w;
    const int place = number(data, "storage_order", 0, 0) ? v * s.h + h : h * s.w + v;
    if ((float)(plane * s.h * s.w + place) != indices.floats[o])
      fail_msg("%s, %s: index %zu is %d, expected %g", data->test, version, o, place, (double)indices.floats[o]);
  }
  onnx_test_tensor_free(&indices);
}

/* Some tests have more padding than PyTorch allows, but no window in it alone; one has windows of more elements than a
 * byte counts. Networks refuse those; y is right all the same. */
static void check_refusal(const Data *data, const char *message) {
  const Pool2dShape s = data->shape;
  const int padding = strstr(message, "more than half of the window") != NULL;
  if (padding ? s.pad_h >= s.kernel_h || s.pad_w >= s.kernel_w : strstr(message, "a byte for each output") == NULL)
    fail_msg("%s: %s", data->test, message);
  print_message("  %s: %s\n", data->test, message);
}

static void run_max(const char *test) {
  Data data = load(test, "MaxPool");
  const Pool2dShape s = data.shape;
  const size_t n_x = pool2d_x_count(s), n_y = pool2d_y_count(s), bytes = (n_y + 3) / 4;
  const int indices = strncmp(test, "maxpool_with_argmax", 19) == 0;
  Error err;
  if (max_pool2d_shape_check(s, &err) != 0) check_refusal(&data, err.message);
  float *y = arrays_poison(n_y);
  uint8_t *argmax = (uint8_t *)xcalloc(4 * bytes, 1);
  max_pool2d_forward_cpu(y, argmax, data.x.floats, s);
  check(&data, "the definition", y, 1);
  if (indices) check_indices(&data, "the definition", argmax);
  compare_poison(y, n_y);
  max_pool2d_forward_cpu_fast(y, argmax, data.x.floats, s);
  check(&data, "fast on the CPU", y, 1);
  if (indices) check_indices(&data, "fast on the CPU", argmax);

  compare_poison(y, n_y);
  float *device_x = arrays_upload(DEVICE_GPU, data.x.floats, n_x), *device_y = arrays_upload(DEVICE_GPU, y, n_y);
  float *device_argmax = arrays_upload(DEVICE_GPU, (const float *)argmax, bytes);
  max_pool2d_forward_gpu(device_y, (uint8_t *)device_argmax, device_x, s);
  arrays_download(DEVICE_GPU, y, device_y, n_y, "y");
  arrays_download(DEVICE_GPU, (float *)argmax, device_argmax, bytes, "argmax");
  arrays_download(DEVICE_GPU, NULL, device_x, n_x, "x");
  check(&data, "on the GPU", y, 1);
  if (indices) check_indices(&data, "on the GPU", argmax);
  free(y);
  free(argmax);
  unload(&data);
}

static void run_average(const char *test) {
  Data data = load(test, "AveragePool");
  const Pool2dShape s = data.shape;
  const size_t n_x = pool2d_x_count(s), n_y = pool2d_y_count(s), terms = (size_t)s.kernel_h * s.kernel_w;
  Error err;
  if (avg_pool2d_shape_check(s, &err) != 0) check_refusal(&data, err.message);
  float *y = arrays_poison(n_y);
  avg_pool2d_forward_cpu(y, data.x.floats, s, data.include_pad);
  check(&data, "the definition", y, terms);
  compare_poison(y, n_y);
  avg_pool2d_forward_cpu_fast(y, data.x.floats, s, data.include_pad);
  check(&data, "fast on the CPU", y, terms);

  compare_poison(y, n_y);
  float *device_x = arrays_upload(DEVICE_GPU, data.x.floats, n_x), *device_y = arrays_upload(DEVICE_GPU, y, n_y);
  avg_pool2d_forward_gpu(device_y, device_x, s, data.include_pad);
  arrays_download(DEVICE_GPU, y, device_y, n_y, "y");
  arrays_download(DEVICE_GPU, NULL, device_x, n_x, "x");
  check(&data, "on the GPU", y, terms);
  free(y);
  unload(&data);
}

static void run_global(const char *test) {
  Data data = load(test, "GlobalAveragePool");
  const int planes = data.shape.n * data.shape.c, pixels = data.shape.h * data.shape.w;
  assert_int_equal(data.y.count, planes);
  float *y = arrays_poison(planes);
  global_avg_pool2d_forward_cpu(y, data.x.floats, planes, pixels);
  check(&data, "the definition", y, pixels);
  compare_poison(y, planes);
  global_avg_pool2d_forward_cpu_fast(y, data.x.floats, planes, pixels);
  check(&data, "fast on the CPU", y, pixels);

  compare_poison(y, planes);
  float *device_x = arrays_upload(DEVICE_GPU, data.x.floats, data.x.count);
  float *device_y = arrays_upload(DEVICE_GPU, y, planes);
  global_avg_pool2d_forward_gpu(device_y, device_x, planes, pixels);
  arrays_download(DEVICE_GPU, y, device_y, planes, "y");
  arrays_download(DEVICE_GPU, NULL, device_x, data.x.count, "x");
  check(&data, "on the GPU", y, pixels);
  free(y);
  unload(&data);
}

static void max_pooling_agrees(void **state) {
  (void)state;
  onnx_testdata_required();
  test_requires_gpu();
  for (int i = 0; i < COUNT(max_tests); i++) run_max(max_tests[i]);
}

static void average_pooling_agrees(void **state) {
  (void)state;
  onnx_testdata_required();
  test_requires_gpu();
  for (int i = 0; i < COUNT(average_tests); i++) run_average(average_tests[i]);
}

static void global_average_pooling_agrees(void **state) {
  (void)state;
  onnx_testdata_required();
  test_requires_gpu();
  for (int i = 0; i < COUNT(global_tests); i++) run_global(global_tests[i]);
}

/* context: how many are in neither list, for a reason that the name says. */
static void found(const char *test, void *context) {
  for (int i = 0; i < COUNT(max_tests); i++)
    if (strcmp(test, max_tests[i]) == 0) return;
  for (int i = 0; i < COUNT(average_tests); i++)
    if (strcmp(test, average_tests[i]) == 0) return;
  for (int i = 0; i < COUNT(global_tests); i++)
    if (strcmp(test, global_tests[i]) == 0) return;
  if (strstr(test, "3d") == NULL && strstr(test, "uint8") == NULL) fail_msg("%s is left out", test);
  print_message("  %s: a volume, or whole numbers\n", test);
  ++*(int *)context;
}

/* Of the tests that are installed: another version of the package may have more. */
static void none_but_volumes_and_bytes_are_left_out(void **state) {
  (void)state;
  onnx_testdata_required();
  int others = 0, count = onnx_testdata_find("MaxPool", found, &others);
  assert_int_equal(count - others, COUNT(max_tests));
  others = 0;
  count = onnx_testdata_find("AveragePool", found, &others);
  assert_int_equal(count - others, COUNT(average_tests));
  count = onnx_testdata_find("GlobalAveragePool", found, &others);
  assert_int_equal(count, COUNT(global_tests));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(max_pooling_agrees),
      cmocka_unit_test(average_pooling_agrees),
      cmocka_unit_test(global_average_pooling_agrees),
      cmocka_unit_test(none_but_volumes_and_bytes_are_left_out),
  };
  return TEST_MAIN("pooling_onnx", tests);
}
