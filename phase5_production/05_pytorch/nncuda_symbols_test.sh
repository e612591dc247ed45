#!/bin/bash
# nncuda_symbols_test.sh LIBRARY HEADER PROGRAM - what the library exports is what the header declares, each with a
# version; and a program that meets an older library is told so by the loader.
set -euo pipefail
library=$(realpath "$1") header=$2 program=$(realpath "$3")
work=${TEST_TMPDIR:-$(mktemp -d)}

fail() {
  echo "$*" >&2
  exit 1
}

nm -D --defined-only "$library" | awk '$2 == "T" { print $3 }' | sort >"$work/exported"
grep -o 'NNCUDA_API [^(;]*(' "$header" | grep -o 'nncuda_[a-z0-9_]*(' | tr -d '(' | sed 's/$/@@NNCUDA_1.0/' | sort \
  >"$work/declared"
[ "$(wc -l <"$work/declared")" -ge 50 ] || fail "$header: only $(wc -l <"$work/declared") functions were found"
diff "$work/declared" "$work/exported" || fail "left: nncuda.h; right: what the library exports"
readelf -d "$library" | grep -q 'soname: \[libnncuda.so.1\]' || fail "its soname is not libnncuda.so.1"

# A library of the same soname from before version 1.0.
mkdir -p "$work/old"
cat >"$work/old.c" <<'END'
int nncuda_version(void) { return 900; }
END
echo 'NNCUDA_0.9 { global: nncuda_*; local: *; };' >"$work/old.map"
cc -shared -fPIC -Wl,-soname,libnncuda.so.1 -Wl,--version-script="$work/old.map" -o "$work/old/libnncuda.so.1" "$work/old.c"
if LD_LIBRARY_PATH=$work/old "$program" >"$work/out" 2>&1; then fail "the program ran with a library of version 0.9"; fi
grep -q "version \`NNCUDA_1.0' not found" "$work/out" || fail "the loader said: $(cat "$work/out")"
grep -q "$work/old/libnncuda.so.1" "$work/out" || fail "the loader did not name the library: $(cat "$work/out")"
