"""Operations that autograd knows: for each what forward keeps, and which of our backward functions to call.

A rule is two functions, as torch.library wants them: setup(ctx, inputs, output) and backward(ops, ctx, *gradients),
where `ops` is the level below: backend.ops when PyTorch runs eagerly, torch.ops.nncuda in a graph of torch.compile
(operators.py). Gradients of gradients are not supported: our backward kernels have none, and PyTorch says so.
"""
import torch
from torch.autograd.function import once_differentiable

from . import backend

RULES = {}
FUNCTIONS = {}


def _function(name, setup, backward):
    """The torch.autograd.Function of an operation."""
    class Operation(torch.autograd.Function):
        @staticmethod
        def forward(ctx, *inputs):
            output = getattr(backend.ops, name)(*inputs)
            ctx.set_materialize_grads(False)  # else PyTorch fills an array of zeros for what has no gradient: argmax
            setup(ctx, inputs, output)
            return output

        @staticmethod
        @once_differentiable
        def backward(ctx, *gradients):
            return backward(backend.ops, ctx, *gradients)

    Operation.__name__ = Operation.__qualname__ = name
    return Operation


def rule(setup):
    """Decorates backward."""
    def register(backward):
        name = backward.__name__.strip("_")
        RULES[name] = (setup, backward)
        FUNCTIONS[name] = _function(name, setup, backward)
        return backward
    return register


def call(name, *inputs):
    """The operation, with autograd where one of the inputs wants a gradient."""
    if torch.is_grad_enabled():
        for x in inputs:
            if isinstance(x, torch.Tensor) and x.requires_grad:
                return FUNCTIONS[name].apply(*inputs)
    return getattr(backend.ops, name)(*inputs)


def _keep_output(ctx, inputs, output):
    ctx.save_for_backward(output)
    ctx.arguments = inputs[1:]


@rule(_keep_output)
def _softmax(ops, ctx, dy):
    return ops.softmax_backward(dy, *ctx.saved_tensors)


@rule(_keep_output)
def _activation(ops, ctx, dy):
    return ops.activation_backward(dy, *ctx.saved_tensors, *ctx.arguments), None


@rule(_keep_output)
def _add_relu(ops, ctx, dy):
    d = ops.add_relu_backward(dy, *ctx.saved_tensors)
    return d, d


def _keep_arguments(ctx, inputs, output):
    ctx.arguments = inputs[1:]


@rule(_keep_arguments)
def _dropout(ops, ctx, dy):
    return ops.dropout(dy, *ctx.arguments), None, None, None


def _keep_matmul(ctx, inputs, output):
    ctx.save_for_backward(*inputs[:2])
    ctx.transposed = inputs[2:]


@rule(_keep_matmul)
def _matmul(ops, ctx, dc):
    """c = op(a) op(b): the gradient of op(a) is dc op(b)^T; that of a, where a lies transposed, is its transpose."""
    (a, b), (ta, tb) = ctx.saved_tensors, ctx.transposed
    da = db = None
    if ctx.needs_input_grad[0]:
        da = ops.matmul(b, dc, tb, True) if ta else ops.matmul(dc, b, False, not tb)
    if ctx.needs_input_grad[1]:
        db = ops.matmul(dc, a, True, ta) if tb else ops.matmul(a, dc, not ta, False)
    return da, db, None, None


def _keep_linear(ctx, inputs, output):
    x, weight, bias, relu = inputs
    ctx.save_for_backward(x, weight, *([output] if relu else []))
    ctx.relu = relu


@rule(_keep_linear)
def _linear(ops, ctx, dy):
    x, weight, *y = ctx.saved_tensors
    need = ctx.needs_input_grad
    dx, dw, db = ops.linear_backward(dy, y[0] if y else None, x, weight, need[0], need[1], need[2], ctx.relu)
    return dx if need[0] else None, dw if need[1] else None, db if need[2] else None, None


def _keep_conv2d(ctx, inputs, output):
    x, weight, bias, residual, relu = inputs[:5]
    ctx.save_for_backward(x, weight, *([output] if relu else []))
    ctx.arguments = inputs[5:]


