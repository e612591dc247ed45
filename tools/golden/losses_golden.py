#!/usr/bin/env python3
"""Makes phase1_building_blocks/09_losses/testdata/losses_golden.h: what PyTorch computes, for the tests of activations and losses.

    python3 tools/golden/losses_golden.py > phase1_building_blocks/09_losses/testdata/losses_golden.h && tools/format      (needs python3-torch)

In float64 on float32 inputs, rounded to float32: each function and the gradient of sum(dy * y) or of the mean loss.
"""
import torch
from torch.nn import functional as F

from arrays import array, head

ROWS, COLS = 4, 9
N = ROWS * COLS


def gradient(function, x, dy=None):
    leaf = x.clone().requires_grad_()
    y = function(leaf)
    y.backward(dy)
    return y.detach(), leaf.grad


def main():
    torch.manual_seed(2026)
    x = (torch.randn(N) * 4).float().double()
    x[5], x[6], x[7], x[8] = 95, -95, 2.0**-20, -(2.0**-20)
    dy = torch.randn(N).double()
    tensors = {"x": x, "dy": dy}
    for name, function in (("relu", F.relu), ("leaky_relu", F.leaky_relu), ("sigmoid", torch.sigmoid), ("tanh", torch.tanh)):
        tensors[name], tensors[name + "_dx"] = gradient(function, x, dy)

    target, truth = torch.randn(N).double(), torch.rand(N).float().double()
    p = torch.rand(N).float().double()
    p[3], p[4], truth[3], truth[4] = 0, 1, 0.5, 0.25  # PyTorch's limits for logarithms and divisions
    sides = torch.where(torch.rand(N) < 0.5, -1.0, 1.0).double()
    tensors.update({"target": target, "truth": truth, "p": p, "sides": sides})
    tensors["mse"], tensors["mse_dx"] = gradient(lambda v: F.mse_loss(v, target.float().double()), x)
    tensors["bce"], tensors["bce_dx"] = gradient(lambda v: F.binary_cross_entropy(v, truth), p)
    tensors["bce_logits"], tensors["bce_logits_dx"] = gradient(lambda v: F.binary_cross_entropy_with_logits(v, truth), x)
    # PyTorch has the hinge for several classes only; this is its definition, differentiated by PyTorch
    tensors["hinge"], tensors["hinge_dx"] = gradient(lambda v: F.relu(1 - sides * v).mean(), x)

    labels = torch.tensor([0, 8, 3, 4])
    rows = (torch.rand(ROWS, COLS) + 0.1).float().double()
    logits = (torch.randn(ROWS, COLS) * 8).float().double()
    tensors.update({"rows": rows, "logits": logits})
    tensors["cross_entropy"], tensors["cross_entropy_dx"] = gradient(lambda v: F.nll_loss(torch.log(v), labels), rows)
    tensors["losses"] = F.cross_entropy(logits, labels, reduction="none")
    tensors["dlogits"] = gradient(lambda v: F.cross_entropy(v, labels), logits)[1]
    # smoothed labels; and mixed with those of the row from the end, by a share of 0.375, and smoothed
    smooth = 0.125
    mixed = 0.625 * F.one_hot(labels, COLS).double() + 0.375 * F.one_hot(labels.flip(0), COLS).double()
    for name, target in (("smoothed", labels), ("mixed", mixed)):
        tensors[name + "_losses"] = F.cross_entropy(logits, target, reduction="none", label_smoothing=smooth)
        tensors[name + "_dlogits"] = gradient(lambda v: F.cross_entropy(v, target, label_smoothing=smooth), logits)[1]
    print(head())
    print("enum { GOLDEN_ROWS = %d, GOLDEN_COLS = %d, GOLDEN_N = %d };\n" % (ROWS, COLS, N))
    print("__attribute__((unused)) static const int golden_labels[] = {%s};\n" % ", ".join(map(str, labels.tolist())))
    print("\n".join(array(name, tensor) for name, tensor in tensors.items()), end="")


if __name__ == "__main__":
    main()
