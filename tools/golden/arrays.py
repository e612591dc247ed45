"""Tensors as constants of a C header, for the scripts of this folder; and the line that says who made it."""
import os
import sys

import torch


def head():
    script, version = os.path.basename(sys.argv[0]), torch.__version__.split("a")[0]
    return "/* Made by tools/golden/%s with PyTorch %s: do not edit. */" % (script, version)


def array(name, tensor):
    values = ["%.8ef" % float(v) for v in tensor.float().flatten()]  # nine digits tell every float
    lines = ["    " + ", ".join(values[i:i + 6]) for i in range(0, len(values), 6)]
    return "__attribute__((unused)) static const float golden_%s[] = {\n%s};\n" % (name, ",\n".join(lines))
