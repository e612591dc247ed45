/* conv2d_nhwc_wgmma.cuh - convolution with the instructions of Hopper: NHWC, bfloat16, half, or float as TF32; float32
 * sums.
 *
 *   conv2d_forward_nhwc_wgmma       y = conv(x) + bias, with ReLU or without
 *   conv2d_forward_nhwc_wgmma_add   the end of a residual block: y = relu(conv(x) + bias + added), in the same launch
 *
 * wgmma ignores the last 13 bits of a float. So floats are rounded when they are stored: outputs here, and weights
 * where they are made. Floats have 32 channels in a row of 128 bytes, and the threads store them themselves: 8 lanes
 * write the 32 bytes of a sector. */
#ifndef PHASE3_CNN_CONV2D_NHWC_WGMMA_CUH
#define PHASE3_CNN_CONV2D_NHWC_WGMMA_CUH

#include "phase1_building_blocks/15_matmul_tensor_core/matmul_wgmma.cuh"
#include "phase3_cnn/03_conv2d_implicit_gemm/conv2d_nhwc.cuh"
#include "phase3_cnn/03_conv2d_implicit_gemm/conv2d_nhwc_plan.cuh"

/* There are forty of these kernels. For the emulated GPU, whose compiler takes a minute for them, they are left out
 * unless CONV2D_EMULATE_WGMMA is defined. */
#if defined(SIMT_REWRITTEN) && !defined(CONV2D_EMULATE_WGMMA)
#define CONV2D_WITHOUT_WGMMA
#endif

/* Why this GPU or this program cannot run them; NULL if it can. */
static inline const char *conv2d_wgmma_refusal(void) {
  const char *refusal = matmul_wgmma_refusal();
#ifdef CONV2D_WITHOUT_WGMMA
  if (refusal == NULL) refusal = "the program was compiled without them; -DCONV2D_EMULATE_WGMMA compiles them";
#endif
  return refusal;
}

#ifndef CONV2D_WITHOUT_WGMMA
#include "phase3_cnn/03_conv2d_implicit_gemm/conv2d_nhwc_wgmma_kernel.cuh"

/* ---------------------------------------------------------------------------------------------------------------- */
/* Launchers */

/* The tensor map of `rank` dimensions, the first one contiguous; pitch[i]: elements from one to the next along
 * dimension i + 1. */
static inline CUtensorMap conv2d_nhwc_map_of(const void *x, CUtensorMapDataType type, int rank, const size_t *size,
                                             const size_t *pitch, const int *box) {
  cuuint64_t sizes[4], bytes[4];
  cuuint32_t boxes[4];
  for (int i = 0; i < rank; i++) {
    sizes[i] = size[i];
    boxes[i] = (cuuint32_t)box[i];
    if (i > 0) bytes[i - 1] = pitch[i - 1] * (type == CU_TENSOR_MAP_DATA_TYPE_FLOAT32 ? 4 : 2);
  }
  return tensor_map(x, type, rank, sizes, bytes, boxes);
}

template <typename T>
static inline CUtensorMapDataType conv2d_nhwc_type(void) {
  if (sizeof(T) == sizeof(float)) return CU_TENSOR_MAP_DATA_TYPE_FLOAT32;
  return Conv2dIsHalf<T>::value ? CU_TENSOR_MAP_DATA_TYPE_FLOAT16 : CU_TENSOR_MAP_DATA_TYPE_BFLOAT16;
}

/* Plane (a,b) of images (N,H,W,C): the pixels of rows a, a + stride, ... and columns b, b + stride, ... */
static inline CUtensorMap conv2d_nhwc_plane_map_of(const void *x, CUtensorMapDataType type, int n, int h, int w, int c,
                                                   int stride_h, int stride_w, int a, int b, const int *box) {
  size_t size[4] = {(size_t)c, (size_t)conv2d_nhwc_plane_size(w, stride_w, b),
                    (size_t)conv2d_nhwc_plane_size(h, stride_h, a), (size_t)n};
  size_t pitch[3] = {(size_t)stride_w * c, (size_t)stride_h * w * c, (size_t)h * w * c};
  if (size[1] == 0 || size[2] == 0) { /* no pixel: any address will do, its boxes lie outside */
    size[1] = size[2] = 1;
    a = b = 0;
  }
  const size_t first = ((size_t)a * w + b) * c * (type == CU_TENSOR_MAP_DATA_TYPE_FLOAT32 ? 4 : 2);
  return conv2d_nhwc_map_of((const char *)x + first, type, 4, size, pitch, box);
}

