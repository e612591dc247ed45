/* nncuda_pool2d_shape.cuh - the shape of pooling, from a caller. Behind nncuda_call.cuh. */
#ifndef PHASE5_PRODUCTION_NNCUDA_POOL2D_SHAPE_CUH
#define PHASE5_PRODUCTION_NNCUDA_POOL2D_SHAPE_CUH

#include "phase3_cnn/09_pooling/pool2d_shape.cuh"
#include "phase5_production/05_pytorch/nncuda_call.cuh"

typedef int Pool2dCheck(Pool2dShape s, Error *err);

/* The lesson's shape of the caller's, with every size checked before it becomes an int. */
static inline Pool2dShape call_pool2d(Call *call, const nncuda_pool2d_shape *shape, Pool2dCheck *check) {
  Pool2dShape s = {};
  Error err;
  call_array(call, "shape", shape, sizeof(int64_t));
  if (call->status != NNCUDA_OK) return s;
  const CallSize sizes[] = {{"shape.n", shape->n, 1, &s.n},
                            {"shape.c", shape->c, 1, &s.c},
                            {"shape.h", shape->h, 1, &s.h},
                            {"shape.w", shape->w, 1, &s.w},
                            {"shape.kernel_h", shape->kernel_h, 1, &s.kernel_h},
                            {"shape.kernel_w", shape->kernel_w, 1, &s.kernel_w},
                            {"shape.stride_h", shape->stride_h, 1, &s.stride_h},
                            {"shape.stride_w", shape->stride_w, 1, &s.stride_w},
                            {"shape.padding_h", shape->padding_h, 0, &s.pad_h},
                            {"shape.padding_w", shape->padding_w, 0, &s.pad_w},
                            {"shape.dilation_h", shape->dilation_h, 1, &s.dilation_h},
                            {"shape.dilation_w", shape->dilation_w, 1, &s.dilation_w}};
  call_sizes(call, sizes, sizeof sizes / sizeof *sizes, INT_MAX);
  call_size(call, "shape.ceil_mode", shape->ceil_mode, 0, 1);
  s.ceil_mode = (int)shape->ceil_mode;
  if (call->status == NNCUDA_OK && check(s, &err) != 0)
    call->status = nncuda_fail(NNCUDA_BAD_ARGUMENT, call->function, "shape", "shape: %s", err.message);
  return s;
}

#endif /* PHASE5_PRODUCTION_NNCUDA_POOL2D_SHAPE_CUH */
