"""Figure of batch_norm: the channel that stays on the chip between its two sums and its results, and how often each
version reads and writes it."""
from svg import Figure

COLOURS = ("blue", "orange", "green")


def chip(f):
    f.text(20, 26, "A group of blocks keeps a channel", bold=True)
    f.text(20, 50, "channel c of x: one run per image", size=12)
    grid = f.grid(20, 58, 1, 12, cell=24, fill=lambda r, c: COLOURS[c // 4], label=lambda r, c: "%d" % (c // 2),
                  stroke="strong grey", line=0.5)
    for block in range(3):
        x = 20 + 96 * block
        f.arrow(x + 48, 84, x + 48, 104)
        f.rect(x + 4, 108, 88, 40, fill=COLOURS[block], radius=3)
        f.text(x + 48, 125, "block %d" % block, size=12, anchor="middle")
        f.text(x + 48, 141, "keeps its slice", size=11, anchor="middle")
        f.arrow(x + 48, 150, x + 48, 170)
        f.arrow(x + 48, 198, x + 48, 218)
    f.rect(24, 172, 280, 24, stroke="ink", radius=3)
    f.text(164, 189, "all wait: count, mean, squares of 3 slices", size=12, anchor="middle")
    f.grid(20, 222, 1, 12, cell=24, fill=lambda r, c: COLOURS[c // 4], label=lambda r, c: "y", stroke="strong grey",
           line=0.5)
    f.text(20, 264, "then the group takes channel c + groups", size=12)


def passes(f):
    f.text(370, 26, "Passes over memory", bold=True)
    rows = (("naive", 3, 1), ("welford, slices", 2, 1), ("on_chip", 1, 1), ("backward, slices", 4, 1),
            ("backward, on_chip", 2, 1))
    for i, (name, reads, writes) in enumerate(rows):
        y = 58 + 34 * i + (14 if i > 2 else 0)
        f.text(370, y + 15, name, size=12)
        for k in range(reads + writes):
            f.rect(490 + 34 * k, y, 30, 22, fill="blue" if k < reads else "orange", label="R" if k < reads else "W",
                   size=11)
    f.text(370, 264, "R: an array is read, W: an array is written", size=12)


def draw():
    f = Figure(680, 280, "Three blocks keep a slice each of a channel in shared memory, exchange their sums and write "
               "their results; naive batch norm reads three times, this one once")
    chip(f)
    passes(f)
    return f
