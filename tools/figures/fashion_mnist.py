"""Figure of fashion_mnist: the shapes of its layers, where its parameters and multiplications are, and why pooling and
ReLU can change places."""
from svg import Figure

#         name, channels, side
LAYERS = [("input", 1, 28), ("conv1", 64, 26), ("pool1", 64, 13), ("conv2", 128, 11), ("pool2", 128, 5)]
#         name, parameters, multiplications
COSTS = [("conv1", 640, 64 * 26 * 26 * 9), ("conv2", 73856, 128 * 121 * 576), ("fc1", 819456, 3200 * 256),
         ("fc2", 2570, 2560)]


def bars(f, y, title, index, colour):
    total, x = sum(cost[index] for cost in COSTS), 20
    f.text(20, y - 8, "%s: %s" % (title, format(total, ",")), size=12)
    for i, cost in enumerate(COSTS):
        width = 660 * cost[index] / total
        f.rect(x, y, width, 26, fill=colour if i % 2 == 0 else "grey")
        if width > 60:
            f.text(x + width / 2, y + 17, "%s %.0f %%" % (cost[0], 100 * cost[index] / total), size=11, anchor="middle")
        x += width


def window(f, x, y, values, colour):
    f.grid(x, y, 2, 2, cell=34, fill=lambda r, c: colour, label=lambda r, c: values[2 * r + c])


def row(f, y, title, steps):
    """steps: windows of four numbers and single numbers, with the name of what comes between."""
    f.text(20, y + 38, title, size=12)
    x = 150
    for i, (values, arrow) in enumerate(steps):
        if len(values) == 4:
            window(f, x, y, values, "blue")
            x += 68
        else:
            f.grid(x, y + 17, 1, 1, cell=34, fill=lambda r, c: "green", label=lambda r, c: values[0])
            x += 34
        if arrow:
            f.text(x + 45, y + 27, arrow, size=11, anchor="middle")
            f.arrow(x + 6, y + 34, x + 84, y + 34)
            x += 92


def draw():
    f = Figure(700, 500, "The layers: 1 x 28 x 28, after conv1 64 x 26 x 26, pool1 64 x 13 x 13, conv2 128 x 11 x 11, pool2 "
                         "128 x 5 x 5, then 256 and 10 numbers. Most parameters are in fc1, most multiplications in "
                         "conv2. Pooling then ReLU gives the same as ReLU then pooling, with one comparison instead of "
                         "four.")
    x = 20
    for name, channels, side in LAYERS:
        size, shown = 2.4 * side, min(channels, 6)
        for c in range(shown):
            f.rect(x + 5 * c, 60 + 5 * c, size, size, fill="blue" if "conv" in name else "green" if "pool" in name else "grey")
        f.text(x, 30, name, size=13, bold=True)
        f.text(x, 48, "%d × %d × %d" % (channels, side, side), size=12)
        x += max(size + 5 * shown, 96) + 14
    for name, width in (("fc1", 256), ("fc2", 10)):
        f.rect(x, 60, 16, max(10, width / 2.4), fill="orange")
        f.text(x, 30, name, size=13, bold=True)
        f.text(x, 48, width, size=12)
        x += 46
    bars(f, 214, "parameters", 1, "orange")
    bars(f, 272, "multiplications per image, forward", 2, "blue")
    row(f, 324, "ReLU, then pooling", (((-3, 2, 1, -5), "4 × max(0, ·)"), ((0, 2, 1, 0), "largest"), ((2,), "")))
    row(f, 412, "pooling, then ReLU", (((-3, 2, 1, -5), "largest"), ((2,), "max(0, ·)"), ((2,), "")))
    return f
