"""Figure of train: the validation losses of a search, from the table that it wrote (phase4_training/08_train/search.csv)."""
import csv
import math
import os

from svg import Figure

RECORD = os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", "..", "phase4_training", "08_train", "search.csv")
LEFT, TOP, WIDTH, HEIGHT = 92, 62, 112, 44


def losses(path):
    """{(rate, optimizer): loss}; NaN where the trial has none."""
    with open(path, encoding="utf-8", newline="") as file:
        return {(row["lr"], row["optimizer"]): float(row["validation_loss"] or "nan") for row in csv.DictReader(file)}


def draw():
    table = losses(RECORD)
    rates = sorted({rate for rate, _ in table}, key=float)
    optimizers = [name for name in ("sgd", "adam", "rmsprop") if any(name == o for _, o in table)]
    finite = [loss for loss in table.values() if math.isfinite(loss)]
    lowest = min(finite)
    f = Figure(700, TOP + HEIGHT * len(optimizers) + 46, "A search over learning rates and optimizers: the lower the "
               "validation loss, the stronger the colour")
    f.text(LEFT, 24, "validation loss of a perceptron, 4000 images of MNIST, 2 epochs", bold=True)
    for c, rate in enumerate(rates):
        f.text(LEFT + WIDTH * c + WIDTH / 2, TOP - 10, "lr %s" % rate, size=12, anchor="middle")
    for r, name in enumerate(optimizers):
        f.text(LEFT - 10, TOP + HEIGHT * r + HEIGHT / 2 + 4, name, size=12, anchor="end")
        for c, rate in enumerate(rates):
            loss = table.get((rate, name), float("nan"))
            x, y = LEFT + WIDTH * c, TOP + HEIGHT * r
            fill = "grey" if not math.isfinite(loss) else "green" if loss < 2 * lowest else "yellow" if loss < 1 else "orange"
            f.rect(x, y, WIDTH - 4, HEIGHT - 4, fill)
            label = "%.3f" % loss if math.isfinite(loss) else "diverged"
            f.text(x + WIDTH / 2 - 2, y + HEIGHT / 2 + 2, label, size=13, anchor="middle", bold=loss == lowest)
    f.legend(LEFT, TOP + HEIGHT * len(optimizers) + 18,
             [("green", "less than twice the lowest"), ("yellow", "below 1"), ("orange", "1 and more: hardly learned")])
    return f
