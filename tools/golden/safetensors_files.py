"""Checkpoints as dictionaries of PyTorch tensors, for the scripts that tests run."""
import json
import struct

import torch

KINDS = {"F32": torch.float32, "I64": torch.int64}
CHECKSUM = "tensors_crc32"
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
    metadata = {key: value for key, value in metadata.items() if key != CHECKSUM}  # that of the tensors as they were
    header, pieces, end = {"__metadata__": metadata}, [], 0
    for name, tensor in tensors.items():
        content = tensor.detach().contiguous().numpy().tobytes()
        header[name] = {"dtype": NAMES[tensor.dtype], "shape": list(tensor.shape),
                        "data_offsets": [end, end + len(content)]}
        pieces.append(content)
        end += len(content)
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        file.writelines(pieces)
