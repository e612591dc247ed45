/* conv2d_naive_method.cuh - the convolutions of lesson 1 as methods (conv2d_method.cuh):
 *
 *     conv2d_naive_method    one thread per result, every shape, all three operations
 *     conv2d_row_method, conv2d_column_method    four neighbouring outputs per thread, every shape, forward
 *     conv2d_tiled_method    what networks use by default: conv2d_forward_gpu() and both gradients
 */
#ifndef PHASE3_CNN_CONV2D_NAIVE_METHOD_CUH
#define PHASE3_CNN_CONV2D_NAIVE_METHOD_CUH

#include "phase3_cnn/01_conv2d_naive/conv2d.cuh"
#include "phase3_cnn/01_conv2d_naive/conv2d_method.cuh"

static inline void conv2d_naive_forward(float *y, const float *x, const float *w, const float *bias, Conv2dShape s,
                                        float *) {
  conv2d_forward_naive(y, x, w, bias, s);
}
static inline void conv2d_naive_backward_input(float *dx, const float *dy, const float *w, Conv2dShape s, float *) {
  conv2d_backward_input_naive(dx, dy, w, s);
}
static inline void conv2d_naive_backward_weight(float *dw, float *dbias, const float *dy, const float *x, Conv2dShape s,
                                                float *) {
  conv2d_backward_weight_naive(dw, dbias, dy, x, s);
}

static inline void conv2d_row_forward(float *y, const float *x, const float *w, const float *bias, Conv2dShape s,
                                      float *) {
  conv2d_forward_row(y, x, w, bias, s);
}
static inline void conv2d_column_forward(float *y, const float *x, const float *w, const float *bias, Conv2dShape s,
                                         float *) {
  conv2d_forward_column(y, x, w, bias, s);
}

static inline void conv2d_tiled_forward(float *y, const float *x, const float *w, const float *bias, Conv2dShape s,
                                        float *) {
  conv2d_forward_gpu(y, x, w, bias, s);
}
static inline void conv2d_tiled_backward_input(float *dx, const float *dy, const float *w, Conv2dShape s, float *) {
  conv2d_backward_input_gpu(dx, dy, w, s);
}
static inline void conv2d_tiled_backward_weight(float *dw, float *dbias, const float *dy, const float *x, Conv2dShape s,
                                                float *workspace) {
  conv2d_backward_weight_gpu(dw, dbias, dy, x, s, workspace);
}

static inline int conv2d_tiled_fits(Conv2dShape s, Error *err) {
  if (conv2d_is_dense(s)) return 0;
  return error_set(err, "tiled computes convolutions of one group with dilation 1; this one is %s: use naive",
                   conv2d_shape_text(s).text);
}

static const Conv2dMethod conv2d_naive_method = {
    "naive", NULL, NULL, conv2d_naive_forward, conv2d_naive_backward_input, conv2d_naive_backward_weight};
static const Conv2dMethod conv2d_row_method = {"row", NULL, NULL, conv2d_row_forward, NULL, NULL};
static const Conv2dMethod conv2d_column_method = {"column", NULL, NULL, conv2d_column_forward, NULL, NULL};
static const Conv2dMethod conv2d_tiled_method = {"tiled",
                                                 conv2d_tiled_fits,
                                                 conv2d_workspace_floats_gpu,
                                                 conv2d_tiled_forward,
                                                 conv2d_tiled_backward_input,
                                                 conv2d_tiled_backward_weight,
                                                 conv2d_no_floats};

#endif /* PHASE3_CNN_CONV2D_NAIVE_METHOD_CUH */
