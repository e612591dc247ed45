"""Figure of matmul_naive: what the lanes of a warp read for one product, by columns and by rows of C."""
from svg import Figure

CELL, SIDE = 15, 8  # 8 of the 32 lanes are drawn; 8 floats are a sector


def panel(f, x, y, by_columns):
    """B above C, A to the left of it; the warp's elements of C, and what they need of A and B for one k."""
    k, fixed = 3, 2  # the step along K, and the row or column of C that all lanes share
    colour = "strong red" if by_columns else "strong blue"
    pale = "red" if by_columns else "blue"

    def of_a(r, c):
        rows = range(SIDE) if by_columns else [fixed]
        return colour if r in rows and c == k else pale if r in rows else None

    def of_b(r, c):
        columns = [fixed] if by_columns else range(SIDE)
        return colour if r == k and c in columns else pale if r == k else None

    def of_c(r, c):
        return "strong green" if (c if by_columns else r) == fixed else None

    side, gap = CELL * SIDE, 26
    b = f.grid(x + side + gap, y, SIDE, SIDE, cell=CELL, fill=of_b)
    a = f.grid(x, y + side + gap, SIDE, SIDE, cell=CELL, fill=of_a)
    c = f.grid(x + side + gap, y + side + gap, SIDE, SIDE, cell=CELL, fill=of_c)
    for row in range(SIDE) if by_columns else [fixed]:
        f.rect(*a.corner(row, 0), side, CELL, stroke="ink", line=1.6)
    f.rect(*b.corner(k, 0), side, CELL, stroke="ink", line=1.6)
    f.text(x, y + side + gap - 7, "A, column k")
    f.text(b.x, y - 7, "B, row k")
    f.text(c.x, c.y - 7, "C, the warp's elements", colour="strong green")
    return x, c.y + side


def draw():
    f = Figure(700, 410, "For one product, a warp with 32 elements of a column of C reads 32 sectors of A and one of B; a "
                         "warp with 32 elements of a row reads one sector of A and four of B.")
    f.text(30, 28, "naive_columns: the lanes differ in the row", bold=True)
    x, y = panel(f, 30, 70, True)
    f.text(x, y + 24, "A: 32 rows, 32 sectors. B: one float, 1 sector.", size=12, colour="strong red")
    f.text(365, 28, "naive: the lanes differ in the column", bold=True)
    x, y = panel(f, 365, 70, False)
    f.text(x, y + 24, "A: one float, 1 sector. B: 32 neighbours, 4 sectors.", size=12, colour="strong blue")
    f.text(30, 396, "8 of the 32 lanes are drawn. A frame is a sector of 8 floats; dark cells are what the lanes need of it.",
           size=12)
    return f
