#!/usr/bin/env python3
"""Our operations beside PyTorch's own, in the same process: what a call costs, softmax and cross-entropy of 4096 x
50257, optimize_resnet18(), a training step of the Fashion CNN, and the memory that each needs at most.

    python3 bench.py                           # on a GPU; with the extension: pip install -e . first, or --build
    python3 bench.py --only=overhead,resnet18
    python3 bench.py --device=cpu --quick      # does everything run?

The two take turns, and medians are compared: a machine that changes its speed changes both. Times on a GPU are by CUDA
events, with the host's launches in between, as a user sees them; softmax and cross-entropy are called 10 times in a
row, as a program that trains calls them: it launches the next while the GPU computes, and does not wait for each. With
--graph resnet18 and fashion are captured in one CUDA graph each. "overhead" is the host's time for one call on a tensor so small that the kernel does
not matter, under torch.no_grad(). float32; TF32 off unless a line says tf32. The last line is JSON.
"""
import argparse
import copy
import json
import statistics
import sys
import time

import torch
from torch import nn
from torch.nn import functional as F

import nncuda
from nncuda.ops.fused_ops import optimize_resnet18
from nncuda.training import pick_device

ROUNDS = 15
IN_A_ROW = 10  # calls of one operation between two events


class Clock:
    def __init__(self, device, rounds):
        self.device, self.rounds = device, rounds

    def once(self, call, repeats=1):
        """Microseconds of one of `repeats` calls in a row."""
        if self.device.type != "cuda":
            began = time.perf_counter()
            for _ in range(repeats):
                call()
            return 1e6 * (time.perf_counter() - began) / repeats
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        for _ in range(repeats):
            call()
        end.record()
        end.synchronize()
        return 1e3 * start.elapsed_time(end) / repeats

    def turns(self, calls, repeats=1):
        """name -> median; A B A B ..."""
        for call in calls.values():
            for _ in range(3):
                call()
        times = {name: [] for name in calls}
        for _ in range(self.rounds):
            for name, call in calls.items():
                times[name].append(self.once(call, repeats))
        return {name: statistics.median(values) for name, values in times.items()}

    def host(self, calls, repeats):
        """name -> median of the host's time for one call; nothing waits for the device within a round."""
        times = {name: [] for name in calls}
        for i in range(self.rounds + 1):
            for name, call in calls.items():
                self.wait()
                began = time.perf_counter()
                for _ in range(repeats):
                    call()
                elapsed = time.perf_counter() - began
                if i:
                    times[name].append(1e6 * elapsed / repeats)
        self.wait()
        return {name: statistics.median(values) for name, values in times.items()}

    def wait(self):
        if self.device.type == "cuda":
            torch.cuda.synchronize()

    def peak(self, call, prepare):
        """Bytes of the device that PyTorch's allocator has given out at most, less what was there before: after
        `prepare`, which lets go of what an earlier call has left."""
        if self.device.type != "cuda":
            return None
        call()
        prepare()
        self.wait()
        before = torch.cuda.memory_allocated()
        torch.cuda.reset_peak_memory_stats()
        call()
        self.wait()
        return torch.cuda.max_memory_allocated() - before

    def captured(self, call):
        """The same work as one CUDA graph."""
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(3):
                call()
        torch.cuda.current_stream().wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            call()
        return graph.replay


ROWS = []


def row(benchmark, what, theirs, ours, unit="us", **more):
    """A line of the table; higher ratios are better for us."""
    ROWS.append({"benchmark": benchmark, "what": what, "torch": theirs, "nncuda": ours, "unit": unit,
                 "ratio": theirs / ours, **more})
    print("%-10s %-44s %12.2f %12.2f %-4s %7.2fx" % (benchmark, what, theirs, ours, unit, theirs / ours), flush=True)


