"""Figure of streams: one stream, and two streams with two buffers; the arrows are the events that order them."""
from svg import Figure

STEP, WORK, COPY = 84, 84, 42


def lane(f, y, name):
    f.text(20, y + 20, name, size=12)


def draw():
    f = Figure(700, 400, "Above: copies and work in one stream take turns. Below: copies have a stream of their own and two "
                         "buffers; work i waits for copy i, and copy i + 2 for work i, which reads the same buffer.")
    f.text(20, 26, "One stream, one buffer: copy and work take turns", bold=True)
    lane(f, 44, "stream")
    x = 100
    for i in range(4):
        f.rect(x, 44, COPY, 30, fill="blue", label="copy %d" % i, size=10)
        f.rect(x + COPY, 44, WORK, 30, fill="orange", label="work %d" % i, size=12)
        x += COPY + WORK
    f.arrow(100, 98, 690, 98)
    f.text(100, 116, "time", size=12)

    f.text(20, 156, "Two streams, two buffers: the copy of a batch runs beside the work on the one before", bold=True)
    lane(f, 176, "copies")
    lane(f, 266, "default")
    starts = [100 + COPY + WORK * i for i in range(5)]  # of work i
    copies = [100, 100 + COPY] + [starts[i - 2] + WORK for i in range(2, 5)]
    for i in range(5):
        f.rect(copies[i], 176, COPY, 30, fill="blue" if i % 2 == 0 else "teal", label="copy %d" % i, size=10)
        f.rect(starts[i], 266, WORK, 30, fill="orange" if i % 2 == 0 else "yellow", label="work %d" % i, size=12)
    for i in range(5):  # work i waits for copy i
        f.arrow(copies[i] + COPY, 206, max(starts[i] + 4, copies[i] + COPY + 1), 262, colour="strong green")
    for i in range(3):  # copy i + 2 waits for work i
        f.arrow(starts[i] + WORK, 266, copies[i + 2] + 6, 210, colour="strong red", dash=True)
    f.arrow(100, 318, 690, 318)
    f.text(100, 336, "time", size=12)
    f.text(20, 364, "green: cudaStreamWaitEvent(default, copied[i])", size=12, colour="strong green")
    f.text(20, 384, "red: cudaStreamWaitEvent(copies, worked[i − 2]), before the buffer is filled again", size=12,
           colour="strong red")
    f.legend(420, 364, [("blue", "buffer 0"), ("teal", "buffer 1")])
    return f
