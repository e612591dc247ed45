#!/usr/bin/env python3
"""On a GPU: every operation on tensors that begin at an odd multiple of 4 bytes, as slices of other tensors do. A
kernel that reads four floats at once from such an address ends the CUDA context and with it the process, so this one is
its own.

    tests/gpu_alignment.py [--library=FILE] [--device=cpu]
"""
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.dirname(HERE), HERE]
for argument in sys.argv[1:]:
    if argument.startswith("--library="):
        os.environ["NNCUDA_LIBRARY"] = argument.partition("=")[2]

import torch  # noqa: E402

import nncuda  # noqa: E402
import test_operators  # noqa: E402


def shifted(x, floats):
    """The same values, `floats` elements behind an aligned address."""
    if not isinstance(x, torch.Tensor) or not x.is_floating_point():
        return x
    memory = torch.empty(x.numel() + floats, dtype=x.dtype, device=x.device)
    y = memory[floats:].view(x.shape)
    y.copy_(x)
    return y


def main():
    device = "cpu" if "--device=cpu" in sys.argv else "cuda"
    wrong = 0
    for name, inputs in test_operators.examples(device).items():
        call = getattr(nncuda.backend.ops, name)
        expected = test_operators.tensors(call(*inputs))
        for floats in (1, 2, 3):
            got = test_operators.tensors(call(*(shifted(x, floats) for x in inputs)))
            if device == "cuda":
                torch.cuda.synchronize()
            for a, b in zip(got, expected):
                if a is not None and a.numel() and not torch.allclose(a.float(), b.float(), rtol=1e-5, atol=1e-5):
                    print("%s, shifted by %d: the largest difference is %g"
                          % (name, floats, (a.float() - b.float()).abs().max()))
                    wrong += 1
        print("%s: ok" % name, flush=True)
    parameters = [torch.nn.Parameter(shifted(torch.randn(1001, device=device), 1)) for _ in range(3)]
    for p in parameters:
        p.grad = shifted(torch.randn(1001, device=device), 3)
    for kind in (nncuda.optim.SGD, nncuda.optim.AdamW):
        kind(parameters, lr=0.1).step()
    if device == "cuda":
        torch.cuda.synchronize()
    print("%d wrong" % wrong)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
