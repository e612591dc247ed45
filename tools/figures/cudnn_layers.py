"""Figure of cudnn_layers: the same numbers in NCHW and in NHWC, and the strides that say which."""
from svg import Figure

FILLS = ("blue", "orange", "green")


def draw():
    f = Figure(700, 236, "An image of 3 channels, 2 rows and 2 columns in memory: NCHW has one plane after the other, "
               "NHWC one pixel after the other; the strides of the two")
    planes = [(c, h, w) for c in range(3) for h in range(2) for w in range(2)]
    pixels = [(c, h, w) for h in range(2) for w in range(2) for c in range(3)]
    for y, title, order, strides in ((44, "NCHW: one plane after the other", planes, "strides (12, 4, 2, 1)"),
                                     (134, "NHWC: the channels of a pixel side by side", pixels,
                                      "strides (12, 1, 6, 3)")):
        f.text(20, y - 12, title, size=12, bold=True)
        f.grid(20, y, rows=1, columns=12, cell=38, fill=lambda r, i, o=order: FILLS[o[i][0]],
               label=lambda r, i, o=order: "%d,%d,%d" % o[i], size=10)
        f.text(490, y + 24, strides, size=12, mono=True)
    f.text(20, 212, "c,h,w of each number. Element (n,c,h,w) lies at n*stride[0] + c*stride[1] + h*stride[2] + "
           "w*stride[3].", size=11)
    return f
