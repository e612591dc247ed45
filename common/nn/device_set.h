/* device_set.h - a data set that lives where the network lives, as bytes.
 *
 *     DeviceSet set;
 *     device_set_create(&set, device, &batch_kernels, &host, count, &norm);
 *     device_set_shuffle(&set, seed, epoch);
 *     device_set_gather(&set, &net, start, batch);      // images start .. start + batch - 1 of the order
 *
 * The whole of MNIST is 47 MB, so it is copied to the device once; a batch is then gathered there in shuffled order and
 * normalised on the way, and no pixel crosses the bus during training. Which kernels do that is a table (Batches) of
 * the phase that teaches them; device_set_gather_any() does it for several channels and for more than 256 classes.
 */
#ifndef COMMON_NN_DEVICE_SET_H
#define COMMON_NN_DEVICE_SET_H

#include "common/nn/augment.h"
#include "common/nn/data_set.h"
#include "common/nn/model.h"

/* How an epoch is ordered and a batch put together. */
typedef struct Batches {
  /* A permutation of 0 .. count - 1, the same for the same (seed, epoch) everywhere; on the host. */
  void (*shuffle)(uint32_t *order, uint32_t count, uint64_t seed, uint32_t epoch);
  /* x (batch,pixels) = (samples[order[b]] / 255 - mean) / stddev, labels (batch). All arrays are on the device. */
  void (*gather)(Device device, float *x, int *labels, const uint8_t *samples, const uint8_t *all_labels,
                 const uint32_t *order, int batch, int pixels, float mean, float stddev);
} Batches;

typedef struct DeviceSet {
  Device device;
  const Batches *batches;
  Shape shape;
  int count, classes;
  int pixels;       /* bytes of one image */
  uint8_t *images;  /* (count, C,H,W), on the device */
  uint8_t *labels;  /* (count), on the device; NULL where wide_labels has them */
  int *wide_labels; /* (count), on the device: for what batches->gather does not take */
  uint32_t *order;  /* (count), on the device: the order in which batches take the images */
  uint32_t *host_order;
  DataNorm norm;          /* of the training set */
  const Augment *augment; /* NULL: the images as they are */
  AugmentKey augment_key;
  float *plain; /* (most, C,H,W), on the device: a batch before it is augmented */
} DeviceSet;

/* Bytes on the device. */
static inline double device_set_bytes(Shape shape, int count) {
  return (double)count * ((double)shape_count(shape) + sizeof(uint32_t) + sizeof(int));
}

/* What device_set_augment() takes besides, for batches of up to `most` images. */
static inline double device_set_augment_bytes(const Augment *augment, Shape shape, int most) {
  return augment->apply ? (double)most * (double)shape_count(shape) * sizeof(float) : 0;
}

/* The first `count` images of `host`, in their order. */
static inline void device_set_create(DeviceSet *set, Device device, const Batches *batches, const DataSet *host,
                                     int count, const DataNorm *norm) {
  memset(set, 0, sizeof *set);
  set->device = device;
  set->batches = batches;
  set->shape = host->shape;
  set->count = count;
  set->classes = host->classes;
  set->pixels = (int)shape_count(host->shape);
  set->norm = *norm;
  set->images = (uint8_t *)device_alloc(device, (size_t)count * set->pixels);
  set->order = (uint32_t *)device_alloc(device, count * sizeof(uint32_t));
  set->host_order = (uint32_t *)xcalloc(count, sizeof(uint32_t));
  for (int i = 0; i < count; i++) set->host_order[i] = (uint32_t)i;
  device_upload(device, set->images, host->samples, (size_t)count * set->pixels);
  device_upload(device, set->order, set->host_order, count * sizeof(uint32_t));
  if (norm->channels == 1 && host->classes <= 256 && batches->gather) {
    uint8_t *bytes = (uint8_t *)xmalloc(count);
    for (int i = 0; i < count; i++) bytes[i] = (uint8_t)host->labels[i];
    set->labels = (uint8_t *)device_alloc(device, count);
    device_upload(device, set->labels, bytes, count);
    free(bytes);
  } else {
    set->wide_labels = (int *)device_alloc(device, count * sizeof(int));
    device_upload(device, set->wide_labels, host->labels, count * sizeof(int));
  }
}

static inline void device_set_destroy(DeviceSet *set) {
  device_free(set->device, set->images);
  device_free(set->device, set->labels);
  device_free(set->device, set->wide_labels);
  device_free(set->device, set->order);
  device_free(set->device, set->plain);
  free(set->host_order);
  memset(set, 0, sizeof *set);
}

/* Batches of up to `most` images are changed by `augment` from now on. */
static inline void device_set_augment(DeviceSet *set, const Augment *augment, int most) {
  device_free(set->device, set->plain);
  set->plain = NULL;
  set->augment = augment->apply ? augment : NULL;
  if (set->augment) set->plain = (float *)device_alloc(set->device, (size_t)most * set->pixels * sizeof(float));
}

