#!/usr/bin/env python3
"""The peer of //phase2_mlp:mlp_bench: one training step of the same multi-layer perceptron in PyTorch (torch_step.py).

    python3 tools/peers/mlp_torch.py --device=cpu --threads=2 --batch-size=64 --ours=bazel-bin/phase2_mlp/03_mlp/mlp_bench
    python3 tools/peers/mlp_torch.py --device=cuda --batch-size=64
    python3 tools/peers/mlp_torch.py --device=cuda --batch-size=64 --graph
"""
from torch import nn

import torch_step

ACTIVATIONS = {"relu": nn.ReLU, "leaky_relu": nn.LeakyReLU, "sigmoid": nn.Sigmoid, "tanh": nn.Tanh}


def mlp(widths, activation):
    """Linear, activation, linear, ..., linear, as phase2_mlp/03_mlp/mlp.cuh has them."""
    layers = []
    for before, after in zip(widths, widths[1:]):
        layers += [nn.Linear(before, after), ACTIVATIONS[activation]()]
    return nn.Sequential(*layers[:-1])


def main():
    parser = torch_step.parser(__doc__, "mlp_bench")
    parser.add_argument("--layers", default="784,128,10", help="widths, the input's first (default: 784,128,10)")
    parser.add_argument("--activation", choices=sorted(ACTIVATIONS), default="relu")
    options = parser.parse_args()
    widths = [int(width) for width in options.layers.split(",")]
    torch_step.main(mlp(widths, options.activation), (widths[0],), options,
                    ["--resident", "--layers=" + options.layers, "--activation=" + options.activation])


if __name__ == "__main__":
    main()
