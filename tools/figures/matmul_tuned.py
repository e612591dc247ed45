"""Figure of matmul_tuned: float4 loads and banks, the corner of a warp, and double buffering over time."""
from svg import Figure

LANES = ["blue", "orange", "green", "purple", "teal", "yellow", "red", "grey"]


def banks(f, x, y):
    """Which banks the float4 of 8 lanes lie in: 8 floats apart, and side by side."""
    f.text(x, y, "1. Banks of the float4 that lanes 0 to 7 load of b_tile", bold=True)
    cell = (9, 15)

    def row(at, lanes, step):
        lane_of = {}
        for i, lane in enumerate(lanes):
            for j in range(4):
                lane_of[i * step + j] = lane
        f.grid(x, at, 1, 32, cell=cell, fill=lambda r, c: LANES[lane_of[c]] if c in lane_of else None)
        for i, lane in enumerate(lanes):
            f.text(x + i * step * 9 + 18, at + 12, lane, size=11, anchor="middle")

    f.text(x, y + 22, "bank 0", size=11)
    f.text(x + 288, y + 22, "31", size=11, anchor="end")
    row(y + 28, range(4), 8)
    row(y + 46, range(4, 8), 8)
    f.text(x + 304, y + 50, "vectorised: a patch is 8 floats wide, 2 turns", size=12, colour="strong red")
    row(y + 74, range(8), 4)
    f.text(x + 304, y + 86, "conflict_free: pieces 4 floats wide, 1 turn", size=12, colour="strong green")


def warps(f, x, y):
    """The part of a 128 x 128 tile that a warp computes, and what it needs of A's and B's tile for one product."""
    f.text(x, y, "2. The part of a warp, for one product", bold=True)
    side = 96

    def tile(at, width, height, colour, label, needs):
        f.rect(at + 14, y + 32, side, side, stroke="strong grey")
        f.rect(at + 14, y + 18, side * width / 128, 8, fill="strong orange")
        f.rect(at, y + 32, 8, side * height / 128, fill="strong blue")
        f.rect(at + 14, y + 32, side * width / 128, side * height / 128, fill="green")
        f.text(at, y + 148, label, size=12)
        f.text(at, y + 164, needs, size=12, colour=colour)

    tile(x, 128, 16, "strong red", "16 x 128", "16 + 128 = 144 floats")
    tile(x + 160, 32, 64, "strong green", "64 x 32", "64 + 32 = 96 floats")


def pipeline(f, x, y):
    """One pair of tiles, and two: what happens when."""
    f.text(x, y, "3. Three steps along K over time", bold=True)

    def lane(at, name, boxes):
        f.text(x, at + 13, name, size=12)
        for begin, width, colour, label in boxes:
            f.rect(x + 92 + begin, at, width, 19, fill=colour, label=label, size=11)

    load, multiply = 62, 70
    f.text(x, y + 24, "one pair of tiles: warp_tiled", size=12, colour="strong red")
    step = load + multiply
    lane(y + 32, "load", [(i * step, load, "blue", "load %d" % i) for i in range(3)])
    lane(y + 54, "multiply", [(i * step + load, multiply, "green", "multiply %d" % i) for i in range(3)])
    f.text(x, y + 96, "two pairs of tiles: double_buffered", size=12, colour="strong green")
    lane(y + 104, "load", [(0, load, "blue", "load 0")] + [(load + i * multiply, load, "blue", "load %d" % (i + 1))
                                                          for i in range(2)])
    lane(y + 126, "multiply", [(load + i * multiply, multiply, "green", "multiply %d" % i) for i in range(3)])
    f.arrow(x + 92, y + 160, x + 92 + 3 * step, y + 160, colour="strong grey")
    f.text(x + 92 + 3 * step + 8, y + 164, "time", size=12, colour="strong grey")


def draw():
    f = Figure(700, 530, "Eight lanes whose float4 are 8 floats apart use half of the banks, twice; side by side they use "
                         "all banks once. A warp of 64 x 32 needs fewer floats than one of 16 x 128. With two pairs of "
                         "tiles the next load runs during the products.")
    banks(f, 20, 26)
    f.line(20, 132, 680, 132, colour="grey")
    warps(f, 20, 156)
    f.text(390, 200, "green: elements of C", size=12)
    f.text(390, 220, "blue: a column of a_tile", size=12)
    f.text(390, 240, "orange: a row of b_tile", size=12)
    f.line(20, 330, 680, 330, colour="grey")
    pipeline(f, 20, 354)
    return f
