"""Figure of conv2d_im2col: an image, the matrix of its taps, and the product with the filters."""
from svg import Figure

CELL = 24


def draw():
    f = Figure(700, 456, "An image of 3 x 4 pixels and filters of 2 x 2 taps. Each of the six output pixels is a column "
                         "of the matrix: the four inputs that its filter covers. Two filters, as rows of four weights, "
                         "times the matrix give two rows of six outputs. Below: input 5 stands in four columns, and its "
                         "gradient gathers those four elements.")
    window = {0, 1, 4, 5}  # what output pixel 0 reads

    f.text(20, 28, "Forward: a row of weights times a column of the matrix", bold=True)
    image = f.grid(20, 66, 3, 4, cell=CELL, fill=lambda r, c: "orange" if 4 * r + c in window else None,
                   label=lambda r, c: 4 * r + c, size=11)
    f.text(image.x, image.y - 8, "x: 3 x 4", size=12)

    matrix = f.grid(330, 66, 4, 6, cell=CELL, fill=lambda r, c: "orange" if c == 0 else None,
                    label=lambda r, c: 4 * (c // 3 + r // 2) + c % 3 + r % 2, size=11)
    f.text(matrix.x, matrix.y - 8, "matrix: 4 taps x 6 pixels", size=12)
    for r, name in enumerate(("r 0, s 0", "r 0, s 1", "r 1, s 0", "r 1, s 1")):
        f.text(matrix.x + 6 * CELL + 10, matrix.y + r * CELL + 16, name, size=11)
    f.arrow(image.x + 4 * CELL + 8, image.center(1, 0)[1], matrix.x - 8, image.center(1, 0)[1], colour="strong orange")
    f.text(image.x + 4 * CELL + 26, image.center(1, 0)[1] - 8, "im2col copies", size=12)

    y = 206
    w = f.grid(200, y, 2, 4, cell=CELL, fill=lambda r, c: "blue" if r == 0 else None, label=lambda r, c: "abcdefgh"[4 * r + c],
               size=11)
    f.text(w.x, w.y + 2 * CELL + 16, "w: 2 filters x 4 taps", size=12)
    out = f.grid(330, y, 2, 6, cell=CELL, fill=lambda r, c: "strong green" if (r, c) == (0, 0) else "green")
    f.text(out.x, out.y + 2 * CELL + 16, "product: 2 filters x 6 pixels = y", size=12)
    f.arrow(matrix.center(0, 0)[0], matrix.y + 4 * CELL + 3, out.center(0, 0)[0], out.y - 3, colour="strong orange")
    f.arrow(w.x + 4 * CELL + 3, w.center(0, 0)[1], out.x - 3, w.center(0, 0)[1], colour="strong blue")
    f.text(505, y + 16, "a·0 + b·1 + c·4 + d·5", size=12, colour="strong green")

    f.line(20, 290, 680, 290, colour="grey")
    f.text(20, 316, "Gradient of the input: col2im gathers", bold=True)
    back = f.grid(330, 346, 4, 6, cell=CELL,
                  fill=lambda r, c: "strong purple" if 4 * (c // 3 + r // 2) + c % 3 + r % 2 == 5 else None,
                  label=lambda r, c: 4 * (c // 3 + r // 2) + c % 3 + r % 2, size=11)
    f.text(back.x, back.y - 8, "w transposed, times dy: 4 taps x 6 pixels", size=12)
    dx = f.grid(20, 346, 3, 4, cell=CELL, fill=lambda r, c: "strong purple" if 4 * r + c == 5 else None,
                label=lambda r, c: 4 * r + c, size=11)
    f.text(dx.x, dx.y - 8, "dx", size=12)
    f.arrow(back.x - 8, dx.center(1, 0)[1], dx.x + 4 * CELL + 8, dx.center(1, 0)[1], colour="strong purple")
    f.text(dx.x + 4 * CELL + 26, dx.center(1, 0)[1] - 8, "one thread per input", size=12)
    f.text(dx.x + 4 * CELL + 26, dx.center(1, 0)[1] + 20, "adds up its copies", size=12)
    return f
