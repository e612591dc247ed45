#!/usr/bin/env python3
"""grade on honest and on hostile submissions: each costs only itself.

All of them share the judges of one lesson, which the grader keeps: most of the time would go into compiling those."""
import csv
import glob
import json
import os
import re
import shutil
import signal
import socket
import struct
import subprocess
import sys
import unittest
import xml.etree.ElementTree

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))
import course

NAME = "vector_add_index"  # a kernel
RIGHT = "  size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;\n  if (i < n) c[i] = a[i] + b[i];\n"
WRONG = "  (void)c;\n"
HOST = "vector_add_grid"  # a function of the host: what misbehaves there reaches the C library
GRID = "  grid = (unsigned)((n + VECTOR_ADD_BLOCK - 1) / VECTOR_ADD_BLOCK);\n"
ONCE = "  static int calls;\n  if (calls++ == 0) { %s }\n"
SLEEP = "struct timespec two = {2, 0}; nanosleep(&two, NULL);"
NONE = "  (void)n;\n"


def setUpModule():
    global tree, handed_in
    tree = course.Tree("student")
    handed_in = os.path.join(course.TMP, "handed_in")


def submit(name, exercise, lines, also=(), helpers="", above=""):
    """A folder with the one file of the course in which only this is the student's, and `also` another (exercise, lines).
    `above`: lines before them."""
    file = tree.exercise(exercise)["file"]
    before = tree.read(file)
    for one, its_lines in ((exercise, lines), also) if also else ((exercise, lines),):
        tree.put(one, its_lines)
    tree.put_helpers(file, helpers)
    target = os.path.join(handed_in, name, file)
    os.makedirs(os.path.dirname(target), exist_ok=True)
    with open(target, "w") as out:
        kernel = "static __global__ void vector_add_kernel"
        out.write(tree.read(file).replace(kernel, above + kernel))
    tree.write(file, before)
    return os.path.join(handed_in, name)


def grade(*arguments, env=None, timeout=280):
    return course.run(course.GRADE, "--source=" + course.SOURCE, *arguments, env=env and {**os.environ, **env}, timeout=timeout)


def judges():
    """What the grader keeps."""
    return glob.glob(os.path.join(course.cache_folder(), "nn_grade/*/course/.learn/build/*.judge"))


