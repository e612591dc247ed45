#!/bin/bash
# Fetches ONNX Runtime 1.29.0 (MIT) out of npm packages: of 112 MB one file of 45 MB is kept.
#
#   third_party/onnxruntime/fetch.sh            the library, with the CPU provider
#   third_party/onnxruntime/fetch.sh --cuda     also the CUDA provider (179 MB): for a GPU, CUDA 13 and cuDNN 9
#   third_party/onnxruntime/fetch.sh --header   also its C header (150 MB), with which ort_abi_test compares ours
#   third_party/onnxruntime/fetch.sh --to=DIR   into DIR, not ~/.cache/nn_onnxruntime; then set ORT_HOME=DIR
#
# What is there and has the right SHA-256 is not fetched again. With NN_OFFLINE=1 npm looks into its cache alone.
set -euo pipefail

PACKAGE=onnxruntime-node@1.29.0
PACKAGE_CUDA=com.github.asus4.onnxruntime.linux-x64-gpu@0.4.9
PACKAGE_HEADER=com.github.asus4.onnxruntime@0.4.9
HEADERS='package/Plugins/iOS~/onnxruntime.xcframework/ios-arm64/onnxruntime.framework/Headers'

# Where a file goes, its SHA-256, its place in the package.
FILES="lib/libonnxruntime.so.1 89688f5cf51c7e31befbb7b9101bc027799009b18d1baa9a5b1146a72e69538d package/bin/napi-v6/linux/x64/libonnxruntime.so.1"
FILES_CUDA="lib/libonnxruntime_providers_cuda.so 56cf3254b118ad837ccc4ed8f6d1b23504bbf7ef91b34cbc0b289cb7f10b3037 package/Plugins/Linux/x64/libonnxruntime_providers_cuda.so
lib/libonnxruntime_providers_shared.so c6a12593396095f5670160e284c35d1700b7708cf3037b7042e2a5200ccae772 package/Plugins/Linux/x64/libonnxruntime_providers_shared.so"
FILES_HEADER="include/onnxruntime_c_api.h acc0cf4b3f28d39339c76770d76164bb7a0637dc89f5fde764b4017b632f6743 $HEADERS/onnxruntime_c_api.h
include/onnxruntime_ep_c_api.h e6c986c9e98583f8113b2c6bc3864814883b806d501cf24da4d239c45753e235 $HEADERS/onnxruntime_ep_c_api.h
include/onnxruntime_error_code.h 5ce3b054e798eced8d14f5b86e98692fd33470463f96194ce0700a2d53dd8721 $HEADERS/onnxruntime_error_code.h"

usage() { sed -n '2,9s/^# \{0,1\}//p' "$0"; }
fail() { printf 'fetch.sh: error: %s\n' "$*" >&2; exit 1; }

to=${XDG_CACHE_HOME:-${HOME:-}/.cache}/nn_onnxruntime cuda=no header=no
for option in "$@"; do
  case $option in
    --cuda) cuda=yes ;;
    --header) header=yes ;;
    --to=?*) to=${option#--to=} ;;
    -h | --help) usage; exit 0 ;;
    *) usage >&2; exit 2 ;;
  esac
done

[ "$(uname -sm)" = 'Linux x86_64' ] ||
  fail "the packages are for Linux on x86-64, and this is $(uname -sm); set ORT_HOME to an ONNX Runtime of yours"
mkdir -p "$to/lib" "$to/include" || fail "$to cannot be made; name another folder with --to=DIR"
to=$(cd "$to" && pwd)

good() { [ -e "$to/$1" ] && [ "$(sha256sum "$to/$1" | cut -d' ' -f1)" = "$2" ]; } # FILE SHA256

all_good() { # FILES
  local file sum place
  while read -r file sum place; do good "$file" "$sum" || return; done <<< "$1"
}

# In a folder beside the target, so that the last step is a rename: what was there stays until the new file is right.
take() ( # PACKAGE FILES
  local file sum place offline=false
  all_good "$2" && exit
  command -v npm > /dev/null || fail "npm is not installed; on Debian and Ubuntu: apt install npm"
  [ "${NN_OFFLINE:-0}" = 0 ] || offline=true
  work=$(mktemp -d "$to/fetch.XXXXXX")
  trap 'rm -rf "$work"' EXIT
  cd "$work"
  printf 'fetching %s\n' "$1" >&2
  npm pack --loglevel=error --fetch-retries=1 --fetch-timeout=120000 --offline=$offline "$1" > name 2> why ||
    fail "npm pack $1 failed: $(head -n 1 why); is there a network? With NN_OFFLINE=1 it must be in npm's cache"
  while read -r file sum place; do
    tar xzf "$(tail -n 1 name)" --no-same-owner "$place" || fail "$1 has no $place"
    [ "$(sha256sum "$place" | cut -d' ' -f1)" = "$sum" ] ||
      fail "$place of $1 has the wrong SHA-256; nothing was changed"
    chmod 644 "$place"
    mv "$place" "$to/$file"
  done <<< "$2"
)

take "$PACKAGE" "$FILES"
[ $cuda = no ] || take "$PACKAGE_CUDA" "$FILES_CUDA"
[ $header = no ] || take "$PACKAGE_HEADER" "$FILES_HEADER"
printf 'ONNX Runtime 1.29.0 is in %s\n' "$to"
