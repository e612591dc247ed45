"""Figure of pytorch: four ways to put a library's kernel between two kernels of the program that calls it."""
from svg import Figure

W, H, LEFT = 96, 24, 110  # of a kernel; where time begins


def kernel(f, column, y, label, colour):
    f.rect(LEFT + column * (W + 22), y, W, H, fill=colour, label=label, size=11)
    return LEFT + column * (W + 22), y


def panel(f, y, title, library):
    """library: the column of the library's kernel, and whether it is in the program's stream."""
    column, given = library
    f.text(20, y, title, bold=True)
    f.text(20, y + 30, "program", size=12)
    first = kernel(f, 0, y + 14, "write x", "blue")
    last = kernel(f, 1 if column == 0 else 2, y + 14, "read y", "blue")
    if not given:
        f.text(20, y + 64, "library", size=12)
    own = kernel(f, column, y + 14 if given else y + 48, "y = f(x)", "orange")
    return first, own, last


def draw():
    f = Figure(700, 420, "Four ways to order a library's kernel. None: it runs beside the kernel that writes x. Wait: the "
                         "host waits twice. Events: one stream waits for the other, twice. Given: one stream.")
    panel(f, 26, "none: the kernel runs beside the one that writes x", (0, False))
    (x0, y0), (x1, y1), (x2, _) = panel(f, 128, "wait: the host waits until x is there, and until y is there", (1, False))
    f.text(LEFT + 3 * (W + 22), y0 + 16, "the host: launch, wait, launch,", size=12, colour="strong red")
    f.text(LEFT + 3 * (W + 22), y0 + 34, "wait, launch", size=12, colour="strong red")
    (x0, y0), (x1, y1), (x2, _) = panel(f, 230, "events: a stream waits for a mark in the other one", (1, False))
    f.arrow(x0 + W, y0 + H, x1 + 4, y1 - 2, colour="strong green")
    f.arrow(x1 + W, y1, x2 + 4, y0 + H + 2, colour="strong green")
    f.text(LEFT + 3 * (W + 22), y0 + 16, "the host goes on:", size=12, colour="strong green")
    f.text(LEFT + 3 * (W + 22), y0 + 34, "five calls", size=12, colour="strong green")
    panel(f, 332, "given: the kernel is in the program's stream", (1, True))
    f.text(LEFT + 3 * (W + 22), 362, "one call", size=12, colour="strong green")
    f.arrow(LEFT, 392, 690, 392)
    f.text(LEFT, 410, "time", size=12)
    return f
