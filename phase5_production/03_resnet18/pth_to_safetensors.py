#!/usr/bin/env python3
"""pth_to_safetensors: the tensors of a PyTorch file (.pth, .pt) as a safetensors file, without PyTorch.

    python3 pth_to_safetensors.py resnet18.pth resnet18.safetensors

A .pth file is a pickle: a program for a small stack machine. Python's own machine can import any function and call
it, so that a file from a stranger can run anything; that is what `torch.load` warns of. The machine of pth_pickle.py
knows the names that a state dict needs and no others: a file that names something else is refused, and the name is
told.

Read are what torch.save() writes since version 1.6 (a zip archive) and what it wrote before (pickles one after another,
_use_new_zipfile_serialization=False); every dtype that safetensors has; views with any strides and offset; storages
that tensors share, which are written once for each. A dict with the entry "state_dict" or "model" stands for that
entry.

Exit status 0, or 1 with one sentence on stderr; OUT is replaced in one step, or stays as it was.
"""
import io
import itertools
import json
import os
import struct
import sys
import zipfile

from pth_pickle import MOST_BYTES, STORAGES, Machine, Refused, Tensor, show

LEGACY_MAGIC, LEGACY_PROTOCOL = 0x1950A86A20F9469CFC6C, 1001
MOST_VIEWS = 16  # times the bytes of the storages may all tensors have: strides of 0 may claim any size
MOST_PICKLE = 1 << 28


# ------------------------------------------------------------------------------------------------------ the two formats

def check_storage_size(storage, found):
    expected = storage.count * STORAGES[storage.kind][1]
    if found != expected:
        raise Refused("storage %s has %d bytes, and %d elements of %s need %d; the file is damaged or cut short"
                      % (storage.key, found, storage.count, storage.kind, expected))


def read_member(archive, name, most):
    info = archive.getinfo(name)
    if info.compress_type != zipfile.ZIP_STORED:
        raise Refused("%s is compressed; torch.save() stores it as it is, and so it is expected" % name)
    if info.file_size > most:
        raise Refused("%s has %d bytes; up to %d are read" % (name, info.file_size, most))
    return archive.read(name)  # compares the CRC-32


def read_zip(path):
    try:
        with zipfile.ZipFile(path) as archive:
            pickles = [name for name in archive.namelist() if name.endswith("/data.pkl")]
            if len(pickles) != 1:
                raise Refused("it is a zip archive with %d files */data.pkl; one is expected, as torch.save() writes"
                              % len(pickles))
            folder = pickles[0][:-len("data.pkl")]
            if folder + "constants.pkl" in archive.namelist():
                raise Refused("it is a TorchScript program, not a state dict; save model.state_dict() instead")
            if folder + "byteorder" in archive.namelist() and \
                    read_member(archive, folder + "byteorder", 16) != b"little":
                raise Refused("its numbers are big-endian; save it again on a little-endian machine")
            storages = {}
            root = Machine(storages).run(io.BytesIO(read_member(archive, pickles[0], MOST_PICKLE)))
            for storage in storages.values():
                name = folder + "data/" + storage.key
                if name not in archive.namelist():
                    raise Refused("storage %s is missing from the archive" % storage.key)
                check_storage_size(storage, archive.getinfo(name).file_size)
                storage.data = read_member(archive, name, MOST_BYTES)
            return root
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError, EOFError, ValueError, struct.error) as error:
        raise Refused("its zip archive is damaged or cut short: %s; fetch it again" % error)


def read_legacy(file):
    """Magic number, protocol, sizes of the machine that wrote it, the state dict, keys; then the storages."""
    storages = {}
    if Machine({}).run(file) != LEGACY_MAGIC:
        raise Refused("it is a pickle, but none that torch.save() wrote")
    protocol, machine = Machine({}).run(file), Machine({}).run(file)
    if protocol != LEGACY_PROTOCOL:
        raise Refused("it has the protocol %s; %d is expected" % (show(protocol), LEGACY_PROTOCOL))
    if not isinstance(machine, dict) or machine.get("little_endian") is not True:
        raise Refused("its numbers are big-endian; save it again on a little-endian machine")
    root, keys = Machine(storages).run(file), Machine({}).run(file)
    if not isinstance(keys, list) or not all(isinstance(key, str) for key in keys) or sorted(keys) != sorted(storages):
        raise Refused("its list of storages is not that of its tensors")
    for key in keys:
        count = file.read(8)
        if count != struct.pack("<q", storages[key].count):
            raise Refused("storage %s does not begin with its number of elements, %d; the file is damaged or cut short"
                          % (key, storages[key].count))
        size = storages[key].count * STORAGES[storages[key].kind][1]
        left = os.fstat(file.fileno()).st_size - file.tell()
        check_storage_size(storages[key], min(size, left))  # before memory is asked for
        storages[key].data = file.read(size)
    return root


