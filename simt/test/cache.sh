# For the tests here: under Bazel simtcc finds its runtime built, once for all of them.
if [ -n "${TEST_TMPDIR:-}" ]; then
  export XDG_CACHE_HOME=$TEST_TMPDIR/cache
  mkdir -p "$XDG_CACHE_HOME" && tar xf "$here/../simtcc_cache.tar" -C "$XDG_CACHE_HOME"
fi
