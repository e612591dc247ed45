#!/usr/bin/env bash
# bugs_test.sh - every program of bugs/ holds one fault, and the emulator names it: the kind, and the line.
#
#   bugs_test.sh [NAME...]      only these, bugs/NAME.cu
#
# A program tells in its first comment lines what is expected:
#
#   // mode: plain inspect      how it is compiled and run, each in turn: plain, inspect, lazy (SIMT_STREAMS=lazy),
#                               lazy-inspect, leaks (SIMT_LEAKS=1); compile: simtcc refuses it; warning: it warns
#   // expect: data race        what the diagnosis begins with, after "=== simt: "
#   // also: uninitialised read      a second kind that may be told as well: another sight of the same fault
#   // expect-text: s_tile      must occur in the diagnosis
#   // env: SIMT_WATCHDOG=1     for the run
#
# and marks the lines that the same diagnosis must name with // BUG and // BUG-OTHER. Any other kind of diagnosis fails.
# Environment: SIMTCC, the driver; KEEP=1, keep what was built; JOBS.
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
simtcc=${SIMTCC:-$here/../simtcc}
limit=60 # seconds for a run
work=$(mktemp -d "${TEST_TMPDIR:-/tmp}/bugs.XXXXXX")
if [ -n "${KEEP:-}" ]; then echo "kept in $work"; else trap 'rm -rf "$work"' EXIT; fi
. "$here/cache.sh"
unset SIMT_ORDER SIMT_STREAMS SIMT_LEAKS SIMT_REPORT SIMT_THREADS SIMT_STRICT SIMT_WATCHDOG

field() { sed -n "s|^// $2: *||p" "$1"; } # file, name