def read(path):
    with open(path, "rb") as file:
        head = file.read(512)
        file.seek(0)
        if head[:4] == b"PK\3\4":
            return read_zip(path)
        if head[:1] == b"\x80":
            return read_legacy(file)
        if head[257:262] == b"ustar":
            raise Refused("it is a tar archive, as PyTorch wrote before version 0.2; load it with PyTorch and save it "
                          "again")
        raise Refused("it is neither a zip archive nor a pickle; a file that torch.save() wrote is expected")


# ------------------------------------------------------------------------------------------------------------- tensors

def state_dict(root):
    """The tensors by their names."""
    for key in ("state_dict", "model"):
        if isinstance(root, dict) and isinstance(root.get(key), dict):
            root = root[key]
    if not isinstance(root, dict):
        raise Refused("it holds %s; a state dict is expected: torch.save(model.state_dict(), FILE)"
                      % ("one tensor" if isinstance(root, Tensor) else "a %s" % type(root).__name__))
    for name, value in root.items():
        if not isinstance(name, str) or not isinstance(value, Tensor):
            raise Refused("the entry %s is %s; a state dict is expected, which has names and tensors alone"
                          % (show(name), show(value) if not isinstance(value, Tensor) else "no name"))
    if not root:
        raise Refused("it holds no tensor")
    return root


def elements(tensor):
    count = 1
    for size in tensor.size:
        count *= size
    return count


def is_contiguous(tensor):
    expected = 1
    for size, stride in zip(tensor.size[::-1], tensor.stride[::-1]):
        if size != 1 and stride != expected:
            return False
        expected *= size
    return True


def content(tensor):
    """Its bytes, row-major, in pieces."""
    _, width, letter = STORAGES[tensor.storage.kind]
    count = elements(tensor)
    if count == 0:
        return
    if is_contiguous(tensor):
        yield memoryview(tensor.storage.data)[tensor.offset * width:(tensor.offset + count) * width]
        return
    values = memoryview(tensor.storage.data).cast(letter)
    size, stride = tensor.size[-1], tensor.stride[-1]
    for place in itertools.product(*map(range, tensor.size[:-1])):
        first = tensor.offset + sum(i * step for i, step in zip(place, tensor.stride))
        if stride == 0:
            yield values[first:first + 1].tobytes() * size
        else:
            yield values[first:first + (size - 1) * stride + 1:stride].tobytes()


def write(path, tensors):
    """Wide elements first, so that each tensor is aligned; otherwise in the order of the state dict."""
    header, end = {"__metadata__": {"format": "pt"}}, 0
    order = sorted(tensors, key=lambda name: -STORAGES[tensors[name].storage.kind][1])
    for name in order:
        dtype, width, _ = STORAGES[tensors[name].storage.kind]
        begin, end = end, end + elements(tensors[name]) * width
        header[name] = {"dtype": dtype, "shape": list(tensors[name].size), "data_offsets": [begin, end]}
    stored = {id(tensor.storage): len(tensor.storage.data) for tensor in tensors.values()}
    if end > MOST_VIEWS * sum(stored.values()):
        raise Refused("its tensors would have %d bytes, and the storages behind them have %d; up to %d times as many "
                      "are written" % (end, sum(stored.values()), MOST_VIEWS))
    if "__metadata__" in tensors:
        raise Refused("a tensor is called __metadata__, which no tensor of a safetensors file can be")
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    temporary = "%s.%d.tmp" % (path, os.getpid())
    try:
        with open(temporary, "wb") as file:
            file.write(struct.pack("<Q", len(text)) + text)
            for name in order:
                for piece in content(tensors[name]):
                    file.write(piece)
        os.replace(temporary, path)
    except BaseException:
        if os.path.exists(temporary):
            os.unlink(temporary)
        raise


def main(arguments):
    if len(arguments) != 2 or arguments[0].startswith("-"):
        print(__doc__.split("\n\n")[0] + "\n\n" + __doc__.split("\n\n")[1], file=sys.stderr)
        return 2
    source, target = arguments
    try:
        write(target, state_dict(read(source)))
    except Refused as problem:
        print("%s: %s" % (source, problem), file=sys.stderr)
        return 1
    except RecursionError:
        print("%s: its pickle nests too deeply; it is damaged" % source, file=sys.stderr)
        return 1
    except MemoryError:
        print("%s: there is not enough memory for its tensors" % source, file=sys.stderr)
        return 1
    except OSError as problem:
        print("%s: %s" % (problem.filename or source, problem.strerror or problem), file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
