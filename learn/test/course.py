"""What the tests of learn and grade share: a student's tree, a student's hands, a student's terminal."""
import json
import os
import pty
import re
import select
import shutil
import signal
import subprocess
import tarfile
import tempfile
import time

RUNFILES = os.path.join(os.environ.get("TEST_SRCDIR", ""), os.environ.get("TEST_WORKSPACE", ""))
SOURCE = os.environ.get("LEARN_SOURCE") or RUNFILES
LEARN = os.environ.get("LEARN_BINARY") or os.path.join(RUNFILES, "learn/learn")
GRADE = os.environ.get("GRADE_BINARY") or os.path.join(RUNFILES, "learn/grade")
TMP = tempfile.mkdtemp(dir=os.environ.get("TEST_TMPDIR"))

# The emulator's runtime, built once for all tests.
BUILT = os.path.join(RUNFILES, "simt/simtcc_cache.tar")
if os.path.exists(BUILT):
    os.environ["XDG_CACHE_HOME"] = os.path.join(TMP, "cache")
    with tarfile.open(BUILT) as archive:
        archive.extractall(os.environ["XDG_CACHE_HOME"])
os.environ.pop("BUILD_WORKSPACE_DIRECTORY", None)
os.environ.pop("BUILD_WORKING_DIRECTORY", None)


def cache_folder():
    return os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")


def run(*command, cwd=None, timeout=120, env=None):
    """Exit status, and stdout and stderr together."""
    done = subprocess.run(command, cwd=cwd, timeout=timeout, env=env, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    return done.returncode, done.stdout.decode(errors="replace")


class Tree:
    """A student's tree."""

    def __init__(self, name, make=True):
        self.root = os.path.join(TMP, name)
        if make:
            status, text = run(LEARN, "init", self.root, "--no-prepare", "--source=" + SOURCE)
            assert status == 0, text
        with open(os.path.join(self.root, ".learn/exercises.json")) as file:
            self.exercises = json.load(file)["exercises"]

    def path(self, *parts):
        return os.path.join(self.root, *parts)

    def read(self, path):
        with open(self.path(path)) as file:
            return file.read()

    def write(self, path, text):
        """As an editor saves: a new file, renamed."""
        with open(self.path(path) + "~", "w") as file:
            file.write(text)
        os.rename(self.path(path) + "~", self.path(path))

    def exercise(self, name):
        return next(exercise for exercise in self.exercises if exercise["name"] == name)

    def place(self, name):
        text = self.read(self.exercise(name)["file"])
        match = re.search(r'#include "\.learn/reference/%s\.cuh"\n#else\n(.*?)#endif\n[ \t]*// <<< exercise' % name, text, re.S)
        assert match, name
        return text, match

    def lines(self, name):
        return self.place(name)[1].group(1)

    def put(self, name, lines):
        """Types `lines` into the exercise's place."""
        text, match = self.place(name)
        self.write(self.exercise(name)["file"], text[:match.start(1)] + lines + text[match.end(1):])

    def put_helpers(self, file, lines):
        """Types `lines` into the place for helpers."""
        text = self.read(file)
        match = re.search(r"// >>> helpers.*?\nnamespace \{\n(.*?)\}\n#endif\n// <<< helpers", text, re.S)
        assert match, file
        self.write(file, text[:match.start(1)] + lines + text[match.end(1):])

    def solution(self, name):
        return self.read(".learn/reference/%s.cuh" % name)

    def progress(self):
        return json.loads(self.read(".learn/progress.json"))

    def passed(self):
        return [name for name, item in self.progress()["exercises"].items() if item["passed"]]

    def nn(self, *arguments, timeout=120, env=None):
        return run("./nn", *arguments, cwd=self.root, timeout=timeout, env=env)


class Terminal:
    """A program in a terminal of 100 columns."""

    def __init__(self, command, cwd, env=None):
        self.text = ""
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.chdir(cwd)
            os.environ["TERM"] = "xterm"
            os.environ.update(env or {})
            os.execvp(command[0], command)

    def wait_for(self, text, timeout=60):
        """Reads until `text` has appeared; forgets what came before its end."""
        end = time.monotonic() + timeout
        while text not in self.text:
            left = end - time.monotonic()
            if left <= 0 or not self.pump(left):
                raise AssertionError("%r did not appear; there was:\n%s" % (text, self.text))
        before, _, self.text = self.text.partition(text)
        return before + text

    def pump(self, timeout):
        if not select.select([self.fd], [], [], timeout)[0]:
            return True
        try:
            data = os.read(self.fd, 65536)
        except OSError:  # the program has ended
            return False
        self.text += data.decode(errors="replace")
        return bool(data)

    def quiet(self, seconds):
        """What comes within the time."""
        end = time.monotonic() + seconds
        while time.monotonic() < end and self.pump(end - time.monotonic()):
            pass
        text, self.text = self.text, ""
        return text

    def type(self, keys):
        os.write(self.fd, keys.encode())

    def end(self, timeout=60):
        """All that is left, and the exit status."""
        end = time.monotonic() + timeout
        while self.pump(1) and time.monotonic() < end:
            pass
        if time.monotonic() >= end:
            os.kill(self.pid, signal.SIGKILL)
        status = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        os.close(self.fd)
        return status, self.text


def clean_up():
    shutil.rmtree(TMP, ignore_errors=True)
