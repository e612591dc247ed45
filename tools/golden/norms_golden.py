#!/usr/bin/env python3
"""Makes phase3_cnn/10_batch_norm/testdata/norms_golden.h: what PyTorch computes, for norms_test.

    python3 tools/golden/norms_golden.py > phase3_cnn/10_batch_norm/testdata/norms_golden.h && tools/format      (needs python3-torch)

In float64 on float32 inputs, rounded to float32: LayerNorm over the last dimension and InstanceNorm2d with and without
weight and bias, and their gradients; the gradients of a network of them.
"""
import torch
from torch import nn

from arrays import array, head

N, C, H, W = 2, 3, 3, 5


def gradients(module, x, dy):
    leaf = x.clone().requires_grad_()
    y = module(leaf)
    y.backward(dy)
    return y.detach(), leaf.grad


def affine(module):
    with torch.no_grad():
        module.weight.copy_(torch.randn(module.weight.shape))
        module.bias.copy_(torch.randn(module.bias.shape))
    return module


def main():
    torch.manual_seed(2026)
    x = (torch.randn(N, C, H, W) * 2 + 3).double()
    dy = torch.randn(N, C, H, W).double()
    layer = affine(nn.LayerNorm(W)).double()
    instance = affine(nn.InstanceNorm2d(C, affine=True)).double()
    tensors = {"x": x, "dy": dy}
    for name, module in (("layer", layer), ("instance", instance), ("plain", nn.InstanceNorm2d(C))):
        tensors[name + "_y"], tensors[name + "_dx"] = gradients(module, x, dy)
        for parameter, tensor in module.named_parameters():
            tensors[name + "_" + parameter], tensors[name + "_d" + parameter] = tensor.detach(), tensor.grad
    labels = torch.tensor([1, 0])
    net = nn.Sequential()
    net.add_module("first", nn.InstanceNorm2d(C))
    net.add_module("second", affine(nn.InstanceNorm2d(C, affine=True)))
    net.add_module("last", affine(nn.LayerNorm(W)))
    net.add_module("all", affine(nn.LayerNorm((C, H, W))))
    net.add_module("flatten", nn.Flatten())
    net.add_module("fc", nn.Linear(C * H * W, 2))
    nn.functional.cross_entropy(net.double()(x), labels).backward()
    for name, tensor in net.named_parameters():
        tensors["net_" + name.replace(".", "_")] = tensor.detach()
        tensors["net_" + name.replace(".", "_d")] = tensor.grad
    print(head())
    print("enum { GOLDEN_N = %d, GOLDEN_C = %d, GOLDEN_H = %d, GOLDEN_W = %d };\n" % (N, C, H, W))
    print("\n".join(array(name, tensor) for name, tensor in tensors.items()), end="")


if __name__ == "__main__":
    main()
