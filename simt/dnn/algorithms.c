/* algorithms.c - the algorithms of a convolution: which cuDNN has for a shape, and how large a workspace each needs.
 *
 * All of them are one here (onednn.c). The conditions are those of cuDNN's manual; the sizes are those of what an
 * algorithm of this name keeps: im2col's matrix, the transforms of Fourier or Winograd. A GPU's differ. */
#include "dnn.h"

#include <time.h>

typedef enum Kind { NONE, NO_SPACE, TABLE, MATRIX, PARTIAL_SUMS, FFT, FFT_TILES, WINOGRAD, WINOGRAD_APART } Kind;

/* Of each pass: the kind of each algorithm, in the order of its enumeration. */
static const Kind kinds[3][CUDNN_CONVOLUTION_FWD_ALGO_COUNT] = {
    {NO_SPACE, TABLE, MATRIX, NONE, FFT, FFT_TILES, WINOGRAD, WINOGRAD_APART},
    {NO_SPACE, TABLE, FFT, FFT_TILES, WINOGRAD, WINOGRAD_APART},
    {NO_SPACE, TABLE, FFT, PARTIAL_SUMS, NONE, WINOGRAD_APART, FFT_TILES}};
static const int counts[3] = {CUDNN_CONVOLUTION_FWD_ALGO_COUNT, CUDNN_CONVOLUTION_BWD_DATA_ALGO_COUNT,
                              CUDNN_CONVOLUTION_BWD_FILTER_ALGO_COUNT};
/* What the heuristics propose first: TABLE, then what needs least. */
static const int order[3][CUDNN_CONVOLUTION_FWD_ALGO_COUNT] = {
    {1, 0, 6, 7, 2, 5, 4, 3}, {1, 0, 4, 5, 3, 2}, {1, 0, 3, 5, 6, 2, 4}};

/* Whether an algorithm adds atomically on a GPU: the same numbers give other bits each time. Here none does. */
static int adds_atomically(Pass pass, Kind kind) {
  return pass == FORWARD ? 0 : kind == NO_SPACE || kind == PARTIAL_SUMS; /* ALGO_0, and ALGO_3 of the filter */
}

/* Why this kind cannot, NULL where it can. */
static const char *obstacle(const Convolution *c, Kind kind) {
  const int r = c->w.dim[2], s = c->w.dim[3];
  const int plain = c->c.stride[0] == 1 && c->c.stride[1] == 1 && c->c.dilation[0] == 1 && c->c.dilation[1] == 1;
  if (kind == NONE) return "cuDNN has no implementation of this algorithm";
  if (kind <= TABLE) return NULL;
  if (c->x.stride[1] == 1 && c->x.dim[1] > 1)
    return "this algorithm has no form for NHWC: take IMPLICIT_PRECOMP_GEMM or ALGO_1";
  if (kind == MATRIX || kind == PARTIAL_SUMS)
    return c->c.dilation[0] == 1 && c->c.dilation[1] == 1 ? NULL : "this algorithm cannot dilate the filter";
  if (!plain) return "this algorithm needs a stride and a dilation of 1";
  if (kind == FFT && (c->x.dim[2] + 2 * c->c.padding[0] > 256 || c->x.dim[3] + 2 * c->c.padding[1] > 256))
    return "FFT takes images of at most 256 x 256, with padding: take FFT_TILING";
  if (kind == FFT || kind == FFT_TILES)
    return c->c.padding[0] < r && c->c.padding[1] < s && (kind == FFT || (r <= 32 && s <= 32))
               ? NULL
               : "a Fourier transform needs a padding smaller than the filter and, in tiles, a filter of at most 32 x "
                 "32";
  if (r == 3 && s == 3) return NULL;
  return kind == WINOGRAD_APART && r == 5 && s == 5 ? NULL
                                                    : "Winograd's algorithm takes filters of 3 x 3; apart, also 5 x 5";
}

static size_t power_of_two(size_t n) {
  size_t p = 1;
  while (p < n) p *= 2;
  return p;
}

