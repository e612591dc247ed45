"""What every operation asks of its arguments before a pointer leaves Python.

A kernel that gets a wrong pointer does not raise an exception: it reads what lies there. So each tensor is checked for
its type, layout, shape and device, and the message names the operation, the argument, what it is, what was expected,
and what to try. TypeError: not a tensor, or the wrong dtype. ValueError: the wrong shape, device or value.

A tensor that is not contiguous (a transpose, a slice, channels last) is copied into a contiguous one, as PyTorch's own
operators do where they have to; the result is contiguous NCHW. Where an operation writes into an argument (optimizers,
running statistics), a copy would lose the result, so such a tensor is refused.
"""
import torch

FLOAT, LONG, BYTE = torch.float32, torch.int64, torch.uint8
_CONVERT = {FLOAT: "float", LONG: "long", BYTE: "byte", torch.float16: "half", torch.bfloat16: "bfloat16"}
CPU = -1  # the library's word for "C functions on host memory"


def kind(value):
    """What a value is, for a message."""
    return "a " + type(value).__name__ if value is not None else "None"


def shape_text(shape):
    return "(" + ", ".join(str(size) for size in shape) + ("," if len(shape) == 1 else "") + ")"


def place(op, name, x):
    """Which device's functions to call: CPU, or the index of the GPU."""
    if x.is_cuda:
        return x.device.index
    if x.device.type == "cpu":
        return CPU
    raise ValueError("%s: %s is on device %s; expected a CUDA device or the CPU" % (op, name, x.device))


def _dense(op, name, x, dtype):
    """Refuses what is not a dense tensor of this dtype."""
    if not isinstance(x, torch.Tensor):
        is_tensor(op, name, x)  # raises
    if x.dtype is not dtype:
        raise TypeError("%s: %s has dtype %s; expected %s: convert it with %s.%s()"
                        % (op, name, x.dtype, dtype, name, _CONVERT[dtype]))
    if x.layout is not torch.strided:
        raise TypeError("%s: %s has layout %s; expected a dense tensor: convert it with %s.to_dense()"
                        % (op, name, x.layout, name))


def tensor(op, name, x, dtype=FLOAT, dims=None, letters=""):
    """x itself, or a contiguous copy. dims: how many dimensions; letters: their names."""
    _dense(op, name, x, dtype)
    if dims is not None and x.dim() != dims:
        is_tensor(op, name, x, dims, letters)  # raises
    return x if x.is_contiguous() else x.contiguous()


def is_tensor(op, name, x, dims=None, letters=""):
    """Before anything is asked of x; its dtype and layout are looked at later."""
    if not isinstance(x, torch.Tensor):
        raise TypeError("%s: %s is %s; expected a torch.Tensor" % (op, name, kind(x)))
    if dims is not None and x.dim() != dims:
        raise ValueError("%s: %s has shape %s; expected %d dimensions%s"
                         % (op, name, shape_text(x.shape), dims, letters and " (%s)" % letters))


def channels_last(op, name, x, dtype):
    """x itself, or a copy in the memory format channels_last: (N,C,H,W) whose elements lie as (N,H,W,C)."""
    _dense(op, name, x, dtype)
    if x.dim() != 4:
        raise ValueError("%s: %s has shape %s; expected 4 dimensions" % (op, name, shape_text(x.shape)))
    return x.contiguous(memory_format=torch.channels_last)


def like(op, name, x, shape, first, first_name, dtype=FLOAT, contiguous=True):
    """A second tensor: of this shape, on the device of the first."""
    if contiguous:
        x = tensor(op, name, x, dtype)
    if x.shape != shape:
        raise ValueError("%s: %s has shape %s; expected %s" % (op, name, shape_text(x.shape), shape_text(shape)))
    same_device(op, name, x, first, first_name)
    return x


def same_device(op, name, x, first, first_name):
    if x.device != first.device:
        raise ValueError("%s: %s is on %s, but %s is on %s; expected one device: move it with %s.to(%s.device)"
                         % (op, name, x.device, first_name, first.device, name, first_name))


def written(op, name, x, dtype=FLOAT):
    """A tensor that the operation writes into: no copy will do."""
    if isinstance(x, torch.Tensor) and not x.is_contiguous():
        raise ValueError("%s: %s is written into, and is not contiguous (shape %s, strides %s); expected a contiguous "
                         "tensor: a copy would not reach the original" % (op, name, shape_text(x.shape), x.stride()))
    return tensor(op, name, x, dtype)


def labels(op, name, x, rows, first, first_name):
    """Classes as int64, one for each row."""
    if not isinstance(x, torch.Tensor):
        raise TypeError("%s: %s is %s; expected a torch.Tensor of class numbers" % (op, name, kind(x)))
    if x.dtype is not LONG:
        hint = "convert it with %s.long()" % name
        if x.is_floating_point():
            hint = "probabilities as targets are not supported"
        raise TypeError("%s: %s has dtype %s; expected torch.int64: %s" % (op, name, x.dtype, hint))
    if x.dim() != 1 or x.shape[0] != rows:
        raise ValueError("%s: %s has shape %s; expected (%d,), one class for each row"
                         % (op, name, shape_text(x.shape), rows))
    same_device(op, name, x, first, first_name)
    return x if x.is_contiguous() else x.contiguous()


def label_range(op, name, x, classes, ignore_index):
    """For labels on the CPU, where looking at them costs no wait."""
    if x.device.type != "cpu" or not x.numel():
        return
    wrong = (x < 0) | (x >= classes)
    wrong &= x != ignore_index
    if bool(wrong.any()):
        i = int(wrong.nonzero()[0])
        raise ValueError("%s: %s[%d] is %d; expected 0 to %d, or ignore_index=%d"
                         % (op, name, i, int(x[i]), classes - 1, ignore_index))


def pair(op, name, value, lowest):
    """A size for height and width: an int or two."""
    both = (value, value) if isinstance(value, int) else value
    if not (isinstance(both, (tuple, list)) and len(both) == 2 and all(type(size) is int for size in both)):
        raise TypeError("%s: %s is %r; expected an int or a pair of ints" % (op, name, value))
    if min(both) < lowest:
        raise ValueError("%s: %s is %r; expected at least %d" % (op, name, value, lowest))
    return tuple(both)


def whole(op, name, value, lowest):
    if type(value) is not int:
        raise TypeError("%s: %s is %r; expected an int" % (op, name, value))
    if value < lowest:
        raise ValueError("%s: %s is %r; expected at least %d" % (op, name, value, lowest))
    return value


def between(op, name, value, low, high):
    if not low <= value <= high:  # NaN, too
        raise ValueError("%s: %s is %r; expected %r to %r" % (op, name, value, low, high))
    return float(value)