def overhead(clock, options):
    x, y = torch.randn(4, 16, device=clock.device), torch.randn(4, 16, device=clock.device)
    w, b = torch.randn(8, 16, device=clock.device), torch.randn(8, device=clock.device)
    norm = torch.ones(16, device=clock.device)
    pairs = {
        "softmax": (lambda: torch.softmax(x, -1), lambda: nncuda.softmax(x)),
        "relu": (lambda: torch.relu(x), lambda: nncuda.relu(x)),
        "add, relu": (lambda: torch.relu(x + y), lambda: nncuda.add_relu(x, y)),
        "linear": (lambda: F.linear(x, w, b), lambda: nncuda.linear(x, w, b)),
        "layer_norm": (lambda: F.layer_norm(x, (16,), norm, norm), lambda: nncuda.layer_norm(x, 16, norm, norm)),
    }
    repeats = 50 if options.quick else 1000
    usual = nncuda.backend.name
    with torch.no_grad():
        for name, (theirs, ours) in pairs.items():
            for backend in ("ctypes", "extension"):
                if backend == "extension" and usual != "extension":
                    continue
                nncuda.set_backend(backend)
                times = clock.host({"torch": theirs, "nncuda": ours}, repeats)
                row("overhead", "%s, %s" % (name, backend), times["torch"], times["nncuda"], backend=backend)
    nncuda.set_backend(usual)


def rows_and_columns(options):
    return (64, 1009) if options.quick else (4096, 50257)


def softmax(clock, options):
    for shape in [rows_and_columns(options)] + ([] if options.quick else [(4096, 4096), (65536, 1024)]):
        x = torch.randn(shape, device=clock.device)
        with torch.no_grad():
            times = clock.turns({"torch": lambda: torch.softmax(x, -1), "nncuda": lambda: nncuda.softmax(x)}, IN_A_ROW)
        row("softmax", "%d x %d" % shape, times["torch"], times["nncuda"], gbps=8e-3 * x.numel() / times["nncuda"])


def cross_entropy(clock, options):
    shape = rows_and_columns(options)
    x = torch.randn(shape, device=clock.device, requires_grad=True)
    target = torch.randint(0, shape[1], shape[:1], device=clock.device)

    def step(loss):
        x.grad = None
        loss(x, target).backward()

    calls = {"torch": lambda: step(F.cross_entropy), "nncuda": lambda: step(nncuda.cross_entropy)}
    times = clock.turns(calls, IN_A_ROW)
    row("cross", "forward and backward, %d x %d" % shape, times["torch"], times["nncuda"])
    memory(clock, "cross", "peak memory", calls, lambda: setattr(x, "grad", None))


def memory(clock, benchmark, what, calls, prepare=lambda: None):
    peaks = {name: clock.peak(call, prepare) for name, call in calls.items()}
    if peaks["torch"] is not None:
        row(benchmark, what, peaks["torch"] / 1e6, peaks["nncuda"] / 1e6, "MB")


def resnet18(clock, options):
    try:
        import torchvision
    except ImportError:
        print("resnet18: torchvision is not installed; left out")
        return
    torch.manual_seed(1)
    model = torchvision.models.resnet18().to(clock.device).eval()
    optimized = {tf32: optimize_resnet18(model, precision="tf32" if tf32 else "float32") for tf32 in (False, True)}
    for batch in (1,) if options.quick else (1, 32, 64, 128):
        x = torch.randn(batch, 3, *((32, 32) if options.quick else (224, 224)), device=clock.device)
        for tf32 in (False, True):
            torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = tf32
            fast = optimized[tf32]
            with torch.inference_mode():
                calls = {"torch": lambda: model(x), "nncuda": lambda: fast(x)}
                name = "inference, batch %d%s" % (batch, ", tf32" if tf32 else "")
                times = clock.turns(calls)
                row("resnet18", name, times["torch"], times["nncuda"])
                if not tf32:
                    launches = clock.host(calls, 1 if options.quick else 5)
                    row("resnet18", "host time of " + name, launches["torch"], launches["nncuda"])
                    memory(clock, "resnet18", "peak memory of " + name, calls)
                if options.graph:
                    times = clock.turns({key: clock.captured(call) for key, call in calls.items()})
                    row("resnet18", name + ", graph", times["torch"], times["nncuda"])
    torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = False
    if not options.quick:
        train = {"torch": copy.deepcopy(model).train(), "nncuda": nncuda.convert(copy.deepcopy(model))[0].train()}
        training(clock, options, "resnet18", train, 64, (3, 224, 224), 1000)


