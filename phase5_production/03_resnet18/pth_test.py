#!/usr/bin/env python3
"""Tests pth_to_safetensors.py on files in the format of torch.save(), which this script writes without PyTorch: pickle
writes names that it finds in modules, so modules called torch and torch._utils are made up here."""
import collections
import contextlib
import io
import json
import os
import pickle
import struct
import subprocess
import sys
import tempfile
import types
import unittest
import zipfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
sys.dont_write_bytecode = True
import pth_to_safetensors  # noqa: E402  it lies beside this file


def made_up(module, name):
    kind = type(name, (), {"__module__": module})
    setattr(sys.modules[module], name, kind)
    return kind


for each in ("torch", "torch._utils", "torchvision", "torchvision.models"):
    sys.modules[each] = types.ModuleType(each)
STORAGES = {name: made_up("torch", name + "Storage")
            for name in ("Float", "Half", "BFloat16", "Double", "Long", "Int", "Short", "Char", "Byte", "Bool",
                         "ComplexFloat", "QInt8")}
CODES = {"Float": "f", "Double": "d", "Long": "q", "Int": "i", "Short": "h", "Char": "b", "Byte": "B", "Bool": "B",
         "Half": "H", "BFloat16": "H", "ComplexFloat": "f"}


def rebuild_tensor():
    pass


rebuild_tensor.__module__, rebuild_tensor.__qualname__ = "torch._utils", "_rebuild_tensor_v2"
sys.modules["torch._utils"]._rebuild_tensor_v2 = rebuild_tensor


def rebuild_parameter():
    pass


rebuild_parameter.__module__, rebuild_parameter.__qualname__ = "torch._utils", "_rebuild_parameter"
sys.modules["torch._utils"]._rebuild_parameter = rebuild_parameter


class Storage:
    def __init__(self, kind, values, count=None):
        self.kind, self.key = kind, None
        self.data = struct.pack("<%d%s" % (len(values), CODES.get(kind, "b")), *values)
        self.count = len(values) // (2 if kind == "ComplexFloat" else 1) if count is None else count


class Tensor:
    def __init__(self, storage, offset, size, stride):
        self.arguments = (storage, offset, size, stride, False, collections.OrderedDict())

    def __reduce__(self):
        return rebuild_tensor, self.arguments


class Parameter:
    def __init__(self, tensor):
        self.tensor = tensor

    def __reduce__(self):
        return rebuild_parameter, (self.tensor, True, collections.OrderedDict())


def vector(kind, values):
    return Tensor(Storage(kind, values), 0, (len(values),), (1,))


class Pickler(pickle.Pickler):
    def __init__(self, file, protocol, storages, legacy):
        super().__init__(file, protocol)
        self.storages, self.legacy = storages, legacy

    def persistent_id(self, value):
        if not isinstance(value, Storage):
            return None
        if value.key is None:
            value.key = str(len(self.storages))
            self.storages.append(value)
        return ("storage", STORAGES[value.kind], value.key, "cpu", value.count) + ((None,) if self.legacy else ())


def pickled(value, storages, protocol=2, legacy=False):
    out = io.BytesIO()
    Pickler(out, protocol, storages, legacy).dump(value)
    return out.getvalue()


def write_zip(path, value, protocol=2, raw=None, compression=zipfile.ZIP_STORED, extra=(), drop=()):
    storages = []
    content = raw if raw is not None else pickled(value, storages, protocol)
    with zipfile.ZipFile(path, "w", compression) as archive:
        archive.writestr("archive/data.pkl", content)
        for storage in storages:
            if storage.key not in drop:
                archive.writestr("archive/data/" + storage.key, storage.data)
        for name, data in extra:
            archive.writestr("archive/" + name, data)


def write_legacy(path, value, system=None, keys=None):
    storages = []
    parts = [pickle.dumps(0x1950A86A20F9469CFC6C, 2), pickle.dumps(1001, 2),
             pickle.dumps(system or {"protocol_version": 1001, "little_endian": True, "type_sizes": {}}, 2),
             pickled(value, storages, legacy=True), pickle.dumps(keys or [storage.key for storage in storages], 2)]
    for storage in storages:
        parts.append(struct.pack("<Q", storage.count % (1 << 64)) + storage.data)
    with open(path, "wb") as file:
        file.write(b"".join(parts))


