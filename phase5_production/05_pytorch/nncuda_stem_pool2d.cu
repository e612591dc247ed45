/* nncuda_stem_pool2d.cu - the first operations of a ResNet: convolution, bias, ReLU and the largest of each window.
 *
 * float32: the two kernels one after the other, for some pictures at a time. What the convolution of a whole batch
 * gives is the largest array of the network, 205 MB for 64 pictures of 224 x 224; of 8 pictures it is smaller than an
 * H200's L2 cache, from which pooling can read it.
 *
 * By tensor cores: the one kernel of phase5_production/04_resnet18_fused/stem_pool.cuh, which never writes it. */
#include "phase5_production/05_pytorch/nncuda_call.cuh"

#include "phase3_cnn/09_pooling/max_pool2d.cuh"
#include "phase5_production/04_resnet18_fused/stem_pool.cuh"
#include "phase5_production/05_pytorch/nncuda_conv2d_shape.cuh"
#include "phase5_production/05_pytorch/nncuda_conv2d_ways.cuh"
#include "phase5_production/05_pytorch/nncuda_pool2d_shape.cuh"
#include "phase5_production/05_pytorch/nncuda_workspace.cuh"

enum { STEM_SLICE = 26 << 20 }; /* bytes of the convolution's outputs at a time */
enum { STEM_ALIGN = 16 };       /* of y, by tensor cores */

/* Of one call. */
typedef struct Stem {
  void *y;
  const void *x, *w;
  const float *bias;
  Conv2dShape conv;
  Pool2dShape pool;
  int images; /* at a time */
  /* workspace */
  float *out, *floats; /* of the convolution, of `images` pictures; of its kernels. Tensor cores' twin: y, and w */
  uint8_t *argmax;
} Stem;

static inline bool stem_is_float32(int dtype) { return dtype == NNCUDA_FLOAT32; }

static inline Conv2dShape stem_conv_of(const Stem *s, int images) {
  Conv2dShape conv = s->conv;
  conv.n = images;
  return conv;
}

static inline Pool2dShape stem_pool_of_images(const Stem *s, int images) {
  Pool2dShape pool = s->pool;
  pool.n = images;
  return pool;
}

/* Of equal parts of the batch, but for the last one. */
static inline int stem_images(Conv2dShape conv) {
  const size_t image = conv2d_y_count(conv) / conv.n * sizeof(float),
               most = STEM_SLICE / image < 1 ? 1 : STEM_SLICE / image;
  const size_t parts = (conv.n + most - 1) / most;
  return (int)((conv.n + parts - 1) / parts);
}

/* For the convolution's own kernels: of a part of the batch, and of the last one. */
static inline size_t stem_conv_floats(const Stem *s, int device) {
  const int last = s->conv.n % s->images;
  const Conv2dShape part = stem_conv_of(s, s->images), rest = stem_conv_of(s, last > 0 ? last : s->images);
  if (device == NNCUDA_CPU) return conv2d_larger(conv2d_workspace_floats_cpu(part), conv2d_workspace_floats_cpu(rest));
  return conv2d_larger(conv2d_forward_way_floats(part), conv2d_forward_way_floats(rest));
}

/* The arrays of the workspace; gives its bytes. The device must be current. */
static inline size_t stem_place(Stem *s, void *workspace, int device, int dtype) {
  Workspace w = workspace_begin(workspace);
  s->images = device == NNCUDA_CPU ? 1 : stem_images(s->conv);
  if (stem_is_float32(dtype)) {
    s->out = (float *)workspace_take(&w, conv2d_y_count(stem_conv_of(s, s->images)), sizeof(float));
    s->argmax = (uint8_t *)workspace_take(&w, pool2d_y_count(stem_pool_of_images(s, s->images)), 1);
    s->floats = (float *)workspace_take(&w, stem_conv_floats(s, device), sizeof(float));
  } else if (device == NNCUDA_CPU) {
    s->out = (float *)workspace_take(&w, pool2d_y_count(stem_pool_of_images(s, 1)), sizeof(float));
    s->floats = (float *)workspace_take(&w, conv2d_w_count(s->conv), sizeof(float));
  }
  return w.bytes;
}

/* ---------------------------------------------------------------------------------------------------------------- */

static inline void stem_float32(const Stem *s, bool gpu) {
  const size_t x_image = conv2d_x_count(s->conv) / s->conv.n, y_image = pool2d_y_count(s->pool) / s->pool.n;
  for (int first = 0; first < s->conv.n; first += s->images) {
    const int images = s->conv.n - first < s->images ? s->conv.n - first : s->images;
    const Conv2dShape conv = stem_conv_of(s, images);
    const Pool2dShape pool = stem_pool_of_images(s, images);
    const float *x = (const float *)s->x + first * x_image;
    float *y = (float *)s->y + first * y_image;
    if (gpu) {
      conv2d_forward_way_gpu(s->out, x, (const float *)s->w, s->bias, true, conv, s->floats);
      max_pool2d_forward_gpu(y, s->argmax, s->out, pool);
    } else {
      conv2d_relu_forward_cpu_fast(s->out, x, (const float *)s->w, s->bias, conv, s->floats);
      max_pool2d_forward_cpu_fast(y, s->argmax, s->out, pool);
    }
  }
}

static inline StemShape stem_shape_of(const Stem *s, int images) {
  return stem_shape(images, s->conv.h, s->conv.w, s->conv.k, s->conv.c);
}

