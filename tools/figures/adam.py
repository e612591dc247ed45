"""Figure of adam: what weight decay takes from a weight in a step, over the size of its gradients."""
import math

from svg import Figure

WIDTH, HEIGHT, LR, DECAY, W = 560, 230, 0.001, 0.1, 1.0
LOW, HIGH = -4, 2  # powers of ten of the gradient
BOTTOM, TOP = -7, -2  # of the decay


def adam(size):
    """The share of the decay in a step: gradients of alternating sign and this size, so that their own mean is 0."""
    return LR * DECAY * W / (math.sqrt(size ** 2 + (DECAY * W) ** 2) + 1e-8)


def adamw(size):
    return LR * DECAY * W


def draw():
    f = Figure(700, 330, "Weight decay of a weight of 1 in one step, over the size of its gradients. In AdamW it is 1e-4 whatever the "
                         "gradient; in Adam 1e-3 where gradients are small, and 1e-6 where they are 100.")
    x, y = 84, 44
    f.text(20, 24, "A weight of 1, learning rate 0.001, weight decay 0.1: what one step takes from it", bold=True)
    f.rect(x, y, WIDTH, HEIGHT)
    for power in range(BOTTOM, TOP + 1):
        line = y + HEIGHT * (TOP - power) / (TOP - BOTTOM)
        f.line(x, line, x + WIDTH, line, colour="grey")
        f.text(x - 6, line + 4, "1e%d" % power, size=11, anchor="end")
    for power in range(LOW, HIGH + 1):
        f.text(x + WIDTH * (power - LOW) / (HIGH - LOW), y + HEIGHT + 16, "1e%d" % power if power else "1", size=11, anchor="middle")
    f.text(x + WIDTH / 2, y + HEIGHT + 36, "usual size of its gradients", size=12, anchor="middle")
    for formula, colour in ((adam, "strong red"), (adamw, "strong blue")):
        points = []
        for i in range(121):
            size = 10 ** (LOW + (HIGH - LOW) * i / 120)
            points.append((x + WIDTH * i / 120, y + HEIGHT * (TOP - math.log10(formula(size))) / (TOP - BOTTOM)))
        f.polyline(points, colour, line=2)
    f.text(x + 40, y + 34, "Adam: the decay is a part of the gradient", size=12, colour="strong red")
    f.text(x + 40, y + 112, "AdamW: lr * weight_decay", size=12, colour="strong blue")
    return f