/* Of 16 bits. */
static inline CUtensorMap conv2d_nhwc_plane_map(const void *x, bool half, int n, int h, int w, int c, int stride_h,
                                                int stride_w, int a, int b, const int *box) {
  return conv2d_nhwc_plane_map_of(x, half ? CU_TENSOR_MAP_DATA_TYPE_FLOAT16 : CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, n, h, w,
                                  c, stride_h, stride_w, a, b, box);
}

/* The maps of what is added: the image, or plane (0,0) of it, and its weights (filters, channels). */
template <typename T>
static inline void conv2d_nhwc_added_maps(Conv2dNhwcMaps *maps, Conv2dNhwcAdd<T> add, Conv2dShape s,
                                          const Conv2dNhwcPlan *plan, const int *in_box) {
  const CUtensorMapDataType type = conv2d_nhwc_type<T>();
  const bool image = add.w == NULL;
  const int channels = image ? CONV2D_NHWC_IDENTITY : add.channels, rows = image ? CONV2D_NHWC_IDENTITY : s.k;
  const size_t size[3] = {(size_t)channels, 1, (size_t)rows}, pitch[2] = {(size_t)channels, (size_t)channels};
  const int box[3] = {plan->row_channels, 1, CONV2D_NHWC_BLOCK * plan->blocks};
  const int h = image ? conv2d_out_h(s) : add.h, w = image ? conv2d_out_w(s) : add.w_count;
  const int c = image ? s.k : add.channels, stride = image ? 1 : add.stride;
  const CUtensorMap weights = conv2d_nhwc_map_of(image ? add.identity : add.w, type, 3, size, pitch, box);
  const CUtensorMap input = conv2d_nhwc_plane_map_of(add.x, type, s.n, h, w, c, stride, stride, 0, 0, in_box);
  maps->added_weights = weights;
  maps->input[plan->planes] = input;
}

template <typename T, int PIXELS, int BLOCKS, bool BACKWARD>
static inline void conv2d_nhwc_wgmma_run(T *y, const T *x, const T *w, const float *bias, Conv2dShape s, bool relu,
                                         const Conv2dNhwcPlan *plan, Conv2dNhwcAdd<T> add = {}) {
  const CUtensorMapDataType type = conv2d_nhwc_type<T>();
  const int row = plan->row_channels;
  int in_h = BACKWARD ? conv2d_out_h(s) : s.h, in_w = BACKWARD ? conv2d_out_w(s) : s.w;
  int out_h = BACKWARD ? s.h : conv2d_out_h(s), out_w = BACKWARD ? s.w : conv2d_out_w(s);
  int in_step_h = BACKWARD ? 1 : s.stride_h, in_step_w = BACKWARD ? 1 : s.stride_w;
  int out_step_h = BACKWARD ? s.stride_h : 1, out_step_w = BACKWARD ? s.stride_w : 1;
  Conv2dNhwcMaps maps = {};
  const int in_box[4] = {row, plan->pitch, plan->box_rows, plan->tile_images};
  const int out_box[4] = {row, plan->tile_cols == plan->cols ? plan->pitch : plan->tile_cols, plan->image_rows,
                          plan->tile_images};
  for (int i = 0; i < plan->planes; i++)
    maps.input[i] = conv2d_nhwc_plane_map_of(x, type, s.n, in_h, in_w, plan->channels, in_step_h, in_step_w,
                                             i / in_step_w, i % in_step_w, in_box);
  for (int i = 0; i < plan->problems && sizeof(T) != sizeof(float); i++)
    maps.output[i] = conv2d_nhwc_plane_map_of(y, type, s.n, out_h, out_w, plan->filters, out_step_h, out_step_w,
                                              i / out_step_w, i % out_step_w, out_box);
  const size_t w_size[3] = {(size_t)s.c, (size_t)s.r * s.s, (size_t)s.k},
               w_pitch[2] = {(size_t)s.c, (size_t)s.c * s.r * s.s};
  const int w_box[3] = {row, 1, BACKWARD ? 64 : 64 * BLOCKS};
  maps.weights = conv2d_nhwc_map_of(w, type, 3, w_size, w_pitch, w_box);
  if (plan->added != CONV2D_NHWC_ADDS_NOTHING) conv2d_nhwc_added_maps(&maps, add, s, plan, in_box);

  const void *kernel = (const void *)conv2d_nhwc_wgmma_kernel<T, PIXELS, BLOCKS, BACKWARD>;
  const int bytes = CONV2D_NHWC_SHARED + 1024;
  CUDA_CHECK(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes));
  int blocks = matmul_mma_multiprocessors();
  if (plan->tiles < blocks) blocks = plan->tiles;
  conv2d_nhwc_wgmma_kernel<T, PIXELS, BLOCKS, BACKWARD>
      <<<blocks, CONV2D_NHWC_THREADS, bytes>>>(maps, *plan, y, bias, relu);
  CUDA_CHECK_LAUNCH();
}

