"""Figure of losses: the sum over the GPU in a fixed order, and the arrays that two kernels or one move."""
from svg import Figure


def total(f):
    f.text(20, 26, "Forward: a sum in the same order in every run", bold=True)
    for block in range(3):
        x = 20 + 228 * block
        f.grid(x, 40, 1, 8, cell=(25, 22), fill="blue", label=lambda r, c: "w%d" % c, size=11)
        f.arrow(x + 100, 62, x + 100, 90)
        f.text(x + 108, 80, "shuffles, 1 barrier", size=11)
        f.rect(x + 40, 90, 120, 24, fill="orange", label="sum of block %d" % block)
        f.arrow(x + 100, 114, 296 + 54 * block, 146)
    slots = f.grid(269, 146, 1, 3, cell=(54, 24), fill="grey", label=lambda r, c: "[%d]" % c)
    f.text(258, 162, "loss_sums in global memory", size=12, anchor="end")
    f.arrow(350, 170, 350, 194)
    f.rect(250, 194, 200, 26, fill="green", label="one block: [0] + [1] + [2]")
    f.arrow(450, 207, 490, 207)
    f.text(498, 211, "total = sum / n", size=12)
    return slots


def traffic(f):
    f.text(20, 262, "Both directions: which arrays move", bold=True)
    for x, name in ((20, "separate: 5 arrays"), (390, "fused: 3 arrays")):
        f.text(x, 286, name, size=12)
    kernel = lambda x, y, name: f.rect(x, y, 110, 36, fill="green", label=name)
    array = lambda x, y, name, fill: f.rect(x, y, 44, 26, fill=fill, label=name)

    def reads(x, y):
        for i, name in enumerate("xt"):
            array(x, y + 32 * i, name, "blue")
            f.arrow(x + 44, y + 13 + 32 * i, x + 84, y + 24 + 10 * i)

    reads(20, 296)
    kernel(104, 307, "forward")
    f.arrow(214, 325, 240, 325)
    f.text(246, 329, "total", size=12)
    reads(20, 366)
    kernel(104, 377, "backward")
    f.arrow(214, 395, 240, 395)
    array(240, 382, "dx", "orange")
    reads(390, 330)
    kernel(474, 341, "both")
    f.arrow(584, 352, 614, 342)
    f.text(620, 342, "total", size=12)
    f.arrow(584, 366, 614, 380)
    array(614, 368, "dx", "orange")


def draw():
    f = Figure(700, 440, "Each block writes its sum to a place of its own and one block adds them in order; separate kernels "
               "read x and t twice, the fused one once")
    total(f)
    traffic(f)
    return f
