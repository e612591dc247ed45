#!/usr/bin/env bash
# rooms_test.sh - the runtime and the inspector meet in one table, simt_hooks: no file of the runtime or of the libraries
# includes one of the inspector, and in the inspector's build none of their objects needs another symbol of it.
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
simt=$here/..
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0

fail() {
  printf 'rooms_test.sh: %s\n' "$*" >&2
  failed=1
}

# What the compiler reads for each file, whatever the #include looks like.
compile() { # folder
  local source object
  mkdir "$work/$1"
  for source in "$simt/$1"/*.c; do
    object=$work/$1/$(basename "$source").o
    "${CC:-gcc}" -std=gnu11 -O0 -fno-pie -DSIMT_INSPECT "-I$simt/include" "-I$simt/runtime" -MD -MF "$object.d" \
      -c "$source" -o "$object" ||
      fail "$1/$(basename "$source") does not compile"
  done
}
for folder in runtime inspect blas rand; do compile "$folder"; done

for folder in runtime blas rand; do
  for list in "$work/$folder"/*.d; do
    upward=$(grep -o '[^ ]*/inspect/[^ ]*' "$list" | sort -u)
    [ -z "$upward" ] ||
      fail "$folder/$(basename "$list" .o.d) includes $upward; expected no file of simt/inspect. Add a hook to runtime/hooks.h"
  done
done

symbols() { nm "$1" "${@:2}" | awk 'NF && $0 !~ /:$/ { print $NF }' | sort -u; } # nm's option, objects
symbols --defined-only "$work"/inspect/*.o > "$work/of_inspect"
[ -s "$work/of_inspect" ] || fail 'no object of simt/inspect defines a symbol'
for folder in runtime blas rand; do
  for object in "$work/$folder"/*.o; do
    symbols --undefined-only "$object" | comm -12 - "$work/of_inspect" | grep -vx simt_hooks > "$work/joins" &&
      fail "$folder/$(basename "$object" .o) needs $(tr '\n' ' ' < "$work/joins")of simt/inspect; expected simt_hooks alone"
  done
done
symbols --undefined-only "$work"/runtime/*.o | grep -qx simt_hooks || fail 'the runtime does not use simt_hooks'
[ $failed -eq 0 ] && echo 'the runtime needs simt_hooks of the inspector, and nothing else'
