#!/usr/bin/env python3
"""Every include of the project against the table of allowed arrows between its rooms; and the lists that must agree.

Reads the repository itself, so it runs always. By hand: tools/includes_test.py [REPOSITORY]
"""
import ast
import os
import re
import sys

# Who may include whom, beside itself. A phase may include earlier phases; a lesson's headers, earlier lessons.
ARROWS = {
    "common": [],
    "common/lesson": ["common", "simt/inspector.h"],
    "common/nn": ["common"],
    "simt": [],
    "phase": ["common", "common/lesson", "common/nn"],
    "exercises": ["learn/check.h"],  # an exercise's check: beside what its phase may
    "learn": ["common", "common/lesson"],
    "tools": ["common", "common/lesson", "common/nn", "phase", "simt"],
}
SOURCE = re.compile(r"\.(c|cc|cpp|cu|cuh|h|hpp|inc)$")


def room_of(path):
    for room in ("common/lesson", "common/nn", "common", "simt", "learn", "tools"):
        if path.startswith(room + "/"):
            return room
    return "phase" if re.match(r"phase\d_", path) else None


def sources(root):
    for folder, folders, files in os.walk(root):
        folders[:] = sorted(f for f in folders if not f.startswith((".", "bazel-")) and f not in ("dist", "runs"))
        for file in sorted(files):
            path = os.path.relpath(os.path.join(folder, file), root)
            if SOURCE.search(path) and room_of(path):
                yield path


def includes(root, path):
    """The line's number, and the path behind its quote or angle bracket. Comments may stand between, and a line break."""
    with open(os.path.join(root, path), errors="replace") as file:
        yield from includes_in(file.read())


def includes_in(text):
    gap = r"(?:[ \t]|\\\n|/\*.*?\*/)*"
    for match in re.finditer(r'^%s#%sinclude%s(["<][^">\n]+)[">]' % (gap, gap, gap), text, re.MULTILINE):
        yield text.count("\n", 0, match.start(1)) + 1, match.group(1)


# Of a later lesson, for the last versions of an earlier one: the instructions of Hopper, which attention uses, too.
LATER = {
    "phase1_building_blocks/14_attention": [
        "phase1_building_blocks/15_matmul_tensor_core/hopper.cuh",
        "phase1_building_blocks/15_matmul_tensor_core/matmul_wgmma.cuh",
    ],
}


def may_include(path, target):
    """None, or why not."""
    room, other = room_of(path), room_of(target)
    allowed = list(ARROWS[room])
    if "/exercises/" in path:
        allowed += ARROWS["exercises"]
    if target in allowed or target in LATER.get(os.path.dirname(path), []):
        return None
    if room == "phase" and other == "phase":
        if int(path[5]) < int(target[5]):
            return "a phase includes earlier phases only"
        lesson, earlier = re.match(r"(phase\d_\w+)/(\d\d)_", path), re.match(r"(phase\d_\w+)/(\d\d)_", target)
        is_header = path.endswith((".cuh", ".h")) and not os.path.basename(path).startswith("test_")
        if lesson and earlier and is_header and "/testdata/" not in target and \
                lesson.group(1) == earlier.group(1) and lesson.group(2) < earlier.group(2):
            return "a lesson's header includes earlier lessons only"
        return None
    if room == other or other in allowed:
        return None
    return "%s includes %s only" % (room, " and ".join([room] + allowed))


def cycles(graph):
    state, stack = {}, []

    def visit(file):
        state[file] = 1
        stack.append(file)
        for target in graph.get(file, ()):
            if state.get(target) == 1:
                yield " -> ".join(stack[stack.index(target):] + [target])
            elif target not in state:
                yield from visit(target)
        stack.pop()
        state[file] = 2

    for file in graph:
        if file not in state:
            yield from visit(file)


def check_includes(root):
    graph = {}
    for path in sources(root):
        # simt/include is a search path of the compiler: its headers find each other as CUDA's do.
        own = os.path.dirname(path)
        graph[path] = []
        for number, written in includes(root, path):
            name = written[1:]
            where = "%s:%d: #include %s%s: " % (path, number, written, ">" if written[0] == "<" else written[0])
            if ".." in name.split("/") and not path.startswith("simt/include/"):
                yield where + "write the path from the workspace, without .."
            if os.path.exists(os.path.join(root, name)) and room_of(name):
                graph[path].append(name)
                why = may_include(path, name)
                if why:
                    yield where + why
            elif written[0] == '"' and room_of(path) != "simt" and os.path.exists(os.path.join(root, own, name)):
                yield where + "write the path from the workspace"
    for cycle in cycles(graph):
        yield "a cycle: " + cycle


