#!/usr/bin/env python3
"""Loads a checkpoint of residual_test into PyTorch's network, trains one batch, and writes what state_dict() then has.

    python3 tools/golden/residual_state_dict.py IN.safetensors OUT.safetensors      (needs python3-torch)

load_state_dict(strict=True) refuses a file that lacks a name or has one too many. residual_test runs this and loads
OUT.safetensors again; without PyTorch it is skipped.
"""
import json
import struct
import sys

try:
    import torch

    import residual_golden
except ImportError:
    sys.exit(77)

KINDS = {"F32": torch.float32, "I64": torch.int64}
NAMES = {kind: name for name, kind in KINDS.items()}


def read(path):
    """name -> tensor, and the metadata."""
    content = open(path, "rb").read()
    begin = 8 + struct.unpack("<Q", content[:8])[0]
    header = json.loads(content[8:begin])
    metadata = header.pop("__metadata__", {})
    tensors = {}
    for name, entry in header.items():
        first, last = entry["data_offsets"]
        values = torch.frombuffer(bytearray(content[begin + first:begin + last]), dtype=KINDS[entry["dtype"]])
        tensors[name] = values.reshape(entry["shape"])
    return tensors, metadata


def write(path, tensors, metadata):
    header, data = {"__metadata__": metadata}, b""
    for name, tensor in tensors.items():
        content = tensor.detach().contiguous().numpy().tobytes()
        header[name] = {"dtype": NAMES[tensor.dtype], "shape": list(tensor.shape),
                        "data_offsets": [len(data), len(data) + len(content)]}
        data += content
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + data)


def main():
    tensors, metadata = read(sys.argv[1])
    model = residual_golden.Net()
    model.load_state_dict(tensors, strict=True)
    counters = [value for name, value in model.state_dict().items() if name.endswith("num_batches_tracked")]
    print("num_batches_tracked", *[int(value) for value in counters])
    model.mask = lambda shape: torch.ones(shape)
    torch.manual_seed(1)
    model.train()
    model(torch.randn(residual_golden.BATCH, 2, 9, 7))
    write(sys.argv[2], model.state_dict(), metadata)


main()
