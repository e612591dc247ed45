#!/usr/bin/env python3
"""Makes phase1_building_blocks/08_softmax/testdata/softmax_golden.h: what PyTorch computes, for softmax_test and its fused kin.

    python3 tools/golden/softmax_golden.py > phase1_building_blocks/08_softmax/testdata/softmax_golden.h && tools/format      (needs python3-torch)

In float64 on float32 inputs, rounded to float32: softmax and its gradient; batch normalisation with given statistics,
ReLU and softmax.
"""
import torch
from torch.nn import functional as F

from arrays import array, head

ROWS, COLS = 3, 11


def main():
    torch.manual_seed(2026)
    x = (torch.randn(ROWS, COLS) * 4).double()
    x[2, 3] = -float("inf")  # ruled out
    dy = torch.randn(ROWS, COLS).double()
    leaf = x.clone().requires_grad_()
    y = torch.softmax(leaf, 1)
    y.backward(dy)
    features = (torch.randn(ROWS, COLS) * 2).double()
    mean, gamma, beta = (torch.randn(COLS).double() for _ in range(3))
    variance = (torch.rand(COLS) * 2 + 0.1).double()
    normal = F.batch_norm(features, mean, variance, gamma, beta, training=False, eps=1e-5)
    fused = torch.softmax(F.relu(normal), 1)
    print(head())
    print("enum { GOLDEN_ROWS = %d, GOLDEN_COLS = %d };\n" % (ROWS, COLS))
    finite = x.clone()
    finite[2, 3] = -3e38  # in C a constant; to exp() the same
    tensors = {"x": finite, "y": y.detach(), "dy": dy, "dx": leaf.grad, "features": features, "mean": mean,
               "variance": variance, "gamma": gamma, "beta": beta, "fused": fused}
    print("\n".join(array(name, tensor) for name, tensor in tensors.items()), end="")


if __name__ == "__main__":
    main()
