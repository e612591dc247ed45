/* cpu_bench_peers.h - what cpu_bench.cu compares with: im2col with OpenBLAS's product, and oneDNN. */
#ifndef PHASE5_PRODUCTION_CPU_BENCH_PEERS_H
#define PHASE5_PRODUCTION_CPU_BENCH_PEERS_H

#include <cblas.h>
#include <dnnl.h>

#include "common/threads.h"
#include "phase5_production/08_engine/cpu_conv2d.h"

/* ------------------------------------------------------------------------------------------------ im2col, OpenBLAS */

/* One image: x (C,H,W) -> matrix (C R S, P Q). */
static inline void bench_im2col(float *matrix, const float *x, Conv2dShape s) {
  const int p_count = conv2d_out_h(s), q_count = conv2d_out_w(s), taps = s.r * s.s;
#pragma omp parallel for
  for (int row = 0; row < s.c * taps; row++) {
    const int c = row / taps, r = row % taps / s.s, tap = row % s.s;
    float *to = matrix + (size_t)row * p_count * q_count;
    for (int p = 0; p < p_count; p++, to += q_count) {
      const int h = p * s.stride_h - s.padding_h + r;
      const float *from = x + ((size_t)c * s.h + h) * s.w;
      for (int q = 0; q < q_count; q++) {
        const int v = q * s.stride_w - s.padding_w + tap;
        to[q] = h >= 0 && h < s.h && v >= 0 && v < s.w ? from[v] : 0;
      }
    }
  }
}

/* y = relu(conv(x) + bias); matrix: of one image. */
static inline void bench_openblas(float *y, const float *x, const float *w, const float *bias, Conv2dShape s,
                                  float *matrix) {
  const int pixels = conv2d_out_h(s) * conv2d_out_w(s), depth = s.c * s.r * s.s;
  for (int n = 0; n < s.n; n++) {
    float *image = y + (size_t)n * s.k * pixels;
    bench_im2col(matrix, x + (size_t)n * s.c * s.h * s.w, s);
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, s.k, pixels, depth, 1, w, depth, matrix, pixels, 0, image,
                pixels);
#pragma omp parallel for
    for (int k = 0; k < s.k; k++)
      for (int i = 0; i < pixels; i++) {
        const float sum = image[(size_t)k * pixels + i] + bias[k];
        image[(size_t)k * pixels + i] = sum < 0 ? 0 : sum;
      }
  }
}

/* ----------------------------------------------------------------------------------------------------------- oneDNN */

