"""Figure of batches: which bytes of the images the lanes of a warp read, and which floats they write."""
from svg import Figure

ORDER = [5, 2, 7]
COLOURS = ["blue", "orange", "green"]


def gather(f):
    f.text(20, 26, "A batch is gathered", bold=True)
    f.text(20, 60, "pixels (N,P), bytes", size=12)
    f.grid(20, 70, 9, 8, cell=(18, 18), fill=lambda r, c: COLOURS[ORDER.index(r)] if r in ORDER else None)
    for r in range(9):
        f.text(170, 83 + 18 * r, r, size=11)
    f.text(214, 60, "order", size=12)
    f.grid(218, 106, 3, 1, cell=(24, 30), fill=lambda r, c: COLOURS[r], label=lambda r, c: ORDER[r], size=12)
    f.text(296, 60, "x (B,P), floats", size=12)
    x = f.grid(296, 106, 3, 8, cell=(46, 30), fill=lambda r, c: COLOURS[r], label="float", size=10)
    for b, image in enumerate(ORDER):
        f.arrow(182, 79 + 18 * image, 214, 121 + 30 * b)
        f.arrow(244, 121 + 30 * b, 292, 121 + 30 * b)
    f.text(296, 220, "each float = (byte / 255 − mean) / deviation", size=12)


def lanes(f, y, name, text, width, step, colour):
    f.text(20, y + 14, name, bold=True)
    f.text(20, y + 32, text, size=12)
    shown = 8
    for lane in range(shown):
        f.rect(230 + lane * step, y, width, 20, fill=colour)
        f.text(230 + lane * step + width / 2, y + 14, lane, size=10, anchor="middle", colour="paper")
    return 230 + (shown - 1) * step + width


def draw():
    f = Figure(700, 420, "The images of a batch lie scattered, each in one piece. rows: neighbouring lanes read bytes an "
                         "image apart. elements: neighbouring bytes. warps: four bytes per lane.")
    gather(f)
    f.line(20, 240, 680, 240, colour="grey")
    f.text(230, 262, "bytes that lanes 0 to 7 read with one load", size=12)
    lanes(f, 274, "rows", "one sector per lane", 14, 60, "strong red")
    f.text(674, 288, "...", size=12)
    lanes(f, 324, "elements", "32 lanes: one sector", 14, 15, "strong blue")
    f.text(366, 338, "1 byte per lane, 4 bytes stored", size=12)
    lanes(f, 374, "warps, gather", "32 lanes: four sectors", 30, 31, "strong green")
    f.text(494, 388, "4 bytes per lane,", size=12)
    f.text(494, 405, "16 bytes stored", size=12)
    return f
