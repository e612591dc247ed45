"""Figure of lr_schedules: the factor of the highest rate over a run, for each schedule; and how a scan joins averages."""
import math

from svg import Figure

WIDTH, HEIGHT = 200, 84
STEPS = 240


def cosine(t):
    return 0.5 * (1 + math.cos(math.pi * t))


def restarts(done, cycles, growth):
    """The share that is over of the cycle in which the run is."""
    lengths = [growth ** k for k in range(cycles)]
    t = done * sum(lengths)
    for length in lengths[:-1]:
        if t < length:
            return t / length
        t -= length
    return min(1, t / lengths[-1])


SCHEDULES = [
    ("step", lambda d: 0.1 ** math.floor(3 * d), "strong red"),
    ("exponential", lambda d: 0.01 ** d, "strong orange"),
    ("linear", lambda d: d / 0.05 if d < 0.05 else (1 - d) / 0.95, "strong green"),
    ("cosine", lambda d: d / 0.05 if d < 0.05 else cosine((d - 0.05) / 0.95), "strong blue"),
    ("cosine:cycles=3,growth=2", lambda d: d / 0.05 if d < 0.05 else cosine(restarts((d - 0.05) / 0.95, 3, 2)), "strong purple"),
    ("onecycle", lambda d: 1 - 0.96 * cosine(d / 0.3) if d < 0.3 else cosine((d - 0.3) / 0.7), "strong teal"),
]


def curves(f):
    for i, (name, factor, colour) in enumerate(SCHEDULES):
        x, y = 34 + i % 3 * (WIDTH + 26), 34 + i // 3 * (HEIGHT + 46)
        f.text(x, y - 8, name, size=12, colour=colour)
        f.rect(x, y, WIDTH, HEIGHT)
        points = [(k + 0.5) / STEPS for k in range(STEPS)]
        f.polyline([(x + WIDTH * d, y + HEIGHT * (1 - factor(d))) for d in points], colour, line=1.8)
        if i % 3 == 0:
            f.text(x - 6, y + 10, "1", size=11, anchor="end")
            f.text(x - 6, y + HEIGHT, "0", size=11, anchor="end")
        if i >= 3:
            f.text(x + WIDTH / 2, y + HEIGHT + 16, "share of the run", size=11, anchor="middle")


def scan(f):
    x, y, cell = 34, 318, 38
    f.text(x, y - 14, "Averages of 8 losses in 3 turns: what lies d steps back counts beta^d times", bold=True)
    rows = ("1", "2", "4", "8")
    grids = []
    for turn, covered in enumerate(rows):
        d = 2 ** turn
        labels = ["%d" % min(d, i + 1) for i in range(8)]
        grids.append(f.grid(x, y + 46 * turn, rows=1, columns=8, cell=(cell, 22),
                            fill=lambda r, c, d=d: "blue" if c + 1 >= d else "green", label=lambda r, c, labels=labels: labels[c]))
    for turn in range(3):
        d = 2 ** turn
        for i in range(d, 8):
            f.arrow(x + (i - d + 0.5) * cell, y + 46 * turn + 22, x + (i + 0.5) * cell - 3, y + 46 * (turn + 1), colour="strong orange")
        f.text(x + 8 * cell + 16, y + 46 * turn + 40, "d = %d: m += %s * (m of %d lane%s before)"
               % (d, "beta^%d" % d if d > 1 else "beta", d, "" if d == 1 else "s"), size=12)
    f.text(x + 8 * cell + 16, y + 15, "how many losses each m covers", size=12)


def draw():
    f = Figure(720, 490, "Six schedules: the factor of the highest learning rate over a run. Below: a scan in three turns "
                         "computes the averages of eight losses.")
    curves(f)
    scan(f)
    return f
