#!/usr/bin/env python3
"""The peer of attention in bfloat16 (lesson 14): PyTorch's scaled_dot_product_attention, each of its backends, beside ours.

    nvcc -std=c++17 -O3 -I. -gencode=arch=compute_90a,code=sm_90a -default-stream=per-thread -Xcompiler=-fPIC -shared
        tools/peers/attention_library.cu -o attention.so
    python3 tools/peers/attention_torch.py --ours=./attention.so
    python3 tools/peers/attention_torch.py --ours=./attention.so --only=attention_wgmma --shapes=2x16x4096x128 --json

All in one process, on the same normally distributed inputs, three sets of them in turn. Each has its calls in a CUDA graph of
its own; the graphs take turns, 21 rounds, and each gets its median. A backend is named with the kernel that took most of its
time; `x best` is the speed relative to PyTorch's fastest backend for that shape. The error of ours is the largest difference
to the same attention in float64, of 256 queries, relative to 1 + |o|. SM clock: of nvidia-smi, while they ran.
"""
import argparse
import ctypes
import json
import statistics
import subprocess

import torch
from torch.nn import functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

ROUNDS, SETS, CALLS = 21, 3, 6
BACKENDS = {"flash": SDPBackend.FLASH_ATTENTION, "cudnn": SDPBackend.CUDNN_ATTENTION,
            "efficient": SDPBackend.EFFICIENT_ATTENTION}
OURS = ["attention_mma", "attention_wgmma_alternate", "attention_wgmma_turns", "attention_wgmma"]


def peer(backend, sets, causal):
    def call(i):
        with sdpa_kernel(backend):
            return F.scaled_dot_product_attention(*sets[i], is_causal=causal)
    return call


def our_call(function, sets, causal, o, lse):
    def call(i):
        arrays = [ctypes.c_void_p(x.data_ptr()) for x in (o, lse, *sets[i])]
        function(*arrays, *sets[i][0].shape, int(causal), ctypes.c_void_p(torch.cuda.current_stream().cuda_stream))
        return o
    return call


def kernel_of(call):
    """The kernel that takes most of the time."""
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
        call(0)
        torch.cuda.synchronize()
    kernels = [e for e in profile.events() if e.device_type == torch.autograd.DeviceType.CUDA]
    return max(kernels, key=lambda e: e.device_time).name


def graph_of(call):
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for i in range(SETS):
            call(i)
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for i in range(CALLS):
            call(i % SETS)
    return graph


def error_of(o, lse, inputs, causal):
    """Of o and of lse, on some queries of each head."""
    b, h, s, d = inputs[0].shape
    q, k, v = (x.reshape(b * h, s, d) for x in inputs)
    rows = torch.randint(0, s, (max(1, 256 // (b * h)),), device=o.device)
    worst = [0.0, 0.0]
    for head in range(b * h):
        scores = q[head, rows].double() @ k[head].double().T / d**0.5
        if causal:
            scores = scores.masked_fill(torch.arange(s, device=o.device) > rows[:, None], -torch.inf)
        exact = torch.softmax(scores, 1) @ v[head].double()
        difference = (o.reshape(b * h, s, d)[head, rows].double() - exact).abs() / (1 + exact.abs())
        worst[0] = max(worst[0], difference.max().item())
        worst[1] = max(worst[1], (lse.reshape(b * h, s)[head, rows].double() - torch.logsumexp(scores, 1)).abs().max().item())
    return worst


def clock():
    query = ["nvidia-smi", "--query-gpu=clocks.sm,power.draw", "--format=csv,noheader"]
    return subprocess.run(query, capture_output=True, text=True).stdout.strip().splitlines()[0]


def measure(shape, causal, library, only):
    sets = [[torch.randn(shape, device="cuda", dtype=torch.bfloat16) for _ in range(3)] for _ in range(SETS)]
    calls, rows = {}, {}
    for name, backend in BACKENDS.items():
        call = peer(backend, sets, causal)
        try:
            call(0)
            rows[name] = {"kernel": kernel_of(call)}
            calls[name] = call
        except RuntimeError as error:  # this backend does not support the shape
            print(f"{name} is left out: {str(error).splitlines()[0]}")
    peers = list(calls)
    for name in (only or OURS) if library else []:
        o, lse = torch.full(shape, torch.nan, device="cuda", dtype=torch.bfloat16), torch.full(shape[:3], torch.nan, device="cuda")
        calls[name] = our_call(getattr(library, "library_" + name), sets, causal, o, lse)
        calls[name](0)
        rows[name] = {"kernel": kernel_of(calls[name]), "error": error_of(o, lse, sets[0], causal)}
    graphs = {name: graph_of(call) for name, call in calls.items()}
    samples = {name: [] for name in graphs}
    for round in range(-3, ROUNDS):
        for name, graph in graphs.items():
            start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            graph.replay()
            start.record()
            graph.replay()
            end.record()
            if round == ROUNDS - 1:
                rows[name]["clock"] = clock()
            end.synchronize()
            if round >= 0:
                samples[name].append(start.elapsed_time(end) / CALLS * 1e3)
    best = min(statistics.median(samples[name]) for name in peers)
    b, h, s, d = shape
    flops = 4.0 * b * h * s * (s + 1 if causal else 2 * s) / 2 * d
    for name, row in rows.items():
        row["time_us"] = statistics.median(samples[name])
        row["tflops"] = flops / row["time_us"] * 1e-6
        row["x_best"] = best / row["time_us"]
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ours", help="the shared library of tools/peers/attention_library.cu")
    parser.add_argument("--only", default="", help="of ours only these, separated by commas")
    parser.add_argument("--shapes", default="2x16x4096x64,2x16x4096x128", help="BxHxSxD, separated by commas")
    parser.add_argument("--json", action="store_true", help="the last line is a JSON object")
    options = parser.parse_args()
    library = ctypes.CDLL(options.ours) if options.ours else None
    print(f"torch {torch.__version__}, CUDA {torch.version.cuda}, cuDNN {torch.backends.cudnn.version()}, "
          f"{torch.cuda.get_device_name()}")
    everything = []
    for text in options.shapes.split(","):
        shape = [int(size) for size in text.split("x")]
        for causal in (False, True):
            print(f"\n{text}{', causal' if causal else ''}")
            rows = measure(shape, causal, library, [name for name in options.only.split(",") if name])
            for name, row in rows.items():
                error = "  error {:.4f}, of lse {:.1e}".format(*row["error"]) if "error" in row else ""
                print(f"{name:24} {row['time_us']:8.1f} us {row['tflops']:6.0f} TFLOP/s {row['x_best']:6.2f}x best  "
                      f"{row['clock']}{error}  {row['kernel'][:60]}", flush=True)
                everything.append(dict(row, version=name, shape=text, causal=causal))
            torch.cuda.empty_cache()
    if options.json:
        print(json.dumps({"torch": torch.__version__, "gpu": torch.cuda.get_device_name(), "rows": everything}))


if __name__ == "__main__":
    main()
