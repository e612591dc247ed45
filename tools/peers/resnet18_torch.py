#!/usr/bin/env python3
"""The peer of resnet18_fused and resnet18_train_bench: ResNet-18 in PyTorch, one row per way to run it.

    python3 tools/peers/resnet18_torch.py --batch-size=64
    python3 tools/peers/resnet18_torch.py --batch-size=64 --ours=bazel-bin/phase5_production/04_resnet18_fused/resnet18_fused
    python3 tools/peers/resnet18_torch.py --train --ours=.../resnet18_train_bench
    python3 tools/peers/resnet18_torch.py --device=cpu --side=64 --batch-size=2 --quick       a try without a GPU

Inference, pictures on the device: eager in float32, TF32 and fp16 (channels last), torch.compile (max-autotune without and
with its own CUDA graphs), and each as a CUDA graph. A training step (forward, cross entropy, backward, SGD with momentum)
in bf16 autocast, channels last, eager and in a graph. Of each: microseconds from one run to the next, what the host needs
to launch it, and the most memory that was allocated while it ran (of ours: MiB). With --ours, our program runs once
before and once after, so that a machine that changes its speed shows; its rows stand below. The last line is JSON.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import time

import torch
from torch import nn

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "golden"))


def resnet18():
    try:
        import torchvision
        return torchvision.models.resnet18()
    except ImportError:
        import networks  # tools/golden: the same layers and names

        class Imagenet(networks.ResNet18Thin):
            classes = 1000

        return Imagenet(64)


class Way:
    """One way to run it: what is timed is self.run()."""

    def __init__(self, name, options, dtype=torch.float32, tf32=False, last=False, compiled=None, graph=False, train=False):
        self.name, self.options, self.tf32, self.graph, self.train = name, options, tf32, graph, train
        self.dtype, self.last, self.compiled = dtype, last, compiled

    def set_up(self):
        device = self.options.device
        torch.manual_seed(1)
        torch.backends.cuda.matmul.allow_tf32 = self.tf32
        torch.backends.cudnn.allow_tf32 = self.tf32
        torch.backends.cudnn.benchmark = True
        format = torch.channels_last if self.last else torch.contiguous_format
        weights = torch.float32 if self.train else self.dtype
        self.model = resnet18().to(device=device, dtype=weights, memory_format=format)
        shape = (self.options.batch_size, 3, self.options.side, self.options.side)
        self.images = torch.randn(*shape, device=device).to(dtype=weights, memory_format=format)
        self.labels = torch.randint(0, 1000, (self.options.batch_size,), device=device)
        if self.train:
            self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.01, momentum=0.9)
        else:
            self.model.eval()
        if self.compiled:
            self.model = torch.compile(self.model, mode=self.compiled, dynamic=False)
        self.run = self.step if self.train else self.infer
        for _ in range(self.options.warm):
            self.run()
        if self.graph:
            self.capture()

    def infer(self):
        with torch.inference_mode():
            return self.model(self.images)

    def step(self):
        self.optimizer.zero_grad(set_to_none=True)
        self.forward_backward()
        self.optimizer.step()

    def forward_backward(self):
        with torch.autocast(self.options.device, dtype=self.dtype, enabled=self.dtype != torch.float32):
            loss = nn.functional.cross_entropy(self.model(self.images), self.labels)
        loss.backward()

    def capture(self):
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(3):
                self.run()
        torch.cuda.current_stream().wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        if self.train:
            self.optimizer.zero_grad(set_to_none=True)
        with torch.cuda.graph(graph):
            if self.train:
                self.forward_backward()
                self.optimizer.step()
            else:
                self.kept = self.infer()
        self.run = graph.replay

    def wait(self):
        if self.options.device == "cuda":
            torch.cuda.synchronize()

    def times(self):
        """Medians of seconds from one run to the next, and of the host's part."""
        wall, host, runs, few = [], [], self.options.runs, min(self.options.runs, 3)
        for _ in range(self.options.rounds):
            self.wait()
            start = time.perf_counter()
            for _ in range(runs):
                self.run()
            self.wait()
            wall.append((time.perf_counter() - start) / runs)
            start = time.perf_counter()
            for _ in range(few):
                self.run()
            host.append((time.perf_counter() - start) / few)
            self.wait()
        return statistics.median(wall), statistics.median(host)

    def measure(self):
        cuda = self.options.device == "cuda"
        if cuda:
            torch.cuda.empty_cache()
        try:
            self.set_up()
            if cuda:  # what choosing kernels took is not counted
                torch.cuda.reset_peak_memory_stats()
            wall, host = self.times()
        except Exception as error:  # a way that this version of torch lacks is a row that says so
            print("%-44s %s" % (self.name, str(error).splitlines()[0][:90] if str(error) else type(error).__name__))
            return {"way": self.name, "error": str(error)[:200]}
        memory = torch.cuda.max_memory_allocated() / 2**20 if cuda else None
        print("%-44s%10.1f%10.1f%10s" % (self.name, wall * 1e6, host * 1e6, "-" if memory is None else "%.0f" % memory))
        sys.stdout.flush()
        return {"way": self.name, "time_us": wall * 1e6, "host_us": host * 1e6, "peak_mib": memory}


