"""Figure of mlp_one_kernel: which block has which tile of w1, and what the blocks send each other in a step."""
from svg import Figure


def draw():
    f = Figure(700, 400, "Left: w1 in 7 x 16 tiles of 112 inputs and 8 hidden units, one block each. Right: a step of a "
                         "block: forward with its tile, shares to the block that has the image, sample, and what comes "
                         "of it back to all blocks, which update their tile.")
    f.text(20, 26, "w1 in tiles: 112 blocks", bold=True)
    g = f.grid(64, 62, 7, 16, cell=(12, 26), fill=lambda r, c: "strong orange" if (r, c) == (2, 5) else "orange"
               if r == 2 or c == 5 else None)
    f.text(64, 54, "128 hidden units", size=12)
    f.text(20, 152, "784", size=12)
    f.text(20, 168, "inputs", size=12)
    f.text(64, 266, "a tile: 112 inputs, 8 units", size=12)
    f.text(64, 286, "in shared memory for the epoch", size=12)
    f.text(20, 330, "Forward, the gradient and the update", size=12)
    f.text(20, 348, "of a tile need the same pixels. No other", size=12)
    f.text(20, 366, "block ever needs the tile.", size=12)
    f.line(302, 16, 302, 384, colour="grey")

    f.text(322, 26, "A step", bold=True)
    rows = [(48, "forward", "each block has a tile", "orange"), (158, "sample", "each block has an image", "blue"),
            (268, "update", "each block has its tile again", "orange")]
    for y, name, what, colour in rows:
        f.rect(322, y, 356, 48, fill=colour, radius=6)
        f.text(336, y + 20, name, size=13, bold=True)
        f.text(336, y + 38, what, size=12)
    f.text(470, 68, "x · tile: a share of 8 sums", size=12)
    f.text(516, 178, "7 shares: h, loss, delta", size=12)
    f.text(530, 288, "tile −= lr · velocity", size=12)
    f.arrow(400, 98, 400, 155, colour="strong red")
    f.text(412, 122, "64 × 128 × 7 shares", size=12)
    f.text(412, 140, "through the L2 cache", size=12, colour="strong grey")
    f.arrow(400, 208, 400, 265, colour="strong red")
    f.text(412, 232, "64 × (2 × 128 + 10) numbers", size=12)
    f.text(412, 250, "through the L2 cache", size=12, colour="strong grey")
    f.text(322, 344, "fused: a kernel ends at each red arrow", size=12)
    f.text(322, 362, "grid_sync: all blocks wait for all", size=12)
    f.text(322, 380, "flags: a reader waits for its own numbers only", size=12)
    return f
