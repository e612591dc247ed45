#!/usr/bin/env python3
"""Makes NETWORK_golden.safetensors: a network of networks.py as PyTorch trains it, for common/nn/golden.h.

    python3 tools/golden/network_golden.py fashion phase3_cnn/13_fashion_mnist/testdata/fashion_golden.safetensors
    python3 tools/golden/network_golden.py lenet phase3_cnn/15_cifar10/testdata/lenet_golden.safetensors
    python3 tools/golden/network_golden.py resnet phase3_cnn/15_cifar10/testdata/resnet_golden.safetensors
    python3 tools/golden/network_golden.py resnet18 phase5_production/03_resnet18/testdata/thin_golden.safetensors

(needs python3-torch). In float64, stored as float32: logits, loss and every gradient of the first step; the losses of ten
steps of SGD with momentum; after two and after ten steps every parameter and buffer, and the logits in evaluation mode.
Parameters and images come from a formula that both sides compute, so the file has none of them. Of a tensor with more than 256
elements it has a digest: its norm, its product with a random vector, and 256 of its elements. No test reads one of
lenet_mnist, which lenet_golden.py covers; it is for those who change that network.
"""
import math
import sys

import numpy
import torch
from torch import nn

from lenet_golden import write_safetensors
from mlp_golden import philox
from networks import NETWORKS

BATCH, STEPS, MOMENTUM, SEED, SAMPLES = 6, 10, 0.9, 2026, 256
SHOWN = (2, STEPS)  # after so many steps
LR = {"fashion": 0.001, "lenet": 0.003, "lenet_mnist": 0.003, "resnet": 0.01, "resnet18": 0.02}  # the loss falls from step to step


def stream_of(name):
    """FNV-1a, 32 bits: a stream of random numbers for each name."""
    value = 2166136261
    for byte in name.encode():
        value = (value ^ byte) * 16777619 % 2**32
    return value


def uniform(name, count):
    """-1 to 1, as golden_uniform() has them: one number per block, exact in float32."""
    words = philox(SEED, stream_of(name), numpy.arange(count))[0]
    return (words >> numpy.uint64(8)).astype(numpy.float64) / 2**23 - 1


def fill(name, tensor):
    """What golden_fill() puts into a parameter: a scale that follows from its shape and name, an offset of 1 for the
    factors and the variances of batch norm."""
    u = uniform(name, tensor.numel())
    if tensor.dim() > 1:
        values = u * math.sqrt(6 / (tensor.numel() // tensor.shape[0]))
    elif name.endswith("weight") or name.endswith("var"):
        values = 1 + 0.25 * u
    else:
        values = 0.1 * u
    return torch.from_numpy(values.astype(numpy.float32)).double().reshape(tensor.shape)


def digest(name, tensor):
    flat = tensor.detach().double().flatten()
    if flat.numel() <= SAMPLES:
        return flat.clone()
    random = torch.from_numpy(uniform("digest " + name, flat.numel()))
    places = torch.arange(SAMPLES) * flat.numel() // SAMPLES
    return torch.cat([flat.norm().reshape(1), (flat * random).sum().reshape(1), flat[places]])


def main(network, path):
    torch.manual_seed(1)
    model = NETWORKS[network]().double()
    with torch.no_grad():
        for name, tensor in model.state_dict().items():
            if not name.endswith("num_batches_tracked"):
                tensor.copy_(fill(name, tensor))
    images = torch.from_numpy(uniform("input", BATCH * math.prod(model.image)).astype(numpy.float32)).double()
    images = images.reshape(BATCH, *model.image)
    labels = torch.tensor([(3 * i + 1) % model.classes for i in range(BATCH)])
    tensors, losses = {}, []
    optimizer = torch.optim.SGD(model.parameters(), lr=LR[network], momentum=MOMENTUM)
    for step in range(STEPS):
        optimizer.zero_grad()
        logits = model(images)
        loss = nn.functional.cross_entropy(logits, labels)
        loss.backward()
        if step == 0:
            tensors["logits"] = logits.detach().clone()
            tensors.update({"grad." + name: digest(name, p.grad) for name, p in model.named_parameters()})
        optimizer.step()
        losses.append(loss.item())
        if step + 1 in SHOWN:
            tensors.update({"trained%d." % (step + 1) + name: digest(name, value)
                            for name, value in model.state_dict().items() if not name.endswith("num_batches_tracked")})
            model.eval()
            tensors["evaluated%d" % (step + 1)] = model(images).detach()
            model.train()
    tensors["losses"] = torch.tensor(losses, dtype=torch.float64)
    metadata = {"made_by": "tools/golden/network_golden.py " + network, "torch": torch.__version__,
                "lr": str(LR[network])}
    write_safetensors(path, tensors, metadata)
    print("loss of each step:", " ".join("%.6f" % loss for loss in losses))


if __name__ == "__main__":
    if len(sys.argv) != 3 or sys.argv[1] not in NETWORKS:
        sys.exit(__doc__)
    main(*sys.argv[1:])
