#!/usr/bin/env python3
"""Runs the tests of this folder, and writes JUnit XML to $XML_OUTPUT_FILE where that is set.

    tests/run.py                          # all
    tests/run.py test_modules             # some
    tests/run.py test_operations.Gradcheck

Without PyTorch or torchvision everything is skipped, with the reason. --library=FILE: the libnncuda.so.1 to test;
--extension: build the torch extension first, so that each operation is tested through it, too; --folder=DIR: there,
where it stays for the next run; --trace: each wrong call is printed before it is made, so that a crash has a name
(where it happened is printed in any case); --inductor: torch.compile generates kernels, too, which takes minutes.
"""
import argparse
import faulthandler
import importlib.util
import os
import sys
import tempfile
import time
import unittest
import xml.etree.ElementTree as xml

HERE = os.path.dirname(os.path.abspath(__file__))
MODULES = ["test_library", "test_operations", "test_bad_input", "test_modules", "test_training", "test_fused_ops",
           "test_operators"]


class Result(unittest.TextTestResult):
    """Also remembers every test, its time, and how it ended; subtests are told apart."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.cases = []

    def startTest(self, test):
        super().startTest(test)
        self.began, self.current = time.perf_counter(), {"id": test.id(), "ends": []}
        self.cases.append(self.current)

    def stopTest(self, test):
        self.current["seconds"] = time.perf_counter() - self.began
        super().stopTest(test)

    def _note(self, kind, text):
        if not self.cases:  # of a module or a class, before its first test
            self.cases.append({"id": "setUp", "ends": [], "seconds": 0.0})
        self.cases[-1]["ends"].append((kind, text))

    def addFailure(self, test, error):
        super().addFailure(test, error)
        self._note("failure", self._exc_info_to_string(error, test))

    def addError(self, test, error):
        super().addError(test, error)
        self._note("error", self._exc_info_to_string(error, test))

    def addSubTest(self, test, subtest, error):
        super().addSubTest(test, subtest, error)
        if error is not None:
            self._note("failure", subtest.id() + "\n" + self._exc_info_to_string(error, test))

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        self._note("skipped", reason)


def write_report(path, cases):
    suite = xml.Element("testsuite", name="nncuda", tests=str(len(cases)))
    for kind in ("failure", "error", "skipped"):
        suite.set({"failure": "failures", "error": "errors", "skipped": "skipped"}[kind],
                  str(sum(any(end[0] == kind for end in case["ends"]) for case in cases)))
    for case in cases:
        group, _, name = case["id"].rpartition(".")
        element = xml.SubElement(suite, "testcase", classname=group, name=name, time="%.3f" % case["seconds"])
        for kind, text in case["ends"][:1]:
            xml.SubElement(element, kind, message=text.strip().splitlines()[-1] if text.strip() else "").text = text
    suites = xml.Element("testsuites")
    suites.append(suite)
    xml.ElementTree(suites).write(path)


def cannot_compile():
    """Why the extension cannot be compiled here, or None."""
    from torch.utils import cpp_extension
    folders = cpp_extension.include_paths() + ["/usr/include"]
    for header, package in (("torch/csrc/utils/pybind.h", "libtorch-dev"), ("pybind11/pybind11.h", "pybind11-dev")):
        if not any(os.path.exists(os.path.join(folder, header)) for folder in folders):
            return "%s is not here (apt install %s)" % (header, package)
    return None if cpp_extension.is_ninja_available() else "ninja is not installed (apt install ninja-build)"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--library", help="the libnncuda.so.1 to test")
    parser.add_argument("--extension", action="store_true", help="build the torch extension, and test it, too")
    parser.add_argument("--folder", help="where the extension is built and kept; default: one that is deleted again")
    parser.add_argument("--trace", action="store_true", help="print each wrong call before it is made")
    parser.add_argument("--inductor", action="store_true", help="torch.compile with its usual backend, too")
    parser.add_argument("tests", nargs="*", default=MODULES)
    options = parser.parse_args()
    if options.library:
        os.environ["NNCUDA_LIBRARY"] = os.path.abspath(options.library)
    for option, variable in ((options.trace, "NNCUDA_TEST_TRACE"), (options.inductor, "NNCUDA_TEST_INDUCTOR")):
        if option:
            os.environ[variable] = "1"
    faulthandler.enable()
    sys.path[:0] = [os.path.dirname(HERE), HERE]
    report = os.environ.get("XML_OUTPUT_FILE")

    missing = [name for name in ("torch", "torchvision") if importlib.util.find_spec(name) is None]
    if missing:
        reason = "%s is not installed (apt install python3-torch python3-torchvision)" % missing[0]
        print("skipped: " + reason)
        if report:
            write_report(report, [{"id": "nncuda.python", "seconds": 0.0, "ends": [("skipped", reason)]}])
        return 0
    if options.extension:
        reason = cannot_compile()
        if reason:
            print("skipped: " + reason)
            if report:
                write_report(report, [{"id": "nncuda.extension", "seconds": 0.0, "ends": [("skipped", reason)]}])
            return 0
    import torch
    torch.set_num_threads(1)  # small arrays; threads that wait for work cost more than they do
    with tempfile.TemporaryDirectory(dir=os.environ.get("TEST_TMPDIR")) as folder:
        os.environ["NNCUDA_TEST_FOLDER"] = folder
        if options.extension:
            import nncuda
            nncuda.build_extension(build_directory=os.path.abspath(options.folder or os.path.join(folder, "extension")),
                                    flags=["-O1", "-Werror"])
        suite = unittest.defaultTestLoader.loadTestsFromNames(options.tests)
        result = unittest.TextTestRunner(verbosity=2, resultclass=Result, stream=sys.stdout).run(suite)
    slowest = sorted(result.cases, key=lambda case: case["seconds"], reverse=True)[:5]
    print("slowest: " + ", ".join("%s %.1f s" % (case["id"], case["seconds"]) for case in slowest))
    if report:
        write_report(report, result.cases)
    return 0 if result.wasSuccessful() and result.testsRun else 1


if __name__ == "__main__":
    sys.exit(main())
