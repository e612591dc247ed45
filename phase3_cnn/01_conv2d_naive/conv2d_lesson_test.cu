/* conv2d_lesson.cuh: its three lessons with the versions of lesson 1; the references on the GPU; what a method refuses;
 * and what the diagnoses say of wrong indices. */
#include "common/lesson/verify.h"
#include "common/test.h"
#include "phase3_cnn/01_conv2d_naive/conv2d_lesson.cuh"
#include "phase3_cnn/01_conv2d_naive/conv2d_naive_method.cuh"

static LessonResult result; /* large */

static void check(const Lesson *lesson, LessonVersion version) {
  if (lesson_verify_all(lesson, &version, 1, &result) != 0) fail_msg("%s: %s", lesson->name, result.message);
}

static void versions_are_right(void **state) {
  (void)state;
  Lesson forward = conv2d_forward_lesson("forward"), input = conv2d_backward_input_lesson("input"),
         weight = conv2d_backward_weight_lesson("weight");
  for (int list = 0; list < 3; list++) {
    Lesson *const all[] = {&forward, &input, &weight};
    for (int i = 0; i < 3; i++)
      if (list > 0) (list == 1 ? conv2d_take_3x3 : conv2d_take_few)(all[i]);
    check(&forward, conv2d_forward_version_of("naive", &conv2d_naive_method, ""));
    check(&forward, conv2d_forward_version("double", conv2d_forward_reference_gpu, ""));
    if (list > 0) continue;
    check(&forward, conv2d_forward_version_of("row", &conv2d_row_method, ""));
    check(&forward, conv2d_forward_version_of("column", &conv2d_column_method, ""));
    check(&forward, conv2d_forward_version_of("tiled", &conv2d_tiled_method, ""));
    check(&input, conv2d_backward_input_version_of("naive", &conv2d_naive_method, ""));
    check(&input, conv2d_backward_input_version_of("tiled", &conv2d_tiled_method, ""));
    check(&weight, conv2d_backward_weight_version_of("naive", &conv2d_naive_method, ""));
    check(&input, conv2d_backward_input_version("double", conv2d_backward_input_reference_gpu, ""));
    check(&weight, conv2d_backward_weight_version("double", conv2d_backward_weight_reference_gpu, ""));
  }
}

/* The place of the last of four neighbours, three strides on, does not fit into an int. */
static void a_stride_beyond_the_image_reads_nothing_outside(void **state) {
  (void)state;
  Lesson lesson = conv2d_forward_lesson("forward");
  static const char *const shapes[] = {"1x1x3x3x1x3x3:stride=2147483647",
                                       "2x2x4x3x3x2x3:stride=2147483646x1:padding=1"};
  lesson_check_shapes(&lesson, shapes, sizeof shapes / sizeof *shapes);
  const Conv2dMethod *const methods[] = {&conv2d_naive_method, &conv2d_row_method, &conv2d_column_method,
                                         &conv2d_tiled_method};
  for (size_t i = 0; i < sizeof methods / sizeof *methods; i++)
    check(&lesson, conv2d_forward_version_of(methods[i]->name, methods[i], ""));
}

static void a_method_brings_its_refusals_and_its_workspace(void **state) {
  (void)state;
  Lesson lesson = conv2d_backward_weight_lesson("weight");
  const LessonVersion version = conv2d_backward_weight_version_of("tiled", &conv2d_tiled_method, "");
  check(&lesson, version);
  assert_non_null(strstr(result.message, "right on 9 shapes")); /* of 13: two have groups, two gaps alone */
  const LessonShape grouped = lesson_shape_of(&lesson, "1x4x3x3x4x2x2:groups=2");
  assert_int_equal(lesson_verify(&lesson, &version, &grouped, 1, &result), -1);
  assert_int_equal(result.fault, LESSON_REFUSED);
  assert_non_null(strstr(result.message,
                         "tiled computes convolutions of one group with dilation 1; this one is (1,4,3,3) with "
                         "(4,2,2,2), stride 1 x 1, padding 0 x 0, 2 groups: use naive"));
  Conv2dMethod greedy = conv2d_tiled_method;
  greedy.workspace_floats = [](Conv2dShape) { return (size_t)1 << 50; };
  const LessonVersion never = conv2d_backward_weight_version_of("greedy", &greedy, "");
  assert_int_equal(lesson_verify(&lesson, &never, &lesson.check[0], 1, &result), -1);
  assert_non_null(strstr(result.message, "it needs a workspace of 4194304.00 GiB"));
}

