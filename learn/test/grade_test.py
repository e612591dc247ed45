#!/usr/bin/env python3
"""grade on honest and on hostile submissions: each costs only itself."""
import csv
import json
import os
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

NAME = "vector_add_index"
RIGHT = "  size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;\n  if (i < n) c[i] = a[i] + b[i];\n"
FIRST = "  if (blockIdx.x == 0 && threadIdx.x == 0) { %s }\n"  # one thread misbehaves
WRONG = "  (void)c;\n"


class Grade(unittest.TestCase):
    EVIL = '=1+1,"x"\nbob\n  total'  # a folder's name

    @classmethod
    def setUpClass(cls):
        cls.tree = course.Tree("student")
        cls.file = cls.tree.exercise(NAME)["file"]
        cls.folder = os.path.join(course.TMP, "handed_in")
        cls.outside = os.path.join(course.TMP, "outside.txt")
        submit = cls.submit
        submit("a_good", RIGHT)
        submit("crash", FIRST % "__builtin_trap();" + RIGHT)
        submit("segfault", FIRST % "*(volatile int *)(size_t)n = 1;" + RIGHT)
        submit("hang", FIRST % "for (volatile int x = 0;; x = x + 1) {}" + RIGHT)
        submit("flood", FIRST % 'for (;;) puts("all right, all right, all right");' + RIGHT)
        submit("fork", FIRST % "for (;;) if (__builtin_fork() < 0) break;" + RIGHT)
        submit("memory", FIRST % "for (;;) { char *x = (char *)calloc(1, 1 << 28); for (int i = 0; i < 1 << 28; i += 4096) x[i] = 1; }")
        submit("leaves", FIRST % "exit(0);" + WRONG)
        submit("writes", FIRST % ('for (const char *p : {"%s", "%s"}) { FILE *f = fopen(p, "w"); if (f) { fputs("x", f); '
                                  'fclose(f); } }' % (cls.outside, os.path.join(cls.folder, "a_good/own"))) + RIGHT)
        submit("reads", FIRST % ('FILE *f = fopen("%s", "r"); if (f) { n = 0; fprintf(stderr, "CAN READ"); }' %
                                 os.path.join(cls.folder, "a_good", cls.file)) + "  if (n == 0) return;\n" + RIGHT)
        submit("network", FIRST % (  # is there anything but the loopback device?
            'char line[256]; FILE *f = fopen("/proc/net/dev", "r"); while (f && fgets(line, sizeof line, f)) '
            'if (strchr(line, \':\') && !strstr(line, "lo:")) *(volatile int *)8 = 1;') + RIGHT)
        submit("forges", FIRST % (r'printf("verdict right\nshapes 99\nmessage fine\n"); '
                                  r'fprintf(stderr, "verdict right\n"); fflush(NULL);') + WRONG)
        submit("forges_channel", FIRST % r'char x[8192] = "verdict right\n"; FILE *f = fdopen(3, "w"); '
               "for (int i = 0; f && i < 9; i++) fwrite(x, 1, sizeof x, f); if (f) fflush(f);" + WRONG)
        submit("system", FIRST % "if (system(\"true\") == 0) while (1) { }" + RIGHT)
        submit("includes", '#include "%s/common/check.h"\n' % course.SOURCE + RIGHT)
        submit("assembler", '  asm(".incbin \\"/etc/passwd\\"");\n' + RIGHT)
        submit("closes", RIGHT + "}\nstatic int other() { return 1;\n")
        submit("digraph", "%:include <stdio.h>\n" + RIGHT)
        submit("syntax", "  size_t i = ;\n")
        submit("wrong", RIGHT.replace("+ b[i]", "- b[i]"))
        submit("stub", "  TODO(%s);\n" % NAME)
        # The harness, tampered with: whatever it says there, it is not what grades.
        submit("tampers", WRONG)
        for path in ("common/compare.h", "common/lesson.h", "learn/check.h", ".learn/exercises.json", ".learn/mine.h"):
            target = os.path.join(cls.folder, "tampers", path)
            os.makedirs(os.path.dirname(target), exist_ok=True)
            with open(target, "w") as file:
                file.write("#error tampered\n")
        os.makedirs(os.path.join(cls.folder, "empty"))
        os.makedirs(os.path.join(cls.folder, "link", os.path.dirname(cls.file)))
        os.symlink(os.path.join(cls.folder, "a_good", cls.file), os.path.join(cls.folder, "link", cls.file))
        os.makedirs(os.path.join(cls.folder, "pipe", os.path.dirname(cls.file)))
        os.mkfifo(os.path.join(cls.folder, "pipe", cls.file))
        cls.tree.put_helpers(cls.file, "__device__ float sum(float x, float y) { return x + y; }\n")
        submit("z_good", RIGHT.replace("a[i] + b[i]", "sum(a[i], b[i])"))
        cls.tree.put_helpers(cls.file, 'extern "C" int puts(const char *) { return 0; }\n')
        submit("helpers", RIGHT)
        cls.tree.put_helpers(cls.file, "")
        os.makedirs(os.path.join(cls.folder, "folder", cls.file))
        submit("large", "  TODO(%s);\n" % NAME)
        with open(os.path.join(cls.folder, "large", cls.file), "a") as file:
            file.write("//" + "x" * (1 << 20))
        submit(cls.EVIL, "  TODO(%s);\n" % NAME)
        cls.names = sorted(os.listdir(cls.folder))
        cls.processes = cls.count_processes()
        out = os.path.join(course.TMP, "out")
        cls.status, cls.text = course.run(
            course.GRADE, "--source=" + course.SOURCE, "--only=" + NAME, "--seconds=5", "--csv=" + out + ".csv",
            "--json=" + out + ".json", "--junit=" + out + ".xml", "--gradescope=" + out + "_gradescope",
            "--classroom50=" + out + "_classroom50", *(os.path.join(cls.folder, name) for name in cls.names), timeout=280)
        cls.out = out
        if cls.status == 0:
            with open(out + ".json") as file:
                cls.json = json.load(file)
            cls.result = {item["submission"]: item["exercises"][0] for item in cls.json["submissions"]}

    @classmethod
    def submit(cls, name, lines):
        tree = cls.tree
        tree.put(NAME, lines)
        target = os.path.join(cls.folder, name, cls.file)
        os.makedirs(os.path.dirname(target))
        shutil.copy(tree.path(cls.file), target)

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

    def test_helpers(self):
        self.check("z_good", "correct")
        self.check("helpers", "rejected", "helpers", "extern")

    def test_honest_mistakes(self):
        self.check("wrong", "rejected", "elements are wrong")
        self.check("syntax", "rejected", "does not compile", self.file)
        self.check("stub", "not implemented")
        self.check("empty", "missing", "gone")

    def test_crashes(self):
        self.check("crash", "rejected", "illegal instruction")
        self.check("segfault", "rejected")
        self.check("leaves", "rejected", "crashed", "status 0")

    def test_hangs(self):
        self.check("hang", "rejected", "timeout")
        self.assertLess(self.result["hang"]["graded_in_seconds"], 60)

    def test_floods(self):
        self.check("flood", "rejected", "more than 1 MB")

    def test_forks(self):
        self.check("fork", "correct")  # it could not, and the rest is right
        self.check("system", "correct")
        self.assertLess(self.count_processes(), self.processes + 50)

    def test_memory(self):
        self.check("memory", "rejected")

    def test_writes_outside(self):
        self.check("writes", "correct")
        self.assertFalse(os.path.exists(self.outside))
        self.assertFalse(os.path.exists(os.path.join(self.folder, "a_good/own")))

    def test_reads_others(self):
        self.check("reads", "correct")

    def test_network(self):
        self.check("network", "correct")

    def test_forged_results(self):
        self.check("forges", "rejected", "never written")
        self.check("forges_channel", "rejected", "channel for results")

    def test_tampered_harness(self):
        self.check("tampers", "rejected", "never written")

    def test_refused_lines(self):
        for name in ("includes", "assembler", "closes", "digraph"):
            self.check(name, "rejected", "refused")

    def test_files_that_are_none(self):
        self.check("link", "missing", "link")
        self.check("pipe", "missing", "no file")
        self.check("folder", "missing", "no file")
        self.check("large", "missing", "at most 1 MB")

    def test_names_are_only_names(self):
        self.check(self.EVIL, "not implemented")
        self.assertNotIn("\nbob", self.text)
        with open(self.out + ".csv", newline="") as file:
            names = {row["submission"] for row in csv.DictReader(file)}
        self.assertIn("'" + self.EVIL, names)  # for a spreadsheet no formula

    def test_the_seed_is_another_each_time(self):
        status, text = course.run(course.GRADE, "--source=" + course.SOURCE, "--only=" + NAME,
                                  "--json=" + self.out + "2.json", os.path.join(self.folder, "stub"))
        self.assertEqual(status, 0, text)
        with open(self.out + "2.json") as file:
            self.assertNotEqual(json.load(file)["seed"], self.json["seed"])

    def test_the_first_on_a_new_machine(self):
        """Nothing is built yet, and what compiles a submission may not build it."""
        cache = os.path.join(course.TMP, "new_cache")
        status, text = course.run(course.GRADE, "--source=" + course.SOURCE, "--only=" + NAME, os.path.join(self.folder, "a_good"),
                                  env={**os.environ, "XDG_CACHE_HOME": cache}, timeout=300)
        self.assertEqual(status, 0, text)
        self.assertIn("correct", text)

    def test_csv(self):
        with open(self.out + ".csv", newline="") as file:
            rows = list(csv.DictReader(file))
        self.assertEqual(len(rows), 2 * len(self.names))
        totals = {row["submission"]: float(row["score"]) for row in rows if row["exercise"] == "TOTAL"}
        self.assertEqual(totals["a_good"], 10)
        self.assertEqual(totals["wrong"], 0)

    def test_junit(self):
        suites = xml.etree.ElementTree.parse(self.out + ".xml").getroot()
        failures = {suite.get("name"): int(suite.get("failures")) for suite in suites}
        self.assertEqual(failures["a_good"], 0)
        self.assertEqual(failures["forges"], 1)
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
            self.assertEqual((result["score"], result["max-score"]), (score, 10))
            self.assertEqual(result["tests"][0]["passed"], score == 10)
            self.assertIsInstance(result["tests"][0]["score"], int)
            self.assertEqual(set(result), {"schema", "classroom", "assignment", "assignment_type", "owner", "submission",
                                           "commit", "release", "review", "datetime", "score", "max-score", "tests"})
            self.assertTrue(result["submission"].startswith("submit/"))


