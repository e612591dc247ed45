"""Figure of regularization: training and test loss over the epochs, for each method, as the program measured them
(phase4_training/05_regularization/curves.csv)."""
import csv
import os

from svg import Figure

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
CURVES = os.path.join(ROOT, "phase4_training", "05_regularization", "curves.csv")
WIDTH, HEIGHT, MOST = 190, 110, 1.2
COLOURS = ["strong green", "strong orange", "strong teal", "strong blue", "strong purple", "strong red", "strong orange",
           "strong green", "strong blue"]


def curves():
    """Of each method, in the order of the file: its rows (epoch, training loss, test loss)."""
    methods = {}
    with open(CURVES, encoding="utf-8") as file:
        for row in csv.DictReader(file):
            methods.setdefault(row["method"], []).append([float(row[k]) for k in ("epoch", "train_loss", "test_loss")])
    return methods


def panel(f, x, y, name, rows, plain, colour, axis):
    epochs = rows[-1][0]

    def line(rows, column, colour, width, dash=False):
        f.polyline([(x + WIDTH * r[0] / epochs, y + HEIGHT * (1 - min(r[column], MOST) / MOST)) for r in rows], colour,
                   line=width, dash=dash)

    f.text(x, y - 7, name, size=12, colour=colour, bold=True)
    f.rect(x, y, WIDTH, HEIGHT)
    line(plain, 2, "strong grey", 1.2)
    line(plain, 1, "strong grey", 1.2, dash=True)
    line(rows, 2, colour, 1.9)
    line(rows, 1, colour, 1.9, dash=True)
    if axis:
        f.text(x - 5, y + 9, "%g" % MOST, size=11, anchor="end")
        f.text(x - 5, y + HEIGHT, "0", size=11, anchor="end")
    f.text(x + WIDTH, y + HEIGHT + 14, "epoch %d" % epochs, size=11, anchor="end")


def draw():
    methods = curves()
    plain = methods.pop("none")
    f = Figure(700, 60 + 154 * ((len(methods) + 2) // 3), "Loss over the epochs for each method against overfitting: the "
               "training loss and the test loss, beside those of the same network without any method.")
    f.line(40, 16, 70, 16, "strong grey", 1.9)
    f.text(76, 20, "test loss", size=12)
    f.line(150, 16, 180, 16, "strong grey", 1.9, dash=True)
    f.text(186, 20, "training loss; grey: without any method, in every picture", size=12)
    for i, (name, rows) in enumerate(methods.items()):
        panel(f, 36 + i % 3 * (WIDTH + 32), 54 + i // 3 * 154, name, rows, plain, COLOURS[i % len(COLOURS)], i % 3 == 0)
    return f