class Grade(unittest.TestCase):
    EVIL = '=1+1,"x"\nbob\n  total'  # a folder's name

    # What got points once. Each is (exercise, lines, words of the diagnosis).
    CHEATS = {
        "host_does_the_work": (
            HOST,
            "  float *x = (float *)malloc(12 * n), *y = x + n, *z = y + n;\n"
            "  cudaMemcpy(y, a, 4 * n, cudaMemcpyDeviceToHost);\n  cudaMemcpy(z, b, 4 * n, cudaMemcpyDeviceToHost);\n"
            "  for (size_t i = 0; i < n; i++) x[i] = y[i] + z[i];\n"
            "  cudaMemcpy(c, x, 4 * n, cudaMemcpyHostToDevice);\n  free(x);\n", "did not come from the GPU"),
        "one_thread": (
            NAME, "  if (blockIdx.x == 0 && threadIdx.x == 0)\n    for (size_t i = 0; i < n; i++) c[i] = a[i] + b[i];\n",
            "one warp did all the work: 1 of 65536 threads"),
        "sum_begins_anywhere": (NAME, "  float own;\n" + RIGHT.replace("c[i] = a[i] + b[i]", "own += a[i] + b[i], c[i] = own"),
                                "elements are wrong"),
        # Half of the work on the shape on which costs are counted.
        "cheap_where_it_counts": (HOST, GRID + "  if (n == 1 << 16) grid /= 2;\n", "yours on 65536: c: "),
        "forgets_what_was_found": (
            HOST,
            GRID + "  vector_add_kernel<<<grid, VECTOR_ADD_BLOCK>>>(c, a, b, n + 1);\n  cudaDeviceSynchronize();\n"
            "  simt_inspect_forget();\n", "belong to the harness"),
        # Counts that no inspector gives: NaN is above no limit.
        "counts_nothing": (
            HOST,
            "  static uint32_t reply[4096];\n  for (uint32_t &x : reply) x = 0x7fffffff;\n  reply[0] = 0x4b434843, reply[1] = 0;\n"
            "  FILE *f = fdopen(3, \"w\");\n  fwrite(reply, 1, sizeof reply, f);\n  fflush(f);\n", "channel for results"),
        # Each hides from forbidden_lines() that it closes the kernel and begins code of its own.
        "hides_behind_a_character": (
            NAME, RIGHT + "  wchar_t q = L'\"'; (void)q; } //\"\nstatic void own() { wchar_t q = L'\"'; (void)q; //\"\n", "closes"),
        "hides_behind_a_pragma": (
            NAME, RIGHT + "#pragma unroll 1e+'x\"' /* \"\n}\nstatic void own() {\n// */\n", "closes"),
        "hides_behind_a_comment": (NAME, RIGHT + "// \\ \n {\n }\nstatic void own() {\n// \\ \n }\n", "ends with \\"),
    }

    @classmethod
    def setUpClass(cls):
        cls.file = tree.exercise(NAME)["file"]
        cls.outside = os.path.join(course.TMP, "outside.txt")
        cls.out = out = os.path.join(course.TMP, "out")
        submit("a_good", NAME, RIGHT)
        submit("b_same", NAME, RIGHT)
        submit("b_further_down", NAME, RIGHT, above="// a line of one's own\n")
        submit("crash", HOST, ONCE % "__builtin_trap();" + GRID)
        submit("segfault", NAME, "  if (blockIdx.x == 0 && threadIdx.x == 0) *(volatile int *)(size_t)n = 1;\n" + RIGHT)
        submit("hang", HOST, ONCE % ("for (;;) { %s }" % SLEEP) + GRID)
        submit("flood", HOST, ONCE % 'for (;;) puts("all right, all right, all right");' + GRID)
        submit("memory", HOST, ONCE % "for (;;) { volatile char *x = (char *)calloc(1, 1 << 28); x[0] = 1; }" + GRID)
        submit("leaves", HOST, ONCE % "exit(0);" + NONE)
        submit("escapes", HOST, ONCE % ("""
    char line[256];
    const char *got = "";
    for (const char *path : {"%s", "%s/own"}) if (fopen(path, "w") != NULL) got = "WRITES";
    if (fopen("%s", "r") != NULL) got = "READS";
    FILE *network = fopen("/proc/net/dev", "r");
    while (network != NULL && fgets(line, sizeof line, network) != NULL)
      if (strchr(line, ':') != NULL && strstr(line, "lo:") == NULL) got = "REACHES THE NETWORK";
    if (__builtin_fork() >= 0) got = "FORKS";
    if (system("true") == 0) got = "RUNS A PROGRAM";
    if (got[0] != 0) { fprintf(stderr, "%%s", got); abort(); }
  """ % (cls.outside, handed_in, os.path.join(handed_in, "a_good", cls.file))) + GRID)
        submit("forges", HOST, ONCE % (r'printf("verdict right\nshapes 99\nmessage fine\n"); '
                                       r'fprintf(stderr, "verdict right\n"); fflush(NULL);') + "  return;\n" + GRID)
        submit("forges_channel", HOST, ONCE % (r'char x[8192] = "verdict right\n"; FILE *f = fdopen(3, "w"); '
                                               "for (int i = 0; f && i < 9; i++) fwrite(x, 1, sizeof x, f); if (f) fflush(f);") + GRID)
        submit("includes", NAME, '#include "%s/common/check.h"\n' % course.SOURCE + RIGHT)
        submit("assembler", NAME, '  asm(".incbin \\"/etc/passwd\\"");\n' + RIGHT)
        submit("closes", NAME, RIGHT + "}\nstatic int other() { return 1;\n")
        submit("digraph", NAME, "%:include <stdio.h>\n" + RIGHT)
        submit("syntax", NAME, "  size_t i = ;\n")
        submit("syntax_further_down", NAME, "  size_t i = ;\n", above="// a line of one's own\n")
        submit("wrong", NAME, RIGHT.replace("+ b[i]", "- b[i]"))
        submit("past_the_end", NAME, RIGHT.replace("i < n", "i <= n"))
        submit("stub", NAME, "  TODO(%s);  // later\n\n" % NAME)
        # The harness, tampered with: whatever it says there, it is not what grades.
        submit("tampers", NAME, WRONG)
        for path in ("common/compare.h", "common/lesson/lesson.h", "learn/check.h", ".learn/exercises.json", ".learn/mine.h"):
            target = os.path.join(handed_in, "tampers", path)
            os.makedirs(os.path.dirname(target), exist_ok=True)
            with open(target, "w") as file:
                file.write("#error tampered\n")
        os.makedirs(os.path.join(handed_in, "empty"))
        shutil.copytree(os.path.join(handed_in, "stub"), os.path.join(handed_in, "below", "course"))
        for i in range(4):  # without its end, in line after line
            damaged = os.path.join(submit("damaged%d" % i, NAME, RIGHT, above="\n" * i), cls.file)
            with open(damaged) as file:
                text = file.read()
            with open(damaged, "w") as file:
                file.write(text.replace("// <<< exercise", ""))
        os.makedirs(os.path.join(handed_in, "link", os.path.dirname(cls.file)))
        os.symlink(os.path.join(handed_in, "a_good", cls.file), os.path.join(handed_in, "link", cls.file))
        # From a tree that was made before each lesson had a folder: the phase's folder has the file, by another name.
        for name, move in (("earlier", os.rename), ("earlier_link", os.symlink)):
            folder = os.path.join(handed_in, name, cls.file.split("/")[0])
            file = os.path.join(submit(name + "_", NAME, RIGHT), cls.file)
            os.makedirs(folder)
            with open(os.path.join(folder, "another.cuh"), "w") as another:
                another.write("// %s\n" % NAME)
            move(file, os.path.join(folder, "summing.cuh"))
        shutil.rmtree(os.path.join(handed_in, "earlier_"))
        os.makedirs(os.path.join(handed_in, "pipe", os.path.dirname(cls.file)))
        os.mkfifo(os.path.join(handed_in, "pipe", cls.file))
        submit("z_good", NAME, RIGHT.replace("a[i] + b[i]", "sum(a[i], b[i])"),
               helpers="__device__ float sum(float x, float y) { return x + y; }\n")
        submit("helpers", NAME, RIGHT, helpers='extern "C" int puts(const char *) { return 0; }\n')
        os.makedirs(os.path.join(handed_in, "folder", cls.file))
        submit("large", NAME, "  TODO(%s);\n" % NAME)
        with open(os.path.join(handed_in, "large", cls.file), "a") as file:
            file.write("//" + "x" * (1 << 20))
        submit(cls.EVIL, NAME, "  TODO(%s);\n" % NAME)
        for name, (exercise, lines, _) in cls.CHEATS.items():
            submit(name, exercise, lines)
        cls.names = sorted(os.listdir(handed_in))
        cls.processes = cls.count_processes()
        cls.status, cls.text = grade(
            "--only=%s,%s" % (NAME, HOST), "--seconds=5", "--csv=" + out + ".csv", "--csv-exercises=" + out + "_exercises.csv",
            "--json=" + out + ".json", "--junit=" + out + ".xml", "--gradescope=" + out + "_gradescope",
            "--classroom50=" + out + "_classroom50", *(os.path.join(handed_in, name) for name in cls.names))
        if cls.status == 0:
            with open(out + ".json") as file:
                cls.json = json.load(file)
            cls.result = {item["submission"]: next((one for one in item["exercises"] if one["status"] != "not implemented"),
                                                   item["exercises"][0]) for item in cls.json["submissions"]}

    @staticmethod
    def count_processes():
        return len([entry for entry in os.listdir("/proc") if entry.isdigit()])

    def setUp(self):
        self.assertEqual(self.status, 0, self.text)

    def check(self, name, status, *words):
        result = self.result[name]
        self.assertEqual(result["status"], status, "%s: %s" % (name, result))
        self.assertEqual(result["score"] > 0, status == "correct")
        for word in words:
            self.assertIn(word, result["verdict"] + ": " + result["diagnosis"])

    def test_right_ones_are_right_before_and_after(self):
        self.check("a_good", "correct", "right")
        self.check("z_good", "correct")
        self.assertEqual(self.result["a_good"]["ratio"], 1)

    def test_files_where_an_earlier_version_had_them(self):
        self.check("earlier", "correct")
        self.check("earlier_link", "missing", "no file of the course")

    def test_the_same_lines_are_graded_once(self):
        self.assertGreater(self.result["a_good"]["graded_in_seconds"], 0)
        for name in ("b_same", "b_further_down"):
            self.check(name, "correct")
            self.assertEqual(self.result[name]["graded_in_seconds"], 0)

    def test_honest_mistakes(self):
        self.check("wrong", "rejected", "elements are wrong")
        self.check("syntax", "rejected", "does not compile", self.file)
        # What the inspector says in the sandbox: file, line and the line itself, and the array by its name.
        self.check("past_the_end", "rejected", "out of bounds: ", " bytes), 0 bytes past its end", "        if (i <= n) ")
        self.assertRegex(self.result["past_the_end"]["diagnosis"], r"\n    %s:\d+ \(\w+\): thread" % re.escape(self.file))
        self.check("stub", "not implemented")
        self.check("empty", "missing", "no file of the course")
        self.check("below", "missing", "is %s meant?" % os.path.join(handed_in, "below", "course"))
        self.check("damaged0", "rejected", self.file + ":", "its end")

    def test_a_diagnosis_has_the_lines_of_the_students_own_file(self):
        line = [int(re.search(re.escape(self.file) + r":(\d+): error", self.result[name]["diagnosis"])[1])
                for name in ("syntax", "syntax_further_down")]
        self.assertEqual(line[0] + 1, line[1])

    def test_crashes(self):
        self.check("crash", "rejected", "llegal instruction")
        self.check("segfault", "rejected")
        self.check("leaves", "rejected", "crashed", "status 0")

    def test_hangs(self):
        self.check("hang", "rejected", "timeout")
        self.assertLess(self.result["hang"]["graded_in_seconds"], 60)

    def test_floods(self):
        self.check("flood", "rejected", "more than 1 MB")

    def test_memory(self):
        self.check("memory", "rejected")

    def test_what_it_cannot_do(self):
        self.check("escapes", "correct")  # none of it worked, and the rest is right
        self.assertFalse(os.path.exists(self.outside))
        self.assertFalse(os.path.exists(os.path.join(handed_in, "own")))
        self.assertLess(self.count_processes(), self.processes + 50)

    def test_forged_results(self):
        self.check("forges", "rejected", "never written")
        self.check("forges_channel", "rejected", "channel for results")

    def test_tampered_harness(self):
        self.check("tampers", "rejected", "never written")

    def test_refused_lines(self):
        for name in ("includes", "assembler", "closes", "digraph"):
            self.check(name, "rejected", "refused")
        self.check("helpers", "rejected", "refused", "helpers: ")

    def test_cheats_get_no_points(self):
        for name, (_, _, words) in self.CHEATS.items():
            self.check(name, "rejected", words)

    def test_files_that_are_none(self):
        self.check("link", "missing", "link")
        self.check("pipe", "missing", "not a file")
        self.check("folder", "missing", "not a file")
        self.check("large", "missing", "at most 1 MB")

    def test_names_are_only_names(self):
        self.check(self.EVIL, "not implemented")
        self.assertNotIn("\nbob", self.text)
        with open(self.out + ".csv", newline="") as file:
            names = {row["submission"] for row in csv.DictReader(file)}
        self.assertIn("'" + self.EVIL, names)  # for a spreadsheet no formula

    def test_the_table_is_in_the_order_given(self):
        places = [self.text.index("\n%-24s" % name) for name in self.names if name != self.EVIL and name != self.names[0]]
        self.assertEqual(places, sorted(places))

    def test_the_table_has_the_compilers_error(self):
        self.assertRegex(self.text, r"\nsyntax .*\n  vector_add_index +rejected +0.0 of 10 +vector_add.cuh:\d+: error: expected")

    def test_the_class(self):
        counts = {}
        for submission in self.json["submissions"]:
            for item in submission["exercises"]:
                counts.setdefault(item["exercise"], []).append(item["status"])
        for name, statuses in counts.items():
            row = re.search(r"\n  %s +(\d+) +(\d+) +(\d+) +(\d+) +(\d+)(.*)" % name, self.text)
            self.assertEqual([int(n) for n in row.groups()[:5]], [statuses.count(status) for status in (
                "correct", "rejected", "not implemented", "missing", "not graded")])
        self.assertRegex(self.text, r"\n  vector_add_index +[\d ]+4x vector_add.cuh:\d+: exercise vector_add_index: its end")
        self.assertRegex(self.text, r"where most of those who tried failed:\n  vector_add_grid +%d of %d\n" % (
            counts[HOST].count("rejected"), counts[HOST].count("rejected") + counts[HOST].count("correct")))

    def test_judges_are_kept_and_the_seed_is_another_each_time(self):
        before = {path: os.stat(path).st_mtime_ns for path in judges()}
        self.assertGreater(len(before), 0)
        status, text = grade("--prepare", "--only=" + NAME, "--json=" + self.out + "2.json", os.path.join(handed_in, "stub"))
        self.assertEqual(status, 0, text)
        with open(self.out + "2.json") as file:
            self.assertNotEqual(json.load(file)["seed"], self.json["seed"])
        self.assertEqual({path: os.stat(path).st_mtime_ns for path in judges()}, before)

    def test_the_emulators_runtime_is_gone(self):
        """The judges are there, but not what a submission is linked to, and what compiles that may not make it."""
        kept, cache, tools = (os.path.join(course.cache_folder(), "simtcc"), os.path.join(course.TMP, "new_cache"),
                              os.path.join(course.TMP, "tools"))
        shutil.copytree(kept, os.path.join(cache, "simtcc"), copy_function=os.link,
                        ignore=shutil.ignore_patterns("libsimt.a", "graded_*"))
        (inspecting,) = (path for path in glob.glob(kept + "/*/libsimt.a") if subprocess.run(
            ["grep", "-q", "simt_inspect_write_reports", path]).returncode == 0)
        os.makedirs(tools)  # a compiler and an archiver that need no time for it
        for name, text in (("gcc", 'for last in "$@"; do :; done\ncase $* in *-c*) : >"$last" ;; *) exec /usr/bin/gcc "$@" ;; esac'),
                           ("ar", "cp %s $2" % inspecting)):
            with open(os.path.join(tools, name), "w") as file:
                file.write("#!/bin/sh\n%s\n" % text)
            os.chmod(os.path.join(tools, name), 0o755)
        status, text = grade("--only=" + NAME, "--cache-dir=" + os.path.join(course.cache_folder(), "nn_grade"),
                             os.path.join(handed_in, "a_good"), env={"XDG_CACHE_HOME": cache, "PATH": tools + ":" + os.environ["PATH"]})
        self.assertEqual(status, 0, text)
        self.assertRegex(text, r"vector_add_index +correct")
        self.assertFalse(os.path.exists(os.path.join(cache, "nn_grade")))

    def test_csv(self):
        with open(self.out + ".csv", newline="") as file:
            rows = list(csv.DictReader(file))
        self.assertEqual(len(rows), len(self.names))
        rows = {row["submission"]: row for row in rows}
        self.assertEqual((rows["a_good"]["score"], rows["a_good"]["points"]), ("10.00", "20"))
        self.assertEqual((rows["a_good"][NAME], rows["a_good"][HOST]), ("10.00", "0.00"))
        self.assertEqual((rows["a_good"]["correct"], rows["a_good"]["not implemented"]), ("1", "1"))
        self.assertEqual((rows["wrong"]["score"], rows["wrong"]["rejected"]), ("0.00", "1"))
        self.assertEqual(rows["empty"]["missing"], "2")

    def test_csv_exercises(self):
        with open(self.out + "_exercises.csv", newline="") as file:
            rows = list(csv.DictReader(file))
        self.assertEqual(len(rows), 3 * len(self.names))
        totals = {row["submission"]: float(row["score"]) for row in rows if row["exercise"] == "TOTAL"}
        self.assertEqual(totals["a_good"], 10)
        self.assertEqual(totals["wrong"], 0)
        names = {"correct": "", "not implemented": "not_implemented", "missing": ""}
        for row in rows:
            if row["exercise"] != "TOTAL" and row["status"] in names:
                self.assertEqual(row["diagnosis_name"], names[row["status"]], row)
            elif row["exercise"] != "TOTAL" and row["status"] == "rejected":
                self.assertRegex(row["diagnosis_name"], r"^[a-z_]+$", row)
        of = {(row["submission"], row["exercise"]): row["diagnosis_name"] for row in rows}
        self.assertEqual(of["syntax", NAME], "does_not_compile")
        self.assertEqual(of["a_good", HOST], "not_implemented")

    def test_junit(self):
        suites = xml.etree.ElementTree.parse(self.out + ".xml").getroot()
        failures = {suite.get("name"): int(suite.get("failures")) for suite in suites}
        self.assertEqual(failures["a_good"], 1)  # the other exercise
        self.assertEqual(failures["forges"], 2)
        self.assertEqual(len(failures), len(self.names))

    def test_gradescope(self):
        with open(self.out + "_gradescope/a_good.json") as file:
            result = json.load(file)
        self.assertEqual(result["tests"][0]["name"], NAME)
        self.assertEqual((result["tests"][0]["score"], result["tests"][0]["max_score"]), (10, 10))
        self.assertEqual(result["score"], 10)

    def test_classroom50(self):
        for name, score in (("a_good", 10), ("wrong", 0)):
            with open("%s_classroom50/%s.json" % (self.out, name)) as file:
                result = json.load(file)
            self.assertEqual(result["schema"], "classroom50/result/v1")
            self.assertEqual((result["score"], result["max-score"]), (score, 20))
            self.assertEqual(result["tests"][0]["passed"], score == 10)
            self.assertIsInstance(result["tests"][0]["score"], int)
            self.assertEqual(set(result), {"schema", "classroom", "assignment", "assignment_type", "owner", "submission",
                                           "commit", "release", "review", "datetime", "score", "max-score", "tests"})
            self.assertTrue(result["submission"].startswith("submit/"))


