/* conv2d_int8_wgmma.cuh - convolution of int8 numbers (conv2d_int8.cuh) with the instructions of Hopper.
 *
 *   conv2d_int8_wgmma     x (N,H,W,C), w (K,R,S,C) -> y (N,P,Q,K) int8, with every end. conv2d_int8_mma() computes
 *                         what it does not take: groups, channels that are not a multiple of 16, a stride above 2
 *   conv2d_int8_best      the fastest that this GPU has
 */
#ifndef PHASE5_PRODUCTION_CONV2D_INT8_WGMMA_CUH
#define PHASE5_PRODUCTION_CONV2D_INT8_WGMMA_CUH

#include "phase1_building_blocks/15_matmul_tensor_core/matmul_wgmma.cuh"
#include "phase5_production/09_int8/conv2d_int8_mma.cuh"
#include "phase5_production/09_int8/conv2d_int8_wgmma_kernel.cuh"

/* There are 24 of these kernels. For the emulated GPU they are left out unless INT8_EMULATE_WGMMA is defined; then
 * there are four, of 128 pixels. */
#if defined(SIMT_REWRITTEN) && !defined(INT8_EMULATE_WGMMA)
#define INT8_WITHOUT_WGMMA
#endif

/* Why this GPU or this program cannot run them; NULL if it can. */
static inline const char *conv2d_int8_wgmma_refusal(void) {
  const char *refusal = matmul_wgmma_refusal();
#ifdef INT8_WITHOUT_WGMMA
  if (refusal == NULL) refusal = "the program was compiled without them; -DINT8_EMULATE_WGMMA compiles them";
#endif
  return refusal;
}

#ifndef INT8_WITHOUT_WGMMA

/* Of bytes: pitch[i] from one to the next along dimension i + 1. */
static inline CUtensorMap conv2d_int8_map(const void *x, int rank, const size_t *size, const size_t *pitch,
                                          const int *box) {
  cuuint64_t sizes[4], bytes[4];
  cuuint32_t boxes[4];
  for (int i = 0; i < rank; i++) {
    sizes[i] = size[i];
    boxes[i] = (cuuint32_t)box[i];
    if (i > 0) bytes[i - 1] = pitch[i - 1];
  }
  return tensor_map(x, CU_TENSOR_MAP_DATA_TYPE_UINT8, rank, sizes, bytes, boxes,
                    box[0] == 64 ? CU_TENSOR_MAP_SWIZZLE_64B : CU_TENSOR_MAP_SWIZZLE_128B);
}

/* Plane (a,b) of images (N,H,W,C): the pixels of rows a, a + stride, ... and columns b, b + stride, ... */
static inline CUtensorMap conv2d_int8_plane_map(const int8_t *x, int n, int h, int w, int c, int stride_h, int stride_w,
                                                int a, int b, const int *box) {
  const size_t size[4] = {(size_t)c, (size_t)conv2d_nhwc_plane_size(w, stride_w, b),
                          (size_t)conv2d_nhwc_plane_size(h, stride_h, a), (size_t)n};
  const size_t pitch[3] = {(size_t)stride_w * c, (size_t)stride_h * w * c, (size_t)h * w * c};
  return conv2d_int8_map(x + ((size_t)a * w + b) * c, 4, size, pitch, box);
}

/* Row i of 16 has filter 2 i, row i + 8 filter 2 i + 1: dimensions depth, i, which of the two, sixteen. */
static inline CUtensorMap conv2d_int8_weight_map(const int8_t *w, Conv2dShape s, int row, int team) {
  const size_t depth = (size_t)s.r * s.s * s.c, size[4] = {depth, 8, 2, (size_t)s.k / 16};
  const size_t pitch[3] = {2 * depth, depth, 16 * depth};
  const int box[4] = {row, 8, 2, CONV2D_NHWC_BLOCK / 16 / team};
  return conv2d_int8_map(w, 4, size, pitch, box);
}

template <int ROW, int PIXELS, bool POSITIVE>
static inline void conv2d_int8_wgmma_run(int8_t *y, const int8_t *x, const int8_t *w, Conv2dShape s, Int8End end,
                                         const Conv2dNhwcPlan *plan) {
  const int p = conv2d_out_h(s), q = conv2d_out_w(s);
  const int in_box[4] = {ROW, plan->pitch, plan->box_rows, plan->tile_images};
  const int out_box[4] = {CONV2D_INT8_STORE, plan->tile_cols == plan->cols ? plan->pitch : plan->tile_cols,
                          plan->image_rows, plan->tile_images};
  Conv2dInt8Maps maps = {};
  for (int i = 0; i < plan->planes; i++)
    maps.input[i] =
        conv2d_int8_plane_map(x, s.n, s.h, s.w, s.c, s.stride_h, s.stride_w, i / s.stride_w, i % s.stride_w, in_box);
  const int team = conv2d_int8_team(plan);
  maps.weights = conv2d_int8_weight_map(w, s, ROW, team);
  maps.output = conv2d_int8_plane_map(y, s.n, p, q, s.k, 1, 1, 0, 0, out_box);
  if (end.added != NULL) maps.added = conv2d_int8_plane_map(end.added, s.n, p, q, s.k, 1, 1, 0, 0, out_box);
  const int bytes = CONV2D_NHWC_SHARED + 1024, added_bytes = out_box[0] * out_box[1] * out_box[2] * out_box[3];
  CUDA_CHECK(cudaFuncSetAttribute((const void *)conv2d_int8_wgmma_kernel<ROW, PIXELS, POSITIVE>,
                                  cudaFuncAttributeMaxDynamicSharedMemorySize, bytes));
  cudaLaunchAttribute attribute = {};
  attribute.id = cudaLaunchAttributeClusterDimension;
  attribute.val.clusterDim.x = (unsigned)team;
  attribute.val.clusterDim.y = attribute.val.clusterDim.z = 1;
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3((unsigned)conv2d_int8_blocks(plan, matmul_mma_multiprocessors()));
  config.blockDim = dim3(CONV2D_INT8_THREADS);
  config.dynamicSmemBytes = (size_t)bytes;
  config.attrs = &attribute;
  config.numAttrs = team > 1 ? 1 : 0;
  CUDA_CHECK(cudaLaunchKernelEx(&config, conv2d_int8_wgmma_kernel<ROW, PIXELS, POSITIVE>, maps, *plan, end,
                                conv2d_int8_staging(plan), added_bytes));
}

