"""Layers: torch.nn's own classes with another forward. Parameters, their names in a state_dict, initial values and
options are those of torch.nn, so that weights go back and forth; convert() turns the layers of a model into these.

What our kernels cannot do (padding_mode="reflect", a momentum that is not 0.1, ...) raises when the layer is made, not
in the middle of training.
"""
import sys

import torch
from torch import nn

from . import functional
from ._checks import shape_text


def _only(layer, **expected):
    """Refuses options that have no kernel."""
    for name, value in expected.items():
        seen = getattr(layer, name)
        if seen != value:
            raise NotImplementedError("%s: %s is %r; expected %r: there is no kernel for the other; use torch.nn.%s"
                                      % (type(layer).__name__, name, seen, value, type(layer).__name__))


class Layer:
    """What ours have in common: the constructor is torch.nn's, then check_options()."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.check_options()

    def check_options(self):
        pass


class Conv2d(Layer, nn.Conv2d):
    def check_options(self):
        _only(self, padding_mode="zeros")
        if isinstance(self.padding, str):  # "same" or "valid", which torch.nn.Conv2d has worked out
            sides = list(zip(self._reversed_padding_repeated_twice[::2], self._reversed_padding_repeated_twice[1::2]))
            if any(first != last for first, last in sides):
                raise NotImplementedError("Conv2d: padding is 'same' with kernel_size %r; expected an odd size: there "
                                          "is no kernel for unequal sides; use torch.nn.Conv2d" % (self.kernel_size,))
            self.equal_padding = tuple(first for first, _ in reversed(sides))
        else:
            self.equal_padding = self.padding

    def forward(self, x):
        return functional.conv2d(x, self.weight, self.bias, self.stride, self.equal_padding, self.dilation, self.groups)


class Linear(Layer, nn.Linear):
    def forward(self, x):
        return functional.linear(x, self.weight, self.bias)


class MaxPool2d(Layer, nn.MaxPool2d):
    def check_options(self):
        _only(self, return_indices=False)

    def forward(self, x):
        return functional.max_pool2d(x, self.kernel_size, self.stride, self.padding, self.dilation, self.ceil_mode)


class AvgPool2d(Layer, nn.AvgPool2d):
    def check_options(self):
        _only(self, divisor_override=None)

    def forward(self, x):
        return functional.avg_pool2d(x, self.kernel_size, self.stride, self.padding, self.ceil_mode,
                                     self.count_include_pad)


class AdaptiveAvgPool2d(Layer, nn.AdaptiveAvgPool2d):
    """To 1 x 1 alone."""

    def check_options(self):
        if self.output_size not in (1, (1, 1)):
            raise NotImplementedError("AdaptiveAvgPool2d: output_size is %r; expected 1: there is no kernel for "
                                      "others; use torch.nn.AdaptiveAvgPool2d" % (self.output_size,))

    def forward(self, x):
        return functional.global_avg_pool2d(x)


class LayerNorm(Layer, nn.LayerNorm):
    def check_options(self):
        _only(self, eps=1e-5)

    def forward(self, x):
        return functional.layer_norm(x, self.normalized_shape, self.weight, self.bias, self.eps)


class BatchNorm2d(Layer, nn.BatchNorm2d):
    def check_options(self):
        _only(self, eps=1e-5, momentum=0.1, track_running_stats=True)

    def forward(self, x, relu=False, residual=None):
        if self.training:
            self.num_batches_tracked.add_(1)
        return functional.batch_norm(x, self.running_mean, self.running_var, self.weight, self.bias, self.training,
                                     self.momentum, self.eps, relu=relu, residual=residual)


class ReLU(Layer, nn.ReLU):
    """`inplace` is accepted, and a new tensor is written."""

    def forward(self, x):
        return functional.relu(x)


class LeakyReLU(Layer, nn.LeakyReLU):
    def check_options(self):
        _only(self, negative_slope=0.01)

    def forward(self, x):
        return functional.leaky_relu(x)


class Sigmoid(Layer, nn.Sigmoid):
    def forward(self, x):
        return functional.sigmoid(x)


class Tanh(Layer, nn.Tanh):
    def forward(self, x):
        return functional.tanh(x)


class Dropout(Layer, nn.Dropout):
    def forward(self, x):
        return functional.dropout(x, self.p, self.training)


class Softmax(Layer, nn.Softmax):
    def forward(self, x):
        if self.dim is not None:
            return functional.softmax(x, self.dim)
        return functional.softmax(x, 0 if x.dim() in (0, 1, 3) else 1)  # torch.nn's choice, which warns of it


class CrossEntropyLoss(Layer, nn.CrossEntropyLoss):
    def check_options(self):
        _only(self, weight=None)
        if self.reduction not in ("mean", "sum"):
            raise NotImplementedError("CrossEntropyLoss: reduction is %r; expected 'mean' or 'sum': there is no kernel "
                                      "for others; use torch.nn.CrossEntropyLoss" % (self.reduction,))

    def forward(self, input, target):
        return functional.cross_entropy(input, target, self.ignore_index, self.reduction, self.label_smoothing)


_LAYERS = (Conv2d, Linear, MaxPool2d, AvgPool2d, AdaptiveAvgPool2d, LayerNorm, BatchNorm2d, ReLU, LeakyReLU, Sigmoid,
           Tanh, Dropout, Softmax, CrossEntropyLoss)
_OURS = {base: ours for ours in _LAYERS for base in ours.__bases__ if base is not Layer}  # by the class of torch.nn


def _fuse_residual(model):
    """torchvision's ResNets where all norms and ReLUs of a block have become ours."""
    if "torchvision.models.resnet" not in sys.modules:  # then no layer is of a class that is defined there
        return
    from ._residual import CLASSES
    for layer in model.modules():
        ours = CLASSES.get(type(layer))
        if ours and all(type(norm) is BatchNorm2d for norm in (layer.bn1, getattr(layer, "bn2", layer.bn1))) and (
                type(layer.relu) is ReLU):
            layer.__class__ = ours