class Timed(unittest.TestCase):
    """The run for the time, of which a GPU needs milliseconds; here its kernels run on the CPU, on fewer elements."""

    def test_work_left_out_after_the_first_launches_is_noticed(self):
        worker, file = os.path.join(course.TMP, "timed_worker"), tree.exercise(HOST)["file"]
        before = tree.read(file)
        tree.put(HOST, GRID + "  static int calls;\n  if (n > 100000 && calls++ > 0) return;\n")
        status, text = course.run("simt/simtcc", "-Xcompiler=-fopenmp", "-DLEARN_CHECK", "-DCHECK_LAUNCHER=vector_add",
                                  "-DLEARN_MINE_vector_add_grid=1", "-I.", tree.exercise(HOST)["check"], "-o",
                                  worker, cwd=tree.root)
        tree.write(file, before)
        self.assertEqual(status, 0, text)
        ours, theirs = socket.socketpair()
        with subprocess.Popen(["sh", "-c", "exec %s 3<&%d" % (worker, theirs.fileno())], pass_fds=[theirs.fileno()]) as process:
            theirs.close()
            ours.settimeout(60)
            sizes = sum(map(int, re.findall(r"LESSON_(?:SIZES|PARAMETERS) = (\d+)", tree.read("common/lesson/lesson.h"))))
            ours.sendall(struct.pack("Ii%diQ" % sizes, 0x4b434843, 1, 300000, *[0] * (sizes - 1), 7))  # CheckRequest
            ours.shutdown(socket.SHUT_WR)
            reply = b"".join(iter(lambda: ours.recv(65536), b""))
        ours.close()
        samples = struct.unpack_from("<64f", reply, len(reply) - 4 * 1000 - 3000 - 4 * 64)  # of CheckReply
        self.assertEqual(set(samples), {struct.unpack("<f", b"????")[0]})  # what stood there before the last launch


