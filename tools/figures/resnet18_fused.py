"""Figure of resnet18_fused: a residual block with a shortcut of 1 x 1 as separate operations, folded, and in two launches."""
from svg import Figure

# (name, colour), in the order of launches
NONE = [("conv1", "blue"), ("norm", "yellow"), ("ReLU", "green"), ("conv2", "blue"), ("1x1", "teal"), ("norm", "yellow"),
        ("norm", "yellow"), ("add", "purple"), ("ReLU", "green")]
FOLDED = [("conv1, ReLU", "blue"), ("conv2", "blue"), ("1x1", "teal"), ("add, ReLU", "purple")]
TOGETHER = [("conv1, ReLU", "blue"), ("conv2 + 1x1, ReLU", "blue")]


def row(f, y, title, launches, arrays):
    f.text(20, y, title, bold=True)
    x = 20
    for name, colour in launches:
        width = 62 if len(name) < 6 else 100 if len(name) < 12 else 150
        f.rect(x, y + 10, width, 28, fill=colour, stroke="strong grey", line=0.5)
        f.text(x + width / 2, y + 28, name, size=11, anchor="middle")
        x += width + 6
    f.text(20, y + 56, arrays, size=12)


def draw():
    f = Figure(680, 262, "A residual block with a shortcut of 1 x 1: nine launches, four when batch norm is folded, and two")
    row(f, 26, "one kernel per operation: 9 launches", NONE,
        "19 arrays pass: 9 are written; 10 are read, the sum reads two")
    row(f, 110, "batch norm folded, ReLU and sum with their neighbours: 4 launches", FOLDED,
        "9 arrays pass: 4 written, 5 read")
    row(f, 194, "the shortcut is one more tap of the last convolution: 2 launches", TOGETHER,
        "5 arrays pass: 2 written, 3 read")
    return f