static void impossible_shapes_are_refused(void **state) {
  (void)state;
  static const char *const shapes[][2] = {
      {"1x2x4x4x2x5x5", "the filter spans 5 x 5, and the padded image is 4 x 4"},
      {"1x2x4x4x2x3x3:stride=0", "stride 0 x 0"},
      {"1x2x4x4x2x3x3:dilation=1x0", "the dilation must be at least 1"},
      {"1x3x4x4x2x3x3:groups=2", "groups must divide the 3 channels and the 2 filters"},
      {"1x2x4x4x2x3", "7 sizes of at least 1 are expected, nxcxhxwxkxrxs, as in 1x8x16x32x16x3x3:padding=1; then"},
      {"1x2x4x4x2x3x3:pad=1", "they are by default stride=1, padding=0, dilation=1, groups=1"}};
  Lesson lesson = conv2d_forward_lesson("forward");
  for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
    LessonShape shape;
    Error err;
    const char *at = shapes[i][0];
    assert_int_equal(lesson_parse_shape(&lesson, &at, &shape, &err), -1);
    if (strstr(err.message, shapes[i][1]) == NULL) fail_msg("%s: %s", shapes[i][0], err.message);
  }
}

/* Wrong indices: what the reference gives for other arguments. */
static void turned(float *y, const float *x, const float *w, const float *bias, Conv2dShape s, float *) {
  const size_t count = conv2d_w_count(s), area = (size_t)s.r * s.s;
  float *host = (float *)xmalloc(2 * count * sizeof *host), *device;
  device_download(DEVICE_GPU, host, w, count * sizeof *host);
  for (size_t i = 0; i < count; i++) host[count + i] = host[i / area * area + area - 1 - i % area];
  CUDA_CHECK(cudaMalloc((void **)&device, count * sizeof *host));
  device_upload(DEVICE_GPU, device, host + count, count * sizeof *host);
  conv2d_forward_naive(y, x, device, bias, s);
  CUDA_CHECK(cudaDeviceSynchronize());
  CUDA_CHECK(cudaFree(device));
  free(host);
}

enum Mistake { STRIDE, DILATION, PADDING, GROUP };

static __global__ void wrong_kernel(float *y, const float *x, const float *w, const float *bias, Conv2dShape s,
                                    int p_count, int q_count, Mistake mistake) {
  for (int i = threadIdx.x; i < s.n * s.k * p_count * q_count; i += blockDim.x) {
    int q = i % q_count, p = i / q_count % p_count, k = i / q_count / p_count % s.k, n = i / q_count / p_count / s.k;
    int channels = s.c / s.groups;
    int first = mistake == GROUP ? 0 : k / (s.k / s.groups) * channels;
    float sum = bias[k];
    for (int t = 0; t < channels * s.r * s.s; t++) {
      int c = t / s.r / s.s, r = t / s.s % s.r, column = t % s.s;
      int h = p * (mistake == STRIDE ? 1 : s.stride_h) - (mistake == PADDING ? 0 : s.padding_h);
      int v = q * (mistake == STRIDE ? 1 : s.stride_w) - (mistake == PADDING ? 0 : s.padding_w);
      h += r * (mistake == DILATION ? 1 : s.dilation_h);
      v += column * (mistake == DILATION ? 1 : s.dilation_w);
      if (h < 0 || h >= s.h || v < 0 || v >= s.w) continue;
      sum += w[k * channels * s.r * s.s + t] * x[((n * s.c + first + c) * s.h + h) * s.w + v];
    }
    y[i] = sum;
  }
}

template <Mistake MISTAKE>
static void wrong(float *y, const float *x, const float *w, const float *bias, Conv2dShape s, float *) {
  wrong_kernel<<<1, 64>>>(y, x, w, bias, s, conv2d_out_h(s), conv2d_out_w(s), MISTAKE);
  CUDA_CHECK_LAUNCH();
}

static void wrong_indices_are_named(void **state) {
  (void)state;
  Conv2dForward *const launch[] = {turned, wrong<STRIDE>, wrong<DILATION>, wrong<PADDING>, wrong<GROUP>};
  static const char *const says[] = {"if the filters were turned by 180 degrees", "if the stride were 1",
                                     "if the dilation were 1", "if all of the padding were below",
                                     "if each group of filters read the channels of the first group"};
  Lesson lesson = conv2d_forward_lesson("forward");
  const LessonShape shape = lesson_shape_of(&lesson, "2x4x9x8x4x3x2:stride=2:padding=1:dilation=2:groups=2");
  for (int i = 0; i < 5; i++) {
    const LessonVersion version = conv2d_forward_version("wrong", launch[i], "");
    assert_int_equal(lesson_verify(&lesson, &version, &shape, 1, &result), -1);
    assert_int_equal(result.fault, LESSON_WRONG);
    if (strstr(result.message, says[i]) == NULL) fail_msg("%s: %s", says[i], result.message);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(versions_are_right),
      cmocka_unit_test(a_stride_beyond_the_image_reads_nothing_outside),
      cmocka_unit_test(a_method_brings_its_refusals_and_its_workspace),
      cmocka_unit_test(impossible_shapes_are_refused),
      cmocka_unit_test(wrong_indices_are_named),
  };
  return TEST_MAIN("conv2d_lesson", tests);
}