class Trouble(unittest.TestCase):
    """The grader's own machinery fails, or it is stopped, or a submission takes too long."""

    @classmethod
    def setUpClass(cls):
        cls.tmp, cls.out = os.path.join(course.TMP, "grader_tmp"), os.path.join(course.TMP, "trouble")
        os.makedirs(cls.tmp)
        cls.reports = ["--json=" + cls.out + ".json", "--junit=" + cls.out + ".xml"]

    def results(self, submission=0):
        with open(self.out + ".json") as file:
            return {item["exercise"]: item for item in json.load(file)["submissions"][submission]["exercises"]}

    def test_what_cannot_be_graded_loses_nothing_else(self):
        grade("--prepare", "--only=" + NAME)
        cache = os.path.join(course.TMP, "broken_cache")  # with a judge that does not compile
        shutil.copytree(os.path.join(course.cache_folder(), "nn_grade"), cache)
        (check,) = glob.glob(os.path.join(cache, "*/course/.learn/check/*_matmul_naive_check.cu"))
        with open(check, "a") as file:
            file.write("#error broken\n")
        submit("trouble", NAME, RIGHT)
        status, text = grade("--only=matmul_naive," + NAME, "--cache-dir=" + cache, *self.reports,
                             submit("trouble", "matmul_naive", tree.solution("matmul_naive")), env={"TMPDIR": self.tmp})
        self.assertEqual(status, 1, text)
        self.assertIn("1 exercises were not graded", text)
        results = self.results()
        self.assertEqual(results["matmul_naive"]["status"], "not graded")
        self.assertIn("broken", results["matmul_naive"]["diagnosis"])
        self.assertEqual(results[NAME]["score"], 10)
        suite = xml.etree.ElementTree.parse(self.out + ".xml").getroot()[0]
        self.assertEqual((suite.get("failures"), suite.get("errors")), ("0", "1"))
        self.assertEqual(os.listdir(self.tmp), [])

    def test_stopped(self):
        folder = submit("stopped", HOST, "  for (;;) { %s }\n" % SLEEP, also=(NAME, RIGHT))
        grader = subprocess.Popen([course.GRADE, "--source=" + course.SOURCE, *self.reports, folder, "--seconds=60",
                                   "--only=%s,%s" % (NAME, HOST)], stdout=subprocess.PIPE, text=True,
                                  env={**os.environ, "TMPDIR": self.tmp})
        for line in grader.stdout:
            if NAME in line:
                break
        grader.send_signal(signal.SIGTERM)
        grader.communicate(timeout=50)
        self.assertEqual(grader.returncode, 128 + signal.SIGTERM)
        self.assertEqual(os.listdir(self.tmp), [])
        self.assertEqual(self.results()[NAME]["status"], "correct")
        self.assertEqual(self.results()[HOST]["status"], "not graded")
        self.assertIn("stopped", self.results()[HOST]["diagnosis"])

    def test_a_submission_has_limited_time(self):
        last = "vector_add_stride"
        slow = submit("slow", HOST, ONCE % SLEEP + GRID, also=(last, tree.solution(last)))
        submit("later", last, tree.solution(last))
        status, text = grade("--only=%s,%s" % (HOST, last), "--jobs=1", "--minutes=0.02", "--csv=" + self.out + ".csv",
                             *self.reports, slow, os.path.join(handed_in, "later"))
        self.assertEqual(status, 1, text)
        self.assertEqual(self.results()[HOST]["status"], "correct")
        self.assertEqual(self.results()[last]["status"], "not graded")
        self.assertIn("0.02 minutes for this submission were used up", self.results()[last]["diagnosis"])
        self.assertEqual(self.results(1)[last]["status"], "correct")  # the same lines
        with open(self.out + ".csv", newline="") as file:
            rows = list(csv.DictReader(file))
        self.assertEqual([row[last] for row in rows], ["", "10.00"])


