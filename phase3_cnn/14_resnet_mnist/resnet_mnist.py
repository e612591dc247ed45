#!/usr/bin/env python3
"""A small residual network learns to read handwritten digits, in PyTorch: the twin of resnet_mnist.cu.

    bazel build //third_party/data:mnist
    python3 phase3_cnn/14_resnet_mnist/resnet_mnist.py --data-dir=bazel-bin/third_party/data/mnist
    python3 phase3_cnn/14_resnet_mnist/resnet_mnist.py --data-dir=... --checkpoint=runs/resnet_mnist/best.safetensors

The network is that of resnet.cuh, with the same names, optimizer and schedule; there, too, weights begin as PyTorch's
layers begin them. --checkpoint trains nothing: it evaluates a model that resnet_mnist has trained. Needs python3-torch and
python3-numpy.
"""
import argparse
import json
import os
import time

import numpy
import torch
from torch import nn


class Block(nn.Module):
    """relu(bn2(conv2(relu(bn1(conv1(x))))) + shortcut(x))"""

    def __init__(self, channels, filters, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(channels, filters, 3, stride, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(filters)
        self.conv2 = nn.Conv2d(filters, filters, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(filters)
        if stride != 1 or channels != filters:
            self.downsample = nn.Sequential(nn.Conv2d(channels, filters, 1, stride, bias=False), nn.BatchNorm2d(filters))

    def forward(self, x):
        shortcut = self.downsample(x) if hasattr(self, "downsample") else x
        h = self.bn1(self.conv1(x)).relu()
        return (self.bn2(self.conv2(h)) + shortcut).relu()


class ResNet(nn.Module):
    def __init__(self, filters=(16, 32, 64), dropout=0.1):
        super().__init__()
        self.conv1 = nn.Conv2d(1, filters[0], 3, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(filters[0])
        self.layer1 = nn.Sequential(Block(filters[0], filters[1], 1))
        self.layer2 = nn.Sequential(Block(filters[1], filters[2], 2))
        self.dropout1 = nn.Dropout(dropout)
        self.fc1 = nn.Linear(filters[2] * 3 * 3, 64)
        self.dropout2 = nn.Dropout(dropout)
        self.fc2 = nn.Linear(64, 10)

    def forward(self, x):
        x = nn.functional.max_pool2d(self.bn1(self.conv1(x)).relu(), 2)
        x = nn.functional.max_pool2d(self.layer2(self.layer1(x)), 2)
        x = self.fc1(self.dropout1(x.flatten(1))).relu()
        return self.fc2(self.dropout2(x))


def read_mnist(directory, part):
    """images (N,1,28,28), bytes; labels (N)"""
    images = numpy.fromfile(os.path.join(directory, part + "-images-idx3-ubyte"), numpy.uint8)[16:]
    labels = numpy.fromfile(os.path.join(directory, part + "-labels-idx1-ubyte"), numpy.uint8)[8:]
    return torch.from_numpy(images).view(-1, 1, 28, 28), torch.from_numpy(labels).long()


def read_safetensors(path):
    """name -> tensor; the format is the length of a header, the header in JSON, the numbers"""
    content = open(path, "rb").read()
    begin = 8 + int.from_bytes(content[:8], "little")
    kinds = {"F32": torch.float32, "I64": torch.int64}
    tensors = {}
    for name, entry in json.loads(content[8:begin]).items():
        if name != "__metadata__":
            first, last = entry["data_offsets"]
            values = torch.frombuffer(bytearray(content[begin + first:begin + last]), dtype=kinds[entry["dtype"]])
            tensors[name] = values.reshape(entry["shape"])
    return tensors


def sgd(model, lr, momentum, weight_decay):
    """Batch norm's scales and shifts do not decay."""
    norms = [p for module in model.modules() if isinstance(module, nn.BatchNorm2d) for p in module.parameters()]
    others = [p for p in model.parameters() if all(p is not norm for norm in norms)]
    return torch.optim.SGD([{"params": others, "weight_decay": weight_decay}, {"params": norms}], lr=lr, momentum=momentum)


def linear_schedule(done):
    """Share of the highest learning rate: up over 5 % of the run, then straight down to zero."""
    return done / 0.05 if done < 0.05 else (1 - done) / 0.95


def evaluate(model, images, labels):
    """mean loss, accuracy"""
    model.eval()
    with torch.no_grad():
        logits = torch.cat([model(batch) for batch in images.split(1000)])
        loss = nn.functional.cross_entropy(logits, labels).item()
        return loss, (logits.argmax(1) == labels).float().mean().item()


def train(model, images, labels, test_images, test_labels, options):
    optimizer = sgd(model, options.lr, 0.9, 5e-4)
    steps, step = options.epochs * -(-len(images) // options.batch_size), 0
    for epoch in range(options.epochs):
        model.train()
        started, total = time.time(), 0.0
        for indices in torch.randperm(len(images)).split(options.batch_size):
            for group in optimizer.param_groups:
                group["lr"] = options.lr * linear_schedule((step + 0.5) / steps)
            loss = nn.functional.cross_entropy(model(images[indices]), labels[indices])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item() * len(indices)
            step += 1
        seconds = time.time() - started
        test_loss, accuracy = evaluate(model, test_images, test_labels)
        print("epoch %d: train loss %.4f, test loss %.4f, test accuracy %.2f %%, %.0f images/s" % (
            epoch + 1, total / len(images), test_loss, 100 * accuracy, len(images) / seconds), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data-dir", default="bazel-bin/third_party/data/mnist")
    parser.add_argument("--checkpoint", help="evaluate this model of resnet_mnist, and train nothing")
    parser.add_argument("--filters", default="16,32,64", help="of conv1, layer1 and layer2")
    parser.add_argument("--dropout", type=float, default=0.1)
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--lr", type=float, default=0.05, help="the highest learning rate")
    parser.add_argument("--hold-out", type=int, default=0, help="test on the last N training images instead")
    parser.add_argument("--train-images", type=int, help="train on the first N images only")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    torch.manual_seed(options.seed)

    if not os.path.exists(os.path.join(options.data_dir, "train-images-idx3-ubyte")):
        parser.error("there is no MNIST in %s; run `bazel build //third_party/data:mnist`, or name its folder with "
                     "--data-dir" % options.data_dir)
    images, labels = read_mnist(options.data_dir, "train")
    test_images, test_labels = read_mnist(options.data_dir, "t10k")
    if options.hold_out:
        images, test_images = images.split(len(images) - options.hold_out)
        labels, test_labels = labels.split(len(labels) - options.hold_out)
    mean, deviation = images.double().mean() / 255, images.double().std(unbiased=False) / 255
    normalise = lambda x: (x.float() / 255 - mean.float()) / deviation.float()

    model = ResNet([int(text) for text in options.filters.split(",")], options.dropout)
    print("%d parameters" % sum(p.numel() for p in model.parameters()))
    if options.checkpoint:
        model.load_state_dict(read_safetensors(options.checkpoint), strict=True)
        loss, accuracy = evaluate(model, normalise(test_images), test_labels)
        print("test loss %.4f, test accuracy %.2f %%" % (loss, 100 * accuracy))
        return
    count = options.train_images or len(images)
    train(model, normalise(images[:count]), labels[:count], normalise(test_images), test_labels, options)


if __name__ == "__main__":
    main()
