"""One training step of a network in PyTorch, or its inference, timed: what network_torch.py and mlp_torch.py have in common.

A step is what a PyTorch user writes: zero_grad, forward, cross entropy, backward, SGD with momentum; float32, TF32 off.
With --autocast the forward pass is autocast to bf16 or fp16, the images have the channels last with --channels-last, and
fp16 uses a GradScaler; ours computes with --precision then. With --inference it is the forward pass under inference_mode(), in evaluation mode.
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


class Peer:
    def __init__(self, model, image_shape, options):
        torch.manual_seed(1)
        torch.backends.cuda.matmul.allow_tf32 = False
        torch.backends.cudnn.allow_tf32 = False
        torch.backends.cudnn.benchmark = True
        self.device = options.device
        self.model = model.to(self.device)
        self.type = {"bf16": torch.bfloat16, "fp16": torch.float16, None: None}[options.autocast]
        self.scaler = None
        if options.autocast == "fp16":
            self.scaler = torch.amp.GradScaler("cuda")
        fused = {"fused": True} if options.fused else {}
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.01, momentum=0.9, **fused)
        self.images = torch.randn(options.batch_size, *image_shape, device=self.device)
        if options.channels_last:
            self.model = self.model.to(memory_format=torch.channels_last)
            self.images = self.images.contiguous(memory_format=torch.channels_last)
        self.labels = torch.randint(0, 10, (options.batch_size,), device=self.device)
        self.run = self.step
        if options.inference:
            self.model.eval()
            self.run = self.infer
        if options.graph:
            self.capture()

    def step(self):
        self.optimizer.zero_grad(set_to_none=True)
        if self.scaler:
            self.scaler.scale(self.loss()).backward()
            self.scaler.step(self.optimizer)
            self.scaler.update()
        else:
            self.loss().backward()
            self.optimizer.step()

    def loss(self):
        with torch.autocast(self.device, dtype=self.type, enabled=self.type is not None):
            return nn.functional.cross_entropy(self.model(self.images), self.labels)

    @torch.inference_mode()
    def infer(self):
        return self.model(self.images)

    def capture(self):
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(5):
                self.run()
        torch.cuda.current_stream().wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        self.optimizer.zero_grad(set_to_none=True)
        with torch.cuda.graph(graph):
            if self.run == self.infer:
                self.kept = self.infer()
            else:
                self.loss().backward()
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


def parser(description, ours):
    """`ours`: the name of our program in //, for --help."""
    result = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    result.add_argument("--device", choices=["cpu", "cuda"], default="cuda" if torch.cuda.is_available() else "cpu")
    result.add_argument("--threads", type=int, default=2, help="CPU threads")
    result.add_argument("--batch-size", type=int, default=64)
    result.add_argument("--graph", action="store_true", help="both: replay the step as a CUDA graph, with a resident batch")
    result.add_argument("--inference", action="store_true", help="both: the forward pass alone, of a resident batch")
    result.add_argument("--autocast", choices=["bf16", "fp16"], help="both: compute with 16 bits; ours as --precision")
    result.add_argument("--channels-last", action="store_true", help="PyTorch's images and weights as NHWC")
    result.add_argument("--fused", action="store_true", help="SGD(fused=True), in PyTorch 2.3 and later")
    result.add_argument("--rounds", type=int, default=7)
    result.add_argument("--steps", type=int, default=200, help="steps in a round")
    result.add_argument("--ours", help="%s, run in turns with PyTorch" % ours)
    return result


def main(model, image_shape, options, our_options=()):
    """Times `model` on random images of that shape; our_options go to the program of --ours."""
    torch.set_num_threads(options.threads)
    peer = Peer(model, image_shape, options)
    peer.seconds(max(options.steps // 4, 10))  # warm-up
    command = [options.ours, "--device=" + {"cuda": "gpu", "cpu": "cpu"}[options.device], "--json",
               "--batch-size=%d" % options.batch_size, "--threads=%d" % options.threads, "--rounds=1", *our_options]
    if options.graph:
        command += [option for option in ("--graph", "--resident") if option not in command]
    if options.inference:
        command.append("--inference")
    if options.autocast:
        command.append("--precision=" + options.autocast)
    theirs, ours = [], []
    for _ in range(options.rounds):
        theirs.append(peer.seconds(options.steps))
        if options.ours:
            ours.append(ours_seconds(command))

    result = {"device": options.device, "torch": torch.__version__, "batch_size": options.batch_size,
              "threads": options.threads, "graph": options.graph, "fused": options.fused,
              "autocast": options.autocast, "channels_last": options.channels_last,
              "inference": options.inference,
              "torch_step_us": round(statistics.median(theirs) * 1e6, 1),
              "torch_images_per_second": round(options.batch_size / statistics.median(theirs))}
    if options.device == "cuda":
        result["gpu"] = torch.cuda.get_device_name()
    print("PyTorch %s: %.1f us a step, %s images/s (rounds: %s)" % (
        torch.__version__, result["torch_step_us"], format(result["torch_images_per_second"], ","),
        " ".join("%.0f" % (t * 1e6) for t in theirs)))
    if ours:
        result["our_step_us"] = round(statistics.median(ours) * 1e6, 1)
        result["our_images_per_second"] = round(options.batch_size / statistics.median(ours))
        result["speedup"] = round(statistics.median(theirs) / statistics.median(ours), 3)
        print("ours: %.1f us a step, %s images/s (rounds: %s)" % (
            result["our_step_us"], format(result["our_images_per_second"], ","),
            " ".join("%.0f" % (t * 1e6) for t in ours)))
        print("ours is %.2fx as fast" % result["speedup"])
    print(json.dumps(result))
