"""Figure of pooling: what a tile of four windows of 3 x 3 with stride 2 loads, and how many windows each input is in."""
from svg import Figure

CELL = 28


def uses(i):
    """Of two windows of three, two apart, how many have element i of five."""
    return 2 if i == 2 else 1


def forward(f):
    f.text(20, 26, "Forward: 2 x 2 windows of 3 x 3, stride 2", bold=True)
    f.text(20, 48, "inputs: in so many of the four windows", size=12)
    inputs = f.grid(20, 60, 5, 5, cell=CELL, fill=lambda r, c: "grey" if c == 0 else "blue",
                    label=lambda r, c: uses(r) * uses(c), stroke="strong grey", line=0.5)
    for r in (0, 2):
        for c in (0, 2):
            f.rect(*inputs.corner(r, c), 3 * CELL, 3 * CELL, stroke=("strong red", "strong green", "strong orange",
                                                                    "strong purple")[r + c // 2], line=2)
    outputs = f.grid(210, 102, 2, 2, cell=CELL, fill="orange", label=lambda r, c: "y%d%d" % (r, c), size=11)
    f.arrow(inputs.x + inputs.width + 8, 130, outputs.x - 8, 130)
    f.legend(20, 222, [("grey", "one float"), ("blue", "one float4 per row")])
    f.text(20, 246, "5 x 5 inputs are loaded, not 4 x 9", size=12)


def backward(f):
    f.text(370, 26, "Backward: who may have won", bold=True)
    f.text(370, 48, "inputs: in how many windows they are", size=12)
    count = lambda i: 1 + i % 2
    f.grid(370, 60, 5, 5, cell=CELL, fill=lambda r, c: (None, "blue", "blue", "teal")[r % 2 * 2 + c % 2],
           label=lambda r, c: count(r) * count(c), stroke="strong grey", line=0.5)
    lines = ("An input adds dy of those windows", "whose argmax is its own place.", "Nobody else writes its dx:",
             "no atomics, one order.")
    for i, text in enumerate(lines):
        f.text(530, 82 + 20 * i, text, size=11)
    f.text(370, 222, "padding 1: even rows are the middle of", size=12)
    f.text(370, 238, "one window, odd rows the edge of two", size=12)


def draw():
    f = Figure(740, 260, "Four windows of 3 x 3 pixels, two apart, cover five by five inputs, of which each is used by one, two "
               "or four; in the backward pass an input asks the one, two or four windows that it is in")
    forward(f)
    backward(f)
    return f
