#!/bin/bash
# Packs every test, benchmark and program, built for CUDA, for a GPU machine that has no Bazel.
#
#   tools/gpu_pack.sh [BAZEL_OPTION...] [-- PATTERN...]
#   tools/gpu_pack.sh --//tools/build:archs=80,90                 all, for two architectures
#   tools/gpu_pack.sh -- //phase3_cnn/... //common/...            what Bazel's patterns name
#
# Writes dist/gpu_pack.tar.xz: the binaries with their data and the libraries that a bare Ubuntu with CUDA 13 lacks. There:
#
#   tar xJf gpu_pack.tar.xz && gpu_pack/run.sh [PATTERN]    runs the tests; see tools/gpu_pack_run.sh
#   gpu_pack/bin/lenet_mnist --device=gpu                   a program
set -euo pipefail
cd "$(dirname "$0")/.."

options=(--config=cuda --//tools/build:gpu=yes --build_runfile_links --noshow_progress)
while [ $# -gt 0 ] && [ "$1" != -- ]; do
  options+=("$1")
  shift
done
[ $# -eq 0 ] || shift
patterns=("${@:-//...}")
bazel build "${options[@]}" -- "${patterns[@]}" -//simt/test/...
bin=$(bazel info "${options[@]}" bazel-bin 2> /dev/null)
query() { bazel query --noshow_progress "$1" 2> /dev/null | sed 's|^//||; s|:|/|' | sort; }
packed="(${patterns[*]/%/ + } set()) except //simt/..."
mapfile -t tests < <(query "kind('cc_test rule', $packed) except attr(tags, 'manual|emulated|sandbox', //...)")
mapfile -t programs < <(query "kind('cc_binary rule', $packed) except attr(tags, 'manual|emulated|sandbox', //...)")

[ ${#tests[@]} -gt 0 ] && [ ${#programs[@]} -gt 0 ] || { echo "gpu_pack.sh: error: bazel query found no targets" >&2; exit 1; }

mkdir -p dist
pack=dist/gpu_pack
rm -rf "$pack"
mkdir -p "$pack/bin" "$pack/lib" "$pack/runfiles/nn"

# All runfiles go into one tree, so that a data set is carried once.
for name in "${tests[@]}" "${programs[@]}"; do
  for tree in "$bin/$name.runfiles/nn" "$bin/$name.runfiles/_main"; do
    [ ! -d "$tree" ] || cp -rLu "$tree/." "$pack/runfiles/nn/"
  done
done

# What the loader finds, less CUDA (there it is the machine's own) and what every Ubuntu has.
for name in "${tests[@]}" "${programs[@]}"; do ldd "$bin/$name"; done |
  awk '$2 == "=>" && $3 ~ /^\// { print $1, $3 }' | sort -u |
  grep -Ev '^(libc|libm|libdl|librt|libpthread|libstdc\+\+|libgcc_s|lib(cu|nv|nccl)[A-Za-z_]*)\.so' |
  while read -r soname path; do cp -L "$path" "$pack/lib/$soname"; done

for name in "${programs[@]}"; do
  cat > "$pack/bin/${name##*/}" << END
#!/bin/sh
here=\$(cd "\$(dirname "\$0")/.." && pwd)
LD_LIBRARY_PATH="\$here/lib\${LD_LIBRARY_PATH:+:\$LD_LIBRARY_PATH}" RUNFILES_DIR="\$here/runfiles" exec "\$here/runfiles/nn/$name" "\$@"
END
  chmod +x "$pack/bin/${name##*/}"
done
# The licences of what the pack contains: ours with MNIST's, and those of the system's libraries.
cp LICENSE "$pack/"
mkdir -p "$pack/lib/copyright"
for library in "$pack"/lib/*.so*; do
  package=$(dpkg-query -S "*/${library##*/}" 2> /dev/null | sed -n '1s/[:,].*//p')
  [ ! -e "/usr/share/doc/$package/copyright" ] || cp "/usr/share/doc/$package/copyright" "$pack/lib/copyright/$package"
done
printf '%s\n' "${tests[@]}" > "$pack/tests.txt"
cp tools/gpu_pack_run.sh "$pack/run.sh"

# Every program holds the same CUDA runtime: a dictionary longer than a program packs it once.
tar -C dist -c gpu_pack | xz --lzma2=preset=1,dict=64MiB > dist/gpu_pack.tar.xz
size=$(stat -c %s dist/gpu_pack.tar.xz)
echo "dist/gpu_pack.tar.xz: ${#tests[@]} tests, ${#programs[@]} programs, $((size / 1000000)) MB"
[ "$size" -lt 60000000 ] || { echo "gpu_pack.sh: error: the pack is over 60 MB; look for data carried twice" >&2; exit 1; }
