/* input_pipeline_mlp.cuh - the work of the lesson about streams: the forward pass of a multi-layer perceptron on the
 * images that input_pipeline.cuh brings.
 *
 *   images (B,784) bytes -> normalised x (B,784) -> linear, ReLU, linear -> logits (B,10)
 *
 * The logits of all batches are kept, so that a batch that was overwritten too early shows. The FeedMlp that work() of
 * input_pipeline.cuh uses is on the GPU; another one on the CPU is the reference.
 */
#ifndef PHASE2_MLP_INPUT_PIPELINE_MLP_CUH
#define PHASE2_MLP_INPUT_PIPELINE_MLP_CUH

#include "common/compare.h"
#include "common/timer.h"
#include "phase2_mlp/03_mlp/mlp.cuh"
#include "phase2_mlp/05_batches/batches.cuh"
#include "phase2_mlp/06_streams/input_pipeline.cuh"

enum { FEED_MLP_PIXELS = 784, FEED_MLP_CLASSES = 10 };

typedef struct FeedMlp {
  Device device;
  int batches, batch, hidden; /* batch: images of one */
  Model network;
  uint32_t *order; /* (batch), on the device: 0, 1, ..: the images of a batch in their order */
  uint8_t *labels; /* (batch), on the device; not used */
  float *logits;   /* (batches, batch, 10), on the device */
} FeedMlp;

static inline double feed_mlp_flops(int batches, int batch, int hidden) {
  return 2.0 * batches * batch * hidden * (FEED_MLP_PIXELS + FEED_MLP_CLASSES);
}

/* Bytes that a batch adds to what all of them take together: of images and logits. */
static inline double feed_mlp_batch_bytes(int batch) {
  return (double)batch * (FEED_MLP_PIXELS + FEED_MLP_CLASSES * sizeof(float));
}

/* How many batches fit into `host` and `gpu` bytes. The host has the images pageable and pinned, two staging buffers,
 * the reference's logits and the GPU's, and the network that computes the reference; the GPU has the images, two
 * buffers, the logits and the network. Of a network: its parameters, and for each image the pixels, the hidden
 * units, and a few floats per class. */
static inline double feed_mlp_most_batches(int batch, int hidden, double host, double gpu) {
  const double parameters = (double)hidden * (FEED_MLP_PIXELS + FEED_MLP_CLASSES + 1) + FEED_MLP_CLASSES;
  const double floats = FEED_MLP_PIXELS + hidden + 2 * FEED_MLP_CLASSES + 4;
  const double network = sizeof(float) * (parameters + batch * floats) + 16 * PLAN_ALIGN;
  const double fixed = network + (double)FEED_BUFFERS * batch * FEED_MLP_PIXELS, each = feed_mlp_batch_bytes(batch);
  return fmax(0, floor(fmin((host - fixed) / (2 * each), (gpu - fixed) / each)));
}

static inline size_t feed_mlp_logits(const FeedMlp *mlp) {
  return (size_t)mlp->batches * mlp->batch * FEED_MLP_CLASSES;
}
static inline size_t feed_mlp_bytes(const FeedMlp *mlp) { return (size_t)mlp->batch * FEED_MLP_PIXELS; }

static inline void feed_mlp_open(FeedMlp *mlp, Device device, int batches, int batch, int hidden, uint64_t seed) {
  memset(mlp, 0, sizeof *mlp);
  mlp->device = device;
  mlp->batches = batches;
  mlp->batch = batch;
  mlp->hidden = hidden;
  Error err;
  Context context;
  memset(&context, 0, sizeof context);
  context.device = device;
  const MlpShape shape = {3, {FEED_MLP_PIXELS, hidden, FEED_MLP_CLASSES}, ACTIVATION_RELU};
  if (model_open(&mlp->network, mlp_graph(&shape), context, NULL, batch, MODEL_INFER, &err) != 0)
    die("%s", err.message);
  model_init(&mlp->network, seed);
  uint32_t *order = (uint32_t *)xmalloc((size_t)batch * sizeof *order);
  for (int i = 0; i < batch; i++) order[i] = (uint32_t)i;
  mlp->order = (uint32_t *)device_alloc(device, (size_t)batch * sizeof *order);
  device_upload(device, mlp->order, order, (size_t)batch * sizeof *order);
  free(order);
  mlp->labels = (uint8_t *)device_alloc(device, (size_t)batch);
  mlp->logits = (float *)device_alloc(device, feed_mlp_logits(mlp) * sizeof(float));
}

