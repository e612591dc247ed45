#!/usr/bin/env python3
"""The peer of the lessons of phase 1, and of batch norm: the same operations in PyTorch, timed the same way.

    python3 tools/peers/torch_ops.py                     # on a GPU, all of them
    python3 tools/peers/torch_ops.py --only=softmax,dropout --json
    python3 tools/peers/torch_ops.py --device=cpu --quick    # does every operation run?

As in common/lesson/time.h: normally distributed inputs; so many sets of them, 256 MiB and four times the L2 cache in
all, that no launch finds its inputs in the cache; it takes turns with a device copy, 21 rounds, and gets the median.
float32 with TF32 off, unless the name says bf16. Two times each: `eager`, what a user of PyTorch waits for, one call after the
other; and `graph`, the same calls captured in one CUDA graph, which takes the launches' overhead away. `GB/s` counts each
input and output once, against the shorter of the two times; `of copy` is that against a device copy in the same run.

A new operation is one function below, with @operation above it.
"""
import argparse
import json
import math
import statistics
import sys
import time

import torch
from torch.nn import functional as F

OPERATIONS = []  # (name, shape, dtype, make, bytes)
ROUNDS = 21


def operation(name, *shapes, dtype=torch.float32):
    """The function makes (inputs, call, bytes) of a shape: call(*inputs) is what is timed, and returns what it computed;
    bytes that it moves at least, each input and output once. make(*sizes) is a normally distributed tensor."""
    def register(function):
        for shape in shapes:
            OPERATIONS.append((name, shape, dtype, function))
        return function
    return register


class Maker:
    """Tensors for one operation."""
    def __init__(self, device, dtype):
        self.device, self.dtype = device, dtype

    def __call__(self, *sizes):
        return torch.randn(*sizes, device=self.device, dtype=self.dtype)

    def leaf(self, *sizes):
        """One that gradients are asked of."""
        return self(*sizes).requires_grad_()

    def labels(self, n, classes):
        return torch.randint(0, classes, (n,), device=self.device)


# ---------------------------------------------------------------------------------------------------------------------
# The operations

SOFTMAX = [(65536, 1024), (4096, 4096), (4096, 50257), (128, 200)]


@operation("copy", (1 << 26,))
def copy(make, n):
    return [make(n)], lambda x: x.clone(), 8 * n


@operation("softmax", *SOFTMAX)
def softmax(make, rows, columns):
    return [make(rows, columns)], lambda x: torch.softmax(x, 1), 8 * rows * columns


@operation("softmax backward", *SOFTMAX)
def softmax_backward(make, rows, columns):
    def call(dy, y):
        return torch.ops.aten._softmax_backward_data(dy, y, 1, torch.float32)
    return [make(rows, columns), torch.softmax(make(rows, columns), 1)], call, 12 * rows * columns


@operation("softmax, dropout", (65536, 1024), (4096, 4096))
def softmax_dropout(make, rows, columns):
    def call(x):
        return F.dropout(torch.softmax(x, 1), 0.1, training=True)
    return [make(rows, columns)], call, 8 * rows * columns


@operation("dropout", (1 << 26,))
def dropout(make, n):
    return [make(n)], lambda x: F.dropout(x, 0.5, training=True), 8 * n


@operation("dropout, forward and backward", (1 << 26,))
def dropout_step(make, n):
    def call(x, dy):
        y = F.dropout(x, 0.5, training=True)
        return y, torch.autograd.grad(y, x, dy)[0]
    return [make.leaf(n), make(n)], call, 16 * n


@operation("softmax, dropout, forward and backward", (65536, 1024), (4096, 4096))
def softmax_dropout_step(make, rows, columns):
    def call(x, dy):
        y = F.dropout(torch.softmax(x, 1), 0.1, training=True)
        return y, torch.autograd.grad(y, x, dy)[0]
    return [make.leaf(rows, columns), make(rows, columns)], call, 20 * rows * columns


@operation("batch norm, ReLU, softmax", (65536, 1024), (4096, 4096))
def batch_norm_relu_softmax(make, rows, columns):
    """With the running statistics, as in inference: three calls."""
    def call(x, mean, variance, weight, bias):
        return torch.softmax(F.relu(F.batch_norm(x, mean, variance, weight, bias, training=False)), 1)
    inputs = [make(rows, columns), make(columns), make(columns).abs() + 0.5, make(columns), make(columns)]
    return inputs, call, 8 * rows * columns


NORMS = [(65536, 1024), (8192, 8192), (65536, 256)]


