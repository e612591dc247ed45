"""Figure of one_step: the launches of LeNet's training step, operation by operation, in pairs, and in chains."""
from svg import Figure

# (name, launches, colour) in the order of the step
OPERATIONS = [("gather", 1, "grey"), ("conv1", 1, "blue"), ("relu1", 1, "blue"), ("pool1", 1, "blue"),
              ("conv2", 1, "teal"), ("relu2", 1, "teal"), ("pool2", 1, "teal"), ("fc1", 1, "green"),
              ("relu3", 1, "green"), ("fc2", 1, "green"), ("relu4", 1, "green"), ("fc3", 1, "green"),
              ("loss", 3, "yellow"), ("fc3", 3, "green"), ("relu4", 1, "green"), ("fc2", 3, "green"),
              ("relu3", 1, "green"), ("fc1", 3, "green"), ("pool2", 1, "teal"), ("relu2", 1, "teal"),
              ("conv2", 3, "teal"), ("pool1", 1, "blue"), ("relu1", 1, "blue"), ("conv1", 2, "blue"),
              ("update", 1, "purple")]
PAIRS = [("gather", 1, "grey"), ("conv1", 1, "blue"), ("pool1", 1, "blue"), ("conv2", 1, "teal"), ("pool2", 1, "teal"),
         ("fc1", 1, "green"), ("fc2", 1, "green"), ("fc3", 1, "green"), ("loss", 3, "yellow"), ("fc3", 1, "green"),
         ("fc2", 1, "green"), ("fc1", 1, "green"), ("pool2", 1, "teal"), ("conv2", 3, "teal"), ("pool1", 1, "blue"),
         ("conv1", 2, "blue"), ("update", 1, "purple")]
CHAINS = [("gather", 1, "grey"), ("conv1..pool1", 1, "blue"), ("conv2..pool2", 1, "teal"), ("fc1..fc3", 1, "green"),
          ("loss", 1, "yellow"), ("fc3..fc1", 3, "green"), ("pool2..conv2", 4, "teal"), ("pool1..conv1", 2, "blue"),
          ("update", 1, "purple")]


def row(f, y, title, operations):
    launches = sum(count for _, count, _ in operations)
    f.text(20, y, "%s: %d launches" % (title, launches), bold=True)
    x = 20
    for _, count, colour in operations:
        for _ in range(count):
            f.rect(x, y + 10, 16, 26, fill=colour, stroke="strong grey", line=0.5)
            x += 18


def draw():
    f = Figure(700, 262, "The launches of a training step of LeNet-5: 36 operation by operation, 22 in pairs, 15 in chains")
    row(f, 26, "operations", OPERATIONS)
    row(f, 90, "pairs", PAIRS)
    row(f, 154, "chains", CHAINS)
    f.text(20, 212, "forward, then loss, backward and update; a box is a launch", size=12)
    f.legend(20, 240, [("grey", "batch"), ("blue", "conv1 to pool1"), ("teal", "conv2 to pool2"),
                       ("green", "fc1 to fc3"), ("yellow", "loss"), ("purple", "update")])
    return f
