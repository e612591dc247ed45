#!/usr/bin/env python3
"""Loads a checkpoint into PyTorch's network of that name, prints its logits for the images of network_golden.py, and
writes what state_dict() has.

    python3 tools/golden/network_state_dict.py NETWORK IN.safetensors OUT.safetensors      (needs python3-torch)

load_state_dict(strict=True) refuses a file that lacks a name or has one too many. The tests of common/nn/golden.h run
this and load OUT.safetensors again; without PyTorch they are skipped.
"""
import math
import sys

try:
    import numpy  # noqa: F401  network_golden needs it
    import torch
except ImportError:
    sys.exit(77)

import network_golden
from networks import NETWORKS
from safetensors_files import read, write


def main(network, ours, theirs):
    tensors, metadata = read(ours)
    model = NETWORKS[network]()
    model.load_state_dict(tensors, strict=True)
    model.eval()
    count = network_golden.BATCH * math.prod(model.image)
    images = torch.from_numpy(network_golden.uniform("input", count)).float()
    for value in model(images.reshape(-1, *model.image)).detach().flatten():
        print("%.9g" % value)
    write(theirs, model.state_dict(), metadata)


main(*sys.argv[1:])
