"""Figure of int8: what a layer computes with integers, and how two groups of warps take turns at the tensor cores."""
from svg import Figure


def box(f, x, y, width, text, below, fill):
    f.rect(x, y, width, 34, fill=fill, stroke="strong grey", line=0.5)
    f.text(x + width / 2, y + 21, text, size=12, anchor="middle")
    f.text(x + width / 2, y + 52, below, size=11, anchor="middle")


def layer(f, y):
    f.text(20, y, "a layer: integers up to the last rounding", bold=True)
    row = [(60, "x", "uint8", "blue"), (120, "x w", "exact, 16 bits", "teal"), (130, "sum + bias", "exact, int32", "teal"),
           (130, "times factor", "float32", "yellow"), (120, "round, ReLU", "0 to 255", "green"), (60, "y", "uint8", "blue")]
    x = 20
    for width, text, below, fill in row:
        box(f, x, y + 12, width, text, below, fill)
        x += width + 12


def group(f, y, name, parts):
    f.text(20, y + 19, name, size=12)
    x = 110
    for width, text, fill in parts:
        f.rect(x, y, width, 28, fill=fill, stroke="strong grey", line=0.5)
        if text:
            f.text(x + width / 2, y + 18, text, size=11, anchor="middle")
        x += width


def turns(f, y):
    f.text(20, y, "two groups of warps take turns: one multiplies while the other one rounds", bold=True)
    products, rounding = (120, "products", "teal"), (84, "rounding", "yellow")
    wait = (36, "", "paper")
    group(f, y + 14, "group 1", [products, rounding, wait, products, rounding, wait])
    group(f, y + 50, "group 2", [(120, "", "paper"), products, rounding, wait, products, rounding])


def draw():
    f = Figure(700, 200, "A layer with int8: exact products and sums, one factor, one rounding; and two groups of warps in turns")
    layer(f, 24)
    turns(f, 116)
    return f
