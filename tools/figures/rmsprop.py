"""Figure of rmsprop: the polynomial that Muon applies to singular values, once and five times."""
from svg import Figure

WIDTH, HEIGHT, TOP = 270, 210, 1.4


def polynomial(s):
    return 3.4445 * s - 4.7750 * s ** 3 + 2.0315 * s ** 5


def times(count):
    def apply(s):
        for _ in range(count):
            s = polynomial(s)
        return s
    return apply


def axes(f, x, y, title):
    f.text(x - 30, y - 16, title, bold=True)
    f.rect(x, y, WIDTH, HEIGHT)
    for value in (0, 0.5, 1):
        line = y + HEIGHT * (TOP - value) / TOP
        f.line(x, line, x + WIDTH, line, colour="grey")
        f.text(x - 6, line + 4, "%g" % value, size=11, anchor="end")
        f.text(x + WIDTH * value, y + HEIGHT + 16, "%g" % value, size=11, anchor="middle")
    f.text(x + WIDTH / 2, y + HEIGHT + 34, "singular value of the momentum over its norm", size=12, anchor="middle")


def curve(f, x, y, formula, colour, count=300):
    f.polyline([(x + WIDTH * i / count, y + HEIGHT * (TOP - formula(i / count)) / TOP) for i in range(count + 1)], colour, line=1.6)


def draw():
    f = Figure(700, 330, "3.4445 s - 4.7750 s^3 + 2.0315 s^5 is steep at 0. Applied five times, it takes every singular value above "
                         "0.01 to between 0.7 and 1.2.")
    for x, title, counts in ((60, "Once and twice", (1, 2)), (400, "Five times", (5,))):
        axes(f, x, 50, title)
        f.line(x, 50 + HEIGHT, x + WIDTH, 50 + HEIGHT * (TOP - 1) / TOP, colour="strong grey", dash=True)
        for count in counts:
            curve(f, x, 50, times(count), "strong blue" if count != 2 else "strong orange")
    f.text(150, 246, "s itself", size=12, colour="strong grey")
    f.text(250, 76, "once", size=12, colour="strong blue")
    f.text(120, 66, "twice", size=12, colour="strong orange")
    return f
