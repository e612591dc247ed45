"""Figure of onnx_import: element 6 of an array of 3 x 4, its index, and where it is in three arrays, by their strides."""
from svg import Figure

ROWS, COLUMNS, CHOSEN = 3, 4, (1, 2)


def array(f, x, title, rows, columns, places, strides, formula, where):
    """A grid whose cells are numbered as they lie in memory; the place that is read is strong."""
    f.text(x, 44, title, bold=True, size=12)
    f.text(x, 62, "strides " + strides, size=11)
    g = f.grid(x, 74, rows, columns, cell=34, label=lambda r, c: r * columns + c,
               fill=lambda r, c: "orange" if (r, c) == where else "blue" if (r, c) in places else "paper")
    f.text(x, 74 + 34 * 4 + 22, formula, size=11, mono=True)
    return g


def draw():
    f = Figure(700, 262, "Element 6 of a result of 3 x 4 has the index (1,2). By its strides each array says where it reads")
    f.text(20, 22, "element i = 6 of (3,4): i / 4 = 1, i % 4 = 2, the index (1,2)", size=13)
    row = {(CHOSEN[0], c) for c in range(COLUMNS)}
    array(f, 20, "a (3,4)", ROWS, COLUMNS, row, "(4,1)", "1*4 + 2*1 = 6", CHOSEN)
    array(f, 190, "b (3,1), repeated", ROWS, 1, set(), "(1,0)", "1*1 + 2*0 = 1", (1, 0))
    array(f, 360, "x (4,3), transposed", COLUMNS, ROWS, {(r, CHOSEN[0]) for r in range(COLUMNS)}, "(1,3)",
          "1*1 + 2*3 = 7", (2, 1))
    array(f, 530, "z (3,4), backwards", ROWS, COLUMNS, {(CHOSEN[0], c) for c in range(COLUMNS)}, "(4,-1), offset 3",
          "3 + 1*4 - 2*1 = 5", (1, 1))
    f.legend(20, 250, [("orange", "what element 6 reads"), ("blue", "what the other elements of its row read")])
    return f
