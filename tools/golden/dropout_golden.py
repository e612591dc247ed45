#!/usr/bin/env python3
"""Makes phase1_building_blocks/12_dropout/testdata/dropout_golden.h: what PyTorch computes, for dropout_test.

    python3 tools/golden/dropout_golden.py > phase1_building_blocks/12_dropout/testdata/dropout_golden.h && tools/format      (needs python3-torch)

Two masks for each p: one that PyTorch drew, with what its dropout made of x and dy; and the one that we should draw
from (SEED, STREAM), by the cipher of the paper (Salmon et al., 2011), with what PyTorch's gradient makes of the formula.
In float64 on float32 inputs, rounded to float32.
"""
import torch
from torch.nn import functional as F

from arrays import array, head

N, SEED, STREAM = 39, 2**40 + 26, 5
PS = (0.25, 0.6)  # as floats


def philox(counter, key):
    """Philox4x32-10 as the paper has it."""
    x, key = list(counter), list(key)
    for _ in range(10):
        a, b = 0xD2511F53 * x[0], 0xCD9E8D57 * x[2]
        x = [(b >> 32) ^ x[1] ^ key[0], b & 0xFFFFFFFF, (a >> 32) ^ x[3] ^ key[1], a & 0xFFFFFFFF]
        key = [(key[0] + 0x9E3779B9) & 0xFFFFFFFF, (key[1] + 0xBB67AE85) & 0xFFFFFFFF]
    return x


def our_mask(p):
    """Element i is kept if its uniform number, of 24 bits, is at least p."""
    key = (SEED & 0xFFFFFFFF, SEED >> 32)
    words = [word for block in range((N + 3) // 4) for word in philox((block, 0, STREAM, 0), key)]
    return torch.tensor([float((word >> 8) / 2**24 >= p) for word in words[:N]]).double()


def main():
    # The first of the known answers that come with the paper.
    assert philox((0, 0, 0, 0), (0, 0)) == [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]
    torch.manual_seed(2026)
    x, dy = (torch.randn(N).double() for _ in range(2))
    parts = {name: [] for name in ("mask", "y", "dx", "our_mask", "our_y", "our_dx")}
    ps = [float(torch.tensor(p)) for p in PS]
    for p in ps:
        leaf = x.clone().requires_grad_()
        y = F.dropout(leaf, p)
        y.backward(dy)
        for name, tensor in (("mask", (y != 0).double()), ("y", y.detach()), ("dx", leaf.grad)):
            parts[name].append(tensor)
        leaf, mask = x.clone().requires_grad_(), our_mask(p)
        y = leaf * mask / (1 - p)
        y.backward(dy)
        for name, tensor in (("our_mask", mask), ("our_y", y.detach()), ("our_dx", leaf.grad)):
            parts[name].append(tensor)
    print(head())
    print("enum { GOLDEN_N = %d, GOLDEN_PS = %d, GOLDEN_STREAM = %d };\n" % (N, len(PS), STREAM))
    print("static const unsigned long long golden_seed = %dull;\n" % SEED)
    tensors = {"p": torch.tensor(ps), "x": x, "dy": dy}
    tensors.update({name: torch.cat(tensors) for name, tensors in parts.items()})
    for name, tensor in tensors.items():
        print(array(name, tensor))


if __name__ == "__main__":
    main()
