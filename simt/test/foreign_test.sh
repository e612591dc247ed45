#!/usr/bin/env bash
# foreign_test.sh - programs written as strangers write them must compile, run and find their own results right.
#
#     foreign_test.sh [program...]                 all of foreign/PROGRAMS, or some
#     ORDERS='forward reverse random:1' foreign_test.sh scan_classic    each with several orders of the threads
#
# A program passes when simtcc compiles it, it ends with status 0 within LIMIT seconds, its output has the line that
# PROGRAMS names, and the emulator reports nothing (but where PROGRAMS says `reports`: programs that err on purpose). Environment: ORDERS (SIMT_ORDER's values; default forward), LIMIT (20), SIMTCC, WORK (a folder to keep
# the programs and their output in), SHARD=i/n (every n-th program, from the i-th), MODE (--inspect, --asan, ...).
set -uo pipefail
export LC_ALL=C

here=$(cd "$(dirname "$0")" && pwd)
simtcc=${SIMTCC:-$here/../simtcc}
case $simtcc in /*) ;; *) simtcc=$PWD/$simtcc ;; esac
limit=${LIMIT:-20}
shard=${SHARD:-${TEST_SHARD_INDEX:-0}/${TEST_TOTAL_SHARDS:-1}} # Bazel deals the programs to several runs
[ -z "${TEST_SHARD_STATUS_FILE:-}" ] || touch "$TEST_SHARD_STATUS_FILE"
read -ra orders <<<"${ORDERS:-forward}"
if [ -n "${WORK:-}" ]; then
  mkdir -p "$WORK" && work=$(cd "$WORK" && pwd) || exit 2
else
  work=$(mktemp -d) || exit 2
  trap 'rm -rf "$work"' EXIT
fi

. "$here/cache.sh"
cd "$here/foreign" || exit 2
[ -x "$simtcc" ] || { echo "foreign_test: no compiler driver at $simtcc; set SIMTCC" >&2; exit 2; }

passed=0 failed=0 seen=0 slowest=0 failures=()

trim() { local s=$1; s=${s#"${s%%[! ]*}"}; printf '%s' "${s%"${s##*[! ]}"}"; }

fail() { # name, reason, file whose end says why
  printf 'FAIL  %-26s %s\n' "$1" "$2"
  [ -s "$3" ] && tail -n 12 "$3" | sed 's/^/      | /'
  failures+=("$1 ($2)")
  failed=$((failed + 1))
}

test_program() { # name sources flags arguments pattern reports
  local name=$1 log=$work/$1.log t0 t1 ms rc order setting
  # shellcheck disable=SC2086  # mode, sources, flags and arguments are lists
  if ! "$simtcc" ${MODE:-} -std=c++17 -I. $3 $2 -o "$work/$name" >"$log" 2>&1; then
    fail "$name" "does not compile" "$log"
    return
  fi
  for order in "${orders[@]}"; do
    setting=${order/#forward/}
    t0=$(date +%s%N)
    # shellcheck disable=SC2086
    { (cd "$work" && SIMT_ORDER=${setting:-forward} timeout -k 2 "$limit" "./$name" $4) >"$log" 2>&1 </dev/null; } 2>/dev/null
    rc=$?
    t1=$(date +%s%N)
    ms=$(((t1 - t0) / 1000000))
    [ "$ms" -gt "$slowest" ] && slowest=$ms
    if [ $rc = 124 ] || [ $rc = 137 ]; then
      fail "$name" "order $order: not done after $limit s" "$log"
    elif [ $rc != 0 ]; then
      fail "$name" "order $order: exit status $rc" "$log"
    elif ! grep -qE -- "$5" "$log"; then
      fail "$name" "order $order: no line like '$5' in its output" "$log"
    elif [ "$6" != reports ] && grep -q '^=== ' "$log"; then
      fail "$name" "order $order: the emulator reports an error in a correct program" "$log"
    else
      printf 'ok    %-26s %-9s %5d ms\n' "$name" "$order" "$ms"
      passed=$((passed + 1))
    fi
  done
}

while IFS='|' read -r name sources flags arguments pattern reports; do
  name=$(trim "$name")
  case $name in '' | '#'*) continue ;; esac
  if [ $# -gt 0 ]; then case " $* " in *" $name "*) ;; *) continue ;; esac fi
  seen=$((seen + 1))
  [ $((seen % ${shard#*/})) = $((${shard%/*} % ${shard#*/})) ] || continue
  sources=$(trim "$sources")
  test_program "$name" "${sources:-$name.cu}" "$flags" "$arguments" "$(trim "$pattern")" "$(trim "$reports")"
done <PROGRAMS

for f in "${failures[@]:+${failures[@]}}"; do echo "failed: $f"; done
echo "foreign programs: $((passed + failed)) runs, $passed passed, $failed failed; the slowest took $slowest ms"
[ $failed = 0 ] && [ $passed -gt 0 ]
