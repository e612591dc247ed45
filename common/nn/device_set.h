/* device_set.h - a data set that lives where the network lives, as bytes; or in the host's memory.
 *
 *     DeviceSet set;
 *     device_set_create(&set, device, &batch_kernels, &host, count, &norm);
 *     device_set_shuffle(&set, seed, epoch);
 *     device_set_gather(&set, &net, start, batch);      // images start .. start + batch - 1 of the order
 *
 * The whole of MNIST is 47 MB, so it is copied to the device once; a batch is then gathered there in shuffled order and
 * normalised on the way, and no pixel crosses the bus during training. Which kernels do that is a table (Batches) of
 * the phase that teaches them; device_set_gather_any() does it for several channels and for more than 256 classes.
 *
 * A set that is larger than the device's memory stays where it was read: device_set_create_streamed(). Each batch is
 * then copied while the step before is computed (batch_stream.h), and is put together from the copy by the same
 * kernels, so that every number is the same. With DEVICE_CPU a batch is gathered from the host's set itself.
 */
#ifndef COMMON_NN_DEVICE_SET_H
#define COMMON_NN_DEVICE_SET_H

#include "common/nn/augment.h"
#include "common/nn/data_set.h"
#include "common/nn/model.h"
#ifdef __CUDACC__
#include "common/nn/batch_stream.h"
#endif

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
  uint8_t *images;  /* (count, C,H,W), on the device; streamed: the host's */
  uint8_t *labels;  /* (count), on the device; NULL where wide_labels has them; streamed: on the host */
  int *wide_labels; /* (count), likewise: for what batches->gather does not take */
  int streamed;
  struct BatchStream *stream; /* of a streamed set, to a GPU */
  uint32_t *order;            /* (count), on the device: the order in which batches take the images */
  uint32_t *host_order;
  DataNorm norm;           /* of the training set */
  const Augment *augment;  /* NULL: the images as they are */
  AugmentKey host_key;     /* of the epoch */
  AugmentKey *augment_key; /* the same, on the device */
} DeviceSet;

/* Bytes on the device. */
static inline double device_set_bytes(Shape shape, int count) {
  return (double)count * ((double)shape_count(shape) + sizeof(uint32_t) + sizeof(int));
}

/* Of a streamed set, in batches of up to `most`: two of them, and orders. */
static inline double device_set_streamed_bytes(Shape shape, int count, int most) {
  return 2 * device_set_bytes(shape, most) + (double)(count + most) * sizeof(uint32_t);
}

/* All but images and labels. */
static inline void device_set_begin(DeviceSet *set, Device device, const Batches *batches, const DataSet *host,
                                    int count, const DataNorm *norm) {
  memset(set, 0, sizeof *set);
  set->device = device;
  set->batches = batches;
  set->shape = host->shape;
  set->count = count;
  set->classes = host->classes;
  set->pixels = (int)shape_count(host->shape);
  set->norm = *norm;
  set->order = (uint32_t *)device_alloc(device, count * sizeof(uint32_t));
  set->host_order = (uint32_t *)xcalloc(count, sizeof(uint32_t));
  for (int i = 0; i < count; i++) set->host_order[i] = (uint32_t)i;
  device_upload(device, set->order, set->host_order, count * sizeof(uint32_t));
}

