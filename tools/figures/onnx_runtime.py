"""Figure of onnx_runtime: the stages of the pipeline, what stands between them, and when each is at work."""
from svg import Figure

WINDOW = (("8", "9", "10", "11"), ("4", "5", "", ""))
READ, NET, WRITE = 118, 78, 22  # widths of a batch's work, in pixels


def stages(f):
    for i in range(3):
        f.rect(20, 52 + 34 * i, 96, 28, fill="blue", label="reader %d" % i, size=12)
        f.arrow(116, 66 + 34 * i, 146, 84 + 14 * (i - 1))
    g = f.grid(150, 72, rows=2, columns=4, cell=(30, 24), fill=lambda r, c: "grey" if WINDOW[r][c] else None,
               label=lambda r, c: WINDOW[r][c])
    f.text(150, 62, "window: picture i at i mod 8", size=11)
    f.text(150, 138, "6 and 7: being read", size=11)
    f.arrow(g.x + g.width + 2, 96, 300, 96)
    f.text(284, 88, "4", size=11, anchor="middle")
    f.rect(302, 78, 84, 36, fill="green", label="batcher", size=12)
    f.arrow(386, 96, 452, 96)
    f.rect(404, 88, 26, 16, fill="yellow", label="B", size=10)
    f.rect(454, 78, 90, 36, fill="orange", label="network", size=12)
    f.arrow(544, 96, 610, 96)
    f.rect(562, 88, 26, 16, fill="yellow", label="A", size=10)
    f.rect(612, 78, 74, 36, fill="purple", label="writer", size=12)
    f.polyline([(648, 114), (648, 160), (344, 160)], colour="ink")
    f.arrow(344, 160, 344, 116)
    f.rect(480, 152, 26, 16, fill="yellow", label="C", size=10)
    f.text(516, 178, "empty batches go back", size=11)


def lane(f, y, name, pieces):
    f.text(20, y + 17, name, size=12)
    for x, width, fill, label in pieces:
        f.rect(x, y, width, 24, fill=fill, label=label, size=10)


def draw():
    f = Figure(706, 420, "Readers fill a window in any order, the batcher takes pictures in their order, and three "
               "batches go round between batcher, network and writer. Below: one stage after the other takes longer "
               "than all stages at once, where the network never waits.")
    f.text(20, 26, "Each hand-over has a limit, and the fast stages wait", bold=True)
    stages(f)
    f.text(20, 218, "One after the other", bold=True, size=12)
    x, pieces = 110, []
    for i in range(2):
        for width, fill, label in ((READ, "blue", "read %d" % i), (NET, "orange", "network %d" % i),
                                   (WRITE, "purple", "")):
            pieces.append((x, width, fill, label))
            x += width
    lane(f, 228, "all", pieces)
    f.text(20, 284, "At once, two readers", bold=True, size=12)
    reads = [110, 110, 110 + READ, 110 + READ, 110 + 2 * READ, 110 + 2 * READ]
    lane(f, 294, "reader 0", [(reads[i], READ, "blue", "half of %d, %d" % (i, i + 1)) for i in (0, 2, 4)])
    lane(f, 322, "reader 1", [(reads[i], READ, "blue", "half of %d, %d" % (i - 1, i)) for i in (1, 3, 5)])
    begin = 110 + READ // 2
    lane(f, 350, "network", [(begin + i * NET, NET, "orange", "network %d" % i) for i in range(5)])
    lane(f, 378, "writer", [(begin + (i + 1) * NET, WRITE, "purple", "") for i in range(5)])
    return f
