/* conv2d_method.cuh - a way to compute a convolution on the GPU, as a table: what lessons 1 to 6 have in common, so
 * that one test, one benchmark (lesson 8) and one option of every network (--conv=NAME) serve all of them.
 *
 *     static const Conv2dMethod conv2d_im2col_method = {
 *         "im2col", NULL, conv2d_im2col_workspace_floats, conv2d_forward_im2col, NULL, NULL};
 *
 * All functions get device pointers and take float32, NCHW. They overwrite their outputs; bias and dbias may be NULL.
 * They neither allocate nor wait, so that they can be captured in a CUDA graph.
 */
#ifndef PHASE3_CNN_CONV2D_METHOD_CUH
#define PHASE3_CNN_CONV2D_METHOD_CUH

#include "phase3_cnn/01_conv2d_naive/conv2d_shape.cuh"

typedef void Conv2dForward(float *y, const float *x, const float *w, const float *bias, Conv2dShape s,
                           float *workspace);
typedef void Conv2dBackwardInput(float *dx, const float *dy, const float *w, Conv2dShape s, float *workspace);
typedef void Conv2dBackwardWeight(float *dw, float *dbias, const float *dy, const float *x, Conv2dShape s,
                                  float *workspace);

typedef struct Conv2dMethod {
  const char *name;
  int (*fits)(Conv2dShape s, Error *err);    /* NULL: every shape. -1: not this; the message names one that can */
  size_t (*workspace_floats)(Conv2dShape s); /* of any of its functions, of this or a smaller batch; NULL: none */
  Conv2dForward *forward;
  Conv2dBackwardInput *backward_input; /* NULL: it has none; networks use the usual one */
  Conv2dBackwardWeight *backward_weight;
  size_t (*forward_floats)(Conv2dShape s) = NULL; /* of forward alone; NULL: workspace_floats */
} Conv2dMethod;

/* Of a method whose forward() needs no workspace. */
static inline size_t conv2d_no_floats(Conv2dShape s) {
  (void)s;
  return 0;
}

#endif /* PHASE3_CNN_CONV2D_METHOD_CUH */
