#!/usr/bin/env bash
# programs.sh - the same comparison for programs that exist: every launch they make, on the GPU and inspected.
#
#   programs.sh build DIR FILE.cu..     for the GPU: DIR/NAME and the libraries it needs, to carry to a machine with one
#   programs.sh measure DIR OUT         there: OUT/NAME.csv for each program of DIR, at most 300 launches of each
#   programs.sh inspect DIR FILE.cu..   here: DIR/NAME.json from the inspected program
#   programs.sh compare OUT DIR         here: what differs, program by program
#
# FLAGS holds what nvcc and simtcc get besides the file: "-I. -lcmocka -lcublas", say. Run from the folder that the
# #includes are relative to. Programs must launch the same kernels in the same order each time.
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
flags=${FLAGS:-}
[ $# -ge 3 ] || {
  sed -n '2,11s/^# \{0,1\}//p' "$0" >&2
  exit 2
}
action=$1 dir=$2
mkdir -p "$dir"
shift 2
status=0
case $action in
build)
  for file in "$@"; do
    name=$(basename "$file" .cu)
    # shellcheck disable=SC2086
    nvcc -O3 -std=c++17 "-arch=${ARCH:-sm_90}" "$file" -o "$dir/$name" $flags || status=1
  done
  mkdir -p "$dir/lib" # all but what every Ubuntu has and CUDA's own
  ldd "$dir"/* 2>/dev/null | awk '$2 == "=>" && $3 ~ /^\// { print $3 }' | sort -u |
    grep -Ev '/(libc|libm|libdl|librt|libpthread|libstdc\+\+|libgcc_s|lib(cu|nv)[A-Za-z_]*)\.so' | xargs -r cp -Lt "$dir/lib"
  ;;
measure)
  out=$1
  export LD_LIBRARY_PATH=$dir/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} NCU_ARGS=${NCU_ARGS:---launch-count 300}
  for program in "$dir"/*; do
    if [ ! -f "$program" ] || [ ! -x "$program" ]; then continue; fi
    "$here/measure.sh" "$out" "$(basename "$program")" "$program" 2>&1 | grep -E 'ncu exit|error' || status=1
  done
  ;;
inspect)
  for file in "$@"; do
    name=$(basename "$file" .cu)
    # shellcheck disable=SC2086
    "$here/../../simtcc" --inspect -w "$file" -o "$dir/$name.inspected" $flags &&
      SIMT_INSPECT_LAUNCHES=1 SIMT_REPORT=json:$dir/$name.json "$dir/$name.inspected" >"$dir/$name.txt" 2>&1 || status=1
    tail -n 1 "$dir/$name.txt"
  done
  ;;
compare)
  for csv in "$dir"/*.csv; do
    name=$(basename "$csv" .csv)
    [ -f "$1/$name.json" ] || continue
    echo "== $name"
    "$here/compare.py" check "$csv" "$1/$name.json" || status=1
  done
  ;;
*)
  echo "programs.sh: no action $action" >&2
  status=2
  ;;
esac
exit $status
