"""Figure of attention: which tile of scores exists, what a query keeps, and where mma leaves the scores."""
from svg import Figure

TILES, ROW, NOW = 6, 2, 3


def tiles(f):
    f.text(20, 26, "Scores of one head, S x S, in tiles", bold=True)
    def fill(r, c):
        if r != ROW:
            return None
        return "strong blue" if c == NOW else "grey" if c < NOW else "blue"
    f.text(120, 56, "keys", size=12)
    grid = f.grid(120, 96, TILES, TILES, cell=24, fill=fill)
    f.grid(120, 64, 1, TILES, cell=24, fill=lambda r, c: "green" if c == NOW else None)
    f.text(276, 80, "K and V: one tile of each", size=12)
    f.text(276, 94, "in shared memory", size=12)
    f.grid(88, 96, TILES, 1, cell=24, fill=lambda r, c: "green" if r == ROW else None)
    f.text(20, 112, "queries", size=12)
    f.text(20, 162, "a block", size=12)
    f.text(276, 162, "dark: the only tile of scores that exists", size=12)
    f.arrow(*grid.center(ROW, NOW), grid.center(ROW, NOW + 2)[0], grid.center(ROW, NOW)[1], colour="ink")
    f.text(276, 190, "grey: already used, nothing of it is stored", size=12)
    f.text(276, 218, "light: still to come; empty: other blocks", size=12)


def state(f):
    f.text(20, 278, "One query keeps", bold=True)
    f.rect(20, 290, 74, 26, fill="orange", label="largest m")
    f.rect(98, 290, 74, 26, fill="orange", label="total")
    f.rect(176, 290, 110, 26, fill="orange", label="sum (D floats)")
    f.text(300, 300, "new tile: m' = max(m, its scores); times exp(m - m'),", size=12)
    f.text(300, 316, "then add exp(score - m') and exp(score - m') v", size=12)


def registers(f):
    f.text(20, 352, "mma: the lane that holds each number (rows 0 to 7 of 16)", bold=True)
    lane = lambda r, c: r * 4 + c % 8 // 2
    colour = ("blue", "orange", "green", "purple")
    fill = lambda r, c: colour[c % 8 // 2]
    cell = (19, 14)
    for i in range(2):
        f.grid(20 + 158 * i, 380, 8, 8, cell=cell, fill=fill, stroke="paper", size=10, label=lane)
        f.text(20 + 158 * i, 374, "scores, accumulator %d" % i, size=12)
    f.arrow(338, 436, 368, 436)
    f.text(376, 374, "p, left operand of p v", size=12)
    f.grid(376, 380, 8, 16, cell=cell, fill=fill, stroke="paper", size=10, label=lane)
    f.text(20, 512, "Each lane rounds its own scores to bfloat16 and packs them in pairs: no shared memory.", size=12)


def draw():
    f = Figure(700, 526, "A block of queries goes over tiles of keys, and only one tile of scores exists at a time; a query keeps "
               "its maximum, total and weighted sum; in mma the lanes that hold scores are those that need p")
    tiles(f)
    state(f)
    registers(f)
    return f