template <typename T>
static inline void stem_gpu(const Stem *s) {
  stem_pool_forward_gpu((T *)s->y, (const float *)s->x, (const T *)s->w, s->bias, stem_shape_of(s, s->conv.n));
}

template <typename T>
static inline void stem_cpu(const Stem *s) {
  const size_t weights = conv2d_w_count(s->conv), x_image = conv2d_x_count(s->conv) / s->conv.n;
  const size_t y_image = pool2d_y_count(s->pool) / s->pool.n;
  for (size_t i = 0; i < weights; i++) s->floats[i] = conv2d_widen(((const T *)s->w)[i]);
  for (int image = 0; image < s->conv.n; image++) {
    stem_pool_forward_cpu(s->out, (const float *)s->x + image * x_image, s->floats, s->bias, stem_shape_of(s, 1));
    for (size_t i = 0; i < y_image; i++) conv2d_narrow((T *)s->y + image * y_image + i, s->out[i]);
  }
}

static inline void stem_run(const Stem *s, int dtype, bool gpu) {
  if (stem_is_float32(dtype))
    stem_float32(s, gpu);
  else if (dtype == NNCUDA_TF32)
    (gpu ? stem_gpu<float> : stem_cpu<float>)(s);
  else if (dtype == NNCUDA_FLOAT16)
    (gpu ? stem_gpu<__half> : stem_cpu<__half>)(s);
  else
    (gpu ? stem_gpu<__nv_bfloat16> : stem_cpu<__nv_bfloat16>)(s);
}

/* ---------------------------------------------------------------------------------------------------------------- */

/* Both shapes, of which one must begin where the other ends. */
static inline void call_stem(Call *call, Stem *s, int dtype, const nncuda_conv2d_shape *conv,
                             const nncuda_pool2d_shape *pool) {
  call_size(call, "dtype", dtype, NNCUDA_FLOAT32, NNCUDA_TF32);
  s->conv = call_conv2d(call, conv);
  s->pool = call_pool2d(call, pool, max_pool2d_shape_check);
  if (call->status != NNCUDA_OK) return;
  const Conv2dShape c = s->conv;
  const Pool2dShape p = s->pool;
  if (p.n != c.n || p.c != c.k || p.h != conv2d_out_h(c) || p.w != conv2d_out_w(c))
    call->status = nncuda_fail(NNCUDA_BAD_ARGUMENT, call->function, "pool",
                               "pool is of %d x %d x %d x %d; expected %d x %d x %d x %d, what the convolution gives",
                               p.n, p.c, p.h, p.w, c.n, c.k, conv2d_out_h(c), conv2d_out_w(c));
  else if (!stem_is_float32(dtype) && !stem_pool_fits(c, p))
    call->status = nncuda_fail(NNCUDA_UNSUPPORTED, call->function, "conv",
                               "conv has %d channels and %d filters of %d x %d; tensor cores have a kernel for 3 "
                               "channels, filters of 7 x 7 with stride 2 and padding 3 in groups of 8, without "
                               "dilation, and windows of 3 x 3 with stride 2 and padding 1; float32 has no such limit",
                               c.c, c.k, c.r, c.s);
}

size_t nncuda_stem_pool2d_workspace(int device, int dtype, const nncuda_conv2d_shape *conv,
                                    const nncuda_pool2d_shape *pool) {
  Call call = call_begin(__func__, device, NULL);
  Stem s = {};
  size_t bytes = 0;
  call_stem(&call, &s, dtype, conv, pool);
  CALL_RUN(call, bytes = stem_place(&s, NULL, device, dtype), bytes = stem_place(&s, NULL, device, dtype));
  return call.status == NNCUDA_OK ? bytes : 0;
}

int nncuda_stem_pool2d_forward(int device, void *stream, int dtype, void *y, const void *x, const void *w,
                               const float *bias, const nncuda_conv2d_shape *conv, const nncuda_pool2d_shape *pool,
                               void *workspace, size_t workspace_bytes) {
  Call call = call_begin(__func__, device, stream);
  Stem s = {};
  call_stem(&call, &s, dtype, conv, pool);
  const size_t align = dtype == NNCUDA_FLOAT16 || dtype == NNCUDA_BFLOAT16 ? sizeof(uint16_t) : sizeof(float);
  call_array(&call, "y", y, align);
  if (!stem_is_float32(dtype) && call.status == NNCUDA_OK && (uintptr_t)y % STEM_ALIGN != 0)
    call.status =
        nncuda_fail(NNCUDA_BAD_ARGUMENT, __func__, "y",
                    "y is %p; expected a multiple of %d, since four numbers are stored at once", y, STEM_ALIGN);
  CALL_ARRAY(call, x);
  call_array(&call, "w", w, align);
  CALL_ARRAY(call, bias);
  if (call.status == NNCUDA_OK)
    call_workspace(&call, workspace, workspace_bytes, nncuda_stem_pool2d_workspace(device, dtype, conv, pool));
  s.y = y, s.x = x, s.w = w, s.bias = bias;
  CALL_RUN(
      call,
      {
        stem_place(&s, workspace, device, dtype);
        stem_run(&s, dtype, true);
      },
      {
        stem_place(&s, workspace, device, dtype);
        stem_run(&s, dtype, false);
      });
  return call.status;
}
