"""Figure of random_init: which thread computes and stores which numbers, and the signal after ten layers."""
import math

from svg import Figure

FILL = ("blue", "orange", "green", "purple")


def cipher(f, x, title, note, owner):
    """Numbers 0 to 7: two blocks of the cipher. owner(i): the thread that stores number i."""
    f.text(x, 26, title, bold=True)
    threads = sorted({owner(i) for i in range(8)})
    each = 8 // len(threads)
    for t in threads:
        left = x + t * each * 38
        f.rect(left, 40, each * 38 - 4, 22, fill=FILL[t // (4 // each) % 2], label="t%d" % t, size=11)
        f.arrow(left + each * 19 - 2, 62, left + each * 19 - 2, 82)
        f.rect(left, 82, each * 38 - 4, 22, fill="grey", label=None)
        f.text(left + each * 19 - 2, 97, str(t * each // 4), size=11, anchor="middle")
        f.arrow(left + each * 19 - 2, 104, left + each * 19 - 2, 124)
    f.grid(x, 124, 1, 8, cell=(34, 24), gap=4, fill=lambda r, c: FILL[c // 4 % 2], label=lambda r, c: "x[%d]" % c)
    f.text(x, 170, note, size=12)


def signal(f):
    f.text(20, 206, "Signal after each of 10 layers of 256 ReLUs (expected)", bold=True)
    left, top, width, height, decades = 70, 222, 440, 150, 10
    for d in range(0, decades + 1, 2):
        y = top + height * d / decades
        f.line(left, y, left + width, y, colour="grey")
        f.text(left - 8, y + 4, "1e-%d" % d if d else "1", size=11, anchor="end")
    for layer in range(0, 11, 2):
        f.text(left + width * layer / 10, top + height + 18, layer, size=11, anchor="middle")
    f.text(left + width + 16, top + height + 18, "layer", size=11)
    for name, variance, colour, dy in (("He: factor 1", 2 / 256, "strong green", 4), ("Xavier: factor 0.71", 1 / 256, "strong blue", 12),
                                       ("deviation 0.01: factor 0.11", 1e-4, "strong red", 4)):
        factor = math.sqrt(256 * variance / 2)
        points = [(left + width * i / 10, top - height * math.log10(factor ** i) / decades) for i in range(11)]
        f.polyline(points, colour=colour, line=2)
        f.text(points[10][0] + 10, points[10][1] + dy, name, size=12, colour=colour)


def draw():
    f = Figure(700, 404, "Four threads that compute one number each run the same block of the cipher four times, one thread "
               "that stores four numbers runs it once; He's initialisation keeps the size of a signal over ten layers")
    cipher(f, 20, "one_each: 8 cipher calls", "grey: block of the cipher; one word of four is used", lambda i: i)
    cipher(f, 380, "float4: 2 cipher calls", "all four words, one store of 16 bytes", lambda i: i // 4)
    signal(f)
    return f
