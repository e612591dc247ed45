"""Figure of onnx_export: a network here and in the file; the bytes of a number; the order of four paddings."""
from svg import Figure

HERE = (("x", "(1,28,28)", "grey"), ("conv1", "(6,28,28)", "orange"), ("relu1", "", "yellow"),
        ("pool1", "(6,14,14)", "yellow"), ("fc1", "(120)", "orange"))
FILE = (("x", "(N,1,28,28)", "grey"), ("Conv", "pads 2,2,2,2", "orange"), ("Relu", "", "yellow"),
        ("MaxPool", "kernel_shape 2,2", "yellow"), ("Flatten", "axis 1", "green"), ("Gemm", "transB 1", "orange"))


def chain(f, x, y, boxes, title):
    f.text(x, y - 12, title, size=12, bold=True)
    for i, (name, detail, colour) in enumerate(boxes):
        f.rect(x, y + 36 * i, 84, 24, fill=colour, radius=4, label=name)
        f.text(x + 92, y + 36 * i + 16, detail, size=11, colour="strong grey")
        if i:
            f.arrow(x + 42, y + 36 * i - 12, x + 42, y + 36 * i)


def varint(f, x, y):
    f.text(x, y - 12, "300 as a varint: ac 02", size=12, bold=True)
    for byte, bits in enumerate(("10101100", "00000010")):
        f.grid(x + 150 * byte, y, 1, 8, cell=(16, 22), label=lambda r, c: bits[c],
               fill=lambda r, c: "red" if c == 0 else ("blue", "teal")[byte], size=12)
    f.text(x, y + 40, "another follows", size=11, colour="strong red")
    f.text(x + 150, y + 40, "the last one", size=11, colour="strong red")
    f.grid(x + 54, y + 54, 1, 14, cell=(16, 22), label=lambda r, c: "00000100101100"[c],
           fill=lambda r, c: "teal" if c < 7 else "blue", size=12)
    f.text(x + 54, y + 94, "2 x 128 + 44 = 300", size=11)


def padding(f, x, y):
    f.text(x, y - 12, "pads, in ONNX's order", size=12, bold=True)
    f.rect(x, y, 220, 92, fill="grey")
    f.rect(x + 66, y + 24, 88, 44, fill="blue", label="picture")
    f.text(x + 110, y + 17, "0 top", size=11, anchor="middle")
    f.text(x + 33, y + 50, "1 left", size=11, anchor="middle")
    f.text(x + 110, y + 84, "2 bottom", size=11, anchor="middle")
    f.text(x + 187, y + 50, "3 right", size=11, anchor="middle")


def draw():
    f = Figure(700, 270, "LeNet-5, shortened, here and in an ONNX file: the batch becomes the axis N, and a Flatten "
                         "comes before the linear layer. 300 as a varint is the bytes ac 02, seven bits in each, the "
                         "lowest first. The four paddings stand in the order top, left, bottom, right.")
    chain(f, 20, 36, HERE, "a Graph of common/nn")
    chain(f, 200, 36, FILE, "the ONNX graph")
    varint(f, 400, 36)
    padding(f, 400, 166)
    return f
