/* time.h - how fast the versions of a lesson are, and how fast they could be.
 *
 * A kernel's time means something beside that of others in the same minute: the GPU's clock follows its temperature
 * and its power. So all versions, the vendor's among them, take turns, block after block, and each gets the median of
 * its blocks. The two roofs take their turns as well: how fast this GPU copies, and how fast it multiplies and adds.
 *
 * A block is as many launches as fill a millisecond, timed by two events, so that their own time does not count. But a
 * kernel of a few microseconds is over before the next launch has come, and would be timed with the gap: one below 20
 * us is captured, launch after launch, in a CUDA graph, which the GPU runs through without the host. What can be
 * captured is a stream, but not the one that launches go to when none is named (the legacy default stream); so lessons
 * are compiled with the per-thread default stream instead (CUDA_API_PER_THREAD_DEFAULT_STREAM, defined by
 * //common/lesson:main; with nvcc alone, --default-stream per-thread). Without it the gaps are in the times, and the
 * table says so. A launcher must not wait for the GPU then, and a library's handle is to be given cudaStreamPerThread
 * (cublas_handle() of check_cublas.h).
 *
 * Each launch gets other arrays, 256 MiB and four times the L2 cache in all: what it finds in the cache is not what the
 * last launch left. The inputs are normally distributed, because multiplying simple numbers draws less power.
 */
#ifndef COMMON_LESSON_TIME_H
#define COMMON_LESSON_TIME_H

#include "common/lesson/arrays.h"
#include "common/roof.h"
#include "common/timer.h"

#include <cuda_bf16.h>
#include <nvtx3/nvToolsExt.h>

enum {
  LESSON_ROUNDS = 21,
  LESSON_SETS = 4096,              /* of arrays, at most */
  LESSON_ROOF_ELEMENTS = 64 << 20, /* floats of the array that is copied: 256 MiB */
};

#ifdef CUDA_API_PER_THREAD_DEFAULT_STREAM
enum { LESSON_GRAPHS = 1 };
#else
enum { LESSON_GRAPHS = 0 };
#endif
#define LESSON_SHORT 20e-6 /* seconds of a launch that is timed in a graph */

typedef struct LessonTimes {
  double seconds[LESSON_VERSIONS];     /* one launch */
  int short_launches;                  /* of so many versions, one was below LESSON_SHORT */
  double copy_bytes_per_second;        /* read and written */
  double flops_per_second;             /* fused multiply-adds count two */
  double slowest_clock, fastest_clock; /* of a multiprocessor in the rounds, Hz */
} LessonTimes;

/* Two standard normals for each thread. */
static __global__ void lesson_normal_kernel(float *x, size_t n, uint64_t seed, uint32_t stream) {
  size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
  float a, b;
  philox_normal(philox4x32(seed, stream, i), &a, &b);
  if (2 * i < n) x[2 * i] = a;
  if (2 * i + 1 < n) x[2 * i + 1] = b;
}

/* Two elements of an array for each thread: labels, uniform where the lesson has a range, or standard normals. */
static __global__ void lesson_fill_kernel(void *x, size_t n, LessonArray array, uint32_t classes, uint64_t seed,
                                          uint32_t stream) {
  size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
  PhiloxBlock block = philox4x32(seed, stream, i);
  float value[2];
  philox_normal(block, &value[0], &value[1]);
  for (int j = 0; j < 2; j++) {
    if (2 * i + j >= n) return;
    if (array.low != -1 || array.high != 2)
      value[j] = (array.high - array.low) * philox_uniform(block.word[j]) + array.low;
    if (classes != 0 && array.element == LESSON_INDEX)
      ((uint8_t *)x)[2 * i + j] = (uint8_t)((uint64_t)block.word[j] * classes >> 32);
    else if (classes != 0)
      ((int *)x)[2 * i + j] = (int)((uint64_t)block.word[j] * classes >> 32);
    else if (array.element == LESSON_INT)
      ((int *)x)[2 * i + j] = (int)floorf(value[j]);
    else if (array.element == LESSON_BYTE)
      ((uint8_t *)x)[2 * i + j] = (uint8_t)(block.word[j] >> 24);
    else if (array.element == LESSON_BFLOAT16)
      ((__nv_bfloat16 *)x)[2 * i + j] = __float2bfloat16(value[j]);
    else
      ((float *)x)[2 * i + j] = value[j];
  }
}

