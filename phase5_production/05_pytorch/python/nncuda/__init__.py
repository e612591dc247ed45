"""nncuda: this course's CUDA kernels as PyTorch operations, layers and optimizers.

    import nncuda
    y = nncuda.softmax(x)                          # a tensor on a GPU, or on the CPU
    model = nncuda.FashionMNISTCNN().cuda()        # layers with torch.nn's parameter names
    loss = nncuda.CrossEntropyLoss()(model(images), labels)
    loss.backward()                                # our backward kernels
    model, history = nncuda.train_fashion_mnist_cuda(epochs=5)
    fast = nncuda.ops.fused_ops.optimize_resnet18(torchvision.models.resnet18().eval())

The kernels are in libnncuda.so.1, a library of C functions (nncuda.h), which is found by _library.py and called through
ctypes, or through the torch extension where that is built (backend.py).
"""
from . import _library, backend, data, functional, models, modules, operators, ops, optim, training
from ._library import host, library, stream
from .backend import build_extension, set_backend
from .functional import (add_relu, avg_pool2d, batch_norm, conv2d, conv2d_nhwc, cross_entropy, dropout,
                         global_avg_pool2d, layer_norm, leaky_relu, linear, matmul, max_pool2d, relu,
                         scaled_dot_product_attention, sigmoid, softmax, stem_pool2d, tanh)
from .models import FashionMNISTCNN, TinyImageNetCNN, load_checkpoint
from .modules import (AdaptiveAvgPool2d, AvgPool2d, BatchNorm2d, Conv2d, CrossEntropyLoss, Dropout, LayerNorm,
                      LeakyReLU, Linear, MaxPool2d, ReLU, Sigmoid, Softmax, Tanh, convert, load_state)
from .training import evaluate_accuracy, train_fashion_mnist_cuda

__version__ = "1.0.0"

backend.initialize()