static inline void feed_mlp_close(FeedMlp *mlp) {
  device_free(mlp->device, mlp->logits);
  device_free(mlp->device, mlp->labels);
  device_free(mlp->device, mlp->order);
  model_close(&mlp->network);
}

/* A FeedWork; `context` is the FeedMlp. */
static inline void feed_mlp_work(const uint8_t *images, int i, void *context) {
  FeedMlp *mlp = (FeedMlp *)context;
  Model *net = &mlp->network;
  const size_t logits = (size_t)mlp->batch * FEED_MLP_CLASSES;
  ON_DEVICE(mlp->device,
            batch_gather_gpu(model_input(net, 0), model_labels(net), images, mlp->labels, mlp->order, mlp->batch,
                             FEED_MLP_PIXELS, 0.5f, 0.29f),
            batch_gather_cpu_fast(model_input(net, 0), model_labels(net), images, mlp->labels, mlp->order, mlp->batch,
                                  FEED_MLP_PIXELS, 0.5f, 0.29f));
  model_forward(net, mlp->batch);
  device_copy(mlp->device, mlp->logits + (size_t)i * logits, model_logits(net, 0), logits * sizeof(float));
}

/* Random bytes: (batches, batch, 784). The caller frees them. */
static inline uint8_t *feed_mlp_images(int batches, int batch, uint64_t seed) {
  const size_t bytes = (size_t)batches * batch * FEED_MLP_PIXELS; /* a multiple of 16 */
  uint8_t *images = (uint8_t *)xmalloc(bytes);
#pragma omp parallel for schedule(static)
  for (size_t i = 0; i < bytes / sizeof(PhiloxBlock); i++) {
    PhiloxBlock block = philox4x32(seed, FEED_MLP_PIXELS, i);
    memcpy(images + i * sizeof block, &block, sizeof block);
  }
  return images;
}

/* The logits by the CPU, and its time. The caller frees them. */
static inline float *feed_mlp_reference(const uint8_t *images, int batches, int batch, int hidden, uint64_t seed,
                                        double *seconds) {
  FeedMlp mlp;
  feed_mlp_open(&mlp, DEVICE_CPU, batches, batch, hidden, seed);
  double start = seconds_now();
  feed_cpu(images, batches, feed_mlp_bytes(&mlp), feed_mlp_work, &mlp);
  *seconds = seconds_now() - start;
  float *logits = (float *)xmalloc(feed_mlp_logits(&mlp) * sizeof *logits);
  memcpy(logits, mlp.logits, feed_mlp_logits(&mlp) * sizeof *logits);
  feed_mlp_close(&mlp);
  return logits;
}

/* No logits of a run before shall pass for those of the next. 0xFF: NaN. */
static inline void feed_mlp_forget(FeedMlp *mlp) {
  CUDA_CHECK(cudaMemset(mlp->logits, 0xFF, feed_mlp_logits(mlp) * sizeof(float)));
}

/* Normalised pixels and weights of variance 2 / n in either layer: a sum of n products, each about sqrt(2 / n), and on
 * to one of `hidden` products of the same kind, which carries the errors of the first along. */
static inline Tolerance feed_mlp_tolerance(int hidden) {
  Tolerance first = tolerance_dot(FEED_MLP_PIXELS, sqrt(2.0 / FEED_MLP_PIXELS));
  Tolerance second = tolerance_dot((size_t)hidden, 2 * sqrt(2.0 / hidden));
  return tolerance_make(FLT_EPSILON, 2 * first.absolute + second.absolute);
}

/* Waits for the GPU. */
static inline Comparison feed_mlp_check(const FeedMlp *mlp, const float *expected) {
  float *logits = (float *)xmalloc(feed_mlp_logits(mlp) * sizeof *logits);
  CUDA_CHECK(cudaDeviceSynchronize());
  device_download(mlp->device, logits, mlp->logits, feed_mlp_logits(mlp) * sizeof *logits);
  Comparison c = compare_arrays(logits, expected, (size_t)mlp->batches * mlp->batch, FEED_MLP_CLASSES,
                                feed_mlp_tolerance(mlp->hidden));
  free(logits);
  return c;
}

#endif /* PHASE2_MLP_INPUT_PIPELINE_MLP_CUH */