/* Who takes turns: the versions, and after them the roofs. */
enum {
  LESSON_ROOF_COPY = LESSON_VERSIONS,
  LESSON_ROOF_COPY_KERNEL,
  LESSON_ROOF_FMA,
  LESSON_ROOF_OWN,
  LESSON_CONTESTANTS
};

/* The arrays of launches in a row take so much together that none is left in the cache. */
static inline double lesson_bench_bytes(void) {
  int device, l2;
  CUDA_CHECK(cudaGetDevice(&device));
  CUDA_CHECK(cudaDeviceGetAttribute(&l2, cudaDevAttrL2CacheSize, device));
  return fmax(4.0 * l2, 268435456.0);
}

/* What lesson_time() takes at most when one launch's arrays have `bytes`: for all launches, and for the copied roof. */
static inline double lesson_time_bytes(double bytes) {
  double wanted = lesson_bench_bytes(), sets = bytes < wanted ? bytes + wanted : bytes;
  return sets + 2.0 * LESSON_ROOF_ELEMENTS * sizeof(float);
}

typedef struct LessonBench {
  const Lesson *lesson;
  const LessonVersion *versions;
  LessonShape shape;
  float **set[LESSON_ARRAYS]; /* [array][set] */
  int sets, next_set;
  cudaGraphExec_t graph[LESSON_CONTESTANTS]; /* NULL: launch by launch */
  float *workspace;                          /* as large as the largest of a version; NULL: none needs any */
  float *roof[2];
  unsigned long long *cycles;
  int roof_blocks;
  double roof_flops; /* of the lesson's own roof */
  GpuTimer timer;
} LessonBench;

static inline void lesson_bench_open(LessonBench *bench, uint64_t seed) {
  const Lesson *lesson = bench->lesson;
  int device, multiprocessors;
  CUDA_CHECK(cudaGetDevice(&device));
  CUDA_CHECK(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device));
  double bytes = 0, wanted = lesson_bench_bytes();
  for (int a = 0; a < lesson->arrays; a++)
    bytes += (double)lesson_array_bytes(lesson, &lesson->array[a], bench->shape.size);
  bench->sets = bytes >= wanted ? 1 : (int)(wanted / bytes) + 1;
  if (bench->sets > LESSON_SETS) bench->sets = LESSON_SETS;
  bench->next_set = 0;
  for (int a = 0; a < lesson->arrays; a++) {
    const LessonArray *array = &lesson->array[a];
    size_t n = lesson_elements(lesson, array, bench->shape.size);
    uint32_t classes = array->classes != 0 ? (uint32_t)lesson_extent(lesson, array->classes, bench->shape.size) : 0;
    bench->set[a] = (float **)xmalloc((size_t)bench->sets * sizeof **bench->set);
    for (int s = 0; s < bench->sets; s++) {
      CUDA_CHECK(cudaMalloc((void **)&bench->set[a][s], n * lesson_element_bytes(array)));
      lesson_fill_kernel<<<(unsigned)(n / 2 / 256 + 1), 256>>>(bench->set[a][s], n, *array, classes, seed,
                                                               (uint32_t)(a + LESSON_ARRAYS * s));
      CUDA_CHECK_LAUNCH();
    }
  }
  bench->roof_blocks = multiprocessors * 8;
  for (int i = 0; i < 2; i++) {
    CUDA_CHECK(cudaMalloc((void **)&bench->roof[i], LESSON_ROOF_ELEMENTS * sizeof(float)));
    lesson_normal_kernel<<<LESSON_ROOF_ELEMENTS / 2 / 256, 256>>>(bench->roof[i], LESSON_ROOF_ELEMENTS, seed, 1u << 31);
    CUDA_CHECK_LAUNCH();
  }
  CUDA_CHECK(cudaMalloc((void **)&bench->cycles, sizeof *bench->cycles));
  bench->timer = gpu_timer_open();
}