def check_course(root):
    """course.bzl, the folders, the phases' tables and the lessons' READMEs name the same lessons and exercises."""
    with open(os.path.join(root, "course.bzl")) as file:
        text = file.read()
    course = ast.literal_eval(text[text.index("\nCOURSE = {") + len("\nCOURSE = "):])
    if list(course) != sorted(course):
        yield "course.bzl: the lessons are not in the order of their numbers"
    for phase in sorted(os.listdir(root)):
        if not re.match(r"phase\d_", phase):
            continue
        with open(os.path.join(root, phase, "README.md")) as file:
            table = file.read()
        for folder in sorted(os.listdir(os.path.join(root, phase))):
            name = "%s/%s" % (phase, folder)
            if not re.match(r"\d\d_", folder) or not os.path.isdir(os.path.join(root, name)):
                continue
            if name not in course:
                yield "course.bzl: %s is missing" % name
                continue
            if "(%s/README.md)" % folder not in table:
                yield "%s/README.md: its table has no line for %s" % (phase, folder)
            try:
                with open(os.path.join(root, name, "README.md")) as file:
                    text = file.read()
            except FileNotFoundError:
                yield "%s: README.md is missing" % name
                continue
            for exercise in course[name]:
                if "`%s`" % exercise not in text:
                    yield "%s/README.md: it does not name the exercise `%s`" % (name, exercise)
    for name in course:
        if not os.path.isdir(os.path.join(root, name)):
            yield "course.bzl: %s is not a folder" % name


def check_links(root):
    """Links and pictures of the documents lead to files."""
    for folder, folders, files in os.walk(root):
        folders[:] = sorted(f for f in folders if not f.startswith((".", "bazel-")) and f not in ("dist", "runs"))
        for file in files:
            if not file.endswith(".md"):
                continue
            path = os.path.join(folder, file)
            with open(path) as text:
                for number, line in enumerate(text, 1):
                    for match in re.finditer(r'\]\(\s*([^)\s#]+)[^)]*\)|(?:src|srcset|href)="([^"#]+)[^"]*"', line):
                        target = match.group(1) or match.group(2)
                        if not re.match(r"\w+:", target) and not os.path.exists(os.path.join(folder, target)):
                            yield "%s:%d: %s is not there" % (os.path.relpath(path, root), number, target)


def check_bazelignore(root):
    """A student's tree keeps replaced BUILD files: `bazel test //...` there must not read them."""
    with open(os.path.join(root, ".bazelignore")) as file:
        ignored = file.read().split()
    for folder in (".learn/backup", ".learn/build", ".learn/new"):
        if folder not in ignored:
            yield ".bazelignore: %s is missing" % folder


def check_diagnoses(root):
    """The authors' guide has the names of common/diagnosis.h, in their order and with what they say."""
    with open(os.path.join(root, "common/diagnosis.h")) as file:
        listed = re.findall(r'\n  D\(\w+, (\w+), "(.*)"\)', file.read())
    with open(os.path.join(root, "docs/exercises_for_authors.md")) as file:
        guide = file.read()
    table = re.findall(r"\n\| `(\w+)` \| (.*) \|(?=\n)", guide[guide.index("| name | what the check found |"):])
    if not listed or table[:len(listed)] != listed:
        for name, says in listed:
            if (name, says) not in table:
                yield "docs/exercises_for_authors.md: its table lacks: | `%s` | %s |" % (name, says)
        yield "docs/exercises_for_authors.md: its table of diagnoses is not that of common/diagnosis.h"


def check_the_checks():
    """The table forbids what it should."""
    for path, target in (("common/a.h", "phase1_x/01_a/a.cuh"), ("common/a.h", "common/nn/graph.h"), ("simt/a.c", "common/a.h"),
                         ("phase1_x/01_a/a.cuh", "phase2_y/01_b/b.cuh"), ("phase1_x/01_a/a.cuh", "phase1_x/02_b/b.cuh"),
                         ("phase1_x/01_a/a.cuh", "learn/check.h"), ("common/nn/a.h", "common/lesson/lesson.h"),
                         ("phase1_x/01_a/a.cuh", "simt/runtime/api.h")):
        if may_include(path, target) is None:
            yield "the test let %s include %s" % (path, target)
    for path, target in (("phase2_y/01_b/b.cuh", "phase1_x/01_a/a.cuh"), ("phase1_x/01_a/exercises/a_check.cu", "learn/check.h"),
                         ("phase1_x/02_b/b.cuh", "phase1_x/01_a/a.cuh"), ("common/lesson/a.h", "simt/inspector.h")):
        if may_include(path, target) is not None:
            yield "the test forbids %s to include %s" % (path, target)
    text = '#include "a.h"\r\n # include <b/c.cuh>\n#/* */include /* x */ \\\n"d.inc"\n// #include "e.h"\n'
    if list(includes_in(text)) != [(1, '"a.h'), (2, "<b/c.cuh"), (4, '"d.inc')]:
        yield "the test does not find all includes: %s" % list(includes_in(text))
    if not list(cycles({"a": ["b"], "b": ["c"], "c": ["a"]})) or list(cycles({"a": ["b", "c"], "b": ["c"]})):
        yield "the test does not find cycles"


def main():
    root = sys.argv[1] if len(sys.argv) > 1 else os.path.dirname(os.path.realpath("WORKSPACE"))
    if not os.path.exists(os.path.join(root, "course.bzl")):
        sys.exit("%s is not the repository: it has no course.bzl" % root)
    if os.path.exists(os.path.join(root, ".learn/tree.json")):
        print("%s is a student's tree, which has no exercises and no authors' guide: nothing to compare" % root)
        return
    found = [fault for check in (check_includes, check_course, check_links, check_bazelignore, check_diagnoses) for fault in check(root)]
    found += check_the_checks()
    print("\n".join(found))
    print("%d files, %d faults" % (len(list(sources(root))), len(found)))
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