#define ONEDNN_CHECK(call)                                                                         \
  do {                                                                                             \
    const dnnl_status_t onednn_status = (call);                                                    \
    if (onednn_status != dnnl_success) die("%s failed: oneDNN's status %d", #call, onednn_status); \
  } while (0)

/* A convolution with bias and ReLU, in the layouts that oneDNN likes best: its arrays stay in them from layer to
 * layer, as ours do, so their conversion is not timed. */
typedef struct OnednnConv {
  dnnl_engine_t engine;
  dnnl_stream_t stream;
  dnnl_primitive_t primitive;
  dnnl_exec_arg_t arg[4]; /* x, weights, bias, y */
  float *data[4];
} OnednnConv;

#if DNNL_VERSION_MAJOR == 2

static inline dnnl_memory_desc_t onednn_any(int rank, const dnnl_dims_t dims, dnnl_format_tag_t tag) {
  dnnl_memory_desc_t desc;
  ONEDNN_CHECK(dnnl_memory_desc_init_by_tag(&desc, rank, dims, dnnl_f32, tag));
  return desc;
}

static inline bool onednn_open(OnednnConv *conv, Conv2dShape s) {
  const dnnl_dims_t x = {s.n, s.c, s.h, s.w}, w = {s.k, s.c, s.r, s.s}, b = {s.k};
  const dnnl_dims_t y = {s.n, s.k, conv2d_out_h(s), conv2d_out_w(s)}, stride = {s.stride_h, s.stride_w};
  const dnnl_dims_t padding = {s.padding_h, s.padding_w};
  const bool few = s.c <= 4; /* pictures come as they are */
  const dnnl_memory_desc_t md[4] = {onednn_any(4, x, few ? dnnl_nchw : dnnl_format_tag_any),
                                    onednn_any(4, w, dnnl_format_tag_any), onednn_any(1, b, dnnl_a),
                                    onednn_any(4, y, dnnl_format_tag_any)};
  static const int index[4] = {DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_BIAS, DNNL_ARG_DST};
  static const dnnl_query_t query[4] = {dnnl_query_src_md, dnnl_query_weights_md, dnnl_query_weights_md,
                                        dnnl_query_dst_md};
  dnnl_convolution_desc_t desc;
  dnnl_primitive_attr_t attr;
  dnnl_post_ops_t relu;
  dnnl_primitive_desc_t chosen;
  ONEDNN_CHECK(dnnl_engine_create(&conv->engine, dnnl_cpu, 0));
  ONEDNN_CHECK(dnnl_stream_create(&conv->stream, conv->engine, dnnl_stream_default_flags));
  ONEDNN_CHECK(dnnl_convolution_forward_desc_init(&desc, dnnl_forward_inference, dnnl_convolution_auto, &md[0], &md[1],
                                                  &md[2], &md[3], stride, padding, padding));
  ONEDNN_CHECK(dnnl_primitive_attr_create(&attr));
  ONEDNN_CHECK(dnnl_post_ops_create(&relu));
  ONEDNN_CHECK(dnnl_post_ops_append_eltwise(relu, 1, dnnl_eltwise_relu, 0, 0));
  ONEDNN_CHECK(dnnl_primitive_attr_set_post_ops(attr, relu));
  ONEDNN_CHECK(dnnl_primitive_desc_create(&chosen, &desc, attr, conv->engine, NULL));
  for (int i = 0; i < 4; i++) {
    const dnnl_memory_desc_t *own = dnnl_primitive_desc_query_md(chosen, query[i], i == 2);
    const size_t bytes = dnnl_memory_desc_get_size(own);
    conv->data[i] = (float *)aligned_alloc(64, (bytes + 63) / 64 * 64);
    for (size_t j = 0; j < bytes / 4; j++) conv->data[i][j] = (float)(j * 2654435761u % 2048) / 1024 - 1;
    conv->arg[i].arg = index[i];
    ONEDNN_CHECK(dnnl_memory_create(&conv->arg[i].memory, own, conv->engine, conv->data[i]));
  }
  ONEDNN_CHECK(dnnl_primitive_create(&conv->primitive, chosen));
  ONEDNN_CHECK(dnnl_primitive_desc_destroy(chosen));
  ONEDNN_CHECK(dnnl_post_ops_destroy(relu));
  ONEDNN_CHECK(dnnl_primitive_attr_destroy(attr));
  return true;
}

static inline void onednn_run(OnednnConv *conv) {
  ONEDNN_CHECK(dnnl_primitive_execute(conv->primitive, conv->stream, 4, conv->arg));
  ONEDNN_CHECK(dnnl_stream_wait(conv->stream));
}

static inline void onednn_close(OnednnConv *conv) {
  for (int i = 0; i < 4; i++) {
    ONEDNN_CHECK(dnnl_memory_destroy(conv->arg[i].memory));
    free(conv->data[i]);
  }
  ONEDNN_CHECK(dnnl_primitive_destroy(conv->primitive));
  ONEDNN_CHECK(dnnl_stream_destroy(conv->stream));
  ONEDNN_CHECK(dnnl_engine_destroy(conv->engine));
}

#else /* version 3 describes operations in another way: without this row there */
static inline bool onednn_open(OnednnConv *, Conv2dShape) { return false; }
static inline void onednn_run(OnednnConv *) {}
static inline void onednn_close(OnednnConv *) {}
#endif

#endif /* PHASE5_PRODUCTION_CPU_BENCH_PEERS_H */
