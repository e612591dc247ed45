/* attention_backward.cuh - the gradients of attention (attention.cuh): dq, dk, dv from dout, all (B,H,S,D), float32.
 *
 *     dv(j) = sum over i of p(i,j) dout(i)
 *     dp(i,j) = dout(i) . v(j)
 *     ds(i,j) = p(i,j) (dp(i,j) - delta(i))      delta(i) = sum over j of p(i,j) dp(i,j) = dout(i) . o(i)
 *     dq(i) = scale * sum over j of ds(i,j) k(j)
 *     dk(j) = scale * sum over i of ds(i,j) q(i)
 *
 * ds is the gradient of softmax. It is cheap because delta is a product of two rows of D floats, not of S. p need not
 * have been kept: p(i,j) = exp(score(i,j) - lse(i)), and lse is one number per query.
 *
 *   attention_backward_cpu      the definition, sums in double
 *   attention_backward_naive    p and ds in memory, S S floats each for each head; one thread per element
 *   attention_backward_flash    tiles of p are computed again, used, and discarded. One kernel owns keys and goes
 *                               through the queries, for dk and dv; the other owns queries and goes through the keys,
 *                               for dq. So each sum has one owner: no atomics, and the same bits in every run. The
 *                               price is 7 products of tiles; with atomic additions to dq 5 would be enough
 *
 * Each takes q, k, v and what forward wrote, o and lse. attention_gradients_...() runs a forward, then the backward.
 */
#ifndef PHASE1_BUILDING_BLOCKS_ATTENTION_BACKWARD_CUH
#define PHASE1_BUILDING_BLOCKS_ATTENTION_BACKWARD_CUH

#include "phase1_building_blocks/14_attention/attention_flash.cuh"

/* ---------------------------------------------------------------------------------------------------------------- */
/* CPU reference. T is float, or double for tests of gradients. */