@rule(_keep_conv2d)
def _conv2d(ops, ctx, dy):
    x, weight, *y = ctx.saved_tensors
    need, arguments = ctx.needs_input_grad, ctx.arguments
    if y:  # ReLU came last, its gradient comes first
        dy = ops.activation_backward(dy, y[0], 0)
    dx = ops.conv2d_backward_input(dy, weight, x.shape, *arguments) if need[0] else None
    dw = db = None
    if need[1] or need[2]:
        dw, db = ops.conv2d_backward_weight(dy, x, weight.shape, need[2], *arguments)
    return (dx, dw if need[1] else None, db if need[2] else None, dy if need[3] else None) + (None,) * 5


def _keep_max_pool2d(ctx, inputs, output):
    y, argmax = output
    ctx.mark_non_differentiable(argmax)
    ctx.save_for_backward(argmax)
    ctx.arguments = (inputs[0].shape, *inputs[1:6])  # less relu: argmax knows which outputs are 0


@rule(_keep_max_pool2d)
def _max_pool2d(ops, ctx, dy, _):
    return (ops.max_pool2d_backward(dy, *ctx.saved_tensors, *ctx.arguments),) + (None,) * 6


def _keep_shape(ctx, inputs, output):
    ctx.arguments = (inputs[0].shape, *inputs[1:])


@rule(_keep_shape)
def _avg_pool2d(ops, ctx, dy):
    return (ops.avg_pool2d_backward(dy, *ctx.arguments),) + (None,) * 5


@rule(_keep_shape)
def _global_avg_pool2d(ops, ctx, dy):
    return ops.global_avg_pool2d_backward(dy, *ctx.arguments)


def _keep_layer_norm(ctx, inputs, output):
    y, saved = output
    ctx.mark_non_differentiable(saved)
    ctx.save_for_backward(inputs[0], inputs[1], saved)


@rule(_keep_layer_norm)
def _layer_norm(ops, ctx, dy, _):
    x, weight, saved = ctx.saved_tensors
    need = ctx.needs_input_grad
    dx, dw, db = ops.layer_norm_backward(dy, x, weight, saved, need[0], need[1] or need[2])
    return dx if need[0] else None, dw if need[1] else None, db if need[2] else None, None


def _keep_batch_norm(ctx, inputs, output):
    y, mean, inv_std, passed = output
    ctx.mark_non_differentiable(mean, inv_std, passed)
    ctx.save_for_backward(inputs[0], inputs[2], inputs[3], mean, inv_std, passed)
    ctx.after = inputs[6]


@rule(_keep_batch_norm)
def _batch_norm(ops, ctx, dy, *_):
    dx, dz, dgamma, dbeta = ops.batch_norm_backward(dy, *ctx.saved_tensors, ctx.after, ctx.needs_input_grad[1])
    return (dx, dz if ctx.needs_input_grad[1] else None, dgamma, dbeta) + (None,) * 5


def _keep_attention(ctx, inputs, output):
    o, lse = output
    ctx.mark_non_differentiable(lse)
    ctx.save_for_backward(*inputs[:3], o, lse)
    ctx.causal = inputs[3]


@rule(_keep_attention)
def _attention(ops, ctx, do, _):
    return (*ops.attention_backward(do, *ctx.saved_tensors, ctx.causal), None)


class CrossEntropy(torch.autograd.Function):
    """Loss and gradient are computed in one pass over the logits, in forward. Backward has only to multiply the
    gradient by what comes from above, and nncuda_scale() leaves it alone where that is 1, without asking the GPU for
    the number.

    Backward gives the gradient away, so a second backward pass (retain_graph=True) computes it again from the
    logits."""

    @staticmethod
    def forward(ctx, logits, labels, reduction, ignore_index, label_smoothing):
        loss, ctx.gradient = backend.ops.cross_entropy(logits, labels, reduction, ignore_index, label_smoothing, True)
        ctx.save_for_backward(logits, labels)
        ctx.arguments = (reduction, ignore_index, label_smoothing)
        return loss

    @staticmethod
    @once_differentiable
    def backward(ctx, dloss):
        logits, labels = ctx.saved_tensors
        gradient, ctx.gradient = ctx.gradient, None
        if gradient is None:
            gradient = backend.ops.cross_entropy(logits, labels, *ctx.arguments, True)[1]
        return backend.ops.scale_(gradient, dloss), None, None, None, None
