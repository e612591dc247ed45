/* conv2d_duel_lesson.cuh - the contest of one layer: arrays, times, and the best of cuDNN.
 *
 *     DuelCase c;
 *     duel_open(&c, shape, CONV2D_FORWARD, workspace);         // DUEL_WORKSPACE bytes
 *     double error, seconds = duel_time_method(&c, &conv2d_im2col_method, 1, &error);    // 1: the best so far
 *     DuelCudnn best = duel_search_cudnn(&c, dnn, handle, 1);  // what the heuristic proposes first, and every engine
 *     duel_close(&c);
 *
 * The seconds are < 0 where the method cannot compute the shape, or needs too much memory.
 *
 * A time is the median of DUEL_ROUNDS runs of a CUDA graph of many launches, in which all of them read and write the
 * same arrays: what fits into the L2 cache is there. All methods may use DUEL_WORKSPACE bytes.
 */
#ifndef PHASE3_CNN_CONV2D_DUEL_LESSON_CUH
#define PHASE3_CNN_CONV2D_DUEL_LESSON_CUH

#include "common/device.h"
#include "common/philox.h"
#include "common/timer.h"
#include "phase3_cnn/08_conv2d_duel/conv2d_cudnn.cuh"
#include "phase3_cnn/08_conv2d_duel/conv2d_duel.cuh"

#define DUEL_WORKSPACE ((size_t)1 << 30)
enum { DUEL_ROUNDS = 7, DUEL_LAUNCHES = 20 };

typedef struct DuelCase {
  Conv2dShape shape;
  Conv2dPass pass;
  float *x, *w, *y;            /* y is dy of the gradients */
  float *workspace, *expected; /* of the output, by conv2d_*_naive() */
  size_t x_count, w_count, y_count;
} DuelCase;

/* Two standard normals for each thread. */
static __global__ void duel_fill_kernel(float *x, size_t n, uint32_t stream) {
  const size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
  float a, b;
  philox_normal(philox4x32(1, stream, i), &a, &b);
  if (2 * i < n) x[2 * i] = a;
  if (2 * i + 1 < n) x[2 * i + 1] = b;
}

static inline float *duel_array(size_t n, uint32_t stream) {
  float *x;
  CUDA_CHECK(cudaMalloc(&x, n * sizeof *x));
  duel_fill_kernel<<<(unsigned)((n + 511) / 512), 256>>>(x, n, stream);
  CUDA_CHECK_LAUNCH();
  return x;
}

/* The array that the pass writes. */
static inline float *duel_output(const DuelCase *c) {
  return c->pass == CONV2D_FORWARD ? c->y : c->pass == CONV2D_BACKWARD_INPUT ? c->x : c->w;
}
static inline size_t duel_output_count(const DuelCase *c) {
  return c->pass == CONV2D_FORWARD ? c->y_count : c->pass == CONV2D_BACKWARD_INPUT ? c->x_count : c->w_count;
}

/* One launch of a method; -1 where it does not have this pass. */
static inline int duel_launch(const DuelCase *c, const Conv2dMethod *m) {
  if (c->pass == CONV2D_FORWARD)
    m->forward(c->y, c->x, c->w, NULL, c->shape, c->workspace); /* a convolution alone, as cuDNN's */
  else if (c->pass == CONV2D_BACKWARD_INPUT && m->backward_input)
    m->backward_input(c->x, c->y, c->w, c->shape, c->workspace);
  else if (c->pass == CONV2D_BACKWARD_WEIGHT && m->backward_weight)
    m->backward_weight(c->w, NULL, c->y, c->x, c->shape, c->workspace);
  else
    return -1;
  return 0;
}

static inline void duel_open(DuelCase *c, Conv2dShape s, Conv2dPass pass, float *workspace) {
  memset(c, 0, sizeof *c);
  c->shape = s;
  c->pass = pass;
  c->workspace = workspace;
  c->x_count = conv2d_x_count(s);
  c->w_count = conv2d_w_count(s);
  c->y_count = conv2d_y_count(s);
  c->x = duel_array(c->x_count, 1);
  c->w = duel_array(c->w_count, 2);
  c->y = duel_array(c->y_count, 3);
  CUDA_CHECK(cudaMalloc(&c->expected, duel_output_count(c) * sizeof(float)));
  duel_launch(c, conv2d_is_dense(s) ? &conv2d_tiled_method : &conv2d_naive_method);
  CUDA_CHECK(
      cudaMemcpyAsync(c->expected, duel_output(c), duel_output_count(c) * sizeof(float), cudaMemcpyDeviceToDevice));
}

static inline void duel_close(DuelCase *c) {
  float *const all[] = {c->x, c->w, c->y, c->expected};
  for (int i = 0; i < 4; i++) CUDA_CHECK(cudaFree(all[i]));
}

/* The larger of two errors; NaN is larger than all others. */
static __host__ __device__ inline float duel_worse(float a, float b) { return a != a || a > b ? a : b; }

