"""Figure of transpose: the sectors that a warp touches, and the banks of a column of the tile."""
from svg import Figure

LANES, SHOWN = 32, 8  # of the warp's 32 accesses down a column, this many are drawn


def sectors(f):
    """A sector of 32 bytes is 8 floats."""
    f.text(20, 28, "A warp along a row", bold=True)
    row = f.grid(20, 60, 1, LANES, cell=10.5, fill=lambda r, c: "strong blue", stroke="paper")
    for sector in range(LANES // 8):
        x, y = row.corner(0, 8 * sector)
        f.rect(x, y - 2, 84, 14.5, stroke="ink", line=1.5)
    f.text(20, 50, "32 neighbouring floats", size=12)
    f.brace(row.x, row.y + 15, 84, "bottom", "sector, 32 B")
    f.text(20, 116, "4 sectors, 100 % of their bytes needed", size=13, colour="strong blue")

    f.text(380, 28, "A warp down a column", bold=True)
    f.text(380, 50, "one float in each of 32 rows", size=12)
    for lane in range(SHOWN):
        y = 60 + lane * 13
        f.grid(380, y, 1, 24, cell=(9, 9), fill=lambda r, c: "strong red" if c == 10 else "red" if 8 <= c < 16 else None,
               stroke="grey")
        f.rect(380 + 8 * 9, y, 72, 9, stroke="ink", line=1.5)
    f.text(604, 70, "thread 0", size=11)
    f.text(604, 83, "thread 1", size=11)
    f.text(604, 161, "thread 7", size=11)
    f.text(604, 122, "...", size=11)
    f.text(380, 184, "32 sectors, 12.5 % of their bytes needed", colour="strong red")


def banks(f, x, y, pad):
    """Row r of the tile begins 32 + pad words after row r - 1: element (r,0) lies in bank r * (32 + pad) % 32."""
    rows, columns = 8, 16
    bank = lambda r, c: (r * (LANES + pad) + c) % LANES
    tile = f.grid(x, y, rows, columns, cell=(19, 16), size=10, label=lambda r, c: bank(r, c),
                  fill=lambda r, c: None if c else ("strong green" if pad else "strong red"))
    f.text(x + tile.width + 6, y + 12, "...", size=11)
    f.text(x, y + tile.height + 14, "...", size=11)
    return tile


def draw():
    f = Figure(700, 440, "Above: a warp that reads along a row touches 4 sectors, down a column 32. Below: the banks of "
                         "the tile in shared memory; a column of 32 x 32 floats lies in one bank, of 32 x 33 in 32 banks.")
    sectors(f)
    f.line(20, 202, 680, 202, colour="grey")
    f.text(20, 226, "Banks of tile[32][32]", bold=True)
    banks(f, 20, 244, 0)
    f.text(20, 406, "Column 0 lies in bank 0: 32 turns for one read.", colour="strong red", size=12)
    f.text(370, 226, "Banks of tile[32][33]", bold=True)
    banks(f, 370, 244, 1)
    f.text(370, 406, "Column 0 lies in 32 banks: one turn.", colour="strong green", size=12)
    f.text(20, 428, "The number in a cell is its bank: its position in words modulo 32. The first 8 rows and 16 columns "
                    "are drawn.", size=11)
    return f