/* A new order for this epoch, the same for the same (seed, epoch) on every device and in every run. */
static inline void device_set_shuffle(DeviceSet *set, uint64_t seed, int epoch) {
  set->batches->shuffle(set->host_order, (uint32_t)set->count, seed, (uint32_t)epoch);
  device_upload(set->device, set->order, set->host_order, set->count * sizeof(uint32_t));
  set->augment_key.seed = seed;
  set->augment_key.epoch = (uint32_t)epoch;
}

/* --------------------------------------------------------------------------------------------- any shape, any class */

/* Two divisions and a difference round the same way everywhere, and as PyTorch's. */
PHILOX_FUNCTION float device_set_normalize(uint8_t pixel, float mean, float stddev) {
  return ((float)pixel / 255.0f - mean) / stddev;
}

static inline void device_set_gather_any_cpu(float *x, int *labels, const uint8_t *samples, const int *all_labels,
                                             const uint32_t *order, int batch, size_t plane, DataNorm norm) {
  float normalized[DATA_MAX_CHANNELS][256];
  const size_t size = plane * norm.channels;
  for (int c = 0; c < norm.channels; c++)
    for (int value = 0; value < 256; value++)
      normalized[c][value] = device_set_normalize((uint8_t)value, norm.mean[c], norm.stddev[c]);
#pragma omp parallel for schedule(static) if (batch * size > 16384)
  for (int b = 0; b < batch; b++) {
    const uint8_t *image = samples + order[b] * size;
    float *out = x + b * size;
    for (int c = 0; c < norm.channels; c++)
      for (size_t i = 0; i < plane; i++) out[c * plane + i] = normalized[c][image[c * plane + i]];
    labels[b] = all_labels[order[b]];
  }
}

#ifdef __CUDACC__
/* One block per image. */
static __global__ void device_set_gather_any_kernel(float *x, int *labels, const uint8_t *samples,
                                                    const int *all_labels, const uint32_t *order, size_t plane,
                                                    DataNorm norm) {
  const size_t size = plane * norm.channels, source = order[blockIdx.x];
  const uint8_t *image = samples + source * size;
  float *out = x + blockIdx.x * size;
  for (int c = 0; c < norm.channels; c++)
    for (size_t i = threadIdx.x; i < plane; i += blockDim.x)
      out[c * plane + i] = device_set_normalize(image[c * plane + i], norm.mean[c], norm.stddev[c]);
  if (threadIdx.x == 0) labels[blockIdx.x] = all_labels[source];
}

static inline void device_set_gather_any_gpu(float *x, int *labels, const uint8_t *samples, const int *all_labels,
                                             const uint32_t *order, int batch, size_t plane, DataNorm norm) {
  if (batch == 0) return;
  device_set_gather_any_kernel<<<batch, 256>>>(x, labels, samples, all_labels, order, plane, norm);
  CUDA_CHECK_LAUNCH();
}
#endif

static inline void device_set_gather_any(const DeviceSet *set, float *x, int *labels, const uint32_t *order,
                                         int batch) {
  const size_t plane = (size_t)set->pixels / set->norm.channels;
  ON_DEVICE(set->device,
            device_set_gather_any_gpu(x, labels, set->images, set->wide_labels, order, batch, plane, set->norm),
            device_set_gather_any_cpu(x, labels, set->images, set->wide_labels, order, batch, plane, set->norm));
}

/* ---------------------------------------------------------------------------------------------------------- batches */

/* Images start .. start + batch - 1 of the order, normalised, into the network's input and labels; changed by
 * set->augment where it has one. */
static inline void device_set_gather(const DeviceSet *set, Model *net, int start, int batch) {
  model_expect_batch(net, batch);
  const uint32_t *order = set->order + start;
  float *input = model_input(net, 0), *x = set->augment ? set->plain : input;
  if (set->labels)
    set->batches->gather(set->device, x, model_labels(net), set->images, set->labels, order, batch, set->pixels,
                         set->norm.mean[0], set->norm.stddev[0]);
  else
    device_set_gather_any(set, x, model_labels(net), order, batch);
  if (set->augment == NULL) return;
  AugmentOutside outside;
  for (int c = 0; c < set->norm.channels; c++)
    outside.value[c] = device_set_normalize(0, set->norm.mean[c], set->norm.stddev[c]);
  set->augment->apply(set->augment, set->device, input, x, batch, set->shape, &outside, set->augment_key, order);
}

/* Loss and right answers over the whole set; with `probabilities` (count, classes) != NULL also what the network said,
 * in the set's order. The network's totals are left at the set's sums. */
static inline Totals device_set_evaluate(const DeviceSet *set, Model *net, float *probabilities) {
  const Totals none = {0, 0};
  model_reset_totals(net, 0, none);
  for (int start = 0; start < set->count; start += net->max_batch) {
    const int batch = set->count - start < net->max_batch ? set->count - start : net->max_batch;
    device_set_gather(set, net, start, batch);
    model_evaluate_step(net, batch);
    if (probabilities)
      device_download(set->device, probabilities + (size_t)start * model_classes(net), model_loss_saved(net, 0),
                      (size_t)batch * model_classes(net) * sizeof(float));
  }
  return model_read_totals(net, 0);
}

#endif /* COMMON_NN_DEVICE_SET_H */
