"""Figure of matmul_register_tiled: what one thread loads for its element, its column, and its patch of C."""
from svg import Figure

CELL = 15


def panel(f, x, y, rows, columns, name):
    """A column of a_tile, a row of b_tile, and the thread's elements of C, for one step i."""
    cx, cy = x + CELL + 12, y + CELL + 12
    f.text(x, y - 26, name, bold=True)
    f.grid(cx, y, 1, columns, cell=CELL, fill="strong orange")
    f.grid(x, cy, rows, 1, cell=CELL, fill="strong blue")
    f.grid(cx, cy, rows, columns, cell=CELL, fill="green")
    for column in range(columns):
        f.arrow(cx + column * CELL + CELL / 2, y + CELL, cx + column * CELL + CELL / 2, cy, colour="strong orange", line=1,
                head=5)
    for row in range(rows):
        f.arrow(x + CELL, cy + row * CELL + CELL / 2, cx, cy + row * CELL + CELL / 2, colour="strong blue", line=1, head=5)


def draw():
    f = Figure(700, 316, "For one step, a thread with one element of C loads 2 floats for 1 product; with a column of 8 it "
                         "loads 9 floats for 8 products; with a patch of 8 x 8 it loads 16 floats for 64 products.")
    data = [(30, 1, 1, "tiled_32", "2 loads, 1 product", "2 loads per product"),
            (240, 8, 1, "register_1d", "8 + 1 loads, 8 products", "9/8 loads per product"),
            (460, 8, 8, "register_2d", "8 + 8 loads, 64 products", "1/4 load per product")]
    for x, rows, columns, name, loads, per_product in data:
        panel(f, x, 60, rows, columns, name)
        f.text(x, 246, loads, size=12)
        f.text(x, 266, per_product, size=13, colour="strong green", bold=True)
    f.text(30, 300, "One step i of a thread. Blue: from a_tile, orange: from b_tile, in shared memory. Green: its sums.",
           size=12)
    return f
