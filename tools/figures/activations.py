"""Figure of activations: the relative errors of two ways to compute tanh, and its derivative, in float32."""
import ctypes
import math

from svg import Figure

WIDTH, HEIGHT = 270, 200
LOW, HIGH = -9, 0  # the powers of ten of the error axis


def rounded(value):
    """To float32."""
    return ctypes.c_float(value).value


def relative_error(value, exact):
    return min(max(abs(value - exact) / abs(exact), 10 ** LOW), 10 ** HIGH)


def tanh_textbook(x):
    """(exp(x) - exp(-x)) / (exp(x) + exp(-x)); None where exp(x) overflows."""
    if x > 88.7:
        return None
    e, inverse = rounded(math.exp(x)), rounded(math.exp(-x))
    return rounded(rounded(e - inverse) / rounded(e + inverse))


def tanh_expm1(x):
    t = rounded(math.expm1(-2 * x))
    return rounded(-t / rounded(2 + t))


def axes(f, x, y, first, last, title, xlabel, every):
    f.text(x - 40, y - 22, title, bold=True)
    f.rect(x, y, WIDTH, HEIGHT)
    for power in range(LOW, HIGH + 1, 3):
        line = y + HEIGHT * (HIGH - power) / (HIGH - LOW)
        f.line(x, line, x + WIDTH, line, colour="grey")
        f.text(x - 6, line + 4, "1e%d" % power if power else "1", size=11, anchor="end")
    for power in range(first, last + 1, every):
        f.text(x + WIDTH * (power - first) / (last - first), y + HEIGHT + 16, "1e%d" % power if power else "1", size=11,
               anchor="middle")
    f.text(x + WIDTH / 2, y + HEIGHT + 34, xlabel, size=12, anchor="middle")


def curve(f, x, y, first, last, points, colour):
    """points: (value on the x axis, relative error)."""
    f.polyline([(x + WIDTH * (math.log10(at) - first) / (last - first),
                 y + HEIGHT * (HIGH - math.log10(error)) / (HIGH - LOW)) for at, error in points], colour, line=1.3)


def samples(first, last, count):
    """`count` groups of 40 neighbours; the worst error of each group is drawn."""
    for i in range(count):
        yield [rounded(10 ** (first + (last - first) * (i + j / 40) / count)) for j in range(40)]


def draw():
    f = Figure(700, 340, "Relative errors in float32. The textbook formula of tanh loses all digits near 0 and overflows "
                         "at 89, the one with expm1 does neither. 1 - y * y loses up to ten bits, (1 - y) (1 + y) none.")
    x, y = 64, 62
    axes(f, x, y, -8, 2, "tanh(x): relative error", "x", 2)
    for formula, colour in ((tanh_textbook, "strong red"), (tanh_expm1, "strong blue")):
        points = []
        for group in samples(-8, 2, 100):
            errors = [relative_error(formula(v), math.tanh(v)) for v in group if formula(v) is not None]
            if errors:
                points.append((group[0], max(errors)))
        curve(f, x, y, -8, 2, points, colour)
    f.text(x + 92, y + 22, "(exp(x) - exp(-x)) / ...", size=12, colour="strong red")
    overflow = x + WIDTH * (math.log10(88.7) + 8) / 10
    f.line(overflow, y, overflow, y + HEIGHT, colour="strong red", dash=True)
    f.text(overflow - 5, y + 60, "NaN from 89 on", size=11, anchor="end", colour="strong red")
    f.text(x + 60, y + 180, "-t / (2 + t), t = expm1(-2x)", size=12, colour="strong blue")

    x = 408
    axes(f, x, y, -7, 0, "Slope of tanh: relative error", "1 - y", 1)
    for formula, colour in ((lambda v: rounded(1 - rounded(v * v)), "strong red"),
                            (lambda v: rounded(rounded(1 - v) * rounded(1 + v)), "strong blue")):
        points = []
        for group in samples(-7, -0.01, 100):
            values = [rounded(1 - v) for v in group]
            points.append((group[0], max(relative_error(formula(v), (1 - v) * (1 + v)) for v in values)))
        curve(f, x, y, -7, 0, points, colour)
    f.text(x + 140, y + 74, "1 - y * y", size=12, colour="strong red")
    f.text(x + 90, y + 180, "(1 - y) * (1 + y)", size=12, colour="strong blue")
    return f
