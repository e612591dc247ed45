#!/bin/bash
# setup.sh on an imagined Debian that has all of its packages but npm: npm is asked for only where something needs it.
set -u
mkdir "$TEST_TMPDIR/bin" || exit 1
for tool in bash cat dirname head id readlink sed; do ln -s "$(command -v $tool)" "$TEST_TMPDIR/bin/$tool"; done
fake() { printf '#!/bin/bash\n%s\n' "$2" > "$TEST_TMPDIR/bin/$1" && chmod +x "$TEST_TMPDIR/bin/$1"; }
# shellcheck disable=SC2016 # the fakes' own variables
{
  fake dpkg-query '[ "${@: -1}" = npm ] || printf installed'
  fake apt-get 'echo "no test installs anything" >&2; exit 1'
  fake bazel 'echo bazel 4.2.3'
  fake python3 'exit "$MIRRORS"'  # asks whether the mirrors answer
}

status=0
expect() {  # expect LINE SETTING... -- OPTION...
  local line=$1 settings=() said
  shift
  while [ "$1" != -- ]; do settings+=("$1") && shift; done
  shift
  said=$(env -i PATH="$TEST_TMPDIR/bin" "${settings[@]}" bash setup.sh --check "$@" 2>&1)
  if ! grep -qF "$line" <<< "$said"; then
    printf 'setup.sh --check %s, with %s\n  expected: %s\n  got:\n%s\n' "$*" "${settings[*]}" "$line" "$said"
    status=1
  fi
}
expect 'Everything is installed.' MIRRORS=0 --
expect 'missing: npm' MIRRORS=1 --
expect 'Everything is installed.' MIRRORS=1 NN_MNIST_DIR=/data --
expect 'Everything is installed.' MIRRORS=1 NN_OFFLINE=1 --
expect 'missing: npm' MIRRORS=0 -- --format
exit $status
