#!/usr/bin/env python3
"""learn from init to the last exercise, in a terminal, as a student meets it; and what may go wrong."""
import glob
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))
import course


def one_sentence(test, text, *words):
    """One line of error with these words in it, and no trace of a crash."""
    test.assertEqual(len([line for line in text.splitlines() if "error: " in line]), 1, text)
    for word in words:
        test.assertIn(word, text)


class Journey(unittest.TestCase):
    """The first three exercises, the first broken ones, every twentieth, and the last."""

    def test_from_the_first_to_the_last(self):
        tree = course.Tree("journey")
        self.walk(tree, self.stops(tree.exercises))

    def stops(self, exercises):
        broken = [number for number, exercise in enumerate(exercises) if exercise["broken"]]
        return {0, 1, 2, *broken[:2], *range(0, len(exercises), 20), len(exercises) - 1}

    def walk(self, tree, stops):
        first = tree.exercises[0]["name"]
        self.assertEqual(len(tree.exercises), len(set(exercise["name"] for exercise in tree.exercises)))
        self.assertGreaterEqual(len(tree.exercises), 12)
        self.assertGreaterEqual(sum(exercise["broken"] != "" for exercise in tree.exercises), 3)
        for number, exercise in enumerate(tree.exercises):
            name = exercise["name"]
            if number not in stops:  # it has passed on another day
                progress = tree.progress()
                progress["exercises"][name] = {"passed": True, "passed_at": "2026-01-31 12:00:00"}
                tree.write(".learn/progress.json", json.dumps(progress))
                continue
            terminal = course.Terminal(["./nn", "next"], tree.root)
            status, text = terminal.end()
            self.assertEqual(status, 0)
            self.assertIn(exercise["title"].split(":")[0], text)
            self.assertIn("%s:" % exercise["file"], text)  # FILE:LINE
            self.assertIn("\033]8;;file://", text)  # a link
            self.assertIn("%d of %d" % (number, len(tree.exercises)), text)
            # A wrong answer first, now and then (prove has them all): what was given, if that is broken, else nothing
            # but an empty statement.
            if exercise["broken"] or number % 10 == 0:
                if not exercise["broken"]:
                    tree.put(name, tree.lines(name).replace("TODO(%s);" % name, ";"))
                status, text = course.Terminal(["./nn", "check"], tree.root).end()
                self.assertEqual(status, 1, text)
                self.assertIn("a hint:", text.lower())
                self.assertNotIn(name, tree.passed())
            tree.put(name, tree.solution(name))
            status, text = course.Terminal(["./nn", "check"], tree.root).end()
            self.assertEqual(status, 0, text)
            self.assertIn("passed", text)
            self.assertIn("reference", text)  # the counts of both
            self.assertIn("To look at:", text)
            self.assertIn("LEARN_MINE_%s 1" % name, tree.read(".learn/passed.h"))
            if number == 1:  # killed in the middle of a check: nothing is lost, and it goes on
                before = tree.progress()
                process = subprocess.Popen(["./nn", "check", first], cwd=tree.root, stdout=subprocess.DEVNULL,
                                           start_new_session=True)
                time.sleep(0.3)
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
                self.assertEqual(tree.progress()["exercises"], before["exercises"])
        status, text = tree.nn("next")
        self.assertEqual(status, 0)
        self.assertIn("All exercises have passed", text)
        self.assertNotIn("\033", text)  # no terminal, no colours
        self.assertEqual(len(tree.passed()), len(tree.exercises))


def first_mutant(name, solution):
    """The lines of the first mutant in the author's file: `solution`, edited as that says."""
    (path,) = glob.glob(os.path.join(course.SOURCE, "phase*/*/exercises/%s.txt" % name))
    with open(path) as file:
        lines = file.read().split("\nmutant:")[1].split("\n")
    hunks = [([], [])]
    for line in lines:
        if line[:1] == "-" and hunks[-1][1]:
            hunks.append(([], []))
        if line[:1] in ("-", "+") and line[:1] != "":
            hunks[-1][line[0] == "+"].append(line[1:].strip())
    text = [line.strip() for line in solution.split("\n")]
    for old, new in hunks:
        if not old:
            text = new
            continue
        at = next(i for i in range(len(text)) if text[i:i + len(old)] == old)
        text[at:at + len(old)] = new
    return "".join("  %s\n" % line for line in text)