template <typename T, bool BACKWARD>
static inline void conv2d_nhwc_wgmma_planned(T *y, const T *x, const T *w, const float *bias, Conv2dShape s, bool relu,
                                             const Conv2dNhwcPlan *plan, Conv2dNhwcAdd<T> add = {}) {
#define CONV2D_NHWC_CASE(PIXELS)                                                        \
  case PIXELS:                                                                          \
    if (plan->blocks == 1)                                                              \
      conv2d_nhwc_wgmma_run<T, PIXELS, 1, BACKWARD>(y, x, w, bias, s, relu, plan, add); \
    else                                                                                \
      conv2d_nhwc_wgmma_run<T, PIXELS, 2, BACKWARD>(y, x, w, bias, s, relu, plan, add); \
    break;
  switch (plan->pixels) {
    CONV2D_NHWC_CASE(128)
    CONV2D_NHWC_CASE(208)
    CONV2D_NHWC_CASE(216)
    CONV2D_NHWC_CASE(232)
    CONV2D_NHWC_CASE(256)
  }
#undef CONV2D_NHWC_CASE
}

/* The pixels of a 1 x 1 convolution need not be in rows. */
static inline Conv2dShape conv2d_nhwc_flat(Conv2dShape s) {
  double pixels = (double)s.n * s.h * s.w;
  if (s.r != 1 || s.s != 1 || s.stride_h != 1 || s.stride_w != 1 || s.padding_h != 0 || s.padding_w != 0) return s;
  if (pixels > INT_MAX / 2) return s;
  s.w = s.n * s.h * s.w;
  s.n = s.h = 1;
  return s;
}

/* A plan is the best of hundreds, and a network asks for the same ones in every step: each host thread keeps the last
 * that it has asked for. */
enum { CONV2D_NHWC_KEPT = 32 };

typedef struct Conv2dNhwcKept {
  bool asked, fits;
  Conv2dShape s;
  Conv2dNhwcLimits limits;
  int multiprocessors;
  Conv2dNhwcPlan plan;
} Conv2dNhwcKept;

static inline bool conv2d_nhwc_is_kept(const Conv2dNhwcKept *kept, Conv2dShape s, Conv2dNhwcLimits limits, int count) {
  const Conv2dNhwcLimits *own = &kept->limits;
  return kept->asked && memcmp(&kept->s, &s, sizeof s) == 0 && kept->multiprocessors == count &&
         own->boxes == limits.boxes && own->floats == limits.floats && own->added == limits.added &&
         own->added_channels == limits.added_channels;
}

/* The best forward plan; NULL: wgmma does not take the shape. */
static inline const Conv2dNhwcPlan *conv2d_nhwc_kept_plan(Conv2dShape s, Conv2dNhwcLimits limits) {
  static thread_local Conv2dNhwcKept kept[CONV2D_NHWC_KEPT];
  static thread_local int next;
  const int count = matmul_mma_multiprocessors();
  Error err;
  for (int i = 0; i < CONV2D_NHWC_KEPT; i++)
    if (conv2d_nhwc_is_kept(&kept[i], s, limits, count)) return kept[i].fits ? &kept[i].plan : NULL;
  Conv2dNhwcKept *own = &kept[next];
  next = (next + 1) % CONV2D_NHWC_KEPT;
  own->asked = true;
  own->s = s;
  own->limits = limits;
  own->multiprocessors = count;
  own->fits = conv2d_nhwc_plan(&own->plan, s, false, limits, count, &err) == 0;
  return own->fits ? &own->plan : NULL;
}

/* x (N,H,W,C), w (K,R,S,C), bias (K) or NULL -> y (N,P,Q,K), less than 0 replaced by 0 if relu. One box of x for all
 * taps, or one for each. Shapes that wgmma does not take go to conv2d_forward_nhwc_mma(). */
