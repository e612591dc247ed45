/* conv2d_gemm_register.cuh - the implicit matrix product with a patch of 8 x 8 outputs per thread: the third version of
 * the lesson. The reference is conv2d_forward_cpu().
 *
 *   conv2d_forward_gemm_register   packed filters, and a table in place of the divisions (conv2d_gemm.cuh)
 */
#ifndef PHASE3_CNN_CONV2D_GEMM_REGISTER_CUH
#define PHASE3_CNN_CONV2D_GEMM_REGISTER_CUH

#include "phase3_cnn/03_conv2d_implicit_gemm/conv2d_gemm.cuh"
#include "phase3_cnn/03_conv2d_implicit_gemm/conv2d_halo.cuh"

/* 64 filters x 64 pixels by 64 threads. A patch is four pieces of 4 x 4, 32 filters and 32 pixels apart. */
typedef struct Conv2dRegisterTile {
  static const int side = 64, tm = 8, tn = 8, row_step = 32, col_step = 32;
} Conv2dRegisterTile;

/* In each step a thread copies one column of the piece of the columns, 8 floats of one pixel, and two float4 of the
 * filters. Everything about the pixel is computed once per tile; what depends on the row comes from the table. */
static __global__ void __launch_bounds__(64)
    conv2d_gemm_register_kernel(float *y, const float *x, const float *packed, const Conv2dTap *table, Conv2dGemm g,
                                Conv2dEpilogue e) {
  const int side = Conv2dRegisterTile::side;
  __shared__ __align__(16) float filters[CONV2D_STEP][side], columns[CONV2D_STEP][side];
  int tile_rows = (g.filters + side - 1) / side, group = blockIdx.y / tile_rows, t = threadIdx.x;
  int row0 = blockIdx.y % tile_rows * side, col0 = blockIdx.x * side, area = g.p * g.q;
  int n = (col0 + t) / area, p = (col0 + t) % area / g.q, q = (col0 + t) % area % g.q;
  int h0 = n < g.s.n ? p * g.s.stride_h - g.s.padding_h : INT_MIN / 2, v0 = q * g.s.stride_w - g.s.padding_w;
  const float *corner =
      x + ((size_t)n * g.s.c + group * g.channels) * g.s.h * g.s.w + (n < g.s.n ? h0 * g.s.w + v0 : 0);
  int row = t / 8 * 4, col = t % 8 * 4; /* of the first piece of this thread's patch */

  float sum[8][8] = {};
  for (int step = 0; step < g.steps; step++) {
    const float *rows = packed + (size_t)(group * g.steps + step) * CONV2D_STEP * g.filters_padded + row0;
    for (int i = t; i < CONV2D_STEP * side / 4; i += side)
      *(float4 *)&filters[i / (side / 4)][i % (side / 4) * 4] =
          *(const float4 *)&rows[i / (side / 4) * g.filters_padded + i % (side / 4) * 4];
#pragma unroll
    for (int i = 0; i < CONV2D_STEP; i++) {
      Conv2dTap tap = table[step * CONV2D_STEP + i];
      bool inside = (unsigned)(h0 + tap.y) < (unsigned)g.s.h && (unsigned)(v0 + tap.z) < (unsigned)g.s.w;
      columns[i][t] = inside ? corner[tap.x] : 0.0f;
    }
    __syncthreads();
#pragma unroll
    for (int i = 0; i < CONV2D_STEP; i++) {
      float left[8], right[8];
      matmul_fragment<32>(left, &filters[i][row]);
      matmul_fragment<32>(right, &columns[i][col]);
      matmul_outer_product(sum, left, right);
    }
    __syncthreads();
  }
  conv2d_gemm_write<Conv2dRegisterTile>(y, sum, g, e, group, row0 + row, col0 + col);
}

static inline Conv2dGemm conv2d_gemm_by_table(const float *y, Conv2dShape s) {
  Conv2dGemm g = conv2d_gemm(y, s, Conv2dRegisterTile::side);
  g.order = CONV2D_BY_TABLE;
  return g;
}

static inline size_t conv2d_gemm_register_workspace_floats(Conv2dShape s) {
  return conv2d_gemm_packed(conv2d_gemm_by_table(NULL, s), NULL).floats;
}

static inline void conv2d_forward_gemm_register(float *y, const float *x, const float *w, const float *bias,
                                                Conv2dShape s, float *workspace) {
  Conv2dGemm g = conv2d_gemm_by_table(y, s);
  Conv2dPacked packed = conv2d_gemm_packed(g, workspace);
  Conv2dEpilogue e = {bias, -INFINITY};
  const int side = Conv2dRegisterTile::side;
  conv2d_gemm_pack(packed, w, g);
  for (int n = 0; n < s.n; n += g.s.n) {
    g.s.n = s.n - n < conv2d_gemm_images(s) ? s.n - n : conv2d_gemm_images(s);
    dim3 grid((g.s.n * g.p * g.q + side - 1) / side, (g.filters + side - 1) / side * s.groups);
    conv2d_gemm_register_kernel<<<grid, side>>>(y + (size_t)n * s.k * g.p * g.q, x + (size_t)n * s.c * s.h * s.w,
                                                packed.filters, packed.table, g, e);
    CUDA_CHECK_LAUNCH();
  }
}

static const Conv2dMethod conv2d_gemm_register_method = {
    "gemm_register", NULL, conv2d_gemm_register_workspace_floats, conv2d_forward_gemm_register, NULL, NULL};

#endif /* PHASE3_CNN_CONV2D_GEMM_REGISTER_CUH */
