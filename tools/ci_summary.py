#!/usr/bin/env python3
"""Adds up what Bazel said: ci_summary.py [--failed STEP]... [NAME=EVENTS.json]...

EVENTS.json is what `bazel test --build_event_json_file` wrote. A test counts as failed when it failed, was flaky, timed
out or could not be built; a Bazel that ended in error for another reason, and every --failed step, counts as one failure.
A test that passed, but whose JUnit file says that every case of it was skipped, counts as skipped: for Bazel 4 there is
no such test. What its log says in a line "skipped: REASON" is repeated.
The last line is `N passed, N failed, N skipped`; the exit status is 0 only when nothing failed and something passed.
"""
import argparse
import json
import urllib.parse
import xml.etree.ElementTree


def read_output(event, name):
    """The text of a file that a test left, "" when there is none."""
    for output in event.get("testActionOutput", []):
        path = urllib.parse.unquote(urllib.parse.urlparse(output.get("uri", "")).path)
        if output.get("name") == name:
            try:
                with open(path, encoding="utf-8", errors="replace") as file:
                    return file.read()
            except OSError:
                pass
    return ""


def all_skipped(event):
    """Whether a run of a test skipped every case, and for what reason."""
    try:
        cases = list(xml.etree.ElementTree.fromstring(read_output(event, "test.xml")).iter("testcase"))
    except xml.etree.ElementTree.ParseError:
        return False, ""
    reasons = [line for line in read_output(event, "test.log").splitlines() if line.startswith("skipped: ")]
    return bool(cases) and all(case.find("skipped") is not None for case in cases), (reasons + [""])[0]


def read_events(path):
    """Returns ({label: status}, {label: why it was skipped}, Bazel's exit code or None when it did not finish)."""
    status, reasons, runs, exit_code, left_out, wanted = {}, {}, {}, None, set(), set()
    with open(path, encoding="utf-8") as lines:
        for line in lines:
            event = json.loads(line)
            kind, ident = next(iter(event["id"].items()))
            label = ident.get("label", "")
            if kind == "optionsParsed":
                for option in event["optionsParsed"].get("cmdLine", []):
                    if option.startswith("--test_tag_filters="):
                        tags = option.split("=", 1)[1].split(",")
                        left_out = {tag[1:] for tag in tags if tag.startswith("-")}
                        wanted = {tag for tag in tags if not tag.startswith("-")}
            elif kind == "targetConfigured":
                target = event.get("configured", {})
                own = set(target.get("tag", []))
                chosen = not left_out & own and (not wanted or wanted & own)
                if target.get("targetKind", "").endswith("_test rule") and chosen:
                    status.setdefault(label, "NOT RUN")  # stays so when it does not build
            elif kind == "targetCompleted" and event.get("aborted", {}).get("reason") == "SKIPPED":
                if label in status:
                    status[label] = "SKIPPED"
            elif kind == "testResult":
                skipped, reason = all_skipped(event.get("testResult", {}))
                runs.setdefault(label, []).append(skipped)
                if skipped:
                    reasons[label] = reason
            elif kind == "testSummary":
                status[label] = event.get("testSummary", {}).get("overallStatus", "NOT RUN")
            elif kind == "buildFinished":
                exit_code = event["finished"].get("exitCode", {}).get("code", 0)  # a code of 0 is left out
    for label, skipped in runs.items():
        if all(skipped) and status.get(label) == "PASSED":
            status[label] = "SKIPPED"
    return status, reasons, exit_code


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--failed", action="append", default=[], metavar="STEP")
    parser.add_argument("runs", nargs="*", metavar="NAME=EVENTS.json")
    arguments = parser.parse_args()

    totals = {"passed": 0, "failed": len(arguments.failed), "skipped": 0}
    for step in arguments.failed:
        print("FAILED step: %s" % step)
    for run in arguments.runs:
        name, path = run.split("=", 1)
        try:
            status, reasons, exit_code = read_events(path)
        except (OSError, ValueError) as error:
            print("FAILED %s: no readable event file: %s" % (name, error))
            totals["failed"] += 1
            continue
        passed = sum(s == "PASSED" for s in status.values())
        skipped = sum(s == "SKIPPED" for s in status.values())
        bad = sorted((label, s) for label, s in status.items() if s not in ("PASSED", "SKIPPED"))
        for label, s in bad:
            print("%s %s: %s" % (s, name, label))
        for label in sorted(reasons):
            if status[label] == "SKIPPED":
                print("SKIPPED %s: %s %s" % (name, label, reasons[label]))
        failed = len(bad)
        if exit_code != 0 and not bad:
            print("FAILED %s: bazel %s" % (name, "did not finish" if exit_code is None else "ended with %d" % exit_code))
            failed += 1
        print("%-8s %d passed, %d failed, %d skipped" % (name, passed, failed, skipped))
        for key, count in (("passed", passed), ("failed", failed), ("skipped", skipped)):
            totals[key] += count
    print("%(passed)d passed, %(failed)d failed, %(skipped)d skipped" % totals)
    return 0 if totals["failed"] == 0 and totals["passed"] > 0 else 1


if __name__ == "__main__":
    raise SystemExit(main())
