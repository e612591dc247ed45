/* conv2d_backward_input_gemm.cuh - the gradient of convolution with respect to its input as an implicit GEMM. */
#ifndef PHASE3_CNN_CONV2D_BACKWARD_INPUT_GEMM_CUH
#define PHASE3_CNN_CONV2D_BACKWARD_INPUT_GEMM_CUH

#include "phase3_cnn/06_conv2d_backward/conv2d_gradient_gemm.cuh"

/* Along one axis: the inputs first, first + stride, ... and the taps that reach them, tap0, tap0 + tap_step, ... Tap
 * number i reads output at - i * at_step for input number 0, and one further for each next input. */
typedef struct Conv2dPhase {
  int first, count;         /* inputs */
  int tap0, tap_step, taps; /* of the filter */
  int at, at_step;          /* outputs */
} Conv2dPhase;

/* M = channels of a group, N = inputs of the phase, of all images, K = taps, filters of a group of each. */
typedef struct Conv2dInputGemm {
  Conv2dProduct product;
  Conv2dShape shape;
  float *dx;
  const float *dy, *turned; /* (groups, R, S, depth, pitch): the filters, conv2d_turn_filters_kernel */
  Conv2dPhase h, v;
  int p_count, q_count, channels, filters; /* of a group */
  bool aligned;     /* four inputs from a multiple of 4 on are 16 bytes side by side, at a multiple of 16 */
  int depth, pitch; /* filters and channels, rounded up to multiples of 8 and of 4 */
} Conv2dInputGemm;

/* turned (groups, R, S, depth, pitch) = w (K, C / groups, R, S), and 0 beyond the filters and the channels. One thread
 * per filter and channel: it reads its taps, which are neighbours, and a warp writes neighbouring channels. */
static __global__ void conv2d_turn_filters_kernel(float *turned, const float *w, int groups, int filters, int channels,
                                                  int area, int depth, int pitch) {
  long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= (long long)groups * depth * pitch) return;
  int c = (int)(i % pitch), k = (int)(i / pitch % depth), group = (int)(i / pitch / depth);
  bool inside = c < channels && k < filters;
  const float *from = inside ? w + ((size_t)(group * filters + k) * channels + c) * area : w;
  float *to = turned + ((size_t)group * area * depth + k) * pitch + c;
  for (int t = 0; t < area; t++) to[(size_t)t * depth * pitch] = inside ? from[t] : 0.0f;
}

static __device__ __forceinline__ float *conv2d_gradient_place(const Conv2dInputGemm &problem, int group, int col) {
  if (col >= problem.product.cols) return NULL;
  const Conv2dShape &s = problem.shape;
  int row = col / problem.v.count, n = row / problem.h.count;
  int h = problem.h.first + row % problem.h.count * s.stride_h;
  int v = problem.v.first + col % problem.v.count * s.stride_w;
  return problem.dx + (((size_t)n * s.c + group * problem.channels) * s.h + h) * s.w + v;
}

static __device__ __forceinline__ bool conv2d_gradient_aligned(const Conv2dInputGemm &problem) {
  return problem.aligned;
}

/* A thread copies a_quads float4 of the filters, and eight rows of b_pixels columns. */
template <int PIXELS>
struct Conv2dInputLoads {
  const Conv2dInputGemm *problem;
  const float *a, *dy[PIXELS], *from[PIXELS]; /* the output that pixel reads at tap (0, 0), and now */
  int p[PIXELS], q[PIXELS];                   /* of it */
  int k, tap_h, tap_v, group, a_col;
  bool inside[PIXELS];
};

/* To filter l.k of tap (l.tap_h, l.tap_v). */
template <int PIXELS>
static __device__ __forceinline__ void conv2d_gradient_seek(Conv2dInputLoads<PIXELS> &l) {
  const Conv2dInputGemm &g = *l.problem;
  int r = g.h.tap0 + l.tap_h * g.h.tap_step, s = g.v.tap0 + l.tap_v * g.v.tap_step;
  int tap = (l.group * g.shape.r + r) * g.shape.s + s, p = l.tap_h * g.h.at_step, q = l.tap_v * g.v.at_step;
  l.a = g.turned + ((size_t)tap * g.depth + l.k) * g.pitch + l.a_col;
#pragma unroll
  for (int i = 0; i < PIXELS; i++) {
    l.inside[i] = (unsigned)(l.p[i] - p) < (unsigned)g.p_count && (unsigned)(l.q[i] - q) < (unsigned)g.q_count;
    l.from[i] = l.dy[i] + ((long long)l.k * g.p_count * g.q_count - (p * g.q_count + q));
  }
}