def convert(model):
    """Turns every layer of exactly these types of torch.nn into ours, in place; parameters, buffers and hooks stay.
    Layers with options that have no kernel stay as they are. Gives (the model, how many were converted, the names of
    those that were not). In torchvision's ResNets, whose norms and ReLUs become one operation, the ReLUs are not called
    any more, nor are their hooks."""
    converted, left = 0, []
    for name, layer in model.named_modules():
        ours = _OURS.get(type(layer))
        if ours is None:
            continue
        original = type(layer)
        layer.__class__ = ours
        try:
            layer.check_options()
            converted += 1
        except NotImplementedError:
            layer.__class__ = original
            left.append(name)
    _fuse_residual(model)
    return model, converted, left


def load_state(model, state):
    """model.load_state_dict(state), with one sentence where names or shapes differ, and the model unchanged then."""
    if not isinstance(state, dict):
        raise TypeError("load_state: state is a %s; expected a dict of tensors by name, as state_dict() gives"
                        % type(state).__name__)
    own = model.state_dict()
    missing, surplus = sorted(set(own) - set(state)), sorted(str(name) for name in set(state) - set(own))

    def some(names):
        return ", ".join(names[:3]) + (" and %d more" % (len(names) - 3) if len(names) > 3 else "")

    parts = []
    if missing:
        parts.append("it lacks " + some(missing))
    if surplus:
        parts.append("it has %s, which the model has not" % some(surplus))
    if parts:
        raise RuntimeError("load_state: the state does not fit %s: %s; expected the %d names of model.state_dict()"
                           % (type(model).__name__, "; ".join(parts), len(own)))
    for name, value in own.items():
        if not isinstance(state[name], torch.Tensor):
            raise TypeError("load_state: %s is a %s; expected a torch.Tensor" % (name, type(state[name]).__name__))
        if state[name].shape != value.shape:
            raise RuntimeError("load_state: %s has shape %s; the model expects %s"
                               % (name, shape_text(state[name].shape), shape_text(value.shape)))
    model.load_state_dict(state)
    return model
