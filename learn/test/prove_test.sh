#!/bin/bash
# lint and prove, on the course as Bazel has laid it out.
set -eu
course=$TEST_SRCDIR/$TEST_WORKSPACE
export XDG_CACHE_HOME=$TEST_TMPDIR/cache
mkdir -p "$XDG_CACHE_HOME" "$TEST_TMPDIR/prepared"
tar xf "$course/simt/simtcc_cache.tar" -C "$XDG_CACHE_HOME"
tar xf "$course/learn/test/prepared.tar" -C "$TEST_TMPDIR/prepared"
"$course/learn/learn" lint --source="$course"
"$course/learn/learn" prove --source="$course" --prepared="$TEST_TMPDIR/prepared"
