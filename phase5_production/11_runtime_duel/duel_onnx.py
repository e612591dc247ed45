"""An ONNX file as a PyTorch module, with the standard library and torch alone: enough operators for classifiers.

    model = duel_onnx.load("resnet18.onnx")        # a torch.nn.Module; its weights are parameters
    logits = model(torch.zeros(1, 3, 224, 224))

Each node becomes a call of torch.nn.functional, in the file's order. PyTorch itself writes ONNX and does not read it.
"""
import struct

import torch
from torch.nn import functional


# ---- the wire format of protobuf: fields of a message as (number, value) ----

def varint(data, at):
    """A number in groups of 7 bits, and where the next field begins."""
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return value, at


def fields(data):
    at = 0
    while at < len(data):
        key, at = varint(data, at)
        kind = key & 7
        if kind == 0:
            value, at = varint(data, at)
            yield key >> 3, value
        elif kind == 2:
            length, at = varint(data, at)
            yield key >> 3, data[at:at + length]
            at += length
        elif kind in (1, 5):
            length = 8 if kind == 1 else 4
            yield key >> 3, bytes(data[at:at + length])
            at += length
        else:
            raise ValueError("a field of kind %d" % kind)


def signed(value):
    return value - (1 << 64) if value >> 63 else value


def numbers(value):
    """A repeated integer, packed or alone."""
    if isinstance(value, int):
        return [signed(value)]
    out, at = [], 0
    while at < len(value):
        number, at = varint(value, at)
        out.append(signed(number))
    return out


TYPES = {1: torch.float32, 2: torch.uint8, 3: torch.int8, 6: torch.int32, 7: torch.int64, 9: torch.bool,
         10: torch.float16, 11: torch.float64, 16: torch.bfloat16}