/* The largest difference to what was expected, and the largest value, each for a block. */
static __global__ void duel_error_kernel(float *most, const float *actual, const float *expected, size_t n) {
  __shared__ float error[256], value[256];
  float e = 0, v = 0;
  for (size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += (size_t)gridDim.x * blockDim.x) {
    e = duel_worse(e, fabsf(actual[i] - expected[i]));
    v = fmaxf(v, fabsf(expected[i]));
  }
  error[threadIdx.x] = e;
  value[threadIdx.x] = v;
  for (int half = 128; half > 0; half /= 2) {
    __syncthreads();
    if ((int)threadIdx.x >= half) continue;
    error[threadIdx.x] = duel_worse(error[threadIdx.x], error[threadIdx.x + half]);
    value[threadIdx.x] = fmaxf(value[threadIdx.x], value[threadIdx.x + half]);
  }
  if (threadIdx.x > 0) return;
  most[2 * blockIdx.x] = error[0];
  most[2 * blockIdx.x + 1] = value[0];
}

/* The largest error, as a share of the largest value. */
static inline double duel_error(const DuelCase *c) {
  enum { BLOCKS = 64 };
  float host[2 * BLOCKS], *most, error = 0, value = 0;
  CUDA_CHECK(cudaMalloc(&most, sizeof host));
  duel_error_kernel<<<BLOCKS, 256>>>(most, duel_output(c), c->expected, duel_output_count(c));
  CUDA_CHECK_LAUNCH();
  CUDA_CHECK(cudaMemcpy(host, most, sizeof host, cudaMemcpyDeviceToHost));
  CUDA_CHECK(cudaFree(most));
  for (int i = 0; i < BLOCKS; i++) {
    error = duel_worse(error, host[2 * i]);
    if (host[2 * i + 1] > value) value = host[2 * i + 1];
  }
  return value > 0 ? error / value : error;
}

/* Fills the output with NaN, so that what is not written is found. */
static inline void duel_poison(const DuelCase *c) {
  CUDA_CHECK(cudaMemsetAsync(duel_output(c), 0xff, duel_output_count(c) * sizeof(float)));
}

/* Whether the method can compute the layer, with the memory that all of them have. A large layer takes the naive
 * kernels a second. */
static inline int duel_takes(const DuelCase *c, const Conv2dMethod *m) {
  Error err;
  if (m == &conv2d_naive_method && conv2d_flops(c->shape) > 2e10) return 0;
  if (m->fits && m->fits(c->shape, &err) != 0) return 0;
  if (m->workspace_floats && m->workspace_floats(c->shape) * sizeof(float) > DUEL_WORKSPACE) return 0;
  return c->pass == CONV2D_FORWARD ||
         (c->pass == CONV2D_BACKWARD_INPUT ? m->backward_input != NULL : m->backward_weight != NULL);
}

/* ------------------------------------------------------------------------------------------------------------ times */

/* What is timed: launch() starts it once, and returns -1 where it cannot. */
typedef struct DuelRun {
  int (*launch)(const DuelCase *c, const void *what);
  const DuelCase *c;
  const void *what;
} DuelRun;

static inline int duel_launch_method(const DuelCase *c, const void *what) {
  return duel_launch(c, (const Conv2dMethod *)what);
}

/* Seconds of `launches`, by events. */
static inline double duel_events(const DuelRun *run, int launches) {
  cudaEvent_t start, stop;
  float ms = 0;
  int status = 0;
  CUDA_CHECK(cudaEventCreate(&start));
  CUDA_CHECK(cudaEventCreate(&stop));
  CUDA_CHECK(cudaEventRecord(start, cudaStreamPerThread));
  for (int i = 0; i < launches && status == 0; i++) status = run->launch(run->c, run->what);
  CUDA_CHECK(cudaEventRecord(stop, cudaStreamPerThread));
  CUDA_CHECK(cudaEventSynchronize(stop));
  CUDA_CHECK(cudaEventElapsedTime(&ms, start, stop));
  CUDA_CHECK(cudaEventDestroy(start));
  CUDA_CHECK(cudaEventDestroy(stop));
  return status == 0 ? ms * 1e-3 / launches : -1;
}

/* The same of a graph of the launches; -1 where they cannot be captured. */
static inline double duel_graph(const DuelRun *run, int launches) {
  cudaGraph_t graph = NULL;
  cudaGraphExec_t exec;
  cudaEvent_t start, stop;
  double samples[DUEL_ROUNDS];
  int status = 0;
  CUDA_CHECK(cudaStreamBeginCapture(cudaStreamPerThread, cudaStreamCaptureModeThreadLocal));
  for (int i = 0; i < launches && status == 0; i++) status = run->launch(run->c, run->what);
  if (cudaStreamEndCapture(cudaStreamPerThread, &graph) != cudaSuccess || graph == NULL || status != 0 ||
      cudaGraphInstantiate(&exec, graph, 0) != cudaSuccess) {
    (void)cudaGetLastError(); /* timed launch by launch instead */
    if (graph) CUDA_CHECK(cudaGraphDestroy(graph));
    return -1;
  }
  CUDA_CHECK(cudaEventCreate(&start));
  CUDA_CHECK(cudaEventCreate(&stop));
  for (int round = -1; round < DUEL_ROUNDS; round++) {
    float ms;
    CUDA_CHECK(cudaEventRecord(start, cudaStreamPerThread));
    CUDA_CHECK(cudaGraphLaunch(exec, cudaStreamPerThread));
    CUDA_CHECK(cudaEventRecord(stop, cudaStreamPerThread));
    CUDA_CHECK(cudaEventSynchronize(stop));
    CUDA_CHECK(cudaEventElapsedTime(&ms, start, stop));
    if (round >= 0) samples[round] = ms * 1e-3 / launches;
  }
  CUDA_CHECK(cudaEventDestroy(start));
  CUDA_CHECK(cudaEventDestroy(stop));
  CUDA_CHECK(cudaGraphExecDestroy(exec));
  CUDA_CHECK(cudaGraphDestroy(graph));
  return timer_stats(samples, DUEL_ROUNDS).median;
}

