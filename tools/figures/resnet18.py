"""Figure of resnet18: the stages of the network, and the weights with which a line of pixels is resized."""
from svg import Figure

STAGES = (("x", 224, 3, "grey"), ("conv1", 112, 64, "orange"), ("maxpool", 56, 64, "yellow"), ("layer1", 56, 64, "blue"),
          ("layer2", 28, 128, "blue"), ("layer3", 14, 256, "blue"), ("layer4", 7, 512, "blue"),
          ("avgpool", 1, 512, "yellow"), ("fc", 1, 1000, "orange"))
BLOCKS = {"layer1", "layer2", "layer3", "layer4"}


def network(f, base):
    """A box as high as the picture's side; below it side and channels."""
    for number, (name, side, channels, colour) in enumerate(STAGES):
        x, height = 20 + 75 * number, 14 + side * 0.45
        f.rect(x, base - height, 52, height, fill=colour)
        if name in BLOCKS:
            f.line(x + 26, base - height, x + 26, base, colour="strong grey")
        f.text(x + 26, base + 18, name, size=12, anchor="middle", bold=True)
        f.text(x + 26, base + 34, "%d x %d" % (side, side) if side > 1 else "numbers", size=11, anchor="middle")
        f.text(x + 26, base + 49, "%d" % channels, size=11, anchor="middle", colour="strong grey")


def share(i, j, size, out):
    return 2 * max(size, out) - abs((2 * j + 1) * out - (2 * i + 1) * size)


def resized(f, x, y, size, out, i, width, title):
    """`size` pixels become `out`: the triangle of output i, and its weights in the pixels."""
    cell, small = width / size, width / out
    weights = [max(share(i, j, size, out), 0) for j in range(size)]
    f.text(x, y - 58, title, size=12, bold=True)
    middle, half = x + (i + 0.5) * small, cell * max(1, size / out)
    f.polygon([(middle - half, y - 4), (middle, y - 44), (middle + half, y - 4)], fill="green", stroke="strong green")
    f.grid(x, y, 1, size, cell=(cell, 26), fill=lambda r, c: "blue" if weights[c] else "paper",
           label=lambda r, c: weights[c] or None, size=11)
    f.grid(x, y + 62, 1, out, cell=(small, 26), fill=lambda r, c: "orange" if c == i else "paper")
    f.arrow(middle, y + 30, middle, y + 58, colour="strong green")


def draw():
    f = Figure(700, 390, "ResNet-18: the side of the picture is halved in conv1, in the pooling and in layers 2 to 4, while "
                         "the channels double. Below: twelve pixels become four; the third output weighs five pixels by a "
                         "triangle, 8, 16, 24, 16, 8. Four pixels become twelve: an output weighs two neighbours.")
    network(f, 135)
    f.text(20, 208, "side of the picture; channels. A layer has two residual blocks.", size=11, colour="strong grey")
    resized(f, 20, 290, 12, 4, 2, 312, "12 pixels become 4: n(j) of one output")
    resized(f, 380, 290, 4, 12, 5, 300, "4 pixels become 12")
    return f
