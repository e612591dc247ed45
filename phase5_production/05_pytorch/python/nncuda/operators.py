"""The operations as operators of torch.library, torch.ops.nncuda.softmax and so on, so that torch.compile keeps them in
its graph and does not break it: for each a schema, the shapes of its outputs ("fake": no data), and the autograd rule
of _autograd.py.

Registered at import where PyTorch is 2.4 or newer. In eager mode nobody calls them: an operator of Python costs more
per call than a function. register() also works with PyTorch 1.13, which has no torch.compile; tests use that.
"""
import torch

from . import _autograd, backend

_SHAPE = "SymInt[]" if hasattr(torch, "SymInt") and hasattr(torch.library, "register_fake") else "int[]"
_CONV = "int[] stride, int[] padding, int[] dilation, int groups"
_POOL = "int[] kernel, int[] stride, int[] padding"
_library = None  # keeps the registrations alive

# torch.compiler.is_compiling() is a constant True where torch.compile traces.
compiling = getattr(getattr(torch, "compiler", None), "is_compiling", None) or (lambda: False)


def graph_ops():
    return torch.ops.nncuda


def _new(x, *shape, dtype=None):
    return x.new_empty(shape, dtype=dtype or x.dtype)


def _nothing(x):
    return x.new_empty((0,))


def _same(x, *_):
    return torch.empty(x.shape, dtype=x.dtype, device=x.device)  # contiguous, whatever x is


def _window(size, kernel, stride, padding, dilation=1, ceil_mode=False):
    span = size + 2 * padding - dilation * (kernel - 1) - 1
    count = (span + (stride - 1 if ceil_mode else 0)) // stride + 1
    if ceil_mode and (count - 1) * stride >= size + padding:  # no window begins in the padding on the right
        count -= 1
    return count


def _conv2d(x, weight, bias, residual, relu, stride, padding, dilation, groups):
    return _new(x, x.shape[0], weight.shape[0], *(
        _window(x.shape[2 + i], weight.shape[2 + i], stride[i], padding[i], dilation[i]) for i in (0, 1)))


def _conv2d_nhwc(x, weight, *rest):
    return torch.empty(_conv2d(x, weight, *rest).shape, dtype=x.dtype, device=x.device,
                       memory_format=torch.channels_last)


def _pooled(x, kernel, stride, padding, dilation, ceil_mode):
    return (*x.shape[:2], *(
        _window(x.shape[2 + i], kernel[i], stride[i], padding[i], dilation[i], ceil_mode) for i in (0, 1)))


def _max_pool2d(x, kernel, stride, padding, dilation, ceil_mode, relu):
    shape = _pooled(x, kernel, stride, padding, dilation, ceil_mode)
    return _new(x, *shape), _new(x, *shape, dtype=torch.uint8)


def _stem_pool2d(x, weight, bias, tensor_cores, stride, padding, kernel, pool_stride, pool_padding):
    y = _conv2d(x, weight, bias, None, True, stride, padding, (1, 1), 1)
    return torch.empty(_pooled(y, kernel, pool_stride, pool_padding, (1, 1), False), dtype=weight.dtype,
                       device=x.device, memory_format=torch.channels_last if tensor_cores else torch.contiguous_format)


def _linear_backward(dy, y, x, weight, need_x, need_weight, need_bias, relu):
    return (_same(x) if need_x else _nothing(x), _same(weight) if need_weight else _nothing(x),
            _new(x, weight.shape[0]) if need_bias else _nothing(x))


