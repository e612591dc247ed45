#!/usr/bin/env python3
"""Loads a checkpoint of residual_test into PyTorch's network, trains one batch, and writes what state_dict() then has.

    python3 tools/golden/residual_state_dict.py IN.safetensors OUT.safetensors      (needs python3-torch)

load_state_dict(strict=True) refuses a file that lacks a name or has one too many. residual_test runs this and loads
OUT.safetensors again; without PyTorch it is skipped.
"""
import sys

try:
    import torch
except ImportError:
    sys.exit(77)

import residual_golden
from safetensors_files import read, write


def main():
    tensors, metadata = read(sys.argv[1])
    model = residual_golden.Net()
    model.load_state_dict(tensors, strict=True)
    counters = [value for name, value in model.state_dict().items() if name.endswith("num_batches_tracked")]
    print("num_batches_tracked", *[int(value) for value in counters])
    model.mask = lambda shape: torch.ones(shape)
    torch.manual_seed(1)
    model.train()
    model(torch.randn(residual_golden.BATCH, 2, 9, 7))
    write(sys.argv[2], model.state_dict(), metadata)


main()
