#!/usr/bin/env python3
"""The peer of //phase3_cnn:conv2d_cpu_bench: the convolutions of LeNet-5 and of the Fashion CNN in PyTorch on the CPU.

    bazel build --config=cpu //phase3_cnn/01_conv2d_naive:conv2d_cpu_bench
    python3 tools/peers/conv2d_torch.py --threads=2 --ours=bazel-bin/phase3_cnn/01_conv2d_naive/conv2d_cpu_bench

Forward with bias; the gradients of filters and bias; the gradient of the input, which the first layer of a network does
not need and the sums leave out. The two programs take turns, in short blocks, and each operation gets the least time of
its blocks: on a machine that others use, too, that is the time which was disturbed least. Beside it stands the
processor time of all threads; with several threads PyTorch's contains the waiting, because its threads spin. With
--threads=1 it does not. The last line is JSON.
"""
import argparse
import json
import statistics
import subprocess
import time

import torch

# name, C, H, filters, side, padding, whether the gradient of the input is needed
LAYERS = [("LeNet conv1", 1, 28, 6, 5, 2, False), ("LeNet conv2", 6, 14, 16, 5, 0, True),
          ("Fashion conv1", 1, 28, 64, 3, 0, False), ("Fashion conv2", 64, 13, 128, 3, 0, True)]
OPERATIONS = ["forward", "backward_weight", "backward_input"]


def calls(layer, batch):
    """One call per operation."""
    _, channels, side, filters, kernel, padding, _ = layer
    x, w = torch.randn(batch, channels, side, side), torch.randn(filters, channels, kernel, kernel)
    bias = torch.randn(filters)
    dy = torch.randn_like(torch.nn.functional.conv2d(x, w, bias, padding=padding))

    def backward(mask):
        return lambda: torch.ops.aten.convolution_backward(dy, x, w, [filters], [1, 1], [padding, padding], [1, 1],
                                                           False, [0, 0], 1, mask)

    return {"forward": lambda: torch.nn.functional.conv2d(x, w, bias, padding=padding),
            "backward_weight": backward([False, True, True]), "backward_input": backward([True, False, False])}


def theirs(layers, rounds):
    """(clock, processor) in microseconds for (layer, operation): the least, and the mean."""
    times = {}
    with torch.no_grad():
        for name, layer_calls in layers:
            for operation, call in layer_calls.items():
                call()
                samples, before = [], time.process_time()
                for _ in range(rounds):
                    start = time.perf_counter()
                    call()
                    samples.append(time.perf_counter() - start)
                times[name, operation] = (min(samples) * 1e6, (time.process_time() - before) / rounds * 1e6)
    return times


def ours(options):
    command = [options.ours, "--usual", "--json", "--batch-size=%d" % options.batch_size,
               "--threads=%d" % options.threads, "--rounds=%d" % options.rounds]
    output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    rows = json.loads(output.splitlines()[-1])["rows"]
    return {(row["layer"], row["operation"]): (row["fastest_us"], row["processor_us"]) for row in rows}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ours", help="the program conv2d_cpu_bench; without it only PyTorch is timed")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--blocks", type=int, default=7, help="how often the two take turns")
    parser.add_argument("--rounds", type=int, default=15, help="calls per block and operation")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    torch.manual_seed(1)
    layers = [(layer[0], calls(layer, options.batch_size)) for layer in LAYERS]

    blocks = {"PyTorch": [], "ours": []}
    for _ in range(options.blocks):
        blocks["PyTorch"].append(theirs(layers, options.rounds))
        if options.ours:
            blocks["ours"].append(ours(options))

    def least(who, key):
        return min(block[key][0] for block in blocks[who])

    def processor(who, key):
        return statistics.median(block[key][1] for block in blocks[who])

    print("PyTorch %s, batch %d, %d threads; the least of %d blocks of %d calls, and the processor time of a call\n" %
          (torch.__version__, options.batch_size, options.threads, options.blocks, options.rounds))
    print("%-14s %-16s %12s %12s %8s   %12s %12s %8s" % ("", "", "PyTorch", "ours", "", "processor", "ours", ""))
    rows, sums = [], {}

    def line(layer, operation, values):
        row = {"layer": layer, "operation": operation, "torch_us": values[0], "torch_processor_us": values[2]}
        text = "%-14s %-16s %9.1f us" % (layer, operation, values[0])
        if options.ours:
            row.update(ours_us=values[1], ours_processor_us=values[3], ratio=values[0] / values[1],
                       processor_ratio=values[2] / values[3])
            text += " %9.1f us %7.2fx   %9.1f us %9.1f us %7.2fx" % (values[1], row["ratio"], values[2], values[3],
                                                                  row["processor_ratio"])
        print(text)
        rows.append({key: value if isinstance(value, str) else round(value, 3) for key, value in row.items()})

    for name, *_, needs_input in LAYERS:
        for operation in OPERATIONS:
            key = (name, operation)
            values = [least("PyTorch", key), least("ours", key) if options.ours else 0, processor("PyTorch", key),
                      processor("ours", key) if options.ours else 0]
            line(name, operation, values)
            if operation != "backward_input" or needs_input:
                network = name.split()[0]
                sums[network] = [a + b for a, b in zip(sums.get(network, [0] * 4), values)]
    for network, values in sums.items():
        line(network, "sum", values)
    print(json.dumps({"torch": torch.__version__, "threads": options.threads, "batch_size": options.batch_size,
                      "rows": rows}))


if __name__ == "__main__":
    main()
