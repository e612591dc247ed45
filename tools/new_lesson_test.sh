#!/bin/bash
# A new lesson, made in a copy of the repository: it is listed, its exercise can be proved, its program and its tests
# compile and pass. What is typed wrong is refused.
set -eu
repository=$(dirname "$(readlink -f WORKSPACE)")
learn=$PWD/learn/learn
if [ -e "$repository/.learn/tree.json" ]; then
  echo "$repository is a student's tree, from which no lesson can be made"
  exit 0
fi
export XDG_CACHE_HOME=$TEST_TMPDIR/cache
mkdir -p "$XDG_CACHE_HOME"
tar xf simt/simtcc_cache.tar -C "$XDG_CACHE_HOME"
course=$TEST_TMPDIR/course
mkdir "$course"
(cd "$repository" && cp -r WORKSPACE .bazelignore course.bzl common learn simt third_party tools docs phase?_* "$course")
cd "$course"

fails() {  # fails STATUS WORDS ARGUMENT...: one sentence with these words
  local status=0 said
  said=$(tools/new_lesson "${@:3}" 2>&1) || status=$?
  if [ $status != "$1" ] || ! grep -qF "$2" <<< "$said"; then
    printf 'new_lesson %s\n  expected status %s and "%s"\n  got %s: %s\n' "${*:3}" "$1" "$2" $status "$said"
    exit 1
  fi
}
mkdir .learn
echo '{}' > .learn/tree.json
fails 1 "is a student's tree" phase1_building_blocks/99_doubling
rm -r .learn
fails 2 'expected one argument'
fails 2 'expected PHASE/NN_TOPIC' phase1_building_blocks/doubling
fails 1 'there is no phase phase9_x' phase9_x/01_doubling
fails 1 'is there already' phase1_building_blocks/08_softmax
fails 1 'has a lesson of this name' phase1_building_blocks/90_softmax
fails 1 'number 08 is that of' phase1_building_blocks/08_doubling
fails 2 'is a word of C++' phase1_building_blocks/90_double
fails 2 'says what it is for' phase1_building_blocks/90_doubling_test
fails 2 'is a target of every phase' phase1_building_blocks/90_sources
fails 1 'has a label of this name already' phase2_mlp/90_batch_orders
[ -z "$(find . -name '.new_lesson*')" ]

ln -s "$course/tools/new_lesson" "$TEST_TMPDIR/linked"
(cd / && "$TEST_TMPDIR/linked" phase1_building_blocks/99_doubling)
faults=$(tools/includes_test.py "$course" || true)
grep -q '^phase1_building_blocks/README.md: its table has no line for 99_doubling$' <<< "$faults"
grep -q ' 1 faults$' <<< "$faults" || { echo "$faults"; exit 1; }
"$learn" lint --source="$course" || exit 1
"$learn" prove doubling_index --source="$course"
cd phase1_building_blocks/99_doubling
compile() {  # compile PROGRAM FILE...
  "$course/simt/simtcc" --inspect -fopenmp -I "$course" "$1.cu" "${@:2}" -o "$TEST_TMPDIR/$1" -lcmocka -ljansson -lm
}
compile doubling "$course/common/lesson/main.cu"
compile doubling_test
compile doubling_counts_test "$course/common/lesson/test_counts.cu"
"$TEST_TMPDIR/doubling" --check-only > /dev/null
"$TEST_TMPDIR/doubling_test"
"$TEST_TMPDIR/doubling_counts_test"