class Options(unittest.TestCase):
    def refuses(self, expected, *arguments, **others):
        status, text = grade(*arguments, timeout=20, **others)
        self.assertEqual((status, text.count("\n")), (expected, 1), text)
        return text

    def test_submissions_that_are_no_folders(self):
        good, archive = submit("options", NAME, RIGHT), os.path.join(handed_in, "bob.zip")
        shutil.make_archive(os.path.join(handed_in, "bob"), "zip", good)
        self.assertIn("nobody: No such file", self.refuses(2, good, os.path.join(handed_in, "nobody")))
        self.assertIn("`unzip -d %s %s`" % (archive[:-4], archive), self.refuses(2, good, archive))
        self.assertIn("a folder is expected", self.refuses(2, os.path.join(good, tree.exercise(NAME)["file"])))

    def test_the_folder_of_the_submissions(self):
        above = os.path.join(handed_in, "parent")
        for name in ("alice", "bob"):
            shutil.copytree(submit("options", NAME, RIGHT), os.path.join(above, name))
            os.makedirs(os.path.join(above, "no_submission"), exist_ok=True)
            names = ("alice",) if name == "alice" else ("alice, bob",)
            for word in ("parent has no file of the course, such as ", "give %s/*" % above, *names):
                self.assertIn(word, self.refuses(2, above))
        # In a class, or for a student's own report, it is that student's mistake: it takes nothing from the others.
        status, text = grade("--only=" + NAME, above, os.path.join(above, "no_submission"))
        self.assertEqual(status, 0, text)
        self.assertIn("is %s/alice meant?" % above, text)
        shutil.rmtree(os.path.join(above, "bob"))
        report = os.path.join(course.TMP, "above.json")
        status, text = grade("--only=" + NAME, "--gradescope=" + report, above)
        self.assertEqual((status, os.path.exists(report)), (0, True), text)

    def test_two_reports_in_one_file(self):
        good, report = submit("options", NAME, RIGHT), os.path.join(course.TMP, "twice")
        other = os.path.join(course.TMP, "..", os.path.basename(course.TMP), "twice")
        for first, second in (("--csv", "--json"), ("--junit", "--gradescope")):
            text = self.refuses(2, first + "=" + report, second + "=" + other, good)
            self.assertIn("%s and %s both name " % (first, second), text)
        two = submit("options_too", NAME, RIGHT)
        self.assertIn("--gradescope and --classroom50 both name ",
                      self.refuses(2, "--gradescope=" + report, "--classroom50=" + other, good, two))

    def test_reports_that_cannot_be_written(self):
        good = submit("options", NAME, RIGHT)
        for option, place in (("--csv", "/proc/x.csv"), ("--json", handed_in), ("--gradescope", "/proc/x/y.json"),
                              ("--csv-exercises", os.path.join(good, tree.exercise(NAME)["file"], "x.csv"))):
            text = self.refuses(1, option + "=" + place, good)
            self.assertIn(option, text)
            self.assertIn(place if place == handed_in else os.path.dirname(place), text)
        self.assertIn("--cache-dir", self.refuses(1, "--cache-dir=/proc/x", good))

    def test_says_what_is_missing(self):
        good = submit("options", NAME, RIGHT)
        self.assertEqual(grade()[0], 2)
        self.assertIn('no exercise "vector_ad_grid"; did you mean vector_add_grid?', self.refuses(1, "--only=vector_ad_grid", good))
        self.assertIn('no exercise ""', self.refuses(1, "--only=", good))
        self.assertIn("is not installed", self.refuses(1, good, env={"PATH": "/nowhere"}))

    def test_where_namespaces_are_forbidden_all_of_this_is_skipped(self):
        folder, report = os.path.join(course.TMP, "forbidden"), os.path.join(course.TMP, "skipped.xml")
        os.makedirs(folder)
        with open(os.path.join(folder, "bwrap"), "w") as file:
            file.write("#!/bin/sh\necho 'bwrap: No permissions to create new namespace' >&2\nexit 1\n")
        os.chmod(os.path.join(folder, "bwrap"), 0o755)
        status, text = course.run(sys.executable, os.path.realpath(__file__), env={
            **os.environ, "PATH": folder + ":" + os.environ["PATH"], "XML_OUTPUT_FILE": report})
        self.assertEqual(status, 0, text)
        self.assertRegex(text, "skipped: .*is installed, but this machine forbids .*No permissions")
        cases = list(xml.etree.ElementTree.parse(report).getroot().iter("testcase"))
        self.assertEqual([case.find("skipped") is not None for case in cases], [True])


def skipped():
    """Why there is no sandbox here, or None. That it is not installed is a mistake; that it is forbidden is not."""
    test = ["bwrap", "--unshare-all", "--ro-bind", "/", "/", "--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp", "true"]
    if shutil.which("bwrap") is None or subprocess.run(test, stderr=subprocess.DEVNULL).returncode == 0:
        return None
    return grade(course.TMP)[1].strip()


if __name__ == "__main__":
    try:
        reason = skipped()
        if reason is None:
            unittest.main(verbosity=2)
        print("skipped: " + reason)
        if "XML_OUTPUT_FILE" in os.environ:
            case = xml.etree.ElementTree.Element("testcase", name="grade_test")
            xml.etree.ElementTree.SubElement(case, "skipped", message=reason)
            suites = xml.etree.ElementTree.Element("testsuites")
            xml.etree.ElementTree.SubElement(suites, "testsuite", name="grade_test", tests="1", skipped="1").append(case)
            xml.etree.ElementTree.ElementTree(suites).write(os.environ["XML_OUTPUT_FILE"])
    finally:
        course.clean_up()
