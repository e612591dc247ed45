"""Figure of idx_files: the bytes at the beginning of MNIST's images, and what four of them are worth in either order."""
from svg import Figure

HEADER = ["00", "00", "08", "03", "00", "00", "ea", "60", "00", "00", "00", "1c", "00", "00", "00", "1c"]


def draw():
    f = Figure(700, 330, "The 16 bytes of the header: a magic number and three sizes of four bytes each, then pixels. The "
                         "bytes 00 00 ea 60 are 60000 with the most significant byte first, and 1625948160 in reverse.")
    colours = ["grey", "blue", "green", "orange"]
    f.text(20, 26, "The file", bold=True)
    g = f.grid(20, 66, 1, 20, cell=33, fill=lambda r, c: colours[c // 4] if c < 16 else None,
               label=lambda r, c: HEADER[c] if c < 16 else ".." if c == 19 else "00", size=13, mono=True)
    for byte in (0, 4, 8, 12, 16):
        f.text(g.corner(0, byte)[0] + 16.5, 58, byte, size=11, anchor="middle", colour="strong grey")
    for i, text in enumerate(("type, rank", "60000 images", "28 rows", "28 columns", "pixels")):
        f.brace(g.corner(0, 4 * i)[0] + 3, 102, 126, "bottom", text, size=12)

    def number(x, title, order, colour, total):
        f.text(x, 166, title, bold=True)
        for i, byte in enumerate(order):
            f.rect(x + 76 * i, 180, 40, 28, fill=colour)
            f.text(x + 76 * i + 20, 199, byte, size=13, anchor="middle", mono=True)
            f.text(x + 76 * i + 20, 226, "× 2", size=12, anchor="end")
            f.text(x + 76 * i + 21, 220, (24, 16, 8, 0)[i], size=10)
            if i:
                f.text(x + 76 * i - 18, 199, "+", size=13, anchor="middle")
        f.text(x, 254, total, size=13)

    number(20, "most significant byte first", HEADER[4:8], "blue", "= 234 × 256 + 96 = 60000")
    number(370, "copied into an int of a PC", HEADER[7:3:-1], "red", "= 96 × 16777216 + 234 × 65536")
    f.text(370, 274, "= 1625948160", size=13, colour="strong red")
    f.text(20, 312, "Pixel (row, column) of image n is byte 16 + 784 n + 28 row + column.", size=13)
    return f
