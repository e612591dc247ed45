"""Figure of engine: the path of a model through the passes to a plan, and what a call does with the plan."""
from svg import Figure

PASSES = [("constants folded", "yellow", "bit-equal"), ("dead nodes removed", "yellow", "bit-equal"),
          ("batch norm folded", "green", "rounded once more"), ("fused", "blue", "sums in another order"),
          ("kernels chosen", "blue", "measured, or by rules"), ("memory planned", "purple", "one arena")]


def box(f, x, y, width, text, colour):
    f.rect(x, y, width, 30, fill=colour, stroke="strong grey", line=0.5)
    f.text(x + width / 2, y + 20, text, size=12, anchor="middle")


def draw():
    f = Figure(680, 330, "A model of ONNX goes through six passes and becomes a plan; a call finds its shape and its graph")
    f.text(20, 24, "built once", bold=True)
    box(f, 20, 36, 120, "model.onnx", "grey")
    for i, (name, colour, note) in enumerate(PASSES):
        y = 36 + 38 * i
        box(f, 190, y, 160, name, colour)
        f.text(358, y + 20, note, size=11)
        if i:
            f.line(270, y - 8, 270, y, colour="strong grey")
    f.line(140, 51, 190, 51, colour="strong grey")
    box(f, 190, 36 + 38 * 6 + 6, 160, "model.nnplan", "grey")
    f.line(270, 36 + 38 * 5 + 30, 270, 36 + 38 * 6 + 6, colour="strong grey")
    f.text(500, 24, "for every call", bold=True)
    for i, (name, colour) in enumerate([("height and width: a Model", "purple"), ("batch: a CUDA graph", "teal"),
                                        ("copy in, launch, copy out", "teal")]):
        box(f, 500, 36 + 52 * i, 170, name, colour)
        if i:
            f.line(585, 36 + 52 * i - 22, 585, 36 + 52 * i, colour="strong grey")
    f.text(500, 210, "A new size is imported", size=11)
    f.text(500, 226, "again, and borrows the", size=11)
    f.text(500, 242, "weights and the arena", size=11)
    f.text(500, 258, "of the largest.", size=11)
    return f
