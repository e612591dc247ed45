"""Figure of conv2d_fft: overlapping tiles, the half of a spectrum that is kept, and the products per frequency."""
from svg import Figure

CELL, TILE, TAPS = 24, 8, 3


def tiles(f, x, y):
    """A row of inputs in two tiles of 8 that overlap by two; of each tile's eight results six are kept."""
    step = TILE - TAPS + 1
    f.text(x, y - 12, "A filter of 3 taps, tiles of 8 inputs", bold=True)
    f.grid(x, y, 1, step + TILE, cell=CELL, fill=lambda r, c: "yellow" if step <= c < TILE else "blue",
           label=lambda r, c: c)
    f.text(x + (step + TILE) * CELL + 10, y + 16, "inputs; 6 and 7 are in both tiles", size=12)
    for tile in range(2):
        left, top = x + tile * step * CELL, y + 64 + tile * 70
        f.brace(x + tile * step * CELL, top - 4, TILE * CELL, "top", "tile %d" % tile, colour="strong blue")
        f.grid(left, top, 1, TILE, cell=CELL, fill=lambda r, c: "green" if c < step else "red",
               label=lambda r, c: tile * step + c if c < step else "×")
    right = x + TILE * CELL
    f.text(right + 8, y + 64 + 16, "results: a filter at × leaves the tile, and the", size=12)
    f.text(right + 8, y + 64 + 32, "transform continues it where the tile starts", size=12)


def spectrum(f, x, y):
    """Which of 8 x 8 frequencies are kept."""
    def fill(u, v):
        if v in (0, TILE // 2):
            return "strong orange" if u <= TILE // 2 else "grey"
        return "orange" if v < TILE // 2 else "grey"

    f.text(x, y - 12, "The spectrum of 8 x 8 real numbers", bold=True)
    g = f.grid(x, y, TILE, TILE, cell=19, fill=fill)
    left = x + g.width + 12
    f.legend(left, y + 14, [("orange", "24 kept"), ("strong orange", "2 columns of 5 kept"),
                            ("grey", "conjugates of these")], column=True)
    f.text(left, y + 92, "8 · 8 / 2 + 2 = 34", size=12)
    f.text(left, y + 108, "complex numbers", size=12)


def products(f, x, y):
    """One matrix product for each frequency."""
    f.text(x, y - 12, "For each frequency a product", bold=True)

    def stack(left, top, width, height, colour, name):
        for back in (2, 1, 0):
            f.rect(left + 6 * back, top - 6 * back, width, height, fill=colour)
        f.text(left + width / 2, top + height / 2 + 5, name, anchor="middle", size=12)

    top = y + 30
    stack(x, top, 52, 84, "orange", "conj(W)")
    f.text(x + 26, top + 100, "C x K", anchor="middle", size=11)
    f.text(x + 74, top + 46, "·", size=18)
    stack(x + 88, top, 92, 84, "blue", "X")
    f.text(x + 134, top + 100, "C x tiles", anchor="middle", size=11)
    f.arrow(x + 200, top + 40, x + 228, top + 40)
    stack(x + 236, top, 92, 52, "green", "Y")
    f.text(x + 282, top + 68, "K x tiles", anchor="middle", size=11)


def draw():
    f = Figure(700, 430, "Overlapping tiles: of each tile's results those are kept that the wrap-around does not reach. "
               "Of a real tile's spectrum a half is kept. The products are one matrix product for each frequency.")
    tiles(f, 24, 40)
    spectrum(f, 24, 250)
    products(f, 348, 250)
    return f
