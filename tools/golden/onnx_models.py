#!/usr/bin/env python3
"""Networks as PyTorch exports them to ONNX, and what PyTorch computes, for phase5_production/07_onnx_import (needs
python3-torchvision).

    onnx_models.py make FOLDER [NAME...]      small ones with random weights: FOLDER/NAME.onnx, and in
                                              FOLDER/NAME.safetensors the inputs "input_0" and outputs "output_0" ...
    onnx_models.py full FOLDER [NAME...]      the networks in their own sizes
    onnx_models.py torch FILE.onnx NAME FOLDER   computes a model of a few operators by PyTorch in float64 (needs
                                              python3-onnx): FOLDER/NAME.safetensors with a random input
    onnx_models.py list                       the names

Exit status 77 where torch or torchvision is not installed.
"""
import os
import sys
import warnings

try:
    import torch
    import torchvision
    from torch import nn
    from torchvision import models
except ImportError:
    sys.exit(77)
try:
    import onnx
    import onnx.numpy_helper
except ImportError:
    onnx = None

from safetensors_files import write

BATCH = 2


def vgg(batch_norm):
    """VGG with a tenth of the channels."""
    layers = models.vgg.make_layers([8, "M", 12, "M", 24, 24, "M", 32, 32, "M"], batch_norm=batch_norm)
    network = models.vgg.VGG(layers, num_classes=10, init_weights=True)
    network.avgpool = nn.AdaptiveAvgPool2d((2, 2))
    network.classifier = nn.Sequential(nn.Linear(32 * 4, 40), nn.ReLU(True), nn.Dropout(), nn.Linear(40, 10))
    return network