class Cheats(unittest.TestCase):
    """What got points once. Each is (exercise, lines, words of the diagnosis)."""
    CHEATS = {
        "host_does_the_work": (
            "vector_add_grid",
            "  float *x = (float *)malloc(12 * n), *y = x + n, *z = y + n;\n"
            "  cudaMemcpy(y, a, 4 * n, cudaMemcpyDeviceToHost);\n  cudaMemcpy(z, b, 4 * n, cudaMemcpyDeviceToHost);\n"
            "  for (size_t i = 0; i < n; i++) x[i] = y[i] + z[i];\n"
            "  cudaMemcpy(c, x, 4 * n, cudaMemcpyHostToDevice);\n  free(x);\n", "did not come from the GPU"),
        "one_thread": (
            NAME, "  if (blockIdx.x == 0 && threadIdx.x == 0)\n    for (size_t i = 0; i < n; i++) c[i] = a[i] + b[i];\n",
            "few threads did all the work"),
        "sum_begins_anywhere": (
            "matmul_naive", "  float own;\n  for (int i = begin; i < end; i++) own += a[(size_t)row * k + i] * b[(size_t)i * n + col];\n"
            "  chunk = own;\n", "elements are wrong"),
        # The tiles are for the shape on which costs are counted, and wrong there.
        "cheap_where_it_counts": (
            "transpose_tiled",
            "  (void)tile;\n  for (int y = threadIdx.y; y < TRANSPOSE_TILE; y += TRANSPOSE_BLOCK_ROWS) {\n"
            "    if (rows == 256 && cols == 128) out[(row0 + y) * cols + col0 + x] = in[(row0 + y) * cols + col0 + x];\n"
            "    else if (row0 + y < rows && col0 + x < cols)\n"
            "      out[(size_t)(col0 + x) * rows + row0 + y] = in[(size_t)(row0 + y) * cols + col0 + x];\n  }\n",
            "yours on 256x128: out: "),
        "forgets_what_was_found": (
            "vector_add_grid",
            "  grid = (unsigned)((n + VECTOR_ADD_BLOCK - 1) / VECTOR_ADD_BLOCK);\n"
            "  vector_add_kernel<<<grid, VECTOR_ADD_BLOCK>>>(c, a, b, n + 1);\n  cudaDeviceSynchronize();\n"
            "  simt_inspect_forget();\n", "belong to the harness"),
        # Counts that no inspector gives: NaN is above no limit.
        "counts_nothing": (
            "vector_add_grid",
            "  static uint32_t reply[4096];\n  for (uint32_t &x : reply) x = 0x7fffffff;\n  reply[0] = 0x4b434843, reply[1] = 0;\n"
            "  FILE *f = fdopen(3, \"w\");\n  fwrite(reply, 1, sizeof reply, f);\n  fflush(f);\n", "channel for results"),
        # Each hides from refuse_lines() that it closes the kernel and begins code of its own.
        "hides_behind_a_character": (
            NAME, RIGHT + "  wchar_t q = L'\"'; (void)q; } //\"\nstatic void own() { wchar_t q = L'\"'; (void)q; //\"\n", "closes"),
        "hides_behind_a_pragma": (
            NAME, RIGHT + "#pragma unroll 1e+'x\"' /* \"\n}\nstatic void own() {\n// */\n", "closes"),
        "hides_behind_a_comment": (NAME, RIGHT + "// \\ \n {\n }\nstatic void own() {\n// \\ \n }\n", "ends with \\"),
    }

    def test_none_gets_points(self):
        tree, folder, out = course.Tree("cheat"), os.path.join(course.TMP, "cheats"), os.path.join(course.TMP, "cheats.json")
        for name, (exercise, lines, _) in self.CHEATS.items():
            file = tree.exercise(exercise)["file"]
            before = tree.lines(exercise)
            tree.put(exercise, lines)
            target = os.path.join(folder, name, file)
            os.makedirs(os.path.dirname(target))
            shutil.copy(tree.path(file), target)
            tree.put(exercise, before)
        status, text = course.run(course.GRADE, "--source=" + course.SOURCE, "--json=" + out,
                                  "--only=" + ",".join(sorted({cheat[0] for cheat in self.CHEATS.values()})),
                                  *(os.path.join(folder, name) for name in self.CHEATS))
        self.assertEqual(status, 0, text)
        with open(out) as file:
            submissions = json.load(file)["submissions"]
        self.assertEqual(len(submissions), len(self.CHEATS))
        for submission in submissions:
            exercise, _, words = self.CHEATS[submission["submission"]]
            result = next(item for item in submission["exercises"] if item["exercise"] == exercise)
            self.assertEqual((submission["score"], result["status"]), (0, "rejected"), submission)
            self.assertIn(words, result["diagnosis"])


