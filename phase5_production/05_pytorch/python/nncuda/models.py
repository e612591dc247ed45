"""Networks of the course as PyTorch modules on our operations. Parameter names are those of the C programs'
checkpoints, and of the same network in torch.nn."""
import json
import math
import struct

import torch
from torch import nn

from . import functional
from .modules import BatchNorm2d, Conv2d, Dropout, Linear, load_state


class FashionMNISTCNN(nn.Module):
    """The Fashion CNN of phase 3, 896,522 parameters: (N,1,28,28) -> logits (N,10). Max pooling and ReLU are one
    kernel, and so are fc1 and its ReLU."""
    image, classes = (1, 28, 28), 10

    def __init__(self, classes=10):
        super().__init__()
        self.conv1 = Conv2d(1, 64, 3)
        self.conv2 = Conv2d(64, 128, 3)
        self.fc1 = Linear(3200, 256)
        self.fc2 = Linear(256, classes)

    def forward(self, x):
        x = functional.max_pool2d(self.conv1(x), 2, relu=True)
        x = functional.max_pool2d(self.conv2(x), 2, relu=True)
        x = functional.linear(x.flatten(1), self.fc1.weight, self.fc1.bias, relu=True)
        return self.fc2(x)


class TinyImageNetCNN(nn.Module):
    """Three blocks of convolution, batch norm, ReLU and max pooling, then two linear layers: (N,3,side,side) -> logits,
    or probabilities by our softmax with probabilities=True."""

    def __init__(self, classes=200, side=64, width=64, dropout=0.5):
        super().__init__()
        if side % 8:
            raise ValueError("TinyImageNetCNN: side is %r; expected a multiple of 8" % (side,))
        channels = [3, width, 2 * width, 4 * width]
        for i in (1, 2, 3):
            setattr(self, "conv%d" % i, Conv2d(channels[i - 1], channels[i], 3, padding=1, bias=False))
            setattr(self, "bn%d" % i, BatchNorm2d(channels[i]))
        self.fc1 = Linear(channels[3] * (side // 8) ** 2, 256)
        self.dropout = Dropout(dropout)
        self.fc2 = Linear(256, classes)

    def forward(self, x, probabilities=False):
        for conv, bn in ((self.conv1, self.bn1), (self.conv2, self.bn2), (self.conv3, self.bn3)):
            if bn.training:
                bn.num_batches_tracked.add_(1)
            x = functional.batch_norm(conv(x), bn.running_mean, bn.running_var, bn.weight, bn.bias, bn.training,
                                      relu=True)
            x = functional.max_pool2d(x, 2)
        x = functional.linear(x.flatten(1), self.fc1.weight, self.fc1.bias, relu=True)
        logits = self.fc2(self.dropout(x))
        return functional.softmax(logits, 1) if probabilities else logits


_TYPES = {"F32": (torch.float32, 4), "I64": (torch.int64, 8)}


def read_safetensors(path):
    """A checkpoint of the C programs (runs/NAME/best.safetensors): name -> tensor. Every size is checked before it is
    used."""
    def wrong(what):
        return ValueError("%s: %s; expected a .safetensors file" % (path, what))

    with open(path, "rb") as file:
        content = bytearray(file.read())
    if len(content) < 8:
        raise wrong("has %d bytes, less than the header's length needs" % len(content))
    length = struct.unpack("<Q", content[:8])[0]
    if length > len(content) - 8:
        raise wrong("says that its header has %d bytes, but only %d follow" % (length, len(content) - 8))
    try:
        header = json.loads(content[8:8 + length])
    except (UnicodeDecodeError, json.JSONDecodeError, RecursionError) as error:
        raise wrong("its header is not JSON (%s)" % error) from None
    if not isinstance(header, dict):
        raise wrong("its header is not an object")
    begin, tensors = 8 + length, {}
    for name, entry in header.items():
        if name == "__metadata__":
            continue
        try:
            (dtype, size), shape, (first, last) = _TYPES[entry["dtype"]], entry["shape"], entry["data_offsets"]
            good = all(type(n) is int and 0 <= n < 1 << 62 for n in [first, last, *shape])
        except (KeyError, TypeError, ValueError):
            raise wrong("tensor %s has no dtype F32 or I64, shape and data_offsets" % name) from None
        if not good or first > last or last > len(content) - begin or last - first != size * math.prod(shape):
            raise wrong("tensor %s of shape %s lies at %s to %s of %d bytes"
                        % (name, shape, first, last, len(content) - begin))
        count = math.prod(shape)
        data = torch.frombuffer(content, dtype=torch.uint8, offset=begin + first,
                                count=last - first) if count else torch.empty(0, dtype=torch.uint8)
        tensors[name] = torch.empty(shape, dtype=dtype)
        tensors[name].view(-1).view(torch.uint8).copy_(data) if count else None
    return tensors


def load_checkpoint(model, path):
    """Weights from a .safetensors file of the C programs, or a .pth file of torch.save(model.state_dict())."""
    if str(path).endswith(".safetensors"):
        own = model.state_dict()  # an optimizer's state stands beside the weights: "momentum_buffer.conv1.weight"
        state = {name: value for name, value in read_safetensors(path).items()
                 if name in own or name.partition(".")[2] not in own}
    else:
        try:
            state = torch.load(path, map_location="cpu", weights_only=True)
        except OSError:  # its sentence has the path
            raise
        except Exception as error:  # of a damaged file, any: EOFError, KeyError, RuntimeError, UnpicklingError
            # Without PyTorch's advice to load the file with weights_only=False, which runs what the file says.
            line = str(error).rpartition("WeightsUnpickler error: ")[2].partition("\n")[0]
            sentences = line.partition(" Please ")[0].split(". ")
            reason = ". ".join(part for part in sentences if "weights_only" not in part)[:200]
            raise ValueError("%s: cannot be read (%s: %s); expected a file of torch.save(model.state_dict()) with "
                             "tensors alone" % (path, type(error).__name__, reason)) from None
    return load_state(model, state)
