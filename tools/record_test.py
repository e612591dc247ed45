#!/usr/bin/env python3
"""tools/record, with a program that prints what the test wants: rewriting, comparing, parts of outputs, faults."""
import os
import subprocess
import sys
import tempfile

RECORD = os.path.realpath(sys.argv[1] if len(sys.argv) > 1 else "tools/record")
PROGRAM = """#!/bin/sh
echo one on the emulated GPU '(16 SMs, on 4 CPU cores)'
echo two >&2
echo three "$@"
echo
echo four
echo five: $BUILD_WORKING_DIRECTORY/runs/five
"""
ALL = ["one on the emulated GPU (16 SMs, on 1 CPU core)", "two", "three", "", "four", "five: runs/five"]


def document(mark, lines):
    return "text\n\n<!-- %s -->\n```\n%s```\n\nmore text\n" % (mark, "".join(line + "\n" for line in lines))


def record(folder, text, *options):
    """Exit status, what was printed, the document afterwards."""
    path = os.path.join(folder, "README.md")
    with open(path, "w") as file:
        file.write(text)
    run = subprocess.run([RECORD, "--built", "--program=//a:b=" + os.path.join(folder, "program"), *options, path],
                         stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    with open(path) as file:
        return run.returncode, run.stdout, file.read()


def main():
    wrong = []

    def expect(what, condition, *seen):
        if not condition:
            wrong.append("%s: %s" % (what, "\n".join(map(str, seen))))

    with tempfile.TemporaryDirectory() as folder:
        with open(os.path.join(folder, "program"), "w") as file:
            file.write(PROGRAM)
        os.chmod(os.path.join(folder, "program"), 0o755)
        run = "record: bazel run //a:b"

        for mark, lines in (
                (run, ALL),
                (run + " -- --x 'y  z'", ALL[:2] + ["three --x y  z"] + ALL[3:]),
                (run + " | first 2", ALL[:2] + ["..."]),
                (run + " | from /^two/ to /^three/", ["...", "two", "three", "..."]),
                (run + " | from /^two/ before /^four/", ["...", "two", "three", "..."]),
                (run + " | from /^four/", ["...", "four", ALL[5]]),
                (run + " | first 1 | from /^three/ first 1 | from /^five/", [ALL[0], "...", "three", "...", ALL[5]]),
                (run + " | lines /^t/", ["two", "three"]),
                ("recorded once: bazel run //a:b, this machine", ["b on CPU", "what it was"])):
            right, old = document(mark, lines), document(mark, ["what it printed once"])
            if "once:" in mark:
                old = right
            status, printed, after = record(folder, old)
            expect("rewrites " + mark, status == 0 and after == right, printed, after)
            status, printed, after = record(folder, right, "--check")
            expect("accepts " + mark, status == 0 and after == right, printed)
            if "once:" not in mark:
                status, printed, after = record(folder, old, "--check")
                expect("--check refuses " + mark, status == 1 and after == old and "-what it printed once" in printed, printed)

        for what, text, sentence in (
                ("a part that is not there", document(run + " | from /^six/", []), "no line of the output matches /^six/"),
                ("lines that are not there", document(run + " | lines /^six/", []), "no line of the output matches"),
                ("a program that is not named", document("record: bazel run //a:c", []), "//a:c is not among"),
                ("another command", document("record: ./b", []), "expected `bazel run //LABEL"),
                ("a quote that does not end", document(run + " -- 'x", []), "cannot be read: No closing quotation"),
                ("an option for Bazel", document("record: bazel run --run_under=//a:b", []), "expected `bazel run //LABEL"),
                ("what is no regular expression", document(run + " | from /(/", []), "/(/ is not a regular expression"),
                ("a mark that is not at the margin", document(run, []).replace("<!--", " <!--"), "is not read"),
                ("a mark with a blank behind it", document(run, []).replace("-->", "--> "), "is not read"),
                ("a mark without a block", "<!-- record: bazel run //a:b -->\ntext\n", "no fenced block"),
                ("an output without a mark", "text\n```\nb on CPU\n```\n", "neither <!-- record:"),
                ("a block without an end", "<!-- %s -->\n```\none\n" % run, "does not end")):
            for options in ((), ("--check",)):
                status, printed, after = record(folder, text, *options)
                expect("refuses " + what, status == 1 and sentence in printed and after == text, printed)
        # The error of a version, as a share of its tolerance, may differ from processor to processor, and nothing else.
        header, row = "version    error tolerance |  all", "with BLAS  2e-06   1.2e-05 |   16"
        for what, old_row, accepted in (
                ("an error that is a little larger", "with BLAS  5.9e-06   1.2e-05 |   16", True),
                ("an error that is a little smaller", "with BLAS   7e-07   1.2e-05 |   16", True),
                ("the error of another shape", "with BLAS  2e-07   2.4e-06 |   16", True),
                ("an error that is much larger", "with BLAS  6.1e-06   1.2e-05 |   16", False),
                ("an error of zero", "with BLAS      0   1.2e-05 |   16", False),
                ("a tolerance that is much smaller", "with BLAS  2e-06   3.9e-06 |   16", False),
                ("a tolerance of zero", "with BLAS  2e-06   0 |   16", False),
                ("another count", "with BLAS  2e-06   1.2e-05 |   17", False),
                ("another name", "with BLIS  2e-06   1.2e-05 |   16", False)):
            with open(os.path.join(folder, "program"), "w") as file:
                file.write("#!/bin/sh\ncat << END\n%s\n%s\n\n%s\nEND\n" % (header, row, "with BLAS  2e-06   1.2e-05 |   16"))
            old = document(run, [header, old_row, "", row])
            status, printed, after = record(folder, old, "--check")
            expect("--check accepts " + what if accepted else "--check refuses " + what, status == (0 if accepted else 1), printed)
            old = document(run, [header, row, "", old_row])
            status, printed, after = record(folder, old, "--check")
            expect("--check refuses below the table " + what, status == 1, printed)
        os.remove(os.path.join(folder, "program"))
        text = document(run, ["one"])
        status, printed, after = record(folder, text)
        expect("refuses a program that is gone", status == 1 and "cannot be run" in printed and after == text, printed)
        gone = subprocess.run([RECORD, "--check", os.path.join(folder, "gone.md")], stdout=subprocess.PIPE, text=True)
        expect("refuses a document that is gone", gone.returncode == 1 and "gone.md cannot be read" in gone.stdout, gone.stdout)
    print("\n".join(wrong))
    print("%d faults" % len(wrong))
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
