/* mlp_one_kernel_run.cuh - the host's side of mlp_one_kernel.cuh: what a version keeps from epoch to epoch, which
 * networks are too large for it, and how launches become a graph. */
#ifndef PHASE2_MLP_MLP_ONE_KERNEL_RUN_CUH
#define PHASE2_MLP_MLP_ONE_KERNEL_RUN_CUH

#include "common/error.h"
#include "phase2_mlp/08_mlp_one_kernel/mlp_one_kernel_mail.cuh"
#include "phase2_mlp/08_mlp_one_kernel/mlp_one_kernel_tile.cuh"

/* The step's number, for a graph whose parameters are fixed. No block may write what another block of the same kernel
 * reads. So the sample kernel copies `next` to `now`, and the update kernel, which reads `now`, advances `next`. */
typedef struct MlpCounter {
  int next, now;
} MlpCounter;

/* What a version keeps from epoch to epoch. */
typedef struct MlpRun {
  MlpEpoch epoch;
  cudaStream_t stream;
  int slices, groups;
  MlpMail<float> mail;
  MlpMail<MlpWord> words;
  size_t mail_count;
  void *memory; /* of mail and words */
  MlpCounter *counter;
  unsigned *arrived;
  cudaGraphExec_t graph, tail; /* of a step, and of the last one if it is smaller; or of an epoch */
  size_t nodes;                /* kernels in the graph that was captured last */
  struct Model *layers;        /* of mlp_one_kernel_layers.cuh, NULL until it is used */
  void (*layers_free)(struct MlpRun *run);
} MlpRun;

/* 0; or -1 and a sentence: what the fused and the persistent kernels cannot do. */
static inline int mlp_check(const MlpEpoch *e, Error *err) {
  if (e->inputs > MLP_SLICE * MLP_SLICES || e->hidden > MLP_HIDDEN || e->classes > MLP_CLASSES || e->batch > MLP_BATCH)
    return error_set(err,
                     "%d-%d-%d with batches of %d is too large: these kernels take networks up to %d-%d-%d "
                     "and batches of up to %d",
                     e->inputs, e->hidden, e->classes, e->batch, MLP_SLICE * MLP_SLICES, MLP_HIDDEN, MLP_CLASSES,
                     MLP_BATCH);
  return 0;
}

template <typename Word>
static inline MlpMail<Word> mlp_mail(const MlpRun *run, Word *at) {
  const MlpEpoch *e = &run->epoch;
  const size_t B = MLP_BATCH;
  MlpMail<Word> mail;
  mail.shares = at;
  mail.units = mail.shares + B * run->slices * e->hidden;
  mail.dlogits = mail.units + 2 * B * e->hidden;
  mail.w2 = mail.dlogits + B * e->classes;
  mail.b2 = mail.w2 + (size_t)e->classes * e->hidden;
  return mail;
}

/* The arrays of `epoch` are the caller's; they may have other contents each time, but stay where they are. */
static inline void mlp_open(MlpRun *run, const MlpEpoch *epoch) {
  Error err;
  if (mlp_check(epoch, &err) != 0) die("%s", err.message);
  memset((void *)run, 0, sizeof *run);
  run->epoch = *epoch;
  run->slices = (epoch->inputs + MLP_SLICE - 1) / MLP_SLICE;
  run->groups = (epoch->hidden + MLP_UNITS - 1) / MLP_UNITS;
  run->mail_count = (size_t)(mlp_mail<float>(run, NULL).b2 - (float *)NULL) + epoch->classes;
  CUDA_CHECK(cudaMalloc(&run->memory, run->mail_count * sizeof(MlpWord)));
  CUDA_CHECK(cudaMalloc((void **)&run->counter, sizeof *run->counter));
  CUDA_CHECK(cudaMalloc((void **)&run->arrived, sizeof *run->arrived));
  CUDA_CHECK(cudaStreamCreate(&run->stream));
  run->words = mlp_mail(run, (MlpWord *)run->memory);
  run->mail = mlp_mail(run, (float *)run->memory);
  run->mail.w2 = run->epoch.parameters + (size_t)epoch->hidden * (epoch->inputs + 1); /* floats are read in place */
  run->mail.b2 = run->mail.w2 + (size_t)epoch->classes * epoch->hidden;
}

static inline void mlp_close(MlpRun *run) {
  if (run->layers != NULL) run->layers_free(run);
  if (run->graph != NULL) CUDA_CHECK(cudaGraphExecDestroy(run->graph));
  if (run->tail != NULL) CUDA_CHECK(cudaGraphExecDestroy(run->tail));
  CUDA_CHECK(cudaStreamDestroy(run->stream));
  CUDA_CHECK(cudaFree(run->memory));
  CUDA_CHECK(cudaFree(run->counter));
  CUDA_CHECK(cudaFree(run->arrived));
}

/* More than 48 KB of shared memory a block, a kernel must be allowed to ask for. */
static inline void mlp_allow_shared(const void *kernel) {
  CUDA_CHECK(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, sizeof(MlpTile)));
}

/* What is launched into `stream` between these two becomes a graph; nothing of it runs yet. */
static inline void mlp_capture_begin(cudaStream_t stream) {
  CUDA_CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
}
static inline cudaGraphExec_t mlp_capture_end(MlpRun *run, cudaStream_t stream) {
  cudaGraph_t graph;
  cudaGraphExec_t executable;
  CUDA_CHECK(cudaStreamEndCapture(stream, &graph));
  CUDA_CHECK(cudaGraphGetNodes(graph, NULL, &run->nodes));
  CUDA_CHECK(cudaGraphInstantiate(&executable, graph, 0));
  CUDA_CHECK(cudaGraphDestroy(graph));
  return executable;
}

/* 0; or -1 and a sentence: this GPU does not give a block so much shared memory. */
static inline int mlp_fits_shared(const MlpRun *run, Error *err) {
  int device, shared;
  (void)run;
  CUDA_CHECK(cudaGetDevice(&device));
  CUDA_CHECK(cudaDeviceGetAttribute(&shared, cudaDevAttrMaxSharedMemoryPerBlockOptin, device));
  if ((size_t)shared < sizeof(MlpTile))
    return error_set(err, "a block needs %zu bytes of shared memory, and this GPU gives it at most %d", sizeof(MlpTile),
                     shared);
  return 0;
}

#endif /* PHASE2_MLP_MLP_ONE_KERNEL_RUN_CUH */
