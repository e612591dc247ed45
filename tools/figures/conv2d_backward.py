"""Figure of conv2d_backward: which taps meet which inputs at stride 2, and how the sum over pixels is split."""
from svg import Figure


def phases(f, x, y):
    """A row of outputs above a row of inputs, 3 taps, stride 2, padding 1: output p reads inputs 2p - 1, 2p, 2p + 1."""
    f.text(x, y, "1. Gradient of the input, 3 taps, stride 2, padding 1: which outputs read input h?", bold=True)
    cell, inputs, outputs = 34, 9, 5
    f.text(x, y + 44, "dy", size=13)
    f.text(x, y + 124, "dx", size=13)
    top = f.grid(x + 60, y + 26, 1, outputs, cell=(2 * cell, 28), fill="grey", label=lambda r, c: "p = %d" % c)
    low = f.grid(x + 60 + cell / 2, y + 106, 1, inputs, cell=(cell, 28), label=lambda r, c: c,
                 fill=lambda r, c: "orange" if c % 2 else "blue")
    for p in range(outputs):
        for r in range(3):
            h = 2 * p - 1 + r
            if not 0 <= h < inputs:
                continue
            colour = "strong orange" if h % 2 else "strong blue"
            x1, x2 = top.center(0, p)[0] + (r - 1) * 14, low.center(0, h)[0]
            f.arrow(x1, y + 56, x2, y + 104, colour=colour, line=1.2, head=6)
    right = x + 440
    f.text(right, y + 46, "even h: tap 1 of output h / 2", size=12, colour="strong blue")
    f.text(right, y + 68, "odd h: tap 0 of output (h + 1) / 2", size=12, colour="strong orange")
    f.text(right, y + 86, "and tap 2 of output (h - 1) / 2", size=12, colour="strong orange")
    f.text(right, y + 112, "Each phase is a convolution", size=12)
    f.text(right, y + 128, "of stride 1 with its own taps.", size=12)


def split(f, x, y):
    """dy (filters x pixels) times x (pixels x weights), the pixels in four splits."""
    f.text(x, y, "2. Gradient of the filters: the sum over pixels is long, the result small", bold=True)
    colours = ["blue", "orange", "green", "purple"]
    f.grid(x, y + 34, 1, 4, cell=(56, 30), fill=lambda r, c: colours[c], label=lambda r, c: "split %d" % c, size=11)
    f.text(x, y + 26, "dy: filters x pixels", size=12)
    f.text(x + 234, y + 54, "·", size=18)
    f.grid(x + 250, y + 14, 4, 1, cell=(34, 26), fill=lambda r, c: colours[r])
    f.text(x + 292, y + 60, "x: pixels", size=12)
    f.text(x + 292, y + 76, "x weights", size=12)
    f.text(x, y + 92, "One tile of dw, one block: it adds up", size=12)
    f.text(x, y + 108, "200,704 pixels, and 123 of 132", size=12)
    f.text(x, y + 124, "multiprocessors are idle.", size=12)

    at = x + 400
    parts = f.grid(at, y + 24, 4, 1, cell=(34, 26), fill=lambda r, c: colours[r])
    f.text(at - 6, y + 144, "parts", size=12)
    f.rect(at + 190, y + 24, 50, 40, fill="grey", label="dw", size=12)
    f.rect(at + 190, y + 88, 50, 40, fill="grey", label="dw", size=12)
    for i in range(4):
        cx, cy = parts.center(i, 0)
        f.arrow(cx + 18, cy, at + 188, y + 36 + 6 * i, colour="strong red", line=1.2, head=6)
    f.arrow(at + 40, y + 122, at + 188, y + 112, colour="strong green", line=2)
    f.text(at + 46, y + 20, "atomicAdd: any order", size=12, colour="strong red")
    f.text(at + 44, y + 152, "second kernel: 0, 1, 2, 3, every time", size=12, colour="strong green")


def draw():
    f = Figure(700, 362, "With stride 2 an even input is read by one tap and an odd input by two others, so that each "
                         "phase is a convolution of its own. The sum over pixels is split among blocks, whose parts "
                         "are added by atomics in any order or by a second kernel in a fixed one.")
    phases(f, 20, 26)
    f.line(20, 172, 680, 172, colour="grey")
    split(f, 20, 198)
    return f
