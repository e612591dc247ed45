#!/usr/bin/env python3
"""Makes phase1_building_blocks/14_attention/testdata/attention_golden.h: what PyTorch computes, for attention_test.

    python3 tools/golden/attention_golden.py > phase1_building_blocks/14_attention/testdata/attention_golden.h && tools/format      (needs python3-torch)

PyTorch's own scaled dot product attention and its gradients, causal and not, in float64 on float32 inputs, rounded to
float32. Each array holds the cases one after the other.
"""
import torch
from torch.nn import functional as F

from arrays import array, head

SHAPES = ((2, 2, 5, 3), (1, 1, 67, 4), (1, 1, 1, 7))  # B, H, S, D; 67: more keys than a tile of any version but the last


def attention(q, k, v, causal):
    if hasattr(F, "scaled_dot_product_attention"):
        return F.scaled_dot_product_attention(q, k, v, is_causal=causal)
    return F._scaled_dot_product_attention(q, k, v, None, 0.0, False, causal)[0]  # its name in PyTorch 1.13


def log_sum_exp(q, k, causal):
    """Of each query's scores; PyTorch's function keeps it inside."""
    scores = q @ k.transpose(-1, -2) / q.shape[-1]**0.5
    if causal:
        scores = scores.masked_fill(torch.ones(scores.shape[-2:]).triu(1).bool(), -float("inf"))
    return torch.logsumexp(scores, -1)


def main():
    torch.manual_seed(2026)
    names = ["q", "k", "v", "dout"] + [n + c for c in ("", "_causal") for n in ("o", "lse", "dq", "dk", "dv")]
    parts = {name: [] for name in names}
    for shape in SHAPES:
        q, k, v, dout = ((torch.randn(shape) * size).double() for size in (3, 1, 1, 1))
        for name, tensor in zip(names, (q, k, v, dout)):
            parts[name].append(tensor)
        for causal in (False, True):
            leaves = [tensor.clone().requires_grad_() for tensor in (q, k, v)]
            o = attention(*leaves, causal)
            o.backward(dout)
            results = [o.detach(), log_sum_exp(q, k, causal)] + [leaf.grad for leaf in leaves]
            for name, tensor in zip(names[9 if causal else 4:], results):
                parts[name].append(tensor)
    print(head())
    shapes = ", ".join("{%d, %d, %d, %d}" % shape for shape in SHAPES)
    print("__attribute__((unused)) static const int golden_shapes[][4] = {%s};\n" % shapes)
    for name in names:
        print(array(name, torch.cat([tensor.flatten() for tensor in parts[name]])))


if __name__ == "__main__":
    main()
