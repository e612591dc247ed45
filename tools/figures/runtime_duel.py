"""Figure of runtime_duel: the duel and its contenders, in the order in which it asks."""
from svg import Figure

NAMES = (("ONNX Runtime", "blue"), ("PyTorch", "orange"), ("our engine", "green"))


def draw():
    f = Figure(706, 330, "The duel starts its contenders one after the other, each a process of its own; compares "
               "their answers to the same samples; and measures those that are right in turns, round by round")
    f.text(20, 26, "Contenders are processes that wait for a question", bold=True)
    columns = [(126, 136, "1. start"), (272, 128, "2. compare"), (412, 278, "3. measure in turns")]
    for x, width, name in columns:
        f.brace(x, 66, width, "top", name, size=12)
    for row, (name, fill) in enumerate(NAMES):
        y = 84 + 52 * row
        f.text(20, y + 21, name, size=12)
        f.line(126, y + 15, 690, y + 15, colour="grey")
        f.rect(126 + 46 * row, y, 42, 30, fill=fill, label="start", size=11)
        f.rect(276, y, 54, 30, fill=fill, label="answer", size=11)
        if row == 0:
            f.rect(336, y, 62, 30, fill="grey", label="reference", size=10)
        else:
            f.text(366, y + 20, "= ?", size=13, anchor="middle")
        for r in range(3):
            f.rect(414 + 93 * r + 30 * row, y, 28, 30, fill=fill, label="%d" % (r + 1), size=11)
    f.line(268, 76, 268, 236, colour="strong grey", dash=True)
    f.line(405, 76, 405, 236, colour="strong grey", dash=True)
    f.arrow(126, 252, 690, 252)
    f.text(126, 270, "time", size=12)
    f.text(20, 296, "From the start of a process to its first answer: \"first s\". An answer that differs too much: "
           "the row says so, and", size=11)
    f.text(20, 314, "nothing of it is measured. 1, 2, 3: rounds of a third of a second each; all the others wait meanwhile.",
           size=11)
    return f
