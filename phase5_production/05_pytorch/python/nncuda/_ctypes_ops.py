"""The operations through ctypes: check the tensors, allocate what comes out, call libnncuda.

Each function here has a twin of the same name and arguments in csrc/extension.cc; backend.py chooses. There is no
autograd on this level (functional.py).

Why a pointer is enough: x.data_ptr() is the address of the first element in the memory of x's device, a contiguous
tensor is a C array, and the library launches on the stream that PyTorch would have used, so the kernel runs after what
PyTorch has put there and before what comes next. Memory from torch.empty() may be freed by Python before the kernel has
run: PyTorch's allocator hands it out again only to work of the same stream, which comes later.

ctypes releases the GIL during a call: two Python threads launch at the same time.
"""
import ctypes
import functools

import torch

from . import _checks, _library
from ._checks import is_tensor, like, shape_text, tensor, written
from ._library import library

FLOAT32, FLOAT16, BFLOAT16, TF32 = range(4)
_NHWC = {torch.float32: TF32, torch.float16: FLOAT16, torch.bfloat16: BFLOAT16}
_DTYPES = {torch.float32: FLOAT32, torch.bfloat16: BFLOAT16}
_empty = torch.empty
_raw_stream = getattr(torch._C, "_cuda_getCurrentRawStream", None)


def where(op, x, name="x"):
    """(device, stream) of the call that computes with x."""
    if not x.is_cuda:
        _checks.place(op, name, x)
        return _library.host_device(), None
    index = x.get_device()
    if library().emulated:
        raise RuntimeError("%s: %s is on cuda:%d, but %s is %s; expected a library built for CUDA: "
                           "`bazel build --config=cuda //phase5_production:nncuda`"
                           % (op, name, index, library().path, library().text))
    chosen = _library.stream_device()
    if chosen is not None and chosen != index:
        raise ValueError("%s: %s is on cuda:%d, but the stream of `with nncuda.stream()` belongs to cuda:%d; expected "
                         "a stream of the tensor's device" % (op, name, index, chosen))
    return index, _raw_stream(index)


def _pointer(x):
    return None if x is None else x.data_ptr()


class Workspace:
    """Scratch memory: PyTorch's allocator gives it out again to later work of the same stream. The library's kernels
    want it at a multiple of 256 bytes, where PyTorch's allocator of a GPU begins; that of the CPU gives 64."""
    __slots__ = ("memory", "pointer", "bytes")

    def __init__(self, x, size):
        self.bytes, self.memory, self.pointer = size, None, None
        if size:
            self.memory = _empty(size + 255, dtype=torch.uint8, device=x.device)
            self.pointer = (self.memory.data_ptr() + 255) & ~255


def _rows(op, x):
    if x.dim() == 0:
        raise ValueError("%s: x has shape (); expected at least one dimension" % op)
    cols = x.shape[-1]
    return x.numel() // cols if cols else 0, cols


# ---------------------------------------------------------------------------------------------------------------------
# Softmax, cross-entropy

def softmax(x):
    """Over the last dimension."""
    x = tensor("softmax", "x", x)
    rows, cols = _rows("softmax", x)
    y = torch.empty_like(x)
    if rows:
        lib = library()
        device, stream = where("softmax", x)
        lib.check(lib.softmax_forward(device, stream, FLOAT32, y.data_ptr(), x.data_ptr(), rows, cols))
    return y


def softmax_backward(dy, y):
    y = tensor("softmax_backward", "y", y)
    dy = like("softmax_backward", "dy", dy, y.shape, y, "y")
    rows, cols = _rows("softmax_backward", y)
    dx = torch.empty_like(y)
    if rows:
        lib = library()
        device, stream = where("softmax_backward", y)
        lib.check(lib.softmax_backward(device, stream, FLOAT32, dx.data_ptr(), dy.data_ptr(), y.data_ptr(), rows, cols))
    return dx


