"""Figure of augmentation: an image in its frame of black pixels, four pixels with their weights, and a warp's patch."""
from svg import Figure

CELL = 26


def frame(f):
    f.text(20, 26, "The image in its frame", bold=True)
    height, width = 4, 5

    def colour(r, c):
        return "blue" if 1 <= r <= height and 1 <= c <= width else "strong grey"

    grid = f.grid(20, 40, height + 3, width + 3, cell=CELL, fill=colour, stroke="paper", line=0.5)
    x, y = grid.corner(2, 3)
    f.rect(x, y, 2 * CELL, 2 * CELL, stroke="strong red", line=2)
    f.circle(x + 1.15 * CELL, y + 0.8 * CELL, 4, fill="strong red")
    f.legend(20, 246, [("blue", "image, 4 x 5"), ("strong grey", "black")])
    f.text(20, 272, "Nobody asks whether a", size=12)
    f.text(20, 288, "pixel lies outside.", size=12)


def weights(f):
    f.text(262, 26, "A place and its weights", bold=True)
    grid = f.grid(262, 60, 2, 2, cell=70, fill="blue", stroke="strong grey", size=11,
                  label=lambda r, c: (("gx gy", "fx gy"), ("gx fy", "fx fy"))[r][c])
    x, y = grid.corner(0, 0)
    place = (x + 35 + 0.65 * 70, y + 35 + 0.3 * 70)
    f.circle(*place, 5, fill="strong red")
    f.line(x + 35, place[1], place[0], place[1], colour="strong red", line=1.5)
    f.line(place[0], y + 35, place[0], place[1], colour="strong red", line=1.5)
    f.text(262, 222, "fx = x & 255, gx = 256 - fx", size=11, mono=True)
    f.text(262, 240, "In 256ths of a pixel;", size=12)
    f.text(262, 256, "the sum is 65536.", size=12)


def patch(f):
    f.text(470, 26, "A warp: 4 rows of 8 lanes", bold=True)
    names = ("blue", "orange", "green", "purple")
    grid = f.grid(470, 40, 4, 8, cell=30, fill=lambda r, c: names[r], label=lambda r, c: 8 * r + c, stroke="strong grey",
                  line=0.5)
    f.brace(grid.x, grid.y + grid.height, grid.width, "bottom", "32 pixels: 128 bytes of y, a float4 per lane")
    f.text(470, 214, "Banks of their first words, rows of 35:", size=12)
    f.grid(470, 224, 4, 8, cell=(30, 18), fill=lambda r, c: names[r], label=lambda r, c: (35 * r + 4 * c) % 32,
           stroke="strong grey", line=0.5)
    f.text(470, 314, "35 is odd: 32 lanes, 32 banks.", size=12)


def draw():
    f = Figure(740, 326, "Left: an image of 4 by 5 pixels in a frame of black pixels. Middle: a place between four pixels, "
               "whose weights follow from how far it is from each. Right: a warp covers four rows of eight lanes with four "
               "pixels each, and the words they read lie in 32 different banks")
    frame(f)
    weights(f)
    patch(f)
    return f
