#!/usr/bin/env python3
"""Trains the Fashion CNN of phase 3 from Python: nncuda.train_fashion_mnist_cuda() with options.

    python3 fashion_mnist.py                                  # 5 epochs, on the GPU where there is one
    python3 fashion_mnist.py --epochs=1 --train-images=2000 --device=cpu
    python3 fashion_mnist.py --evaluate=runs/fashion_mnist/best.safetensors     # of the C program, or a .pth
"""
import argparse
import json
import sys

import nncuda


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--lr", type=float, help="default: 0.05 for sgd, 0.001 for adam and adamw")
    parser.add_argument("--optimizer", choices=["sgd", "adam", "adamw"], default="sgd")
    parser.add_argument("--data-dir", help="with the four IDX files; default: NN_FASHION_MNIST_DIR, then Debian's "
                        "dataset-fashion-mnist")
    parser.add_argument("--train-images", type=int, help="only so many")
    parser.add_argument("--test-images", type=int, help="only so many")
    parser.add_argument("--device", help="cuda, cuda:1 or cpu; default: the GPU where there is one")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--checkpoint", help="write the weights there (.pth)")
    parser.add_argument("--evaluate", metavar="FILE", help="do not train: test these weights")
    parser.add_argument("--json", action="store_true", help="the last line is JSON")
    options = parser.parse_args()
    try:
        if options.evaluate:
            device = nncuda.training.pick_device(options.device)
            model = nncuda.load_checkpoint(nncuda.FashionMNISTCNN(), options.evaluate).to(device)
            test = nncuda.data.fashion_mnist(options.data_dir)[1].first(options.test_images)
            result = {"test_accuracy": nncuda.evaluate_accuracy(model, test)}
        else:
            model, history = nncuda.train_fashion_mnist_cuda(
                options.epochs, options.batch_size, options.lr, options.data_dir, options.device, options.seed,
                options.optimizer,
                train_images=options.train_images, test_images=options.test_images, checkpoint=options.checkpoint)
            device = next(model.parameters()).device
            result = {name: history[name][-1] for name in ("test_accuracy", "test_loss", "train_loss",
                                                           "images_per_second")}
            result["seconds"] = sum(history["seconds"])
    except (ValueError, TypeError, RuntimeError, OSError) as error:
        sys.exit("fashion_mnist.py: %s" % error)
    print("test accuracy %.2f %%" % (100 * result["test_accuracy"]))
    if options.json:
        print(json.dumps({"program": "fashion_mnist", "device": str(device), "seed": options.seed,
                          "epochs": options.epochs, **result,
                          "checkpoint": options.checkpoint}))


if __name__ == "__main__":
    main()
