/* ONNX's tests of Conv (common/onnx_testdata.h): the definition, the fast version for the CPU and each method on the
 * GPU against what numpy and PyTorch computed. One-dimensional convolutions are images of one row. A padding that is
 * not the same on both sides is put round the image here. Each line of the log names a test of ONNX, how many of our
 * versions it checked, and the methods that refused it: they must refuse what they do not compute, and nothing else.
 * Left out are convolutions of volumes and of whole numbers; the transposed ones are in lesson 7's test. */
#include "common/onnx_testdata.h"
#include "common/test_arrays.h"
#include "phase3_cnn/01_conv2d_naive/conv2d_cpu_fast.cuh"
#include "phase3_cnn/conv2d_methods.h"

/* With the attributes in the model and the weights in files; then as PyTorch exported them. */
static const char *const onnx_tests[] = {
    "basic_conv_with_padding",
    "basic_conv_without_padding",
    "conv_with_autopad_same",
    "conv_with_strides_and_asymmetric_padding",
    "conv_with_strides_no_padding",
    "conv_with_strides_padding",
    "pytorch-converted/Conv1d",
    "pytorch-converted/Conv1d_dilated",
    "pytorch-converted/Conv1d_groups",
    "pytorch-converted/Conv1d_pad1",
    "pytorch-converted/Conv1d_pad1size1",
    "pytorch-converted/Conv1d_pad2",
    "pytorch-converted/Conv1d_pad2size1",
    "pytorch-converted/Conv1d_stride",
    "pytorch-converted/Conv2d",
    "pytorch-converted/Conv2d_depthwise",
    "pytorch-converted/Conv2d_depthwise_padded",
    "pytorch-converted/Conv2d_depthwise_strided",
    "pytorch-converted/Conv2d_depthwise_with_multiplier",
    "pytorch-converted/Conv2d_dilated",
    "pytorch-converted/Conv2d_groups",
    "pytorch-converted/Conv2d_groups_thnn",
    "pytorch-converted/Conv2d_no_bias",
    "pytorch-converted/Conv2d_padding",
    "pytorch-converted/Conv2d_strided",
    "pytorch-operator/operator_conv",
};
enum { ONNX_TESTS = sizeof onnx_tests / sizeof *onnx_tests };

static int used[CONV2D_METHODS]; /* how many tests each method took */

typedef struct Data {
  const char *test;
  OnnxTestNode node;
  OnnxTestTensor file[3], y;
  const OnnxTestTensor *x, *w, *bias; /* bias: NULL where there is none */
  int first[2], more[2];              /* padding above and left, and what is more of it below and to the right */
  Conv2dShape shape;
} Data;

static int number(const Data *data, const char *attribute, int i, int standard) {
  const OnnxTestAttribute *a = onnx_test_attribute(&data->node, attribute);
  if (a == NULL) return standard;
  if (i >= a->ints) fail_msg("%s: %s has %d numbers", data->test, attribute, a->ints);
  return (int)a->value[i];
}

/* What the node says of axis h (0) or w (1); of one dimension there is w alone. */
static void read_axis(Data *data, int axis, int dimensions, int size, int kernel, int *stride, int *dilation) {
  const int i = axis - (2 - dimensions);
  *stride = i < 0 ? 1 : number(data, "strides", i, 1);
  *dilation = i < 0 ? 1 : number(data, "dilations", i, 1);
  int before = i < 0 ? 0 : number(data, "pads", i, 0), after = i < 0 ? 0 : number(data, "pads", i + dimensions, 0);
  const OnnxTestAttribute *automatic = onnx_test_attribute(&data->node, "auto_pad");
  if (i >= 0 && automatic != NULL && strncmp(automatic->text, "SAME", 4) == 0) {
    const int outputs = (size + *stride - 1) / *stride, span = *dilation * (kernel - 1) + 1;
    const int all = outputs > 0 && (outputs - 1) * *stride + span > size ? (outputs - 1) * *stride + span - size : 0;
    before = strcmp(automatic->text, "SAME_LOWER") == 0 ? (all + 1) / 2 : all / 2; /* an odd one: to the other end */
    after = all - before;
  }
  data->first[axis] = before;
  data->more[axis] = after;
}

