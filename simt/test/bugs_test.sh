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
# The programs of a kind (plain, inspect) are compiled as one, each in a namespace of its name (join.sh): main() has no
# parameters and no return.
# Environment: SIMTCC, the driver; KEEP=1, keep what was built; JOBS.
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
simtcc=${SIMTCC:-$here/../simtcc}
limit=60 # seconds for a run
work=$(mktemp -d "${TEST_TMPDIR:-/tmp}/bugs.XXXXXX")
if [ -n "${KEEP:-}" ]; then echo "kept in $work"; else trap 'rm -rf "$work"' EXIT; fi
. "$here/cache.sh"
. "$here/join.sh"
unset SIMT_ORDER SIMT_STREAMS SIMT_LEAKS SIMT_REPORT SIMT_THREADS SIMT_STRICT SIMT_WATCHDOG SIMT_CAPABILITY

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

# build KIND: $work/plain or $work/inspect, of all programs that run so. Functions that are equal in two programs stay two.
build() {
  local name mode files=() flags=(-w -fno-ipa-icf)
  [ "$1" = plain ] || flags+=(--inspect)
  for name in "${names[@]}"; do
    for mode in $(field "$here/bugs/$name.cu" mode); do
      case $1:$mode in plain:plain | plain:lazy | plain:leaks | inspect:*inspect) files+=("$here/bugs/$name.cu") && break ;; esac
    done
  done
  [ ${#files[@]} -gt 0 ] || return
  # main() there has no return, which only the real one may lack.
  join 'unused; __attribute__((noinline)) static void main()' ', 0' "${files[@]}" >"$work/$1.cu"
  "$simtcc" "${flags[@]}" "$work/$1.cu" -o "$work/$1" >"$work/$1.log" 2>&1
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
  if [ ! -x "$work/$built" ]; then
    echo "the $built programs do not compile: $(grep -m 1 error "$work/$built.log")"
    return
  fi
  # shellcheck disable=SC2046
  env "${settings[@]}" SIMT_INSPECT_EXIT=77 $(field "$file" env) timeout $limit "$work/$built" "$name" >"$log" 2>&1
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

# The judge must be able to say no: the same diagnosis against expectations that are wrong. When all programs run.
self_test() {
  local file=$here/bugs/barrier_in_two_branches.cu log=$work/barrier_in_two_branches.plain.log wrong=$work/self why failed=0
  mkdir -p "$wrong"
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
for name in "${names[@]}"; do
  [ -f "$here/bugs/$name.cu" ] || { echo "FAIL: no program bugs/$name.cu" && exit 2; }
done
build plain &
build inspect &
wait
jobs=0
for name in "${names[@]}"; do
  try "$here/bugs/$name.cu" &
  if [ $((++jobs)) -ge "${JOBS:-$(nproc)}" ]; then wait -n; fi
done
wait
status=0
for name in "${names[@]}"; do cat "$work/$name.result"; done
grep -q ^FAIL "$work"/*.result && status=1
[ $# -gt 0 ] || self_test || status=1
echo "$(cat "$work"/*.result | grep -c ^ok) runs of ${#names[@]} programs named their fault, $(cat "$work"/*.result | grep -c ^FAIL) did not"
exit $status
