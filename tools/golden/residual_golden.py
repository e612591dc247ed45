#!/usr/bin/env python3
"""Makes phase3_cnn/11_residual/testdata/residual_golden.safetensors: a residual network as PyTorch trains it, for residual_test.

A stem, two basic blocks as torchvision's ResNet has them, the second with a projection that halves the picture, dropout
and a linear layer; convolutions have no bias, as batch normalisation would subtract it. 50 steps of SGD with momentum, and with weight decay on the weights of convolutions and of the linear layer. In float64,
stored as float32. Dropout takes its mask from a Philox of its own, as common/philox.h does.

    python3 tools/golden/residual_golden.py phase3_cnn/11_residual/testdata/residual_golden.safetensors      (needs python3-torch)
"""
import math
import sys

import numpy
import torch
from torch import nn

from lenet_golden import write_safetensors
from mlp_golden import philox

IMAGES, BATCH, STEPS = 20, 4, 50
LR, MOMENTUM, DECAY, KEEP_OUT, SEED = 0.02, 0.9, 0.01, 0.25, 77
DROPOUT_ORDER = 19  # operations before it in the graph of residual_test


class Block(nn.Module):
    def __init__(self, channels, filters, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(channels, filters, 3, stride=stride, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(filters)
        self.conv2 = nn.Conv2d(filters, filters, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(filters)
        self.downsample = nn.Sequential()
        if stride != 1 or channels != filters:
            self.downsample = nn.Sequential(nn.Conv2d(channels, filters, 1, stride=stride, bias=False),
                                            nn.BatchNorm2d(filters))

    def forward(self, x):
        h = self.bn1(self.conv1(x)).relu()
        return (self.bn2(self.conv2(h)) + self.downsample(x)).relu()


class Net(nn.Module):
    """mask: what the dropout multiplies by."""

    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(2, 4, 3, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(4)
        self.layer1 = nn.Sequential(Block(4, 4, 1))
        self.layer2 = nn.Sequential(Block(4, 6, 2))
        self.fc = nn.Linear(6 * 5 * 4, 3)
        self.mask = None

    def forward(self, x):
        h = self.layer2(self.layer1(self.bn1(self.conv1(x)).relu()))
        if self.training:
            h = h * self.mask(h.shape)
        return self.fc(h.flatten(1))


def mask_of_step(step):
    def mask(shape):
        count = math.prod(shape)
        words = philox(SEED + (step << 32), DROPOUT_ORDER, numpy.arange((count + 3) // 4))
        numbers = words.T.reshape(-1)[:count] >> numpy.uint64(8)
        kept = numbers >= numpy.uint64(math.ceil(KEEP_OUT * 2**24))
        return torch.from_numpy(kept.reshape(shape).astype(numpy.float64)) / (1 - KEEP_OUT)

    return mask


def main():
    torch.manual_seed(7)
    model = Net().double()
    with torch.no_grad():  # float32 values, so that the file holds exactly what PyTorch used
        for parameter in model.parameters():
            parameter.copy_(parameter.float().double())
    images = (torch.randn(IMAGES, 2, 9, 7) + 0.3).float().double()
    labels = torch.randint(0, 3, (IMAGES,))
    tensors = {"input": images, "labels": labels}
    state = lambda prefix: {prefix + name: value.detach().clone() for name, value in model.state_dict().items()
                            if not name.endswith("num_batches_tracked")}
    tensors.update(state(""))

    decayed = [p for p in model.parameters() if p.dim() > 1]
    others = [p for p in model.parameters() if all(p is not q for q in decayed + [model.fc.bias])]
    optimizer = torch.optim.SGD([{"params": decayed + [model.fc.bias], "weight_decay": DECAY}, {"params": others}], lr=LR,
                                momentum=MOMENTUM)
    losses = []
    for step in range(STEPS):
        model.train()
        model.mask = mask_of_step(step)
        first = step * BATCH % IMAGES
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(images[first:first + BATCH]), labels[first:first + BATCH])
        loss.backward()
        if step == 0:
            tensors.update({"grad." + name: p.grad.clone() for name, p in model.named_parameters()})
        optimizer.step()
        losses.append(loss.item())
    tensors["losses"] = torch.tensor(losses, dtype=torch.float64)
    tensors.update(state("trained."))
    model.eval()
    tensors["logits"] = model(images[:BATCH]).detach()
    write_safetensors(sys.argv[1], tensors, {"made_by": "tools/golden/residual_golden.py", "torch": torch.__version__})
    print("losses: first %.6f, last %.6f" % (losses[0], losses[-1]))


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main()