static size_t ceil_divided(size_t n, size_t by) { return (n + by - 1) / by; }

static size_t bytes_of(const Convolution *c, Kind kind) {
  const size_t n = (size_t)c->x.dim[0], k = (size_t)c->w.dim[0], channels = (size_t)c->w.dim[1];
  const size_t r = (size_t)c->w.dim[2], s = (size_t)c->w.dim[3], p = (size_t)c->y.dim[2], q = (size_t)c->y.dim[3];
  const size_t all_channels = (size_t)c->x.dim[1], transforms = n * all_channels + k * channels + n * k;
  switch (kind) {
    case TABLE: /* where each element of a filter finds its image */
      return (c->pass == BACKWARD_DATA ? k : channels) * r * s * sizeof(int);
    case MATRIX: /* im2col of one image */
      return channels * r * s * p * q * sizeof(float);
    case PARTIAL_SUMS:
      return k * channels * r * s * sizeof(float);
    case FFT: {
      const size_t high = power_of_two((size_t)c->x.dim[2] + r - 1), wide = power_of_two((size_t)c->x.dim[3] + s - 1);
      return transforms * high * (wide / 2 + 1) * 2 * sizeof(float);
    }
    case FFT_TILES: {
      const size_t tiles = ceil_divided(p, 33 - (r < 32 ? r : 32)) * ceil_divided(q, 33 - (s < 32 ? s : 32));
      return (n * all_channels * tiles + k * channels + n * k * tiles) * 32 * 17 * 2 * sizeof(float);
    }
    case WINOGRAD: /* the transformed filters, F(2x2,3x3) */
      return k * channels * 16 * sizeof(float);
    case WINOGRAD_APART: { /* F(4x4): filters, images and sums */
      const size_t tiles = n * ceil_divided(p, 4) * ceil_divided(q, 4), points = (3 + r) * (3 + s);
      return (k * channels + tiles * (all_channels + k)) * points * sizeof(float);
    }
    default:
      return 0;
  }
}

cudnnStatus_t algorithm_bytes(const Convolution *c, int algorithm, size_t *bytes, const char **why) {
  *bytes = 0;
  if (algorithm < 0 || algorithm >= counts[c->pass]) {
    *why = "algo is none of its values";
    return CUDNN_STATUS_BAD_PARAM;
  }
  *why = obstacle(c, kinds[c->pass][algorithm]);
  if (*why) return CUDNN_STATUS_NOT_SUPPORTED;
  *bytes = bytes_of(c, kinds[c->pass][algorithm]);
  return CUDNN_STATUS_SUCCESS;
}

int algorithm_count(Pass pass) { return counts[pass]; }

int proposed_algorithm(Pass pass, int i) { return order[pass][i]; }

int algorithm_notes(Pass pass, int algorithm, cudnnBackendNumericalNote_t note[2]) {
  const Kind kind = kinds[pass][algorithm];
  if (adds_atomically(pass, kind)) {
    note[0] = CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC;
    return 1;
  }
  if (kind == FFT || kind == FFT_TILES) note[0] = CUDNN_NUMERICAL_NOTE_FFT;
  if (kind == WINOGRAD || kind == WINOGRAD_APART) note[0] = CUDNN_NUMERICAL_NOTE_WINOGRAD;
  if (kind == WINOGRAD_APART) note[1] = CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_4x4;
  return kind == WINOGRAD_APART ? 2 : kind >= FFT;
}

/* ---- questions ---- */

/* From descriptors; a question gets no report. */
static cudnnStatus_t describe(const char *function, cudnnHandle_t handle, Pass pass, const cudnnTensorDescriptor_t x,
                              const cudnnFilterDescriptor_t w, const cudnnConvolutionDescriptor_t desc,
                              const cudnnTensorDescriptor_t y, Convolution *c) {
  const Call call = {.name = function};
  if (!handle) return refuse_plainly(CUDNN_STATUS_NOT_INITIALIZED, function, "the handle is NULL");
  if (!x || !w || !y || !desc || !desc->set)
    return refuse_plainly(CUDNN_STATUS_BAD_PARAM, function, "a descriptor is NULL, or convDesc was never set");
  *c = (Convolution){.pass = pass, .x = x->t, .w = w->t, .y = y->t, .c = *desc};
  return check_convolution(&call, c, 1);
}

