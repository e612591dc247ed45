/* conv2d_im2col.cu - a convolution as a product of matrices: what the matrix costs, and what the product gains.
 *
 *     bazel run //phase3_cnn:conv2d_im2col
 *
 * The first table copies the input into the matrix. The second computes whole convolutions from it, by our product of
 * phase 1, lesson 6, and by cuBLAS: the column "more memory" is the workspace, most of it the matrix. The third and the
 * fourth table are the gradients, which are products with the same matrix. */
#include "common/lesson/main.h"
#include "phase3_cnn/01_conv2d_naive/conv2d_naive_method.cuh"
#include "phase3_cnn/02_conv2d_im2col/conv2d_im2col_cublas.cuh"
#include "phase3_cnn/02_conv2d_im2col/conv2d_im2col_lesson.cuh"

int main(int argc, char **argv) {
  Lesson forward = conv2d_forward_lesson("conv2d_im2col"), matrix = conv2d_im2col_lesson("im2col");
  Lesson col2im = conv2d_col2im_lesson("col2im"), input = conv2d_backward_input_lesson("backward_input");
  Lesson weight = conv2d_backward_weight_lesson("backward_weight");
  conv2d_im2col_sizes(&forward);
  conv2d_im2col_sizes(&input);
  conv2d_im2col_sizes(&weight);
  forward.counted = lesson_shape_of(&forward, "4x8x16x32x16x3x3:padding=1"); /* several images: that is the point */
  const LessonVersion copies[] = {
      conv2d_im2col_version("matrix_naive", conv2d_im2col_naive,
                            "Seven divisions to copy one number. Copy all taps of a pixel in one thread."),
      conv2d_im2col_version("matrix_column", conv2d_im2col_column,
                            "One index per R S numbers. A store moves 4 bytes per thread: let it move 16."),
      conv2d_im2col_version(
          "matrix", conv2d_im2col,
          "Each thread stores float4. The matrix must be written, and read again: that is the limit."),
  };
  const LessonVersion back[] = {
      conv2d_im2col_version("col2im", conv2d_col2im,
                            "A gather: each input adds up its own copies, so that nothing is added by atomics."),
  };
  const LessonVersion convolutions[] = {
      conv2d_forward_version_of("naive", &conv2d_naive_method, "Two loads per product."),
      conv2d_forward_version_of("one_image", &conv2d_im2col_one_method,
                                "The product's tiles share their loads. One image at a time makes small products."),
      conv2d_forward_version_of("all_images", &conv2d_im2col_all_method,
                                "One large product; the matrix has 9 times the numbers of x. Bound the memory."),
      conv2d_forward_version_of("im2col", &conv2d_im2col_method,
                                "At most 256 MiB of matrix at a time. Next: never store it (implicit GEMM)."),
      lesson_library_version(conv2d_forward_version_of("im2col_cublas", &conv2d_im2col_cublas_method,
                                                       "The same with the product of NVIDIA's library.")),
  };
  const LessonVersion inputs[] = {
      conv2d_backward_input_version_of("naive_dx", &conv2d_naive_method, "Two loads per product."),
      conv2d_backward_input_version_of("im2col_dx", &conv2d_im2col_method,
                                       "The product writes the matrix, col2im reads it."),
      lesson_library_version(conv2d_backward_input_version_of("cublas_dx", &conv2d_im2col_cublas_method, "")),
  };
  const LessonVersion weights[] = {
      conv2d_backward_weight_version_of("naive_dw", &conv2d_naive_method,
                                        "One thread per weight: few threads, each with a long sum."),
      conv2d_backward_weight_version_of("im2col_dw", &conv2d_im2col_method,
                                        "A product with a long sum, which stream-K divides among the blocks."),
      lesson_library_version(conv2d_backward_weight_version_of("cublas_dw", &conv2d_im2col_cublas_method, "")),
  };
  const LessonTable tables[] = {
      {"The matrix of all images", copies, sizeof copies / sizeof *copies, &matrix},
      {"And back", back, sizeof back / sizeof *back, &col2im},
      {"Convolution", convolutions, sizeof convolutions / sizeof *convolutions, &forward},
      {"Gradient of the input", inputs, sizeof inputs / sizeof *inputs, &input},
      {"Gradients of filters and bias", weights, sizeof weights / sizeof *weights, &weight},
  };
  return lesson_main(argc, argv, &forward, tables, sizeof tables / sizeof *tables);
}
