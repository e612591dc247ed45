#!/usr/bin/env python3
"""The peers of lesson 15's product of e4m3: torch._scaled_mm(), with one scale per matrix and with one per tile.

    python3 tools/peers/torch_fp8.py                  # on a GPU; 8192 x 8192 x 8192
    python3 tools/peers/torch_fp8.py 4096

A (M,K) and W (N,K) are e4m3, C (M,N) bfloat16, use_fast_accum=False. Scales per tile are those of fp8_gemm_bench: 1 x
128 of A, 128 x 128 of W. The median of 15 times; the kernels are named.
"""
import statistics
import sys

import torch

TIMES = 15


def median_us(call):
    for _ in range(3):
        call()
    times = []
    for _ in range(TIMES):
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        call()
        call()
        end.record()
        end.synchronize()
        times.append(1000 * start.elapsed_time(end) / 2)
    return statistics.median(times)


def kernel_name(call):
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
        call()
        torch.cuda.synchronize()
    kernels = [event for event in profile.events() if event.device_type == torch.autograd.DeviceType.CUDA]
    return max(kernels, key=lambda event: event.device_time).name if kernels else "unknown"


def show(name, n, call):
    try:
        us = median_us(call)
    except RuntimeError as error:  # a combination that this version of torch does not have
        print(f"{name:32} left out: {str(error).splitlines()[0]}")
        return
    print(f"{name:32} {us:8.1f} us {2e-6 * n**3 / us:8.1f} TFLOP/s  {kernel_name(call)}")


def main():
    n = int(sys.argv[1]) if len(sys.argv) > 1 else 8192
    a = torch.randn(n, n, device="cuda").to(torch.float8_e4m3fn)
    w = torch.randn(n, n, device="cuda").to(torch.float8_e4m3fn)
    one = torch.ones((), device="cuda")
    a_scale = torch.rand(n // 128, n, device="cuda").t()
    w_scale = torch.rand(n // 128, n // 128, device="cuda").t()

    def multiply(left, right):
        return torch._scaled_mm(a, w.t(), scale_a=left, scale_b=right, out_dtype=torch.bfloat16, use_fast_accum=False)

    print(f"torch {torch.__version__}, {torch.cuda.get_device_name()}, {n} x {n} x {n}")
    show("a scale per matrix", n, lambda: multiply(one, one))
    show("a scale per tile", n, lambda: multiply(a_scale, w_scale))


if __name__ == "__main__":
    main()
