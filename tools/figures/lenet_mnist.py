"""Figure of lenet_mnist: the shapes of LeNet-5's layers, and where its parameters and its arithmetic are."""
from svg import Figure

#         name, channels, side, parameters, multiplications
LAYERS = [("input", 1, 28, 0, 0), ("conv1", 6, 28, 156, 6 * 28 * 28 * 25), ("pool1", 6, 14, 0, 0),
          ("conv2", 16, 10, 2416, 16 * 100 * 150), ("pool2", 16, 5, 0, 0)]
LINEAR = [("fc1", 120, 48120, 400 * 120), ("fc2", 84, 10164, 120 * 84), ("fc3", 10, 850, 840)]


def bars(f, y, title, index, colour):
    values = [(layer[0], layer[index]) for layer in LAYERS if layer[index]]
    values += [(layer[0], layer[index - 1]) for layer in LINEAR]
    total, x = sum(value for _, value in values), 20
    f.text(20, y - 8, "%s: %s" % (title, format(total, ",")), size=12)
    for i, (name, value) in enumerate(values):
        width = 660 * value / total
        f.rect(x, y, width, 26, fill=colour if i % 2 == 0 else "grey")
        if width > 44:
            f.text(x + width / 2, y + 17, "%s %.0f %%" % (name, 100 * value / total), size=11, anchor="middle")
        x += width


def draw():
    f = Figure(700, 330, "LeNet-5: 1 x 28 x 28, after conv1 6 x 28 x 28, pool1 6 x 14 x 14, conv2 16 x 10 x 10, pool2 16 x 5 "
                         "x 5, then 120, 84 and 10 numbers. Most parameters are in fc1, most multiplications in the "
                         "convolutions.")
    x = 20
    for name, channels, side, _, _ in LAYERS:
        size, shown = 2.6 * side, min(channels, 6)
        for c in range(shown):
            f.rect(x + 5 * c, 60 + 5 * c, size, size, fill="blue" if "conv" in name else "green" if "pool" in name else "grey")
        f.text(x, 30, name, size=13, bold=True)
        f.text(x, 48, "%d × %d × %d" % (channels, side, side), size=12)
        x += max(size + 5 * shown, 90) + 16
    for name, width, _, _ in LINEAR:
        f.rect(x, 60, 16, max(10, width), fill="orange")
        f.text(x, 30, name, size=13, bold=True)
        f.text(x, 48, width, size=12)
        x += 52
    bars(f, 232, "parameters", 3, "orange")
    bars(f, 290, "multiplications per image, forward", 4, "blue")
    return f