static inline void lesson_bench_close(LessonBench *bench) {
  for (int a = 0; a < bench->lesson->arrays; a++) {
    for (int s = 0; s < bench->sets; s++) CUDA_CHECK(cudaFree(bench->set[a][s]));
    free(bench->set[a]);
  }
  for (int i = 0; i < LESSON_CONTESTANTS; i++)
    if (bench->graph[i] != NULL) CUDA_CHECK(cudaGraphExecDestroy(bench->graph[i]));
  for (int i = 0; i < 2; i++) CUDA_CHECK(cudaFree(bench->roof[i]));
  CUDA_CHECK(cudaFree(bench->workspace));
  CUDA_CHECK(cudaFree(bench->cycles));
  gpu_timer_close(&bench->timer);
}

/* As many bytes as the largest output has; see lesson_copied_bytes(). */
static inline void lesson_copy(const Lesson *lesson, float *const *array, const int *size) {
  int to, from;
  size_t bytes = lesson_copied_bytes(lesson, size, &to, &from);
  const char *source = (const char *)array[from] + (to == from ? bytes : 0);
  CUDA_CHECK(cudaMemcpyAsync(array[to], source, bytes, cudaMemcpyDeviceToDevice));
}

static inline void lesson_bench_launch(LessonBench *bench, int contestant) {
  const size_t roof_bytes = LESSON_ROOF_ELEMENTS * sizeof(float);
  if (contestant < LESSON_VERSIONS) {
    float *array[LESSON_ARRAYS] = {};
    for (int a = 0; a < bench->lesson->arrays; a++) array[a] = bench->set[a][bench->next_set];
    if (bench->lesson->workspace != NULL) array[bench->lesson->arrays] = bench->workspace;
    bench->next_set = (bench->next_set + 1) % bench->sets;
    const LessonVersion *version = &bench->versions[contestant];
    if (version->kind == LESSON_COPY)
      lesson_copy(bench->lesson, array, bench->shape.size);
    else
      bench->lesson->call(version->launch, array, bench->shape.size);
  } else if (contestant == LESSON_ROOF_COPY) {
    CUDA_CHECK(cudaMemcpyAsync(bench->roof[0], bench->roof[1], roof_bytes, cudaMemcpyDeviceToDevice));
  } else if (contestant == LESSON_ROOF_COPY_KERNEL) {
    roof_copy_kernel<<<(unsigned)bench->roof_blocks, 256>>>((float4 *)bench->roof[0], (const float4 *)bench->roof[1],
                                                            LESSON_ROOF_ELEMENTS / 4);
    CUDA_CHECK_LAUNCH();
  } else if (contestant == LESSON_ROOF_OWN) {
    bench->roof_flops = bench->lesson->roof();
  } else {
    roof_fma_kernel<<<(unsigned)bench->roof_blocks / 2, 256>>>(bench->roof[0], bench->cycles, 0.999f, 0.001f);
    CUDA_CHECK_LAUNCH();
  }
}

/* Makes a graph of `launches` launches in a row; from now on the contestant's blocks are that. */
static inline void lesson_bench_capture(LessonBench *bench, int contestant, int launches) {
  cudaGraph_t graph;
  CUDA_CHECK(cudaStreamBeginCapture(cudaStreamPerThread, cudaStreamCaptureModeRelaxed));
  for (int i = 0; i < launches; i++) lesson_bench_launch(bench, contestant);
  CUDA_CHECK(cudaStreamEndCapture(cudaStreamPerThread, &graph));
  CUDA_CHECK(cudaGraphInstantiate(&bench->graph[contestant], graph, 0));
  CUDA_CHECK(cudaGraphDestroy(graph));
  CUDA_CHECK(cudaGraphLaunch(bench->graph[contestant], cudaStreamPerThread)); /* warm up: it goes to the GPU */
  CUDA_CHECK(cudaStreamSynchronize(cudaStreamPerThread));
}

/* Seconds of one launch, out of `launches` in a row. */
static inline double lesson_bench_block(LessonBench *bench, int contestant, int launches) {
  nvtxRangePushA(contestant < LESSON_VERSIONS ? bench->versions[contestant].name : "roof");
  gpu_timer_start(&bench->timer);
  if (bench->graph[contestant] != NULL)
    CUDA_CHECK(cudaGraphLaunch(bench->graph[contestant], cudaStreamPerThread));
  else
    for (int i = 0; i < launches; i++) lesson_bench_launch(bench, contestant);
  double seconds = gpu_timer_stop(&bench->timer);
  nvtxRangePop();
  return seconds / launches;
}