def cross_entropy(logits, labels, reduction, ignore_index, label_smoothing, gradient):
    """(loss (), dlogits); dlogits is empty without `gradient`. reduction: 0 mean, 1 sum."""
    op = "cross_entropy"
    logits = tensor(op, "input", logits, dims=2, letters="rows, classes")
    rows, classes = logits.shape
    labels = _checks.labels(op, "target", labels, rows, logits, "input")
    loss = _empty((), device=logits.device)
    dlogits = torch.empty_like(logits) if gradient else _empty(0, device=logits.device)
    lib = library()
    device, stream = where(op, logits, "input")
    work = Workspace(logits, lib.cross_entropy_workspace(device, rows, classes))
    lib.check(lib.cross_entropy(device, stream, FLOAT32, loss.data_ptr(), dlogits.data_ptr() if gradient else None,
                                None, logits.data_ptr(), labels.data_ptr(), 1, rows, classes, reduction, ignore_index,
                                label_smoothing, work.pointer, work.bytes))
    return loss, dlogits


def scale_(y, factor):
    """y *= factor, a tensor of one element on y's device; y is not touched where it is 1."""
    y = written("scale_", "y", y)
    factor = like("scale_", "factor", factor, torch.Size(()), y, "y")
    lib = library()
    device, stream = where("scale_", y, "y")
    lib.check(lib.scale(device, stream, FLOAT32, y.data_ptr(), y.data_ptr(), factor.data_ptr(), y.numel()))
    return y


# ---------------------------------------------------------------------------------------------------------------------
# Element by element

def activation(x, kind):
    x = tensor("activation", "x", x)
    y = torch.empty_like(x)
    lib = library()
    device, stream = where("activation", x)
    lib.check(lib.activation_forward(device, stream, FLOAT32, kind, y.data_ptr(), x.data_ptr(), x.numel()))
    return y


def activation_backward(dy, y, kind):
    y = tensor("activation_backward", "y", y)
    dy = like("activation_backward", "dy", dy, y.shape, y, "y")
    dx = torch.empty_like(y)
    lib = library()
    device, stream = where("activation_backward", y, "y")
    lib.check(lib.activation_backward(device, stream, FLOAT32, kind, dx.data_ptr(), dy.data_ptr(), y.data_ptr(),
                                      y.numel()))
    return dx


def add_relu(a, b):
    a = tensor("add_relu", "a", a)
    b = like("add_relu", "b", b, a.shape, a, "a")
    y = torch.empty_like(a)
    lib = library()
    device, stream = where("add_relu", a, "a")
    lib.check(lib.add_relu_forward(device, stream, FLOAT32, y.data_ptr(), a.data_ptr(), b.data_ptr(), a.numel()))
    return y


def add_relu_backward(dy, y):
    y = tensor("add_relu_backward", "y", y)
    dy = like("add_relu_backward", "dy", dy, y.shape, y, "y")
    d = torch.empty_like(y)
    lib = library()
    device, stream = where("add_relu_backward", y, "y")
    lib.check(lib.add_relu_backward(device, stream, FLOAT32, d.data_ptr(), dy.data_ptr(), y.data_ptr(), y.numel()))
    return d


def dropout(x, p, seed, offset):
    """Backward is the same call on dy."""
    x = tensor("dropout", "x", x)
    y = torch.empty_like(x)
    lib = library()
    device, stream = where("dropout", x)
    lib.check(lib.dropout(device, stream, FLOAT32, y.data_ptr(), x.data_ptr(), x.numel(), p, seed, offset))
    return y


# ---------------------------------------------------------------------------------------------------------------------
# Matrix products

def matmul(a, b, transpose_a, transpose_b):
    """op(a) op(b) of two matrices."""
    a = tensor("matmul", "a", a, dims=2)
    b = tensor("matmul", "b", b, dims=2)
    _checks.same_device("matmul", "b", b, a, "a")
    (m, k), (k2, n) = (a.shape[::-1] if transpose_a else a.shape), (b.shape[::-1] if transpose_b else b.shape)
    if k != k2:
        raise ValueError("matmul: a is %s and b is %s; the inner sizes %d and %d differ; expected equal ones"
                         % (shape_text(a.shape), shape_text(b.shape), k, k2))
    c = _empty((m, n), device=a.device)
    lib = library()
    device, stream = where("matmul", a, "a")
    lib.check(lib.matmul(device, stream, FLOAT32, c.data_ptr(), a.data_ptr(), b.data_ptr(), m, n, k, transpose_a,
                         transpose_b, 0))
    return c


