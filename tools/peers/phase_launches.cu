/* phase_launches.cu - every kernel of the phases once, for a comparison of the inspector with a GPU's counters.
 *
 *     simt/test/hardware/measure.sh OUT phases phase_launches      on a GPU: OUT/phases.csv
 *
 * One training step of LeNet-5 on random images, and the kernels that it does not use. With as many multiprocessors as
 * the GPU has (SIMT_MULTIPROCESSORS=132 for an H200) the emulator makes the same launches. */
#include "phase1_building_blocks/11_random_init/random_init.cuh"
#include "phase2_mlp/05_batches/batches.cuh"
#include "phase3_cnn/12_lenet_mnist/lenet.cuh"

enum { BATCH = 64, IMAGES = 256, PIXELS = 28 * 28 };

static void train_step(void) {
  static Model lenet;
  static uint8_t pixels[IMAGES * PIXELS], labels[IMAGES];
  static uint32_t order[IMAGES];
  lenet_create(&lenet, DEVICE_GPU, BATCH);
  Model *net = &lenet;
  model_init(net, 1);
  for (size_t i = 0; i < sizeof pixels; i++) pixels[i] = (uint8_t)philox4x32(1, 1, i).word[0];
  for (int i = 0; i < IMAGES; i++) labels[i] = (uint8_t)(philox4x32(1, 2, i).word[0] % 10);
  batches_shuffle(order, IMAGES, 1, 0);
  uint8_t *device_pixels = (uint8_t *)device_alloc(DEVICE_GPU, sizeof pixels);
  uint8_t *device_labels = (uint8_t *)device_alloc(DEVICE_GPU, sizeof labels);
  uint32_t *device_order = (uint32_t *)device_alloc(DEVICE_GPU, sizeof order);
  device_upload(DEVICE_GPU, device_pixels, pixels, sizeof pixels);
  device_upload(DEVICE_GPU, device_labels, labels, sizeof labels);
  device_upload(DEVICE_GPU, device_order, order, sizeof order);
  batch_gather_blocks(model_input(net, 0), model_labels(net), device_pixels, device_labels, device_order, BATCH, PIXELS,
                      0.5f, 0.29f);
  sgd_train_step(net, BATCH, 0.01f, 0.9f);
  device_free(DEVICE_GPU, device_pixels);
  device_free(DEVICE_GPU, device_labels);
  device_free(DEVICE_GPU, device_order);
  model_close(net);
}

static void other_kernels(void) {
  const Conv2dShape s = conv2d_shape(5, 6, 14, 14, 16, 5, 5, 2, 1);
  size_t x_size = (size_t)s.n * s.c * s.h * s.w, y_size = (size_t)s.n * s.k * conv2d_out_h(s) * conv2d_out_w(s);
  size_t w_size = (size_t)s.k * s.c * s.r * s.s;
  float *x = (float *)device_alloc(DEVICE_GPU, x_size * sizeof(float));
  float *w = (float *)device_alloc(DEVICE_GPU, w_size * sizeof(float));
  float *y = (float *)device_alloc(DEVICE_GPU, y_size * sizeof(float));
  random_uniform_fill_gpu(x, x_size, -1, 1, 1, 1);
  random_uniform_fill_gpu(w, w_size, -1, 1, 1, 2);
  conv2d_forward_naive(y, x, w, NULL, s);
  conv2d_backward_input_gpu(x, y, w, s); /* stride 2 */
  for (int i = 0; i < 4; i++) matmul_gpu(y, x, w, 21, 33, 45, i & 1, i >> 1, false);
  float *c = (float *)device_alloc(DEVICE_GPU, 520 * 520 * sizeof(float)); /* large enough for the large tiles */
  matmul_gpu(c, x, w, 520, 520, 4, false, false, false);
  device_free(DEVICE_GPU, c);
  device_free(DEVICE_GPU, x);
  device_free(DEVICE_GPU, w);
  device_free(DEVICE_GPU, y);
}

int main(void) {
  train_step();
  other_kernels();
  device_synchronize(DEVICE_GPU);
  return 0;
}
