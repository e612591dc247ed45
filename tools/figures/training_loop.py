"""Figure of training_loop: a look at the loss that the GPU waits for, and one that it does not; and how a file is replaced."""
from svg import Figure

X, WIDTH = 74, 142


def bar(f, x, y, width, colour, label):
    f.rect(x, y, width, 24, fill=colour, label=label, size=11)


def lanes(f, y, title):
    f.text(20, y - 12, title, bold=True)
    for i, name in enumerate(("GPU", "host")):
        f.text(X - 12, y + 17 + 34 * i, name, size=12, anchor="end")


def waiting(f, y):
    lanes(f, y, "A look that waits: the GPU idles until the host has logged and launched again")
    x = X
    for i in range(3):
        bar(f, x, y, WIDTH, "blue", "interval %d" % (i + 1))
        bar(f, x + WIDTH, y + 34, 30, "green", "log")
        if i < 2:
            bar(f, x + WIDTH + 30, y + 34, 30, "orange", "go")
            f.arrow(x + WIDTH + 45, y + 33, x + WIDTH + 60, y + 25, colour="strong orange")
            f.rect(x + WIDTH, y, 60, 24, dash=True)
        x += WIDTH + 60


def ahead(f, y):
    lanes(f, y, "A look behind the steps: the next interval is launched before the host waits")
    x = X
    bar(f, x, y + 34, 30, "orange", "go")
    for i in range(3):
        bar(f, x, y, WIDTH, "blue", "interval %d" % (i + 1))
        if i < 2:
            bar(f, x + 32, y + 34, 30, "orange", "go")
        bar(f, x + WIDTH + 2, y + 34, 30, "green", "log")
        f.arrow(x + WIDTH, y + 25, x + WIDTH + 8, y + 33, colour="strong green")
        x += WIDTH


def replacing(f, y):
    f.text(20, y - 12, "A checkpoint is replaced in one step: what a kill or a power cut leaves", bold=True)
    steps = [("write FILE.tmp", "the old file", "grey"), ("fsync(FILE.tmp)", "the old file", "grey"),
             ("rename to FILE", "the old or the new one", "yellow"), ("fsync(folder)", "the new file", "green")]
    for i, (call, left, colour) in enumerate(steps):
        x = 20 + 168 * i
        f.rect(x, y, 150, 26, fill="paper", label=call, size=12)
        f.rect(x, y + 34, 150, 24, fill=colour, label=left, size=11)
        if i < 3:
            f.arrow(x + 150, y + 13, x + 167, y + 13)


def draw():
    f = Figure(700, 360, "Above: where each look at the loss waits, the GPU idles between intervals; where it does not, intervals "
                         "follow each other. Below: a file is written beside the old one, synced and renamed.")
    waiting(f, 44)
    ahead(f, 164)
    replacing(f, 284)
    return f
