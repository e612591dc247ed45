#!/usr/bin/env python3
"""Trains a convolutional network with our kernels and our softmax on Tiny-ImageNet, or on a folder of pictures in its
layout.

    python3 tiny_imagenet.py --generate=/tmp/waves --epochs=3      # writes a small data set there, and trains on it
    python3 tiny_imagenet.py --data-dir=/data/tiny-imagenet-200 --epochs=10 --device=cuda

The layout: train/CLASS/images/*.JPEG (or train/CLASS/*.JPEG), and val/images/*.JPEG with val/val_annotations.txt (or
val/CLASS/*.JPEG). Tiny-ImageNet has 200 classes of 500 pictures, 64 x 64; it is yours to download (Stanford's CS231n).
A generated data set has 4 classes of striped pictures.
"""
import argparse
import json
import os
import sys

import torch

import nncuda
from nncuda import data, optim, training


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("--data-dir", help="a directory in Tiny-ImageNet's layout")
    source.add_argument("--generate", metavar="DIR", help="write a small data set there first")
    parser.add_argument("--classes", type=int, default=4, help="of a generated data set")
    parser.add_argument("--images", type=int, default=80, help="training pictures of each generated class")
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--lr", type=float, default=1e-3)
    parser.add_argument("--side", type=int, default=64, help="pictures are scaled to this")
    parser.add_argument("--width", type=int, default=64, help="filters of the first convolution")
    parser.add_argument("--limit", type=int, help="at most so many training pictures of each class")
    parser.add_argument("--device", help="cuda, cuda:1 or cpu; default: the GPU where there is one")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--checkpoint", help="write the weights there (.pth)")
    parser.add_argument("--json", action="store_true", help="the last line is JSON")
    options = parser.parse_args()
    if options.side % 8:
        parser.error("--side is %d; expected a multiple of 8" % options.side)
    for name in ("classes", "images", "epochs", "batch_size", "side", "width", "limit"):
        if getattr(options, name) is not None and getattr(options, name) < 1:
            parser.error("--%s is %d; expected at least 1" % (name.replace("_", "-"), getattr(options, name)))
    try:
        device = training.pick_device(options.device)
        directory = options.data_dir
        if options.generate:
            directory = data.generate_image_folder(options.generate, options.classes, options.images,
                                                   max(1, options.images // 4), options.side, options.seed)
        train, val = data.image_folder(directory, options.side, options.limit)
        torch.manual_seed(options.seed)
        model = nncuda.TinyImageNetCNN(train.classes, options.side, options.width).to(device)
        print("%s: %d training and %d validation pictures of %d classes; %d parameters; on %s; %s" % (
            os.path.basename(os.path.abspath(directory)), len(train), len(val), train.classes,
            sum(p.numel() for p in model.parameters()), device, nncuda.library().text))
        history = training.train(model, optim.AdamW(model.parameters(), lr=options.lr), train, val, options.epochs,
                                 options.batch_size, options.seed, device, sys.stderr)
        images, labels = next(val.to(device).batches(5))
        with torch.no_grad():
            model.eval()
            chances = model(images, probabilities=True)
        for probability, label in zip(chances, labels):
            best = int(probability.argmax())
            print("class %d: %5.1f %% for class %d" % (int(label), 100 * float(probability[best]), best))
        if options.checkpoint:
            torch.save(model.state_dict(), options.checkpoint)
    except (TypeError, ValueError, RuntimeError, OSError) as error:
        sys.exit("tiny_imagenet.py: %s" % error)
    print("validation accuracy %.2f %%" % (100 * history["test_accuracy"][-1]))
    if options.json:
        print(json.dumps({"program": "tiny_imagenet", "device": str(device), "seed": options.seed,
                          "epochs": options.epochs,
                          "test_accuracy": history["test_accuracy"][-1], "test_loss": history["test_loss"][-1],
                          "train_loss": history["train_loss"][-1],
                          "images_per_second": history["images_per_second"][-1], "seconds": sum(history["seconds"]),
                          "checkpoint": options.checkpoint}))


if __name__ == "__main__":
    main()