/* Seconds of one launch; what is much slower than `best` is timed only roughly. */
static inline double duel_time(const DuelRun *run, double best) {
  const double first = duel_events(run, 1); /* also loads the kernels */
  if (first < 0 || first > 10 * best + 1e-3) return first;
  const double once = duel_events(run, 2);
  if (once < 0 || once > 2 * best + 20e-6) return once;
  int launches = (int)(4e-3 / once) + 1;
  if (launches > DUEL_LAUNCHES) launches = DUEL_LAUNCHES;
  const double seconds = duel_graph(run, launches);
  return seconds > 0 ? seconds : duel_events(run, launches);
}

/* -1: it cannot. `error`: of its output. */
static inline double duel_time_method(const DuelCase *c, const Conv2dMethod *m, double best, double *error) {
  const DuelRun run = {duel_launch_method, c, m};
  if (!duel_takes(c, m)) return -1;
  duel_poison(c);
  if (duel_launch(c, m) != 0) return -1;
  *error = duel_error(c);
  return duel_time(&run, best);
}

/* ------------------------------------------------------------------------------------------------------------ cuDNN */

typedef struct DuelCudnn {
  double heuristic, best, error; /* seconds: what heuristic A proposes; the best of all. < 0: none */
  char heuristic_name[160], best_name[160];
  int engines; /* that can compute the layer */
} DuelCudnn;

#if CUDNN_COMPILED

static inline int duel_launch_cudnn(const DuelCase *c, const void *what) {
  const CudnnConv2dArrays arrays = {c->x, c->w, c->y, c->workspace, NULL};
  return cudnn_conv2d_run((const CudnnConv2dPlan *)what, &arrays);
}

/* Times a plan and keeps it in `best` where it is the fastest so far. Its seconds; -1: it cannot. */
static inline double duel_try_cudnn(const DuelCase *c, const CudnnConv2dPlan *plan, DuelCudnn *best) {
  const DuelRun run = {duel_launch_cudnn, c, plan};
  if (plan->workspace > DUEL_WORKSPACE) return -1;
  duel_poison(c);
  if (duel_launch_cudnn(c, plan) != 0) return -1;
  const double error = duel_error(c), seconds = duel_time(&run, best->best > 0 ? best->best : 1e9);
  if (seconds < 0 || !(error < 1e-2)) return -1; /* an engine with wrong results does not count */
  if (best->best > 0 && seconds >= best->best) return seconds;
  best->best = seconds;
  best->error = error;
  snprintf(best->best_name, sizeof best->best_name, "%s", plan->name);
  return seconds;
}

/* The first of four proposals of heuristic A that runs with DUEL_WORKSPACE and, with `exhaustive`, every engine with
 * its usual settings. */
static inline DuelCudnn duel_search_cudnn(const DuelCase *c, const Cudnn *dnn, cudnnHandle_t handle, int exhaustive) {
  DuelCudnn found;
  CudnnConv2d conv;
  CudnnConv2dPlan plan, proposed[4];
  memset(&found, 0, sizeof found);
  found.heuristic = found.best = -1;
  cudnn_conv2d_open(&conv, dnn, handle, c->shape, c->pass, CUDNN_CONV2D_FLOAT32);
  const int proposals = cudnn_conv2d_heuristic(&conv, CUDNN_HEUR_MODE_A, proposed, 4);
  for (int i = 0; i < proposals; i++) {
    const double seconds = found.heuristic < 0 ? duel_try_cudnn(c, &proposed[i], &found) : -1;
    if (seconds > 0) {
      found.heuristic = seconds;
      snprintf(found.heuristic_name, sizeof found.heuristic_name, "%s", proposed[i].name);
    }
    cudnn_conv2d_plan_close(&proposed[i]);
  }
  for (int i = 0; i < conv.engines && exhaustive; i++) {
    if (cudnn_conv2d_engine(&conv, i, &plan) != 0) continue;
    found.engines += duel_try_cudnn(c, &plan, &found) > 0;
    cudnn_conv2d_plan_close(&plan);
  }
  cudnn_conv2d_close(&conv);
  return found;
}

#endif /* CUDNN_COMPILED */

#endif /* PHASE3_CNN_CONV2D_DUEL_LESSON_CUH */