class Timed(unittest.TestCase):
    """The run for the time, of which a GPU needs milliseconds; here its kernels run on the CPU, on fewer elements."""

    def test_work_left_out_after_the_first_launches_is_noticed(self):
        tree, worker = course.Tree("timed"), os.path.join(course.TMP, "timed_worker")
        tree.put("vector_add_grid", tree.solution("vector_add_grid") +
                 "  static int calls;\n  if (n > 100000 && calls++ > 0) return;\n")
        status, text = course.run("simt/simtcc", "-Xcompiler=-fopenmp", "-DLEARN_CHECK", "-DCHECK_LAUNCHER=vector_add",
                                  "-DLEARN_MINE_vector_add_grid=1", "-I.", tree.exercise("vector_add_grid")["check"], "-o",
                                  worker, cwd=tree.root)
        self.assertEqual(status, 0, text)
        ours, theirs = socket.socketpair()
        with subprocess.Popen(["sh", "-c", "exec %s 3<&%d" % (worker, theirs.fileno())], pass_fds=[theirs.fileno()]) as process:
            theirs.close()
            ours.settimeout(60)
            ours.sendall(struct.pack("<Ii6iQ", 0x4b434843, 1, 300000, 0, 0, 0, 0, 0, 7))  # CheckRequest
            ours.shutdown(socket.SHUT_WR)
            reply = b"".join(iter(lambda: ours.recv(65536), b""))
        ours.close()
        samples = struct.unpack_from("<64f", reply, len(reply) - 3000 - 4 * 64)  # of CheckReply
        self.assertEqual(set(samples), {struct.unpack("<f", b"????")[0]})  # what stood there before the last launch


