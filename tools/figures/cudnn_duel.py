"""Figure of cudnn_duel: time and memory beside cuDNN's, from what the program printed on an H200
(phase5_production/02_cudnn_duel/h200.txt)."""
import os

from svg import Figure

RECORD = os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", "..", "phase5_production", "02_cudnn_duel",
                      "h200.txt")
NETWORKS = ("lenet", "fashion_cnn", "resnet_mnist", "resnet_cifar")
LEFT, TOP, WIDTH, HEIGHT = 116, 78, 146, 52
BAR = WIDTH - 44  # of the fastest; its number stands behind it


def results(path):
    """{(network, use): {batch: {"ours" or "mixed": (times as fast as cuDNN, times its memory)}}}"""
    found = {}
    for line in open(path, encoding="utf-8"):
        fields = line.split()
        if len(fields) < 10 or fields[0] not in NETWORKS or fields[3] == "cudnn":
            continue
        network, use, batch, who, speed, memory = *fields[:4], fields[5], fields[9]
        cell = found.setdefault((network, use), {}).setdefault(int(batch), {})
        cell[who] = float(speed.rstrip("x")), float(memory.rstrip("x"))
    return found


def memory_text(cell):
    """Both, where they differ."""
    ours, mixed = ("%.2f" % cell[who][1] for who in ("ours", "mixed"))
    return "memory " + (ours if ours == mixed else "%s, %s" % (ours, mixed))


def draw():
    found = results(RECORD)
    most = max(who[0] for cells in found.values() for cell in cells.values() for who in cell.values())
    scale = BAR / most
    f = Figure(LEFT + 4 * WIDTH, TOP + HEIGHT * len(found) + 46, "How many times as fast as cuDNN our kernels and the "
               "mixture are on an H200, and how many times its memory they take, for four networks, training and "
               "inference, with 1 to 256 images")
    f.legend(LEFT, 24, [("blue", "ours"), ("green", "the mixture")], size=12)
    for row, ((network, use), cells) in enumerate(found.items()):
        y = TOP + HEIGHT * row
        f.line(10, y - 4, LEFT + 4 * WIDTH - 10, y - 4, colour="grey")
        f.text(10, y + 14, network, size=12, bold=True)
        f.text(10, y + 30, use, size=11)
        for column, (batch, cell) in enumerate(sorted(cells.items())):
            x = LEFT + WIDTH * column
            if row == 0:
                f.text(x, TOP - 14, "1 image" if batch == 1 else "%d images" % batch, size=12, bold=True)
            for i, (who, fill) in enumerate((("ours", "blue"), ("mixed", "green"))):
                speed = cell[who][0]
                f.rect(x, y + 2 + 14 * i, scale * speed, 12, fill=fill, stroke=None)
                f.text(x + scale * speed + 4, y + 12 + 14 * i, "%.2f" % speed, size=11)
            f.line(x + scale, y, x + scale, y + 30, colour="ink", line=1, dash=True)
            f.text(x, y + 42, memory_text(cell), size=10)
    f.text(10, TOP + HEIGHT * len(found) + 14, "Bars: cuDNN's time of a step, as one CUDA graph, / the time of this "
           "contestant; dashed: as fast as cuDNN.", size=11)
    f.text(10, TOP + HEIGHT * len(found) + 32, "memory: bytes of this contestant / cuDNN's; two numbers where ours and "
           "the mixture differ.", size=11)
    return f
