"""Figure of perceptron: the three kernels of a step, and what one thread or one warp of each reads and writes."""
from svg import Figure


def draw():
    f = Figure(700, 330, "Three kernels of a training step. Forward: one thread per sample reads its row of x and writes "
                         "z. Gradient: one warp per weight reads a column of x and all dz, 32 samples at a time. Update: "
                         "one thread per weight subtracts lr times the gradient.")
    rows = 7
    f.text(20, 26, "forward", bold=True)
    f.text(20, 44, "one thread per sample", size=12)
    x = f.grid(20, 84, rows, 2, cell=(34, 22), fill=lambda r, c: "orange" if r == 2 else None,
               label=lambda r, c: "xy"[c], size=12)
    f.text(54, 76, "x (B,2)", size=12, anchor="middle")
    z = f.grid(150, 84, rows, 1, cell=(34, 22), fill=lambda r, c: "strong orange" if r == 2 else None,
               label=lambda r, c: None if r == 2 else "z", size=12)
    f.text(167, 76, "z (B)", size=12, anchor="middle")
    f.text(167, 144, "z", size=12, anchor="middle", colour="paper")
    f.arrow(92, 139, 146, 139, colour="strong orange")
    f.text(20, 270, "z = w0 x + w1 y + b", mono=True, size=12)
    f.text(20, 290, "p = sigmoid(z)", mono=True, size=12)
    f.text(20, 310, "dz = (p - t) / B", mono=True, size=12)
    f.line(214, 20, 214, 312, colour="grey")

    f.text(234, 26, "gradient", bold=True)
    f.text(234, 44, "one warp per weight", size=12)
    dz = f.grid(234, 84, rows, 1, cell=(34, 22), fill="blue", label="dz", size=12)
    f.text(251, 76, "dz (B)", size=12, anchor="middle")
    x = f.grid(300, 84, rows, 2, cell=(34, 22), fill=lambda r, c: None if c else "blue", label=lambda r, c: "xy"[c],
               size=12)
    f.text(334, 76, "x (B,2)", size=12, anchor="middle")
    for r, lane in ((0, "lane 0"), (1, "lane 1"), (2, "lane 2"), (6, "lane 6")):
        f.text(376, 84 + 22 * r + 15, lane, size=11)
    f.text(376, 84 + 22 * 4 + 11, "...", size=11)
    f.text(284, 168, "×", size=14, anchor="middle")
    f.text(234, 270, "32 lanes: 32 partial sums", size=12)
    f.text(234, 290, "5 shuffles: one sum", size=12)
    f.text(234, 310, "dw0 = Σ dz · x", mono=True, size=12, colour="strong blue")
    f.line(438, 20, 438, 312, colour="grey")

    f.text(458, 26, "update", bold=True)
    f.text(458, 44, "one thread per weight", size=12)
    names = ("w0", "w1", "b")
    f.text(478, 76, "w", size=12, anchor="middle")
    f.text(558, 76, "dw", size=12, anchor="middle")
    f.text(648, 76, "next", size=12, anchor="middle")
    f.grid(458, 84, 3, 1, cell=(40, 30), fill="green", label=lambda r, c: names[r], size=12)
    f.grid(538, 84, 3, 1, cell=(40, 30), fill="blue", label=lambda r, c: "d" + names[r], size=12)
    f.grid(628, 84, 3, 1, cell=(40, 30), fill="green", label=lambda r, c: names[r], size=12)
    for r in range(3):
        f.text(518, 84 + 30 * r + 20, "− lr ×", size=11, anchor="middle")
        f.arrow(584, 84 + 30 * r + 15, 624, 84 + 30 * r + 15)
    f.text(458, 270, "next = w − lr · dw", mono=True, size=12, colour="strong green")
    f.text(458, 290, "the loss falls in the direction", size=12)
    f.text(458, 310, "opposite to its gradient", size=12)
    return f