def read_safetensors(path):
    with open(path, "rb") as file:
        content = file.read()
    begin = 8 + struct.unpack("<Q", content[:8])[0]
    header = json.loads(content[8:begin])
    assert header.pop("__metadata__") == {"format": "pt"}
    return {name: (entry["dtype"], entry["shape"], content[begin:][slice(*entry["data_offsets"])])
            for name, entry in header.items()}


class Attack:
    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.mkdir, (self.path,)


class PthTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.pth, self.out = os.path.join(self.folder.name, "a.pth"), os.path.join(self.folder.name, "a.safetensors")

    def tearDown(self):
        self.folder.cleanup()

    def run_script(self, *arguments):
        """In this process, which is quicker; test_files() runs the script itself."""
        error = io.StringIO()
        with contextlib.redirect_stderr(error):
            status = pth_to_safetensors.main(arguments)
        return types.SimpleNamespace(returncode=status, stderr=error.getvalue())

    def convert(self):
        run = self.run_script(self.pth, self.out)
        self.assertEqual((run.returncode, run.stderr), (0, ""))
        return read_safetensors(self.out)

    def refused(self, *words):
        with open(self.out, "w") as file:
            file.write("before")
        run = self.run_script(self.pth, self.out)
        self.assertEqual(run.returncode, 1, run.stderr)
        self.assertEqual(run.stderr.count("\n"), 1, run.stderr)
        self.assertTrue(run.stderr.startswith(self.pth + ": "), run.stderr)
        for word in words:
            self.assertIn(word, run.stderr)
        with open(self.out) as file:  # what was there stays, and nothing else is left
            self.assertEqual(file.read(), "before")
        self.assertEqual(sorted(os.listdir(self.folder.name)), ["a.pth", "a.safetensors"])

    def test_both_formats_and_all_protocols(self):
        state = collections.OrderedDict([("fc.weight", Tensor(Storage("Float", range(6)), 0, (2, 3), (3, 1))),
                                         ("fc.bias", Parameter(vector("Float", [7, 8]))),
                                         ("steps", Tensor(Storage("Long", [5]), 0, (), ()))])
        state._metadata = collections.OrderedDict([("", {"version": 1})])
        expected = {"steps": ("I64", [], struct.pack("<q", 5)),
                    "fc.weight": ("F32", [2, 3], struct.pack("<6f", *range(6))),
                    "fc.bias": ("F32", [2], struct.pack("<2f", 7, 8))}
        for protocol in (2, 3, 4, 5):
            for storage in (state["fc.weight"], state["steps"], state["fc.bias"].tensor):
                storage.arguments[0].key = None
            write_zip(self.pth, state, protocol, extra=[("byteorder", b"little"), ("version", b"3\n")])
            self.assertEqual(self.convert(), expected)
        for storage in (state["fc.weight"], state["steps"], state["fc.bias"].tensor):
            storage.arguments[0].key = None
        write_legacy(self.pth, state)
        self.assertEqual(self.convert(), expected)

    def test_every_dtype(self):
        names = {"Float": "F32", "Half": "F16", "BFloat16": "BF16", "Double": "F64", "Long": "I64", "Int": "I32",
                 "Short": "I16", "Char": "I8", "Byte": "U8", "Bool": "BOOL", "ComplexFloat": "C64"}
        state = {name: Tensor(Storage(name, [1, 0, 1, 1]), 0, (2 if name == "ComplexFloat" else 4,), (1,))
                 for name in names}
        write_zip(self.pth, state)
        for name, (dtype, shape, data) in self.convert().items():
            self.assertEqual((dtype, data), (names[name], state[name].arguments[0].data))
        write_zip(self.pth, {"q": Tensor(Storage("QInt8", [1, 2]), 0, (2,), (1,))})
        self.refused("torch.QInt8Storage")

    def test_views(self):
        shared = Storage("Float", range(24))
        state = {"turned": Tensor(shared, 0, (3, 2), (1, 3)), "part": Tensor(shared, 5, (2, 2, 2), (8, 4, 2)),
                 "repeated": Tensor(shared, 7, (2, 3), (1, 0)), "empty": Tensor(shared, 0, (0, 5), (5, 1)),
                 "one": Tensor(shared, 23, (1, 1), (99, 7)), "all": Tensor(shared, 0, (24,), (1,)),
                 "half": Tensor(Storage("Half", range(6)), 1, (2, 2), (1, 2))}
        write_zip(self.pth, state)
        found = self.convert()
        values = {name: list(struct.unpack("<%d%s" % (len(data) // (2 if name == "half" else 4),
                                                      "H" if name == "half" else "f"), data))
                  for name, (_, _, data) in found.items()}
        self.assertEqual(values["turned"], [0, 3, 1, 4, 2, 5])
        self.assertEqual(values["part"], [5, 7, 9, 11, 13, 15, 17, 19])
        self.assertEqual(values["repeated"], [7, 7, 7, 8, 8, 8])
        self.assertEqual(values["empty"], [])
        self.assertEqual(values["one"], [23])
        self.assertEqual(values["all"], list(range(24)))
        self.assertEqual(values["half"], [1, 3, 2, 4])

    def test_wrapped_state_dicts(self):
        for key in ("state_dict", "model"):
            write_zip(self.pth, {"epoch": 3, "best": 0.5, key: {"a": vector("Float", [1])}, "args": [None, True]})
            self.assertEqual(list(self.convert()), ["a"])

    def test_code_never_runs(self):
        for value in (Attack, lambda path: {"a": Attack(path)}):
            target = os.path.join(self.folder.name, "hacked")
            write_zip(self.pth, None, raw=pickle.dumps(value(target), 2))
            self.refused("mkdir", "nothing was run")
            with open(self.pth, "wb") as file:
                file.write(pickle.dumps(value(target), 2))
            self.refused("mkdir", "nothing was run")
            write_legacy(self.pth, value(target), None)
            self.refused("mkdir", "nothing was run")
        for raw, word in ((b"cos\nsystem\n(S'true'\ntR.", "os.system"),
                          (b"\x80\x04\x8c\x08builtins\x8c\x04eval\x93.", "builtins.eval"),
                          (b"\x80\x02ctorch._utils\n_rebuild_tensor\n.", "torch._utils._rebuild_tensor,"),
                          (b"\x80\x02(ios\nsystem\n.", "INST"), (b"\x80\x02}\x81.", "NEWOBJ"),
                          (b"\x80\x02\x82\x01.", "EXT1"), (b"\x80\x02P1\n.", "PERSID")):
            write_zip(self.pth, None, raw=raw)
            self.refused(word)

    def test_whole_models_are_explained(self):
        made_up("torchvision.models", "ResNet")
        write_zip(self.pth, {"model": sys.modules["torchvision.models"].ResNet()})
        self.refused("torchvision.models.ResNet", "state_dict()")

    def test_tensors_beyond_their_storage(self):
        for tensor in (Tensor(Storage("Float", [1, 2]), 0, (3,), (1,)), Tensor(Storage("Float", [1, 2]), 1, (2,), (1,)),
                       Tensor(Storage("Float", [1, 2]), 0, (2, 2), (1, 1))):
            write_zip(self.pth, {"a": tensor})
            self.refused("reaches element", "storage of 2")
        for size, stride in (((-1,), (1,)), ((2,), (-1,)), ((2,), ()), ((1,) * 9, (1,) * 9), ((True,), (1,)), (2, 1)):
            write_zip(self.pth, {"a": Tensor(Storage("Float", [1, 2]), 0, size, stride)})
            self.refused("a.pth: ")
        write_zip(self.pth, {"a": Tensor(Storage("Float", [1, 2]), 0, (1 << 40,), (0,))})
        self.refused("4398046511104 bytes")

    def test_damaged_archives(self):
        state = {"a": vector("Float", range(100))}
        write_zip(self.pth, state)
        with open(self.pth, "rb") as file:
            good = file.read()
        for size in (3, 40, len(good) // 2, len(good) - 30):
            with open(self.pth, "wb") as file:
                file.write(good[:size])
            self.refused("a.pth: it")
        at = good.index(struct.pack("<2f", 50, 51))
        with open(self.pth, "wb") as file:
            file.write(good[:at] + b"\1" + good[at + 1:])
        self.refused("CRC-32")
        write_zip(self.pth, state, extra=[("\u00e9", b"")])
        with open(self.pth, "rb") as file:
            named = file.read()
        at = named.rindex("\u00e9".encode())
        with open(self.pth, "wb") as file:
            file.write(named[:at] + b"\xff" + named[at + 1:])  # a name that is no UTF-8
        self.refused("zip archive is damaged")
        for count, word in ((5, "16 bytes"), (-1, "elements"), (1 << 62, "up to 68719476736 bytes are read")):
            write_zip(self.pth, {"a": Tensor(Storage("Float", range(4), count), 0, (2,), (1,))})
            self.refused(word)
        write_zip(self.pth, {"a": vector("Float", [1])}, drop=["0"])
        self.refused("storage 0 is missing")
        write_zip(self.pth, {"a": vector("Float", [1])}, compression=zipfile.ZIP_DEFLATED)
        self.refused("compressed")
        write_zip(self.pth, {"a": vector("Float", [1])}, extra=[("byteorder", b"big")])
        self.refused("big-endian")
        write_zip(self.pth, {"a": vector("Float", [1])}, extra=[("constants.pkl", b"x")])
        self.refused("TorchScript")

    def test_damaged_pickles(self):
        write_legacy(self.pth, {"a": vector("Float", range(100))})
        with open(self.pth, "rb") as file:
            good = file.read()
        for size in range(2, len(good), 37):
            with open(self.pth, "wb") as file:
                file.write(good[:size])
            self.refused("a.pth: ")
        write_legacy(self.pth, {"a": vector("Float", [1])}, {"little_endian": False})
        self.refused("big-endian")
        for count, word in ((1 << 30, "cut short"), (1 << 62, "up to 68719476736 bytes"), (1 << 70, "up to 6871947")):
            write_legacy(self.pth, {"a": Tensor(Storage("Float", [1], count), 0, (1,), (1,))})
            self.refused(word)
        write_legacy(self.pth, {"a": vector("Float", [1])}, keys=[0])
        self.refused("list of storages")
        for raw in (b"", b".", b"\x80\x02.", b"\x80\x02h\x05.", b"\x80\x02K\x01u.", b"\x80\x02}K\x01.", b"\x80\x02(.",
                    b"\x80\x02]K\x01s.", b"\x80\x02}}K\x01s.", b"\x80\x02)Q.", b"\x80\x02K\x01K\x02R.", b"\x80\x02e.",
                    b"\x80\x02(K\x01K\x02Q.", b"\x80\x02K\x01"):
            write_zip(self.pth, None, raw=raw)
            self.refused("a.pth: it")

    def test_nested_values_are_not_written_out(self):
        nested = b"\x80\x02K\x01q\x00" + b"".join(b"h%ch%c\x86q%c0" % (i, i, i + 1) for i in range(60)) + b"h<Q."
        write_zip(self.pth, None, raw=nested)
        self.refused("id of a storage")

    def test_what_is_no_state_dict(self):
        for value, word in ((vector("Float", [1]), "one tensor"), ([1], "list"), ({}, "no tensor"),
                            ({"a": 3}, "'a'"), ({3: vector("Float", [1])}, "3"),
                            ({"__metadata__": vector("Float", [1])}, "__metadata__")):
            write_zip(self.pth, value)
            self.refused(word)
        for content, word in ((b"", "neither"), (b"hello", "neither"), (b"\0" * 257 + b"ustar" + b"\0" * 300, "tar")):
            with open(self.pth, "wb") as file:
                file.write(content)
            self.refused(word)

    def test_files(self):
        run = self.run_script(os.path.join(self.folder.name, "none.pth"), self.out)
        self.assertEqual((run.returncode, "No such file" in run.stderr), (1, True))
        write_zip(self.pth, {"a": vector("Float", [1])})
        run = self.run_script(self.pth, os.path.join(self.folder.name, "no", "b"))
        self.assertEqual((run.returncode, "No such file" in run.stderr), (1, True))
        self.assertEqual(self.run_script(self.pth).returncode, 2)
        script = [sys.executable, "-B", os.path.join(HERE, "pth_to_safetensors.py")]
        self.assertEqual(subprocess.run(script + [self.pth, self.out], timeout=60).returncode, 0)
        self.assertEqual(list(read_safetensors(self.out)), ["a"])
        run = subprocess.run(script + [self.out, self.pth], capture_output=True, text=True, timeout=60)
        self.assertEqual((run.returncode, "neither" in run.stderr), (1, True))


if __name__ == "__main__":
    unittest.main()