static Data load(const char *test) {
  Data data;
  memset(&data, 0, sizeof data);
  data.test = test;
  onnx_testdata_load_node(test, &data.node);
  assert_string_equal(data.node.op, "Conv");
  assert_true(data.node.inputs == 2 || data.node.inputs == 3);
  const OnnxTestTensor *input[3] = {NULL, NULL, NULL};
  for (int i = 0; i < data.node.inputs; i++) {
    char name[32];
    snprintf(name, sizeof name, "input_%d", i);
    if (data.node.input[i].floats == NULL) onnx_testdata_load(test, name, &data.file[i]);
    input[i] = data.node.input[i].floats == NULL ? &data.file[i] : &data.node.input[i];
  }
  onnx_testdata_load(test, "output_0", &data.y);
  data.x = input[0];
  data.w = input[1];
  data.bias = input[2];

  const OnnxTestTensor *x = data.x, *w = data.w;
  const int dimensions = x->rank - 2, lines = dimensions == 1;
  if (x->rank != w->rank || (dimensions != 1 && dimensions != 2)) fail_msg("%s: x has %d sizes", test, x->rank);
  Conv2dShape *s = &data.shape;
  *s = conv2d_shape((int)x->shape[0], (int)x->shape[1], lines ? 1 : (int)x->shape[2], (int)x->shape[lines ? 2 : 3],
                    (int)w->shape[0], lines ? 1 : (int)w->shape[2], (int)w->shape[lines ? 2 : 3], 1, 0);
  s->groups = number(&data, "group", 0, 1);
  read_axis(&data, 0, dimensions, s->h, s->r, &s->stride_h, &s->dilation_h);
  read_axis(&data, 1, dimensions, s->w, s->s, &s->stride_w, &s->dilation_w);
  assert_int_equal(w->shape[1] * (size_t)s->groups, s->c);
  return data;
}

static void unload(Data *data) {
  onnx_test_node_free(&data->node);
  for (int i = 0; i < 3; i++) onnx_test_tensor_free(&data->file[i]);
  onnx_test_tensor_free(&data->y);
}

/* The image, and the shape: with the padding that both sides have in common as the shape's own, and the rest round the
 * image. To be freed. */
static float *padded_image(Data *data) {
  const Conv2dShape s = data->shape;
  int own[2];
  for (int axis = 0; axis < 2; axis++)
    own[axis] = data->first[axis] < data->more[axis] ? data->first[axis] : data->more[axis];
  const int top = data->first[0] - own[0], left = data->first[1] - own[1];
  Conv2dShape *to = &data->shape;
  to->padding_h = own[0];
  to->padding_w = own[1];
  to->h += top + data->more[0] - own[0];
  to->w += left + data->more[1] - own[1];
  float *x = (float *)xcalloc(conv2d_x_count(*to), sizeof *x);
  for (int row = 0; row < s.n * s.c * s.h; row++)
    memcpy(x + ((size_t)(row / s.h) * to->h + row % s.h + top) * to->w + left, data->x->floats + (size_t)row * s.w,
           s.w * sizeof *x);
  return x;
}

static void check(const Data *data, const char *version, const float *y) {
  const Conv2dShape s = data->shape;
  const size_t rows = (size_t)s.n * s.k * conv2d_out_h(s);
  Comparison c = compare_arrays(y, data->y.floats, rows, conv2d_out_w(s),
                                tolerance_dot((size_t)(s.c / s.groups) * s.r * s.s + 1, 1));
  if (!c.ok) fail_msg("%s, %s: %s", data->test, version, c.message);
}

/* Whether a method computes a shape, as its lesson says; -1: that depends on the size of a block's shared memory. */
static int computes(const char *method, Conv2dShape s) {
  const int one_group = s.groups == 1 && s.dilation_h == 1 && s.dilation_w == 1;
  const int unit = one_group && s.stride_h == 1 && s.stride_w == 1;
  if (strcmp(method, "tiled") == 0) return one_group;
  if (strncmp(method, "winograd", 8) == 0) return unit && s.r == 3 && s.s == 3;
  if (strncmp(method, "fft", 3) == 0) return unit && s.r <= CONV2D_FFT_FILTER && s.s <= CONV2D_FFT_FILTER;
  if (strcmp(method, "depthwise") == 0) return s.groups == s.c;
  if (strcmp(method, "small") == 0)
    return unit && (s.s == 3 || s.s == 5) && s.padding_h < s.r && s.padding_w < s.s ? -1 : 0;
  return 1;
}

/* A refusal names the shape, and another method that takes it. */
static void check_refusal(const char *test, const Conv2dMethod *method, Conv2dShape s, const char *message) {
  const char *use = strstr(message, ": use ");
  if (strstr(message, conv2d_shape_text(s).text) == NULL) fail_msg("%s: the shape is not in \"%s\"", test, message);
  if (use == NULL) fail_msg("%s: no other method is in \"%s\"", test, message);
  for (int m = 0; m < CONV2D_METHODS; m++) {
    Error err;
    if (strcmp(conv2d_methods[m]->name, use + strlen(": use ")) != 0 || conv2d_methods[m] == method) continue;
    if (conv2d_methods[m]->fits == NULL || conv2d_methods[m]->fits(s, &err) == 0) return;
  }
  fail_msg("%s: %s does not take it: \"%s\"", test, use + strlen(": use "), message);
}