template <bool POSITIVE>
static inline void conv2d_int8_wgmma_planned(int8_t *y, const int8_t *x, const int8_t *w, Conv2dShape s, Int8End end,
                                             const Conv2dNhwcPlan *plan) {
#define CONV2D_INT8_CASE(PIXELS)                                           \
  case PIXELS:                                                             \
    if (plan->row_channels == 64)                                          \
      conv2d_int8_wgmma_run<64, PIXELS, POSITIVE>(y, x, w, s, end, plan);  \
    else                                                                   \
      conv2d_int8_wgmma_run<128, PIXELS, POSITIVE>(y, x, w, s, end, plan); \
    break;
  switch (plan->pixels) {
    CONV2D_INT8_CASE(128)
#ifndef SIMT_REWRITTEN
    CONV2D_INT8_CASE(112)
    CONV2D_INT8_CASE(208)
    CONV2D_INT8_CASE(224)
    CONV2D_INT8_CASE(240)
    CONV2D_INT8_CASE(256)
#endif
  }
#undef CONV2D_INT8_CASE
}

/* A plan is the best of hundreds, and a network asks for the same ones again: each host thread keeps the last ones. */
enum { CONV2D_INT8_KEPT = 20 };

typedef struct Conv2dInt8Kept {
  bool asked, fits;
  Conv2dShape s;
  int multiprocessors;
  Conv2dNhwcPlan plan;
} Conv2dInt8Kept;

/* NULL: wgmma does not take the shape. */
static inline const Conv2dNhwcPlan *conv2d_int8_kept_plan(Conv2dShape s) {
  static thread_local Conv2dInt8Kept kept[CONV2D_INT8_KEPT];
  static thread_local int next;
  const int count = matmul_mma_multiprocessors();
  Error err;
#ifdef SIMT_REWRITTEN
  const int pixels = 128;
#else
  const int pixels = 0;
#endif
  for (int i = 0; i < CONV2D_INT8_KEPT; i++)
    if (kept[i].asked && kept[i].multiprocessors == count && memcmp(&kept[i].s, &s, sizeof s) == 0)
      return kept[i].fits ? &kept[i].plan : NULL;
  Conv2dInt8Kept *own = &kept[next];
  next = (next + 1) % CONV2D_INT8_KEPT;
  own->asked = true;
  own->s = s;
  own->multiprocessors = count;
  own->fits = conv2d_int8_plan(&own->plan, s, pixels, count, &err) == 0;
  return own->fits ? &own->plan : NULL;
}

/* The pixels of a 1 x 1 convolution need not be in rows. */
static inline Conv2dShape conv2d_int8_flat(Conv2dShape s) {
  const double pixels = (double)s.n * s.h * s.w;
  if (s.r != 1 || s.s != 1 || s.stride_h != 1 || s.stride_w != 1 || s.padding_h != 0 || s.padding_w != 0) return s;
  if (pixels > INT_MAX / 2) return s;
  s.w = s.n * s.h * s.w;
  s.n = s.h = 1;
  return s;
}

static inline void conv2d_int8_wgmma(int8_t *y, const int8_t *x, const int8_t *w, Conv2dShape s, Int8End end) {
  const char *refusal = conv2d_int8_wgmma_refusal();
  if (refusal != NULL) die("conv2d_int8_wgmma: %s", refusal);
  const Conv2dShape flat = conv2d_int8_flat(s);
  const bool aligned = ((uintptr_t)x | (uintptr_t)w | (uintptr_t)y | (uintptr_t)end.added) % 16 == 0;
  const Conv2dNhwcPlan *plan = aligned && (end.middle == 0 || end.added != NULL) ? conv2d_int8_kept_plan(flat) : NULL;
  if (plan == NULL)
    conv2d_int8_mma(y, x, w, s, end);
  else if (end.x_positive)
    conv2d_int8_wgmma_planned<true>(y, x, w, flat, end, plan);
  else
    conv2d_int8_wgmma_planned<false>(y, x, w, flat, end, plan);
}

#else

static inline void conv2d_int8_wgmma(int8_t *, const int8_t *, const int8_t *, Conv2dShape, Int8End) {
  die("conv2d_int8_wgmma: %s", conv2d_int8_wgmma_refusal());
}
#endif

static inline void conv2d_int8_best(int8_t *y, const int8_t *x, const int8_t *w, Conv2dShape s, Int8End end) {
  if (conv2d_int8_wgmma_refusal() == NULL)
    conv2d_int8_wgmma(y, x, w, s, end);
  else if (mma_refusal() == NULL)
    conv2d_int8_mma(y, x, w, s, end);
  else
    conv2d_int8_dp4a(y, x, w, s, end);
}
static inline void conv2d_int8_best(float *y, const int8_t *x, const int8_t *w, Conv2dShape s, Int8End end) {
  if (mma_refusal() == NULL)
    conv2d_int8_mma(y, x, w, s, end);
  else
    conv2d_int8_dp4a(y, x, w, s, end);
}

#endif /* PHASE5_PRODUCTION_CONV2D_INT8_WGMMA_CUH */
