#!/usr/bin/env python3
"""Makes phase3_cnn/07_conv2d_depthwise/testdata/groups_golden.safetensors: a network with a depthwise, a pointwise, a
grouped, a dilated and a transposed convolution as PyTorch trains it, for conv2d_groups_test.

Ten steps of SGD with momentum, in float64, stored as float32.

    python3 tools/golden/groups_golden.py phase3_cnn/07_conv2d_depthwise/testdata/groups_golden.safetensors      (needs python3-torch)
"""
import sys

import torch
from torch import nn

from lenet_golden import write_safetensors

IMAGES, STEPS = 4, 10


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(4, 8, 3, padding=1, stride=(2, 1), groups=4)  # depthwise, two filters per channel
        self.conv2 = nn.Conv2d(8, 6, 1)  # pointwise
        self.conv_transpose1 = nn.ConvTranspose2d(6, 4, 3, stride=2, padding=1, output_padding=1)
        self.conv3 = nn.Conv2d(4, 6, (3, 2), padding=(2, 0), dilation=(2, 3), groups=2)
        self.fc1 = nn.Linear(6 * 10 * 11, 3)

    def forward(self, x):
        x = self.conv2(self.conv1(x)).relu()
        x = self.conv_transpose1(x).relu()
        return self.fc1(self.conv3(x).flatten(1))


def main():
    torch.manual_seed(15)
    model = Net().double()
    with torch.no_grad():  # float32 values, so that the file holds exactly what PyTorch used
        for parameter in model.parameters():
            parameter.copy_(parameter.float().double())
    images = (torch.randn(IMAGES, 4, 9, 7) + 0.3).float().double()
    labels = torch.randint(0, 3, (IMAGES,))
    tensors = {"input": images, "labels": labels}
    tensors.update({name: value.detach().clone() for name, value in model.state_dict().items()})
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)
    losses = []
    for step in range(STEPS):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(images), labels)
        loss.backward()
        if step == 0:
            tensors.update({"grad." + name: p.grad.clone() for name, p in model.named_parameters()})
        optimizer.step()
        losses.append(loss.item())
    tensors["losses"] = torch.tensor(losses, dtype=torch.float64)
    tensors.update({"trained." + name: value.detach().clone() for name, value in model.state_dict().items()})
    write_safetensors(sys.argv[1], tensors, {"made_by": "tools/golden/groups_golden.py", "torch": torch.__version__})
    print("losses: first %.6f, last %.6f" % (losses[0], losses[-1]))


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main()
