"""Figure of xor: two lines that separate the four clouds, and the backward pass through a hidden neuron."""
from svg import Figure


def clouds(f):
    f.text(20, 26, "Two lines solve XOR", bold=True)
    x0, y0, unit = 155, 165, 55  # the middle of the plane, and its scale
    f.polygon([(x0 - 2.2 * unit, y0 - 2 * unit), (x0 - 2.2 * unit, y0 + 1.2 * unit), (x0 + 1 * unit, y0 - 2 * unit)],
              fill="orange", stroke=None)
    f.polygon([(x0 + 2.2 * unit, y0 + 2 * unit), (x0 + 2.2 * unit, y0 - 1.2 * unit), (x0 - 1 * unit, y0 + 2 * unit)],
              fill="orange", stroke=None)
    f.line(x0 - 2.2 * unit, y0, x0 + 2.2 * unit, y0, colour="strong grey")
    f.line(x0, y0 - 2 * unit, x0, y0 + 2 * unit, colour="strong grey")
    f.line(x0 - 2.2 * unit, y0 + 1.2 * unit, x0 + 1 * unit, y0 - 2 * unit, colour="strong blue", line=2)
    f.line(x0 - 1 * unit, y0 + 2 * unit, x0 + 2.2 * unit, y0 - 1.2 * unit, colour="strong green", line=2)
    for sx, sy, one in ((1, 1, 0), (-1, 1, 1), (-1, -1, 0), (1, -1, 1)):
        for dx, dy in ((-.3, .2), (.25, .3), (0, -.05), (.3, -.3), (-.25, -.3)):
            x, y = x0 + (sx + dx) * unit, y0 - (sy + dy) * unit
            if one:
                f.rect(x - 4, y - 4, 8, 8, fill="strong orange", stroke="paper")
            else:
                f.circle(x, y, 4.5, fill="strong purple", stroke="paper")
    f.text(20, 300, "h0 > 0", size=12, colour="strong blue")
    f.text(70, 300, "beyond the blue line,", size=12)
    f.text(20, 318, "h1 > 0", size=12, colour="strong green")
    f.text(70, 318, "beyond the green one", size=12)
    f.text(20, 340, "class 1 where h0 + h1 + 1 > 0", size=12)


def backward(f):
    f.text(330, 26, "Through the hidden neuron j and back", bold=True)
    hx, hy = 470, 180
    ys = (90, 180, 270)
    for o, y in enumerate(ys):
        f.arrow(hx + 42, hy - 12 + (y - hy) * .13, 610, y - 10, colour="strong blue")
        f.arrow(610, y + 8, hx + 42, hy + 10 + (y - hy) * .13, colour="strong red")
    for o, y in enumerate(ys):
        f.rect(612, y - 24, 74, 48, fill="grey", radius=6)
        f.text(649, y - 4, "y[%d]" % o, size=13, anchor="middle")
        f.text(649, y + 14, "dy[%d]" % o, size=12, anchor="middle", colour="strong red")
    f.text(560, 96, "w[0][j]", size=12, anchor="middle")
    f.text(560, 183, "w[1][j]", size=11, anchor="middle")
    f.text(560, 276, "w[2][j]", size=12, anchor="middle")
    f.rect(hx - 42, hy - 34, 84, 68, fill="blue", radius=6)
    f.text(hx, hy - 8, "h = tanh(a)", size=13, anchor="middle")
    f.text(hx, hy + 18, "da", size=13, anchor="middle", colour="strong red")
    f.arrow(330, hy - 10, hx - 46, hy - 10, colour="strong blue")
    f.arrow(hx - 46, hy + 12, 330, hy + 12, colour="strong red")
    f.text(328, hy - 20, "a = x · w1 + b1", size=12)
    f.text(328, hy + 32, "dw1 = da · x", size=12, colour="strong red")
    f.text(330, 318, "dh = dy[0] w[0][j] + dy[1] w[1][j] + dy[2] w[2][j]", mono=True, size=11)
    f.text(330, 340, "da = dh (1 - h²)", mono=True, size=11, colour="strong red")


def draw():
    f = Figure(700, 356, "Left: two parallel lines cut off the two clouds of class 1. Right: the output of a hidden neuron "
                         "reaches three neurons by three weights; their gradients come back by the same weights, are "
                         "added, and multiplied by the derivative of tanh.")
    clouds(f)
    backward(f)
    return f