class Focus(nn.Module):
    """Convolution, batch norm, SiLU, as YOLO has them."""

    def __init__(self, c, k, kernel=1, stride=1):
        super().__init__()
        self.conv = nn.Conv2d(c, k, kernel, stride, kernel // 2, bias=False)
        self.bn = nn.BatchNorm2d(k, eps=1e-3)
        self.act = nn.SiLU()

    def forward(self, x):
        return self.act(self.bn(self.conv(x)))


class Csp(nn.Module):
    def __init__(self, c, k, shortcut=True):
        super().__init__()
        self.cv1, self.cv2, self.cv3 = Focus(c, k // 2), Focus(c, k // 2), Focus(k, k)
        self.m1, self.m2 = Focus(k // 2, k // 2), Focus(k // 2, k // 2, 3)
        self.shortcut = shortcut

    def forward(self, x):
        a = self.cv1(x)
        b = self.m2(self.m1(a))
        return self.cv3(torch.cat((a + b if self.shortcut else b, self.cv2(x)), 1))


class Detector(nn.Module):
    """A YOLO in small: two scales that are joined by upsampling, three pooled copies, boxes by a grid that is computed."""

    def __init__(self, classes=5, width=8):
        super().__init__()
        w = width
        self.stem, self.d1, self.c1 = Focus(3, w, 3, 2), Focus(w, 2 * w, 3, 2), Csp(2 * w, 2 * w)
        self.d2, self.c2, self.d3 = Focus(2 * w, 4 * w, 3, 2), Csp(4 * w, 4 * w), Focus(4 * w, 8 * w, 3, 2)
        self.p1, self.pool, self.p2 = Focus(8 * w, 4 * w), nn.MaxPool2d(5, 1, 2), Focus(16 * w, 8 * w)
        self.up, self.lat, self.c3 = nn.Upsample(scale_factor=2, mode="nearest"), Focus(8 * w, 4 * w), Csp(8 * w, 4 * w, False)
        self.classes, self.anchors = classes, 3
        self.heads = nn.ModuleList([nn.Conv2d(4 * w, 3 * (5 + classes), 1), nn.Conv2d(8 * w, 3 * (5 + classes), 1)])
        self.register_buffer("sizes", torch.tensor([[[10.0, 13], [16, 30], [33, 23]], [[30, 61], [62, 45], [59, 119]]]))

    def boxes(self, x, level, stride):
        n, _, h, w = x.shape
        y = x.view(n, self.anchors, 5 + self.classes, h, w).permute(0, 1, 3, 4, 2).sigmoid()
        rows, columns = torch.meshgrid(torch.arange(h), torch.arange(w), indexing="ij")
        grid = torch.stack((columns, rows), 2).float().view(1, 1, h, w, 2)
        size = self.sizes[level].view(1, self.anchors, 1, 1, 2)
        centre, extent, score = y[..., 0:2], y[..., 2:4], y[..., 4:]
        centre = (centre * 2 - 0.5 + grid) * stride
        extent = (extent * 2) ** 2 * size
        return torch.cat((centre, extent, score), -1).view(n, -1, 5 + self.classes)

    def forward(self, x):
        a = self.c2(self.d2(self.c1(self.d1(self.stem(x)))))
        b = self.p1(self.d3(a))
        pooled = [b]
        for _ in range(3):
            pooled.append(self.pool(pooled[-1]))
        b = self.p2(torch.cat(pooled, 1))
        c = self.c3(torch.cat((self.up(self.lat(b)), a), 1))
        return torch.cat((self.boxes(self.heads[0](c), 0, 8), self.boxes(self.heads[1](b), 1, 16)), 1)


class SuperResolution(nn.Module):
    """Shi et al., "Real-time single image and video super-resolution ...", 2016: PyTorch's example."""

    def __init__(self, factor=3, width=16):
        super().__init__()
        self.conv1, self.conv2 = nn.Conv2d(1, width, 5, 1, 2), nn.Conv2d(width, width, 3, 1, 1)
        self.conv3, self.conv4 = nn.Conv2d(width, width // 2, 3, 1, 1), nn.Conv2d(width // 2, factor**2, 3, 1, 1)
        self.shuffle = nn.PixelShuffle(factor)

    def forward(self, x):
        x = torch.relu(self.conv2(torch.relu(self.conv1(x))))
        return self.shuffle(self.conv4(torch.relu(self.conv3(x))))


class StyleLayer(nn.Module):
    def __init__(self, c, k, kernel, stride, upsample=None):
        super().__init__()
        self.upsample, self.pad = upsample, nn.ReflectionPad2d(kernel // 2)
        self.conv2d, self.norm = nn.Conv2d(c, k, kernel, stride), nn.InstanceNorm2d(k, affine=True)

    def forward(self, x, relu=True):
        if self.upsample:
            x = nn.functional.interpolate(x, mode="nearest", scale_factor=self.upsample)
        x = self.norm(self.conv2d(self.pad(x)))
        return torch.relu(x) if relu else x


class FastStyle(nn.Module):
    """Johnson et al., "Perceptual losses for real-time style transfer and super-resolution", 2016."""

    def __init__(self, width=8):
        super().__init__()
        w = width
        self.down = nn.ModuleList([StyleLayer(3, w, 9, 1), StyleLayer(w, 2 * w, 3, 2), StyleLayer(2 * w, 4 * w, 3, 2)])
        self.residual = nn.ModuleList([StyleLayer(4 * w, 4 * w, 3, 1) for _ in range(4)])
        self.up = nn.ModuleList([StyleLayer(4 * w, 2 * w, 3, 1, 2), StyleLayer(2 * w, w, 3, 1, 2)])
        self.last = nn.Sequential(nn.ReflectionPad2d(4), nn.Conv2d(w, 3, 9))

    def forward(self, x):
        for layer in self.down:
            x = layer(x)
        for first, second in zip(self.residual[::2], self.residual[1::2]):
            x = x + second(first(x), relu=False)
        for layer in self.up:
            x = layer(x)
        return self.last(x)


class UNet(nn.Module):
    """Transposed convolutions, bilinear upsampling with aligned corners, average pooling, leaky ReLU, softmax of pixels."""

    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Conv2d(3, 8, 3, padding=1), nn.Conv2d(8, 16, 3, padding=1, groups=2)
        self.up, self.c = nn.ConvTranspose2d(16, 8, 4, 2, 1), nn.Conv2d(16, 8, 3, padding=1)
        self.last = nn.Conv2d(8, 4, 1)

    def forward(self, x):
        a = nn.functional.leaky_relu(self.a(x), 0.1)
        b = nn.functional.elu(self.b(nn.functional.avg_pool2d(a, 2)))
        c = nn.functional.hardswish(self.c(torch.cat((self.up(b), a), 1)))
        small = nn.functional.interpolate(self.last(c), scale_factor=0.5, mode="bilinear", align_corners=True)
        return nn.functional.softmax(small, 1)


class Transformer(nn.Module):
    """A picture as 16 patches, one layer of attention: LayerNorm, MatMul of four axes, GELU. With `turns` the three
    parts of the product become the first axis, and the batch the second."""

    def __init__(self, turns, width=24, heads=3):
        super().__init__()
        self.turns = turns
        self.patch = nn.Conv2d(3, width, 8, 8)
        self.position = nn.Parameter(torch.randn(1, 16, width) * 0.1)
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width, eps=1e-6)
        self.qkv, self.out, self.heads = nn.Linear(width, 3 * width), nn.Linear(width, width), heads
        self.mlp = nn.Sequential(nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width))
        self.head = nn.Linear(width, 10)

    def forward(self, x):
        x = self.patch(x).flatten(2).transpose(1, 2) + self.position
        n, t, c = x.shape
        qkv = self.qkv(self.norm1(x))
        if self.turns:
            q, k, v = qkv.reshape(n, t, 3, self.heads, c // self.heads).permute(2, 0, 3, 1, 4)
        else:
            q, k, v = (part.reshape(n, t, self.heads, c // self.heads).transpose(1, 2) for part in qkv.chunk(3, -1))
        a = ((q @ k.transpose(-2, -1)) * (c // self.heads) ** -0.5).softmax(-1)
        x = x + self.out((a @ v).transpose(1, 2).reshape(n, t, c))
        return self.head((x + self.mlp(self.norm2(x))).mean(1))


# name: (network, shape of the input, options). "norm": batch norm stays a node of its own. "dynamic": sizes that the
# file leaves open besides the batch. "fixed": the batch is a number, too.
SMALL = {
    "resnet18": (lambda: models.resnet18(num_classes=10), (3, 32, 32), {"norm"}),
    "resnet18_folded": (lambda: models.resnet18(num_classes=10), (3, 32, 32), {"fixed"}),
    "resnet50": (lambda: models.ResNet(models.resnet.Bottleneck, [1, 1, 1, 1], num_classes=10, groups=2, width_per_group=16), (3, 32, 32), {"norm"}),
    "mobilenet_v2": (lambda: models.mobilenet_v2(width_mult=0.25, num_classes=10), (3, 32, 32), set()),
    "mobilenet_v3": (lambda: models.mobilenet_v3_small(width_mult=0.25, num_classes=10), (3, 32, 32), {"norm"}),
    "shufflenet_v2": (lambda: models.shufflenet_v2_x0_5(num_classes=10), (3, 32, 32), set()),
    "densenet": (lambda: models.DenseNet(4, (2, 3, 10), 8, num_classes=10), (3, 32, 32), {"norm"}),
    "vgg": (lambda: vgg(False), (3, 32, 32), set()),
    "vgg_bn": (lambda: vgg(True), (3, 32, 32), {"norm"}),
    "squeezenet": (lambda: models.squeezenet1_1(num_classes=10), (3, 33, 33), set()),
    "detector": (Detector, (3, 64, 64), set()),
    "super_resolution": (SuperResolution, (1, 20, 17), {"dynamic"}),
    "fast_style": (FastStyle, (3, 24, 32), {"dynamic"}),
    "unet": (UNet, (3, 20, 24), set()),
    "transformer": (lambda: Transformer(False), (3, 32, 32), set()),
    "transformer_fixed": (lambda: Transformer(True), (3, 32, 32), {"fixed"}),
}
FULL = {
    "resnet18": (lambda: models.resnet18(), (3, 224, 224), set()),
    "resnet18_norm": (lambda: models.resnet18(), (3, 224, 224), {"norm"}),
    "resnet50": (lambda: models.resnet50(), (3, 224, 224), set()),
    "mobilenet_v2": (lambda: models.mobilenet_v2(), (3, 224, 224), set()),
    "squeezenet": (lambda: models.squeezenet1_1(), (3, 224, 224), set()),
    "detector": (lambda: Detector(80, 32), (3, 320, 320), set()),
    "super_resolution": (lambda: SuperResolution(3, 64), (1, 224, 224), {"dynamic"}),
    "fast_style": (lambda: FastStyle(32), (3, 256, 256), {"dynamic"}),
}


def randomised(network):
    """Weights and statistics at random, so that no layer is trivial and numbers stay about 1."""
    for module in network.modules():
        if isinstance(module, (nn.BatchNorm2d, nn.InstanceNorm2d, nn.LayerNorm)):
            nn.init.uniform_(module.weight, 0.6, 1.4)
            nn.init.uniform_(module.bias, -0.3, 0.3)
        if isinstance(module, nn.BatchNorm2d):
            nn.init.uniform_(module.running_mean, -0.3, 0.3)
            nn.init.uniform_(module.running_var, 0.6, 1.4)
        if isinstance(module, (nn.Conv2d, nn.Linear)):
            nn.init.kaiming_normal_(module.weight, nonlinearity="relu")
    return network.eval()


def export(folder, name, entry, opset):
    network, shape, options = entry
    torch.manual_seed(sum(map(ord, name)))
    network, x = randomised(network()), torch.randn(BATCH, *shape)
    dynamic = {"input": {0: "N"}, "output": {0: "N"}}
    if "dynamic" in options:
        dynamic["input"].update({2: "H", 3: "W"})
        dynamic["output"].update({2: "h", 3: "w"})
    with torch.no_grad():
        y = network(x)
        torch.onnx.export(
            network, x, os.path.join(folder, name + ".onnx"), input_names=["input"], output_names=["output"],
            dynamic_axes=None if "fixed" in options else dynamic, opset_version=opset,
            training=torch.onnx.TrainingMode.PRESERVE if "norm" in options else torch.onnx.TrainingMode.EVAL)
    write(os.path.join(folder, name + ".safetensors"), {"input_0": x, "output_0": y}, {})


def compute(node, x):
    """One node, by PyTorch's functions; x: its inputs."""
    a = {attribute.name: onnx.helper.get_attribute_value(attribute) for attribute in node.attribute}
    functional = nn.functional
    if node.op_type == "Conv":
        top, left, bottom, right = a.get("pads", [0] * 4)
        return functional.conv2d(functional.pad(x[0], (left, right, top, bottom)), *x[1:], stride=a["strides"],
                                 dilation=a["dilations"], groups=a.get("group", 1))
    if node.op_type == "MaxPool":
        return functional.max_pool2d(x[0], a["kernel_shape"], a["strides"])
    if node.op_type == "ConstantOfShape":
        return torch.zeros([int(size) for size in x[0]], dtype=torch.float64)
    simple = {"Relu": lambda: x[0].relu(), "Add": lambda: x[0] + x[1], "Concat": lambda: torch.cat(x, a["axis"]),
              "Transpose": lambda: x[0].permute(a["perm"]), "Reshape": lambda: x[0].reshape([int(n) for n in x[1]])}
    return simple[node.op_type]()


def by_torch(file, name, folder):
    graph = onnx.load(file).graph
    values = {t.name: torch.tensor(onnx.numpy_helper.to_array(t)) for t in graph.initializer}
    values = {key: t.double() if t.is_floating_point() else t for key, t in values.items()}
    first = graph.input[0]
    torch.manual_seed(7)
    x = torch.rand([d.dim_value for d in first.type.tensor_type.shape.dim]) * 2 - 1
    values[first.name] = x.double()
    for node in graph.node:
        values[node.output[0]] = compute(node, [values[key] for key in node.input])
    outputs = {"output_%d" % i: values[out.name].float() for i, out in enumerate(graph.output)}
    write(os.path.join(folder, name + ".safetensors"), {"input_0": x, **outputs}, {})


def main():
    warnings.filterwarnings("ignore")
    if len(sys.argv) == 5 and sys.argv[1] == "torch":
        if onnx is None:
            sys.exit(77)
        return by_torch(*sys.argv[2:])
    if len(sys.argv) >= 3 and sys.argv[1] in ("make", "full"):
        table = SMALL if sys.argv[1] == "make" else FULL
        os.makedirs(sys.argv[2], exist_ok=True)
        for number, name in enumerate(sys.argv[3:] or table):
            export(sys.argv[2], name, table[name], (17, 13, 11)[number % 3])
    elif sys.argv[1:] == ["list"]:
        print("\n".join(SMALL))
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main()
