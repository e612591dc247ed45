"""Fusion in torchvision's ResNets of basic blocks, resnet18 and resnet34, for inference.

    fast = optimize_resnet18(model)                 # the original is untouched
    fast = optimize_resnet18(model, fuse=("add_relu",))
    fast = optimize_resnet18(model, precision="float16")    # tensor cores, channels last

A basic block is  h = relu(bn1(conv1(x)));  y = relu(bn2(conv2(h)) + shortcut(x)). What each fusion replaces:

    add_relu     y = relu(a + b): one kernel reads both and writes once; apart, the sum is written, read and written
                 again
    conv_relu    the ReLU behind a convolution. In these networks batch norm stands between the two: the convolution by
                 our kernel, then batch norm and ReLU in one kernel
    conv_bn      batch norm in evaluation is y = scale x + shift: it disappears into the convolution's weights and bias,
                 and bias, addition and ReLU are done by the convolution on its results, before they are written

conv_bn and conv_relu together also take the max pooling behind the first convolution into one call with it.

conv_bn without add_relu or conv_relu leaves that operation as PyTorch has it. Results differ from the original's by
rounding alone: sums are made in another order, and folding rounds the weights once more.
"""
import copy

import torch
from torch import nn

from .. import backend, functional, modules
from .._checks import kind

FUSIONS = ("add_relu", "conv_relu", "conv_bn")


PRECISIONS = {"float32": torch.float32, "tf32": torch.float32, "float16": torch.float16, "bfloat16": torch.bfloat16}


def _round_tf32(x):
    """The nearest numbers of 11 bits. wgmma cuts the other bits off, which makes every weight smaller."""
    bits = (x.view(torch.int32) + 0x1000) & ~0x1FFF
    return torch.where(x.isfinite(), bits.view(torch.float32), x)


class FusedConv2d(nn.Module):
    """A convolution with batch norm folded in: relu?(conv(x) + bias + residual). In float32 it is NCHW and has
    float32's precision; in the others it runs on tensor cores, channels last, and the bias stays float32."""

    def __init__(self, conv, bn, relu, precision="float32"):
        super().__init__()
        with torch.no_grad():
            weight, bias = backend.ops.fold_batch_norm(conv.weight, conv.bias, bn.weight, bn.bias, bn.running_mean,
                                                       bn.running_var, bn.eps)
        self.tensor_cores, self.dtype = precision != "float32", PRECISIONS[precision]
        if precision == "tf32":
            weight = _round_tf32(weight)
        if self.tensor_cores:
            weight = weight.to(self.dtype).contiguous(memory_format=torch.channels_last)
        self.weight, self.bias = nn.Parameter(weight, requires_grad=False), nn.Parameter(bias, requires_grad=False)
        self.arguments = (conv.stride, conv.padding, conv.dilation, conv.groups)
        self.relu, self.precision = relu, precision

    def forward(self, x, residual=None):
        if self.tensor_cores:
            x = x if x.dtype is self.dtype else x.to(self.dtype)
            return functional.conv2d_nhwc(x, self.weight, self.bias, *self.arguments, residual=residual, relu=self.relu)
        return functional.conv2d(x, self.weight, self.bias, *self.arguments, residual=residual, relu=self.relu)

    def extra_repr(self):
        return "%s, stride=%r, padding=%r, relu=%r, %s" % (tuple(self.weight.shape), *self.arguments[:2], self.relu,
                                                           self.precision)


class FusedStem(FusedConv2d):
    """The beginning of a ResNet: convolution, batch norm, ReLU and max pooling. What the convolution gives, the largest
    array of the network, is never in memory as a whole. On tensor cores it takes pictures as they come, float32 and
    NCHW."""

    def __init__(self, conv, bn, pool, precision):
        super().__init__(conv, bn, True, precision)
        self.stride, self.padding = conv.stride, conv.padding
        self.windows = [(n, n) if isinstance(n, int) else tuple(n)
                        for n in (pool.kernel_size, pool.stride, pool.padding)]

    def forward(self, x):
        if not self.tensor_cores and torch.is_grad_enabled() and x.requires_grad:  # float32 has gradients
            x = functional.conv2d(x, self.weight, self.bias, self.stride, self.padding, relu=True)
            return functional.max_pool2d(x, *self.windows)
        return functional.stem_pool2d(x.float(), self.weight, self.bias, self.stride, self.padding, *self.windows,
                                      tensor_cores=self.tensor_cores)


def _stem_fits(conv, pool, precision):
    """Whether stem_pool2d() has a kernel. In float32 it takes two, for every shape."""
    if type(pool) not in (nn.MaxPool2d, modules.MaxPool2d) or pool.ceil_mode or pool.return_indices or (
            pool.dilation not in (1, (1, 1))):
        return False
    if conv.groups != 1 or conv.dilation != (1, 1):
        return False
    sizes = (conv.in_channels, conv.kernel_size, conv.stride, conv.padding, conv.out_channels % 8)
    windows = [(n, n) if isinstance(n, int) else tuple(n) for n in (pool.kernel_size, pool.stride, pool.padding)]
    return precision == "float32" or (sizes == (3, (7, 7), (2, 2), (3, 3), 0) and windows == [(3, 3), (2, 2), (1, 1)])