def training(clock, options, benchmark, models, batch, image, classes):
    """One step: forward, cross-entropy, backward, SGD with momentum."""
    x = torch.randn(batch, *image, device=clock.device)
    target = torch.randint(0, classes, (batch,), device=clock.device)
    losses = {"torch": F.cross_entropy, "nncuda": nncuda.cross_entropy}
    kinds = {"torch": torch.optim.SGD, "nncuda": nncuda.optim.SGD}
    optimizers = {name: kinds[name](model.parameters(), lr=0.01, momentum=0.9) for name, model in models.items()}

    def step(name):
        optimizers[name].zero_grad(set_to_none=True)
        losses[name](models[name](x), target).backward()
        optimizers[name].step()

    calls = {name: lambda name=name: step(name) for name in models}
    times = clock.turns(calls)
    row(benchmark, "training step, batch %d" % batch, times["torch"], times["nncuda"])
    memory(clock, benchmark, "peak memory of it", calls)
    if options.graph:
        times = clock.turns({name: clock.captured(call) for name, call in calls.items()})
        row(benchmark, "training step, batch %d, graph" % batch, times["torch"], times["nncuda"])


class FashionTwin(nn.Module):
    """FashionMNISTCNN as a PyTorch user writes it."""

    def __init__(self):
        super().__init__()
        self.conv1, self.conv2 = nn.Conv2d(1, 64, 3), nn.Conv2d(64, 128, 3)
        self.fc1, self.fc2 = nn.Linear(3200, 256), nn.Linear(256, 10)

    def forward(self, x):
        x = F.relu(F.max_pool2d(self.conv1(x), 2))
        x = F.relu(F.max_pool2d(self.conv2(x), 2))
        return self.fc2(F.relu(self.fc1(x.flatten(1))))


def fashion(clock, options):
    for batch in (2,) if options.quick else (1, 64, 256):
        models = {"torch": FashionTwin().to(clock.device), "nncuda": nncuda.FashionMNISTCNN().to(clock.device)}
        x = torch.randn(batch, 1, 28, 28, device=clock.device)
        with torch.inference_mode():
            calls = {name: lambda model=model: model(x) for name, model in models.items()}
            times = clock.turns(calls)
            row("fashion", "inference, batch %d" % batch, times["torch"], times["nncuda"])
            memory(clock, "fashion", "peak memory of it", calls)
        training(clock, options, "fashion", models, batch, (1, 28, 28), 10)


BENCHMARKS = {"overhead": overhead, "softmax": softmax, "cross_entropy": cross_entropy, "resnet18": resnet18,
              "fashion": fashion}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default=",".join(BENCHMARKS), help="some of %s" % ", ".join(BENCHMARKS))
    parser.add_argument("--device", help="cuda, cuda:1 or cpu; default: the GPU where there is one")
    parser.add_argument("--build", action="store_true", help="compile the torch extension first")
    parser.add_argument("--graph", action="store_true", help="also as CUDA graphs")
    parser.add_argument("--quick", action="store_true", help="small sizes, few repetitions")
    options = parser.parse_args()
    chosen = options.only.split(",")
    unknown = [name for name in chosen if name not in BENCHMARKS]
    if unknown:
        parser.error("unknown benchmark %r; expected some of %s" % (unknown[0], ", ".join(BENCHMARKS)))
    try:
        device = pick_device(options.device)
        if options.build:
            nncuda.build_extension()
        if options.graph and device.type != "cuda":
            parser.error("--graph needs a GPU; expected --device=cuda")
        text = nncuda.library().text
    except (ValueError, RuntimeError) as error:
        sys.exit("bench.py: %s" % error)
    torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.benchmark = True
    clock = Clock(device, 3 if options.quick else ROUNDS)
    print("PyTorch %s and %s through %s, on %s" % (torch.__version__, text, nncuda.backend.name,
                                                   torch.cuda.get_device_name(device) if device.type == "cuda"
                                                   else "CPU"))
    print("%-10s %-44s %12s %12s" % ("", "", "PyTorch", "nncuda"))
    for name in chosen:
        BENCHMARKS[name](clock, options)
        if device.type == "cuda":
            torch.cuda.empty_cache()
    print(json.dumps({"program": "bench", "device": str(device), "torch": torch.__version__, "library": text,
                      "rows": ROWS}))


if __name__ == "__main__":
    main()
