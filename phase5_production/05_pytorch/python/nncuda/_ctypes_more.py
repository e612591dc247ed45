"""The rest of _ctypes_ops.py: pooling, norms, attention, steps of optimizers."""
import ctypes
import functools

import torch

from . import _checks, _library
from ._checks import like, shape_text, tensor, written
from ._ctypes_ops import _DTYPES, FLOAT32, Workspace, _empty, _pointer, where
from ._library import library

ALONE, THEN_RELU, THEN_ADD_RELU = range(3)


# ---------------------------------------------------------------------------------------------------------------------
# Pooling

@functools.lru_cache(maxsize=512)
def _pool2d_shape(sizes, _path):
    lib = library()
    shape, p, q = _library.Pool2dShape(*sizes), ctypes.c_int64(), ctypes.c_int64()
    lib.check(lib.pool2d_output(ctypes.addressof(shape), ctypes.addressof(p), ctypes.addressof(q)))
    return shape, ctypes.addressof(shape), p.value, q.value


def _pool2d(x_shape, kernel, stride, padding, dilation, ceil_mode):
    return _pool2d_shape((*x_shape, *kernel, *stride, *padding, *dilation, int(ceil_mode)), library().path)


def max_pool2d(x, kernel, stride, padding, dilation, ceil_mode, relu):
    """(y, argmax): argmax says which element of the window it was, one byte each."""
    x = tensor("max_pool2d", "x", x, dims=4, letters="N, C, H, W")
    shape, address, p, q = _pool2d(x.shape, kernel, stride, padding, dilation, ceil_mode)
    y = _empty((x.shape[0], x.shape[1], p, q), device=x.device)
    argmax = _empty(y.shape, dtype=torch.uint8, device=x.device)
    lib = library()
    device, cuda_stream = where("max_pool2d", x)
    lib.check(lib.max_pool2d_forward(device, cuda_stream, FLOAT32, y.data_ptr(), argmax.data_ptr(), x.data_ptr(), relu,
                                     address))
    return y, argmax


def max_pool2d_backward(dy, argmax, x_shape, kernel, stride, padding, dilation, ceil_mode):
    argmax = tensor("max_pool2d_backward", "argmax", argmax, torch.uint8)
    dy = like("max_pool2d_backward", "dy", dy, argmax.shape, argmax, "argmax")
    shape, address, p, q = _pool2d(x_shape, kernel, stride, padding, dilation, ceil_mode)
    dx = _empty(tuple(x_shape), device=dy.device)
    lib = library()
    device, cuda_stream = where("max_pool2d_backward", dy, "dy")
    lib.check(lib.max_pool2d_backward(device, cuda_stream, FLOAT32, dx.data_ptr(), dy.data_ptr(), argmax.data_ptr(),
                                      address))
    return dx


def avg_pool2d(x, kernel, stride, padding, ceil_mode, count_include_pad):
    x = tensor("avg_pool2d", "x", x, dims=4, letters="N, C, H, W")
    shape, address, p, q = _pool2d(x.shape, kernel, stride, padding, (1, 1), ceil_mode)
    y = _empty((x.shape[0], x.shape[1], p, q), device=x.device)
    lib = library()
    device, cuda_stream = where("avg_pool2d", x)
    lib.check(lib.avg_pool2d_forward(device, cuda_stream, FLOAT32, y.data_ptr(), x.data_ptr(), count_include_pad,
                                     address))
    return y


def avg_pool2d_backward(dy, x_shape, kernel, stride, padding, ceil_mode, count_include_pad):
    dy = tensor("avg_pool2d_backward", "dy", dy, dims=4)
    shape, address, p, q = _pool2d(x_shape, kernel, stride, padding, (1, 1), ceil_mode)
    dy = like("avg_pool2d_backward", "dy", dy, (x_shape[0], x_shape[1], p, q), dy, "dy")
    dx = _empty(tuple(x_shape), device=dy.device)
    lib = library()
    device, cuda_stream = where("avg_pool2d_backward", dy, "dy")
    lib.check(lib.avg_pool2d_backward(device, cuda_stream, FLOAT32, dx.data_ptr(), dy.data_ptr(), count_include_pad,
                                      address))
    return dx


def global_avg_pool2d(x):
    """(N,C,H,W) -> (N,C,1,1)"""
    x = tensor("global_avg_pool2d", "x", x, dims=4, letters="N, C, H, W")
    y = _empty((x.shape[0], x.shape[1], 1, 1), device=x.device)
    lib = library()
    device, stream = where("global_avg_pool2d", x)
    lib.check(lib.global_avg_pool2d_forward(device, stream, FLOAT32, y.data_ptr(), x.data_ptr(), y.numel(),
                                            x.shape[2] * x.shape[3]))
    return y


def global_avg_pool2d_backward(dy, x_shape):
    dy = like("global_avg_pool2d_backward", "dy", dy, (x_shape[0], x_shape[1], 1, 1), dy, "dy")
    dx = _empty(tuple(x_shape), device=dy.device)
    lib = library()
    device, stream = where("global_avg_pool2d_backward", dy, "dy")
    lib.check(lib.global_avg_pool2d_backward(device, stream, FLOAT32, dx.data_ptr(), dy.data_ptr(), dy.numel(),
                                             x_shape[2] * x_shape[3]))
    return dx


