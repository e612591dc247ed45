"""Figure of conv2d_depthwise: which inputs a strip of outputs shares, and which taps reach which pixel of a transposed
convolution of stride 2."""
from svg import Figure

PHASES = ("blue", "orange", "green", "purple")  # by 2 * (row % 2) + column % 2


def strip(f):
    f.text(20, 26, "Depthwise, 3 x 3: a thread, four outputs", bold=True)
    inputs = f.grid(20, 56, 6, 5, cell=26, fill=lambda r, c: "blue" if 1 <= c <= 3 else None,
                    label=lambda r, c: min(r + 1, 3, 6 - r) if 1 <= c <= 3 else "", stroke="strong grey", line=0.5)
    f.text(20, 48, "inputs: used by so many of the four", size=12)
    outputs = f.grid(250, 82, 4, 1, cell=26, fill="orange", label=lambda r, c: "y%d" % r, size=12)
    for r in range(4):
        x, y = outputs.center(r, 0)
        f.arrow(inputs.x + inputs.width + 6, inputs.center(r + 1, 4)[1], x - 15, y)
    f.text(20, 232, "6 x 3 loads for 4 x 9 products", size=12)


def transposed(f):
    f.text(370, 26, "Transposed, 3 x 3, stride 2, padding 1", bold=True)
    f.text(370, 48, "outputs: how many of the nine taps reach them", size=12)
    taps = lambda i: 1 if i % 2 == 0 else 2
    grid = f.grid(370, 56, 6, 6, cell=26, fill=lambda r, c: PHASES[2 * (r % 2) + c % 2],
                  label=lambda r, c: taps(r) * taps(c), stroke="strong grey", line=0.5)
    for r in (0, 2, 4):
        for c in (0, 2, 4):
            f.rect(*grid.corner(r, c), 26, 26, stroke="ink", line=2)
    f.text(370, 232, "bold: where an input lies, two pixels apart", size=12)
    for i, name in enumerate(("even row, even column", "even row, odd column", "odd row, even column",
                              "odd row, odd column")):
        f.rect(544, 62 + 24 * i, 14, 14, fill=PHASES[i])
        f.text(563, 74 + 24 * i, name, size=11)
    f.text(544, 176, "one phase: the same taps", size=11)


def draw():
    f = Figure(700, 246, "A strip of four outputs of a 3 x 3 filter reads 18 inputs, each used by one to three outputs; a "
               "transposed convolution of stride 2 reaches its outputs by one, two, two or four taps")
    strip(f)
    transposed(f)
    return f