@operation("layer norm", *NORMS)
def layer_norm(make, rows, columns):
    def call(x, weight, bias):
        return F.layer_norm(x, (columns,), weight, bias)
    return [make(rows, columns), make(columns), make(columns)], call, 8 * rows * columns


@operation("layer norm backward", *NORMS)
def layer_norm_backward(make, rows, columns):
    def call(dy, x, mean, inv_std, weight, bias):
        return torch.ops.aten.native_layer_norm_backward(dy, x, (columns,), mean, inv_std, weight, bias, [True] * 3)
    x, weight, bias = make(rows, columns), make(columns), make(columns)
    _, mean, inv_std = torch.native_layer_norm(x, (columns,), weight, bias, 1e-5)
    return [make(rows, columns), x, mean, inv_std, weight, bias], call, 12 * rows * columns


@operation("instance norm", (1024, 64, 1024), (64, 64, 50176))
def instance_norm(make, images, channels, pixels):
    def call(x, weight, bias):
        return F.instance_norm(x, weight=weight, bias=bias)
    return [make(images, channels, pixels), make(channels), make(channels)], call, 8 * images * channels * pixels


BATCH_NORM = [(256, 256, 56, 56), (32, 64, 56, 56), (64, 64, 28, 28), (64, 32, 14, 14)]


@operation("batch norm, training", *BATCH_NORM)
def batch_norm_training(make, n, c, h, w):
    """Batch norm and ReLU; the running statistics are updated."""
    def call(x, mean, variance, weight, bias):
        return F.relu(F.batch_norm(x, mean, variance, weight, bias, training=True))
    inputs = [make(n, c, h, w), make(c), make(c).abs() + 0.5, make(c), make(c)]
    return inputs, call, 8 * n * c * h * w


@operation("batch norm, forward and backward", *BATCH_NORM)
def batch_norm_step(make, n, c, h, w):
    """The same, and the gradients of x, weight and bias."""
    def call(x, mean, variance, weight, bias, dy):
        y = F.relu(F.batch_norm(x, mean, variance, weight, bias, training=True))
        return y, torch.autograd.grad(y, (x, weight, bias), dy)
    inputs = [make.leaf(n, c, h, w), make(c), make(c).abs() + 0.5, make.leaf(c), make.leaf(c), make(n, c, h, w)]
    return inputs, call, 20 * n * c * h * w


@operation("cross entropy, forward and backward", (4096, 50257), (4096, 4096), (128, 200))
def cross_entropy(make, rows, classes):
    def call(logits, labels):
        loss = F.cross_entropy(logits, labels)
        return loss, torch.autograd.grad(loss, logits)[0]
    return [make.leaf(rows, classes), make.labels(rows, classes)], call, 8 * rows * classes


def attention(make, batch, heads, length, width, causal=False):
    inputs = [make(batch, heads, length, width) for _ in range(3)]
    size = inputs[0].element_size()
    def call(q, k, v):
        return F.scaled_dot_product_attention(q, k, v, is_causal=causal)
    return inputs, call, 4 * size * batch * heads * length * width


def attention_gradients(make, batch, heads, length, width):
    inputs = [make.leaf(batch, heads, length, width) for _ in range(3)]
    size = inputs[0].element_size()
    def call(q, k, v):
        out = F.scaled_dot_product_attention(q, k, v)
        return torch.autograd.grad(out, (q, k, v), torch.ones_like(out))
    return inputs, call, 7 * size * batch * heads * length * width


if hasattr(F, "scaled_dot_product_attention"):
    operation("attention", (2, 16, 4096, 64))(attention)
    operation("attention, causal", (2, 16, 4096, 64))(lambda *a: attention(*a, causal=True))
    operation("attention, forward and backward", (2, 16, 4096, 64))(attention_gradients)
    operation("attention bf16", (2, 16, 4096, 64), dtype=torch.bfloat16)(attention)
    operation("attention bf16, causal", (2, 16, 4096, 64), dtype=torch.bfloat16)(
        lambda *a: attention(*a, causal=True))


# ---------------------------------------------------------------------------------------------------------------------
# Time

