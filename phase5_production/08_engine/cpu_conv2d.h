/* cpu_conv2d.h - convolution, linear layer and pooling of inference on the CPU, in the layout of cpu_layout.h.
 *
 *     CpuConv2d *conv;
 *     if (cpu_conv2d_open(&conv, shape, x_shape, y_shape, w, bias, CPU_RELU, &err) != 0) ...   // packs the weights
 *     cpu_conv2d_run(conv, y, x, added, workspace, n, threads);   // y = relu(conv(x) + bias + added)
 *     cpu_conv2d_close(conv);
 *
 * A convolution of 2 C R S multiplications per output is bound by how many of them the processor does in a cycle,
 * not by memory. A kernel keeps a tile of outputs in registers: some vectors of 16 filters times some neighbouring
 * pixels of a row. For each tap it loads the filters' weights once, and each pixel's number once for all of them.
 * Nothing is copied before (no im2col): the layout has the border that the padding needs.
 *
 *     AVX-512   2 x 14 or 4 x 7 vectors of sums of 32 registers
 *     AVX2      2 x 6 vectors of 8 floats, of 16 registers
 *     portable  4 x 2 vectors of 4 floats: GCC's vectors, any processor
 *
 * The widths of the images of ResNet are multiples of 7; other rows are divided into tiles of nearly equal size.
 */
#ifndef PHASE5_PRODUCTION_CPU_CONV2D_H
#define PHASE5_PRODUCTION_CPU_CONV2D_H

#include "phase5_production/08_engine/cpu_layout.h"

#include <stdbool.h>

#ifndef __host__ /* conv2d_shape.cuh serves kernels, too; this header is also for C */
#define __host__
#define __device__
#endif
#include "phase3_cnn/01_conv2d_naive/conv2d_shape.cuh"

#ifdef __cplusplus
extern "C" {
#endif

/* What follows the sum: min(max(sum, least), most). NaN stays NaN. */
typedef struct CpuActivation {
  float least, most;
} CpuActivation;

#define CPU_NO_ACTIVATION ((CpuActivation){-INFINITY, INFINITY})
#define CPU_RELU ((CpuActivation){0, INFINITY})
#define CPU_RELU6 ((CpuActivation){0, 6})

typedef struct CpuConv2d CpuConv2d;

/* Plans the convolution `shape` (its n: how many images are usual, which the choice of the method depends on) from x
 * to y: their channels, heights and widths are the shape's; x's border is at least the padding. x.border -1: x is
 * plain (N,C,H,W), as the first layer of a network finds it. w (K,C/groups,R,S) and bias (K, or NULL) are packed:
 * they need not be kept. -1 with a sentence. */
int cpu_conv2d_open(CpuConv2d **conv, Conv2dShape shape, CpuShape x, CpuShape y, const float *w, const float *bias,
                    CpuActivation activation, Error *err);

/* n images. added: NULL, or an array of y's shape that is added before the activation; it may be y itself. threads:
 * at most so many of cpu_threads.h's work; small layers use one. A plan serves several threads at once, each with
 * arrays and a workspace of its own. */
void cpu_conv2d_run(const CpuConv2d *conv, float *y, const float *x, const float *added, float *workspace, int n,
                    int threads);

/* Floats of workspace for at most n images and at most so many threads; 0 for most. */
size_t cpu_conv2d_workspace(const CpuConv2d *conv, int n, int threads);

void cpu_conv2d_close(CpuConv2d *conv);

size_t cpu_conv2d_bytes(const CpuConv2d *conv);       /* of packed weights */
const char *cpu_conv2d_method(const CpuConv2d *conv); /* "direct", "depthwise", "winograd" */

/* By what factor its rounding errors may be larger than those of the plain sum: 1 but for Winograd's method. */
double cpu_conv2d_growth(const CpuConv2d *conv);

/* y (N,K) = x W^T + bias: w (K,C*H*W) as ONNX's Gemm after Flatten has it, x in blocks with its border (its features
 * are found in x where the layout has them). y's shape is cpu_shape(K, 1, 1, 0). Run and close as a convolution. */
int cpu_linear_open(CpuConv2d **linear, CpuShape x, int k, const float *w, const float *bias, CpuActivation activation,
                    Error *err);

/* Windows outside of the image are cut: the padding is not a value (max), and not counted (average, unless
 * count_padding). */
typedef struct CpuPool2d {
  int kernel_h, kernel_w, stride_h, stride_w, padding_h, padding_w;
  bool average, count_padding;
} CpuPool2d;

void cpu_pool2d_run(float *y, CpuShape y_shape, const float *x, CpuShape x_shape, CpuPool2d pool, int n, int threads);

/* The mean of each plane: y_shape is cpu_shape(C, 1, 1, any border). */
void cpu_global_avg_pool2d_run(float *y, CpuShape y_shape, const float *x, CpuShape x_shape, int n, int threads);

/* y = activation(a + b), all of one shape, borders included. */
void cpu_add_run(float *y, const float *a, const float *b, CpuShape shape, CpuActivation activation, int n,
                 int threads);

#ifdef __cplusplus
}
#endif

#endif /* PHASE5_PRODUCTION_CPU_CONV2D_H */
