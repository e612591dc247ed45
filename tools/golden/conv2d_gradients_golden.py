#!/usr/bin/env python3
"""Makes phase3_cnn/06_conv2d_backward/testdata/conv2d_gradients_golden.safetensors: the gradients of convolutions as
PyTorch computes them, for conv2d_backward_golden_test.

In float64, stored as float32. The inputs are multiples of 1/16 between -1.5 and 1.5, which bfloat16 and half hold
exactly, and products and sums of them are exact in float32. So every kernel must give the same numbers.

    python3 tools/golden/conv2d_gradients_golden.py phase3_cnn/06_conv2d_backward/testdata/conv2d_gradients_golden.safetensors
    (needs python3-torch)
"""
import sys

import torch
from torch import nn

from lenet_golden import write_safetensors

#  N, C, H,  W,  K, R, S, stride, padding, dilation, groups
SHAPES = [
    (3, 5, 9, 8, 7, 3, 3, 1, 1, 1, 1, 1, 1, 1),
    (2, 6, 11, 10, 4, 3, 5, 2, 3, 1, 2, 1, 1, 2),
    (2, 4, 12, 9, 6, 3, 2, 1, 2, 2, 0, 2, 3, 1),
    (2, 3, 8, 7, 2, 2, 1, 3, 2, 0, 0, 1, 1, 1),  # no filter reads some of the inputs
    (2, 8, 7, 6, 16, 3, 3, 2, 2, 1, 1, 1, 1, 1),  # in NHWC: copies of 16 bytes
    (3, 6, 7, 5, 6, 3, 3, 1, 1, 1, 1, 1, 1, 6),  # depthwise
]


def random(*size):
    return torch.randint(-24, 25, size).double() / 16


def main():
    torch.manual_seed(6)
    tensors = {"shapes": torch.tensor(SHAPES)}
    for i, (n, c, h, w, k, r, s, stride_h, stride_w, padding_h, padding_w, dilation_h, dilation_w,
            groups) in enumerate(SHAPES):
        x, weight, bias = random(n, c, h, w), random(k, c // groups, r, s), random(k)
        for tensor in (x, weight, bias):
            tensor.requires_grad_()
        y = nn.functional.conv2d(x, weight, bias, (stride_h, stride_w), (padding_h, padding_w),
                                 (dilation_h, dilation_w), groups)
        dy = random(*y.shape)
        y.backward(dy)
        tensors.update({"%d.x" % i: x, "%d.w" % i: weight, "%d.dy" % i: dy, "%d.dx" % i: x.grad,
                        "%d.dw" % i: weight.grad, "%d.dbias" % i: bias.grad})
        for gradient in (x.grad, weight.grad, bias.grad):
            assert (gradient.float().double() == gradient).all()  # exact in float32
    write_safetensors(sys.argv[1], tensors,
                      {"made_by": "tools/golden/conv2d_gradients_golden.py", "torch": torch.__version__})


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main()