template <typename Tile, int PIXELS>
static __device__ __forceinline__ void conv2d_gradient_advance(Tile, Conv2dInputLoads<PIXELS> &l) {
  const Conv2dInputGemm &g = *l.problem;
  l.k += Tile::bk;
  if (l.k < g.filters) {
    l.a += Tile::bk * g.pitch;
#pragma unroll
    for (int i = 0; i < PIXELS; i++) l.from[i] += Tile::bk * g.p_count * g.q_count;
    return;
  }
  l.k = 0;
  if (++l.tap_v == g.v.taps) {
    l.tap_v = 0;
    l.tap_h++;
    if (l.tap_h == g.h.taps) return; /* that was the last step */
  }
  conv2d_gradient_seek(l);
}

template <typename Tile, int PIXELS>
static __device__ __forceinline__ void conv2d_gradient_copy(Tile, Conv2dInputLoads<PIXELS> &l, float *pair, int part) {
  const int quads = Tile::bm * Tile::bk / 4, a_count = (quads + Tile::threads - 1) / Tile::threads;
  const Conv2dInputGemm &g = *l.problem;
#pragma unroll
  for (int j = part * a_count / 8; j < (part + 1) * a_count / 8; j++) {
    int quad = threadIdx.x + j * Tile::threads, row = quad / (Tile::bm / 4), col = quad % (Tile::bm / 4) * 4;
    if (quads % Tile::threads != 0 && quad >= quads) break;
    __pipeline_memcpy_async(pair + row * Tile::a_pitch + col, l.a + (row - threadIdx.x / (Tile::bm / 4)) * g.pitch, 16);
  }
  float *b_tile = pair + Tile::bk * Tile::a_pitch + part * Tile::b_pitch;
#pragma unroll
  for (int i = 0; i < PIXELS; i++) {
    bool inside = l.inside[i] && part < g.filters - l.k;
    conv2d_copy_one(b_tile + ((threadIdx.x + i * Tile::threads) ^ 1), l.from[i] + part * (g.p_count * g.q_count),
                    inside);
  }
}

template <typename Tile, int PIXELS>
static __device__ __forceinline__ void conv2d_gradient_begin(Tile, Conv2dInputLoads<PIXELS> &l,
                                                             const Conv2dInputGemm &g, Conv2dProductPlace place,
                                                             int step) {
  static_assert(Tile::threads % (Tile::bm / 4) == 0, "a thread's float4 of the filters are below each other");
  int steps_per_tap = (g.filters + Tile::bk - 1) / Tile::bk, tap = step / steps_per_tap;
  l.problem = &g;
  l.group = place.group;
  l.k = step % steps_per_tap * Tile::bk;
  l.tap_h = tap / g.v.taps;
  l.tap_v = tap % g.v.taps;
  /* columns beyond the last channel contribute only to sums that are not written */
  l.a_col = min(place.row0 + (int)threadIdx.x % (Tile::bm / 4) * 4, g.pitch - 4) +
            (int)threadIdx.x / (Tile::bm / 4) * g.pitch;
#pragma unroll
  for (int i = 0; i < PIXELS; i++) {
    int pixel = place.col0 + threadIdx.x + i * Tile::threads, row = pixel / g.v.count, n = row / g.h.count;
    bool inside = pixel < g.product.cols;
    l.p[i] = inside ? g.h.at + row % g.h.count : INT_MIN / 2;
    l.q[i] = g.v.at + pixel % g.v.count;
    l.dy[i] = inside ? g.dy + ((long long)n * g.shape.k + place.group * g.filters) * (g.p_count * g.q_count) +
                           l.p[i] * g.q_count + l.q[i]
                     : g.dy;
  }
  conv2d_gradient_seek(l);
}

