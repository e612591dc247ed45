"""Figure of resnet_mnist: the network with its two shortcuts, and what becomes of a convolution, batch norm and ReLU when
the network has been trained."""
from svg import Figure


def box(f, x, y, width, text, fill, below=None):
    f.rect(x, y, width, 34, fill=fill, label=text, size=11)
    if below:
        f.text(x + width / 2, y + 50, below, size=10, anchor="middle")
    return x + width


def chain(f, x, y, boxes):
    """Boxes from left to right with arrows between them; returns where the last one ends."""
    for i, (width, text, fill, below) in enumerate(boxes):
        if i:
            f.arrow(x, y + 17, x + 14, y + 17)
            x += 14
        x = box(f, x, y, width, text, fill, below)
    return x


def block(f, x, y, name, conv, shortcut, shape):
    f.rect(x, y, 326, 150, stroke="strong grey", dash=True, radius=6)
    f.text(x + 10, y + 20, name, size=12, bold=True)
    end = chain(f, x + 24, y + 34, [(64, conv, "blue", None), (58, "bn, ReLU", "green", None), (50, "conv2", "blue", None),
                                    (26, "bn", "green", None)])
    box(f, x + 98, y + 96, 130, shortcut, "blue")
    f.line(x + 12, y + 51, x + 12, y + 113)
    f.arrow(x + 12, y + 113, x + 96, y + 113)
    f.arrow(x + 1, y + 51, x + 23, y + 51)
    f.circle(x + 300, y + 51, 10, fill="orange")
    f.text(x + 300, y + 55, "+", size=12, anchor="middle")
    f.arrow(end, y + 51, x + 289, y + 51)
    f.line(x + 228, y + 113, x + 300, y + 113)
    f.arrow(x + 300, y + 113, x + 300, y + 63)
    f.text(x + 316, y + 140, "then ReLU: " + shape, size=11, anchor="end")


def draw():
    f = Figure(700, 470, "The network: conv1, bn1, ReLU and pooling; two residual blocks, whose shortcut is a convolution of 1 x "
                         "1; pooling, dropout and two linear layers. Below: after training, batch norm and ReLU are part of "
                         "the convolution before them.")
    f.text(20, 24, "16 × 28 × 28", size=11)
    f.text(262, 24, "16 × 14 × 14", size=11)
    chain(f, 20, 34, [(96, "conv1 3×3, 16", "blue", None), (70, "bn1, ReLU", "green", None), (70, "pool 2×2", "purple", None)])
    f.arrow(284, 51, 330, 51)
    f.text(338, 55, "layer1", size=12)
    block(f, 20, 92, "layer1.0", "conv1", "1×1, 32; bn", "32 × 14 × 14")
    block(f, 354, 92, "layer2.0", "conv1, /2", "1×1, 64, /2; bn", "64 × 7 × 7")
    f.text(20, 274, "64 × 3 × 3", size=11)
    chain(f, 20, 284, [(70, "pool 2×2", "purple", None), (60, "dropout", "grey", None), (86, "fc1 576 → 64", "orange", None),
                       (44, "ReLU", "green", None), (60, "dropout", "grey", None), (86, "fc2 64 → 10", "orange", None)])
    f.text(20, 356, "After training", size=12, bold=True)
    chain(f, 20, 370, [(90, "conv  w", "blue", None), (176, "bn  γ, β, mean, variance", "green", None), (50, "ReLU", "green", None)])
    f.text(364, 392, "becomes", size=12)
    box(f, 430, 370, 220, "conv  w γ / σ, its bias, max(0, ·)", "blue")
    f.text(20, 436, "σ: the square root of the running variance and 0.00001. Both give the same numbers, but for rounding.",
           size=12)
    f.text(20, 456, "The right one reads and writes the picture once instead of three times.", size=12)
    return f