template <typename T>
static inline void attention_backward_cpu(T *dq, T *dk, T *dv, const T *q, const T *k, const T *v, const T *o,
                                          const T *lse, const T *dout, int b, int h, int s, int d, bool causal) {
  size_t n = (size_t)s * d;
  double scale = attention_scale(d);
  double *sum = (double *)xmalloc(3 * n * sizeof *sum); /* of one head: dq, dk, dv */
  for (int head = 0; head < b * h; head++) {
    for (size_t i = 0; i < 3 * n; i++) sum[i] = 0;
    for (int i = 0; i < s; i++) {
      const T *query = q + i * (size_t)d, *gradient = dout + i * (size_t)d, *out = o + i * (size_t)d;
      double delta = 0;
      for (int c = 0; c < d; c++) delta += (double)gradient[c] * out[c];
      for (int j = 0; j < (causal ? i + 1 : s); j++) {
        const T *key = k + j * (size_t)d, *value = v + j * (size_t)d;
        double score = 0, dp = 0;
        for (int c = 0; c < d; c++) {
          score += (double)query[c] * key[c];
          dp += (double)gradient[c] * value[c];
        }
        double p = exp(score * scale - lse[i]), ds = p * (dp - delta);
        for (int c = 0; c < d; c++) {
          sum[i * (size_t)d + c] += scale * ds * key[c];
          sum[n + j * (size_t)d + c] += scale * ds * query[c];
          sum[2 * n + j * (size_t)d + c] += p * gradient[c];
        }
      }
    }
    for (size_t i = 0; i < n; i++) {
      dq[i] = (T)sum[i];
      dk[i] = (T)sum[n + i];
      dv[i] = (T)sum[2 * n + i];
    }
    q += n, k += n, v += n, o += n, dout += n, dq += n, dk += n, dv += n, lse += s;
  }
  free(sum);
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* Naive */

/* delta (B*H*S) = the dot product of each row of dout and o; one warp per row. */
static __global__ void attention_delta_kernel(float *delta, const float *dout, const float *o, int rows, int d) {
  int lane = threadIdx.x % 32, row = (int)(((size_t)blockIdx.x * blockDim.x + threadIdx.x) / 32);
  if (row >= rows) return;
  float sum = 0;
  for (int c = lane; c < d; c += 32) sum += dout[(size_t)row * d + c] * o[(size_t)row * d + c];
  sum = attention_warp_sum(sum);
  if (lane == 0) delta[row] = sum;
}

/* The score of a query and a key, at most the lse of the query, because p = exp(score - lse) is at most 1. Scores of
 * 1e15 are rounded by up to 1e7, and exp(1e7) is infinite. So the product is rounded here as it was in forward, not
 * fused with a subtraction, and a score above lse is replaced by lse. A NaN stays NaN. */
static __device__ __forceinline__ float attention_score(float dot, float scale, float lse) {
  float score = __fmul_rn(scale, dot);
  return score > lse ? lse : score;
}

/* One thread per element of p and of ds, both (B*H,S,S). */
static __global__ void attention_score_gradients_kernel(float *p, float *ds, const float *q, const float *k,
                                                        const float *v, const float *dout, const float *lse,
                                                        const float *delta, int heads, int s, int d, float scale,
                                                        bool causal) {
  size_t at = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
  if (at >= (size_t)heads * s * s) return;
  size_t row = at / s, key = row / s * s + at % s; /* of all heads' rows */
  float weight = 0, gradient = 0;
  if (!causal || key <= row) {
    float dot = 0, dp = 0;
    for (int c = 0; c < d; c++) {
      dot += q[row * d + c] * k[key * d + c];
      dp += dout[row * d + c] * v[key * d + c];
    }
    float score = attention_score(dot, scale, lse[row]);
    // >>> exercise attention_score_gradient: weight = p(row,key), and gradient, that of the score
    // hint: lse[row] is the log of what the exponentials of the row's scores add up to
    // hint: p is exp(score) divided by that sum, so that a row adds up to 1; softmax's gradient subtracts delta from dp
    // hint: weight = expf(score - lse[row]); gradient = weight * (dp - delta[row]);
    weight = expf(score - lse[row]);
    gradient = weight * (dp - delta[row]);
    // <<< exercise
  }
  p[at] = weight;
  ds[at] = gradient;
}

/* One thread per element of dq, dk and dv. */
static __global__ void attention_gradients_kernel(float *dq, float *dk, float *dv, const float *p, const float *ds,
                                                  const float *q, const float *k, const float *dout, int heads, int s,
                                                  int d, float scale) {
  size_t at = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
  if (at >= (size_t)heads * s * d) return;
  size_t row = at / d, head = row / s, col = at % d, first = head * s; /* row `first` is the head's first */
  float sum_q = 0, sum_k = 0, sum_v = 0;
  for (int j = 0; j < s; j++) {
    size_t across = row * s + j, down = (first + j) * s + row % s; /* this row's element j; this column's */
    sum_q += ds[across] * k[(first + j) * d + col];
    sum_k += ds[down] * q[(first + j) * d + col];
    sum_v += p[down] * dout[(first + j) * d + col];
  }
  dq[at] = scale * sum_q;
  dk[at] = scale * sum_k;
  dv[at] = sum_v;
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* Flash. As attention_flash_kernel(), but with 4 rows per thread, because there are more sums to keep in registers. */

enum { ATTENTION_BACKWARD_ROWS = 4 };

template <int D, int WARPS>
struct AttentionBackwardShape {
  static const int threads = 32 * WARPS;
  static const int warp_rows = ATTENTION_BACKWARD_ROWS * AttentionShape<D>::down;
  static const int rows = WARPS * warp_rows;       /* that a block owns */
  static const int keys = AttentionShape<D>::keys; /* of the tiles that it goes through */
  static const int floats = 2 * (rows + keys) * AttentionShape<D>::pitch + rows * AttentionShape<D>::p_pitch;
};

/* Scores become p, and dp becomes ds = p (dp - delta), for rows that are keys and columns that are queries. p holds q
 * . k and ds holds dout . v; lse and delta are those of the head. key, query: of this thread's p[0][0]. */
template <int D, int TM>
static __device__ __forceinline__ void attention_backward_keys_weights(float (&p)[TM][8], float (&ds)[TM][8],
                                                                       const float *lse, const float *delta, int key,
                                                                       int query, int s, float scale,
                                                                       float exponent_scale, bool causal) {
  const int across = AttentionShape<D>::across, down = AttentionShape<D>::down;
#pragma unroll
  for (int j = 0; j < 8; j++) {
    int this_query = query + j * across;
    bool inside = this_query < s;
    float offset = inside ? lse[this_query] * attention_log2_e : 0;
    float mean = inside ? delta[this_query] : 0;
    if (fabsf(offset) > attention_coarse) { /* rare */
      float row_lse = lse[this_query];
#pragma unroll
      for (int i = 0; i < TM; i++) p[i][j] = (attention_score(p[i][j], scale, row_lse) - row_lse) / scale;
      offset = 0;
    }
#pragma unroll
    for (int i = 0; i < TM; i++) {
      bool seen = inside && (!causal || key + i * down <= this_query);
      p[i][j] = seen ? exp2f(fmaf(p[i][j], exponent_scale, -offset)) : 0;
      ds[i][j] = p[i][j] * (ds[i][j] - mean);
    }
  }
}

/* A block owns keys, as rows, and goes through the queries, as columns: all tiles are transposed, compared with
 * forward. dv += p^T dout, dk += ds^T q. */
template <int D, int WARPS, bool ALIGNED>
static __global__ void __launch_bounds__(AttentionBackwardShape<D, WARPS>::threads)
    attention_backward_keys_kernel(float *dk, float *dv, const float *q, const float *k, const float *v,
                                   const float *dout, const float *lse, const float *delta, int s, int d, float scale,
                                   bool causal) {
  typedef AttentionBackwardShape<D, WARPS> Shape;
  const int across = AttentionShape<D>::across, pitch = AttentionShape<D>::pitch;
  const int rows = Shape::rows, queries = Shape::keys, TM = ATTENTION_BACKWARD_ROWS;
  extern __shared__ __align__(16) float attention_backward_tiles[];
  float *k_tile = attention_backward_tiles, *v_tile = k_tile + rows * pitch;
  float *q_tile = v_tile + rows * pitch, *dout_tile = q_tile + queries * pitch, *p_tile = dout_tile + queries * pitch;
  int tiles = (s + rows - 1) / rows, heads = gridDim.x / tiles; /* causal: the first keys have the most queries */
  int head = blockIdx.x % heads, row0 = blockIdx.x / heads * rows;
  size_t first = (size_t)head * s * d;
  int x = threadIdx.x % across, y = threadIdx.x / 32 * Shape::warp_rows + threadIdx.x % 32 / across;
  float *my_p = p_tile + y * AttentionShape<D>::p_pitch;
  float exponent_scale = scale * attention_log2_e;

  float sum_k[TM][D / across] = {}, sum_v[TM][D / across] = {}, factor[TM];
  attention_load_async<Shape::rows, D, Shape::threads, ALIGNED>(k_tile, k + first, row0, s, d);
  attention_load_async<Shape::rows, D, Shape::threads, ALIGNED>(v_tile, v + first, row0, s, d);
  for (int query0 = causal ? row0 / queries * queries : 0; query0 < s; query0 += queries) {
    attention_load_async<Shape::keys, D, Shape::threads, ALIGNED>(q_tile, q + first, query0, s, d);
    attention_load_async<Shape::keys, D, Shape::threads, ALIGNED>(dout_tile, dout + first, query0, s, d);
    __pipeline_wait_prior(0);
    __syncthreads();
    float p[TM][8], ds[TM][8];
    attention_dots<D>(p, k_tile + y * pitch, q_tile + x * pitch);
    attention_dots<D>(ds, v_tile + y * pitch, dout_tile + x * pitch);
    attention_backward_keys_weights<D>(p, ds, lse + (size_t)head * s, delta + (size_t)head * s, row0 + y, query0 + x, s,
                                       scale, exponent_scale, causal);
    attention_put<D>(my_p + x, p);
    __syncwarp();
    attention_add_weighted<D>(sum_v, my_p, dout_tile + 4 * x);
    __syncwarp(); /* ds overwrites p */
    attention_put<D>(my_p + x, ds);
    __syncwarp();
    attention_add_weighted<D>(sum_k, my_p, q_tile + 4 * x);
    __syncthreads(); /* the next tiles overwrite these */
  }
#pragma unroll
  for (int i = 0; i < TM; i++) factor[i] = 1;
  attention_write<D, ALIGNED>(dv + first, sum_v, factor, row0 + y, 4 * x, s, d);
#pragma unroll
  for (int i = 0; i < TM; i++) factor[i] = scale;
  attention_write<D, ALIGNED>(dk + first, sum_k, factor, row0 + y, 4 * x, s, d);
}

/* A block owns queries, as rows, and goes through the keys, as columns: dq += ds k. */
template <int D, int WARPS, bool ALIGNED>
static __global__ void __launch_bounds__(AttentionBackwardShape<D, WARPS>::threads)
    attention_backward_queries_kernel(float *dq, const float *q, const float *k, const float *v, const float *dout,
                                      const float *lse, const float *delta, int s, int d, float scale, bool causal) {
  typedef AttentionBackwardShape<D, WARPS> Shape;
  const int across = AttentionShape<D>::across, down = AttentionShape<D>::down, pitch = AttentionShape<D>::pitch;
  const int rows = Shape::rows, keys = Shape::keys, TM = ATTENTION_BACKWARD_ROWS;
  extern __shared__ __align__(16) float attention_backward_tiles[];
  float *q_tile = attention_backward_tiles, *dout_tile = q_tile + rows * pitch;
  float *k_tile = dout_tile + rows * pitch, *v_tile = k_tile + keys * pitch, *p_tile = v_tile + keys * pitch;
  int head, row0;
  attention_place(rows, s, &head, &row0);
  size_t first = (size_t)head * s * d;
  int x = threadIdx.x % across, y = threadIdx.x / 32 * Shape::warp_rows + threadIdx.x % 32 / across;
  int end = causal ? min(s, row0 + rows) : s;
  float *my_p = p_tile + y * AttentionShape<D>::p_pitch;
  float exponent_scale = scale * attention_log2_e;

  float sum[TM][D / across] = {}, offset[TM], mean[TM], factor[TM];
#pragma unroll
  for (int i = 0; i < TM; i++) {
    int row = row0 + y + i * down;
    offset[i] = row < s ? lse[(size_t)head * s + row] * attention_log2_e : 0;
    mean[i] = row < s ? delta[(size_t)head * s + row] : 0;
    factor[i] = scale;
  }
  attention_load_async<Shape::rows, D, Shape::threads, ALIGNED>(q_tile, q + first, row0, s, d);
  attention_load_async<Shape::rows, D, Shape::threads, ALIGNED>(dout_tile, dout + first, row0, s, d);
  for (int key0 = 0; key0 < end; key0 += keys) {
    attention_load_async<Shape::keys, D, Shape::threads, ALIGNED>(k_tile, k + first, key0, s, d);
    attention_load_async<Shape::keys, D, Shape::threads, ALIGNED>(v_tile, v + first, key0, s, d);
    __pipeline_wait_prior(0);
    __syncthreads();
    float p[TM][8], ds[TM][8];
    attention_dots<D>(p, q_tile + y * pitch, k_tile + x * pitch);
    attention_dots<D>(ds, dout_tile + y * pitch, v_tile + x * pitch);
    /* ds = p (dp - delta), as in attention_backward_keys_weights(), but rows are queries and columns are keys */
#pragma unroll
    for (int i = 0; i < TM; i++) {
      float minus = offset[i];
      if (fabsf(minus) > attention_coarse) { /* rare */
        float row_lse = lse[(size_t)head * s + row0 + y + i * down];
#pragma unroll
        for (int j = 0; j < 8; j++) p[i][j] = (attention_score(p[i][j], scale, row_lse) - row_lse) / scale;
        minus = 0;
      }
#pragma unroll
      for (int j = 0; j < 8; j++) {
        int key = key0 + x + j * across;
        bool seen = key < s && (!causal || key <= row0 + y + i * down);
        float weight = seen ? exp2f(fmaf(p[i][j], exponent_scale, -minus)) : 0;
        ds[i][j] = weight * (ds[i][j] - mean[i]);
      }
    }
    attention_put<D>(my_p + x, ds);
    __syncwarp();
    attention_add_weighted<D>(sum, my_p, k_tile + 4 * x);
    __syncthreads(); /* the next tiles overwrite these */
  }
  attention_write<D, ALIGNED>(dq + first, sum, factor, row0 + y, 4 * x, s, d);
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* Launchers. `room`: GPU memory, attention_backward_..._floats() of it. */

static inline size_t attention_backward_naive_floats(int b, int h, int s) {
  return (size_t)b * h * s * (2 * (size_t)s + 1);
}

static inline void attention_backward_naive(float *dq, float *dk, float *dv, const float *q, const float *k,
                                            const float *v, const float *o, const float *lse, const float *dout, int b,
                                            int h, int s, int d, bool causal, float *room) {
  const int block = 256;
  size_t rows = (size_t)b * h * s;
  float *delta = room, *p = delta + rows, *ds = p + rows * s, scale = (float)attention_scale(d);
  attention_delta_kernel<<<attention_blocks(rows * 32, block), block>>>(delta, dout, o, (int)rows, d);
  CUDA_CHECK_LAUNCH();
  attention_score_gradients_kernel<<<attention_blocks(rows * s, block), block>>>(p, ds, q, k, v, dout, lse, delta,
                                                                                 b * h, s, d, scale, causal);
  CUDA_CHECK_LAUNCH();
  attention_gradients_kernel<<<attention_blocks(rows * d, block), block>>>(dq, dk, dv, p, ds, q, k, dout, b * h, s, d,
                                                                           scale);
  CUDA_CHECK_LAUNCH();
}

static inline size_t attention_backward_flash_floats(int b, int h, int s) { return (size_t)b * h * s; }

template <int D, int WARPS, bool ALIGNED>
static inline void attention_backward_flash_run(float *dq, float *dk, float *dv, const float *q, const float *k,
                                                const float *v, const float *lse, const float *delta, const float *dout,
                                                int b, int h, int s, int d, bool causal) {
  typedef AttentionBackwardShape<D, WARPS> Shape;
  const int shared = Shape::floats * (int)sizeof(float);
  unsigned grid = attention_blocks(s, Shape::rows) * b * h;
  float scale = (float)attention_scale(d);
  shared_limit_ask((const void *)attention_backward_keys_kernel<D, WARPS, ALIGNED>, shared);
  shared_limit_ask((const void *)attention_backward_queries_kernel<D, WARPS, ALIGNED>, shared);
  attention_backward_keys_kernel<D, WARPS, ALIGNED>
      <<<grid, Shape::threads, shared>>>(dk, dv, q, k, v, dout, lse, delta, s, d, scale, causal);
  CUDA_CHECK_LAUNCH();
  attention_backward_queries_kernel<D, WARPS, ALIGNED>
      <<<grid, Shape::threads, shared>>>(dq, q, k, v, dout, lse, delta, s, d, scale, causal);
  CUDA_CHECK_LAUNCH();
}

template <int D, int WARPS>
static inline void attention_backward_flash_launch(float *dq, float *dk, float *dv, const float *q, const float *k,
                                                   const float *v, const float *lse, const float *delta,
                                                   const float *dout, int b, int h, int s, int d, bool causal) {
  if (attention_aligned(q, k, v, dout, d) && attention_aligned(dq, dk, dv, dq, d))
    attention_backward_flash_run<D, WARPS, true>(dq, dk, dv, q, k, v, lse, delta, dout, b, h, s, d, causal);
  else
    attention_backward_flash_run<D, WARPS, false>(dq, dk, dv, q, k, v, lse, delta, dout, b, h, s, d, causal);
}

static inline void attention_backward_flash(float *dq, float *dk, float *dv, const float *q, const float *k,
                                            const float *v, const float *o, const float *lse, const float *dout, int b,
                                            int h, int s, int d, bool causal, float *room) {
  size_t rows = (size_t)b * h * s;
  attention_delta_kernel<<<attention_blocks(rows * 32, 256), 256>>>(room, dout, o, (int)rows, d);
  CUDA_CHECK_LAUNCH();
  if (d <= 32)
    attention_backward_flash_launch<32, 4>(dq, dk, dv, q, k, v, lse, room, dout, b, h, s, d, causal);
  else if (d <= 64)
    attention_backward_flash_launch<64, 4>(dq, dk, dv, q, k, v, lse, room, dout, b, h, s, d, causal);
  else if (d <= 128 && shared_limit() >= 150 << 10)
    attention_backward_flash_launch<128, 4>(dq, dk, dv, q, k, v, lse, room, dout, b, h, s, d, causal);
  else if (d <= 128)
    attention_backward_flash_launch<128, 1>(dq, dk, dv, q, k, v, lse, room, dout, b, h, s, d, causal);
  else
    die("attention: a head of %d columns; at most 128 fit into a thread's registers", d);
}

/* Forward and backward, as training runs them: o and lse stay inside. */
typedef void AttentionGradients(float *dq, float *dk, float *dv, const float *q, const float *k, const float *v,
                                const float *dout, int b, int h, int s, int d, bool causal);

static inline void attention_gradients_cpu(float *dq, float *dk, float *dv, const float *q, const float *k,
                                           const float *v, const float *dout, int b, int h, int s, int d, bool causal) {
  size_t rows = (size_t)b * h * s;
  float *o = (float *)xmalloc(rows * (d + 1) * sizeof *o), *lse = o + rows * d;
  attention_forward_cpu(o, lse, q, k, v, b, h, s, d, causal);
  attention_backward_cpu(dq, dk, dv, q, k, v, o, lse, dout, b, h, s, d, causal);
  free(o);
}

static inline void attention_gradients_naive(float *dq, float *dk, float *dv, const float *q, const float *k,
                                             const float *v, const float *dout, int b, int h, int s, int d,
                                             bool causal) {
  size_t rows = (size_t)b * h * s, room = attention_backward_naive_floats(b, h, s);
  float *o = attention_workspace(rows * (d + 1) + room), *lse = o + rows * d;
  attention_flash_rows(o, lse, q, k, v, b, h, s, d, causal);
  attention_backward_naive(dq, dk, dv, q, k, v, o, lse, dout, b, h, s, d, causal, lse + rows);
  attention_memory = (rows * (d + 1) + room) * sizeof *o;
}

static inline void attention_gradients_flash(float *dq, float *dk, float *dv, const float *q, const float *k,
                                             const float *v, const float *dout, int b, int h, int s, int d,
                                             bool causal) {
  size_t rows = (size_t)b * h * s, room = attention_backward_flash_floats(b, h, s);
  float *o = attention_workspace(rows * (d + 1) + room), *lse = o + rows * d;
  attention_flash(o, lse, q, k, v, b, h, s, d, causal);
  attention_backward_flash(dq, dk, dv, q, k, v, o, lse, dout, b, h, s, d, causal, lse + rows);
  attention_memory = (rows * (d + 1) + room) * sizeof *o;
}

#endif /* PHASE1_BUILDING_BLOCKS_ATTENTION_BACKWARD_CUH */
