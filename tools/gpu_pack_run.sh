#!/bin/bash
# Runs the pack's tests one by one; the totals come last, and the exit status is 0 when none failed and one passed.
#
#   ./run.sh                 all
#   ./run.sh 'conv|pool'     those whose name matches
#   RUN_UNDER='compute-sanitizer --tool racecheck --error-exitcode 99' ./run.sh     each under a tool
#   TIMEOUT=60 ./run.sh      seconds for each; 600 unless told
#
# logs/ keeps NAME.log and the JUnit NAME.xml of each test. A test all of whose cases were skipped counts as skipped.
set -u
here=$(cd "$(dirname "$0")" && pwd)
pattern=${1:-.}
logs=$here/logs
export LD_LIBRARY_PATH="$here/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}" RUNFILES_DIR="$here/runfiles" TEST_SRCDIR="$here/runfiles"
export TEST_WORKSPACE=nn GOMP_SPINCOUNT=1000
read -ra under <<< "${RUN_UNDER:-}"
mkdir -p "$logs"
cd "$here/runfiles/nn" || exit 1

passed=0 failed=0 skipped=0
while read -r name; do
  log=$logs/${name//\//.}.log
  export TEST_TMPDIR XML_OUTPUT_FILE="${log%.log}.xml" TEST_TARGET="//${name%/*}:${name##*/}"
  TEST_TMPDIR=$(mktemp -d)
  start=$SECONDS
  timeout "${TIMEOUT:-600}" "${under[@]}" "./$name" > "$log" 2>&1 < /dev/null
  status=$?
  rm -rf "$TEST_TMPDIR"
  if [ -n "${RUN_UNDER:-}" ] && grep -q 'terminated before first instrumented API call' "$log" &&
      ! grep -q '\[  FAILED  \]' "$log"; then
    skipped=$((skipped + 1)) # compute-sanitizer calls a program that never uses the GPU an error
    status=0
    result='SKIPPED (uses no GPU)'
  elif [ $status -ne 0 ]; then
    failed=$((failed + 1))
    result="FAILED (exit status $status)"
    [ $status -ne 124 ] || result="FAILED (timeout)"
  elif grep -q '\[  SKIPPED \]' "$log" && ! grep -q '\[       OK \]' "$log"; then
    skipped=$((skipped + 1))
    result=SKIPPED
  else
    passed=$((passed + 1))
    result=PASSED
    ! grep -q '\[  SKIPPED \]' "$log" || result="PASSED (some cases skipped)"
  fi
  printf '%-60s %s, %d s\n' "$name" "$result" $((SECONDS - start))
  [ $status -eq 0 ] || tail -n 20 "$log" | sed 's/^/    /'
done < <(grep -E -- "$pattern" "$here/tests.txt")

echo "Logs: $logs"
echo "$passed passed, $failed failed, $skipped skipped"
[ $failed -eq 0 ] && [ $passed -gt 0 ]