def linear(x, weight, bias, relu):
    """x (..., in), weight (out,in), bias (out) or None -> (..., out)"""
    op = "linear"
    x = tensor(op, "x", x)
    weight = tensor(op, "weight", weight, dims=2, letters="out, in")
    _checks.same_device(op, "weight", weight, x, "x")
    outs, ins = weight.shape
    if x.dim() == 0 or x.shape[-1] != ins:
        raise ValueError("linear: x has shape %s; expected (..., %d), because weight is %s (out, in)"
                         % (shape_text(x.shape), ins, shape_text(weight.shape)))
    if bias is not None:
        bias = like(op, "bias", bias, (outs,), x, "x")
    batch = x.numel() // max(ins, 1)
    y = _empty(x.shape[:-1] + (outs,), device=x.device)
    lib = library()
    device, stream = where(op, x)
    work = Workspace(x, lib.linear_workspace(device, batch, ins, outs))
    lib.check(lib.linear_forward(device, stream, FLOAT32, y.data_ptr(), x.data_ptr(), weight.data_ptr(), _pointer(bias),
                                 batch, ins, outs, relu, work.pointer, work.bytes))
    return y


def linear_backward(dy, y, x, weight, need_x, need_weight, need_bias, relu):
    """(dx, dweight, dbias), None where not needed. y is read where relu."""
    op = "linear_backward"
    x, weight = tensor(op, "x", x), tensor(op, "weight", weight)
    outs, ins = weight.shape
    dy = like(op, "dy", dy, x.shape[:-1] + (outs,), x, "x")
    batch = x.numel() // max(ins, 1)
    if relu:
        y = like(op, "y", y, dy.shape, x, "x")
    dx = torch.empty_like(x) if need_x else None
    dw = torch.empty_like(weight) if need_weight else None
    db = _empty(outs, device=x.device) if need_bias else None
    lib = library()
    device, stream = where(op, x)
    work = Workspace(x, lib.linear_backward_workspace(device, batch, ins, outs, relu))
    lib.check(lib.linear_backward(device, stream, FLOAT32, _pointer(dx), _pointer(dw), _pointer(db), dy.data_ptr(),
                                  y.data_ptr() if relu else None, x.data_ptr(), weight.data_ptr(), batch, ins, outs,
                                  relu, work.pointer, work.bytes))
    return dx, dw, db


# ---------------------------------------------------------------------------------------------------------------------
# Convolution

@functools.lru_cache(maxsize=512)
def _conv2d_shape(device, sizes, _path):
    """The structure, (P, Q) and the bytes of workspace, of all and of forward, which a network asks for again and
    again."""
    lib = library()
    shape, p, q = _library.Conv2dShape(*sizes), ctypes.c_int64(), ctypes.c_int64()
    lib.check(lib.conv2d_output(ctypes.addressof(shape), ctypes.addressof(p), ctypes.addressof(q)))
    address = ctypes.addressof(shape)
    return (shape, address, p.value, q.value, lib.conv2d_workspace(device, address),
            lib.conv2d_forward_workspace(device, address))


def _conv2d(op, device, x_shape, w_shape, stride, padding, dilation, groups):
    if x_shape[1] != w_shape[1] * groups:
        raise ValueError("%s: x has shape %s, weight %s, groups is %d; expected %d channels in x (weight's second size "
                         "times groups)" % (op, shape_text(x_shape), shape_text(w_shape), groups, w_shape[1] * groups))
    sizes = (*x_shape, w_shape[0], w_shape[2], w_shape[3], *stride, *padding, *dilation, groups)
    return _conv2d_shape(device, sizes, library().path)


