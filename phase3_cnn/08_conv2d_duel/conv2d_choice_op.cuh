/* conv2d_choice_op.cuh - every way to compute a convolution, in any network by its name: --conv=im2col.
 *
 *     static const OpChoice *const choices[] = {&conv2d_choice};     // of a Task (common/nn/task.h)
 *
 * Each Conv2dMethod of lessons 1 to 8 is an Op here. It computes the forward pass and the gradients that it has; the
 * usual version computes the others, and with --device=cpu everything. --conv=NAME leaves layers that the method cannot
 * compute as they are; if it can compute none, or with --conv=LAYER:NAME, it refuses, in a sentence that names another.
 *
 * The kernels are compiled once, in the *_op.cu files beside this one, and not again in every program. A method of your
 * own is a line of the list below, and one there.
 */
#ifndef PHASE3_CNN_CONV2D_CHOICE_OP_CUH
#define PHASE3_CNN_CONV2D_CHOICE_OP_CUH

#include "phase3_cnn/01_conv2d_naive/conv2d_method.cuh"
#include "phase3_cnn/01_conv2d_naive/conv2d_op.cuh"

/* The methods by their names, and the tables that hold them. */
#define CONV2D_CHOICE_METHODS(DO)        \
  DO(im2col, conv2d_im2col_method)       \
  DO(implicit_gemm, conv2d_gemm_method)  \
  DO(winograd, conv2d_winograd_method)   \
  DO(fft, conv2d_fft_method)             \
  DO(depthwise, conv2d_depthwise_method) \
  DO(small, conv2d_small_method)

/* An Op, and the method that its functions call: node->op points to the first member. */
typedef struct Conv2dMethodOp {
  Op op;
  const Conv2dMethod *method;
} Conv2dMethodOp;

/* In the *_op.cu files. */
#define CONV2D_METHOD(name, table) extern const Conv2dMethodOp conv2d_##name##_op;
CONV2D_CHOICE_METHODS(CONV2D_METHOD)
#undef CONV2D_METHOD

/* -1 where the method cannot compute the node's layer; the message says why. */
static inline int conv2d_method_fits(const Implementation *implementation, const Node *node, Error *err) {
  const Conv2dMethod *method = ((const Conv2dMethodOp *)implementation->op)->method;
  return method->fits ? method->fits(conv2d_op_shape(node, 1), err) : 0;
}

/* --conv=...: the first is the usual one. */
#define CONV2D_METHOD(name, table) {#name, &conv2d_##name##_op.op, conv2d_method_fits},
static const Implementation conv2d_implementations[] = {
    {"tiled", &conv2d_op, NULL}, {"naive", &conv2d_naive_op, NULL}, CONV2D_CHOICE_METHODS(CONV2D_METHOD)};
#undef CONV2D_METHOD

static const OpChoice conv2d_choice = {"conv", conv2d_implementations,
                                       sizeof conv2d_implementations / sizeof *conv2d_implementations};

#endif /* PHASE3_CNN_CONV2D_CHOICE_OP_CUH */
