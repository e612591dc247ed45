#!/usr/bin/env python3
"""The peer of //phase3_cnn:lenet_bench: one training step of the same LeNet-5 in PyTorch.

    python3 tools/peers/lenet_torch.py --device=cpu --threads=2 --batch-size=64
    python3 tools/peers/lenet_torch.py --device=cuda --batch-size=64 --ours=bazel-bin/phase3_cnn/lenet_bench

A step is what a PyTorch user writes: zero_grad, forward, cross entropy, backward, SGD with momentum; float32, TF32 off.
The batch lies on the device already. With --ours the two programs take turns (A B A B ...), so that a machine that
changes its speed changes both, and the ratio of the medians is printed. The last line is JSON.
"""
import argparse
import json
import statistics
import subprocess
import time

import torch
from torch import nn


def lenet():
    return nn.Sequential(
        nn.Conv2d(1, 6, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(6, 16, 5), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(400, 120), nn.ReLU(), nn.Linear(120, 84), nn.ReLU(), nn.Linear(84, 10))


class Peer:
    def __init__(self, device, batch, graph):
        torch.manual_seed(1)
        torch.backends.cuda.matmul.allow_tf32 = False
        torch.backends.cudnn.allow_tf32 = False
        torch.backends.cudnn.benchmark = True
        self.device = device
        self.model = lenet().to(device)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.01, momentum=0.9)
        self.images = torch.randn(batch, 1, 28, 28, device=device)
        self.labels = torch.randint(0, 10, (batch,), device=device)
        self.run = self.step
        if graph:
            self.capture()

    def step(self):
        self.optimizer.zero_grad(set_to_none=True)
        nn.functional.cross_entropy(self.model(self.images), self.labels).backward()
        self.optimizer.step()

    def capture(self):
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(5):
                self.step()
        torch.cuda.current_stream().wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        self.optimizer.zero_grad(set_to_none=True)
        with torch.cuda.graph(graph):
            nn.functional.cross_entropy(self.model(self.images), self.labels).backward()
            self.optimizer.step()
        self.run = graph.replay

    def seconds(self, steps):
        """Seconds a step, measured over `steps` of them."""
        if self.device == "cuda":
            torch.cuda.synchronize()
        start = time.perf_counter()
        for _ in range(steps):
            self.run()
        if self.device == "cuda":
            torch.cuda.synchronize()
        return (time.perf_counter() - start) / steps


def ours_seconds(command):
    last = subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip().splitlines()[-1]
    return json.loads(last)["step_us"] * 1e-6


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--threads", type=int, default=2, help="CPU threads")
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--graph", action="store_true", help="replay the step as a CUDA graph: no launch overhead")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--steps", type=int, default=200, help="steps in a round")
    parser.add_argument("--ours", help="lenet_bench, run in turns with PyTorch")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)

    peer = Peer(arguments.device, arguments.batch_size, arguments.graph)
    peer.seconds(max(arguments.steps // 4, 10))  # warm-up
    command = [arguments.ours, "--device=" + {"cuda": "gpu", "cpu": "cpu"}[arguments.device], "--json",
               "--batch-size=%d" % arguments.batch_size, "--threads=%d" % arguments.threads, "--rounds=1"]
    theirs, ours = [], []
    for _ in range(arguments.rounds):
        theirs.append(peer.seconds(arguments.steps))
        if arguments.ours:
            ours.append(ours_seconds(command))

    result = {"device": arguments.device, "torch": torch.__version__, "batch_size": arguments.batch_size,
              "threads": arguments.threads, "graph": arguments.graph,
              "torch_step_us": round(statistics.median(theirs) * 1e6, 1),
              "torch_images_per_second": round(arguments.batch_size / statistics.median(theirs))}
    if arguments.device == "cuda":
        result["gpu"] = torch.cuda.get_device_name()
    print("PyTorch %s: %.1f us a step, %s images/s (rounds: %s)" % (
        torch.__version__, result["torch_step_us"], format(result["torch_images_per_second"], ","),
        " ".join("%.0f" % (t * 1e6) for t in theirs)))
    if ours:
        result["our_step_us"] = round(statistics.median(ours) * 1e6, 1)
        result["our_images_per_second"] = round(arguments.batch_size / statistics.median(ours))
        result["speedup"] = round(statistics.median(theirs) / statistics.median(ours), 3)
        print("ours: %.1f us a step, %s images/s (rounds: %s)" % (
            result["our_step_us"], format(result["our_images_per_second"], ","),
            " ".join("%.0f" % (t * 1e6) for t in ours)))
        print("ours is %.2fx as fast" % result["speedup"])
    print(json.dumps(result))


if __name__ == "__main__":
    main()
