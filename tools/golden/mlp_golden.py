#!/usr/bin/env python3
"""Makes phase2_mlp/03_mlp/testdata/mlp_golden.csv: the first hundred losses of multi-layer perceptrons on MNIST, as PyTorch
computes them in float64, for mlp_golden_test.

The file holds no arrays: weights and order of the images follow from the seed by Philox4x32-10, which is written here a
second time, from the paper (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", 2011) and the comments of
common/philox.h. So the test also finds a mistake in the course's random numbers, its shuffle or its normalisation.

    python3 tools/golden/mlp_golden.py MNIST_FOLDER phase2_mlp/03_mlp/testdata/mlp_golden.csv      (needs python3-torch)
"""
import math
import sys

import numpy
import torch
from torch import nn

IMAGES, STEPS, BATCH, LR, MOMENTUM, WEIGHT_DECAY, MEAN, STDDEV = 6400, 100, 64, 0.03, 0.9, 3e-4, 0.1307, 0.3081
RUNS = [(1, [784, 128, 10], "relu"), (2, [784, 64, 32, 10], "tanh"), (3, [784, 40, 10], "sigmoid"),
        (4, [784, 3, 127, 10], "leaky_relu")]
ACTIVATIONS = {"relu": nn.ReLU, "leaky_relu": nn.LeakyReLU, "sigmoid": nn.Sigmoid, "tanh": nn.Tanh}
SHUFFLE_STREAM = 0x80000000


def philox(seed, stream, index, attempt=0):
    """Words (4, n) of the blocks `index`, an array (n)."""
    index = numpy.asarray(index, dtype=numpy.uint64)
    low = numpy.uint64(0xFFFFFFFF)
    c = [index & low, index >> numpy.uint64(32), numpy.full_like(index, stream), numpy.full_like(index, attempt)]
    key0, key1 = seed & 0xFFFFFFFF, seed >> 32
    for _ in range(10):
        a, b = c[0] * numpy.uint64(0xD2511F53), c[2] * numpy.uint64(0xCD9E8D57)
        c = [(b >> numpy.uint64(32)) ^ c[1] ^ numpy.uint64(key0), b & low,
             (a >> numpy.uint64(32)) ^ c[3] ^ numpy.uint64(key1), a & low]
        key0, key1 = (key0 + 0x9E3779B9) & 0xFFFFFFFF, (key1 + 0xBB67AE85) & 0xFFFFFFFF
    return numpy.stack(c)


def normal(count, stddev, seed, stream):
    """Two numbers a block, by Box and Muller from its words 0 and 1, as float32."""
    words = philox(seed, stream, numpy.arange((count + 1) // 2))
    radius = numpy.sqrt(-2 * numpy.log(((words[0] >> numpy.uint64(8)) + numpy.uint64(1)) * 2.0**-24))
    angle = 2 * math.pi * ((words[1] >> numpy.uint64(8)) * 2.0**-24)
    pairs = numpy.stack([radius * numpy.cos(angle), radius * numpy.sin(angle)], axis=1).reshape(-1)[:count]
    return (pairs.astype(numpy.float32) * numpy.float32(stddev)).astype(numpy.float32)


def shuffled(count, seed, stream):
    """Fisher and Yates from the back; each draw below a bound by Lemire's method, its rejections included."""
    order = list(range(count))
    words = philox(seed, stream, numpy.arange(count))
    for i in range(count - 1, 0, -1):
        bound, attempt, drawn = i + 1, 0, None
        block = [int(word) for word in words[:, i]]
        while drawn is None:
            products = [word * bound for word in block]
            drawn = next((p >> 32 for p in products if p & 0xFFFFFFFF >= 2**32 % bound), None)
            attempt += 1
            if drawn is None:
                block = [int(word) for word in philox(seed, stream, [i], attempt)[:, 0]]
        order[i], order[drawn] = order[drawn], order[i]
    return order


def perceptron(seed, widths, activation):
    """Layer i of ours, counting the activations, draws from stream i: He's variance, or Xavier's where it saturates."""
    layers = []
    for i, (before, after) in enumerate(zip(widths, widths[1:])):
        linear = nn.Linear(before, after).double()
        variance = 2 / before if "relu" in activation else 2 / (before + after)
        weight = normal(before * after, math.sqrt(variance), seed, 2 * i).reshape(after, before)
        with torch.no_grad():
            linear.weight.copy_(torch.from_numpy(weight))
            linear.bias.zero_()
        layers += [linear, ACTIVATIONS[activation]()]
    return nn.Sequential(*layers[:-1])


def losses(images, labels, seed, widths, activation):
    model = perceptron(seed, widths, activation)
    optimizer = torch.optim.SGD(model.parameters(), lr=LR, momentum=MOMENTUM, weight_decay=WEIGHT_DECAY)
    order = torch.tensor(shuffled(IMAGES, seed, SHUFFLE_STREAM))
    for step in range(STEPS):
        batch = order[step * BATCH:(step + 1) * BATCH]
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(images[batch]), labels[batch])
        loss.backward()
        optimizer.step()
        yield loss.item()


def main():
    folder, out = sys.argv[1:]
    pixels = numpy.fromfile(folder + "/train-images-idx3-ubyte", dtype=numpy.uint8)[16:].reshape(-1, 784)[:IMAGES]
    labels = torch.from_numpy(numpy.fromfile(folder + "/train-labels-idx1-ubyte", dtype=numpy.uint8)[8:][:IMAGES]).long()
    images = (torch.from_numpy(pixels).double() / 255 - MEAN) / STDDEV
    with open(out, "w") as file:
        file.write("# made by tools/golden/mlp_golden.py, PyTorch %s, float64: losses of %d steps\n" % (
            torch.__version__, STEPS))
        file.write("# %d images, batch %d, lr %g, momentum %g, weight decay %g; network, seed, losses\n" % (
            IMAGES, BATCH, LR, MOMENTUM, WEIGHT_DECAY))
        for seed, widths, activation in RUNS:
            values = list(losses(images, labels, seed, widths, activation))
            file.write("%s %s,%d,%s\n" % ("-".join(map(str, widths)), activation, seed,
                                          ",".join("%.8f" % value for value in values)))
            print("%s %s: loss %.4f in the first step, %.4f in the last" % (widths, activation, values[0], values[-1]))


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main()
