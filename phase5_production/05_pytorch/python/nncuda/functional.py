"""The operations as functions, with the names and arguments of torch.nn.functional where it has the same one.

float32, on a GPU or on the CPU; gradients by our backward kernels. What an operation cannot do it refuses by an
exception that names the argument: TypeError (dtype, not a tensor), ValueError (shape, device, value),
NotImplementedError (there is no kernel), RuntimeError (the library, CUDA).
"""
import math

import torch

from . import _autograd, _checks, backend
from ._autograd import call
from .operators import batch_norm_in_graph, compiling, graph_ops

RELU, LEAKY_RELU, SIGMOID, TANH = range(4)
_REDUCTIONS = {"mean": 0, "sum": 1}


def _do(name, *inputs):
    """In a graph of torch.compile the registered operator, else the function."""
    if compiling():
        return getattr(graph_ops(), name)(*inputs)
    return call(name, *inputs)


def softmax(x, dim=-1):
    """exp(x - max) / sum along `dim`. The kernels walk along the last dimension; for another one x is transposed, a
    copy."""
    _checks.is_tensor("softmax", "x", x)
    if dim == -1 or dim == x.dim() - 1:
        return _do("softmax", x)
    if not -x.dim() <= dim < x.dim():
        raise ValueError("softmax: dim is %r; expected %d to %d for shape %s"
                         % (dim, -x.dim(), x.dim() - 1, _checks.shape_text(x.shape)))
    return _do("softmax", x.transpose(dim, -1)).transpose(dim, -1)


def cross_entropy(input, target, ignore_index=-100, reduction="mean", label_smoothing=0.0):
    """The loss of logits `input` (rows, classes) for classes `target` (rows), int64. Where there are gradients, they
    are computed in the same pass. On a GPU a wrong class makes the loss NaN; on the CPU it is a ValueError."""
    if reduction not in _REDUCTIONS:
        raise ValueError("cross_entropy: reduction is %r; expected 'mean' or 'sum'" % (reduction,))
    label_smoothing = _checks.between("cross_entropy", "label_smoothing", label_smoothing, 0.0, 1.0)
    arguments = (input, target, _REDUCTIONS[reduction], ignore_index, label_smoothing)
    if compiling():
        return graph_ops().cross_entropy(*arguments, True)[0]
    if isinstance(input, torch.Tensor) and isinstance(target, torch.Tensor) and not target.is_cuda and input.dim() == 2:
        _checks.label_range("cross_entropy", "target", target, input.shape[1], ignore_index)
    if torch.is_grad_enabled() and getattr(input, "requires_grad", False):
        return _autograd.CrossEntropy.apply(*arguments)
    return backend.ops.cross_entropy(*arguments, False)[0]


def relu(x):
    return _do("activation", x, RELU)


def leaky_relu(x):
    """With slope 0.01 below 0."""
    return _do("activation", x, LEAKY_RELU)


def sigmoid(x):
    return _do("activation", x, SIGMOID)


def tanh(x):
    return _do("activation", x, TANH)


def add_relu(a, b):
    """max(0, a + b) in one kernel."""
    return _do("add_relu", a, b)


def dropout(x, p=0.5, training=True, seed=None):
    """Each element is 0 with probability p, else x / (1 - p). Which ones follows from `seed`, by default a number from
    PyTorch's generator (torch.manual_seed). No mask is kept: backward computes it again."""
    p = _checks.between("dropout", "p", p, 0.0, 1.0)
    if not training or p == 0.0:
        return x
    if compiling():
        return torch.nn.functional.dropout(x, p)  # a graph cannot ask for a number in between
    if seed is None:
        seed = int(torch.randint(1 << 62, ()))
    elif not isinstance(seed, int) or not 0 <= seed < 1 << 64:
        raise ValueError("dropout: seed is %r; expected an int, 0 to 2^64 - 1" % (seed,))
    return call("dropout", x, p, seed, 0)


def matmul(a, b):
    """a (m,k) times b (k,n). A transposed view, w.t(), is read as it lies and not copied."""
    transposed = []
    for x in (a, b):
        turned = isinstance(x, torch.Tensor) and x.dim() == 2 and not x.is_contiguous() and x.t().is_contiguous()
        transposed.append(turned)
    a, b = (x.t() if turned else x for x, turned in zip((a, b), transposed))
    return _do("matmul", a, b, *transposed)


def linear(x, weight, bias=None, relu=False):
    """x weight^T + bias, then max(0, .) if `relu`, in one launch."""
    return _do("linear", x, weight, bias, bool(relu))


def conv2d(x, weight, bias=None, stride=1, padding=0, dilation=1, groups=1, *, residual=None, relu=False):
    """conv(x, weight) + bias + residual, then max(0, .) if `relu`, in one kernel. NCHW."""
    pair = _checks.pair
    return _do("conv2d", x, weight, bias, residual, bool(relu), pair("conv2d", "stride", stride, 1),
               pair("conv2d", "padding", padding, 0), pair("conv2d", "dilation", dilation, 1),
               _checks.whole("conv2d", "groups", groups, 1))


def conv2d_nhwc(x, weight, bias=None, stride=1, padding=0, dilation=1, groups=1, *, residual=None, relu=False):
    """conv2d() by tensor cores, for inference: x, weight, residual and the result are in the memory format
    torch.channels_last (others are copied), of float16, bfloat16, or float32 whose factors are rounded to TF32; bias is
    float32. It computes no gradients."""
    if torch.is_grad_enabled() and any(getattr(t, "requires_grad", False) for t in (x, weight, bias, residual)):
        raise NotImplementedError("conv2d_nhwc: an input requires a gradient, which this operation does not compute; "
                                  "expected torch.no_grad() or inference_mode(); nncuda.conv2d has gradients")
    pair = _checks.pair
    return _do("conv2d_nhwc", x, weight, bias, residual, bool(relu), pair("conv2d_nhwc", "stride", stride, 1),
               pair("conv2d_nhwc", "padding", padding, 0), pair("conv2d_nhwc", "dilation", dilation, 1),
               _checks.whole("conv2d_nhwc", "groups", groups, 1))


