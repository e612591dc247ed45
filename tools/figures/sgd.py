"""Figure of sgd: tensors cut into chunks at lines, whole fours and single floats; a block's search for its tensor."""
from svg import Figure

CELL, LINE, CHUNK = 10, 8, 16  # a line of 8 floats and chunks of 16, so that it fits; in the kernel 32 and 4096
TENSORS = (("conv1.weight", 3, 29), ("bn1.weight", 32, 6), ("bn1.bias", 38, 6))  # begin, length


def memory(f, x, y):
    f.text(20, y - 40, "Memory: floats, in lines of %d; three tensors, one right behind the other" % LINE, bold=True)

    def fill(row, place):
        for name, begin, length in TENSORS:
            if begin <= place < begin + length:
                four = place // 4 * 4
                return "blue" if begin <= four and four + 4 <= begin + length else "orange"
        return None

    f.grid(x, y, 1, 48, cell=(CELL + 3, 24), fill=fill)
    for line in range(0, 49, LINE):
        f.line(x + line * (CELL + 3), y - 8, x + line * (CELL + 3), y + 32, line=1.6)
    for i, (name, begin, length) in enumerate(TENSORS):
        f.brace(x + begin * (CELL + 3), y - 10, length * (CELL + 3), "top", name if i == 0 else name.split(".")[1], size=11)


def blocks(f, x, y):
    f.text(20, y - 14, "Chunks of %d places, counted from the line in which a tensor begins: one per block" % CHUNK, bold=True)
    block = 0
    for i, (name, begin, length) in enumerate(TENSORS):
        start = begin // LINE * LINE
        for place in range(start, begin + length, CHUNK):
            end = min(place + CHUNK, begin + length)
            left = max(place, begin)
            f.rect(x + left * (CELL + 3), y + 26 * i, (end - left) * (CELL + 3), 20, fill=("green", "purple", "teal")[i],
                   label="block %d" % block, size=10)
            block += 1


def search(f, x, y):
    f.text(20, y - 14, "Block 3 looks for its tensor: the last one whose first block is not after 3", bold=True)
    first = (0, 2, 3, 4)
    f.text(x - 8, y + 17, "first", size=12, anchor="end")
    f.grid(x, y, 1, 4, cell=(120, 26), label=lambda r, c: first[c], fill=lambda r, c: "teal" if c == 2 else "grey")
    for c, name in enumerate(("conv1.weight", "bn1.weight", "bn1.bias", "blocks in all")):
        f.text(x + 60 + 120 * c, y + 42, name, size=11, anchor="middle")


def draw():
    f = Figure(700, 364, "Three tensors lie one behind the other. Chunks begin at lines of the cache. Four floats from a multiple "
                         "of four on are one access where all belong to one tensor; the others are single.")
    memory(f, 40, 72)
    f.legend(40, 130, [("blue", "four at once"), ("orange", "one by one, at the ends of tensors")])
    blocks(f, 40, 180)
    search(f, 90, 310)
    return f
