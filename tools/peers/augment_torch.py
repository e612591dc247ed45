#!/usr/bin/env python3
"""The peer of lesson 6 of phase 4: the same images, changed in the same way by PyTorch and torchvision, on CPU threads.

    bazel build //phase4_training/06_augmentation:augmentation_bench
    python3 tools/peers/augment_torch.py bazel-bin/phase4_training/06_augmentation/augmentation_bench --threads=2

The program augmentation_bench changes 512 images of 3 x 64 x 64 and writes what it drew for each of them. This script
changes the same images by the same numbers in two ways:

    torchvision   an image after the other: its affine() of a byte image, hflip(), the blends of its ColorJitter,
                  normalize(); as a data loader does. One thread, which is fastest for such small images; the time is
                  divided by the number of threads, as if that many workers of a data loader shared the images
                  without any loss
    batched       all images in one call of affine_grid() and grid_sample(), colours and normalising in a few calls

and compares the pixels before they are normalised: the weights of a place have 8 bits here and 23 there, so that a pixel
may differ by one grey level, and where the colour changes as well by a few. Times: the fastest of some rounds.
"""
import argparse
import os
import subprocess
import sys
import tempfile
import time

import numpy
import torch
from torch.nn import functional as F

N, C, SIDE = 512, 3, 64
ONE = 65536
MIDDLE = 112.0
TEXTS = ("crop", "affine:rotate=15,scale=0.1,shear=5,shift=2",
         "affine:rotate=15,scale=0.1,shear=5,shift=2,flip,cutout:16,colour:brightness=0.2,contrast=0.2,saturation=0.2")
NAMES = ("xx", "xy", "x0", "yx", "yy", "y0", "flip", "top", "bottom", "left", "right", "own", "grey", "add")


class Draws:
    """What augmentation_bench drew: a column per number, a row per image."""
    def __init__(self, array):
        for i, name in enumerate(NAMES):
            setattr(self, name, torch.from_numpy(array[:, i].astype(numpy.float64)))
        middle = (SIDE - 1) / 2
        # The map from the middle of the result to that of the image, in pixels.
        offset_x = (self.x0 + (self.xx + self.xy) * middle) / ONE - middle
        offset_y = (self.y0 + (self.yx + self.yy) * middle) / ONE - middle
        self.matrix = torch.stack([self.xx / ONE, self.xy / ONE, offset_x, self.yx / ONE, self.yy / ONE, offset_y], 1)
        self.recolours = bool(((self.own != ONE) | (self.grey != 0) | (self.add != 0)).any())
        self.flips = bool((self.flip != 0).any())
        self.cuts = bool((self.bottom > self.top).any())


def recoloured(x, own, grey, add):
    """x (...,3,H,W) of 0 to 255"""
    luma = 0.299 * x[..., 0:1, :, :] + 0.587 * x[..., 1:2, :, :] + 0.114 * x[..., 2:3, :, :]
    return (own * x + grey * luma.round() + add).round().clamp(0, 255)


def one_by_one(images, d, mean, stddev, pixels=False):
    """As a data loader: each image by itself."""
    import torchvision.transforms.functional as T
    import torchvision.transforms.functional_tensor as tensor
    out = torch.empty(N, C, SIDE, SIDE)
    matrices, flips = d.matrix.tolist(), d.flip.tolist()
    for i in range(N):
        x = images[i]
        if flips[i]:
            x = T.hflip(x)
        x = tensor.affine(x, matrices[i], interpolation="bilinear", fill=None)  # None: black, mixed as any pixel
        x = x.float()
        if d.recolours:
            x = recoloured(x, d.own[i].item() / ONE, d.grey[i].item() / ONE, d.add[i].item() / ONE)
        if pixels:
            out[i] = x
            continue
        x = T.normalize(x / 255, mean, stddev)
        if d.cuts:
            x[:, max(0, int(d.top[i])):max(0, int(d.bottom[i])), max(0, int(d.left[i])):max(0, int(d.right[i]))] = 0
        out[i] = x
    return out


def batched(images, d, mean, stddev, pixels=False):
    """All images in a few calls; affine_grid() wants the map in units of half an image, the mirror as its first row."""
    m = d.matrix.float()
    sign = 1 - 2 * d.flip.float()
    theta = torch.stack([sign * m[:, 0], sign * m[:, 1], sign * m[:, 2] * 2 / SIDE, m[:, 3], m[:, 4], m[:, 5] * 2 / SIDE], 1)
    grid = F.affine_grid(theta.view(N, 2, 3), (N, C, SIDE, SIDE), align_corners=False)
    x = F.grid_sample(images.float(), grid, mode="bilinear", padding_mode="zeros", align_corners=False).round()
    if d.recolours:
        own, grey, add = ((v / ONE).float().view(N, 1, 1, 1) for v in (d.own, d.grey, d.add))
        x = recoloured(x, own, grey, add)
    if pixels:
        return x
    x = (x / 255 - torch.tensor(mean).view(1, C, 1, 1)) / torch.tensor(stddev).view(1, C, 1, 1)
    if d.cuts:
        row, column = torch.arange(SIDE).view(1, SIDE, 1), torch.arange(SIDE).view(1, 1, SIDE)
        cut = (row >= d.top.view(N, 1, 1)) & (row < d.bottom.view(N, 1, 1)) & \
              (column >= d.left.view(N, 1, 1)) & (column < d.right.view(N, 1, 1))
        x.masked_fill_(cut.unsqueeze(1), 0)
    return x


def milliseconds(call, rounds):
    times = []
    for _ in range(rounds):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return 1e3 * min(times)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", help="augmentation_bench")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--augment", action="append", help="instead of the usual three")
    options = parser.parse_args()
    mean, stddev = [0.45] * C, [0.22] * C
    wrong = 0
    print("torch %s, %d threads; 512 images of 3 x 64 x 64" % (torch.__version__, options.threads))
    for text in options.augment or TEXTS:
        with tempfile.TemporaryDirectory() as folder:
            run = subprocess.run([options.program, "--threads=%d" % options.threads, "--augment=" + text, "--dump=" + folder],
                                 stdout=subprocess.PIPE, universal_newlines=True, check=True)
            ours = float(run.stdout.split()[0])
            load = lambda name, kind: numpy.fromfile(os.path.join(folder, name), dtype=kind)
            images = torch.from_numpy(load("images.u8", numpy.uint8).reshape(N, C, SIDE, SIDE))
            draws = Draws(load("draws.i32", numpy.int32).reshape(N, len(NAMES)))
            y = torch.from_numpy(load("y.f32", numpy.float32).reshape(N, C, SIDE, SIDE))
        print("\n%s\n  %-14s %9.3f ms" % (text, "ours", ours))
        most = 1 if not draws.recolours else 4
        kept = y * 0.22 + 0.45  # a cut out value is the mean: it is not compared
        for name, call, rounds, workers in (("torchvision", one_by_one, 3, options.threads), ("batched", batched, 5, 1)):
            torch.set_num_threads(1 if call == one_by_one else options.threads)
            try:
                their = call(images, draws, mean, stddev, pixels=True)
            except ImportError as error:
                print("  %-14s %s" % (name, error))
                continue
            apart = ((kept * 255 - their).abs() * (y != 0)).max().item()
            wrong += not apart <= most + 0.01
            ms = milliseconds(lambda: call(images, draws, mean, stddev), rounds) / workers
            print("  %-14s %9.3f ms, ours is %.2fx as fast; pixels differ by %.2f grey levels at most%s" %
                  (name, ms, ms / ours, apart, "" if apart <= most + 0.01 else ": too much, %d is expected" % most))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
