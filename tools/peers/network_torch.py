#!/usr/bin/env python3
"""The peer of lenet_bench, fashion_bench, resnet_bench, cifar10_bench and mixed_precision_bench: the same network in PyTorch (torch_step.py).

    python3 tools/peers/network_torch.py --device=cpu --threads=2 --batch-size=64
    python3 tools/peers/network_torch.py --network=fashion --ours=bazel-bin/phase3_cnn/13_fashion_mnist/fashion_bench
    python3 tools/peers/network_torch.py --network=fashion --inference --batch-size=1 --ours=.../fashion_bench
    python3 tools/peers/network_torch.py --network=resnet --device=cuda --batch-size=64 --graph --conv=auto --ours=.../cifar10_bench
    python3 tools/peers/network_torch.py --network=resnet64 --device=cuda --batch-size=128 --autocast=bf16 --channels-last --graph
        --ours=.../mixed_precision_bench
"""
import os
import sys

import torch_step

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "golden"))
import networks  # tools/golden


def resnet_mnist():
    sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../phase3_cnn/14_resnet_mnist"))
    import resnet_mnist as twin
    return twin.ResNet()


# the network, the shape of an image, options of our program
NETWORKS = {
    "lenet": (networks.LeNetMnist, networks.LeNetMnist.image, []),
    "fashion": (networks.Fashion, networks.Fashion.image, []),
    "cifar_lenet": (networks.LeNet, networks.LeNet.image, ["--network=lenet"]),
    "resnet": (lambda: networks.ResNet(10), networks.ResNet.image, ["--network=resnet"]),
    "resnet64": (lambda: networks.ResNet(10), (3, 64, 64), []),
    "resnet_mnist": (resnet_mnist, (1, 28, 28), []),
}

if __name__ == "__main__":
    parser = torch_step.parser(__doc__, "our benchmark of this network")
    parser.add_argument("--network", choices=sorted(NETWORKS), default="lenet")
    parser.add_argument("--conv", help="how ours computes convolutions: lenet_bench --help")
    options = parser.parse_args()
    model, shape, ours = NETWORKS[options.network]
    torch_step.main(model(), shape, options, ours + (["--conv=" + options.conv] if options.conv else []))