def ways(options):
    half, bf16, cuda = torch.float16, torch.bfloat16, options.device == "cuda"
    if options.train:
        rows = [Way("training, bf16 autocast, channels last", options, bf16, last=True, train=True)]
        if cuda:
            rows += [Way("training, bf16, channels last, graph", options, bf16, last=True, train=True, graph=True),
                     Way("training, float32", options, train=True)]
        return rows
    rows = [Way("float32", options)]
    if not cuda:
        return rows + [Way("bf16, channels last", options, bf16, last=True)]
    rows += [Way("float32, graph", options, graph=True),
             Way("TF32", options, tf32=True),
             Way("TF32, channels last", options, tf32=True, last=True),
             Way("TF32, channels last, graph", options, tf32=True, last=True, graph=True),
             Way("fp16, channels last", options, half, last=True),
             Way("fp16, channels last, graph", options, half, last=True, graph=True),
             Way("bf16, channels last, graph", options, bf16, last=True, graph=True)]
    if not options.quick:
        for tf32, dtype, name in ((True, torch.float32, "TF32"), (False, half, "fp16")):
            for mode in ("max-autotune-no-cudagraphs", "max-autotune"):
                rows.append(Way("compiled, %s, channels last, %s" % (name, mode[13:] or "graphs"), options, dtype, tf32,
                                True, mode))
    return rows


def ours(options):
    command = [options.ours, "--json", "--batch-size=%d" % options.batch_size]
    command += ["--precision=bf16", "--graph", "--resident", "--rounds=1"] if options.train else ["--checked=0"]
    if options.device == "cuda":
        command.append("--device=gpu")
    result = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return result, json.loads(result.strip().splitlines()[-1])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--side", type=int, default=224)
    parser.add_argument("--train", action="store_true", help="a training step instead of inference")
    parser.add_argument("--quick", action="store_true", help="without torch.compile, and few rounds")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--runs", type=int, default=10, help="runs in a round")
    parser.add_argument("--warm", type=int, default=10, help="runs before that")
    parser.add_argument("--ours", help="resnet18_fused, or with --train resnet18_train_bench")
    options = parser.parse_args()
    if options.quick:
        options.rounds, options.runs, options.warm = min(options.rounds, 5), min(options.runs, 3), min(options.warm, 3)
    rows = {"torch": torch.__version__, "device": options.device, "batch_size": options.batch_size, "side": options.side}
    if options.ours:
        rows["before"] = ours(options)[1]
    print("PyTorch %s, ResNet-18, batch %d, %d x %d, on %s" % (
        torch.__version__, options.batch_size, options.side, options.side,
        torch.cuda.get_device_name() if options.device == "cuda" else "CPU"))
    print("%-44s%10s%10s%10s" % ("", "us", "host us", "peak MiB"))
    rows["ways"] = [way.measure() for way in ways(options)]
    if options.ours:
        text, rows["after"] = ours(options)
        print("\n".join(text.strip().splitlines()[:-1]))
    print(json.dumps(rows))


if __name__ == "__main__":
    main()
