"""Figure of softmax_cross_entropy: how often each version moves the matrix, and where a block keeps its row."""
from svg import Figure

VERSIONS = (  # name, passes in order: what is read (r) or written (w), and its label
    ("separate", [("r", "max"), ("r", "sum"), ("r", "p"), ("w", "p"), ("r", "p"), ("w", "dx")]),
    ("online", [("r", "max, sum"), ("r", "p"), ("w", "dx")]),
    ("shared, quads, fused", [("r", "x"), ("w", "dx")]),
)


def passes(f):
    f.text(20, 26, "Passes over the matrix in global memory", bold=True)
    for i, (name, steps) in enumerate(VERSIONS):
        y = 42 + 36 * i
        f.text(170, y + 17, name, size=12, anchor="end")
        for j, (kind, label) in enumerate(steps):
            f.rect(182 + 82 * j, y, 78, 26, fill="blue" if kind == "r" else "orange", label=label, size=11)
    f.legend(500, 130, [("blue", "read for"), ("orange", "write")])


def block(f):
    f.text(20, 186, "One block and its row (quads)", bold=True)
    f.rect(20, 200, 660, 62, fill=None, dash=True)
    f.text(30, 218, "global memory", size=12)
    f.grid(150, 222, 1, 24, cell=(20, 24), fill="blue")
    f.text(640, 238, "x", size=13)
    for c in range(0, 24, 4):
        f.arrow(150 + 20 * c + 40, 246, 150 + 20 * c + 40, 292, colour="strong blue")
    f.text(30, 284, "16 bytes per copy", size=12)
    f.rect(20, 290, 660, 62, fill=None, dash=True)
    f.text(30, 308, "shared memory", size=12)
    kept = f.grid(150, 296, 1, 24, cell=(20, 24), fill="green")
    for c in range(0, 24, 4):
        f.rect(*kept.corner(0, c), 80, 24, stroke="ink", line=1.4)
    f.text(150, 342, "pass 1 here: maximum and sum, then the loss; pass 2 here: exp(x - max) * factor", size=12)
    for c in range(0, 24, 4):
        f.arrow(150 + 20 * c + 40, 352, 150 + 20 * c + 40, 382, colour="strong orange")
    f.grid(150, 382, 1, 24, cell=(20, 24), fill=lambda r, c: "strong orange" if c == 13 else "orange")
    f.text(30, 399, "global memory", size=12)
    f.text(640, 399, "dx", size=13)
    f.text(420, 424, "p - 1 at the label, p elsewhere", size=12, anchor="middle")


def draw():
    f = Figure(700, 436, "Separate kernels read the matrix four times and write it twice, online reads it twice, the others "
               "once; a block copies its row to shared memory and makes both passes there")
    passes(f)
    block(f)
    return f