/* Times `count` versions and the roofs on one shape. Of a version that refuses the shape the time stays 0. */
static inline void lesson_time(const Lesson *lesson, const LessonVersion *versions, int count, const LessonShape *shape,
                               uint64_t seed, LessonTimes *times) {
  static double samples[LESSON_CONTESTANTS][LESSON_ROUNDS];
  int contestant[LESSON_CONTESTANTS], launches[LESSON_CONTESTANTS], contestants = 0;
  LessonBench bench;
  memset(&bench, 0, sizeof bench);
  times->short_launches = 0;
  times->slowest_clock = INFINITY;
  times->fastest_clock = 0;
  bench.lesson = lesson;
  bench.versions = versions;
  bench.shape = *shape;
  size_t workspace = 0;
  for (int v = 0; v < count; v++) {
    Error err;
    times->seconds[v] = 0;
    if (lesson_refuses(lesson, &versions[v], shape, &err) != 0) continue;
    contestant[contestants++] = v;
    const size_t bytes = lesson_workspace_bytes(lesson, &versions[v], shape->size);
    if (bytes > workspace) workspace = bytes;
  }
  if (workspace > 0) CUDA_CHECK(cudaMalloc((void **)&bench.workspace, workspace));
  lesson_bench_open(&bench, seed);
  for (int roof = LESSON_ROOF_COPY; roof < LESSON_CONTESTANTS; roof++)
    if (roof != LESSON_ROOF_OWN || lesson->roof != NULL) contestant[contestants++] = roof;

  for (int i = 0; i < contestants; i++) { /* warm up: the first launch loads the kernel */
    lesson_bench_block(&bench, contestant[i], 2);
    double once = lesson_bench_block(&bench, contestant[i], 3);
    launches[i] = once > 1e-3 ? 1 : once > 1e-6 ? (int)(1e-3 / once) + 1 : 1000;
    if (once >= LESSON_SHORT) continue;
    times->short_launches += contestant[i] < LESSON_VERSIONS;
    if (!LESSON_GRAPHS) continue;
    if (launches[i] < bench.sets) launches[i] = bench.sets; /* so that a graph, too, meets every set */
    lesson_bench_capture(&bench, contestant[i], launches[i]);
  }
  for (int round = 0; round < LESSON_ROUNDS; round++)
    for (int turn = 0; turn < contestants; turn++) {
      int i = (turn + round) % contestants; /* nobody is always the first, or always after the same one */
      if (round % 2 == 1) i = contestants - 1 - i;
      CUDA_CHECK(cudaMemset(bench.cycles, 0, sizeof *bench.cycles));
      samples[contestant[i]][round] = lesson_bench_block(&bench, contestant[i], launches[i]);
      if (contestant[i] != LESSON_ROOF_FMA) continue;
      unsigned long long cycles;
      CUDA_CHECK(cudaMemcpy(&cycles, bench.cycles, sizeof cycles, cudaMemcpyDeviceToHost));
      double clock = (double)cycles / samples[LESSON_ROOF_FMA][round];
      times->slowest_clock = fmin(times->slowest_clock, clock);
      times->fastest_clock = fmax(times->fastest_clock, clock);
    }

  for (int i = 0; i < contestants; i++)
    if (contestant[i] < LESSON_VERSIONS)
      times->seconds[contestant[i]] = timer_stats(samples[contestant[i]], LESSON_ROUNDS).median;
  double copy = timer_stats(samples[LESSON_ROOF_COPY], LESSON_ROUNDS).median;
  double copy_kernel = timer_stats(samples[LESSON_ROOF_COPY_KERNEL], LESSON_ROUNDS).median;
  double fma = timer_stats(samples[LESSON_ROOF_FMA], LESSON_ROUNDS).median;
  times->copy_bytes_per_second = 2.0 * LESSON_ROOF_ELEMENTS * sizeof(float) / (copy < copy_kernel ? copy : copy_kernel);
  times->flops_per_second = 2.0 * ROOF_CHAINS * ROOF_STEPS * 256 * (bench.roof_blocks / 2) / fma;
  if (lesson->roof != NULL)
    times->flops_per_second = bench.roof_flops / timer_stats(samples[LESSON_ROOF_OWN], LESSON_ROUNDS).median;
  lesson_bench_close(&bench);
}

#endif /* COMMON_LESSON_TIME_H */
