"""Figure of mlp_mnist: a training step as a row of operations, forward and backward, and what an epoch adds."""
from svg import Figure

NODES = [("gather", "batch", "64 × 784", ""), ("fc1", "linear", "64 × 128", "100,480"), ("relu1", "ReLU", "64 × 128", ""),
         ("fc2", "linear", "64 × 10", "1,290"), ("loss", "cross-entropy", "64", "")]


def draw():
    f = Figure(700, 340, "A training step: gather, fc1, relu1, fc2 and the loss, forward from left to right, then the "
                         "gradients from right to left, then the update of all parameters. After each epoch: test, log, "
                         "checkpoint.")
    f.text(20, 26, "A step, 938 per epoch", bold=True)
    f.rect(20, 60, 70, 56, fill="grey", radius=6)
    f.text(55, 84, "bytes on", size=12, anchor="middle")
    f.text(55, 101, "the device", size=12, anchor="middle")
    for i, (name, kind, shape, count) in enumerate(NODES):
        x = 120 + 116 * i
        f.rect(x, 60, 90, 56, fill="blue" if count else "green" if i < 4 else "orange", radius=6)
        f.text(x + 45, 84, name, size=13, anchor="middle", bold=True)
        f.text(x + 45, 103, kind, size=11, anchor="middle")
        f.text(x + 45, 52, shape, size=11, anchor="middle", colour="strong grey")
        f.arrow(x - 24 if i else 92, 78, x - 2, 78, colour="strong blue")
        if i > 1:
            f.arrow(x - 2, 100, x - 24, 100, colour="strong red")
        if count:
            f.text(x + 45, 138, count + " parameters", size=11, anchor="middle")
            f.arrow(x + 45, 146, x + 45, 176, colour="strong red")
    f.text(120, 142, "forward", size=12, colour="strong blue")
    f.text(600, 142, "gradients", size=12, colour="strong red")
    f.rect(200, 178, 362, 34, fill="purple", radius=6, label="update: one kernel for all 101,770 parameters", size=13)
    f.text(20, 256, "After each epoch", bold=True)
    for x, width, text in ((20, 150, "test on 10,000 images"), (190, 150, "a line in the log"), (360, 180, "model and state are saved"),
                           (560, 120, "next order")):
        f.rect(x, 272, width, 34, fill="yellow", radius=6, label=text, size=12)
        if x > 20:
            f.arrow(x - 19, 289, x - 2, 289)
    return f
