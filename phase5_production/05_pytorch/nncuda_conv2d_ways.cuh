/* nncuda_conv2d_ways.cuh - which of phase 3's kernels a convolution of the library takes, and their workspace.
 *
 *     direct     phase3_cnn/01_conv2d_naive: no workspace. Where a matrix product's tiles would be nearly empty (one
 *                picture, few filters, few weights of each)
 *     winograd   04_conv2d_winograd and 06_conv2d_backward: 3 x 3 filters with stride 1 of many channels and pixels
 *     gemm       03_conv2d_implicit_gemm and 06_conv2d_backward: all others
 *
 * A program of this course has one workspace, which all layers use; that of the largest layer decides. PyTorch
 * allocates each one beside the activations, so what a workspace costs here is the peak of the memory. Winograd's
 * transforms of a whole batch are two to three times as large as x and y together: here they are made for some images
 * after the others. */
#ifndef PHASE5_PRODUCTION_NNCUDA_CONV2D_WAYS_CUH
#define PHASE5_PRODUCTION_NNCUDA_CONV2D_WAYS_CUH

#include "phase5_production/05_pytorch/nncuda_call.cuh"

#include "phase3_cnn/01_conv2d_naive/conv2d.cuh"
#include "phase3_cnn/06_conv2d_backward/conv2d_backward.cuh"
#include "phase3_cnn/06_conv2d_backward/conv2d_backward_winograd.cuh"

extern int nncuda_convolution; /* of nncuda_set_convolution() */

/* These bounds are counted, in blocks for 132 multiprocessors and in bytes: NNCUDA_CONVOLUTION=direct, winograd or gemm
 * in the environment measures what else there is. */
enum {
  WINOGRAD_CHANNELS_LEAST = 16,  /* fewer are padded to tiles that are mostly empty */
  WINOGRAD_PIXELS_LEAST = 1024,  /* for fewer, transforming the filters takes longer than all products */
  WINOGRAD_FUSED_MOST = 128,     /* channels or filters: of the kernel without transforms in memory */
  WINOGRAD_TRANSFORMS = 12 << 20 /* floats of v and m: 48 MiB, and enough blocks for 132 multiprocessors */
};
enum { DIRECT_OUTPUTS = 1 << 20, DIRECT_PRODUCTS = 1 << 27 }; /* up to here a convolution is a small one */
enum { DIRECT_WEIGHTS = 31, DIRECT_TAPS = 25, BLOCKS_PIXELS = 1024 };

static inline long long conv2d_pixels(Conv2dShape s) { return (long long)s.n * conv2d_out_h(s) * conv2d_out_w(s); }

static inline int conv2d_weights_of_filter(Conv2dShape s) { return s.c / s.groups * s.r * s.s; }

/* One picture, as a rule: every product of the network would be cut into more pieces than it has tiles. */
static inline bool conv2d_is_small(Conv2dShape s) {
  const double outputs = (double)conv2d_pixels(s) * s.k;
  return conv2d_is_dense(s) && outputs <= DIRECT_OUTPUTS && outputs * conv2d_weights_of_filter(s) <= DIRECT_PRODUCTS;
}

static inline bool conv2d_is_shallow(Conv2dShape s) {
  return conv2d_is_dense(s) && conv2d_weights_of_filter(s) <= DIRECT_WEIGHTS;
}

/* Whether there is a kernel. It computes 2.25 to 4 products instead of 9. */
static inline bool conv2d_has_winograd(Conv2dShape s) {
  Error err;
  if (s.r != 3 || s.s != 3 || s.stride_h != 1 || s.stride_w != 1) return false; /* without a sentence of why not */
  return s.c >= WINOGRAD_CHANNELS_LEAST && s.k >= WINOGRAD_CHANNELS_LEAST && winograd_fits(s, &err) == 0;
}