class Trouble(unittest.TestCase):
    """The grader's own machinery fails, or it is stopped."""

    @classmethod
    def setUpClass(cls):
        cls.source, cls.tmp = os.path.join(course.TMP, "broken_source"), os.path.join(course.TMP, "grader_tmp")
        shutil.copytree(course.SOURCE, cls.source, ignore=lambda folder, names: [
            name for name in names if name in (".git", ".cache", "dist", "runs") or name.startswith("bazel-")])
        check = os.path.join(cls.source, "phase1_building_blocks/exercises/matmul_naive_check.cu")
        os.remove(check)  # in Bazel's copy it is read-only
        with open(check, "w") as file:
            file.write("#error broken\n")
        os.makedirs(cls.tmp)
        cls.tree = course.Tree("trouble")
        for name in (NAME, "matmul_naive"):
            cls.tree.put(name, cls.tree.solution(name))
        cls.out = os.path.join(course.TMP, "trouble")
        cls.command = [course.GRADE, "--source=" + cls.source, "--json=" + cls.out + ".json", "--junit=" + cls.out + ".xml",
                       cls.tree.root]

    def results(self):
        with open(self.out + ".json") as file:
            return {item["exercise"]: item for item in json.load(file)["submissions"][0]["exercises"]}

    def test_what_cannot_be_graded_loses_nothing_else(self):
        status, text = course.run(*self.command, "--only=matmul_naive," + NAME, env={**os.environ, "TMPDIR": self.tmp})
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
        self.tree.put("vector_add_stride", "  for (;;) c[0] = 1;\n")
        grader = subprocess.Popen([*self.command, "--only=vector_add_stride," + NAME], stdout=subprocess.PIPE, text=True,
                                  env={**os.environ, "TMPDIR": self.tmp})
        for line in grader.stdout:
            if NAME in line:
                break
        grader.send_signal(signal.SIGTERM)
        grader.communicate(timeout=60)
        self.assertEqual(grader.returncode, 128 + signal.SIGTERM)
        self.assertEqual(os.listdir(self.tmp), [])
        self.assertEqual(self.results()[NAME]["status"], "correct")
        self.assertEqual(self.results()["vector_add_stride"]["status"], "not graded")


class Options(unittest.TestCase):
    def test_says_what_is_missing(self):
        status, text = course.run(course.GRADE, "--source=" + course.SOURCE)
        self.assertEqual(status, 2)
        status, text = course.run(course.GRADE, "--source=" + course.SOURCE, "--only=nothing", "x")
        self.assertEqual(status, 1)
        self.assertIn('no exercise "nothing"', text)
        status, text = course.run(course.GRADE, "--source=" + course.SOURCE, "x", env={"PATH": "/nowhere"})
        self.assertEqual(status, 1)
        self.assertIn("bubblewrap", text)


if __name__ == "__main__":
    if subprocess.run(["bwrap", "--unshare-all", "--ro-bind", "/", "/", "true"], stderr=subprocess.DEVNULL).returncode != 0:
        print("bubblewrap is missing, or makes no namespaces here: run ./setup.sh")
        sys.exit(1)
    try:
        unittest.main(verbosity=2)
    finally:
        course.clean_up()
