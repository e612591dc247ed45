/* conv2d_tensor_core.cu - convolution on tensor cores.
 *
 *     bazel run //phase3_cnn:conv2d_tensor_core
 *
 * The implicit matrix product of conv2d_implicit_gemm, with images in NHWC: there the numbers that a product needs one
 * after another, the channels of a pixel, are neighbours. First without tensor cores, then with mma.sync, which copies
 * the rows of the matrix 16 bytes at a time; then for Hopper (wgmma), where one thread copies a box of pixels for each
 * tap; at last one box for all taps of a filter. Then the same with floats, multiplied as TF32, and what it costs to
 * change the layout of x once.
 *
 * Factors and outputs are bfloat16, sums float32. */
#include "common/lesson/main.h"
#include "phase1_building_blocks/15_matmul_tensor_core/matmul_tensor_roof.cuh"
#include "phase3_cnn/03_conv2d_implicit_gemm/conv2d_nhwc_mma.cuh"
#include "phase3_cnn/03_conv2d_implicit_gemm/conv2d_nhwc_wgmma.cuh"
#include "phase3_cnn/03_conv2d_implicit_gemm/conv2d_tensor_core_lesson.cuh"

/* Names the versions that this machine cannot run, and why. */
static void say_what_is_left_out(void) {
  mma_require();
  if (conv2d_wgmma_refusal() != NULL)
    fprintf(stderr, "The versions with wgmma are left out: %s.\n", conv2d_wgmma_refusal());
}

int main(int argc, char **argv) {
  Lesson lesson = conv2d_bfloat16_lesson(), tf32 = conv2d_tf32_lesson(), layout = conv2d_layout_lesson();
  lesson.before = say_what_is_left_out;
  lesson.roof = matmul_tensor_roof;
  LessonVersion versions[LESSON_VERSIONS];
  int count = 0;
  versions[count++] = conv2d_bfloat16_version("naive", conv2d_forward_nhwc_naive<__nv_bfloat16>,
                                              "One product per two loads: share tiles, multiply on tensor cores.");
  versions[count++] =
      conv2d_bfloat16_version("mma", conv2d_forward_nhwc_mma<__nv_bfloat16>,
                              "Each number of x is copied once per tap, and fragments are loaded by the warps.");
  if (conv2d_wgmma_refusal() == NULL) {
    versions[count++] = conv2d_bfloat16_version("wgmma_taps", conv2d_forward_nhwc_wgmma_taps<__nv_bfloat16>,
                                                "One thread copies, for each tap anew: nine times the pixels from L2.");
    versions[count++] = conv2d_bfloat16_version("wgmma", conv2d_forward_nhwc_wgmma<__nv_bfloat16>,
                                                "One copy serves all taps: tensor cores and power are the limit.");
  }
  const LessonVersion floats[] = {
      conv2d_tf32_version("float_naive", conv2d_forward_nhwc_naive<float>, "The same loops on floats."),
      conv2d_tf32_version("tf32_mma", conv2d_forward_nhwc_mma<float>,
                          "Half the products per instruction, twice the bytes; and the inputs lose 13 bits."),
  };
  const LessonVersion layouts[] = {
      conv2d_layout_version("to_nhwc", conv2d_to_nhwc<__nv_bfloat16>,
                            "Memory is the limit: a network changes the layout once, not in every layer."),
  };
  const LessonTable tables[] = {{"bfloat16, NHWC", versions, count},
                                {"float as TF32, NHWC", floats, 2, &tf32},
                                {"NCHW float to NHWC bfloat16", layouts, 1, &layout}};
  return lesson_main(argc, argv, &lesson, tables, 3);
}
