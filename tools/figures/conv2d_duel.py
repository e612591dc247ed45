"""Figure of conv2d_duel: who wins where, from what the program printed on an H200 (phase3_cnn/08_conv2d_duel/h200.txt)."""
import os

from svg import Figure

RECORD = os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", "..", "phase3_cnn", "08_conv2d_duel", "h200.txt")
NETWORKS = ("lenet", "fashion", "resnet18", "vgg", "other")
PASSES = ("forward", "backward_input", "backward_weight")
SHORT = {"implicit_gemm": "gemm", "depthwise": "depthw."}
FILLS = {"tiled": "grey", "naive": "grey", "small": "yellow", "im2col": "purple", "gemm": "blue", "winograd": "green",
         "fft": "orange", "depthw.": "teal"}
LEFT, TOP, WIDTH, HEIGHT = 150, 74, 90, 19


def results(path):
    """{(network, layer): {(pass, batch): (our fastest method, how many times as fast as cuDNN's fastest engine)}}"""
    layers = {}
    for line in open(path, encoding="utf-8"):
        network, layer = line[:8].strip(), line[9:23].strip()
        if network not in NETWORKS:
            continue
        batch, which, winner, *numbers = line[24:].split()[:7]
        layers.setdefault((network, layer), {})[which, int(batch)] = winner, float(numbers[3].rstrip("x"))
    return dict(sorted(layers.items(), key=lambda item: NETWORKS.index(item[0][0])))


def draw():
    layers = results(RECORD)
    f = Figure(700, TOP + HEIGHT * len(layers) + 48, "Our fastest method for each layer, pass and batch on an H200, and "
               "how many times as fast as the fastest float32 engine of cuDNN it is")
    for i, name in enumerate(("forward", "gradient of the input", "gradient of the filters")):
        f.text(LEFT + WIDTH * (2 * i + 1), 28, name, size=12, anchor="middle", bold=True)
        for j, batch in enumerate(("1 image", "64 images")):
            f.text(LEFT + WIDTH * (2 * i + j) + WIDTH / 2, 48, batch, size=11, anchor="middle")
    for r, ((network, layer), cells) in enumerate(layers.items()):
        y = TOP - 14 + HEIGHT * r
        f.text(10, y + 14, "%s %s" % (network, layer), size=11)
        for c, key in enumerate((which, batch) for which in PASSES for batch in (1, 64)):
            if key not in cells:
                continue
            winner, ratio = cells[key]
            winner = SHORT.get(winner, winner)
            f.rect(LEFT + WIDTH * c + 1, y + 1, WIDTH - 2, HEIGHT - 2, fill=FILLS[winner],
                   stroke="ink" if ratio >= 1 else None, line=1.5)
            f.text(LEFT + WIDTH * c + WIDTH / 2, y + 14, "%s %.2f" % (winner, ratio), size=11, anchor="middle")
    f.text(10, TOP + HEIGHT * len(layers) + 14, "The number: the time of cuDNN's fastest engine / ours. Outlined: ours is "
           "as fast or faster.", size=11)
    f.text(10, TOP + HEIGHT * len(layers) + 32, "gemm: implicit_gemm.  depthw.: depthwise.", size=11)
    return f
