"""torchvision's ResNet and its basic block, each with a forward that hands ReLU and the addition to batch norm: one
kernel, and backward needs the convolution's result alone, not the norm's. Imported where a model has such blocks. Where
somebody has put other layers in the place of the norms since, as optimize_resnet18() does, forward is torchvision's."""
import torch
from torch.autograd.function import once_differentiable
from torchvision.models import resnet

from . import backend
from .modules import BatchNorm2d, Conv2d
from .operators import compiling


class NormReluConv(torch.autograd.Function):
    """conv(relu(batch_norm(x))) in training. What lies between is not kept for backward, which computes it again from
    x: one more pass over an array, and a quarter less memory for a block."""

    @staticmethod
    def forward(ctx, x, gamma, beta, running_mean, running_var, momentum, epsilon, weight, *arguments):
        ops = backend.ops
        h, mean, inv_std, passed = ops.batch_norm(x, None, gamma, beta, running_mean, running_var, 1, momentum, epsilon)
        ctx.save_for_backward(x, gamma, beta, mean, inv_std, passed, weight)
        ctx.epsilon, ctx.arguments = epsilon, arguments
        return ops.conv2d(h, weight, None, None, False, *arguments)

    @staticmethod
    @once_differentiable
    def backward(ctx, dy):
        ops, (x, gamma, beta, mean, inv_std, passed, weight) = backend.ops, ctx.saved_tensors
        h = ops.batch_norm_evaluate(x, None, gamma, beta, mean, inv_std.pow(-2) - ctx.epsilon, 1, ctx.epsilon)
        dw, _ = ops.conv2d_backward_weight(dy, h, weight.shape, False, *ctx.arguments)
        del h
        dh = ops.conv2d_backward_input(dy, weight, x.shape, *ctx.arguments)
        dx, _, dgamma, dbeta = ops.batch_norm_backward(dh, x, gamma, beta, mean, inv_std, passed, 1, False)
        return (dx, dgamma, dbeta) + (None,) * 4 + (dw,) + (None,) * len(ctx.arguments)


_HOOKS = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")  # the last: PyTorch 2.0


def _in_one(norm, conv):
    """Whether the two layers are what NormReluConv computes, and nobody looks at what lies between."""
    hooks = [getattr(layer, kind, None) for layer in (norm, conv) for kind in _HOOKS]
    wanted = (norm.weight, norm.bias, conv.weight)
    return (norm.training and torch.is_grad_enabled() and not compiling() and not any(hooks)
            and type(conv) is Conv2d and conv.bias is None and norm.affine
            and all(parameter.requires_grad for parameter in wanted))


class BasicBlock(resnet.BasicBlock):
    def forward(self, x):
        if type(self.bn1) is not BatchNorm2d or type(self.bn2) is not BatchNorm2d:
            return super().forward(x)
        shortcut = x if self.downsample is None else self.downsample(x)
        norm, conv = self.bn1, self.conv2
        x = self.conv1(x)
        if _in_one(norm, conv) and x.requires_grad:
            norm.num_batches_tracked.add_(1)
            x = NormReluConv.apply(x, norm.weight, norm.bias, norm.running_mean, norm.running_var, norm.momentum,
                                   norm.eps, conv.weight, conv.stride, conv.equal_padding, conv.dilation, conv.groups)
        else:
            x = conv(norm(x, relu=True))
        return self.bn2(x, relu=True, residual=shortcut)


class ResNet(resnet.ResNet):
    def _forward_impl(self, x):
        if type(self.bn1) is not BatchNorm2d:
            return super()._forward_impl(x)
        x = self.maxpool(self.bn1(self.conv1(x), relu=True))
        for layer in (self.layer1, self.layer2, self.layer3, self.layer4):
            x = layer(x)
        return self.fc(torch.flatten(self.avgpool(x), 1))


CLASSES = {resnet.BasicBlock: BasicBlock, resnet.ResNet: ResNet}
