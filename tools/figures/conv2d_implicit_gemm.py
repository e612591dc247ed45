"""Figure of conv2d_implicit_gemm: where the elements of the matrix that is not stored lie in the image, and the copies
of three stages over time."""
from svg import Figure

H, W, R, S = 4, 5, 3, 3
TAP, PIXEL = 1, 7  # the row and the column of the matrix that are coloured


def place(tap, pixel):
    """Of the element of x; None in the padding. Stride 1, padding 1."""
    h, v = pixel // W - 1 + tap // S, pixel % W - 1 + tap % S
    return h * W + v if 0 <= h < H and 0 <= v < W else None


def image(f, x, y):
    f.text(x, y, "A channel of x, padding 1", bold=True)
    window = {(PIXEL // W + r, PIXEL % W + s) for r in range(R) for s in range(S)}

    def fill(r, c):
        if (r, c) in window:
            return "orange"
        return None if 1 <= r <= H and 1 <= c <= W else "grey"

    f.grid(x, y + 14, H + 2, W + 2, cell=24, fill=fill,
           label=lambda r, c: (r - 1) * W + c - 1 if 1 <= r <= H and 1 <= c <= W else "", stroke="strong grey", line=0.5)
    f.text(x, y + 180, "orange: what the filters cover", size=12)
    f.text(x, y + 196, "at pixel (1,2), number 7", size=12)


def matrix(f, x, y):
    f.text(x, y, "Its part of the columns: tap by pixel. Numbers: places in x", bold=True)

    def fill(r, c):
        if r == TAP:
            return "blue" if place(r, c) is not None else "grey"
        if c == PIXEL:
            return "orange"
        return "grey" if place(r, c) is None else None

    grid = f.grid(x + 42, y + 14, R * S, 15, cell=(25, 18), fill=fill,
                  label=lambda r, c: "" if place(r, c) is None else place(r, c), stroke="strong grey", line=0.5)
    for tap in range(R * S):
        f.text(x + 36, grid.center(tap, 0)[1] + 4, "(%d,%d)" % (tap // S, tap % S), size=11, anchor="end")
    f.text(x + 42, y + 196, "blue: one row, in each line of the image five neighbours; grey: 0", size=12)


def stages(f, x, y):
    f.text(x, y, "A step: one tap of eight channels. Two steps are on their way while one is multiplied", bold=True)
    step = 100

    def lane(at, name, boxes):
        if name:
            f.text(x, at + 13, name, size=12)
        for begin, width, colour, label in boxes:
            f.rect(x + 100 + begin, at, width, 19, fill=colour, label=label, size=11)

    lane(y + 14, "products", [(i * step, step - 2, "green", "step %d" % i) for i in range(5)])
    for i in range(4):  # the copies of step i + 2 begin during step i, and must be there when step i + 1 ends
        lane(y + 40 + i % 2 * 24, "" if i > 0 else "copies", [(i * step, 2 * step - 2, "blue", None)])
        f.text(x + 106 + i * step, y + 54 + i % 2 * 24, "of step %d" % (i + 2), size=11)
    for i in range(5):
        f.line(x + 99 + (i + 1) * step, y + 8, x + 99 + (i + 1) * step, y + 90, colour="strong red", line=1.5)
    f.text(x + 100, y + 108, "red: the barrier at the end of a step; the copies of the next step have arrived", size=12,
           colour="strong red")


def draw():
    f = Figure(700, 388, "A row of the matrix is a run of neighbours in the image, with zeros where the padding is; a block "
               "copies eight such rows per step, and two steps are on their way while one is multiplied")
    image(f, 20, 26)
    matrix(f, 236, 26)
    f.line(20, 242, 680, 242, colour="grey")
    stages(f, 20, 266)
    return f