template <typename T>
static inline void conv2d_forward_nhwc_boxes(T *y, const T *x, const T *w, const float *bias, Conv2dShape s, bool relu,
                                             Conv2dNhwcBoxes boxes) {
  const char *refusal = conv2d_wgmma_refusal();
  Conv2dNhwcLimits limits = {boxes, 0, 0};
  limits.floats = sizeof(T) == sizeof(float);
  if (refusal != NULL) die("conv2d_nhwc_wgmma: %s", refusal);
  Conv2dShape flat = conv2d_nhwc_flat(s);
  const Conv2dNhwcPlan *plan = conv2d_nhwc_kept_plan(flat, limits);
  if (((uintptr_t)x | (uintptr_t)w | (uintptr_t)y) % 16 == 0 && plan != NULL)
    conv2d_nhwc_wgmma_planned<T, false>(y, x, w, bias, flat, relu, plan);
  else
    conv2d_forward_nhwc_mma(y, x, w, bias, s, relu);
}

/* What a plan of a convolution that adds something may be. */
template <typename T>
static inline Conv2dNhwcLimits conv2d_nhwc_add_limits(Conv2dNhwcAdd<T> add) {
  Conv2dNhwcLimits limits = {CONV2D_NHWC_BEST, 0, 0};
  limits.floats = sizeof(T) == sizeof(float);
  if (add.x != NULL) limits.added = add.w == NULL ? CONV2D_NHWC_ADDS_IMAGE : CONV2D_NHWC_ADDS_PRODUCT;
  if (limits.added == CONV2D_NHWC_ADDS_PRODUCT) limits.added_channels = add.channels;
  return limits;
}

/* The same and what a residual block adds before ReLU. Shapes that wgmma does not take go to
 * conv2d_forward_nhwc_mma_add(). */
template <typename T>
static inline void conv2d_forward_nhwc_wgmma_add(T *y, const T *x, const T *w, const float *bias, Conv2dShape s,
                                                 bool relu, Conv2dNhwcAdd<T> add) {
  const char *refusal = conv2d_wgmma_refusal();
  const uintptr_t all = (uintptr_t)x | (uintptr_t)w | (uintptr_t)y | (uintptr_t)add.x | (uintptr_t)add.w;
  if (refusal != NULL) die("conv2d_nhwc_wgmma: %s", refusal);
  const Conv2dShape flat = add.x == NULL ? conv2d_nhwc_flat(s) : s;
  Conv2dNhwcLimits limits = conv2d_nhwc_add_limits(add);
  if (add.one_order) limits.boxes = CONV2D_NHWC_SHARED_BOX; /* which kind of boxes is best depends on the images */
  const Conv2dNhwcPlan *plan = conv2d_nhwc_kept_plan(flat, limits);
  if (plan == NULL && add.one_order) {
    limits.boxes = CONV2D_NHWC_BOX_PER_TAP;
    plan = conv2d_nhwc_kept_plan(flat, limits);
  }
  if ((all | (uintptr_t)add.identity) % 16 == 0 && plan != NULL)
    conv2d_nhwc_wgmma_planned<T, false>(y, x, w, bias, flat, relu, plan, add);
  else
    conv2d_forward_nhwc_mma_add(y, x, w, bias, s, relu, add);
}

template <typename T>
static inline void conv2d_forward_nhwc_wgmma_taps(T *y, const T *x, const T *w, const float *bias, Conv2dShape s,
                                                  bool relu) {
  conv2d_forward_nhwc_boxes(y, x, w, bias, s, relu, CONV2D_NHWC_BOX_PER_TAP);
}

template <typename T>
static inline void conv2d_forward_nhwc_wgmma(T *y, const T *x, const T *w, const float *bias, Conv2dShape s,
                                             bool relu) {
  conv2d_forward_nhwc_boxes(y, x, w, bias, s, relu, CONV2D_NHWC_BEST);
}

#else

template <typename T>
static inline void conv2d_forward_nhwc_wgmma_taps(T *, const T *, const T *, const float *, Conv2dShape, bool) {
  die("conv2d_nhwc_wgmma: %s", conv2d_wgmma_refusal());
}
template <typename T>
static inline void conv2d_forward_nhwc_wgmma(T *, const T *, const T *, const float *, Conv2dShape, bool) {
  die("conv2d_nhwc_wgmma: %s", conv2d_wgmma_refusal());
}
template <typename T>
static inline void conv2d_forward_nhwc_wgmma_add(T *, const T *, const T *, const float *, Conv2dShape, bool,
                                                 Conv2dNhwcAdd<T>) {
  die("conv2d_nhwc_wgmma: %s", conv2d_wgmma_refusal());
}
#endif

#endif /* PHASE3_CNN_CONV2D_NHWC_WGMMA_CUH */