class Agreement(unittest.TestCase):
    """`nn check` and the grader say the same of a solution and a mutant of each lesson's last exercise. LEARN_ONLY: of these.

    Bazel's shards share the lessons.
    """

    def test_check_and_grader_agree(self):
        tree = course.Tree("agreement")
        only = os.environ.get("LEARN_ONLY", "")
        last = {os.path.dirname(exercise["file"]): exercise["name"] for exercise in tree.exercises}
        names = [e["name"] for e in tree.exercises if e["name"] in (only.split(",") if only else last.values())]
        names = names[int(os.environ.get("TEST_SHARD_INDEX", 0))::int(os.environ.get("TEST_TOTAL_SHARDS", 1))]
        disagreements = []
        for mutants in (True, False):  # what has passed is used by others: the mutants come first
            for name in names:
                tree.put(name, first_mutant(name, tree.solution(name)) if mutants else tree.solution(name))
            report = os.path.join(course.TMP, "agreement.json")
            status, text = course.run(course.GRADE, "--source=" + course.SOURCE, "--only=" + ",".join(names), "--minutes=1000",
                                      "--json=" + report, tree.root, timeout=3000)
            if status != 0 and "this machine forbids" in text:
                self.skipTest(text)
            self.assertEqual(status, 0, text)
            with open(report) as file:
                grades = {item["exercise"]: item for item in json.load(file)["submissions"][0]["exercises"]}
            for name in names:
                status, text = tree.nn("check", name, timeout=600)
                grade = grades[name]
                # Other inputs: other numbers in the same sentence, of one element or of many. What the terminal wraps is one line.
                said, diagnosis = (re.sub(r"-?[\d.]+(?:e[-+]\d+)?|\bNaN\b|\binf\b|\belements? (is|are)\b|\s+", " ", words).split()
                                   for words in (text, grade["diagnosis"].split("The first:")[0]))
                same = " ".join(diagnosis[:12]) in " ".join(said)
                if (status == 0) != (grade["status"] == "correct") or (mutants and not same) or mutants == (status == 0):
                    disagreements.append("%s of %s: check ends with %d and says\n%s\nthe grader says %s: %s" % (
                        "mutant" if mutants else "solution", name, status, text, grade["status"], grade["diagnosis"]))
        self.assertEqual(disagreements, [], "\n".join(disagreements))
        print("check and grader agree on %d solutions and %d mutants" % (len(names), len(names)))