template <typename Tile>
static __global__ void __launch_bounds__(Tile::threads, Tile::resident)
    conv2d_backward_input_gemm_kernel(Conv2dInputGemm problem, float *parts, int whole) {
  static_assert(Tile::bn % Tile::threads == 0, "each thread copies the same number of pixels");
  __shared__ __align__(16) float tiles[Tile::stages * Tile::stage];
  conv2d_gradient_run<Tile, Conv2dInputLoads<Tile::bn / Tile::threads>>(problem, tiles, parts, whole);
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* Launchers */

/* Phase `phase` of `stride` along an axis: input i * stride + phase. */
static inline Conv2dPhase conv2d_phase(int phase, int inputs, int taps, int stride, int padding, int dilation) {
  Conv2dPhase p = {phase, inputs > phase ? (inputs - phase + stride - 1) / stride : 0, 0, stride, 0, 0, 0};
  int divisor = stride; /* at the end the greatest common one of stride and dilation: Euclid's algorithm */
  for (int rest = dilation % stride; rest > 0;) {
    int next = divisor % rest;
    divisor = rest;
    rest = next;
  }
  p.tap_step = stride / divisor; /* the least r so that taps r apart meet the same inputs: stride divides r dilation */
  int tap = 0;
  while (tap < taps && tap < stride && (phase + padding - (long long)tap * dilation) % stride != 0) tap++;
  if (tap >= taps || tap >= stride) return p; /* none */
  p.tap0 = tap;
  p.taps = (taps - tap + p.tap_step - 1) / p.tap_step;
  p.at = (phase + padding - tap * dilation) / stride;
  p.at_step = dilation / divisor;
  return p;
}

static inline Conv2dPhase conv2d_phase_h(Conv2dShape s, int phase) {
  return conv2d_phase(phase, s.h, s.r, s.stride_h, s.padding_h, s.dilation_h);
}
static inline Conv2dPhase conv2d_phase_v(Conv2dShape s, int phase) {
  return conv2d_phase(phase, s.w, s.s, s.stride_w, s.padding_w, s.dilation_w);
}

/* Are there inputs that no tap reaches? Their gradient is 0. */
static inline bool conv2d_some_phase_is_empty(Conv2dShape s) {
  for (int i = 0; i < s.stride_h; i++)
    if (conv2d_phase_h(s, i).taps == 0) return true;
  for (int i = 0; i < s.stride_w; i++)
    if (conv2d_phase_v(s, i).taps == 0) return true;
  return false;
}

static inline int conv2d_gradient_round_up(int x, int multiple) { return (x + multiple - 1) / multiple * multiple; }

/* (groups, R, S, depth, pitch) */
static inline size_t conv2d_turned_floats(Conv2dShape s) {
  return (size_t)s.groups * s.r * s.s * conv2d_gradient_round_up(s.k / s.groups, 8) *
         conv2d_gradient_round_up(s.c / s.groups, 4);
}

/* Images of a product: its columns are counted in int. */
static inline int conv2d_input_images(Conv2dShape s) {
  const long long images = (1LL << 30) / ((long long)s.h * s.w);
  return images < 1 ? 1 : images < s.n ? (int)images : s.n;
}

/* `images` at a time; all phases of some images use the same workspace, one after the other. */
template <typename Tile>
static inline void conv2d_backward_input_gemm_run(float *dx, const float *dy, const float *w, Conv2dShape s, int images,
                                                  float *workspace) {
  s = conv2d_bounded_stride(s); /* a launch for each phase */
  Conv2dInputGemm g;
  g.turned = workspace;
  g.p_count = conv2d_out_h(s);
  g.q_count = conv2d_out_w(s);
  g.channels = s.c / s.groups;
  g.filters = s.k / s.groups;
  g.depth = conv2d_gradient_round_up(g.filters, 8);
  g.pitch = conv2d_gradient_round_up(g.channels, 4);
  long long pairs = (long long)s.groups * g.depth * g.pitch;
  conv2d_turn_filters_kernel<<<(unsigned)((pairs + 127) / 128), 128>>>(workspace, w, s.groups, g.filters, g.channels,
                                                                       s.r * s.s, g.depth, g.pitch);
  CUDA_CHECK_LAUNCH();
  if (conv2d_some_phase_is_empty(s)) CUDA_CHECK(cudaMemsetAsync(dx, 0, conv2d_x_count(s) * sizeof *dx));
  float *parts = workspace + conv2d_turned_floats(s);
  const int phases = s.stride_h * s.stride_w, products = (s.n + images - 1) / images * phases;
  for (int i = 0; i < products; i++) {
    int first = i / phases * images, phase = i % phases;
    g.dx = dx + (size_t)first * s.c * s.h * s.w;
    g.dy = dy + (size_t)first * s.k * g.p_count * g.q_count;
    g.shape = s;
    g.shape.n = s.n - first < images ? s.n - first : images;
    g.h = conv2d_phase_h(s, phase / s.stride_w);
    g.v = conv2d_phase_v(s, phase % s.stride_w);
    int pixels = g.shape.n * g.h.count * g.v.count, taps = g.h.taps * g.v.taps;
    if (pixels == 0 || taps == 0) continue;
    g.aligned = phases == 1 && s.h * s.w % 4 == 0 && (uintptr_t)dx % 16 == 0;
    g.product = conv2d_product<Tile>(s.groups, g.channels, pixels, taps * (g.depth / 8), (size_t)s.h * s.w);
    const MatmulPlan plan = conv2d_gradient_plan<Tile>(g.product);
    conv2d_backward_input_gemm_kernel<Tile><<<plan.blocks, Tile::threads>>>(g, parts, plan.whole);
    CUDA_CHECK_LAUNCH();
    conv2d_gradient_join<Tile>(g, parts, plan);
  }
}

/* The tiles that there are: for many channels, for few, and for problems of which large tiles would make few pieces. */
typedef Conv2dProductTile<128, 128, 64, 64, 16, 8, 3, 2> Conv2dInputLarge;
typedef Conv2dProductTile<64, 256, 64, 64, 16, 8, 3, 2> Conv2dInputWide;
typedef Conv2dProductTile<64, 64, 32, 64, 8, 8, 3, 4> Conv2dInputSmall;
typedef Conv2dProductTile<32, 32, 32, 32, 8, 4, 3, 16> Conv2dInputTiny;

enum Conv2dInputChoice { CONV2D_INPUT_LARGE, CONV2D_INPUT_WIDE, CONV2D_INPUT_SMALL, CONV2D_INPUT_TINY };

/* All phases have the same tiles, those that suit an average one. */
static inline int conv2d_input_choice(Conv2dShape s) {
  s = conv2d_bounded_stride(s);
  const int rows = s.c / s.groups, phases = s.stride_h * s.stride_w,
            depth = conv2d_gradient_round_up(s.k / s.groups, 8) / 8;
  const int cols = (int)(((long long)conv2d_input_images(s) * s.h * s.w + phases - 1) / phases);
  const int steps = (s.r * s.s + phases - 1) / phases * depth;
  const double time[] = {conv2d_gradient_time<Conv2dInputLarge>(s.groups, rows, cols, steps, 43),
                         conv2d_gradient_time<Conv2dInputWide>(s.groups, rows, cols, steps, 42.5),
                         conv2d_gradient_time<Conv2dInputSmall>(s.groups, rows, cols, steps, 39),
                         conv2d_gradient_time<Conv2dInputTiny>(s.groups, rows, cols, steps, 28)};
  int best = CONV2D_INPUT_LARGE;
  for (int i = CONV2D_INPUT_WIDE; i <= CONV2D_INPUT_TINY; i++)
    if (time[i] < time[best]) best = i;
  return best;
}

static inline void conv2d_backward_input_gemm(float *dx, const float *dy, const float *w, Conv2dShape s,
                                              float *workspace) {
  int choice = conv2d_input_choice(s), images = conv2d_input_images(s);
  if (choice == CONV2D_INPUT_LARGE)
    conv2d_backward_input_gemm_run<Conv2dInputLarge>(dx, dy, w, s, images, workspace);
  else if (choice == CONV2D_INPUT_WIDE)
    conv2d_backward_input_gemm_run<Conv2dInputWide>(dx, dy, w, s, images, workspace);
  else if (choice == CONV2D_INPUT_SMALL)
    conv2d_backward_input_gemm_run<Conv2dInputSmall>(dx, dy, w, s, images, workspace);
  else
    conv2d_backward_input_gemm_run<Conv2dInputTiny>(dx, dy, w, s, images, workspace);
}

/* For a phase of as many inputs and taps as one can have. */
template <typename Tile>
static inline size_t conv2d_input_parts(Conv2dShape s) {
  long long pixels =
      (long long)conv2d_input_images(s) * ((s.h + s.stride_h - 1) / s.stride_h) * ((s.w + s.stride_w - 1) / s.stride_w);
  int steps = s.r * s.s * conv2d_gradient_round_up(s.k / s.groups, 8) / 8;
  return conv2d_gradient_parts<Tile>(conv2d_product<Tile>(s.groups, s.c / s.groups, (int)pixels, steps, 0));
}

/* Of its workspace: the filters, and then the parts of this batch or a smaller one, which may have other tiles. */
static inline size_t conv2d_input_gemm_floats(Conv2dShape s) {
  s = conv2d_bounded_stride(s);
  const size_t floats[] = {conv2d_input_parts<Conv2dInputLarge>(s), conv2d_input_parts<Conv2dInputWide>(s),
                           conv2d_input_parts<Conv2dInputSmall>(s), conv2d_input_parts<Conv2dInputTiny>(s)};
  size_t most = 0;
  for (int i = 0; i < 4; i++)
    if (floats[i] > most) most = floats[i];
  return conv2d_turned_floats(s) + most;
}

#endif /* PHASE3_CNN_CONV2D_BACKWARD_INPUT_GEMM_CUH */