static void run(const char *test) {
  Data data = load(test);
  float *x = padded_image(&data);
  if (data.shape.n > 4) data.shape.n = 1; /* a large batch: the first image, so that it can be emulated */
  const Conv2dShape s = data.shape;
  const size_t n_x = conv2d_x_count(s), n_w = conv2d_w_count(s), n_y = conv2d_y_count(s),
               n_cpu = conv2d_workspace_floats_cpu(s);
  Error err;
  if (conv2d_shape_check(s, &err) != 0) fail_msg("%s: %s", test, err.message);
  if (n_w != data.w->count || n_y * data.x->shape[0] != data.y.count * (size_t)s.n)
    fail_msg("%s: %s gives %zu outputs, %zu were expected", test, conv2d_shape_text(s).text, n_y, data.y.count);
  const float *bias = data.bias != NULL ? data.bias->floats : NULL;
  float *y = arrays_poison(n_y), *space = arrays_poison(n_cpu > 0 ? n_cpu : 1);
  conv2d_forward_cpu<float>(y, x, data.w->floats, bias, s);
  check(&data, "the definition", y);
  compare_poison(y, n_y);
  conv2d_forward_cpu_fast(y, x, data.w->floats, bias, s, space);
  check(&data, "fast on the CPU", y);
  free(space);

  int versions = 2;
  char refused[256] = "";
  for (int m = 0; m < CONV2D_METHODS; m++) {
    const Conv2dMethod *method = conv2d_methods[m];
    const int takes = method->fits == NULL || method->fits(s, &err) == 0, expected = computes(method->name, s);
    if (expected >= 0 && takes != expected)
      fail_msg("%s: %s %s %s", test, method->name, takes ? "takes" : "refuses", conv2d_shape_text(s).text);
    if (!takes) {
      check_refusal(test, method, s, err.message);
      const size_t used_up = strlen(refused);
      snprintf(refused + used_up, sizeof refused - used_up, "%s%s", used_up > 0 ? ", " : "; not ", method->name);
      continue;
    }
    const size_t n_space = method->workspace_floats != NULL ? method->workspace_floats(s) : 0;
    compare_poison(y, n_y);
    float *d_x = arrays_upload(DEVICE_GPU, x, n_x), *d_w = arrays_upload(DEVICE_GPU, data.w->floats, n_w);
    float *d_y = arrays_upload(DEVICE_GPU, y, n_y), *d_space = guard_alloc(DEVICE_GPU, n_space);
    float *d_bias = bias != NULL ? arrays_upload(DEVICE_GPU, bias, (size_t)s.k) : NULL;
    method->forward(d_y, d_x, d_w, d_bias, s, d_space);
    arrays_download(DEVICE_GPU, y, d_y, n_y, "y");
    arrays_download(DEVICE_GPU, NULL, d_x, n_x, "x");
    arrays_download(DEVICE_GPU, NULL, d_w, n_w, "w");
    arrays_download(DEVICE_GPU, NULL, d_space, n_space, "the workspace");
    if (d_bias != NULL) arrays_download(DEVICE_GPU, NULL, d_bias, (size_t)s.k, "bias");
    check(&data, method->name, y);
    used[m]++;
    versions++;
  }
  print_message("  %s: %s: %d versions%s\n", test, conv2d_shape_text(s).text, versions, refused);
  free(x);
  free(y);
  unload(&data);
}

static void every_method_agrees(void **state) {
  (void)state;
  onnx_testdata_required();
  test_requires_gpu();
  for (int i = 0; i < ONNX_TESTS; i++) run(onnx_tests[i]);
}

static void found(const char *test, void *volumes) {
  for (int i = 0; i < ONNX_TESTS; i++)
    if (strcmp(test, onnx_tests[i]) == 0) return;
  OnnxTestTensor x;
  onnx_testdata_load(test, "input_0", &x);
  if (x.rank != 5) fail_msg("%s is a convolution of %d dimensions that this test leaves out", test, x.rank - 2);
  print_message("  %s: a volume\n", test);
  ++*(int *)volumes;
  onnx_test_tensor_free(&x);
}

/* Of the tests that are installed: another version of the package may have more. */
static void none_but_volumes_is_left_out(void **state) {
  (void)state;
  onnx_testdata_required();
  int volumes = 0;
  const int count = onnx_testdata_find("Conv", found, &volumes);
  print_message("  %d tests of Conv, %d of them of volumes\n", count, volumes);
  assert_int_equal(count - volumes, ONNX_TESTS);
}

static void each_method_took_one(void **state) {
  (void)state;
  onnx_testdata_required();
  test_requires_gpu();
  for (int m = 0; m < CONV2D_METHODS; m++) {
    if (used[m] == 0) fail_msg("%s took none of ONNX's tests", conv2d_methods[m]->name);
    print_message("  %s: %d tests\n", conv2d_methods[m]->name, used[m]);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_method_agrees),
      cmocka_unit_test(none_but_volumes_is_left_out),
      cmocka_unit_test(each_method_took_one),
  };
  return TEST_MAIN("onnx", tests);
}
