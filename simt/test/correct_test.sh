#!/usr/bin/env bash
# correct_test.sh - the kernels of correct/ look suspicious and are right: nothing may accuse them, in any order.
#
#   correct_test.sh [NAME...]      only these, correct/NAME.cu
#
# Each program checks its results itself. It runs plain and inspected, with its threads in order, backwards and shuffled,
# its streams at once and as late as allowed, and with a look for leaks. All are compiled as one (join.sh).
# Environment: SIMTCC, the driver; KEEP=1; JOBS.
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
simtcc=${SIMTCC:-$here/../simtcc}
limit=120 # seconds for a run
work=$(mktemp -d "${TEST_TMPDIR:-/tmp}/correct.XXXXXX")
if [ -n "${KEEP:-}" ]; then echo "kept in $work"; else trap 'rm -rf "$work"' EXIT; fi
. "$here/cache.sh"
. "$here/join.sh"
export SIMT_CAPABILITY=9.0 # of the imaginary GPU, for hopper.cu
unset SIMT_ORDER SIMT_STREAMS SIMT_LEAKS SIMT_REPORT SIMT_THREADS SIMT_STRICT SIMT_WATCHDOG

runs=(
  "plain SIMT_ORDER=forward SIMT_LEAKS=1"
  "plain SIMT_ORDER=reverse"
  "plain SIMT_ORDER=random:1"
  "plain SIMT_ORDER=random:2 SIMT_THREADS=1"
  "plain SIMT_ORDER=forward SIMT_STREAMS=lazy"
  "plain SIMT_ORDER=random:3 SIMT_STREAMS=random:1 SIMT_THREADS=4"
  "inspect SIMT_ORDER=forward"
  "inspect SIMT_ORDER=reverse SIMT_STREAMS=random:2"
)

build() { # plain or inspect, the mode of simtcc
  "$simtcc" ${2:+"$2"} -w -fno-ipa-icf "-I$here/correct" "$work/all.cu" -o "$work/$1" >"$work/$1.log" 2>&1
}

try() {
  local file=$1 name run settings built log
  name=$(basename "$file" .cu)
  : >"$work/$name.result"
  for run in "${runs[@]}"; do
    read -ra settings <<<"$run"
    built=${settings[0]} log=$work/$name.${run//[ :=]/_}.log
    env "${settings[@]:1}" timeout $limit "$work/$built" "$name" >"$log" 2>&1
    status=$?
    if [ ! -x "$work/$built" ]; then
      echo "FAIL $name ($run): the programs do not compile: $(grep -m 1 error "$work/$built.log")"
    elif [ $status -eq 124 ]; then
      echo "FAIL $name ($run): no end after $limit s"
    elif [ $status -ne 0 ]; then
      echo "FAIL $name ($run): exit $status: $(grep -m 1 -E 'WRONG|=== simt|: ' "$log")"
    elif grep -q '=== simt:' "$log"; then
      echo "FAIL $name ($run): accused: $(grep -A 2 '=== simt:' "$log" | head -n 3 | tr -s '\n ' ' ')"
    elif ! grep -qE '^([0-9]+) of \1 right' "$log"; then
      echo "FAIL $name ($run): $(tail -n 1 "$log")"
    else
      echo "ok   $name ($run)"
    fi >>"$work/$name.result"
    [ -z "${VERBOSE:-}" ] || ! tail -n 1 "$work/$name.result" | grep -q ^FAIL || sed 's/^/     | /' "$log" >>"$work/$name.result"
  done
}

names=("$@")
if [ $# -eq 0 ]; then names=("$here"/correct/*.cu) names=("${names[@]##*/}") names=("${names[@]%.cu}"); fi
files=("${names[@]/#/$here/correct/}") files=("${files[@]/%/.cu}")
join 'main()' '' "${files[@]}" >"$work/all.cu"
build plain '' &
build inspect --inspect &
wait
jobs=0
for name in "${names[@]}"; do
  try "$here/correct/$name.cu" &
  if [ $((++jobs)) -ge "${JOBS:-$(nproc)}" ]; then wait -n; fi
done
wait
for name in "${names[@]}"; do cat "$work/$name.result"; done
kernels=$(cat "${files[@]}" | grep -c __global__)
echo "$kernels kernels in ${#names[@]} programs: $(cat "$work"/*.result | grep -c ^ok) runs clean," \
  "$(cat "$work"/*.result | grep -c ^FAIL) not"
! grep -q ^FAIL "$work"/*.result