static cudnnStatus_t size_of(const char *function, const Convolution *c, int algorithm, size_t *bytes) {
  const char *why;
  if (!bytes) return refuse_plainly(CUDNN_STATUS_BAD_PARAM, function, "the place for the size is NULL");
  const cudnnStatus_t status = algorithm_bytes(c, algorithm, bytes, &why);
  return status == CUDNN_STATUS_SUCCESS ? status : refuse_plainly(status, function, "%s", why);
}

/* The three structures are one but for the type of `algo`. */
typedef cudnnConvolutionFwdAlgoPerf_t Perf;

/* Those that can come first. `room`: of a workspace, larger ones fail; time: of all, in ms. */
static cudnnStatus_t list(const char *function, const Convolution *c, int asked, int *returned, Perf *perf, size_t room,
                          float time) {
  int count = 0;
  if (asked < 1 || !returned || !perf)
    return refuse_plainly(CUDNN_STATUS_BAD_PARAM, function, "requestedAlgoCount is %d, or a place for results is NULL",
                          asked);
  for (int can = 1; can >= 0; can--) {
    for (int i = 0; i < counts[c->pass] && count < asked; i++) {
      const char *why;
      const int atomic = adds_atomically(c->pass, kinds[c->pass][order[c->pass][i]]);
      Perf p = {.algo = (cudnnConvolutionFwdAlgo_t)order[c->pass][i], .time = -1};
      p.determinism = atomic ? CUDNN_NON_DETERMINISTIC : CUDNN_DETERMINISTIC;
      p.status = algorithm_bytes(c, (int)p.algo, &p.memory, &why);
      if (p.status == CUDNN_STATUS_SUCCESS && p.memory > room) p.status = CUDNN_STATUS_ALLOC_FAILED;
      if ((p.status == CUDNN_STATUS_SUCCESS) != can) continue;
      p.mathType = c->c.math;
      if (can) p.time = time;
      perf[count++] = p;
    }
  }
  *returned = count;
  return CUDNN_STATUS_SUCCESS;
}

static float milliseconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (float)(now.tv_sec % 100000) * 1e3f + (float)now.tv_nsec * 1e-6f;
}

/* The time of one convolution of zeros; Find without data allocates its own. */
static cudnnStatus_t measure(const char *function, const Convolution *given, float *time) {
  Convolution c = *given;
  Tensor *t[] = {&c.x, &c.w, &c.y};
  float *data[3] = {0};
  const char *why = "no memory";
  int failed = 0;
  for (int i = 0; i < 3; i++) {
    t[i]->type = CUDNN_DATA_FLOAT;
    data[i] = calloc((size_t)span_of(t[i]), sizeof(float));
    failed |= !data[i];
  }
  failed = failed || onednn_convolve(&c, data[0], data[1], data[2], &why) != 0; /* makes it */
  const float before = milliseconds();
  failed = failed || onednn_convolve(&c, data[0], data[1], data[2], &why) != 0;
  *time = milliseconds() - before;
  for (int i = 0; i < 3; i++) free(data[i]);
  return failed ? refuse_plainly(CUDNN_STATUS_INTERNAL_ERROR, function, "%s", why) : CUDNN_STATUS_SUCCESS;
}