def tensor(data):
    """TensorProto -> (name, tensor)."""
    dims, kind, name, raw, values = [], 1, "", None, []
    for field, value in fields(data):
        if field == 1:
            dims += numbers(value)
        elif field == 2:
            kind = value
        elif field == 4:
            values += struct.unpack("<%df" % (len(value) // 4), bytes(value))
        elif field in (5, 7):
            values += numbers(value)
        elif field == 8:
            name = bytes(value).decode()
        elif field == 9:
            raw = bytearray(value)
        elif field == 14 and value != 0:
            raise ValueError("%s is in another file" % name)
    if raw is not None:
        flat = torch.frombuffer(raw, dtype=TYPES[kind]) if raw else torch.empty(0, dtype=TYPES[kind])
    else:
        flat = torch.tensor(values, dtype=TYPES[kind])
    return name, flat.reshape(dims)


def attribute(data):
    name, out, ints, floats = "", None, [], []
    for field, value in fields(data):
        if field == 1:
            name = bytes(value).decode()
        elif field == 2:
            out = struct.unpack("<f", value)[0]
        elif field == 3:
            out = signed(value)
        elif field == 4:
            out = bytes(value).decode()
        elif field == 5:
            out = tensor(value)[1]
        elif field == 7:
            floats += struct.unpack("<%df" % (len(value) // 4), bytes(value))
        elif field == 8:
            ints += numbers(value)
    return name, ints or floats or out


class Node:
    def __init__(self, data):
        self.inputs, self.outputs, self.op, self.attributes = [], [], "", {}
        for field, value in fields(data):
            if field == 1:
                self.inputs.append(bytes(value).decode())
            elif field == 2:
                self.outputs.append(bytes(value).decode())
            elif field == 4:
                self.op = bytes(value).decode()
            elif field == 5:
                name, content = attribute(value)
                self.attributes[name] = content


# ---- operators: of a node's attributes, a function of its inputs ----

def padded(a, spatial):
    """Symmetric padding as torch's functions take it, or (), and what must be padded before."""
    if a.get("auto_pad", "NOTSET") != "NOTSET":
        raise NotImplementedError("auto_pad")
    pads = a.get("pads") or [0] * (2 * spatial)
    if pads[:spatial] == pads[spatial:]:
        return tuple(pads[:spatial]), None
    return (0,) * spatial, [n for i in reversed(range(spatial)) for n in (pads[i], pads[spatial + i])]


def conv(a):
    def run(x, w, b=None):
        spatial = w.dim() - 2
        padding, before = padded(a, spatial)
        x = functional.pad(x, before) if before else x
        f = (functional.conv1d, functional.conv2d, functional.conv3d)[spatial - 1]
        ones = [1] * spatial
        return f(x, w, b, a.get("strides") or ones, padding, a.get("dilations") or ones, a.get("group", 1))
    return run


def max_pool(a):
    def run(x):
        padding, before = padded(a, len(a["kernel_shape"]))
        x = functional.pad(x, before, value=float("-inf")) if before else x
        return functional.max_pool2d(x, a["kernel_shape"], a.get("strides") or 1, padding, a.get("dilations") or 1,
                                     bool(a.get("ceil_mode", 0)))
    return run


def average_pool(a):
    def run(x):
        padding, before = padded(a, len(a["kernel_shape"]))
        if before:
            raise NotImplementedError("AveragePool with different padding on two sides")
        return functional.avg_pool2d(x, a["kernel_shape"], a.get("strides") or 1, padding, bool(a.get("ceil_mode", 0)),
                                     bool(a.get("count_include_pad", 0)))
    return run


def gemm(a):
    def run(x, w, b=None):
        x = x.t() if a.get("transA", 0) else x
        if a.get("alpha", 1.0) == 1.0 and a.get("beta", 1.0) == 1.0 and a.get("transB", 0):
            return functional.linear(x, w, b)
        y = a.get("alpha", 1.0) * (x @ (w.t() if a.get("transB", 0) else w))
        return y if b is None else y + a.get("beta", 1.0) * b
    return run


def batch_norm(a):
    return lambda x, scale, bias, mean, var: functional.batch_norm(x, mean, var, scale, bias, False, 0.0,
                                                                   a.get("epsilon", 1e-5))


def clip(a):
    def run(x, low=None, high=None):
        low = a.get("min", low) if low is None else float(low)
        high = a.get("max", high) if high is None else float(high)
        return functional.relu6(x) if (low, high) == (0.0, 6.0) else torch.clamp(x, low, high)
    return run


def reshape(a):
    del a
    return lambda x, shape: x.reshape([x.shape[i] if n == 0 else n for i, n in enumerate(shape.tolist())])


def softmax(a):
    return lambda x: functional.softmax(x, a.get("axis", -1))


OPERATORS = {
    "Conv": conv, "MaxPool": max_pool, "AveragePool": average_pool, "Gemm": gemm, "BatchNormalization": batch_norm,
    "Clip": clip, "Reshape": reshape, "Softmax": softmax,
    "GlobalAveragePool": lambda a: lambda x: x.mean((2, 3), keepdim=True),
    "ReduceMean": lambda a: lambda x: x.mean(a["axes"], keepdim=bool(a.get("keepdims", 1))),
    "Flatten": lambda a: lambda x: x.flatten(a.get("axis", 1)),
    "MatMul": lambda a: torch.matmul, "Add": lambda a: torch.add, "Sub": lambda a: torch.sub,
    "Mul": lambda a: torch.mul, "Div": lambda a: torch.div, "Relu": lambda a: functional.relu,
    "Sigmoid": lambda a: torch.sigmoid,
    "Tanh": lambda a: torch.tanh, "Elu": lambda a: lambda x: functional.elu(x, a.get("alpha", 1.0)),
    "LeakyRelu": lambda a: lambda x: functional.leaky_relu(x, a.get("alpha", 0.01)),
    "Concat": lambda a: lambda *x: torch.cat(x, a["axis"]), "Identity": lambda a: lambda x: x,
    "Dropout": lambda a: lambda x, *rest: x, "Transpose": lambda a: lambda x: x.permute(a["perm"]),
}


class Graph(torch.nn.Module):
    """The nodes in their order. Floats are parameters, so that .to(dtype) and .to(device) reach them."""

    def __init__(self, nodes, weights, x, y):
        super().__init__()
        self.x, self.y, self.steps, self.names, self.fixed = x, y, [], {}, {}
        for i, (name, value) in enumerate(weights.items()):
            if value.is_floating_point() and value.dim() > 0:
                self.names[name] = "w%d" % i
                self.register_parameter("w%d" % i, torch.nn.Parameter(value.clone(), requires_grad=False))
            else:
                self.fixed[name] = value
        for node in nodes:
            if node.op == "Constant":
                self.fixed[node.outputs[0]] = node.attributes["value"]
            elif node.op not in OPERATORS:
                raise NotImplementedError("operator %s" % node.op)
            else:
                self.steps.append((OPERATORS[node.op](node.attributes), node.inputs, node.outputs[0]))

    def forward(self, x):
        values = {self.x: x}

        def value(name):
            if name == "":
                return None
            if name in values:
                return values[name]
            return getattr(self, self.names[name]) if name in self.names else self.fixed[name]

        for step, inputs, output in self.steps:
            values[output] = step(*[value(name) for name in inputs])
        return values[self.y]


def load(path):
    with open(path, "rb") as file:
        data = memoryview(file.read())
    graph = next(value for field, value in fields(data) if field == 7)
    nodes, weights, inputs, outputs = [], {}, [], []
    for field, value in fields(graph):
        if field == 1:
            nodes.append(Node(value))
        elif field == 5:
            name, content = tensor(value)
            weights[name] = content
        elif field in (11, 12):
            name = next(bytes(v).decode() for f, v in fields(value) if f == 1)
            (inputs if field == 11 else outputs).append(name)
    inputs = [name for name in inputs if name not in weights]
    return Graph(nodes, weights, inputs[0], outputs[0])
