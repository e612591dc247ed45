"""Figure of fused_batchnorm_relu_softmax: what a result needs, and how often the array moves."""
from svg import Figure

ROWS, COLUMNS, AT = 6, 9, (2, 4)  # AT: the result that is looked at
NEEDS = (
    ("ReLU", "its element", lambda r, c: (r, c) == AT),
    ("batch norm, inference", "element, 4 parameters", lambda r, c: (r, c) == AT),
    ("softmax", "its row", lambda r, c: r == AT[0]),
    ("batch norm, training", "its column", lambda r, c: c == AT[1]),
)
STEPS = (  # what is read (r) or written (w) in each kernel
    ("separate", ("rx wn", "rn wz", "rz wy")),
    ("two", ("rx wz", "rz wy")),
    ("online", ("rx rx wy",)),
    ("fused", ("rx wy",)),
)


def needs(f):
    f.text(20, 26, "What one result (dark) needs of its input", bold=True)
    for i, (name, what, needed) in enumerate(NEEDS):
        x = 20 + 170 * i
        f.text(x, 50, name, size=12)
        f.grid(x, 60, ROWS, COLUMNS, cell=16,
               fill=lambda r, c: "strong blue" if (r, c) == AT else "blue" if needed(r, c) else None)
        if "inference" in name:
            f.grid(x + AT[1] * 16, 164, 4, 1, cell=(16, 9), fill="orange")
            f.text(x, 216, what, size=12)
        else:
            f.text(x, 216, what, size=12)
    f.text(20, 240, "The first three can be fused. In training no row is finished before all rows have been read.", size=12)


def traffic(f):
    f.text(20, 284, "How often the array moves; a frame is a kernel", bold=True)
    for i, (name, kernels) in enumerate(STEPS):
        y, x = 302 + 42 * i, 110
        f.text(90, y + 17, name, size=12, anchor="end")
        for steps in kernels:
            steps = steps.split()
            f.rect(x - 5, y - 5, 49 * len(steps) + 7, 36, radius=4)
            for step in steps:
                f.rect(x, y, 45, 26, fill="blue" if step[0] == "r" else "orange", label=step[1:], size=12)
                x += 49
            x += 16
        note = ", and the parameters twice per element" if name == "online" else ""
        f.text(x, y + 17, "%d times%s" % (sum(len(k.split()) for k in kernels), note), size=12)
    f.legend(500, 470, [("blue", "read"), ("orange", "write")])


def draw():
    f = Figure(700, 484, "ReLU needs its element, batch normalisation in inference its element and four parameters, softmax "
               "its row, batch normalisation in training its column; separate kernels move the array six times, the fused "
               "one twice")
    needs(f)
    traffic(f)
    return f
