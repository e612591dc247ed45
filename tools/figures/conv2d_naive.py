"""Figure of conv2d_naive: the window of four inputs that slides along a line, and what the lanes of a warp read."""
from svg import Figure

CELL = 19


def window(f, x, y):
    """Three taps of four outputs: which inputs are in registers, which are loaded."""
    f.text(x, y - 12, "Four neighbouring outputs, a line of three taps", bold=True)
    g = f.grid(x + 150, y + 22, 3, 6, cell=(58, 30), gap=4,
               fill=lambda r, c: None if c < r or c > r + 3 else "strong orange" if r == 0 or c == r + 3 else "blue")
    for c in range(6):
        f.text(g.center(0, c)[0], y + 14, "x[%d]" % c, size=12, anchor="middle", mono=True)
    for r in range(3):
        f.text(x, g.center(r, 0)[1] + 5, "tap %d: w[%d]" % (r, r), size=12, mono=True)
        for j in range(4):
            cx, cy = g.center(r, r + j)
            f.text(cx, cy + 5, "y[%d]" % j, size=12, anchor="middle", mono=True,
                   colour="paper" if r == 0 or j == 3 else "ink")
    f.text(g.x + g.width + 14, g.center(0, 0)[1] + 5, "4 loads", size=12)
    f.text(g.x + g.width + 14, g.center(1, 0)[1] + 5, "1 load", size=12)
    f.text(g.x + g.width + 14, g.center(2, 0)[1] + 5, "1 load", size=12)
    f.legend(x + 150, y + 142, [("strong orange", "loaded for this tap"), ("blue", "in a register from the tap before")])


def lanes(f, x, y, title, step, colour, pale, said):
    """32 floats of a line: those that the lanes read with one load."""
    f.text(x, y - 12, title, bold=True)
    g = f.grid(x, y, 1, 32, cell=CELL, fill=lambda r, c: colour if c % step == 0 else pale)
    for sector in range(4):
        f.rect(x + sector * 8 * CELL, y, 8 * CELL, CELL, stroke="ink", line=1.8)
    for c in range(0, 32, step):
        f.text(g.center(0, c)[0], y + CELL + 13, c // step, size=10, anchor="middle")
    f.text(x, y + CELL + 32, said, size=12)


def draw():
    f = Figure(700, 430, "For three taps of four neighbouring outputs a thread loads four inputs, then one for each further "
                         "tap. With four outputs in a row the lanes of a warp read floats four apart, 4 sectors for 8 "
                         "lanes; with four in a column they read neighbours, 4 sectors for 32 lanes.")
    window(f, 46, 40)
    lanes(f, 46, 250, "row: the next lane begins four outputs further on", 4, "strong red", "red",
          "One load: 8 lanes read from 4 sectors, and the warp's 32 lanes from 16.")
    lanes(f, 46, 350, "column: the next lane is the next column", 1, "strong blue", "blue",
          "One load: 32 lanes read from 4 sectors. A frame is a sector of 8 floats; below it stand the lanes.")
    return f