/* The labels in the form that the kernels take, on `device`. */
static inline void device_set_add_labels(DeviceSet *set, Device device, const DataSet *host) {
  const int count = set->count;
  if (set->norm.channels == 1 && host->classes <= 256 && set->batches->gather) {
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

/* The first `count` images of `host`, in their order. */
static inline void device_set_create(DeviceSet *set, Device device, const Batches *batches, const DataSet *host,
                                     int count, const DataNorm *norm) {
  device_set_begin(set, device, batches, host, count, norm);
  device_set_add_labels(set, device, host);
  set->images = (uint8_t *)device_alloc(device, (size_t)count * set->pixels);
  device_upload(device, set->images, host->samples, (size_t)count * set->pixels);
}

/* The same, but the images stay in `host`, which must live as long as the set. Batches have up to `most` images. */
static inline void device_set_create_streamed(DeviceSet *set, Device device, const Batches *batches,
                                              const DataSet *host, int count, const DataNorm *norm, int most) {
  device_set_begin(set, device, batches, host, count, norm);
  device_set_add_labels(set, DEVICE_CPU, host);
  set->images = host->samples;
  set->streamed = 1;
  ON_DEVICE(
      device,
      {
        const uint8_t *labels = set->labels ? set->labels : (const uint8_t *)set->wide_labels;
        set->stream = (BatchStream *)xcalloc(1, sizeof(BatchStream));
        batch_stream_open(set->stream, set->images, labels, (size_t)set->pixels, set->labels ? 1 : sizeof(int), most);
      },
      (void)most);
}

static inline void device_set_destroy(DeviceSet *set) {
  ON_DEVICE(
      set->device,
      {
        if (set->stream) batch_stream_close(set->stream);
      },
      (void)0);
  free(set->stream);
  const Device device = set->streamed ? DEVICE_CPU : set->device; /* where the labels are */
  device_free(device, set->labels);
  device_free(device, set->wide_labels);
  if (!set->streamed) device_free(set->device, set->images);
  device_free(set->device, set->order);
  device_free(set->device, set->augment_key);
  free(set->host_order);
  memset(set, 0, sizeof *set);
}

/* Two divisions and a difference round the same way everywhere, and as PyTorch's. */
PHILOX_FUNCTION float device_set_normalize(uint8_t pixel, float mean, float stddev) {
  return ((float)pixel / 255.0f - mean) / stddev;
}

/* Batches are changed by `augment` from now on; it must live as long as the set. */
static inline void device_set_augment(DeviceSet *set, const Augment *augment) {
  set->augment = augment_changes(&augment->most) ? augment : NULL;
  if (set->augment == NULL || set->augment_key) return;
  set->augment_key = (AugmentKey *)device_alloc(set->device, sizeof *set->augment_key);
  device_upload(set->device, set->augment_key, &set->host_key, sizeof set->host_key);
}

/* A new order for this epoch, the same for the same (seed, epoch) on every device and in every run. */
static inline void device_set_shuffle(DeviceSet *set, uint64_t seed, int epoch) {
  set->batches->shuffle(set->host_order, (uint32_t)set->count, seed, (uint32_t)epoch);
  device_upload(set->device, set->order, set->host_order, set->count * sizeof(uint32_t));
  ON_DEVICE(
      set->device,
      {
        if (set->stream) batch_stream_forget(set->stream);
      },
      (void)0);
  set->host_key = augment_key(seed, (uint32_t)epoch);
  if (set->augment_key) device_upload(set->device, set->augment_key, &set->host_key, sizeof set->host_key);
}

/* --------------------------------------------------------------------------------------------- any shape, any class */

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

static inline void device_set_gather_any(const DeviceSet *set, float *x, int *labels, const uint8_t *samples,
                                         const int *all_labels, const uint32_t *order, int batch) {
  const size_t plane = (size_t)set->pixels / set->norm.channels;
  ON_DEVICE(set->device, device_set_gather_any_gpu(x, labels, samples, all_labels, order, batch, plane, set->norm),
            device_set_gather_any_cpu(x, labels, samples, all_labels, order, batch, plane, set->norm));
}

/* ---------------------------------------------------------------------------------------------------------- batches */

/* Where a batch is put together from. */
typedef struct DeviceBatch {
  const uint8_t *images;
  const void *labels;
  const uint32_t *order; /* (batch) */
} DeviceBatch;

/* Images start .. start + batch - 1 of the order: where they are now. What is not on the GPU is on its way there, and
 * what is submitted next waits for it. A step that a CUDA graph records calls this before the recording begins. */
static inline DeviceBatch device_set_batch(const DeviceSet *set, int start, int batch) {
  DeviceBatch from = {set->images, set->labels ? (const void *)set->labels : (const void *)set->wide_labels,
                      set->order + start};
  ON_DEVICE(
      set->device,
      {
        if (set->stream) {
          batch_stream_take(set->stream, set->host_order, set->count, start, batch);
          from.images = batch_stream_images(set->stream);
          from.labels = batch_stream_labels(set->stream);
          from.order = set->stream->in_order;
        }
      },
      (void)batch);
  return from;
}

/* The batch `from`, images start .. start + batch - 1 of the order, as set->augment changes it; x and labels. */
static inline void device_set_gather_augmented(const DeviceSet *set, float *x, int *labels, DeviceBatch from, int start,
                                               int batch) {
  AugmentSource source;
  memset(&source, 0, sizeof source);
  source.images = from.images;
  source.row = from.order;
  source.sample = set->order + start;
  source.key = set->augment_key;
  source.norm = augment_norm(set->norm.mean, set->norm.stddev, set->norm.channels);
  source.middle = augment_middle(set->norm.mean, set->norm.channels);
  source.channels = set->shape.dim[0];
  source.height = set->shape.dim[1];
  source.width = set->shape.dim[2];
  if (set->labels)
    source.byte_labels = (const uint8_t *)from.labels;
  else
    source.int_labels = (const int *)from.labels;
  source.labels = labels;
  augment_apply(set->augment, set->device, x, &source, batch);
}

/* Images start .. start + batch - 1 of the order, normalised, into the network's input and labels; changed by
 * set->augment where it has one. */
static inline void device_set_gather(const DeviceSet *set, Model *net, int start, int batch) {
  model_expect_batch(net, batch);
  const DeviceBatch from = device_set_batch(set, start, batch);
  float *x = model_input(net, 0);
  if (set->augment)
    device_set_gather_augmented(set, x, model_labels(net), from, start, batch);
  else if (set->labels)
    set->batches->gather(set->device, x, model_labels(net), from.images, (const uint8_t *)from.labels, from.order,
                         batch, set->pixels, set->norm.mean[0], set->norm.stddev[0]);
  else
    device_set_gather_any(set, x, model_labels(net), from.images, (const int *)from.labels, from.order, batch);
}

/* One training step on images start .. start + batch - 1 of the order, in parts of `part` images: the gradients of the
 * parts are added up. With part >= batch there is one. */
static inline void device_set_train_step(const DeviceSet *set, Model *net, int start, int batch, int part) {
  if (part >= batch) {
    device_set_gather(set, net, start, batch);
    model_train_step(net, batch);
    return;
  }
  for (int begin = 0, i = 0; begin < batch; begin += part, i++) {
    const int size = batch - begin < part ? batch - begin : part;
    device_set_gather(set, net, start + begin, size);
    model_train_part(net, size, i, begin, batch);
  }
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
