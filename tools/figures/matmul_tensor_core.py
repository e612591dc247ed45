"""Figure of matmul_tensor_core: operand bytes per clock, the swizzle, and copies that run ahead of the products."""
from svg import Figure

PEAK = 2048  # multiply-adds of bfloat16 per clock and multiprocessor
SHARED = 128  # bytes per clock from shared memory


def bytes_per_clock(rows, cols):
    """A warp's, or warpgroup's, rows x cols sums: 2-byte operands of one step along K, per multiply-add."""
    return 2 * (rows + cols) / (rows * cols) * PEAK


VERSIONS = (("wmma_tiled", 16, 16), ("wmma_fragments", 64, 32), ("mma", 64, 64), ("wgmma", 64, 256))


def roof(f):
    f.text(20, 26, "Bytes per clock from shared memory to feed all tensor cores of a multiprocessor", bold=True)
    left, scale = 230, 0.72
    for i, (name, rows, cols) in enumerate(VERSIONS):
        y, need = 52 + 28 * i, bytes_per_clock(rows, cols)
        f.text(left - 8, y + 15, "%s, %d x %d" % (name, rows, cols), size=12, anchor="end")
        f.rect(left, y, need * scale, 20, fill="red" if need > SHARED else "green")
        f.text(left + need * scale + 6, y + 15, "%d" % need, size=12)
    f.line(left + SHARED * scale, 44, left + SHARED * scale, 164, colour="ink", line=2, dash=True)
    f.text(left + SHARED * scale + 64, 158, "dashed: shared memory delivers 128", size=12)


def swizzle(f, x, title, place, note, colour):
    f.text(x, 212, title, size=12)
    grid = f.grid(x, 222, 8, 8, cell=(34, 17), size=11, label=lambda r, p: place(r, p),
                  fill=lambda r, p: colour if place(r, p) == 2 else None)
    f.text(x, 376, note, size=12)
    return grid


def ring(f):
    f.text(20, 412, "Copies (of stage 0 to 3) and products over time", bold=True)
    left, step = 150, 44
    for row, (name, copies, products) in enumerate((
            ("one stage", [(2 * i, 0) for i in range(6)], [(2 * i + 1, 0) for i in range(6)]),
            ("ring of 4", [(i, i % 4) for i in range(12)], [(i + 1, i % 4) for i in range(11)]))):
        y = 430 + 66 * row
        f.text(20, y + 28, name, size=12)
        f.text(left - 8, y + 15, "copy", size=11, anchor="end")
        f.text(left - 8, y + 41, "multiply", size=11, anchor="end")
        for (t, s) in copies:
            f.rect(left + step * t, y, step - 2, 22, fill="blue", label=str(s), size=11)
        for (t, s) in products:
            f.rect(left + step * t, y + 26, step - 2, 22, fill="green", label=str(s), size=11)


def draw():
    f = Figure(700, 566, "Larger tiles per warp need fewer operand bytes per clock; the swizzle spreads one chunk of eight rows "
               "over all banks; a ring of stages lets copies run while products do")
    roof(f)
    f.text(20, 192, "A tile of 64 columns: 8 chunks of 16 bytes per row; a column below is 4 banks", bold=True)
    swizzle(f, 20, "chunk c of row r at position c", lambda r, p: p, "chunk 2 of 8 rows: the same 4 banks", "red")
    swizzle(f, 380, "at position c ^ r (swizzled)", lambda r, p: p ^ r, "chunk 2 of 8 rows: all 32 banks", "green")
    ring(f)
    return f
