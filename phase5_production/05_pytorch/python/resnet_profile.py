#!/usr/bin/env python3
"""What each fusion of optimize_resnet18() saves, in torchvision's ResNet-18: four columns, each with one fusion more.

    python3 resnet_profile.py                                 # batch 64, 224 x 224, on the GPU where there is one
    python3 resnet_profile.py --batch-size=1 --tf32
    python3 resnet_profile.py --device=cpu --batch-size=1 --side=64 --repeats=3
    python3 resnet_profile.py --trace=DIR                     # also Chrome traces, one for each column

standard      the model as torchvision makes it
+ add-ReLU    addition and ReLU at the end of a block are one kernel
+ conv-ReLU   convolutions by our kernels; where ReLU follows, batch norm and ReLU are one kernel
+ conv-bn     batch norm is folded into the convolution, which also adds and applies ReLU

CPU time and CUDA time are torch.profiler's, for one inference: the time that the host spends in it, and the sum of its
kernels' times on the GPU. "one inference" is measured without the profiler, by CUDA events or the clock: the median.
The weights are torchvision's initial ones, or --weights=FILE.pth.
"""
import argparse
import json
import os
import statistics
import sys
import time

import torch

try:
    import torchvision
except ImportError:
    sys.exit("resnet_profile.py: torchvision is not installed; expected it beside PyTorch: apt install "
             "python3-torchvision")

import nncuda
from nncuda.ops.fused_ops import optimize_resnet18
from nncuda.training import pick_device

COLUMNS = [("standard", ()), ("+ add-ReLU", ("add_relu",)), ("+ conv-ReLU", ("add_relu", "conv_relu")),
           ("+ conv-bn", ("add_relu", "conv_relu", "conv_bn"))]


def profile(run, device, repeats, trace):
    """Of one inference: microseconds on the host, microseconds on the GPU, kernels and copies on the GPU."""
    activities = [torch.profiler.ProfilerActivity.CPU]
    if device.type == "cuda":
        activities.append(torch.profiler.ProfilerActivity.CUDA)
    with torch.profiler.profile(activities=activities) as profiler:
        for _ in range(repeats):
            with torch.profiler.record_function("inference"):  # the profiler does not see into ctypes
                run()
        if device.type == "cuda":
            torch.cuda.synchronize()
    host = sum(event.cpu_time_total for event in profiler.key_averages() if event.key == "inference")
    on_gpu = [event for event in profiler.events()
              if event.device_type == torch.autograd.DeviceType.CUDA and event.name != "inference"]
    if trace:
        profiler.export_chrome_trace(trace)
    gpu = sum(event.time_range.elapsed_us() for event in on_gpu)
    return host / repeats, gpu / repeats, len(on_gpu) / repeats


def times(run, device, repeats):
    """Median time of one inference, and of launching it, in microseconds."""
    inferences, launches = [], []
    for _ in range(repeats):
        if device.type == "cuda":
            start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            torch.cuda.synchronize()
            start.record()
            began = time.perf_counter()
            run()
            launches.append(1e6 * (time.perf_counter() - began))
            end.record()
            end.synchronize()
            inferences.append(1e3 * start.elapsed_time(end))
        else:
            began = time.perf_counter()
            run()
            inferences.append(1e6 * (time.perf_counter() - began))
            launches.append(inferences[-1])
    return statistics.median(inferences), statistics.median(launches)


def measure(model, x, repeats, trace):
    device = x.device
    with torch.inference_mode():
        run = lambda: model(x)
        for _ in range(3):
            run()
        if device.type == "cuda":
            torch.cuda.synchronize()
            torch.cuda.reset_peak_memory_stats()
        inference, launch = times(run, device, repeats)
        row = {"inference_us": inference, "launch_us": launch}
        if device.type == "cuda":
            row["peak_bytes"] = torch.cuda.max_memory_allocated()
        row["cpu_us"], cuda, kernels = profile(run, device, min(repeats, 5), trace)
        if device.type == "cuda":
            row["cuda_us"], row["kernels"] = cuda, kernels
    return row


LINES = [("CPU time, ms", "cpu_us", 1e3), ("CUDA time, ms", "cuda_us", 1e3), ("one inference, ms", "inference_us", 1e3),
         ("of it launching, ms", "launch_us", 1e3), ("kernels and copies", "kernels", 1),
         ("peak memory, MB", "peak_bytes", 1e6)]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", choices=["resnet18", "resnet34"], default="resnet18")
    parser.add_argument("--device", help="cuda, cuda:1 or cpu; default: the GPU where there is one")
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--side", type=int, default=224, help="height and width of the pictures")
    parser.add_argument("--repeats", type=int, default=20)
    parser.add_argument("--tf32", action="store_true", help="PyTorch may compute convolutions and products in TF32")
    parser.add_argument("--weights", help="a .pth file of torchvision's state_dict")
    parser.add_argument("--trace", metavar="DIR", help="write Chrome traces there")
    parser.add_argument("--json", action="store_true", help="the last line is JSON")
    options = parser.parse_args()
    for name in ("batch_size", "side", "repeats"):
        if getattr(options, name) < 1:
            parser.error("--%s is %d; expected at least 1" % (name.replace("_", "-"), getattr(options, name)))
    torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = options.tf32
    torch.backends.cudnn.benchmark = True
    torch.manual_seed(1)
    model = getattr(torchvision.models, options.model)()
    try:
        device = pick_device(options.device)
        if options.weights:
            nncuda.load_checkpoint(model, options.weights)
        if options.trace:
            os.makedirs(options.trace, exist_ok=True)
    except (TypeError, ValueError, RuntimeError, OSError) as error:
        sys.exit("resnet_profile.py: %s" % error)
    model = model.to(device).eval()
    x = torch.randn(options.batch_size, 3, options.side, options.side, device=device)
    print("%s, batch %d, %d x %d, float32%s, on %s; %s, %s" % (
        options.model, options.batch_size, options.side, options.side, " with TF32" if options.tf32 else "",
        torch.cuda.get_device_name(device) if device.type == "cuda" else "CPU, %d threads" % torch.get_num_threads(),
        nncuda.library().text, nncuda.backend.name))
    rows = []
    for i, (name, fuse) in enumerate(COLUMNS):
        fast = optimize_resnet18(model, fuse=fuse) if fuse else model  # the last one in TF32 if PyTorch may use it
        rows.append({"column": name, **measure(fast, x, options.repeats,
                                               options.trace and "%s/%d.json" % (options.trace, i))})
        del fast
    print("%-22s" % "" + "".join("%14s" % row["column"] for row in rows))
    for title, key, unit in LINES:
        if key in rows[0]:
            print("%-22s" % title + "".join("%14.3f" % (row[key] / unit) for row in rows))
    print("%-22s" % "against standard" + "".join("%13.2fx" % (rows[0]["inference_us"] / row["inference_us"])
                                                 for row in rows))
    if options.json:
        print(json.dumps({"program": "resnet_profile", "device": str(device), "batch_size": options.batch_size,
                          "tf32": options.tf32, "rows": rows}))


if __name__ == "__main__":
    main()
