"""Figure of residual: a block, forward and backward; and the gradient of each of 32 layers, as residual_depth measured it."""
import math

from svg import Figure

# bazel run //phase3_cnn:residual_depth: the norms of layers 1, 4, 8, ..., 32.
LAYERS = (1, 4, 8, 12, 16, 20, 24, 28, 32)
NORMS = [
    ("plain", "strong red", (3.6e-15, 4.2e-15, 1.6e-13, 1.4e-11, 6.3e-10, 1.7e-08, 1.9e-06, 4.6e-04, 1.5e-02)),
    ("plain, batch norm", "strong orange", (1.4e+02, 8.3e+01, 5.0e+01, 2.6e+01, 1.5e+01, 7.2, 3.6, 1.8, 1.3)),
    ("residual", "strong blue", (6.7e-02, 9.5e-02, 8.5e-02, 1.7e-01, 1.4e-01, 2.2e-01, 1.6e-01, 1.6e-01, 9.4e-02)),
    ("residual, batch norm", "strong green", (1.5e+01, 1.0e+01, 7.0, 5.9, 3.6, 3.4, 3.2, 2.8, 2.9)),
]
LOW, HIGH = -16, 8  # powers of ten
WIDTH, HEIGHT = 300, 200


def block(f):
    f.text(20, 26, "A block: y = relu(f(x) + x)", bold=True)
    for i, (name, colour) in enumerate((("conv, norm, ReLU", "blue"), ("conv, norm", "blue"), ("add, ReLU", "orange"))):
        f.rect(40, 70 + 58 * i, 130, 28, fill=colour, label=name)
    f.text(122, 50, "x", anchor="middle")
    for y in (52, 98, 156, 214):
        f.arrow(105, y, 105, y + (18 if y == 52 else 30))
    f.text(105, 262, "y", anchor="middle")
    f.polyline([(105, 58), (198, 58), (198, 200)])
    f.arrow(198, 200, 170, 200)
    f.text(206, 120, "shortcut:", size=12)
    f.text(206, 136, "x, or a 1 x 1", size=12)
    f.text(206, 152, "convolution", size=12)
    f.arrow(84, 246, 84, 216, colour="strong red")
    f.text(77, 240, "dy", size=12, anchor="end", colour="strong red")
    f.arrow(26, 186, 26, 70, colour="strong red")
    f.text(8, 278, "dx = d + d df/dx", size=12, colour="strong red")
    f.text(186, 236, "d = dy where y > 0,", size=12, colour="strong red")
    f.text(186, 252, "for both branches", size=12, colour="strong red")


def gradients(f):
    x, y = 372, 48
    f.text(x - 34, 26, "Gradient of each layer's filters, 32 layers", bold=True)
    f.rect(x, y, WIDTH, HEIGHT)
    at = lambda layer, norm: (x + WIDTH * layer / 33, y + HEIGHT * (HIGH - math.log10(norm)) / (HIGH - LOW))
    for power in range(LOW, HIGH + 1, 4):
        line = at(0, 10 ** power)[1]
        f.line(x, line, x + WIDTH, line, colour="grey")
        f.text(x - 6, line + 4, "1e%d" % power if power else "1", size=11, anchor="end")
    for layer in (1, 8, 16, 24, 32):
        f.text(at(layer, 1)[0], y + HEIGHT + 16, layer, size=11, anchor="middle")
    f.text(x + WIDTH / 2, y + HEIGHT + 34, "layer", size=12, anchor="middle")
    for name, colour, norms in NORMS:
        f.polyline([at(layer, norm) for layer, norm in zip(LAYERS, norms)], colour, line=1.8)
    f.text(x + 20, y + 36, NORMS[1][0], size=12, colour=NORMS[1][1])
    f.text(x + 166, y + 50, NORMS[3][0], size=12, colour=NORMS[3][1])
    f.text(x + 30, y + 94, NORMS[2][0], size=12, colour=NORMS[2][1])
    f.text(x + 150, y + 156, NORMS[0][0], size=12, colour=NORMS[0][1])


def draw():
    f = Figure(700, 290, "A residual block: the gradient of its output goes to both branches. In a plain network of 32 "
                         "layers the gradient falls by 13 powers of ten, with shortcuts it stays the same.")
    block(f)
    gradients(f)
    return f
