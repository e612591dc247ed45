/* layer_norm.cuh - layer normalisation (Ba, Kiros, Hinton, 2016), as PyTorch's nn.LayerNorm computes it: each row of x
 * gets mean 0 and variance 1, then a weight and a bias for each column.
 *
 *     y[r,j] = weight[j] * t[r,j] + bias[j]      t[r,j] = (x[r,j] - mean[r]) * inv_std[r]
 *
 *     x, y, dx, dy (rows,cols)   weight, bias, dweight, dbias (cols)   saved (2,rows): mean, 1 / sqrt(variance + 1e-5)
 *
 * The statistics are those of a row alone: a batch of one gives the same result as a batch of 1000, and training and
 * evaluation do not differ. weight and bias may be NULL: 1 and 0. The variance divides by cols, and is summed around
 * the mean: E[x^2] - E[x]^2 would lose all digits where the mean is large.
 *
 * backward, with g = dy * weight:
 *
 *     dx[r,j] = inv_std[r] * (g[r,j] - mean of g[r] - t[r,j] * mean of (g t)[r])
 *     dweight[j] = sum over r of dy[r,j] t[r,j]        dbias[j] = sum over r of dy[r,j]
 *
 * So dx needs two sums along each row and the other gradients need sums along each column. The first are like softmax;
 * for the second a block adds up a slice of the rows, and another kernel adds up the slices in a fixed order.
 *
 * On a CPU (layer_norm_cpu.cuh, layer_norm_cpu_fast.cuh):
 *
 *   layer_norm_*_cpu              plain loops, sums in double
 *   layer_norm_*_cpu_fast         rows shared among threads, four sums of four lanes
 *
 * On a GPU, forward (layer_norm_forward.cuh, layer_norm_moments.cuh):
 *
 *   layer_norm_forward_naive      one thread per row, three passes; the 32 lanes of a warp read 32 rows
 *   layer_norm_forward_block      one block per row, three passes: mean, variance, result
 *   layer_norm_forward_moments    mean and variance in one pass, by merging the moments of parts: two passes
 *   layer_norm_forward_gpu        a warp or a block keeps the row in registers, as float4: one read; longer rows than
 *                                 16384 go to `moments`
 *
 * and backward (layer_norm_backward.cuh):
 *
 *   layer_norm_backward_naive     one thread per row for dx, one thread per column for dweight and dbias
 *   layer_norm_backward_sliced    one block per row for dx; slices of the rows for dweight and dbias: x and dy are read
 *                                 three times
 *   layer_norm_backward_gpu       each block walks through rows and adds up its slice of dweight and dbias in
 *                                 registers: x and dy are read once; longer rows than 4096 go to `sliced`
 *
 * instance_norm.cuh uses the same kernels with weight and bias of a row: BY_COLUMN is false.
 */
#ifndef PHASE3_CNN_LAYER_NORM_CUH
#define PHASE3_CNN_LAYER_NORM_CUH

#include "phase3_cnn/10_batch_norm/layer_norm_backward.cuh"
#include "phase3_cnn/10_batch_norm/layer_norm_cpu.cuh"
#include "phase3_cnn/10_batch_norm/layer_norm_cpu_fast.cuh"
#include "phase3_cnn/10_batch_norm/layer_norm_forward.cuh"

#endif /* PHASE3_CNN_LAYER_NORM_CUH */
