"""Checks ONNX files by the format's own checker and shape inference (python3-onnx), and computes them with PyTorch.

    python3 tools/golden/onnx_check.py DIR...     DIR/model.onnx, DIR/test_data_set_0/input_0.pb and output_0.pb

A line for each folder: the output's name and shape, and the largest difference from output_0.pb, in shares of its
largest number. Exit status 77: python3-onnx is not installed; without python3-torch nothing is computed, and the
line says so.
The semantics of the operators are written here from their definitions, so that they are an opinion of their own.
"""
import sys

try:
    import numpy as np
    import onnx
    from onnx import numpy_helper, shape_inference
except ImportError:
    sys.exit(77)
try:
    import torch
    from torch.nn import functional as F
except ImportError:
    torch = None


def padded(x, pads, value):
    top, left, bottom, right = pads or (0, 0, 0, 0)
    return F.pad(x, (left, right, top, bottom), value=value)


def pool(op, x, a):
    """By unfolding: every window is a row, padding is what the operator says it is."""
    kernel, strides, dilations = a["kernel_shape"], a["strides"], a.get("dilations", (1, 1))
    pads = list(a.get("pads", (0, 0, 0, 0)))
    size, out = x.shape[2:], []
    more = [0, 0]
    for i in range(2):
        room = size[i] + pads[i] + pads[i + 2] - dilations[i] * (kernel[i] - 1) - 1
        steps = -(-room // strides[i]) if a.get("ceil_mode", 0) else room // strides[i]
        if a.get("ceil_mode", 0) and steps * strides[i] >= size[i] + pads[i]:
            steps -= 1
        more[i] = max(0, steps * strides[i] - room)
        out.append(steps + 1)
    rows = lambda y: F.unfold(y, kernel, dilation=dilations, stride=strides).view(
        y.shape[0], y.shape[1], kernel[0] * kernel[1], -1)[..., :out[0] * out[1]].view(
            y.shape[0], y.shape[1], -1, out[0], out[1])
    wide = lambda y, value: F.pad(y, (pads[1], pads[3] + more[1], pads[0], pads[2] + more[0]), value=value)
    if op == "MaxPool":
        return rows(wide(x, -float("inf"))).amax(2)
    counted = F.pad(torch.ones_like(x), (pads[1], pads[3], pads[0], pads[2]),
                    value=float(a.get("count_include_pad", 0)))
    counted = F.pad(counted, (0, more[1], 0, more[0]))
    return rows(wide(x, 0.0)).sum(2) / rows(counted).sum(2)


def normalised(x, axes, epsilon):
    mean = x.mean(axes, keepdim=True)
    return (x - mean) / ((x - mean).square().mean(axes, keepdim=True) + epsilon).sqrt()


def channels(v):
    return v.view(1, -1, 1, 1)


def compute(op, x, a):
    if op == "Conv":
        return F.conv2d(padded(x[0], a["pads"], 0.0), *x[1:], stride=a["strides"], dilation=a["dilations"],
                        groups=a["group"])
    if op == "ConvTranspose":
        y = F.conv_transpose2d(*x, stride=a["strides"], dilation=a["dilations"], groups=a["group"],
                               output_padding=a["output_padding"])
        top, left, bottom, right = a["pads"]
        return y[:, :, top:y.shape[2] - bottom, left:y.shape[3] - right]
    if op in ("MaxPool", "AveragePool"):
        return pool(op, x[0], a)
    if op == "GlobalAveragePool":
        return x[0].mean((2, 3), keepdim=True)
    if op == "Flatten":
        return x[0].flatten(a["axis"])
    if op == "Gemm":
        return x[0] @ (x[1].T if a.get("transB", 0) else x[1]) + x[2]
    if op == "BatchNormalization":
        scale, bias, mean, variance = map(channels, x[1:])
        return (x[0] - mean) / (variance + a["epsilon"]).sqrt() * scale + bias
    if op == "InstanceNormalization":
        return normalised(x[0], (2, 3), a["epsilon"]) * channels(x[1]) + channels(x[2])
    if op == "LayerNormalization":
        return normalised(x[0], tuple(range(a["axis"], 0)), a["epsilon"]) * x[1] + x[2]
    simple = {"Relu": torch.relu, "Sigmoid": torch.sigmoid, "Tanh": torch.tanh, "Add": torch.add}
    if op in simple:
        return simple[op](*x)
    if op == "LeakyRelu":
        return torch.where(x[0] < 0, a["alpha"] * x[0], x[0])
    if op == "Softmax":
        return torch.softmax(x[0], a["axis"])
    raise SystemExit("onnx_check.py: error: %s: this script does not know the operator" % op)


def tensor(path):
    with open(path, "rb") as file:
        return numpy_helper.to_array(onnx.TensorProto.FromString(file.read()))


def difference(model, folder):
    """In float64, so that the difference is that of the file's program."""
    values = {t.name: torch.from_numpy(numpy_helper.to_array(t).astype(np.float64)) for t in model.graph.initializer}
    values[model.graph.input[0].name] = torch.from_numpy(
        tensor(folder + "/test_data_set_0/input_0.pb").astype(np.float64))
    for node in model.graph.node:
        arguments = {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}
        values[node.output[0]] = compute(node.op_type, [values[name] for name in node.input], arguments)
    expected = tensor(folder + "/test_data_set_0/output_0.pb").astype(np.float64)
    mine = values[model.graph.output[0].name].numpy()
    if mine.shape != expected.shape:
        raise SystemExit("onnx_check.py: error: %s: shape %s, expected %s" % (folder, mine.shape, expected.shape))
    return np.abs(mine - expected).max() / np.abs(expected).max()


for folder in sys.argv[1:]:
    model = onnx.load(folder + "/model.onnx")
    onnx.checker.check_model(model, full_check=True)
    model = shape_inference.infer_shapes(model, check_type=True, strict_mode=True)
    if len(model.graph.value_info) + 1 < len(model.graph.node):
        raise SystemExit("onnx_check.py: error: %s: shape inference gave up" % folder)
    output = model.graph.output[0]
    shape = [d.dim_param or d.dim_value for d in output.type.tensor_type.shape.dim]
    computed = "not computed" if torch is None else "%.1e" % difference(model, folder)
    print("%s %s %s %s" % (folder.rstrip("/").rpartition("/")[2], output.name, ",".join(map(str, shape)), computed))
