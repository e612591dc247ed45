"""Figure of mlp: what a warp reads in the backward pass, with one sample per thread and with four."""
from svg import Figure


def panel(f, x, title, samples, lines):
    f.text(x, 26, title, bold=True)
    f.text(x + 22, 50, "w (O,I)", size=12)
    w = f.grid(x + 22, 60, 5, 32, cell=(7, 14), fill=lambda r, c: "strong green" if r == 2 else "green", stroke="paper")
    f.text(x + 14, 101, "o", size=12, anchor="end")
    f.text(x + 252, 100, "4 sectors", size=12, colour="strong green")
    f.text(x + 22, 158, "dy (B,O)", size=12)
    f.grid(x + 22, 168, 4, 5, cell=(24, 18),
           fill=lambda r, c: "strong orange" if c == 2 and r < samples else "orange" if r < samples else None)
    f.text(x + 82, 256, "o", size=12, anchor="middle")
    f.text(x + 152, 192, "%d sector%s" % (samples, "" if samples == 1 else "s"), size=12, colour="strong orange")
    f.text(x + 152, 208, "one per sample", size=12)
    for i, line in enumerate(lines):
        f.text(x, 284 + 18 * i, line, size=12)


def draw():
    f = Figure(700, 346, "For each output o a warp reads 32 neighbours of row o of w, four sectors, and one dy per sample. "
                         "With one sample per thread these are 5 sectors for 32 products; with four, 8 sectors for 128.")
    panel(f, 20, "one sample per thread", 1,
          ("5 sectors for 32 products", "256 warps × (5 × 32 + 4)", "= 41,984 sectors"))
    f.line(350, 16, 350, 332, colour="grey")
    panel(f, 370, "four samples per thread", 4,
          ("8 sectors for 128 products", "64 warps × (8 × 32 + 16)", "= 17,408 sectors"))
    return f
