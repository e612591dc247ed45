"""Figure of vector_add: blocks and threads of a grid over the elements, and a grid-stride loop."""
from svg import Figure

N, BLOCK, BLOCKS = 11, 4, 3
COLOURS = ["blue", "orange", "green"]


def one_each(f, x, y):
    """Each of 3 x 4 threads has the element of its number; the last thread has none."""
    f.text(20, y - 40, "One thread per element: n = 11, blocks of 4 threads", bold=True)
    threads = f.grid(x, y, 1, BLOCK * BLOCKS, cell=(42, 26), fill=lambda r, c: COLOURS[c // BLOCK],
                     label=lambda r, c: c % BLOCK)
    f.text(20, y + 18, "threadIdx.x", size=12)
    for block in range(BLOCKS):
        f.brace(threads.corner(0, block * BLOCK)[0] + 3, y - 2, BLOCK * 42 - 6, "top", "block %d" % block, size=11)
    elements = f.grid(x, y + 66, 1, N, cell=(42, 26), fill=lambda r, c: COLOURS[c // BLOCK], label=lambda r, c: c)
    f.text(20, y + 84, "element i", size=12)
    for i in range(N):
        f.arrow(threads.center(0, i)[0], y + 27, elements.center(0, i)[0], y + 65, colour="strong grey")
    f.arrow(threads.center(0, N)[0], y + 27, threads.center(0, N)[0], y + 60, colour="strong red", dash=True)
    f.text(threads.center(0, N)[0], y + 83, "i = 11", size=12, colour="strong red", anchor="middle")
    f.text(x + 12 * 42, y + 112, "fails i < n", size=12, colour="strong red", anchor="end")
    f.text(x, y + 112, "thread 2 of block 1: i = 1 * 4 + 2 = 6", size=12)


def grid_stride(f, x, y):
    """A grid of 4 threads takes 4 elements per step."""
    f.text(20, y - 16, "Grid-stride loop: a grid of 4 threads, stride 4", bold=True)
    f.grid(x, y, 1, N, cell=(42, 26), fill=lambda r, c: ["purple", "teal", "yellow"][c // 4], label=lambda r, c: c)
    f.text(20, y + 18, "element i", size=12)
    for step in range(3):
        width = 42 * min(4, N - 4 * step)
        f.brace(x + 42 * 4 * step + 3, y + 28, width - 6, "bottom", "step %d" % step, size=11)
    for thread in range(4):
        f.text(x + 42 * thread + 21, y + 66, "thread %d" % thread if thread == 0 else "%d" % thread, size=11,
               anchor="middle", colour="strong grey")
    f.text(x + 42 * 4 + 4, y + 66, "in each step, neighbouring threads take neighbouring elements", size=11, colour="strong grey")


def draw():
    f = Figure(680, 340, "Above: three blocks of four threads on eleven elements; thread 2 of block 1 has element 6, and "
                         "the last thread has none. Below: a grid of four threads takes four elements per step.")
    one_each(f, 130, 68)
    f.line(20, 204, 660, 204, colour="grey")
    grid_stride(f, 130, 256)
    return f
