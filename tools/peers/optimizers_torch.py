#!/usr/bin/env python3
"""The peer of phase 4's sgd, adam and muon: torch.optim on one GPU.

    python3 tools/peers/optimizers_torch.py                    times: fused and foreach, eager and in a CUDA graph
    python3 tools/peers/optimizers_torch.py --sgd=bin/sgd --adam=bin/adam      and our programs beside them, in turns
    python3 tools/peers/optimizers_torch.py --muon             torch.optim.Muon (2.9 and later) against our reference

Times are of one step on 161 tensors of 25,557,032 parameters, cut as tensor_begin() of multi_tensor.cuh cuts them; each
array has 102 MB, more than the L2 cache. Bytes count each array once: 5 floats per parameter for SGD with momentum, 7 for
Adam. The roof is a device copy, measured in the same run.

--muon steps the matrices of tools/golden/optimizers_golden.py beside it. PyTorch computes Newton-Schulz in bfloat16, so that
an orthogonalised element is off by about 1 %; with the products in float64 (--exact, where PyTorch's function is replaced by
the same formula) the paths agree to 1e-6.
"""
import argparse
import importlib
import json
import math
import os
import statistics
import subprocess
import sys

import torch

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "golden"))

TENSORS, PARAMETERS, ROUNDS, REPEATS = 161, 25557032, 21, 20


def lengths(n, tensors):
    """As tensor_begin() of phase4_training/01_sgd/multi_tensor.cuh."""
    weights = (tensors + 2) // 3
    vector = min(n // (4 * tensors), 257)
    rest = n - vector * (tensors - weights)
    ends = [rest * i // weights for i in range(weights + 1)]
    return [b - a for a, b in zip(ends, ends[1:])] + [vector] * (tensors - weights)


def microseconds(run):
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    start.record()
    for _ in range(REPEATS):
        run()
    end.record()
    end.synchronize()
    return start.elapsed_time(end) * 1e3 / REPEATS


def parameters():
    tensors = [torch.nn.Parameter(torch.randn(length, device="cuda")) for length in lengths(PARAMETERS, TENSORS)]
    for tensor in tensors:
        tensor.grad = torch.randn_like(tensor)
    return tensors


def candidates():
    """name -> (what to run, floats per parameter)"""
    kinds = {
        "sgd fused": (lambda p: torch.optim.SGD(p, lr=1e-3, momentum=0.9, fused=True), 5),
        "sgd foreach": (lambda p: torch.optim.SGD(p, lr=1e-3, momentum=0.9, foreach=True), 5),
        "adam fused": (lambda p: torch.optim.Adam(p, lr=1e-3, fused=True, capturable=True), 7),
        "adam foreach": (lambda p: torch.optim.Adam(p, lr=1e-3, foreach=True, capturable=True), 7),
    }
    runs = {}
    for name, (make, floats) in kinds.items():
        optimizer = make(parameters())
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):  # the state is made before the capture
            for _ in range(3):
                optimizer.step()
        torch.cuda.current_stream().wait_stream(side)
        runs[name] = (optimizer.step, floats)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            optimizer.step()
        runs[name + ", graph"] = (graph.replay, floats)
    source, target = torch.randn(2, 64 << 20, device="cuda")
    runs["copy of 256 MiB"] = (lambda: target.copy_(source), 0)
    return runs


def ours(program):
    """Steps of our program, in microseconds, by version."""
    output = subprocess.run([program, "--json", "--shape=%dx%d" % (TENSORS, PARAMETERS)], check=True, text=True,
                            capture_output=True).stdout
    return {row["version"]: row["time_us"] for row in json.loads(output.splitlines()[-1])["rows"]}


def times(options):
    runs, samples = candidates(), {}
    for _ in range(ROUNDS):
        for name, (run, _) in runs.items():
            samples.setdefault(name, []).append(microseconds(run))
    medians = {name: statistics.median(values[1:]) for name, values in samples.items()}
    copied = 2 * 4 * (64 << 20) / medians["copy of 256 MiB"] * 1e-3
    print("torch %s on %s; copy %.0f GB/s" % (torch.__version__, torch.cuda.get_device_name(), copied))
    rows = [(name, medians[name], floats) for name, (_, floats) in runs.items() if floats]
    for program, floats in ((options.sgd, 5), (options.adam, 7)):
        if program:
            us = ours(program)
            rows += [("our %s %s" % (os.path.basename(program), version), us[version], floats)
                     for version in ("each", "table", "table_float4", "flat")]
    for name, us, floats in rows:
        speed = 4 * floats * PARAMETERS / us * 1e-3
        peer = medians[("sgd" if floats == 5 else "adam") + " fused, graph"]
        print("%-28s %9.1f us %8.0f GB/s %6.1f %% of the copy %6.2f x fused in a graph" %
              (name, us, speed, 100 * speed / copied, peer / us))


def newton_schulz(matrix, *_, **__):
    x = matrix.double() if matrix.shape[0] <= matrix.shape[1] else matrix.double().T
    x = x / x.norm().clamp(min=1e-7)
    for _ in range(5):
        a = x @ x.T
        x = 3.4445 * x + (-4.7750 * a + 2.0315 * a @ a) @ x
    return x if matrix.shape[0] <= matrix.shape[1] else x.T


def muon(options):
    import optimizers_golden as golden
    if not hasattr(torch.optim, "Muon"):
        sys.exit("torch %s has no torch.optim.Muon; 2.9 or later is expected" % torch.__version__)
    if options.exact:
        importlib.import_module("torch.optim._muon")._zeropower_via_newtonschulz = newton_schulz
    s, worst = golden.MUON, 0.0
    for shape in golden.SHAPES:
        name = "muon_%dx%d" % shape
        expected = golden.muon(shape, name)
        w = torch.nn.Parameter(golden.numbers(name, math.prod(shape)).reshape(shape))
        drawn = golden.numbers(name + " gradients", golden.STEPS * math.prod(shape)).reshape(golden.STEPS, *shape)
        optimizer = torch.optim.Muon([w], lr=s["lr"], weight_decay=s["weight_decay"], momentum=s["momentum"],
                                     nesterov=True, adjust_lr_fn="match_rms_adamw")
        for step in range(golden.STEPS):
            w.grad = drawn[step].clone()
            optimizer.step()
            error = (w.detach().flatten() - expected[step]).abs().max().item()
            # A step is lr * scale times an element of at most about 1; bfloat16 is off by 2 % of it after 15 products.
            allowed = (1e-6 if options.exact else 0.02 * s["lr"] * 0.2 * math.sqrt(max(shape))) * (step + 1)
            worst = max(worst, error / allowed)
        print("%s: after %d steps off by %.2e, %.2e is allowed" % (name, golden.STEPS, error, allowed))
    sys.exit(0 if worst <= 1 else "torch.optim.Muon and the reference differ")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sgd", help="our program sgd")
    parser.add_argument("--adam", help="our program adam")
    parser.add_argument("--muon", action="store_true", help="compare with torch.optim.Muon, and time nothing")
    parser.add_argument("--exact", action="store_true", help="with --muon: Newton-Schulz in float64")
    chosen = parser.parse_args()
    muon(chosen) if chosen.muon else times(chosen)
