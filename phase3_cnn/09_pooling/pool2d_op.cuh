/* pool2d_op.cuh - what the nodes of max and average pooling share. */
#ifndef PHASE3_CNN_POOL2D_OP_CUH
#define PHASE3_CNN_POOL2D_OP_CUH

#include "common/nn/graph.h"
#include "phase3_cnn/09_pooling/pool2d_shape.cuh"

/* Which inputs an output reads. */
static inline NodeWindow pool2d_node_window(Pool2dShape s) {
  const NodeWindow window = {{(s.kernel_h - 1) * s.dilation_h + 1, (s.kernel_w - 1) * s.dilation_w + 1},
                             {s.stride_h, s.stride_w},
                             {s.pad_h, s.pad_w}};
  return window;
}

#endif /* PHASE3_CNN_POOL2D_OP_CUH */
