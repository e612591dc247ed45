"""Figure of cifar10: a record of the binary files, and what crop and flip do to a picture."""
from svg import Figure


def record(f, y, title, fields, file):
    f.text(20, y + 18, title, size=12, bold=True)
    x = 110
    for name, width, colour in fields:
        f.rect(x, y, width, 28, fill=colour)
        f.text(x + width / 2, y + 18, name, size=11, anchor="middle")
        x += width
    f.text(110, y + 46, file, size=11, colour="strong grey")


def picture(f, x, y, title, right, down, flip):
    """A picture of 8 x 8 with an L of seven pixels, moved over black and flipped."""
    shape = {(1, 2), (2, 2), (3, 2), (4, 2), (5, 2), (5, 3), (5, 4)}

    def fill(r, c):
        r, c = r - down, c - right
        if not (0 <= r < 8 and 0 <= c < 8):
            return "strong grey"
        return "strong orange" if (r, 7 - c if flip else c) in shape else "blue"

    f.text(x, y - 10, title, size=12)
    f.grid(x, y, 8, 8, cell=15, fill=fill, stroke="paper")


def draw():
    f = Figure(700, 326, "A record of CIFAR-10: one byte for the label, then 1024 bytes each of red, green and blue. One of "
                         "CIFAR-100 has two labels, a coarse and a fine one. Below: a picture, the same moved by one and "
                         "two pixels with black where it left, and the same flipped first.")
    planes = [("1024 red", 150, "red"), ("1024 green", 150, "green"), ("1024 blue", 150, "blue")]
    record(f, 20, "CIFAR-10", [("label", 52, "yellow")] + planes, "3073 bytes; 10,000 of them in data_batch_1.bin")
    record(f, 90, "CIFAR-100", [("coarse", 56, "grey"), ("fine", 52, "yellow")] + planes,
           "3074 bytes; 50,000 of them in train.bin, 10,000 in test.bin")
    picture(f, 60, 190, "a picture", 0, 0, False)
    picture(f, 280, 190, "down 1, right 2", 2, 1, False)
    picture(f, 500, 190, "flipped, up 2, left 1", -1, -2, True)
    return f