/* direct: whether the direct kernel is the fastest. */
static inline int conv2d_way(Conv2dShape s, bool direct) {
  const int wanted = __atomic_load_n(&nncuda_convolution, __ATOMIC_RELAXED);
  if (wanted == NNCUDA_DIRECT) direct = conv2d_is_dense(s);
  if (wanted == NNCUDA_WINOGRAD || wanted == NNCUDA_GEMM) direct = false;
  if (direct) return NNCUDA_DIRECT;
  if (wanted == NNCUDA_DIRECT || wanted == NNCUDA_GEMM || !conv2d_has_winograd(s)) return NNCUDA_GEMM;
  return wanted == NNCUDA_WINOGRAD || conv2d_pixels(s) >= WINOGRAD_PIXELS_LEAST ? NNCUDA_WINOGRAD : NNCUDA_GEMM;
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* Winograd, within bounds */

static inline bool winograd_takes_fused(Winograd s) {
  return winograd_few(s) ||
         (s.c <= WINOGRAD_FUSED_MOST && s.k <= WINOGRAD_FUSED_MOST && (s.c <= WINOGRAD_FEW || s.k <= WINOGRAD_FEW));
}

/* For parts of the batch that are equally large, but for the last one. */
static inline size_t winograd_transforms(Winograd s) {
  const size_t image = (size_t)36 * (s.c_padded + s.k_padded) * s.tiles_h * s.tiles_w;
  const size_t most = WINOGRAD_TRANSFORMS / image < 1 ? 1 : WINOGRAD_TRANSFORMS / image;
  const size_t parts = (s.n + most - 1) / most;
  return (s.n + parts - 1) / parts * image;
}

template <bool FLIP, bool RELU>
static inline void winograd_bounded(float *y, const float *x, const float *w, const float *bias, Winograd s4,
                                    Winograd s2x4, float *workspace) {
  if (winograd_takes_fused(s4))
    winograd_fused<2, 4, FLIP, RELU>(y, x, w, bias, s2x4, workspace);
  else
    winograd_kernels<4, 4, FLIP>(y, x, w, bias, RELU, s4, workspace, winograd_product, winograd_transforms(s4));
}

static inline size_t winograd_bounded_floats(Winograd s4, Winograd s2x4) {
  return winograd_takes_fused(s4) ? winograd_filter_floats(s2x4, 24)
                                  : winograd_kernels_floats<4, 4>(s4, winograd_transforms(s4));
}

/* Of the gradient of the filters: parts of as many blocks as there are multiprocessors, of 24 points of 64 x 32 weights
 * each, 26 MB of an H200. But not much more than x and y have, which at that time are in memory. */
static inline size_t winograd_parts_space(Conv2dShape s) {
  const size_t blocks = (size_t)conv2d_multiprocessors() * 24 * 64 * 32,
               most = 3 * (conv2d_x_count(s) + conv2d_y_count(s));
  return blocks < most ? blocks : most;
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* Forward */

static inline int conv2d_forward_way(Conv2dShape s) {
  const bool few = conv2d_is_dense(s) && s.k <= CONV2D_FEW_FILTERS; /* of 16 most of a product's tile is empty */
  return conv2d_way(s, few || conv2d_is_shallow(s) || conv2d_is_small(s));
}

/* relu: ReLU in the convolution's own kernel. */
static inline void conv2d_forward_way_gpu(float *y, const float *x, const float *w, const float *bias, bool relu,
                                          Conv2dShape s, float *workspace) {
  const int way = conv2d_forward_way(s);
  if (way == NNCUDA_DIRECT)
    conv2d_forward_least_gpu(y, x, w, bias, s, relu ? 0 : -INFINITY);
  else if (way == NNCUDA_WINOGRAD)
    (relu ? winograd_bounded<false, true> : winograd_bounded<false, false>)(y, x, w, bias,
                                                                            winograd_forward_shape<4, 4>(s),
                                                                            winograd_forward_shape<2, 4>(s), workspace);
  else
    (relu ? conv2d_bias_relu_forward_implicit_gemm : conv2d_forward_implicit_gemm)(y, x, w, bias, s, workspace);
}

static inline size_t conv2d_forward_way_floats(Conv2dShape s) {
  const int way = conv2d_forward_way(s);
  if (way == NNCUDA_DIRECT) return 0;
  if (way == NNCUDA_WINOGRAD)
    return winograd_bounded_floats(winograd_forward_shape<4, 4>(s), winograd_forward_shape<2, 4>(s));
  return conv2d_implicit_gemm_workspace_floats(s);
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* The gradient of the input */

/* The direct kernel asks for each tap and input whether an output has read it: not for 49 taps. */
static inline int conv2d_backward_input_way(Conv2dShape s) {
  const bool few = conv2d_is_dense(s) && s.c <= CONV2D_FEW_CHANNELS && s.r * s.s <= DIRECT_TAPS;
  return conv2d_way(s, few || conv2d_is_small(s));
}

static inline void conv2d_backward_input_way_gpu(float *dx, const float *dy, const float *w, Conv2dShape s,
                                                 float *workspace) {
  const int way = conv2d_backward_input_way(s);
  if (way == NNCUDA_DIRECT)
    conv2d_backward_input_gpu(dx, dy, w, s);
  else if (way == NNCUDA_WINOGRAD)
    winograd_bounded<true, false>(dx, dy, w, NULL, winograd_backward_input_shape<4, 4>(s),
                                  winograd_backward_input_shape<2, 4>(s), workspace);
  else
    conv2d_backward_input_gemm(dx, dy, w, s, workspace);
}

static inline size_t conv2d_backward_input_way_floats(Conv2dShape s) {
  const int way = conv2d_backward_input_way(s);
  if (way == NNCUDA_DIRECT) return 0;
  if (way == NNCUDA_WINOGRAD)
    return winograd_bounded_floats(winograd_backward_input_shape<4, 4>(s), winograd_backward_input_shape<2, 4>(s));
  return conv2d_input_gemm_floats(s);
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* The gradient of the filters */

static inline int conv2d_backward_weight_way(Conv2dShape s) {
  const bool few = conv2d_is_dense(s) && s.k <= CONV2D_FEW_FILTERS && !conv2d_has_winograd(s);
  const bool one_block = conv2d_is_small(s) && conv2d_pixels(s) <= BLOCKS_PIXELS;
  return conv2d_way(s, few || conv2d_is_shallow(s) || one_block);
}

/* So few pixels that one block adds up all of them for its tile of 64 x 64 weights. */
static inline bool conv2d_weight_is_one_block(Conv2dShape s) {
  return conv2d_pixels(s) <= BLOCKS_PIXELS && !conv2d_is_shallow(s);
}

static inline void conv2d_backward_weight_way_gpu(float *dw, float *dbias, const float *dy, const float *x,
                                                  Conv2dShape s, float *workspace) {
  const int way = conv2d_backward_weight_way(s);
  if (way == NNCUDA_DIRECT && conv2d_weight_is_one_block(s))
    conv2d_backward_weight_blocks(dw, dbias, dy, x, s, workspace);
  else if (way == NNCUDA_DIRECT)
    conv2d_backward_weight_gpu(dw, dbias, dy, x, s, workspace);
  else if (way == NNCUDA_WINOGRAD)
    conv2d_backward_weight_winograd_within(dw, dbias, dy, x, s, workspace, winograd_parts_space(s));
  else
    conv2d_backward_weight_gemm(dw, dbias, dy, x, s, workspace);
}

static inline size_t conv2d_backward_weight_way_floats(Conv2dShape s) {
  const int way = conv2d_backward_weight_way(s);
  if (way == NNCUDA_DIRECT)
    return conv2d_weight_is_one_block(s) ? conv2d_bias_floats(s) : conv2d_workspace_floats_gpu(s);
  if (way == NNCUDA_WINOGRAD) return conv2d_backward_weight_winograd_floats(s, winograd_parts_space(s));
  return conv2d_backward_gemm_weight_floats(s);
}

#endif /* PHASE5_PRODUCTION_NNCUDA_CONV2D_WAYS_CUH */
