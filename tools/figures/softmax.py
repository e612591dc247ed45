"""Figure of softmax: which elements a warp reads together, and how pairs of maximum and sum are merged."""
import math

from svg import Figure

SCORES = ((3, 1), (2, 5), (4, 0), (1, 2))  # of one row; each thread has two


def panel(f, x, title, note, fill):
    f.text(x, 26, title, bold=True)
    grid = f.grid(x, 40, 8, 16, cell=(18, 14), fill=fill, stroke="strong grey", line=0.5)
    for r in range(8):
        for c in (0, 8):
            f.rect(*grid.corner(r, c), 8 * 18, 14, stroke="ink", line=1.3)
    f.text(x, 172, note, size=12)
    return grid


def merge(a, b):
    top = max(a[0], b[0])
    return top, a[1] * math.exp(a[0] - top) + b[1] * math.exp(b[0] - top)


def tree(f):
    f.text(20, 214, "Merging: (max, sum) of two parts becomes (max, sum) of both", bold=True)
    width, gap = 128, 49
    xs = [20 + i * (width + gap) for i in range(4)]
    parts = []
    for (a, b), x in zip(SCORES, xs):
        f.grid(x + width / 2 - 24, 228, 1, 2, cell=24, fill="grey", label=lambda r, c, v=(a, b): v[c], size=12)
        top = max(a, b)
        parts.append((top, math.exp(a - top) + math.exp(b - top)))
        f.arrow(x + width / 2, 252, x + width / 2, 272)
    y = 272
    while True:
        for part, x in zip(parts, xs):
            f.rect(x, y, width, 24, fill="orange" if len(parts) > 1 else "green", label="max %g, sum %.2f" % part)
        if len(parts) == 1:
            break
        above, xs = xs, [(xs[i] + xs[i + 1]) / 2 for i in range(0, len(xs), 2)]
        parts = [merge(parts[i], parts[i + 1]) for i in range(0, len(parts), 2)]
        for i, x in enumerate(above):
            f.arrow(x + width / 2, y + 24, xs[i // 2] + width / 2 + (20 if i % 2 else -20), y + 48)
        y += 48
    f.text(20, y + 8, "scores of one row, two per thread", size=12)
    f.text(20, y + 24, "sums are rescaled by exp(max - new max)", size=12)
    assert abs(parts[0][1] - sum(math.exp(s - 5) for pair in SCORES for s in pair)) < 1e-9


def draw():
    f = Figure(700, 410, "A warp that reads one column of eight rows touches eight sectors, one that reads a row fills its "
               "sectors; pairs of maximum and sum are merged in a tree")
    panel(f, 20, "One thread per row", "each lane touches a sector of its own",
          lambda r, c: "strong blue" if c == 0 else None)
    panel(f, 392, "One block per row", "neighbouring lanes fill whole sectors",
          lambda r, c: "strong blue" if r == 0 else None)
    tree(f)
    return f