def stem_pool2d(x, weight, bias, stride=2, padding=3, kernel_size=3, pool_stride=2, pool_padding=1, *,
                tensor_cores=False):
    """max_pool2d(relu(conv2d(x, weight, bias))), the beginning of a ResNet, for inference: what the convolution gives
    is in memory for a few pictures at a time, or not at all. With tensor_cores as conv2d_nhwc(), but x is float32,
    NCHW. It computes no gradients."""
    if torch.is_grad_enabled() and any(getattr(t, "requires_grad", False) for t in (x, weight, bias)):
        raise NotImplementedError("stem_pool2d: an input requires a gradient, which this operation does not compute; "
                                  "expected torch.no_grad() or inference_mode(); conv2d and max_pool2d have gradients")

    def pair(name, value, lowest):
        return _checks.pair("stem_pool2d", name, value, lowest)
    return _do("stem_pool2d", x, weight, bias, bool(tensor_cores), pair("stride", stride, 1),
               pair("padding", padding, 0), pair("kernel_size", kernel_size, 1), pair("pool_stride", pool_stride, 1),
               pair("pool_padding", pool_padding, 0))


def max_pool2d(x, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, *, relu=False):
    """The largest of each window; of max(0, x) if `relu`, in the same kernel."""
    pair = _checks.pair
    return _do("max_pool2d", x, pair("max_pool2d", "kernel_size", kernel_size, 1),
               pair("max_pool2d", "stride", kernel_size if stride is None else stride, 1),
               pair("max_pool2d", "padding", padding, 0),
               pair("max_pool2d", "dilation", dilation, 1), bool(ceil_mode), bool(relu))[0]


def avg_pool2d(x, kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True):
    pair = _checks.pair
    return _do("avg_pool2d", x, pair("avg_pool2d", "kernel_size", kernel_size, 1),
               pair("avg_pool2d", "stride", kernel_size if stride is None else stride, 1),
               pair("avg_pool2d", "padding", padding, 0), bool(ceil_mode), bool(count_include_pad))


def global_avg_pool2d(x):
    """(N,C,H,W) -> (N,C,1,1): the mean of each plane, as adaptive_avg_pool2d(x, 1)."""
    return _do("global_avg_pool2d", x)


def layer_norm(x, normalized_shape, weight=None, bias=None, eps=1e-5):
    _checks.is_tensor("layer_norm", "x", x)
    shape = (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)
    if weight is None:
        weight = torch.ones(shape, device=x.device)
    if bias is None:
        bias = torch.zeros(shape, device=x.device)
    if isinstance(weight, torch.Tensor) and tuple(weight.shape) != shape:
        raise ValueError("layer_norm: weight has shape %s; expected normalized_shape, %s" % (
            _checks.shape_text(weight.shape), _checks.shape_text(shape)))
    return _do("layer_norm", x, weight, bias, eps)[0]


def batch_norm(x, running_mean, running_var, weight=None, bias=None, training=False, momentum=0.1, eps=1e-5, *,
               relu=False, residual=None):
    """Each channel of x (N,C,H,W) with mean 0 and variance 1, times weight, plus bias. In training by the batch's
    statistics, towards which the running ones move; else by those. With `relu` also max(0, . + residual), in the same
    kernel."""
    if residual is not None and not relu:
        raise ValueError("batch_norm: residual is given without relu; expected relu=True: the kernel is relu(norm(x) + "
                         "residual)")
    _checks.is_tensor("batch_norm", "x", x, 4, "N, C, H, W")
    channels = x.shape[1:2]
    weight = torch.ones(channels, device=x.device) if weight is None else weight
    bias = torch.zeros(channels, device=x.device) if bias is None else bias
    after = 2 if residual is not None else 1 if relu else 0
    if training:
        if compiling():
            return batch_norm_in_graph(x, residual, running_mean, running_var, weight, bias, after, momentum, eps)
        return call("batch_norm", x, residual, weight, bias, running_mean, running_var, after, momentum, eps)[0]
    if torch.is_grad_enabled() and any(isinstance(t, torch.Tensor) and t.requires_grad
                                       for t in (x, weight, bias, residual)):
        # Fine-tuning with frozen statistics: an affine function, by PyTorch's operators.
        scale = weight * torch.rsqrt(running_var + eps)
        y = x * scale[:, None, None] + (bias - running_mean * scale)[:, None, None]
        return y if after == 0 else _do("activation", y, RELU) if residual is None else add_relu(y, residual)
    return _do("batch_norm_evaluate", x, residual, weight, bias, running_mean, running_var, after, eps)


def scaled_dot_product_attention(query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None):
    """softmax(query key^T / sqrt(depth)) value; (batch,heads,length,depth), float32 or bfloat16, depth up to 128."""
    _checks.is_tensor("scaled_dot_product_attention", "query", query)
    for name, given, usual in (("attn_mask", attn_mask, None), ("dropout_p", dropout_p, 0.0)):
        if given is not usual and given != usual:
            raise NotImplementedError("scaled_dot_product_attention: %s is given; expected %r: the kernels have none"
                                      % (name, usual))
    if scale is not None and not math.isclose(scale, 1 / math.sqrt(query.shape[-1]), rel_tol=1e-6):
        raise NotImplementedError("scaled_dot_product_attention: scale is %r; expected None, which is 1/sqrt(depth)"
                                  % (scale,))
    return _do("attention", query, key, value, bool(is_causal))[0]
