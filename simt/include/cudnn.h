/* cudnn.h - cuDNN 9 on the CPU: convolutions by oneDNN, the rest in plain loops. C and C++.
 *
 * Offered, in float32, half and bfloat16, in NCHW, NHWC and any other strides: convolution forward and backward, with
 * groups, strides, dilation and both modes; convolution + bias + activation; activations, pooling, softmax, batch
 * normalization, forward and backward; dropout; sums, products, scaling, filling, copying and reducing of tensors; of
 * the graph API, a convolution with what cuDNN fuses behind it (cudnn_graph.h).
 *
 * All is computed in float32, sums of statistics in double, and rounded once to the type of the result. All algorithms
 * of a convolution give the same numbers here. Their workspaces have the sizes that such an algorithm needs, so that a
 * program that forgets its workspace is found.
 *
 * What cuDNN refuses is refused with its status, and what the emulation does not have with CUDNN_STATUS_NOT_SUPPORTED.
 * cudnnGetLastErrorString() has the reason in one sentence, and so has stderr, but for questions such as
 * cudnnGetConvolutionForwardWorkspaceSize(). What a GPU cannot know, a host pointer or data that leaves its allocation,
 * gives CUDNN_STATUS_EXECUTION_FAILED, and CUDA's calls then give cudaErrorIllegalAddress.
 */
#ifndef CUDNN_H_
#define CUDNN_H_

#include "cudnn_cnn.h"
#include "cudnn_graph.h"
#include "cudnn_ops.h"
#include "cudnn_version.h"

#endif /* CUDNN_H_ */