def conv2d(x, weight, bias, residual, relu, stride, padding, dilation, groups):
    """relu?(conv(x, weight) + bias + residual), the last two and ReLU if wanted."""
    op = "conv2d"
    x = tensor(op, "x", x, dims=4, letters="N, C, H, W")
    weight = tensor(op, "weight", weight, dims=4, letters="K, C/groups, R, S")
    _checks.same_device(op, "weight", weight, x, "x")
    lib = library()
    device, cuda_stream = where(op, x)
    shape, address, p, q, _, size = _conv2d(op, device, x.shape, weight.shape, stride, padding, dilation, groups)
    y = _empty((x.shape[0], weight.shape[0], p, q), device=x.device)
    if bias is not None:
        bias = like(op, "bias", bias, weight.shape[:1], x, "x")
    if residual is not None:
        residual = like(op, "residual", residual, y.shape, x, "x")
    work = Workspace(x, size)
    lib.check(lib.conv2d_forward(device, cuda_stream, FLOAT32, y.data_ptr(), x.data_ptr(), weight.data_ptr(),
                                 _pointer(bias), _pointer(residual), relu, address, work.pointer, size))
    return y


def conv2d_backward_input(dy, weight, x_shape, stride, padding, dilation, groups):
    op = "conv2d_backward_input"
    dy, weight = tensor(op, "dy", dy, dims=4), tensor(op, "weight", weight)
    lib = library()
    device, cuda_stream = where(op, dy, "dy")
    shape, address, p, q, size, _ = _conv2d(op, device, x_shape, weight.shape, stride, padding, dilation, groups)
    dy = like(op, "dy", dy, (x_shape[0], weight.shape[0], p, q), weight, "weight")
    dx = _empty(tuple(x_shape), device=dy.device)
    work = Workspace(dy, size)
    lib.check(lib.conv2d_backward_input(device, cuda_stream, FLOAT32, dx.data_ptr(), dy.data_ptr(), weight.data_ptr(),
                                        address, work.pointer, size))
    return dx


def conv2d_backward_weight(dy, x, weight_shape, need_bias, stride, padding, dilation, groups):
    """(dweight, dbias or None)"""
    op = "conv2d_backward_weight"
    x = tensor(op, "x", x, dims=4)
    lib = library()
    device, cuda_stream = where(op, x)
    shape, address, p, q, size, _ = _conv2d(op, device, x.shape, weight_shape, stride, padding, dilation, groups)
    dy = like(op, "dy", dy, (x.shape[0], weight_shape[0], p, q), x, "x")
    dw = _empty(tuple(weight_shape), device=x.device)
    db = _empty(weight_shape[0], device=x.device) if need_bias else None
    work = Workspace(x, size)
    lib.check(lib.conv2d_backward_weight(device, cuda_stream, FLOAT32, dw.data_ptr(), _pointer(db), dy.data_ptr(),
                                         x.data_ptr(), address, work.pointer, size))
    return dw, db


def conv2d_nhwc(x, weight, bias, residual, relu, stride, padding, dilation, groups):
    """The same by tensor cores, in the memory format torch.channels_last: float16, bfloat16, or float32, whose factors
    are rounded to TF32. bias is float32. For inference: it has no backward pass."""
    op = "conv2d_nhwc"
    dtype = x.dtype if isinstance(x, torch.Tensor) and x.dtype in _NHWC else torch.float32
    x = _checks.channels_last(op, "x", x, dtype)
    weight = _checks.channels_last(op, "weight", weight, dtype)
    _checks.same_device(op, "weight", weight, x, "x")
    lib = library()
    device, cuda_stream = where(op, x)
    shape, address, p, q, _, _ = _conv2d(op, device, x.shape, weight.shape, stride, padding, dilation, groups)
    y = _empty((x.shape[0], weight.shape[0], p, q), dtype=dtype, device=x.device, memory_format=torch.channels_last)
    if bias is not None:
        bias = like(op, "bias", bias, weight.shape[:1], x, "x")
    size = 0
    if residual is not None:
        residual = _checks.channels_last(op, "residual", residual, dtype)
        like(op, "residual", residual, y.shape, x, "x", dtype, False)
        size = lib.conv2d_nhwc_workspace(device, _NHWC[dtype])
    work = Workspace(x, size)
    lib.check(lib.conv2d_nhwc_forward(device, cuda_stream, _NHWC[dtype], y.data_ptr(), x.data_ptr(), weight.data_ptr(),
                                      _pointer(bias), _pointer(residual), relu, address, work.pointer, size))
    return y


