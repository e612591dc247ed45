#!/usr/bin/env python3
"""The figures of the lessons are what their scripts draw, and no text leaves its canvas or covers another.

Reads the repository itself, so it runs always. By hand: tools/figures_test.py [REPOSITORY]
"""
import importlib.machinery
import importlib.util
import os
import re
import shutil
import sys
import tempfile


def load(root):
    """tools/figures/draw as a module."""
    path = os.path.join(root, "tools/figures/draw")
    loader = importlib.machinery.SourceFileLoader("draw", path)
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("draw", loader))
    loader.exec_module(module)
    return module


def check_the_checks(root, draw):
    """What each check is there for is found."""
    from svg import Figure

    def faults(use):
        f = Figure(200, 100, "a test")
        use(f)
        return f.faults()

    for what, use, expected in (
            ("a text beyond the right edge", lambda f: f.text(150, 50, "too long for this"), "leaves the canvas"),
            ("a rectangle beyond the lower edge", lambda f: f.rect(0, 90, 20, 20), "leaves the canvas"),
            ("two texts at one place", lambda f: (f.text(20, 50, "one"), f.text(25, 52, "two")), "overlap"),
            ("labels wider than their cells", lambda f: f.grid(0, 0, 1, 4, cell=10, label="1000"), "overlap")):
        if not any(expected in fault for fault in faults(use)):
            yield "svg.py did not refuse %s" % what
    if faults(lambda f: (f.text(20, 50, "one"), f.text(20, 70, "two"), f.grid(100, 0, 2, 2, label=1))):
        yield "svg.py refused texts beside each other"

    topic = next(draw.topics())
    lesson = os.path.relpath(draw.folder_of(root, topic), root)
    with tempfile.TemporaryDirectory() as copy:
        shutil.copytree(os.path.join(root, lesson), os.path.join(copy, lesson))
        figure, readme = os.path.join(copy, lesson, "figure.svg"), os.path.join(copy, lesson, "README.md")
        stray = os.path.join(copy, os.path.dirname(lesson), "99_stray")
        with open(readme, "a") as file:
            file.write("![the figure](figure.svg)\n")
        if list(draw.check(copy, [topic])):
            yield "the test found faults in a figure without any"
        with open(figure) as file:
            drawn = file.read()
        with open(figure, "w") as file:
            file.write(re.sub(r'x="\d', 'x="9', drawn, count=1))
        if not any("is not what" in fault for fault in draw.check(copy, [topic])):
            yield "the test did not find a figure that was edited by hand"
        os.remove(figure)
        if not any("is missing" in fault for fault in draw.check(copy, [topic])):
            yield "the test did not find that a figure is missing"
        os.mkdir(stray)
        open(os.path.join(stray, "figure.svg"), "w").close()
        if not any("no script" in fault for fault in draw.check(copy)):
            yield "the test did not find a figure without a script"


def main():
    root = sys.argv[1] if len(sys.argv) > 1 else os.path.dirname(os.path.realpath("WORKSPACE"))
    if not os.path.exists(os.path.join(root, "course.bzl")):
        sys.exit("%s is not the repository: it has no course.bzl" % root)
    draw = load(root)
    found = list(draw.check(root)) + list(check_the_checks(root, draw))
    print("\n".join(found))
    print("%d figures, %d faults" % (len(list(draw.topics())), len(found)))
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
