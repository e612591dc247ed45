#!/usr/bin/env python3
"""PyTorch as a contender of runtime_duel: answers questions as duel_process.h says.

    duel_torch.py --model=FILE --shape=3,224,224 --x=FILE --y=FILE --way=eager|compiled|graph
        --precision=fp32|tf32|fp16|bf16 --device=cpu|cuda
"""
import argparse
import json
import os
import sys
import time


def say(answer):
    print(json.dumps(answer), flush=True)


try:
    import torch

    import duel_onnx
except ImportError as error:
    say({"missing": "%s; on Debian and Ubuntu: apt install python3-torch" % error})
    sys.exit(0)


class Contender:
    def __init__(self, options):
        self.options, self.cuda = options, options.device == "cuda"
        if self.cuda and not torch.cuda.is_available():
            raise RuntimeError("PyTorch %s finds no GPU" % torch.__version__)
        if options.threads:
            torch.set_num_threads(options.threads)
        self.dtype = {"fp16": torch.float16, "bf16": torch.bfloat16}.get(options.precision, torch.float32)
        torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = options.precision == "tf32"
        torch.backends.cudnn.benchmark = True
        self.format = torch.channels_last if self.dtype != torch.float32 and len(options.shape) == 3 else \
            torch.contiguous_format
        model = duel_onnx.load(options.model).eval().to(device=options.device, dtype=self.dtype)
        self.module = model.to(memory_format=self.format) if self.format == torch.channels_last else model
        if options.way == "compiled":
            if not hasattr(torch, "compile"):
                raise RuntimeError("PyTorch %s has no torch.compile; 2.0 or later is needed" % torch.__version__)
            self.module = torch.compile(self.module, mode="max-autotune" if self.cuda else None,
                                        dynamic=False)
        samples = torch.frombuffer(bytearray(open(options.x, "rb").read()), dtype=torch.float32)
        self.samples = samples.reshape([-1] + options.shape)

    def infer(self):
        with torch.inference_mode():
            return self.module(self.x)

    def prepare(self, batch):
        self.x = self.samples[:batch].to(device=self.options.device, dtype=self.dtype)
        if self.format == torch.channels_last:
            self.x = self.x.to(memory_format=self.format)
        self.run = self.eager
        if self.options.way == "graph":
            self.capture()

    def eager(self):
        self.y = self.infer()

    def capture(self):
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(3):
                self.infer()
        torch.cuda.current_stream().wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            self.y = self.infer()
        self.run = graph.replay

    def wait(self):
        if self.cuda:
            torch.cuda.synchronize()

    def batch(self, batch):
        self.prepare(batch)
        start = time.perf_counter()
        for i in range(3):  # what is slow is warm sooner
            if i == 0 or time.perf_counter() - start < 1:
                self.run()
                self.wait()
        with open(self.options.y, "wb") as file:
            file.write(self.y.float().cpu().contiguous().numpy().tobytes())
        say({"ready": batch})

    def times(self, runs):
        times = []
        for _ in range(runs):
            start = time.perf_counter()
            self.run()
            self.wait()
            times.append(time.perf_counter() - start)
        say({"times": times})

    def stream(self, runs):
        start = time.perf_counter()
        for _ in range(runs):
            self.run()
        self.wait()
        say({"seconds": time.perf_counter() - start})

    def facts(self):
        host = next(int(line.split()[1]) * 1024 for line in open("/proc/self/status") if line.startswith("VmHWM:"))
        files = {line[line.index("/"):].rstrip("\n") for line in open("/proc/self/maps") if "/" in line}
        loaded = sum(os.path.getsize(path) for path in files if os.path.isfile(path) and not path.startswith("/dev/"))
        say({"name": "PyTorch " + torch.__version__, "host_bytes": host, "loaded_bytes": loaded})


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", required=True)
    parser.add_argument("--shape", required=True, type=lambda text: [int(n) for n in text.split(",")])
    parser.add_argument("--x", required=True, help="samples, float32")
    parser.add_argument("--y", required=True, help="where outputs go, float32")
    parser.add_argument("--way", choices=["eager", "compiled", "graph"], default="eager")
    parser.add_argument("--precision", choices=["fp32", "tf32", "fp16", "bf16"], default="fp32")
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--threads", type=int, default=0)
    try:
        contender = Contender(parser.parse_args())
        contender.prepare(1)
        contender.run()
        contender.wait()
    except (RuntimeError, NotImplementedError, KeyError) as error:
        say({"missing": str(error).strip().splitlines()[0] if str(error) else type(error).__name__})
        return
    say({"first": 1})
    questions = {"batch": contender.batch, "times": contender.times, "stream": contender.stream}
    for line in sys.stdin:
        words = line.split()
        if words[:1] == ["facts"]:
            contender.facts()
        elif len(words) == 2 and words[0] in questions:
            questions[words[0]](int(words[1]))
        else:
            break


if __name__ == "__main__":
    main()