class MeanInFloat32(nn.Module):
    """Global average pooling whose result is float32 whatever comes in: the linear layer behind it stays in float32."""

    def forward(self, x):
        return torch.mean(x, (2, 3), keepdim=True, dtype=torch.float32)


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


def _conv_bn_relu(conv, bn, fuse, precision):
    if "conv_bn" in fuse and "conv_relu" in fuse:
        return FusedConv2d(conv, bn, True, precision)
    if "conv_bn" in fuse:
        return nn.Sequential(FusedConv2d(conv, bn, False), nn.ReLU())
    return ConvNormRelu(conv, bn) if "conv_relu" in fuse else nn.Sequential(conv, bn, nn.ReLU())


def _conv_bn(conv, bn, fuse, precision):
    return FusedConv2d(conv, bn, False, precision) if "conv_bn" in fuse else nn.Sequential(conv, bn)


def _block(block, fuse, precision):
    downsample = None
    if block.downsample is not None:
        downsample = _conv_bn(block.downsample[0], block.downsample[1], fuse, precision)
    first = _conv_bn_relu(block.conv1, block.bn1, fuse, precision)
    if "conv_bn" in fuse and "add_relu" in fuse:
        second, join = FusedConv2d(block.conv2, block.bn2, True, precision), None
    else:
        second, join = _conv_bn(block.conv2, block.bn2, fuse, precision), AddThenRelu()
        if "add_relu" in fuse:
            join = AddRelu()
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
        if isinstance(layer, nn.BatchNorm2d) and (layer.weight is None or layer.eps != 1e-5):
            raise NotImplementedError("optimize_resnet18: %s has affine=%r and eps=%r; expected True and 1e-05, a "
                                      "constant of the kernels" % (name, layer.affine, layer.eps))
        if name.endswith(("bn1", "bn2")) and not isinstance(layer, nn.BatchNorm2d):
            raise NotImplementedError("optimize_resnet18: %s is %s; expected a BatchNorm2d" % (name, kind(layer)))
    for name, p in model.named_parameters():
        if p.dtype is not torch.float32:
            raise TypeError("optimize_resnet18: %s has dtype %s; expected torch.float32: convert the model with "
                            "model.float()" % (name, p.dtype))
    unknown = sorted(set(fuse) - set(FUSIONS))
    if unknown:
        raise ValueError("optimize_resnet18: fuse has %r; expected some of %s" % (unknown[0], ", ".join(FUSIONS)))


def _precision(model, fuse, wanted):
    """float32 or what was asked for; None: what PyTorch itself would use for this model."""
    whole = set(fuse) == set(FUSIONS)
    if wanted is None:
        return "tf32" if whole and model.conv1.weight.is_cuda and torch.backends.cudnn.allow_tf32 else "float32"
    if wanted not in PRECISIONS:
        raise ValueError("optimize_resnet18: precision is %r; expected None or one of %s"
                         % (wanted, ", ".join(PRECISIONS)))
    if wanted != "float32" and not whole:
        raise ValueError("optimize_resnet18: precision is %r with fuse=%r; expected all of %s: the convolution by "
                         "tensor cores does all of it" % (wanted, fuse, ", ".join(FUSIONS)))
    return wanted


def optimize_resnet18(model, inplace=False, fuse=FUSIONS, precision=None):
    """The same network with fused operations, for inference.

    inplace    changes `model`, which costs no second copy of the weights
    fuse       some of FUSIONS; none of them gives a copy that computes as the original
    precision  of the convolutions: "float32"; "tf32", "float16", "bfloat16" by tensor cores. None: "tf32" where the
               model is on a GPU and torch.backends.cudnn.allow_tf32 is True, as PyTorch's own convolutions then, else
               "float32"
    """
    fuse = (fuse,) if isinstance(fuse, str) else tuple(fuse)
    _check(model, fuse)
    precision = _precision(model, fuse, precision)
    if not inplace:
        model = copy.deepcopy(model)
    if fuse:
        if {"conv_bn", "conv_relu"} <= set(fuse) and _stem_fits(model.conv1, model.maxpool, precision):
            model.conv1 = FusedStem(model.conv1, model.bn1, model.maxpool, precision)
            model.maxpool = nn.Identity()
        else:
            model.conv1 = _conv_bn_relu(model.conv1, model.bn1, fuse, precision)
        model.bn1, model.relu = nn.Identity(), nn.Identity()
        for name, layer in list(model.named_children()):
            if name.startswith("layer"):
                setattr(model, name, nn.Sequential(*(_block(block, fuse, precision) for block in layer)))
        if precision in ("float16", "bfloat16"):
            model.avgpool = MeanInFloat32()
    model.fused_by_nncuda = fuse
    return model.eval().requires_grad_(False)
