/* image_set.cuh - a labelled set of images that lives where the network lives, as bytes.
 *
 * The whole of MNIST is 47 MB, so it is copied to the device once; a batch is then gathered there in shuffled order and
 * normalised on the way (batches.cuh), and no pixel crosses the bus during training.
 */
#ifndef PHASE2_MLP_IMAGE_SET_CUH
#define PHASE2_MLP_IMAGE_SET_CUH

#include "common/mnist.h"
#include "common/nn/model.h"
#include "phase2_mlp/05_batches/batches.cuh"

typedef struct ImageSet {
  Device device;
  int count, pixels;        /* images; bytes of one image */
  uint8_t *images, *labels; /* (count, pixels), (count), on the device */
  uint32_t *order;          /* (count), on the device: the order in which batches take the images */
  uint32_t *host_order;
  float mean, stddev; /* of the training set, in units of pixel / 255 */
} ImageSet;

/* The first `count` images of `host`, in file order. */
static inline void image_set_create(ImageSet *set, Device device, const MnistSet *host, int count, float mean,
                                    float stddev) {
  set->device = device;
  set->count = count;
  set->pixels = host->height * host->width;
  set->mean = mean;
  set->stddev = stddev;
  set->images = (uint8_t *)device_alloc(device, (size_t)count * set->pixels);
  set->labels = (uint8_t *)device_alloc(device, count);
  set->order = (uint32_t *)device_alloc(device, count * sizeof(uint32_t));
  set->host_order = (uint32_t *)xcalloc(count, sizeof(uint32_t));
  for (int i = 0; i < count; i++) set->host_order[i] = (uint32_t)i;
  device_upload(device, set->images, host->images, (size_t)count * set->pixels);
  device_upload(device, set->labels, host->labels, count);
  device_upload(device, set->order, set->host_order, count * sizeof(uint32_t));
}

static inline void image_set_destroy(ImageSet *set) {
  device_free(set->device, set->images);
  device_free(set->device, set->labels);
  device_free(set->device, set->order);
  free(set->host_order);
}

/* A new order for this epoch, the same for the same (seed, epoch) on every device and in every run. */
static inline void image_set_shuffle(ImageSet *set, uint64_t seed, int epoch) {
  batches_shuffle(set->host_order, set->count, seed, epoch);
  device_upload(set->device, set->order, set->host_order, set->count * sizeof(uint32_t));
}

/* Images start .. start + batch - 1 of the order, normalised, into the network's input and labels. */
static inline void image_set_gather(const ImageSet *set, Model *net, int start, int batch) {
  model_expect_batch(net, batch);
  ON_DEVICE(set->device,
            batch_gather_gpu(model_input(net, 0), model_labels(net), set->images, set->labels, set->order + start,
                             batch, set->pixels, set->mean, set->stddev),
            batch_gather_cpu_fast(model_input(net, 0), model_labels(net), set->images, set->labels, set->order + start,
                                  batch, set->pixels, set->mean, set->stddev));
}

/* Loss and right answers over the whole set; with `probabilities` (count, classes) != NULL also what the network said,
 * in the set's order. The network's totals are left at the set's sums. */
static inline Totals image_set_evaluate(const ImageSet *set, Model *net, float *probabilities) {
  Totals none = {0, 0};
  model_reset_totals(net, 0, none);
  for (int start = 0; start < set->count; start += net->max_batch) {
    int batch = set->count - start < net->max_batch ? set->count - start : net->max_batch;
    image_set_gather(set, net, start, batch);
    model_evaluate_step(net, batch);
    if (probabilities)
      device_download(set->device, probabilities + (size_t)start * model_classes(net), model_loss_saved(net, 0),
                      (size_t)batch * model_classes(net) * sizeof(float));
  }
  return model_read_totals(net, 0);
}

#endif /* PHASE2_MLP_IMAGE_SET_CUH */