# judge FILE LOG: prints nothing if the log holds what FILE's header and marks ask for, else why not.
judge() {
  awk -v kind="$(field "$1" expect)" -v also="$(field "$1" also)" -v texts="$(field "$1" expect-text)" \
    -v lines="$(grep -nE '// BUG(-OTHER)?$' "$1" | cut -d: -f1 | tr '\n' ' ')" -v name="$(basename "$1")" '
    function begins(text, start) { return tolower(substr(text, 1, length(start))) == tolower(start) }
    function close_one(  i, bad) { # a diagnosis has ended: is it one that tells everything?
      if (!open) return
      bad = ""
      for (i = 1; i <= line_count; i++)
        if (body !~ ("/?" name ":" line[i] "([^0-9]|$)")) bad = bad " line " line[i]
      for (i = 1; i <= text_count; i++)
        if (index(body, text[i]) == 0) bad = bad " \"" text[i] "\""
      if (bad == "") told = 1
      else lacks = bad
      open = 0
    }
    BEGIN {
      line_count = split(lines, line, " ")
      text_count = split(texts, text, "\n")
      also_count = split(also, other, "\n")
      gsub(/\./, "\\.", name)
    }
    /^=== simt: / || /Assertion `.*` failed/ {
      close_one()
      what = $0
      sub(/^=== simt: /, "", what)
      if (what ~ /Assertion `/) what = "assert: " what
      if (begins(what, kind)) { found = open = 1; body = what "\n"; next }
      for (i = 1; i <= also_count; i++) if (begins(what, other[i])) next
      print "accused of something else: " what
      next
    }
    /^(simt inspector|$)/ { close_one(); next }
    open { body = body $0 "\n" }
    END {
      close_one()
      if (!found) print "no diagnosis \"" kind "\""
      else if (!told) print "the diagnosis \"" kind "\" lacks" lacks
      if (line_count == 0) print "the program marks no line"
    }' "$2"
}

# try_mode FILE MODE: prints why it fails, or nothing.
try_mode() {
  local file=$1 mode=$2 name built=plain settings=() log
  name=$(basename "$file" .cu)
  log=$work/$name.$mode.log
  case $mode in
  plain | compile | warning) ;;
  lazy) settings=(SIMT_STREAMS=lazy) ;;
  leaks) settings=(SIMT_LEAKS=1) ;;
  inspect) built=inspect ;;
  lazy-inspect) built=inspect settings=(SIMT_STREAMS=lazy) ;;
  *) echo "no mode $mode" && return ;;
  esac
  if [ "$mode" = compile ] || [ "$mode" = warning ]; then
    "$simtcc" -c "$file" -o "$work/$name.o" >"$log" 2>&1
    sed -i 's/.*error: simt: /=== simt: refused: &/; s/.* warning: /=== simt: warning: &/' "$log"
    judge "$file" "$log"
    return
  fi
  if [ ! -x "$work/$name.$built" ]; then
    local flags=(-w)
    [ $built = plain ] || flags+=(--inspect)
    "$simtcc" "${flags[@]}" "$file" -o "$work/$name.$built" >"$log" 2>&1 || {
      echo "does not compile: $(grep -m 1 error "$log")"
      return
    }
  fi
  # shellcheck disable=SC2046
  env "${settings[@]}" SIMT_INSPECT_EXIT=77 $(field "$file" env) timeout $limit "$work/$name.$built" >"$log" 2>&1
  local status=$?
  if [ $status -eq 124 ]; then echo "no end after $limit s" && return; fi
  if [ $built = inspect ] && [ $status -ne 77 ]; then echo "the fault was not counted: exit status $status"; fi
  judge "$file" "$log"
}

# try FILE: all modes of one program, a line for each to $work/NAME.result.
try() {
  local file=$1 name mode why
  name=$(basename "$file" .cu)
  for mode in $(field "$file" mode); do
    why=$(try_mode "$file" "$mode" 2>/dev/null | tr '\n' ';')
    if [ -z "$why" ]; then
      echo "ok   $name ($mode)"
    else
      echo "FAIL $name ($mode): $why"
      [ -z "${VERBOSE:-}" ] || sed 's/^/     | /' "$work/$name.$mode.log"
    fi
  done >"$work/$name.result"
}

# The judge must be able to say no: the same diagnosis against expectations that are wrong.
self_test() {
  local file=$here/bugs/barrier_in_two_branches.cu log=$work/barrier_in_two_branches.plain.log wrong=$work/self why failed=0
  mkdir -p "$wrong"
  [ -f "$log" ] || try "$file"
  why=$(judge "$file" "$log")
  [ -z "$why" ] || { echo "FAIL self-test: the unchanged expectation: $why" && return 1; }
  refuse() { # what, sed's script: how the expectation is falsified
    sed "$2" "$file" >"$wrong/$(basename "$file")"
    if [ -n "$(judge "$wrong/$(basename "$file")" "${3:-$log}")" ]; then return; fi
    echo "FAIL self-test: accepted $1"
    failed=1
  }
  refuse "another kind" 's|^// expect:.*|// expect: data race|'
  refuse "another line" 's|// BUG$||; s|int t = threadIdx.x;|& // BUG|'
  refuse "a text that is not there" 's|^// expect:.*|&\n// expect-text: s_nowhere|'
  refuse "a program that marks no line" 's|// BUG.*||'
  : >"$wrong/silent.log"
  refuse "silence" '' "$wrong/silent.log"
  (cat "$log"; echo "=== simt: data race") >"$wrong/two.log"
  refuse "a second accusation" '' "$wrong/two.log"
  [ $failed = 0 ] && echo "ok   self-test"
  return $failed
}

names=("$@")
if [ $# -eq 0 ]; then names=("$here"/bugs/*.cu) names=("${names[@]##*/}") names=("${names[@]%.cu}"); fi
if [ -n "${TEST_TOTAL_SHARDS:-}" ]; then # Bazel deals the programs to several runs
  touch "$TEST_SHARD_STATUS_FILE"
  for i in "${!names[@]}"; do [ $((i % TEST_TOTAL_SHARDS)) -eq "$TEST_SHARD_INDEX" ] || unset "names[$i]"; done
fi
jobs=0
for name in "${names[@]}"; do
  [ -f "$here/bugs/$name.cu" ] || { echo "FAIL $name: no such program" >"$work/$name.result"; continue; }
  try "$here/bugs/$name.cu" &
  if [ $((++jobs)) -ge "${JOBS:-$(nproc)}" ]; then wait -n; fi
done
wait
status=0
for name in "${names[@]}"; do cat "$work/$name.result"; done
grep -q ^FAIL "$work"/*.result && status=1
self_test || status=1
echo "$(cat "$work"/*.result | grep -c ^ok) runs of ${#names[@]} programs named their fault, $(cat "$work"/*.result | grep -c ^FAIL) did not"
exit $status
