/* conv2d_duel.cuh - all methods of this phase in one list, the layers that they compete on, and a model of their costs.
 *
 *   conv2d_duel_method    every Conv2dMethod of lessons 1 to 8, by its number
 *   conv2d_duel_layers    the layers of LeNet-5, the Fashion CNN, ResNet-18 and VGG, and a few others
 *   conv2d_cost           what a method has to compute and to move for a layer; conv2d_cost.cuh makes seconds of it
 *   conv2d_duel_choose    the method that the model expects to win
 */
#ifndef PHASE3_CNN_CONV2D_DUEL_CUH
#define PHASE3_CNN_CONV2D_DUEL_CUH

#include "phase3_cnn/01_conv2d_naive/conv2d_naive_method.cuh"
#include "phase3_cnn/08_conv2d_duel/conv2d_choice_op.cuh"
#include "phase3_cnn/08_conv2d_duel/conv2d_cost.cuh"

/* The first two are those of lesson 1; the kernels of the others are in the library of conv2d_choice_op.cuh. */
enum { CONV2D_DUEL_METHODS = sizeof conv2d_implementations / sizeof *conv2d_implementations };

static inline const Conv2dMethod *conv2d_duel_method(int i) {
  if (conv2d_implementations[i].op == &conv2d_op) return &conv2d_tiled_method;
  if (conv2d_implementations[i].op == &conv2d_naive_op) return &conv2d_naive_method;
  return ((const Conv2dMethodOp *)conv2d_implementations[i].op)->method;
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* Layers */

typedef struct Conv2dDuelLayer {
  const char *network, *name;
  Conv2dShape shape; /* of one image */
} Conv2dDuelLayer;

/* A square image and square filters. */
static inline Conv2dDuelLayer conv2d_duel_layer(const char *network, const char *name, int c, int side, int k,
                                                int filter, int stride, int padding) {
  Conv2dDuelLayer layer = {network, name, conv2d_shape(1, c, side, side, k, filter, filter, stride, padding)};
  return layer;
}

enum { CONV2D_DUEL_LAYERS = 25 };

/* How many; the batch is the caller's choice. */
static inline int conv2d_duel_layers(Conv2dDuelLayer layers[CONV2D_DUEL_LAYERS]) {
  const Conv2dDuelLayer all[CONV2D_DUEL_LAYERS] = {
      conv2d_duel_layer("lenet", "conv1", 1, 28, 6, 5, 1, 2),
      conv2d_duel_layer("lenet", "conv2", 6, 14, 16, 5, 1, 0),
      conv2d_duel_layer("fashion", "conv1", 1, 28, 64, 3, 1, 0),
      conv2d_duel_layer("fashion", "conv2", 64, 13, 128, 3, 1, 0),
      conv2d_duel_layer("resnet18", "conv1", 3, 224, 64, 7, 2, 3),
      conv2d_duel_layer("resnet18", "layer1", 64, 56, 64, 3, 1, 1),
      conv2d_duel_layer("resnet18", "layer2.0", 64, 56, 128, 3, 2, 1),
      conv2d_duel_layer("resnet18", "layer2.0 short", 64, 56, 128, 1, 2, 0),
      conv2d_duel_layer("resnet18", "layer2", 128, 28, 128, 3, 1, 1),
      conv2d_duel_layer("resnet18", "layer3.0", 128, 28, 256, 3, 2, 1),
      conv2d_duel_layer("resnet18", "layer3.0 short", 128, 28, 256, 1, 2, 0),
      conv2d_duel_layer("resnet18", "layer3", 256, 14, 256, 3, 1, 1),
      conv2d_duel_layer("resnet18", "layer4.0", 256, 14, 512, 3, 2, 1),
      conv2d_duel_layer("resnet18", "layer4.0 short", 256, 14, 512, 1, 2, 0),
      conv2d_duel_layer("resnet18", "layer4", 512, 7, 512, 3, 1, 1),
      conv2d_duel_layer("vgg", "conv1_2", 64, 224, 64, 3, 1, 1),
      conv2d_duel_layer("vgg", "conv2_2", 128, 112, 128, 3, 1, 1),
      conv2d_duel_layer("vgg", "conv3_2", 256, 56, 256, 3, 1, 1),
      conv2d_duel_layer("vgg", "conv4_2", 512, 28, 512, 3, 1, 1),
      conv2d_duel_layer("vgg", "conv5_2", 512, 14, 512, 3, 1, 1),
      conv2d_duel_layer("other", "1x1", 256, 56, 64, 1, 1, 0),
      conv2d_duel_layer("other", "7x7", 64, 56, 64, 7, 1, 3),
      conv2d_duel_layer("other", "dilated", 64, 56, 64, 3, 1, 2),
      conv2d_duel_layer("other", "4 groups", 128, 28, 128, 3, 1, 1),
      conv2d_duel_layer("other", "depthwise", 128, 56, 128, 3, 1, 1),
  };
  memcpy(layers, all, sizeof all);
  layers[22].shape.dilation_h = layers[22].shape.dilation_w = 2;
  layers[23].shape.groups = 4;
  layers[24].shape.groups = 128;
  return CONV2D_DUEL_LAYERS;
}

/* A layer that a CPU can emulate: of the same kind, with at most 8 channels and filters and 13 x 13 pixels. */
static inline Conv2dShape conv2d_duel_scaled(Conv2dShape s) {
  const int depthwise = s.groups == s.c;
  s.n = 2;
  s.c = s.c < 8 ? s.c : 8;
  s.k = s.k < 8 ? s.k : 8;
  s.h = s.w = s.h < 13 ? s.h : 13;
  if (depthwise)
    s.groups = s.c;
  else if (s.groups > 1)
    s.groups = 2;
  return s;
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* The model */

/* The tiles of fft in the model, at least twice the filter; lesson 5 also weighs what the filters' spectra cost. */
static inline int conv2d_cost_tile(Conv2dShape s) {
  const int filter = s.r > s.s ? s.r : s.s;
  return filter <= 8 ? 16 : filter <= 16 ? 32 : 64;
}

/* The rates: what each method reached on its best layer, README.md of its lesson. */
static inline Conv2dCost conv2d_cost(const Conv2dMethod *method, Conv2dShape s) {
  const double x = sizeof(float) * (double)conv2d_x_count(s), y = sizeof(float) * (double)conv2d_y_count(s);
  const double w = sizeof(float) * (double)conv2d_w_count(s),
               matrix = y / s.k * (s.c / s.groups) * s.r * s.s * s.groups;
  Conv2dCost cost = {conv2d_flops(s), x + w + y, 0.6, 1};
  const char *name = method->name;
  if (strcmp(name, "naive") == 0) {
    cost.rate = 0.03;
  } else if (strcmp(name, "tiled") == 0) {
    cost.rate = 0.15;
  } else if (strcmp(name, "small") == 0) {
    cost.rate = 0.3;
  } else if (strcmp(name, "depthwise") == 0) {
    cost.rate = 0.3;
  } else if (strcmp(name, "im2col") == 0) {
    const int pointwise = s.r * s.s == 1 && s.stride_h == 1 && s.stride_w == 1;
    cost.bytes += pointwise ? 0 : 2 * matrix; /* written, and read by the product */
    cost.launches = 3;
  } else if (strcmp(name, "winograd") == 0) {
    const double tiles = (double)s.n * ((conv2d_out_h(s) + 3) / 4) * ((conv2d_out_w(s) + 3) / 4);
    cost.flops = 2 * 36 * tiles * s.c * s.k; /* 36 products for 4 x 4 outputs, per channel and filter */
    cost.bytes += 2 * sizeof(float) * 36 * (tiles * s.c + tiles * s.k + (double)s.c * s.k);
    cost.launches = 4; /* three transforms, one product */
  } else if (strcmp(name, "fft") == 0) {
    const int tile = conv2d_cost_tile(s), step = tile - (s.r > s.s ? s.r : s.s) + 1;
    const int frequencies = tile * (tile / 2 + 1);
    const double tiles = (double)s.n * ((conv2d_out_h(s) + step - 1) / step) * ((conv2d_out_w(s) + step - 1) / step);
    cost.flops = 8 * frequencies * tiles * s.c * s.k; /* a complex product and its sum */
    cost.bytes += 2 * 2 * sizeof(float) * frequencies * (tiles * s.c + tiles * s.k + (double)s.c * s.k);
    cost.launches = 4;
  } else if (strcmp(name, "implicit_gemm") == 0) {
    const int filters = s.k / s.groups, tile = filters <= 32 ? 32 : 64; /* empty filters of a tile are computed, too */
    cost.flops *= (double)((filters + tile - 1) / tile * tile) / filters;
    cost.launches = 2; /* the filters are packed first */
  }
  return cost;
}

/* The index of the method that the model expects to be fastest, of those that can compute the layer. */
static inline int conv2d_duel_choose(Conv2dShape s, Conv2dMachine machine) {
  int best = 0;
  double least = INFINITY;
  for (int i = 0; i < CONV2D_DUEL_METHODS; i++) {
    const Conv2dMethod *method = conv2d_duel_method(i);
    Error err;
    if (method->fits && method->fits(s, &err) != 0) continue;
    const double seconds = conv2d_cost_seconds(conv2d_cost(method, s), machine);
    if (seconds >= least) continue;
    least = seconds;
    best = i;
  }
  return best;
}

/* Why this method wins, in one sentence. */
typedef struct Conv2dReason {
  char text[200];
} Conv2dReason;

static inline Conv2dReason conv2d_duel_reason(const char *name, Conv2dShape s) {
  Conv2dReason r;
  const double image = 4e-3 * (double)conv2d_x_count(s) / s.n, filters = 4e-3 * (double)conv2d_w_count(s);
  const double products = (double)(s.c / s.groups) * s.r * s.s;
  const double matrix = 4e-6 * products * s.groups * (double)conv2d_y_count(s) / s.k;
  if (strcmp(name, "small") == 0)
    snprintf(r.text, sizeof r.text, "an image (%.1f KB) and all filters (%.1f KB) fit into shared memory", image,
             filters);
  else if (strcmp(name, "implicit_gemm") == 0)
    snprintf(r.text, sizeof r.text, "a large matrix product, and the matrix of %.1f MB is never written", matrix);
  else if (strncmp(name, "im2col", 6) == 0)
    snprintf(r.text, sizeof r.text,
             s.r * s.s == 1 && s.stride_h * s.stride_w == 1 ? "x is already the matrix of the product"
             : matrix < 50                                  ? "the matrix of %.1f MB stays in the cache"
                           : "the kernels of a plain matrix product are faster, by more than a matrix of %.1f MB costs",
             matrix);
  else if (strncmp(name, "winograd", 8) == 0)
    snprintf(r.text, sizeof r.text, "3 x 3: 36 products for 4 x 4 outputs instead of 144");
  else if (strncmp(name, "fft", 3) == 0) {
    const int tile = conv2d_cost_tile(s);
    snprintf(r.text, sizeof r.text,
             "by transforms of %d x %d, %.1f products per output, channel and filter instead of %d", tile, tile,
             4.0 * tile * (tile / 2 + 1) / ((tile + 1 - s.r) * (tile + 1 - s.s)), s.r * s.s);
  } else if (strcmp(name, "depthwise") == 0)
    snprintf(r.text, sizeof r.text, "%.0f products per output: memory is the limit, and each input is read once",
             products);
  else if (strcmp(name, "tiled") == 0)
    snprintf(r.text, sizeof r.text, "too few pixels or filters for tiles of a matrix product");
  else
    snprintf(r.text, sizeof r.text, "%.0f products per output are too few for anything else to pay", products);
  return r;
}

#endif /* PHASE3_CNN_CONV2D_DUEL_CUH */
