"""Figure of conv2d_winograd: patches of the image become columns of sixteen matrices, one per point, and columns of the
products become tiles of outputs; and what a block of the fused kernel does at the same time."""
from svg import Figure

FIRST, SECOND = "blue", "orange"  # tiles


def image(f, x, y):
    f.text(x, y, "Input", bold=True)

    def fill(r, c):
        first, second = r < 4 and c < 4, r < 4 and 2 <= c < 6
        return "purple" if first and second else FIRST if first else SECOND if second else None

    f.grid(x, y + 12, 6, 6, cell=20, fill=fill)
    f.text(x, y + 152, "patches of 4 x 4,", size=12)
    f.text(x, y + 167, "2 columns shared", size=12)


def stack(f, x, y, rows, columns, cell, name, fill=None):
    """Sixteen matrices, of which three are seen."""
    for back in (2, 1):
        f.rect(x + 6 * back, y - 6 * back, columns * cell, rows * cell, fill="grey")
    g = f.grid(x, y, rows, columns, cell=cell, fill=fill or "paper")
    f.text(x, y - 22, name, bold=True)
    return g


def outputs(f, x, y):
    f.text(x, y, "Output", bold=True)

    def fill(r, c):
        return FIRST if r < 2 and c < 2 else SECOND if r < 2 and c < 4 else None

    f.grid(x, y + 12, 4, 4, cell=20, fill=fill)
    f.text(x, y + 112, "tiles of 2 x 2", size=12)


def products(f):
    image(f, 16, 30)
    f.arrow(144, 82, 188, 82)
    f.text(165, 72, "Bt x B", size=12, anchor="middle")

    tile = {0: FIRST, 1: SECOND}
    u = stack(f, 228, 66, 4, 3, 16, "u, 16 times")
    f.text(304, 96, "·", size=20, anchor="middle", bold=True)
    v = stack(f, 324, 66, 3, 5, 16, "v, 16 times", lambda r, c: tile.get(c, "paper"))
    f.text(432, 96, "=", size=18, anchor="middle", bold=True)
    m = stack(f, 450, 66, 4, 5, 16, "m, 16 times", lambda r, c: tile.get(c, "paper") if r == 0 else "paper")
    f.brace(u.x - 3, u.y, u.height, "left", "K")
    f.brace(u.x, u.y + u.height + 3, u.width, "bottom", "C")
    f.brace(v.x, v.y + v.height + 3, v.width, "bottom", "tiles")
    f.brace(m.x, m.y + m.height + 3, m.width, "bottom", "tiles")
    f.arrow(554, 82, 594, 82)
    f.text(574, 72, "At m A", size=12, anchor="middle")
    outputs(f, 604, 54)
    f.text(228, 184, "16 numbers of a patch, one for each matrix; 16 numbers of m for a tile", size=12)


def timeline(f, x, y):
    f.text(x, y, "The fused kernel: a block during three steps of 8 channels", bold=True)
    left, step, half, change = x + 120, 170, 66, 34
    rows = [("the block's warps", y + 14), ("copies of filters", y + 44), ("copies of patches", y + 74)]
    for lane, at in rows:
        f.text(x, at + 15, lane, size=12)
    for i in range(3):
        begin, name = left + i * step, "multiply %d" % i
        f.rect(begin, rows[0][1], half, 22, fill="green", label=name, size=11)
        f.rect(begin + half, rows[0][1], change, 22, fill="yellow", label="tr. %d" % (i + 1), size=11)
        f.rect(begin + half + change, rows[0][1], half, 22, fill="green", label=name, size=11)
        f.rect(begin, rows[1][1], 2 * half + change, 22, fill="teal", label="of step %d" % (i + 1), size=11)
        last = min(begin + step + half, left + 3 * step - 4)
        f.rect(begin + half + change, rows[2][1], last - begin - half - change, 22, fill="teal")
        f.text(begin + half + change + 6, rows[2][1] + 15, "of step %d" % (i + 2), size=11)
        f.line(begin + step - 2, y + 8, begin + step - 2, y + 102, colour="strong red", line=1.5)
    f.rect(left, rows[2][1], half, 22, fill="teal", label="of step 1", size=11)
    f.text(left, y + 120, "tr.: the transform of patches that have arrived; red: the barrier at the end of a step", size=12)


def draw():
    f = Figure(700, 362, "Overlapping patches of the image become columns of sixteen matrices; each matrix is multiplied with "
               "the transformed filters of its point, and sixteen products of a tile become its outputs. In the fused kernel "
               "copies run while a block transforms and multiplies")
    products(f)
    f.line(16, 206, 684, 206, colour="grey")
    timeline(f, 16, 230)
    return f