# ---------------------------------------------------------------------------------------------------------------------
# Norms

def layer_norm(x, weight, bias, epsilon):
    """Over the last dimensions, as many as weight has. (y, saved): saved is for backward."""
    op = "layer_norm"
    x = tensor(op, "x", x)
    weight = tensor(op, "weight", weight)
    if weight.dim() == 0 or x.shape[x.dim() - weight.dim():] != weight.shape:
        raise ValueError("layer_norm: weight has shape %s, x %s; expected the last sizes of x"
                         % (shape_text(weight.shape), shape_text(x.shape)))
    _checks.same_device(op, "weight", weight, x, "x")
    bias = like(op, "bias", bias, weight.shape, x, "x")
    cols = weight.numel()
    rows = x.numel() // cols if cols else 0
    y, saved = torch.empty_like(x), _empty((rows, 2), device=x.device)
    lib = library()
    device, stream = where(op, x)
    lib.check(lib.layer_norm_forward(device, stream, FLOAT32, y.data_ptr(), saved.data_ptr(), x.data_ptr(),
                                     weight.data_ptr(), bias.data_ptr(), epsilon, rows, cols))
    return y, saved


def layer_norm_backward(dy, x, weight, saved, need_x, need_weight):
    """(dx, dweight, dbias), None where not needed."""
    op = "layer_norm_backward"
    x, weight, saved = tensor(op, "x", x), tensor(op, "weight", weight), tensor(op, "saved", saved)
    dy = like(op, "dy", dy, x.shape, x, "x")
    rows, cols = saved.shape[0], weight.numel()
    dx = torch.empty_like(x) if need_x else None
    dw, db = (torch.empty_like(weight), torch.empty_like(weight)) if need_weight else (None, None)
    lib = library()
    device, stream = where(op, x)
    work = Workspace(x, lib.layer_norm_backward_workspace(device, rows, cols))
    lib.check(lib.layer_norm_backward(device, stream, FLOAT32, _pointer(dx), _pointer(dw), _pointer(db), dy.data_ptr(),
                                      x.data_ptr(),
                                      weight.data_ptr(), saved.data_ptr(), rows, cols, work.pointer, work.bytes))
    return dx, dw, db


def _batch_norm_arguments(op, x, z, gamma, beta, after):
    x = tensor(op, "x", x, dims=4, letters="N, C, H, W")
    channels = x.shape[1:2]
    gamma = like(op, "weight", gamma, channels, x, "x")
    beta = like(op, "bias", beta, channels, x, "x")
    if after == THEN_ADD_RELU:
        z = like(op, "z", z, x.shape, x, "x")
    elif z is not None:
        raise ValueError("%s: z is given, but nothing is added; expected None" % op)
    return x, z, gamma, beta


def batch_norm(x, z, gamma, beta, running_mean, running_var, after, momentum, epsilon):
    """In training: (y, mean, inv_std, passed), the last three for backward; the running statistics are updated, or
    None. after: ALONE, THEN_RELU, or THEN_ADD_RELU: y = relu(y + z)."""
    op = "batch_norm"
    x, z, gamma, beta = _batch_norm_arguments(op, x, z, gamma, beta, after)
    n, c, pixels = x.shape[0], x.shape[1], x.shape[2] * x.shape[3]
    for name, running in (("running_mean", running_mean), ("running_var", running_var)):
        if running is not None:
            like(op, name, written(op, name, running), (c,), x, "x")
    lib = library()
    device, stream = where(op, x)
    y, mean, inv_std = torch.empty_like(x), _empty(c, device=x.device), _empty(c, device=x.device)
    bits = lib.batch_norm_passed(n, c, pixels) if after == THEN_ADD_RELU else 0
    passed = _empty(bits, dtype=torch.uint8, device=x.device)
    work = Workspace(x, lib.batch_norm_workspace(device, n, c, pixels))
    lib.check(lib.batch_norm_forward(
        device, stream, FLOAT32, y.data_ptr(), mean.data_ptr(), inv_std.data_ptr(), passed.data_ptr() if bits else None,
        _pointer(running_mean), _pointer(running_var), x.data_ptr(), _pointer(z), gamma.data_ptr(), beta.data_ptr(),
        after, momentum, epsilon, n, c, pixels, work.pointer, work.bytes))
    return y, mean, inv_std, passed


def batch_norm_evaluate(x, z, gamma, beta, running_mean, running_var, after, epsilon):
    op = "batch_norm"
    x, z, gamma, beta = _batch_norm_arguments(op, x, z, gamma, beta, after)
    running_mean = like(op, "running_mean", running_mean, gamma.shape, x, "x")
    running_var = like(op, "running_var", running_var, gamma.shape, x, "x")
    y = torch.empty_like(x)
    lib = library()
    device, stream = where(op, x)
    lib.check(lib.batch_norm_evaluate(
        device, stream, FLOAT32, y.data_ptr(), x.data_ptr(), _pointer(z), gamma.data_ptr(), beta.data_ptr(),
        running_mean.data_ptr(), running_var.data_ptr(), after, epsilon, x.shape[0], x.shape[1],
        x.shape[2] * x.shape[3]))
    return y


