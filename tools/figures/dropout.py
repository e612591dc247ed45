"""Figure of dropout: the words that decide forward and backward, and how often the matrix moves behind a softmax."""
from svg import Figure

X, DY, P = (5, 2, 7, 1, 3, 8, 4, 6), (1, 4, 2, 3, 1, 2, 5, 2), 0.5
UNIFORM = (.81, .12, .64, .33, .57, .93, .08, .71)
STEPS = (  # name; forward; backward: what is read (r) or written (w)
    ("separate", "rx ws rs wy", "rdy wg rg rs wdx"),
    ("three passes", "rx wy", "rx rx rdy rx rdy wdx"),
    ("softmax_dropout", "rx wy", "rx rdy wdx"),
)


def mechanism(f):
    f.text(20, 26, "One word decides, forward and backward (p = 0.5)", bold=True)
    kept = [u >= P for u in UNIFORM]
    show = lambda values: lambda r, c: ("%g" % (values[c] / (1 - P)) if kept[c] else "0")
    rows = ((40, "x", "blue", lambda r, c: X[c]), (108, "y", "blue", show(X)),
            (140, "words / 2^32", "grey", lambda r, c: "%.2f" % UNIFORM[c]),
            (172, "dx", "orange", show(DY)), (240, "dy", "orange", lambda r, c: DY[c]))
    for y, name, colour, label in rows:
        f.text(150, y + 17, name, size=12, anchor="end")
        f.grid(160, y, 1, 8, cell=(46, 24), label=label, size=12,
               fill=(lambda r, c: "green" if kept[c] else "red") if name.startswith("words") else colour)
    for c in range(8):
        f.arrow(183 + 46 * c, 64, 183 + 46 * c, 108)
        f.arrow(183 + 46 * c, 240, 183 + 46 * c, 196)
    f.text(544, 56, "forward", size=12)
    f.text(544, 150, "green: kept, times 2", size=12)
    f.text(544, 166, "red: dropped", size=12)
    f.text(544, 256, "backward: the cipher", size=12)
    f.text(544, 272, "runs again, no mask", size=12)


def traffic(f):
    f.text(20, 312, "Softmax and dropout, forward and backward: the matrix moves", bold=True)
    for i, (name, forward, backward) in enumerate(STEPS):
        y, x = 328 + 34 * i, 150
        f.text(140, y + 17, name, size=12, anchor="end")
        for part in (forward, backward):
            for step in part.split():
                f.rect(x, y, 42, 26, fill="blue" if step[0] == "r" else "orange", label=step[1:], size=12)
                x += 45
            x += 10
        f.text(x + 2, y + 17, "%d times" % len((forward + " " + backward).split()), size=12)
    f.legend(500, 420, [("blue", "read"), ("orange", "write")])


def draw():
    f = Figure(700, 440, "Each element has a random word; the same words decide what forward and backward drop. Behind a "
               "softmax separate kernels move the matrix nine times, the fused ones five times")
    mechanism(f)
    traffic(f)
    return f
