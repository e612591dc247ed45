"""Finding, opening and checking libnncuda: old libraries, missing ones, and the header against the table of
signatures."""
import os
import shutil
import subprocess
import sys
import unittest
import unittest.mock

import header
import nncuda
import torch
from nncuda import _build, _library
from places import Case, extension_built, needs

FOLDER = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
COMPILER = shutil.which("gcc") or shutil.which("cc")


def python(program, **environment):
    """Exit status and output of a Python of its own, in which `program` has run after `import nncuda, torch`."""
    run = subprocess.run([sys.executable, "-c", "import nncuda, torch\n" + program], text=True, stdout=subprocess.PIPE,
                         stderr=subprocess.STDOUT, env={**os.environ, "PYTHONPATH": FOLDER, **environment})
    return run.returncode, run.stdout


class Header(unittest.TestCase):
    def setUp(self):
        with open(os.path.join(_build.header_folder(), "nncuda.h"), encoding="utf-8") as file:
            self.text = file.read()

    def test_signatures_are_those_of_the_header(self):
        ours = {name: letters.replace(":", "ipi") for name, letters in _library._SIGNATURES.items()}
        declared = header.signatures(self.text)
        self.assertGreater(len(declared), 40)
        self.assertEqual({name: declared.get(name) for name in ours},
                         {name: letters[0] + letters[1:].replace("s", "p") for name, letters in ours.items()})

    def test_structures_are_those_of_the_header(self):
        declared = header.structures(self.text)
        for name, ours in (("conv2d", _library.Conv2dShape), ("pool2d", _library.Pool2dShape)):
            self.assertEqual(declared["nncuda_%s_shape" % name], [field for field, _ in ours._fields_])

    def test_the_library_has_every_function(self):
        missing = [name for name in _library._SIGNATURES if not hasattr(nncuda.library().handle, "nncuda_" + name)]
        self.assertEqual(missing, [])


@needs(COMPILER, "no C compiler")
class OtherLibraries(Case):
    """Libraries in miniature: what a user with an old or a wrong file sees."""

    def library(self, name, source):
        path = os.path.join(os.environ["NNCUDA_TEST_FOLDER"], name)
        subprocess.run([COMPILER, "-shared", "-fPIC", "-x", "c", "-", "-o", path], input=source, text=True, check=True)
        return path

    def refusal(self, path):
        """The text of the RuntimeError: of opening the library, or of its first use."""
        with unittest.mock.patch.dict(os.environ, NNCUDA_LIBRARY=path), self.assertRaises(RuntimeError) as seen:
            _library.Library().softmax_forward(-1, None, 0, None, None, 1, 1)
        return str(seen.exception)

    def test_an_older_version_is_named(self):
        said = self.refusal(self.library("old.so", "int nncuda_version(void) { return 903; }"))
        self.assertIn("is version 0.9.3, older than this package, which needs 1.0.0", said)

    def test_an_older_minor_version_is_named(self):
        path = self.library("minor.so", "int nncuda_version(void) { return 10005; }")
        with unittest.mock.patch.object(_library, "NEEDED", 10100):
            self.assertIn("is version 1.0.5, older than this package, which needs 1.1.0", self.refusal(path))

    def test_another_major_version_is_named(self):
        said = self.refusal(self.library("new.so", "int nncuda_version(void) { return 20100; }"))
        self.assertIn("is version 2.1.0, of another major version than this package, which needs 1.0.0", said)

    def test_a_newer_minor_version_will_do(self):
        said = self.refusal(self.library(
            "newer.so", 'int nncuda_version(void) { return 10200; } const char *nncuda_version_text(void) { return '
            '"nncuda"; }'))
        self.assertIn("has no function nncuda_softmax_forward", said)

    def test_something_else_is_refused(self):
        self.assertIn("has no function nncuda_version", self.refusal(self.library("else.so", "int x;")))
        text = os.path.join(os.environ["NNCUDA_TEST_FOLDER"], "text.so")
        with open(text, "w", encoding="utf-8") as file:
            file.write("no library\n")
        self.assertIn("cannot be loaded", self.refusal(text))
        self.assertIn("there is no such file", self.refusal(text + ".missing"))

    @needs(extension_built(), "the extension is not built")
    def test_the_extension_refuses_an_old_library(self):
        old = self.library("old2.so", "int nncuda_version(void) { return 903; }")
        with self.assertRaisesRegex(RuntimeError, "old2.so"):
            nncuda.backend._extension.open(old, 10000, -1)
        nncuda.set_backend("extension")  # the good one is still there
        self.addCleanup(nncuda.set_backend, "ctypes")
        self.close(nncuda.softmax(torch.zeros(1, 2)), torch.full((1, 2), 0.5), 0)

    def test_a_wrong_environment_is_refused(self):
        status, said = python("", NNCUDA_BACKEND="ctype")
        self.assertNotEqual(status, 0)
        self.assertIn("NNCUDA_BACKEND=ctype: expected ctypes, extension or auto", said)
        self.addCleanup(nncuda.set_backend, nncuda.backend.name)
        nncuda.set_backend("ctypes")
        with unittest.mock.patch.dict(os.environ, NNCUDA_DEVICE="gpu"), \
                self.assertRaisesRegex(ValueError, "NNCUDA_DEVICE=gpu: expected cpu"):
            nncuda.softmax(torch.zeros(2, 3))


class Places(Case):
    def test_importing_opens_no_library(self):
        status, said = python("print(nncuda._library._library)", NNCUDA_LIBRARY="/nonexistent/libnncuda.so.1",
                              NNCUDA_BACKEND="ctypes")
        self.assertEqual((status, said.splitlines()[-1]), (0, "None"), said)

    def test_host_is_refused_and_restored(self):
        with self.assertRaisesRegex(ValueError, "name is 'gpu'; expected 'cpu' or 'emulated'"), nncuda.host("gpu"):
            pass
        if nncuda.library().emulated:
            with nncuda.host("emulated"):
                self.assertEqual(_library.host_device(), 0)
        self.assertEqual(_library.host_device(), -1)

    def test_stream_is_refused(self):
        with self.assertRaisesRegex(TypeError,
                                    "expected a torch.cuda.Stream, or a cudaStream_t as an int"), nncuda.stream("s"):
            pass
