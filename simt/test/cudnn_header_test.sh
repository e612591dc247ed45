#!/usr/bin/env bash
# cudnn_header_test.sh - simt/include/cudnn.h beside NVIDIA's: each function that it declares has the same type, each
# constant the same value, each structure the same size. Skipped where the toolkit or cuDNN's header is missing.
set -euo pipefail
include=$(cd "$(dirname "$0")/../include" && pwd)
for root in "${CUDA_HOME:-}" "${CUDA_PATH:-}" /usr/local/cuda; do
  [ -n "$root" ] && [ -e "$root/include/cudnn.h" ] && [ -e "$root/include/cuda_runtime_api.h" ] && break
  root=
done
[ -n "$root" ] || { echo "SKIPPED: there is no cudnn.h of NVIDIA's beside a CUDA toolkit"; exit 0; }
work=$(mktemp -d "${TEST_TMPDIR:-/tmp}/cudnn_header.XXXXXX")
trap 'rm -rf "$work"' EXIT

# Names in the header as it is preprocessed: functions without those that are not offered, enumerators, structures.
printf '#include <cudnn.h>\n' | "${CC:-gcc}" -E -P -x c "-I$include" - | tr '\n' ' ' >"$work/text"
functions=$(grep -oE '\bcudnn[A-Z][A-Za-z0-9_]* *\([^()]' "$work/text" | sed 's/ *(.*//' | sort -u)
constants=$(grep -oE '\bCUDNN_[A-Za-z0-9_]+' "$work/text" | sort -u)
macros="CUDNN_DIM_MAX CUDNN_BN_MIN_EPSILON CUDNN_MAJOR"
perf=cudnnConvolutionFwdAlgoPerf_t
structures="$perf cudnnConvolutionBwdDataAlgoPerf_t cudnnConvolutionBwdFilterAlgoPerf_t cudnnFraction_t"
{
  echo '#include <cudnn.h>'
  echo '#include <stdio.h>'
  echo '#include <typeinfo>'
  echo 'int main() {'
  for name in $functions; do echo "  printf(\"%s %s\\n\", \"$name\", typeid(decltype(&::$name)).name());"; done
  for name in $constants $macros; do echo "  printf(\"%s %g\\n\", \"$name\", (double)$name);"; done
  for name in $structures; do echo "  printf(\"%s %zu\\n\", \"$name\", sizeof($name));"; done
  echo "  printf(\"%zu %zu\\n\", offsetof($perf, memory), offsetof($perf, mathType));"
  echo '}'
} >"$work/names.cpp"
[ "$(wc -w <<<"$functions")" -gt 100 ] && [ "$(wc -w <<<"$constants")" -gt 300 ] ||
  { echo "FAILED: only $(wc -w <<<"$functions") functions and $(wc -w <<<"$constants") constants were found"; exit 1; }
for which in ours theirs; do
  path=$include
  [ $which = ours ] || path=$root/include
  "${CXX:-g++}" -std=c++17 -w "-I$path" -c "$work/names.cpp" -o "$work/$which.o"
  # Only types are asked for: nothing of either library is linked.
  "${CXX:-g++}" "$work/$which.o" -o "$work/$which" -Wl,--unresolved-symbols=ignore-all
  "$work/$which" >"$work/$which.txt"
done
if ! diff "$work/theirs.txt" "$work/ours.txt"; then
  echo "FAILED: < is NVIDIA's, > is ours"
  exit 1
fi
echo "$(wc -w <<<"$functions") functions and $(wc -w <<<"$constants") constants agree with NVIDIA's"
