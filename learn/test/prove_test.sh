#!/bin/bash
# lint and prove, on the course as Bazel has laid it out. prove_test.sh [--quick | --together]
set -eu
course=$TEST_SRCDIR/$TEST_WORKSPACE
export XDG_CACHE_HOME=$TEST_TMPDIR/cache
mkdir -p "$XDG_CACHE_HOME"
tar xf "$course/simt/simtcc_cache.tar" -C "$XDG_CACHE_HOME"
"$course/learn/learn" lint --source="$course"
"$course/learn/learn" prove --source="$course" "$@"

# It can fail: one mutant is the solution, and one does not compile, so that its exercise is compiled alone.
[ "${TEST_SHARD_INDEX:-0}" = 0 ] || exit 0
mkdir -p "$TEST_TMPDIR/wrong/folder" && cp -rL "$course"/* "$TEST_TMPDIR/wrong/folder"
cd "$TEST_TMPDIR/wrong" && export TEST_TMPDIR=$PWD
exercise=folder/phase1_building_blocks/02_transpose/exercises/transpose_naive.txt
chmod u+w "$exercise"
for line in 'if (row < rows && col < cols) out[row + (size_t)col * rows] = in[col + (size_t)row * cols];' 'no code'; do
  sed '/^mutant:/,$d' "$exercise" > text
  printf 'mutant: one\nexpect: data_race\n+ %s\nmutant: two\nexpect: never_written\n+\n' "$line" >> text
  cp text "$exercise"
  said=$(folder/learn/learn prove transpose_naive --quick --source=folder) && status=0 || status=$?
  rm -rf tree
  if [ $status != 1 ] || ! grep -q '^FAILED .* mutant: one' <<< "$said" || ! grep -q '^ok .* solution' <<< "$said"; then
    printf 'prove took "%s" for a mutant (exit status %d):\n%s\n' "$line" $status "$said"
    exit 1
  fi
done
grep -q '1 exercises had to be compiled alone' <<< "$said"