def _layer_norm(x, weight, bias, epsilon):
    return _same(x), _new(x, x.numel() // weight.numel(), 2)


def _batch_norm(x, z, gamma, beta, running_mean, running_var, after, momentum, epsilon):
    n, c, pixels = x.shape[0], x.shape[1], x.shape[2] * x.shape[3]
    bits = c * ((n * pixels + 31) // 32) * 4 if after == 2 else 0  # nncuda_batch_norm_passed()
    return _same(x), _same(gamma), _same(gamma), _new(x, bits, dtype=torch.uint8)


# name: (arguments, results, fake)
SCHEMAS = {
    "softmax": ("Tensor x", "Tensor", _same),
    "softmax_backward": ("Tensor dy, Tensor y", "Tensor", lambda dy, y: _same(y)),
    "cross_entropy": (
        "Tensor logits, Tensor labels, int reduction, int ignore_index, float label_smoothing, bool gradient",
        "(Tensor, Tensor)",
        lambda logits, labels, reduction, ignore, smoothing, gradient: (
            _new(logits), _same(logits) if gradient else _nothing(logits))),
    "activation": ("Tensor x, int kind", "Tensor", _same),
    "activation_backward": ("Tensor dy, Tensor y, int kind", "Tensor", lambda dy, y, kind: _same(y)),
    "add_relu": ("Tensor a, Tensor b", "Tensor", _same),
    "add_relu_backward": ("Tensor dy, Tensor y", "Tensor", lambda dy, y: _same(y)),
    "matmul": (
        "Tensor a, Tensor b, bool transpose_a, bool transpose_b", "Tensor",
        lambda a, b, ta, tb: _new(a, a.shape[1] if ta else a.shape[0], b.shape[0] if tb else b.shape[1])),
    "linear": (
        "Tensor x, Tensor weight, Tensor? bias, bool relu", "Tensor",
        lambda x, weight, bias, relu: _new(x, *x.shape[:-1], weight.shape[0])),
    "linear_backward": (
        "Tensor dy, Tensor? y, Tensor x, Tensor weight, bool need_x, bool need_weight, bool need_bias, bool relu",
        "(Tensor, Tensor, Tensor)", _linear_backward),
    "conv2d": ("Tensor x, Tensor weight, Tensor? bias, Tensor? residual, bool relu, " + _CONV, "Tensor", _conv2d),
    "conv2d_nhwc": (
        "Tensor x, Tensor weight, Tensor? bias, Tensor? residual, bool relu, " + _CONV, "Tensor", _conv2d_nhwc),
    "stem_pool2d": (
        "Tensor x, Tensor weight, Tensor bias, bool tensor_cores, int[] stride, int[] padding, int[] kernel, int[] "
        "pool_stride, int[] pool_padding", "Tensor", _stem_pool2d),
    "conv2d_backward_input": (
        "Tensor dy, Tensor weight, %s x_shape, %s" % (_SHAPE, _CONV), "Tensor",
        lambda dy, weight, x_shape, *_: _new(dy, *x_shape)),
    "conv2d_backward_weight": (
        "Tensor dy, Tensor x, %s weight_shape, bool need_bias, %s" % (_SHAPE, _CONV), "(Tensor, Tensor)",
        lambda dy, x, weight_shape, need_bias, *_: (
            _new(x, *weight_shape), _new(x, weight_shape[0]) if need_bias else _nothing(x))),
    "max_pool2d": ("Tensor x, %s, int[] dilation, bool ceil_mode, bool relu" % _POOL, "(Tensor, Tensor)", _max_pool2d),
    "max_pool2d_backward": (
        "Tensor dy, Tensor argmax, %s x_shape, %s, int[] dilation, bool ceil_mode" % (_SHAPE, _POOL), "Tensor",
        lambda dy, argmax, x_shape, *_: _new(dy, *x_shape)),
    "avg_pool2d": (
        "Tensor x, %s, bool ceil_mode, bool count_include_pad" % _POOL, "Tensor",
        lambda x, kernel, stride, padding, ceil_mode, count: _new(x,
                                                                  *_pooled(x, kernel, stride, padding, (1, 1),
                                                                           ceil_mode))),
    "avg_pool2d_backward": (
        "Tensor dy, %s x_shape, %s, bool ceil_mode, bool count_include_pad" % (_SHAPE, _POOL), "Tensor",
        lambda dy, x_shape, *_: _new(dy, *x_shape)),
    "global_avg_pool2d": ("Tensor x", "Tensor", lambda x: _new(x, *x.shape[:2], 1, 1)),
    "global_avg_pool2d_backward": ("Tensor dy, %s x_shape" % _SHAPE, "Tensor", lambda dy, x_shape: _new(dy, *x_shape)),
    "layer_norm": ("Tensor x, Tensor weight, Tensor bias, float epsilon", "(Tensor, Tensor)", _layer_norm),
    "layer_norm_backward": (
        "Tensor dy, Tensor x, Tensor weight, Tensor saved, bool need_x, bool need_weight", "(Tensor, Tensor, Tensor)",
        lambda dy, x, weight, saved, need_x, need_weight: (
            _same(x) if need_x else _nothing(x), *((_same(weight), _same(weight)) if need_weight
                                                   else (_nothing(x), _nothing(x))))),
    "batch_norm": (
        "Tensor x, Tensor? z, Tensor gamma, Tensor beta, Tensor? running_mean, Tensor? running_var, int after, float "
        "momentum, float epsilon", "(Tensor, Tensor, Tensor, Tensor)", _batch_norm),
    "batch_norm_evaluate": (
        "Tensor x, Tensor? z, Tensor gamma, Tensor beta, Tensor running_mean, Tensor running_var, int after, float "
        "epsilon",
        "Tensor", _same),
    "batch_norm_backward": (
        "Tensor dy, Tensor x, Tensor gamma, Tensor beta, Tensor mean, Tensor inv_std, Tensor passed, int after, bool "
        "need_z",
        "(Tensor, Tensor, Tensor, Tensor)",
        lambda dy, x, gamma, beta, mean, inv_std, passed, after, need_z: (
            _same(x), _same(x) if need_z else _nothing(x), _same(gamma), _same(beta))),
    "attention": (
        "Tensor q, Tensor k, Tensor v, bool causal", "(Tensor, Tensor)",
        lambda q, k, v, causal: (_same(q), _new(q, *q.shape[:3], dtype=torch.float32))),
    "attention_backward": (
        "Tensor dout, Tensor q, Tensor k, Tensor v, Tensor o, Tensor lse, bool causal", "(Tensor, Tensor, Tensor)",
        lambda dout, q, k, v, o, lse, causal: (_same(q), _same(k), _same(v))),
}


def _keep_cross_entropy(ctx, inputs, output):
    loss, gradient = output
    ctx.mark_non_differentiable(gradient)
    ctx.save_for_backward(gradient)


def _cross_entropy(ops, ctx, dloss, _):
    return (ctx.saved_tensors[0] * dloss,) + (None,) * 5


def _kernel(name):
    """An operator must return tensors: an empty one stands for None."""
    def run(*inputs):
        output = getattr(backend.ops, name)(*inputs)
        if not isinstance(output, tuple):
            return output
        like = next(x for x in output if x is not None)
        return tuple(torch.empty(0, dtype=torch.float32, device=like.device) if x is None else x for x in output)
    return run


def _fake(name, shapes):
    """Refuses where the kernel would: types are wrong in a graph, too."""
    def run(*inputs):
        first = inputs[0]
        allowed = [torch.float32]
        if name == "conv2d_nhwc" or name.startswith("attention"):
            allowed += [torch.bfloat16, torch.float16]
        if first.dtype not in allowed:
            raise TypeError("nncuda::%s: the first argument has dtype %s; expected torch.float32: convert it with "
                            "float()" % (name, first.dtype))
        return shapes(*inputs)
    return run


def _register_autograd(library, name, setup, backward):
    def graph_backward(ctx, *gradients):
        return backward(torch.ops.nncuda, ctx, *gradients)

    if hasattr(torch.library, "register_autograd"):
        torch.library.register_autograd("nncuda::" + name, graph_backward, setup_context=setup, lib=library)
        return

    class Operation(torch.autograd.Function):
        @staticmethod
        def forward(ctx, *inputs):
            below = torch._C._AutoDispatchBelowAutograd()  # as long as it lives, autograd's own kernel is passed over
            output = getattr(torch.ops.nncuda, name)(*inputs)
            del below
            setup(ctx, inputs, output)
            return output

        backward = staticmethod(graph_backward)

    library.impl(name, Operation.apply, "Autograd")


def register():
    """Makes torch.ops.nncuda; twice is once."""
    global _library
    if _library is not None:
        return
    library = torch.library.Library("nncuda", "DEF")
    for name, (arguments, results, fake) in SCHEMAS.items():
        library.define("%s(%s) -> %s" % (name, arguments, results))
        for key in ("CPU", "CUDA"):
            library.impl(name, _kernel(name), key)
        if hasattr(torch.library, "register_fake"):
            torch.library.register_fake("nncuda::" + name, _fake(name, fake), lib=library)
        else:
            library.impl(name, _fake(name, fake), "Meta")
    rules = {name: rule for name, rule in _autograd.RULES.items() if name in SCHEMAS}
    rules["cross_entropy"] = (_keep_cross_entropy, _cross_entropy)
    for name, (setup, backward) in rules.items():
        _register_autograd(library, name, setup, backward)
    _library = library


def batch_norm_in_graph(x, z, running_mean, running_var, gamma, beta, after, momentum, epsilon):
    """Batch norm in training for torch.compile: an operator with a gradient may not write into an argument, so the
    graph updates the running statistics by PyTorch's own operators."""
    y, mean, inv_std, _ = torch.ops.nncuda.batch_norm(x, z, gamma, beta, None, None, after, momentum, epsilon)
    if running_mean is not None:
        with torch.no_grad():
            count = x.numel() // x.shape[1]
            variance = (inv_std.pow(-2) - epsilon) * (count / max(count - 1, 1))
            running_mean.lerp_(mean, momentum)
            running_var.lerp_(variance, momentum)
    return y


if hasattr(torch.library, "register_fake") and hasattr(torch.library, "register_autograd"):
    register()