def stem_pool2d(x, weight, bias, tensor_cores, stride, padding, kernel, pool_stride, pool_padding):
    """max_pool(relu(conv(x, weight) + bias)). Of tensor_cores, weight and the result are channels last, of float16,
    bfloat16, or float32, whose factors are rounded to 11 bits; x is float32 and (N,C,H,W) in any case."""
    op = "stem_pool2d"
    x = tensor(op, "x", x, dims=4, letters="N, C, H, W")
    is_tensor(op, "weight", weight, 4, "K, C, R, S")
    dtype = weight.dtype if tensor_cores and weight.dtype in _NHWC else torch.float32
    weight = (_checks.channels_last if tensor_cores else tensor)(op, "weight", weight, dtype)
    _checks.same_device(op, "weight", weight, x, "x")
    bias = like(op, "bias", bias, weight.shape[:1], x, "x")
    lib = library()
    device, stream = where(op, x)
    number = _NHWC[dtype] if tensor_cores else FLOAT32
    shape, address, p, q, _, _ = _conv2d(op, device, x.shape, weight.shape, stride, padding, (1, 1), 1)
    pool, pool_address, out, size = _stem_pool2d(device, number, address, (x.shape[0], weight.shape[0], p, q), kernel,
                                                 pool_stride, pool_padding, library().path)
    y = _empty(out, dtype=dtype, device=x.device,
               memory_format=torch.channels_last if tensor_cores else torch.contiguous_format)
    work = Workspace(x, size)
    lib.check(lib.stem_pool2d_forward(device, stream, number, y.data_ptr(), x.data_ptr(), weight.data_ptr(),
                                      bias.data_ptr(), address, pool_address, work.pointer, size))
    return y


def _stem_pool2d(device, number, address, sizes, kernel, stride, padding, _path):
    """The structure of pooling, the shape of what it gives, and the bytes of workspace."""
    lib = library()
    pool, p, q = _library.Pool2dShape(*sizes, *kernel, *stride, *padding, 1, 1, 0), ctypes.c_int64(), ctypes.c_int64()
    pool_address = ctypes.addressof(pool)
    lib.check(lib.pool2d_output(pool_address, ctypes.addressof(p), ctypes.addressof(q)))
    return pool, pool_address, (*sizes[:2], p.value, q.value), lib.stem_pool2d_workspace(device, number, address,
                                                                                        pool_address)


def fold_batch_norm(weight, bias, gamma, beta, mean, var, epsilon):
    """(weight, bias) of a convolution that does batch norm's work in evaluation, too."""
    op = "fold_batch_norm"
    weight = tensor(op, "weight", weight, dims=4, letters="K, C/groups, R, S")
    filters = weight.shape[0]
    names = ("bias", "gamma", "beta", "mean", "var")
    bias, gamma, beta, mean, var = (
        x if x is None and name == "bias" else like(op, name, x, (filters,), weight, "weight")
        for name, x in zip(names, (bias, gamma, beta, mean, var)))
    new_weight, new_bias = torch.empty_like(weight), _empty(filters, device=weight.device)
    lib = library()
    device, stream = where(op, weight, "weight")
    lib.check(lib.conv2d_fold_batch_norm(
        device, stream, FLOAT32, new_weight.data_ptr(), new_bias.data_ptr(), weight.data_ptr(), _pointer(bias),
        gamma.data_ptr(), beta.data_ptr(), mean.data_ptr(), var.data_ptr(), epsilon, filters,
        weight.numel() // max(filters, 1)))
    return new_weight, new_bias
