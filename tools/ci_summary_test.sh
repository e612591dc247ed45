#!/bin/bash
# ci_summary.py on event files in miniature: what it must count, and what it must not take for a success.
set -u
summary=$PWD/tools/ci_summary.py
cd "$TEST_TMPDIR" || exit 1
status=0

configured() { printf '{"id":{"targetConfigured":{"label":"%s"}},"configured":{"targetKind":"%s","tag":["%s"]}}\n' "$@"; }
ended() { printf '{"id":{"testSummary":{"label":"%s"}},"testSummary":{"overallStatus":"%s"}}\n' "$@"; }
skipped() { printf '{"id":{"targetCompleted":{"label":"%s"}},"aborted":{"reason":"SKIPPED"}}\n' "$@"; }
finished() { printf '{"id":{"buildFinished":{}},"finished":{"exitCode":{"name":"X"%s}}}\n' "${1:+,\"code\":$1}"; }
ran() {  # ran LABEL NAME: a run whose files are NAME.xml and NAME.log
  printf '{"id":{"testResult":{"label":"%s"}},"testResult":{"testActionOutput":[' "$1"
  printf '{"name":"test.xml","uri":"file://%s.xml"},{"name":"test.log","uri":"file://%s.log"}]}}\n' "$PWD/$2" "$PWD/$2"
}
options() { printf '{"id":{"optionsParsed":{}},"optionsParsed":{"cmdLine":["%s"]}}\n' "$@"; }

expect() {  # expect LAST_LINE EXIT_STATUS ARGUMENT...
  local line=$1 code=$2 said
  shift 2
  said=$(python3 "$summary" "$@")
  local got=$?
  if [ "$(tail -n 1 <<< "$said")" != "$line" ] || [ $got -ne "$code" ]; then
    printf 'ci_summary.py %s\n  expected: %s (exit %s)\n  got:      %s (exit %s)\n' "$*" "$line" "$code" "$said" $got
    status=1
  fi
}

{ configured //:a 'cc_test rule' x; configured //:lib 'cc_library rule' x; ended //:a PASSED; finished; } > good
{ configured //:a 'cc_test rule' x; configured //:b 'cc_test rule' x; ended //:a PASSED; ended //:b FAILED; finished 3; } > bad
{ configured //:a 'cc_test rule' x; configured //:g 'cc_test rule' x; skipped //:g; ended //:a PASSED; finished; } > gpu
{ configured //:g 'cc_test rule' x; skipped //:g; finished; } > only_skipped
{ configured //:a 'cc_test rule' x; configured //:b 'cc_test rule' x; ended //:a PASSED; finished 1; } > unbuilt
{ configured //:a 'cc_test rule' x; ended //:a PASSED; finished 1; } > broken_program
{ configured //:a 'cc_test rule' x; ended //:a FLAKY; finished; } > flaky
{ configured //:a 'cc_test rule' x; ended //:a PASSED; } > killed
{ options --test_tag_filters=-fuzz,-slow; configured //:a 'cc_test rule' x; configured //:f '_fuzz_test rule' fuzz
  ended //:a PASSED; finished; } > filtered
{ options --test_tag_filters=requires-gpu; configured //:a 'cc_test rule' x; configured //:g 'cc_test rule' requires-gpu
  ended //:g PASSED; finished; } > chosen
echo '<testsuites><testcase name="a"><skipped/></testcase><testcase name="b"><skipped/></testcase></testsuites>' > none.xml
echo '<testsuites><testcase name="a"><skipped/></testcase><testcase name="b"/></testsuites>' > some.xml
echo '<testsuites/>' > empty.xml
echo 'skipped: no sandbox here' > none.log
cp none.log some.log
{ configured //:a 'cc_test rule' x; configured //:s 'cc_test rule' x; ran //:s none; ended //:s PASSED
  ended //:a PASSED; finished; } > no_case
{ configured //:s 'cc_test rule' x; ran //:s some; ended //:s PASSED; finished; } > some_cases
{ configured //:s 'cc_test rule' x; ran //:s none; ran //:s some; ended //:s PASSED; finished; } > shards
{ configured //:s 'cc_test rule' x; ran //:s none; ended //:s FAILED; finished 3; } > failed
{ configured //:s 'cc_test rule' x; ran //:s empty; ended //:s PASSED; finished; } > no_cases
{ printf '{"id":{"optionsParsed":{}},"optionsParsed":{"cmdLine":["--test_tag_filters=-slow","--test_tag_filters=slow"]}}\n'
  configured //:a 'cc_test rule' x; configured //:s 'sh_test rule' slow; ended //:s PASSED; finished; } > replaced
echo 'not json' > garbage

expect '1 passed, 0 failed, 0 skipped' 0 x=good
expect '1 passed, 1 failed, 0 skipped' 1 x=bad
expect '1 passed, 0 failed, 1 skipped' 0 x=gpu
expect '0 passed, 0 failed, 1 skipped' 1 x=only_skipped
expect '1 passed, 1 failed, 0 skipped' 1 x=unbuilt
expect '1 passed, 1 failed, 0 skipped' 1 x=broken_program
expect '0 passed, 1 failed, 0 skipped' 1 x=flaky
expect '1 passed, 1 failed, 0 skipped' 1 x=killed
expect '1 passed, 0 failed, 1 skipped' 0 x=no_case
expect '1 passed, 0 failed, 0 skipped' 0 x=some_cases
expect '1 passed, 0 failed, 0 skipped' 0 x=shards
expect '0 passed, 1 failed, 0 skipped' 1 x=failed
expect '1 passed, 0 failed, 0 skipped' 0 x=no_cases
if ! python3 "$summary" x=no_case | grep -q '^SKIPPED x: //:s skipped: no sandbox here$'; then
  echo 'the reason of a skipped test is missing'
  status=1
fi
expect '1 passed, 0 failed, 0 skipped' 0 x=filtered
expect '1 passed, 0 failed, 0 skipped' 0 x=chosen
expect '1 passed, 0 failed, 0 skipped' 0 x=replaced
expect '0 passed, 1 failed, 0 skipped' 1 x=garbage
expect '0 passed, 1 failed, 0 skipped' 1 x=missing
expect '1 passed, 1 failed, 0 skipped' 1 --failed setup x=good
expect '2 passed, 0 failed, 1 skipped' 0 x=good y=gpu
expect '0 passed, 0 failed, 0 skipped' 1
exit $status
