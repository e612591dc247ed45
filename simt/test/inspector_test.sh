#!/usr/bin/env bash
# inspector_test.sh - the inspector's figures: those that inspect_test.cu fixes, and each launch of hardware/launches.cu
# against what an H200 counted for it (hardware/h200.csv). The reports as JSON and HTML are looked at, too.
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
simtcc=${SIMTCC:-$here/../simtcc}
work=$(mktemp -d "${TEST_TMPDIR:-/tmp}/inspector.XXXXXX")
trap 'rm -rf "$work"' EXIT
. "$here/cache.sh"
unset SIMT_ORDER SIMT_STREAMS SIMT_REPORT SIMT_INSPECT_SAMPLE SIMT_INSPECT_KERNEL
failed=0

step() { # name, command..
  local name=$1 start=$SECONDS
  shift
  if "$@" > "$work/log" 2>&1; then
    printf 'ok    %s (%d s)\n' "$name" $((SECONDS - start))
  else
    printf 'FAIL  %s: %s\n' "$name" "$*"
    tail -n 30 "$work/log" | sed 's/^/      | /'
    failed=$((failed + 1))
  fi
}

reports() { # the page is whole, names each kernel, and holds no text of the source that could end it
  SIMT_REPORT="json:$work/small.json,html:$work/page.html" "$work/launches" > /dev/null || return 1
  python3 - "$work/small.json" "$work/page.html" << 'END'
import html.parser, json, sys
report = json.load(open(sys.argv[1]))
text = open(sys.argv[2]).read()
assert report["kernels"] and not report["findings"], "no kernels, or findings in correct ones"
assert text.rstrip().endswith("</html>") and "<script" not in text
for kernel in report["kernels"]:
    assert "<code>%s&lt;&lt;&lt;" % html.escape(kernel["name"]) in text, kernel["name"]
    lines = [line["counters"].get("global_load_sectors", 0) for line in kernel["lines"]]
    assert sum(lines) == kernel["counters"]["global_load_sectors"], kernel["name"]
class Parser(html.parser.HTMLParser):
    open_tags = []
    def handle_starttag(self, tag, attrs):
        if tag != "meta": self.open_tags.append(tag)
    def handle_endtag(self, tag):
        assert self.open_tags.pop() == tag, tag
parser = Parser()
parser.feed(text)
assert not parser.open_tags
END
}

limited() { # with 4 GiB of addresses, as in a student's check, races in device memory are found all the same
  "$simtcc" --inspect -w test/bugs/race_neighbour_block.cu -o "$work/race" || return 1
  (ulimit -v 4194304 && exec "$work/race") > "$work/race.log" 2>&1
  cat "$work/race.log"
  grep -q '=== simt: data race' "$work/race.log"
}

ended() { # millions of accesses outside: the launch is given up, and its report says so
  "$simtcc" --inspect -w test/bugs/bounds_wild_index.cu -o "$work/wild" || return 1
  timeout 20 "$work/wild" > "$work/wild.log" 2>&1
  cat "$work/wild.log"
  grep -q 'illegal memory access' "$work/wild.log" && grep -q 'launch was ended there' "$work/wild.log"
}

recorded() { # the figures in the tables of hardware/ are those of gcc 12
  case $("${CXX:-g++}" -dumpversion) in 12*) ;; *) return 0 ;; esac
  python3 test/hardware/compare.py inspected test/hardware/h200.csv "$work/report.json" | diff test/hardware/inspected.csv -
}

cd "$here/.." || exit 2
step 'inspect_test.cu compiles' "$simtcc" --inspect test/inspect_test.cu -o "$work/inspect_test" -lcmocka
step 'its figures' env SIMT_REPORT=none "$work/inspect_test"
step 'launches.cu compiles' "$simtcc" --inspect test/hardware/launches.cu -o "$work/launches"
step 'it runs' env SIMT_INSPECT_LAUNCHES=1 "SIMT_REPORT=json:$work/report.json" "$work/launches"
step 'equal to an H200' python3 test/hardware/compare.py check test/hardware/h200.csv "$work/report.json"
step 'hardware/inspected.csv is what the inspector counts' recorded
step 'reports' reports
step 'with little address space' limited
step 'a wild index ends the launch' ended
[ $failed -eq 0 ]
