#!/usr/bin/env bash
# features_test.sh - programs named by the features of CUDA C++ that they use compile, run and find their results right.
#
#     features_test.sh [name...]      only these: features/NAME.cu, or project, the files of features/project
#
# A program passes when simtcc compiles it, it ends with status 0 within 20 seconds in each order of the threads, and the
# emulator reports nothing. Its first comment lines may say otherwise:
#
#     // flags: -lcublas         how it is compiled
#     // reports: TEXT           it errs on purpose: the emulator's report has TEXT
#
# Environment: ORDERS (values of SIMT_ORDER; forward), SIMTCC, MODE (--inspect, --asan, ...).
set -uo pipefail
export LC_ALL=C
here=$(cd "$(dirname "$0")" && pwd)
simtcc=${SIMTCC:-$here/../simtcc}
case $simtcc in /*) ;; *) simtcc=$PWD/$simtcc ;; esac
work=$(mktemp -d "${TEST_TMPDIR:-/tmp}/features.XXXXXX") || exit 2
trap 'rm -rf "$work"' EXIT
. "$here/cache.sh"
unset SIMT_ORDER SIMT_STREAMS SIMT_THREADS SIMTCC_REWRITE
cd "$here/features" || exit 2
passed=0 failed=0

fail() { # what, why; the end of the log
  printf 'FAIL  %s: %s\n' "$1" "$2"
  tail -n 12 "$work/log" | sed 's/^/      | /'
  failed=$((failed + 1))
}

run() { # name, what its report must have, or nothing
  local order status
  for order in ${ORDERS:-forward}; do
    (cd "$work" && SIMT_ORDER=$order timeout -k 2 20 "./$1") >"$work/log" 2>&1 </dev/null
    status=$?
    if [ $status = 124 ] || [ $status = 137 ]; then
      fail "$1 ($order)" "no end after 20 s"
    elif [ $status != 0 ]; then
      fail "$1 ($order)" "exit status $status"
    elif [ -z "$2" ] && grep -q '^=== ' "$work/log"; then
      fail "$1 ($order)" "the emulator accuses a correct program"
    elif [ -n "$2" ] && ! grep '^=== ' "$work/log" | grep -qF -- "$2"; then
      fail "$1 ($order)" "no report says: $2"
    else
      printf 'ok    %s (%s)\n' "$1" "$order"
      passed=$((passed + 1))
    fi
  done
}

field() { sed -n "s|^// $2: *||p" "$1"; } # file, name

program() { # name
  # shellcheck disable=SC2046,SC2086 # lists
  if "$simtcc" ${MODE:-} -std=c++17 $(field "$1.cu" flags) "$1.cu" -o "$work/$1" >"$work/log" 2>&1; then
    run "$1" "$(field "$1.cu" reports)"
  else
    fail "$1" "does not compile"
  fi
}

# Files of four kinds, compiled one by one as a Makefile does, a library of two of them, and a link.
project() {
  local objects=$work/objects flags=(-DTHREADS=64 -DFACTOR=3 -Iproject -rdc=true) file
  mkdir -p "$objects"
  for file in series.cu sums.cu weight.cu part.c main.cpp; do
    # shellcheck disable=SC2086
    "$simtcc" ${MODE:-} "${flags[@]}" -MMD -c "project/$file" -o "$objects/$file.o" >"$work/log" 2>&1 ||
      { fail project "$file does not compile"; return; }
  done
  cat "$objects/sums.cu.d" >"$work/log"
  grep -q 'project/fold.cuh' "$work/log" || fail project "what sums.cu depends on lacks fold.cuh"
  # shellcheck disable=SC2086
  { "$simtcc" -lib "$objects/series.cu.o" "$objects/sums.cu.o" -o "$objects/libseries.a" &&
    "$simtcc" ${MODE:-} -rdc=true "$objects"/{main.cpp,part.c,weight.cu}.o -L"$objects" -lseries -o "$work/project"; } \
    >"$work/log" 2>&1 || { fail project "does not link"; return; }
  run project ''
}

names=("$@")
if [ $# -eq 0 ]; then names=(*.cu) names=("${names[@]%.cu}" project); fi
for name in "${names[@]}"; do
  if [ "$name" = project ]; then project; else program "$name"; fi
done
echo "features_test: $passed runs passed, $failed failed"
[ $failed = 0 ] && [ $passed -gt 0 ]
