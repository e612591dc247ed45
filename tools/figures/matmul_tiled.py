"""Figure of matmul_tiled: the tiles of A and B that a block loads at one step, and how its threads share them."""
from svg import Figure

TILE, TILES, CELL = 4, 3, 11  # the tiles are 4 x 4 here, the matrices 12 x 12


def matrices(f, x, y, step):
    """B above C, A to the left of it; the block's tile of C, and the tiles of A and B of one step."""
    side, gap, at = CELL * TILE * TILES, 28, 1  # the block is in the middle row and column of tiles

    def of_a(r, c):
        if r // TILE != at:
            return None
        return "strong blue" if c // TILE == step else "blue"

    def of_b(r, c):
        if c // TILE != at:
            return None
        return "strong orange" if r // TILE == step else "orange"

    def of_c(r, c):
        return "strong green" if r // TILE == c // TILE == at else None

    n = TILE * TILES
    b = f.grid(x + side + gap, y, n, n, cell=CELL, fill=of_b, stroke="grey")
    a = f.grid(x, y + side + gap, n, n, cell=CELL, fill=of_a, stroke="grey")
    c = f.grid(x + side + gap, y + side + gap, n, n, cell=CELL, fill=of_c, stroke="grey")
    for grid in (a, b, c):
        for i in range(TILES + 1):
            f.line(grid.x + i * TILE * CELL, grid.y, grid.x + i * TILE * CELL, grid.y + side, colour="strong grey")
            f.line(grid.x, grid.y + i * TILE * CELL, grid.x + side, grid.y + i * TILE * CELL, colour="strong grey")
    f.text(a.x, a.y - 8, "A")
    f.text(b.x - 18, b.y + 11, "B")
    f.text(c.x, c.y + side + 17, "C", colour="strong green")
    f.arrow(a.x + 4, a.y + side + 12, a.x + side - 4, a.y + side + 12, colour="strong blue")
    f.text(a.x + 4, a.y + side + 30, "the steps along K", size=12, colour="strong blue")
    f.arrow(b.x + side + 12, b.y + 4, b.x + side + 12, b.y + side - 4, colour="strong orange")


def shared(f, x, y):
    """The tiles in shared memory: thread (y,x) multiplies its row of one by its column of the other."""
    cell, row, col = 30, 1, 2
    side = cell * TILE
    f.text(x, y - 32, "In shared memory, at step 1", bold=True)
    a = f.grid(x, y + side + 40, TILE, TILE, cell=cell, fill=lambda r, c: "strong blue" if r == row else "blue",
               label=lambda r, c: "%d,%d" % (r, c), size=11)
    b = f.grid(x + side + 40, y, TILE, TILE, cell=cell, fill=lambda r, c: "strong orange" if c == col else "orange",
               label=lambda r, c: "%d,%d" % (r, c), size=11)
    c = f.grid(x + side + 40, y + side + 40, TILE, TILE, cell=cell,
               fill=lambda r, c: "strong green" if (r, c) == (row, col) else "green" if r == row or c == col else None)
    f.text(a.x, a.y - 8, "a_tile")
    f.text(b.x, b.y - 8, "b_tile")
    f.arrow(a.x + side + 3, a.center(row, 0)[1], c.corner(row, col)[0] + 2, a.center(row, 0)[1], colour="strong blue")
    f.arrow(b.center(0, col)[0], b.y + side + 3, b.center(0, col)[0], c.corner(row, col)[1] + 2, colour="strong orange")
    f.text(a.x, a.y + side + 20, "Thread (1,2): row 1 times column 2.", size=12)
    f.text(a.x, a.y + side + 38, "Each float is used by 4 threads.", size=12)


def draw():
    f = Figure(700, 400, "A block of 4 x 4 threads computes a tile of C: it walks along a row of tiles of A and a column "
                         "of tiles of B, and in shared memory each loaded float serves four threads.")
    f.text(20, 28, "The tiles of one block", bold=True)
    matrices(f, 20, 48, 1)
    shared(f, 392, 60)
    return f
