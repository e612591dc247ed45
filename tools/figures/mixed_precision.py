"""Figure of mixed_precision: what float32, bf16 and fp16 can hold, and where the gradients of the lesson's program lie, which are read
from its output in README.md."""
import math
import os
import re

from svg import Figure

LOW, HIGH = -12, 6  # powers of ten
X, WIDTH = 150, 520
README = os.path.join(os.path.dirname(os.path.realpath(__file__)), "../../phase4_training/09_mixed_precision/README.md")
FP16_LEAST, FP16_NORMAL, FP16_MOST = 2.0 ** -24, 2.0 ** -14, 65504.0


def gradients():
    """name -> the largest gradient of a run of the program, and the share below 2^-14."""
    result = {}
    with open(README) as readme:
        for line in readme:
            row = re.match(r"(fp16, scale \d+|float32) +([0-9.e+-]+) +([0-9.]+) % +([0-9.]+) % +\d+$", line)
            if row:
                result[row[1]] = float(row[2]), float(row[3]) + float(row[4])
    return result


def place(value):
    return X + WIDTH * (min(max(math.log10(value), LOW), HIGH) - LOW) / (HIGH - LOW)


def bar(f, y, name, low, high, colour, text=""):
    f.text(X - 8, y + 15, name, size=12, anchor="end")
    f.rect(place(low), y, place(high) - place(low), 20, fill=colour)
    if text:
        f.text((place(low) + place(high)) / 2, y + 15, text, size=11, anchor="middle")


def draw():
    f = Figure(700, 300, "Sizes of numbers from 1e-12 to 1e6. float32 and bf16 reach beyond both ends. fp16 has all its digits from 6e-5 to "
                         "65504, fewer down to 6e-8, and nothing below. Gradients reach up to 2e-3, and most are below 6e-5; times 65536 "
                         "they lie in the middle of the range.")
    f.text(20, 24, "What 16 bits can hold, and what gradients need", bold=True)
    for power in range(LOW, HIGH + 1, 2):
        f.line(place(10.0 ** power), 40, place(10.0 ** power), 250, colour="grey")
        f.text(place(10.0 ** power), 268, "1e%d" % power if power else "1", size=11, anchor="middle")
    f.text(X + WIDTH / 2, 288, "size of a number", size=12, anchor="middle")
    bar(f, 48, "float32", 10.0 ** LOW, 10.0 ** HIGH, "blue", "24 bits of precision")
    bar(f, 78, "bf16", 10.0 ** LOW, 10.0 ** HIGH, "blue", "8 bits of precision")
    bar(f, 108, "fp16", FP16_NORMAL, FP16_MOST, "blue", "11 bits of precision")
    f.rect(place(FP16_LEAST), 108, place(FP16_NORMAL) - place(FP16_LEAST), 20, fill="yellow")
    f.text((place(FP16_LEAST) + place(FP16_NORMAL)) / 2, 123, "fewer", size=11, anchor="middle")
    found = gradients()
    for y, run, name, scale in ((158, "fp16, scale 1", "gradients", 1), (208, "fp16, scale 65536", "times 65536", 65536)):
        if run not in found:
            raise SystemExit("figures: README.md of mixed_precision has no recorded row \"%s\"" % run)
        largest, small = found[run]
        least = scale * 10.0 ** LOW  # they can be as small as anything
        bar(f, y, name, least, largest, "green")
        f.text(place(least), y + 36, "up to %.0e; %.0f %% below 6e-5" % (largest, small), size=11)
    return f
