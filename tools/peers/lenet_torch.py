#!/usr/bin/env python3
"""The peer of //phase3_cnn:lenet_bench: one training step of the same LeNet-5 in PyTorch (torch_step.py).

    python3 tools/peers/lenet_torch.py --device=cpu --threads=2 --batch-size=64
    python3 tools/peers/lenet_torch.py --device=cuda --batch-size=64 --ours=bazel-bin/phase3_cnn/12_lenet_mnist/lenet_bench
    python3 tools/peers/lenet_torch.py --device=cuda --batch-size=512 --graph --conv=small --ours=.../lenet_bench
"""
from torch import nn

import torch_step


def lenet():
    return nn.Sequential(
        nn.Conv2d(1, 6, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(6, 16, 5), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(400, 120), nn.ReLU(), nn.Linear(120, 84), nn.ReLU(), nn.Linear(84, 10))


if __name__ == "__main__":
    parser = torch_step.parser(__doc__, "lenet_bench")
    parser.add_argument("--conv", help="how ours computes convolutions: lenet_bench --help")
    options = parser.parse_args()
    torch_step.main(lenet(), (1, 28, 28), options, ["--conv=" + options.conv] if options.conv else [])