class Bench:
    """One operation on one shape: sets of inputs in turn, one call or a graph of calls."""
    def __init__(self, name, shape, dtype, function, device, quick):
        self.name, self.device = name, device
        if quick:
            shape = [min(size, 128) for size in shape]
        self.shape = "x".join(str(size) for size in shape)
        make = Maker(device, dtype)
        inputs, self.call, self.bytes = function(make, *shape)
        wanted = 268435456
        if device == "cuda":
            wanted = max(wanted, 4 * torch.cuda.get_device_properties(0).L2_cache_size)
        held = max(sum(x.numel() * x.element_size() for x in inputs), 1)
        sets = 1 if quick else min(4096, math.ceil(wanted / held))
        self.sets = [inputs] + [function(make, *shape)[0] for _ in range(sets - 1)]
        self.next = 0
        self.graph = None
        self.samples = {"eager": [], "graph": []}
        self.calls = {"eager": 1}
        for _ in range(3):
            self.once()
        self.wait()
        once = self.block("eager")
        once = self.block("eager")
        self.calls["eager"] = max(1, min(2000, math.ceil(1e-3 / once)))
        if device == "cuda":
            self.capture(once)

    def wait(self):
        if self.device == "cuda":
            torch.cuda.synchronize()

    def once(self):
        inputs = self.sets[self.next]
        self.next = (self.next + 1) % len(self.sets)
        return self.call(*inputs)

    def capture(self, once):
        """As many calls as fill a millisecond, and each set at least once if a call is short; every call has outputs of
        its own, as far as 8 GiB go, so that these are not in the cache either."""
        count = max(self.calls["eager"], len(self.sets) if once < 1e-3 else 1)
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(3):
                self.once()
        torch.cuda.current_stream().wait_stream(side)
        self.graph = torch.cuda.CUDAGraph()
        self.kept, room = [], 8 << 30
        with torch.cuda.graph(self.graph):
            for _ in range(count):
                out = self.once()
                room -= self.bytes
                if room > 0:
                    self.kept.append(out)
        self.calls["graph"] = count
        self.graph.replay()
        self.wait()

    def block(self, how):
        """Seconds of one call."""
        count = self.calls[how]
        if self.device == "cpu":
            start = time.perf_counter()
            for _ in range(count):
                self.once()
            return (time.perf_counter() - start) / count
        start, stop = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        if how == "graph":
            self.graph.replay()
        else:
            for _ in range(count):
                self.once()
        stop.record()
        stop.synchronize()
        return start.elapsed_time(stop) * 1e-3 / count

    def median(self, how):
        return statistics.median(self.samples[how]) if self.samples[how] else None


def measure(group, device, quick):
    """They take turns: one after the other, in every round."""
    benches = [Bench(*one, device, quick) for one in group]
    for _ in range(2 if quick else ROUNDS):
        for bench in benches:
            bench.samples["eager"].append(bench.block("eager"))
            if bench.graph is not None:
                bench.samples["graph"].append(bench.block("graph"))
    rows = []
    for bench in benches:
        row = {"operation": bench.name, "shape": bench.shape, "eager_us": round(bench.median("eager") * 1e6, 2)}
        best = bench.median("eager")
        if bench.graph is not None:
            row["graph_us"] = round(bench.median("graph") * 1e6, 2)
            best = min(best, bench.median("graph"))
        row["gbps"] = round(bench.bytes / best * 1e-9, 1)
        rows.append(row)
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--only", help="operations whose names begin so, with commas between them")
    parser.add_argument("--quick", action="store_true", help="small shapes, two rounds: whether it runs, not how fast")
    parser.add_argument("--json", action="store_true", help="the table for programs, on the last line")
    arguments = parser.parse_args()
    torch.manual_seed(1)
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False

    wanted = arguments.only.split(",") if arguments.only else [""]
    chosen = [one for one in OPERATIONS if any(one[0].startswith(name) for name in wanted)]
    if not chosen:
        sys.exit("--only=%s: there is no such operation; there are %s" %
                 (arguments.only, ", ".join(sorted({one[0] for one in OPERATIONS}))))
    copies = [one for one in OPERATIONS if one[0] == "copy"]
    name = torch.cuda.get_device_name() if arguments.device == "cuda" else "CPU"
    print("PyTorch %s on %s\n" % (torch.__version__, name))
    print("%-36s %16s %12s %12s %9s %8s" % ("operation", "shape", "eager", "graph", "GB/s", "of copy"))
    rows = []
    for one in chosen:
        group = measure(copies + [one] if one not in copies else [one], arguments.device, arguments.quick)
        row = group[-1]
        row["copy_fraction"] = round(row["gbps"] / group[0]["gbps"], 4)
        graph = "%9.1f us" % row["graph_us"] if "graph_us" in row else "-"
        print("%-36s %16s %9.1f us %12s %9.1f %6.1f %%" % (row["operation"], row["shape"], row["eager_us"], graph,
                                                         row["gbps"], 100 * row["copy_fraction"]), flush=True)
        rows.append(row)
        if arguments.device == "cuda":
            torch.cuda.empty_cache()
    if arguments.json:
        print(json.dumps({"torch": torch.__version__, "device": arguments.device, "gpu": name, "rows": rows}))


if __name__ == "__main__":
    main()
