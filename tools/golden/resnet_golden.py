#!/usr/bin/env python3
"""Makes phase3_cnn/14_resnet_mnist/testdata/resnet_golden.safetensors: the residual network of resnet_mnist.py as PyTorch
trains it, for resnet_golden_test.

With few filters, so that the file is small; ten steps of SGD with momentum and weight decay, with dropout; then logits in
evaluation. In float64, stored as float32. Dropout takes its masks from a Philox of its own, as common/philox.h does.

    python3 tools/golden/resnet_golden.py phase3_cnn/14_resnet_mnist/testdata/resnet_golden.safetensors  (needs python3-torch)
"""
import math
import os
import sys

import numpy
import torch
from torch import nn

from lenet_golden import write_safetensors
from mlp_golden import philox

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../phase3_cnn/14_resnet_mnist"))
import resnet_mnist  # noqa: E402

FILTERS, IMAGES, BATCH, STEPS = (5, 6, 8), 12, 6, 10
LR, MOMENTUM, DECAY, DROPOUT, SEED = 0.02, 0.9, 0.01, 0.25, 77
ORDERS = {"dropout1": 23, "dropout2": 26}  # the streams of their random numbers, as resnet_golden_test sets them


class Dropout(nn.Module):
    def __init__(self, order):
        super().__init__()
        self.order, self.step = order, 0

    def forward(self, x):
        if not self.training:
            return x
        words = philox(SEED + (self.step << 32), self.order, numpy.arange((x.numel() + 3) // 4))
        numbers = words.T.reshape(-1)[:x.numel()] >> numpy.uint64(8)
        kept = numbers >= numpy.uint64(math.ceil(DROPOUT * 2**24))
        self.step += 1
        return x * torch.from_numpy(kept.reshape(x.shape).astype(numpy.float64)) / (1 - DROPOUT)


def main():
    torch.manual_seed(14)
    model = resnet_mnist.ResNet(FILTERS)
    with torch.no_grad():  # float32 values, so that the file holds exactly what PyTorch used; no 1 and 0 alone
        for name, parameter in model.named_parameters():
            if parameter.dim() == 1:
                parameter += 0.2 * torch.randn(parameter.shape)
    model = model.double()
    for name, order in ORDERS.items():
        setattr(model, name, Dropout(order))
    images = (torch.randn(IMAGES, 1, 28, 28) + 0.3).double()
    labels = torch.arange(IMAGES) * 7 % 10
    tensors = {"input": images, "labels": labels}
    state = lambda prefix: {prefix + name: value.detach().clone() for name, value in model.state_dict().items()
                            if not name.endswith("num_batches_tracked")}
    tensors.update(state(""))

    optimizer = resnet_mnist.sgd(model, LR, MOMENTUM, DECAY)
    losses = []
    for step in range(STEPS):
        model.train()
        first = step * BATCH % IMAGES
        optimizer.zero_grad()
        logits = model(images[first:first + BATCH])
        loss = nn.functional.cross_entropy(logits, labels[first:first + BATCH])
        loss.backward()
        if step == 0:
            tensors["logits"] = logits.detach().clone()
            tensors.update({"grad." + name: p.grad.clone() for name, p in model.named_parameters()})
        optimizer.step()
        losses.append(loss.item())
    tensors["losses"] = torch.tensor(losses, dtype=torch.float64)
    tensors["num_batches_tracked"] = model.bn1.num_batches_tracked
    tensors.update(state("trained."))
    model.eval()
    tensors["evaluated"] = model(images[:BATCH]).detach()
    write_safetensors(sys.argv[1], tensors, {"made_by": "tools/golden/resnet_golden.py", "torch": torch.__version__})
    print("loss of each step:", " ".join("%.6f" % loss for loss in losses))


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main()