def batch_norm_backward(dy, x, gamma, beta, mean, inv_std, passed, after, need_z):
    """(dx, dz or None, dgamma, dbeta)"""
    op = "batch_norm_backward"
    x, gamma, beta, mean, inv_std = (tensor(op, name, t) for name, t in zip(
        ("x", "weight", "bias", "mean", "inv_std"), (x, gamma, beta, mean, inv_std)))
    dy = like(op, "dy", dy, x.shape, x, "x")
    n, c, pixels = x.shape[0], x.shape[1], x.shape[2] * x.shape[3]
    dx, dgamma, dbeta = torch.empty_like(x), torch.empty_like(gamma), torch.empty_like(beta)
    dz = torch.empty_like(x) if need_z else None
    lib = library()
    device, stream = where(op, x)
    work = Workspace(x, lib.batch_norm_workspace(device, n, c, pixels))
    lib.check(lib.batch_norm_backward(
        device, stream, FLOAT32, dx.data_ptr(), _pointer(dz), dgamma.data_ptr(), dbeta.data_ptr(), dy.data_ptr(),
        x.data_ptr(), gamma.data_ptr(), beta.data_ptr(), mean.data_ptr(), inv_std.data_ptr(),
        passed.data_ptr() if passed.numel() else None, after, n, c, pixels, work.pointer, work.bytes))
    return dx, dz, dgamma, dbeta


# ---------------------------------------------------------------------------------------------------------------------
# Attention

def attention(q, k, v, causal):
    """(o, lse): q, k, v (batch,heads,length,depth) in float32 or bfloat16."""
    op = "scaled_dot_product_attention"
    dtype = q.dtype if isinstance(q, torch.Tensor) and q.dtype in _DTYPES else torch.float32
    q = tensor(op, "query", q, dtype, dims=4, letters="batch, heads, length, depth")
    k = like(op, "key", k, q.shape, q, "query", dtype)
    v = like(op, "value", v, q.shape, q, "query", dtype)
    o, lse = torch.empty_like(q), _empty(q.shape[:3], device=q.device)
    lib = library()
    device, stream = where(op, q, "query")
    lib.check(lib.attention_forward(device, stream, _DTYPES[dtype], o.data_ptr(), lse.data_ptr(), q.data_ptr(),
                                    k.data_ptr(), v.data_ptr(), *q.shape, causal))
    return o, lse


def attention_backward(do, q, k, v, o, lse, causal):
    """(dq, dk, dv)"""
    op = "attention_backward"
    q, k, v, o = (tensor(op, name, t, q.dtype) for name, t in zip(("query", "key", "value", "o"), (q, k, v, o)))
    lse = tensor(op, "lse", lse)
    do = like(op, "do", do, q.shape, q, "query", q.dtype)
    dq, dk, dv = torch.empty_like(q), torch.empty_like(q), torch.empty_like(q)
    lib = library()
    device, stream = where(op, q, "query")
    dtype = _DTYPES[q.dtype]
    work = Workspace(q, lib.attention_backward_workspace(device, dtype, *q.shape))
    lib.check(lib.attention_backward(
        device, stream, dtype, dq.data_ptr(), dk.data_ptr(), dv.data_ptr(), do.data_ptr(), q.data_ptr(), k.data_ptr(),
        v.data_ptr(), o.data_ptr(), lse.data_ptr(), *q.shape, causal, work.pointer, work.bytes))
    return dq, dk, dv


# ---------------------------------------------------------------------------------------------------------------------
# Optimizers

def _pointers(tensors):
    """float *const *, on the host: read before the call returns."""
    return (ctypes.c_void_p * len(tensors))(*[x.data_ptr() for x in tensors])


def _lengths(tensors):
    return (ctypes.c_int64 * len(tensors))(*[x.numel() for x in tensors])


def sgd_step(weights, gradients, momentum_buffers, lr, momentum, dampening, nesterov, weight_decay, first_step):
    """Tensors of one device. momentum_buffers: empty where momentum is 0."""
    lib = library()
    device, stream = where("SGD", weights[0], "a parameter")
    buffers = _pointers(momentum_buffers) if momentum else None
    lib.check(lib.sgd_step(device, stream, len(weights), _pointers(weights), _pointers(gradients), buffers,
                           _lengths(weights), lr, momentum, dampening, nesterov, weight_decay, first_step))


def adam_step(weights, gradients, exp_avgs, exp_avg_sqs, lr, beta1, beta2, epsilon, weight_decay, decoupled, step):
    lib = library()
    device, stream = where("Adam", weights[0], "a parameter")
    lib.check(lib.adam_step(device, stream, len(weights), _pointers(weights), _pointers(gradients), _pointers(exp_avgs),
                            _pointers(exp_avg_sqs), _lengths(weights), lr, beta1, beta2, epsilon, weight_decay,
                            decoupled, step))