class Commands(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.tree = course.Tree("commands")

    def test_goes_to_an_exercise_and_back(self):
        tree = course.Tree("moves")
        for words, current in ((["next", "transpose_tiled"], "transpose_tiled"), (["prev"], "transpose_coalesced"),
                               (["next", "2"], "vector_add_grid"), (["prev"], "vector_add_index"),
                               (["prev"], "vector_add_index")):
            status, text = tree.nn(*words)
            self.assertEqual(status, 0, text)
            self.assertIn(current + ": ", text)
            self.assertIn(tree.exercise(current)["title"], text)
        status, text = tree.nn("list")  # no terminal: all of it, at once
        self.assertIn("now    1  vector_add_index", text)
        self.assertIn("67  ", text)

    def test_a_list_to_move_in(self):
        tree = course.Tree("list")
        tree.put("transpose_padded", "  // mine\n")
        terminal = course.Terminal(["./nn", "list"], tree.root)
        terminal.wait_for("Enter: go there")
        terminal.type("/Transpose\r")
        terminal.wait_for("with Transpose")
        terminal.type("\033[Bjjk")
        terminal.wait_for("> ")
        terminal.type("jf")
        terminal.wait_for("shown: open")
        terminal.type("r")
        terminal.wait_for("reset transpose_padded")
        terminal.type("n")
        terminal.wait_for("Enter: go there")
        self.assertEqual(tree.lines("transpose_padded"), "  // mine\n")
        terminal.type("ry")
        terminal.wait_for("as it was at the start")
        self.assertIn("TODO", tree.lines("transpose_padded"))
        terminal.wait_for("Enter: go there")
        terminal.type("/padded\r\r")
        terminal.wait_for("transpose_padded: ")
        self.assertEqual(terminal.end()[0], 0)
        self.assertEqual(tree.progress()["current"], "transpose_padded")

    def test_hints_come_one_by_one(self):
        for count in (1, 2, 3, 3):
            status, text = self.tree.nn("hint", "transpose_padded")
            self.assertEqual(status, 0)
            self.assertIn("%d of 3" % count, text)
            self.assertEqual(sum(line.strip()[:2] in ("1.", "2.", "3.") for line in text.splitlines()), count)

    def test_solution_after_success_or_when_asked_twice(self):
        code = self.tree.solution("transpose_naive").strip()
        status, text = self.tree.nn("solution", "transpose_naive")
        self.assertEqual(status, 1)
        self.assertNotIn(code, text)
        status, text = self.tree.nn("solution", "transpose_naive")
        self.assertEqual(status, 0)
        self.assertIn(code, text)

    def test_reset_keeps_a_copy(self):
        name = "transpose_coalesced"
        stub = self.tree.lines(name)
        self.tree.put(name, "  row = 17; // mine\n")
        status, text = self.tree.nn("reset", name)
        self.assertEqual(status, 0, text)
        self.assertEqual(self.tree.lines(name), stub)
        backups = os.listdir(self.tree.path(".learn/backup"))
        self.assertTrue(any("row = 17; // mine" in self.tree.read(".learn/backup/" + file) for file in backups))

    def test_colours_are_for_terminals(self):
        status, text = course.Terminal(["./nn", "next"], self.tree.root).end()
        self.assertIn("\033[", text)
        status, text = course.Terminal(["./nn", "next"], self.tree.root, {"NO_COLOR": "1"}).end()
        self.assertNotIn("\033", text)
        status, text = self.tree.nn("status")
        self.assertNotIn("\033", text)
        self.assertIn("of %d" % len(self.tree.exercises), text)

    def test_works_from_a_folder_below_and_from_elsewhere(self):
        status, text = course.run("../nn", "list", cwd=self.tree.path("phase1_building_blocks"))
        self.assertEqual(status, 0, text)
        status, text = course.run(self.tree.path("nn"), "list", cwd="/")
        self.assertEqual(status, 0, text)

    def test_a_check_takes_what_the_grader_takes(self):
        """The lines of the exercise and the helpers; what stands elsewhere in the file has no effect, and that is said."""
        name = "transpose_naive"
        file, solution = self.tree.exercise(name)["file"], self.tree.solution(name)
        for words in ("#define IDX 1\n", "#if 0\n#endif\n", "  [[maybe_unused]] int x;\n"):
            self.tree.put(name, words + solution)
            status, text = self.tree.nn("check", name)
            self.assertEqual(status, 1, text)
            self.assertIn("refused", text)
        code = "if (row < rows && col < cols) out[place(col, row, rows)] = in[place(row, col, cols)];\n"
        helper = "__device__ size_t place(int row, int col, int cols) { return (size_t)row * cols + col; }\n"
        self.tree.put(name, "  " + code)
        before = self.tree.read(file)
        kernel = "static __global__ void transpose_naive_rows_kernel"
        self.tree.write(file, before.replace(kernel, helper + kernel))
        number = before[:before.index(kernel)].count("\n") + 1
        used = before[:before.index(code)].count("\n") + 2
        status, text = self.tree.nn("check", name)
        self.assertEqual(status, 1, text)
        self.assertIn("does not compile", text)
        self.assertIn("%s:%d: error" % (file, used), text)  # in the student's file, not in ours
        self.assertIn("%d |   if (row < rows" % used, text)
        self.assertIn("no effect", text)
        self.assertIn("%s:%d" % (file, number), text)
        self.assertIn("// >>> helpers", text)
        status, text = self.tree.nn("restore", name)
        self.assertEqual(status, 0, text)
        self.assertEqual(self.tree.read(file), before)
        backups = [entry for entry in os.listdir(self.tree.path(".learn/backup")) if entry.startswith(name)]
        self.assertTrue(any(helper in self.tree.read(".learn/backup/" + entry) for entry in backups))
        self.tree.put_helpers(file, helper)
        status, text = self.tree.nn("check", name)
        self.assertEqual(status, 0, text)
        self.assertNotIn("no effect", text)
        for words in ("extern int x;\n", "}\nint x;\n", "#define y\n"):
            self.tree.put_helpers(file, words)
            status, text = self.tree.nn("check", name)
            self.assertEqual(status, 1, text)
            self.assertIn("helpers: ", text)
        self.tree.put_helpers(file, "")
        self.tree.put(name, solution)
        shared = self.tree.read("common/check.h")
        self.tree.write("common/check.h", shared + "// mine\n")
        status, text = self.tree.nn("check", name)
        self.assertEqual(status, 0, text)
        self.assertIn("edited  common/check.h", text)
        self.tree.write("common/check.h", shared)
        self.assertEqual(self.tree.nn("reset", name)[0], 0)

    def test_passed_lines_are_used_and_dropped_when_they_break(self):
        name = "vector_add_index"
        self.tree.put(name, self.tree.solution(name))
        self.assertEqual(self.tree.nn("check", name)[0], 0)
        self.assertIn("LEARN_MINE_" + name, self.tree.read(".learn/passed.h"))
        self.tree.put(name, "  c[0] = 1;\n")
        status, text = self.tree.nn("check", name)
        self.assertEqual(status, 1)
        self.assertIn("had passed before", text)
        self.assertNotIn("LEARN_MINE_" + name, self.tree.read(".learn/passed.h"))

    def test_the_solutions_are_out_of_sight(self):
        tree = course.Tree("fresh")
        for exercise in tree.exercises:
            text = tree.read(exercise["file"])
            self.assertNotIn("// hint:", text)
            if not exercise["broken"]:
                self.assertIn("TODO(%s)" % exercise["name"], text)
            self.assertFalse(os.path.exists(tree.path("phase1_building_blocks/01_vector_add/exercises")))
        # What a test of wrong versions shares with a solution, and heads of loops beside one.
        self.assertIn("feed_worked(feed, i - FEED_BUFFERS)", tree.solution("feed_overlapped"))
        self.assertNotIn("feed_worked(feed, i - FEED_BUFFERS)", tree.read("phase2_mlp/06_streams/input_pipeline_test.cu"))
        solution, file = tree.solution("matmul_wmma_fragments"), tree.read("phase1_building_blocks/15_matmul_tensor_core/matmul_wmma.cuh")
        for head in re.findall(r"for \(.*?\)", solution):
            self.assertNotIn(head, file)


class Watch(unittest.TestCase):
    def watch(self, name, *options):
        tree = course.Tree(name)
        terminal = course.Terminal(["./nn", "watch", "vector_add_index", *options], tree.root)
        terminal.wait_for("not implemented")
        terminal.wait_for("q: quit")
        tree.put("vector_add_index", "  c[threadIdx.x] = 0;\n")
        terminal.wait_for("wrong")
        terminal.wait_for("q: quit")
        terminal.type("h")
        terminal.wait_for("1 of 3")
        terminal.type("l")
        terminal.wait_for("Enter: go there")
        terminal.type("q")
        terminal.wait_for("Exercise 1")
        tree.put("vector_add_index", tree.solution("vector_add_index"))
        terminal.wait_for("passed")
        terminal.wait_for("q: quit")
        # It never goes on by itself: saving again checks the same exercise.
        tree.put("vector_add_index", tree.solution("vector_add_index"))
        self.assertIn("vector_add_index", terminal.wait_for("q: quit"))
        self.assertEqual(tree.progress()["current"], "vector_add_index")
        terminal.type("n")
        terminal.wait_for("Exercise 2")
        # What is checked is what was saved: another exercise of the file, and then the current one.
        tree.put("vector_add_stride", "  c[0] = 1;\n")
        self.assertIn("vector_add_stride", terminal.wait_for("q: quit"))
        self.assertEqual(tree.progress()["current"], "vector_add_stride")
        tree.put_helpers(tree.exercise("vector_add_stride")["file"], "#define X\n")
        said = terminal.wait_for("q: quit")
        self.assertIn("vector_add_stride", said)
        self.assertIn("helpers: ", said)
        tree.put("transpose_naive", "  (void)row;\n")
        self.assertIn("transpose_naive", terminal.wait_for("q: quit"))
        terminal.type("p")
        terminal.wait_for("Exercise 3:")
        terminal.type("q")
        status, _ = terminal.end()
        self.assertEqual(status, 0)

    def test_watches(self):
        self.watch("watch")

    def test_two_terminals(self):
        tree = course.Tree("two")
        names = ["vector_add_index", "vector_add_grid", "vector_add_stride"]
        watch = course.Terminal(["./nn", "watch"], tree.root)
        watch.wait_for("q: quit")
        for name in names[1:]:
            tree.put(name, tree.solution(name))
        others = [subprocess.Popen(["./nn", "check", name], cwd=tree.root, stdout=subprocess.DEVNULL) for name in names[1:]]
        self.assertEqual([other.wait(60) for other in others], [0, 0])
        watch.quiet(3)
        tree.put(names[0], tree.solution(names[0]))
        watch.wait_for("passed")
        watch.wait_for("q: quit")
        self.assertEqual(sorted(tree.passed()), sorted(names))
        watch.type("q")
        self.assertEqual(watch.end()[0], 0)

    def test_polls(self):
        self.watch("poll", "--poll")


class BadInput(unittest.TestCase):
    """One clear sentence each, and the student's lines are still there."""

    @classmethod
    def setUpClass(cls):
        cls.tree = course.Tree("bad")

    def check(self, lines, *words, name="vector_add_index"):
        self.tree.put(name, lines)
        status, text = self.tree.nn("check", name)
        self.assertEqual(status, 1, text)
        for word in words:
            self.assertIn(word, text)
        self.assertEqual(self.tree.lines(name), lines)
        self.assertNotIn(name, self.tree.passed())

    def test_code_that_does_not_compile(self):
        self.check("  size_t i = ;\n", "does not compile", "phase1_building_blocks/01_vector_add/vector_add.cuh:", "expected")
        self.check("  }\n", "does not compile")

    def test_endless_loop(self):
        begin = time.monotonic()
        self.check("  while (n > 0) c[0] = 1;\n", "timeout", "loop that does not end")
        self.assertLess(time.monotonic() - begin, 60)

    def test_crash(self):
        self.check("  *(volatile int *)8 = 1;\n", "vector_add_index")
        self.check("  __builtin_trap();\n", "illegal instruction")
        self.check("  exit(0);\n", "does not compile", "exit() is a function of", "return")

    def test_grid_of_no_blocks(self):
        self.check("  grid = (unsigned)(n / 256);\n", "wrong", "a grid of no blocks", "round up", name="vector_add_grid")

    def test_what_only_another_run_shows(self):
        file = self.tree.exercise("vector_add_index")["file"]
        self.tree.put_helpers(file, "__device__ unsigned count;\n")
        sum = "  size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;\n  if (i < n) c[i] = a[i] + b[i];\n"
        self.check(sum + "  if (i == 0 && count++ == 1) c[i] = 0;\n", "That was the second run", "was right")
        self.check(sum + "  unsigned before = atomicInc(&count, gridDim.x * blockDim.x - 1);  // in this launch\n"
                   "  if (before / blockDim.x != blockIdx.x && i < n) c[i] = 0;\n",
                   "right when the threads run in one order, and wrong in the other")
        self.tree.put_helpers(file, "")

    def test_brackets(self):
        self.check("  if (n > 0) {\n", "does not compile", "a '{' is not closed")
        self.check("  c[0] = 1; }\n", "does not compile", "a '}' closes what was not opened")

    def test_flood(self):
        self.check('  for (;;) printf("all right\\n");\n', "vector_add_index")

    def test_todo_left_in(self):
        self.check(self.tree.solution("vector_add_index") + "  if (n > 100000000) TODO(vector_add_index);\n", "remove the line")

    def test_deleted_file(self):
        name = "transpose_naive"
        file = self.tree.exercise(name)["file"]
        self.tree.put(name, "  // mine\n  (void)row;\n")
        self.tree.nn("check", name)
        os.remove(self.tree.path(file))
        status, text = self.tree.nn("check", name)
        self.assertEqual(status, 1)
        one_sentence(self, text, file, "is gone", "`./nn reset %s`" % name)
        status, text = self.tree.nn("reset", name)  # it repairs, and takes nothing away
        self.assertEqual(status, 0, text)
        self.assertIn("with your lines", text)
        self.assertEqual(self.tree.lines(name), "  // mine\n  (void)row;\n")
        os.remove(self.tree.path(file))
        status, text = self.tree.nn("reset", "transpose_padded")  # another exercise of the same file
        self.assertEqual(status, 0, text)
        self.assertEqual(self.tree.lines(name), "  // mine\n  (void)row;\n")

    def test_deleted_marker(self):
        name = "matmul_tiled_load"
        file = self.tree.exercise(name)["file"]
        self.tree.put(name, "  // mine\n")
        self.tree.nn("check", name)
        text = self.tree.read(file)
        self.tree.write(file, text.replace("  // <<< exercise\n", "", 1))
        status, text = self.tree.nn("check", name)
        self.assertEqual(status, 1)
        one_sentence(self, text, file, "missing", "reset")
        status, text = self.tree.nn("reset", name)
        self.assertEqual(status, 0, text)
        self.assertEqual(self.tree.lines(name), "  // mine\n")
        status, text = self.tree.nn("reset", name)
        self.assertEqual(status, 0, text)
        self.assertIn("TODO(%s)" % name, self.tree.lines(name))
        backups = os.listdir(self.tree.path(".learn/backup"))
        self.assertTrue(any("// mine" in self.tree.read(".learn/backup/" + entry) for entry in backups))

    def test_unknown_exercise(self):
        status, text = self.tree.nn("check", "transpose_tield")
        self.assertEqual(status, 1)
        one_sentence(self, text, "transpose_tield", "did you mean transpose_t")
        status, text = self.tree.nn("check", "wmma")
        one_sentence(self, text, "did you mean attention_wmma_scores, matmul_wmma_naive or ")
        status, text = self.tree.nn("check", "999")
        one_sentence(self, text, '"999"', "list")
        status, text = self.tree.nn("chekc")
        self.assertEqual(status, 2)
        one_sentence(self, text, "chekc", "did you mean check?")
        status, text = self.tree.nn("frobnicate")
        self.assertEqual(status, 2)
        one_sentence(self, text, "frobnicate", "--help")
        self.assertNotIn("did you mean", text)

    def test_a_word_too_many(self):  # not left out: who names two exercises wants both
        for words in ["check", "vector_add_index", "nosuch"], ["list", "foo"], ["prepare", "foo"]:
            status, text = self.tree.nn(*words)
            self.assertEqual(status, 2, text)
            one_sentence(self, text, words[0], '"%s" is too much' % words[-1])

    def test_not_in_a_tree(self):
        status, text = course.run(course.LEARN, "check", cwd="/")
        self.assertEqual(status, 1)
        one_sentence(self, text, "not inside a student's tree", "init")

    def test_a_full_disk(self):
        status, text = course.run("/bin/sh", "-c", "./nn list > /dev/full", cwd=self.tree.root)
        self.assertEqual(status, 1, text)
        one_sentence(self, text, "cannot be written to stdout")

    def test_damaged_progress(self):
        tree = course.Tree("damaged")
        tree.write(".learn/progress.json", "{ \"current\": ")
        status, text = tree.nn("list")
        self.assertEqual(status, 1)
        one_sentence(self, text, "progress.json", "damaged")

    def test_read_only_folder(self):
        if subprocess.run(["bwrap", "--dev-bind", "/", "/", "true"], stderr=subprocess.DEVNULL).returncode != 0:
            self.skipTest("bubblewrap makes no namespaces here")
        status, text = course.run("bwrap", "--dev-bind", "/", "/", "--ro-bind", self.tree.root, self.tree.root, "--chdir",
                                  self.tree.root, "./nn", "check")
        self.assertEqual(status, 1)
        one_sentence(self, text, "Read-only", "copy it")


class Init(unittest.TestCase):
    def init(self, *arguments):
        return course.run(course.LEARN, "init", *arguments, "--no-prepare", "--source=" + course.SOURCE)

    def test_leaves_other_folders_alone(self):
        folder = os.path.join(course.TMP, "full")
        os.makedirs(folder)
        with open(os.path.join(folder, "thesis.txt"), "w") as file:
            file.write("mine")
        status, text = self.init(folder)
        self.assertEqual(status, 1)
        one_sentence(self, text, "not empty")
        self.assertEqual(os.listdir(folder), ["thesis.txt"])
        status, text = self.init(os.path.join(folder, "thesis.txt"))
        self.assertEqual(status, 1)
        one_sentence(self, text, "is a file")

    def test_an_older_tree_is_updated_and_nothing_is_lost(self):
        tree = course.Tree("older")
        name, other = "vector_add_index", "transpose_naive"
        tree.put(name, tree.solution(name))
        self.assertEqual(tree.nn("check", name)[0], 0)
        tree.put(other, "  // half done\n  (void)col;\n")
        tree.write("common/error.h", "// my notes\n" + tree.read("common/error.h"))
        helpers = "__device__ int mine(int x) { return x; }\n"
        vector_add = tree.exercise(name)["file"]
        tree.put_helpers(vector_add, helpers)
        tree.write(vector_add, tree.read(vector_add).replace("#include <stddef.h>\n", "#include <stddef.h>\n#define MINE 7\n"))
        # What the tree knows of its exercises is the old course's: a check that is gone, a reference that was wrong.
        tree.write(".learn/check/gone_check.cu", "// the old course's\n")
        # A folder elsewhere that is linked to from there.
        elsewhere = os.path.join(course.TMP, "elsewhere")
        os.makedirs(elsewhere)
        with open(os.path.join(elsewhere, "thesis.txt"), "w") as file:
            file.write("my thesis")
        os.symlink(elsewhere, tree.path(".learn/check/elsewhere"))
        reference = ".learn/reference/matmul_naive.cuh"
        right = tree.read(reference)
        tree.write(reference, "  // the old course's\n")
        # A file with a place that is damaged, and an exercise that has moved to another file since.
        damaged = tree.exercise("matmul_tiled_load")["file"]
        tree.write(damaged, tree.read(damaged).replace("  // <<< exercise\n", "  int kept; // by name\n", 1))
        moved = tree.exercise("perceptron_forward")
        tree.put("perceptron_forward", "  // half done, too\n")
        os.rename(tree.path(moved["file"]), tree.path("phase2_mlp/earlier.cuh"))
        exercises = json.loads(tree.read(".learn/exercises.json"))
        for exercise in exercises["exercises"]:
            if exercise["file"] == moved["file"]:
                exercise["file"] = "phase2_mlp/earlier.cuh"
        tree.write(".learn/exercises.json", json.dumps(exercises))
        # A file in a code that no compiler reads.
        utf16 = tree.exercise("dropout_one")["file"]
        tree.put("dropout_one", "  int recoded;\n")
        text_utf16 = tree.read(utf16)
        with open(tree.path(utf16), "wb") as file:
            file.write(text_utf16.encode("utf-16"))
        # A file that the new course does not have.
        tree.write("phase2_mlp/gone.cuh", "// the course's\n")
        tree.write(".learn/files.txt", tree.read(".learn/files.txt") + "%016x phase2_mlp/gone.cuh\n" % 1)
        # What an older course may have looked like.
        tree.write(".learn/tree.json", tree.read(".learn/tree.json").replace('"format": 1', '"format": 0'))
        tree.write(".learn/exercises.json", tree.read(".learn/exercises.json").replace("A thread", "One thread"))
        header = tree.exercise(other)["file"]
        tree.write(header, tree.read(header).replace("Nothing is computed", "Nothing was computed"))
        status, text = tree.nn("list")
        self.assertEqual(status, 1)
        one_sentence(self, text, "older version", "init --update")
        status, text = self.init(tree.root)
        self.assertEqual(status, 1)
        one_sentence(self, text, "--update")
        status, text = self.init("--update", tree.root)
        self.assertEqual(status, 0, text)
        self.assertEqual(tree.lines(name), tree.solution(name))
        self.assertEqual(tree.lines(other), "  // half done\n  (void)col;\n")
        self.assertEqual(tree.passed(), [name])
        self.assertEqual(tree.read(reference), right)
        self.assertFalse(os.path.exists(tree.path(".learn/check/gone_check.cu")))
        self.assertEqual(os.listdir(elsewhere), ["thesis.txt"])
        now = {exercise["name"]: exercise["file"] for exercise in json.loads(tree.read(".learn/exercises.json"))["exercises"]}
        self.assertEqual(now["perceptron_forward"], moved["file"])
        self.assertEqual(tree.nn("check", "matmul_naive")[0], 1)  # not implemented, in the file where it is now
        self.assertIn("Nothing is computed", tree.read(header))
        self.assertEqual(tree.lines("perceptron_forward"), "  // half done, too\n")
        self.assertIn(helpers, tree.read(vector_add))
        self.assertNotIn("#define MINE 7", tree.read(vector_add))
        self.assertFalse(os.path.exists(tree.path("phase2_mlp/gone.cuh")))
        backups = tree.path(".learn/backup")
        update = [entry for entry in os.listdir(backups) if entry.startswith("update-")]
        self.assertEqual(len(update), 1)
        said = " ".join(text.split())
        for file, words, kept in ((vector_add, '"#define MINE 7"', "#define MINE 7\n"), (damaged, "is damaged", "int kept;"),
                                  ("common/error.h", "with your changes", "// my notes\n")):
            self.assertIn(words, said)
            self.assertIn(".learn/backup/%s/%s" % (update[0], file), said)  # where it is kept, and there it is
            self.assertIn(kept, tree.read(".learn/backup/%s/%s" % (update[0], file)))
        self.assertIn(utf16 + ": the file is UTF-16", said)
        self.assertIn(".learn/backup/%s/%s" % (update[0], utf16), said)
        with open(os.path.join(backups, update[0], utf16), "rb") as file:
            self.assertEqual(file.read().decode("utf-16"), text_utf16)
        self.assertTrue(os.path.exists(os.path.join(backups, update[0], "phase2_mlp/gone.cuh")))
        with open(os.path.join(backups, update[0], "common/error.h")) as file:
            self.assertIn("// my notes\n", file.read())
        self.assertNotIn("my notes", tree.read("common/error.h"))
        self.assertEqual(tree.nn("check", name)[0], 0)

    def test_an_editor_can_read_cuda(self):
        """clang, which is what an editor's clangd is, with the command that stands in compile_commands.json."""
        clang = shutil.which("clang++")
        if clang is None:
            self.skipTest("clang++ is missing, with which the commands for editors are tried: run ./setup.sh")
        tree = course.Tree("editor")
        for update in False, True:
            if update:
                os.remove(tree.path("compile_commands.json"))
                self.assertEqual(self.init("--update", tree.root)[0], 0)
            entries = {entry["file"]: entry for entry in json.loads(tree.read("compile_commands.json"))}
            headers = {exercise["file"] for exercise in tree.exercises}
            self.assertEqual(headers - set(entries), set())
        # Cooperative groups; bfloat16 and fragments of the tensor cores; a whole program. With stubs, all of them.
        for file in ("phase2_mlp/08_mlp_one_kernel/mlp_one_kernel_lesson.cuh", "phase1_building_blocks/14_attention/attention_tensor_core_lesson.cuh",
                     "phase1_building_blocks/02_transpose/transpose.cu"):
            self.assertEqual(self.parse(clang, entries[file]), "", file)
        # A student's line that is wrong, in an exercise that has not passed.
        file = tree.exercise("transpose_naive")["file"]
        tree.put("transpose_naive", "  __syncthreads();\n  out[col] = __shfl_sync(~0u, fmaxf(in[row], 0), 0);\n")
        self.assertEqual(self.parse(clang, entries[file]), "")
        tree.put("transpose_naive", "  __syncthread();\n")
        self.assertIn("__syncthread", self.parse(clang, entries[file]))

    def parse(self, clang, entry):
        arguments = [clang, *entry["command"].split()[1:], "-fsyntax-only", "-Wno-unused-command-line-argument"]
        return subprocess.run(arguments, cwd=entry["directory"], stderr=subprocess.PIPE, text=True).stderr

    def test_prepares_in_the_background(self):
        """init goes on compiling when it has ended: that can be seen, ended and gone on with."""
        root, cache = os.path.join(course.TMP, "prepares"), os.path.join(course.TMP, "new cache")
        env = dict(os.environ, XDG_CACHE_HOME=cache)
        status, text = course.run(course.LEARN, "init", root, "--source=" + course.SOURCE, env=env)
        self.assertEqual(status, 0, text)
        self.assertIn("./nn prepare --stop", text)
        # The emulator's runtime is there, from Bazel.
        runtimes = [entry for entry in os.listdir(os.path.join(cache, "simtcc"))]
        self.assertEqual(len([entry for entry in runtimes if os.path.exists(os.path.join(cache, "simtcc", entry, "libsimt.a"))]),
                         len(runtimes))
        self.assertGreaterEqual(len(runtimes), 2)
        tree = course.Tree("prepares", make=False)
        end = time.monotonic() + 60
        while not os.path.exists(tree.path(".learn/build/prepare")) or tree.read(".learn/build/prepare") == "":
            self.assertLess(time.monotonic(), end)
            time.sleep(0.05)
        status, text = tree.nn("status")
        self.assertIn("compiled in the background", text)
        worker = int(tree.read(".learn/build/prepare").split()[0])
        self.assertEqual(os.getpriority(os.PRIO_PROCESS, worker), 19)
        status, text = tree.nn("prepare")  # there is one already
        self.assertIn("compiled in the background", text)
        tree.put("vector_add_index", tree.solution("vector_add_index"))
        status, text = tree.nn("check", env=env)  # meanwhile: it waits for what it needs, and for no more
        self.assertEqual(status, 0, text)
        status, text = tree.nn("prepare", "--stop")
        self.assertEqual(status, 0, text)
        self.assertIn("Stopped", text)
        status, text = tree.nn("status")
        self.assertNotIn("background", text)
        status, text = tree.nn("prepare", "--stop")
        self.assertIn("Nothing is being prepared", text)

    def test_update_needs_a_tree(self):
        status, text = self.init("--update", os.path.join(course.TMP, "nothing"))
        self.assertEqual(status, 1)
        one_sentence(self, text, "not a student's tree")


if __name__ == "__main__":
    try:
        unittest.main(verbosity=2)
    finally:
        course.clean_up()