/* The functions of a pass. X, W, Y: x, w and y among the three descriptors A, B, C in the order of the API. */
#define QUESTIONS(Name, PASS, Algo, PerfType, TA, TB, TC, A, B, C, X, W, Y, RUN)                                     \
  cudnnStatus_t cudnnGetConvolution##Name##AlgorithmMaxCount(cudnnHandle_t handle, int *count) {                     \
    if (!handle || !count) return bad_here("the handle or the place for the number is NULL");                        \
    *count = counts[PASS];                                                                                           \
    return CUDNN_STATUS_SUCCESS;                                                                                     \
  }                                                                                                                  \
  cudnnStatus_t cudnnGetConvolution##Name##WorkspaceSize(cudnnHandle_t handle, const TA A, const TB B,               \
                                                         const cudnnConvolutionDescriptor_t desc, const TC C,        \
                                                         Algo algorithm, size_t *bytes) {                            \
    Convolution c;                                                                                                   \
    TRY(describe(__func__, handle, PASS, X, W, desc, Y, &c));                                                        \
    return size_of(__func__, &c, (int)algorithm, bytes);                                                             \
  }                                                                                                                  \
  cudnnStatus_t cudnnGetConvolution##Name##Algorithm_v7(cudnnHandle_t handle, const TA A, const TB B,                \
                                                        const cudnnConvolutionDescriptor_t desc, const TC C,         \
                                                        const int asked, int *returned, PerfType *perf) {            \
    Convolution c;                                                                                                   \
    TRY(describe(__func__, handle, PASS, X, W, desc, Y, &c));                                                        \
    return list(__func__, &c, asked, returned, (Perf *)perf, (size_t)-1, -1);                                        \
  }                                                                                                                  \
  cudnnStatus_t cudnnFindConvolution##Name##Algorithm(cudnnHandle_t handle, const TA A, const TB B,                  \
                                                      const cudnnConvolutionDescriptor_t desc, const TC C,           \
                                                      const int asked, int *returned, PerfType *perf) {              \
    Convolution c;                                                                                                   \
    float time;                                                                                                      \
    TRY(describe(__func__, handle, PASS, X, W, desc, Y, &c));                                                        \
    TRY(measure(__func__, &c, &time));                                                                               \
    return list(__func__, &c, asked, returned, (Perf *)perf, (size_t)-1, time);                                      \
  }                                                                                                                  \
  cudnnStatus_t cudnnFindConvolution##Name##AlgorithmEx(cudnnHandle_t handle, const TA A, const void *a, const TB B, \
                                                        const void *b, const cudnnConvolutionDescriptor_t desc,      \
                                                        const TC C, void *result, const int asked, int *returned,    \
                                                        PerfType *perf, void *workspace, size_t room) {              \
    Convolution c;                                                                                                   \
    const float one = 1, zero = 0;                                                                                   \
    TRY(describe(__func__, handle, PASS, X, W, desc, Y, &c));                                                        \
    TRY(RUN(handle, &one, A, a, B, b, desc, (Algo)0, NULL, 0, &zero, C, result));                                    \
    cudaStreamSynchronize(handle->stream);                                                                           \
    const float before = milliseconds();                                                                             \
    TRY(RUN(handle, &one, A, a, B, b, desc, (Algo)0, NULL, 0, &zero, C, result));                                    \
    cudaStreamSynchronize(handle->stream);                                                                           \
    const float time = milliseconds() - before;                                                                      \
    return list(__func__, &c, asked, returned, (Perf *)perf, workspace ? room : 0, time);                            \
  }

QUESTIONS(Forward, FORWARD, cudnnConvolutionFwdAlgo_t, cudnnConvolutionFwdAlgoPerf_t, cudnnTensorDescriptor_t,
          cudnnFilterDescriptor_t, cudnnTensorDescriptor_t, x, w, y, x, w, y, cudnnConvolutionForward)
QUESTIONS(BackwardData, BACKWARD_DATA, cudnnConvolutionBwdDataAlgo_t, cudnnConvolutionBwdDataAlgoPerf_t,
          cudnnFilterDescriptor_t, cudnnTensorDescriptor_t, cudnnTensorDescriptor_t, w, dy, dx, dx, w, dy,
          cudnnConvolutionBackwardData)
QUESTIONS(BackwardFilter, BACKWARD_FILTER, cudnnConvolutionBwdFilterAlgo_t, cudnnConvolutionBwdFilterAlgoPerf_t,
          cudnnTensorDescriptor_t, cudnnTensorDescriptor_t, cudnnFilterDescriptor_t, x, dy, dw, x, dw, dy,
          cudnnConvolutionBackwardFilter)
