#!/usr/bin/env python3
"""The peer of attention's gradients (lesson 14): scaled_dot_product_attention, forward and backward, each backend, beside ours.

    nvcc -std=c++17 -O3 -I. -gencode=arch=compute_90a,code=sm_90a -Xcompiler=-fPIC -shared
        tools/peers/attention_gradients_library.cu -o attention_gradients.so
    python3 tools/peers/attention_gradients_torch.py --ours=./attention_gradients.so
    python3 tools/peers/attention_gradients_torch.py --ours=./attention_gradients.so --type=bfloat16 --shapes=2x16x4096x128 --json

All in one process and on the same normally distributed inputs; float32 with TF32 off. The calls take turns, --rounds of them, and each
gets its median, launches included. A backend is named with the kernel that took most of its time; `x best` is the speed
relative to PyTorch's fastest backend for that shape. The errors are those of dq, dk and dv of two heads against the same in
float64: the largest one, and the root of the mean square. SM clock: of nvidia-smi, while they ran.
"""
import argparse
import ctypes
import json
import math
import statistics
import subprocess

import torch
from torch.nn import functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

CALLS, HEADS = 2, ((0, 0), (-1, -1))
BACKENDS = {"flash": SDPBackend.FLASH_ATTENTION, "cudnn": SDPBackend.CUDNN_ATTENTION,
            "efficient": SDPBackend.EFFICIENT_ATTENTION}
TYPES = {"float32": (torch.float32, ["attention_gradients_flash", "attention_gradients_tf32"]),
         "bfloat16": (torch.bfloat16, ["attention_gradients_mma", "attention_gradients_wgmma"])}


def peer(backend, inputs, dout, causal):
    def call():
        with sdpa_kernel(backend):
            o = F.scaled_dot_product_attention(*inputs, is_causal=causal)
        return torch.autograd.grad(o, inputs, dout)
    return call


def our_call(function, inputs, dout, causal):
    gradients = [torch.full_like(dout, torch.nan) for _ in inputs]

    def call():
        arrays = [ctypes.c_void_p(x.data_ptr()) for x in (*gradients, *inputs, dout)]
        function(*arrays, *dout.shape, int(causal))
        return gradients
    return call


def kernel_of(call):
    """The kernel that takes most of the time."""
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
        call()
        torch.cuda.synchronize()
    kernels = [e for e in profile.events() if e.device_type == torch.autograd.DeviceType.CUDA]
    return max(kernels, key=lambda e: e.device_time).name


def exact(inputs, dout, causal):
    """dq, dk, dv in float64, of HEADS."""
    result = []
    for head in HEADS:
        q, k, v, gradient = (x.detach()[head].double() for x in (*inputs, dout))
        scale = 1 / math.sqrt(q.shape[1])
        scores = q @ k.T * scale
        if causal:
            scores.masked_fill_(torch.ones_like(scores, dtype=torch.bool).triu(1), -torch.inf)
        p = torch.softmax(scores, 1)
        dp = gradient @ v.T
        ds = p * (dp - (p * dp).sum(1, keepdim=True))
        result.append((scale * ds @ k, scale * ds.T @ q, p.T @ gradient))
    return result


def errors(got, expected):
    """The largest and the root of the mean square, for each of dq, dk, dv."""
    rows = []
    for i, gradient in enumerate(got):
        e = torch.stack([gradient[head].double() - right[i] for head, right in zip(HEADS, expected)])
        rows.append((e.abs().max().item(), e.pow(2).mean().sqrt().item()))
    return rows


def clock():
    query = ["nvidia-smi", "--query-gpu=clocks.sm,power.draw", "--format=csv,noheader"]
    return subprocess.run(query, capture_output=True, text=True).stdout.strip().splitlines()[0]


def measure(shape, causal, dtype, ours, library, rounds):
    inputs = [torch.randn(shape, device="cuda", dtype=dtype).requires_grad_() for _ in range(3)]
    dout = torch.randn(shape, device="cuda", dtype=dtype)
    calls = {}
    for name, backend in BACKENDS.items():
        call = peer(backend, inputs, dout, causal)
        try:
            call()
            calls[name] = call
        except RuntimeError:  # this backend does not support the type
            pass
    peers = list(calls)
    for name in ours if library else []:
        calls[name] = our_call(getattr(library, "library_" + name), inputs, dout, causal)
    expected = exact(inputs, dout, causal)
    rows = {name: {"errors": errors(call(), expected), "kernel": kernel_of(call)} for name, call in calls.items()}
    samples = {name: [] for name in calls}
    for round in range(-2, rounds):
        for name, call in calls.items():
            start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            call()
            start.record()
            for _ in range(CALLS):
                call()
            end.record()
            if round == rounds - 1:
                rows[name]["clock"] = clock()
            end.synchronize()
            if round >= 0:
                samples[name].append(start.elapsed_time(end) / CALLS * 1e3)
    best = min(statistics.median(samples[name]) for name in peers)
    for name, row in rows.items():
        row["time_us"] = statistics.median(samples[name])
        row["x_best"] = best / row["time_us"]
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ours", help="the shared library of tools/peers/attention_gradients_library.cu")
    parser.add_argument("--type", choices=sorted(TYPES), help="only this one")
    parser.add_argument("--shapes", default="2x16x4096x64,2x16x4096x128", help="BxHxSxD, separated by commas")
    parser.add_argument("--rounds", type=int, default=21)
    parser.add_argument("--json", action="store_true", help="the last line is a JSON object")
    options = parser.parse_args()
    torch.backends.cuda.matmul.allow_tf32 = False
    library = ctypes.CDLL(options.ours) if options.ours else None
    print(f"torch {torch.__version__}, CUDA {torch.version.cuda}, cuDNN {torch.backends.cudnn.version()}, "
          f"{torch.cuda.get_device_name()}")
    everything = []
    for kind in [options.type] if options.type else TYPES:
        dtype, ours = TYPES[kind]
        for text in options.shapes.split(","):
            shape = tuple(int(size) for size in text.split("x"))
            for causal in (False, True):
                print(f"\n{kind} {text}{', causal' if causal else ''}")
                for name, row in measure(shape, causal, dtype, ours, library, options.rounds).items():
                    error = "  ".join("%.1e %.1e" % pair for pair in row["errors"])
                    print(f"{name:26} {row['time_us']:9.1f} us {row['x_best']:6.2f}x best  {row['clock']}  {error}  "
                          f"{row['kernel'][:60]}", flush=True)
                    everything.append(dict(row, version=name, type=kind, shape=text, causal=causal))
                torch.cuda.empty_cache()
    if options.json:
        print(json.dumps({"torch": torch.__version__, "gpu": torch.cuda.get_device_name(), "rows": everything}))


if __name__ == "__main__":
    main()
