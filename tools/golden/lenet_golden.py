#!/usr/bin/env python3
"""Makes phase3_cnn/12_lenet_mnist/testdata/lenet_golden.safetensors: LeNet-5 as PyTorch computes it, for lenet_golden_test.

In float64, stored as float32: weights, one batch, logits, loss, the gradient of every parameter, and the losses of
ten steps of SGD with momentum on that batch.

    python3 tools/golden/lenet_golden.py phase3_cnn/12_lenet_mnist/testdata/lenet_golden.safetensors      (needs python3-torch)
"""
import json
import struct
import sys

import torch
from torch import nn

BATCH, STEPS, LR, MOMENTUM = 5, 10, 0.01, 0.9


class LeNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 6, 5, padding=2)
        self.conv2 = nn.Conv2d(6, 16, 5)
        self.fc1 = nn.Linear(400, 120)
        self.fc2 = nn.Linear(120, 84)
        self.fc3 = nn.Linear(84, 10)

    def forward(self, x):
        x = nn.functional.max_pool2d(self.conv1(x).relu(), 2)
        x = nn.functional.max_pool2d(self.conv2(x).relu(), 2)
        x = self.fc1(x.flatten(1)).relu()
        return self.fc3(self.fc2(x).relu())


def write_safetensors(path, tensors, metadata):
    """tensors: name -> torch tensor, float or int32. Format: u64 header length, JSON header, data."""
    header, data = {"__metadata__": metadata}, b""
    for name, tensor in tensors.items():
        kind, array = ("I32", tensor.int()) if tensor.dtype == torch.int64 else ("F32", tensor.float())
        content = array.detach().contiguous().numpy().tobytes()
        header[name] = {"dtype": kind, "shape": list(tensor.shape), "data_offsets": [len(data), len(data) + len(content)]}
        data += content
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + data)


def main():
    torch.manual_seed(2026)
    model = LeNet().double()
    with torch.no_grad():  # float32 values, so that the file holds exactly what PyTorch used
        for parameter in model.parameters():
            parameter.copy_((parameter * 1.5).float().double())
    images = (torch.randn(BATCH, 1, 28, 28) * 1.1 + 0.2).double()
    labels = torch.tensor([3, 0, 9, 3, 7])

    tensors = {"input": images, "labels": labels}
    tensors.update({name: p.detach().clone() for name, p in model.named_parameters()})
    optimizer = torch.optim.SGD(model.parameters(), lr=LR, momentum=MOMENTUM)
    losses = []
    for step in range(STEPS):
        optimizer.zero_grad()
        logits = model(images)
        loss = nn.functional.cross_entropy(logits, labels)
        loss.backward()
        if step == 0:
            tensors["logits"] = logits.detach().clone()
            tensors["loss"] = loss.detach().clone()
            tensors.update({"grad." + name: p.grad.clone() for name, p in model.named_parameters()})
        optimizer.step()
        losses.append(loss.item())
    tensors["losses"] = torch.tensor(losses, dtype=torch.float64)
    metadata = {"made_by": "tools/golden/lenet_golden.py", "torch": torch.__version__, "lr": str(LR), "momentum": str(MOMENTUM)}
    write_safetensors(sys.argv[1], tensors, metadata)
    print("loss of each step:", " ".join("%.6f" % loss for loss in losses))


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main()
