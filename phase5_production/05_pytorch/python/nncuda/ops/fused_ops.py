"""Fusion in torchvision's ResNets of basic blocks, resnet18 and resnet34, for inference.

    fast = optimize_resnet18(model)                 # the original is untouched
    fast = optimize_resnet18(model, fuse=("add_relu",))

A basic block is  h = relu(bn1(conv1(x)));  y = relu(bn2(conv2(h)) + shortcut(x)). What each fusion replaces:

    add_relu     y = relu(a + b): one kernel reads both and writes once; apart, the sum is written, read and written
                 again
    conv_relu    the ReLU behind a convolution. In these networks batch norm stands between the two: the convolution by
                 our kernel, then batch norm and ReLU in one kernel
    conv_bn      batch norm in evaluation is y = scale x + shift: it disappears into the convolution's weights and bias,
                 and bias, addition and ReLU are done by the convolution on its results, before they are written

conv_bn without add_relu or conv_relu leaves that operation as PyTorch has it. Results differ from the original's by
rounding alone: sums are made in another order, and folding rounds the weights once more.
"""
import copy

import torch
from torch import nn

from .. import backend, functional
from .._checks import kind

FUSIONS = ("add_relu", "conv_relu", "conv_bn")


class FusedConv2d(nn.Module):
    """A convolution with batch norm folded in: relu?(conv(x) + bias + residual)."""

    def __init__(self, conv, bn, relu):
        super().__init__()
        with torch.no_grad():
            weight, bias = backend.ops.fold_batch_norm(conv.weight, conv.bias, bn.weight, bn.bias, bn.running_mean,
                                                       bn.running_var, bn.eps)
        self.weight, self.bias = nn.Parameter(weight, requires_grad=False), nn.Parameter(bias, requires_grad=False)
        self.arguments = (conv.stride, conv.padding, conv.dilation, conv.groups)
        self.relu = relu

    def forward(self, x, residual=None):
        return functional.conv2d(x, self.weight, self.bias, *self.arguments, residual=residual, relu=self.relu)

    def extra_repr(self):
        return "%s, stride=%r, padding=%r, relu=%r" % (tuple(self.weight.shape), *self.arguments[:2], self.relu)


class ConvNormRelu(nn.Module):
    """Our convolution, then batch norm and ReLU in one kernel."""

    def __init__(self, conv, bn):
        super().__init__()
        self.conv, self.bn = conv, bn

    def forward(self, x):
        conv, bn = self.conv, self.bn
        x = functional.conv2d(x, conv.weight, conv.bias, conv.stride, conv.padding, conv.dilation, conv.groups)
        return functional.batch_norm(x, bn.running_mean, bn.running_var, bn.weight, bn.bias, eps=bn.eps, relu=True)


class FusedBasicBlock(nn.Module):
    """first: x -> h. second: (h, shortcut) -> y, or h -> what is added to the shortcut where `join` is not None."""

    def __init__(self, first, second, join, downsample):
        super().__init__()
        self.first, self.second, self.join, self.downsample = first, second, join, downsample

    def forward(self, x):
        shortcut = x if self.downsample is None else self.downsample(x)
        h = self.first(x)
        return self.second(h, shortcut) if self.join is None else self.join(self.second(h), shortcut)


class AddRelu(nn.Module):
    def forward(self, a, b):
        return functional.add_relu(a, b)


class AddThenRelu(nn.Module):
    """What torchvision does."""

    def forward(self, a, b):
        return torch.relu_(a + b)


def _conv_bn_relu(conv, bn, fuse):
    if "conv_bn" in fuse and "conv_relu" in fuse:
        return FusedConv2d(conv, bn, True)
    if "conv_bn" in fuse:
        return nn.Sequential(FusedConv2d(conv, bn, False), nn.ReLU())
    return ConvNormRelu(conv, bn) if "conv_relu" in fuse else nn.Sequential(conv, bn, nn.ReLU())


def _conv_bn(conv, bn, fuse):
    return FusedConv2d(conv, bn, False) if "conv_bn" in fuse else nn.Sequential(conv, bn)


def _block(block, fuse):
    downsample = None if block.downsample is None else _conv_bn(block.downsample[0], block.downsample[1], fuse)
    first = _conv_bn_relu(block.conv1, block.bn1, fuse)
    if "conv_bn" in fuse and "add_relu" in fuse:
        second, join = FusedConv2d(block.conv2, block.bn2, True), None
    else:
        second, join = _conv_bn(block.conv2, block.bn2, fuse), AddRelu() if "add_relu" in fuse else AddThenRelu()
    return FusedBasicBlock(first, second, join, downsample)


def _check(model, fuse):
    from torchvision.models.resnet import BasicBlock, ResNet
    if not isinstance(model, ResNet):
        raise TypeError("optimize_resnet18: model is %s; expected a torchvision.models.resnet.ResNet, as resnet18() "
                        "gives%s" % (
            kind(model), ": it has been optimized already" if getattr(model, "fused_by_nncuda", None) else ""))
    if getattr(model, "fused_by_nncuda", None):
        raise ValueError("optimize_resnet18: model has been optimized already (%s); expected the original"
                         % ", ".join(model.fused_by_nncuda))
    if model.training:
        raise ValueError("optimize_resnet18: model is in training mode, where batch norm needs the batch's statistics; "
                         "expected evaluation mode: call model.eval() first")
    for name, layer in model.named_children():
        for i, block in enumerate(layer if name.startswith("layer") else ()):
            if not isinstance(block, BasicBlock):
                raise NotImplementedError("optimize_resnet18: %s.%d is %s; expected a BasicBlock: only resnet18 and "
                                          "resnet34 have them alone" % (name, i, kind(block)))
    for name, layer in model.named_modules():
        if isinstance(layer, nn.modules.batchnorm._NormBase) and (not isinstance(layer, nn.BatchNorm2d)
                                                                  or layer.running_mean is None):
            raise NotImplementedError("optimize_resnet18: %s is %s without running statistics; expected a BatchNorm2d "
                                      "with them"
                                      % (name, kind(layer)))
        if name.endswith(("bn1", "bn2")) and not isinstance(layer, nn.BatchNorm2d):
            raise NotImplementedError("optimize_resnet18: %s is %s; expected a BatchNorm2d" % (name, kind(layer)))
    for name, p in model.named_parameters():
        if p.dtype is not torch.float32:
            raise TypeError("optimize_resnet18: %s has dtype %s; expected torch.float32: convert the model with "
                            "model.float()" % (name, p.dtype))
    unknown = sorted(set(fuse) - set(FUSIONS))
    if unknown:
        raise ValueError("optimize_resnet18: fuse has %r; expected some of %s" % (unknown[0], ", ".join(FUSIONS)))


def optimize_resnet18(model, inplace=False, fuse=FUSIONS):
    """The same network with fused operations, for inference. inplace: changes `model`, which costs no second copy of
    the weights. fuse: some of FUSIONS; none of them gives a copy that computes as the original."""
    fuse = (fuse,) if isinstance(fuse, str) else tuple(fuse)
    _check(model, fuse)
    if not inplace:
        model = copy.deepcopy(model)
    if fuse:
        model.conv1, model.bn1, model.relu = _conv_bn_relu(model.conv1, model.bn1, fuse), nn.Identity(), nn.Identity()
        for name, layer in list(model.named_children()):
            if name.startswith("layer"):
                setattr(model, name, nn.Sequential(*(_block(block, fuse) for block in layer)))
    model.fused_by_nncuda = fuse
    return model.eval().requires_grad_(False)
