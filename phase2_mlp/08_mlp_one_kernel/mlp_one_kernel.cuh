/* mlp_one_kernel.cuh - one epoch of a network with one hidden layer, from 14 launches per step to one per epoch.
 *
 *     x (B,I) -> hidden = relu(x w1ᵀ + b1) (B,H) -> logits = hidden w2ᵀ + b2 (B,C) -> softmax cross-entropy -> SGD
 *
 * trains on `count` images in the order `order`, B = `batch` of them per step, the last step with the rest. A step of
 * 784-128-10 and 64 images is 26 million floating point operations, half a microsecond for a GPU: launches, waits and
 * memory take the time. Each version removes some of that; all compute the same.
 *
 *   mlp_epoch_cpu           plain loops, sums in double
 *   mlp_epoch_layers        (mlp_one_kernel_layers.cuh) the nodes of a Model, each kernel launched by the host
 *   mlp_epoch_step_graph    (there, too) the same kernels; the host launches a graph of a step, the GPU counts steps
 *   mlp_epoch_fused         a graph of three kernels, divided where all blocks must finish before any block goes on:
 *                             forward  a block has 8 hidden units and 112 inputs of each image (a "tile" of w1): its
 *                                      share of the sums x w1ᵀ
 *                             sample   a block has an image: adds the shares; relu, logits, softmax, loss; the
 *                                      gradient with respect to the hidden units' sums ("delta")
 *                             update   a block has its tile again: gradient and update in one; no gradient is stored
 *   mlp_epoch_graph         the three kernels of all steps in one graph: one launch per epoch
 *   mlp_epoch_grid_sync     one kernel: blocks keep their tile of w1 in shared memory, its velocity in registers, and
 *                           fetch the next images meanwhile; twice per step all blocks wait, by grid.sync()
 *   mlp_epoch_barrier       the same with a barrier of our own
 *   mlp_epoch_flags         no barrier: each number is stored with the number of its step, and its reader waits for it
 *
 * The last three need all their blocks on the GPU at the same time: a cooperative launch. They and the fused ones take
 * networks and batches up to the limits of mlp_one_kernel_tile.cuh.
 *
 * This header includes all but mlp_one_kernel_layers.cuh. Read in this order:
 *
 *   mlp_one_kernel_cpu.cuh           what is trained, and the definition
 *   mlp_one_kernel_mail.cuh          which numbers blocks send each other, and how
 *   mlp_one_kernel_tile.cuh          what a block keeps in its memory
 *   mlp_one_kernel_step.cuh          forward, sample, update: the parts of all kernels below
 *   mlp_one_kernel_run.cuh           the host's side: memory, limits, graphs
 *   mlp_one_kernel_fused.cuh         three kernels per step
 *   mlp_one_kernel_persistent.cuh    one kernel per epoch
 */
#ifndef PHASE2_MLP_MLP_ONE_KERNEL_CUH
#define PHASE2_MLP_MLP_ONE_KERNEL_CUH

#include "phase2_mlp/08_mlp_one_kernel/mlp_one_kernel_fused.cuh"
#include "phase2_mlp/08_mlp_one_kernel/mlp_one_kernel_persistent.cuh"

#endif /* PHASE2_MLP_MLP_ONE_KERNEL_CUH */
