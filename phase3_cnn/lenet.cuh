/* lenet.cuh - LeNet-5 as a Network (LeCun et al., "Gradient-based learning applied to document recognition", 1998; with
 * ReLU and max pooling, as it is taught today).
 *
 *     layer    output        parameters
 *     input     1 x 28 x 28
 *     conv1     6 x 28 x 28         156   5x5, padding 2, then ReLU
 *     pool1     6 x 14 x 14               max of 2x2
 *     conv2    16 x 10 x 10       2,416   5x5, then ReLU
 *     pool2    16 x  5 x  5               max of 2x2
 *     fc1     120                48,120   then ReLU
 *     fc2      84                10,164   then ReLU
 *     fc3      10                   850   the logits
 *                                61,706
 */
#ifndef PHASE3_CNN_LENET_CUH
#define PHASE3_CNN_LENET_CUH

#include "phase2_mlp/network.cuh"
#include "phase3_cnn/cnn_layers.cuh"

typedef struct Lenet {
  Conv2dLayer conv1;
  ReluLayer relu1;
  MaxPool2dLayer pool1;
  Conv2dLayer conv2;
  ReluLayer relu2;
  MaxPool2dLayer pool2;
  LinearLayer fc1;
  ReluLayer relu3;
  LinearLayer fc2;
  ReluLayer relu4;
  LinearLayer fc3;
  Network network;
} Lenet;

/* The network points into *net: don't copy it. */
static inline void lenet_create(Lenet *net, Device device, int max_batch) {
  net->conv1 = conv2d_layer("conv1", 1, 28, 28, 6, 5, 1, 2);
  net->relu1 = relu_layer("relu1", 6 * 28 * 28);
  net->pool1 = max_pool2d_layer("pool1", 6, 28, 28, 2, 2);
  net->conv2 = conv2d_layer("conv2", 6, 14, 14, 16, 5, 1, 0);
  net->relu2 = relu_layer("relu2", 16 * 10 * 10);
  net->pool2 = max_pool2d_layer("pool2", 16, 10, 10, 2, 2);
  net->fc1 = linear_layer("fc1", 16 * 5 * 5, 120);
  net->relu3 = relu_layer("relu3", 120);
  net->fc2 = linear_layer("fc2", 120, 84);
  net->relu4 = relu_layer("relu4", 84);
  net->fc3 = linear_layer("fc3", 84, 10);
  Layer *layers[] = {&net->conv1.base, &net->relu1.base, &net->pool1.base, &net->conv2.base,
                     &net->relu2.base, &net->pool2.base, &net->fc1.base,   &net->relu3.base,
                     &net->fc2.base,   &net->relu4.base, &net->fc3.base};
  network_create(&net->network, device, layers, (int)(sizeof layers / sizeof layers[0]), max_batch);
}

#endif /* PHASE3_CNN_LENET_CUH */
